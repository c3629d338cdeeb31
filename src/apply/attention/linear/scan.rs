//! [`Scan`]: queries that see more of the keys from place to place, and where what they see goes.

use std::ops::Range;

use ndarray::{ArrayViewMut1, ArrayViewMut2, Axis};

use super::super::gradient::{Pulls, Role};
use super::super::input::{Job, KeyRun, Member, Numbers, Undivided};
use crate::Real;
use crate::numeric::slice_of_mut;

/// How many keys queries see: the i-th the first i + `ahead` − `behind` of them, as far as there are so many.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Lag {
    pub ahead: usize,
    pub behind: usize,
}

/// Keys, and the queries that see some of the first.
pub(in super::super) struct Scan<'a, T> {
    pub keys: KeyRun<'a, T>,
    /// The queries of each head, as many in each.
    pub askers: Vec<Asker<'a, T>>,
    pub lag: Lag,
}

/// Queries of a head.
pub(in super::super) struct Asker<'a, T> {
    pub queries: Numbers<'a, T>,
    pub out: Outlet<'a, T>,
    /// Batch, head and row of the first query.
    pub origin: [usize; 3],
    /// The place of the first query in its sequence.
    pub place: usize,
}

/// Where what is computed for queries goes, row by row.
pub(in super::super) enum Outlet<'a, T> {
    /// To outputs, with what was [kept](Outlet::Estimates) of other keys, if there are any.
    Outputs(ArrayViewMut2<'a, T>, Option<ArrayViewMut2<'a, f64>>),
    /// Estimates are kept as they are: in a row the scale, the normaliser, whether a key was seen, and the sums.
    Estimates(ArrayViewMut2<'a, f64>),
    /// To gradients.
    Pulls(Pulls<'a, T>),
}

/// Numbers of an estimate that is kept, before its sums.
pub(super) const HEAD: usize = 3;

/// The bytes of an estimate that is kept, for values of dimension `d_v`.
pub(super) fn bytes_of_estimate(d_v: usize) -> usize {
    d_v.saturating_add(HEAD).saturating_mul(size_of::<f64>())
}

impl Lag {
    /// Each query sees the keys up to its own place.
    pub const NONE: Lag = Lag { ahead: 1, behind: 0 };

    /// The first query that sees more than so many keys.
    pub fn first(self, keys: usize) -> usize {
        keys.saturating_add(1).saturating_add(self.behind).saturating_sub(self.ahead)
    }

    /// The same for queries of which the first ones were taken away.
    pub fn after(self, queries: usize) -> Self {
        Lag { ahead: self.ahead.saturating_add(queries), ..self }
    }

    /// How many keys a query sees, if there are so many.
    pub fn seen(self, query: usize) -> usize {
        query.saturating_add(self.ahead).saturating_sub(self.behind)
    }
}

impl<'a, T: Real> Scan<'a, T> {
    /// The queries of a job, the first at a place, for each of its heads with estimates of other keys, if there are any.
    pub fn of_job<'b>(
        job: Job<'b, T>,
        first: usize,
        lag: Lag,
        others: impl IntoIterator<Item = ArrayViewMut2<'a, f64>>,
    ) -> Self
    where
        'b: 'a,
    {
        let mut others = others.into_iter();
        let asker = |Member { queries, out, place }: Member<'b, T>| Asker {
            queries: queries.reborrow(),
            out: Outlet::Outputs(out.reborrow(), others.next()),
            origin: place,
            place: first,
        };
        Scan { keys: job.keys.reborrow(), askers: job.members.into_iter().map(asker).collect(), lag }
    }

    /// The number of queries of a head.
    pub fn queries(&self) -> usize {
        self.askers.first().map_or(0, |asker| asker.queries.nrows())
    }

    /// The queries whose last key is one of these.
    pub fn queries_of(&self, keys: &Range<usize>) -> Range<usize> {
        let most = self.queries();
        self.lag.first(keys.start).min(most)..self.lag.first(keys.end).min(most)
    }

    /// How many of the keys from `start` on a query sees.
    pub fn sees(&self, query: usize, start: usize) -> usize {
        self.lag.seen(query).min(self.keys.len()).saturating_sub(start)
    }
}

