//! [`Job`]: the part of attention that one head of keys has to do for one sequence; [`Heads`] are cut into such jobs.

use std::ops::Range;
use std::sync::OnceLock;

use ndarray::{
    ArrayView, ArrayView1, ArrayView2, ArrayView4, ArrayViewMut, ArrayViewMut2, ArrayViewMut4, Axis,
    Dimension, RemoveAxis, s,
};

use super::element::{Numbers, TokenElement};
use super::heads::Heads;
use super::kept::KeptRows;
use crate::reduce::WeightedSums;
use crate::{Real, threads};

/// Tokens of a chunk. For each token, products with keys of its chunk cost in proportion to this, and updates of sums in inverse
/// proportion.
pub(in super::super) const CHUNK: usize = 64;

/// Attention of all queries that share the keys of one sequence and one head of keys.
pub(in super::super) struct Job<'a, T> {
    /// The head of keys.
    pub head: usize,
    pub keys: KeyRun<'a, T>,
    /// The queries of each head that attends to these keys, as many in each.
    pub queries: Vec<QueryRun<'a, T>>,
}

/// Keys with their values and, where some do not count, a mask.
#[derive(Clone, Copy)]
pub(in super::super) struct KeyRun<'a, T> {
    pub keys: Numbers<'a, T>,
    pub values: Numbers<'a, T>,
    pub mask: Option<ArrayView1<'a, bool>>,
    /// The [scales](super::output::LogScale::of_rows) by which the features of keys are divided; none if these are all 1.
    pub divisors: Option<ArrayView2<'a, f64>>,
    /// Where the features of the keys are kept.
    pub kept: KeptRows<'a, T>,
    /// Where the sums over all these keys are kept.
    pub sums: Option<&'a OnceLock<WeightedSums<T>>>,
}

/// Queries of one head that follow each other in a sequence.
#[derive(Clone, Copy)]
pub(in super::super) struct QueryRun<'a, T> {
    pub rows: Numbers<'a, T>,
    /// Batch, head and row of the first query.
    pub origin: [usize; 3],
    /// The position of the first query in its sequence.
    pub position: usize,
    /// Where the features of the queries are kept.
    pub kept: KeptRows<'a, T>,
}

/// Rows that are cut in two, as often as threads share them.
pub(in super::super) trait SplitRows: Sized {
    /// The first `at` rows, and the others.
    fn split_rows(self, at: usize) -> (Self, Self);
}

impl<'a, E> Heads<'a, E> {
    /// Cuts an array of as many heads and rows as the keys into those of each job, in order.
    pub(in super::super) fn parts_of_keys<'b, T>(
        &self,
        array: ArrayViewMut4<'b, T>,
    ) -> Vec<ArrayViewMut2<'b, T>> {
        let ranges = self.ranges();
        let of_head = |head| parts(head, ranges.iter().map(|(_, run)| run.clone()));
        each(array).into_iter().flat_map(each).flat_map(of_head).collect()
    }

    /// Cuts an array of as many heads and rows as the queries into those of each job, in order, for each head of the job.
    pub(in super::super) fn parts_of_queries<'b, T>(
        &self,
        array: ArrayViewMut4<'b, T>,
    ) -> Vec<Vec<ArrayViewMut2<'b, T>>> {
        let (ranges, mut jobs) = (self.ranges(), Vec::new());
        for array in each(array) {
            let first = jobs.len();
            jobs.resize_with(first + self.keys.dim().1 * ranges.len(), Vec::new);
            for (h, rows) in each(array).into_iter().enumerate() {
                let runs = ranges.iter().map(|(run, _)| run.clone());
                for (s, part) in parts(rows, runs).into_iter().enumerate() {
                    jobs[first + self.key_head(h) * ranges.len() + s].push(part);
                }
            }
        }
        jobs
    }

    /// The head of keys to which a head of queries attends.
    pub(in super::super) fn key_head(&self, head: usize) -> usize {
        head / (self.queries.dim().1 / self.keys.dim().1)
    }

    /// Cuts everything into jobs, in order of batches, heads of keys and sequences.
    pub(in super::super) fn jobs<T: Real>(&self) -> Vec<Job<'_, T>>
    where
        E: TokenElement<T>,
    {
        let (ranges, mut jobs) = (self.ranges(), Vec::new());
        for b in 0..self.queries.dim().0 {
            let mask = self.mask.map(|mask| mask.index_axis_move(Axis(0), b));
            let first = jobs.len();
            for head in 0..self.keys.dim().1 {
                let (keys, values) = (numbers(&self.keys, b, head), numbers(&self.values, b, head));
                let keys = KeyRun { mask, ..KeyRun::new(keys, values) };
                let job = |(_, run): &(_, Range<usize>)| Job {
                    head,
                    keys: keys.rows(run.clone()),
                    queries: Vec::new(),
                };
                jobs.extend(ranges.iter().map(job));
            }
            for h in 0..self.queries.dim().1 {
                let queries = numbers(&self.queries, b, h);
                for (s, (run, _)) in ranges.iter().enumerate() {
                    let (rows, origin) = (queries.rows(run.clone()), [b, h, run.start]);
                    let job = first + self.key_head(h) * ranges.len() + s;
                    jobs[job].queries.push(QueryRun::new(rows, origin));
                }
            }
        }
        jobs
    }
}

