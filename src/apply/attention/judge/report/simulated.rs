//! The errors of a sample from redraws of all frequencies.

use std::ops::Range;

use ndarray::{Array1, Array2, ArrayView1, Axis, s};

use super::super::super::input::softmax_lengthscale;
use super::ErrorReport;
use super::errors::{ErrorPart, Errors, QueryErrors};
use super::sample::AttentionSample;
use super::tokens::Mask;
use crate::error::{Error, Result};
use crate::kernel::Lengthscale;
use crate::map::{Map, Omega, Recipe};
use crate::memory::check_memory;
use crate::numeric::special::scaled_sum;
use crate::progress;
use crate::theory::Basis;

/// Logarithms of normalisers up to which estimates, which vary about them, stay within the range.
const IN_RANGE: f64 = 300.0;

/// What is summed up over draws for a query. Estimates are relative to the exact normaliser.
struct Query {
    estimates: Array1<f64>,
    /// Σ of squared estimates.
    squares: Array1<f64>,
    /// Σ of estimates times their sum.
    products: Array1<f64>,
    /// Each draw's sum of estimates, and sum of values weighted by them.
    draws: Vec<(f64, Array1<f64>)>,
}

/// A report, and what each draw has to do with it.
pub(crate) struct Redraws {
    pub report: ErrorReport,
    /// The squared errors of the weights and of the output in each draw, to first order about the exact ones and relative to them.
    pub squares: Vec<(f64, f64)>,
}

/// What draws of a recipe, none of whose frequencies may be drawn already, with these seeds say of each sample of tokens, as points and
/// values.
pub(crate) fn simulated_errors(
    recipe: &Recipe,
    seeds: Range<u64>,
    tokens: &[[Array2<f64>; 3]],
) -> Result<Vec<Redraws>> {
    redraws(recipe, seeds, tokens, &Mask::default())
}

/// The reports where some pairs of each sample are not estimated.
pub(super) fn errors_beside(
    recipe: &Recipe,
    seeds: Range<u64>,
    tokens: &[[Array2<f64>; 3]],
    mask: &Mask,
) -> Result<Vec<ErrorReport>> {
    Ok(redraws(recipe, seeds, tokens, mask)?.into_iter().map(|redraws| redraws.report).collect())
}

fn redraws(
    recipe: &Recipe,
    seeds: Range<u64>,
    tokens: &[[Array2<f64>; 3]],
    mask: &Mask,
) -> Result<Vec<Redraws>> {
    let draws_of = recipe.draws();
    let frequencies = draws_of.iter().map(|omega| omega.m()).fold(1, usize::max);
    if draws_of.iter().any(|omega| omega.is_drawn() && !matches!(omega, Omega::None(_))) {
        let what = "redraws of a recipe whose frequencies are drawn already: give one made with a Draw";
        return Err(Error::Unsupported { what });
    }
    let draws = usize::try_from(seeds.end - seeds.start).unwrap_or(usize::MAX);
    tokens.iter().try_for_each(|tokens| check_room(tokens, draws))?;
    let mut parts: Vec<Redrawn<'_>> = Vec::new();
    for (done, seed) in seeds.enumerate() {
        progress::step("redraws", done, draws)?;
        let map = recipe.draw::<f64>(seed)?;
        if parts.is_empty() {
            parts = tokens.iter().map(|tokens| Redrawn::new(recipe, &map, tokens, mask)).collect();
        }
        parts.iter_mut().try_for_each(|part| part.add(&map))?;
    }
    let report = |part: Redrawn<'_>| {
        let (outputs, squares) = (part.sample.has_values(), part.squares());
        let errors = part.errors(frequencies as f64);
        Redraws { report: ErrorReport::new(Basis::Simulation(draws), frequencies, outputs, errors), squares }
    };
    Ok(parts.into_iter().map(report).collect())
}