impl<'a, T: Real> Asker<'a, T> {
    /// Some of these queries, for as long as `self` is borrowed.
    pub fn rows(&mut self, rows: Range<usize>) -> Asker<'_, T> {
        let [b, h, first] = self.origin;
        Asker {
            queries: self.queries.rows(rows.clone()).reborrow(),
            out: self.out.rows(rows.clone()),
            origin: [b, h, first + rows.start],
            place: self.place + rows.start,
        }
    }

    /// Queries in runs, each as long as `step` but for the last.
    pub fn runs(mut self, step: usize) -> Vec<Asker<'a, T>> {
        let mut runs = Vec::new();
        while self.queries.nrows() > 0 {
            let (first, rest) = self.split(step);
            runs.push(first);
            self = rest;
        }
        runs
    }

    /// The first `count` queries, or all if there are fewer, and the others.
    pub fn split(self, count: usize) -> (Self, Self) {
        let Asker { queries, out, origin, place } = self;
        let count = count.min(queries.nrows());
        let (own, rest) = out.split(count);
        let (first, second) = (queries.rows(0..count), queries.rows(count..queries.nrows()));
        let later = [origin[0], origin[1], origin[2] + count];
        (
            Asker { queries: first, out: own, origin, place },
            Asker { queries: second, out: rest, origin: later, place: place + count },
        )
    }
}

impl<'a, T: Real> Outlet<'a, T> {
    /// The dimension of the values.
    pub fn targets(&self) -> usize {
        match self {
            Outlet::Outputs(out, _) => out.ncols(),
            Outlet::Estimates(kept) => kept.ncols() - HEAD,
            Outlet::Pulls(pulls) => pulls.targets(),
        }
    }

    /// What was kept of other keys for row `i`.
    pub fn others(&mut self, i: usize) -> Option<ArrayViewMut1<'_, f64>> {
        let others = match self {
            Outlet::Outputs(_, others) | Outlet::Pulls(Pulls { role: Role::Queries { others, .. }, .. }) => {
                others
            }
            _ => return None,
        };
        others.as_mut().map(|others| others.row_mut(i))
    }

    /// Those of some rows.
    pub fn rows(&mut self, rows: Range<usize>) -> Outlet<'_, T> {
        match self {
            Outlet::Outputs(out, others) => Outlet::Outputs(
                out.slice_axis_mut(Axis(0), rows.clone().into()),
                others.as_mut().map(|others| others.slice_axis_mut(Axis(0), rows.into())),
            ),
            Outlet::Estimates(kept) => Outlet::Estimates(kept.slice_axis_mut(Axis(0), rows.into())),
            Outlet::Pulls(pulls) => Outlet::Pulls(pulls.rows(rows)),
        }
    }

    /// Those of the first rows and of the others.
    fn split(self, count: usize) -> (Self, Self) {
        match self {
            Outlet::Outputs(out, others) => {
                let (first, second) = out.split_at(Axis(0), count);
                let (own, rest) = others.map(|others| others.split_at(Axis(0), count)).unzip();
                (Outlet::Outputs(first, own), Outlet::Outputs(second, rest))
            }
            Outlet::Estimates(kept) => {
                let (first, second) = kept.split_at(Axis(0), count);
                (Outlet::Estimates(first), Outlet::Estimates(second))
            }
            Outlet::Pulls(pulls) => {
                let (first, second) = pulls.split(count);
                (Outlet::Pulls(first), Outlet::Pulls(second))
            }
        }
    }
}

/// Keeps an estimate in a row.
pub(super) fn keep<U: Real>(estimate: &Undivided<'_, U>, mut row: ArrayViewMut1<'_, f64>) {
    let head = [estimate.scale, estimate.normaliser, f64::from(u8::from(estimate.seen))];
    let numbers = head.into_iter().chain(estimate.sums.iter().map(|sum| sum.widen()));
    row.iter_mut().zip(numbers).for_each(|(kept, number)| *kept = number);
}

/// The estimate that is kept in a row.
pub(super) fn kept<'b>(row: &'b mut ArrayViewMut1<'_, f64>) -> Undivided<'b, f64> {
    let (head, sums) = slice_of_mut(row).split_at_mut(HEAD);
    Undivided { scale: head[0], normaliser: head[1], seen: head[2] != 0.0, sums }
}