/// The rows of a head.
fn numbers<'a, T, E: TokenElement<T>>(x: &ArrayView4<'a, E>, batch: usize, head: usize) -> Numbers<'a, T> {
    E::numbers(x.index_axis_move(Axis(0), batch).index_axis_move(Axis(0), head))
}

impl<'a, T: Real> KeyRun<'a, T> {
    /// Keys of which all count.
    pub fn new(keys: Numbers<'a, T>, values: Numbers<'a, T>) -> Self {
        KeyRun { keys, values, mask: None, divisors: None, kept: KeptRows::default(), sums: None }
    }

    pub fn len(&self) -> usize {
        self.keys.nrows()
    }

    /// Whether key `j` is not masked.
    pub fn sees(&self, j: usize) -> bool {
        self.mask.is_none_or(|mask| mask[j])
    }

    /// Some keys, one after the other.
    pub fn rows(self, run: Range<usize>) -> Self {
        let mask = self.mask.map(|mask| mask.slice_axis_move(Axis(0), run.clone().into()));
        let divisors = self.divisors.map(|divisors| divisors.slice_axis_move(Axis(0), run.clone().into()));
        let kept = self.kept.skip(run.start);
        KeyRun {
            keys: self.keys.rows(run.clone()),
            values: self.values.rows(run),
            mask,
            divisors,
            kept,
            sums: None,
        }
    }

    /// The keys from the last to the first.
    pub fn reversed(self) -> Self {
        let mask = self.mask.map(|mask| mask.slice_move(s![..;-1]));
        let divisors = self.divisors.map(|divisors| divisors.slice_move(s![..;-1, ..]));
        let (keys, values) = (self.keys.reversed(), self.values.reversed());
        let kept = self.kept.reversed(self.len());
        KeyRun { keys, values, mask, divisors, kept, sums: None }
    }

    /// The keys for a shorter time.
    pub fn reborrow<'b>(self) -> KeyRun<'b, T>
    where
        'a: 'b,
    {
        self.masked(self.mask.map(|mask| mask.reborrow()))
    }

    /// The keys with another mask.
    pub fn masked<'b>(self, mask: Option<ArrayView1<'b, bool>>) -> KeyRun<'b, T>
    where
        'a: 'b,
    {
        let divisors = self.divisors.map(|divisors| divisors.reborrow());
        let KeyRun { keys, values, kept, sums, .. } = self;
        KeyRun { keys: keys.reborrow(), values: values.reborrow(), mask, divisors, kept, sums }
    }
}

impl<'a, T: Real> QueryRun<'a, T> {
    /// Queries at the beginning of their sequence, of which nothing is kept.
    pub fn new(rows: Numbers<'a, T>, origin: [usize; 3]) -> Self {
        QueryRun { rows, origin, position: 0, kept: KeptRows::default() }
    }

    pub fn len(&self) -> usize {
        self.rows.nrows()
    }

