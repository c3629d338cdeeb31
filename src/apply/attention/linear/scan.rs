//! [`Scan`]: queries that read a growing prefix of some keys, and where what they read goes.

use std::ops::Range;

use ndarray::ArrayViewMut2;

use super::super::input::{Job, KeyRun, QueryRun, SplitRows, split_runs};
use super::request::Request;
use super::sink::{BoxedSink, Outputs};
use crate::Real;

/// How many keys a query sees: visible(i) = min(i + `ahead` − `behind`, keys).
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Visible {
    pub ahead: usize,
    pub behind: usize,
}

/// Keys, and queries of which each sees a prefix of them.
pub(in super::super) struct Scan<'a, T> {
    pub keys: KeyRun<'a, T>,
    /// The queries of each head, as many in each.
    pub readers: Vec<Reader<'a, T>>,
    pub visible: Visible,
}

/// Queries of a head, and where what they read goes.
pub(in super::super) struct Reader<'a, T> {
    pub queries: QueryRun<'a, T>,
    /// Estimates from keys that the scan does not see, which are added to those that have pairs with exact weights.
    pub others: Option<ArrayViewMut2<'a, f64>>,
    pub sink: BoxedSink<'a, T>,
}

impl Visible {
    /// Each query sees the keys up to its own place.
    pub const CAUSAL: Visible = Visible { ahead: 1, behind: 0 };

    /// Each query sees the keys before its window, which has so many keys up to the query's own place.
    pub fn before_window(before: usize) -> Self {
        Visible { behind: before, ..Visible::CAUSAL }
    }

    /// The first query that sees more than so many keys.
    pub fn first(self, keys: usize) -> usize {
        keys.saturating_add(1).saturating_add(self.behind).saturating_sub(self.ahead)
    }

    /// What the other queries see once so many of the first were taken away.
    pub fn after(self, queries: usize) -> Self {
        Visible { ahead: self.ahead.saturating_add(queries), ..self }
    }

    /// visible(query), if there are so many keys.
    pub fn of(self, query: usize) -> usize {
        query.saturating_add(self.ahead).saturating_sub(self.behind)
    }
}

impl<'a, T: Real> Scan<'a, T> {
    /// The queries of a job, with outputs and estimates from other keys, if there are any, for each head.
    pub fn of_job<'b, 'c>(
        job: Job<'b, T>,
        outputs: Vec<Outputs<'c, T>>,
        visible: Visible,
        others: impl IntoIterator<Item = ArrayViewMut2<'a, f64>>,
    ) -> Self
    where
        'b: 'a,
        'c: 'a,
    {
        let mut others = others.into_iter();
        let reader = |(queries, sink): (QueryRun<'b, T>, Outputs<'c, T>)| Reader {
            queries: queries.reborrow(),
            others: others.next(),
            sink: Box::new(sink),
        };
        let readers = job.queries.into_iter().zip(outputs).map(reader).collect();
        Scan { keys: job.keys.reborrow(), readers, visible }
    }

    /// The number of queries of a head.
    pub fn queries(&self) -> usize {
        self.readers.first().map_or(0, |reader| reader.queries.len())
    }

    /// How many of the keys from `start` on a query sees.
    pub fn sees(&self, query: usize, start: usize) -> usize {
        self.visible.of(query).min(self.keys.len()).saturating_sub(start)
    }

    /// Takes the first queries away.
    pub fn take(&mut self, count: usize) -> Vec<Reader<'a, T>> {
        let all = std::mem::take(&mut self.readers).into_iter();
        let (first, rest) = all.map(|reader| reader.split_rows(count)).unzip();
        (self.readers, self.visible) = (rest, self.visible.after(count));
        first
    }

    /// Takes the queries away whose last key is one of these, and tells how many of these the first of them sees. The queries of earlier
    /// keys must have been taken.
    pub fn take_of(&mut self, keys: &Range<usize>) -> (Vec<Reader<'a, T>>, usize) {
        let (count, sees) = (self.visible.first(keys.end).min(self.queries()), self.sees(0, keys.start));
        (if count == 0 { Vec::new() } else { self.take(count) }, sees)
    }
}

impl<'a, T: Real> Reader<'a, T> {
    /// Asks a worker for the queries, which it has read, of which the first sees so many keys of a chunk.
    pub fn request<'b>(&'b mut self, sees: usize, report: &'b mut dyn FnMut(usize)) -> Request<'b, T> {
        let queries = 0..self.queries.len();
        let others = self.others.as_mut().map(|others| others.view_mut());
        let QueryRun { position, kept, .. } = self.queries;
        let estimated = kept.estimated(queries.len());
        Request { queries, sees, position, others, estimated, sink: &mut *self.sink, report }
    }

    /// The queries in runs, each as long as `step` but for the last.
    pub fn runs(self, step: usize) -> Vec<Reader<'a, T>> {
        let count = self.queries.len();
        split_runs(self, count, step)
    }
}

impl<T: Real> SplitRows for Reader<'_, T> {
    fn split_rows(self, at: usize) -> (Self, Self) {
        let ((queries, rest), (own, their)) = (self.queries.split_rows(at), self.others.split_rows(at));
        let (sink, later) = self.sink.split(at);
        (Reader { queries, others: own, sink }, Reader { queries: rest, others: their, sink: later })
    }
}
