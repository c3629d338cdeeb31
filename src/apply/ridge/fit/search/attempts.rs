//! [`Attempts`]: the maps that a search has tried.

use super::trial::RidgeTrial;
use crate::kernel::Lengthscale;

/// A map to try: the index of the part of the draw, and the lengthscales.
#[derive(Clone, PartialEq)]
pub(super) struct SearchPoint {
    pub part: usize,
    pub lengthscale: Lengthscale,
}

/// Maps that were tried, with their trials.
#[derive(Default)]
pub(super) struct Attempts {
    candidates: Vec<SearchPoint>,
    pub trials: Vec<RidgeTrial>,
    /// The place of the best trial, the first of equal ones.
    pub best: usize,
}

impl Attempts {
    pub fn push(&mut self, candidate: SearchPoint, trial: RidgeTrial) {
        if self.trials.get(self.best).is_some_and(|best| trial.is_better(best)) {
            self.best = self.trials.len();
        }
        self.candidates.push(candidate);
        self.trials.push(trial);
    }

    /// The best candidate with its trial.
    pub fn best(&self) -> (&SearchPoint, &RidgeTrial) {
        (&self.candidates[self.best], &self.trials[self.best])
    }

    /// The number by which candidates are compared; a candidate that could not be fitted ranks last.
    pub fn rank(&self, candidate: &SearchPoint) -> (bool, f64) {
        let place = self.candidates.iter().position(|other| other == candidate);
        place.map_or((true, f64::INFINITY), |place| self.trials[place].rank())
    }

    /// The lengthscales that were tried with the part of the best candidate.
    pub fn lengthscales(&self) -> impl Iterator<Item = &Lengthscale> + Clone {
        let part = self.candidates[self.best].part;
        self.candidates.iter().filter(move |other| other.part == part).map(|other| &other.lengthscale)
    }
}
