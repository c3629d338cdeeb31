//! What attention will cost and err: reports of errors, costs, and choices.

mod auto;
mod choice;
mod costs;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
mod headwise;
mod report;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
mod shaping;

use ndarray::{Array2, Array4, Axis};
use rand_distr::{Distribution, StandardNormal};
use random_features::apply::attention::Attention;
use random_features::frequency::Independent;
use random_features::kernel::Softmax;
use random_features::map::Recipe;
use random_features::recipe::Draw;
use random_features::{Hyperbolic, rng};

fn normal(n: usize, d: usize, size: f64, seed: u64) -> Array2<f64> {
    let mut rng = rng(seed);
    Array2::from_shape_simple_fn((n, d), || size * Distribution::<f64>::sample(&StandardNormal, &mut rng))
}

/// One batch of one head.
fn four(x: &Array2<f64>) -> Array4<f64> {
    x.clone().insert_axis(Axis(0)).insert_axis(Axis(0))
}

/// The dimension of tokens, and the number of frequencies, of costs and choices.
const D: usize = 16;
const M: usize = 64;

fn recipe(m: usize) -> Recipe {
    Hyperbolic.recipe(Draw::new(D, m, Independent), Softmax::default())
}

fn attention(m: usize, seed: u64) -> Attention<f64> {
    Attention::new(recipe(m).draw(seed).unwrap()).unwrap()
}
