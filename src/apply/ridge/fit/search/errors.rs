//! [`LambdaErrors`]: the criterion for each λ of a grid, which is extended where its largest λ is the best.

use super::super::by_criterion::ErrorsOf;
use super::super::error_table::ErrorTable;
use super::super::{Criterion, RidgeSpectrum, least};
use crate::Real;
use crate::error::Result;

/// The number of λ that are tried above the largest eigenvalue, and the step between them in decades. They reach 10⁴ times that
/// eigenvalue, where the model is the mean.
const MORE: u8 = 8;
const DECADES: f64 = 0.5;
/// The least error of a target, as a share of its variance; smaller errors are replaced by it.
const FLOOR: f64 = 1e-30;

/// The λ that were tried, with the criterion for each.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LambdaErrors {
    pub lambdas: Vec<f64>,
    pub table: ErrorTable,
    /// The criterion for the mean of the targets alone: summed over the targets, and for each target.
    pub mean: (f64, Vec<f64>),
    /// Whether λ of a given grid were left out because they are not above the bound.
    pub dropped: bool,
    /// The targets that vary, if each has its own λ.
    own: Option<Vec<usize>>,
}

/// The criterion for each λ, for targets that have one λ in common.
pub(super) struct Series {
    pub targets: Vec<usize>,
    pub errors: Vec<f64>,
    pub mean_error: f64,
}

/// The λ of each target, and the criterion for these λ.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Choice {
    /// The λ, one for each target.
    pub lambdas: Vec<f64>,
    /// The criterion, summed over the targets.
    pub error: f64,
    /// The number by which maps are compared, the least first: the criterion, or Σ ln(error/variance) if targets have their own
    /// λ.
    pub score: f64,
    /// The criterion of each target.
    pub errors: Vec<f64>,
    /// The criterion for the mean of the targets alone, of each target.
    pub mean_errors: Vec<f64>,
}

/// How λ are chosen: one for all targets, or one for each target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LambdaSharing {
    Common,
    PerTarget,
}

impl LambdaErrors {
    /// The λ of a given grid above the [bound](super::super::shrinkage::Shrinkage::bound) of the spectrum, or of the default grid,
    /// with the criterion from `errors`. The default grid is extended upwards while its largest λ is the best.
    pub fn of<T: Real>(
        spectrum: &RidgeSpectrum<T>,
        grid: Option<&[f64]>,
        share: LambdaSharing,
        errors: &ErrorsOf<'_>,
    ) -> Result<Self> {
        let shrinkage = &spectrum.shrinkage;
        // For a single target both choices are equal.
        let own =
            (share == LambdaSharing::PerTarget && shrinkage.rest.len() > 1).then(|| shrinkage.varying());
        let bound = shrinkage.bound();
        let of_mean = shrinkage.lambda_of_mean();
        let Some(grid) = grid else { return Self::grown((spectrum.lambdas(), of_mean), own, errors) };
        let kept: Vec<f64> = grid.iter().copied().filter(|lambda| *lambda > bound).collect();
        let dropped = kept.len() < grid.len();
        Ok(LambdaErrors { dropped, ..Self::of_grid((kept, of_mean), own, errors)? })
    }

    /// Tries these λ, and one for which predictions are the mean of the targets.
    fn of_grid(
        (lambdas, of_mean): (Vec<f64>, f64),
        own: Option<Vec<usize>>,
        errors: &ErrorsOf<'_>,
    ) -> Result<Self> {
        let mut table = errors(&[&lambdas, &[of_mean][..]].concat())?;
        let mean = table.pop();
        Ok(LambdaErrors { lambdas, table, mean, dropped: false, own })
    }

    /// Tries these λ, in falling order, and larger ones if the largest is the best.
    fn grown(lambdas: (Vec<f64>, f64), own: Option<Vec<usize>>, errors: &ErrorsOf<'_>) -> Result<Self> {
        let mut tried = Self::of_grid(lambdas, own, errors)?;
        let Some(largest) = tried.lambdas.first().copied() else { return Ok(tried) };
        let at_end =
            |series: &Series| least(&tried.lambdas, &series.errors).is_ok_and(|(best, _)| best == largest);
        if tried.lambdas.len() > 1 && tried.series().iter().any(at_end) {
            let of = |k: u8| largest * 10f64.powf(DECADES * f64::from(k));
            let more: Vec<f64> = (1..=MORE).rev().map(of).collect();
            tried.table.put_before(errors(&more)?);
            tried.lambdas.splice(0..0, more);
        }
        Ok(tried)
    }

