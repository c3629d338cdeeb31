//! [`RidgeSpectrum`]: the regressions for all λ.

use ndarray::{Array1, Array2};

use super::normal::{Normal, check_lambda};
use super::shrinkage::Shrinkage;
use super::training::Training;
use super::{Ridge, RidgeStatistics, Standardisation};
use crate::Real;
use crate::error::{Error, Result};
use crate::linalg::Backend;
use crate::map::Map;
use crate::once::once;

/// Ridge regressions for all λ from one eigendecomposition: [`RidgeStatistics::spectrum`]. Each model then costs
/// O(D² t), and the [errors](RidgeSpectrum::errors) for choosing λ need no refitting.
///
/// # Definition
/// With A = Σ w (φ − φ̄)(φ − φ̄)ᵀ = V diag(s) Vᵀ and c = Σ w (φ − φ̄)(y − ȳ)ᵀ, the weights are β = V diag(1/(s + λ)) Vᵀc.
///
/// # Example
/// ```
/// use ndarray::Array2;
/// use random_features::apply::{Criterion, RidgeStatistics};
/// use random_features::frequency::{Coupling, Orthogonal};
/// use random_features::Trigonometric;
/// let map = Trigonometric.gaussian(Orthogonal.draw(1, 50, 1)?, 1.0)?;
/// let mut statistics = RidgeStatistics::<f64>::new(map, 1)?;
/// let x = Array2::from_shape_fn((200, 1), |(i, _)| i as f64 / 50.0 - 2.0);
/// let y = x.mapv(|x| x.sin() + 0.1 * (1e4 * x).sin());
/// statistics.update(&x, &y)?;
/// let spectrum = statistics.spectrum()?;
/// let lambdas = [1e-6, 1e-3, 1.0, 1e3];
/// let by_approximation = spectrum.choose(&Criterion::GeneralisedCrossValidation, &lambdas)?;
/// let exactly = spectrum.choose(&Criterion::leave_one_out(&x, &y), &lambdas)?;
/// assert_eq!((by_approximation.lambda, exactly.lambda), (1e-3, 1e-3));
/// // The noise has variance ½ · 0.01.
/// assert!((exactly.error / 0.005 - 1.0).abs() < 0.2);
/// let model = spectrum.model(exactly.lambda)?;
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # References
/// G. H. Golub, M. Heath, G. Wahba, *Generalized Cross-Validation as a Method for Choosing a Good Ridge Parameter*,
/// Technometrics 21, 1979; R. D. Cook, *Detection of Influential Observation in Linear Regression*, Technometrics 19, 1977.
#[derive(Clone, Debug)]
pub struct RidgeSpectrum<T: Real> {
    pub(super) map: Map<T>,
    pub(super) inputs: Option<Standardisation>,
    pub(super) training: Training,
    /// Without A.
    pub(super) normal: Normal,
    pub(super) shrinkage: Shrinkage,
    /// V, D × D.
    pub(super) vectors: Array2<f64>,
    /// Vᵀc, D × t.
    pub(super) rotated: Array2<f64>,
}

impl<T: Real> RidgeSpectrum<T> {
    pub(super) fn new(statistics: &RidgeStatistics<T>, normal: Normal, backend: Backend) -> Result<Self> {
        let eigen = backend.eigen(&normal.a)?;
        let rotated = eigen.vectors.t().dot(&normal.c);
        let shrinkage = Shrinkage::of_features(
            eigen.values.mapv(|s| s.max(0.0)),
            rotated.mapv(|c| c * c),
            &normal.squares,
            (normal.weight, statistics.intercept, normal.noise),
        );
        Ok(RidgeSpectrum {
            map: statistics.map().clone(),
            inputs: statistics.standardisation().cloned(),
            training: statistics.training(),
            normal: Normal { a: Array2::zeros((0, 0)), ..normal },
            shrinkage,
            vectors: eigen.vectors,
            rotated,
        })
    }

    /// The map.
    pub fn map(&self) -> &Map<T> {
        &self.map
    }

    /// s, the eigenvalues of the (centred) Σ w φ φᵀ, ascending. Those below
    /// [`resolution`](RidgeSpectrum::resolution) are rounding errors.
    pub fn eigenvalues(&self) -> &Array1<f64> {
        &self.shrinkage.values
    }

