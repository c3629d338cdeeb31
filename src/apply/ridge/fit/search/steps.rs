//! [`Search`]: the steps of a search.

use std::collections::VecDeque;
use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError};

use super::super::folds::Folds;
use super::super::{Criterion, RidgeRows, RidgeSpectrum, RidgeStatistics, RidgeWarning, Standardisation};
use super::division::{FoldRows, draw_groups};
use super::errors::LambdaErrors;
use super::options::{Maps, RidgeSearch};
use super::repeated::repeated;
use super::trial::{RidgeFit, RidgeTrial, lost, warnings};
use super::warning;
use crate::data::lengthscale::{choose, median};
use crate::error::{Error, Result, check_positive};
use crate::frequency::Frequencies;
use crate::kernel::Lengthscale;
use crate::map::Map;
use crate::{Points, Real, progress, threads};

/// The least number of rows of a search.
const ROWS: usize = 4096;
/// The least number of rows for each feature.
const ROWS_PER_FEATURE: usize = 4;
/// The most points whose median distance is taken, and the most numbers in them.
const POINTS: usize = 1000;
const NUMBERS: usize = 1 << 24;
/// The default lengthscales are the median distance times 2^(k/2) for these k.
const HALVES: std::ops::RangeInclusive<i32> = -4..=4;

/// How often the default lengthscales may be extended, and by how many at a time, which is a factor of 4.
const ROUNDS: usize = 4;
const MORE: u8 = 4;

/// A search under way.
pub(super) struct Search<'s, 'a, T: Real> {
    options: &'s RidgeSearch<'a, T>,
    all: RidgeRows<'s, T>,
    /// The label of each row's group, if groups are left out.
    labels: Option<Vec<usize>>,
    inputs: Option<Standardisation>,
    /// The leading parts of the draw that maps share, one for each number of frequencies; none without a shared draw.
    parts: Vec<Arc<Frequencies>>,
    /// The rows to train on; `None` for all.
    train: Option<RidgeRows<'static, T>>,
    held_out: Option<RidgeRows<'static, T>>,
    /// The labels of the rows to train on, and their folds.
    train_labels: Option<Vec<usize>>,
    folds: Option<FoldRows>,
    /// Trials of which the watcher has not been told, and the errors of failed ones.
    finished: Mutex<VecDeque<Result<RidgeTrial>>>,
    /// The number of trials of which the watcher has been told.
    done: Mutex<usize>,
    /// The number of all trials, as far as it is known.
    total: usize,
}

/// The λ for all rows with its error, the λ among which it was chosen, and warnings.
type ChosenLambda = ((f64, f64), Vec<f64>, Vec<RidgeWarning>);

/// A map to try: the part of the draw, and its lengthscales.
#[derive(Clone)]
struct SearchPoint {
    part: usize,
    lengthscale: Lengthscale,
}

/// Maps that were tried, with their trials.
#[derive(Default)]
struct Attempts {
    candidates: Vec<SearchPoint>,
    trials: Vec<RidgeTrial>,
    /// The place of the best trial, the first of equal ones.
    best: usize,
}

impl Attempts {
    fn push(&mut self, candidate: SearchPoint, trial: RidgeTrial) {
        if self.trials.get(self.best).is_some_and(|best| trial.is_better(best)) {
            self.best = self.trials.len();
        }
        self.candidates.push(candidate);
        self.trials.push(trial);
    }

    /// The best candidate with its trial.
    fn best(&self) -> (&SearchPoint, &RidgeTrial) {
        (&self.candidates[self.best], &self.trials[self.best])
    }

    /// The lengthscales that were tried with the part of the best candidate.
    fn lengthscales(&self) -> impl Iterator<Item = &Lengthscale> + Clone {
        let part = self.candidates[self.best].part;
        self.candidates.iter().filter(move |other| other.part == part).map(|other| &other.lengthscale)
    }

    /// Candidates beyond the default lengthscales if the best of those lies at an end. If none is better than the mean of the
    /// targets, they are shorter ones. If only rounding bounds λ for the longest, there are no longer ones.
    fn beyond(&self) -> Vec<SearchPoint> {
        let (best, trial) = self.best();
        if trial.is_constant() {
            return Vec::new();
        }
        let (least, largest) = self.lengthscales().fold((f64::INFINITY, 0.0f64), |(least, largest), ell| {
            (least.min(ell.at(0)), largest.max(ell.at(0)))
        });
        let (from, power) = match best.lengthscale.at(0) {
            ell if ell == least || trial.is_hopeless() => (least, -0.5),
            ell if ell == largest && !trial.is_at_rounding() => (largest, 0.5),
            _ => return Vec::new(),
        };
        let of = |k: u8| (from * 2f64.powf(power * f64::from(k))).into();
        (1..=MORE).map(|k| SearchPoint { lengthscale: of(k), ..*best }).collect()
    }
}

