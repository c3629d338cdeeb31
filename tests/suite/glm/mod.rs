//! Generalised linear models: minima by their definition, merging to the bit, leave-one-out by refits, refusals.

mod choices;
mod classifier;
mod few_rows;
mod inputs;
mod leave_out;
mod many_rows;
mod merging;
mod minima;
mod reach;
mod refusals;
#[cfg(feature = "serde")]
mod stored;
mod streams;

use ndarray::{Array1, Array2};
use random_features::apply::Glm;
use random_features::frequency::Orthogonal;
use random_features::{Map, Real, Trigonometric};

use crate::common::points;
pub use crate::ridge::{trigonometric, weights};

/// Points in three dimensions, and a label of each below `classes`, which overlap.
pub fn labelled<T: Real>(n: usize, classes: usize) -> (Array2<T>, Vec<usize>) {
    let x = points::<T>(n, 3, 1.5);
    let label = |i: usize| {
        let x = x.row(i).mapv(|v| v.widen());
        let score = x[0] + 0.7 * (2.0 * x[1]).sin() + 1.2 * (9.1 * i as f64).sin();
        ((0.4 * score + 0.5).clamp(0.0, 0.999) * classes as f64) as usize
    };
    let labels = (0..n).map(label).collect();
    (x, labels)
}

/// A map of 64 features of points on a line.
pub fn line_map(lengthscale: f64) -> Map<f64> {
    Trigonometric.gaussian(Orthogonal.draw(1, 32, 7).unwrap(), lengthscale).unwrap()
}

/// Features of plain values, with a 1 for the intercept as the last.
pub fn features<T: Real>(map: &Map<T>, x: &Array2<T>) -> Array2<f64> {
    let features = crate::ridge::features(map, x);
    let mut all = Array2::ones((features.nrows(), features.ncols() + 1));
    all.slice_mut(ndarray::s![.., ..features.ncols()]).assign(&features);
    all
}

/// η by the definition, n × k.
pub fn scores<T: Real>(model: &Glm<T>, features: &Array2<f64>) -> Array2<f64> {
    let width = features.ncols() - 1;
    let weights = model.weights();
    Array2::from_shape_fn((features.nrows(), weights.nrows()), |(i, k)| {
        let products = (0..width).map(|f| features[[i, f]] * weights[[k, f]]);
        products.sum::<f64>() + model.intercepts()[k]
    })
}

/// The largest entry of the gradient of the penalised loss, with ∂/∂η of each row, n × k, relative to its terms.
pub fn slope<T: Real>(model: &Glm<T>, features: &Array2<f64>, pull: &Array2<f64>, lambda: f64) -> f64 {
    let width = features.ncols() - 1;
    let mut worst = 0.0f64;
    for k in 0..pull.ncols() {
        for f in 0..=width {
            let penalty = if f < width { lambda * model.weights()[[k, f]] } else { 0.0 };
            let terms = || (0..features.nrows()).map(|i| features[[i, f]] * pull[[i, k]]);
            let size = terms().map(f64::abs).sum::<f64>() + penalty.abs();
            if size > 0.0 {
                worst = worst.max((terms().sum::<f64>() + penalty).abs() / size);
            }
        }
    }
    worst
}

/// Weights of rows, some of them 0.
pub fn weights_with_zeros(n: usize) -> Array1<f64> {
    let mut weights = weights(n);
    (0..n).step_by(7).for_each(|i| weights[i] = 0.0);
    weights
}
