//! A classifier of many classes, trained from draws (Figure 10).

use std::sync::atomic::{AtomicUsize, Ordering};

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, ArrayViewMut1, Axis};
use rand::{Rng, RngExt};
use random_features::apply::softmax_sampling::{Proposal, SampledSoftmax};
use random_features::frequency::Orthogonal;
use random_features::{Positive, Result, rng_of_step};
use rayon::prelude::*;

use super::data::normal;
use super::methods::{Equal, METHODS, Method, proposal};
use crate::progress;

/// A mean and its standard error.
pub type Mean = (f64, f64);

/// The dimension of points and of class vectors.
pub const D: usize = 32;
/// Draws for each point, and features that propose them.
pub const DRAWS: usize = 40;
pub const FEATURES: usize = 128;
/// Draws are for h/‖h‖ and cᵢ/‖cᵢ‖ with this temperature; logits are of h and cᵢ.
pub const TEMPERATURE: f64 = 0.25;
/// Points of a step, and of the test.
const BATCH: usize = 32;
const TEST: usize = 400;
/// The deviation of a point's coordinates from those of its class.
const NOISE: f64 = 0.5;
/// The step size of Adagrad.
const RATE: f32 = 0.3;
/// Losses that are measured on the way.
pub const MEASURED: usize = 8;

/// The size of the experiment.
pub struct Setup {
    pub classes: usize,
    pub steps: usize,
    pub seeds: u64,
    pub seed: u64,
}

/// The test losses of a way to train.
pub struct Curve {
    pub name: &'static str,
    /// Steps and the mean loss in nats over seeds, with its standard error.
    pub losses: Vec<(usize, Mean)>,
}

