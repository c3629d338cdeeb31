//! Estimates of paired rows, and errors relative to the kernel.

use crate::common::own_map::own_map;
use crate::common::{MAPS, MORE_MAPS, Sample, couplings, frequencies, gaussian, point, points, softmax};
use crate::threads::on_threads;
use ndarray::{Array1, Array2, ArrayView1, ShapeBuilder, arr1, s};
use random_features::compose::{Bases, Clustered, Coefficient, Conditioning, Hybrid, Mixture};
use random_features::data::Clustering;
use random_features::extend::Facts;
use random_features::frequency::{Antithetic, Counts, Hadamard, Independent, Orthogonal};
use random_features::kernel::Activation;
use random_features::{
    DenseExponential, EluPlusOne, Error, Geometric, Hyperbolic, Map, Nonlinear, Poisson, Positive, Real,
    Side, Sign, SignedLog, Trigonometric, rng,
};

const D: usize = 4;

/// Positive features as a user would write them, without logarithms. The block is absent where x₀ > 0.9.
fn own<T: Real>(omega: Array2<f64>) -> Map<T> {
    let facts = Facts::new(D, vec![omega.nrows()]).symmetric().non_negative();
    let write = move |x: ArrayView1<'_, T>, values: &mut [T], scales: &mut [f64]| {
        let x = x.mapv(|v| v.widen());
        let nan = x.iter().any(|v| v.is_nan());
        scales[0] = if x[0] > 0.9 && !nan { f64::NEG_INFINITY } else { -0.5 * x.dot(&x) };
        values.iter_mut().zip(omega.rows()).for_each(|(v, w)| *v = T::narrow(w.dot(&x).exp()));
    };
    own_map(facts, write).unwrap()
}

/// A map of every kind in ℝ⁴: plain ones, structured, of counts, of functions, hybrids, clusters, conditioned, one's own.
fn kinds<T: Real>() -> Vec<Map<T>> {
    let o = |m, seed| frequencies(D, m, &Orthogonal, seed);
    let side = |shift: usize| Clustering::new(points::<f64>(2 + shift, D, 1.0).slice_move(s![shift.., ..]));
    let plain = MAPS.into_iter().chain(MORE_MAPS).map(|name| name.make::<T>(o(10, 1), softmax()));
    let mut maps: Vec<Map<T>> = plain.collect();
    let angular: Map<T> = Hybrid::angular(Bases::shared(o(9, 2)), o(3, 3)).unwrap();
    let coefficient = Coefficient::affine(0.3, 0.1, Positive.softmax(o(7, 4)).unwrap()).unwrap();
    let nested = Hybrid::sum(
        vec![(coefficient, angular.clone()), (Coefficient::angular(o(3, 5)).unwrap(), maps[0].clone())],
        Hyperbolic.softmax(o(6, 6)).unwrap(),
    );
    let mut seeds = 20..;
    let mut next = || Ok(o(3, seeds.next().unwrap_or(0)));
    let mut more = 70..;
    let clusters = [side(0).unwrap(), side(1).unwrap()];
    let mixture = Hybrid::clustered(
        Mixture::new(&clusters[0], &clusters[1], 0.9),
        &mut next,
        || Ok(o(2, more.next().unwrap_or(0))),
        Hyperbolic.softmax(o(5, 7)).unwrap(),
    );
    let routed = (0..4).map(|k| Positive.softmax(o(8, 10 + k)).unwrap()).collect();
    let t = Array2::from_shape_fn((D, D), |(i, j)| if i == j { 1.2 } else { 0.1 * ((i + 2 * j) % 3) as f64 });
    let conditioning = Conditioning::new(t).unwrap();
    maps.extend([
        Positive.gaussian(frequencies(D, 20, &Hadamard::default(), 1), vec![1.0, 0.5, 2.0, 1.5]).unwrap(),
        DenseExponential::new(vec![-0.1; D]).unwrap().softmax(o(10, 1)).unwrap(),
        Poisson::default().softmax(Counts::poisson(D, 12, 1.0, rng(1).next_u64()).unwrap()).unwrap(),
        Geometric::default()
            .gaussian(Counts::geometric(D, 12, 0.4, rng(1).next_u64()).unwrap(), 1.0)
            .unwrap(),
        Nonlinear::new(Activation::Relu).build(o(10, 1), 1.0).unwrap(),
        Sign.build(o(10, 1), 1.0).unwrap(),
        EluPlusOne.build(D, 1.0).unwrap(),
        Positive.softmax(o(10, 1)).unwrap().conditioned(&conditioning).unwrap(),
        angular.conditioned(&conditioning).unwrap(),
        angular,
        nested.unwrap(),
        mixture.unwrap(),
        Clustered::from_bases(clusters[0].clone(), clusters[1].clone(), routed).unwrap(),
        own(o(6, 8).rows().into_owned()),
    ]);
    maps
}

