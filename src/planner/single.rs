//! The errors of one recipe, by closed forms and by draws.

use std::ops::Range;

use super::Forecast;
use super::evaluation::{closed, forecast};
use super::forecast::Basis;
use super::options::Planner;
use super::pairs::Pairs;
use super::ranking::check;
use super::simulation::{Simulated, simulate};
use super::stages::steps;
use super::trials::Trial;
use crate::error::{Error, Result, check_size};
use crate::kernel::Kernel;
use crate::map::Recipe;

/// The errors to expect of a recipe, by closed forms.
pub(super) fn expect(planner: &Planner, recipe: &Recipe) -> Result<Option<Forecast>> {
    let (kernel, pairs) = pairs(planner, recipe)?;
    let Some(ln_squares) = closed(recipe, &planner.target, &pairs)? else { return Ok(None) };
    let of_pairs = forecast(&pairs, planner.loss, &ln_squares, Basis::ClosedForm);
    match Trial::new(planner, kernel.as_ref())? {
        None => Ok(Some(of_pairs)),
        Some(trial) => Ok(trial.closed(recipe)?.map(|loss| of_pairs.with_loss(loss))),
    }
}

/// The errors of a recipe in so many draws, of consecutive seeds.
pub(super) fn measure(planner: &Planner, recipe: &Recipe, draws: usize, first: u64) -> Result<Forecast> {
    if draws < 2 {
        let (name, domain) = ("the number of draws", "at least 2");
        return Err(Error::Parameter { name, value: draws as f64, domain });
    }
    let (kernel, pairs) = pairs(planner, recipe)?;
    let seen = Simulated::joined(steps("draws in parts of 16", split(draws), |part| {
        simulate(recipe, &pairs, part.len(), first.wrapping_add(part.start as u64))
    })?);
    let errors = forecast(&pairs, planner.loss, &seen.ln_squares(&pairs), seen.basis());
    let errors = errors.widened(0.5 * seen.gram().1);
    match Trial::new(planner, kernel.as_ref())? {
        None => Ok(errors),
        Some(trial) => Ok(errors.with_loss(trial.simulated(recipe, draws, first)?.0)),
    }
}

/// Draws in parts of so many.
fn split(draws: usize) -> Vec<Range<usize>> {
    const PART: usize = 16;
    (0..draws.div_ceil(PART)).map(|k| k * PART..draws.min((k + 1) * PART)).collect()
}

/// The exact kernel, and the pairs on which a recipe is evaluated.
fn pairs(planner: &Planner, recipe: &Recipe) -> Result<(Box<dyn Kernel<f64>>, Pairs)> {
    let kernel = check(planner)?;
    check_size("the dimension of the recipe", planner.data.dim(), recipe.dim())?;
    let pairs = Pairs::draw(&planner.data, kernel.as_ref(), planner.seed)?;
    Ok((kernel, pairs))
}
