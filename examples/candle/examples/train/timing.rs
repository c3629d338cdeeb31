//! Times over the length: of a step of training, and of attention alone.

use std::time::Instant;

use candle_core::{DType, Result, Tensor, Var};
use random_features::rand::RngExt;
use random_features::rng;
use random_features_candle::naive::NaiveAttention;
use random_features_candle::{LinearAttention, LinearSelfAttention};

use crate::model::{Composed, DIM, HEADS, Model, Sizes, attention};
use crate::task::Task;

const REPETITIONS: usize = 5;

/// The least time of some repetitions, in milliseconds, after one that warms up.
fn least(mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    work()?;
    let mut least = f64::INFINITY;
    for _ in 0..REPETITIONS {
        let start = Instant::now();
        work()?;
        least = least.min(1e3 * start.elapsed().as_secs_f64());
    }
    Ok(least)
}

/// The time of outputs and gradients of one text.
fn of_attention(length: usize, attend: impl Fn(&Tensor) -> Result<Tensor>) -> Result<f64> {
    let mut rng = rng(7);
    let numbers = std::iter::repeat_with(|| rng.random_range(-1f32..1.0)).take(HEADS * length * DIM);
    let x = Tensor::from_iter(numbers, &candle_core::Device::Cpu)?.reshape((1, HEADS, length, DIM))?;
    let x = Var::from_tensor(&x)?;
    least(|| attend(&x)?.sum_all()?.backward().map(|_| ()))
}

/// The times of both, for lengths from 256 on.
pub fn table(sizes: Sizes, longest: usize) -> Result<String> {
    let frequencies = sizes.frequencies(0)?;
    let linear = LinearAttention::causal(attention(&frequencies)?);
    let naive = NaiveAttention::new(&frequencies, true, DType::F32)?;
    let mut text = format!(
        "ms, least of {REPETITIONS}: a step of training, one text; attention alone, {HEADS} heads, forward and backward\n\
         {:>8}{:>12}{:>12}{:>8}{:>14}{:>12}{:>8}\n",
        "length", "operation", "composed", "ratio", "operation", "composed", "ratio"
    );
    let mut length = 256;
    while length <= longest {
        let batch = Task { batch: 1, length }.batch(0)?;
        let mut model = Model::<LinearSelfAttention<f32>>::new(sizes)?;
        let own = least(|| model.step(&batch).map(|_| ()))?;
        let mut model = Model::<Composed>::new(sizes)?;
        let composed = least(|| model.step(&batch).map(|_| ()))?;
        let alone = of_attention(length, |x| linear.apply(x, x, x))?;
        let alone_composed = of_attention(length, |x| naive.apply(x, x, x))?;
        text += &format!(
            "{length:>8}{own:>12.2}{composed:>12.2}{:>8.2}{alone:>14.2}{alone_composed:>12.2}{:>8.2}\n",
            composed / own,
            alone_composed / alone
        );
        length *= 2;
    }
    Ok(text)
}
