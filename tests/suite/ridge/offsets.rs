//! Targets of any mean and scale, constant ones among them, and weights that do not add up to the number of rows.

use ndarray::{Array1, Array2, Axis, concatenate, s};
use random_features::apply::{Criterion, KernelRidge, RidgeSearch, RidgeSpectrum, RidgeStatistics};
use random_features::frequency::Orthogonal;
use random_features::kernel::{Gaussian, Kernel};
use random_features::{Error, Map, Real, Targets, Trigonometric};

use super::{data, distance, features, naive, statistics, trigonometric};
use crate::common::{frequencies, weigh};

const LAMBDAS: [f64; 4] = [1e-2, 0.1, 1.0, 10.0];
/// Pressure in Pa, Julian days, seconds since 1970.
const OFFSETS: [f64; 3] = [101_325.0, 2_459_000.5, 1.6e9];

/// A wave and noise at n times, in steps of `unit`.
fn wave<T: Real>(n: usize, unit: f64) -> (Array2<T>, Array2<f64>) {
    let x = Array2::from_shape_fn((n, 1), |(i, _)| T::narrow(i as f64 * 5.0 / n as f64));
    let noise = |i: usize| ((i * 7919 + i * i * 31) % 1009) as f64 / 1009.0 - 0.5;
    let y = |i: usize| unit * (400.0 * (0.02 * i as f64).sin() + 120.0 * noise(i)).round();
    (x, Array2::from_shape_fn((n, 1), |(i, _)| y(i)))
}

fn map<T: Real>() -> Map<T> {
    Trigonometric.gaussian(frequencies(1, 20, &Orthogonal, 7), 0.5).unwrap()
}

/// Noise, cross-validation, evidence and leave-one-out for each λ.
fn numbers<T: Real>(spectrum: &RidgeSpectrum<T>, x: &Array2<T>, y: &Array2<T>) -> [Vec<f64>; 4] {
    let noise = LAMBDAS.map(|lambda| spectrum.posterior(lambda).unwrap().noise()[0]);
    let errors = |criterion: Criterion<'_, T>| spectrum.errors(&criterion, &LAMBDAS).unwrap();
    let evidence = errors(Criterion::LogEvidence);
    let generalised = errors(Criterion::GeneralisedCrossValidation);
    [noise.to_vec(), generalised, errors(Criterion::leave_one_out(x, y)), evidence]
}

/// Statistics in one batch, in a stream, merged in both orders, with weights of 1, and after rows were taken out again.
fn ways<T: Real>(x: &Array2<T>, y: &Array2<T>) -> Vec<RidgeStatistics<T>> {
    let (n, new) = (x.nrows(), || RidgeStatistics::new(map::<T>(), 1).unwrap());
    let mut stream = new();
    for start in (0..n).step_by(777) {
        let rows = s![start..n.min(start + 777), ..];
        stream.update(x.slice(rows), y.slice(rows)).unwrap();
    }
    let part = |first: usize, end: usize| {
        let mut part = new().with_first_row(first as u64).unwrap();
        part.update(x.slice(s![first..end, ..]), y.slice(s![first..end, ..])).unwrap();
        part
    };
    let (mut left, mut right) = (part(0, 1500), part(1500, n));
    let first = left.clone();
    left.merge(&right).unwrap();
    right.merge(&first).unwrap();
    let mut weighted = new();
    weighted.update(x, weigh(y, &Array1::ones(n))).unwrap();
    let mut shrunk = stream.clone();
    let far = y.mapv(|y| T::narrow(-3.0) * y);
    shrunk.update(x, &far).unwrap();
    shrunk.downdate(n as u64, x, &far).unwrap();
    vec![statistics(&map(), x, y), stream, left, right, weighted, shrunk]
}