/// Refuses tokens, as points and values, for which there is no memory to keep what so many draws make of them.
fn check_room([x, y, values]: &[Array2<f64>; 3], draws: usize) -> Result<()> {
    let (float, pairs) = (size_of::<f64>(), x.nrows().saturating_mul(y.nrows()));
    check_memory("pairs of queries and keys", pairs, 8 * float)?;
    let of_draw = values.ncols().saturating_mul(float).saturating_add(size_of::<(f64, Array1<f64>)>());
    check_memory("outputs of redraws", draws.saturating_mul(x.nrows()), of_draw)
}

/// A sample of tokens, and what draws make of it.
struct Redrawn<'a> {
    points: [&'a Array2<f64>; 2],
    sample: AttentionSample,
    ln_normalisers: Vec<f64>,
    /// Pairs whose weights are exact, with these relative to the normaliser.
    exact: Vec<([usize; 2], f64)>,
    queries: Vec<Query>,
    /// The exact weights and outputs.
    weights: Array2<f64>,
    outputs: Array2<f64>,
    /// The squared errors of each draw.
    squares: Vec<(f64, f64)>,
}

impl<'a> Redrawn<'a> {
    fn new(recipe: &Recipe, map: &Map<f64>, [x, y, values]: &'a [Array2<f64>; 3], mask: &Mask) -> Self {
        let exponential = map.kernel().and_then(|kernel| kernel.exponential());
        let gaussian = exponential.as_ref().is_some_and(|exponential| exponential.row != 0.0);
        let lengthscale = exponential.map(|exponential| exponential.lengthscale);
        let lengthscale =
            lengthscale.or_else(|| softmax_lengthscale(recipe)).unwrap_or(Lengthscale::from(1.0));
        let points = [x, y].map(|x| lengthscale.divide_rows(x.clone()));
        let sample = AttentionSample::new(points, values.clone(), gaussian).with_mask(mask.clone());
        let ln_normaliser = |(i, row): (usize, ArrayView1<'_, f64>)| {
            let row = row.slice_move(s![..sample.seen(i)]);
            let (scale, sum) = scaled_sum(row.iter().map(|ln| (*ln, 1.0)));
            scale + sum.ln()
        };
        let ln_kernel = sample.ln_kernel();
        let ln_normalisers: Vec<f64> = ln_kernel.rows().into_iter().enumerate().map(ln_normaliser).collect();
        let weight = |(i, j): (usize, usize)| ([i, j], (ln_kernel[[i, j]] - ln_normalisers[i]).exp());
        let exact = sample.exact_pairs().map(weight).collect();
        let seen = |(i, j)| if j < sample.seen(i) { weight((i, j)).1 } else { 0.0 };
        let weights = Array2::from_shape_fn(ln_kernel.dim(), seen);
        let outputs = weights.dot(&sample.values);
        let queries = (0..x.nrows()).map(|_| Query::new(y.nrows())).collect();
        let (points, squares) = ([x, y], Vec::new());
        Redrawn { points, sample, ln_normalisers, exact, queries, weights, outputs, squares }
    }

    fn add(&mut self, map: &Map<f64>) -> Result<()> {
        let mut estimates = relative_estimates(map, self.points, &self.ln_normalisers)?;
        self.exact.iter().for_each(|(pair, weight)| estimates[*pair] = *weight);
        for (i, mut row) in estimates.rows_mut().into_iter().enumerate() {
            row.slice_mut(s![self.sample.seen(i)..]).fill(0.0);
        }
        let mut square = (0.0, 0.0);
        let exact = self.weights.rows().into_iter().zip(self.outputs.rows());
        for ((query, estimates), (weights, output)) in
            self.queries.iter_mut().zip(estimates.rows()).zip(exact)
        {
            let (total, own) = query.add(&estimates, &self.sample.values);
            // The error of e/Σe about p to first order: e − p Σe where Σe is about 1.
            square.0 += (&estimates - &(&weights * total)).pow2().sum();
            square.1 += (own - &(&output * total)).pow2().sum();
        }
        self.squares.push(square);
        Ok(())
    }

    /// The squared errors of each draw, relative to what is exact.
    fn squares(&self) -> Vec<(f64, f64)> {
        let size = |exact: &Array2<f64>| exact.iter().map(|v| v * v).sum::<f64>();
        let (weights, outputs) = (size(&self.weights), size(&self.outputs));
        self.squares.iter().map(|square| (square.0 / weights, square.1 / outputs)).collect()
    }

