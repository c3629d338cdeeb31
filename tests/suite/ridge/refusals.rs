//! Bad input gets a sentence, and leaves everything as it was.

use std::ops::Range;

use ndarray::{Array1, Array2, ArrayView1, arr1, arr2, concatenate, s};
use rand::RngExt;
use random_features::apply::{
    Criterion, KernelRidge, RidgeClassifier, RidgeStatistics, Smoother, Standardisation,
};
use random_features::extend::Facts;
use random_features::frequency::Independent;
use random_features::linalg::Backend;
use random_features::workbench::factors::Factorise;
use random_features::{EluPlusOne, Error, Map, Real, Targets, Trigonometric};

use super::{data, statistics, trigonometric};
use crate::common::own_map::own_map;
use crate::common::{frequencies, weigh};

/// λ = 0 is refused, and the λ that is named does.
fn singular<T: Real>(statistics: &RidgeStatistics<T>) {
    let error = statistics.solve(0.0).unwrap_err();
    let Error::Singular { lambda, least, .. } = error else { panic!("{error}") };
    assert_eq!(lambda, 0.0);
    assert!(error.to_string().contains("λ should be at least"), "{error}");
    let model = statistics.solve(least).unwrap();
    assert!(model.weights().iter().all(|v| v.is_finite()));
    let spectrum = statistics.spectrum().unwrap();
    assert!(matches!(spectrum.model(0.0), Err(Error::Singular { .. })));
    assert!(spectrum.model(least).is_ok());
}

/// Of fewer rows than features, λ = 0 gives the weights of least norm, and a λ that is lost to rounding is refused.
fn underdetermined<T: Real>(statistics: &RidgeStatistics<T>) {
    let (model, spectrum) = (statistics.solve(0.0).unwrap(), statistics.spectrum().unwrap());
    assert!(model.weights().iter().chain(model.intercepts()).all(|v| v.is_finite()));
    assert_eq!(model.weights(), spectrum.model(0.0).unwrap().weights());
    let error = statistics.solve(1e-300).unwrap_err();
    let Error::Singular { lambda: 1e-300, least, .. } = error else { panic!("{error}") };
    assert!(error.to_string().contains("λ = 1e-300:"), "{error}");
    assert!(matches!(spectrum.model(1e-300), Err(Error::Singular { .. })));
    assert!(statistics.solve(least).is_ok());
}

/// β = Zᵀα with (Z Zᵀ) α = y for centred features and targets, where kernels are short enough for n points to be apart.
#[test]
fn lambda_of_zero_with_few_rows_is_least_squares_of_least_norm() {
    let mut generator = random_features::rng(2);
    let mut uniform = |d| Array2::from_shape_fn((40, d), |_| 2.0 * generator.random::<f64>());
    let (map, x, y) = (trigonometric::<f64>(60, 0.3), uniform(3), uniform(2));
    for intercept in [true, false] {
        let mut all = statistics(&map, &x, &y);
        if !intercept {
            all = all.without_intercept();
        }
        let model = all.solve(0.0).unwrap();
        let z = super::features(&map, &x);
        let mean = |a: &Array2<f64>| a.mean_axis(ndarray::Axis(0)).unwrap() * f64::from(u8::from(intercept));
        let (z_mean, y_mean) = (mean(&z), mean(&y));
        let (z, centred) = (&z - &z_mean, &y - &y_mean);
        // The vector of ones, along which nothing is left of either, is apart.
        let gram = z.dot(&z.t()) + f64::from(u8::from(intercept));
        let alpha = Backend::default().cholesky(&gram).unwrap().solve(&centred).unwrap();
        let beta = z.t().dot(&alpha);
        let scale = beta.iter().fold(0.0, |a: f64, v| a.max(v.abs()));
        let difference = &model.weights().t() - &beta;
        assert!(difference.iter().all(|v| v.abs() < 1e-7 * scale), "{intercept}");
        let error = model.predict(&x).unwrap() - &y;
        assert!(error.iter().all(|e| e.abs() < 1e-8), "it interpolates: {error}");
    }
}