/// `units` are those of the offsets: y and y + h are numbers of the scalar type without rounding.
fn invariant<T: Real>(units: [f64; 3], near: f64) {
    for (offset, unit) in OFFSETS.into_iter().zip(units) {
        let (x, y) = wave::<T>(5000, unit);
        let narrow = |factor: f64, offset: f64| y.mapv(|y| T::narrow(factor * y + offset));
        let plain = narrow(1.0, 0.0);
        let expected = numbers(&statistics(&map(), &x, &plain).spectrum().unwrap(), &x, &plain);
        let models: Vec<_> = ways(&x, &plain).iter().map(|way| way.solve(0.1).unwrap()).collect();
        // Twice as large: the evidence of 4999 degrees of freedom changes by ln 2 for each.
        for factor in [1.0, 2.0] {
            let targets = narrow(factor, factor * offset);
            for (way, statistics) in ways(&x, &targets).into_iter().enumerate() {
                let found = numbers(&statistics.spectrum().unwrap(), &x, &targets);
                for (k, (found, expected)) in found.iter().zip(&expected).enumerate() {
                    for (a, b) in found.iter().zip(expected) {
                        let b = if k < 3 { b * factor * factor } else { b + 4999.0 * factor.ln() };
                        assert!((a / b - 1.0).abs() < near, "{offset}, way {way}, number {k}: {a} {b}");
                    }
                }
                let solved = statistics.solve(0.1).unwrap();
                let weights = solved.weights().mapv(|w| w / factor);
                assert!(distance(&weights, &models[way].weights().to_owned()) < near, "{offset}, way {way}");
            }
        }
    }
}

#[test]
fn the_mean_and_the_unit_of_targets_do_not_matter() {
    // Four spacings of `f64` near 1.6e9, and those of `f32` near each of the offsets.
    invariant::<f64>([2f64.powi(-20); 3], 1e-5);
    invariant::<f32>([2f64.powi(-7), 0.25, 128.0], 1e-5);
}

#[test]
fn a_search_chooses_the_same_for_any_mean() {
    let (x, y) = wave::<f64>(300, 2f64.powi(-20));
    let omega = Orthogonal.draw(1, 24, 3).unwrap();
    for criterion in [Criterion::GeneralisedCrossValidation, Criterion::LogEvidence] {
        let search = RidgeSearch::new(omega.clone(), |omega, ell| Trigonometric.gaussian(omega, ell));
        let search = search.with_criterion(criterion);
        let [plain, far] = [0.0, 1.6e9].map(|offset| search.fit(&x, &(&y + offset)).unwrap());
        assert_eq!(far.best().lengthscale, plain.best().lengthscale);
        assert!((far.lambda() / plain.lambda() - 1.0).abs() < 1e-9);
        assert!((far.error() / plain.error() - 1.0).abs() < 1e-4);
    }
}

/// A deviation of a few spacings of the mean.
#[test]
fn targets_that_hardly_differ_from_their_mean() {
    let (x, y) = wave::<f64>(1000, 2f64.powi(-22) / 8.0);
    let y = y.mapv(|y| (y * 2f64.powi(22)).round() / 2f64.powi(22));
    let (plain, far) = (statistics(&map(), &x, &y), statistics(&map(), &x, &(&y + 1.6e9)));
    let [a, b] =
        [plain, far].map(|statistics| statistics.spectrum().unwrap().posterior(1.0).unwrap().noise()[0]);
    assert!((a / b - 1.0).abs() < 1e-2, "{a} {b}");
}