impl<'s, 'a, T: Real> Search<'s, 'a, T> {
    /// A search on rows, with the label of each if groups are left out.
    pub fn new(
        options: &'s RidgeSearch<'a, T>,
        all: RidgeRows<'s, T>,
        labels: Option<Vec<usize>>,
    ) -> Result<Self> {
        if options.criterion.names_training() {
            let what = "training data of its own for the criterion of a search, which knows its rows: LeaveOneOut, LeaveGroupsOut, Folds or \
                        Forward";
            return Err(Error::Unsupported { what });
        }
        let inputs = if options.standardise && !all.x.is_sparse() {
            Some(standardisation(&options.criterion, &all)?)
        } else {
            None
        };
        Ok(Search {
            options,
            all,
            labels,
            inputs,
            parts: Vec::new(),
            train: None,
            held_out: None,
            train_labels: None,
            folds: None,
            finished: Mutex::default(),
            done: Mutex::default(),
            total: 0,
        })
    }

    pub fn run(mut self) -> Result<RidgeFit<T>> {
        let candidates = self.grid()?;
        self.choose_rows(self.features(&candidates)?)?;
        let d = self.all.x.ncols();
        let steps = d.saturating_mul(2).saturating_mul(self.options.sweeps);
        self.total = steps.saturating_add(candidates.len());
        let mut attempts = Attempts::default();
        let failed = self.attempt(candidates, &mut attempts)?;
        if let (true, Some(error)) = (attempts.trials.is_empty(), failed.first()) {
            return Err(error.clone());
        }
        if self.options.lengthscales.is_none() {
            self.extend(&mut attempts)?;
        }
        let mut factor: f64 = 2.0;
        for _ in 0..self.options.sweeps {
            let before = attempts.best;
            for k in 0..d {
                let steps = [factor, factor.recip()].map(|factor| self.step(attempts.best().0, k, factor));
                self.attempt(steps.into(), &mut attempts)?;
            }
            if attempts.best == before {
                factor = factor.sqrt();
            }
        }
        self.fit(attempts, &failed)
    }

    /// Tries lengthscales [beyond](Attempts::beyond) the default ones. Lengthscales for which no map can be made or fitted are
    /// left out.
    fn extend(&mut self, attempts: &mut Attempts) -> Result<()> {
        for _ in 0..ROUNDS {
            let mut more = attempts.beyond();
            more.retain(|candidate| self.map(candidate).is_ok());
            self.total = self.total.saturating_add(more.len());
            self.attempt(more, attempts)?;
        }
        Ok(())
    }

    /// All numbers of frequencies with all lengthscales.
    fn grid(&mut self) -> Result<Vec<SearchPoint>> {
        let lengthscales = match &self.options.lengthscales {
            Some(lengthscales) => lengthscales.clone(),
            None => {
                let median = self.median()?;
                HALVES.map(|k| (median * 2f64.powf(0.5 * f64::from(k))).into()).collect()
            }
        };
        check_positive("the number of lengthscales", lengthscales.len())?;
        lengthscales.iter().try_for_each(|lengthscale| lengthscale.check_dim(self.all.x.ncols()))?;
        self.parts = self.parts()?;
        let of =
            |part: usize| lengthscales.iter().map(move |ell| SearchPoint { part, lengthscale: ell.clone() });
        Ok((0..self.parts.len().max(1)).flat_map(of).collect())
    }

    /// The leading parts of the draw that maps share.
    fn parts(&self) -> Result<Vec<Arc<Frequencies>>> {
        let (omega, counts) = match (&self.options.maps, &self.options.frequencies) {
            (Maps::Of(_), None) => return Ok(Vec::new()),
            (Maps::On(omega, _), None) => return Ok(vec![omega.clone()]),
            (Maps::On(omega, _), Some(counts)) => (omega, counts),
            (Maps::Of(_), Some(_)) => {
                let what = "numbers of frequencies: the maps of this search have their own";
                return Err(Error::Unsupported { what });
            }
        };
        check_positive("the number of numbers of frequencies", counts.len())?;
        counts.iter().try_for_each(|count| check_positive("the number of frequencies m", *count))?;
        let part = |count: &usize| {
            if *count >= omega.m() { Ok(omega.clone()) } else { omega.leading(*count).map(Arc::new) }
        };
        counts.iter().map(part).collect()
    }

