//! How rows enter sums, all or none, and leave them.

use std::ops::Range;

use ndarray::{ArrayRef1, ArrayRef2};

use super::chunk::{ChunkPools, Data, FeatureChunk, ROWS, RUN, cuts};
use super::normal::NormalSums;
use super::ranges::InputRanges;
use super::{FeatureSource, GramIntake};
use crate::Real;
use crate::engine::PointsView;
use crate::error::Result;
use crate::memory::check_memory;
use crate::once::once;
use crate::reduce::training::{check_training, check_weights};
use crate::rows::RowRanges;

impl<T: Real> GramIntake<T> {
    /// Adds the next rows.
    #[inline(never)]
    pub fn take_in(
        &mut self,
        x: PointsView<'_, T>,
        targets: &ArrayRef2<T>,
        weights: Option<&ArrayRef1<f64>>,
    ) -> Result<()> {
        self.take_in_marked(x, targets, weights).map(|_| ())
    }

    /// Adds the next rows, and says how to [take them back](GramIntake::take_back).
    pub fn take_in_marked(
        &mut self,
        x: PointsView<'_, T>,
        targets: &ArrayRef2<T>,
        weights: Option<&ArrayRef1<f64>>,
    ) -> Result<Mark> {
        let (rows, end) = self.sums.rows.and_next(self.next, x.nrows())?;
        let before = self.add(x, targets, weights, self.next, 1.0)?;
        let sums = &self.sums;
        let (ranges, next) = (sums.ranges.clone(), self.next);
        let mark = Mark { before, rows: sums.rows.clone(), ranges, present: sums.present, next };
        if self.sums.inputs.is_none() {
            self.sums.ranges.join(&InputRanges::of(x, |i| weights.is_none_or(|weights| weights[i] > 0.0)));
        }
        self.sums.present = self.sums.present.saturating_add(present(weights, x.nrows()));
        (self.sums.rows, self.next) = (rows, end);
        Ok(mark)
    }

    /// Removes rows, of which this is the first.
    #[inline(never)]
    pub fn take_out(
        &mut self,
        first: u64,
        x: PointsView<'_, T>,
        targets: &ArrayRef2<T>,
        weights: Option<&ArrayRef1<f64>>,
    ) -> Result<()> {
        let rows = self.sums.rows.without(RowRanges::numbers(first, x.nrows())?)?;
        self.add(x, targets, weights, first, -1.0)?;
        self.sums.present = self.sums.present.saturating_sub(present(weights, x.nrows()));
        self.sums.rows = rows;
        Ok(())
    }

