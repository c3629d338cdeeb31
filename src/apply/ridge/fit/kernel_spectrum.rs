//! [`KernelRidgeSpectrum`]: kernel ridge regressions for all λ.

use ndarray::{Array1, Array2, ArrayRef2, ArrayView2};

use super::kernel_ridge::{CentredTargets, UNWEIGHTED, check_gram, symmetric_part};
use super::normal::check_lambda;
use super::row_space::RowSpace;
use super::shrinkage::{Shrinkage, or_infinite};
use super::{Criterion, KernelRidge, least};
use crate::error::{Error, Result, singular};
use crate::once::once;
use crate::{Real, Targets};

/// Solves kernel ridge regressions for all λ by one eigendecomposition of the Gram matrix: [`KernelRidge::spectrum`]. With an exact
/// Gram matrix it is the reference for [`RidgeSpectrum`](super::RidgeSpectrum), which takes features instead.
///
/// ```
/// use random_features::ndarray::Array2;
/// use random_features::apply::{Criterion, KernelRidge};
/// use random_features::kernel::{Gaussian, Kernel};
/// let x = Array2::from_shape_fn((100, 1), |(i, _)| i as f64 / 25.0);
/// let y = x.mapv(|x| x.sin() + 0.1 * (1e4 * x).sin());
/// let spectrum =
///     KernelRidge::spectrum(&Gaussian::new(1.0)?.gram(&x, &x)?, &y)?;
/// let (lambda, error) =
///     spectrum.choose(&Criterion::LeaveOneOut, &spectrum.lambdas())?;
/// // The noise has variance ½ · 0.01.
/// assert!((error / 0.005 - 1.0).abs() < 0.3);
/// let model = spectrum.model(lambda)?;
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// Let C = I − 1 1ᵀ/n and C K C = V diag(s) Vᵀ. The coefficients are α = V diag(1/(s + λ)) Vᵀ C y, and b is the mean of y − K α,
/// as in [`KernelRidge::fit`]. If K is an estimate with a least eigenvalue s₀ < 0, λ must be above −2 s₀; models and criteria are
/// then exact as well.
///
/// # Cost
/// The eigendecomposition takes O(n³) time and O(n²) memory. Each λ then takes O(n t) for a criterion and O(n² t) for a model.
#[derive(Clone, Debug)]
pub struct KernelRidgeSpectrum<T> {
    gram: Array2<T>,
    mean_targets: Array1<f64>,
    shrinkage: Shrinkage,
    /// V and VᵀCy.
    space: RowSpace,
}

