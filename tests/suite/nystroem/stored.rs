//! Nyström features are stored with their landmarks and factor, and read back without any further kinds.

use super::{gaussian, kernels};
use crate::common::points;
use random_features::kernel::{Gaussian, Laplace};
use random_features::map::{AnyKernel, Nystroem, Redraw};
use random_features::{Map, Recipe, Side};
use serde_json::{from_str, from_value, to_string, to_value};

#[test]
fn recipes_and_maps_are_read_back() {
    let x = points::<f32>(40, 3, 1.0);
    for kernel in kernels() {
        let features = Nystroem::fit(kernel.clone(), &x, 9, 1).unwrap();
        let (recipe, map) = (features.recipe(), features.map::<f32>().unwrap());
        let again: [Recipe; 2] = [
            from_str(&to_string(&recipe).unwrap()).unwrap(),
            postcard::from_bytes(&postcard::to_stdvec(&recipe).unwrap()).unwrap(),
        ];
        for again in again {
            assert_eq!((again.identity(), &again), (recipe.identity(), &recipe));
        }
        let again: Map<f32> = from_str(&to_string(&map).unwrap()).unwrap();
        assert_eq!(again.identity(), map.identity());
        assert_eq!(again.features(Side::Y, &x).unwrap(), map.features(Side::Y, &x).unwrap());
    }
}

/// A recipe is drawn, whatever the seed, and says what it is.
#[test]
fn nothing_is_left_to_draw() {
    let recipe = Nystroem::new(gaussian(0.5), &points::<f64>(7, 3, 1.0)).unwrap().recipe();
    assert!(recipe.is_drawn());
    assert_eq!(recipe.drawn(5).unwrap(), recipe);
    assert_eq!(recipe.to_string(), "Nyström, 7 features in dimension 3, Gaussian, lengthscale 0.5");
    let redraw = Redraw::new(recipe.clone(), 42, 1000).unwrap();
    assert_eq!(redraw.recipe(5000).unwrap(), recipe);
}

/// A factor is for one kernel: another one, or the other lengthscale of it, is refused, and so are numbers that do not fit.
#[test]
fn other_kernels_and_numbers_are_refused() {
    let features = Nystroem::new(gaussian(0.5), &points::<f64>(7, 3, 1.0)).unwrap();
    for other in [Gaussian::new(0.6).unwrap().into(), AnyKernel::from(Laplace::new(0.5).unwrap())] {
        let mut recipe = features.recipe();
        let Recipe::Plain(plain) = &mut recipe else { panic!("a plain recipe") };
        plain.kernel = other.clone();
        let error = recipe.build::<f64>().unwrap_err().to_string();
        assert!(error.contains(&format!("does not estimate the kernel {other}")), "{error}");
    }
    for (place, value) in [(0, 6u64), (1, 0), (2, 8), (2, u64::MAX)] {
        let mut stored = to_value(features.recipe()).unwrap();
        stored["data"]["draws"][0][1]["numbers"]["integers"][place] = value.into();
        let error = from_value::<Recipe>(stored).unwrap_err().to_string();
        assert!(error.contains("Nyström features of other numbers"), "{error}");
    }
}
