//! Softmax sampling: probabilities against linear scans and naive walks, draws against probabilities, losses and estimates
//! against their definitions.

mod changes;
mod exact;
mod layer;
mod limits;
mod loss;
mod reliability;
mod report;
mod sampler;
mod stopping;

use ndarray::Array2;
use random_features::apply::softmax_sampling::Proposal;
use random_features::compose::{Bases, Hybrid};
use random_features::frequency::{Independent, Orthogonal};
use random_features::{Gerf, Hyperbolic, Map, Positive, Real, Trigonometric};

use crate::common::points;

/// What draws from a tree, however few classes there are.
fn tree<T: Real>(map: Map<T>) -> Proposal<T> {
    Proposal::new(map).with_exact_below(0)
}

/// Maps without negative features.
fn non_negative<T: Real>(d: usize, m: usize) -> Vec<Map<T>> {
    let omega = |seed| Orthogonal.draw(d, m, seed).unwrap();
    let gerf = Gerf::optimal(d, 1.0).unwrap();
    vec![
        Positive.softmax(omega(1)).unwrap(),
        Hyperbolic.softmax(omega(2)).unwrap(),
        gerf.softmax(omega(3)).unwrap(),
    ]
}

/// Maps with negative features, of one block and of several.
fn signed<T: Real>(d: usize, m: usize) -> Vec<Map<T>> {
    let omega = |seed| Independent.draw(d, m, seed).unwrap();
    vec![
        Trigonometric.softmax(omega(4)).unwrap(),
        Hybrid::angular(Bases::shared(omega(5)), Independent.draw(d, 2, 6).unwrap()).unwrap(),
    ]
}

/// Classes and points h.
fn data<T: Real>(classes: usize, d: usize) -> (Array2<T>, Array2<T>) {
    (points::<T>(classes, d, 1.3), points::<T>(classes + 4, d, 0.9).split_off(classes))
}

trait SplitOff {
    fn split_off(self, row: usize) -> Self;
}

impl<T: Clone> SplitOff for Array2<T> {
    /// The rows from one on.
    fn split_off(self, row: usize) -> Self {
        self.slice(ndarray::s![row.., ..]).to_owned()
    }
}

/// ln Σ exp.
fn log_sum(logs: &[f64]) -> f64 {
    let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    top + logs.iter().map(|log| (log - top).exp()).sum::<f64>().ln()
}

fn all(classes: usize) -> Vec<usize> {
    (0..classes).collect()
}
