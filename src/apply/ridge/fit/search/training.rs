//! [`Training`]: the rows that a search is given, and parts of them.

use ndarray::{Array1, Array2, ArrayRef1, ArrayRef2, ArrayView1, ArrayView2, Axis};

use super::super::Sample;
use crate::error::Result;
use crate::{Points, Real};

/// Points, n × d, with their targets, n × t, and weights.
pub(super) struct Training<'a, T: Real> {
    pub x: Points<'a, T>,
    pub targets: ArrayView2<'a, T>,
    pub weights: Option<ArrayView1<'a, f64>>,
}

/// Copies of some rows.
pub(super) struct Chosen<T: Real> {
    x: Points<'static, T>,
    targets: Array2<T>,
    weights: Option<Array1<f64>>,
}

impl<'a, T: Real> Training<'a, T> {
    pub fn new(x: Points<'a, T>, targets: &'a ArrayRef2<T>, weights: Option<&'a ArrayRef1<f64>>) -> Self {
        Training { x, targets: targets.view(), weights: weights.map(|weights| weights.view()) }
    }

    /// The same rows.
    pub fn view(&self) -> Training<'_, T> {
        let weights = self.weights.as_ref().map(|weights| weights.view());
        Training { x: (&self.x).into(), targets: self.targets.view(), weights }
    }

    /// Copies of some rows.
    pub fn select(&self, rows: &[usize]) -> Result<Chosen<T>> {
        let (x, targets) = (self.x.select(rows)?, self.targets.select(Axis(0), rows));
        Ok(Chosen { x, targets, weights: self.weights.map(|weights| weights.select(Axis(0), rows)) })
    }

    pub fn sample(&self) -> Sample<'_, T> {
        let weights = self.weights.as_deref();
        Sample { x: (&self.x).into(), targets: &self.targets, weights }
    }
}

impl<T: Real> Chosen<T> {
    pub fn view(&self) -> Training<'_, T> {
        let weights = self.weights.as_ref().map(|weights| weights.view());
        Training { x: (&self.x).into(), targets: self.targets.view(), weights }
    }
}
