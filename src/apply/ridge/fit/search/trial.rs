//! [`RidgeTrial`]: the errors of a search for one map; [`RidgeFit`]: its result.

use super::super::error_table::ErrorTable;
use super::super::normal::check_lambda;
use super::super::{Criterion, Ridge, RidgePosterior, RidgeSpectrum, RidgeStatistics, RidgeWarning};
use super::errors::{Choice, LambdaErrors, LambdaSharing};
use super::repeated::repeated;
use super::source::Source;
use super::warning;
use crate::Real;
use crate::error::{Error, Result, singular};
use crate::kernel::Lengthscale;
use crate::once::once;

/// The error for an empty grid of λ.
pub(super) const NONE: Error =
    Error::Parameter { name: "the number of λ", value: 0.0, domain: "at least 1" };

/// The errors of one map in a search, one for each λ: mean squared errors in (units of the target)², or minus the log
/// evidence in nats.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RidgeTrial {
    /// The lengthscale of the map, in units of the standardised inputs unless the search was told not to standardise;
    /// `None` if the map is not plain (one mechanism with one kernel).
    pub lengthscale: Option<Lengthscale>,
    /// m, the number of frequencies; `None` if the map is not plain.
    pub m: Option<usize>,
    /// D, the number of features.
    pub feature_dim: usize,
    /// The λ that were tried. Smaller λ, which [`RidgeSpectrum::posterior`] would refuse, are left out. The default
    /// grid is in falling order; given λ keep their order.
    pub lambdas: Vec<f64>,
    /// The criterion for each λ: an estimate of the mean squared error Σ w (y − ŷ)² / Σ w, summed over the targets, in
    /// (units of the target)², or minus the log evidence in nats.
    pub errors: Vec<f64>,
    /// The criterion if every prediction is the mean of the target, or 0 without an intercept. It is the limit of the
    /// criterion for large λ. The explained share of the variance is 1 − error / `mean_error`, unless the criterion is
    /// minus the log evidence.
    pub mean_error: f64,
    /// At most one warning: [`RidgeWarning::Constant`] if the targets do not vary, else [`RidgeWarning::Mean`] if the
    /// map predicts no better than the mean, else [`RidgeWarning::Lambda`] or [`RidgeWarning::Rounding`] if its best λ
    /// is the least or the largest that was tried.
    pub warnings: Vec<RidgeWarning>,
    /// The name of the criterion, and whether it is a log evidence.
    criterion: (&'static str, bool),
    /// Whether the map predicts better than the mean by a margin for the many maps that are tried.
    promising: bool,
    /// The λ with the least error; `None` if rounding hides the errors for every λ of the grid.
    choice: Option<Choice>,
}

impl RidgeTrial {
    /// The trial of the regressions of one map.
    pub(super) fn of<T: Real>(
        spectrum: &RidgeSpectrum<T>,
        criterion: &Criterion<'_, T>,
        (lambdas, share): (Option<&[f64]>, LambdaSharing),
    ) -> Result<Self> {
        Self::by(spectrum, criterion, &*spectrum.errors_by(criterion)?, (lambdas, share))
    }

    /// The trial of the regressions of one map, with a function that gives errors for λ.
    pub(super) fn by<T: Real>(
        spectrum: &RidgeSpectrum<T>,
        criterion: &Criterion<'_, T>,
        errors: &dyn Fn(&[f64]) -> Result<ErrorTable>,
        (lambdas, share): (Option<&[f64]>, LambdaSharing),
    ) -> Result<Self> {
        let errors = LambdaErrors::of(spectrum, lambdas, share, errors)?;
        let warnings = warnings(spectrum, criterion, &errors);
        let promising = warning::is_promising(spectrum, criterion, &errors);
        let choice = errors.choice(spectrum, criterion);
        let LambdaErrors { lambdas, table, mean, .. } = errors;
        let map = spectrum.map();
        let plain = map.plain_recipe();
        Ok(RidgeTrial {
            lengthscale: plain.map(|plain| plain.kernel.lengthscale().clone()),
            m: plain.map(|plain| plain.omega.m()),
            feature_dim: map.feature_dim(),
            lambdas,
            errors: table.sums,
            mean_error: mean.0,
            warnings,
            criterion: (criterion.name(), criterion.is_evidence()),
            promising,
            choice,
        })
    }