    /// The most features of a map. All maps are made once before any is tried, so that one that cannot be made is refused at once,
    /// unless it was not asked for and another can be made. They are made one at a time, since each holds scaled frequencies.
    fn features(&self, candidates: &[SearchPoint]) -> Result<usize> {
        let (mut most, mut failed) = (None, Ok(0));
        for candidate in candidates {
            progress::check()?;
            match self.map(candidate) {
                Ok(map) => most = most.max(Some(map.feature_dim())),
                Err(error) if self.options.lengthscales.is_some() || error == Error::Cancelled => {
                    return Err(error);
                }
                Err(error) => failed = failed.and(Err(error)),
            }
        }
        most.map_or(failed, Ok)
    }

    /// The median distance of inputs as the maps see them.
    fn median(&self) -> Result<f64> {
        let x = &self.all.x;
        let most = x.nrows().min(POINTS).min(NUMBERS / x.ncols().max(1)).max(2);
        let rows = if x.nrows() > most { Some(x.select(&self.draw(x.nrows(), most, 0))?) } else { None };
        let points = rows.as_ref().map_or_else(|| Points::from(x), Points::from);
        let points = points.to_dense()?;
        match &self.inputs {
            Some(inputs) => median(&inputs.apply(&points)?, most, self.options.seed),
            None => median(&points, most, self.options.seed),
        }
    }

    /// Chooses the rows of the search for maps of up to so many features.
    fn choose_rows(&mut self, features: usize) -> Result<()> {
        let n = self.all.x.nrows();
        let default = ROWS.max(features.saturating_mul(ROWS_PER_FEATURE));
        let count = self.options.rows.unwrap_or(default).min(n);
        if count < 2 {
            let (name, value) = ("the number of rows of a search", count as f64);
            return Err(Error::Parameter { name, value, domain: "at least 2" });
        }
        let rows = match &self.labels {
            Some(labels) => draw_groups(labels, count, (self.options.seed, 1))?,
            None => self.draw(n, count, 1),
        };
        let Criterion::HeldOutShare(share) = self.options.criterion else {
            self.folds = FoldRows::of(&self.options.criterion, rows.len(), self.options.seed)?;
            self.train_labels =
                self.labels.as_ref().map(|labels| rows.iter().map(|row| labels[*row]).collect());
            self.train = if rows.len() < n { Some(self.all.select(&rows)?) } else { None };
            return Ok(());
        };
        let out = (share * count as f64).round() as usize;
        if !(share > 0.0 && share < 1.0 && out > 0 && out < count) {
            let domain = "above 0 and below 1, with rows on both sides";
            return Err(Error::Parameter {
                name: "the share of rows that are held out",
                value: share,
                domain,
            });
        }
        let chosen = self.draw(count, out, 2);
        let mut held_out = vec![false; count];
        chosen.iter().for_each(|i| held_out[*i] = true);
        let part = |wanted: bool| {
            let part = rows.iter().zip(&held_out).filter(|(_, out)| **out == wanted);
            self.all.select(&part.map(|(row, _)| *row).collect::<Vec<_>>())
        };
        let (train, held_out) = (part(false)?, part(true)?);
        (self.train, self.held_out) = (Some(train), Some(held_out));
        Ok(())
    }

    /// Draws `count` of the numbers below n, ascending, from a stream of their own.
    fn draw(&self, n: usize, count: usize, stream: u64) -> Vec<usize> {
        choose(n, count, &mut crate::rng_of_step(self.options.seed, stream))
    }

    fn map(&self, candidate: &SearchPoint) -> Result<Map<T>> {
        let lengthscale = candidate.lengthscale.clone();
        match &self.options.maps {
            Maps::Of(make) => make(lengthscale),
            Maps::On(_, make) => make(self.parts[candidate.part].clone(), lengthscale),
        }
    }

    /// The candidate with lengthscale `k` multiplied by a factor.
    fn step(&self, from: &SearchPoint, k: usize, factor: f64) -> SearchPoint {
        let mut scales: Vec<f64> = (0..self.all.x.ncols()).map(|k| from.lengthscale.at(k)).collect();
        scales[k] *= factor;
        SearchPoint { lengthscale: scales.into(), ..*from }
    }

