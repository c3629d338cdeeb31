//! Conditioned, dense-exponential and importance-weighted maps against their definitions.

use std::sync::Arc;

use crate::common::{
    any_layout, batch_is_rows, frequencies, gram_is_estimates, point, points, promises, refusals,
    threads_change_nothing, unbiased,
};
use ndarray::{Array1, Array2, arr1, arr2, s};
use random_features::apply::RidgeStatistics;
use random_features::compose::{Bases, Coefficient, Conditioning, Hybrid};
use random_features::data::shaping::Shaping;
use random_features::extend::Coupling;
use random_features::frequency::{Antithetic, Counts, Frequencies, Hadamard, Independent, Orthogonal};
use random_features::kernel::{Gaussian, Kernel, Matern, Smoothness, Softmax};
use random_features::map::{AnyKernel, Importance, Transform};
use random_features::recipe::Draw;
use random_features::theory::complex_exponential::Symmetry;
use random_features::workbench::RootDim;
use random_features::{
    ComplexExponential, DenseExponential, Error, Gerf, Hyperbolic, Map, Poisson, Positive, Real, Recipe,
    Side, Sign, Trigonometric, rng,
};

/// A full matrix, well conditioned and not symmetric.
fn matrix(d: usize) -> Array2<f64> {
    let entry = |(k, l): (usize, usize)| {
        let off = (((k * 5 + l * 3) % 7) as f64 - 3.0) * 0.15 / d as f64;
        if k == l { 0.7 + 0.6 * (k % 3) as f64 } else { off }
    };
    Array2::from_shape_fn((d, d), entry)
}

fn shift(d: usize, size: f64) -> Vec<f64> {
    (0..d).map(|k| size * ((k * 3 % 5) as f64 - 1.5)).collect()
}

fn conditioning(d: usize) -> Conditioning {
    Conditioning::new(matrix(d)).unwrap().shifted(shift(d, 0.1), shift(d, -0.2)).unwrap()
}