    /// The λ with the least error; if each target has its own λ, the λ of the first target. `None` if rounding hides the errors
    /// for every λ of the grid.
    pub fn lambda(&self) -> Option<f64> {
        self.choice().and_then(|choice| choice.lambdas.first().copied())
    }

    /// The least criterion over the λ, summed over the targets: a mean squared error in (units of the target)², or
    /// minus the log evidence in nats. It is infinite if rounding hides the errors for every λ of the grid.
    pub fn error(&self) -> f64 {
        self.choice().map_or(f64::INFINITY, |choice| choice.error)
    }

    /// The λ of each target with the least error.
    pub(super) fn choice(&self) -> Option<&Choice> {
        self.choice.as_ref()
    }

    /// Whether the targets do not vary, so that all errors are equal.
    pub(super) fn is_constant(&self) -> bool {
        self.warnings.contains(&RidgeWarning::Constant)
    }

    /// The pair by which maps are compared, the least first: whether the map lacks the margin over the mean, then its error.
    pub(super) fn rank(&self) -> (bool, f64) {
        (!self.promising, self.choice().map_or(f64::INFINITY, |choice| choice.score))
    }

    /// Whether the map ranks before another: first maps that are better than the mean by a margin for the many maps, then maps of
    /// less error.
    pub(super) fn is_better(&self, other: &Self) -> bool {
        self.rank() < other.rank()
    }
}

/// The warnings that follow from the errors for each λ.
pub(super) fn warnings<T: Real>(
    spectrum: &RidgeSpectrum<T>,
    criterion: &Criterion<'_, T>,
    errors: &LambdaErrors,
) -> Vec<RidgeWarning> {
    if spectrum.shrinkage.is_constant() {
        return vec![RidgeWarning::Constant];
    }
    let mean = warning::mean(spectrum, criterion, errors);
    // A regression no better than the mean has its least error at the largest λ.
    let lambda = if mean.is_none() { warning::lambda(spectrum, criterion, errors) } else { None };
    mean.into_iter().chain(lambda).collect()
}

/// Writes the lengthscale, D, λ, the criterion with its name and the share that it explains, and warnings in a few words.
impl std::fmt::Display for RidgeTrial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.lengthscale {
            Some(Lengthscale::Isotropic(scale)) => write!(f, "ℓ = {scale:.4}, ")?,
            Some(Lengthscale::PerDimension(scales)) => write!(f, "ℓ = {scales:.3?}, ")?,
            None => {}
        }
        write!(f, "D = {}", self.feature_dim)?;
        match self.choice() {
            Some(choice) => {
                write!(f, ", λ = {choice}: ")?;
                write_error(f, self.criterion, [choice.error, self.mean_error])?;
            }
            None => write!(f, ": rounding hides the errors for every λ of the grid")?,
        }
        self.warnings.iter().try_for_each(|warning| match warning {
            RidgeWarning::Constant => write!(f, ", the targets do not vary"),
            RidgeWarning::Mean { .. } => write!(f, ", no better than the mean"),
            RidgeWarning::Lambda { .. } => write!(f, ", best λ at an end of the grid"),
            RidgeWarning::Rounding { .. } => {
                write!(f, ", best λ the least whose error is more than rounding")
            }
            _ => Ok(()),
        })
    }
}

/// Writes a criterion with its name, and how much better it is than the criterion for the mean of the targets: the share of the
/// variance that is explained, or nats.
fn write_error(
    f: &mut std::fmt::Formatter<'_>,
    (name, is_evidence): (&str, bool),
    [error, mean_error]: [f64; 2],
) -> std::fmt::Result {
    if is_evidence {
        return write!(f, "{name} {error:.2}, {:.1} nats better than the mean", mean_error - error);
    }
    write!(f, "{name} {error:.6e}")?;
    let share = 100.0 * (1.0 - error / mean_error);
    if share.is_finite() { write!(f, ", {share:.2} % explained") } else { Ok(()) }
}

