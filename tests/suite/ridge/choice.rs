//! The choice of λ: leave-one-out against refitting, cross-validation and held-out errors against their definitions.

use ndarray::{Array1, Array2, Axis, s};
use random_features::apply::{Criterion, KernelRidge, RidgeSearch, RidgeStatistics, Standardisation};
use random_features::kernel::{Gaussian, Kernel};
use random_features::{Error, Map, Targets};

use super::models::blocks;
use super::{data, features, naive, statistics, trigonometric, weights};
use crate::common::weigh;

const LAMBDAS: [f64; 4] = [1e-4, 1e-2, 1.0, 100.0];

/// Mean squared errors over all targets.
fn mean_squared(y: &Array2<f64>, predicted: &Array2<f64>, w: &Array1<f64>) -> f64 {
    let squares = (y - predicted).mapv(|e| e * e).sum_axis(Axis(1));
    squares.dot(w) / w.sum()
}

#[test]
fn leave_one_out_is_refitting_without_each_row() {
    left_out(&trigonometric(15, 1.0));
    // Blocks with large scales, and absent from some rows.
    left_out(&blocks());
}

fn left_out(map: &Map<f64>) {
    let n = 60;
    let (x, y) = data::<f64>(n);
    let z = features(map, &x);
    for intercept in [true, false] {
        for w in [Array1::ones(n), weights(n)] {
            let mut statistics = RidgeStatistics::new(map.clone(), 2).unwrap();
            statistics.update(&x, weigh(&y, &w)).unwrap();
            let statistics = if intercept { statistics } else { statistics.without_intercept() };
            let left_out = Criterion::leave_one_out(&x, weigh(&y, &w));
            let errors = statistics.spectrum().unwrap().errors(&left_out, &LAMBDAS).unwrap();
            for (lambda, error) in LAMBDAS.iter().zip(errors) {
                let mut predicted = Array2::zeros((n, 2));
                for i in 0..n {
                    let rest: Vec<usize> = (0..n).filter(|k| *k != i).collect();
                    let (z_rest, y_rest) = (z.select(Axis(0), &rest), y.select(Axis(0), &rest));
                    let w_rest = w.select(Axis(0), &rest);
                    let (beta, b) = naive(&z_rest, &y_rest, &w_rest, (*lambda, intercept));
                    predicted.row_mut(i).assign(&(z.row(i).dot(&beta) + b));
                }
                let refitted = mean_squared(&y, &predicted, &w);
                assert!((error / refitted - 1.0).abs() < 1e-7, "λ = {lambda}: {error} against {refitted}");
            }
        }
    }
}

#[test]
fn generalised_cross_validation_is_its_definition() {
    let n = 200;
    let (map, (x, y), w) = (trigonometric::<f64>(20, 1.0), data::<f64>(n), weights(n));
    let z = features(&map, &x);
    let mut statistics = RidgeStatistics::new(map, 2).unwrap();
    statistics.update(&x, weigh(&y, &w)).unwrap();
    let spectrum = statistics.spectrum().unwrap();
    let errors = spectrum.errors(&Criterion::GeneralisedCrossValidation, &LAMBDAS).unwrap();
    for (lambda, error) in LAMBDAS.iter().zip(errors) {
        let (beta, b) = naive(&z, &y, &w, (*lambda, true));
        // The trace of the matrix that takes targets to predictions, a unit target after the other.
        let trace = (0..n).map(|i| {
            let unit = Array2::from_shape_fn((n, 1), |(k, _)| f64::from(u8::from(k == i)));
            let (beta, b) = naive(&z, &unit, &w, (*lambda, true));
            z.row(i).dot(&beta)[0] + b[0]
        });
        let trace: f64 = trace.sum();
        assert!((trace - spectrum.degrees_of_freedom(*lambda).unwrap()).abs() < 1e-7);
        let expected = mean_squared(&y, &(z.dot(&beta) + &b), &w) / (1.0 - trace / w.sum()).powi(2);
        assert!((error / expected - 1.0).abs() < 1e-6, "λ = {lambda}: {error} against {expected}");
    }
}

