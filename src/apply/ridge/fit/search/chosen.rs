//! Copies of some rows of rows.

use ndarray::Axis;

use super::super::RidgeRows;
use crate::Real;
use crate::error::Result;
use crate::targets::TargetRows;

impl<T: Real> RidgeRows<'_, T> {
    /// Borrows these rows.
    pub(super) fn borrowed(&self) -> RidgeRows<'_, T> {
        RidgeRows { x: (&self.x).into(), targets: self.targets.borrowed() }
    }

    /// Copies of the rows of these numbers, each below n.
    pub(super) fn select(&self, rows: &[usize]) -> Result<RidgeRows<'static, T>> {
        let columns = self.targets.columns.select(Axis(0), rows).into();
        let weights = self.weights().map(|weights| weights.select(Axis(0), rows).into());
        Ok(RidgeRows { x: self.x.select(rows)?, targets: TargetRows { columns, weights } })
    }
}