/// A class without rows, a constant target, and one that is constant up to rounding: they add nothing to a criterion.
fn constants_do_not_choose<T: Real>(constant: &[f64]) {
    let (map, (x, y)) = (trigonometric::<T>(10, 1.0), data::<T>(200));
    let column = Array2::from_shape_fn((200, 1), |(i, _)| T::narrow(constant[i % constant.len()]));
    let both = concatenate![Axis(1), column, y];
    let (alone, with) = (statistics(&map, &x, &y), statistics(&map, &x, &both));
    let (alone, with) = (alone.spectrum().unwrap(), with.spectrum().unwrap());
    let lambdas = alone.lambdas();
    for criterion in [Criterion::LogEvidence, Criterion::GeneralisedCrossValidation] {
        let (a, b) =
            (alone.errors(&criterion, &lambdas).unwrap(), with.errors(&criterion, &lambdas).unwrap());
        assert_eq!(a, b, "{constant:?}");
        assert!(a.iter().all(|error| *error > f64::NEG_INFINITY) && a[0].is_finite());
    }
    for left_out in [true, false] {
        let of = |y| if left_out { Criterion::leave_one_out(&x, y) } else { Criterion::held_out(&x, y) };
        let [a, b] = [alone.errors(&of(&y), &lambdas).unwrap(), with.errors(&of(&both), &lambdas).unwrap()];
        assert_eq!(a, b, "{constant:?}");
    }
    let posterior = with.posterior(1e-2).unwrap();
    let prediction = posterior.predict(&x).unwrap();
    assert_eq!(posterior.noise()[0], 0.0);
    let spread = 4.0 * T::epsilon().widen() * constant[0].abs();
    assert!(prediction.mean.column(0).iter().all(|v| (v.widen() - constant[0]).abs() <= spread));
    assert!(prediction.variance_of_mean.column(0).iter().all(|v| *v == T::zero()));
    // Nothing varies: no λ is better than another one, and the largest is taken.
    let nothing = statistics(&map, &x, &column).spectrum().unwrap();
    let choice = nothing.choose(&Criterion::LogEvidence, &[1.0, 100.0, 0.1]).unwrap();
    assert_eq!(choice, (100.0, 0.0));
}

#[test]
fn constant_targets_do_not_choose() {
    for constant in [&[0.0][..], &[1.0], &[-2_459_000.5], &[0.3]] {
        constants_do_not_choose::<f64>(constant);
        constants_do_not_choose::<f32>(constant);
    }
    constants_do_not_choose::<f64>(&[0.3, 0.1 + 0.2]);
    constants_do_not_choose::<f32>(&[0.3, f64::from(0.1f32 + 0.2)]);
}

/// One row in two thousand differs from a large offset, by far more than the spacing of the scalar.
fn rare<T: Real>(offset: f64, step: f64) {
    let (x, _) = wave::<T>(2000, 1.0);
    let y = |scale: f64, offset: f64| {
        Array2::from_shape_fn((2000, 1), |(i, _)| T::narrow(if i == 400 { scale + offset } else { offset }))
    };
    let plain: Vec<_> = ways(&x, &y(1.0, 0.0)).iter().map(|way| way.solve(1e-2).unwrap()).collect();
    for (way, statistics) in ways(&x, &y(step, offset)).into_iter().enumerate().take(5) {
        let model = statistics.solve(1e-2).unwrap();
        let weights = model.weights().mapv(|w| w / step);
        assert!(distance(&weights, &plain[way].weights().to_owned()) < 1e-3, "{offset}, way {way}");
        assert!(statistics.spectrum().unwrap().posterior(1e-2).unwrap().noise()[0] > 0.0);
        assert_ne!(statistics.spectrum().unwrap().log_evidence(1e-2).unwrap(), 0.0);
    }
}

#[test]
fn a_rare_event_on_a_large_offset_is_seen() {
    rare::<f32>(1e6, 1.0);
    rare::<f32>(101_325.0, 0.0625);
    rare::<f64>(1.6e9, 2f64.powi(-16));
}

