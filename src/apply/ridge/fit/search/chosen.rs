//! [`ChosenRows`]: copies of some rows of rows.

use ndarray::{Array1, Array2, Axis};

use super::super::RidgeRows;
use crate::error::Result;
use crate::{Points, Real};

/// Copies of some rows: points, targets and weights.
pub(super) struct ChosenRows<T: Real> {
    x: Points<'static, T>,
    targets: Array2<T>,
    weights: Option<Array1<f64>>,
}

impl<T: Real> RidgeRows<'_, T> {
    /// Copies of the rows of these numbers, each below n.
    pub(super) fn select(&self, rows: &[usize]) -> Result<ChosenRows<T>> {
        let (x, targets) = (self.x.select(rows)?, self.targets.view().select(Axis(0), rows));
        Ok(ChosenRows { x, targets, weights: self.weights.map(|weights| weights.select(Axis(0), rows)) })
    }
}

impl<T: Real> ChosenRows<T> {
    pub fn rows(&self) -> RidgeRows<'_, T> {
        RidgeRows { x: (&self.x).into(), targets: (&self.targets).into(), weights: self.weights.as_deref() }
    }
}
