//! Everything that holds numbers can be stored and read back to the bit (feature `serde`), as text and in a binary
//! format.

use std::fmt::Debug;

use crate::common::own_map::ones;
use crate::common::{approximate_couplings, couplings, frequencies, points, quasi_couplings};
use ndarray::{Array1, Array2, s};
use num_complex::Complex64;
use rand::{Rng, RngExt};
use random_features::apply::attention::Attention;
use random_features::apply::pca::PcaStatistics;
use random_features::apply::softmax_sampling::{Proposal, SampledSoftmax, SoftmaxSampler};
use random_features::apply::{
    ExactSmoother, RidgeGrid, RidgePosterior, RidgeStatistics, Smoother, Standardisation,
};
use random_features::compose::{Bases, Centres, Clustered, Coefficient, Diagonal, Hybrid};
use random_features::data::shaping::{Moments, PairMoments, Shaping};
use random_features::data::{Clustering, Reservoir, Statistics};
use random_features::extend::{Coupling, Facts, Radii, Radius};
use random_features::frequency::{
    Antithetic, Counts, Frequencies, Givens, Hadamard, Halton, Independent, Orthogonal, Simplex, SimplexPlus,
    Sobol,
};
use random_features::kernel::{
    Activation, ActivationKernel, Angular, Gaussian, Lengthscale, Matern, RegularisedSoftmax, Smoothness,
    Softmax,
};
use random_features::map::{AnyKernel, Shift, Transform};
use random_features::recipe::{AnyCoupling, CountLaw, Draw, DrawCounts, Rates};
use random_features::reduce::KernelSums;
use random_features::theory::complex_exponential::Symmetry;
use random_features::theory::gerf::GerfSign;
use random_features::theory::{BlockLaw, Dependence, Law};
use random_features::workbench::structured::{PlaneRotation, Rotated, Rotation, Structured};
use random_features::workbench::{RootDim, RotationLaw, draw_with};

use random_features::{
    ComplexExponential, EluPlusOne, Error, Geometric, Gerf, Hyperbolic, Map, Nonlinear, Poisson, Positive,
    Real, Recipe, Side, Sign, Trigonometric, rng,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{from_str, from_value, json, to_string, to_value};

/// More parts than any stored form holds one within another.
const DEEPEST: usize = 64;

/// Reads a changed stored form, of which the checksum is changed as well: what is wrong with it is then for others to see.
///
/// Two equal parts have one checksum. Where only one of them was changed, mending one breaks the other: it stays wrong then.
pub fn resealed<V: DeserializeOwned>(mut stored: serde_json::Value) -> Result<V, String> {
    for _ in 0..DEEPEST {
        let error = match from_value(stored.clone()) {
            Ok(value) => return Ok(value),
            Err(error) => error.to_string(),
        };
        let found = error.strip_prefix("the checksum of the data is ");
        let Some((found, stated)) = found.and_then(|rest| rest.split_once(", but that of what was stored "))
        else {
            return Err(error);
        };
        replace_checksum(&mut stored, stated, found);
    }
    Err("checksums of two equal parts, of which one was changed".into())
}

fn replace_checksum(stored: &mut serde_json::Value, from: &str, to: &str) {
    match stored {
        serde_json::Value::Object(fields) => {
            for (name, field) in fields {
                if name == "checksum" && field == from {
                    *field = to.into();
                }
                replace_checksum(field, from, to);
            }
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(|item| replace_checksum(item, from, to)),
        _ => {}
    }
}

/// What earlier versions have stored: every number is a string.
fn of_earlier_versions(stored: serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match stored {
        Value::Number(number) if number.is_f64() => format!("{:?}", number.as_f64().unwrap()).into(),
        Value::Array(items) => items.into_iter().map(of_earlier_versions).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, field)| (name, of_earlier_versions(field))).collect()
        }
        other => other,
    }
}

/// What is read is what was stored, to the bit: −0 is not 0, and NaN is NaN.
fn survives<V: Serialize + DeserializeOwned + Debug>(value: &V) -> [V; 2] {
    let bytes = |value: &V| postcard::to_stdvec(value).unwrap();
    let stored = bytes(value);
    let read: [V; 2] =
        [from_str(&to_string(value).unwrap()).unwrap(), postcard::from_bytes(&stored).unwrap()];
    assert!(read.iter().all(|read| bytes(read) == stored), "{value:?}: {read:?}");
    let earlier: V = from_value(of_earlier_versions(to_value(value).unwrap())).unwrap();
    assert!(bytes(&earlier) == stored, "{value:?}: {earlier:?}");
    read
}

