//! The sums of [`GramSums`] as numbers.

use ndarray::{Array2, s};

use super::GramSums;
use super::chunk::{BLOCK, RUN, blocks};
use crate::Real;

impl<T: Real> GramSums<T> {
    /// Σ w y for each target, and for the target 1; then Σ w y² for each target.
    pub(crate) fn moments(&self) -> Vec<f64> {
        self.totals.moments.iter().map(|sums| sums.at(0, 0)).collect()
    }

    /// Σ w y φ for a feature and a target; the last is the target 1.
    pub(crate) fn cross(&self, feature: usize, target: usize) -> f64 {
        self.totals.cross[target].at(0, feature)
    }

    /// Σ w φ φᵀ, D × D; only the lower triangle is filled.
    pub(crate) fn lower_products(&self) -> Array2<f64> {
        let width = self.feature_dim();
        let mut products = Array2::zeros((width, width));
        for (piece, (i, j)) in blocks(width).into_iter().enumerate() {
            let of = |b: usize| b * BLOCK..width.min((b + 1) * BLOCK);
            let mut block = products.slice_mut(s![of(i), of(j)]);
            block.indexed_iter_mut().for_each(|((f, g), a)| *a = self.totals.gram.at(piece, f * BLOCK + g));
        }
        products
    }

    /// The rounding error of a product relative to the largest: sums of a run are rounded in the scalar type.
    pub(crate) fn rounding() -> f64 {
        T::epsilon().widen() * (RUN as f64).sqrt()
    }

    /// The number of rows of positive weight.
    pub(crate) fn present(&self) -> u64 {
        self.present
    }
}