/// The chosen regression with all errors: the result of [`RidgeSearch`](super::super::RidgeSearch) and
/// [`RidgeGrid`](super::RidgeGrid). Errors are mean squared errors in (units of the target)², or minus the log evidence
/// in nats. To store a fit, store its [`model`](RidgeFit::model).
#[derive(Clone, Debug)]
pub struct RidgeFit<T: Real> {
    trials: Vec<RidgeTrial>,
    best: usize,
    /// The λ of each target, and the criterion for these λ.
    choice: Choice,
    source: Source<T>,
    spectrum: RidgeSpectrum<T>,
    model: Ridge<T>,
    warnings: Vec<RidgeWarning>,
}

impl<T: Real> RidgeFit<T> {
    /// The model of a spectrum for the chosen λ, with all trials and warnings.
    pub(super) fn new(
        (trials, best): (Vec<RidgeTrial>, usize),
        (source, spectrum): (Source<T>, RidgeSpectrum<T>),
        choice: Choice,
        warnings: Vec<RidgeWarning>,
    ) -> Result<Self> {
        let model = spectrum.model_per_target(&choice.lambdas)?;
        Ok(RidgeFit { trials, best, choice, source, spectrum, model, warnings })
    }

    /// The trial of each map, in the order in which maps were tried.
    pub fn trials(&self) -> &[RidgeTrial] {
        &self.trials
    }

    /// The trial with the least [`error`](RidgeTrial::error) among those that predict better than the mean of the
    /// targets by a margin, or among all trials if none does; the first of equal ones. If there are several targets,
    /// each with its own λ, trials are compared by Σ ln(error/variance) over the targets instead, unless the criterion
    /// is the evidence.
    ///
    /// A trial has the margin if it passes two tests. First, its error is below [`mean_error`](RidgeTrial::mean_error).
    /// Second, for some λ, the log evidence of a target is above that of a constant with noise by at least 7.2 + ln t
    /// nats, for t targets that vary. If each target has its own λ, one target must pass both tests. The second test
    /// asks for 3.2 nats more than [`RidgeWarning::Mean`], since a search tries some 25 maps (ln 25 = 3.2) and the best
    /// of many passes more easily by chance.
    pub fn best(&self) -> &RidgeTrial {
        &self.trials[self.best]
    }

    /// The λ of the model, which was chosen once more on all rows. With several targets it is the λ of the first one,
    /// and of all unless each has [its own](RidgeFit::lambdas).
    pub fn lambda(&self) -> f64 {
        self.choice.lambdas.first().copied().unwrap_or(f64::INFINITY)
    }

    /// The λ of the model, one for each target.
    pub fn lambdas(&self) -> &[f64] {
        &self.choice.lambdas
    }

    /// The criterion for the model, summed over the targets, after all rows were fitted: a mean squared error in (units
    /// of the target)², or minus the log evidence in nats. With a held-out share, folds or blocks it is the criterion
    /// from the search, before all rows were fitted.
    pub fn error(&self) -> f64 {
        self.choice.error
    }