/// Ranges do not narrow where rows are removed, and other cuts leave rounding errors of them.
#[test]
fn targets_are_constant_after_other_rows_are_removed() {
    let (map, (x, y)) = (trigonometric::<f64>(10, 1.0), data::<f64>(300));
    let noise = |i: usize| 1e3 * ((i * i) as f64).sin();
    for constant in [0.3, -2_459_000.5] {
        let column = |i: usize| if i < 100 { constant } else { constant + noise(i) };
        let both = concatenate![Axis(1), Array2::from_shape_fn((300, 1), |(i, _)| column(i)), y];
        let mut left = statistics(&map, &x, &both);
        assert!(left.spectrum().unwrap().posterior(0.1).unwrap().noise()[0] > 1e3);
        for start in (100..300).step_by(7) {
            let rows = s![start..300.min(start + 7), ..];
            left.downdate(start as u64, x.slice(rows), both.slice(rows)).unwrap();
        }
        let spectrum = left.spectrum().unwrap();
        let posterior = spectrum.posterior(0.1).unwrap();
        assert_eq!(posterior.noise()[0], 0.0);
        let b = posterior.model().intercepts()[0];
        assert!((b - constant).abs() < 1e-9 && posterior.model().weights().row(0).iter().all(|w| *w == 0.0));
        let rows = s![..100, ..];
        let alone = statistics(&map, &x.slice(rows).to_owned(), &y.slice(rows).to_owned());
        let (a, b) =
            (alone.spectrum().unwrap().log_evidence(0.1).unwrap(), spectrum.log_evidence(0.1).unwrap());
        assert!((a - b).abs() < 1e-6 * a.abs(), "{a} {b}");
    }
}

#[test]
fn constant_targets_of_a_kernel_do_not_choose() {
    let (x, y) = data::<f64>(60);
    let gram = Gaussian::new(1.0).unwrap().gram(&x, &x).unwrap();
    let alone = KernelRidge::spectrum(&gram, &y).unwrap();
    for constant in [&[0.0][..], &[-2_459_000.5], &[0.3, 0.1 + 0.2]] {
        let column = Array2::from_shape_fn((60, 1), |(i, _)| constant[i % constant.len()]);
        let both = concatenate![Axis(1), column, y];
        let with = KernelRidge::spectrum(&gram, &both).unwrap();
        for criterion in [Criterion::LogEvidence, Criterion::GeneralisedCrossValidation] {
            let [a, b] = [&alone, &with].map(|spectrum| spectrum.errors(&criterion, &LAMBDAS).unwrap());
            assert!(a == b && a.iter().all(|error| error.is_finite()), "{a:?} {b:?}");
        }
        let predicted = with.model(0.1).unwrap().predict_from_gram(&gram).unwrap();
        assert!(predicted.column(0).iter().all(|v| (v - constant[0]).abs() <= 1e-15 * constant[0].abs()));
    }
}

/// Classes are chosen among by those that have rows.
#[test]
fn a_class_without_rows_does_not_choose() {
    let (x, _) = data::<f64>(300);
    let labels: Vec<usize> = x.rows().into_iter().map(|x| usize::from(x[0] > x[1] * x[2])).collect();
    let search = |classes: usize| {
        let omega = Orthogonal.draw(3, 24, 3).unwrap();
        let search = RidgeSearch::new(omega, |omega, ell| Trigonometric.gaussian(omega, ell));
        search
            .with_criterion(Criterion::LogEvidence)
            .fit(&x, Targets::of_labels(&labels, classes).unwrap())
            .unwrap()
    };
    let (two, three) = (search(2), search(3));
    assert!(three.error().is_finite());
    assert_eq!(three.best().lengthscale, two.best().lengthscale);
    assert_eq!((three.lambda(), three.error()), (two.lambda(), two.error()));
    // Rows that are taken out again leave a class without any.
    let mut statistics = RidgeStatistics::new(trigonometric::<f64>(10, 1.0), 2).unwrap();
    statistics.update(x.slice(s![..200, ..]), &labels[..200].iter().map(|_| 0).collect::<Vec<_>>()).unwrap();
    let ones = Array2::from_shape_fn((100, 2), |(_, j)| j as f64);
    statistics.update(x.slice(s![200.., ..]), &ones).unwrap();
    statistics.downdate(200, x.slice(s![200.., ..]), &ones).unwrap();
    assert_eq!(statistics.spectrum().unwrap().log_evidence(0.1).unwrap(), 0.0);
}

