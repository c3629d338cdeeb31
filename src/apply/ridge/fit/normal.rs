//! [`Normal`]: the normal equations of a regression.

use ndarray::{Array1, Array2, ArrayView1};

use super::{Ridge, RidgeStatistics, too_large};
use crate::error::{Error, Result, checked_not_negative};
use crate::memory::check_memory;
use crate::once::once;
use crate::reduce::{GramSums, LEAST_SUMMAND};
use crate::{Real, progress};

/// A bound of sums of squares below which they lose digits.
pub(super) const LEAST_SQUARE: f64 = LEAST_SUMMAND;

/// (A + λI) β = c, with A and c centred if there is an intercept.
#[derive(Clone, Debug)]
pub(in crate::apply) struct Normal {
    /// A, D × D; only the lower triangle is used.
    pub a: Array2<f64>,
    /// c, D × t.
    pub c: Array2<f64>,
    /// Σ w y² for each target, centred if there is an intercept.
    pub squares: Vec<f64>,
    /// The mean features that were subtracted; 0 without an intercept.
    pub mean_features: Array1<f64>,
    /// r for each target. The mean that was subtracted is r + o. It is kept in two parts (o is in `offsets`), so that y − r − o
    /// keeps its digits where the mean is large. Both parts are 0 without an intercept.
    pub references: Array1<f64>,
    pub offsets: Array1<f64>,
    /// N = Σ w.
    pub weight: f64,
    /// n = Σ a and L = Σ a ln p, with the weight a of a row, which says how often it counts, and its precision p.
    pub counts: [f64; 2],
    /// The number of directions in which rows can differ: the number of rows, less 1 if there is an intercept, and at most D.
    pub rank: usize,
    /// The rounding error of an entry of A, with the errors that removed rows have left. Smaller pivots and eigenvalues cannot be
    /// told from 0.
    pub noise: f64,
    /// Whether A has lost digits because features and weights are too small for sums.
    pub is_lost: bool,
    /// The error for criteria, if A has lost digits or squares of a target that varies are out of range.
    pub out_of_range: Option<Error>,
    /// The rounding error of A in the spectral norm, which bounds the change of an eigenvalue.
    pub total_noise: f64,
    /// The relative rounding error of a sum of products.
    pub rounding: f64,
}

impl<T: Real> RidgeStatistics<T> {
    /// Σ w φ φᵀ over all rows, D × D and symmetric, not centred. If all weights are 1, it is ΦᵀΦ for the matrix Φ of features, n
    /// × D.
    ///
    /// # Errors
    /// [`NoData`](Error::NoData) without rows of positive weight, [`Parameter`](Error::Parameter) if Σ w is no larger than
    /// rounding errors of removed weights may be, or if all products of weights and squared features are below 1e-271.
    /// [`Memory`](Error::Memory) if the matrix does not fit in memory.
    #[inline(never)]
    pub fn products(&self) -> Result<Array2<f64>> {
        symmetric_products(self.sums())
    }

    /// The mean features Σ w φ / Σ w, D numbers.
    ///
    /// # Errors
    /// [`NoData`](Error::NoData) without rows of positive weight, [`Parameter`](Error::Parameter) if Σ w is no larger than rounding
    /// errors of removed weights may be.
    #[inline(never)]
    pub fn mean_features(&self) -> Result<Array1<f64>> {
        let sums = self.sums();
        Ok(Array1::from_shape_fn(sums.feature_dim(), |f| sums.feature(f)) / Normal::weight_of(sums)?)
    }

    /// The mean of each target, ȳ = Σ w y / Σ w, t numbers.
    ///
    /// # Errors
    /// The errors of [`mean_features`](RidgeStatistics::mean_features).
    #[inline(never)]
    pub fn mean_targets(&self) -> Result<Array1<f64>> {
        let (sums, weight) = (self.sums(), Normal::weight_of(self.sums())?);
        Ok(sums.moments().into_iter().take(sums.targets()).map(|sum| sum / weight).collect())
    }

