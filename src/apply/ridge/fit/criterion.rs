//! [`Criterion`]: the choice of λ.

use ndarray::{ArrayRef1, ArrayRef2};

use super::{RidgeSpectrum, check_training, check_weights};
use crate::error::{Error, Result};
use crate::once::once;
use crate::{Points, Real};

/// The criterion that λ minimises: an estimate of the squared error of predictions at new points, or the evidence.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Criterion<'a, T: Real> {
    /// Σ w (y − ŷ)² / n divided by (1 − f/n)² with n = Σ w and the [degrees of freedom](RidgeSpectrum::degrees_of_freedom) f:
    /// leave-one-out with every leverage replaced by their mean. Approximate; needs no data.
    ///
    /// Where leverages differ much, it is too small and chooses lengthscales that are too short. That is so for clusters and
    /// isolated points, each of which a short lengthscale fits by itself. On the banknote data of the example `classification`
    /// it takes the shortest lengthscale of its grid for the exact kernel, which leave-one-out does not.
    ///
    /// n is the number of rows if weights are how often a row counts: a row of weight 2 is the row twice, and a row of weight 0
    /// is absent. Other weights, such as inverse variances, must be scaled so that Σ w is the number of rows, or λ is chosen for
    /// another number of rows. Where f is n or more, the error is infinite.
    GeneralisedCrossValidation,
    /// The error at each training point of the regression on all others, computed in a second pass over the training data:
    /// Σ w (y − ŷ)² / Σ w, where ŷ is predicted without the row. No row is approximated; the error is infinite for λ so small
    /// that it is rounding.
    ///
    /// A row is left out with all of its weight: no copy of a row of weight 2 stays in the regression, as it does if the row was
    /// given twice. A row of weight 0 adds no error.
    ///
    /// The sample must be the training data, in any order. It is compared by what the statistics know: the number of rows,
    /// Σ w, and Σ w y and Σ w y² of each target, to a relative difference of 10⁻⁹. Points are not compared.
    LeaveOneOut(Sample<'a, T>),
    /// Σ w (y − ŷ)² / Σ w on points that were held out.
    HeldOut(Sample<'a, T>),
    /// Minus the [log evidence](RidgeSpectrum::log_evidence), in nats. Needs no data.
    LogEvidence,
}

/// The λ that a criterion chooses: [`RidgeSpectrum::choose`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct LambdaChoice {
    /// The λ with the least error.
    pub lambda: f64,
    /// The criterion for this λ: a mean squared error, summed over the targets, or minus the log evidence.
    pub error: f64,
}

impl LambdaChoice {
    /// The λ with the least error; among equal errors, the largest λ.
    pub(crate) fn least(lambdas: &[f64], errors: &[f64]) -> Result<Self> {
        let choices = lambdas.iter().zip(errors);
        let choices = choices.map(|(lambda, error)| LambdaChoice { lambda: *lambda, error: *error });
        let better = |a: &LambdaChoice, b: &LambdaChoice| {
            a.error.total_cmp(&b.error).then(b.lambda.total_cmp(&a.lambda))
        };
        let none = Error::Parameter { name: "the number of λ", value: 0.0, domain: "at least 1" };
        choices.min_by(better).ok_or(none)
    }
}

/// Points, n × d, with their targets, n × t, and weights.
#[derive(Clone, Debug)]
pub struct Sample<'a, T: Real> {
    /// Points, n × d.
    pub x: Points<'a, T>,
    /// Targets, n × t.
    pub targets: &'a ArrayRef2<T>,
    /// A weight for each row; `None` if all are 1.
    pub weights: Option<&'a ArrayRef1<f64>>,
}

impl<'a, T: Real> Criterion<'a, T> {
    /// [`LeaveOneOut`](Criterion::LeaveOneOut) for the training points, without weights.
    pub fn leave_one_out(x: impl Into<Points<'a, T>>, targets: &'a ArrayRef2<T>) -> Self {
        Criterion::LeaveOneOut(Sample { x: x.into(), targets, weights: None })
    }

    /// [`HeldOut`](Criterion::HeldOut) for other points, without weights.
    pub fn held_out(x: impl Into<Points<'a, T>>, targets: &'a ArrayRef2<T>) -> Self {
        Criterion::HeldOut(Sample { x: x.into(), targets, weights: None })
    }
}

impl<T: Real> RidgeSpectrum<T> {
    /// The criterion for each λ: a weighted mean squared error, summed over the targets that vary in the training data, or minus
    /// the log evidence.
    ///
    /// A criterion is infinite where rounding errors of the features' products outweigh it. Generalised cross-validation and the
    /// evidence are infinite for λ so small that [`log_evidence`](RidgeSpectrum::log_evidence) is an error. Generalised
    /// cross-validation is infinite also where the squared residuals are below their own rounding. Leave-one-out and held-out
    /// errors are infinite where rounding may change their root by itself, or where it may hide half of what the
    /// leverage h of a row leaves, 1 − h. With fewer rows than features that is so for λ below some five times the rounding
    /// error of Σ w φ φᵀ in the spectral norm.
    ///
    /// Generalised cross-validation and the evidence cost O(D t) for each λ, the others O(D² + D t) for each point and each λ.
    ///
    /// # Errors
    /// The errors of [`model`](RidgeSpectrum::model); [`Parameter`](Error::Parameter) if the range of a target is so small that
    /// its squares lose digits, below some 1e-135, or for generalised cross-validation and the evidence if Σ w is below 1 with an
    /// intercept (the evidence refuses also 1); [`NoData`](Error::NoData) if all weights are 0, [`Shape`](Error::Shape),
    /// [`NotFinite`](Error::NotFinite) and [`Entry`](Error::Entry) if points, targets or weights do not fit; for leave-one-out
    /// [`Shape`](Error::Shape) or [`Parameter`](Error::Parameter) if the sample is not the training data.
    #[inline(never)]
    pub fn errors(&self, criterion: &Criterion<'_, T>, lambdas: &[f64]) -> Result<Vec<f64>> {
        lambdas.iter().try_for_each(|lambda| self.check(*lambda))?;
        self.shrinkage.check_range()?;
        let each = lambdas.iter();
        match criterion {
            Criterion::GeneralisedCrossValidation => self.shrinkage.generalised_errors(lambdas),
            Criterion::LogEvidence => each.map(|lambda| self.shrinkage.evidence_error(*lambda)).collect(),
            Criterion::LeaveOneOut(sample) => {
                self.check_sample(sample)?;
                self.training.check(sample)?;
                self.errors_left_out(sample, lambdas)
            }
            Criterion::HeldOut(sample) => {
                self.check_sample(sample)?;
                self.errors_at(sample, lambdas, false)
            }
        }
    }

    /// The λ with the least error, and that error; among equal errors, the largest λ.
    ///
    /// # Errors
    /// The errors of [`errors`](RidgeSpectrum::errors); [`Parameter`](Error::Parameter) if there is no λ.
    #[inline(never)]
    pub fn choose(&self, criterion: &Criterion<'_, T>, lambdas: &[f64]) -> Result<LambdaChoice> {
        LambdaChoice::least(lambdas, &self.errors(criterion, lambdas)?)
    }

    fn check_sample(&self, sample: &Sample<'_, T>) -> Result<()> {
        check_training(sample.x.view(), self.map.dim(), sample.targets, self.rotated.ncols())?;
        check_weights(sample.weights, sample.x.nrows())
    }
}

once!(RidgeSpectrum::<T>::errors, RidgeSpectrum::<T>::choose);