#[test]
fn singular_equations_name_a_lambda() {
    let (x, y) = data::<f64>(50);
    // Fewer rows than features; as many, with an intercept; the same row again and again; nothing but zeros.
    underdetermined(&statistics(&trigonometric(40, 1.0), &x, &y));
    underdetermined(&statistics(&trigonometric(25, 1.0), &x, &y));
    let same = Array2::from_shape_fn((300, 3), |(_, k)| x[[0, k]]);
    singular(&statistics(&trigonometric(20, 1.0), &same, &Array2::ones((300, 2))));
    let (x, y) = data::<f32>(50);
    underdetermined(&statistics(&trigonometric(40, 1.0), &x, &y));
    // Features that hardly differ: rounding decides.
    let (x, y) = data::<f32>(3000);
    singular(&statistics(&trigonometric(60, 30.0), &x, &y));
    let (x, y) = data::<f64>(3000);
    singular(&statistics(&trigonometric(100, 30.0), &x, &y));
}

/// Features that depend on each other: x₀, x₁ and a mixture of both.
fn dependent(mixture: [f64; 2]) -> Map<f64> {
    let write = move |x: ArrayView1<'_, f64>, values: &mut [f64], _: &mut [f64]| {
        values.copy_from_slice(&[x[0], x[1], mixture[0] * x[0] + mixture[1] * x[1]]);
    };
    own_map(Facts::new(3, vec![3]).symmetric(), write).unwrap()
}

/// Rounding makes the last pivot a small number of either sign; neither is taken for a feature of its own.
#[test]
fn rounding_is_not_a_feature() {
    let (x, y) = data::<f64>(300);
    singular(&statistics(&dependent([0.0; 2]), &(&x * 0.0), &y));
    for k in 0..30 {
        let map = dependent([0.1 + 0.3 * k as f64, 1.7 - 0.11 * k as f64]);
        singular(&statistics(&map, &x, &y));
        singular(&statistics(&map, &x, &y).without_intercept());
    }
    // As many rows as features, of which an intercept takes one.
    for m in 3..=30 {
        let (x, y) = data::<f32>(2 * m);
        underdetermined(&statistics(&trigonometric::<f32>(m, 1.0), &x, &y));
        let (x, y) = data::<f64>(2 * m);
        underdetermined(&statistics(&trigonometric::<f64>(m, 1.0), &x, &y));
        // Rows of weight 0 are none.
        let mut padded = statistics(&trigonometric::<f64>(m, 1.0), &x, &y);
        padded.update(&x, weigh(&y, &Array1::zeros(2 * m))).unwrap();
        underdetermined(&padded);
        let few = data::<f32>(2 * m - 1);
        let mut padded = statistics(&trigonometric::<f32>(m, 1.0), &few.0, &few.1);
        padded.update(&few.0, weigh(&few.1, &Array1::zeros(2 * m - 1))).unwrap();
        underdetermined(&padded);
        underdetermined(&padded.without_intercept());
        underdetermined(&statistics(&trigonometric::<f32>(m, 1.0), &few.0, &few.1).without_intercept());
    }
}

/// A single score names no class: it would be class 0 everywhere.
#[test]
fn one_target_is_no_classifier() {
    let (x, y) = data::<f64>(60);
    let y = y.slice_move(s![.., ..1]);
    let mut one = RidgeStatistics::new(trigonometric::<f64>(10, 1.0), 1).unwrap();
    one.update(&x, &y).unwrap();
    let model = one.solve(1e-3).unwrap();
    let refused = |error: Error| {
        assert!(matches!(error, Error::Parameter { value: 1.0, .. }), "{error}");
        assert!(
            error.to_string().starts_with("the number of classes is 1, but must be at least 2"),
            "{error}"
        );
    };
    refused(RidgeClassifier::new(model.clone()).unwrap_err());
    refused(model.classify(&x).unwrap_err());
    let gram = trigonometric::<f64>(100, 1.0).gram(&x, &x).unwrap();
    refused(KernelRidge::fit(&gram, &y, 1.0).unwrap().classify_from_gram(&gram).unwrap_err());
    let mut smoother = Smoother::new(trigonometric::<f64>(10, 1.0), 1).unwrap();
    smoother.update(&x, &y).unwrap();
    refused(smoother.classify(&x).unwrap_err());
}