    /// The targets of each λ, with their criterion.
    pub fn series(&self) -> Vec<Series> {
        let Some(own) = &self.own else {
            let targets = (0..self.mean.1.len()).collect();
            return vec![Series { targets, errors: self.table.sums.clone(), mean_error: self.mean.0 }];
        };
        let of = |target: &usize| Series {
            targets: vec![*target],
            errors: self.table.each.column(*target).to_vec(),
            mean_error: self.mean.1[*target],
        };
        own.iter().map(of).collect()
    }

    /// The λ with the least error for each target; `None` if none was tried.
    pub fn choice<T: Real>(
        &self,
        spectrum: &RidgeSpectrum<T>,
        criterion: &Criterion<'_, T>,
    ) -> Option<Choice> {
        let targets = self.mean.1.len();
        let Some(own) = &self.own else {
            let (lambda, error) = least(&self.lambdas, &self.table.sums).ok()?;
            let place = self.lambdas.iter().position(|other| *other == lambda)?;
            return Some(Choice {
                lambdas: vec![lambda; targets],
                error,
                score: error,
                errors: self.table.each.row(place).to_vec(),
                mean_errors: self.mean.1.clone(),
            });
        };
        let largest = self.lambdas.iter().copied().reduce(f64::max)?;
        let mut choice = Choice {
            lambdas: vec![largest; targets],
            error: 0.0,
            score: 0.0,
            errors: vec![0.0; targets],
            mean_errors: self.mean.1.clone(),
        };
        for target in own {
            let (lambda, error) = least(&self.lambdas, &self.table.each.column(*target).to_vec()).ok()?;
            choice.lambdas[*target] = lambda;
            choice.errors[*target] = error;
            choice.error += error;
            choice.score += match criterion {
                evidence if evidence.is_evidence() => error,
                _ => (error / spectrum.shrinkage.variance(*target)).max(FLOOR).ln(),
            };
        }
        Some(choice)
    }
}

impl Choice {
    /// The choice with λ below `bound` raised to it.
    pub fn at_least(mut self, bound: f64) -> Self {
        self.lambdas.iter_mut().for_each(|lambda| *lambda = lambda.max(bound));
        self
    }
}

/// Writes the λ of all targets, or a single λ if all are equal.
impl std::fmt::Display for Choice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Some((first, others)) = self.lambdas.split_first() else { return Ok(()) };
        write!(f, "{first:.3e}")?;
        if others.iter().all(|lambda| lambda == first) {
            return Ok(());
        }
        others.iter().try_for_each(|lambda| write!(f, ", {lambda:.3e}"))
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use super::*;

    /// The least error is at λ = best, and the grid is that of λ from 1 to 10⁻².
    fn grown(best: f64) -> LambdaErrors {
        let errors = |lambdas: &[f64]| {
            let sums: Vec<f64> = lambdas.iter().map(|v| (v / best).ln().powi(2)).collect();
            let each = Array2::from_shape_fn((sums.len(), 1), |(k, _)| sums[k]);
            Ok(ErrorTable { sums, each })
        };
        LambdaErrors::grown((vec![1.0, 0.3, 0.1, 0.03, 0.01], 1e30), None, &errors).unwrap()
    }

    #[test]
    fn grids_grow_upwards_while_the_largest_is_the_best() {
        for inside in [0.1, 0.01, 1e-9] {
            assert_eq!(grown(inside).lambdas.len(), 5);
        }
        for best in [1e4, 100.0, 30.0] {
            let found = grown(best);
            let (lambda, _) = least(&found.lambdas, &found.table.sums).unwrap();
            assert!((lambda / best).log10().abs() < 0.3, "{found:?}");
            assert!(found.lambdas.is_sorted_by(|a, b| a > b));
            assert_eq!((found.lambdas.len(), found.table.sums.len(), found.table.each.nrows()), (13, 13, 13));
        }
        assert!((grown(1e30).lambdas[0] / 1e4 - 1.0).abs() < 1e-12);
    }
}