#[test]
fn held_out_errors_are_those_of_the_models() {
    let (map, (x, y)) = (trigonometric::<f64>(20, 1.0), data::<f64>(400));
    let (train, test) = (s![..300, ..], s![300.., ..]);
    let (x_test, y_test) = (x.slice(test).to_owned(), y.slice(test).to_owned());
    let statistics = statistics(&map, &x.slice(train).to_owned(), &y.slice(train).to_owned());
    let spectrum = statistics.spectrum().unwrap();
    let errors = spectrum.errors(&Criterion::held_out(&x_test, &y_test), &LAMBDAS).unwrap();
    for (lambda, error) in LAMBDAS.iter().zip(&errors) {
        let predicted = statistics.solve(*lambda).unwrap().predict(&x_test).unwrap();
        let expected = mean_squared(&y_test, &predicted, &Array1::ones(100));
        assert!((error / expected - 1.0).abs() < 1e-8, "λ = {lambda}");
    }
    let least = errors.iter().copied().fold(f64::INFINITY, f64::min);
    let best = LAMBDAS[errors.iter().position(|error| *error == least).unwrap()];
    let choice = spectrum.choose(&Criterion::held_out(&x_test, &y_test), &LAMBDAS).unwrap();
    assert_eq!(choice, (best, least));
    // The λ to choose from go over all eigenvalues.
    let lambdas = spectrum.lambdas();
    assert_eq!(lambdas[0], spectrum.eigenvalues().fold(0.0, |a: f64, s| a.max(*s)));
    assert!(lambdas.windows(2).all(|pair| (pair[0] / pair[1] - 10f64.sqrt()).abs() < 1e-12));
    let last = *lambdas.last().unwrap();
    // The grid ends where posteriors do.
    assert!(last > spectrum.resolution() && spectrum.posterior(last).is_ok());
    assert!(lambdas.len() == 31 || spectrum.posterior(last / 4.0).is_err());
}

#[test]
fn f32_points_choose_the_same() {
    let (x, y) = data::<f32>(5000);
    let (wide, y_wide) = (x.mapv(f64::from), y.mapv(f64::from));
    let narrow = statistics(&trigonometric::<f32>(40, 1.0), &x, &y).spectrum().unwrap();
    let exact = statistics(&trigonometric::<f64>(40, 1.0), &wide, &y_wide).spectrum().unwrap();
    let a = narrow.errors(&Criterion::leave_one_out(&x, &y), &LAMBDAS[1..]).unwrap();
    let b = exact.errors(&Criterion::leave_one_out(&wide, &y_wide), &LAMBDAS[1..]).unwrap();
    assert!(a.iter().zip(&b).all(|(a, b)| (a / b - 1.0).abs() < 1e-2), "{a:?} {b:?}");
}

#[test]
fn criteria_standardise_their_points() {
    let (map, (x, y)) = (trigonometric::<f64>(15, 1.0), data::<f64>(200));
    let raw = &x * 40.0 + 300.0;
    let inputs = Standardisation::of(&raw).unwrap();
    let plain = statistics(&map, &inputs.apply(&raw).unwrap(), &y).spectrum().unwrap();
    let mut statistics = RidgeStatistics::new(map, 2).unwrap().with_standardisation(inputs.clone()).unwrap();
    statistics.update(&raw, &y).unwrap();
    let spectrum = statistics.spectrum().unwrap();
    let applied = inputs.apply(&raw).unwrap();
    assert_eq!(
        spectrum.errors(&Criterion::leave_one_out(&raw, &y), &LAMBDAS).unwrap(),
        plain.errors(&Criterion::leave_one_out(&applied, &y), &LAMBDAS).unwrap()
    );
}

