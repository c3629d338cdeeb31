//! Frequencies and maps can be stored and read back to the bit (feature `serde`).

mod common;

use common::{approximate_couplings, couplings, frequencies, points, quasi_couplings};
use random_features::frequency::simplex::{Partial, RotationLaw};
use random_features::frequency::{
    Antithetic, Coupling, Frequencies, Givens, Hadamard, Halton, Independent, Orthogonal, Simplex,
    SimplexPlus, Sobol,
};
use random_features::hybrid::Clustering;
use random_features::map::Exponential;
use random_features::{Hyperbolic, Map, Positive, Side, Trigonometric};
use serde_json::{from_str, from_value, json, to_string, to_value};

#[test]
fn frequencies_survive() {
    for coupling in couplings().into_iter().chain(quasi_couplings()).chain(approximate_couplings()) {
        let omega = frequencies(5, 13, coupling.as_ref(), 4);
        let read: Frequencies = from_str(&to_string(&omega).unwrap()).unwrap();
        assert_eq!(read, omega);
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
    let map = Positive.gaussian::<f32>(omega, 2.0).unwrap();
    let text = to_string(&map).unwrap();
    let read: Map<f32> = from_str(&text).unwrap();
    let x = points::<f32>(10, 128, 1.0);
    assert_eq!(read.features(Side::X, &x).unwrap(), map.features(Side::X, &x).unwrap());
    assert_eq!(read.identity(), map.identity());
    // Factors that do not fit are refused.
    let wrong = text.replacen("\"padded\":128", "\"padded\":64", 1);
    assert!(wrong != text && from_str::<Map<f32>>(&wrong).is_err());
}

#[test]
fn maps_survive() {
    let omega = || frequencies(3, 8, &Orthogonal, 4);
    let x = points::<f32>(10, 3, 1.0);
    let map = Positive.gaussian::<f32>(omega(), vec![0.5, 1.0, 2.0]).unwrap();
    let read: Map<f32> = from_str(&to_string(&map).unwrap()).unwrap();
    assert_eq!(read.features(Side::X, &x).unwrap(), map.features(Side::X, &x).unwrap());
    assert_eq!(read.identity(), map.identity());
    let map = Trigonometric.softmax::<f32>(omega()).unwrap();
    let read: Map<f32> = from_str(&to_string(&map).unwrap()).unwrap();
    assert_eq!(read.features(Side::X, &x).unwrap(), map.features(Side::X, &x).unwrap());
}

/// Frequencies beyond single precision, which saturate.
#[test]
fn saturated_maps_survive() {
    let omega = Frequencies::from_rows(ndarray::arr2(&[[1e300, -2.0]])).unwrap();
    let map = Positive.softmax::<f32>(omega).unwrap();
    let read: Map<f32> = from_str(&to_string(&map).unwrap()).unwrap();
    let x = points::<f32>(2, 2, 1.0);
    assert_eq!(read.features(Side::X, &x).unwrap(), map.features(Side::X, &x).unwrap());
}

#[test]
fn clusters_survive() {
    let clusters = Clustering::of(&points::<f64>(20, 3, 1.0), 4, &mut random_features::rng(1)).unwrap();
    let stored = to_value(&clusters).unwrap();
    assert_eq!(from_value::<Clustering>(stored.clone()).unwrap(), clusters);
    let mut negative = stored;
    negative["mean_squares"]["data"][5] = json!(-1.0);
    assert!(from_value::<Clustering>(negative).unwrap_err().to_string().contains("mean squares"));
}

#[test]
fn what_is_wrong_is_refused() {
    let map = Positive.softmax::<f64>(frequencies(2, 3, &Orthogonal, 1)).unwrap();
    let stored = to_value(&map).unwrap();
    let error = from_value::<Map<f64>>(stored.clone()).unwrap_err().to_string();
    assert!(error.contains("positive") && error.contains("hyperbolic"), "{error}");
    let mut short = stored.clone();
    short["frequencies"]["law"]["blocks"][0]["size"] = json!(1);
    assert!(from_value::<Map<f64>>(short).is_err());
    let kernel = json!({ "lengthscale": { "PerDimension": [1.0, 0.0] } });
    assert!(from_value::<random_features::kernel::Gaussian>(kernel).is_err());
    let mut negative = stored;
    negative["target"]["Softmax"]["lengthscale"] = json!({ "Isotropic": -1.0 });
    assert!(from_value::<Map<f64>>(negative).is_err());
}