    /// The criterion of each target for the model, whose sum is [`error`](RidgeFit::error); 0 for a target that does not vary. For
    /// labels, each class is a target.
    ///
    /// ```
    /// use random_features::apply::RidgeSearch;
    /// use random_features::ndarray::Array2;
    /// let x = Array2::from_shape_fn((200, 1), |(i, _)| i as f64 / 50.0);
    /// // A wave, and noise of another unit.
    /// let y = Array2::from_shape_fn((200, 2), |(i, j)| match j {
    ///     0 => x[[i, 0]].sin(),
    ///     _ => 1e3 * ((i * i) as f64).sin(),
    /// });
    /// let fit = RidgeSearch::gaussian(1, 32, 7)?.fit(&x, &y)?;
    /// let errors = fit.errors_per_target().iter();
    /// let shares: Vec<f64> = errors
    ///     .zip(fit.mean_errors_per_target())
    ///     .map(|(error, mean_error)| 1.0 - error / mean_error)
    ///     .collect();
    /// assert!(shares[0] > 0.999 && shares[1] < 0.1);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    pub fn errors_per_target(&self) -> &[f64] {
        &self.choice.errors
    }

    /// The criterion of each target if every prediction is its mean, or 0 without an intercept. The explained share of
    /// a target's variance is 1 − error / mean error, unless the criterion is minus the log evidence.
    pub fn mean_errors_per_target(&self) -> &[f64] {
        &self.choice.mean_errors
    }

    /// The model that was chosen.
    pub fn model(&self) -> &Ridge<T> {
        &self.model
    }

    /// The regressions of the model's map for all λ.
    pub fn spectrum(&self) -> &RidgeSpectrum<T> {
        &self.spectrum
    }

    /// The model's posterior, which predicts with variances.
    ///
    /// # Errors
    /// The errors of [`RidgeSpectrum::posterior_per_target`].
    #[inline(never)]
    pub fn posterior(&self) -> Result<RidgePosterior<T>> {
        self.spectrum.posterior_per_target(&self.choice.lambdas)
    }

    /// The sums over all rows for the model's map, to which more rows can be added.
    ///
    /// ```
    /// use random_features::apply::RidgeSearch;
    /// use random_features::ndarray::{Array2, s};
    /// let x = Array2::from_shape_fn((300, 1), |(i, _)| ((i * i) as f64).sin());
    /// let y = x.mapv(|x| (3.0 * x).sin());
    /// let first = (x.slice(s![..200, ..]), y.slice(s![..200, ..]));
    /// let fit = RidgeSearch::gaussian(1, 32, 1)?.fit(first.0, first.1)?;
    /// let lambda = fit.lambda();
    /// let mut statistics = fit.into_statistics()?;
    /// statistics.update(x.slice(s![200.., ..]), y.slice(s![200.., ..]))?;
    /// let model = statistics.solve(lambda)?;
    /// let error = model.predict(&x)? - &y;
    /// assert!(error.iter().all(|error| error.abs() < 1e-3));
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// With fewer rows than features, a search may choose a λ below the rounding error of the sums, above all in `f32`.
    /// [`RidgeStatistics::solve`] refuses such a λ, and its error names one that is large enough.
    ///
    /// # Errors
    /// The errors of [`RidgeStatistics::new`] and [`RidgeStatistics::update`] if there were fewer rows than features, for which a
    /// search computes no sums.
    #[inline(never)]
    pub fn into_statistics(self) -> Result<RidgeStatistics<T>> {
        self.source.statistics(&self.spectrum)
    }

    /// Reasons why the regression may be worse than its errors suggest, or worse than it could be; empty if there are
    /// none.
    ///
    /// ```
    /// use random_features::Trigonometric;
    /// use random_features::apply::{RidgeSearch, RidgeWarning};
    /// use random_features::frequency::Orthogonal;
    /// use random_features::ndarray::{Array2, Axis, concatenate};
    /// let x = Array2::from_shape_fn((100, 1), |(i, _)| ((i * i) as f64).sin());
    /// let y = x.mapv(|x| (3.0 * x).sin() + 0.1 * (1e6 * x).cos());
    /// let omega = Orthogonal.draw(1, 32, 1)?;
    /// let search = RidgeSearch::new(omega, |omega, ell| {
    ///     Trigonometric.gaussian(omega, ell)
    /// });
    /// assert!(search.fit(&x, &y)?.warnings().is_empty());
    /// // Each row twice: the row that is left out has a copy among the others.
    /// let [x, y] = [x, y].map(|rows| concatenate![Axis(0), rows, rows]);
    /// let found = search.fit(&x, &y)?;
    /// assert!(
    ///     found
    ///         .warnings()
    ///         .contains(&RidgeWarning::Repeated { repeated: 100, rows: 200 })
    /// );
    /// # Ok::<(), random_features::Error>(())
    /// ```
    pub fn warnings(&self) -> &[RidgeWarning] {
        &self.warnings
    }
}

/// The largest number of targets whose errors are written.
const WRITTEN: usize = 16;

/// Writes a line for each trial, with a star before the best one, and a line for the choice. For 2 to 16 targets, a
/// line for each of them follows, then a line for each warning.
impl<T: Real> std::fmt::Display for RidgeFit<T> {
    #[inline(never)]
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, trial) in self.trials.iter().enumerate() {
            writeln!(f, "{} {trial}", if i == self.best { '*' } else { ' ' })?;
        }
        let (choice, criterion) = (&self.choice, self.best().criterion);
        write!(f, "chosen: λ = {choice}: ")?;
        write_error(f, criterion, [choice.error, choice.mean_errors.iter().sum()])?;
        if (2..=WRITTEN).contains(&choice.errors.len()) {
            for (target, errors) in choice.errors.iter().zip(&choice.mean_errors).enumerate() {
                write!(f, "\n  target {target}: ")?;
                match errors {
                    (0.0, 0.0) => write!(f, "does not vary")?,
                    (error, mean_error) => write_error(f, criterion, [*error, *mean_error])?,
                }
            }
        }
        self.warnings.iter().try_for_each(|warning| write!(f, "\nwarning: {warning}"))
    }
}

