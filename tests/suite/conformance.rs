//! Every map × every coupling × `f32` and `f64` keeps what `FeatureMap` promises.

use std::cell::OnceCell;

use crate::common::{
    MAPS, MORE_MAPS, Name, Written, any_layout, batch_is_rows, couplings, couplings_from_two_dimensions,
    features, frequencies, gaussian, gram_is_estimates, points, promises, refusals, softmax,
    threads_change_nothing,
};
use crate::sets;
use ndarray::{Array2, ArrayView2, s};
use random_features::extend::{Coupling, Facts, FeatureMap, Form, Tile};
use random_features::frequency::{Antithetic, Givens, Hadamard, Orthogonal, Simplex, Sobol};
use random_features::map::AnyKernel;
use random_features::workbench::RotationLaw;
use random_features::{Error, Map, Positive, Real, Side, testing};
use rayon::prelude::*;

/// Numbers of points, dimensions and frequencies. 300 points are more than the largest tile has, 252, and more than the columns of a Gram
/// matrix that are computed together, 256.
const SHAPES: [(usize, usize, usize); 4] = [(1, 1, 1), (7, 3, 5), (300, 17, 40), (300, 128, 150)];

/// Dimensions from which few couplings are run: all of them without a fast product are a matrix to a map.
const WIDE: usize = 100;

/// The maps and couplings that are run in ℝᵈ: the Gaussian maps under every coupling, in wide spaces under one of each kind of
/// product, the others under a few.
fn cases(d: usize) -> Vec<(Name, Box<dyn Coupling>)> {
    let everywhere = || -> Vec<Box<dyn Coupling>> {
        let rows = if d > 1 { couplings_from_two_dimensions() } else { couplings() };
        match d {
            WIDE.. => vec![Box::new(Orthogonal), Box::new(Antithetic(Orthogonal))],
            _ => rows.into_iter().chain([Box::new(Sobol) as _]).collect(),
        }
    };
    let others = || -> Vec<Box<dyn Coupling>> {
        vec![
            Box::new(Hadamard::default()),
            Box::new(Antithetic(Hadamard::default())),
            Box::new(Simplex::on(RotationLaw::Hadamard(Hadamard::default()))),
            Box::new(Givens::default()),
        ]
    };
    let few = || -> Vec<Box<dyn Coupling>> { vec![Box::new(Orthogonal), Box::new(Hadamard::default())] };
    let mut cases = Vec::new();
    for name in MAPS {
        let all = everywhere().into_iter().chain(others()).filter(|c| c.capacity(d) > 0);
        cases.extend(all.map(|coupling| (name, coupling)));
    }
    for name in MORE_MAPS.into_iter().chain([Name::Full(num_complex::Complex64::new(0.01, 0.02))]) {
        cases.extend(few().into_iter().map(|coupling| (name, coupling)));
    }
    cases
}

/// Runs `check` on every combination, with the naive features of the softmax kernel as oracle.
fn every<T: Real>(check: impl Fn(&Map<T>, &Array2<T>, &dyn Fn(Side, &[f64]) -> Vec<f64>)) {
    // How rows are divided does not depend on the instruction set.
    let most = if sets::asked().is_some() { 67 } else { usize::MAX };
    for (n, d, m) in SHAPES {
        let x = points::<T>(n.min(most), d, 1.5 / (d as f64).sqrt());
        for (name, coupling) in cases(d) {
            let omega = frequencies(d, m, coupling.as_ref(), 5);
            let map = name.make::<T>(omega.clone(), softmax());
            let written = OnceCell::new();
            let written = || written.get_or_init(|| Written::new(&omega));
            check(&map, &x, &|side, x| match side {
                Side::X => name.naive_of(written(), x),
                Side::Y => name.naive_of_side_y(written(), x),
            });
        }
    }
}

fn both(f32s: impl Fn(&Map<f32>, &Array2<f32>), f64s: impl Fn(&Map<f64>, &Array2<f64>)) {
    every::<f32>(|map, x, _| f32s(map, x));
    every::<f64>(|map, x, _| f64s(map, x));
}

fn matches_naive<T: Real>(map: &Map<T>, x: &Array2<T>, naive: &dyn Fn(Side, &[f64]) -> Vec<f64>) {
    for side in [Side::X, Side::Y] {
        side_matches_naive(map, side, x, &|x| naive(side, x));
    }
}