fn mean(values: &[f64]) -> Mean {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

/// Points around prototypes, of classes whose frequencies fall like 1/rank.
struct Data {
    prototypes: Array2<f64>,
    cumulative: Vec<f64>,
}

impl Data {
    fn new(classes: usize, rng: &mut impl Rng) -> Self {
        let mut sum = 0.0;
        let mut add = |rank: usize| {
            sum += 1.0 / (rank as f64 + 10.0);
            sum
        };
        Data { prototypes: normal(classes, D, rng), cumulative: (0..classes).map(&mut add).collect() }
    }

    fn draw(&self, count: usize, rng: &mut impl Rng) -> (Array2<f32>, Vec<usize>) {
        let total = self.cumulative.last().copied().unwrap_or(1.0);
        let mut label = || {
            let u = rng.random::<f64>() * total;
            self.cumulative.partition_point(|sum| *sum <= u).min(self.cumulative.len() - 1)
        };
        let labels: Vec<usize> = (0..count).map(|_| label()).collect();
        let points = self.prototypes.select(Axis(0), &labels) + normal(count, D, rng) * NOISE;
        (points.mapv(|v| v as f32), labels)
    }
}

/// A step of Adagrad.
pub fn adagrad(
    mut values: ArrayViewMut1<'_, f32>,
    mut squares: ArrayViewMut1<'_, f32>,
    gradient: ArrayView1<'_, f32>,
) {
    for ((value, square), g) in values.iter_mut().zip(&mut squares).zip(gradient) {
        *square += g * g;
        *value -= RATE * g / square.sqrt();
    }
}

/// Sums of squared gradients before the first step.
pub fn squares(values: ArrayView2<'_, f32>) -> Array2<f32> {
    Array2::from_elem(values.dim(), 1e-4)
}

/// h = A x, and class vectors with what draws from them.
pub struct Model {
    a: Array2<f32>,
    layer: SampledSoftmax<f32>,
    squares: [Array2<f32>; 2],
}

impl Model {
    /// For points of so many coordinates, of which A adds up every D-th to begin with.
    pub fn new(proposal: Proposal<f32>, classes: usize, inputs: usize, rng: &mut impl Rng) -> Result<Self> {
        let vectors = (normal(classes, D, rng) * 0.1).mapv(|v| v as f32);
        let a = Array2::from_shape_fn((D, inputs), |(i, j)| if i == j % D { 1.0 } else { 0.0 });
        let layer = SampledSoftmax::new(proposal, &vectors)?;
        Ok(Model { squares: [squares(a.view()), squares(layer.vectors())], a, layer })
    }

    /// A step on a batch, from draws or, where these are exact, from all classes; the gradient with respect to the points.
    pub fn step(&mut self, x: &Array2<f32>, labels: &[usize], seed: u64) -> Result<Array2<f32>> {
        let (h, [of_a, of_vectors]) = (x.dot(&self.a.t()), &mut self.squares);
        let of_h = if self.layer.sampler().is_exact() {
            let (of_h, gradients) = full(self.layer.vectors(), &h, labels);
            let mut vectors = self.layer.vectors().to_owned();
            let rows = vectors.rows_mut().into_iter().zip(of_vectors.rows_mut()).zip(gradients.rows());
            rows.for_each(|((vector, squares), gradient)| adagrad(vector, squares, gradient));
            self.layer.replace(&(0..vectors.nrows()).collect::<Vec<_>>(), &vectors)?;
            of_h
        } else {
            let loss = self.layer.loss(&h, labels, DRAWS, seed)?;
            self.layer.update(&loss, |class, gradient, vector| {
                adagrad(vector, of_vectors.row_mut(class), gradient);
            })?;
            loss.point_gradients().clone()
        };
        let (gradient, of_x) = (of_h.t().dot(x), of_h.dot(&self.a));
        let rows = self.a.rows_mut().into_iter().zip(of_a.rows_mut());
        rows.zip(gradient.rows()).for_each(|((row, squares), gradient)| adagrad(row, squares, gradient));
        Ok(of_x)
    }

    /// The mean loss over all classes, in nats.
    pub fn loss(&self, x: ArrayView2<'_, f32>, labels: &[usize]) -> f64 {
        let logits = x.dot(&self.a.t()).dot(&self.layer.vectors().t());
        let of_row = |(row, label): (ndarray::ArrayView1<'_, f32>, &usize)| {
            let top = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let sum: f64 = row.iter().map(|logit| f64::from(logit - top).exp()).sum();
            sum.ln() + f64::from(top - row[*label])
        };
        logits.rows().into_iter().zip(labels).map(of_row).sum::<f64>() / labels.len() as f64
    }
}

/// The gradients of the softmax over all classes with respect to h and to the class vectors.
fn full(vectors: ArrayView2<'_, f32>, h: &Array2<f32>, labels: &[usize]) -> (Array2<f32>, Array2<f32>) {
    let mut slopes = h.dot(&vectors.t());
    for (mut row, label) in slopes.rows_mut().into_iter().zip(labels) {
        let top = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        row.mapv_inplace(|logit| (logit - top).exp());
        let sum = row.sum();
        row /= sum;
        row[*label] -= 1.0;
    }
    slopes /= h.nrows() as f32;
    (slopes.dot(&vectors), slopes.t().dot(h))
}

/// What draws with a method, or takes all classes; of hybrids with as many features as others, or as many operations.
pub fn proposal_of(method: Option<Method>, equal: Equal, seed: u64) -> Result<Proposal<f32>> {
    let r = TEMPERATURE.sqrt().recip();
    let map = method.map(|method| method.map(D, FEATURES, equal, r, seed)).transpose()?;
    let least = || Positive.softmax(Orthogonal.draw(D, 1, seed)?);
    match map {
        None => Ok(Proposal::new(least()?).with_exact_below(usize::MAX)),
        Some(None) => Proposal::new(least()?).with_exact_below(0).with_uniform(1.0),
        Some(Some(map)) => proposal(map)?.with_exact_below(0).with_cosine(TEMPERATURE),
    }
}

/// The test losses of one training, with a method or all classes.
fn train(setup: &Setup, method: Option<Method>, seed: u64) -> Result<Vec<f64>> {
    let mut rng = rng_of_step(setup.seed, 1000 + seed);
    let data = Data::new(setup.classes, &mut rng);
    let (test, test_labels) = data.draw(TEST, &mut rng);
    let mut model =
        Model::new(proposal_of(method, Equal::Features, setup.seed + seed)?, setup.classes, D, &mut rng)?;
    let mut losses = vec![model.loss(test.view(), &test_labels)];
    for step in 1..=setup.steps {
        let (x, labels) = data.draw(BATCH, &mut rng);
        model.step(&x, &labels, seed.wrapping_mul(1 << 32) + step as u64)?;
        if measured(setup.steps).contains(&step) {
            losses.push(model.loss(test.view(), &test_labels));
        }
    }
    Ok(losses)
}

/// The steps after which losses are measured, but for the first.
fn measured(steps: usize) -> [usize; MEASURED] {
    std::array::from_fn(|i| (i + 1) * steps / MEASURED)
}

/// All ways to train; trainings run side by side.
pub fn run(setup: &Setup) -> Result<Vec<Curve>> {
    let ways: Vec<Option<Method>> = std::iter::once(None).chain(METHODS.map(Some)).collect();
    let jobs: Vec<(usize, u64)> =
        (0..ways.len()).flat_map(|way| (0..setup.seeds).map(move |seed| (way, seed))).collect();
    let done = AtomicUsize::new(0);
    let job = |(way, seed): &(usize, u64)| {
        let losses = train(setup, ways[*way], *seed)?;
        progress::show("trainings", done.fetch_add(1, Ordering::Relaxed) + 1, jobs.len());
        Ok(Array1::from(losses))
    };
    let losses = jobs.par_iter().map(job).collect::<Result<Vec<_>>>()?;
    let curve = |(way, losses): (&Option<Method>, &[Array1<f64>])| {
        let at = |i: usize| mean(&losses.iter().map(|losses| losses[i]).collect::<Vec<_>>());
        let steps = std::iter::once(0).chain(measured(setup.steps));
        Curve {
            name: way.map_or("full softmax", Method::name),
            losses: steps.enumerate().map(|(i, step)| (step, at(i))).collect(),
        }
    };
    Ok(ways.iter().zip(losses.chunks(setup.seeds as usize)).map(curve).collect())
}