/// As [`survives`], for maps, which are what they are made of; and so are their recipes.
fn map_survives(map: &Map<f64>) {
    let x = points::<f64>(5, map.dim(), 1.0);
    let recipe = map.recipe().unwrap();
    for read in survives(&recipe) {
        assert_eq!(read, recipe);
        assert_eq!(read.identity(), map.identity());
    }
    for read in survives(map) {
        assert_eq!(read.recipe(), Some(recipe.clone()));
        for side in [Side::X, Side::Y] {
            assert_eq!(read.features(side, &x).unwrap(), map.features(side, &x).unwrap());
        }
        assert!(read.features(Side::X, &x).unwrap().gram(&map.features(Side::Y, &x).unwrap()).is_ok());
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
            let omega = draw_with(5, 13, coupling.as_ref(), *radii, rng(seed as u64).next_u64()).unwrap();
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
    let poisson = Counts::poisson(20, 30, rates.clone(), rng(1).next_u64()).unwrap();
    survives(&poisson).into_iter().for_each(|read| assert_eq!(read, poisson));
    survives(&Counts::geometric(3, 30, 1.0 / 3.0, rng(1).next_u64()).unwrap());
    survives(&Counts::from_rows(ndarray::arr2(&[[1 << 53, 0]])).unwrap());
    for rate in rates {
        survives(&CountLaw::Poisson(Rates::Same(rate)));
        survives(&CountLaw::Geometric(rate / 10.0));
    }
    let matern = Radius::Matern(Smoothness::Half);
    let block = |cos| BlockLaw::new(3, Dependence::Angle { cos }, matern).in_pairs();
    survives(&Law::of_blocks((1..200).map(|k| block(-1.0 / f64::from(k)))));
    survives(&Law::orthogonal(3, 7).with_radius(Radius::Other));
    survives(&Law::unknown(5));
    let tall = Law::orthogonal(3, usize::MAX);
    survives(&tall).into_iter().for_each(|read| assert_eq!(read, tall));
}

/// Counts of blocks that are 0 or overflow, draws that do not fit their numbers, damaged numbers, and pairs of pairs.
#[test]
fn stored_draws_are_what_they_say() {
    let law = to_value(Law::orthogonal(3, 7)).unwrap();
    let with = |run: usize, name: &str, number: u64| {
        let mut law = law.clone();
        let place = if name == "count" { &mut law[run][name] } else { &mut law[run]["block"][name] };
        *place = json!(number);
        from_value::<Law>(law)
    };
    assert_eq!(with(0, "count", 2).unwrap(), Law::orthogonal(3, 7));
    for (run, name, number) in
        [(0, "count", 0), (1, "size", 0), (0, "count", u64::MAX / 2), (0, "size", u64::MAX)]
    {
        assert!(with(run, name, number).unwrap_err().to_string().contains("law"), "{name} {number}");
    }
    // Listed blocks are counted, unless there are too many.
    let run = |count: u64| json!({ "block": law[0]["block"], "count": count });
    assert_eq!(from_value::<Law>(json!([run(1), run(1)])).unwrap(), Law::orthogonal(3, 6));
    let half = u64::MAX / 6 + 1;
    assert!(from_value::<Law>(json!([run(half), run(half)])).is_err());

    let omega = Orthogonal.draw(3, 7, 5).unwrap();
    for read in survives(&omega) {
        assert_eq!(read.drawn_from(), omega.drawn_from());
    }
    let stored = to_value(&omega).unwrap();
    let not_theirs = |place: &str, value: serde_json::Value| {
        let mut stored = stored.clone();
        *stored.pointer_mut(place).unwrap() = value;
        let refused = from_value::<Frequencies>(stored.clone()).unwrap_err().to_string();
        assert!(refused.contains("checksum"), "{refused}");
        let error = resealed::<Frequencies>(stored).unwrap_err();
        assert!(error.contains("that of their draw"), "{place}: {error}");
    };
    not_theirs("/data/origin/draw/m", json!(8));
    not_theirs("/data/origin/draw/d", json!(4));
    not_theirs("/data/origin/draw", to_value(Draw::new(3, 7, Independent)).unwrap());
    not_theirs("/data/origin/draw", to_value(Draw::new(3, 7, Orthogonal).with_radii(RootDim)).unwrap());
    let counts = DrawCounts::new(3, 7, CountLaw::Geometric(0.1)).unwrap().draw(5).unwrap();
    let mut stored = to_value(&counts).unwrap();
    stored["data"]["law"] = json!(["geometric", "0.2"]);
    assert!(resealed::<Counts>(stored).unwrap_err().contains("that of their draw"));

    let pairs = json!(["antithetic", ["antithetic", ["orthogonal", null]]]);
    let refused = from_value::<AnyCoupling>(pairs).unwrap_err().to_string();
    assert!(refused.contains("“antithetic” is not the name of a coupling"), "{refused}");
    let deep = b"\x0aantithetic".repeat(200_000);
    assert!(postcard::from_bytes::<AnyCoupling>(&deep).is_err());
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
    survives(&AnyKernel::from(Gaussian::new(each()).unwrap()));
}

#[test]
fn what_is_known_of_data_survives() {
    let statistics = Statistics::of(&matrix(40, 30, 1)).unwrap();
    survives(&statistics).into_iter().for_each(|read| assert_eq!(read, statistics));
    let mut weighted = Statistics::new(3).unwrap();
    survives(&weighted);
    weighted.update_weighted(&points::<f64>(9, 3, 1.0), &Array1::from(scales(9, 4))).unwrap();
    survives(&weighted);
    let clusters = Clustering::of(&points::<f64>(200, 7, 1.0), 9, 1).unwrap();
    survives(&clusters).into_iter().for_each(|read| assert_eq!(read, clusters));
    survives(&Clustering::new(matrix(20, 5, 3)).unwrap());
    for scale in scales(100, 5) {
        survives(&Diagonal::robust().with_limit(0.1 * scale));
    }
}

#[test]
fn statistics_that_no_points_have_are_refused() {
    let stored = to_value(Statistics::of(&points::<f64>(20, 3, 1.0)).unwrap()).unwrap();
    assert!(resealed::<Statistics>(stored.clone()).is_ok());
    for (place, wrong) in [
        ("/data/weight", json!(-1.0)),
        ("/data/weight", json!(0.0)),
        ("/data/count", json!(0)),
        ("/data/coordinates", json!([])),
        ("/data/coordinates/1/variance", json!(-1e-9)),
        ("/data/coordinates/1/magnitude", json!(-1.0)),
        ("/data/coordinates/2/min", json!(2.0)),
        ("/data/coordinates/2/mean", json!(1e200)),
        ("/data/coordinates/2/rest", json!(1e-3)),
        ("/data/coordinates/2/rest", json!("NaN")),
    ] {
        let mut changed = stored.clone();
        *changed.pointer_mut(place).unwrap() = wrong.clone();
        assert!(resealed::<Statistics>(changed).is_err(), "{place}: {wrong}");
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
    survives(Antithetic(SimplexPlus::default().with_passes(2)));
    survives(Simplex::default().with_truncated_blocks());
    survives(Simplex::on(RotationLaw::Hadamard(Hadamard::default().with_rounds(2))));
    survives(Givens::default().with_rounds(7));
    survives(Halton);
    survives(Sobol);
    // With options that no draw accepts it is not read.
    let refused = |stored: &str, word: &str| {
        for error in [from_str::<Hadamard>(stored).err(), from_str::<Givens>(stored).err()] {
            assert!(error.unwrap().to_string().contains(word), "{stored}");
        }
    };
    refused(r#"{"rounds": 1099511627776}"#, "the number of rounds");
    refused(r#"{"rounds": 0}"#, "the number of rounds");
    for (passes, read) in [(0, false), (1000, true), (1001, false)] {
        let mut stored = to_value(SimplexPlus::default()).unwrap();
        stored["passes"] = passes.into();
        assert_eq!(from_value::<SimplexPlus>(stored).is_ok(), read, "{passes} passes");
    }
    let mut recipe = to_value(Draw::new(4, 4, Hadamard::default())).unwrap();
    assert!(from_value::<Draw>(recipe.clone()).is_ok());
    let text = recipe.to_string().replace("\"rounds\":3", "\"rounds\":4000000000");
    recipe = from_str(&text).unwrap();
    assert!(from_value::<Draw>(recipe).unwrap_err().to_string().contains("the number of rounds"));
}

#[test]
fn structured_maps_survive() {
    let omega = frequencies(128, 200, &Hadamard::default(), 4);
    let map = Positive.gaussian::<f64>(omega, 2.0).unwrap();
    map_survives(&map);
    // Factors that do not fit are refused.
    let text = to_string(&map).unwrap();
    let wrong = text.replacen("\"padded\":128", "\"padded\":64", 1);
    let wrong = resealed::<Map<f64>>(from_str(&wrong).unwrap()).unwrap_err();
    assert!(wrong.contains("the padded dimension"), "{wrong}");
}

#[test]
fn every_map_survives_in_every_format() {
    let omega = |m| frequencies(3, m, &Orthogonal, 4);
    let each = || scales(3, 7);
    let gaussian = || Gaussian::new(each()).unwrap();
    map_survives(&Positive.build(omega(8), gaussian()).unwrap());
    map_survives(&Hyperbolic.build(omega(8), gaussian()).unwrap());
    map_survives(&Trigonometric.softmax(omega(8)).unwrap());
    map_survives(&Trigonometric.build(omega(8), AnyKernel::implied(each())).unwrap());
    map_survives(&Sign.build(omega(8), 1.0).unwrap());
    map_survives(&EluPlusOne.build(3, each()).unwrap());
    for (k, scale) in scales(30, 8).into_iter().enumerate() {
        let a = Complex64::new(0.1 - scale, 1.0 / scale);
        map_survives(&Gerf::new(a, GerfSign::Minus).unwrap().softmax(omega(5)).unwrap());
        map_survives(&Gerf::new(-scale, GerfSign::Plus).unwrap().gaussian(omega(5), scale).unwrap());
        let diagonal = Transform::diagonal(complex(3, k as u64)).unwrap();
        let full = Array2::from_shape_vec((3, 3), complex(9, k as u64)).unwrap();
        for a in [diagonal, Transform::full(full).unwrap()] {
            survives(&a).into_iter().for_each(|read| assert_eq!(read, a));
            for symmetry in [Symmetry::Plain, Symmetry::Symmetric] {
                map_survives(
                    &ComplexExponential::new(a.clone(), symmetry).build(omega(5), gaussian()).unwrap(),
                );
            }
        }
        let map = Nonlinear::new(Activation::Relu).with_offset(scale).unwrap();
        map_survives(&map.build(omega(5), each()).unwrap());
        let counts = Counts::poisson(3, 6, vec![scale, 1.0, 2.0], rng(1).next_u64()).unwrap();
        let shift = Shift::new(numbers(3, k as u64), 1.0 / scale).unwrap();
        map_survives(&Poisson::default().gaussian(counts.clone(), each()).unwrap());
        map_survives(&Poisson::with_rates(scale).shifted(shift.clone()).gaussian(counts, each()).unwrap());
        let counts = Counts::geometric(3, 6, 0.09 * scale, rng(1).next_u64()).unwrap();
        map_survives(&Geometric::default().softmax(counts.clone()).unwrap());
        map_survives(&Geometric::with_p(0.05 * scale).shifted(shift).softmax(counts).unwrap());
    }
}

#[test]
fn composed_maps_survive_and_frequencies_are_stored_once() {
    let omega = |m, seed| frequencies(3, m, &Independent, seed);
    let angular = Hybrid::angular(Bases::shared(omega(40, 1)), omega(4, 2)).unwrap();
    map_survives(&angular);
    let text = to_string(&angular).unwrap();
    assert_eq!(text.matches("\"law\"").count(), 2, "bases share their frequencies");
    let matrix = matrix(3, 3, 5).mapv(|v| v.signum() * 0.7);
    let lambda = Coefficient::gaussian_trigonometric(omega(5, 3), matrix, 1.3).unwrap();
    let gaussian =
        Hybrid::gaussian(Bases::independent(omega(4, 4), omega(4, 5)), omega(3, 6), (0.7, 1.1)).unwrap();
    let half = Coefficient::constant(0.3).unwrap();
    let nested =
        Hybrid::sum(vec![(lambda, gaussian), (half, angular)], Positive.softmax(omega(5, 7)).unwrap());
    let nested = nested.unwrap();
    map_survives(&nested);
    let (queries, keys) = (points::<f64>(30, 3, 1.0), points::<f64>(30, 3, 0.5));
    let (queries, keys) = (Clustering::of(&queries, 2, 1).unwrap(), Clustering::of(&keys, 3, 2).unwrap());
    let centres = Centres::new(&queries, &keys);
    let clustered = Clustered::by_centres(centres, omega(6, 8), Softmax::default()).unwrap();
    map_survives(&clustered);
    assert_eq!(to_string(&clustered).unwrap().matches("\"law\"").count(), 1);
    map_survives(&Hybrid::sum(vec![(Coefficient::constant(0.5).unwrap(), clustered)], nested).unwrap());
}

#[test]
fn recipes_that_are_not_drawn_survive() {
    let draw =
        Draw::new(4, 9, Antithetic(Simplex::on(RotationLaw::Hadamard(Hadamard::default().with_rounds(2)))));
    let counts = DrawCounts::new(4, 5, CountLaw::Poisson(Rates::Same(0.1 + 0.2))).unwrap().with_stream(3);
    let other = draw.clone().with_stream(1).with_radii(Smoothness::FiveHalves);
    let recipes = [
        Positive.recipe(draw, Softmax::default()),
        Trigonometric.recipe(other, Matern::new(Smoothness::FiveHalves, 0.1).unwrap()),
        Poisson::default().recipe(counts, Gaussian::new(0.7).unwrap()),
    ];
    for recipe in recipes {
        for read in survives(&recipe) {
            assert_eq!(read, recipe);
            let (map, again) = (recipe.draw::<f64>(7).unwrap(), read.draw::<f64>(7).unwrap());
            assert_eq!(map.identity(), again.identity());
            assert_ne!(map.identity(), recipe.draw::<f64>(8).unwrap().identity());
            map_survives(&map);
        }
        assert!(recipe.build::<f64>().is_err());
    }
}

/// As deep as may be: no format runs out of depth, and what is deeper is refused both ways.
#[test]
fn deep_maps_survive() {
    let base: Map<f64> = EluPlusOne.build(2, 1.0).unwrap();
    let deeper =
        |map: Map<f64>| Hybrid::sum(vec![(Coefficient::constant(0.5).unwrap(), map)], base.clone()).unwrap();
    let map = (0..64).fold(base.clone(), |map, _| deeper(map));
    map_survives(&map);
    assert!(to_string(&deeper(map)).unwrap_err().to_string().contains("more than 64"));
}

/// With what a map was fitted to.
#[test]
fn smoothers_survive() {
    let map = Positive.gaussian::<f32>(frequencies(3, 20, &Orthogonal, 1), 0.8).unwrap();
    let (x, y) = (points::<f32>(50, 3, 1.0), points::<f32>(50, 2, 1.0));
    let mut smoother = Smoother::new(map, 2).unwrap();
    smoother.update(&x, &y).unwrap();
    for mut read in survives(&smoother) {
        assert_eq!(read.predict(&x).unwrap(), smoother.predict(&x).unwrap());
        read.update(&x, &y).unwrap();
        assert_eq!(read.rows(), 100);
    }
    let mut short = to_value(&smoother).unwrap();
    short["data"]["sums"]["data"]["totals"] = json!(["1.0"]);
    assert!(resealed::<Smoother<f32>>(short).map(drop).unwrap_err().contains("another shape"));
}

/// Sums go on where they were, with their map and with no other; what they cannot be is refused.
#[test]
fn kernel_sums_survive() {
    let map = |seed| Positive.gaussian::<f64>(frequencies(3, 20, &Orthogonal, seed), 0.8).unwrap();
    let (x, y) = (points::<f64>(50, 3, 900.0), points::<f64>(50, 2, 1.0));
    let mut smoother = Smoother::new(map(1), 2).unwrap().with_first_row(7).unwrap();
    survives(smoother.sums());
    smoother.update(&x, &y).unwrap();
    let mut more = smoother.clone();
    more.update(&x, &y).unwrap();
    for sums in survives(smoother.sums()) {
        assert_eq!(
            (sums.row_ranges(), sums.identity()),
            (vec![std::ops::Range { start: 7, end: 57 }], map(1).identity())
        );
        assert!(Smoother::of_sums(map(2), sums.clone()).is_err());
        let mut read = Smoother::of_sums(map(1), sums).unwrap();
        assert_eq!(read.predict(&x).unwrap(), smoother.predict(&x).unwrap());
        read.update(&x, &y).unwrap();
        assert_eq!(read.predict(&x).unwrap(), more.predict(&x).unwrap());
    }
    let stored = to_value(smoother.sums()).unwrap();
    let refused = from_value::<KernelSums<f32>>(stored.clone()).unwrap_err().to_string();
    assert!(refused.contains("stored for f64"), "{refused}");
    let error = |place: &str, value: serde_json::Value| {
        let mut stored = stored.clone();
        *stored.pointer_mut(place).unwrap() = value;
        resealed::<KernelSums<f64>>(stored).map(drop).unwrap_err()
    };
    assert!(error("/data/totals", json!([])).contains("another shape"));
    assert!(error("/data/totals/0", json!("inf")).contains("another shape"));
    assert!(error("/data/sums/lanes", json!(16)).contains("another shape"));
    assert!(error("/data/sums/targets", json!(1u64 << 60)).contains("another shape"));
    assert!(error("/data/sums/reference/0", json!("NaN")).contains("another shape"));
    assert!(error("/data/sums/even", json!(true)).contains("another shape"));
    assert!(error("/data/rows/ranges/0/end", json!(7)).contains("out of order"));
    // Fewer features, as no map of this identity has.
    let mut fewer = stored.clone();
    for part in ["reference", "weights"] {
        fewer["data"]["sums"][part].as_array_mut().unwrap().pop();
    }
    let sums = fewer["data"]["sums"]["sums"].as_array_mut().unwrap();
    sums.truncate(sums.len() - 2);
    let sums = resealed::<KernelSums<f64>>(fewer).unwrap();
    assert!(Smoother::of_sums(map(1), sums.clone()).unwrap_err().to_string().contains("features"));
    assert!(smoother.merge_sums(&sums).unwrap_err().to_string().contains("features"));
}

#[test]
fn exact_smoothers_survive() {
    let kernel = || Gaussian::new(vec![0.8, 1.3, 0.1]).unwrap();
    let (x, y) = (points::<f64>(50, 3, 1.0), points::<f64>(50, 2, 1.0));
    let mut smoother = ExactSmoother::new(kernel(), 3, 2).unwrap();
    // One that has seen nothing, too.
    for read in survives(&smoother) {
        assert!(matches!(read.predict(&x), Err(Error::NoData { .. })));
    }
    smoother.update(&x, &y).unwrap();
    for mut read in survives(&smoother) {
        assert_eq!(read.predict(&x).unwrap(), smoother.predict(&x).unwrap());
        let mut more = smoother.clone();
        for smoother in [&mut more, &mut read] {
            smoother.update(&x.mapv(|v| -v), &y).unwrap();
        }
        assert_eq!(read.predict(&x).unwrap(), more.predict(&x).unwrap());
    }
    let stored = to_value(&smoother).unwrap();
    let error = |stored| resealed::<ExactSmoother<f64, Gaussian>>(stored).map(drop).unwrap_err();
    let mut short = stored.clone();
    short["data"]["targets"]["dim"] = json!([25, 4]);
    assert!(error(short).contains("number of rows"));
    let mut beyond = stored.clone();
    beyond["data"]["x"]["data"][7] = json!("inf");
    assert!(error(beyond).contains("finite"));
    let mut narrow = stored;
    narrow["data"]["kernel"]["lengthscale"] = json!(["per dimension", [1.0, 2.0]]);
    assert!(error(narrow).contains("dimension"));
}

/// Trees of either kind of leaf and exact draws, after changes: the same draws to the bit, before and after further changes.
#[test]
fn samplers_survive() {
    fn survives_with_changes<T: Real>() {
        let (c, h) = (points::<T>(90, 3, 1.3), points::<T>(5, 3, 0.9));
        for (leaf, exact) in [(1, 0), (8, 0), (1, usize::MAX)] {
            let map = Trigonometric.softmax::<T>(frequencies(3, 7, &Orthogonal, 1)).unwrap();
            let proposal =
                Proposal::new(map).with_uniform(0.1).unwrap().with_cosine(0.7).unwrap().with_diagnostics();
            let proposal = proposal.with_leaf_size(leaf).unwrap().with_exact_below(exact);
            let mut layer = SampledSoftmax::new(proposal, &c.slice(s![..70, ..])).unwrap();
            layer.replace(&[3, 69], &c.slice(s![80..82, ..])).unwrap();
            layer.remove(&[5, 6, 40]).unwrap();
            layer.add(&c.slice(s![70..80, ..])).unwrap();
            let mut more = layer.clone();
            more.add(&c.slice(s![82.., ..])).unwrap();
            for mut read in survives(layer.sampler()) {
                assert_eq!(read.sample(&h, 40, 7).unwrap(), layer.sample(&h, 40, 7).unwrap());
                assert_eq!((read.classes(), read.present_classes(), read.is_present(6)), (80, 77, false));
                read.add(&c.slice(s![82.., ..])).unwrap();
                assert_eq!(read.sample(&h, 40, 7).unwrap(), more.sample(&h, 40, 7).unwrap());
            }
            for mut read in survives(&layer) {
                assert_eq!(read.vectors(), layer.vectors());
                assert_eq!(read.sample(&h, 40, 7).unwrap(), layer.sample(&h, 40, 7).unwrap());
                read.add(&c.slice(s![82.., ..])).unwrap();
                assert_eq!(read.sample(&h, 40, 7).unwrap(), more.sample(&h, 40, 7).unwrap());
            }
        }
    }
    survives_with_changes::<f32>();
    survives_with_changes::<f64>();
}

/// What no sampler can be, with a checksum that fits.
#[test]
fn samplers_that_cannot_be_are_refused() {
    let c = points::<f64>(30, 3, 1.0);
    let proposal = |exact| {
        let map = Positive.softmax::<f64>(frequencies(3, 8, &Orthogonal, 1)).unwrap();
        Proposal::new(map).with_exact_below(exact)
    };
    let mut sampler = proposal(0).build(&c).unwrap();
    sampler.remove(&[4]).unwrap();
    let stored = to_value(&sampler).unwrap();
    let error = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut wrong = stored.clone();
        change(&mut wrong["data"]);
        resealed::<SoftmaxSampler<f64>>(wrong).map(drop).unwrap_err()
    };
    assert!(error(&|data| data["classes"]["count"] = json!(29)).contains("number of stored rows"));
    assert!(error(&|data| data["classes"]["count"] = json!(1u64 << 60)).contains("number of stored rows"));
    assert!(error(&|data| data["classes"]["removed"] = json!([4, 4])).contains("removed"));
    assert!(error(&|data| data["classes"]["removed"] = json!([5])).contains("scales"));
    assert!(error(&|data| data["proposal"]["leaf"] = json!(5000)).contains("option"));
    assert!(error(&|data| data["proposal"]["uniform"] = json!("1.5")).contains("option"));
    assert!(error(&|data| data["reference"] = json!(["0.5"])).contains("references"));
    assert!(error(&|data| data["reference"][2] = json!("inf")).contains("references"));
    assert!(error(&|data| data["rows"]["data"][7] = json!("NaN")).contains("finite"));
    assert!(error(&|data| data["log_scales"]["data"][7] = json!("NaN")).contains("scales"));
    assert!(error(&|data| data["proposal"]["exact_below"] = json!(31)).contains("columns"));
    let layer = to_value(SampledSoftmax::new(proposal(100), &c).unwrap()).unwrap();
    let mut wrong = layer.clone();
    wrong["data"]["proposal"]["exact_below"] = json!(0);
    assert!(resealed::<SampledSoftmax<f64>>(wrong).map(drop).unwrap_err().contains("references"));
    let mut wrong = layer;
    wrong["data"]["removed"] = json!((0..30).collect::<Vec<_>>());
    assert!(resealed::<SampledSoftmax<f64>>(wrong).map(drop).unwrap_err().contains("removed"));
}

#[test]
fn clusters_survive() {
    let clusters = Clustering::of(&points::<f64>(20, 3, 1.0), 4, 1).unwrap();
    let stored = to_value(&clusters).unwrap();
    assert_eq!(from_value::<Clustering>(stored.clone()).unwrap(), clusters);
    let mut negative = stored;
    negative["data"]["mean_squares"]["data"][5] = json!(-1.0);
    assert!(resealed::<Clustering>(negative).unwrap_err().contains("mean squares"));
}

/// Whatever byte is damaged: nothing is read as something else, and nothing aborts. NaN is the one number that has
/// several forms.
#[test]
fn damage_is_noticed() {
    fn noticed<V: Serialize + DeserializeOwned>(value: &V) {
        let stored = postcard::to_stdvec(value).unwrap();
        assert!(postcard::from_bytes::<V>(&stored).is_ok());
        let places = (0..stored.len()).step_by(stored.len() / 500 + 1);
        for (place, flip) in places.zip([1u8, 0x10, 0x80, 0xff].into_iter().cycle()) {
            let mut damaged = stored.clone();
            damaged[place] ^= flip;
            assert!(postcard::from_bytes::<V>(&damaged).is_err(), "byte {place} of {}", stored.len());
        }
    }
    let x = points::<f64>(20, 3, 1.0);
    let map = Positive.gaussian::<f64>(frequencies(3, 8, &Orthogonal, 1), 0.8).unwrap();
    noticed(&frequencies(3, 8, &Orthogonal, 1));
    noticed(&Frequencies::from_rows(x.clone()).unwrap());
    noticed(&DrawCounts::new(3, 7, CountLaw::Geometric(0.1)).unwrap().draw(5).unwrap());
    noticed(&map.recipe().unwrap());
    noticed(&map);
    noticed(&Statistics::of(&x).unwrap());
    noticed(&Clustering::of(&x, 2, 1).unwrap());
    let moments = Moments::of(&x).unwrap();
    noticed(&moments);
    noticed(&PairMoments::weighted(moments, &x, &x, &Array2::ones((20, 20))).unwrap());
    noticed(&Standardisation::of(&x).unwrap());
    let mut smoother = Smoother::new(map.clone(), 1).unwrap();
    smoother.update(&x, &points(20, 1, 1.0)).unwrap();
    noticed(&smoother);
    noticed(smoother.sums());
    let mut exact = ExactSmoother::<f64, _>::new(Gaussian::new(0.8).unwrap(), 3, 1).unwrap();
    exact.update(&x, &points(20, 1, 1.0)).unwrap();
    noticed(&exact);
    let attention =
        Attention::new(Positive.softmax::<f64>(frequencies(3, 8, &Orthogonal, 1)).unwrap()).unwrap();
    noticed(&attention);
    noticed(&attention.state(1, 2, 2).unwrap());
    let proposal = |exact| {
        let map = Positive.softmax::<f64>(frequencies(3, 8, &Orthogonal, 1)).unwrap();
        Proposal::new(map).with_exact_below(exact)
    };
    for proposal in [proposal(0), proposal(0).with_leaf_size(8).unwrap(), proposal(usize::MAX)] {
        let mut layer = SampledSoftmax::new(proposal, &x).unwrap();
        layer.remove(&[3, 7]).unwrap();
        noticed(layer.sampler());
        noticed(&layer);
    }
    #[cfg(feature = "faer")]
    {
        noticed(&Shaping::new().of_points(&x, &x).unwrap());
        let mut statistics = RidgeStatistics::new(map, 1).unwrap();
        statistics.update(&x, &points(20, 1, 1.0)).unwrap();
        noticed(&statistics.solve(0.1).unwrap());
        noticed(&statistics);
        noticed(statistics.sums());
        noticed(&statistics.pca(2).unwrap());
        let posterior = statistics.spectrum().unwrap().posterior(0.1).unwrap().with_landmarks(&x).unwrap();
        noticed(&posterior);
        let read: RidgePosterior<f64> = from_str(&to_string(&posterior).unwrap()).unwrap();
        assert_eq!(read.predict(&x).unwrap(), posterior.predict(&x).unwrap());
        let mut grid = RidgeGrid::new([statistics.map().clone()], 1).unwrap();
        grid.update(&x, &points(20, 1, 1.0)).unwrap();
        noticed(&grid);
        let mut sums = PcaStatistics::new(statistics.map().clone()).unwrap();
        sums.update(&x).unwrap();
        noticed(&sums);
        let stored = to_string(&sums).unwrap();
        assert!(from_str::<RidgeStatistics<f64>>(&stored).is_err());
        let read: PcaStatistics<f64> = from_str(&stored).unwrap();
        assert_eq!(read.components(2).unwrap().directions(), sums.components(2).unwrap().directions());
        let stored = to_string(&statistics).unwrap();
        assert!(from_str::<PcaStatistics<f64>>(&stored).is_err());
    }
}

#[test]
fn what_is_wrong_is_refused() {
    // A dimension that no numbers stand behind: an error, before anything is allocated.
    let plane = Structured::new(
        2,
        2,
        vec![Rotated {
            rotation: Rotation::Givens(vec![PlaneRotation { axes: [0, 1], angle: 0.3 }]),
            vertices: 0,
            copies: 1,
            radii: vec![1.0],
        }],
    );
    let plane = plane.unwrap();
    for (dim, padded) in [(1u64 << 40, 1u64 << 40), (1 << 33, 1 << 33), (5000, 8192), (1 << 60, 1 << 60)] {
        let mut stored = to_value(&plane).unwrap();
        (stored["dim"], stored["padded"]) = (json!(dim), json!(padded));
        assert!(from_value::<Structured>(stored).is_err(), "{dim}");
    }
    let map = Positive.softmax::<f64>(frequencies(2, 3, &Orthogonal, 1)).unwrap();
    let stored = to_value(&map).unwrap();
    let error = |stored| from_value::<Map<f64>>(stored).unwrap_err().to_string();
    let mut damaged = stored.clone();
    let number = damaged.pointer_mut("/data/draws/0/1/data/form/1/data/0").unwrap();
    *number = json!("0.5");
    assert!(error(damaged).contains("checksum"));
    let mut later = stored.clone();
    later["version"] = json!(5);
    assert!(error(later).contains("format version 5"));
    let other = from_value::<Map<f32>>(stored.clone()).unwrap_err().to_string();
    assert!(other.contains("stored for f64"), "{other}");
    let kernel = json!({ "lengthscale": ["per dimension", [1.0, 0.0]] });
    assert!(from_value::<Gaussian>(kernel).is_err());
    // No changed byte goes unnoticed.
    let bytes = postcard::to_stdvec(&map).unwrap();
    for place in 0..bytes.len() {
        for bit in 0..8 {
            let mut wrong = bytes.clone();
            wrong[place] ^= 1 << bit;
            assert!(postcard::from_bytes::<Map<f64>>(&wrong).is_err(), "byte {place} of {}", bytes.len());
        }
    }
    // Nobody could read it back.
    let foreign = ones(Facts::new(2, vec![1])).unwrap();
    assert!(foreign.recipe().is_none() && to_string(&foreign).is_err());
    let half = Coefficient::constant(0.5).unwrap();
    assert!(to_string(&Hybrid::sum(vec![(half, map)], foreign).unwrap()).is_err());
}

/// What was stored of one type and is read as another, and what was written by hand and is read as what was stored.
#[test]
fn forms_of_other_types_are_named() {
    let map = Positive.softmax::<f64>(frequencies(2, 3, &Orthogonal, 1)).unwrap();
    let stored = to_string(&map).unwrap();
    let error = |result: Result<(), serde_json::Error>| result.unwrap_err().to_string();
    let begins = |error: String, begin: &str| assert!(error.starts_with(begin), "{error}");
    #[cfg(feature = "faer")]
    begins(
        error(from_str::<random_features::apply::Ridge<f64>>(&stored).map(drop)),
        "this is not the stored form of Ridge: missing field",
    );
    begins(
        error(from_str::<Statistics>(&to_string(&frequencies(2, 3, &Orthogonal, 1)).unwrap()).map(drop)),
        "this is not the stored form of Statistics: missing field",
    );
    let by_hand = r#"{"map": "positive", "kernel": "softmax", "d": 4, "m": 6}"#;
    let advice =
        "this is not the stored form of Recipe (one that is written by hand is a MapConfig): missing field";
    begins(error(from_str::<Recipe>(by_hand).map(drop)), advice);
    // Damage is told as before.
    begins(
        error(from_str::<Map<f64>>(&stored.replacen("\"version\":4", "\"version\":5", 1)).map(drop)),
        "format version 5",
    );
}

/// Numbers that are exact in text are numbers, beside strings.
#[test]
fn numbers_are_numbers_in_text_where_that_is_exact() {
    let gerf = Gerf::new(Complex64::new(-0.2, 0.1 + 0.2), GerfSign::Minus).unwrap();
    let omega = Frequencies::from_rows(ndarray::arr2(&[[0.5, 1.0 / 3.0], [-2.0, 0.0]])).unwrap();
    let map = gerf.build::<f64>(omega, Gaussian::new(vec![0.25, 1e-3]).unwrap()).unwrap();
    let stored = to_string(&map).unwrap();
    for numbers in ["[-0.2,\"0.30000000000000004\"]", "[0.25,0.001]", "[0.5,\"0.3333333333333333\",-2.0,0.0]"]
    {
        assert!(stored.contains(numbers), "{stored}");
    }
    let earlier = of_earlier_versions(to_value(&map).unwrap()).to_string();
    for numbers in [
        "[\"-0.2\",\"0.30000000000000004\"]",
        "[\"0.25\",\"0.001\"]",
        "[\"0.5\",\"0.3333333333333333\",\"-2.0\",\"0.0\"]",
    ] {
        assert!(earlier.contains(numbers), "{earlier}");
    }
    assert_eq!(from_str::<Map<f64>>(&earlier).unwrap().recipe(), map.recipe());
}

/// Rows may be the same and their laws not.
#[test]
fn the_same_rows_under_two_laws_are_two_draws() {
    let rows = frequencies(2, 6, &Independent, 3).rows().into_owned();
    let of = |law| {
        let omega = Frequencies::from_parts(rows.clone(), law).unwrap();
        Positive.softmax::<f64>(omega).unwrap().recipe().unwrap()
    };
    let half = Coefficient::constant(0.5).unwrap();
    let pair = Hybrid::sum(vec![(half, of(Law::independent(6)))], of(Law::unknown(6))).unwrap();
    assert_eq!(pair.draws().len(), 2);
}

/// Ranges of rows that no reservoir can have, such as one that starts after its end, are refused, and so are laws of counts.
#[test]
fn what_no_reservoir_and_no_draw_can_be_is_refused() {
    let x = points::<f64>(9, 3, 1.0);
    let reservoir = Reservoir::of(&x).unwrap().with_capacity(4).unwrap();
    let stored = to_value(&reservoir).unwrap();
    let range = |start: u64, end: u64| json!({ "start": start, "end": end });
    let wrong = [
        vec![range(9, 0)],
        vec![range(u64::MAX, 0), range(0, 9)],
        vec![range(0, u64::MAX), range(0, u64::MAX)],
        vec![range(0, 5), range(4, 8)],
        vec![],
    ];
    for ranges in wrong {
        let mut stored = stored.clone();
        stored["data"]["read"]["ranges"] = json!(ranges);
        let error = resealed::<Reservoir>(stored).unwrap_err();
        let reasons = ["not those of the statistics", "overlap, touch or are out of order"];
        assert!(reasons.iter().any(|reason| error.contains(reason)), "{ranges:?}: {error}");
    }
    assert_eq!(resealed::<Reservoir>(stored).unwrap(), reservoir);

    let draw = DrawCounts::new(4, 5, CountLaw::Poisson(Rates::Same(0.3))).unwrap();
    let mut stored = to_value(&draw).unwrap();
    assert_eq!(from_value::<DrawCounts>(stored.clone()).unwrap(), draw);
    stored["law"] = to_value(CountLaw::Poisson(Rates::Same(f64::NAN))).unwrap();
    assert!(from_value::<DrawCounts>(stored).unwrap_err().to_string().contains("the rate lambda"));
    // A law that was set later can be written, and is refused when it is read.
    let mut wrong = draw;
    wrong.law = CountLaw::Poisson(Rates::Same(f64::NAN));
    let text = to_string(&Poisson::default().recipe(wrong, Gaussian::default())).unwrap();
    assert!(from_str::<Recipe>(&text).unwrap_err().to_string().contains("the rate lambda"));
}
