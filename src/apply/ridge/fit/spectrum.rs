//! [`RidgeSpectrum`]: the regressions for all λ.

use ndarray::{Array1, Array2, ArrayViewMut1};

use super::dual::Dual;
use super::normal::{Normal, check_lambda};
use super::shrinkage::Shrinkage;
use super::training::Training;
use super::{Criterion, Ridge, RidgeStatistics, Standardisation};
use crate::error::{Error, Result, check_size, singular};
use crate::linalg::Backend;
use crate::map::Map;
use crate::once::once;
use crate::{Real, progress};

/// Solves ridge regressions for all λ by one eigendecomposition: [`RidgeStatistics::spectrum`]. Each model then costs
/// O(D² t), and the [errors](RidgeSpectrum::errors) for choosing λ need no refitting.
///
/// ```
/// use random_features::ndarray::Array2;
/// use random_features::Trigonometric;
/// use random_features::apply::{Criterion, RidgeStatistics};
/// use random_features::frequency::Orthogonal;
/// let map = Trigonometric.gaussian(Orthogonal.draw(1, 50, 1)?, 1.0)?;
/// let mut statistics = RidgeStatistics::<f64>::new(map, 1)?;
/// let x = Array2::from_shape_fn((200, 1), |(i, _)| i as f64 / 50.0 - 2.0);
/// let y = x.mapv(|x| x.sin() + 0.1 * (1e4 * x).sin());
/// statistics.update(&x, &y)?;
/// let spectrum = statistics.spectrum()?;
/// let lambdas = [1e-6, 1e-3, 1.0, 1e3];
/// let by_approximation =
///     spectrum.choose(&Criterion::GeneralisedCrossValidation, &lambdas)?;
/// let exactly =
///     spectrum.choose(&Criterion::leave_one_out(&x, &y), &lambdas)?;
/// assert_eq!((by_approximation.0, exactly.0), (1e-3, 1e-3));
/// // The noise has variance ½ · 0.01.
/// assert!((exactly.1 / 0.005 - 1.0).abs() < 0.2);
/// let model = spectrum.model(exactly.0)?;
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// With A = Σ w (φ − φ̄)(φ − φ̄)ᵀ = V diag(s) Vᵀ and c = Σ w (φ − φ̄)(y − ȳ)ᵀ, the weights are β = V diag(1/(s + λ)) Vᵀc.
///
/// # Fewer rows than features
/// A [search](super::RidgeSearch) on n < D rows takes their singular value decomposition. Let z̃ = √w (φ − φ̄) and ỹ =
/// √w (y − ȳ), and leave out the direction of the mean. Then Z̃ = U diag(s^½) Vᵀ and β = V diag(s^½/(s + λ)) Uᵀỹ. The
/// part of a row's features that is orthogonal to the columns of V belongs to the eigenvalue 0. With G = U diag(1/(s +
/// λ)) Uᵀ, the residuals of a group g that is left out are G_gg⁻¹(Gỹ)_g/√w. No term cancels, however small λ is. The
/// cost is O(n² D) instead of O(n D² + D³).
///
/// # References
/// G. H. Golub, M. Heath, G. Wahba, *Generalized Cross-Validation as a Method for Choosing a Good Ridge Parameter*,
/// Technometrics 21, 1979; R. D. Cook, *Detection of Influential Observation in Linear Regression*, Technometrics 19, 1977.
#[derive(Clone, Debug)]
pub struct RidgeSpectrum<T: Real> {
    pub(super) map: Map<T>,
    pub(super) inputs: Option<Standardisation>,
    pub(super) training: Training,
    /// Whether there are fewer rows than are needed to determine a weight for each feature.
    pub(super) few_rows: bool,
    /// The normal equations without A.
    pub(super) normal: Normal,
    pub(super) shrinkage: Shrinkage,
    /// The eigenvectors V, D × r, with orthonormal columns. r = D unless the regressions are from a decomposition of rows.
    pub(super) vectors: Array2<f64>,
    /// Vᵀc, r × t.
    pub(super) rotated: Array2<f64>,
    /// The rows, if the regressions are from their decomposition.
    pub(super) dual: Option<Dual>,
}

