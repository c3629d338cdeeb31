//! Sketches are stored by their names and numbers, and read where their kinds are known.

use super::binning::RandomBinning;
use super::faulty::{Fault, Faulty};
use super::{binning, laplace, of_stream};
use crate::common::points;
use crate::stored::resealed;
use random_features::apply::Smoother;
use random_features::compose::{Coefficient, Hybrid};
use random_features::extend::SketchKinds;
use random_features::frequency::{Draw, Product};
use random_features::kernel::Cauchy;
use random_features::map::{AnyKernel, Sketched};
use random_features::{Map, Recipe, Side, Trigonometric};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{from_str, from_value, to_string, to_value};

fn kinds() -> SketchKinds {
    SketchKinds::new().with::<RandomBinning>()
}

/// The value as it is read from text and from a binary format.
fn read<V: Serialize + DeserializeOwned>(value: &V) -> [V; 2] {
    let (text, bytes) = (to_string(value).unwrap(), postcard::to_stdvec(value).unwrap());
    let read = kinds().reading(|| [from_str(&text).unwrap(), postcard::from_bytes(&bytes).unwrap()]);
    assert!(read.iter().all(|read: &V| postcard::to_stdvec(read).unwrap() == bytes));
    read
}

#[test]
fn recipes_and_maps_are_read_back() {
    let waves = Trigonometric.recipe(Draw::new(3, 8, Product(Cauchy)), laplace());
    let half = Coefficient::constant(0.5).unwrap();
    let hybrid = Hybrid::sum(
        vec![(half, of_stream(u64::MAX)), (Coefficient::constant(0.2).unwrap(), waves)],
        of_stream(2),
    );
    let x = points::<f32>(20, 3, 1.0);
    for recipe in [of_stream(0), of_stream(3), hybrid.unwrap()] {
        for recipe in [recipe.clone(), recipe.drawn(u64::MAX).unwrap()] {
            for again in read(&recipe) {
                assert_eq!(again, recipe);
                assert_eq!(again.identity(), recipe.identity());
            }
        }
        let map: Map<f32> = recipe.draw(5).unwrap();
        for again in read(&map) {
            assert_eq!(again.identity(), map.identity());
            assert_eq!(again.features(Side::Y, &x).unwrap(), map.features(Side::Y, &x).unwrap());
        }
    }
}

/// What holds a map is read with it.
#[test]
fn models_on_sketches_are_read_back() {
    let map: Map<f64> = of_stream(0).draw(5).unwrap();
    let (x, values) = (points::<f64>(50, 3, 0.5), points::<f64>(50, 2, 1.0));
    let mut smoother = Smoother::new(map, 2).unwrap();
    smoother.update(&x, &values).unwrap();
    for again in read(&smoother) {
        assert_eq!(again.predict(&x).unwrap(), smoother.predict(&x).unwrap());
    }
}

#[test]
fn unknown_kinds_and_damaged_numbers_are_refused() {
    let text = to_string(&of_stream(0)).unwrap();
    let error = |text: &str| from_str::<Recipe>(text).unwrap_err().to_string();
    let unknown = "“random binning” is a sketch that is not known here: read it within SketchKinds::reading";
    assert!(error(&text).contains(unknown), "{}", error(&text));
    // A kind of another name does not help, an outer scope does, and a scope ends, even by a panic.
    let other = SketchKinds::new().with::<Faulty>();
    assert!(other.reading(|| error(&text)).contains(unknown));
    let read = || from_str::<Recipe>(&text).unwrap();
    assert_eq!(kinds().reading(|| other.reading(read)), of_stream(0));
    assert!(std::panic::catch_unwind(|| kinds().reading(|| panic!("while reading"))).is_err());
    assert!(error(&text).contains(unknown));
    // Numbers that a sketch refuses, and those of another sketch.
    let changed = |integers: &[u64]| {
        let mut stored = to_value(of_stream(0)).unwrap();
        stored["data"]["draws"][0][1]["numbers"]["integers"] = integers.into();
        kinds().reading(|| {
            (from_value::<Recipe>(stored.clone()).unwrap_err(), resealed::<Recipe>(stored).unwrap_err())
        })
    };
    let (damaged, resealed) = changed(&[3, 8]);
    assert!(damaged.to_string().contains("random binning of other numbers"), "{damaged}");
    assert_eq!(damaged.to_string(), resealed);
    let (damaged, resealed) = changed(&[3, 8, 5]);
    assert!(damaged.to_string().contains("the checksum of the data"), "{damaged}");
    assert!(resealed.contains("another map than the one that was stored"), "{resealed}");
}

/// A sketch that could not be read again is refused when it is written.
#[test]
fn sketches_that_numbers_do_not_give_again_are_not_written() {
    let error =
        to_string(&Sketched.recipe(Faulty(Fault::Numbers), AnyKernel::implied(1.0))).unwrap_err().to_string();
    assert!(error.contains("the numbers of a faulty do not give it again"), "{error}");
    assert!(to_string(&Sketched.recipe(binning(1, 1), laplace())).is_ok());
}
