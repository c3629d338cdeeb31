//! The cases of linear attention with positive features, d_v = d.

use std::hint::black_box;
use std::time::Instant;

use ndarray::{Array4, s};
use rand::distr::{Distribution, StandardUniform};
use random_features::apply::attention::{Attention, Heads};
use random_features::extend::Lift;

use random_features::frequency::Independent;
use random_features::{Positive, Real, rng};

use crate::request::{Case, Request};
use crate::work::{Cost, Result, Work, timed};

/// Tokens of a step's measurement: too short alone for a clock.
const STEPS: usize = 256;

/// Keys up to each query's own whose weights are exact.
const WINDOW: usize = 64;

pub fn prepare<T: Real>(request: &Request) -> Result<Work>
where
    StandardUniform: Distribution<T>,
{
    let Request { case, n, d, m, heads, .. } = *request;
    let window = if case == Case::AttentionCausalWindow { WINDOW } else { 0 };
    let attention =
        Attention::new(Positive.softmax::<T>(Independent.draw(d, m, 1)?)?)?.with_window(window, 0)?;
    let [q, k, v] = [1, 2, 3].map(|seed| tokens::<T>([1, heads, n, d], seed));
    let run: Box<dyn FnMut() -> Result<f64>> = match case {
        Case::AttentionStep => {
            let mut state = attention.state(1, heads, d)?;
            state.prefill(&Heads::without_queries(&k, &v)?)?;
            // One token again and again, as a layer before would leave it: in cache, and one head beside the other.
            let [q, k, v] = [&q, &k, &v].map(|x| x.slice(s![.., .., n - 1, ..]).to_owned());
            Box::new(move || {
                let start = Instant::now();
                for _ in 0..STEPS {
                    black_box(state.step(black_box(&q), &k, &v)?);
                }
                Ok(start.elapsed().as_secs_f64() / STEPS as f64)
            })
        }
        Case::AttentionBackward | Case::AttentionCausalBackward => {
            let upstream = tokens::<T>([1, heads, n, d], 4);
            timed(move || {
                let heads = Heads::new(black_box(&q), &k, &v)?;
                let (attended, tape) = match case {
                    Case::AttentionBackward => attention.bidirectional_recorded(&heads)?,
                    _ => attention.causal_recorded(&heads)?,
                };
                black_box(attended);
                black_box(tape.backward(&heads, &upstream)?);
                Ok(())
            })
        }
        _ => {
            let mut out = Array4::zeros((1, heads, n, d));
            timed(move || {
                let heads = Heads::new(black_box(&q), &k, &v)?;
                let attend = if case == Case::Attention {
                    Attention::bidirectional_into
                } else {
                    Attention::causal_into
                };
                Ok(attend(&attention, &heads, &mut out)?)
            })
        }
    };
    let tokens = if case == Case::AttentionStep { heads } else { heads * n } as f64;
    let (d, m, size, window) = (d as f64, m as f64, size_of::<T>() as f64, window as f64);
    // After the forward pass and from its tape: queries and keys take a product with what was summed up and one with the frequencies.
    // Queries are summed up, and keys ask for these sums.
    let gradients = if case.is_backward() { tokens * 2.0 * m * (6.0 * d + 4.0) } else { 0.0 };
    let cost = Cost {
        // Features of a query and a key, the key's value into the sums, and the sums for the query.
        // With neighbours logits and weighted values beside.
        flops: gradients + tokens * 2.0 * (m * (2.0 * d + 2.0 * (d + 1.0)) + 2.0 * window * d),
        lifts: vec![(Lift::Exp, tokens * (2.0 * m + window))],
        written: if case.is_backward() { 4.0 } else { 1.0 } * tokens * d * size,
        read: if case.is_backward() { 11.0 } else { 3.0 } * tokens * d * size,
    };
    Ok(Work::new(run, cost))
}

fn tokens<T: Real>(shape: [usize; 4], seed: u64) -> Array4<T>
where
    StandardUniform: Distribution<T>,
{
    let mut rng = rng(seed);
    Array4::from_shape_simple_fn(shape, || StandardUniform.sample(&mut rng))
}
