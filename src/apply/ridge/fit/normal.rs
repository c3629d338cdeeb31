//! [`Normal`]: the normal equations of a regression.

use ndarray::{Array1, Array2, ArrayView1};

use super::{Ridge, RidgeSpectrum, RidgeStatistics, too_large};
use crate::Real;
use crate::error::{Error, Result, checked_not_negative};
use crate::linalg::Backend;
use crate::memory::check_memory;
use crate::once::once;
use crate::reduce::GramSums;

/// (A + λI) β = c, with A and c centred if there is an intercept.
#[derive(Clone, Debug)]
pub(in crate::apply) struct Normal {
    /// A, D × D; only the lower triangle is used.
    pub a: Array2<f64>,
    /// c, D × t.
    pub c: Array2<f64>,
    /// Σ w y² for each target, centred as well.
    pub squares: Vec<f64>,
    /// The means that were subtracted; 0 without an intercept.
    pub mean_features: Array1<f64>,
    pub mean_targets: Array1<f64>,
    /// Σ w.
    pub weight: f64,
    /// The rounding error of an entry of A. Smaller pivots and eigenvalues are indistinguishable from 0.
    pub noise: f64,
    /// The rounding error of A in the spectral norm, which bounds the change of an eigenvalue.
    pub total_noise: f64,
}

impl<T: Real> RidgeStatistics<T> {
    /// The model for one λ ≥ 0: the minimum over β and b of Σ w (y − β·φ(x) − b)² + λ‖β‖², where the intercept b is not
    /// penalised. Cost D³/3.
    ///
    /// λ is that of kernel ridge regression: predictions are those of (K̂ + λI)⁻¹ on the Gram matrix of the features. For
    /// n points of a kernel with K(x, x) = 1, λ = 10⁻³ n is strong and λ = 10⁻⁶ n weak.
    ///
    /// # Errors
    /// [`NoData`](Error::NoData) without rows of positive weight, [`Parameter`](Error::Parameter) if λ is negative or not
    /// finite, [`Singular`](Error::Singular), which names a sufficient λ, if the normal equations have no unique
    /// solution up to rounding, for example because there are fewer rows than features or features are linearly dependent.
    pub fn solve(&self, lambda: f64) -> Result<Ridge<T>> {
        self.solve_with(Backend::default(), lambda)
    }

    /// As [`solve`](RidgeStatistics::solve), with the given backend.
    ///
    /// # Errors
    /// As [`solve`](RidgeStatistics::solve).
    #[inline(never)]
    pub fn solve_with(&self, backend: Backend, lambda: f64) -> Result<Ridge<T>> {
        check_lambda(lambda)?;
        let mut normal = self.normal()?;
        let largest = normal.a.diag().iter().fold(0.0, |a: f64, v| a.max(*v));
        normal.a.diag_mut().mapv_inplace(|v| v + lambda);
        let singular = || Error::Singular { lambda, least: normal.least() };
        let rank = self.sums().present().saturating_sub(u64::from(self.intercept));
        if lambda <= normal.noise && rank < self.map().feature_dim() as u64 {
            return Err(singular());
        }
        let factor = match backend.cholesky(&normal.a) {
            Err(Error::Factorisation { .. }) => return Err(singular()),
            factor => factor?,
        };
        // The square of a pivot is the part of a diagonal element that the features before do not explain.
        let pivot = factor.lower().diag().iter().fold(f64::INFINITY, |a: f64, v| a.min(v * v));
        if pivot <= normal.noise || (largest == 0.0 && lambda == 0.0) {
            return Err(singular());
        }
        let weights = factor.solve(&normal.c)?;
        Ok(self.model(&normal, weights))
    }

    /// The eigendecomposition that gives the models for all λ. Cost O(D³), about 25 times that of one model.
    ///
    /// # Errors
    /// [`NoData`](Error::NoData) without rows of positive weight, [`Factorisation`](Error::Factorisation) if the iteration
    /// does not converge.
    pub fn spectrum(&self) -> Result<RidgeSpectrum<T>> {
        self.spectrum_with(Backend::default())
    }

