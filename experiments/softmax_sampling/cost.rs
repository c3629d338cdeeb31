//! What a draw costs.

use std::hint::black_box;
use std::time::Instant;

use experiments::progress;
use experiments::sampling::data::{self, D, LAWS};
use experiments::sampling::methods::{Equal, Method};
use ndarray::{Array1, ArrayView1};
use rand::RngExt;
use random_features::apply::softmax_sampling::Proposal;
use random_features::{Result, rng};

/// Features of the tree.
pub const FEATURES: usize = 128;
/// Draws for each h.
pub const DRAWS: usize = 64;
/// Different h, in turn.
const QUERIES: usize = 32;
/// How often the exact softmax is taken.
const EXACT: usize = 5;

/// The costs of some number of classes; times in seconds.
pub struct Row {
    pub classes: usize,
    /// A draw from the tree, with its share of the features of h.
    pub tree: f64,
    /// A draw after the softmax of all classes.
    pub exact: f64,
    pub build: f64,
    /// Giving a class another vector.
    pub replace: f64,
    pub bytes: usize,
}

/// The least time of some runs, of which each takes so many steps.
fn least(runs: usize, steps: usize, mut run: impl FnMut(usize) -> Result<()>) -> Result<f64> {
    let mut least = f64::INFINITY;
    for i in 0..runs {
        let start = Instant::now();
        run(i)?;
        least = least.min(start.elapsed().as_secs_f64() / steps as f64);
    }
    Ok(least)
}

/// Draws from the softmax itself.
fn exact(logits: Array1<f32>, rng: &mut impl rand::Rng) -> Vec<usize> {
    let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    let sums = logits.mapv(|logit| {
        sum += f64::from((logit - top).exp());
        sum
    });
    let draw = |_| {
        let u = rng.random::<f64>() * sum;
        sums.as_slice().map_or(0, |sums| sums.partition_point(|sum| *sum <= u))
    };
    (0..DRAWS).map(draw).collect()
}

fn row(classes: usize, seed: u64) -> Result<Row> {
    let (mut rng, law) = (rng(seed), LAWS[0]);
    let topics = data::topics(&mut rng);
    let vectors = data::embeddings(classes, &topics, law, &mut rng);
    let queries = data::embeddings(QUERIES, &topics, law, &mut rng);
    let Some(map) = Method::Positive.map(D, FEATURES, Equal::Features, law.middle, seed)? else {
        unreachable!("a map")
    };
    let h = |i: usize| -> ArrayView1<'_, f32> { queries.row(i % QUERIES) };
    let exact = least(EXACT, DRAWS, |i| {
        black_box(exact(vectors.dot(&h(i)), &mut rng));
        Ok(())
    })?;
    let start = Instant::now();
    let mut sampler = Proposal::new(map).with_exact_below(0).build(&vectors)?;
    let build = start.elapsed().as_secs_f64();
    let tree = least(10 * QUERIES, DRAWS, |i| {
        black_box(sampler.sample_of(&h(i), DRAWS, i as u64)?);
        Ok(())
    })?;
    let replace = least(10, QUERIES, |run| {
        let which: Vec<usize> = (0..QUERIES).map(|i| (i * 7919 + run * 104_729) % classes).collect();
        sampler.replace(&which, &queries)
    })?;
    Ok(Row { classes, tree, exact, build, replace, bytes: sampler.bytes() })
}

/// 1000, 3162, 10 000, … and the largest number of classes.
pub fn run(most: usize, seed: u64) -> Result<Vec<Row>> {
    let numbers = (6..).map(|i| 10f64.powf(0.5 * f64::from(i)).round() as usize);
    let numbers: Vec<usize> = numbers.take_while(|classes| *classes < most).chain([most]).collect();
    let row = |(i, classes): (usize, &usize)| {
        let row = row(*classes, seed)?;
        progress::show("numbers of classes", i + 1, numbers.len());
        Ok(row)
    };
    numbers.iter().enumerate().map(row).collect()
}
