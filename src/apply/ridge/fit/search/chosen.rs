//! Selections of rows, and the sums over rows.

use super::super::{RidgeRows, RidgeStatistics, Standardisation};
use crate::Real;
use crate::error::Result;
use crate::map::Map;

impl<T: Real> RidgeRows<'_, T> {
    /// Copies of the rows with these numbers, each below n.
    pub(super) fn select(&self, rows: &[usize]) -> Result<RidgeRows<'static, T>> {
        Ok(RidgeRows { x: self.x.select(rows)?, targets: self.targets.select(rows) })
    }

    /// The sums over the rows, for a map and a standardisation of inputs, if there is one.
    pub(super) fn statistics(
        &self,
        map: Map<T>,
        inputs: Option<&Standardisation>,
        intercept: bool,
    ) -> Result<RidgeStatistics<T>> {
        let mut statistics = RidgeStatistics::new(map, self.targets.columns.ncols())?;
        if let Some(inputs) = inputs {
            statistics = statistics.with_standardisation(inputs.clone())?;
        }
        if !intercept {
            statistics = statistics.without_intercept();
        }
        statistics.intake.take_in(self.x.view(), &self.targets)?;
        Ok(statistics)
    }
}
