//! Adding rows to sums by the derivatives of a loss, for Newton's method.

use ndarray::Array2;

use super::GramIntake;
use super::chunk::{ChunkPools, FeatureChunk, LinearisedRows, cuts};
use super::normal::NormalSums;
use super::ranges::Ranges;
use super::totals::largest;
use crate::engine::{FeatureSource, PointsView};
use crate::error::{Result, check_size};
use crate::{Real, progress};

/// The largest number that a chunk of rows adds to a sum, for rows at which a loss has these derivatives; NaN if there is one.
///
/// # Errors
/// [`NotFinite`](crate::Error::NotFinite) if a point has no finite features.
pub(crate) fn size_of_linearised<T: Real>(
    source: FeatureSource<'_, T>,
    x: PointsView<'_, T>,
    rows: LinearisedRows<'_>,
) -> Result<f64> {
    let (mut sizes, pools) = (Vec::new(), ChunkPools::default());
    for cut in cuts(std::slice::from_ref(&(0..x.nrows() as u64))) {
        let own = rows.rows(cut.clone());
        let chunk = FeatureChunk::linearised(source, x.rows(cut.clone()), own, cut.start, &pools)?;
        sizes.push(NormalSums::size(&chunk));
        chunk.give_back(&pools);
    }
    Ok(largest(&sizes))
}

impl<T: Real> GramIntake<T> {
    /// Adds the next rows, at which a loss has these derivatives. The last of a row's values says how often it counts.
    pub fn take_in_linearised(&mut self, x: PointsView<'_, T>, rows: LinearisedRows<'_>) -> Result<()> {
        check_size("the number of columns of x", self.map.dim(), x.ncols())?;
        let numbers = self.sums.rows.next(self.next, x.nrows())?;
        NormalSums::check_room::<T>(self.sums.targets(), self.map.feature_dim())?;
        let (mut totals, pools) = (self.sums.totals.clone(), ChunkPools::default());
        let source = FeatureSource::standardised(self.map.program(), self.sums.inputs.as_ref());
        for cut in cuts(std::slice::from_ref(&numbers)) {
            let own = rows.rows(cut.clone());
            let mut chunk = FeatureChunk::linearised(source, x.rows(cut.clone()), own, cut.start, &pools)?;
            NormalSums::check(&chunk)?;
            totals.add(&mut chunk, 1.0);
            chunk.give_back(&pools);
            progress::step("rows summed", cut.end, x.nrows())?;
        }
        let counts = rows.values.column(rows.values.ncols() - 2);
        let present = counts.iter().filter(|count| **count > 0.0).count() as u64;
        self.sums.present.all += present;
        if present > 0 {
            // There are no targets, so that there are no ranges of targets.
            let none = Array2::<T>::zeros((1, self.sums.targets()));
            self.sums.target_ranges.join(&Ranges::of(none.view().into(), |_| true));
        }
        self.sums.ranges.join(&Ranges::of(x, |i| counts[i] > 0.0));
        self.sums.totals = totals;
        self.next = numbers.end;
        self.sums.rows.insert(numbers);
        Ok(())
    }
}
