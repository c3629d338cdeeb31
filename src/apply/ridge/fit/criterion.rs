//! [`Criterion`]: what λ and maps are chosen by.

use ndarray::ArrayRef1;

#[cfg(doc)]
use super::{KernelRidgeSpectrum, RidgeGrid, RidgeSearch};
use super::{RidgeSpectrum, check_training, check_weights};
use crate::error::{Error, Result};
use crate::once::once;
use crate::targets::TargetRows;
use crate::{Points, Real, Targets};

/// What λ, lengthscales and maps are chosen by: an estimate of the squared error of predictions at new points, or the evidence.
///
/// ```
/// use random_features::apply::{Criterion, RidgeSearch};
/// use random_features::ndarray::Array2;
/// let x = Array2::from_shape_fn((200, 1), |(i, _)| i as f64 / 50.0);
/// let y = x.column(0).mapv(f64::sin);
/// let search = RidgeSearch::gaussian(1, 32, 7)?;
/// let by_evidence =
///     search.with_criterion(Criterion::LogEvidence).fit(&x, &y)?;
/// let (lambda, evidence) = by_evidence
///     .spectrum()
///     .choose(&Criterion::leave_one_out(&x, &y), &[1e-6, 1e-3, 1.0])?;
/// assert!(lambda < 1.0 && evidence < 1e-3);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// | criterion | [`RidgeSearch`] | [`RidgeSpectrum`], [`RidgeGrid`] | [`KernelRidgeSpectrum`] |
/// |---|---|---|---|
/// | `LeaveOneOut` | yes, the default | no: the rows are gone | yes |
/// | `LeaveOneOutOf` | no: it knows its rows | yes | no |
/// | `GeneralisedCrossValidation` | yes | yes | yes |
/// | `LogEvidence` | yes | yes | yes |
/// | `HeldOut` | no: `HeldOutShare` | yes | no: kernel values are not known |
/// | `HeldOutShare` | yes | no | no |
///
/// Where it says no, the answer is [`Error::Unsupported`], which names what serves instead.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Criterion<'a, T: Real = f64> {
    /// The error at each training point of the regression on all others: Σ w (y − ŷ)² / Σ w, where ŷ is predicted without the row.
    /// In a search, the rows are those of the search.
    #[doc(alias = "LOO")]
    #[default]
    LeaveOneOut,
    /// Leave-one-out where the training data are read again, in a second pass: [`Criterion::leave_one_out`]. No row is approximated;
    /// the error is infinite for λ so small that it is rounding.
    ///
    /// A row is left out with all of its weight: no copy of a row of weight 2 stays in the regression, as it does if the row was
    /// given twice. A row of weight 0 adds no error.
    ///
    /// Rows may come in any order. They are compared by what the statistics know: the number of rows,
    /// Σ w, and Σ w y and Σ w y² of each target, to a relative difference of 10⁻⁹. Points are not compared.
    #[non_exhaustive]
    LeaveOneOutOf {
        /// The training points, n × d.
        x: Points<'a, T>,
        /// Their targets, with the weights of the rows.
        targets: Targets<'a, T>,
    },
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
    #[doc(alias = "GCV")]
    GeneralisedCrossValidation,
    /// Minus the [log evidence](RidgeSpectrum::log_evidence) of a Gaussian process, in nats. It needs no data, and tends to resist
    /// overfitting where many parameters are chosen.
    #[doc(alias = "marginal likelihood")]
    LogEvidence,
    /// The error at points that were held out, Σ w (y − ŷ)² / Σ w: [`Criterion::held_out`].
    #[non_exhaustive]
    HeldOut {
        /// Points that the regression has not seen, n × d.
        x: Points<'a, T>,
        /// Their targets, with the weights of the rows.
        targets: Targets<'a, T>,
    },
    /// The error at a share of the rows of a search, drawn at random and held out: above 0 and below 1.
    HeldOutShare(f64),
}

/// Rows at which errors are taken: points, n × d, with their targets, n × t, and weights.
#[derive(Clone, Debug)]
pub(super) struct RidgeRows<'a, T: Real> {
    pub x: Points<'a, T>,
    pub targets: TargetRows<'a, T>,
}

impl<'a, T: Real> RidgeRows<'a, T> {
    /// A weight for each row; `None` if all are 1.
    pub fn weights(&self) -> Option<&ArrayRef1<f64>> {
        self.targets.weights()
    }

