//! How each criterion gives errors for λ.

use ndarray::Array2;

use super::criterion::least;
use super::error_table::ErrorTable;
use super::folds::Folds;
use super::{Criterion, RidgeSpectrum, RidgeStatistics};
use crate::Real;
use crate::error::{Error, Result};
use crate::once::once;

/// Computes the criterion for each λ. Whatever does not depend on λ is computed once.
pub(super) type ErrorsOf<'c> = dyn Fn(&[f64]) -> Result<ErrorTable> + 'c;

impl<T: Real> RidgeSpectrum<T> {
    /// The criterion for each λ: a weighted mean squared error, summed over the targets that vary in the training data,
    /// in (units of the target)², or minus the log evidence in nats.
    ///
    /// A criterion is infinite where rounding errors of Σ w φ φᵀ are too large beside it. Generalised cross-validation and the
    /// evidence are infinite for λ so small that [`log_evidence`](RidgeSpectrum::log_evidence) is an error. Generalised
    /// cross-validation is also infinite where the squared residuals are below their own rounding error. For leave-one-out and
    /// held-out errors, rounding errors are bounded. Such an error is infinite where the bound for its root is as large as the
    /// root. It is also infinite where the bound for 1 − h of a row, with the leverage h, is half of 1 − h. With fewer rows than
    /// features, this is so for λ below about five times the rounding error of Σ w φ φᵀ in the spectral norm.
    ///
    /// Generalised cross-validation and the evidence cost O(D t) for each λ. Errors at rows cost O(D²) for each row, and O(D t)
    /// more for each λ. A group of g rows adds O(g² D + g³) for each λ, or O(D³) if it has more rows than features. Each fold
    /// costs an eigendecomposition, O(D³), and O(D² t) for each λ. Errors of folds from sums are differences of sums, which lose
    /// digits where the noise is small beside the targets, and more of them in `f32`.
    ///
    /// # Errors
    /// The errors of [`model`](RidgeSpectrum::model). [`Parameter`](Error::Parameter) if the range of a target is so small that
    /// its squares lose digits, below about 1e-135. [`Parameter`](Error::Parameter) for generalised cross-validation and the
    /// evidence with an intercept if Σ w is below 1; for the evidence also if it is 1. [`NoData`](Error::NoData) if all weights
    /// are 0. [`Shape`](Error::Shape), [`NotFinite`](Error::NotFinite) and [`Entry`](Error::Entry) if points, targets or weights
    /// do not fit. [`NotFinite`](Error::NotFinite) with the first row of positive weight whose features are not finite.
    /// [`Shape`](Error::Shape) or [`Parameter`](Error::Parameter) if the rows of leave-one-out, groups or folds are not the
    /// training data, or if there are too few groups or folds. Errors of [`RidgeStatistics::merge`] and
    /// [`RidgeStatistics::spectrum`] for folds. [`Unsupported`](Error::Unsupported) for a criterion whose rows are not given.
    #[inline(never)]
    pub fn errors(&self, criterion: &Criterion<'_, T>, lambdas: &[f64]) -> Result<Vec<f64>> {
        Ok(self.error_table(criterion, lambdas)?.sums)
    }

    /// The criterion of each target for each λ, λ × t: a weighted mean squared error, or minus the log evidence. It is 0 for
    /// targets that are constant in the training data. It costs as much as [`errors`](RidgeSpectrum::errors).
    ///
    /// # Errors
    /// The errors of [`errors`](RidgeSpectrum::errors).
    #[inline(never)]
    pub fn errors_per_target(&self, criterion: &Criterion<'_, T>, lambdas: &[f64]) -> Result<Array2<f64>> {
        Ok(self.error_table(criterion, lambdas)?.each)
    }

    /// The λ with the least criterion, and that criterion; among equal ones, the largest λ is taken.
    ///
    /// # Errors
    /// The errors of [`errors`](RidgeSpectrum::errors); [`Parameter`](Error::Parameter) if there is no λ.
    #[inline(never)]
    pub fn choose(&self, criterion: &Criterion<'_, T>, lambdas: &[f64]) -> Result<(f64, f64)> {
        least(lambdas, &self.errors(criterion, lambdas)?)
    }

    /// The λ with the least criterion for each target, and that criterion; among equal ones, the largest λ is taken.
    ///
    /// # Errors
    /// The errors of [`choose`](RidgeSpectrum::choose).
    #[inline(never)]
    pub fn choose_per_target(
        &self,
        criterion: &Criterion<'_, T>,
        lambdas: &[f64],
    ) -> Result<Vec<(f64, f64)>> {
        let errors = self.errors_per_target(criterion, lambdas)?;
        errors.columns().into_iter().map(|errors| least(lambdas, &errors.to_vec())).collect()
    }

