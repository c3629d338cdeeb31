//! Targets whose squares are out of range, variances that the scalar cannot hold, and sums from which all rows were removed.

use ndarray::{Array1, Array2, ArrayView1, Axis, arr1, arr2, s};
use random_features::apply::{Criterion, KernelRidge, Prediction, Ridge, RidgeSearch, RidgeStatistics};
use random_features::extend::Facts;
use random_features::frequency::Orthogonal;
use random_features::kernel::{Gaussian, Kernel};
use random_features::{Error, Map, Real, Targets, Trigonometric};

use super::{data, distance, statistics, trigonometric};
use crate::common::own_map::own_map;
use crate::common::weigh;

/// Factors of targets.
const FACTORS: [f64; 4] = [1e-160, 1e-30, 1e30, 1e150];

/// Smooth targets with some noise.
fn noisy(n: usize) -> (Array2<f64>, Array2<f64>) {
    let (x, y) = data::<f64>(n);
    let noise = |(i, j): (usize, usize)| ((i * 7919 + j * 31) % 101) as f64 / 300.0;
    let y = &y + &Array2::from_shape_fn(y.dim(), noise);
    (x, y)
}

fn is_range_error<V: std::fmt::Debug>(result: Result<V, Error>) -> bool {
    matches!(result, Err(Error::Parameter { name: "the range of a target", .. }))
}

/// Criteria choose alike for any unit of the targets, or say that squares are out of range.
#[test]
fn the_unit_of_targets_changes_no_choice() {
    let (map, (x, y)) = (trigonometric::<f64>(20, 1.0), noisy(120));
    let plain = statistics(&map, &x, &y).spectrum().unwrap();
    let lambdas = plain.lambdas();
    let model = plain.model(0.1).unwrap();
    for (factor, offset) in FACTORS.iter().flat_map(|factor| [(*factor, 0.0), (*factor, 3.0 * factor)]) {
        let targets = y.mapv(|y| factor * y + offset);
        let mut scaled = RidgeStatistics::new(map.clone(), 2).unwrap();
        if factor > 1e140 {
            assert!(matches!(scaled.update(&x, &targets), Err(Error::Parameter { .. })));
            continue;
        }
        scaled.update(&x, &targets).unwrap();
        let scaled = scaled.spectrum().unwrap();
        let weights = scaled.model(0.1).unwrap().weights().mapv(|w| w / factor);
        assert!(distance(&weights, &model.weights().to_owned()) < 1e-9, "{factor}");
        for criterion in 0..4 {
            let choose = |spectrum: &random_features::apply::RidgeSpectrum<f64>, y| {
                let criterion = match criterion {
                    0 => Criterion::GeneralisedCrossValidation,
                    1 => Criterion::LogEvidence,
                    2 => Criterion::leave_one_out(&x, y),
                    _ => Criterion::held_out(&x, y),
                };
                spectrum.choose(&criterion, &lambdas)
            };
            let found = choose(&scaled, &targets);
            if factor < 1e-100 {
                assert!(is_range_error(found) && is_range_error(scaled.posterior(0.1)), "{criterion}");
            } else {
                assert_eq!(found.unwrap().0, choose(&plain, &y).unwrap().0, "{factor} {criterion}");
            }
        }
    }
}

#[test]
fn the_unit_of_targets_changes_no_choice_of_a_kernel() {
    let (x, y) = noisy(60);
    let gram = Gaussian::new(1.0).unwrap().gram(&x, &x).unwrap();
    let plain = KernelRidge::spectrum(&gram, &y).unwrap();
    let lambdas = plain.lambdas();
    for factor in FACTORS {
        let targets = y.mapv(|y| factor * (y + 3.0));
        let scaled = KernelRidge::spectrum(&gram, &targets).unwrap();
        for criterion in
            [Criterion::GeneralisedCrossValidation, Criterion::LogEvidence, Criterion::LeaveOneOut]
        {
            let found = scaled.choose(&criterion, &lambdas);
            if factor < 1e-100 {
                assert!(is_range_error(found), "{criterion:?}");
            } else {
                let expected = plain.choose(&criterion, &lambdas).unwrap();
                assert_eq!(found.unwrap().0, expected.0, "{factor}");
            }
        }
        let fitted = KernelRidge::fit(&gram, &targets, 0.1).unwrap().coefficients().mapv(|a| a / factor);
        let expected = KernelRidge::fit(&gram, &y, 0.1).unwrap();
        assert!(distance(&fitted, &expected.coefficients().to_owned()) < 1e-9, "{factor}");
    }
    let wide = Array2::from_shape_fn((60, 1), |(i, _)| if i % 2 == 0 { 1.5e308 } else { -1.5e308 });
    assert!(is_range_error(KernelRidge::spectrum(&gram, &wide).map(drop)));
    assert!(is_range_error(KernelRidge::fit(&gram, &wide, 0.1)));
}

