//! Adding rows to sums and removing rows from them, either all or none.
//!
//! A change is computed first, with all code of a user's map and watcher, and then put in its place, which cannot fail. An error,
//! a panic of a map or a stop by a watcher therefore leaves sums unchanged.

use std::ops::Range;

use super::GramIntake;
use super::chunk::{ChunkPools, Data, FeatureChunk, ROWS, RUN, cuts};
use super::counts::RowCounts;
use super::normal::NormalSums;
use super::ranges::Ranges;
use crate::engine::{FeatureSource, PointsView};
use crate::error::{Error, Result, check_size};
use crate::memory::check_memory;
use crate::once::once;
use crate::reduce::training::check_training;
use crate::rows::RowRanges;
use crate::targets::TargetRows;
use crate::{Points, Real, progress};

/// A change of sums, ready to be [put](GramIntake::put) in its place.
pub(crate) struct Change<T> {
    totals: NewTotals<T>,
    /// The rows that are added, or removed if the sign is negative, in ascending ranges.
    rows: Vec<Range<u64>>,
    sign: f64,
    ranges: Ranges,
    target_ranges: Ranges,
    present: RowCounts,
    next: u64,
}

/// The change of the totals.
enum NewTotals<T> {
    /// One chunk of rows is added or removed.
    With(FeatureChunk<T>),
    /// The totals after several chunks.
    Are(NormalSums),
}

impl<T: Real> GramIntake<T> {
    /// Adds the next rows.
    #[inline(never)]
    pub fn take_in(&mut self, x: PointsView<'_, T>, targets: &TargetRows<'_, T>) -> Result<()> {
        let change = self.with(x, targets)?;
        self.put(change);
        Ok(())
    }

    /// Removes rows from number `first` on.
    pub fn take_out(&mut self, first: u64, x: PointsView<'_, T>, targets: &TargetRows<'_, T>) -> Result<()> {
        let rows = RowRanges::numbers(first, x.nrows())?;
        self.take_out_ranges(vec![rows], x, targets)
    }

    /// Removes rows of these numbers.
    pub fn take_out_listed(
        &mut self,
        numbers: &[u64],
        x: &Points<'_, T>,
        targets: &TargetRows<'_, T>,
    ) -> Result<()> {
        in_order(numbers, x, targets, |rows, x, targets| self.take_out_ranges(rows, x, targets))
    }

    /// Adds rows of these numbers. The next update begins after the largest of them.
    pub fn take_in_listed(
        &mut self,
        numbers: &[u64],
        x: &Points<'_, T>,
        targets: &TargetRows<'_, T>,
    ) -> Result<()> {
        in_order(numbers, x, targets, |rows, x, targets| self.take_in_ranges(rows, x, targets))
    }

    /// Adds rows with the numbers of these ascending ranges.
    #[inline(never)]
    fn take_in_ranges(
        &mut self,
        rows: Vec<Range<u64>>,
        x: PointsView<'_, T>,
        targets: &TargetRows<'_, T>,
    ) -> Result<()> {
        rows.iter().try_for_each(|rows| self.sums.rows.check_absent(rows))?;
        let change = self.with_ranges(rows, x, targets)?;
        self.put(change);
        Ok(())
    }

    /// Removes rows with the numbers of these ascending ranges.
    #[inline(never)]
    fn take_out_ranges(
        &mut self,
        rows: Vec<Range<u64>>,
        x: PointsView<'_, T>,
        targets: &TargetRows<'_, T>,
    ) -> Result<()> {
        rows.iter().try_for_each(|rows| self.sums.rows.check_held(rows))?;
        let totals = self.new_totals(x, targets, &rows, -1.0)?;
        let present = self.sums.present.without(&RowCounts::of(&targets.columns, targets.weights()));
        self.put(Change {
            totals,
            rows,
            sign: -1.0,
            ranges: self.sums.ranges.clone(),
            target_ranges: self.sums.target_ranges.clone(),
            present,
            next: self.next,
        });
        Ok(())
    }

    /// The change that adds the next rows.
    pub fn with(&self, x: PointsView<'_, T>, targets: &TargetRows<'_, T>) -> Result<Change<T>> {
        let rows = self.sums.rows.next(self.next, x.nrows())?;
        self.with_ranges(vec![rows], x, targets)
    }

    /// The change that adds rows with the numbers of these ascending ranges, none of which is held.
    #[inline(never)]
    fn with_ranges(
        &self,
        rows: Vec<Range<u64>>,
        x: PointsView<'_, T>,
        targets: &TargetRows<'_, T>,
    ) -> Result<Change<T>> {
        let totals = self.new_totals(x, targets, &rows, 1.0)?;
        let present = self.sums.present.with(&RowCounts::of(&targets.columns, targets.weights()));
        let mut ranges = self.sums.ranges.clone();
        let counts = |i: usize| targets.weights().is_none_or(|weights| weights[i] > 0.0);
        ranges.join(&Ranges::of(x, counts));
        let mut target_ranges = self.sums.target_ranges.clone();
        target_ranges.join(&Ranges::of(targets.columns.view().into(), counts));
        let next = rows.last().map_or(self.next, |last| last.end);
        Ok(Change { totals, next, rows, sign: 1.0, ranges, target_ranges, present })
    }