/// Equal to the bit, or both NaN.
fn same(a: SignedLog, b: SignedLog) -> bool {
    let equal = |a: f64, b: f64| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
    equal(a.ln_abs, b.ln_abs) && equal(a.sign, b.sign)
}

/// Paired rows have the estimates of their pairs, and those have the products of features (hybrids are compared with
/// Gram matrices, which form their coefficients first too).
fn are_pairs<T: Real>(tolerance: f64) {
    let n = 1000;
    for (k, map) in kinds::<T>().iter().enumerate() {
        for norm in [0.5, 1.0, 30.0] {
            let (mut x, y) = (points::<T>(n, D, norm), points::<T>(n + 1, D, -norm).slice_move(s![1.., ..]));
            x.row_mut(3).assign(&y.row(3));
            x.row_mut(4).assign(&y.row(4).mapv(|v| -v));
            x.row_mut(5).fill(T::zero());
            let few = (x.slice(s![..20, ..]), y.slice(s![..20, ..]));
            let (gram, own) = (map.gram(&few.0, &few.1).unwrap(), map.estimate_rows(&few.0, &few.1).unwrap());
            let largest = gram.iter().fold(0.0, |top: f64, v| top.max(v.widen().abs()));
            for (i, estimate) in own.iter().enumerate().filter(|_| norm <= 1.0) {
                let off = (estimate.widen() - gram[[i, i]].widen()).abs();
                assert!(off <= tolerance * (1.0 + largest), "map {k}, {i}: {estimate} and {}", gram[[i, i]]);
            }
            x[[7, 2]] = T::nan();
            let logs = map.log_estimate_rows(&x, &y).unwrap();
            let values = map.estimate_rows(&x, &y).unwrap();
            assert_eq!((logs.len(), values.len()), (n, n));
            // All rows at one norm, and at the others some at each place of a group of rows.
            for i in (0..n).filter(|i| norm == 1.0 || *i < 16 || i.is_multiple_of(7)) {
                let (log, value) = (
                    map.log_estimate(&x.row(i), &y.row(i)).unwrap(),
                    map.estimate(&x.row(i), &y.row(i)).unwrap(),
                );
                assert!(same(logs[i], log), "map {k}, {i}: {:?} and {log:?}", logs[i]);
                assert!(value == values[i] || value.is_nan() && values[i].is_nan(), "map {k}, {i}");
                assert_eq!(value.is_nan(), i == 7, "map {k}, norm {norm}, {i}: {value}");
            }
            let columns = Array2::from_shape_fn((n, D).f(), |at| x[at]);
            let backwards = map.log_estimate_rows(&columns.slice(s![..;-1, ..]), &y.slice(s![..;-1, ..]));
            assert!(backwards.unwrap().iter().rev().zip(&logs).all(|(a, b)| same(*a, *b)), "map {k}: layout");
            for threads in [1, 2, 5] {
                let many = on_threads(threads, || map.log_estimate_rows(&x, &y).unwrap());
                assert!(many.iter().zip(&logs).all(|(a, b)| same(*a, *b)), "map {k}: {threads} threads");
            }
        }
    }
}

#[test]
fn paired_rows_are_pairs() {
    are_pairs::<f32>(1e-4);
    are_pairs::<f64>(1e-12);
}

