//! Points with one property each, which a plan should notice.

use ndarray::{Array2, Axis};
use rand_distr::{Distribution, Poisson, StandardNormal, StudentT};
use random_features::rand::RngExt;
use random_features::rng;

use crate::data::Data;

/// The number of points of a side, and their dimension.
const SIZE: (usize, usize) = (1000, 16);

/// The data of this name, the same in every run.
pub fn named(name: &str) -> Option<Data> {
    let both = |norm: f64, equal: bool| {
        let [x, y] = [1, 2].map(|seed| normal(seed, norm, equal));
        Some(Data::of(name, x, Some(y)))
    };
    match name {
        "small" => both(0.5, false),
        "large" => both(3.0, false),
        "equal-norms" => both(1.0, true),
        "clustered" => Some(Data::of(name, clustered(), None)),
        "counts" => Some(Data::of(name, drawn(4, Poisson::new(0.5).ok()?), None)),
        "heavy-tailed" => Some(Data::of(name, drawn(5, StudentT::new(2.5).ok()?), None)),
        _ => None,
    }
}

fn drawn<D: Distribution<f64>>(seed: u64, law: D) -> Array2<f64> {
    let mut rng = rng(seed);
    Array2::from_shape_simple_fn(SIZE, || law.sample(&mut rng))
}

/// Normal points whose norms are `norm`, in the mean of their squares or each.
fn normal(seed: u64, norm: f64, equal: bool) -> Array2<f64> {
    let mut x = drawn(seed, StandardNormal);
    for mut row in x.axis_iter_mut(Axis(0)) {
        let size = if equal { row.dot(&row).sqrt() } else { (SIZE.1 as f64).sqrt() };
        row *= norm / size;
    }
    x
}

/// Four clusters, ten times as far from each other as they are wide.
fn clustered() -> Array2<f64> {
    let (mut x, centres) = (drawn(3, StandardNormal), drawn(6, StandardNormal));
    let mut rng = rng(7);
    for mut row in x.axis_iter_mut(Axis(0)) {
        row += &(&centres.row(rng.random_range(0..4)) * 10.0);
    }
    x
}
