//! Errors of normalised attention.

use ndarray::{Array2, Axis};

use super::draws::mean_with_uncertainty;
use super::expected::Expected;
use crate::apply::attention::{ErrorReport, Redraws, closed_errors, simulated_errors};
use crate::error::Result;
use crate::kernel::Kernel;
use crate::map::Recipe;
use crate::numeric;
use crate::planner::question::{HeadTokens, Loss, PlannedPoints};
use crate::theory::Basis;

/// The fewest parts of all queries, whose differences tell how uncertain errors are, and the fewest of a head.
const PARTS: usize = 8;
const PARTS_OF_HEAD: usize = 2;

/// The errors of attention of all heads, whose queries are in parts.
pub(crate) struct AttentionLoss {
    /// Queries, keys and values of each part.
    parts: Vec<[Array2<f64>; 3]>,
    /// The share of each part, by what its errors are relative to. Heads have equal shares.
    shares: Vec<f64>,
    loss: Loss,
    is_all: bool,
}

impl AttentionLoss {
    pub fn new(data: &PlannedPoints, kernel: &dyn Kernel<f64>, loss: Loss) -> Result<Self> {
        let (mut parts, mut shares) = (Vec::new(), Vec::new());
        for head in &data.heads {
            let values = head.values.clone().unwrap_or_else(|| Array2::zeros((head.keys.nrows(), 0)));
            let most = PARTS.div_ceil(data.heads.len()).max(PARTS_OF_HEAD).min(head.queries.nrows());
            let first = shares.len();
            for part in 0..most {
                let rows: Vec<usize> = (part..head.queries.nrows()).step_by(most).collect();
                let tokens = [head.queries.select(Axis(0), &rows), head.keys.clone(), values.clone()];
                shares.push(size(kernel, &tokens, loss)?);
                parts.push(tokens);
            }
            let own = &mut shares[first..];
            let (total, count) = (own.iter().sum::<f64>(), own.len() as f64);
            // Where outputs are 0 there is nothing that errors can be a part of.
            own.iter_mut().for_each(|one| *one = if total > 0.0 { *one / total } else { count.recip() });
        }
        shares.iter_mut().for_each(|share| *share /= data.heads.len() as f64);
        Ok(AttentionLoss {
            parts,
            shares,
            loss,
            is_all: data.are_all_kept() && data.heads.iter().all(|head| is_whole(data, head)),
        })
    }

    /// Whether these are all tokens, and not a sample of them.
    pub fn is_all(&self) -> bool {
        self.is_all
    }

    /// The expected error to first order, and the part of its standard error that no other tokens would take away; `None` without a closed
    /// form, as for frequencies that are not independent.
    pub fn closed(&self, recipe: &Recipe) -> Result<Option<(Expected, f64)>> {
        if !recipe.draws().iter().all(|omega| omega.law().is_some_and(|law| law.directions_are_independent()))
        {
            return Ok(None);
        }
        let reports = self.parts.iter().map(|tokens| closed_errors(recipe, tokens.clone()));
        let reports: Option<Vec<ErrorReport>> = reports.collect::<Result<_>>()?;
        Ok(reports.map(|reports| self.pooled(&reports.iter().collect::<Vec<_>>(), Basis::Approximate)))
    }

    /// The error to first order over draws, with consecutive seeds, and the part of its standard error that no other tokens would take
    /// away.
    pub fn simulated(&self, recipe: &Recipe, draws: usize, first: u64) -> Result<(Expected, f64)> {
        let seeds = first..first.saturating_add(draws as u64);
        let redraws = simulated_errors(recipe, seeds, &self.parts)?;
        let reports: Vec<&ErrorReport> = redraws.iter().map(|redraws| &redraws.report).collect();
        let (error, rough) = self.pooled(&reports, Basis::Simulation(draws));
        let of_draws = 0.5 * self.uncertainty_of_draws(&redraws) * error.value;
        // What is beyond the range has no draws that say by how much.
        let of_draws = if error.value.is_finite() { of_draws } else { 0.0 };
        let standard_error = error.standard_error.hypot(of_draws);
        Ok((Expected { standard_error, ..error }, of_draws.hypot(rough)))
    }

    /// The root of the mean squared error, and what it may be off as a rough number: where a normaliser varies much, all of itself.
    /// Infinite where normalisers vary too much for a rough number, too.
    fn pooled(&self, reports: &[&ErrorReport], basis: Basis) -> (Expected, f64) {
        // Queries without outputs have no part in the errors of a head that has some. A share that is no number has.
        let weighed = || self.shares.iter().zip(reports).filter(|(share, _)| **share != 0.0);
        let is_rough = weighed().any(|(_, report)| report.is_hopeless());
        // Where no report is hopeless, rough numbers are the expected ones.
        let square = |(share, report): (&f64, &&ErrorReport)| {
            let error = match self.loss {
                Loss::AttentionWeights => report.rough_weight_error(),
                _ => report.rough_output_error(),
            };
            error.map(|error| (*share, error * error))
        };
        let squares: Option<Vec<(f64, f64)>> = weighed().map(square).collect();
        let unknown = (Expected { value: f64::INFINITY, standard_error: f64::INFINITY, basis }, 0.0);
        let Some(squares) = squares else { return unknown };
        let (mean, count) =
            (squares.iter().map(|(share, square)| share * square).sum::<f64>(), squares.len() as f64);
        if !mean.is_finite() {
            return unknown;
        }
        let spread = squares.iter().map(|(share, square)| (share * (square - mean)).powi(2)).sum::<f64>();
        let deviation = (spread * count / (count - 1.0).max(1.0)).sqrt();
        let value = mean.sqrt();
        let standard_error = if value > 0.0 { 0.5 * deviation / value } else { 0.0 };
        let rough = if is_rough { value } else { 0.0 };
        (Expected { value, standard_error: standard_error.hypot(rough), basis }, rough)
    }

    /// The relative standard error of the mean squared error, from its draws.
    fn uncertainty_of_draws(&self, redraws: &[Redraws]) -> f64 {
        let draws = redraws.first().map_or(0, |redraws| redraws.squares.len());
        let of_draw = |draw: usize| {
            let squares = redraws.iter().map(|redraws| match self.loss {
                Loss::AttentionWeights => redraws.squares[draw].0,
                _ => redraws.squares[draw].1,
            });
            let weighed = self.shares.iter().zip(squares).filter(|(share, _)| **share != 0.0);
            weighed.map(|(share, square)| share * square).sum::<f64>()
        };
        let squares: Vec<f64> = (0..draws).map(of_draw).collect();
        mean_with_uncertainty(&squares).1
    }
}

/// Whether a head has all tokens.
fn is_whole(data: &PlannedPoints, head: &HeadTokens) -> bool {
    [&head.queries, &head.keys]
        .into_iter()
        .zip(&data.sides)
        .all(|(tokens, side)| tokens.nrows() == side.count())
}

/// The sum over queries of the squared norm of the exact output or weights.
fn size(kernel: &dyn Kernel<f64>, [x, y, values]: &[Array2<f64>; 3], loss: Loss) -> Result<f64> {
    let mut weights = kernel.log_gram(x, y)?;
    weights.rows_mut().into_iter().for_each(numeric::softmax);
    let exact = if loss == Loss::AttentionWeights { weights } else { weights.dot(values) };
    Ok(exact.iter().map(|v| v * v).sum())
}
