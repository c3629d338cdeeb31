//! Ridge regression: statistics against naive sums, models against dense solves, merging to the bit, refusals.

mod buffered;
mod choice;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
mod dual;
mod extremes;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
mod few_rows;
mod growth;
mod interrupted;
mod left_out;
mod listed;
mod merging;
mod models;
mod offsets;
mod per_target;
mod precisions;
mod reach_search;
mod refusals;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
mod removal;
mod rounding;
mod search;
mod standardisation;
#[cfg(feature = "serde")]
mod stored;
mod targets;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
mod told;
#[cfg(feature = "serde")]
mod travelling;
mod uncertainty;

use ndarray::{Array1, Array2, Axis};
use random_features::apply::RidgeStatistics;
use random_features::frequency::Orthogonal;
use random_features::kernel::Lengthscale;
use random_features::linalg::Backend;
use random_features::workbench::factors::Factorise;
use random_features::{Map, Real, Side, Trigonometric};

use crate::common::{frequencies, points};

/// A map with 2m features in three dimensions.
pub fn trigonometric<T: Real>(m: usize, lengthscale: f64) -> Map<T> {
    Trigonometric.gaussian(frequencies(3, m, &Orthogonal, 7), Lengthscale::from(lengthscale)).unwrap()
}

/// n points in three dimensions, and two smooth targets of each.
pub fn data<T: Real>(n: usize) -> (Array2<T>, Array2<T>) {
    let x = points::<T>(n, 3, 1.5);
    let target = |(i, j): (usize, usize)| {
        let x = x.row(i).mapv(|v| v.widen());
        T::narrow(if j == 0 { (1.3 * x[0]).sin() + x[1] } else { x[2] * x[0] - 2.0 })
    };
    let y = Array2::from_shape_fn((n, 2), target);
    (x, y)
}

/// Positive weights of different sizes.
pub fn weights(n: usize) -> Array1<f64> {
    Array1::from_shape_fn(n, |i| 0.2 + ((i * 37) % 11) as f64 / 5.0)
}

/// Features as plain values.
pub fn features<T: Real>(map: &Map<T>, x: &Array2<T>) -> Array2<f64> {
    let features = map.features(Side::X, x).unwrap();
    let mut plain = features.mantissas().mapv(|v| v.widen());
    for (mut row, scales) in plain.rows_mut().into_iter().zip(features.log_scales().rows()) {
        let mut first = 0;
        for (width, scale) in map.blocks().iter().zip(scales) {
            for f in first..first + width {
                row[f] = if *scale == f64::NEG_INFINITY { 0.0 } else { row[f] * scale.exp() };
            }
            first += width;
        }
    }
    plain
}

/// β and b by definition: the normal equations of centred features, in `f64`.
pub fn naive(
    z: &Array2<f64>,
    y: &Array2<f64>,
    w: &Array1<f64>,
    (lambda, intercept): (f64, bool),
) -> (Array2<f64>, Array1<f64>) {
    let mean = |a: &Array2<f64>| {
        let mean = a.t().dot(w) / w.sum();
        if intercept { mean } else { mean * 0.0 }
    };
    let (z_mean, y_mean) = (mean(z), mean(y));
    let (z, y) = (z - &z_mean, y - &y_mean);
    let weighted = &z * &w.view().insert_axis(Axis(1));
    let a = z.t().dot(&weighted) + Array2::<f64>::eye(z.ncols()) * lambda;
    let beta = Backend::default().cholesky(&a).unwrap().solve(&weighted.t().dot(&y));
    let beta = beta.unwrap();
    let b = y_mean - z_mean.dot(&beta);
    (beta, b)
}

/// Statistics of all rows in one update.
pub fn statistics<T: Real>(map: &Map<T>, x: &Array2<T>, y: &Array2<T>) -> RidgeStatistics<T> {
    let mut statistics = RidgeStatistics::new(map.clone(), y.ncols()).unwrap();
    statistics.update(x, y).unwrap();
    statistics
}

/// The largest difference, relative to the largest entry of `b`.
pub fn distance(a: &Array2<f64>, b: &Array2<f64>) -> f64 {
    let size = b.iter().fold(0.0, |size: f64, v| size.max(v.abs()));
    a.iter().zip(b).fold(0.0, |worst: f64, (a, b)| worst.max((a - b).abs())) / size
}
