//! [`Trial`]: losses that do not follow from errors at pairs of points.

use super::attention::Tokens;
use super::forecast::{Basis, Expected};
use super::options::{Loss, Planner};
use super::ranking::{Scene, Scored, rank};
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
use super::ridge::Pilot;
use super::stages::steps;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::map::Recipe;

/// Recipes that are tried: so many with the least errors of the Gram matrix, and as many with the least median errors.
const TRIED: usize = 8;
/// Recipes that are tried again with more draws, and how many times as many: the least of noisy losses is too small.
const AGAIN: usize = 3;
const MORE: usize = 4;

/// A loss that does not follow from errors at pairs of points, and what it is evaluated on.
pub(super) enum Trial {
    /// The error of normalised attention.
    Attention(Box<Tokens>),
    /// The excess risk of ridge regression.
    #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
    Ridge(Box<Pilot>),
}

impl Trial {
    /// `None` if the loss follows from pairs.
    pub fn new(planner: &Planner, kernel: &dyn Kernel<f64>) -> Result<Option<Self>> {
        Ok(match planner.loss {
            loss if loss.is_of_attention() => {
                let data = planner.data.clone().with_one_head(None);
                Some(Trial::Attention(Box::new(Tokens::new(&data, kernel, loss)?)))
            }
            #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
            Loss::Ridge => match &planner.targets {
                Some(targets) => {
                    let pilot = Pilot::new(&planner.data, &planner.target, targets, planner.seed)?;
                    Some(Trial::Ridge(Box::new(pilot)))
                }
                None => None,
            },
            _ => None,
        })
    }

    /// The expected loss by closed forms, where there are any.
    pub fn closed(&self, recipe: &Recipe) -> Result<Option<Expected>> {
        match self {
            Trial::Attention(tokens) => tokens.closed(recipe),
            #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
            Trial::Ridge(_) => Ok(None),
        }
    }

    /// The loss over draws, with consecutive seeds, and the part of its standard error that comes from draws.
    pub fn simulated(&self, recipe: &Recipe, draws: usize, first: u64) -> Result<(Expected, f64)> {
        match self {
            Trial::Attention(tokens) => tokens.simulated(recipe, draws, first),
            #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
            Trial::Ridge(pilot) => {
                let loss = pilot.excess(recipe, draws, first)?;
                Ok((loss, loss.standard_error))
            }
        }
    }

    /// Whether losses are those of all points, and not of a sample of them.
    pub fn is_of_all(&self) -> bool {
        match self {
            Trial::Attention(tokens) => tokens.is_all(),
            #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
            Trial::Ridge(_) => false,
        }
    }

    /// Whether not even the exact kernel predicts better than the mean of the targets.
    pub fn is_hopeless(&self) -> bool {
        match self {
            Trial::Attention(..) => false,
            #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
            Trial::Ridge(pilot) => pilot.is_hopeless(),
        }
    }

    /// Draws of each recipe that is tried.
    fn draws(&self) -> usize {
        match self {
            Trial::Attention(..) => 32,
            #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
            Trial::Ridge(_) => 8,
        }
    }
}

impl Scene<'_> {
    /// The best few by errors at pairs, with the loss itself; all if that is a loss of pairs.
    pub fn tried(&self, mut scored: Vec<Scored>) -> Result<Vec<Scored>> {
        let Some(trial) = &self.trial else { return Ok(scored) };
        rank(&mut scored);
        let mut others = scored.split_off(scored.len().min(TRIED));
        others.sort_by(|a, b| {
            let median = |one: &Scored| one.forecast.relative.median.value;
            median(a).total_cmp(&median(b))
        });
        scored.extend(others.into_iter().take(TRIED));
        let few = trial.draws();
        let tried = steps("recipes tried", scored, |one| {
            let Some(one) = self.at_all_pairs(one)? else { return Ok(None) };
            let recipe = &one.candidate.recipe;
            let (loss, draws) = match trial.closed(recipe)? {
                Some(loss) => (loss, 0.0),
                None => trial.simulated(recipe, few, self.seed_of(3))?,
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
                    let recipe = &one.candidate.recipe;
                    let (loss, draws) = trial.simulated(recipe, MORE * few, self.seed_of(4))?;
                    Ok(Scored { forecast: one.forecast.with_loss(loss), draws, ..one })
                }
            })?;
            tried.extend(rest);
        }
    }
}