    /// The queries from the last to the first.
    pub fn reversed<'b>(self) -> QueryRun<'b, T>
    where
        Self: 'b,
    {
        let kept = self.kept.reversed(self.len());
        QueryRun { rows: self.rows.reversed().reborrow(), kept, ..self.reborrow() }
    }

    /// The queries for a shorter time.
    pub fn reborrow<'b>(self) -> QueryRun<'b, T>
    where
        Self: 'b,
    {
        QueryRun { rows: self.rows.reborrow(), ..self }
    }
}

impl<'a, T: Real> Job<'a, T> {
    /// The job with queries from a position of their sequence on.
    pub fn at(mut self, position: usize) -> Self {
        self.queries.iter_mut().for_each(|queries| queries.position = position);
        self
    }

    /// The job with another mask of its keys.
    pub fn masked<'b>(self, mask: Option<ArrayView1<'b, bool>>) -> Job<'b, T>
    where
        'a: 'b,
    {
        let queries = self.queries.into_iter().map(QueryRun::reborrow).collect();
        Job { head: self.head, keys: self.keys.masked(mask), queries }
    }
}

impl<A, D: Dimension> SplitRows for ArrayView<'_, A, D> {
    fn split_rows(self, at: usize) -> (Self, Self) {
        self.split_at(Axis(0), at)
    }
}

impl<A, D: Dimension> SplitRows for ArrayViewMut<'_, A, D> {
    fn split_rows(self, at: usize) -> (Self, Self) {
        self.split_at(Axis(0), at)
    }
}

impl<T: Real> SplitRows for Numbers<'_, T> {
    fn split_rows(self, at: usize) -> (Self, Self) {
        (self.rows(0..at), self.rows(at..self.nrows()))
    }
}

impl<T: Real> SplitRows for QueryRun<'_, T> {
    fn split_rows(self, at: usize) -> (Self, Self) {
        let QueryRun { rows, origin: [b, h, row], position, kept } = self;
        let (first, rest) = rows.split_rows(at);
        let rest =
            QueryRun { rows: rest, origin: [b, h, row + at], position: position + at, kept: kept.skip(at) };
        (QueryRun { rows: first, ..self }, rest)
    }
}

impl<S: SplitRows> SplitRows for Option<S> {
    fn split_rows(self, at: usize) -> (Self, Self) {
        self.map(|rows| rows.split_rows(at)).unzip()
    }
}

/// The parts of an array along its first axis.
fn each<T, D: RemoveAxis>(mut array: ArrayViewMut<'_, T, D>) -> Vec<ArrayViewMut<'_, T, D::Smaller>> {
    let mut parts = Vec::with_capacity(array.len_of(Axis(0)));
    while array.len_of(Axis(0)) > 0 {
        let (first, rest) = array.split_at(Axis(0), 1);
        parts.push(first.index_axis_move(Axis(0), 0));
        array = rest;
    }
    parts
}

/// Runs of rows, which follow each other.
fn parts<'a, T>(
    mut rows: ArrayViewMut2<'a, T>,
    runs: impl Iterator<Item = Range<usize>>,
) -> Vec<ArrayViewMut2<'a, T>> {
    let mut parts = Vec::new();
    for run in runs {
        let (own, rest) = rows.split_at(Axis(0), run.len());
        parts.push(own);
        rows = rest;
    }
    parts
}

/// `count` rows in runs, each as long as `step` but for the last.
pub(in super::super) fn split_runs<S: SplitRows>(mut rows: S, count: usize, step: usize) -> Vec<S> {
    let mut runs = Vec::with_capacity(count.div_ceil(step));
    let mut left = count;
    while left > step {
        let (first, rest) = rows.split_rows(step);
        runs.push(first);
        (rows, left) = (rest, left - step);
    }
    if left > 0 {
        runs.push(rows);
    }
    runs
}

/// A range in runs of `step`.
pub(in super::super) fn cuts(range: Range<usize>, step: usize) -> impl Iterator<Item = Range<usize>> {
    range.clone().step_by(step).map(move |start| start..range.end.min(start + step))
}

/// Threads for each of some jobs.
pub(in super::super) fn threads_of_each(jobs: usize) -> usize {
    threads::count().div_ceil(jobs.max(1))
}