/// Single rows, none, wide maps that threads share, and wrong shapes.
#[test]
fn few_rows_and_wrong_shapes() {
    for map in kinds::<f64>() {
        let x = points::<f64>(3, D, 0.5);
        let (none, one) = (x.slice(s![..0, ..]), x.slice(s![1..2, ..]));
        assert_eq!(map.estimate_rows(&none, &none).unwrap(), Array1::<f64>::zeros(0));
        assert_eq!(map.log_estimate_rows(&none, &none).unwrap().len(), 0);
        let alone = map.estimate(&x.row(1), &x.row(1)).unwrap();
        assert_eq!(map.estimate_rows(&one, &one).unwrap(), arr1(&[alone]));
        let narrow = x.slice(s![.., ..2]);
        for (x, y) in [(&x.view(), &one), (&one, &x.view()), (&x.view(), &narrow), (&narrow, &x.view())] {
            assert!(matches!(map.estimate_rows(x, y), Err(Error::Shape { .. })));
            assert!(matches!(map.log_estimate_rows(x, y), Err(Error::Shape { .. })));
        }
    }
    let wide = Positive.softmax::<f32>(frequencies(256, 20_000, &Independent, 1)).unwrap();
    let (x, y) = (points::<f32>(3, 256, 0.1), points::<f32>(3, 256, -0.1));
    let one = on_threads(1, || wide.log_estimate_rows(&x, &y).unwrap());
    assert!(on_threads(5, || wide.log_estimate_rows(&x, &y).unwrap()) == one);
    assert_eq!(one[2], wide.log_estimate(&x.row(2), &y.row(2)).unwrap());
}

/// The stated error is the root mean square of (K̂ − K)/K over 20 000 draws: of the squares' mean a false alarm at 4
/// standard errors has a probability of 6e-5 for each of the cases, 5e-4 for all eight.
#[test]
fn relative_errors_are_those_of_draws() {
    let (x, y) = (arr1(&[0.4, -0.1, 0.2]), arr1(&[0.1, 0.5, -0.2]));
    for coupling in couplings() {
        for target in [softmax(), gaussian()] {
            let make = |seed| {
                let omega = frequencies(3, 6, coupling.as_ref(), seed);
                Positive.build::<f64>(omega, target.clone()).unwrap()
            };
            let stated = make(0).relative_error(&x, &y).unwrap().unwrap();
            let exact = make(0).kernel().unwrap().value(&x, &y).unwrap();
            let squares: Vec<f64> = (0..20_000)
                .map(|seed| (make(seed).estimate(&x, &y).unwrap() / exact - 1.0).powi(2))
                .collect();
            let found = Sample::of(&squares);
            let z = found.z(stated * stated);
            assert!(z.abs() < 4.0, "{coupling:?}, {target}: {stated}, found {}", found.mean.sqrt());
            assert!(found.error < 0.1 * found.mean / 3.0, "too few draws");
        }
    }
}

fn relative<T: Real>(map: &Map<T>, x: &Array1<f64>, y: &Array1<f64>) -> f64 {
    let narrow = |x: &Array1<f64>| x.mapv(T::narrow);
    map.relative_error(&narrow(x), &narrow(y)).unwrap().unwrap()
}

/// Closed forms at every norm, in both precisions: neither the kernel nor its variance fits in `f64` at most of them.
fn at_any_norm<T: Real>() {
    let m = 8;
    let softmax = Positive.softmax::<T>(frequencies(2, m, &Independent, 1)).unwrap();
    let gaussian = Trigonometric.gaussian::<T>(frequencies(2, m, &Independent, 2), 1.0).unwrap();
    // x + y = (0, 1), with entries that are exact in `f32`.
    let positive = (1f64.exp_m1() / m as f64).sqrt();
    for norm in [0.5, 64.0, 1024.0, 4096.0] {
        let (x, y) = (arr1(&[norm, 0.5]), arr1(&[-norm, 0.5]));
        let found = relative(&softmax, &x, &y);
        let rounding = 1e-15 * (1.0 + 2.0 * norm * norm);
        assert!((found / positive - 1.0).abs() < 4.0 * rounding, "{norm}: {found}, not {positive}");
        // x − y = (0, 1): (1 − e⁻¹)/√(2m) · e^½.
        let near = relative(&gaussian, &x, &arr1(&[norm, -0.5]));
        let expected = (1.0 - (-1f64).exp()) / (2.0 * m as f64).sqrt() * 0.5f64.exp();
        assert!((near / expected - 1.0).abs() < 1e-13, "{norm}: {near}, not {expected}");
    }
    for norm in [1e-30, 1e10, 1e15, 1e30] {
        let x = arr1(&[T::narrow(norm).widen(), 0.0]);
        assert_eq!(relative(&softmax, &x, &(-&x)), 0.0, "the estimate is exact");
        assert_eq!(relative(&gaussian, &x, &x), 0.0, "the estimate is exact");
        let opposite = relative(&gaussian, &x, &(-&x));
        let same = relative(&softmax, &x, &x);
        if norm > 1.0 {
            assert_eq!((same, opposite), (f64::INFINITY, f64::INFINITY), "{norm}");
        } else {
            let tiny = 2.0 * x[0] / (m as f64).sqrt();
            assert!((same / tiny - 1.0).abs() < 1e-14, "{same}, not {tiny}");
            assert!(opposite < 1e-55, "{opposite}");
        }
    }
    // Logarithms of 1e60 say nothing about a quotient near 1.
    let (x, y) = (arr1(&[T::narrow(1e30).widen(), 0.5]), arr1(&[-T::narrow(1e30).widen(), 0.5]));
    assert!(relative(&softmax, &x, &y).is_nan());
    assert!(relative(&softmax, &arr1(&[f64::NAN, 0.0]), &y).is_nan());
}

