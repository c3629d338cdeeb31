//! Couplings without a closed form, by draws: as ratios to the closed form of another coupling.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::candidates::Candidate;
use super::problem::Problem;
use super::ranking::Scored;
use super::steps::steps;
use crate::error::Result;
use crate::planner::forecasts::{
    Basis, Forecast, Pairs, SIDE, Simulated, closed, forecast, or_infinite, simulate,
};
use crate::progress;

/// Why there is no pilot.
const OUT_OF_RANGE: &str = "kernel values are so large that draws say nothing, and there is no closed form";

/// Draws of couplings without a closed form.
const PILOT: usize = 48;
/// Draws of the best of them, anew.
const FINAL: usize = 192;
/// Proposals whose couplings without a closed form are simulated.
const FINALISTS: usize = 4;

/// How often the frequencies are halved of a recipe whose draws do not show its errors, or take long.
const DIVISIONS: usize = 3;

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
    /// By what the number of frequencies is divided so that draws show what the closed form says; `None` if none of those tried is enough.
    divisor: Option<usize>,
    /// What it says of all pairs, and of those of pilots.
    all: Forecast,
    some: Forecast,
    /// ln E(K̂ − K)² of those of pilots.
    of_some: Vec<f64>,
}

impl Problem<'_> {
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
        let references = steps("recipes compared with draws", proposals, |proposal| {
            let best = scored.iter().find(|one| one.candidate.proposal == proposal);
            Ok((proposal, best.map(|best| self.reference(best, &some)).transpose()?.flatten()))
        })?;
        let references: BTreeMap<usize, Option<Reference>> = references.into_iter().collect();
        let of = |one: &Candidate| references.get(&one.proposal).and_then(Option::as_ref);
        let mut left_out = Vec::new();
        let mut affordable = Vec::new();
        for one in open {
            let divisor = of(&one).map_or(Some(1), |reference| reference.divisor);
            let smaller = match divisor {
                Some(divisor) => self.divided(&one, divisor)?,
                None => Err("draws too rare to be met rule its errors, and there is no closed form"),
            };
            match smaller {
                Ok(_) if !some.is_in_range() => left_out.push((one.kind(), OUT_OF_RANGE.to_string())),
                Ok(smaller) => affordable.push(smaller),
                Err(why) => left_out.push((one.kind(), why.to_string())),
            }
        }
        let run = |candidate: &Candidate, draws: usize, stream: u64| -> Result<Scored> {
            let draws = self::affordable(candidate, draws);
            let seen = simulate(&candidate.recipe, &some, draws, self.seed_of(stream))?;
            let ln_squares = seen.ln_squares(&some);
            let own = forecast(&some, self.planner.loss, &ln_squares, seen.basis());
            let forecast = match of(candidate) {
                Some(Reference { all, some: few, of_some, .. }) => {
                    let uncertainties = some.ratio_uncertainty(&ln_squares, of_some);
                    own.rescaled(all, few, uncertainties).with_loss_of_pairs(self.planner.loss)
                }
                None => own,
            };
            let uncertainty = 0.5 * seen.gram().1;
            let draws = or_infinite(uncertainty * forecast.loss.value);
            let forecast = forecast.widened(uncertainty);
            Ok(Scored { candidate: candidate.clone(), ln_squares: None, draws, forecast, also: Vec::new() })
        };
        let first = steps("recipes drawn", &affordable, |candidate| Ok(run(candidate, PILOT, 1)))?;
        // A draw that was stopped is not one that cannot be made.
        progress::check()?;
        let mut simulated = Vec::new();
        for (candidate, result) in affordable.iter().zip(first) {
            match result {
                Ok(one) => simulated.push(one),
                Err(error) => left_out.push((candidate.kind(), error.to_string())),
            }
        }
        // The least of noisy errors is too small: those that might win are drawn again.
        let least =
            scored.iter().chain(&simulated).map(|one| one.forecast.loss.value).fold(f64::INFINITY, f64::min);
        let again = |one: &Scored| one.forecast.loss.value <= 1.25 * least;
        let simulated = steps("recipes drawn again", simulated, |one| match again(&one) {
            true => run(&one.candidate, FINAL, 2),
            false => Ok(one),
        });
        left_out.into_iter().for_each(|(kind, why)| self.leave_out(kind, why));
        simulated
    }

    /// The recipe with a part of the frequencies, as whole blocks of them; still fewer where draws would take long. If none will do, why.
    fn divided(
        &self,
        one: &Candidate,
        divisor: usize,
    ) -> Result<std::result::Result<Candidate, &'static str>> {
        for divisor in (0..DIVISIONS).map(|k| divisor << k) {
            let m = match divisor {
                1 => one.m,
                _ => one.whole((one.m / divisor).max(1)),
            };
            let smaller = self.space.candidate(self.planner, self.calibration.as_ref(), one.kind(), m)?;
            if work(&smaller) <= MOST {
                return Ok(Ok(smaller));
            }
        }
        Ok(Err("draws would take long, and there is no closed form"))
    }

    /// What the closed form of one coupling says of a proposal, against which others are simulated.
    fn reference(&self, best: &Scored, some: &Pairs) -> Result<Option<Reference>> {
        let (recipe, target) = (&best.candidate.recipe, &self.planner.target);
        let Some(of_some) = closed(recipe, target, some)? else { return Ok(None) };
        let few = forecast(some, self.planner.loss, &of_some, Basis::ClosedForm);
        let all = match &best.ln_squares {
            Some(_) => Some(best.forecast),
            None => self.closed(&best.candidate)?.map(|(_, forecast)| forecast),
        };
        let Some(all) = all else { return Ok(None) };
        let divisor = if some.is_in_range() { self.shown(&best.candidate, some)? } else { Some(1) };
        Ok(Some(Reference { divisor, all, some: few, of_some }))
    }

    /// By what the frequencies of a recipe are divided so that draws show what its closed form says.
    fn shown(&self, best: &Candidate, some: &Pairs) -> Result<Option<usize>> {
        for divisor in (0..DIVISIONS).map(|k| 1 << k).take_while(|divisor| *divisor <= best.m) {
            let Ok(smaller) = self.divided(best, divisor)? else { continue };
            let Some(expected) = closed(&smaller.recipe, &self.planner.target, some)? else { continue };
            let (few, all) = (affordable(&smaller, PILOT), affordable(&smaller, FINAL));
            let draws = |range: Range<usize>| {
                let first = self.seed_of(0).wrapping_add(range.start as u64);
                simulate(&smaller.recipe, some, range.len(), first)
            };
            let seen = draws(0..few)?;
            if seen.is_reliable(some, &expected) {
                return Ok(Some(divisor));
            }
            // Few draws may miss by chance what more of them show.
            if few < all && Simulated::joined(vec![seen, draws(few..all)?]).is_reliable(some, &expected) {
                return Ok(Some(divisor));
            }
        }
        Ok(None)
    }
}
