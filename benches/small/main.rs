//! Small work beside loops by hand: a row, 64 rows, a prediction, a head of 128 tokens, a step of decoding.
//!
//! `cargo bench --bench small` times them on one thread in alternation; add a filter such as `-- step` for some of them. The table has
//! the medians in microseconds and their ratio.
//! Loops by hand do the arithmetic alone, in `f32`: no scales, no checks, no protection from overflow.

mod hand;

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use ndarray::{Array1, Array2, Array3, Array4};
use random_features::apply::Ridge;
use random_features::apply::attention::{Attention, Heads};
use random_features::frequency::{Frequencies, Orthogonal};
use random_features::{Map, Positive, Side};
use rayon::ThreadPoolBuilder;

/// The dimension of points, tokens and values.
const D: usize = 64;
/// Alternations.
const ROUNDS: usize = 21;
/// Seconds that a round of one side takes, about.
const ROUND: f64 = 0.01;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// Seconds of one call, on average over `calls`.
fn timed(calls: usize, work: &mut dyn FnMut() -> Outcome) -> Outcome<f64> {
    let start = Instant::now();
    for _ in 0..calls {
        work()?;
    }
    Ok(start.elapsed().as_secs_f64() / calls as f64)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Times two pieces of work in alternation, and prints a row, if the label has all words of the command line.
fn compare(label: &str, mut ours: impl FnMut() -> Outcome, mut by_hand: impl FnMut() -> Outcome) -> Outcome {
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with('-'));
    if !words.all(|word| label.contains(&word)) {
        return Ok(());
    }
    let calls = (ROUND / timed(10, &mut ours)?).ceil() as usize;
    let (mut times, mut others) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        times.push(timed(calls, &mut ours)?);
        others.push(timed(calls, &mut by_hand)?);
    }
    let [ours, by_hand] = [times, others].map(|times| 1e6 * median(times));
    println!("| {label} | {ours:.2} | {by_hand:.2} | {:.2} |", ours / by_hand);
    Ok(())
}

/// Numbers of the size of tokens, which differ from place to place.
fn numbers(count: usize, phase: usize) -> Vec<f32> {
    (0..count).map(|i| (((i * 31 + phase * 7) % 17) as f32 / 17.0 - 0.45) / 4.0).collect()
}

/// Frequencies, and their columns d × m for loops by hand.
fn frequencies(m: usize) -> Outcome<(Frequencies, Vec<f32>)> {
    let omega = Orthogonal.draw(D, m, 1)?;
    let columns = omega.rows().t().iter().map(|v| *v as f32).collect();
    Ok((omega, columns))
}

fn rows(n: usize, m: usize) -> Outcome {
    let (omega, columns) = frequencies(m)?;
    let map = Positive.softmax::<f32>(omega)?;
    let x = Array2::from_shape_vec((n, D), numbers(n * D, 1))?;
    let (mut values, mut scales) = map.features(Side::X, &x)?.into_parts();
    let mut out = vec![0.0; n * m];
    let points = numbers(n * D, 1);
    let ours = || Ok(map.features_into(Side::X, black_box(&x), &mut values, &mut scales)?);
    compare(&format!("features of {n} points, {D} → {m}"), ours, || {
        hand::features(black_box(&points), D, &columns, &mut out);
        Ok(())
    })
}

fn prediction(m: usize) -> Outcome {
    let (omega, columns) = frequencies(m)?;
    let map: Map<f32> = Positive.gaussian(omega, 1.0)?;
    let coefficients = numbers(m, 2);
    let weights = Array2::from_shape_fn((1, m), |(_, j)| f64::from(coefficients[j]));
    let mut predictor = Ridge::of_weights(map, &weights, &[0.0])?.predictor();
    let (point, mut out) = (numbers(D, 1), [0.0]);
    let row = Array1::from(point.clone());
    let ours = || Ok(predictor.predict_into(black_box(&row), &mut out)?);
    let (mut features, mut found) = (vec![0.0; m], [0.0]);
    compare(&format!("prediction of a point, {D} → {m}"), ours, || {
        hand::features(black_box(&point), D, &columns, &mut features);
        hand::product(&features, &coefficients, &mut found);
        black_box(&found);
        Ok(())
    })
}

