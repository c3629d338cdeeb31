//! The end of a search: the best map on all rows.

use super::super::{Criterion, RidgeSpectrum, RidgeWarning};
use super::attempts::Attempts;
use super::errors::{Choice, LambdaErrors};
use super::repeated::repeated;
use super::source::Source;
use super::steps::Search;
use super::trial::{RidgeFit, RidgeTrial, lost, warnings};
use super::warning;
use crate::error::{Error, Result};
use crate::reduce::GramIntake;
use crate::{Real, progress};

/// The λ for all rows, the λ from which they were chosen, and warnings.
type ChosenLambda = (Choice, Vec<f64>, Vec<RidgeWarning>);

impl<T: Real> Search<'_, '_, T> {
    /// Fits the best map to all rows. `failed` are the errors of maps of the grid. `at_limit` says whether the grid ended at its
    /// limit, for the shortest and for the longest lengthscales.
    pub fn fit(&self, attempts: Attempts, failed: &[Error], at_limit: [bool; 2]) -> Result<RidgeFit<T>> {
        let (candidate, trial) = attempts.best();
        progress::check()?;
        let map = self.map(candidate)?;
        let (source, spectrum) = if self.all.x.nrows() < map.feature_dim() {
            let rows: Vec<usize> = (0..self.all.x.nrows()).collect();
            (Source::Rows(Box::new(self.all.select(&rows)?)), self.spectrum(map, &self.all)?)
        } else {
            let statistics = self.statistics(map, &self.all)?;
            let spectrum = statistics.spectrum()?;
            (Source::Statistics(Box::new(statistics)), spectrum)
        };
        progress::check()?;
        let (choice, lambdas, of_lambda) = self.choose(&spectrum, trial)?;
        let scale = spectrum.scale_warning(&self.all);
        let mut warnings: Vec<RidgeWarning> = scale.into_iter().chain(of_lambda).collect();
        warnings.extend(GramIntake::spacing_warnings(self.all.x.view(), self.inputs.as_ref()));
        warnings.extend(warning::failed(failed));
        if !trial.is_constant() {
            let (best, tried) = (&candidate.lengthscale, attempts.lengthscales());
            warning::add_lengthscales(&mut warnings, best, tried, at_limit);
        }
        if !self.options.criterion.is_evidence() {
            warnings.extend(repeated(&self.all, self.labels.as_deref())?);
        }
        warnings.extend(warning::targets(&spectrum, &lambdas, &choice, self.share));
        if let Some(labels) = self.labels.as_deref().filter(|_| self.are_numbers) {
            warnings.extend(warning::groups(&self.all, labels));
        }
        RidgeFit::new((attempts.trials, attempts.best), (source, spectrum), choice, warnings)
    }

    /// The λ for all rows, the λ from which they are chosen, and warnings.
    fn choose(&self, spectrum: &RidgeSpectrum<T>, trial: &RidgeTrial) -> Result<ChosenLambda> {
        let (given, bound) = (self.options.lambdas.as_deref(), spectrum.shrinkage.bound());
        use Criterion::{Folds, Forward, HeldOutShare};
        if let HeldOutShare(_) | Folds(_) | Forward { .. } = self.options.criterion {
            // All rows contain the held-out ones, so that there are no rows left to choose λ by; folds were used before.
            let choice = trial.choice().cloned().ok_or_else(|| lost(given, bound))?;
            return Ok((choice.at_least(2.0 * bound), trial.lambdas.clone(), trial.warnings.clone()));
        }
        let (rows, all) = (self.training(), self.criterion(self.all.borrowed(), self.labels.as_deref()));
        let labels = self.training_labels();
        let errors =
            LambdaErrors::of(spectrum, given, self.share, &|lambdas| match self.options.criterion {
                Criterion::LeaveOneOut => spectrum.errors_left_out(&rows, lambdas),
                Criterion::LeaveGroupsOut(_) => {
                    spectrum.errors_of_groups(&rows, labels.unwrap_or(&[]), lambdas)
                }
                _ => spectrum.error_table(&all, lambdas),
            })?;
        let choice = errors.choice(spectrum, &all).ok_or_else(|| lost(given, bound))?;
        if trial.is_constant() {
            return Ok((choice, errors.lambdas, trial.warnings.clone()));
        }
        let warnings = warnings(spectrum, &self.criterion(rows.borrowed(), labels), &errors);
        Ok((choice, errors.lambdas, warnings))
    }
}