    /// Puts a change in its place; nothing else may have changed since it was computed. If no row of positive weight remains, the
    /// sums become empty, without ranges and without rounding errors of removed rows.
    pub fn put(&mut self, change: Change<T>) {
        let Change { totals, rows, sign, ranges, target_ranges, present, next } = change;
        match totals {
            NewTotals::With(mut chunk) => self.sums.totals.add(&mut chunk, sign),
            NewTotals::Are(totals) => self.sums.totals = totals,
        }
        if sign > 0.0 {
            rows.into_iter().for_each(|rows| self.sums.rows.insert(rows));
        } else {
            rows.iter().for_each(|rows| self.sums.rows.remove(rows));
        }
        (self.sums.ranges, self.sums.target_ranges) = (ranges, target_ranges);
        (self.sums.present, self.next) = (present, next);
        if self.sums.present.all == 0 {
            self.sums.totals.clear();
            (self.sums.ranges, self.sums.target_ranges) = (Ranges::default(), Ranges::default());
        }
    }

    /// The number of the next row after `pending` more rows; an error if that row cannot be added.
    pub fn check_next(&self, pending: usize) -> Result<u64> {
        let next = self.sums.rows.next(self.next, pending.saturating_add(1))?;
        Ok(next.end - 1)
    }

    /// The totals after adding or removing rows: one chunk is changed in place, several are added to a copy.
    fn new_totals(
        &self,
        x: PointsView<'_, T>,
        targets: &TargetRows<'_, T>,
        rows: &[Range<u64>],
        sign: f64,
    ) -> Result<NewTotals<T>> {
        check_training(x, self.map.dim(), &targets.columns, self.sums.targets())?;
        targets.check_weights(x.nrows())?;
        let data = Data {
            x: x.rows(0..x.nrows()),
            targets: targets.columns.view(),
            weights: targets.weights().map(|weights| weights.view()),
            precisions: targets.precisions().map(|precisions| precisions.view()),
        };
        let cuts = cuts(rows);
        self.check_chunk(x.nrows())?;
        let pools = ChunkPools::default();
        if let [all] = &cuts[..] {
            return Ok(NewTotals::With(self.chunk(&data, all, &pools)?));
        }
        NormalSums::check_room::<T>(self.sums.targets(), self.map.feature_dim())?;
        let mut totals = self.sums.totals.clone();
        for cut in &cuts {
            let mut chunk = self.chunk(&data, cut, &pools)?;
            totals.add(&mut chunk, sign);
            chunk.give_back(&pools);
            progress::step("rows summed", cut.end, x.nrows())?;
        }
        Ok(NewTotals::Are(totals))
    }

    /// Rejects a chunk of at most `rows` rows if there is no memory for its features and the sums of its runs.
    fn check_chunk(&self, rows: usize) -> Result<()> {
        let (rows, width) = (rows.min(ROWS as usize), self.map.feature_dim());
        let sums = width.saturating_mul(self.sums.targets() + 1).saturating_mul(size_of::<f64>());
        let run = RUN.min(rows).saturating_mul(width).saturating_mul(2 * size_of::<T>()).saturating_add(sums);
        check_memory("runs of features", rows.div_ceil(RUN) + 2, run)
    }

    /// The chunk of these rows; an error if its numbers are too large for totals.
    fn chunk(
        &self,
        data: &Data<'_, T>,
        rows: &Range<usize>,
        pools: &ChunkPools<T>,
    ) -> Result<FeatureChunk<T>> {
        let source = FeatureSource::standardised(self.map.program(), self.sums.inputs.as_ref());
        let chunk = FeatureChunk::new(source, data.rows(rows.clone()), rows.start, pools)?;
        NormalSums::check(&chunk)?;
        Ok(chunk)
    }
}

/// Hands on points and targets in the order of their numbers, which are given as ascending ranges. Rejects sizes that differ,
/// numbers that are too large and numbers that are listed twice.
fn in_order<T: Real>(
    numbers: &[u64],
    x: &Points<'_, T>,
    targets: &TargetRows<'_, T>,
    act: impl FnOnce(Vec<Range<u64>>, PointsView<'_, T>, &TargetRows<'_, T>) -> Result<()>,
) -> Result<()> {
    check_size("the number of points with a row number", numbers.len(), x.nrows())?;
    check_size("the number of rows of targets", x.nrows(), targets.columns.nrows())?;
    targets.check_weights(x.nrows())?;
    let mut order: Vec<usize> = (0..numbers.len()).collect();
    order.sort_by_key(|i| numbers[*i]);
    let mut rows: Vec<Range<u64>> = Vec::new();
    for row in order.iter().map(|i| numbers[*i]) {
        let next = RowRanges::numbers(row, 1)?;
        match rows.last_mut() {
            Some(last) if last.end > row => return Err(Error::Row { row, reason: "is listed twice" }),
            Some(last) if last.end == row => last.end = next.end,
            _ => rows.push(next),
        }
    }
    if order.is_sorted() {
        return act(rows, x.view(), targets);
    }
    act(rows, x.select(&order)?.view(), &targets.select(&order))
}

once!(
    GramIntake::<T>::take_in,
    GramIntake::<T>::take_in_ranges,
    GramIntake::<T>::take_out_ranges,
    GramIntake::<T>::with_ranges
);
