//! [`Trial`]: losses that do not follow from errors at pairs of points.

use super::attention::Tokens;
use super::forecast::Expected;
use super::options::{Loss, Planner};
use super::ranking::{Scene, Scored, rank};
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
use super::ridge::Pilot;
use super::stages::steps;
use crate::error::Result;
use crate::map::Recipe;

/// Recipes that are tried: so many with the least errors of the Gram matrix, and as many with the least median errors.
const TRIED: usize = 8;

/// A loss that does not follow from errors at pairs of points, and what it is evaluated on.
pub(super) enum Trial {
    /// The error of normalised attention.
    Attention(Tokens, Loss),
    /// The excess risk of ridge regression.
    #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
    Ridge(Box<Pilot>),
}

impl Trial {
    /// `None` if the loss follows from pairs.
    pub fn new(planner: &Planner) -> Result<Option<Self>> {
        Ok(match planner.loss {
            loss if loss.is_of_attention() => {
                Some(Trial::Attention(Tokens::new(&planner.data.clone().with_one_head(None)), loss))
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
            Trial::Attention(tokens, loss) => tokens.closed(recipe, *loss),
            #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
            Trial::Ridge(_) => Ok(None),
        }
    }

    /// The loss over draws, with consecutive seeds.
    pub fn simulated(&self, recipe: &Recipe, draws: usize, first: u64) -> Result<Expected> {
        match self {
            Trial::Attention(tokens, loss) => tokens.simulated(recipe, *loss, draws, first),
            #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
            Trial::Ridge(pilot) => pilot.excess(recipe, draws, first),
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
        let tried = steps("recipes tried", scored, |one| {
            let Some(one) = self.at_all_pairs(one)? else { return Ok(None) };
            let recipe = &one.candidate.recipe;
            let loss = match trial.closed(recipe)? {
                Some(loss) => loss,
                None => trial.simulated(recipe, trial.draws(), self.seed_of(3))?,
            };
            // Of attention the uncertainty is that of the tokens, which all recipes share.
            let draws = match trial {
                Trial::Attention(..) => 0.0,
                #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
                Trial::Ridge(_) => loss.standard_error / loss.value.abs(),
            };
            Ok(Some(Scored { forecast: one.forecast.with_loss(loss), draws, ..one }))
        })?;
        Ok(tried.into_iter().flatten().collect())
    }
}