fn times(m: &Array2<f64>, x: &[f64]) -> Vec<f64> {
    m.rows().into_iter().map(|row| row.iter().zip(x).map(|(a, b)| a * b).sum()).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// What a conditioned estimate is by its definition: that of the map at the images, times e^t.
fn defined(map: &Map<f64>, c: &Conditioning, target: &AnyKernel, x: &Array1<f64>, y: &Array1<f64>) -> f64 {
    let scale = |k: usize| match target.lengthscale() {
        random_features::kernel::Lengthscale::Isotropic(scale) => *scale,
        random_features::kernel::Lengthscale::PerDimension(scales) => scales[k],
    };
    let scaled = |x: &Array1<f64>| -> Vec<f64> { x.iter().enumerate().map(|(k, v)| v / scale(k)).collect() };
    let (x, y) = (scaled(x), scaled(y));
    let [c_x, c_y] = c.shifts();
    let less = |x: &[f64], c: &[f64]| -> Vec<f64> { x.iter().zip(c).map(|(x, c)| x - c).collect() };
    let (u, v) = (times(&c.matrices()[0], &less(&x, c_x)), times(&c.matrices()[1], &less(&y, c_y)));
    let mut t = dot(&x, c_y) + dot(c_x, &y) - dot(c_x, c_y);
    if target.is_shift_invariant() {
        t += 0.5 * (dot(&u, &u) + dot(&v, &v) - dot(&x, &x) - dot(&y, &y));
    }
    let raw = |u: &[f64]| -> Array1<f64> { u.iter().enumerate().map(|(k, u)| u * scale(k)).collect() };
    map.log_estimate(&raw(&u), &raw(&v)).unwrap().scaled(t).value()
}

/// Maps for a target: plain ones whose frequencies take in the matrix, structured ones, counts and hybrids.
fn maps<T: Real>(d: usize, target: AnyKernel) -> Vec<Map<T>> {
    let dense = || frequencies(d, 24, &Orthogonal, 3);
    let fast = frequencies(d, 32, &Hadamard::default(), 4);
    let tau = frequencies(d, 8, &Independent, 5);
    let counts = Counts::poisson(d, 16, 1.5, rng(6).next_u64()).unwrap();
    let diagonal = Transform::diagonal((0..d).map(|k| (0.8 + 0.1 * k as f64).into()).collect()).unwrap();
    let lambda = Coefficient::gaussian(frequencies(d, 9, &Independent, 7), (0.5, 1.0));
    let map = |map: random_features::Result<Map<T>>| map.unwrap();
    let base = |seed| Positive.build::<T>(frequencies(d, 12, &Independent, seed), target.clone()).unwrap();
    let complex = ComplexExponential::new(
        Transform::diagonal(vec![num_complex::Complex64::new(0.9, 0.3); d]).unwrap(),
        Symmetry::Plain,
    );
    vec![
        map(Positive.build(dense(), target.clone())),
        map(Hyperbolic.build(dense(), target.clone())),
        map(Trigonometric.build(dense(), target.clone())),
        map(Gerf::optimal(d, 2.0).unwrap().build(dense(), target.clone())),
        map(DenseExponential::new((0..d).map(|k| -0.1 * k as f64).collect())
            .unwrap()
            .build(dense(), target.clone())),
        map(ComplexExponential::new(diagonal, Symmetry::Symmetric).build(dense(), target.clone())),
        map(complex.build(dense(), target.clone())),
        map(Positive.build(fast.clone(), target.clone())),
        map(Trigonometric.build(fast, target.clone())),
        map(Poisson::default().build(counts, target.clone())),
        map(Hybrid::sum(vec![(lambda.unwrap(), base(8))], base(9))),
        map(Hybrid::sum(vec![(Coefficient::angular(tau).unwrap(), base(10))], base(11))),
    ]
}

fn targets(d: usize) -> Vec<AnyKernel> {
    let scales: Vec<f64> = (0..d).map(|k| 0.8 + 0.2 * (k % 3) as f64).collect();
    vec![
        Softmax::default().into(),
        Gaussian::new(1.3).unwrap().into(),
        Softmax::new(scales.clone()).unwrap().into(),
        Gaussian::new(scales).unwrap().into(),
    ]
}

#[test]
fn estimates_are_those_of_the_definition() {
    for d in [1, 2, 5, 40] {
        let c = conditioning(d);
        for target in targets(d) {
            for map in maps::<f64>(d, target.clone()) {
                let shaped = map.conditioned(&c).unwrap();
                let (x, y) = (
                    points::<f64>(3, d, 1.0 / (d as f64).sqrt()),
                    points::<f64>(4, d, 1.2 / (d as f64).sqrt()),
                );
                let gram = shaped.gram(&x, &y).unwrap();
                for ((i, j), entry) in gram.indexed_iter() {
                    let (x, y) = (x.row(i).to_owned(), y.row(j).to_owned());
                    let expected = defined(&map, &c, &target, &x, &y);
                    // Signed terms cancel: relative to the sizes of the features.
                    let size =
                        shaped.features(Side::X, x.view().insert_axis(ndarray::Axis(0))).unwrap().to_array();
                    let other =
                        shaped.features(Side::Y, y.view().insert_axis(ndarray::Axis(0))).unwrap().to_array();
                    let norm = |a: &Array2<f64>| a.iter().map(|v| v * v).sum::<f64>().sqrt();
                    let tolerance = 1e-12 * norm(&size) * norm(&other);
                    assert!((entry - expected).abs() <= tolerance, "{map:?}: {entry} instead of {expected}");
                    let estimate = shaped.estimate(&x, &y).unwrap();
                    assert!((estimate - expected).abs() <= tolerance, "{map:?}: {estimate}, {expected}");
                }
            }
        }
    }
}

#[test]
fn single_precision_agrees_with_double() {
    let d = 5;
    for target in targets(d) {
        for (single, double) in maps::<f32>(d, target.clone()).into_iter().zip(maps::<f64>(d, target)) {
            let c = conditioning(d);
            let (single, double) = (single.conditioned(&c).unwrap(), double.conditioned(&c).unwrap());
            let x = points::<f64>(20, d, 1.0);
            for side in [Side::X, Side::Y] {
                let narrow = single.features(side, &x.mapv(|v| v as f32)).unwrap().to_array();
                let wide = double.features(side, &x.mapv(|v| f64::from(v as f32))).unwrap().to_array();
                for (a, b) in narrow.rows().into_iter().zip(wide.rows()) {
                    let size = b.iter().fold(0.0f64, |a, v| a.max(v.abs()));
                    assert!(
                        a.iter().zip(b).all(|(a, b)| (f64::from(*a) - b).abs() <= 2e-5 * size),
                        "{single:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn maps_keep_their_promises() {
    let d = 6;
    for map in maps::<f32>(d, Softmax::default().into()) {
        let map = map.conditioned(&conditioning(d)).unwrap();
        let x = points::<f32>(70, d, 0.6);
        batch_is_rows(&map, &x);
        threads_change_nothing(&map, &x);
        any_layout(&map, &x);
        promises(&map, &x);
        gram_is_estimates(&map, &x);
        refusals(&map, &x);
    }
    let truncated = Positive
        .softmax::<f64>(frequencies(3, 40, &Orthogonal, 1))
        .unwrap()
        .conditioned(&conditioning(d).truncated(3).unwrap())
        .unwrap();
    let x = points::<f64>(70, d, 0.6);
    batch_is_rows(&truncated, &x);
    threads_change_nothing(&truncated, &x);
    any_layout(&truncated, &x);
    promises(&truncated, &x);
    gram_is_estimates(&truncated, &x);
    refusals(&truncated, &x);
}

#[test]
fn means_and_variances_are_those_stated() {
    let d = 3;
    let c = conditioning(d);
    let (x, y) = (point::<f64>(d, 1, 0.5), point::<f64>(d, 2, 0.4));
    // |z| < 4.5 fails by chance with probability 7e-6 for each of 16 numbers.
    for target in [AnyKernel::from(Softmax::new(1.2).unwrap()), Gaussian::default().into()] {
        let kernel: Box<dyn Kernel<f64>> = target.kernel().unwrap();
        let exact = kernel.value(&x, &y).unwrap();
        let dense = DenseExponential::new(vec![-0.3, 0.02, -0.05]).unwrap();
        for coupling in [&Independent as &dyn Coupling, &Antithetic(Independent)] {
            let omega = |seed| frequencies(d, 8, coupling, seed);
            // Each map is seen with each coupling and with each target.
            if target.is_shift_invariant() == format!("{coupling:?}").contains("Antithetic") {
                let map = |seed| Positive.build::<f64>(omega(seed), target.clone()).unwrap();
                let map = |seed| map(seed).conditioned(&c).unwrap();
                unbiased("positive", map, (&x, &y), exact, (20_000, 4.5));
            } else {
                let map = |seed| dense.clone().build::<f64>(omega(seed), target.clone()).unwrap();
                let map = |seed| map(seed).conditioned(&c).unwrap();
                unbiased("dense", map, (&x, &y), exact, (20_000, 4.5));
            }
        }
        let map = |seed| {
            let omega = frequencies(d, 6, &Orthogonal, seed);
            Trigonometric.build::<f64>(omega, target.clone()).unwrap().conditioned(&c).unwrap()
        };
        // Waves are bounded: fewer draws show a tenth of their variance.
        unbiased("trigonometric", map, (&x, &y), exact, (8_000, 4.5));
        // Truncated features estimate the truncated kernel.
        let two = c.truncated(2).unwrap();
        let map = |seed| {
            Positive
                .build::<f64>(frequencies(2, 6, &Independent, seed), target.clone())
                .unwrap()
                .conditioned(&two)
                .unwrap()
        };
        let kernel = map(0);
        let kernel = kernel.kernel().unwrap();
        let truncated = kernel.value(&x, &y).unwrap();
        unbiased("truncated", map, (&x, &y), truncated, (20_000, 4.5));
        let scale = if target.is_shift_invariant() { 1.0 } else { 1.2 };
        let bias = two.log_bias(&(&x / scale), &(&y / scale)).unwrap();
        assert!((exact.ln() - truncated.ln() - bias).abs() < 1e-13 && bias.abs() > 1e-3);
    }
}

#[test]
fn what_changes_nothing_changes_no_bit() {
    let map = Positive.softmax::<f32>(frequencies(4, 30, &Orthogonal, 1)).unwrap();
    let same = map.conditioned(&Conditioning::identity(4).unwrap()).unwrap();
    let x = points::<f32>(9, 4, 2.0);
    assert_eq!(map.features(Side::X, &x).unwrap(), same.features(Side::X, &x).unwrap());
    assert_eq!(map.identity(), same.identity());
    // T = I keeps the projections even if a shift changes the points.
    let far = Conditioning::identity(4).unwrap().shifted(vec![0.0; 4], vec![1.0; 4]).unwrap();
    let far = map.conditioned(&far).unwrap();
    assert_ne!(far.identity(), map.identity());
    let (a, b) = (map.features(Side::X, &x).unwrap(), far.features(Side::X, &x).unwrap());
    assert_eq!(a.mantissas(), b.mantissas());
}

#[test]
fn real_complex_exponentials_are_conditioned_positive_features() {
    let omega = Arc::new(frequencies(5, 40, &Orthogonal, 2));
    let t = matrix(5);
    let complex = ComplexExponential::new(Transform::full(t.mapv(Into::into)).unwrap(), Symmetry::Plain);
    let complex = complex.gaussian::<f64>(&omega, 1.5).unwrap();
    let positive = Positive.gaussian::<f64>(&omega, 1.5).unwrap();
    let positive = positive.conditioned(&Conditioning::new(t).unwrap()).unwrap();
    let (x, y) = (point::<f64>(5, 1, 1.0), point::<f64>(5, 4, 2.0));
    let (a, b) = (complex.estimate(&x, &y).unwrap(), positive.estimate(&x, &y).unwrap());
    assert!((a / b - 1.0).abs() < 1e-13);
    let (a, b) =
        (complex.log_variance(&x, &y).unwrap().unwrap(), positive.log_variance(&x, &y).unwrap().unwrap());
    assert!((a - b).abs() < 1e-12);
}

#[test]
fn dense_exponentials_contain_the_others() {
    let d = 4;
    let omega = Arc::new(frequencies(d, 30, &Independent, 3));
    let (x, y) = (point::<f64>(d, 1, 1.0), point::<f64>(d, 2, 1.5));
    let same = |a: &Map<f64>, b: &Map<f64>| {
        let (p, q) = (a.log_estimate(&x, &y).unwrap(), b.log_estimate(&x, &y).unwrap());
        assert!((p.ln_abs - q.ln_abs).abs() < 1e-12, "{p:?} {q:?}");
        match (a.log_variance(&x, &y).unwrap(), b.log_variance(&x, &y).unwrap()) {
            (Some(p), Some(q)) => assert!((p - q).abs() < 1e-11, "{p} {q}"),
            unlike => assert!(unlike.1.is_none(), "{unlike:?}"),
        }
    };
    for target in [AnyKernel::from(Softmax::default()), Gaussian::new(0.8).unwrap().into()] {
        let dense =
            |a: Vec<f64>| DenseExponential::new(a).unwrap().build::<f64>(&omega, target.clone()).unwrap();
        same(&dense(vec![0.0; d]), &Positive.build(&omega, target.clone()).unwrap());
        let a = -0.17;
        let gerf = Gerf::new(a, random_features::theory::gerf::GerfSign::Plus).unwrap();
        same(&dense(vec![a; d]), &gerf.build(&omega, target.clone()).unwrap());
        // Importance sampling from N(0, diag(1 − 4a)).
        let a = [-0.4, 0.05, 0.0, -1.0];
        let mut rows = omega.rows().into_owned();
        rows.columns_mut().into_iter().zip(a).for_each(|(mut column, a)| column *= (1.0f64 - 4.0 * a).sqrt());
        let density = |row: ndarray::ArrayView1<'_, f64>| -> f64 {
            let one = |(v, a): (&f64, f64)| {
                let variance = 1.0 - 4.0 * a;
                -0.5 * (v * v / variance + (std::f64::consts::TAU * variance).ln())
            };
            row.iter().zip(a).map(one).sum()
        };
        let densities = rows.rows().into_iter().map(density).collect();
        let importance = Importance::new(densities).unwrap();
        let weighted =
            importance.build::<f64>(Frequencies::from_rows(rows).unwrap(), target.clone()).unwrap();
        assert_eq!(weighted.log_variance(&x, &y).unwrap(), None);
        assert!(weighted.kernel().is_some());
        same(&dense(a.to_vec()), &weighted);
    }
    // Structured frequencies too.
    let fast = Arc::new(frequencies(d, 32, &Hadamard::default(), 4));
    let map = DenseExponential::new(vec![0.0; d]).unwrap().softmax::<f64>(&fast).unwrap();
    let positive = Positive.softmax::<f64>(&fast).unwrap();
    assert!((map.estimate(&x, &y).unwrap() / positive.estimate(&x, &y).unwrap() - 1.0).abs() < 1e-12);
}

#[test]
fn gradients_are_those_of_finite_differences() {
    let d = 4;
    for target in targets(d) {
        for map in maps::<f64>(d, target) {
            let map = map.conditioned(&conditioning(d)).unwrap();
            let x = points::<f64>(3, d, 0.7);
            for side in [Side::X, Side::Y] {
                let weights = Array1::from_shape_fn(map.feature_dim(), |f| ((f * 7 % 5) as f64 - 2.0) / 3.0);
                let features = map.features(side, &x).unwrap();
                let scales = features.log_scales();
                let columns: Vec<usize> =
                    map.blocks().iter().enumerate().flat_map(|(b, width)| vec![b; *width]).collect();
                let cotangents = Array2::from_shape_fn((3, map.feature_dim()), |(i, f)| {
                    let scale = scales[[i, columns[f]]];
                    if scale == f64::NEG_INFINITY { 0.0 } else { weights[f] * scale.exp() }
                });
                let found = map.pull_back(side, &x, &cotangents).unwrap();
                let value = |x: &Array2<f64>, i: usize| {
                    map.features(side, x.slice(s![i..i + 1, ..])).unwrap().to_array().row(0).dot(&weights)
                };
                for ((i, k), found) in found.indexed_iter() {
                    let h = 1e-5;
                    let moved = |h: f64| {
                        let mut x = x.clone();
                        x[[i, k]] += h;
                        value(&x, i)
                    };
                    let expected = (moved(h) - moved(-h)) / (2.0 * h);
                    assert!(
                        (found - expected).abs() < 1e-7 * (1.0 + expected.abs()),
                        "{map:?}: {found}, {expected}"
                    );
                }
            }
        }
    }
}

#[test]
fn no_points_have_no_features() {
    for d in [2, 40] {
        let (none, two) = (Array2::<f32>::zeros((0, d)), Array2::<f32>::zeros((2, d)));
        for plain in maps::<f32>(d, Softmax::default().into()) {
            for map in [plain.conditioned(&conditioning(d)).unwrap(), plain] {
                for side in [Side::X, Side::Y] {
                    let features = map.features(side, &none).unwrap().to_array();
                    assert_eq!(features.dim(), (0, map.feature_dim()), "{map:?}");
                }
                assert_eq!(map.gram(&none, &two).unwrap().dim(), (0, 2));
                assert_eq!(map.gram(&two, &none).unwrap().dim(), (2, 0));
            }
        }
    }
}

#[test]
fn extremes_stay_finite() {
    let d = 3;
    let map = Positive.softmax::<f32>(frequencies(d, 20, &Orthogonal, 1)).unwrap();
    let map = map.conditioned(&conditioning(d)).unwrap();
    for norm in [1e-30f32, 1e-10, 1e10, 1e18, 1e30] {
        let x = arr2(&[[norm, -norm, 0.5 * norm]]);
        let (logarithms, _, scales) = map.log_features(Side::X, &x).unwrap();
        assert!(logarithms.iter().all(|v| v.is_finite()) && scales.iter().all(|v| v.is_finite()));
    }
    let x = arr2(&[[0.0f32, f32::NAN, 0.0], [0.1, 0.2, 0.3], [f32::INFINITY, 0.0, 0.0]]);
    let features = map.features(Side::Y, &x).unwrap();
    let nan = |i: usize| features.mantissas().row(i).iter().all(|v| v.is_nan());
    assert!(nan(0) && !nan(1) && nan(2));
    // Large and small factors in T.
    let extreme = Conditioning::new(arr2(&[[1e120, 0.0], [0.0, 1e-120]])).unwrap();
    let map =
        Positive.softmax::<f64>(frequencies(2, 20, &Orthogonal, 1)).unwrap().conditioned(&extreme).unwrap();
    assert!(map.log_estimate(&arr1(&[1e-120, 1.0]), &arr1(&[1.0, 1e-120])).unwrap().ln_abs.is_finite());
}

/// Values are written past the caches where they are many: of rows without features too.
#[test]
fn rows_without_a_factor_are_nan_in_large_batches() {
    let d = 256;
    let map = Positive.gaussian::<f64>(frequencies(d, 2048, &Hadamard::default(), 1), 1.0).unwrap();
    let map = map.conditioned(&Conditioning::new(Array2::eye(d) * 1e-100).unwrap()).unwrap();
    let mut x = points::<f64>(600, d, 0.1);
    // T x has a squared norm, x has none.
    x.row_mut(300).fill(1e160);
    let features = map.features(Side::X, &x).unwrap();
    let alone = map.features(Side::X, x.slice(s![299..302, ..])).unwrap();
    for (i, (row, expected)) in
        features.mantissas().rows().into_iter().skip(299).zip(alone.mantissas().rows()).enumerate()
    {
        assert!(row.iter().zip(expected).all(|(a, b)| a.to_bits() == b.to_bits() && a.is_nan() == (i == 1)));
    }
}

#[test]
fn products_beyond_the_range_on_the_way_are_made_in_double() {
    // u = 3(x₁ − 10³⁷) − 3x₂, of which both terms overflow f32.
    let c = Conditioning::of_matrices(arr2(&[[3.0, -3.0]]), arr2(&[[1.0 / 6.0, -1.0 / 6.0]])).unwrap();
    let c = c.shifted(vec![f64::from(1e37f32), 0.0], vec![0.0; 2]).unwrap();
    let omega = Arc::new(frequencies(1, 8, &Independent, 1));
    let single = Positive.softmax::<f32>(&omega).unwrap().conditioned(&c).unwrap();
    let double = Positive.softmax::<f64>(&omega).unwrap().conditioned(&c).unwrap();
    let x = arr2(&[[2e38f32, 2e38]]);
    let found = single.log_features(Side::X, &x).unwrap().0;
    let expected = double.log_features(Side::X, &x.mapv(f64::from)).unwrap().0;
    for j in 1..8 {
        let (a, b) =
            (f64::from(found[[0, j]]) - f64::from(found[[0, 0]]), expected[[0, j]] - expected[[0, 0]]);
        assert!((a / b - 1.0).abs() < 1e-4, "{a} {b}");
    }
    // What does not fit f32 is refused.
    let large = Conditioning::new(Array2::eye(1) * 1e39).unwrap();
    let hybrid: Map<f32> = Hybrid::angular(Bases::shared(omega), frequencies(1, 4, &Independent, 2)).unwrap();
    assert!(matches!(hybrid.conditioned(&large), Err(Error::NotFinite { row: 0, .. })));
    // Estimates of hybrids out of range times factors out of range.
    let bases = Bases::shared(frequencies(3, 16, &Independent, 3));
    let hybrid: Map<f64> = Hybrid::angular(bases, frequencies(3, 4, &Independent, 4)).unwrap();
    let far = Conditioning::identity(3).unwrap().shifted(vec![30.0; 3], vec![30.0; 3]).unwrap();
    let map = hybrid.conditioned(&far).unwrap();
    let x = Array2::zeros((1, 3));
    let (gram, estimate) = (map.gram(&x, &x).unwrap()[[0, 0]], map.estimate(&x.row(0), &x.row(0)).unwrap());
    assert!(gram.is_finite() && (gram - estimate).abs() <= 1e-9 * estimate.abs(), "{gram} {estimate}");
}

#[test]
fn what_cannot_be_conditioned_is_refused() {
    let c = conditioning(3);
    let chi = || frequencies(3, 8, &Independent, 1);
    let matern = Matern::new(Smoothness::Half, 1.0).unwrap();
    let radii = Independent.with_radii(Smoothness::Half).draw(3, 8, rng(1).next_u64()).unwrap();
    let regularised = Positive
        .softmax::<f64>(Independent.with_radii(RootDim).draw(3, 8, rng(1).next_u64()).unwrap())
        .unwrap();
    let others: Vec<Map<f64>> = vec![
        Trigonometric.build(radii, matern).unwrap(),
        regularised,
        Sign.build(chi(), 1.0).unwrap(),
        Positive
            .softmax(Frequencies::from_rows(chi().rows().into_owned()).unwrap())
            .unwrap_or_else(|_| Sign.build(chi(), 1.0).unwrap()),
    ];
    for map in others {
        assert!(matches!(map.conditioned(&c), Err(Error::Unsupported { .. })), "{map:?}");
    }
    let map = Positive.softmax::<f64>(chi()).unwrap();
    assert!(matches!(map.conditioned(&conditioning(4)), Err(Error::Shape { .. })));
    let per_dimension = Positive
        .build::<f64>(frequencies(2, 8, &Independent, 1), Softmax::new(vec![1.0, 2.0]).unwrap())
        .unwrap();
    assert!(per_dimension.conditioned(&c.truncated(2).unwrap()).is_err());
    let singular = Conditioning::new(Array2::zeros((2, 2))).unwrap_err().to_string();
    assert!(singular.starts_with("a pivot of the matrix T is 0"), "{singular}");
    assert!(Conditioning::new(Array2::zeros((0, 0))).is_err());
    assert!(Conditioning::new(Array2::from_elem((2, 2), f64::NAN)).is_err());
    assert!(Conditioning::new(Array2::zeros((2, 3))).is_err());
    assert!(Conditioning::of_matrices(Array2::eye(2), 2.0 * Array2::<f64>::eye(2)).is_err());
    assert!(Conditioning::of_matrices(Array2::eye(2), 1.001 * Array2::<f64>::eye(2)).is_err());
    assert!(Conditioning::of_matrices(arr2(&[[f64::NAN]]), arr2(&[[1.0]])).is_err());
    assert!(c.truncated(0).is_err() && c.truncated(4).is_err());
    assert!(Conditioning::identity(2).unwrap().shifted(vec![0.0], vec![0.0; 2]).is_err());
    assert!(Conditioning::identity(1).unwrap().shifted(vec![f64::NAN], vec![0.0]).is_err());
    assert!(DenseExponential::new(vec![]).is_err());
    for bad in [0.125, 1.0, f64::NAN, f64::NEG_INFINITY] {
        assert!(matches!(DenseExponential::new(vec![0.0, bad]), Err(Error::Entry { row: 1, .. })));
    }
    assert!(DenseExponential::optimal(&[-1.0]).is_err() && DenseExponential::optimal(&[f64::NAN]).is_err());
    assert!(DenseExponential::new(vec![0.0; 2]).unwrap().softmax::<f64>(chi()).is_err());
    assert!(Importance::new(vec![f64::NAN]).is_err());
    assert!(Importance::new(vec![0.0; 3]).unwrap().softmax::<f64>(chi()).is_err());
}

#[cfg(feature = "serde")]
#[test]
fn they_are_stored_to_the_bit() {
    let c = conditioning(3);
    let hybrid = Hybrid::<Map<f64>>::angular(
        Bases::shared(frequencies(3, 8, &Independent, 1)),
        frequencies(3, 4, &Independent, 2),
    );
    let dense = DenseExponential::new(vec![0.1, -0.2, 1.0 / 30.0]).unwrap();
    let maps: Vec<Map<f64>> = vec![
        hybrid.unwrap().conditioned(&c).unwrap(),
        dense.softmax(frequencies(3, 8, &Independent, 3)).unwrap().conditioned(&c).unwrap(),
        Positive
            .softmax(frequencies(2, 8, &Independent, 3))
            .unwrap()
            .conditioned(&c.truncated(2).unwrap())
            .unwrap(),
        Importance::new(vec![0.1; 8]).unwrap().softmax(frequencies(3, 8, &Independent, 3)).unwrap(),
    ];
    for map in maps {
        let text = serde_json::to_string(&map).unwrap();
        let read: Map<f64> = serde_json::from_str(&text).unwrap();
        assert_eq!((read.identity(), read.recipe()), (map.identity(), map.recipe()));
        let bytes = postcard::to_stdvec(&map.recipe()).unwrap();
        let read: Option<Recipe> = postcard::from_bytes(&bytes).unwrap();
        assert_eq!(read, map.recipe());
        assert!(format!("{map:?}").contains("Map"));
    }
    // A recipe that is to be drawn.
    let recipe = Positive.recipe(Draw::new(3, 16, Orthogonal), Softmax::default());
    let recipe = recipe.conditioned(&c).unwrap();
    assert!(!recipe.is_drawn() && recipe.dim() == 3);
    assert!(recipe.to_string().starts_with("conditioned ["));
    let map: Map<f64> = recipe.draw(7).unwrap();
    assert_eq!(map.recipe(), Some(recipe.drawn(7).unwrap()));
}

/// Points far from the origin, of which positive features know little before they are shifted.
#[test]
fn one_set_of_points_makes_symmetric_maps() {
    let d = 4;
    let x = Array2::from_shape_fn((80, d), |(i, k)| {
        3.0 + (i as f64 * [0.7, 1.9, 0.3, 1.3][k]).sin() * [1.5, 0.6, 0.2, 0.0][k]
    });
    let shape = Shaping::new().of_one_set(&x).unwrap();
    let omega = Arc::new(frequencies(d, 512, &Orthogonal, 1));
    let shaped = shape.build::<Map<f64>>(&omega, Gaussian::default()).unwrap();
    assert!(shaped.facts().symmetric && shaped.facts().non_negative);
    let positive = Positive.gaussian::<f64>(&omega, 1.0).unwrap();
    let exact = Gaussian::default().gram(&x, &x).unwrap();
    let error = |map: &Map<f64>| (map.gram(&x, &x).unwrap() - &exact).iter().map(|v| v * v).sum::<f64>();
    assert!(error(&shaped) < 0.01 * error(&positive), "{} {}", error(&shaped), error(&positive));
    // Ridge regression takes it.
    let y = x.map_axis(ndarray::Axis(1), |x| (2.0 * x[0]).sin() + x[1]).insert_axis(ndarray::Axis(1));
    let fit = |map: Map<f64>| {
        let mut statistics = RidgeStatistics::new(map, 1).unwrap();
        statistics.update(&x, &y).unwrap();
        let predicted = statistics.solve(1e-6).unwrap().predict(&x).unwrap();
        (&predicted - &y).iter().map(|v| v * v).sum::<f64>() / y.len() as f64
    };
    let (shaped, positive) = (fit(shaped), fit(positive));
    assert!(shaped < 1e-3 && shaped < 0.5 * positive, "{shaped} {positive}");
    // Truncated to the two coordinates that vary most.
    let two = Shaping::new().with_rank(2).unwrap().of_one_set(&x).unwrap();
    let map = two.build::<Map<f64>>(frequencies(2, 64, &Orthogonal, 1), Gaussian::default()).unwrap();
    assert!(map.facts().symmetric && map.dim() == d);
}

/// Entries that scaled features lose are recomputed from both sides' own features.
#[test]
fn lost_entries_are_recomputed_on_both_sides() {
    let (d, size) = (4, 40.0);
    // (c + x)·(c − y) is large, and exp(x·y) is not.
    let (c_x, c_y) = (vec![-0.5 * size; d], vec![0.5 * size; d]);
    let conditioning = Conditioning::new(Array2::eye(d)).unwrap().shifted(c_x, c_y).unwrap();
    let omega = frequencies(d, 16, &Orthogonal, 3);
    let map = Positive.softmax::<f32>(omega.clone()).unwrap().conditioned(&conditioning).unwrap();
    let double = Positive.softmax::<f64>(omega).unwrap().conditioned(&conditioning).unwrap();
    let (x, y) = (points::<f32>(3, d, 0.2), points::<f32>(4, d, 0.3).mapv(|v| -v));
    let gram = map.gram(&x, &y).unwrap();
    for ((i, j), found) in gram.indexed_iter() {
        let log = double.log_estimate(&x.row(i).mapv(f64::from), &y.row(j).mapv(f64::from)).unwrap();
        assert!((found.ln() as f64 - log.ln_abs).abs() < 1e-2, "{found} instead of e^{}", log.ln_abs);
    }
}