impl<T: Real> RidgeSpectrum<T> {
    pub(super) fn new(statistics: &RidgeStatistics<T>, normal: Normal, backend: Backend) -> Result<Self> {
        progress::check()?;
        let eigen = backend.eigen(&normal.a)?;
        progress::check()?;
        let removed = statistics.sums().removed_magnitudes()[0] > 0.0;
        if let Some(value) = eigen.values.first().copied().filter(|s| removed && *s < -normal.least()) {
            let name = "an eigenvalue of Σ w φ φᵀ";
            let domain =
                "not below rounding errors, which shows that rows were removed that were never added";
            return Err(Error::Parameter { name, value, domain });
        }
        let rotated = eigen.vectors.t().dot(&normal.c);
        let mut shrinkage = Shrinkage::of_features(
            eigen.values.mapv(|s| s.max(0.0)),
            &rotated,
            &normal.squares,
            (normal.weight, normal.counts, statistics.intercept, normal.rank),
            [normal.noise, normal.total_noise],
        );
        shrinkage.out_of_range = normal.out_of_range.clone();
        Ok(RidgeSpectrum {
            map: statistics.map().clone(),
            inputs: statistics.standardisation().cloned(),
            training: statistics.training(),
            few_rows: statistics.has_few_rows(),
            normal: Normal { a: Array2::zeros((0, 0)), ..normal },
            shrinkage,
            vectors: eigen.vectors,
            rotated,
            dual: None,
        })
    }

    /// The map.
    pub fn map(&self) -> &Map<T> {
        &self.map
    }

    /// The eigenvalues s of Σ w φ φᵀ, centred if there is an intercept, in ascending order. Eigenvalues below
    /// [`resolution`](RidgeSpectrum::resolution) are rounding errors.
    pub fn eigenvalues(&self) -> &Array1<f64> {
        &self.shrinkage.values
    }

    /// The eigenvectors V, D × r: column k is the eigenvector of eigenvalue k. Columns are orthonormal. r is D unless a
    /// [search](super::RidgeSearch) had fewer rows than features. In that case r is the number of directions in which rows can
    /// differ.
    pub fn eigenvectors(&self) -> &Array2<f64> {
        &self.vectors
    }

    /// The rounding error of an entry of Σ w φ φᵀ. Smaller λ have no effect, and criteria need λ about D times as large.
    pub fn resolution(&self) -> f64 {
        self.shrinkage.resolution
    }

    /// The model for one λ ≥ 0. It costs O(D² t). With λ = 0 and fewer rows than features, it has the weights of [least
    /// norm](RidgeStatistics::solve).
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if λ is negative or not finite, [`Singular`](Error::Singular) if rounding leaves no unique
    /// solution.
    #[inline(never)]
    pub fn model(&self, lambda: f64) -> Result<Ridge<T>> {
        self.model_per_target(&vec![lambda; self.rotated.ncols()])
    }

