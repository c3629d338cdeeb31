//! [`RidgeTrial`]: what a search found for one map, and [`RidgeFit`]: what it chose.

use super::super::normal::check_lambda;
use super::super::{
    Criterion, LambdaChoice, Ridge, RidgePosterior, RidgeSpectrum, RidgeStatistics, ScaleWarning,
};
use crate::Real;
use crate::error::{Error, Result};
use crate::kernel::Lengthscale;
use crate::once::once;

/// The error where no λ could be tried.
pub(super) const NONE: Error =
    Error::Parameter { name: "the number of λ", value: 0.0, domain: "at least 1" };

/// What a search found for one map.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RidgeTrial {
    /// The lengthscale of the map; `None` if it is not a plain one.
    pub lengthscale: Option<Lengthscale>,
    /// m, the number of frequencies; `None` if the map is not a plain one.
    pub frequencies: Option<usize>,
    /// D, the number of features.
    pub features: usize,
    /// λ that were tried, in the order of the grid.
    pub lambdas: Vec<f64>,
    /// The criterion for each λ: a mean squared error summed over the targets, or minus the log evidence.
    pub errors: Vec<f64>,
}

impl RidgeTrial {
    /// Of the regressions of one map.
    pub(super) fn of<T: Real>(
        spectrum: &RidgeSpectrum<T>,
        criterion: &Criterion<'_, T>,
        lambdas: Option<&[f64]>,
    ) -> Result<Self> {
        let (map, lambdas) = (spectrum.map(), grid_of(spectrum, lambdas));
        let errors = spectrum.errors(criterion, &lambdas)?;
        let plain = map.plain_recipe();
        Ok(RidgeTrial {
            lengthscale: plain.map(|plain| plain.target.lengthscale().clone()),
            frequencies: plain.map(|plain| plain.omega.count()),
            features: map.feature_dim(),
            lambdas,
            errors,
        })
    }

    /// The λ with the least error; `None` if rounding leaves no λ of the grid a meaning.
    pub fn choice(&self) -> Option<LambdaChoice> {
        LambdaChoice::least(&self.lambdas, &self.errors).ok()
    }

    /// The least error, infinite if there is none.
    pub(super) fn error(&self) -> f64 {
        self.choice().map_or(f64::INFINITY, |choice| choice.error)
    }
}

impl std::fmt::Display for RidgeTrial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.lengthscale {
            Some(Lengthscale::Isotropic(scale)) => write!(f, "ℓ = {scale:.4}, ")?,
            Some(Lengthscale::PerDimension(scales)) => write!(f, "ℓ = {scales:.3?}, ")?,
            None => {}
        }
        write!(f, "D = {}", self.features)?;
        match self.choice() {
            Some(choice) => write!(f, ", λ = {:.3e}: {:.6e}", choice.lambda, choice.error),
            None => write!(f, ": every λ of the grid is lost to rounding"),
        }
    }
}

/// What a search chose, with all errors: the result of [`RidgeSearch`](super::super::RidgeSearch) and [`RidgeGrid`](super::RidgeGrid).
#[derive(Clone, Debug)]
pub struct RidgeFit<T: Real> {
    trials: Vec<RidgeTrial>,
    best: usize,
    choice: LambdaChoice,
    spectrum: RidgeSpectrum<T>,
    model: Ridge<T>,
    warning: Option<ScaleWarning>,
}

impl<T: Real> RidgeFit<T> {
    /// The model of a spectrum, with what was tried before.
    pub(super) fn new(
        trials: Vec<RidgeTrial>,
        best: usize,
        spectrum: RidgeSpectrum<T>,
        choice: LambdaChoice,
        warning: Option<ScaleWarning>,
    ) -> Result<Self> {
        let model = spectrum.model(choice.lambda)?;
        Ok(RidgeFit { trials, best, choice, spectrum, model, warning })
    }

    /// What was found for each map, in the order in which they were tried.
    pub fn trials(&self) -> &[RidgeTrial] {
        &self.trials
    }

    /// The trial with the least error; of equal ones, the first.
    pub fn best(&self) -> &RidgeTrial {
        &self.trials[self.best]
    }