/// Trials, and the spectrum of the best one.
pub(super) struct Tried<'s, T: Real> {
    trials: Vec<RidgeTrial>,
    best: usize,
    statistics: &'s RidgeStatistics<T>,
    spectrum: RidgeSpectrum<T>,
    /// The errors of maps that could not be fitted.
    failed: Vec<Error>,
}

impl<'s, T: Real> Tried<'s, T> {
    /// The trial of one map.
    pub fn of(
        statistics: &'s RidgeStatistics<T>,
        criterion: &Criterion<'_, T>,
        lambdas: (Option<&[f64]>, LambdaSharing),
    ) -> Result<Self> {
        let spectrum = statistics.spectrum()?;
        let trials = vec![RidgeTrial::of(&spectrum, criterion, lambdas)?];
        Ok(Tried { trials, best: 0, statistics, spectrum, failed: Vec::new() })
    }

    /// All trials of two sets in their order, and the spectrum of the better one of the two best.
    pub fn join(mut self, other: Self) -> Self {
        if other.trials[other.best].is_better(&self.trials[self.best]) {
            (self.best, self.spectrum) = (self.trials.len() + other.best, other.spectrum);
            self.statistics = other.statistics;
        }
        self.trials.extend(other.trials);
        self.failed.extend(other.failed);
        self
    }

    /// These trials, and the errors of further maps that could not be fitted.
    pub fn beside(mut self, errors: Vec<Error>) -> Self {
        self.failed.extend(errors);
        self
    }

    /// The model of the best trial.
    pub fn fit(
        self,
        criterion: &Criterion<'_, T>,
        (lambdas, share): (Option<&[f64]>, LambdaSharing),
    ) -> Result<RidgeFit<T>> {
        let Tried { trials, best, statistics, spectrum, failed } = self;
        if failed.contains(&Error::Cancelled) {
            return Err(Error::Cancelled);
        }
        let trial = &trials[best];
        let choice = trial.choice().cloned().ok_or_else(|| lost(lambdas, spectrum.shrinkage.bound()))?;
        let mut warnings: Vec<_> =
            statistics.input_warnings().into_iter().chain(trial.warnings.clone()).collect();
        warnings.extend(warning::failed(&failed));
        if let Some(own) = trial.lengthscale.as_ref().filter(|_| !trial.is_constant()) {
            let alike = trials.iter().filter(|other| other.m == trial.m);
            let alike = alike.filter_map(|trial| trial.lengthscale.as_ref());
            warning::add_lengthscales(&mut warnings, own, alike, [false; 2]);
        }
        if let (true, Some(rows)) = (criterion.names_training(), criterion.rows(spectrum.rotated.ncols())?) {
            warnings.extend(repeated(&rows, criterion.labels())?);
            if let Some(labels) = criterion.labels().filter(|_| !criterion.has_classes()) {
                warnings.extend(warning::groups(&rows, labels));
            }
        }
        warnings.extend(warning::targets(&spectrum, &trial.lambdas, &choice, share));
        RidgeFit::new(
            (trials, best),
            (Source::Statistics(Box::new(statistics.clone())), spectrum),
            choice,
            warnings,
        )
    }
}

/// The error if no λ of a grid is above the bound.
pub(super) fn lost(lambdas: Option<&[f64]>, bound: f64) -> Error {
    let lambda = lambdas.into_iter().flatten().copied().fold(0.0, f64::max);
    singular(lambda, 2.0 * bound)
}

/// Rejects an empty grid, and λ that are negative or not finite.
pub(super) fn check_grid(lambdas: Option<&[f64]>) -> Result<()> {
    let Some(lambdas) = lambdas else { return Ok(()) };
    if lambdas.is_empty() {
        return Err(NONE);
    }
    lambdas.iter().try_for_each(|lambda| check_lambda(*lambda))
}

once!(RidgeFit::<T>::posterior, RidgeFit::<T>::into_statistics, <RidgeFit<T> as std::fmt::Display>::fmt);
