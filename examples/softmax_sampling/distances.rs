//! How far estimated distributions are from the softmax (Tables 4 and 5).

use ndarray::{Array1, Array2, Axis};
use random_features::apply::metrics::{kolmogorov_smirnov, negative_fraction, total_variation, wasserstein};
use random_features::{Error, Map, Result, rng_of_step};

use crate::data::{self, D, LAWS, Law};
use crate::methods::{METHODS, Method, proposal};
use crate::progress;

/// The size of the experiment.
pub struct Setup {
    pub classes: usize,
    /// The largest number of features.
    pub features: usize,
    pub queries: usize,
    pub repetitions: u64,
    pub seed: u64,
}

/// What is measured: the mean over queries.
pub const METRICS: [&str; 5] = [
    "Wasserstein",
    "Kolmogorov–Smirnov",
    "total variation",
    "share of negatives",
    "total variation of draws",
];
/// Those that draws add, for the most features alone.
const DRAWS: usize = 4;
/// Queries for which all probabilities of draws are taken.
const DRAWN_QUERIES: usize = 2;
/// Classes whose estimates are taken at a time.
const CHUNK: usize = 10_000;

/// A mean and its standard error.
pub type Mean = (f64, f64);

/// A mechanism on one law of norms.
pub struct Curve {
    pub method: Method,
    /// Over the numbers of features, then over [`METRICS`]; none where a metric is not taken.
    pub means: Vec<[Option<Mean>; METRICS.len()]>,
}

pub struct Found {
    pub law: Law,
    pub features: Vec<usize>,
    pub curves: Vec<Curve>,
}

/// 64, 128, … and the largest itself.
fn numbers(most: usize) -> Vec<usize> {
    std::iter::successors(Some(64), |d| Some(2 * d)).take_while(|d| *d < most).chain([most]).collect()
}

/// Classes, queries and their softmax.
struct Data {
    classes: Array2<f32>,
    queries: Array2<f32>,
    exact: Vec<Array1<f64>>,
}

impl Data {
    fn draw(setup: &Setup, law: Law, repetition: u64) -> Self {
        let mut rng = rng_of_step(setup.seed, repetition);
        let topics = data::topics(&mut rng);
        let classes = data::embeddings(setup.classes, &topics, law, &mut rng);
        let queries = data::embeddings(setup.queries, &topics, law, &mut rng);
        let softmax = |h: ndarray::ArrayView1<'_, f32>| {
            let weights = classes.dot(&h).mapv(|logit| f64::from(logit).exp());
            let total = weights.sum();
            weights / total
        };
        let exact = queries.rows().into_iter().map(softmax).collect();
        Data { classes, queries, exact }
    }

    /// Estimates of all classes, for each query.
    fn estimates(&self, map: Option<&Map<f32>>) -> Result<Array2<f64>> {
        let shape = (self.queries.nrows(), self.classes.nrows());
        let Some(map) = map else { return Ok(Array2::ones(shape)) };
        let mut out = Array2::zeros(shape);
        let chunks = out.axis_chunks_iter_mut(Axis(1), CHUNK);
        for (mut out, classes) in chunks.zip(self.classes.axis_chunks_iter(Axis(0), CHUNK)) {
            out.assign(&map.gram(&self.queries, &classes)?.mapv(f64::from));
        }
        Ok(out)
    }

    /// The first metrics, means over queries.
    fn distances(&self, map: Option<&Map<f32>>) -> Result<[f64; DRAWS]> {
        let estimates = self.estimates(map)?;
        let mut sums = [0.0; DRAWS];
        for (p, q) in self.exact.iter().zip(estimates.rows()) {
            let negative = negative_fraction(&q)?;
            // Where no estimate is positive, draws are uniform.
            let q = if q.iter().any(|q| *q > 0.0) { q.to_owned() } else { Array1::ones(q.len()) };
            let values = [wasserstein(p, &q)?, kolmogorov_smirnov(p, &q)?, total_variation(p, &q)?, negative];
            sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value / self.exact.len() as f64);
        }
        Ok(sums)
    }

    /// The total variation distance of what a tree draws from.
    fn of_draws(&self, map: Map<f32>) -> Result<f64> {
        let sampler = proposal(map)?.exact_below(0).build(&self.classes)?;
        let all: Vec<usize> = (0..sampler.classes()).collect();
        let count = DRAWN_QUERIES.min(self.exact.len());
        let of = |query: usize| {
            let q = sampler.log_probabilities(&self.queries.row(query), &all)?;
            total_variation(&self.exact[query], &q.iter().map(|log| log.exp()).collect::<Array1<f64>>())
        };
        Ok((0..count).map(of).collect::<Result<Vec<f64>>>()?.iter().sum::<f64>() / count as f64)
    }
}

/// The mean of some values and its standard error.
pub fn mean(values: &[f64]) -> Mean {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

pub fn run(setup: &Setup) -> Result<Vec<Found>> {
    let features = numbers(setup.features);
    let (steps, mut done) = (LAWS.len() * setup.repetitions as usize * features.len() * METHODS.len(), 0);
    let mut all = Vec::new();
    for law in LAWS {
        // Values of each metric over repetitions, for each method and number of features.
        let mut values = vec![vec![[const { Vec::new() }; METRICS.len()]; features.len()]; METHODS.len()];
        for repetition in 0..setup.repetitions {
            let data = Data::draw(setup, law, repetition);
            for (values, method) in values.iter_mut().zip(METHODS) {
                for (values, d) in values.iter_mut().zip(&features) {
                    let map = method.map(D, *d, law.middle, setup.seed + 1 + repetition)?;
                    let found = data.distances(map.as_ref())?;
                    values.iter_mut().zip(found).for_each(|(values, value)| values.push(value));
                    if *d == setup.features {
                        let drawn = map.map_or(Ok(found[2]), |map| data.of_draws(map))?;
                        values[DRAWS].push(drawn);
                    }
                    done += 1;
                    progress::show("distances", done, steps);
                }
            }
        }
        let means = |values: &[Vec<f64>; METRICS.len()]| {
            values.each_ref().map(|values| (!values.is_empty()).then(|| mean(values)))
        };
        let curve =
            |(method, values): (Method, Vec<_>)| Curve { method, means: values.iter().map(means).collect() };
        let curves = METHODS.into_iter().zip(values).map(curve).collect();
        all.push(Found { law, features: features.clone(), curves });
    }
    if all.is_empty() { Err(Error::NoData { what: "the experiment" }) } else { Ok(all) }
}