/// A λ whose sum with K overflows, coefficients beyond the range of the scalar, and Gram matrices whose sums overflow are named: not
/// a matrix that nobody passed.
#[test]
fn kernel_ridge_names_what_overflows() {
    let (large, ones) = (arr2(&[[1.5e308]]), arr2(&[[1.0]]));
    let error = KernelRidge::fit(&large, &ones, 1.5e308).unwrap_err();
    assert!(matches!(error, Error::Parameter { name: "λ", .. }), "{error}");
    let (small, y) = (arr2(&[[1e-30f32, 0.0], [0.0, 1e-30]]), arr2(&[[1e20f32], [-1e20]]));
    let spectrum = KernelRidge::spectrum(&small, &y).unwrap();
    for error in [KernelRidge::fit(&small, &y, 0.0).unwrap_err(), spectrum.model(1e-32).unwrap_err()] {
        assert!(matches!(error, Error::NotFinite { what: "the coefficients", row: 0, .. }), "{error}");
    }
    let (gram, wide) = (arr2(&[[1.0f32, 1.5], [1.5, 4.0]]), arr2(&[[3e38f32], [-3e38]]));
    let error = KernelRidge::fit(&gram, &wide, 0.0).unwrap_err();
    assert!(matches!(error, Error::NotFinite { what: "the intercepts", .. }), "{error}");
    // λ alone may be above the range of f32.
    let model = KernelRidge::fit(&small, &y, 1e39).unwrap();
    assert!(model.coefficients().iter().all(|a| (a.abs() / 1e-19 - 1.0).abs() < 1e-6));
    let (huge, y) = (Array2::from_elem((2, 2), 1.5e308), arr2(&[[1.0], [2.0]]));
    let error = KernelRidge::spectrum(&huge, &y).unwrap_err();
    assert!(matches!(error, Error::Parameter { value: 1.5e308, .. }), "{error}");
}

#[test]
fn kernel_ridge_names_a_lambda() {
    let (x, y) = data::<f64>(50);
    let (x, y) = (concatenate![ndarray::Axis(0), x, x], concatenate![ndarray::Axis(0), y, y]);
    let gram = trigonometric::<f64>(200, 1.0).gram(&x, &x).unwrap();
    let Error::Singular { least, .. } = KernelRidge::fit(&gram, &y, 0.0).unwrap_err() else { panic!() };
    assert!(KernelRidge::fit(&gram, &y, least).is_ok());
    // Rounding makes the last pivots small numbers of either sign.
    for n in 2..40 {
        let rows: Vec<usize> = (0..n).chain([n / 2]).collect();
        let (x, y) = (x.select(ndarray::Axis(0), &rows), y.select(ndarray::Axis(0), &rows));
        let gram = trigonometric::<f64>(200, 1.0).gram(&x, &x).unwrap();
        let Error::Singular { least, .. } = KernelRidge::fit(&gram, &y, 0.0).unwrap_err() else { panic!() };
        assert!(least > 0.0 && KernelRidge::fit(&gram, &y, least).is_ok());
    }
    let indefinite = arr2(&[[1.0, 2.0], [2.0, 1.0]]);
    let Error::Singular { least, .. } =
        KernelRidge::fit(&indefinite, &arr2(&[[1.0], [2.0]]), 0.5).unwrap_err()
    else {
        panic!()
    };
    assert!(KernelRidge::fit(&indefinite, &arr2(&[[1.0], [2.0]]), least).is_ok());
    assert!(KernelRidge::fit(&arr2(&[[f64::NAN]]), &arr2(&[[1.0]]), 1.0).is_err());
    let nan = KernelRidge::fit(&arr2(&[[1.0]]), &arr2(&[[f64::NAN]]), 1.0).unwrap_err();
    assert_eq!(nan, Error::NotFinite { what: "the targets", row: 0, column: Some(0) });
    assert!(KernelRidge::fit(&Array2::<f64>::zeros((0, 0)), &Array2::zeros((0, 1)), 1.0).is_err());
    assert!(KernelRidge::fit(&arr2(&[[1.0]]), &arr2(&[[1.0], [2.0]]), 1.0).is_err());
}