    /// As [`spectrum`](RidgeStatistics::spectrum), with the given backend.
    ///
    /// # Errors
    /// As [`spectrum`](RidgeStatistics::spectrum).
    #[inline(never)]
    pub fn spectrum_with(&self, backend: Backend) -> Result<RidgeSpectrum<T>> {
        RidgeSpectrum::new(self, self.normal()?, backend)
    }

    /// Σ w φ φᵀ over all rows, D × D and symmetric, not centred. With equal weights of 1 it is ΦᵀΦ for the matrix Φ of
    /// features, n × D.
    ///
    /// # Errors
    /// [`NoData`](Error::NoData) without rows of positive weight, [`Memory`](Error::Memory) if there is no memory for it.
    #[inline(never)]
    pub fn products(&self) -> Result<Array2<f64>> {
        symmetric_products(self.sums())
    }

    /// Σ w φ / Σ w, with D entries.
    ///
    /// # Errors
    /// As [`products`](RidgeStatistics::products).
    #[inline(never)]
    pub fn mean_features(&self) -> Result<Array1<f64>> {
        Ok(Normal::uncentred(self.sums())?.mean_features)
    }

    /// The model with these weights, D × t.
    pub(super) fn model(&self, normal: &Normal, weights: Array2<f64>) -> Ridge<T> {
        let intercepts = &normal.mean_targets - &normal.mean_features.dot(&weights);
        Ridge::new(self.map().clone(), self.standardisation().cloned(), weights, intercepts)
    }

    pub(super) fn normal(&self) -> Result<Normal> {
        let mut normal = Normal::uncentred(self.sums())?;
        if self.intercept {
            normal.centre();
        } else {
            normal.mean_features.fill(0.0);
            normal.mean_targets.fill(0.0);
        }
        let finite = normal.c.iter().chain(&normal.squares).all(|v| v.is_finite());
        if finite { Ok(normal) } else { Err(too_large()) }
    }
}

impl Normal {
    /// The sums as they are, with the means that would be subtracted.
    pub fn uncentred<T: Real>(sums: &GramSums<T>) -> Result<Self> {
        let (width, targets, moments) = (sums.feature_dim(), sums.targets(), sums.moments());
        let weight = moments[targets];
        if weight <= 0.0 {
            return Err(Error::NoData { what: "what is computed from sums over rows" });
        }
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
        let square: f64 = a.rows().into_iter().enumerate().map(row_square).sum();
        Ok(Normal {
            c: Array2::from_shape_fn((width, targets), |(f, j)| sums.cross(f, j)),
            squares: moments[targets + 1..].to_vec(),
            mean_features: Array1::from_shape_fn(width, |f| sums.cross(f, targets) / weight),
            mean_targets: Array1::from_shape_fn(targets, |j| moments[j] / weight),
            weight,
            noise: rounding * largest,
            total_noise: rounding * unit * square.sqrt(),
            a,
        })
    }

    pub fn centre(&mut self) {
        let Normal { a, c, squares, mean_features, mean_targets, weight, .. } = self;
        for (f, mut row) in a.rows_mut().into_iter().enumerate() {
            let mean = *weight * mean_features[f];
            row.iter_mut().zip(&*mean_features).for_each(|(a, other)| *a -= mean * other);
        }
        for (f, mut row) in c.rows_mut().into_iter().enumerate() {
            let mean = *weight * mean_features[f];
            row.iter_mut().zip(&*mean_targets).for_each(|(c, target)| *c -= mean * target);
        }
        for (square, mean) in squares.iter_mut().zip(&*mean_targets) {
            *square = (*square - *weight * mean * mean).max(0.0);
        }
    }

    /// A λ well above rounding errors.
    pub fn least(&self) -> f64 {
        if self.noise > 0.0 { 2.0 * self.total_noise } else { 1.0 }
    }
}

/// Σ w φ φᵀ over all rows, D × D and symmetric.
pub(in crate::apply) fn symmetric_products<T: Real>(sums: &GramSums<T>) -> Result<Array2<f64>> {
    let mut products = Normal::uncentred(sums)?.a;
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
    RidgeStatistics::<T>::solve_with,
    RidgeStatistics::<T>::spectrum_with,
    RidgeStatistics::<T>::products,
    RidgeStatistics::<T>::mean_features,
);
