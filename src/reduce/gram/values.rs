//! The sums of [`GramSums`] as numbers.

use ndarray::{Array2, s};

use super::GramSums;
use super::chunk::{BLOCK, RUN, blocks};
use super::totals::LEAST;
use crate::Real;
use crate::data::statistics::is_constant;
use crate::error::{Error, Result};

/// The largest rounding error of Σ w y φ from removed rows, relative to the largest value that the remaining rows allow.
const DIGITS: f64 = 1e-3;
/// The share of Σ w y² below which rounding errors are negligible: the square of 10⁻⁸ of the values.
const NOTHING: f64 = 1e-16;

impl<T: Real> GramSums<T> {
    /// Σ w y for each target, and for the target 1; then Σ w y² for each target.
    pub(crate) fn moments(&self) -> Vec<f64> {
        self.totals.moments.iter().take(2 * self.targets() + 1).map(|sums| sums.at(0, 0)).collect()
    }

    /// n = Σ a and L = Σ a ln p, with the weight a of a row, which says how often it counts, and its precision p.
    pub(crate) fn counts(&self) -> [f64; 2] {
        let of = |place: usize| self.totals.moments[2 * self.targets() + place].at(0, 0);
        [of(1), of(2)]
    }

    /// Σ w.
    pub(crate) fn weight(&self) -> f64 {
        self.totals.moments[self.targets()].at(0, 0)
    }

    /// The largest rounding error that removed rows may have left in Σ w.
    pub(crate) fn weight_lost(&self) -> f64 {
        RUN as f64 * f64::EPSILON * self.totals.removed.at(0, 0)
    }

    /// Σ w φ for a feature.
    pub(crate) fn feature(&self, feature: usize) -> f64 {
        self.totals.cross[self.targets()].at(0, feature)
    }

    /// Σ w (y − r) φ for a feature and a target y, which keeps its digits where r is near all y.
    pub(crate) fn cross_about(&self, feature: usize, target: usize, r: f64) -> f64 {
        self.totals.cross[target].less(feature, r, &self.totals.cross[self.targets()]).high
    }

    /// Σ w (y − r) and Σ w (y − r)² for a target y, which keep their digits where r is near all y.
    pub(crate) fn moments_about(&self, target: usize, r: f64) -> [f64; 2] {
        let (moments, t) = (&self.totals.moments, self.targets());
        let means = moments[target].less(0, r, &moments[t]);
        let squares = moments[t + 1 + target].less(0, r, &moments[target]);
        let squares = squares.add_product(-r, means.high).add_product(-r, means.low);
        [means.high, squares.high]
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

    /// The largest Σ w φ² of a feature in a run, over all runs that were added or removed.
    pub(crate) fn largest_product(&self) -> f64 {
        self.totals.most[0]
    }

    /// The error for features and weights so small that sums of their products have lost digits, if they are.
    pub(crate) fn too_small(&self) -> Option<Error> {
        let (name, value) = ("the largest sum of products of features and weights", self.largest_product());
        let domain = "0, or above 1e-271: scale the features or the weights";
        (f64::MIN_POSITIVE..LEAST).contains(&value).then_some(Error::Parameter { name, value, domain })
    }

    /// The rounding error of a product of features relative to the largest product; sums of a run are rounded in the scalar type.
    pub(crate) fn rounding() -> f64 {
        T::epsilon().widen() * (RUN as f64).sqrt()
    }

    /// The magnitudes to which rounding errors of Σ w φ φᵀ are relative after a removal: for an entry, and for the whole matrix.
    /// The removed rows may have been larger than the remaining ones. Both are 0 if no row was removed.
    ///
    /// Errors of runs are independent, so that their squares add: the root of Σ m² over runs of magnitudes m, of which
    /// max m · Σ m is a bound.
    pub(crate) fn removed_magnitudes(&self) -> [f64; 2] {
        if self.totals.removed.at(0, 0) == 0.0 {
            return [0.0; 2];
        }
        let root = |k: usize| self.totals.most[k].sqrt() * self.totals.magnitudes.at(0, k).max(0.0).sqrt();
        [root(0), root(1)]
    }

    /// The largest difference of two values of a target among all rows that were added; without an intercept, the largest
    /// magnitude of a value.
    pub(crate) fn spread(&self, target: usize, intercept: bool) -> f64 {
        let (least, most) = self.target_ranges.ends(target);
        if intercept { most - least } else { least.abs().max(most.abs()) }
    }

    /// Whether a target is constant up to rounding, or without an intercept, 0 up to rounding. `square` is its Σ w y², centred if
    /// there is an intercept.
    ///
    /// Ranges decide, since they merge without rounding. Removing rows does not narrow them. After a removal, a target is also
    /// constant if all remaining values are 0, or if `square` is no larger than rounding errors of the removed rows and
    /// negligible beside the remaining values.
    ///
    /// # Errors
    /// [`Entry`](Error::Entry) if rounding errors of removed rows hide whether the target varies, or how.
    pub(crate) fn is_constant_target(&self, target: usize, square: f64, intercept: bool) -> Result<bool> {
        let (least, most) = self.target_ranges.ends(target);
        let spread = self.spread(target, intercept);
        if spread == 0.0 || (intercept && is_constant((least, most), T::epsilon().widen())) {
            return Ok(true);
        }
        let removed = self.totals.removed.at(0, 0);
        if removed == 0.0 || self.present.not_zero[target] == 0 {
            return Ok(removed > 0.0);
        }
        // Σ w y² has twice the digits of `f64`, and Σ w y φ has not: its error is at most RUN ε √(Σ w y² Σ w φ²) over all rows
        // ever added.
        let scatter = self.totals.scatter[target].at(0, 0);
        let hidden = (RUN as f64 * f64::EPSILON / DIGITS).powi(2) * scatter;
        let largest = least.abs().max(most.abs());
        let rounding = f64::EPSILON
            * f64::EPSILON
            * (4.0 * RUN as f64 * scatter + 16.0 * (self.weight() + 2.0 * removed) * largest * largest);
        if square > hidden.max(rounding) {
            return Ok(false);
        }
        let about_zero = self.totals.moments[self.targets() + 1 + target].at(0, 0);
        if square <= rounding && rounding <= NOTHING * about_zero {
            return Ok(true);
        }
        let (what, value) = ("the variances of the targets", square / self.weight());
        let domain =
            "above the rounding errors of removed rows: remove rows in the batches in which they were added";
        Err(Error::Entry { what, row: target, value, domain })
    }

    /// The number of rows of positive weight.
    pub(crate) fn present(&self) -> u64 {
        self.present.all
    }
}
