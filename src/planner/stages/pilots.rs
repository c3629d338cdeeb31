//! Couplings without a closed form, by draws: as ratios to the closed form of another coupling.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::candidates::Candidate;
use super::problem::Problem;
use super::ranking::Scored;
use super::steps::steps;
use crate::error::Result;
use crate::frequency::AnyCoupling;
use crate::planner::forecasts::{Forecast, Pairs, SIDE, Simulated, closed, forecast, or_infinite, simulate};
use crate::progress;
use crate::theory::Basis;

/// Why there is no pilot.
const OUT_OF_RANGE: &str = "kernel values are so large that draws say nothing, and there is no closed form";

/// Draws of each coupling without a closed form.
const PILOT_DRAWS: usize = 48;
/// Draws of the couplings that may be best, from other seeds.
const FINAL_DRAWS: usize = 192;
/// Maps whose couplings without a closed form are drawn: at least, and at most if losses by closed forms are within a factor that
/// couplings can make up for, and draws are quick.
const FINALISTS: (usize, usize) = (4, 10);
const MADE_UP: f64 = 4.0;

/// Recipes at the top of a plan, which are drawn more often.
const TOP: usize = 5;

/// How often the frequencies of a recipe are halved where its draws do not show its errors, or take long.
const MAX_HALVINGS: usize = 3;

/// Multiplications of a draw with its estimates, at most: a recipe that needs more is not drawn.
const MAX_WORK_PER_DRAW: f64 = 4e8;
/// Multiplications of all draws of a candidate, at most, unless 8 draws need more; and those of the first draws, up to which they are
/// quick.
const MAX_WORK: f64 = 1.2e9;
const QUICK: f64 = 3e8;

/// An estimate of the multiplications of a draw with its estimates.
fn work(candidate: &Candidate) -> f64 {
    let (points, features) = (2.0 * SIDE as f64, candidate.cost.features as f64);
    // Drawing takes some fifty operations for each number.
    let drawn =
        50.0 * candidate.recipe.draws().iter().map(|omega| (omega.m() * omega.dim()) as f64).sum::<f64>();
    points * candidate.cost.multiplications + 0.25 * points * points * features + drawn
}

/// `draws`, or as many as their work allows, but at least 8.
fn affordable(candidate: &Candidate, draws: usize) -> usize {
    draws.min(((MAX_WORK / work(candidate)) as usize).max(8))
}

/// Errors of a map on the coupling that has a closed form, to which draws of its other couplings are compared.
struct ClosedForms {
    /// The divisor of the number of frequencies for which draws agree with the closed form; `None` if no divisor that was tried is enough.
    divisor: Option<usize>,
    /// Errors at all pairs.
    all: Forecast,
    /// Errors at the pairs of pilots.
    some: Forecast,
    /// ln E(K̂ − K)² of each pair of pilots.
    of_some: Vec<f64>,
}

/// Kinds of candidates that are not drawn, with the reason.
type NotDrawn = Vec<((usize, AnyCoupling), String)>;

/// Draws at all pairs of few points, compared with closed forms.
struct Pilots<'p, 'a> {
    problem: &'p Problem<'a>,
    pairs: Pairs,
    /// The closed forms of each map, by its index; `None` for a map without.
    closed_forms: BTreeMap<usize, Option<ClosedForms>>,
}

impl<'p, 'a> Pilots<'p, 'a> {
    /// Pilots for candidates `open`, of maps that have closed forms among the candidates `scored`.
    fn new(problem: &'p Problem<'a>, scored: &[Scored], open: &[Candidate]) -> Result<Self> {
        let pairs = Pairs::block(&problem.planner.data, problem.kernel.as_ref(), problem.planner.seed)?;
        let maps: BTreeSet<usize> = open.iter().map(|one| one.map).collect();
        let closed_forms = steps("recipes compared with draws", maps, |map| {
            let best = scored.iter().find(|one| one.candidate.map == map);
            Ok((map, best.map(|best| problem.closed_forms(best, &pairs)).transpose()?.flatten()))
        })?;
        Ok(Pilots { problem, pairs, closed_forms: closed_forms.into_iter().collect() })
    }

    fn closed_forms(&self, candidate: &Candidate) -> Option<&ClosedForms> {
        self.closed_forms.get(&candidate.map)?.as_ref()
    }

    /// Candidates in the sizes in which they are drawn.
    fn sized(&self, open: Vec<Candidate>, not_drawn: &mut NotDrawn) -> Result<Vec<Candidate>> {
        let mut sized = Vec::new();
        for one in open {
            let smaller = match self.closed_forms(&one).map_or(Some(1), |forms| forms.divisor) {
                Some(divisor) => self.problem.divided(&one, divisor)?,
                None => Err("draws too rare to be met rule its errors, and there is no closed form"),
            };
            match smaller {
                Ok(_) if !self.pairs.is_in_range() => not_drawn.push((one.kind(), OUT_OF_RANGE.to_string())),
                Ok(smaller) => sized.push(smaller),
                Err(why) => not_drawn.push((one.kind(), why.to_string())),
            }
        }
        Ok(sized)
    }

    /// A candidate with the errors of its draws, as ratios to the closed forms of its map where there are any.
    fn run(&self, candidate: &Candidate, draws: usize, stream: u64) -> Result<Scored> {
        let (pairs, loss) = (&self.pairs, self.problem.planner.loss);
        let draws = affordable(candidate, draws);
        let seen = simulate(&candidate.recipe, pairs, draws, self.problem.seed_of(stream))?;
        let ln_squares = seen.ln_squares(pairs);
        let own = forecast(pairs, loss, &ln_squares, seen.basis());
        let forecast = match self.closed_forms(candidate) {
            Some(ClosedForms { all, some, of_some, .. }) => {
                let uncertainties = pairs.ratio_uncertainty(&ln_squares, of_some);
                own.rescaled(all, some, uncertainties).with_loss_of_pairs(loss)
            }
            None => own,
        };
        let uncertainty = 0.5 * seen.gram().1;
        let draws = or_infinite(uncertainty * forecast.loss.value);
        let forecast = forecast.widened(uncertainty);
        Ok(Scored { candidate: candidate.clone(), ln_squares: None, draws, forecast, also: Vec::new() })
    }
}