#[test]
fn rows_are_counted_once() {
    let (map, (x, y)) = (trigonometric::<f64>(10, 1.0), data::<f64>(100));
    let mut all = statistics(&map, &x, &y);
    let twice = all.clone();
    assert_eq!(
        all.merge(&twice).unwrap_err(),
        Error::Row { row: 0, reason: "is counted already: `with_first_row` numbers the rows of a part" }
    );
    assert!(all.clone().with_first_row(99).is_err() && all.clone().with_first_row(100).is_ok());
    let mut before = RidgeStatistics::new(map, 2).unwrap().with_first_row(50).unwrap();
    before.update(x.slice(s![..50, ..]), y.slice(s![..50, ..])).unwrap();
    assert_eq!(
        all.merge(&before).unwrap_err(),
        Error::Row { row: 50, reason: "is counted already: `with_first_row` numbers the rows of a part" }
    );
    let one = (x.slice(s![..1, ..]), y.slice(s![..1, ..]));
    let missing = before.downdate(49, one.0, one.1).unwrap_err();
    assert_eq!(missing.to_string(), "row 49 was never counted");
    // After a merge, the next update begins after the last row of both.
    let mut first = RidgeStatistics::new(all.map().clone(), 2).unwrap();
    first.merge(&before).unwrap();
    first.update(one.0, one.1).unwrap();
    assert_eq!(first.row_ranges(), [Range { start: 50, end: 101 }]);
}

#[test]
fn different_models_do_not_merge() {
    let (map, (x, y)) = (trigonometric::<f64>(10, 1.0), data::<f64>(100));
    let own = statistics(&map, &x, &y);
    let reason = |other: RidgeStatistics<f64>| own.clone().merge(&other).unwrap_err().to_string();
    let new = || RidgeStatistics::new(map.clone(), 2).unwrap();
    assert!(reason(RidgeStatistics::new(trigonometric(11, 1.0), 2).unwrap()).contains("maps"));
    assert!(reason(RidgeStatistics::new(map.clone(), 3).unwrap()).contains("targets"));
    assert!(reason(new().without_intercept()).contains("intercept"));
    let inputs = Standardisation::of(&x).unwrap();
    assert!(reason(new().with_standardisation(inputs.clone()).unwrap()).contains("standardisations"));
    assert!(own.clone().with_standardisation(inputs).is_err());
    assert!(new().with_standardisation(Standardisation::new(vec![0.0], vec![1.0]).unwrap()).is_err());
    for scale in [0.0, -1.0, 1e-310, f64::INFINITY, f64::NAN] {
        assert!(Standardisation::new(vec![0.0], vec![scale]).is_err(), "{scale}");
    }
    assert!(Standardisation::of(&Array2::<f64>::zeros((0, 3))).is_err());
}

/// What fails in its last chunk leaves no trace, though chunks before were added and levels rose.
#[test]
fn a_refused_update_changes_nothing() {
    let n = 2 * RidgeStatistics::<f64>::CHUNK as usize + 10;
    let (map, (x, y)) = (trigonometric::<f64>(10, 1.0), data::<f64>(n));
    let head = s![..500, ..];
    let mut all = statistics(&map, &x.slice(head).to_owned(), &y.slice(head).to_owned());
    let before = format!("{all:?}");
    let mut large = &y * 1e120;
    large[[n - 1, 1]] = 1e200;
    let error = all.update(&x, &large).unwrap_err();
    assert!(error.to_string().contains("below 1e288"), "{error}");
    assert_eq!(format!("{all:?}"), before);
    let mut far = x.clone();
    far[[n - 1, 0]] = 1e200;
    let error = all.update(&far, &(&y * 1e120)).unwrap_err();
    assert_eq!(error, Error::NotFinite { what: "the features of x", row: n - 1, column: None });
    assert_eq!(format!("{all:?}"), before);
    let mut nan = y.clone();
    nan[[3, 1]] = f64::NAN;
    assert_eq!(
        all.update(&x, &nan).unwrap_err(),
        Error::NotFinite { what: "the targets", row: 3, column: Some(1) }
    );
    assert!(all.update(x.slice(s![.., ..2]), &y).is_err());
    assert!(all.update(&x, y.slice(s![1.., ..])).is_err());
    for wrong in [-1.0, f64::NAN, f64::INFINITY] {
        let mut weights = Array1::ones(n);
        weights[7] = wrong;
        let wrong = Targets::from(&y).with_weights(&weights).map(drop);
        assert!(matches!(wrong, Err(Error::Entry { row: 7, .. })));
    }
    assert!(Targets::from(&y).with_weights(&arr1(&[1.0])).is_err());
    assert!(all.update(x.slice(s![..1, ..]), &[2]).is_err());
    assert_eq!(format!("{all:?}"), before);
}