/// The documented formula, for weights of any sum; infinite where there are no degrees of freedom left.
#[test]
fn cross_validation_with_weights_that_do_not_add_up_to_the_rows() {
    let n = 25;
    let (map, (x, y)) = (trigonometric::<f64>(20, 1.0), data::<f64>(n));
    let z = features(&map, &x);
    for weight in [0.1, 0.5, 1.0, 7.0] {
        let w = Array1::from_elem(n, weight);
        let mut statistics = RidgeStatistics::new(map.clone(), 2).unwrap();
        statistics.update(&x, weigh(&y, &w)).unwrap();
        let spectrum = statistics.spectrum().unwrap();
        for lambda in [1e-3, 0.1, 1.0, 5.0] {
            let error = spectrum.errors(&Criterion::GeneralisedCrossValidation, &[lambda]).unwrap()[0];
            let (beta, b) = naive(&z, &y, &w, (lambda, true));
            let residuals = (z.dot(&beta) + &b - &y).mapv(|e| e * e).sum() / n as f64;
            let left = 1.0 - spectrum.degrees_of_freedom(lambda).unwrap() / w.sum();
            let expected = if left > 0.0 { residuals / (left * left) } else { f64::INFINITY };
            let near = error == expected || (error / expected - 1.0).abs() < 1e-6;
            assert!(near, "{weight}, {lambda}: {error} instead of {expected}");
        }
    }
}

/// In `f32`, means beside which rounding would lose what differs.
#[test]
fn kernel_ridge_regression_far_from_zero() {
    let (x, y) = wave::<f32>(100, 0.25);
    let gram = Gaussian::new(0.5f32).unwrap().gram(&x, &x).unwrap();
    let fit = |offset: f64| {
        let y = y.mapv(|y| (y + offset) as f32);
        KernelRidge::fit(&gram, &y, 0.1).unwrap().coefficients().mapv(f64::from)
    };
    assert!(distance(&fit(2_459_000.5), &fit(0.0)) < 1e-4);
}

/// Few rows of `f32` and many features: where λ is small, numbers are those of `f64`, or refused.
#[test]
fn what_single_precision_cannot_tell_is_refused() {
    for (n, m) in [(8, 40), (15, 40), (20, 150), (200, 40)] {
        let (x, y) = data::<f32>(n);
        let noise = |(i, j): (usize, usize)| ((i * 7919 + j * 31) % 101) as f32 / 500.0;
        for y in [y.clone(), &y + &Array2::from_shape_fn((n, 2), noise)] {
            let narrow = statistics(&trigonometric::<f32>(m, 1.0), &x, &y).spectrum().unwrap();
            let (x, y) = (x.mapv(f64::from), y.mapv(f64::from));
            let wide = statistics(&trigonometric::<f64>(m, 1.0), &x, &y).spectrum().unwrap();
            let lambdas: Vec<f64> = (0..40).map(|k| narrow.resolution() * 1.01 * 1.5f64.powi(k)).collect();
            let (mut known, mut chosen) = (0, 0);
            for lambda in lambdas {
                let numbers =
                    |criterion: Criterion<'_, f32>| narrow.errors(&criterion, &[lambda]).unwrap()[0];
                let [generalised, evidence] =
                    [numbers(Criterion::GeneralisedCrossValidation), numbers(Criterion::LogEvidence)];
                let exact = wide.errors(&Criterion::GeneralisedCrossValidation, &[lambda]).unwrap()[0];
                if generalised.is_finite() {
                    assert!(
                        (generalised / exact - 1.0).abs() < 0.1,
                        "{n} {m} {lambda:e}: {generalised} {exact}"
                    );
                    chosen += 1;
                }
                match narrow.posterior(lambda) {
                    Ok(posterior) => {
                        let exact = wide.posterior(lambda).unwrap();
                        for (a, b) in posterior.noise().iter().zip(exact.noise()) {
                            assert!((a / b - 1.0).abs() < 0.05, "{n} {m} {lambda:e}: {a} {b}");
                        }
                        let exact = -wide.log_evidence(lambda).unwrap();
                        assert!((evidence - exact).abs() < 0.05 * n as f64, "{lambda:e}: {evidence} {exact}");
                        known += 1;
                    }
                    Err(error) => {
                        assert!(matches!(error, Error::Singular { least, .. } if least > lambda), "{error}");
                        assert_eq!(evidence, f64::INFINITY);
                    }
                }
            }
            assert!(known >= 15 && chosen >= 5, "{n} {m}: {known} {chosen}");
        }
    }
}