#[test]
fn relative_errors_at_any_norm() {
    at_any_norm::<f32>();
    at_any_norm::<f64>();
}

#[test]
fn relative_errors_where_the_kernel_is_zero_or_unknown() {
    // Right angles: the kernel 1 − 2θ/π of signs is 0, and estimates are not.
    let sign = Sign.build::<f64>(frequencies(2, 5, &Independent, 1), 1.0).unwrap();
    let (x, y) = (arr1(&[1.0, 0.0]), arr1(&[0.0, 1.0]));
    assert_eq!(sign.kernel().unwrap().value(&x, &y).unwrap(), 0.0);
    assert_eq!(sign.relative_error(&x, &y).unwrap(), Some(f64::INFINITY));
    assert_eq!(sign.relative_error(&x, &x).unwrap(), Some(0.0));
    // No closed form of the variance; no kernel; neither.
    let approximate = Positive.softmax::<f64>(frequencies(2, 5, &Hadamard::default(), 1)).unwrap();
    assert!(approximate.kernel().is_some());
    assert_eq!(approximate.relative_error(&x, &y).unwrap(), None);
    let own = own::<f64>(frequencies(D, 6, &Independent, 8).rows().into_owned());
    assert_eq!(own.relative_error(&point(D, 1, 1.0), &point(D, 2, 1.0)).unwrap(), None);
    let wrong = sign.relative_error(&x, &arr1(&[1.0]));
    assert!(matches!(wrong, Err(Error::Shape { .. })));
    // Of a hybrid: the composed variance over the kernel of its bases.
    let hybrid = Hybrid::<Map<f64>>::angular(
        Bases::shared(frequencies(2, 9, &Antithetic(Independent), 1)),
        frequencies(2, 3, &Independent, 2),
    );
    let (hybrid, x, y) = (hybrid.unwrap(), arr1(&[0.5, 0.2]), arr1(&[-0.1, 0.4]));
    let variance = hybrid.log_variance(&x, &y).unwrap().unwrap();
    let found = hybrid.relative_error(&x, &y).unwrap().unwrap();
    assert!((found - variance.exp().sqrt() / f64::exp(x.dot(&y))).abs() < 1e-14);
}

/// Features whose rows are a multiple of 2 KiB apart are copied to other distances before they are multiplied.
#[test]
fn gram_matrices_of_rows_that_share_cache_sets() {
    fn agrees<T: Real>(m: usize) {
        let map = Trigonometric.gaussian::<T>(frequencies(3, m, &Independent, 5), 1.0).unwrap();
        let (x, y) = (points::<T>(301, 3, 1.0), points::<T>(270, 3, 1.5));
        let plain = |x| {
            let features = map.features(Side::X, x).unwrap();
            let scales = features.log_scales().column(0).mapv(f64::exp).insert_axis(ndarray::Axis(1));
            features.mantissas().mapv(|v| v.widen()) * scales
        };
        let expected = plain(&x).dot(&plain(&y).t());
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let gram = pool.install(|| map.gram(&x, &y)).unwrap();
        let (left, right) = (map.features(Side::X, &x).unwrap(), map.features(Side::Y, &y).unwrap());
        let of_features = pool.install(|| left.gram(&right)).unwrap();
        for gram in [gram, of_features] {
            let worst = (gram.mapv(|v| v.widen()) - &expected).fold(0.0, |a: f64, e| a.max(e.abs()));
            // Magnitudes of the terms of an entry add up to at most 1.
            assert!(worst < T::epsilon().widen() * (2.0 * m as f64).sqrt(), "{m}: {worst:e}");
        }
    }
    agrees::<f64>(128);
    agrees::<f32>(256);
    agrees::<f32>(512);
}