    /// The model with a λ ≥ 0 for each target. It costs O(D² t).
    ///
    /// ```
    /// use random_features::apply::{Criterion, RidgeStatistics};
    /// use random_features::frequency::Orthogonal;
    /// use random_features::ndarray::Array2;
    /// use random_features::Trigonometric;
    /// let map = Trigonometric.gaussian(Orthogonal.draw(1, 50, 1)?, 1.0)?;
    /// let mut statistics = RidgeStatistics::<f64>::new(map, 2)?;
    /// let x = Array2::from_shape_fn((200, 1), |(i, _)| i as f64 / 50.0 - 2.0);
    /// // A wave, and noise that is a thousand times as large.
    /// let y = Array2::from_shape_fn((200, 2), |(i, j)| match j {
    ///     0 => x[[i, 0]].sin(),
    ///     _ => 1e3 * ((i * i) as f64).sin(),
    /// });
    /// statistics.update(&x, &y)?;
    /// let spectrum = statistics.spectrum()?;
    /// let criterion = Criterion::GeneralisedCrossValidation;
    /// let own = spectrum.choose_per_target(&criterion, &spectrum.lambdas())?;
    /// assert!(own[0].0 < 1e-6 * own[1].0);
    /// let model = spectrum.model_per_target(&[own[0].0, own[1].0])?;
    /// let error = model.predict(&x)? - &y;
    /// assert!(error.column(0).iter().all(|error| error.abs() < 1e-3));
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`model`](RidgeSpectrum::model); [`Shape`](Error::Shape) if there is not one λ for each target.
    #[inline(never)]
    pub fn model_per_target(&self, lambdas: &[f64]) -> Result<Ridge<T>> {
        check_size("the number of λ, of which each target needs one,", self.rotated.ncols(), lambdas.len())?;
        progress::check()?;
        let mut divided = self.rotated.clone();
        for (mut column, lambda) in divided.columns_mut().into_iter().zip(lambdas) {
            self.divide(column.view_mut(), *lambda)?;
        }
        let weights = self.vectors.dot(&divided);
        let intercepts = self.normal.intercepts(&weights);
        Ok(Ridge::new(self.map.clone(), self.inputs.clone(), weights, intercepts))
    }

    /// Divides a vector's components in the eigenvectors by s + λ.
    fn divide(&self, mut column: ArrayViewMut1<'_, f64>, lambda: f64) -> Result<()> {
        let values = &self.shrinkage.values;
        if lambda == 0.0 && self.few_rows && !self.normal.is_lost {
            let least = self.normal.least();
            column *= &values.mapv(|s| if s > least { s.recip() } else { 0.0 });
            return Ok(());
        }
        self.check(lambda)?;
        column /= &(values + lambda);
        Ok(())
    }

    /// The degrees of freedom, Σ s/(s + λ) and 1 more with an intercept: the trace of the matrix that maps targets to
    /// predictions.
    ///
    /// # Errors
    /// The errors of [`model`](RidgeSpectrum::model).
    #[inline(never)]
    pub fn degrees_of_freedom(&self, lambda: f64) -> Result<f64> {
        self.check(lambda)?;
        Ok(self.shrinkage.degrees_of_freedom(lambda))
    }

    /// The log evidence in nats, summed over the targets: the logarithm of the probability density of the targets under a
    /// Gaussian process with noise. The covariance of the process is σ_f² times the kernel that the map estimates, and the
    /// variance of the noise is σ² = λσ_f². For each target, σ² is the value that maximises the density. With an intercept, the
    /// means of targets do not count. The cost is O(D t).
    ///
    /// # Definition
    /// Let ν be the number of rows, less 1 if there is an intercept, and R = Σ w y² − cᵀ(A + λI)⁻¹c. The variance of the noise is
    /// σ² = R/ν, and the log evidence is −½ (ν ln(2πR/ν) + ν + Σ ln(1 + s/λ)). The last sum is over the ν largest eigenvalues s,
    /// or over all if there are fewer. A row of weight 2 counts as two rows. [Precisions](crate::Targets::with_precisions) p are
    /// factors of w and do not count as rows. They add ½ Σ ln p, and with an intercept −½ ln of their mean.
    ///
    /// A target that is constant up to rounding adds 0, here and to all criteria, because its evidence would be infinite for
    /// every λ. Its β and the variance of its noise are 0. With an intercept, a target is constant if its range, max − min, is at
    /// most 4 ε times its largest magnitude, as for a class without rows. Without an intercept, it is constant if it is 0.
    /// Removing rows does not narrow ranges: after a removal, a target is also constant if its squares are no larger than the
    /// rounding errors of removed rows.
    ///
    /// # Errors
    /// The errors of [`model`](RidgeSpectrum::model). [`Parameter`](Error::Parameter) if λ is 0, if Σ w is at most 1 (without an
    /// intercept, 0), or if sums lose digits: if the range of a target is below about 1e-135, or if all Σ w φ² are below 1e-271.
    /// [`Singular`](Error::Singular), with the least λ, if λ is below the rounding error of Σ w φ φᵀ in the spectral norm, which
    /// hides the noise.
    ///
    /// # References
    /// C. E. Rasmussen, C. K. I. Williams, *Gaussian Processes for Machine Learning*, 2006, (2.30), and (2.43) for the flat prior
    /// of an intercept.
    #[inline(never)]
    pub fn log_evidence(&self, lambda: f64) -> Result<f64> {
        self.check(lambda)?;
        self.shrinkage.log_evidence(lambda, None)
    }

    /// The [log evidence](RidgeSpectrum::log_evidence) for a known variance σ² of the noise, one for each target. With
    /// [precisions](crate::Targets::with_precisions) 1/variance of each row, σ² = 1 states that these variances are exact, and λ
    /// is 1/σ_f².
    ///
    /// # Errors
    /// The errors of [`log_evidence`](RidgeSpectrum::log_evidence); [`Shape`](Error::Shape) if there is not one variance for each
    /// target, [`Entry`](Error::Entry) if one is not positive and finite.
    #[inline(never)]
    pub fn log_evidence_with_noise(&self, lambda: f64, variances: &[f64]) -> Result<f64> {
        check_size("the number of variances of noise", self.rotated.ncols(), variances.len())?;
        self.check(lambda)?;
        self.shrinkage.log_evidence(lambda, Some(variances))
    }

    /// Predicts each training row by the regression for one λ on all other rows, or on the rows of all other groups: n × t
    /// numbers. The criterion is [`Criterion::leave_one_out`](super::Criterion::leave_one_out) or
    /// [`Criterion::leave_groups_out`](super::Criterion::leave_groups_out). Rows of weight 0 are predicted too. Numbers beyond the
    /// range of the scalar type are its largest one, as in [`Ridge::predict`].
    ///
    /// # Errors
    /// The errors of [`errors`](RidgeSpectrum::errors); [`Singular`](Error::Singular) if rounding hides the residuals of a row or a
    /// group, [`Unsupported`](Error::Unsupported) for another criterion.
    #[inline(never)]
    pub fn left_out(&self, criterion: &Criterion<'_, T>, lambda: f64) -> Result<Array2<T>> {
        Ok(self.scores_left_out(criterion, lambda)?.mapv(T::saturated))
    }

    /// The default grid of λ in falling order, two for each decade. It begins at the largest eigenvalue, where all weights are
    /// small. It ends at the rounding error of Σ w φ φᵀ in the spectral norm, below which [`posterior`](RidgeSpectrum::posterior) is
    /// an error, or after fifteen decades. If all eigenvalues are 0, the grid is the number 1.
    ///
    /// ```
    /// # use random_features::ndarray::Array2;
    /// # use random_features::apply::{Criterion, RidgeStatistics};
    /// # use random_features::frequency::Orthogonal;
    /// # let map = random_features::Trigonometric
    /// #     .gaussian(Orthogonal.draw(1, 50, 1)?, 1.0)?;
    /// # let mut statistics = RidgeStatistics::<f64>::new(map, 1)?;
    /// # let x = Array2::from_shape_fn((200, 1), |(i, _)| i as f64 / 50.0 - 2.0);
    /// # statistics.update(&x, &x.mapv(f64::sin))?;
    /// let spectrum = statistics.spectrum()?;
    /// let criterion = Criterion::GeneralisedCrossValidation;
    /// let (lambda, error) = spectrum.choose(&criterion, &spectrum.lambdas())?;
    /// assert!(lambda >= spectrum.resolution() && error < 1e-6);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    #[inline(never)]
    pub fn lambdas(&self) -> Vec<f64> {
        self.shrinkage.lambdas()
    }

    pub(super) fn check(&self, lambda: f64) -> Result<()> {
        check_lambda(lambda)?;
        // Directions outside of the rows have the eigenvalue 0.
        let own = self.shrinkage.values.first().filter(|_| self.dual.is_none());
        let least = own.copied().unwrap_or(0.0);
        if least + lambda <= self.normal.noise.min(f64::MAX) {
            return Err(singular(lambda, self.normal.least()));
        }
        Ok(())
    }
}

once!(
    RidgeSpectrum::<T>::model,
    RidgeSpectrum::<T>::model_per_target,
    RidgeSpectrum::<T>::degrees_of_freedom,
    RidgeSpectrum::<T>::log_evidence,
    RidgeSpectrum::<T>::log_evidence_with_noise,
    RidgeSpectrum::<T>::left_out,
    RidgeSpectrum::<T>::lambdas,
);