/// What remains of a target after other rows were removed in other cuts is 0 exactly: there is nothing to learn, and no error.
#[test]
fn zeros_that_remain_are_constant() {
    let (map, (x, y)) = (trigonometric::<f64>(10, 1.0), data::<f64>(90));
    for intercept in [true, false] {
        let y = Array2::from_shape_fn((90, 1), |(i, _)| if i < 40 { 0.0 } else { 7.3 * y[[i, 0]] });
        let mut left = RidgeStatistics::new(map.clone(), 1).unwrap();
        left = if intercept { left } else { left.without_intercept() };
        left.update(&x, &y).unwrap();
        for i in 40..90 {
            let row = s![i..i + 1, ..];
            left.downdate(i as u64, x.slice(row), y.slice(row)).unwrap();
        }
        let model = left.solve(0.1).unwrap();
        assert!(model.weights().iter().all(|w| *w == 0.0) && model.intercepts()[0].abs() < 1e-12);
    }
}

/// Values that mark what is missing, and other outliers, are removed one by one: what remains is right, or refused.
fn outliers_are_removed<T: Real>(tolerance: f64) {
    let (map, (x, y)) = (trigonometric::<T>(10, 1.0), data::<T>(60));
    let rows = s![..59, ..];
    let (few, fewer) = (x.slice(rows).to_owned(), y.slice(rows).to_owned());
    let (mut right, mut refused) = (0, 0);
    for offset in [0.0, 1e3] {
        let with_offset = |y: &Array2<T>| y.mapv(|y| T::narrow(y.widen() + offset));
        let alone = statistics(&map, &few, &with_offset(&fewer));
        let (expected, error) = (alone.solve(0.1).unwrap(), gcv(&alone));
        for outlier in [1e4, 1e6, 1e8, 1e10, 1e13, 1e18, 1e30] {
            let mut y = with_offset(&y);
            y[[59, 0]] = T::narrow(outlier);
            let mut left = statistics(&map, &x, &y);
            left.downdate(59, x.slice(s![59.., ..]), y.slice(s![59.., ..])).unwrap();
            let Ok(model) = left.solve(0.1) else {
                assert!(outlier > 1e9);
                refused += 1;
                continue;
            };
            right += 1;
            let [a, b] = [&model, &expected].map(|model| model.predict(&few).unwrap());
            let near = |(a, b): (&T, &T)| (a.widen() - b.widen()).abs() < tolerance.max(1e-13 * outlier);
            assert!(a.iter().zip(&b).all(near), "{offset} {outlier}");
            assert!((gcv(&left) / error - 1.0).abs() < 1e-3, "{offset} {outlier}: {} {error}", gcv(&left));
        }
    }
    assert!(right >= 6 && refused >= 4, "{right} {refused}");
}

fn gcv<T: Real>(statistics: &RidgeStatistics<T>) -> f64 {
    statistics.spectrum().unwrap().errors(&Criterion::GeneralisedCrossValidation, &[0.1]).unwrap()[0]
}

#[test]
fn outliers_that_are_removed_leave_no_trace() {
    outliers_are_removed::<f64>(1e-9);
    outliers_are_removed::<f32>(1e-3);
}