    /// The criterion for each λ, for each target and summed over the targets.
    pub(super) fn error_table(&self, criterion: &Criterion<'_, T>, lambdas: &[f64]) -> Result<ErrorTable> {
        lambdas.iter().try_for_each(|lambda| self.check(*lambda))?;
        self.errors_by(criterion)?(lambdas)
    }

    /// The function that gives the errors by a criterion, for λ that have been checked.
    pub(super) fn errors_by<'c>(&'c self, criterion: &'c Criterion<'_, T>) -> Result<Box<ErrorsOf<'c>>> {
        let (count, shrinkage) = (self.rotated.ncols(), &self.shrinkage);
        shrinkage.check_range()?;
        let rows = criterion.rows(count)?;
        if let Some(rows) = &rows {
            rows.check(self.map.dim(), count)?;
        }
        Ok(match (criterion, rows) {
            (Criterion::GeneralisedCrossValidation, _) => {
                Box::new(|lambdas| shrinkage.generalised_errors(lambdas))
            }
            (Criterion::LogEvidence, _) => Box::new(|lambdas| shrinkage.evidence_errors(lambdas, None)),
            (Criterion::LogEvidenceWithNoise(variance), _) => {
                Box::new(move |lambdas| shrinkage.evidence_errors(lambdas, Some(&vec![*variance; count])))
            }
            (Criterion::LeaveOneOutOf { .. }, Some(rows)) => {
                self.training.check(&rows)?;
                Box::new(move |lambdas| self.errors_left_out(&rows, lambdas))
            }
            (Criterion::LeaveGroupsOutOf { groups, .. }, Some(rows)) => {
                self.training.check(&rows)?;
                Box::new(move |lambdas| self.errors_of_groups(&rows, groups, lambdas))
            }
            (_, Some(rows)) => {
                Box::new(move |lambdas| self.errors_at(&rows, &shrinkage.varying(), lambdas, false))
            }
            (Criterion::FoldsOf { folds }, None) => self.errors_of_parts(folds, None)?,
            (Criterion::ForwardOf { blocks, gap }, None) => self.errors_of_parts(blocks, Some(*gap))?,
            (_, None) => return Err(Error::Unsupported { what: instead(criterion) }),
        })
    }

    /// The errors at parts of the training data, from the sums over each part.
    fn errors_of_parts<'c>(
        &'c self,
        parts: &[&RidgeStatistics<T>],
        gap: Option<usize>,
    ) -> Result<Box<ErrorsOf<'c>>> {
        let own = |part: &&RidgeStatistics<T>| {
            part.map().identity() == self.map.identity()
                && part.standardisation() == self.inputs.as_ref()
                && part.intercept == self.shrinkage.intercept
        };
        let parts: Vec<&RidgeStatistics<T>> = parts.iter().copied().filter(own).collect();
        if parts.is_empty() {
            let reason = "no fold has the map, the standardisation and the intercept of the regression";
            return Err(Error::Merge { reason });
        }
        self.training.check_parts(&parts)?;
        let folds = Folds::of_sums(&parts, gap)?;
        Ok(Box::new(move |lambdas| folds.errors(&self.shrinkage.varying(), lambdas)))
    }
}

/// The text of the error for a criterion that needs the rows of a search: it names the criterion to use instead.
fn instead<T: Real>(criterion: &Criterion<'_, T>) -> &'static str {
    match criterion {
        Criterion::LeaveOneOut => {
            "leave-one-out without the training data, which sums do not keep: use Criterion::leave_one_out(&x, &y)"
        }
        Criterion::LeaveGroupsOut(_) => {
            "left-out groups without the training data, which sums do not keep: use Criterion::leave_groups_out(&x, &y, &groups)"
        }
        Criterion::Folds(_) => {
            "folds of rows that sums do not keep: make statistics of each fold and use Criterion::folds_of(&folds)"
        }
        Criterion::Forward { .. } => {
            "blocks of rows that sums do not keep: make statistics of each block and use Criterion::forward_of(&blocks, gap)"
        }
        _ => {
            "a share of rows that sums do not keep: hold rows out yourself and use Criterion::held_out(&x, &y)"
        }
    }
}

once!(
    RidgeSpectrum::<T>::errors,
    RidgeSpectrum::<T>::errors_per_target,
    RidgeSpectrum::<T>::choose,
    RidgeSpectrum::<T>::choose_per_target,
);