    /// The variance of each target, Σ w (y − ȳ)² / Σ w, t numbers; 0 for targets that count as constant.
    ///
    /// ```
    /// use random_features::ndarray::{Array2, arr1};
    /// use random_features::Trigonometric;
    /// use random_features::apply::RidgeStatistics;
    /// use random_features::frequency::Orthogonal;
    /// let map = Trigonometric.gaussian(Orthogonal.draw(1, 8, 1)?, 1.0)?;
    /// let mut statistics = RidgeStatistics::new(map, 1)?;
    /// statistics.update(&Array2::zeros((4, 1)), &arr1(&[1.0, 1.0, 3.0, 3.0]))?;
    /// assert_eq!(statistics.mean_targets()?, arr1(&[2.0]));
    /// assert_eq!(statistics.target_variances()?, arr1(&[1.0]));
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`mean_features`](RidgeStatistics::mean_features), and [`Entry`](Error::Entry) with a target that rounding errors of
    /// removed rows hide.
    #[inline(never)]
    pub fn target_variances(&self) -> Result<Array1<f64>> {
        let (sums, weight) = (self.sums(), Normal::weight_of(self.sums())?);
        let variance = |(target, mean): (usize, &f64)| {
            let [sum, square] = sums.moments_about(target, *mean);
            let square = (square - sum * sum / weight).max(0.0);
            let constant = sums.is_constant_target(target, square, true)?;
            Ok(if constant { 0.0 } else { square / weight })
        };
        self.mean_targets()?.iter().enumerate().map(variance).collect()
    }

    /// The model with these weights, D × t.
    pub(super) fn model(&self, normal: &Normal, weights: Array2<f64>) -> Ridge<T> {
        let intercepts = normal.intercepts(&weights);
        Ridge::new(self.map().clone(), self.standardisation().cloned(), weights, intercepts)
    }

    /// Whether there are too few rows to determine a weight for each feature, whatever the features are.
    pub(super) fn has_few_rows(&self) -> bool {
        let rank = self.sums().present().saturating_sub(u64::from(self.intercept));
        rank < self.map().feature_dim() as u64
    }

    pub(super) fn normal(&self) -> Result<Normal> {
        let sums = self.sums();
        let mut normal = if self.intercept { Normal::centred(sums)? } else { Normal::uncentred(sums)? };
        for target in 0..sums.targets() {
            let spread = sums.spread(target, self.intercept);
            if sums.is_constant_target(target, normal.squares[target], self.intercept)? {
                normal.make_constant(target);
                continue;
            }
            if normal.weight * spread * spread < LEAST_SQUARE {
                normal.out_of_range = Some(squares_out_of_range(spread, normal.weight));
            }
            // Σ w (y − r) φ over a run is at most this.
            let cross = spread * normal.weight.sqrt() * sums.largest_product().sqrt();
            // Where it is so small, the spread or the largest product is: an error is there.
            if cross < LEAST_SUMMAND
                && sums.largest_product() > 0.0
                && let Some(error) = &normal.out_of_range
            {
                return Err(error.clone());
            }
        }
        let finite = normal.c.iter().chain(&normal.squares).all(|v| v.is_finite());
        if finite { Ok(normal) } else { Err(too_large()) }
    }
}

impl Normal {
    /// The normal equations of features and targets that are not centred.
    pub fn uncentred<T: Real>(sums: &GramSums<T>) -> Result<Self> {
        Self::about(sums, Array1::zeros(sums.targets()))
    }

    /// The normal equations of centred features and targets.
    pub fn centred<T: Real>(sums: &GramSums<T>) -> Result<Self> {
        let weight = Self::weight_of(sums)?;
        let means = sums.moments().into_iter().take(sums.targets()).map(|sum| sum / weight);
        let mut normal = Self::about(sums, means.collect())?;
        normal.mean_features = Array1::from_shape_fn(sums.feature_dim(), |f| sums.feature(f) / weight);
        let offset = |(j, r): (usize, &f64)| sums.moments_about(j, *r)[0] / weight;
        normal.offsets = normal.references.iter().enumerate().map(offset).collect();
        normal.rank = normal.rank.min(rows(sums.present().saturating_sub(1)));
        normal.centre();
        Ok(normal)
    }

    /// Σ w; an error if it is no larger than rounding errors of removed weights may be.
    fn weight_of<T: Real>(sums: &GramSums<T>) -> Result<f64> {
        if sums.present() == 0 {
            return Err(Error::NoData { what: "a result from sums over rows" });
        }
        let value = sums.weight();
        let (name, domain) = ("the sum of the weights", "above the rounding errors of removed rows");
        if value > sums.weight_lost() { Ok(value) } else { Err(Error::Parameter { name, value, domain }) }
    }