/// Runs of points one after the other on one thread, with a block that is absent from some of them.
#[test]
fn held_out_points_without_a_block() {
    let (map, (x, y)) = (blocks(), data::<f64>(700));
    let statistics = statistics(&map, &x, &y);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let spectrum = statistics.spectrum().unwrap();
    let errors = pool.install(|| spectrum.errors(&Criterion::held_out(&x, &y), &LAMBDAS)).unwrap();
    for (lambda, error) in LAMBDAS.iter().zip(&errors) {
        let predicted = statistics.solve(*lambda).unwrap().predict(&x).unwrap();
        let expected = mean_squared(&y, &predicted, &Array1::ones(700));
        assert!((error / expected - 1.0).abs() < 1e-8, "λ = {lambda}");
    }
}

#[test]
fn of_equal_errors_the_largest_lambda() {
    let (map, (x, y)) = (trigonometric::<f64>(15, 1.0), data::<f64>(100));
    let zeros = &y * 0.0;
    let spectrum = statistics(&map, &x, &zeros).spectrum().unwrap();
    for criterion in [Criterion::GeneralisedCrossValidation, Criterion::leave_one_out(&x, &zeros)] {
        assert_eq!(spectrum.errors(&criterion, &LAMBDAS).unwrap(), [0.0; 4]);
        assert_eq!(spectrum.choose(&criterion, &[1.0, 100.0, 0.01]).unwrap().0, 100.0);
    }
}

/// Where the fit has as many degrees of freedom as there are points, nothing is known of errors at others.
#[test]
fn no_degrees_of_freedom_left_is_an_infinite_error() {
    let (map, (x, y)) = (trigonometric::<f64>(15, 1.0), data::<f64>(1));
    let spectrum = statistics(&map, &x, &y).spectrum().unwrap();
    for criterion in [Criterion::GeneralisedCrossValidation, Criterion::leave_one_out(&x, &y)] {
        assert_eq!(spectrum.errors(&criterion, &[1.0]).unwrap(), [f64::INFINITY]);
    }
    // Rounding in f32 adds eigenvalues to the nine that ten centred points have.
    let (x, y) = data::<f32>(10);
    let spectrum = statistics(&trigonometric::<f32>(150, 1.0), &x, &y).spectrum().unwrap();
    assert!(spectrum.eigenvalues().iter().all(|s| *s >= 0.0));
    let lambda = 1.1 * spectrum.resolution();
    assert!(spectrum.degrees_of_freedom(lambda).unwrap() > 10.0);
    // What is left of ten rows is next to nothing: an error above the variance of the targets.
    let errors = spectrum.errors(&Criterion::GeneralisedCrossValidation, &[lambda]).unwrap();
    let centred = &y - &y.mean_axis(Axis(0)).unwrap();
    let variance = centred.mapv(|y| f64::from(y * y)).sum() / 10.0;
    assert!(errors[0] > variance, "{errors:?}, {variance}");
}

#[test]
fn criteria_refuse_what_models_refuse() {
    let (map, (x, y)) = (trigonometric::<f64>(40, 1.0), data::<f64>(50));
    let spectrum = statistics(&map, &x, &y).spectrum().unwrap();
    let mut w = Array1::ones(50);
    for criterion in [Criterion::GeneralisedCrossValidation, Criterion::leave_one_out(&x, &y)] {
        assert!(matches!(spectrum.errors(&criterion, &[1.0, -1.0]), Err(Error::Parameter { .. })));
        assert!(matches!(spectrum.errors(&criterion, &[1.0, 0.0]), Err(Error::Singular { .. })));
    }
    for wrong in [-1.0, f64::NAN, f64::INFINITY] {
        w[7] = wrong;
        let error = Targets::from(&y).with_weights(&w).unwrap_err();
        assert!(matches!(error, Error::Entry { row: 7, .. }), "{error}");
    }
    w.fill(0.0);
    let held_out = Criterion::held_out(&x, weigh(&y, &w));
    assert!(matches!(spectrum.errors(&held_out, &[1.0]), Err(Error::NoData { .. })));
}

