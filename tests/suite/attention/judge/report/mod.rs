//! Reports of expected errors: the maps that are tested, and what a report says by its definition.

mod antithetic;
mod covariances;
mod definition;
mod hopeless;
mod pairs;
mod redraws;
mod samples;
mod sentences;
mod simulation;

use crate::attention::judge::normal;
use crate::attention::oracle::softmax;
use ndarray::{Array1, Array2, Axis};
use num_complex::Complex64;
use random_features::apply::attention::{Attention, ErrorReport, TokenSample};
use random_features::compose::Conditioning;
use random_features::frequency::Independent;
use random_features::theory::gerf::GerfSign;
use random_features::workbench::RootDim;
use random_features::{DenseExponential, Gerf, Hyperbolic, Map, Positive, Trigonometric, rng};

/// Maps of the four mechanisms that reports compare.
pub fn maps(d: usize, m: usize, seed: u64) -> [Map<f64>; 4] {
    let omega = Independent.draw(d, m, rng(seed).next_u64()).unwrap();
    [
        Positive.softmax(omega.clone()).unwrap(),
        Hyperbolic.softmax(omega.clone()).unwrap(),
        Trigonometric.softmax(omega.clone()).unwrap(),
        Gerf::optimal(d, 1.5).unwrap().softmax(omega).unwrap(),
    ]
}

const COMPLEX: [(Complex64, GerfSign); 2] =
    [(Complex64::new(-0.06, 0.08), GerfSign::Plus), (Complex64::new(-0.04, -0.05), GerfSign::Minus)];

fn conditioning(d: usize, r: usize) -> Conditioning {
    let entry =
        |(k, l): (usize, usize)| f64::from(u8::from(k == l)) * 1.1 + 0.02 * ((k + 2 * l) % 5) as f64 - 0.04;
    let (c_x, c_y) = ((0..d).map(|k| 0.03 * k as f64).collect(), vec![-0.05; d]);
    let whole = Conditioning::new(Array2::from_shape_fn((d, d), entry)).unwrap();
    whole.shifted(c_x, c_y).unwrap().truncated(r).unwrap()
}

/// Maps with parameters of their own, by name.
fn shaped(d: usize, m: usize, seed: u64) -> Vec<(&'static str, Map<f64>)> {
    let omega = |d| Independent.draw(d, m, rng(seed).next_u64()).unwrap();
    let sphere = || Independent.with_radii(RootDim).draw(d, m, rng(seed).next_u64()).unwrap();
    let dense = DenseExponential::new((0..d).map(|k| -0.03 * k as f64).collect()).unwrap();
    let positive = |d| Positive.softmax::<f64>(omega(d)).unwrap();
    let [plus, minus] = COMPLEX.map(|(a, s)| Gerf::new(a, s).unwrap().softmax(omega(d)).unwrap());
    vec![
        ("complex, s = 1", plus),
        ("complex, s = -1", minus),
        ("dense", dense.softmax(omega(d)).unwrap()),
        ("regularised positive", Positive.softmax(sphere()).unwrap()),
        ("regularised hyperbolic", Hyperbolic.softmax(sphere()).unwrap()),
        ("conditioned", positive(d).conditioned(&conditioning(d, d)).unwrap()),
        ("truncated", positive(d - 2).conditioned(&conditioning(d, d - 2)).unwrap()),
        ("Gaussian", Positive.gaussian(omega(d), 1.3).unwrap()),
    ]
}

fn report(map: &Map<f64>, x: [&Array2<f64>; 3]) -> ErrorReport {
    let attention = Attention::signed(vec![map.clone()]).unwrap();
    attention.error_report(&TokenSample::new(x[0], x[1]).with_values(x[2])).unwrap()
}

/// What a report says, by its definition and for one frequency.
#[derive(Default)]
struct Defined {
    /// The largest relative variance of a normaliser.
    normaliser: f64,
    /// The parts of squared relative errors that are variance and bias.
    weights: [f64; 2],
    output: [f64; 2],
    /// The squared relative error of the mean of the values.
    mean: f64,
}

/// What a report says of queries and keys as points, pair by pair. It takes ln of the exact weights, and ln of what the
/// features' kernel is beside the exact one. It also takes the relative covariance of the estimates of a query and two keys.
fn defined(
    (queries, v): (usize, &Array2<f64>),
    log: &dyn Fn(usize, usize) -> f64,
    log_ratio: &dyn Fn(usize, usize) -> f64,
    covariance: &dyn Fn(usize, usize, usize) -> f64,
) -> Defined {
    let (keys, mut sum, mut sizes) = (v.nrows(), Defined::default(), [0.0; 2]);
    let logits =
        |ratio: f64| Array2::from_shape_fn((queries, keys), |(i, j)| log(i, j) + ratio * log_ratio(i, j));
    let (all_exact, all) = (softmax(&logits(0.0)), softmax(&logits(1.0)));
    for i in 0..queries {
        let (exact, p) = (all_exact.row(i).to_owned(), all.row(i));
        let (o, found, mean) = (exact.dot(v), p.dot(v), v.mean_axis(Axis(0)).unwrap());
        let c = Array2::from_shape_fn((keys, keys), |(j, k)| covariance(i, j, k));
        let normaliser = p.dot(&c.dot(&p));
        sum.normaliser = sum.normaliser.max(normaliser);
        for j in 0..keys {
            sum.weights[0] += p[j] * p[j] * (c[[j, j]] - 2.0 * c.row(j).dot(&p) + normaliser);
            sum.weights[1] += (p[j] - exact[j]).powi(2);
            let from = |k: usize| &v.row(k) - &found;
            sum.output[0] += (0..keys).map(|k| p[j] * p[k] * c[[j, k]] * from(j).dot(&from(k))).sum::<f64>();
        }
        let square = |x: Array1<f64>| x.dot(&x);
        sum.output[1] += square(&found - &o);
        sum.mean += square(&mean - &o);
        sizes = [sizes[0] + square(exact), sizes[1] + square(o)];
    }
    sum.weights.iter_mut().for_each(|part| *part /= sizes[0]);
    sum.output.iter_mut().for_each(|part| *part /= sizes[1]);
    sum.mean /= sizes[1];
    sum
}

/// Tokens that have a mean, so that sums and differences of queries and keys do not look alike.
fn off_centre(d: usize, size: f64) -> [Array2<f64>; 3] {
    let [q, k] = [(12, 1), (15, 2)].map(|(n, seed)| normal(n, d, size, seed) + 0.6 * size);
    [q, k, normal(15, 3, 1.0, 3)]
}

/// An array with the entries of another one, and its columns one after the other in memory.
fn by_columns(x: &Array2<f64>) -> Array2<f64> {
    x.t().as_standard_layout().into_owned().reversed_axes()
}