    /// The λ of the model, and the criterion for it after fitting all rows (with held-out rows, before).
    pub fn choice(&self) -> LambdaChoice {
        self.choice
    }

    /// The model that was chosen.
    pub fn model(&self) -> &Ridge<T> {
        &self.model
    }

    /// The regressions of its map for all λ.
    pub fn spectrum(&self) -> &RidgeSpectrum<T> {
        &self.spectrum
    }

    /// The model with variances of its predictions.
    ///
    /// # Errors
    /// As [`RidgeSpectrum::posterior`].
    #[inline(never)]
    pub fn posterior(&self) -> Result<RidgePosterior<T>> {
        self.spectrum.posterior(self.choice.lambda)
    }

    /// Whether inputs are badly scaled: [`RidgeStatistics::scale_warning`].
    #[inline(never)]
    pub fn scale_warning(&self) -> Option<ScaleWarning> {
        self.warning
    }
}

/// A line for each trial, the best one marked, the choice, and a warning if there is one.
impl<T: Real> std::fmt::Display for RidgeFit<T> {
    #[inline(never)]
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, trial) in self.trials.iter().enumerate() {
            writeln!(f, "{} {trial}", if i == self.best { '*' } else { ' ' })?;
        }
        write!(f, "chosen: λ = {:.3e} with {:.6e}", self.choice.lambda, self.choice.error)?;
        match self.warning {
            Some(warning) => write!(f, "\nwarning: {warning}"),
            None => Ok(()),
        }
    }
}

/// Trials, with the spectrum of the best one.
pub(super) struct Tried<T: Real> {
    trials: Vec<RidgeTrial>,
    best: usize,
    spectrum: RidgeSpectrum<T>,
    warning: Option<ScaleWarning>,
}

impl<T: Real> Tried<T> {
    /// The trial of one map.
    pub fn of(
        statistics: &RidgeStatistics<T>,
        criterion: &Criterion<'_, T>,
        lambdas: Option<&[f64]>,
    ) -> Result<Self> {
        let spectrum = statistics.spectrum()?;
        let trials = vec![RidgeTrial::of(&spectrum, criterion, lambdas)?];
        Ok(Tried { trials, best: 0, spectrum, warning: statistics.scale_warning() })
    }

    /// All trials of two sets, in order, and the better spectrum.
    pub fn join(mut self, other: Self) -> Self {
        if other.trials[other.best].error() < self.trials[self.best].error() {
            (self.best, self.spectrum) = (self.trials.len() + other.best, other.spectrum);
            self.warning = other.warning;
        }
        self.trials.extend(other.trials);
        self
    }

    /// The model of the best trial.
    pub fn fit(self, lambdas: Option<&[f64]>) -> Result<RidgeFit<T>> {
        let Tried { trials, best, spectrum, warning } = self;
        let choice = trials[best].choice().ok_or_else(|| lost(lambdas, spectrum.resolution()))?;
        RidgeFit::new(trials, best, spectrum, choice, warning)
    }
}

/// λ to try: those given that are not lost to rounding, or the default.
pub(super) fn grid_of<T: Real>(spectrum: &RidgeSpectrum<T>, lambdas: Option<&[f64]>) -> Vec<f64> {
    match lambdas {
        None => spectrum.lambdas(),
        Some(lambdas) => lambdas.iter().copied().filter(|lambda| *lambda > spectrum.resolution()).collect(),
    }
}

/// The error where rounding leaves no λ of a grid a meaning.
pub(super) fn lost(lambdas: Option<&[f64]>, resolution: f64) -> Error {
    let lambda = lambdas.into_iter().flatten().copied().fold(0.0, f64::max);
    Error::Singular { lambda, least: 2.0 * resolution }
}

/// Rejects no λ, and such that are negative or not finite.
pub(super) fn check_grid(lambdas: Option<&[f64]>) -> Result<()> {
    let Some(lambdas) = lambdas else { return Ok(()) };
    if lambdas.is_empty() {
        return Err(NONE);
    }
    lambdas.iter().try_for_each(|lambda| check_lambda(*lambda))
}

once!(RidgeFit::<T>::posterior, RidgeFit::<T>::scale_warning, <RidgeFit<T> as std::fmt::Display>::fmt);
