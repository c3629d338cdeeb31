//! [`ChosenRows`]: copies of some rows of a sample.

use ndarray::{Array1, Array2, Axis};

use super::super::Sample;
use crate::error::Result;
use crate::{Points, Real};

/// Copies of some rows: points, targets and weights.
pub(super) struct ChosenRows<T: Real> {
    x: Points<'static, T>,
    targets: Array2<T>,
    weights: Option<Array1<f64>>,
}

impl<T: Real> Sample<'_, T> {
    /// A sample that borrows these rows.
    pub(super) fn borrowed(&self) -> Sample<'_, T> {
        Sample { x: (&self.x).into(), targets: self.targets, weights: self.weights }
    }

    /// Copies of the rows of these numbers, each below n.
    pub(super) fn select(&self, rows: &[usize]) -> Result<ChosenRows<T>> {
        let (x, targets) = (self.x.select(rows)?, self.targets.select(Axis(0), rows));
        Ok(ChosenRows { x, targets, weights: self.weights.map(|weights| weights.select(Axis(0), rows)) })
    }
}

impl<T: Real> ChosenRows<T> {
    pub fn sample(&self) -> Sample<'_, T> {
        Sample { x: (&self.x).into(), targets: &self.targets, weights: self.weights.as_deref() }
    }
}
