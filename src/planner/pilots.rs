//! Couplings without a closed form, by draws: as ratios to the closed form of another coupling.

use std::collections::{BTreeMap, BTreeSet};

use super::candidates::Candidate;
use super::evaluation::{closed, forecast};
use super::forecast::{Basis, Forecast};
use super::pairs::{Pairs, SIDE};
use super::ranking::{Scene, Scored};
use super::simulation::simulate;
use crate::error::Result;
use crate::threads;

/// Draws of couplings without a closed form.
const PILOT: usize = 48;
/// Draws of the best of them, anew.
const FINAL: usize = 192;
/// Proposals whose couplings without a closed form are simulated.
const FINALISTS: usize = 4;

/// Multiplications of a draw and its estimates beyond which there is none, and those of all draws of a candidate.
const MOST: f64 = 4e8;
const ALL: f64 = 2e9;

/// About how many multiplications a draw and its estimates take.
fn work(candidate: &Candidate) -> f64 {
    let (points, features) = (2.0 * SIDE as f64, candidate.cost.features as f64);
    // Drawing takes some fifty operations for each number.
    let drawn =
        50.0 * candidate.recipe.draws().iter().map(|omega| (omega.count() * omega.dim()) as f64).sum::<f64>();
    points * candidate.cost.multiplications + 0.25 * points * points * features + drawn
}

/// So many draws, or as many as their work allows, but at least 8.
fn affordable(candidate: &Candidate, draws: usize) -> usize {
    draws.min(((ALL / work(candidate)) as usize).max(8))
}

/// What a closed form says of a proposal.
struct Reference {
    /// Whether as many draws as a pilot has show it.
    reliable: bool,
    /// What it says of all pairs, and of those of pilots.
    all: Forecast,
    some: Forecast,
    /// ln E(K̂ − K)² of those of pilots.
    of_some: Vec<f64>,
}

impl Scene<'_> {
    /// Simulates the couplings without a closed form of the best proposals, and proposals that have none.
    pub fn pilots(&mut self, scored: &[Scored], open: Vec<Candidate>) -> Result<Vec<Scored>> {
        let mut finalists: Vec<usize> = Vec::new();
        for one in scored {
            if finalists.len() < FINALISTS && !finalists.contains(&one.candidate.proposal) {
                finalists.push(one.candidate.proposal);
            }
        }
        let known = |proposal: usize| scored.iter().any(|one| one.candidate.proposal == proposal);
        let open: Vec<Candidate> = (open.into_iter())
            .filter(|one| finalists.contains(&one.proposal) || !known(one.proposal))
            .collect();
        let some = Pairs::block(&self.planner.data, self.kernel.as_ref(), self.planner.seed)?;
        let proposals: BTreeSet<usize> = open.iter().map(|one| one.proposal).collect();
        let references = threads::map(proposals, |proposal| {
            let best = scored.iter().find(|one| one.candidate.proposal == proposal);
            Ok((proposal, best.map(|best| self.reference(best, &some)).transpose()?.flatten()))
        });
        let references: BTreeMap<usize, Option<Reference>> = references.into_iter().collect::<Result<_>>()?;
        let mut left_out = Vec::new();
        let open: Vec<&Candidate> = (open.iter())
            .filter(|one| {
                let rare =
                    matches!(references.get(&one.proposal), Some(Some(Reference { reliable: false, .. })));
                let why = if !some.is_in_range() {
                    "kernel values are so large that draws say nothing, and there is no closed form"
                } else if work(one) > MOST {
                    "draws would take long, and there is no closed form"
                } else if rare {
                    "draws too rare to be met rule its errors, and there is no closed form"
                } else {
                    return true;
                };
                left_out.push(((one.proposal, one.coupling), why.to_string()));
                false
            })
            .collect();
        let run = |candidate: &Candidate, draws: usize, stream: u64| -> Result<Scored> {
            let draws = affordable(candidate, draws);
            let seen = simulate(&candidate.recipe, &some, draws, self.seed_of(stream))?;
            let ln_squares = seen.ln_squares(&some);
            let own = forecast(&some, self.planner.loss, &ln_squares, seen.basis());
            let forecast = match references.get(&candidate.proposal) {
                Some(Some(Reference { all, some: few, of_some, .. })) => {
                    let uncertainties = some.ratio_uncertainty(&ln_squares, of_some);
                    own.rescaled(all, few, uncertainties).with_loss_of_pairs(self.planner.loss)
                }
                _ => own,
            };
            let draws = 0.5 * seen.gram().1;
            let forecast = forecast.widened(draws);
            Ok(Scored { candidate: candidate.clone(), ln_squares: None, draws, forecast })
        };
        let first = threads::map(&open, |candidate| run(candidate, PILOT, 1));
        let mut simulated = Vec::new();
        for (candidate, result) in open.iter().zip(first) {
            match result {
                Ok(one) => simulated.push(one),
                Err(error) => left_out.push(((candidate.proposal, candidate.coupling), error.to_string())),
            }
        }
        // The least of noisy errors is too small: those that might win are drawn again.
        let least =
            scored.iter().chain(&simulated).map(|one| one.forecast.loss.value).fold(f64::INFINITY, f64::min);
        let again = |one: &Scored| one.forecast.loss.value <= 1.25 * least;
        let simulated = threads::map(simulated, |one| match again(&one) {
            true => run(&one.candidate, FINAL, 2),
            false => Ok(one),
        });
        left_out.into_iter().for_each(|(kind, why)| self.leave_out(kind, why));
        simulated.into_iter().collect()
    }

    /// What the closed form of one coupling says of a proposal, against which others are simulated.
    fn reference(&self, best: &Scored, some: &Pairs) -> Result<Option<Reference>> {
        let (recipe, target) = (&best.candidate.recipe, &self.planner.target);
        let Some(of_some) = closed(recipe, target, some)? else { return Ok(None) };
        let affordable = some.is_in_range() && work(&best.candidate) <= MOST;
        let reliable = affordable && {
            let draws = self::affordable(&best.candidate, PILOT);
            simulate(recipe, some, draws, self.seed_of(0))?.is_reliable(some, &of_some)
        };
        let few = forecast(some, self.planner.loss, &of_some, Basis::ClosedForm);
        let all = match &best.ln_squares {
            Some(_) => Some(best.forecast),
            None => self.closed(&best.candidate)?.map(|(_, forecast)| forecast),
        };
        Ok(all.map(|all| Reference { reliable, all, some: few, of_some }))
    }
}
