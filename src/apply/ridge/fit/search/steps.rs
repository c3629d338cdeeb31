//! [`Search`]: the steps of a search.

use std::collections::VecDeque;
use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError};

use super::super::folds::Folds;
use super::super::{Criterion, RidgeRows, RidgeSpectrum, RidgeStatistics, Standardisation};
use super::attempts::{Attempts, SearchPoint};
use super::division::FoldRows;
use super::errors::LambdaSharing;
use super::growth::Growth;
use super::options::{Maps, RidgeSearch};
use super::trial::{RidgeFit, RidgeTrial};
use crate::error::{Error, Result, check_positive};
use crate::frequency::Frequencies;
use crate::kernel::Lengthscale;
use crate::map::Map;
use crate::{Real, progress, threads};

/// A search under way.
pub(super) struct Search<'s, 'a, T: Real> {
    pub options: &'s RidgeSearch<'a, T>,
    pub all: RidgeRows<'s, T>,
    /// The label of each row's group, if groups are left out.
    pub labels: Option<Vec<usize>>,
    /// Whether targets are numbers, not labels of classes.
    pub are_numbers: bool,
    pub inputs: Option<Standardisation>,
    pub share: LambdaSharing,
    /// The leading parts of the draw that maps share, one for each number of frequencies; none without a shared draw.
    pub parts: Vec<Arc<Frequencies>>,
    /// The rows to train on; `None` for all.
    pub train: Option<RidgeRows<'static, T>>,
    pub held_out: Option<RidgeRows<'static, T>>,
    /// The labels of the rows to train on, and their folds.
    pub train_labels: Option<Vec<usize>>,
    pub folds: Option<FoldRows>,
    /// Finished trials, and the errors of failed ones, that have not been reported to the watcher.
    finished: Mutex<VecDeque<Result<RidgeTrial>>>,
    /// The number of trials that have been reported to the watcher.
    done: Mutex<usize>,
    /// The number of all trials that are planned so far.
    pub total: usize,
}

