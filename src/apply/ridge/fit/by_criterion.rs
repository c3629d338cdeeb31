//! How each criterion gives errors for λ.

use super::error_table::ErrorTable;
use super::folds::Folds;
use super::{Criterion, RidgeSpectrum, RidgeStatistics};
use crate::Real;
use crate::error::{Error, Result};

/// Gives the errors for each λ. Whatever does not depend on λ is computed once.
pub(super) type ErrorsOf<'c> = Box<dyn Fn(&[f64]) -> Result<ErrorTable> + 'c>;

impl<T: Real> RidgeSpectrum<T> {
    /// The criterion for each λ, for each target and summed over the targets.
    pub(super) fn error_table(&self, criterion: &Criterion<'_, T>, lambdas: &[f64]) -> Result<ErrorTable> {
        lambdas.iter().try_for_each(|lambda| self.check(*lambda))?;
        self.errors_by(criterion)?(lambdas)
    }

    /// The function that gives the errors by a criterion, for λ that have been checked.
    pub(super) fn errors_by<'c>(&'c self, criterion: &'c Criterion<'_, T>) -> Result<ErrorsOf<'c>> {
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
    ) -> Result<ErrorsOf<'c>> {
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
