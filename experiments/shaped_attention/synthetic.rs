//! What shaping saves on synthetic data.

use ndarray::{Array2, ArrayView1};
use rand_distr::{Distribution, StandardNormal};
use random_features::apply::attention::{ExactAttention, Heads};
use random_features::data::shaping::Shaping;
use random_features::frequency::{Orthogonal, draw};
use random_features::kernel::Softmax;
use random_features::{DenseExponential, Map, Positive, Result, rng};

use crate::maps::{one_head, relative_error};
use crate::trained::Setup;

/// Points, dimensions, features and draws.
const N: usize = 512;
const D: usize = 16;
const M: usize = 256;
/// The points whose pairs are compared in closed form.
const PAIRS: usize = 64;

/// A kind of data.
pub struct Saved {
    pub name: &'static str,
    /// The mean of ‖x + y‖² over pairs.
    pub squared_sum: f64,
    /// By which the number of features may fall at the same variance of estimates: the geometric mean over pairs, in closed form.
    pub predicted: f64,
    /// The squared ratio of the errors of attention's output.
    pub measured: f64,
    /// The error of positive features' output.
    pub error: f64,
}

/// Gaussian points whose coordinate k has the deviation `size(k)`, around centres that rows share.
fn points(
    stream: u64,
    seed: u64,
    size: impl Fn(usize) -> f64,
    centre: impl Fn(usize, usize) -> f64,
) -> Array2<f64> {
    let mut rng = rng(seed);
    rng.set_stream(stream);
    let mut normal = || Distribution::<f64>::sample(&StandardNormal, &mut rng);
    Array2::from_shape_fn((N, D), |(i, k)| centre(i, k) + size(k) * normal())
}

/// Queries and keys, scaled so that logits are their products.
fn data(seed: u64) -> [(&'static str, Array2<f64>, Array2<f64>); 3] {
    // Standard deviations that fall by a factor of 8, the other way round on side y.
    let falling = |k: usize| 0.9 * 8f64.powf(-(k as f64) / (D - 1) as f64);
    let rising = |k: usize| falling(D - 1 - k);
    let centre = |i: usize, k: usize| if (i % 4) == (k % 4) { 0.7 } else { -0.2 };
    [
        ("anisotropic", points(0, seed, falling, |_, _| 0.0), points(1, seed, rising, |_, _| 0.0)),
        ("shifted", points(2, seed, |_| 0.3, |_, _| 0.45), points(3, seed, |_| 0.3, |_, _| 0.3)),
        ("clustered", points(4, seed, |_| 0.15, centre), points(5, seed, |_| 0.15, |i, k| -centre(i + 1, k))),
    ]
}

/// The mean over pairs of the logarithm of the relative variance.
fn log_variance(map: &Map<f64>, x: &Array2<f64>, y: &Array2<f64>) -> Result<f64> {
    let (mut sum, mut count) = (0.0, 0.0);
    for i in 0..PAIRS {
        let (x, y): (ArrayView1<'_, f64>, ArrayView1<'_, f64>) = (x.row(i), y.row((7 * i + 3) % N));
        let variance = map.log_variance(&x, &y)?.unwrap_or(f64::NAN);
        sum += variance - 2.0 * x.dot(&y);
        count += 1.0;
    }
    Ok(sum / count)
}

fn saved(setup: &Setup, (name, x, y): &(&'static str, Array2<f64>, Array2<f64>)) -> Result<Saved> {
    let shape = Shaping::new().of_points(x, y)?;
    // Independent frequencies have closed forms for any coefficients.
    let independent = random_features::frequency::Independent;
    let omega = |coupling: &dyn random_features::frequency::Coupling, repeat: u64| {
        let mut rng = rng(setup.seed);
        rng.set_stream((1 << 40) + repeat);
        draw(D, M, coupling, &mut rng)
    };
    let positive: Map<f64> = DenseExponential::new(vec![0.0; D])?.softmax(omega(&independent, 0)?)?;
    let shaped: Map<f64> = shape.build(omega(&independent, 0)?, Softmax::default())?;
    let predicted = (log_variance(&positive, x, y)? - log_variance(&shaped, x, y)?).exp();
    // Attention scales its tokens by d^(−¼).
    let scale = (D as f64).powf(0.25);
    let tokens = [x, y].map(|x| one_head(&x.mapv(|v| (scale * v) as f32)));
    let [q, k] = tokens;
    let v = one_head(&points(6, setup.seed, |_| 1.0, |_, _| 0.0).mapv(|v| v as f32));
    let exact = ExactAttention::new().bidirectional(&Heads::new(&q, &k, &v)?)?.output;
    let tokens = [q, k, v];
    let (mut plain, mut better) = (0.0, 0.0);
    for repeat in 0..setup.repeat {
        let of = |map: Map<f32>| {
            relative_error(&random_features::apply::attention::Attention::new(map)?, &tokens, &exact)
        };
        plain += of(Positive.softmax(omega(&Orthogonal, repeat)?)?)?.powi(2);
        better += of(shape.build(omega(&Orthogonal, repeat)?, Softmax::default())?)?.powi(2);
    }
    let squared_sum = shape.before;
    let error = (plain / setup.repeat as f64).sqrt();
    Ok(Saved { name, squared_sum, predicted, measured: plain / better, error })
}

pub fn run(setup: &Setup) -> Result<Vec<Saved>> {
    data(setup.seed).iter().map(|data| saved(setup, data)).collect()
}
