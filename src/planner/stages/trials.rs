//! Trials: losses of a task, for the recipes that are best at pairs.

use super::problem::Problem;
use super::ranking::{Scored, rank};
use super::steps::steps;
use crate::error::Result;
use crate::planner::forecasts::Expected;
use crate::theory::Basis;

/// Recipes that are tried: TRIED with the least errors of the Gram matrix, and TRIED with the least median errors. Each map has at most
/// COUPLINGS of them while others are left: a task may prefer another map, but hardly a third coupling.
/// Places that are left go to the least median errors.
const TRIED: usize = 8;
const COUPLINGS: usize = 2;
/// Recipes that are tried again with more draws, since the least of noisy losses is too small.
const AGAIN: usize = 3;
/// The factor by which draws are more then.
const MORE: usize = 4;

/// Moves the first recipes that are tried to `wanted`, and gives the others.
fn take_first(scored: Vec<Scored>, wanted: &mut Vec<Scored>) -> Vec<Scored> {
    let (mut others, most) = (Vec::new(), wanted.len() + TRIED);
    for one in scored {
        let of_map = wanted.iter().filter(|other| other.candidate.map == one.candidate.map).count();
        if wanted.len() < most && of_map < COUPLINGS { wanted.push(one) } else { others.push(one) }
    }
    others
}

impl Problem<'_> {
    /// The best recipes by errors at pairs, with their loss of the task; all recipes unchanged if the loss is one of pairs.
    pub fn tried(&self, mut scored: Vec<Scored>) -> Result<Vec<Scored>> {
        let Some(task) = &self.task_loss else { return Ok(scored) };
        rank(&mut scored);
        let mut wanted = Vec::new();
        let mut others = take_first(scored, &mut wanted);
        others.sort_by(|a, b| {
            let median = |one: &Scored| one.forecast.relative.median.value;
            median(a).total_cmp(&median(b))
        });
        let rest = take_first(others, &mut wanted);
        // Few maps leave room for their other couplings.
        let room = (2 * TRIED).saturating_sub(wanted.len());
        wanted.extend(rest.into_iter().take(room));
        let few = task.draws();
        let tried = steps("recipes tried", wanted, |one| {
            let Ok(one) = self.at_all_pairs(one)? else { return Ok(None) };
            let recipe = one.candidate.tried();
            let (loss, draws) = match task.closed(recipe)? {
                Some(closed) => closed,
                // Nothing is random.
                None if one.candidate.trial.is_some() => {
                    let (loss, draws) = task.simulated(recipe, 1, 0)?;
                    (Expected { basis: Basis::HeldOut, ..loss }, draws)
                }
                None => task.simulated(recipe, few, self.seed_of(3))?,
            };
            Ok(Some(Scored { forecast: one.forecast.with_loss(loss), draws, ..one }))
        })?;
        let mut tried: Vec<Scored> = tried.into_iter().flatten().collect();
        // Others may take the places of those that turn out worse.
        let is_noisy = |one: &Scored| one.forecast.loss.basis == Basis::Simulation(few);
        loop {
            rank(&mut tried);
            let rest = tried.split_off(tried.len().min(AGAIN));
            if !tried.iter().any(is_noisy) {
                return Ok(tried.into_iter().chain(rest).collect());
            }
            tried = steps("recipes tried again", tried, |one| match is_noisy(&one) {
                false => Ok(one),
                true => {
                    let recipe = one.candidate.tried();
                    let (loss, draws) = task.simulated(recipe, MORE * few, self.seed_of(4))?;
                    Ok(Scored { forecast: one.forecast.with_loss(loss), draws, ..one })
                }
            })?;
            tried.extend(rest);
        }
    }
}