/// The same for rows that are taken out: chunks before the error are put back.
#[test]
fn a_refused_downdate_changes_nothing() {
    let n = 2 * RidgeStatistics::<f64>::CHUNK as usize + 10;
    let (map, (x, y)) = (trigonometric::<f64>(10, 1.0), data::<f64>(n));
    let mut all = statistics(&map, &x, &y);
    let before = format!("{all:?}");
    let mut far = x.clone();
    far[[n - 1, 0]] = 1e200;
    // Levels that rise in no chunk, in the first, and in the second.
    let mut later = y.clone();
    later.slice_mut(s![5000.., ..]).mapv_inplace(|v| v * 1e120);
    for y in [&y, &(&y * 1e120), &later] {
        let error = all.downdate(0, &far, y).unwrap_err();
        assert_eq!(error, Error::NotFinite { what: "the features of x", row: n - 1, column: None });
        assert_eq!(format!("{all:?}"), before);
    }
    assert!(matches!(all.downdate(1, &x, &y), Err(Error::Row { .. })));
    assert_eq!(format!("{all:?}"), before);
}

#[test]
fn scales_that_overflow_are_an_error() {
    let map = Trigonometric.softmax::<f64>(frequencies(3, 10, &Independent, 1)).unwrap();
    let mut statistics = RidgeStatistics::new(map, 1).unwrap();
    let x = arr2(&[[0.1, 0.2, 0.3], [30.0, 30.0, 0.0]]);
    let error = statistics.update(&x, &arr2(&[[1.0], [2.0]])).unwrap_err();
    assert!(error.to_string().contains("Gaussian kernel"), "{error}");
    assert_eq!(statistics.rows(), 0);
}

/// Points themselves, with one scale.
fn scaled(scale: f64) -> Map<f64> {
    let write = move |x: ArrayView1<'_, f64>, values: &mut [f64], scales: &mut [f64]| {
        values.iter_mut().zip(x).for_each(|(v, x)| *v = *x);
        scales[0] = scale;
    };
    own_map(Facts::new(3, vec![3]).symmetric(), write).unwrap()
}

/// Features that underflow are zeros, and features that overflow are an error.
#[test]
fn scales_of_any_size() {
    let (x, y) = data::<f64>(700);
    for (scale, size) in [(-800.0, 1.0), (-1e4, 1.0), (0.0, 1e-315)] {
        let tiny = &x * size;
        let model = statistics(&scaled(scale), &tiny, &y).solve(1.0).unwrap();
        let (predicted, mean) = (model.predict(&tiny).unwrap(), y.mean_axis(ndarray::Axis(0)).unwrap());
        assert!((&predicted - &mean).iter().all(|e| e.abs() < 1e-12), "{scale} {size}");
    }
    let mut statistics = RidgeStatistics::new(scaled(f64::INFINITY), 2).unwrap();
    let error = statistics.update(&x, &y).unwrap_err();
    assert_eq!(error, Error::NotFinite { what: "the features of x", row: 0, column: None });
    let mut statistics = RidgeStatistics::new(scaled(1e4), 2).unwrap();
    assert!(statistics.update(&x, &y).unwrap_err().to_string().contains("below 1e288"));
}

/// In `f32`, targets and weights whose squares it cannot hold.
#[test]
fn targets_of_any_size() {
    let (map, (x, y)) = (trigonometric::<f32>(20, 1.0), data::<f32>(300));
    let plain = statistics(&map, &x, &y).solve(1e-2).unwrap().predict(&x).unwrap();
    for size in [1e30f32, 1e-30] {
        let model = statistics(&map, &x, &y.mapv(|v| v * size)).solve(1e-2).unwrap();
        let predicted = model.predict(&x).unwrap();
        assert!(predicted.iter().zip(&plain).all(|(a, b)| (a / size - b).abs() < 1e-4));
    }
}

