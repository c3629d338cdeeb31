//! [`TaskLoss`]: losses of a task for which the features are meant.

#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
use ndarray::Array2;

use super::attention_loss::AttentionLoss;
use super::expected::Expected;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
use super::ridge_loss::RidgeLoss;
use crate::error::Result;
use crate::kernel::Kernel;
use crate::map::Recipe;
use crate::planner::question::{Loss, Planner};

/// A loss that does not follow from errors at pairs of points, and what it is evaluated on.
pub(crate) enum TaskLoss {
    /// The error of normalised attention.
    Attention(Box<AttentionLoss>),
    /// The excess risk of ridge regression.
    #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
    Ridge(Box<RidgeLoss>),
}

impl TaskLoss {
    /// `None` if the loss follows from pairs.
    pub fn new(planner: &Planner, kernel: &dyn Kernel<f64>) -> Result<Option<Self>> {
        Ok(match planner.loss {
            loss if loss.is_of_attention() => {
                let data = planner.data.clone().with_one_head(None);
                Some(TaskLoss::Attention(Box::new(AttentionLoss::new(&data, kernel, loss)?)))
            }
            #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
            Loss::Ridge => match &planner.targets {
                Some(targets) => {
                    let pilot = RidgeLoss::new(&planner.data, &planner.kernel, targets, planner.seed)?;
                    Some(TaskLoss::Ridge(Box::new(pilot)))
                }
                None => None,
            },
            _ => None,
        })
    }

    /// The expected loss by closed forms, where there are any, and the part of its standard error that no other points would take away.
    pub fn closed(&self, recipe: &Recipe) -> Result<Option<(Expected, f64)>> {
        match self {
            TaskLoss::Attention(tokens) => tokens.closed(recipe),
            #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
            TaskLoss::Ridge(_) => Ok(None),
        }
    }

    /// The loss over draws, with consecutive seeds, and the part of its standard error that no other points would take away.
    pub fn simulated(&self, recipe: &Recipe, draws: usize, first: u64) -> Result<(Expected, f64)> {
        match self {
            TaskLoss::Attention(tokens) => tokens.simulated(recipe, draws, first),
            #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
            TaskLoss::Ridge(pilot) => {
                let loss = pilot.excess(recipe, draws, first)?;
                Ok((loss, loss.standard_error))
            }
        }
    }

    /// The points that a regression is fitted to; `None` for other losses.
    #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
    pub fn training_points(&self) -> Option<&Array2<f64>> {
        match self {
            TaskLoss::Attention(..) => None,
            TaskLoss::Ridge(pilot) => Some(pilot.training_points()),
        }
    }

    /// Whether losses are those of all points, and not of a sample of them.
    pub fn is_of_all(&self) -> bool {
        match self {
            TaskLoss::Attention(tokens) => tokens.is_all(),
            #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
            TaskLoss::Ridge(_) => false,
        }
    }

    /// Whether not even the exact kernel predicts better than the mean of the targets.
    pub fn is_hopeless(&self) -> bool {
        match self {
            TaskLoss::Attention(..) => false,
            #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
            TaskLoss::Ridge(pilot) => pilot.is_hopeless(),
        }
    }

    /// Draws of each recipe that is tried.
    pub fn draws(&self) -> usize {
        match self {
            TaskLoss::Attention(..) => 32,
            #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
            TaskLoss::Ridge(_) => 8,
        }
    }
}