fn side_matches_naive<T: Real>(map: &Map<T>, side: Side, x: &Array2<T>, naive: &dyn Fn(&[f64]) -> Vec<f64>) {
    let phi = map.features(side, x).unwrap().to_array();
    for (row, x) in phi.rows().into_iter().zip(x.rows()) {
        let x: Vec<f64> = x.iter().map(|v| v.widen()).collect();
        let expected = naive(&x);
        assert_eq!(row.len(), expected.len());
        let size = expected.iter().fold(0.0f64, |a, v| a.max(v.abs()));
        // Exponents are accurate to eps · (|ω·x| + ½‖x‖²); here both are below 8, d adds its rounding.
        let tolerance = T::epsilon().widen() * (20.0 + x.len() as f64) * size;
        for (value, expected) in row.iter().zip(expected) {
            assert!((value.widen() - expected).abs() <= tolerance, "{map:?}: {value} instead of {expected}");
        }
    }
}

#[test]
fn features_are_the_naive_loop() {
    every::<f32>(matches_naive);
    every::<f64>(matches_naive);
}

#[test]
fn a_batch_is_its_rows_to_the_bit() {
    both(batch_is_rows, batch_is_rows);
}

#[test]
fn threads_change_no_bit() {
    both(threads_change_nothing, threads_change_nothing);
}

/// The pool of the caller's parallel region does the work inside it too.
#[test]
fn parallel_regions_change_no_bit() {
    let map = Positive.softmax::<f32>(frequencies(64, 200, &Orthogonal, 1)).unwrap();
    let x = points::<f32>(3000, 64, 0.2);
    let plain = map.features(Side::X, &x).unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    let inside: Vec<_> =
        pool.install(|| (0..8).into_par_iter().map(|_| map.features(Side::X, &x).unwrap()).collect());
    assert!(inside.iter().all(|features| *features == plain));
}

#[test]
fn any_layout_and_dirty_buffers() {
    both(any_layout, any_layout);
}

#[test]
fn properties_hold() {
    both(promises, promises);
}

/// Columns of a matrix are computed in runs of 256: with 300 of them there is a second one. This does not depend on the
/// dimension, so that wide spaces have fewer.
#[test]
fn gram_and_estimates_agree() {
    fn few<T: Real>(map: &Map<T>, x: &Array2<T>) {
        let most = if x.ncols() < WIDE { 300 } else { 40 };
        gram_is_estimates(map, &x.slice(s![..x.nrows().min(most), ..]).to_owned());
    }
    both(few, few);
}

#[test]
fn wrong_shapes_are_refused_and_nothing_is_written() {
    both(refusals, refusals);
}

fn gaussian_is_scaled_softmax<T: Real>() {
    let (d, m) = (6, 11);
    let omega = frequencies(d, m, &random_features::frequency::Independent, 2);
    let x = points::<T>(20, d, 1.0);
    for name in MAPS.into_iter().chain(MORE_MAPS) {
        let softmax = name.make::<T>(omega.clone(), softmax()).features(Side::X, &x).unwrap();
        let gaussian = name.make::<T>(omega.clone(), gaussian()).features(Side::X, &x).unwrap();
        assert_eq!(softmax.mantissas(), gaussian.mantissas());
        for (i, x) in x.rows().into_iter().enumerate() {
            let half_norm = 0.5 * x.iter().map(|v| v.widen().powi(2)).sum::<f64>();
            let difference = softmax.log_scales()[[i, 0]] - gaussian.log_scales()[[i, 0]];
            assert!((difference - half_norm).abs() < 1e-12);
        }
    }
}

#[test]
fn the_target_is_only_a_scale() {
    gaussian_is_scaled_softmax::<f32>();
    gaussian_is_scaled_softmax::<f64>();
}

#[test]
fn a_lengthscale_divides_the_points() {
    use random_features::kernel::{Gaussian, Softmax};
    let omega = frequencies(3, 8, &random_features::frequency::Independent, 3);
    let x = points::<f64>(10, 3, 2.0);
    let scales = vec![0.5, 2.0, 3.0];
    let divided = &x / &ndarray::arr1(&scales);
    for name in MAPS.into_iter().chain(MORE_MAPS) {
        let pairs: [(AnyKernel, AnyKernel); 2] = [
            (Softmax::new(scales.clone()).unwrap().into(), softmax()),
            (Gaussian::new(scales.clone()).unwrap().into(), gaussian()),
        ];
        for (with, without) in pairs {
            let one = name.make::<f64>(omega.clone(), with);
            let other = name.make::<f64>(omega.clone(), without);
            let (a, b) = (one.gram(&x, &x).unwrap(), other.gram(&divided, &divided).unwrap());
            assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= 1e-12 * b.abs().max(1.0)));
            let variance = |map: &Map<f64>, x: &Array2<f64>| map.log_variance(&x.row(0), &x.row(1));
            let (a, b) = (variance(&one, &x), variance(&other, &divided));
            assert!((a.unwrap().unwrap() - b.unwrap().unwrap()).abs() < 1e-12);
        }
    }
}

