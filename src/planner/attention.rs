//! Errors of normalised attention.

use ndarray::{Array2, Axis};

use super::forecast::{Basis, Expected};
use super::options::Loss;
use super::points::{Head, PlannedPoints};
use crate::apply::attention::{ErrorReport, closed_errors, simulated_errors};
use crate::error::Result;
use crate::map::Recipe;

/// Tokens of all heads, each in two halves of queries, whose difference tells how uncertain errors are.
pub(super) struct Tokens(Vec<[Array2<f64>; 3]>);

impl Tokens {
    pub fn new(data: &PlannedPoints) -> Self {
        let halves = |head: &Head| {
            let values = head.values.clone().unwrap_or_else(|| Array2::zeros((head.keys.nrows(), 0)));
            [0, 1].map(|first| {
                let rows: Vec<usize> = (first..head.queries.nrows()).step_by(2).collect();
                [head.queries.select(Axis(0), &rows), head.keys.clone(), values.clone()]
            })
        };
        Tokens(data.heads.iter().flat_map(halves).collect())
    }

    /// The expected error to first order; `None` without a closed form, as for frequencies that are not independent.
    pub fn closed(&self, recipe: &Recipe, loss: Loss) -> Result<Option<Expected>> {
        if !recipe.draws().iter().all(|omega| omega.law().is_some_and(|law| law.directions_are_independent()))
        {
            return Ok(None);
        }
        let reports = self.0.iter().map(|tokens| closed_errors(recipe, tokens.clone()));
        let reports: Vec<Option<ErrorReport>> = reports.collect::<Result<_>>()?;
        let reports: Option<Vec<ErrorReport>> = reports.into_iter().collect();
        Ok(reports.map(|reports| pooled(&reports, loss, Basis::Approximate)))
    }

    /// The error to first order over draws, with consecutive seeds.
    pub fn simulated(&self, recipe: &Recipe, loss: Loss, draws: usize, first: u64) -> Result<Expected> {
        let seeds = first..first.saturating_add(draws as u64);
        Ok(pooled(&simulated_errors(recipe, seeds, &self.0)?, loss, Basis::Simulation(draws)))
    }
}

/// The root of the mean squared error; infinite if a normaliser varies too much for errors to mean anything.
fn pooled(reports: &[ErrorReport], loss: Loss, basis: Basis) -> Expected {
    let error = |report: &ErrorReport| match loss {
        Loss::AttentionWeights => report.weight_error(),
        _ => report.output_error(),
    };
    let squares: Option<Vec<f64>> =
        reports.iter().map(|report| error(report).map(|error| error * error)).collect();
    let Some(squares) = squares else {
        return Expected { value: f64::INFINITY, standard_error: f64::INFINITY, basis };
    };
    let count = squares.len() as f64;
    let mean = squares.iter().sum::<f64>() / count;
    let spread = squares.iter().map(|square| (square - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
    let value = mean.sqrt();
    let standard_error = if value > 0.0 { 0.5 * (spread / count).sqrt() / value } else { 0.0 };
    Expected { value, standard_error, basis }
}