    /// Undoes the update with these rows that gave a mark.
    #[cfg_attr(
        not(any(feature = "faer", feature = "ndarray-linalg")),
        allow(dead_code, reason = "for grids")
    )]
    pub fn take_back(
        &mut self,
        x: PointsView<'_, T>,
        targets: &ArrayRef2<T>,
        weights: Option<&ArrayRef1<f64>>,
        Mark { before, rows, ranges, present, next }: Mark,
    ) -> Result<()> {
        let x = x.rows(0..x.nrows());
        let data = Data { x, targets: targets.view(), weights: weights.map(|weights| weights.view()) };
        let cuts: Vec<Range<usize>> = cuts(next, x.nrows()).collect();
        self.undo(&data, &cuts, before, 1.0)?;
        (self.sums.rows, self.sums.ranges, self.sums.present, self.next) = (rows, ranges, present, next);
        Ok(())
    }

    /// The number of the row that comes after so many more, if it can be added.
    pub fn check_next(&self, pending: usize) -> Result<u64> {
        let (_, end) = self.sums.rows.and_next(self.next, pending.saturating_add(1))?;
        Ok(end - 1)
    }

    /// Adds or removes rows, all or none, and says what was before.
    fn add(
        &mut self,
        x: PointsView<'_, T>,
        targets: &ArrayRef2<T>,
        weights: Option<&ArrayRef1<f64>>,
        first: u64,
        sign: f64,
    ) -> Result<Before> {
        check_training(x, self.map.input_dim(), targets, self.sums.targets())?;
        check_weights(weights, x.nrows())?;
        let x = x.rows(0..x.nrows());
        let data = Data { x, targets: targets.view(), weights: weights.map(|weights| weights.view()) };
        let cuts: Vec<Range<usize>> = cuts(first, x.nrows()).collect();
        self.sums.totals.check_parts(cuts.len() as u64)?;
        self.check_chunk(x.nrows())?;
        let parts = self.sums.totals.parts;
        let (mut before, pools) = (Before { saved: None, parts }, ChunkPools::default());
        for (k, cut) in cuts.iter().enumerate() {
            let chunk = self.chunk(&data, cut, &pools).and_then(|chunk| {
                let rises = self.sums.totals.would_rise(&chunk)?;
                if rises && before.saved.is_none() {
                    NormalSums::check_room::<T>(self.sums.targets(), self.map.feature_dim())?;
                }
                Ok((rises, chunk))
            });
            match chunk {
                Ok((rises, mut chunk)) => {
                    if rises && before.saved.is_none() {
                        before.saved = Some((k, self.sums.totals.clone()));
                    }
                    self.sums.totals.add(&mut chunk, sign);
                    chunk.give_back(&pools);
                }
                Err(error) => {
                    self.undo(&data, &cuts[..k], before, sign)?;
                    return Err(error);
                }
            }
        }
        Ok(before)
    }

    /// Restores the sums before these chunks were added.
    fn undo(
        &mut self,
        data: &Data<'_, T>,
        cuts: &[Range<usize>],
        Before { saved, parts }: Before,
        sign: f64,
    ) -> Result<()> {
        let added = saved.map_or(cuts.len(), |(k, sums)| {
            self.sums.totals = sums;
            k
        });
        let pools = ChunkPools::default();
        for cut in &cuts[..added] {
            let mut chunk = self.chunk(data, cut, &pools)?;
            self.sums.totals.add(&mut chunk, -sign);
            chunk.give_back(&pools);
        }
        self.sums.totals.parts = parts;
        Ok(())
    }

    /// Rejects a chunk of up to so many rows if there is no memory for its features and the sums of its runs.
    fn check_chunk(&self, rows: usize) -> Result<()> {
        let (rows, width) = (rows.min(ROWS as usize), self.map.feature_dim());
        let sums = width.saturating_mul(self.sums.targets() + 1).saturating_mul(size_of::<f64>());
        let run = RUN.min(rows).saturating_mul(width).saturating_mul(2 * size_of::<T>()).saturating_add(sums);
        check_memory("runs of features", rows.div_ceil(RUN) + 1, run)
    }

    fn chunk(
        &self,
        data: &Data<'_, T>,
        rows: &Range<usize>,
        pools: &ChunkPools<T>,
    ) -> Result<FeatureChunk<T>> {
        let source = FeatureSource { program: self.map.program(), inputs: self.sums.inputs.as_ref() };
        FeatureChunk::new(source, data.rows(rows.clone()), rows.start, pools)
    }
}

/// The totals before an update.
struct Before {
    /// Those before the chunk of this number, whose addition would lose digits.
    saved: Option<(usize, NormalSums)>,
    parts: u64,
}

/// What an update changed, as it was before.
#[cfg_attr(not(any(feature = "faer", feature = "ndarray-linalg")), allow(dead_code, reason = "for grids"))]
pub(crate) struct Mark {
    before: Before,
    rows: RowRanges,
    ranges: InputRanges,
    present: u64,
    next: u64,
}

/// How many of so many rows have a positive weight.
fn present(weights: Option<&ArrayRef1<f64>>, rows: usize) -> u64 {
    weights.map_or(rows, |weights| weights.iter().filter(|weight| **weight > 0.0).count()) as u64
}

once!(GramIntake::<T>::take_in, GramIntake::<T>::take_out);