#[test]
fn features_of_different_maps_do_not_pair() {
    let x = points::<f32>(4, 3, 1.0);
    let make = |seed, target| {
        let omega = frequencies(3, 8, &random_features::frequency::Independent, seed);
        crate::common::Name::Positive.make::<f32>(omega, target).features(Side::X, &x).unwrap()
    };
    let one = make(1, softmax());
    assert!(one.gram(&make(1, softmax())).is_ok(), "the same map made twice");
    for other in [make(2, softmax()), make(1, gaussian())] {
        let error = one.gram(&other).unwrap_err();
        assert!(matches!(error, Error::Pairing { .. }), "{error}");
    }
}

#[test]
fn clones_and_pointers_are_the_same_map() {
    let omega = frequencies(2, 4, &random_features::frequency::Independent, 1);
    let map = random_features::Positive.softmax::<f64>(omega).unwrap();
    let (x, y) = (points(3, 2, 1.0), points(2, 2, 1.0));
    let gram = map.gram(&x, &y).unwrap();
    let boxed: Map<f64> = map.clone();
    let shared = std::sync::Arc::new(map.clone());
    for other in [&boxed as &Map<f64>, &shared] {
        assert_eq!(other.gram(&x, &y).unwrap(), gram);
        assert_eq!(other.identity(), map.identity());
        assert_eq!(other.log_variance(&x.row(0), &y.row(0)), map.log_variance(&x.row(0), &y.row(0)));
    }
}

/// Features with their scales multiplied in: in new memory and in that of the values.
fn arrays<T: Real>(map: &Map<T>, x: &Array2<T>) {
    let phi = features(map, x.view());
    let plain = phi.to_array();
    let scale = phi.log_scales()[[0, 0]];
    let first = phi.mantissas()[[0, 0]].widen() * scale.exp();
    assert!((plain[[0, 0]].widen() - first).abs() <= T::epsilon().widen() * first.abs());
    assert_eq!(phi.lost_rows(), 0);
    assert_eq!(phi.clone().into_array(), plain);
    let (values, scales) = phi.clone().into_parts();
    assert_eq!((values.view(), scales.view()), (phi.mantissas(), phi.log_scales()));
}

#[test]
fn scales_are_multiplied_in() {
    both(arrays, arrays);
}

/// Features (cos x, sin x) and (sin x, −cos x), broken on one side.
#[derive(Debug)]
struct Sides {
    nan: Option<Side>,
    by_threads: Option<Side>,
    /// ln of the scale of side Y.
    scale: f64,
}

impl FeatureMap<f32> for Sides {
    fn facts(&self) -> Facts {
        Facts::new(1, vec![2])
    }

    fn fill(&self, side: Side, x: ArrayView2<'_, f32>, _: Form, tile: &mut Tile<'_, f32>) {
        for (i, x) in x.rows().into_iter().enumerate() {
            let (row, a, b) = (tile.row(i), x[0].cos(), x[0].sin());
            row.values.copy_from_slice(&match (side, self.by_threads) {
                (Side::X, _) => [a, b],
                // So that Gram matrices do not see the second feature of the other side.
                (Side::Y, Some(Side::X)) => [b, 0.0],
                (Side::Y, _) => [b, -a],
            });
            row.log_scales[0] = if side == Side::Y { self.scale } else { 0.0 };
            if self.nan == Some(side) {
                row.values[1] = f32::NAN;
            }
            if self.by_threads == Some(side) && rayon::current_num_threads() == 7 {
                row.values[1] = 0.5;
            }
        }
    }
}

#[test]
fn broken_maps_are_found() {
    let make = |nan, by_threads, scale| Map::of_feature_map(Sides { nan, by_threads, scale }).unwrap();
    let x = Array2::from_shape_fn((40, 1), |(i, _)| 0.37 * i as f32 - 3.0);
    testing::conform(&make(None, None, 0.0), &x).unwrap();
    testing::gram_is_estimates(&make(None, None, 40.0), &x).unwrap();
    for side in [Side::X, Side::Y] {
        let found = testing::conform(&make(Some(side), None, 0.0), &x).unwrap_err().to_string();
        assert!(found.contains("NaN at a finite point"), "{side:?}: {found}");
        let refused = testing::threads_change_nothing(&make(None, Some(side), 0.0), &x).is_err();
        assert_eq!(refused, cfg!(feature = "rayon"), "{side:?}");
    }
}