    /// Tries maps, in parallel, and returns the errors of maps that could not be fitted, for example because sums overflow. The
    /// others are compared without them.
    fn attempt(&self, candidates: Vec<SearchPoint>, attempts: &mut Attempts) -> Result<Vec<Error>> {
        let tried = threads::map(&candidates, |candidate| self.attempt_and_tell(candidate));
        self.tell()?;
        let mut failed = Vec::new();
        for (candidate, trial) in candidates.into_iter().zip(tried) {
            match trial? {
                Ok(trial) => attempts.push(candidate, trial),
                Err(error) => failed.push(error),
            }
        }
        Ok(failed)
    }

    /// Makes a trial and tells the watcher; gives the trial or the error with which it failed.
    ///
    /// # Errors
    /// [`Cancelled`](Error::Cancelled) if the watcher stops the search.
    fn attempt_and_tell(&self, candidate: &SearchPoint) -> Result<Result<RidgeTrial>> {
        let trial = match self.attempt_one(candidate) {
            Err(Error::Cancelled) => return Err(Error::Cancelled),
            trial => trial,
        };
        self.finished.lock().unwrap_or_else(PoisonError::into_inner).push_back(trial.clone());
        self.tell()?;
        Ok(trial)
    }

    fn attempt_one(&self, candidate: &SearchPoint) -> Result<RidgeTrial> {
        progress::check()?;
        let (map, train) = (self.map(candidate)?, self.training());
        let spectrum = self.spectrum(map.clone(), &train)?;
        progress::check()?;
        let lambdas = self.options.lambdas.as_deref();
        let Some(folds) = &self.folds else {
            return RidgeTrial::of(&spectrum, &self.criterion(train, self.training_labels()), lambdas);
        };
        let of = |(others, own): (Vec<usize>, &[usize])| {
            Ok((self.spectrum(map.clone(), &train.select(&others)?)?, train.select(own)?))
        };
        let folds = Folds::of_rows(folds.splits().map(of).collect::<Result<_>>()?);
        progress::check()?;
        let errors = |lambdas: &[f64]| folds.errors(&spectrum.shrinkage.varying(), lambdas);
        RidgeTrial::by(&spectrum, &self.options.criterion, &errors, self.options.lambdas.as_deref())
    }

    /// Tells the watcher of finished trials, in the order in which they were finished. A thread that finds another one telling
    /// leaves them to it. It must not wait: a watcher that works in parallel may run another trial on its own thread.
    fn tell(&self) -> Result<()> {
        let Ok(mut done) = self.done.try_lock() else { return Ok(()) };
        while let Some(trial) = self.next_finished() {
            *done += 1;
            let detail: &dyn Display = match &trial {
                Ok(trial) => trial,
                Err(error) => error,
            };
            progress::step_with("maps tried", *done, self.total, detail)?;
        }
        Ok(())
    }

    fn next_finished(&self) -> Option<Result<RidgeTrial>> {
        self.finished.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// The rows that maps are tried on.
    fn training(&self) -> RidgeRows<'_, T> {
        self.train.as_ref().map_or_else(|| self.all.borrowed(), RidgeRows::borrowed)
    }

    /// The labels of the rows that maps are tried on, if groups are left out.
    fn training_labels(&self) -> Option<&[usize]> {
        self.train_labels.as_deref()
    }

    /// The regressions of a map on some rows of positive weight, from the cheaper side.
    fn spectrum(&self, map: Map<T>, rows: &RidgeRows<'_, T>) -> Result<RidgeSpectrum<T>> {
        if rows.x.nrows() < map.feature_dim() {
            RidgeSpectrum::of_few_rows(map, self.inputs.clone(), self.options.intercept, rows)
        } else {
            self.statistics(map, rows)?.spectrum()
        }
    }

    fn statistics(&self, map: Map<T>, rows: &RidgeRows<'_, T>) -> Result<RidgeStatistics<T>> {
        let mut statistics = RidgeStatistics::new(map, rows.targets.columns.ncols())?;
        if let Some(inputs) = &self.inputs {
            statistics = statistics.with_standardisation(inputs.clone())?;
        }
        if !self.options.intercept {
            statistics = statistics.without_intercept();
        }
        statistics.intake.take_in(rows.x.view(), &rows.targets)?;
        Ok(statistics)
    }

