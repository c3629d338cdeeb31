//! Everything that holds numbers can be stored and read back to the bit (feature `serde`), as text and in a binary
//! format.

mod common;

use std::fmt::Debug;

use common::{approximate_couplings, couplings, frequencies, points, quasi_couplings};
use ndarray::{Array1, Array2};
use num_complex::Complex64;
use rand::{Rng, RngExt};
use random_features::frequency::simplex::{Partial, RotationLaw};
use random_features::frequency::structured::Structured;
use random_features::frequency::{
    Antithetic, CountLaw, Counts, Coupling, Frequencies, Givens, Hadamard, Halton, Independent, Orthogonal,
    Radii, Rates, RootDim, Simplex, SimplexPlus, Sobol, draw_geometric, draw_poisson, draw_with,
};
use random_features::hybrid::{Clustering, Diagonal};
use random_features::kernel::{
    Activation, ActivationKernel, Angular, Gaussian, Lengthscale, Matern, RegularisedSoftmax, Smoothness,
    Softmax,
};
use random_features::map::{Counting, Exponential, Target, Transform};
use random_features::plan::Statistics;
use random_features::theory::complex_exponential::Symmetry;
use random_features::theory::gerf::GerfSign;
use random_features::theory::{BlockLaw, Dependence, Law, Radius};
use random_features::{
    ComplexExponential, EluPlusOne, FeatureMap, Geometric, Gerf, Hyperbolic, Nonlinear, Poisson, Positive,
    Shifted, Side, Sign, Trigonometric, rng,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{from_str, from_value, json, to_string, to_value};

/// What is read is what was stored, to the bit: −0 is not 0, and NaN is NaN.
fn survives<V: Serialize + DeserializeOwned + Debug>(value: &V) -> [V; 2] {
    let bytes = |value: &V| postcard::to_stdvec(value).unwrap();
    let stored = bytes(value);
    let read: [V; 2] =
        [from_str(&to_string(value).unwrap()).unwrap(), postcard::from_bytes(&stored).unwrap()];
    assert!(read.iter().all(|read| bytes(read) == stored), "{value:?}: {read:?}");
    read
}

/// As [`survives`], for maps, which are what they are made of.
fn map_survives<M: FeatureMap<f64> + Serialize + DeserializeOwned + Debug>(map: &M) {
    let x = points::<f64>(5, map.input_dim(), 1.0);
    for read in survives(map) {
        assert_eq!(read.fingerprint(), map.fingerprint());
        assert_eq!(read.features(Side::Y, &x).unwrap(), map.features(Side::Y, &x).unwrap());
    }
}

/// Random numbers of all sizes from 2⁻²⁰⁰ to 2²⁰⁰ and both signs, of which many have 17 digits.
fn number(rng: &mut impl Rng) -> f64 {
    rng.random_range(-1.0f64..1.0) * 2f64.powi(rng.random_range(-200..200))
}

fn numbers(count: usize, seed: u64) -> Vec<f64> {
    let mut rng = rng(seed);
    (0..count).map(|_| number(&mut rng)).collect()
}

/// Positive numbers about 1.
fn scales(count: usize, seed: u64) -> Vec<f64> {
    let mut rng = rng(seed);
    (0..count).map(|_| rng.random_range(0.1..10.0)).collect()
}

fn matrix(rows: usize, columns: usize, seed: u64) -> Array2<f64> {
    Array2::from_shape_vec((rows, columns), numbers(rows * columns, seed)).unwrap()
}

fn complex(count: usize, seed: u64) -> Vec<Complex64> {
    scales(count, seed)
        .into_iter()
        .zip(scales(count, seed + 1))
        .map(|(re, im)| Complex64::new(re, im))
        .collect()
}

#[test]
fn frequencies_survive() {
    let radii: [&dyn Radii; 2] = [&Smoothness::ThreeHalves, &RootDim];
    for coupling in couplings().into_iter().chain(quasi_couplings()).chain(approximate_couplings()) {
        for (seed, radii) in radii.iter().enumerate() {
            let omega = draw_with(5, 13, coupling.as_ref(), *radii, &mut rng(seed as u64)).unwrap();
            survives(&omega).into_iter().for_each(|read| assert_eq!(read, omega));
            if let Some(structured) = omega.structured() {
                survives::<Structured>(structured).into_iter().for_each(|read| assert_eq!(read, *structured));
            }
        }
    }
    // Any number, and columns that lie side by side.
    survives(&Frequencies::from_rows(matrix(100, 50, 1)).unwrap());
    survives(&Frequencies::from_rows(matrix(7, 3, 2).reversed_axes()).unwrap());
}

#[test]
fn counts_and_laws_survive() {
    let rates = scales(20, 1);
    let poisson = draw_poisson(20, 30, rates.clone(), &mut rng(1)).unwrap();
    survives(&poisson).into_iter().for_each(|read| assert_eq!(read, poisson));
    survives(&draw_geometric(3, 30, 1.0 / 3.0, &mut rng(1)).unwrap());
    survives(&Counts::from_rows(ndarray::arr2(&[[1 << 53, 0]])).unwrap());
    for rate in rates {
        survives(&CountLaw::Poisson(Rates::Same(rate)));
        survives(&CountLaw::Geometric(rate / 10.0));
    }
    let block = |cos| BlockLaw {
        size: 3,
        dependence: Dependence::Angle { cos },
        radius: Radius::Matern(Smoothness::Half),
        antithetic: true,
    };
    survives(&Law { blocks: (1..200).map(|k| block(-1.0 / f64::from(k))).collect() });
    survives(&Law::orthogonal(3, 7).with_radius(Radius::Other));
    survives(&Law::unknown(5));
}

#[test]
fn kernels_survive() {
    for scale in scales(200, 1) {
        survives(&Lengthscale::from(scale));
        survives(&Softmax::new(scale).unwrap());
    }
    let each = || scales(50, 2);
    survives(&Gaussian::new(each()).unwrap());
    survives(&Matern::new(Smoothness::FiveHalves, each()).unwrap());
    survives(&RegularisedSoftmax::in_dimension(50).with_lengthscale(each()).unwrap());
    survives(&Angular);
    let relu = ActivationKernel::new(Activation::Relu).unwrap().with_lengthscale(each()).unwrap();
    for offset in numbers(100, 3) {
        survives(&relu.clone().with_offset(offset).unwrap());
    }
    survives(&Target::from(Gaussian::new(each()).unwrap()));
}

#[test]
fn what_is_known_of_data_survives() {
    let statistics = Statistics::of(&matrix(40, 30, 1)).unwrap();
    survives(&statistics).into_iter().for_each(|read| assert_eq!(read, statistics));
    let mut weighted = Statistics::new(3).unwrap();
    survives(&weighted);
    weighted.update_weighted(&points::<f64>(9, 3, 1.0), &Array1::from(scales(9, 4))).unwrap();
    survives(&weighted);
    let clusters = Clustering::of(&points::<f64>(200, 7, 1.0), 9, &mut rng(1)).unwrap();
    survives(&clusters).into_iter().for_each(|read| assert_eq!(read, clusters));
    survives(&Clustering::new(matrix(20, 5, 3)).unwrap());
    for scale in scales(100, 5) {
        survives(&Diagonal::robust().with_limit(0.1 * scale));
    }
}

/// A coupling is a recipe: stored with its options, it draws the same again.
#[test]
fn couplings_survive() {
    fn survives<C: Coupling + PartialEq + serde::Serialize + serde::de::DeserializeOwned>(coupling: C) {
        let read: C = from_str(&to_string(&coupling).unwrap()).unwrap();
        assert_eq!(read, coupling);
        assert_eq!(frequencies(5, 13, &read, 4), frequencies(5, 13, &coupling, 4));
    }
    survives(Independent);
    survives(Orthogonal);
    survives(Antithetic(SimplexPlus { passes: 2 }));
    survives(Simplex { partial: Partial::Truncated, rotation: RotationLaw::Haar });
    survives(Simplex::on(RotationLaw::Hadamard(Hadamard { rounds: 2 })));
    survives(Givens { rotations: Some(7) });
    survives(Halton);
    survives(Sobol);
}

#[test]
fn structured_maps_survive() {
    let omega = frequencies(128, 200, &Hadamard::default(), 4);
    let map = Positive::gaussian::<f32>(omega, 2.0).unwrap();
    let text = to_string(&map).unwrap();
    let read: Exponential<f32, Positive> = from_str(&text).unwrap();
    let x = points::<f32>(10, 128, 1.0);
    assert_eq!(read.features(Side::X, &x).unwrap(), map.features(Side::X, &x).unwrap());
    assert_eq!(read.fingerprint(), map.fingerprint());
    // Factors that do not fit are refused.
    let wrong = text.replacen("\"padded\":128", "\"padded\":64", 1);
    assert!(wrong != text && from_str::<Exponential<f32, Positive>>(&wrong).is_err());
}

#[test]
fn maps_survive() {
    let omega = || frequencies(3, 8, &Orthogonal, 4);
    let x = points::<f32>(10, 3, 1.0);
    let map = Positive::gaussian::<f32>(omega(), vec![0.5, 1.0, 2.0]).unwrap();
    let read: Exponential<f32, Positive> = from_str(&to_string(&map).unwrap()).unwrap();
    assert_eq!(read.features(Side::X, &x).unwrap(), map.features(Side::X, &x).unwrap());
    assert_eq!(read.fingerprint(), map.fingerprint());
    let map = Trigonometric::softmax::<f32>(omega());
    let read: Exponential<f32, Trigonometric> = from_str(&to_string(&map).unwrap()).unwrap();
    assert_eq!(read.features(Side::X, &x).unwrap(), map.features(Side::X, &x).unwrap());
}

#[test]
fn every_map_survives_in_every_format() {
    let omega = |m| frequencies(3, m, &Orthogonal, 4);
    let each = || scales(3, 7);
    let gaussian = || Gaussian::new(each()).unwrap();
    map_survives(&Positive::new::<f64>(omega(8), gaussian()).unwrap());
    map_survives(&Hyperbolic::new::<f64>(omega(8), gaussian()).unwrap());
    map_survives(&Trigonometric::softmax::<f64>(omega(8)));
    map_survives(&Sign::<f64>::new(omega(8)));
    map_survives(&EluPlusOne::new(3, each()).unwrap());
    for (k, scale) in scales(30, 8).into_iter().enumerate() {
        let a = Complex64::new(0.1 - scale, 1.0 / scale);
        survives(&Gerf::new(a, GerfSign::Minus).unwrap());
        map_survives(&Gerf::new(-scale, GerfSign::Plus).unwrap().gaussian::<f64>(omega(5), scale).unwrap());
        let diagonal = Transform::diagonal(complex(3, k as u64)).unwrap();
        let full = Array2::from_shape_vec((3, 3), complex(9, k as u64)).unwrap();
        for a in [diagonal, Transform::full(full).unwrap()] {
            survives(&a).into_iter().for_each(|read| assert_eq!(read, a));
            map_survives(&ComplexExponential::<f64>::new(omega(5), a, Symmetry::Plain, gaussian()).unwrap());
        }
        let map = Nonlinear::<f64>::new(omega(5), Activation::Relu);
        map_survives(&map.with_lengthscale(each()).unwrap().with_offset(scale).unwrap());
        let counts = draw_poisson(3, 6, vec![scale, 1.0, 2.0], &mut rng(1)).unwrap();
        let map: Counting<f64, Poisson> = Poisson::gaussian(counts, each()).unwrap();
        map_survives(&map);
        map_survives(&Shifted::new(map, numbers(3, k as u64), 1.0 / scale).unwrap());
        let counts = draw_geometric(3, 6, 0.09 * scale, &mut rng(1)).unwrap();
        map_survives(&Geometric::softmax::<f64>(counts).unwrap());
    }
}

/// Frequencies beyond single precision, which saturate.
#[test]
fn saturated_maps_survive() {
    let omega = Frequencies::from_rows(ndarray::arr2(&[[1e300, -2.0]])).unwrap();
    let map = Positive::softmax::<f32>(omega);
    let read: Exponential<f32, Positive> = from_str(&to_string(&map).unwrap()).unwrap();
    let x = points::<f32>(2, 2, 1.0);
    assert_eq!(read.features(Side::X, &x).unwrap(), map.features(Side::X, &x).unwrap());
}

#[test]
fn clusters_survive() {
    let clusters = Clustering::of(&points::<f64>(20, 3, 1.0), 4, &mut rng(1)).unwrap();
    let stored = to_value(&clusters).unwrap();
    assert_eq!(from_value::<Clustering>(stored.clone()).unwrap(), clusters);
    let mut negative = stored;
    negative["mean_squares"]["data"][5] = json!(-1.0);
    assert!(from_value::<Clustering>(negative).unwrap_err().to_string().contains("mean squares"));
}

#[test]
fn what_is_wrong_is_refused() {
    let map = Positive::softmax::<f64>(frequencies(2, 3, &Orthogonal, 1));
    let stored = to_value(&map).unwrap();
    let error = from_value::<Exponential<f64, Hyperbolic>>(stored.clone()).unwrap_err().to_string();
    assert!(error.contains("positive") && error.contains("hyperbolic"), "{error}");
    let mut short = stored.clone();
    short["frequencies"]["law"]["blocks"][0]["size"] = json!(1);
    assert!(from_value::<Exponential<f64, Positive>>(short).is_err());
    let kernel = json!({ "lengthscale": { "PerDimension": [1.0, 0.0] } });
    assert!(from_value::<random_features::kernel::Gaussian>(kernel).is_err());
    let mut negative = stored;
    negative["target"]["Softmax"]["lengthscale"] = json!({ "Isotropic": -1.0 });
    assert!(from_value::<Exponential<f64, Positive>>(negative).is_err());
}