/// Weights say how often a row counts: rows of weight 0 are not there, and a row of weight 2 is there twice.
#[test]
fn weights_are_counts_of_rows() {
    let (map, (x, y)) = (trigonometric::<f64>(20, 1.0), data::<f64>(60));
    let noise = |(i, j): (usize, usize)| ((i * 7919 + j * 31) % 101) as f64 / 50.0 - 1.0;
    let y = y + Array2::from_shape_fn((60, 2), noise);
    let few = statistics(&map, &x, &y);
    let generalised = |statistics: &RidgeStatistics<f64>| {
        let spectrum = statistics.spectrum().unwrap();
        spectrum.errors(&Criterion::GeneralisedCrossValidation, &LAMBDAS).unwrap()
    };
    let close = |a: &[f64], b: &[f64]| {
        assert!(a.iter().zip(b).all(|(a, b)| (a / b - 1.0).abs() < 1e-9), "{a:?} instead of {b:?}");
    };

    let (absent, zeros) = (data::<f64>(5000), Array1::zeros(5000));
    let mut padded = few.clone();
    padded.update(&absent.0, weigh(&absent.1, &zeros)).unwrap();
    close(&generalised(&padded), &generalised(&few));

    let mut twice = few.clone();
    twice.update(&x, &y).unwrap();
    let mut weighted = RidgeStatistics::new(map, 2).unwrap();
    weighted.update(&x, weigh(&y, &Array1::from_elem(60, 2.0))).unwrap();
    close(&generalised(&weighted), &generalised(&twice));
    // Taken out again, a share of the weight is not there either.
    weighted.downdate(0, &x, weigh(&y, &Array1::from_elem(60, 2.0))).unwrap();
    weighted.update(&x, weigh(&y, &Array1::ones(60))).unwrap();
    close(&generalised(&weighted), &generalised(&few));
}

/// Each row is left out of the sums in which it was counted: other rows are refused, in another order they are the same.
#[test]
fn rows_are_left_out_of_their_own_sums() {
    let (map, (x, y), w) = (trigonometric::<f64>(15, 1.0), data::<f64>(200), weights(200));
    let mut weighted = RidgeStatistics::new(map, 2).unwrap();
    weighted.update(&x, weigh(&y, &w)).unwrap();
    let spectra = [weighted.spectrum().unwrap(), weighted.without_intercept().spectrum().unwrap()];
    for spectrum in &spectra {
        let errors = |x: &Array2<f64>, y: &Array2<f64>, w: Option<&Array1<f64>>| {
            let targets = Targets::from(y);
            let targets = match w {
                Some(w) => targets.with_weights(w)?,
                None => targets,
            };
            spectrum.errors(&Criterion::leave_one_out(x, targets), &LAMBDAS)
        };
        let expected = errors(&x, &y, Some(&w)).unwrap();
        let backwards = errors(
            &x.slice(s![..;-1, ..]).to_owned(),
            &y.slice(s![..;-1, ..]).to_owned(),
            Some(&w.slice(s![..;-1]).to_owned()),
        );
        let near = |(a, b): (&f64, &f64)| (a / b - 1.0).abs() < 1e-9;
        assert!(backwards.unwrap().iter().zip(&expected).all(near));

        let head = s![..199, ..];
        let fewer = w.slice(s![..199]).to_owned();
        let refused = errors(&x.slice(head).to_owned(), &y.slice(head).to_owned(), Some(&fewer)).unwrap_err();
        assert!(matches!(refused, Error::Shape { expected: 200, found: 199, .. }), "{refused}");
        let (mut moved, mut spread) = (y.clone(), y.clone());
        moved[[17, 1]] += 0.01;
        // The sums are the same, those of squares are not.
        (spread[[3, 0]], spread[[4, 0]]) = (y[[3, 0]] + 0.1 / w[3], y[[4, 0]] - 0.1 / w[4]);
        for (y, w, word) in [
            (&y, None, "the sum of the weights"),
            (&moved, Some(&w), "the sum of the targets"),
            (&spread, Some(&w), "the sum of the squared targets"),
        ] {
            let refused = errors(&x, y, w).unwrap_err().to_string();
            assert!(refused.starts_with(word) && refused.contains("the training data"), "{refused}");
        }
    }
}