    /// V, D × D and orthogonal: column k is the eigenvector of eigenvalue k.
    pub fn eigenvectors(&self) -> &Array2<f64> {
        &self.vectors
    }

    /// The rounding error of eigenvalues; a smaller λ has no effect.
    pub fn resolution(&self) -> f64 {
        self.shrinkage.resolution
    }

    /// The model for one λ ≥ 0. Cost O(D² t).
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if λ is negative or not finite, [`Singular`](Error::Singular) if no unique solution
    /// is left by rounding.
    #[inline(never)]
    pub fn model(&self, lambda: f64) -> Result<Ridge<T>> {
        self.check(lambda)?;
        let weights = self.vectors.dot(&self.shrinkage.divided(&self.rotated, lambda));
        let intercepts = &self.normal.mean_targets - &self.normal.mean_features.dot(&weights);
        Ok(Ridge::new(self.map.clone(), self.inputs.clone(), weights, intercepts))
    }

    /// Σ s/(s + λ), plus 1 for an intercept: the trace of the matrix that maps targets to predictions.
    ///
    /// # Errors
    /// As [`model`](RidgeSpectrum::model).
    #[inline(never)]
    pub fn degrees_of_freedom(&self, lambda: f64) -> Result<f64> {
        self.check(lambda)?;
        Ok(self.shrinkage.degrees_of_freedom(lambda))
    }

    /// The log evidence, in nats: ln of the probability density of the targets, summed over them, for the Gaussian process
    /// with the kernel that the map estimates times a variance σ², and noise of variance λσ². σ² is the one for which the
    /// density is largest, for each target; the means of targets are left out if there is an intercept. Cost O(D t).
    ///
    /// # Definition
    /// With ν = Σ w, less 1 if there is an intercept, and R = Σ w y² − cᵀ(A + λI)⁻¹c: the noise is λσ² = R/ν, and the log evidence
    /// −½ (ν ln(2πR/ν) + ν + Σ ln(1 + s/λ)). It is infinite where R is 0. Weights are how often a row counts.
    ///
    /// # Errors
    /// As [`model`](RidgeSpectrum::model); [`Parameter`](Error::Parameter) if λ is 0 or there is no row beside the intercept.
    ///
    /// # References
    /// C. E. Rasmussen, C. K. I. Williams, *Gaussian Processes for Machine Learning*, 2006, (2.30) and (2.43) for flat priors of
    /// the intercept.
    #[inline(never)]
    pub fn log_evidence(&self, lambda: f64) -> Result<f64> {
        self.check(lambda)?;
        self.shrinkage.log_evidence(lambda)
    }

    /// λ to choose from, falling, two for each decade: from the largest eigenvalue, where all weights are small, down to the
    /// [resolution](RidgeSpectrum::resolution), below which λ has no effect, or by fifteen decades; 1 if all eigenvalues are 0.
    ///
    /// ```
    /// # use ndarray::Array2;
    /// # use random_features::apply::{Criterion, RidgeStatistics};
    /// # use random_features::frequency::{Coupling, Orthogonal};
    /// # let map = random_features::Trigonometric.gaussian(Orthogonal.draw(1, 50, 1)?, 1.0)?;
    /// # let mut statistics = RidgeStatistics::<f64>::new(map, 1)?;
    /// # let x = Array2::from_shape_fn((200, 1), |(i, _)| i as f64 / 50.0 - 2.0);
    /// # statistics.update(&x, &x.mapv(f64::sin))?;
    /// let spectrum = statistics.spectrum()?;
    /// let choice = spectrum.choose(&Criterion::GeneralisedCrossValidation, &spectrum.lambdas())?;
    /// assert!(choice.lambda >= spectrum.resolution() && choice.error < 1e-6);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    #[inline(never)]
    pub fn lambdas(&self) -> Vec<f64> {
        self.shrinkage.lambdas()
    }

    pub(super) fn check(&self, lambda: f64) -> Result<()> {
        check_lambda(lambda)?;
        let least = self.shrinkage.values.first().copied().unwrap_or(0.0);
        if least + lambda <= self.normal.noise.min(f64::MAX) {
            return Err(Error::Singular { lambda, least: self.normal.least() });
        }
        Ok(())
    }
}

once!(
    RidgeSpectrum::<T>::model,
    RidgeSpectrum::<T>::degrees_of_freedom,
    RidgeSpectrum::<T>::log_evidence,
    RidgeSpectrum::<T>::lambdas,
);
