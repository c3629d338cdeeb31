//! The case of softmax sampling with positive features.

use std::hint::black_box;
use std::time::Instant;

use rand::distr::{Distribution, StandardUniform};
use random_features::apply::softmax_sampling::SoftmaxSampler;
use random_features::extend::Lift;
use random_features::frequency::Frequencies;
use random_features::{Positive, Real};

use crate::request::Request;
use crate::work::{Cost, Made, Result, Work, points, timed};

/// Classes that are drawn for a point.
const DRAWS: usize = 64;
/// Points that take turns.
const QUERIES: usize = 16;
/// Children of a node, as the sampler has them; its leaves are classes where m ≤ 4d.
const CHILDREN: usize = 4;

pub fn prepare<T: Real>(request: &Request, omega: Frequencies) -> Result<Work>
where
    StandardUniform: Distribution<T>,
{
    let Request { n, d, m, .. } = *request;
    let (map, queries) = (Positive.softmax::<T>(omega)?, points::<T>(QUERIES, d)?);
    let classes = points::<T>(n, d)?;
    let start = Instant::now();
    let sampler = SoftmaxSampler::new(map, &classes)?;
    let is_exact = sampler.is_exact();
    let made = Made { seconds: start.elapsed().as_secs_f64(), bytes: sampler.bytes() };
    drop(classes);
    let mut turn = 0;
    let run = timed(move || {
        turn = (turn + 1) % QUERIES;
        Ok(sampler.sample_of(black_box(&queries.row(turn)), DRAWS, turn as u64)?)
    });
    let levels = (n as f64).log(CHILDREN as f64).ceil();
    let leaf = m.div_ceil(4 * d) as f64;
    let (draws, d, m, size) = (DRAWS as f64, d as f64, m as f64, size_of::<T>() as f64);
    let cost = if is_exact {
        // All logits.
        let (flops, read) = (2.0 * n as f64 * d, n as f64 * d * size);
        Cost { flops, lifts: vec![(Lift::Exp, n as f64)], read, ..Cost::default() }
    } else {
        // Features of h, and of the classes of a leaf for each draw.
        let features = 1.0 + if leaf > 1.0 { draws * leaf } else { 0.0 };
        // Sums that are read, by draws that share the upper nodes.
        let nodes = (1..=levels as i32).map(|level| draws.min(f64::from(CHILDREN as i32).powi(level - 1)));
        let sums = nodes.sum::<f64>() * CHILDREN as f64 * m;
        Cost {
            flops: 2.0 * (features * d * m + sums),
            lifts: vec![(Lift::Exp, features * m)],
            read: ((features - 1.0) * d + sums) * size,
            ..Cost::default()
        }
    };
    Ok(Work { made: Some(made), ..Work::new(run, cost) })
}
