//! [`Search`]: the steps of a search.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::super::{Criterion, LambdaChoice, RidgeStatistics, Sample, Standardisation};
use super::chosen::ChosenRows;
use super::options::{RidgeSearch, SearchCriterion, SearchProgress};
use super::trial::{RidgeFit, RidgeTrial, grid_of, lost};
use crate::data::Statistics;
use crate::data::lengthscale::{choose, median};
use crate::error::{Error, Result, check_positive};
use crate::kernel::Lengthscale;
use crate::map::Map;
use crate::rng;
use crate::{Points, Real, threads};

/// Rows of a search, at least.
const ROWS: usize = 4096;
/// Rows for each feature, at least.
const ROWS_PER_FEATURE: usize = 4;
/// Points of which the median distance is taken, and numbers in them, at most.
const POINTS: usize = 1000;
const NUMBERS: usize = 1 << 24;
/// The default lengthscales are the median distance times 2^(k/2) for these k.
const HALVES: std::ops::RangeInclusive<i32> = -4..=4;

/// A search under way.
pub(super) struct Search<'s, 'a, T: Real> {
    options: &'s RidgeSearch<'a, T>,
    all: Sample<'s, T>,
    inputs: Option<Standardisation>,
    /// The rows to train on, if they are not all.
    train: Option<ChosenRows<T>>,
    held_out: Option<ChosenRows<T>>,
    /// Trials that are not reported yet.
    finished: Mutex<VecDeque<RidgeTrial>>,
    /// Trials that were reported, and all that will be.
    done: AtomicUsize,
    total: usize,
}

/// A map to try: its number of frequencies, and its lengthscales.
#[derive(Clone)]
struct Candidate {
    frequencies: usize,
    lengthscale: Lengthscale,
}

impl<'s, 'a, T: Real> Search<'s, 'a, T> {
    pub fn new(options: &'s RidgeSearch<'a, T>, all: Sample<'s, T>) -> Result<Self> {
        let inputs =
            if options.standardise && !all.x.is_sparse() { Some(standardisation(&all)?) } else { None };
        let (done, finished) = (AtomicUsize::new(0), Mutex::default());
        Ok(Search { options, all, inputs, train: None, held_out: None, finished, done, total: 0 })
    }

    pub fn run(mut self) -> Result<RidgeFit<T>> {
        let mut candidates = self.grid()?;
        let tries = self.all.x.ncols().saturating_mul(2).saturating_mul(self.options.sweeps);
        self.total = candidates.len().saturating_add(tries);
        let maps = candidates.iter().map(|candidate| self.map(candidate)).collect::<Result<Vec<_>>>()?;
        self.choose_rows(maps.iter().map(Map::feature_dim).max().unwrap_or(0))?;
        let mut trials = self.attempt(maps)?;
        let mut best = least(&trials);
        let mut factor: f64 = 2.0;
        for _ in 0..self.options.sweeps {
            let before = best;
            for k in 0..self.all.x.ncols() {
                let steps = [factor, factor.recip()].map(|factor| self.step(&candidates[best], k, factor));
                let maps = steps.iter().map(|candidate| self.map(candidate)).collect::<Result<Vec<_>>>()?;
                trials.extend(self.attempt(maps)?);
                candidates.extend(steps);
                best = least(&trials);
            }
            if best == before {
                factor = factor.sqrt();
            }
        }
        self.fit(&candidates[best], trials, best)
    }

    /// All numbers of frequencies with all lengthscales.
    fn grid(&self) -> Result<Vec<Candidate>> {
        let lengthscales = match &self.options.lengthscales {
            Some(lengthscales) => lengthscales.clone(),
            None => {
                let median = self.median()?;
                HALVES.map(|k| (median * 2f64.powf(0.5 * f64::from(k))).into()).collect()
            }
        };
        check_positive("the number of lengthscales", lengthscales.len())?;
        lengthscales.iter().try_for_each(|lengthscale| lengthscale.check_dim(self.all.x.ncols()))?;
        let counts = match (&self.options.frequencies, self.options.shared) {
            (None, _) => &[usize::MAX][..],
            (Some(counts), Some(_)) => counts,
            (Some(_), None) => {
                let what = "numbers of frequencies: the maps of this search have their own";
                return Err(Error::Unsupported { what });
            }
        };
        check_positive("the number of numbers of frequencies", counts.len())?;
        counts.iter().try_for_each(|count| check_positive("the number of frequencies m", *count))?;
        let of = |frequencies: &usize| {
            let frequencies = *frequencies;
            lengthscales.iter().map(move |ell| Candidate { frequencies, lengthscale: ell.clone() })
        };
        Ok(counts.iter().flat_map(of).collect())
    }