impl<T: Real> KernelRidge<T> {
    /// The regressions for all λ on the Gram matrix of the training points, n × n, and their targets, n × t or n.
    ///
    /// # Errors
    /// The errors of [`fit`](KernelRidge::fit) that concern neither λ nor the solution; [`Factorisation`](Error::Factorisation) if the
    /// eigendecomposition does not converge.
    pub fn spectrum<'a>(
        gram: &ArrayRef2<T>,
        targets: impl Into<Targets<'a, T>>,
    ) -> Result<KernelRidgeSpectrum<T>> {
        let targets = targets.into();
        Self::spectrum_view(gram, targets.unweighted(targets.ncols(), UNWEIGHTED)?.view())
    }

    #[inline(never)]
    fn spectrum_view(gram: &ArrayRef2<T>, targets: ArrayView2<'_, T>) -> Result<KernelRidgeSpectrum<T>> {
        check_gram(gram, &targets, 4)?;
        let n = gram.nrows();
        let mut matrix = symmetric_part(gram);
        let gram = matrix.mapv(T::narrow);
        let largest_entry = matrix.iter().fold(0.0, |a: f64, v| a.max(v.abs()));
        let means: Array1<f64> = matrix.rows().into_iter().map(|row| row.sum() / n as f64).collect();
        let mean = means.sum() / n as f64;
        for (i, mut row) in matrix.rows_mut().into_iter().enumerate() {
            row.iter_mut().zip(&means).for_each(|(v, column)| *v += mean - means[i] - column);
        }
        // Above the sum of the magnitudes of a row.
        let apart = 4.0 * n as f64 * largest_entry.max(f64::MIN_POSITIVE);
        if !apart.is_finite() || matrix.iter().any(|v| !v.is_finite()) {
            let (name, domain) =
                ("the largest entry of the Gram matrix", "small enough for sums of rows to be finite");
            return Err(Error::Parameter { name, value: largest_entry, domain });
        }
        let CentredTargets { values: centred, references, offsets, out_of_range } =
            CentredTargets::of(&targets, None, true)?;
        let mean_targets = references + offsets;
        let ones = Array1::from_elem(n, (n as f64).sqrt().recip());
        let mut space = RowSpace::new(matrix, &centred, &ones, apart)?;
        if largest_entry == 0.0 {
            space.values.fill(0.0);
        }
        let (least, most) = space.values.iter().fold((0.0, 0.0), |(a, b), s| (s.min(a), s.max(b)));
        // λ + s must be positive also for an indefinite estimate, as `fit` demands.
        let rounding = T::epsilon().widen() * n as f64 * largest_entry.max(-least).max(most);
        let indefinite = -least > rounding;
        let shrinkage = Shrinkage {
            shares: &space.rotated * &space.rotated,
            rest: vec![0.0; mean_targets.len()],
            weight: n as f64,
            count: n as f64,
            log_precisions: 0.0,
            intercept: true,
            rank: n - 1,
            least: 0.0,
            out_of_range,
            resolution: if indefinite { rounding - 2.0 * least } else { rounding },
            values: if indefinite { space.values.clone() } else { space.values.mapv(|s| s.max(0.0)) },
        };
        space.values.clone_from(&shrinkage.values);
        Ok(KernelRidgeSpectrum { gram, mean_targets, shrinkage, space })
    }
}

impl<T: Real> KernelRidgeSpectrum<T> {
    /// s, the eigenvalues of the centred Gram matrix, ascending.
    pub fn eigenvalues(&self) -> &Array1<f64> {
        &self.shrinkage.values
    }

    /// The rounding error of eigenvalues. Smaller λ have no effect.
    pub fn resolution(&self) -> f64 {
        self.shrinkage.resolution
    }

    /// Σ s/(s + λ) + 1: the trace of the matrix that maps targets to predictions.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if λ is negative or not finite, [`Singular`](Error::Singular) if it is not above the
    /// [resolution](KernelRidgeSpectrum::resolution).
    #[inline(never)]
    pub fn degrees_of_freedom(&self, lambda: f64) -> Result<f64> {
        self.check(lambda)?;
        Ok(self.shrinkage.degrees_of_freedom(lambda))
    }

    /// The log evidence in nats, by the formula of [`RidgeSpectrum::log_evidence`](super::RidgeSpectrum::log_evidence).
    ///
    /// # Errors
    /// The errors of [`degrees_of_freedom`](KernelRidgeSpectrum::degrees_of_freedom); [`Parameter`](Error::Parameter) if there is
    /// only one point, or if the range of a target is below about 1e-135 or above 1e150, so that its squares are out of range.
    #[inline(never)]
    pub fn log_evidence(&self, lambda: f64) -> Result<f64> {
        self.check(lambda)?;
        self.shrinkage.log_evidence(lambda, None)
    }

    /// The default grid of λ in falling order, two for each decade, from the largest eigenvalue to the resolution.
    #[inline(never)]
    pub fn lambdas(&self) -> Vec<f64> {
        self.shrinkage.lambdas()
    }