#[test]
fn no_data_no_model() {
    let map = trigonometric::<f64>(10, 1.0);
    let new = RidgeStatistics::new(map.clone(), 2).unwrap();
    assert!(matches!(new.solve(1.0), Err(Error::NoData { .. })));
    assert!(matches!(new.spectrum(), Err(Error::NoData { .. })));
    assert!(RidgeStatistics::new(map.clone(), 0).is_err());
    let (x, y) = data::<f64>(60);
    let mut unweighted = new.clone();
    unweighted.update(&x, weigh(&y, &Array1::zeros(60))).unwrap();
    assert!(matches!(unweighted.solve(1.0), Err(Error::NoData { .. })));
    let all = statistics(&map, &x, &y);
    for wrong in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(all.solve(wrong), Err(Error::Parameter { .. })));
    }
    let spectrum = all.spectrum().unwrap();
    assert!(spectrum.choose(&Criterion::GeneralisedCrossValidation, &[]).is_err());
    let none = (x.slice(s![..0, ..]), y.slice(s![..0, ..]));
    assert!(spectrum.errors(&Criterion::held_out(none.0, none.1), &[1.0]).is_err());
    let model = all.solve(1.0).unwrap();
    assert!(model.predict(x.slice(s![.., ..2])).is_err());
    assert!(RidgeClassifier::new(model.clone()).unwrap().with_calibration(none.0, &[0usize; 0]).is_err());
    let mut nan = x.slice(s![..2, ..]).to_owned();
    nan[[1, 0]] = f64::NAN;
    let error = RidgeClassifier::new(model).unwrap().with_calibration(&nan, &[0, 1]).unwrap_err();
    assert_eq!(error, Error::NotFinite { what: "the predictions", row: 1, column: Some(0) });
}

/// One class alone, and a class without a point.
#[test]
fn one_class() {
    let (map, (x, _)) = (trigonometric::<f64>(10, 1.0), data::<f64>(60));
    for classes in [2, 3] {
        let mut statistics = RidgeStatistics::new(map.clone(), classes).unwrap();
        statistics.update(&x, &vec![classes - 1; 60]).unwrap();
        let model = statistics.solve(1e-3).unwrap();
        let classifier =
            RidgeClassifier::new(model).unwrap().with_calibration(&x, &vec![classes - 1; 60]).unwrap();
        assert_eq!(classifier.classify(&x).unwrap(), vec![classes - 1; 60]);
        let p = classifier.probabilities(&x).unwrap();
        // Classes without rows have no part.
        let expected = |class| if class == classes - 1 { 1.0 } else { 0.0 };
        assert!(p.indexed_iter().all(|((_, class), p)| *p == expected(class)), "{p}");
    }
}

/// Rows have numbers below 2⁶⁴: what would go beyond is refused before anything is added or removed.
#[test]
fn row_numbers_end() {
    let (map, (x, y)) = (trigonometric::<f64>(10, 1.0), data::<f64>(10));
    let mut last = RidgeStatistics::new(map, 2).unwrap().with_first_row(u64::MAX - 5).unwrap();
    let before = format!("{last:?}");
    let error = last.update(&x, &y).unwrap_err();
    assert!(matches!(error, Error::Row { row: u64::MAX, .. }), "{error}");
    assert_eq!(format!("{last:?}"), before);
    last.update(x.slice(s![..5, ..]), y.slice(s![..5, ..])).unwrap();
    assert_eq!(last.row_ranges(), [Range { start: u64::MAX - 5, end: u64::MAX }]);
    let before = format!("{last:?}");
    assert!(matches!(last.downdate(u64::MAX - 5, &x, &y), Err(Error::Row { .. })));
    assert!(last.update(x.slice(s![..1, ..]), y.slice(s![..1, ..])).is_err());
    assert_eq!(format!("{last:?}"), before);
    last.downdate(u64::MAX - 5, x.slice(s![..5, ..]), y.slice(s![..5, ..])).unwrap();
    assert_eq!(last.rows(), 0);
}

/// Sums of more features or targets than any machine has memory for.
#[test]
fn sums_beyond_memory_are_refused() {
    let wide = |d: usize| EluPlusOne.build::<f64>(d, 1.0).unwrap();
    let narrow = EluPlusOne.build::<f32>(1 << 26, 1.0).unwrap();
    assert!(matches!(RidgeStatistics::new(narrow, 1), Err(Error::Memory { .. })));
    for (map, targets) in [(wide(1 << 26), 1), (wide(20), 1 << 48), (wide(1 << 22), 1 << 26)] {
        let refused = RidgeStatistics::new(map, targets).unwrap_err();
        assert!(matches!(refused, Error::Memory { .. }), "{refused}");
    }
}

#[test]
fn rows_that_were_not_standardised_are_named() {
    let (map, (x, y)) = (trigonometric::<f64>(10, 1.0), data::<f64>(30));
    let late = statistics(&map, &x, &y)
        .with_standardisation(Standardisation::of(&x).unwrap())
        .unwrap_err()
        .to_string();
    assert!(late.contains("is 30, but must be 0") && late.contains("standardis"), "{late}");
}