/// Candidates of the best maps, and of maps without a closed form.
fn promising(scored: &[Scored], open: Vec<Candidate>) -> Vec<Candidate> {
    let mut finalists: Vec<usize> = Vec::new();
    let least = scored.first().map_or(f64::INFINITY, |one| one.forecast.loss.value);
    for one in scored {
        let is_near = least.is_finite() && one.forecast.loss.value <= MADE_UP * least;
        let is_quick = PILOT_DRAWS as f64 * work(&one.candidate) <= QUICK;
        let most = if is_near && is_quick { FINALISTS.1 } else { FINALISTS.0 };
        if finalists.len() < most && !finalists.contains(&one.candidate.map) {
            finalists.push(one.candidate.map);
        }
    }
    let known = |map: usize| scored.iter().any(|one| one.candidate.map == map);
    open.into_iter().filter(|one| finalists.contains(&one.map) || !known(one.map)).collect()
}

impl Problem<'_> {
    /// Draws the couplings without a closed form of the best maps, and maps that have no closed form at all.
    pub fn pilots(&mut self, scored: &[Scored], open: Vec<Candidate>) -> Result<Vec<Scored>> {
        let mut not_drawn = Vec::new();
        let drawn = self.drawn(scored, promising(scored, open), &mut not_drawn);
        not_drawn.into_iter().for_each(|(kind, why)| self.leave_out(kind, why));
        drawn
    }

    /// Candidates with the errors of their draws. Candidates that may be best are drawn again, more often.
    fn drawn(
        &self,
        scored: &[Scored],
        open: Vec<Candidate>,
        not_drawn: &mut NotDrawn,
    ) -> Result<Vec<Scored>> {
        let pilots = Pilots::new(self, scored, &open)?;
        let candidates = pilots.sized(open, not_drawn)?;
        let first =
            steps("recipes drawn", &candidates, |candidate| Ok(pilots.run(candidate, PILOT_DRAWS, 1)))?;
        // A draw that was stopped is not one that cannot be made.
        progress::check()?;
        let mut drawn = Vec::new();
        for (candidate, result) in candidates.iter().zip(first) {
            match result {
                Ok(one) => drawn.push(one),
                Err(error) => not_drawn.push((candidate.kind(), error.to_string())),
            }
        }
        // The least of noisy errors is too small: those that might win, or stand near the top, are drawn again.
        let mut losses: Vec<f64> = scored.iter().chain(&drawn).map(|one| one.forecast.loss.value).collect();
        losses.sort_by(f64::total_cmp);
        let least = |place: usize| losses.get(place).copied().unwrap_or(f64::INFINITY);
        let limit = least(TOP - 1).max(1.25 * least(0));
        let might_win =
            |one: &Scored| one.forecast.loss.value.is_finite() && one.forecast.loss.value <= limit;
        steps("recipes drawn again", drawn, |one| match might_win(&one) {
            true => pilots.run(&one.candidate, FINAL_DRAWS, 2),
            false => Ok(one),
        })
    }

    /// The recipe with a part of the frequencies, as whole blocks of them; still fewer where draws would take long. If none will do, why.
    fn divided(
        &self,
        one: &Candidate,
        divisor: usize,
    ) -> Result<std::result::Result<Candidate, &'static str>> {
        for divisor in (0..MAX_HALVINGS).map(|k| divisor << k) {
            let m = match divisor {
                1 => one.m,
                _ => one.whole((one.m / divisor).max(1)),
            };
            let smaller = self.space.candidate(self.planner, self.calibration.as_ref(), one.kind(), m)?;
            if work(&smaller) <= MAX_WORK_PER_DRAW {
                return Ok(Ok(smaller));
            }
        }
        Ok(Err("draws would take long, and there is no closed form"))
    }

    /// The closed forms of a map, from its best coupling that has one; `None` if it has none at the pairs of pilots.
    fn closed_forms(&self, best: &Scored, some: &Pairs) -> Result<Option<ClosedForms>> {
        let (recipe, target) = (&best.candidate.recipe, &self.planner.kernel);
        let Some(of_some) = closed(recipe, target, some)? else { return Ok(None) };
        let few = forecast(some, self.planner.loss, &of_some, Basis::ClosedForm);
        let all = match &best.ln_squares {
            Some(_) => Some(best.forecast),
            None => self.closed(&best.candidate)?.map(|(_, forecast)| forecast),
        };
        let Some(all) = all else { return Ok(None) };
        let divisor = if some.is_in_range() { self.divisor(&best.candidate, some)? } else { Some(1) };
        Ok(Some(ClosedForms { divisor, all, some: few, of_some }))
    }

    /// The least divisor of the frequencies for which draws agree with the closed form.
    fn divisor(&self, best: &Candidate, some: &Pairs) -> Result<Option<usize>> {
        for divisor in (0..MAX_HALVINGS).map(|k| 1 << k).take_while(|divisor| *divisor <= best.m) {
            let Ok(smaller) = self.divided(best, divisor)? else { continue };
            let Some(expected) = closed(&smaller.recipe, &self.planner.kernel, some)? else { continue };
            let (few, all) = (affordable(&smaller, PILOT_DRAWS), affordable(&smaller, FINAL_DRAWS));
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