    /// Rejects points that are not in ℝᵈ, and rows without `count` targets.
    pub fn check(&self, d: usize, count: usize) -> Result<()> {
        check_training(self.x.view(), d, &self.targets.columns, count)?;
        check_weights(self.weights(), self.x.nrows())
    }

    /// Leave-one-out at these rows.
    pub fn left_out(self) -> Criterion<'a, T> {
        Criterion::leave_one_out(self.x, self.targets)
    }

    /// Errors at these rows.
    pub fn held_out(self) -> Criterion<'a, T> {
        Criterion::held_out(self.x, self.targets)
    }
}

/// The λ with the least error, and that error; among equal errors, the largest λ.
pub(crate) fn least(lambdas: &[f64], errors: &[f64]) -> Result<(f64, f64)> {
    let choices = lambdas.iter().copied().zip(errors.iter().copied());
    let better = |a: &(f64, f64), b: &(f64, f64)| a.1.total_cmp(&b.1).then(b.0.total_cmp(&a.0));
    let none = Error::Parameter { name: "the number of λ", value: 0.0, domain: "at least 1" };
    choices.min_by(better).ok_or(none)
}

impl<'a, T: Real> Criterion<'a, T> {
    /// Leave-one-out for the training points, n × d, and their [targets](Targets), with their weights.
    pub fn leave_one_out(x: impl Into<Points<'a, T>>, targets: impl Into<Targets<'a, T>>) -> Self {
        Criterion::LeaveOneOutOf { x: x.into(), targets: targets.into() }
    }

    /// Errors at other points, n × d, and their [targets](Targets), with their weights.
    pub fn held_out(x: impl Into<Points<'a, T>>, targets: impl Into<Targets<'a, T>>) -> Self {
        Criterion::HeldOut { x: x.into(), targets: targets.into() }
    }

    /// Whether the criterion names rows.
    pub(super) fn has_rows(&self) -> bool {
        matches!(self, Criterion::LeaveOneOutOf { .. } | Criterion::HeldOut { .. })
    }

    /// The rows that the criterion names, with `count` targets.
    pub(super) fn rows(&self, count: usize) -> Result<Option<RidgeRows<'_, T>>> {
        match self {
            Criterion::LeaveOneOutOf { x, targets } | Criterion::HeldOut { x, targets } => {
                Ok(Some(RidgeRows { x: x.into(), targets: targets.rows(count)? }))
            }
            _ => Ok(None),
        }
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
    /// [`Shape`](Error::Shape) or [`Parameter`](Error::Parameter) if the rows are not the training data. [`Unsupported`](Error::Unsupported)
    /// for a criterion whose rows are not given.
    #[inline(never)]
    pub fn errors(&self, criterion: &Criterion<'_, T>, lambdas: &[f64]) -> Result<Vec<f64>> {
        lambdas.iter().try_for_each(|lambda| self.check(*lambda))?;
        self.shrinkage.check_range()?;
        let each = lambdas.iter();
        match (criterion, criterion.rows(self.rotated.ncols())?) {
            (Criterion::GeneralisedCrossValidation, _) => self.shrinkage.generalised_errors(lambdas),
            (Criterion::LogEvidence, _) => {
                each.map(|lambda| self.shrinkage.evidence_error(*lambda)).collect()
            }
            (Criterion::LeaveOneOutOf { .. }, Some(rows)) => {
                rows.check(self.map.dim(), self.rotated.ncols())?;
                self.training.check(&rows)?;
                self.errors_left_out(&rows, lambdas)
            }
            (_, Some(rows)) => {
                rows.check(self.map.dim(), self.rotated.ncols())?;
                self.errors_at(&rows, lambdas, false)
            }
            (Criterion::LeaveOneOut, None) => Err(Error::Unsupported {
                what: "leave-one-out without the training data, which sums do not keep: Criterion::leave_one_out(&x, &y)",
            }),
            (_, None) => Err(Error::Unsupported {
                what: "a share of rows that sums do not keep: hold rows out before, for Criterion::held_out(&x, &y)",
            }),
        }
    }

    /// The λ with the least error, and that error; among equal errors, the largest λ.
    ///
    /// # Errors
    /// The errors of [`errors`](RidgeSpectrum::errors); [`Parameter`](Error::Parameter) if there is no λ.
    #[inline(never)]
    pub fn choose(&self, criterion: &Criterion<'_, T>, lambdas: &[f64]) -> Result<(f64, f64)> {
        least(lambdas, &self.errors(criterion, lambdas)?)
    }
}

once!(RidgeSpectrum::<T>::errors, RidgeSpectrum::<T>::choose);
