//! Models and eigendecompositions of the sums over rows.

use super::normal::check_lambda;
use super::{Ridge, RidgeSpectrum, RidgeStatistics};
use crate::error::{Error, Result, singular};
use crate::linalg::Backend;
use crate::once::once;
use crate::{Real, progress};

impl<T: Real> RidgeStatistics<T> {
    /// The model for one λ ≥ 0: the minimum over β and b of Σ w (y − β·φ(x) − b)² + λ‖β‖², where the intercept b is not
    /// penalised. Cost D³/3.
    ///
    /// λ is the penalty of kernel ridge regression with (K̂ + λI)⁻¹ on the Gram matrix K̂ of the features: both have equal
    /// predictions. For n points of a kernel with K(x, x) = 1, λ = 10⁻³ n is a strong penalty and λ = 10⁻⁶ n a weak one.
    ///
    /// With λ = 0 and fewer rows than features (or as many, with an intercept), many weights fit equally well. The model then has
    /// the weights of least norm ‖β‖, which are the limit of small λ. Directions whose eigenvalues are rounding errors are left
    /// out. This costs as much as the [spectrum](RidgeStatistics::spectrum).
    ///
    /// # Errors
    /// [`NoData`](Error::NoData) without rows of positive weight. [`Parameter`](Error::Parameter) if λ is negative or not finite,
    /// if Σ w is no larger than rounding errors of removed weights may be, or if products of weights, features and a target are
    /// below 1e-271, which sums do not hold. [`Entry`](Error::Entry) with a target that rounding errors of removed rows hide.
    /// [`Singular`](Error::Singular), with a λ that is large enough, if the normal equations have no
    /// unique solution up to rounding, for example because features of many rows are linearly dependent.
    pub fn solve(&self, lambda: f64) -> Result<Ridge<T>> {
        self.solve_with(Backend::default(), lambda)
    }

    /// The model for one λ ≥ 0, with a factorisation by the given backend.
    ///
    /// # Errors
    /// The errors of [`solve`](RidgeStatistics::solve).
    #[inline(never)]
    pub fn solve_with(&self, backend: Backend, lambda: f64) -> Result<Ridge<T>> {
        check_lambda(lambda)?;
        let mut normal = self.normal()?;
        let largest = normal.a.diag().iter().fold(0.0, |a: f64, v| a.max(*v));
        normal.a.diag_mut().mapv_inplace(|v| v + lambda);
        let singular = || singular(lambda, normal.least());
        if self.has_few_rows() && lambda <= normal.noise {
            return if lambda > 0.0 {
                Err(singular())
            } else {
                RidgeSpectrum::new(self, normal, backend)?.model(lambda)
            };
        }
        progress::check()?;
        let factor = match backend.cholesky(&normal.a) {
            Err(Error::Factorisation { .. }) => return Err(singular()),
            factor => factor?,
        };
        // The square of a pivot is the part of a diagonal element that earlier features do not explain.
        let pivot = factor.lower().diag().iter().fold(f64::INFINITY, |a: f64, v| a.min(v * v));
        if pivot <= normal.noise || (largest == 0.0 && lambda == 0.0) {
            return Err(singular());
        }
        progress::check()?;
        let weights = factor.solve(&normal.c)?;
        Ok(self.model(&normal, weights))
    }

    /// The eigendecomposition of the sums, which gives the models for all λ. It costs O(D³), about 25 times as much as
    /// one model.
    ///
    /// # Errors
    /// [`NoData`](Error::NoData) without rows of positive weight. [`Parameter`](Error::Parameter) if Σ w is no larger than
    /// rounding errors of removed weights may be, or if products of weights, features and a target are below 1e-271.
    /// [`Entry`](Error::Entry) with a target that rounding errors of removed rows hide. [`Factorisation`](Error::Factorisation) if the
    /// iteration does not converge.
    pub fn spectrum(&self) -> Result<RidgeSpectrum<T>> {
        self.spectrum_with(Backend::default())
    }

    /// The models for all λ, from an eigendecomposition by the given backend.
    ///
    /// # Errors
    /// The errors of [`spectrum`](RidgeStatistics::spectrum).
    #[inline(never)]
    pub fn spectrum_with(&self, backend: Backend) -> Result<RidgeSpectrum<T>> {
        RidgeSpectrum::new(self, self.normal()?, backend)
    }
}

once!(RidgeStatistics::<T>::solve_with, RidgeStatistics::<T>::spectrum_with);
