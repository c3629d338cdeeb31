//! [`GramIntake`]: sums with the map that makes features of points.

use super::ranges::Ranges;
use super::sums::MapIdentity;
use super::{GramSums, Standardisation};
use crate::Real;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
use crate::engine::PointsView;
use crate::error::{Error, Result};
use crate::map::Map;
use crate::once::once;
use crate::reduce::RidgeWarning;

/// Sums of products of features with the map that makes features of points.
#[derive(Clone, Debug)]
pub(crate) struct GramIntake<T: Real> {
    pub(super) map: Map<T>,
    pub(super) sums: GramSums<T>,
    /// The number of the first row of the next update.
    pub(super) next: u64,
}

impl<T: Real> GramIntake<T> {
    /// Empty sums.
    ///
    /// # Errors
    /// The errors of [`check`](GramIntake::check); [`Memory`](Error::Memory) if the sums do not fit in memory.
    pub fn new(map: Map<T>, targets: usize) -> Result<Self> {
        Self::check(&map, targets)?;
        let sums = GramSums::new(MapIdentity::of(&map), targets)?;
        Ok(GramIntake { map, sums, next: 0 })
    }

    /// Rejects maps that are not symmetric, and sums that cannot be addressed.
    pub fn check(map: &Map<T>, targets: usize) -> Result<()> {
        Self::check_symmetric(map)?;
        GramSums::<T>::check(map.feature_dim(), targets)
    }

    /// Rejects maps that are not symmetric.
    pub fn check_symmetric(map: &Map<T>) -> Result<()> {
        if !map.facts().symmetric {
            let what = "sums of products of features whose two sides differ: KernelRidge takes the Gram matrix of such \
                        a map";
            return Err(Error::Unsupported { what });
        }
        Ok(())
    }

    /// Sums from stored or received sums and their map. The next update begins after their last row.
    ///
    /// # Errors
    /// [`Unsupported`](Error::Unsupported) if the map is not symmetric, [`Merge`](Error::Merge) if the sums are of another map.
    pub fn of_sums(map: Map<T>, sums: GramSums<T>) -> Result<Self> {
        Self::check(&map, sums.targets())?;
        sums.check_map(&MapIdentity::of(&map))?;
        let next = sums.rows.end().unwrap_or(0);
        Ok(GramIntake { map, sums, next })
    }

    /// Sets how inputs are centred and scaled before the map is applied.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if `inputs` is for another dimension, [`Parameter`](Error::Parameter) if rows have been added.
    pub fn with_standardisation(self, inputs: impl Into<Option<Standardisation>>) -> Result<Self> {
        self.standardised(inputs.into())
    }

    #[inline(never)]
    fn standardised(self, inputs: Option<Standardisation>) -> Result<Self> {
        Ok(GramIntake { sums: self.sums.with_standardisation(inputs)?, ..self })
    }

    /// Sets the row at which the next update begins.
    ///
    /// # Errors
    /// [`Row`](Error::Row) if that row is counted already.
    pub fn with_first_row(mut self, row: u64) -> Result<Self> {
        self.sums.rows.check_start(row)?;
        self.next = row;
        Ok(self)
    }

    /// Adds the rows of other sums. The next update begins after the last row of both.
    ///
    /// # Errors
    /// The errors of [`GramSums::merge`].
    pub fn merge_sums(&mut self, other: &GramSums<T>) -> Result<()> {
        self.sums.merge(other)?;
        self.next = self.next.max(self.sums.rows.end().unwrap_or(0));
        Ok(())
    }

    /// The map.
    pub fn map(&self) -> &Map<T> {
        &self.map
    }

    /// The sums.
    pub fn sums(&self) -> &GramSums<T> {
        &self.sums
    }

    /// The sums, without the map.
    pub fn into_sums(self) -> GramSums<T> {
        self.sums
    }

    /// The number of the first row of the next update.
    #[cfg(all(feature = "serde", any(feature = "faer", feature = "ndarray-linalg")))]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Warns if inputs are badly scaled for the map's kernel and not standardised, if they vary although they count as constant,
    /// and if they have few different values for their scalar type.
    pub fn input_warnings(&self) -> Vec<RidgeWarning> {
        let (ranges, inputs) = (&self.sums.ranges, self.sums.inputs.as_ref());
        let scale = if inputs.is_some() { None } else { Self::warning_of(&self.map, ranges) };
        scale.into_iter().chain(Self::spacings_of(ranges, inputs)).collect()
    }

    /// Warns if points are badly scaled for a map's kernel; never if they are standardised.
    #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
    pub fn scale_warning_of(
        map: &Map<T>,
        inputs: Option<&Standardisation>,
        x: PointsView<'_, T>,
    ) -> Option<RidgeWarning> {
        if inputs.is_some() { None } else { Self::warning_of(map, &Ranges::of(x, |_| true)) }
    }

    /// Warns of coordinates that vary although the standardisation takes them for constant, and if a coordinate has few different
    /// values for its scalar type.
    #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
    pub fn spacing_warnings(x: PointsView<'_, T>, inputs: Option<&Standardisation>) -> Vec<RidgeWarning> {
        Self::spacings_of(&Ranges::of(x, |_| true), inputs)
    }

    fn spacings_of(ranges: &Ranges, inputs: Option<&Standardisation>) -> Vec<RidgeWarning> {
        let constant = inputs.map_or(&[][..], Standardisation::constant_columns);
        ranges.spacing_warnings(T::epsilon().widen(), constant)
    }

    fn warning_of(map: &Map<T>, ranges: &Ranges) -> Option<RidgeWarning> {
        ranges.warning(map.plain_recipe().map(|plain| plain.kernel.lengthscale()))
    }
}

once!(GramIntake::<T>::standardised);