/// With weights so large that the rounding of eigenvalues is far above 1, errors are those of the residuals, which it hardly changes.
#[test]
fn large_weights_have_errors() {
    let (map, (x, y)) = (trigonometric::<f64>(15, 1.0), data::<f64>(200));
    let (lambda, w) = (2f64.powi(100), Array1::from_elem(200, 2f64.powi(100)));
    let mut statistics = RidgeStatistics::new(map, 2).unwrap();
    statistics.update(&x, weigh(&y, &w)).unwrap();
    let spectrum = statistics.spectrum().unwrap();
    assert!(spectrum.resolution() > 1.0);
    let errors = spectrum.errors(&Criterion::GeneralisedCrossValidation, &[lambda]).unwrap();
    let predicted = statistics.solve(lambda).unwrap().predict(&x).unwrap();
    // So many rows leave all of their degrees of freedom.
    let expected = mean_squared(&y, &predicted, &w);
    assert!((errors[0] / expected - 1.0).abs() < 1e-9, "{errors:?} against {expected}");
}

/// Each place serves the criteria whose rows it knows, and names what serves instead of the others.
#[test]
fn criteria_are_served_or_refused_by_name() {
    let (x, y) = data::<f64>(60);
    let features = statistics(&trigonometric::<f64>(8, 1.0), &x, &y).spectrum().unwrap();
    let gram = Gaussian::new(1.0).unwrap().gram(&x, &x).unwrap();
    let gram = KernelRidge::spectrum(&gram, &y).unwrap();
    let groups: Vec<usize> = (0..60).map(|i| i / 4).collect();
    let half = |start: usize| {
        let rows = s![start..start + 30, ..];
        let empty = RidgeStatistics::new(trigonometric::<f64>(8, 1.0), 2).unwrap();
        let mut half = empty.with_first_row(start as u64).unwrap();
        half.update(x.slice(rows), y.slice(rows)).unwrap();
        half
    };
    let halves = [half(0), half(30)];
    let search = |criterion| {
        RidgeSearch::gaussian(3, 8, 1).unwrap().with_lengthscales([1.0]).with_criterion(criterion).fit(&x, &y)
    };
    let all = || {
        [
            (Criterion::LeaveOneOut, [false, true, true], "Criterion::leave_one_out"),
            (Criterion::leave_one_out(&x, &y), [true, false, false], "LeaveOneOut"),
            (Criterion::GeneralisedCrossValidation, [true; 3], ""),
            (Criterion::LogEvidence, [true; 3], ""),
            (Criterion::LogEvidenceWithNoise(1.0), [true; 3], ""),
            (Criterion::LeaveGroupsOut(&groups), [false, false, true], "Criterion::leave_groups_out"),
            (Criterion::leave_groups_out(&x, &y, &groups), [true, false, false], "LeaveGroupsOut"),
            (Criterion::held_out(&x, &y), [true, false, true], ""),
            (Criterion::HeldOutShare(0.3), [false, false, true], "Criterion::held_out"),
            (Criterion::Folds(4), [false, false, true], "Criterion::folds_of"),
            (Criterion::folds_of(&halves), [true, false, false], "Folds"),
            (Criterion::Forward { blocks: 4, gap: 1 }, [false, false, true], "Criterion::forward_of"),
            (Criterion::forward_of(&halves, 0), [true, false, false], "Forward"),
        ]
    };
    let refused = |found: Result<(), Error>, served: bool| match found {
        Ok(()) if served => String::new(),
        Err(Error::Unsupported { what }) if !served => what.to_string(),
        other => panic!("{served}: {other:?}"),
    };
    for (criterion, [by_features, by_gram, by_search], instead) in all() {
        let of_features = refused(features.errors(&criterion, &[1.0]).map(drop), by_features);
        assert!(by_features || of_features.contains(instead), "{of_features}");
        refused(gram.errors(&criterion, &[1.0]).map(drop), by_gram);
        let of_search = refused(search(criterion).map(drop), by_search);
        assert!(by_search || of_search.contains(instead), "{of_search}");
    }
}
