//! [`Job`]: the part of attention that one head of keys has to do for one sequence; [`Heads`] are cut into such jobs.

use std::ops::Range;

use ndarray::{ArrayView1, ArrayView4, ArrayViewMut, ArrayViewMut2, ArrayViewMut4, Axis, RemoveAxis, s};

use super::element::{Element, Numbers};
use super::heads::Heads;
use crate::{Real, threads};

/// Tokens of a chunk. For each token, products with keys of its chunk cost in proportion to this, and updates of sums in inverse
/// proportion.
pub(in super::super) const CHUNK: usize = 64;

/// The keys of one sequence and one head of keys, with all queries that attend to them.
pub(in super::super) struct Job<'a, T> {
    /// The head of keys.
    pub head: usize,
    pub keys: KeyRun<'a, T>,
    pub members: Vec<Member<'a, T>>,
}

/// Keys with their values and, where some do not count, a mask.
#[derive(Clone, Copy)]
pub(in super::super) struct KeyRun<'a, T> {
    pub keys: Numbers<'a, T>,
    pub values: Numbers<'a, T>,
    pub mask: Option<ArrayView1<'a, bool>>,
    /// ln of a factor of the features of each key; none if these are 1.
    pub shifts: Option<ArrayView1<'a, f64>>,
}

/// A head of queries of a job.
pub(in super::super) struct Member<'a, T> {
    pub queries: Numbers<'a, T>,
    pub out: ArrayViewMut2<'a, T>,
    /// Batch, head and row of the first query.
    pub place: [usize; 3],
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

    /// Cuts everything into jobs, in order.
    pub(in super::super) fn jobs<'b, T: Real>(&'b self, out: ArrayViewMut4<'b, T>) -> Vec<Job<'b, T>>
    where
        E: Element<T>,
    {
        let (ranges, mut jobs) = (self.ranges(), Vec::new());
        let group = self.queries.dim().1 / self.keys.dim().1.max(1);
        for (b, out) in each(out).into_iter().enumerate() {
            let mask = self.mask.map(|mask| mask.index_axis_move(Axis(0), b));
            let of_head = |x: &ArrayView4<'b, E>, head: usize| {
                E::numbers(x.index_axis_move(Axis(0), b).index_axis_move(Axis(0), head))
            };
            let first = jobs.len();
            for head in 0..self.keys.dim().1 {
                let (keys, values) = (of_head(&self.keys, head), of_head(&self.values, head));
                let keys = KeyRun { mask, ..KeyRun::new(keys, values) };
                let job = |(_, run): &(_, Range<usize>)| {
                    let members = Vec::with_capacity(group);
                    Job { head, keys: keys.rows(run.clone()), members }
                };
                jobs.extend(ranges.iter().map(job));
            }
            for (h, out) in each(out).into_iter().enumerate() {
                let queries = of_head(&self.queries, h);
                let runs = ranges.iter().map(|(run, _)| run.clone());
                for (s, (run, out)) in runs.clone().zip(parts(out, runs)).enumerate() {
                    let member = Member { queries: queries.rows(run.clone()), out, place: [b, h, run.start] };
                    jobs[first + h / group * ranges.len() + s].members.push(member);
                }
            }
        }
        jobs
    }
}

impl<'a, T: Real> KeyRun<'a, T> {
    /// Keys of which all count.
    pub fn new(keys: Numbers<'a, T>, values: Numbers<'a, T>) -> Self {
        KeyRun { keys, values, mask: None, shifts: None }
    }

    pub fn len(&self) -> usize {
        self.keys.nrows()
    }

    /// Whether key `j` is not masked.
    pub fn sees(&self, j: usize) -> bool {
        self.mask.is_none_or(|mask| mask[j])
    }

    /// Some of these.
    pub fn rows(self, run: Range<usize>) -> Self {
        let mask = self.mask.map(|mask| mask.slice_axis_move(Axis(0), run.clone().into()));
        let shifts = self.shifts.map(|shifts| shifts.slice_axis_move(Axis(0), run.clone().into()));
        KeyRun { keys: self.keys.rows(run.clone()), values: self.values.rows(run), mask, shifts }
    }

    /// The same from the last to the first.
    pub fn reversed(self) -> Self {
        let mask = self.mask.map(|mask| mask.slice_move(s![..;-1]));
        let shifts = self.shifts.map(|shifts| shifts.slice_move(s![..;-1]));
        KeyRun { keys: self.keys.reversed(), values: self.values.reversed(), mask, shifts }
    }

    /// The same for a shorter time.
    pub fn reborrow<'b>(self) -> KeyRun<'b, T>
    where
        'a: 'b,
    {
        self.masked(self.mask.map(|mask| mask.reborrow()))
    }

    /// The same with another mask.
    pub fn masked<'b>(self, mask: Option<ArrayView1<'b, bool>>) -> KeyRun<'b, T>
    where
        'a: 'b,
    {
        let shifts = self.shifts.map(|shifts| shifts.reborrow());
        KeyRun { keys: self.keys.reborrow(), values: self.values.reborrow(), mask, shifts }
    }
}

impl<'a, T: Real> Job<'a, T> {
    /// The same with another mask of its keys.
    pub fn masked<'b>(self, mask: Option<ArrayView1<'b, bool>>) -> Job<'b, T>
    where
        'a: 'b,
    {
        let member = |Member { queries, out, place }: Member<'a, T>| Member {
            queries: queries.reborrow(),
            out: out.reborrow(),
            place,
        };
        let members = self.members.into_iter().map(member).collect();
        Job { head: self.head, keys: self.keys.masked(mask), members }
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

/// A range in runs of `step`.
pub(in super::super) fn cuts(range: Range<usize>, step: usize) -> impl Iterator<Item = Range<usize>> {
    range.clone().step_by(step).map(move |start| start..range.end.min(start + step))
}

/// Threads for each of some jobs.
pub(in super::super) fn threads_of_each(jobs: usize) -> usize {
    threads::count().div_ceil(jobs.max(1))
}