    /// The criterion for regressions of these rows, which have these labels if groups are left out.
    fn criterion<'c>(&'c self, rows: RidgeRows<'c, T>, labels: Option<&'c [usize]>) -> Criterion<'c, T> {
        match (&self.options.criterion, &self.held_out) {
            (Criterion::LeaveOneOut, _) => rows.left_out(),
            (Criterion::LeaveGroupsOut(_), _) => {
                Criterion::leave_groups_out(rows.x, rows.targets, labels.unwrap_or(&[]))
            }
            (Criterion::HeldOut { x, targets }, _) => Criterion::held_out(x, targets),
            (_, Some(held_out)) => held_out.borrowed().held_out(),
            (Criterion::LogEvidence, _) => Criterion::LogEvidence,
            (Criterion::LogEvidenceWithNoise(variance), _) => Criterion::LogEvidenceWithNoise(*variance),
            _ => Criterion::GeneralisedCrossValidation,
        }
    }

    /// Fits the best map to all rows; `failed` are the errors of maps of the grid.
    fn fit(&self, attempts: Attempts, failed: &[Error]) -> Result<RidgeFit<T>> {
        let (candidate, trial) = attempts.best();
        progress::check()?;
        let spectrum = self.spectrum(self.map(candidate)?, &self.all)?;
        progress::check()?;
        let (choice, lambdas, of_lambda) = self.choose(&spectrum, trial)?;
        let scale = spectrum.scale_warning(&self.all);
        let mut warnings: Vec<RidgeWarning> = scale.into_iter().chain(of_lambda).collect();
        warnings.extend(warning::failed(failed));
        if !trial.is_constant() {
            warnings.extend(warning::lengthscales(&candidate.lengthscale, attempts.lengthscales()));
        }
        if !self.options.criterion.is_evidence() {
            warnings.extend(repeated(&self.all, self.labels.as_deref())?);
        }
        let best = attempts.best;
        RidgeFit::new(attempts.trials, best, spectrum, (choice, &lambdas), warnings)
    }

    /// The λ for all rows with its error, the λ among which it is chosen, and warnings.
    fn choose(&self, spectrum: &RidgeSpectrum<T>, trial: &RidgeTrial) -> Result<ChosenLambda> {
        let (given, resolution) = (self.options.lambdas.as_deref(), spectrum.resolution());
        use Criterion::{Folds, Forward, HeldOutShare};
        if let HeldOutShare(_) | Folds(_) | Forward { .. } = self.options.criterion {
            // All rows contain the held-out ones, so that none is left to choose λ by; folds have been tried already.
            let (lambda, error) = trial.choice().ok_or_else(|| lost(given, resolution))?;
            return Ok((
                (lambda.max(2.0 * resolution), error),
                trial.lambdas.clone(),
                trial.warnings.clone(),
            ));
        }
        let (rows, all) = (self.training(), self.criterion(self.all.borrowed(), self.labels.as_deref()));
        let labels = self.training_labels();
        let errors = LambdaErrors::of(spectrum, given, &|lambdas| match self.options.criterion {
            Criterion::LeaveOneOut => Ok(spectrum.errors_left_out(&rows, lambdas)?.sums),
            Criterion::LeaveGroupsOut(_) => {
                Ok(spectrum.errors_of_groups(&rows, labels.unwrap_or(&[]), lambdas)?.sums)
            }
            _ => spectrum.errors(&all, lambdas),
        })?;
        let choice = errors.choice().ok_or_else(|| lost(given, resolution))?;
        if trial.is_constant() {
            return Ok((choice, errors.lambdas, trial.warnings.clone()));
        }
        let warnings = warnings(spectrum, &self.criterion(rows.borrowed(), labels), &errors);
        Ok((choice, errors.lambdas, warnings))
    }
}

/// The standardisation of the inputs of a search: of all rows, or for blocks in order of the first one, unless a column is constant
/// there that varies later.
fn standardisation<T: Real>(criterion: &Criterion<'_, T>, all: &RidgeRows<'_, T>) -> Result<Standardisation> {
    let of =
        |rows: &RidgeRows<'_, T>| Standardisation::of_weighted(&rows.x.to_dense()?, rows.targets.weights());
    let of_all = of(all)?;
    let Criterion::Forward { blocks, .. } = criterion else { return Ok(of_all) };
    let first: Vec<usize> = (0..all.x.nrows() / (*blocks).max(1)).collect();
    if first.is_empty() {
        return Ok(of_all);
    }
    let of_first = of(&all.select(&first)?)?;
    Ok(if of_first.constant_columns() == of_all.constant_columns() { of_first } else { of_all })
}