    /// The criterion for each λ, summed over the targets. Leave-one-out errors are taken at the training points.
    ///
    /// # Errors
    /// The errors of [`log_evidence`](KernelRidgeSpectrum::log_evidence); [`Unsupported`](Error::Unsupported) for criteria that
    /// carry rows. Kernel values of held-out points are not known here: compare the predictions of
    /// [models](KernelRidgeSpectrum::model) at them.
    #[inline(never)]
    pub fn errors(&self, criterion: &Criterion<'_, T>, lambdas: &[f64]) -> Result<Vec<f64>> {
        lambdas.iter().try_for_each(|lambda| self.check(*lambda))?;
        self.shrinkage.check_range()?;
        let (each, count) = (lambdas.iter(), self.mean_targets.len());
        match criterion {
            Criterion::GeneralisedCrossValidation => Ok(self.shrinkage.generalised_errors(lambdas)?.sums),
            Criterion::LogEvidence => Ok(self.shrinkage.evidence_errors(lambdas, None)?.sums),
            Criterion::LogEvidenceWithNoise(variance) => {
                Ok(self.shrinkage.evidence_errors(lambdas, Some(&vec![*variance; count]))?.sums)
            }
            Criterion::LeaveOneOut => Ok(each.map(|lambda| self.left_out(*lambda)).collect()),
            Criterion::LeaveOneOutOf { .. } => Err(Error::Unsupported {
                what: "rows for leave-one-out, which a Gram matrix does not need: use Criterion::LeaveOneOut",
            }),
            Criterion::LeaveGroupsOut(_) | Criterion::LeaveGroupsOutOf { .. } => Err(Error::Unsupported {
                what: "groups left out of a Gram matrix: RidgeSpectrum leaves them out",
            }),
            _ => Err(Error::Unsupported {
                what: "errors of held-out points, whose kernel values are not known: compare models on them",
            }),
        }
    }

    /// The λ with the least error, and that error; among equal errors, the largest λ is taken.
    ///
    /// # Errors
    /// The errors of [`errors`](KernelRidgeSpectrum::errors); [`Parameter`](Error::Parameter) if there is no λ.
    #[inline(never)]
    pub fn choose(&self, criterion: &Criterion<'_, T>, lambdas: &[f64]) -> Result<(f64, f64)> {
        least(lambdas, &self.errors(criterion, lambdas)?)
    }

    /// The model for one λ.
    ///
    /// # Errors
    /// The errors of [`degrees_of_freedom`](KernelRidgeSpectrum::degrees_of_freedom); [`NotFinite`](Error::NotFinite) if a
    /// coefficient or an intercept is out of the range of the scalar.
    #[inline(never)]
    pub fn model(&self, lambda: f64) -> Result<KernelRidge<T>> {
        self.check(lambda)?;
        let coefficients = self.space.solved(lambda).mapv(T::narrow);
        let predicted = self.gram.dot(&coefficients);
        let n = self.gram.nrows() as f64;
        let intercepts = predicted.columns().into_iter().zip(&self.mean_targets);
        let intercepts = intercepts
            .map(|(column, mean)| T::narrow(mean - column.iter().map(|v| v.widen()).sum::<f64>() / n))
            .collect();
        KernelRidge::new(coefficients, intercepts)
    }

    /// The mean over points of the squared error of the regression on all other points, summed over the targets.
    fn left_out(&self, lambda: f64) -> f64 {
        let errors = self.space.left_out(lambda).iter().map(|error| error.powi(2)).sum::<f64>();
        or_infinite(errors / self.gram.nrows() as f64)
    }

    fn check(&self, lambda: f64) -> Result<()> {
        check_lambda(lambda)?;
        if lambda > self.resolution() || (lambda == self.resolution() && lambda > 0.0) {
            return Ok(());
        }
        let least = if self.resolution() > 0.0 { 2.0 * self.resolution() } else { 1.0 };
        Err(singular(lambda, least))
    }
}

once!(
    KernelRidge::<T>::spectrum_view,
    KernelRidgeSpectrum::<T>::degrees_of_freedom,
    KernelRidgeSpectrum::<T>::log_evidence,
    KernelRidgeSpectrum::<T>::lambdas,
    KernelRidgeSpectrum::<T>::errors,
    KernelRidgeSpectrum::<T>::choose,
    KernelRidgeSpectrum::<T>::model,
);
