//! Copies of some rows of rows.

use super::super::RidgeRows;
use crate::Real;
use crate::error::Result;

impl<T: Real> RidgeRows<'_, T> {
    /// Copies of the rows of these numbers, each below n.
    pub(super) fn select(&self, rows: &[usize]) -> Result<RidgeRows<'static, T>> {
        Ok(RidgeRows { x: self.x.select(rows)?, targets: self.targets.select(rows) })
    }
}