/// Within the range of `f32` nothing depends on the unit.
#[test]
fn the_unit_of_targets_changes_no_search() {
    let (x, y) = noisy(150);
    let x = x.mapv(|v| v as f32);
    let omega = Orthogonal.draw(3, 16, 3).unwrap();
    for criterion in [Criterion::GeneralisedCrossValidation, Criterion::LogEvidence] {
        let search = RidgeSearch::new(omega.clone(), |omega, ell| Trigonometric.gaussian(omega, ell));
        let search = search.with_criterion(criterion);
        let fit = |factor: f32| search.fit(&x, &y.mapv(|y| factor * y as f32)).unwrap();
        let plain = fit(1.0);
        for factor in [1e-30, 1e30] {
            let scaled = fit(factor);
            assert_eq!(scaled.best().lengthscale, plain.best().lengthscale, "{factor}");
            assert_eq!(scaled.lambda(), plain.lambda(), "{factor}");
        }
    }
}

/// Variances that `f32` cannot hold are its ends, and intervals are those of `f64`.
#[test]
fn variances_beyond_the_scalar() {
    let (map, (x, y)) = (trigonometric::<f32>(20, 1.0), noisy(120));
    let x = x.mapv(|v| v as f32);
    let predict = |factor: f32| {
        let statistics = statistics(&map, &x, &y.mapv(|y| factor * y as f32));
        statistics.spectrum().unwrap().posterior(0.1).unwrap().predict(&x).unwrap()
    };
    let plain = predict(1.0);
    let (low, high) = plain.interval(0.9).unwrap();
    for (factor, held) in [(1e-30f32, f32::MIN_POSITIVE), (1e30, f32::MAX)] {
        let scaled = predict(factor);
        let both = [scaled.variance_of_mean.clone(), scaled.variance_of_targets()];
        assert!(both.iter().flatten().all(|variance| *variance == held), "{factor}");
        let (a, b) = scaled.interval(0.9).unwrap();
        let near =
            |a: &Array2<f32>, b: &Array2<f32>| a.iter().zip(b).all(|(a, b)| (a / factor - b).abs() < 1e-3);
        assert!(near(&a, &low) && near(&b, &high), "{factor}");
        let (a, b) = scaled.interval_of_mean(0.9).unwrap();
        assert!(a.iter().zip(&b).all(|(a, b)| a < b), "{factor}");
    }
    assert!(plain.variance_of_mean.iter().all(|v| v.is_finite() && *v > f32::MIN_POSITIVE));
}

/// A map of one feature, which is the point.
fn line<T: Real>() -> Map<T> {
    let write = |x: ArrayView1<'_, T>, values: &mut [T], _: &mut [f64]| values[0] = x[0];
    own_map(Facts::new(1, vec![1]).symmetric(), write).unwrap()
}

/// Predictions that `f32` cannot hold are its ends, in batches and one by one.
#[test]
fn predictions_beyond_the_scalar() {
    let weights = arr2(&[[3e38], [-3e38], [1.0]]);
    let model = Ridge::<f32>::of_weights(line(), &weights, &[0.0, 0.0, 0.5]).unwrap();
    let x = arr2(&[[0.5f32], [-2.0], [f32::NAN]]);
    let predicted = model.predict(&x).unwrap();
    assert_eq!(predicted.row(0), arr1(&[1.5e38f32, -1.5e38, 1.0]));
    assert_eq!(predicted.row(1), arr1(&[f32::MIN, f32::MAX, -1.5]));
    assert!(predicted.row(2).iter().all(|y| y.is_nan()));
    let mut one = [0.0; 3];
    model.predictor().predict_into(&x.row(1), &mut one).unwrap();
    assert_eq!(one, [f32::MIN, f32::MAX, -1.5]);
}