fn head(n: usize, m: usize) -> Outcome {
    let (omega, columns) = frequencies(m)?;
    let attention = Attention::new(Positive.softmax::<f32>(omega)?)?.with_scale(1.0)?;
    let tokens = |phase| Array4::from_shape_vec((1, 1, n, D), numbers(n * D, phase));
    let (q, k, v) = (tokens(1)?, tokens(2)?, tokens(3)?);
    let mut out = Array4::zeros((1, 1, n, D));
    let ours = || {
        let heads = Heads::new(black_box(&q), &k, &v)?;
        attention.bidirectional_into(&heads, &mut out)?;
        Ok(())
    };
    let [q_rows, k_rows, v_rows] = [1, 2, 3].map(|phase| numbers(n * D, phase));
    let (mut features, mut result) = (vec![0.0; n * m], vec![0.0; n * D]);
    let (mut sums, mut totals) = (vec![0.0; m * D], vec![0.0; m]);
    compare(&format!("attention of {n} tokens, d = {D}, m = {m}"), ours, || {
        sums.fill(0.0);
        totals.fill(0.0);
        hand::features(&k_rows, D, &columns, &mut features);
        for (features, value) in features.chunks_exact(m).zip(v_rows.chunks_exact(D)) {
            hand::add(features, value, &mut sums, &mut totals);
        }
        hand::features(black_box(&q_rows), D, &columns, &mut features);
        for (features, out) in features.chunks_exact(m).zip(result.chunks_exact_mut(D)) {
            hand::average(features, &sums, &totals, out);
        }
        black_box(&result);
        Ok(())
    })
}

fn step(heads: usize, m: usize) -> Outcome {
    let (omega, columns) = frequencies(m)?;
    let attention = Attention::new(Positive.softmax::<f32>(omega)?)?.with_scale(1.0)?;
    let tokens = |phase| Array3::from_shape_vec((1, heads, D), numbers(heads * D, phase));
    let (q, k, v) = (tokens(1)?, tokens(2)?, tokens(3)?);
    let mut state = attention.state(1, heads, D)?;
    let ours = || {
        black_box(state.step(black_box(&q), &k, &v)?);
        Ok(())
    };
    let [queries, keys, values] = [1, 2, 3].map(|phase| numbers(heads * D, phase));
    let (mut features, mut out) = (vec![0.0; m], vec![0.0; heads * D]);
    let (mut sums, mut totals) = (vec![0.0; heads * m * D], vec![0.0; heads * m]);
    compare(&format!("step of decoding, h = {heads}, d = {D}, m = {m}"), ours, || {
        let of_head = sums.chunks_exact_mut(m * D).zip(totals.chunks_exact_mut(m));
        for (i, (sums, totals)) in of_head.enumerate() {
            let own = i * D..(i + 1) * D;
            hand::features(&keys[own.clone()], D, &columns, &mut features);
            hand::add(&features, &values[own.clone()], sums, totals);
            hand::features(black_box(&queries[own.clone()]), D, &columns, &mut features);
            hand::average(&features, sums, totals, &mut out[own]);
        }
        black_box(&out);
        Ok(())
    })
}

fn all() -> Outcome {
    println!("| work | µs | by hand, µs | ratio |\n|---|---|---|---|");
    for m in [64, 256] {
        [1, 64].into_iter().try_for_each(|n| rows(n, m))?;
        prediction(m)?;
        head(128, m)?;
        [1, 8].into_iter().try_for_each(|heads| step(heads, m))?;
    }
    Ok(())
}

fn main() -> Outcome {
    let pool = ThreadPoolBuilder::new().num_threads(1).build()?;
    Ok(pool.install(|| all().map_err(|error| error.to_string()))?)
}