impl<'s, 'a, T: Real> Search<'s, 'a, T> {
    /// A search on these rows, with the label of each row's group if groups are left out. `share` says how λ are chosen by
    /// default: one for each target if targets are numbers, and one for all classes.
    pub fn new(
        options: &'s RidgeSearch<'a, T>,
        all: RidgeRows<'s, T>,
        (labels, share): (Option<Vec<usize>>, LambdaSharing),
    ) -> Result<Self> {
        if options.criterion.names_training() {
            let what = "training data in the criterion of a search, which is given them already: use LeaveOneOut, \
                        LeaveGroupsOut, Folds or Forward";
            return Err(Error::Unsupported { what });
        }
        let inputs = if options.standardise && !all.x.is_sparse() {
            Some(Standardisation::of_weighted(&all.x.to_dense()?, all.targets.weights())?)
        } else {
            None
        };
        Ok(Search {
            options,
            all,
            labels,
            are_numbers: share == LambdaSharing::PerTarget,
            inputs,
            share: options.share.unwrap_or(share),
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
        let scales = if self.options.lengthscales.is_none() { Some(self.scales()?) } else { None };
        let lengthscales: Vec<Lengthscale> = match (&self.options.lengthscales, &scales) {
            (Some(given), _) => given.clone(),
            (None, Some(scales)) => {
                Growth::<f64>::default().next().into_iter().map(|k| scales.at(k)).collect()
            }
            (None, None) => Vec::new(),
        };
        let candidates = self.grid(&lengthscales)?;
        self.choose_rows(self.features(&candidates)?)?;
        let steps = self.all.x.ncols().saturating_mul(2).saturating_mul(self.options.sweeps);
        self.total = steps.saturating_add(candidates.len());
        let mut attempts = Attempts::default();
        let failed = self.attempt(candidates, &mut attempts)?;
        if let (true, Some(error)) = (attempts.trials.is_empty(), failed.first()) {
            return Err(error.clone());
        }
        let at_limit = match scales {
            Some(scales) => self.extend(&scales, &mut attempts)?,
            None => [false; 2],
        };
        self.sweep(&mut attempts)?;
        self.fit(attempts, &failed, at_limit)
    }

    /// All numbers of frequencies with all lengthscales.
    fn grid(&mut self, lengthscales: &[Lengthscale]) -> Result<Vec<SearchPoint>> {
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
            (Maps::Of(_) | Maps::Recipe(_), None) => return Ok(Vec::new()),
            (Maps::On(omega, _), None) => return Ok(vec![omega.clone()]),
            (Maps::On(omega, _), Some(counts)) => (omega, counts),
            (Maps::Of(_) | Maps::Recipe(_), Some(_)) => {
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

    /// The largest number of features of a map. All maps are made once before any is tried, one at a time, since each holds
    /// scaled frequencies. A map that cannot be made is thus refused at once, except if it belongs to a default grid and another
    /// can be made.
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

    pub fn map(&self, candidate: &SearchPoint) -> Result<Map<T>> {
        let lengthscale = candidate.lengthscale.clone();
        match &self.options.maps {
            Maps::Of(make) => make(lengthscale),
            Maps::Recipe(recipe) => recipe.with_lengthscale(&lengthscale)?.build(),
            Maps::On(_, make) => make(self.parts[candidate.part].clone(), lengthscale),
        }
    }

    /// Tries maps in parallel, and returns the errors of maps that could not be fitted, for example because sums overflow. The
    /// other maps are compared without them.
    pub fn attempt(&self, candidates: Vec<SearchPoint>, attempts: &mut Attempts) -> Result<Vec<Error>> {
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

    /// Makes a trial and reports it to the watcher; returns the trial, or the error with which it failed.
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
        let grid = (self.options.lambdas.as_deref(), self.share);
        let Some(folds) = &self.folds else {
            return RidgeTrial::of(&spectrum, &self.criterion(train, self.training_labels()), grid);
        };
        let of = |(others, own): (Vec<usize>, &[usize])| {
            Ok((self.spectrum(map.clone(), &train.select(&others)?)?, train.select(own)?))
        };
        let folds = Folds::of_rows(folds.splits().map(of).collect::<Result<_>>()?);
        progress::check()?;
        let errors = |lambdas: &[f64]| folds.errors(&spectrum.shrinkage.varying(), lambdas);
        RidgeTrial::by(&spectrum, &self.options.criterion, &errors, grid)
    }

    /// Reports finished trials to the watcher, in the order in which they were finished. If another thread is reporting, that
    /// thread also reports the trials of this one. This thread must not wait: a watcher that works in parallel may run another
    /// trial on it.
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
    pub fn training(&self) -> RidgeRows<'_, T> {
        self.train.as_ref().map_or_else(|| self.all.borrowed(), RidgeRows::borrowed)
    }

    /// The labels of the rows that maps are tried on, if groups are left out.
    pub fn training_labels(&self) -> Option<&[usize]> {
        self.train_labels.as_deref()
    }

    /// The regressions of a map on rows of positive weight: from a decomposition of rows or products of features, whichever cost less.
    pub fn spectrum(&self, map: Map<T>, rows: &RidgeRows<'_, T>) -> Result<RidgeSpectrum<T>> {
        if rows.x.nrows() < map.feature_dim() {
            RidgeSpectrum::of_few_rows(map, self.inputs.clone(), self.options.intercept, rows)
        } else {
            self.statistics(map, rows)?.spectrum()
        }
    }

    pub fn statistics(&self, map: Map<T>, rows: &RidgeRows<'_, T>) -> Result<RidgeStatistics<T>> {
        rows.statistics(map, self.inputs.as_ref(), self.options.intercept)
    }

    /// The criterion for regressions of these rows, with the labels of their groups if groups are left out.
    pub fn criterion<'c>(&'c self, rows: RidgeRows<'c, T>, labels: Option<&'c [usize]>) -> Criterion<'c, T> {
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
}
