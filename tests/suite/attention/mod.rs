//! Attention: what it gives against the definition, and what is said of it.

mod decode;
mod features;
mod gradient;
mod input;
mod inspect;
mod judge;
mod limits;
mod linear;
pub mod oracle;
mod pairs;
mod usual;
mod ways;

use crate::common::frequencies;
use ndarray::{Array2, Array4, ArrayView2, array, s};
use random_features::compose::{Bases, Hybrid};
use random_features::frequency::{Counts, Frequencies, Independent, Orthogonal, Simplex};
use random_features::kernel::Activation;
use random_features::map::Shift;
use random_features::workbench::RootDim;
use random_features::{
    EluPlusOne, Gerf, Hyperbolic, Map, Nonlinear, Poisson, Positive, Real, Trigonometric, rng,
};

/// Positive features of the softmax kernel.
fn positive<T: Real>(d: usize, m: usize) -> Map<T> {
    Positive.softmax(frequencies(d, m, &Orthogonal, 7)).unwrap()
}

/// A head of queries, keys or values.
fn head<T>(x: &Array4<T>, b: usize, h: usize) -> ArrayView2<'_, T> {
    x.slice(s![b, h, .., ..])
}

fn widened<T: Real>(x: &Array4<T>, b: usize, h: usize) -> Array2<f64> {
    head(x, b, h).mapv(|v| v.widen())
}

/// Maps in both scalars, by name, and whether their features may be negative.
fn maps(d: usize, m: usize) -> Vec<(&'static str, Map<f32>, Map<f64>, bool)> {
    fn both(
        name: &'static str,
        make: &dyn Fn() -> (Map<f32>, Map<f64>),
        signed: bool,
    ) -> (&'static str, Map<f32>, Map<f64>, bool) {
        let (single, double) = make();
        (name, single, double, signed)
    }
    let omega = || frequencies(d, m, &Orthogonal, 3);
    macro_rules! map {
        ($name:literal, $signed:literal, $make:expr) => {{ both($name, &|| ($make.unwrap(), $make.unwrap()), $signed) }};
    }
    let counts = || Counts::poisson(d, m, 1.5, rng(4).next_u64()).unwrap();
    let regularised = || Independent.with_radii(RootDim).draw(d, m, rng(5).next_u64()).unwrap();
    let shift = || Shift::new(vec![3.0; d], 0.1).unwrap();
    vec![
        map!("positive", false, Positive.softmax(omega())),
        map!("hyperbolic", false, Hyperbolic.softmax(omega())),
        map!("OPRF", false, Gerf::optimal(d, 2.0).unwrap().softmax(omega())),
        map!("SimRF", false, Positive.softmax(frequencies(d, m, &Simplex::default(), 3))),
        map!("regularised", false, Positive.softmax(regularised())),
        map!("shifted Poisson", false, Poisson::default().shifted(shift()).softmax(counts())),
        map!("ReLU", false, Nonlinear::new(Activation::Relu).with_offset(1e-3).unwrap().build(omega(), 1.0)),
        map!("ELU + 1", false, EluPlusOne.build(d, 1.0)),
        map!("trigonometric", true, Trigonometric.softmax(omega())),
        map!(
            "angular hybrid",
            true,
            Hybrid::angular(Bases::shared(omega()), frequencies(d, 8, &Independent, 6))
        ),
    ]
}

fn relu<T: Real>(d: usize, m: usize) -> Map<T> {
    Nonlinear::new(Activation::Relu).build(frequencies(d, m, &Independent, 1), 1.0).unwrap()
}

/// The positive and the negative part of a number.
fn signs<T: Real>() -> Map<T> {
    let omega = Frequencies::from_rows(array![[1.0], [-1.0]]).unwrap();
    Nonlinear::new(Activation::Relu).build(omega, 1.0).unwrap()
}