/// Intervals about a mean that `f32` cannot hold are those of `f64`: where y is about 3e38 x, with a noise of 2.5e37, the mean at 1.16
/// is 3.46e38, and the interval begins at 3.00e38.
#[test]
fn intervals_of_means_beyond_the_scalar() {
    fn predict<T: Real>() -> Prediction<T> {
        let x = Array2::from_shape_fn((40, 1), |(i, _)| T::narrow(i as f64 / 20.0 - 1.0));
        let noise = |i: usize| if i.is_multiple_of(2) { 2.5e37 } else { -2.5e37 };
        let y = Array2::from_shape_fn((40, 1), |(i, _)| T::narrow(3e38 * x[[i, 0]].widen() + noise(i)));
        let posterior = statistics(&line(), &x, &y).spectrum().unwrap().posterior(1e-2).unwrap();
        posterior.predict(&arr2(&[[T::narrow(1.16)]])).unwrap()
    }
    let (narrow, wide) = (predict::<f32>(), predict::<f64>());
    assert_eq!(narrow.mean[[0, 0]], f32::MAX);
    assert!((wide.mean[[0, 0]] / 3.4551e38 - 1.0).abs() < 1e-4, "{}", wide.mean);
    let (low, high) = narrow.interval(0.9).unwrap();
    let (exact, _) = wide.interval(0.9).unwrap();
    assert!((exact[[0, 0]] / 3.005e38 - 1.0).abs() < 1e-3, "{exact}");
    assert!((f64::from(low[[0, 0]]) / exact[[0, 0]] - 1.0).abs() < 1e-4, "{low} {exact}");
    assert_eq!(high[[0, 0]], f32::MAX);
}

/// Weights and precisions whose products with features are lost in sums give no model, and no products or components.
#[test]
fn weights_below_the_range_of_sums_are_refused() {
    let (map, (x, y)) = (trigonometric::<f64>(10, 1.0), noisy(60));
    let tiny = Array1::from_elem(60, 1e-291);
    for targets in [weigh(&y, &tiny), Targets::from(&y).with_precisions(&tiny).unwrap()] {
        let mut statistics = RidgeStatistics::new(map.clone(), 2).unwrap();
        statistics.update(&x, targets).unwrap();
        let found = [
            statistics.solve(0.0).map(drop),
            statistics.solve(1e-294).map(drop),
            statistics.spectrum().map(drop),
            statistics.products().map(drop),
            statistics.pca(2).map(drop),
        ];
        for found in found {
            assert!(matches!(found, Err(Error::Parameter { .. })), "{found:?}");
        }
        // Sums without features keep their digits.
        let error = &statistics.mean_targets().unwrap() - &y.mean_axis(Axis(0)).unwrap();
        assert!(error.iter().all(|error| error.abs() < 1e-9), "{error}");
    }
}

