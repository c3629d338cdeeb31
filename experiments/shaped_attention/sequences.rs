//! Causal attention over long synthetic sequences with and without neighbours.

use ndarray::{Array2, Array4};
use rand_distr::{Distribution, StandardNormal};
use random_features::apply::attention::{Attention, AttentionShaping, ExactAttention, Heads};
use random_features::data::shaping::Shaping;
use random_features::frequency::{Orthogonal, Sobol};
use random_features::kernel::Softmax;
use random_features::{Map, Positive, Result, rng, rng_of_step};

use crate::alone;
use crate::maps::{distance, one_head};
use crate::trained::Setup;

/// Tokens, dimensions and features.
const LENGTH: usize = 4096;
const D: usize = 16;
const M: usize = 256;
/// Keys up to each query's own whose weights are exact.
pub const WINDOW: usize = 64;
/// Tokens that share a topic, one after the other, topics, and tokens over which what is local changes.
const TOPIC: usize = 96;
const TOPICS: usize = 8;
const REACH: f64 = 12.0;

/// The relative errors of the output for a kind of sequence.
pub struct Errors {
    pub name: &'static str,
    /// In the order of [`WAYS`].
    pub errors: [f64; 6],
}

/// What is compared: the window without features, and features, some of them with the window.
pub const WAYS: [&str; 6] =
    ["alone-near", "positive", "positive-near", "weighted", "weighted-near", "truncated-near"];

/// A sequence: queries and keys whose first half of coordinates is what is near, and the others a topic, of these sizes.
fn sequence(seed: u64, [local, far]: [f64; 2]) -> [Array2<f32>; 3] {
    let mut topics = rng(1);
    let mut own = rng(seed);
    let mut normals = |rows: usize, columns: usize, shared: bool| {
        let rng = if shared { &mut topics } else { &mut own };
        Array2::<f64>::from_shape_simple_fn((rows, columns), || StandardNormal.sample(rng))
    };
    // Topics are those of all sequences.
    let topic = normals(TOPICS, D / 2, true);
    let meaning = normals(TOPICS, D, true);
    let steps = normals(LENGTH, D / 2, false);
    let (noise, values) = (normals(LENGTH, D, false), normals(LENGTH, D, false));
    let of = |i: usize| (i / TOPIC * 5 + i / (TOPIC * TOPICS)) % TOPICS;
    // A stationary process that forgets within REACH.
    let keep = (-1.0 / REACH).exp();
    let mut near = steps;
    for i in 1..LENGTH {
        for k in 0..D / 2 {
            near[[i, k]] = keep * near[[i - 1, k]] + (1.0 - keep * keep).sqrt() * near[[i, k]];
        }
    }
    let token = |(i, k): (usize, usize)| match k < D / 2 {
        true => local * near[[i, k]],
        false => far * topic[[of(i), k - D / 2]],
    };
    let key = Array2::from_shape_fn((LENGTH, D), |at| (token(at) + 0.2 * noise[at]) as f32);
    let query = Array2::from_shape_fn((LENGTH, D), |at| token(at) as f32);
    let value = |(i, k): (usize, usize)| near[[i, k % (D / 2)]] + meaning[[of(i), k]] + 0.5 * values[[i, k]];
    [query, key, Array2::from_shape_fn((LENGTH, D), |at| value(at) as f32)]
}

fn errors(setup: &Setup, (name, sizes): (&'static str, [f64; 2])) -> Result<Errors> {
    let tokens = sequence(setup.seed + 3, sizes).map(|x| one_head(&x));
    // Causally the choice must not see the sequence: another one makes it.
    let [q, k, _] = sequence(setup.seed + 2, sizes);
    let weighted = AttentionShaping::new(Shaping::new()).choose(&q, &k, 64, 0)?.0;
    let near = |shaping| AttentionShaping::new(shaping).with_window(WINDOW, WINDOW);
    let beside = near(Shaping::new()).choose(&q, &k, 64, 0)?.0;
    let short = near(Shaping::new().with_rank_for(M)?).choose(&q, &k, 64, 0)?.0;
    let heads = Heads::new(&tokens[0], &tokens[1], &tokens[2])?;
    let exact: Array4<f32> = ExactAttention::new().causal(&heads)?.output;
    let error = |out: &Array4<f32>| distance(out.iter().zip(&exact));
    let mean = |window: usize, map: &dyn Fn(u64) -> Result<Map<f32>>| -> Result<f64> {
        let mut sum = 0.0;
        for repeat in 0..setup.repeat {
            let attention = Attention::new(map(repeat)?)?.with_window(window, 0)?;
            sum += error(&attention.causal(&heads)?.output);
        }
        Ok(sum / setup.repeat as f64)
    };
    let stream = |repeat: u64| rng_of_step(setup.seed, (1 << 41) + repeat);
    let dense = |repeat| Orthogonal.draw(D, M, stream(repeat).next_u64());
    let positive = |repeat| Positive.softmax(dense(repeat)?);
    let errors = [
        error(&alone::output(&tokens, |i, j| j <= i && j + WINDOW > i)),
        mean(0, &positive)?,
        mean(WINDOW, &positive)?,
        mean(0, &|repeat| weighted.build(dense(repeat)?, Softmax::default()))?,
        mean(WINDOW, &|repeat| beside.build(dense(repeat)?, Softmax::default()))?,
        mean(WINDOW, &|repeat| {
            short.build(Sobol.draw(short.rank(), M, stream(repeat).next_u64())?, Softmax::default())
        })?,
    ];
    Ok(Errors { name, errors })
}

pub fn run(setup: &Setup) -> Result<Vec<Errors>> {
    let kinds = [("local", [2.2, 0.0]), ("far", [0.0, 2.2]), ("both", [1.8, 1.8])];
    kinds.into_iter().map(|kind| errors(setup, kind)).collect()
}