    /// The normal equations of targets less their references.
    fn about<T: Real>(sums: &GramSums<T>, references: Array1<f64>) -> Result<Self> {
        progress::check()?;
        let (width, targets, weight) = (sums.feature_dim(), sums.targets(), Self::weight_of(sums)?);
        check_memory(
            "rows of the normal equations",
            width,
            width.saturating_add(targets).saturating_mul(size_of::<f64>()),
        )?;
        let a = sums.lower_products();
        let rounding = GramSums::<T>::rounding();
        let largest = a.diag().iter().fold(0.0, |a: f64, v| a.max(*v));
        let unit = if largest > 0.0 { largest } else { 1.0 };
        let row_square = |(i, row): (usize, ArrayView1<'_, f64>)| {
            let below: f64 = row.iter().take(i).map(|a| (a / unit).powi(2)).sum();
            2.0 * below + (row[i] / unit).powi(2)
        };
        let [entry, matrix] = sums.removed_magnitudes();
        let out_of_range = sums.too_small();
        let is_lost = out_of_range.is_some();
        let lost = if is_lost { LEAST_SUMMAND } else { 0.0 };
        let square: f64 = a.rows().into_iter().enumerate().map(row_square).sum();
        Ok(Normal {
            c: Array2::from_shape_fn((width, targets), |(f, j)| sums.cross_about(f, j, references[j])),
            squares: references.iter().enumerate().map(|(j, r)| sums.moments_about(j, *r)[1]).collect(),
            mean_features: Array1::zeros(width),
            offsets: Array1::zeros(targets),
            references,
            weight,
            counts: sums.counts(),
            rank: width.min(rows(sums.present())),
            noise: lost.max(rounding * largest.max(entry)),
            total_noise: lost.max(rounding * (unit * square.sqrt()).max(matrix)),
            rounding,
            is_lost,
            out_of_range,
            a,
        })
    }

    /// Subtracts the means of features and the offsets of targets.
    fn centre(&mut self) {
        let Normal { a, c, squares, mean_features, offsets, weight, .. } = self;
        for (f, mut row) in a.rows_mut().into_iter().enumerate() {
            let mean = *weight * mean_features[f];
            row.iter_mut().zip(&*mean_features).for_each(|(a, other)| *a -= mean * other);
        }
        for (f, mut row) in c.rows_mut().into_iter().enumerate() {
            let mean = *weight * mean_features[f];
            row.iter_mut().zip(&*offsets).for_each(|(c, offset)| *c -= mean * offset);
        }
        for (square, offset) in squares.iter_mut().zip(&*offsets) {
            *square = (*square - *weight * offset * offset).max(0.0);
        }
    }

    /// Makes a target constant if its variation is rounding.
    fn make_constant(&mut self, target: usize) {
        self.squares[target] = 0.0;
        self.c.column_mut(target).fill(0.0);
    }

    /// b = ȳ − φ̄·β for each target.
    pub fn intercepts(&self, weights: &Array2<f64>) -> Array1<f64> {
        &self.references + &(&self.offsets - &self.mean_features.dot(weights))
    }

    /// Rejects sums of products that have lost digits.
    pub fn check_products(&self) -> Result<()> {
        self.out_of_range.clone().filter(|_| self.is_lost).map_or(Ok(()), Err)
    }

    /// A λ that is large beside rounding errors.
    pub fn least(&self) -> f64 {
        if self.noise > 0.0 { 2.0 * self.total_noise } else { 1.0 }
    }
}

/// The error for criteria of a target that varies by `spread`, whose weighted squares are out of range.
pub(super) fn squares_out_of_range(spread: f64, weight: f64) -> Error {
    if (LEAST_SQUARE..LEAST_SQUARE.recip()).contains(&(spread * spread)) {
        let (name, domain) =
            ("the sum of the weights", "in the range of f64 also times the square of a target's range");
        return Error::Parameter { name, value: weight, domain };
    }
    let (name, domain) = ("the range of a target", "0, or between about 1e-135 and 1e150: scale the targets");
    Error::Parameter { name, value: spread, domain }
}

/// A number of rows, saturating at `usize::MAX`.
fn rows(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Σ w φ φᵀ over all rows, D × D and symmetric.
pub(in crate::apply) fn symmetric_products<T: Real>(sums: &GramSums<T>) -> Result<Array2<f64>> {
    let normal = Normal::uncentred(sums)?;
    normal.check_products()?;
    let mut products = normal.a;
    for f in 0..products.nrows() {
        for g in 0..f {
            products[[g, f]] = products[[f, g]];
        }
    }
    Ok(products)
}

/// Rejects values that are negative or not finite.
pub(super) fn check_lambda(lambda: f64) -> Result<()> {
    checked_not_negative("λ", lambda).map(|_| ())
}

once!(
    RidgeStatistics::<T>::products,
    RidgeStatistics::<T>::mean_features,
    RidgeStatistics::<T>::mean_targets,
    RidgeStatistics::<T>::target_variances,
);