/// Features whose squares are lost in sums matter beside no λ of usual size, and hide the models for smaller ones.
#[test]
fn features_below_the_range_of_sums_are_negligible_or_refused() {
    let (x, y) = noisy(60);
    let map = |size: f64| {
        let write = move |x: ArrayView1<'_, f64>, values: &mut [f64], _: &mut [f64]| {
            values.iter_mut().zip(x).for_each(|(v, x)| *v = size * x);
        };
        own_map(Facts::new(3, vec![3]).symmetric(), write).unwrap()
    };
    let mean = y.mean_axis(Axis(0)).unwrap();
    for size in [1e-150, 1e-160, 1e-170] {
        let all = statistics(&map(size), &x, &y);
        let few = statistics(&map(size), &x.slice(s![..3, ..]).to_owned(), &y.slice(s![..3, ..]).to_owned());
        for statistics in [&all, &few] {
            for lambda in [0.0, 1e-300] {
                let found = statistics.solve(lambda).map(drop);
                assert!(matches!(found, Err(Error::Singular { .. })), "{size} {lambda}: {found:?}");
                let found = statistics.spectrum().unwrap().model(lambda).map(drop);
                assert!(matches!(found, Err(Error::Singular { .. })), "{size} {lambda}: {found:?}");
            }
        }
        let predicted = all.solve(1.0).unwrap().predict(&x).unwrap();
        assert!((&predicted - &mean).iter().all(|error| error.abs() < 1e-12), "{size}");
        let spectrum = all.spectrum().unwrap();
        for criterion in [Criterion::GeneralisedCrossValidation, Criterion::leave_one_out(&x, &y)] {
            let found = spectrum.choose(&criterion, &[1.0]).map(drop);
            assert!(matches!(found, Err(Error::Parameter { .. })), "{size}: {found:?}");
        }
    }
    // Targets whose products with features are lost.
    let tiny = y.mapv(|y| 1e-300 * y);
    assert!(is_range_error(statistics(&trigonometric(10, 1.0), &x, &tiny).solve(0.1)));
}

/// What rounding leaves of removed rows is no regression.
fn all_rows_removed<T: Real>() {
    let (map, (x, y)) = (trigonometric::<T>(10, 1.0), data::<T>(200));
    let weights = Array1::from_shape_fn(200, |i| if i % 3 == 0 { 0.0 } else { 0.1 + i as f64 });
    let remove = |statistics: &mut RidgeStatistics<T>, size: usize| {
        for start in (0..200).step_by(size) {
            let rows = start..200.min(start + size);
            let w = weights.slice(s![rows.clone()]).to_owned();
            let rows = s![rows, ..];
            statistics.downdate(start as u64, x.slice(rows), weigh(y.slice(rows), &w)).unwrap();
        }
    };
    for size in [200, 7] {
        let mut statistics = RidgeStatistics::new(map.clone(), 2).unwrap();
        statistics.update(&x, weigh(&y, &weights)).unwrap();
        remove(&mut statistics, size);
        let nothing =
            |found: Result<(), Error>| assert!(matches!(found, Err(Error::NoData { .. })), "{found:?}");
        nothing(statistics.solve(0.1).map(drop));
        nothing(statistics.spectrum().map(drop));
        nothing(statistics.products().map(drop));
        nothing(statistics.mean_features().map(drop));
        nothing(statistics.pca(2).map(drop));
        // As before the first row.
        statistics.update(&x, &y).unwrap();
        let mut fresh = RidgeStatistics::new(map.clone(), 2).unwrap().with_first_row(200).unwrap();
        fresh.update(&x, &y).unwrap();
        let bits = |statistics: &RidgeStatistics<T>| {
            let model = statistics.solve(0.1).unwrap();
            model.weights().iter().chain(model.intercepts()).map(|v| v.to_bits()).collect::<Vec<_>>()
        };
        assert_eq!((bits(&statistics), statistics.row_ranges()), (bits(&fresh), fresh.row_ranges()));
    }
}

#[test]
fn sums_without_rows_are_no_regression() {
    all_rows_removed::<f64>();
    all_rows_removed::<f32>();
}

/// Rows of which nothing but the rounding of heavier ones is left.
#[test]
fn weights_below_the_rounding_of_removed_ones_are_refused() {
    let (map, (x, y)) = (trigonometric::<f64>(10, 1.0), data::<f64>(40));
    let mut statistics = RidgeStatistics::new(map, 2).unwrap();
    let weights = Array1::from_shape_fn(40, |i| if i < 10 { 1.0 } else { 1e18 / (i as f64 + 0.7) });
    statistics.update(&x, weigh(&y, &weights)).unwrap();
    for i in 10..40 {
        let row = s![i..i + 1, ..];
        let weight = weights.slice(s![i..i + 1]).to_owned();
        statistics.downdate(i as u64, x.slice(row), weigh(y.slice(row), &weight)).unwrap();
    }
    assert!(matches!(statistics.solve(0.1), Err(Error::Parameter { name: "the sum of the weights", .. })));
}