    /// The median distance of inputs as the maps see them.
    fn median(&self) -> Result<f64> {
        let x = &self.all.x;
        let most = x.nrows().min(POINTS).min(NUMBERS / x.ncols().max(1)).max(2);
        let rows = if x.nrows() > most { Some(x.select(&self.draw(x.nrows(), most, 0))?) } else { None };
        let points = rows.as_ref().map_or_else(|| Points::from(x), Points::from);
        let points = points.to_dense();
        match &self.inputs {
            Some(inputs) => median(&inputs.apply(&points)?, most, &mut rng(self.options.seed)),
            None => median(&points, most, &mut rng(self.options.seed)),
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
        let rows = self.draw(n, count, 1);
        let SearchCriterion::HeldOut { share } = self.options.criterion else {
            self.train = if count < n { Some(self.all.select(&rows)?) } else { None };
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

    /// So many of the numbers below n, ascending, from a stream of their own.
    fn draw(&self, n: usize, count: usize, stream: u64) -> Vec<usize> {
        choose(n, count, &mut crate::rng_of_step(self.options.seed, stream))
    }

    fn map(&self, candidate: &Candidate) -> Result<Map<T>> {
        (self.options.make)(candidate.frequencies, candidate.lengthscale.clone())
    }

    /// With one lengthscale multiplied by a factor.
    fn step(&self, from: &Candidate, k: usize, factor: f64) -> Candidate {
        let mut scales: Vec<f64> = (0..self.all.x.ncols()).map(|k| from.lengthscale.at(k)).collect();
        scales[k] *= factor;
        Candidate { lengthscale: scales.into(), ..*from }
    }

    /// Tries maps, in parallel.
    fn attempt(&self, maps: Vec<Map<T>>) -> Result<Vec<RidgeTrial>> {
        let tried = threads::map(maps, |map| self.attempt_one(map));
        self.report();
        tried.into_iter().collect()
    }

    fn attempt_one(&self, map: Map<T>) -> Result<RidgeTrial> {
        let train = self.training();
        let statistics = self.statistics(map, &train)?;
        let spectrum = statistics.spectrum()?;
        let trial = RidgeTrial::of(&spectrum, &self.criterion(train), self.options.lambdas.as_deref())?;
        if self.options.progress.is_some() {
            self.finished.lock().unwrap_or_else(PoisonError::into_inner).push_back(trial.clone());
            self.report();
        }
        Ok(trial)
    }

    /// Reports finished trials, in the order in which they were finished. A thread that finds another one reporting leaves them
    /// to it: waiting could be for itself, since a report that works in parallel may take up another trial meanwhile.
    fn report(&self) {
        let Some(report) = &self.options.progress else { return };
        let Ok(mut report) = report.try_lock() else { return };
        while let Some(trial) = self.next_finished() {
            let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
            report(&SearchProgress { done, total: self.total, trial: &trial });
        }
    }

    fn next_finished(&self) -> Option<RidgeTrial> {
        self.finished.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// The rows that maps are tried on.
    fn training(&self) -> Sample<'_, T> {
        self.train.as_ref().map_or_else(|| self.all.borrowed(), ChosenRows::sample)
    }

    fn statistics(&self, map: Map<T>, rows: &Sample<'_, T>) -> Result<RidgeStatistics<T>> {
        let mut statistics = RidgeStatistics::new(map, rows.targets.ncols())?;
        if let Some(inputs) = &self.inputs {
            statistics = statistics.standardised(inputs.clone())?;
        }
        if !self.options.intercept {
            statistics = statistics.without_intercept();
        }
        statistics.intake.take_in(rows.x.view(), rows.targets, rows.weights)?;
        Ok(statistics)
    }

    /// The criterion for regressions of these rows.
    fn criterion<'c>(&'c self, train: Sample<'c, T>) -> Criterion<'c, T> {
        match (self.options.criterion, &self.held_out) {
            (SearchCriterion::LeaveOneOut, _) => Criterion::LeaveOneOut(train),
            (SearchCriterion::LogEvidence, _) => Criterion::LogEvidence,
            (SearchCriterion::HeldOut { .. }, Some(held_out)) => Criterion::HeldOut(held_out.sample()),
            _ => Criterion::GeneralisedCrossValidation,
        }
    }

    /// The best map on all rows.
    fn fit(&self, candidate: &Candidate, trials: Vec<RidgeTrial>, best: usize) -> Result<RidgeFit<T>> {
        let statistics = self.statistics(self.map(candidate)?, &self.all)?;
        let (spectrum, warning) = (statistics.spectrum()?, statistics.scale_warning());
        let lost = || lost(self.options.lambdas.as_deref(), spectrum.resolution());
        let choice = match self.options.criterion {
            // Of rows that were held out, none is left that all of them do not contain.
            SearchCriterion::HeldOut { .. } => {
                let choice = trials[best].choice().ok_or_else(lost)?;
                LambdaChoice { lambda: choice.lambda.max(2.0 * spectrum.resolution()), ..choice }
            }
            _ => {
                let lambdas = grid_of(&spectrum, self.options.lambdas.as_deref());
                let errors = match self.options.criterion {
                    SearchCriterion::LeaveOneOut => spectrum.errors_left_out(&self.training(), &lambdas)?,
                    _ => spectrum.errors(&self.criterion(self.all.borrowed()), &lambdas)?,
                };
                LambdaChoice::least(&lambdas, &errors).map_err(|_| lost())?
            }
        };
        RidgeFit::new(trials, best, spectrum, choice, warning)
    }
}

/// The trial with the least error; of equal ones, the first.
fn least(trials: &[RidgeTrial]) -> usize {
    let mut best = 0;
    for (i, trial) in trials.iter().enumerate() {
        if trial.error() < trials[best].error() {
            best = i;
        }
    }
    best
}

/// Of all rows, with their weights.
fn standardisation<T: Real>(all: &Sample<'_, T>) -> Result<Standardisation> {
    let x = all.x.to_dense();
    let Some(weights) = all.weights else { return Standardisation::of(&x) };
    let mut statistics = Statistics::new(x.ncols())?;
    statistics.update_weighted(&x, weights)?;
    Standardisation::of_statistics(&statistics)
}
