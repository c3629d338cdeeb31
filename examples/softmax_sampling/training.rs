//! A classifier of many classes, trained from draws (Figure 10).

use std::sync::atomic::{AtomicUsize, Ordering};

use ndarray::{Array1, Array2, ArrayView2, Axis};
use rand::{Rng, RngExt};
use random_features::apply::softmax_sampling::{Draws, SampledLoss, SoftmaxSampler};
use random_features::{Result, rng_of_step};
use rayon::prelude::*;

use crate::data::normal;
use crate::distances::{Mean, mean};
use crate::methods::{METHODS, Method, proposal};
use crate::progress;

/// The dimension of points and of class vectors.
pub const D: usize = 32;
/// Draws for each point, and features that propose them.
pub const DRAWS: usize = 40;
pub const FEATURES: usize = 128;
/// Draws are for h/‖h‖ and cᵢ/‖cᵢ‖ with this temperature, as in the paper; logits are of h and cᵢ.
pub const TEMPERATURE: f64 = 0.25;
/// Points of a step, and of the test.
const BATCH: usize = 32;
const TEST: usize = 400;
/// The deviation of a point's coordinates from those of its class.
const NOISE: f64 = 0.5;
/// The step size of Adagrad.
const RATE: f32 = 0.3;
/// Steps after which the tree takes the new vectors over: until then draws are from the old ones, with their probabilities.
const LAG: usize = 10;
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

/// Parameters under Adagrad.
struct Parameters {
    values: Array2<f32>,
    squares: Array2<f32>,
}

impl Parameters {
    fn new(values: Array2<f32>) -> Self {
        Parameters { squares: Array2::from_elem(values.dim(), 1e-4), values }
    }

    fn step(&mut self, row: usize, gradient: ndarray::ArrayView1<'_, f32>) {
        let (values, squares) = (self.values.row_mut(row), self.squares.row_mut(row));
        for ((value, square), g) in values.into_iter().zip(squares).zip(gradient) {
            *square += g * g;
            *value -= RATE * g / square.sqrt();
        }
    }
}

/// h = A x, and class vectors.
struct Model {
    a: Parameters,
    vectors: Parameters,
}

/// How negative classes are found.
enum Negatives {
    All,
    Uniform,
    Tree(Box<SoftmaxSampler<f32>>),
}

impl Model {
    fn new(classes: usize, rng: &mut impl Rng) -> Self {
        let a = Parameters::new(Array2::eye(D));
        Model { a, vectors: Parameters::new((normal(classes, D, rng) * 0.1).mapv(|v| v as f32)) }
    }

    /// The gradients of a batch with respect to h and to some class vectors.
    fn gradients(
        &self,
        negatives: &Negatives,
        h: &Array2<f32>,
        labels: &[usize],
        (seed, step): (u64, u64),
    ) -> Result<(Array2<f32>, Vec<usize>, Array2<f32>)> {
        let classes = self.vectors.values.nrows();
        let draws = match negatives {
            Negatives::All => return Ok(self.full(h, labels)),
            Negatives::Uniform => {
                let mut rng = rng_of_step(seed, step);
                let drawn = Array2::from_shape_simple_fn((h.nrows(), DRAWS), || rng.random_range(0..classes));
                Draws::new(drawn, Array2::from_elem((h.nrows(), DRAWS), -(classes as f64).ln()))?
            }
            Negatives::Tree(sampler) => sampler.sample(h, DRAWS, seed.wrapping_mul(1 << 32) + step)?,
        };
        let loss = SampledLoss::new(h, &self.vectors.values, labels, &draws)?;
        Ok((loss.point_gradients().clone(), loss.classes().to_vec(), loss.class_gradients().clone()))
    }

    /// Those of the softmax over all classes.
    fn full(&self, h: &Array2<f32>, labels: &[usize]) -> (Array2<f32>, Vec<usize>, Array2<f32>) {
        let mut slopes = h.dot(&self.vectors.values.t());
        for (mut row, label) in slopes.rows_mut().into_iter().zip(labels) {
            let top = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            row.mapv_inplace(|logit| (logit - top).exp());
            let sum = row.sum();
            row /= sum;
            row[*label] -= 1.0;
        }
        slopes /= h.nrows() as f32;
        let of_classes = slopes.t().dot(h);
        (slopes.dot(&self.vectors.values), (0..self.vectors.values.nrows()).collect(), of_classes)
    }

    /// The mean loss over all classes, in nats.
    fn loss(&self, x: ArrayView2<'_, f32>, labels: &[usize]) -> f64 {
        let logits = x.dot(&self.a.values.t()).dot(&self.vectors.values.t());
        let of_row = |(row, label): (ndarray::ArrayView1<'_, f32>, &usize)| {
            let top = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let sum: f64 = row.iter().map(|logit| f64::from(logit - top).exp()).sum();
            sum.ln() + f64::from(top - row[*label])
        };
        logits.rows().into_iter().zip(labels).map(of_row).sum::<f64>() / labels.len() as f64
    }
}

/// The test losses of one training, with the method of the negatives or all classes.
fn train(setup: &Setup, method: Option<Method>, seed: u64) -> Result<Vec<f64>> {
    let mut rng = rng_of_step(setup.seed, 1000 + seed);
    let data = Data::new(setup.classes, &mut rng);
    let (test, test_labels) = data.draw(TEST, &mut rng);
    let mut model = Model::new(setup.classes, &mut rng);
    let map = method.map(|method| method.map(D, FEATURES, TEMPERATURE.sqrt().recip(), setup.seed + seed));
    let mut negatives = match map.transpose()? {
        None => Negatives::All,
        Some(None) => Negatives::Uniform,
        Some(Some(map)) => {
            let sampler = proposal(map)?.cosine(TEMPERATURE)?.build(&model.vectors.values)?;
            Negatives::Tree(Box::new(sampler))
        }
    };
    let (mut losses, mut touched) = (vec![model.loss(test.view(), &test_labels)], Vec::new());
    for step in 1..=setup.steps {
        let (x, labels) = data.draw(BATCH, &mut rng);
        let h = x.dot(&model.a.values.t());
        let (of_h, classes, of_classes) = model.gradients(&negatives, &h, &labels, (seed, step as u64))?;
        let of_a = of_h.t().dot(&x);
        of_a.rows().into_iter().enumerate().for_each(|(row, gradient)| model.a.step(row, gradient));
        classes
            .iter()
            .zip(of_classes.rows())
            .for_each(|(class, gradient)| model.vectors.step(*class, gradient));
        touched.extend(classes);
        if let (Negatives::Tree(sampler), 0) = (&mut negatives, step % LAG) {
            touched.sort_unstable();
            touched.dedup();
            sampler.replace(&touched, &model.vectors.values.select(Axis(0), &touched))?;
            touched.clear();
        }
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
