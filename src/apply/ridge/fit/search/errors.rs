//! [`LambdaErrors`]: the criterion for each λ of a grid, which grows where its best λ lies at an end.

use super::super::{RidgeSpectrum, least};
use crate::Real;
use crate::error::Result;

/// A λ so large that only the mean of the targets is left.
pub(super) const MEAN: f64 = 1e300;
/// How often a default grid may grow, and by how many λ at a time: two decades.
const ROUNDS: usize = 3;
const MORE: u8 = 4;
/// The step between λ of a default grid, in decades.
const DECADES: f64 = 0.5;

/// The λ that were tried, with the criterion for each.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LambdaErrors {
    pub lambdas: Vec<f64>,
    pub errors: Vec<f64>,
    /// The criterion for the mean of the targets alone.
    pub mean_error: f64,
    /// Whether λ of a given grid were left out, since they are not above the resolution.
    pub dropped: bool,
}

impl LambdaErrors {
    /// The λ of a grid above the spectrum's resolution, or of the default grid, with the criterion that `errors` gives. The default
    /// grid grows while its best λ lies at an end.
    pub fn of<T: Real>(
        spectrum: &RidgeSpectrum<T>,
        grid: Option<&[f64]>,
        errors: &dyn Fn(&[f64]) -> Result<Vec<f64>>,
    ) -> Result<Self> {
        let resolution = spectrum.resolution();
        let Some(grid) = grid else { return Self::grown(spectrum.lambdas(), resolution, errors) };
        let kept: Vec<f64> = grid.iter().copied().filter(|lambda| *lambda > resolution).collect();
        let dropped = kept.len() < grid.len();
        Ok(LambdaErrors { dropped, ..Self::of_grid(kept, errors)? })
    }

    fn of_grid(lambdas: Vec<f64>, errors: &dyn Fn(&[f64]) -> Result<Vec<f64>>) -> Result<Self> {
        let mut all = errors(&[&lambdas, &[MEAN][..]].concat())?;
        let mean_error = all.pop().unwrap_or(f64::INFINITY);
        Ok(LambdaErrors { lambdas, errors: all, mean_error, dropped: false })
    }

    /// Tries these λ, which fall, and more while the best one lies at an end.
    fn grown(
        lambdas: Vec<f64>,
        resolution: f64,
        errors: &dyn Fn(&[f64]) -> Result<Vec<f64>>,
    ) -> Result<Self> {
        let mut tried = Self::of_grid(lambdas, errors)?;
        for _ in 0..ROUNDS {
            let more = tried.beyond(resolution);
            if more.is_empty() {
                break;
            }
            let found = errors(&more)?;
            // The best λ was the first, or the last.
            let at = if more[0] > tried.lambdas[0] { 0 } else { tried.lambdas.len() };
            tried.lambdas.splice(at..at, more);
            tried.errors.splice(at..at, found);
        }
        Ok(tried)
    }

    /// More λ beyond the end at which the best one lies, falling; at the lower end only λ above the resolution.
    fn beyond(&self, resolution: f64) -> Vec<f64> {
        let (Some((lambda, _)), [first, .., last]) = (self.choice(), self.lambdas.as_slice()) else {
            return Vec::new();
        };
        let step = |k: u8| 10f64.powf(DECADES * f64::from(k));
        if lambda == *first {
            (1..=MORE).rev().map(|k| first * step(k)).collect()
        } else if lambda == *last {
            (1..=MORE).map(|k| last / step(k)).filter(|lambda| *lambda > resolution).collect()
        } else {
            Vec::new()
        }
    }

    /// The λ with the least error, and that error; `None` if none was tried.
    pub fn choice(&self) -> Option<(f64, f64)> {
        least(&self.lambdas, &self.errors).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The least error is at λ = best, and the grid is that of λ from 1 to 10⁻².
    fn grown(best: f64, resolution: f64) -> LambdaErrors {
        let errors = |lambdas: &[f64]| Ok(lambdas.iter().map(|v| (v / best).ln().powi(2)).collect());
        LambdaErrors::grown(vec![1.0, 0.3, 0.1, 0.03, 0.01], resolution, &errors).unwrap()
    }

    #[test]
    fn grids_grow_while_the_best_is_at_an_end() {
        assert_eq!(grown(0.1, 1e-9).lambdas.len(), 5);
        for best in [100.0, 30.0, 1e-3, 1e-5] {
            let found = grown(best, 1e-9);
            assert!((found.choice().unwrap().0 / best).log10().abs() < 0.3, "{found:?}");
            assert!(found.lambdas.is_sorted_by(|a, b| a > b) && found.lambdas.len() == found.errors.len());
        }
        // A bounded number of times, and not where λ has no effect.
        assert_eq!(grown(1e30, 1e-9).lambdas.len(), 5 + 3 * 4);
        let found = grown(1e-9, 2e-3);
        assert_eq!(found.lambdas.len(), 6, "{found:?}");
    }
}