    /// The errors of m frequencies; variances are those of one frequency.
    fn errors(self, m: f64) -> Errors {
        let Redrawn { sample, queries, .. } = self;
        let of_query = |(i, query): (usize, Query)| query.errors(&sample, i, m);
        queries.into_iter().enumerate().map(of_query).collect()
    }
}

/// The estimates of a map for all pairs, each divided by its query's normaliser: from their logarithms where these leave the
/// range.
fn relative_estimates(
    map: &Map<f64>,
    [x, y]: [&Array2<f64>; 2],
    ln_normalisers: &[f64],
) -> Result<Array2<f64>> {
    if ln_normalisers.iter().all(|ln| ln.abs() < IN_RANGE) {
        let factors: Array1<f64> = ln_normalisers.iter().map(|ln| (-ln).exp()).collect();
        return Ok(map.gram(x, y)? * factors.insert_axis(Axis(1)));
    }
    let mut out = Array2::zeros((x.nrows(), y.nrows()));
    for ((x, mut out), ln) in x.rows().into_iter().zip(out.rows_mut()).zip(ln_normalisers) {
        let all = Array2::from_shape_fn(y.dim(), |(_, k)| x[k]);
        let estimates = map.log_estimate_rows(&all, y)?;
        out.zip_mut_with(&estimates, |out, estimate| *out = estimate.scaled(-ln).value());
    }
    Ok(out)
}

impl Query {
    fn new(keys: usize) -> Self {
        let zeros = || Array1::zeros(keys);
        Query { estimates: zeros(), squares: zeros(), products: zeros(), draws: Vec::new() }
    }

    /// Adds the estimates of a draw, and gives their sum and that of the values weighted by them.
    fn add(&mut self, estimates: &ArrayView1<'_, f64>, values: &Array2<f64>) -> (f64, &Array1<f64>) {
        let total = estimates.sum();
        self.estimates += estimates;
        self.squares += &estimates.pow2();
        self.products.scaled_add(total, estimates);
        self.draws.push((total, estimates.dot(values)));
        (total, &self.draws[self.draws.len() - 1].1)
    }

    /// To first order about the means.
    fn errors(self, sample: &AttentionSample, i: usize, m: f64) -> QueryErrors {
        let exact = sample.exact(i);
        let (count, one) = (self.draws.len() as f64, (self.draws.len() - 1) as f64);
        let mean = self.draws.iter().map(|draw| draw.0).sum::<f64>() / count;
        let squares = self.draws.iter().map(|draw| (draw.0 - mean).powi(2)).sum::<f64>();
        let total = self.draws.iter().map(|draw| draw.0 * draw.0).sum::<f64>();
        let variance = |squares: f64| squares / (one * mean * mean);
        // The mean over draws is as far off as they are few.
        let part = |ErrorPart { variance, bias }| ErrorPart {
            variance: variance * m,
            bias: (bias - variance / count).max(0.0),
        };
        // The error of wⱼ = eⱼ/Σe about p to first order: (eⱼ − pⱼ Σe)/mean Σe.
        let p = &self.estimates / (count * mean);
        let spread = &self.squares - &(2.0 * &p * &self.products) + &p.mapv(|p| p * p * total);
        let biases = &p - &exact.weights;
        let zero = Array1::<f64>::zeros(exact.output.len());
        let about = self.draws.iter().fold(zero, |sum, draw| sum + &draw.1) / (count * mean);
        let distance = |draw: &(f64, Array1<f64>)| (&draw.1 - &(draw.0 * &about)).pow2().sum();
        let of_output = variance(self.draws.iter().map(distance).sum());
        let biases = [biases, &about - &exact.output];
        let [weights, output] =
            sample.shrunk(i, [variance(spread.sum()), of_output], biases, &exact).map(part);
        let normaliser = variance(squares) * m;
        QueryErrors { normaliser, weights, output, sizes: sample.sizes(i, &exact) }
    }
}
