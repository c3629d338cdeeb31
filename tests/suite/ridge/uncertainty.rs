//! Evidence and variances: against dense Gaussian processes, by coverage over draws of exact ones, and far from the data.

use ndarray::{Array1, Array2, Axis, concatenate, s};
use rand::RngExt;
use rand_distr::StandardNormal;
use random_features::apply::{
    Criterion, KernelRidge, Prediction, RidgeGrid, RidgeSearch, RidgeSpectrum, RidgeStatistics, RidgeWarning,
};
use random_features::frequency::Orthogonal;
use random_features::kernel::{Activation, Gaussian, Kernel};
use random_features::linalg::Backend;
use random_features::workbench::factors::Factorise;
use random_features::{Error, Map, Nonlinear, Real, Targets, Trigonometric, rng};

use super::{data, features, statistics, trigonometric};
use crate::common::weigh;

/// Log densities of targets, and means and variances at other points, of a Gaussian process with covariance σ_f² K̂ and noise
/// λσ_f², by dense matrices; with a flat prior of the intercept, if there is one.
struct Dense {
    evidence: f64,
    mean: Array2<f64>,
    /// For σ² = 1.
    variance: Array1<f64>,
    /// σ² of the largest likelihood, for each target.
    noise: Vec<f64>,
}

/// For features of training points, z, and of others, with targets.
fn dense(z: &Array2<f64>, other: &Array2<f64>, y: &Array2<f64>, (lambda, intercept): (f64, bool)) -> Dense {
    let n = z.nrows();
    let covariance = z.dot(&z.t()) / lambda + Array2::<f64>::eye(n);
    let factor = Backend::default().cholesky(&covariance).unwrap();
    let ones = Array2::<f64>::ones((n, 1));
    let solved = factor.solve(&ones).unwrap();
    let total = solved.sum();
    // b by generalised least squares; the density of what is left of its contrasts.
    let b: Array1<f64> =
        if intercept { y.t().dot(&solved.column(0)) / total } else { Array1::zeros(y.ncols()) };
    let left = y - &b;
    let weights = factor.solve(&left).unwrap();
    let freedom = n as f64 - f64::from(u8::from(intercept));
    let noise: Vec<f64> = (0..y.ncols()).map(|j| left.column(j).dot(&weights.column(j)) / freedom).collect();
    // |H C Hᵀ| = |C| 1ᵀC⁻¹1 / n for orthonormal contrasts H.
    let determinant = factor.log_determinant() + if intercept { (total / n as f64).ln() } else { 0.0 };
    let of_target =
        |noise: &f64| -0.5 * (freedom * ((2.0 * std::f64::consts::PI * noise).ln() + 1.0) + determinant);
    let cross = other.dot(&z.t()) / lambda;
    let reduced = factor.solve(&cross.t().to_owned()).unwrap();
    let variance = Array1::from_shape_fn(other.nrows(), |i| {
        let own = other.row(i).dot(&other.row(i)) / lambda - cross.row(i).dot(&reduced.column(i));
        own + if intercept { (1.0 - reduced.column(i).sum()).powi(2) / total } else { 0.0 }
    });
    Dense { evidence: noise.iter().map(of_target).sum(), mean: cross.dot(&weights) + &b, variance, noise }
}

fn spectrum<T: Real>(map: &Map<T>, x: &Array2<T>, y: &Array2<T>, intercept: bool) -> RidgeSpectrum<T> {
    let statistics = statistics(map, x, y);
    let statistics = if intercept { statistics } else { statistics.without_intercept() };
    statistics.spectrum().unwrap()
}

fn close(a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() <= tolerance * (1.0 + b.abs()), "{a} is not {b}");
}

#[test]
fn evidence_and_variances_are_those_of_a_gaussian_process() {
    let map = trigonometric::<f64>(15, 1.0);
    let (x, y) = data::<f64>(50);
    let (train, test) = (x.slice(s![..40, ..]).to_owned(), x.slice(s![40.., ..]).to_owned());
    let targets = y.slice(s![..40, ..]).to_owned();
    let (z, other) = (features(&map, &train), features(&map, &test));
    for intercept in [true, false] {
        let spectrum = spectrum(&map, &train, &targets, intercept);
        for lambda in [1e-3, 0.1, 10.0] {
            let expected = dense(&z, &other, &targets, (lambda, intercept));
            close(spectrum.log_evidence(lambda).unwrap(), expected.evidence, 1e-9);
            let posterior = spectrum.posterior(lambda).unwrap();
            assert_eq!(posterior.lambda(), lambda);
            let prediction = posterior.predict(&test).unwrap();
            for j in 0..2 {
                close(posterior.noise()[j], expected.noise[j], 1e-8);
                for i in 0..10 {
                    close(prediction.mean[[i, j]], expected.mean[[i, j]], 1e-8);
                    let variance = expected.noise[j] * expected.variance[i];
                    close(prediction.variance_of_mean[[i, j]] / variance, 1.0, 1e-7);
                }
            }
            let known = posterior.with_noise(&[0.5, 0.0]).unwrap().predict(&test).unwrap();
            close(known.variance_of_mean[[3, 0]], 0.5 * expected.variance[3], 1e-9);
            assert_eq!((known.variance_of_mean[[3, 1]], known.variance_of_targets()[[3, 1]]), (0.0, 0.0));
            assert_eq!(known.variance_of_targets()[[3, 0]], known.variance_of_mean[[3, 0]] + 0.5);
        }
    }
}

#[test]
fn a_weight_is_a_number_of_rows_in_the_evidence() {
    let map = trigonometric::<f64>(10, 1.0);
    let (x, y) = data::<f64>(30);
    let twice = |a: &Array2<f64>| concatenate(Axis(0), &[a.view(), a.slice(s![..10, ..])]).unwrap();
    let mut weighted = RidgeStatistics::new(map.clone(), 2).unwrap();
    let weights = Array1::from_shape_fn(30, |i| if i < 10 { 2.0 } else { 1.0 });
    weighted.update(&x, weigh(&y, &weights)).unwrap();
    let (weighted, repeated) = (weighted.spectrum().unwrap(), spectrum(&map, &twice(&x), &twice(&y), true));
    close(weighted.log_evidence(0.1).unwrap(), repeated.log_evidence(0.1).unwrap(), 1e-10);
}

#[test]
fn the_evidence_is_a_criterion() {
    let spectrum = spectrum(&trigonometric::<f64>(4, 1.0), &data(40).0, &data(40).1, true);
    let lambdas = [1e-3, 1e-2, 1e-1, 1.0];
    let errors = spectrum.errors(&Criterion::LogEvidence, &lambdas).unwrap();
    for (lambda, error) in lambdas.iter().zip(&errors) {
        assert_eq!(*error, -spectrum.log_evidence(*lambda).unwrap());
    }
    let choice = spectrum.choose(&Criterion::LogEvidence, &lambdas).unwrap();
    assert_eq!(choice.1, errors.iter().copied().fold(f64::INFINITY, f64::min));
    let none = Error::Parameter { name: "λ of an evidence", value: 0.0, domain: "positive" };
    assert_eq!(spectrum.log_evidence(0.0).unwrap_err(), none);
    assert!(spectrum.posterior(-1.0).is_err());
}

/// A point of several dimensions or one, n × d.
fn uniform(n: usize, d: usize, side: f64, generator: &mut impl rand::Rng) -> Array2<f64> {
    Array2::from_shape_fn((n, d), |_| side * generator.random::<f64>())
}

/// The share of y within its 90 % interval over sets of 500 points with three targets drawn from the exact Gaussian process, and its
/// standard error over the sets: where the noise is known, and where it is not.
fn coverage(sets: u64, map: impl Fn(u64) -> Map<f64>) -> [(f64, f64); 2] {
    let (n, test, targets, noise, kernel) = (500, 100, 3, 0.05, Gaussian::new(0.5).unwrap());
    let covered: Vec<[f64; 2]> = (0..sets)
        .map(|seed| {
            let mut generator = rng(seed);
            let x = uniform(n + test, 2, 2.0, &mut generator);
            let mut gram = kernel.gram(&x, &x).unwrap();
            gram.diag_mut().mapv_inplace(|v| v + 1e-9);
            let mut normal =
                || Array2::from_shape_fn((n + test, targets), |_| generator.sample(StandardNormal));
            let f = Backend::default().cholesky(&gram).unwrap().lower().dot(&normal());
            let y: Array2<f64> = f + normal() * f64::sqrt(noise);
            let mut statistics = RidgeStatistics::new(map(seed), targets).unwrap().without_intercept();
            statistics.update(x.slice(s![..n, ..]), y.slice(s![..n, ..])).unwrap();
            let spectrum = statistics.spectrum().unwrap();
            let posterior = spectrum.posterior(noise).unwrap();
            [posterior.clone().with_noise(&vec![noise; targets]).unwrap(), posterior].map(|posterior| {
                let (low, high) = posterior.predict(x.slice(s![n.., ..])).unwrap().interval(0.9).unwrap();
                let y = y.slice(s![n.., ..]);
                let within =
                    y.iter().zip(low.iter().zip(&high)).filter(|(y, (low, high))| *low <= *y && *y <= *high);
                within.count() as f64 / (test * targets) as f64
            })
        })
        .collect();
    [0, 1].map(|which| {
        let covered = covered.iter().map(|set| set[which]);
        let mean = covered.clone().sum::<f64>() / sets as f64;
        let variance = covered.map(|c| (c - mean).powi(2)).sum::<f64>() / (sets - 1) as f64;
        (mean, (variance / sets as f64).sqrt())
    })
}

/// Two-sided at 3 standard errors of 30 sets. Of 400 other sets 256 frequencies cover 0.8963 ± 0.0009 where the noise is known and
/// 0.9016 ± 0.0010 where it is not, so that some 4 and 1 of 100 choices of seeds give a false alarm; 1024 cover 0.9000 ± 0.0013.
#[test]
fn intervals_cover_what_they_promise() {
    let map = |seed| Trigonometric.gaussian(Orthogonal.draw(2, 256, seed).unwrap(), 0.5).unwrap();
    for (covered, error) in coverage(30, map) {
        assert!((covered - 0.9).abs() < 3.0 * error, "{covered} ± {error}");
        // A loss of a hundredth would be seen.
        assert!(error < 0.0035, "{error}");
    }
}

/// What the page says of variances far from the data.
#[test]
fn variances_collapse_far_away_unless_landmarks_mend_them() {
    let omega = Orthogonal.draw(1, 30, 3).unwrap();
    let (x, at) =
        (Array2::from_shape_fn((400, 1), |(i, _)| i as f64 / 100.0), ndarray::arr2(&[[1.0], [2.02], [30.0]]));
    let y = x.mapv(|x| (2.0 * x).sin());
    let map: Map<f64> = Trigonometric.gaussian(omega, 0.2).unwrap();
    let (lambda, noise) = (0.01, 0.01);
    let spectrum = spectrum(&map, &x, &y, false);
    let posterior = spectrum.posterior(lambda).unwrap().with_noise(&[noise]).unwrap();
    let plain = posterior.predict(&at).unwrap();
    let freedom = spectrum.degrees_of_freedom(lambda).unwrap();
    // σ_f² is 1.
    let left = 1.0 - freedom / map.feature_dim() as f64;
    assert!(left < 0.75 && (plain.variance_of_mean[[2, 0]] / left - 1.0).abs() < 0.5, "{left}, {plain:?}");
    let landmarks = x.slice(s![..;8, ..]).to_owned();
    let mended = posterior.with_landmarks(&landmarks).unwrap().predict(&at).unwrap();
    assert_eq!(mended.mean, plain.mean);
    assert!((mended.variance_of_mean[[2, 0]] - 1.0).abs() < 1e-9, "{mended:?}");
    for i in [0, 1] {
        let ratio = mended.variance_of_mean[[i, 0]] / plain.variance_of_mean[[i, 0]];
        assert!((0.999..1.01).contains(&ratio), "{ratio}");
    }
    // With an intercept its variance is added: that of a point without features.
    let centred = self::spectrum(&map, &x, &y, true).posterior(lambda).unwrap().with_noise(&[noise]).unwrap();
    let mended = centred.with_landmarks(&landmarks).unwrap().predict(&at).unwrap();
    let none = dense(&features(&map, &x), &Array2::zeros((1, map.feature_dim())), &y, (lambda, true));
    close(mended.variance_of_mean[[2, 0]], 1.0 + noise * none.variance[0], 1e-9);
    // The share that landmarks explain, by definition.
    let kernel = Gaussian::new(0.2).unwrap();
    let near = ndarray::arr2(&[[4.3]]);
    let few = ndarray::arr2(&[[1.0], [4.0]]);
    let k = kernel.gram(&few, &near).unwrap();
    let share = k.column(0).dot(
        &Backend::default().cholesky(&kernel.gram(&few, &few).unwrap()).unwrap().solve(&k).unwrap().column(0),
    );
    let posterior = spectrum.posterior(lambda).unwrap().with_noise(&[noise]).unwrap();
    let own = posterior.predict(&near).unwrap().variance_of_mean[[0, 0]];
    let found = posterior.with_landmarks(&few).unwrap().predict(&near).unwrap().variance_of_mean[[0, 0]];
    close(found, share * own + 1.0 - share, 1e-9);
}

#[test]
fn predictions_of_single_precision_agree_and_nan_stays_in_its_row() {
    let (x, y) = data::<f32>(2000);
    let predict = |map: &Map<f32>, x: &Array2<f32>| -> Prediction<f32> {
        spectrum(map, &data(2000).0, &y, true).posterior(1.0).unwrap().predict(x).unwrap()
    };
    let map = trigonometric::<f32>(15, 1.0);
    let prediction = predict(&map, &x);
    let (wide_x, wide_y) = data::<f64>(2000);
    let wide = spectrum(&trigonometric::<f64>(15, 1.0), &wide_x, &wide_y, true).posterior(1.0).unwrap();
    let expected = wide.predict(&wide_x).unwrap();
    for (a, b) in prediction.variance_of_mean.iter().zip(&expected.variance_of_mean) {
        close(f64::from(*a) / b, 1.0, 2e-3);
    }
    let mut holed = x.slice(s![..100, ..]).to_owned();
    holed[[7, 1]] = f32::NAN;
    let posterior = spectrum(&map, &x, &y, true).posterior(1.0).unwrap();
    let landmarks = x.slice(s![..50, ..]).to_owned();
    for posterior in [posterior.clone(), posterior.with_landmarks(&landmarks).unwrap()] {
        let whole = posterior.predict(x.slice(s![..100, ..])).unwrap();
        let found = posterior.predict(&holed).unwrap();
        for i in 0..100 {
            for j in 0..2 {
                let (a, b) = (found.variance_of_mean[[i, j]], whole.variance_of_mean[[i, j]]);
                assert!(if i == 7 { a.is_nan() && found.mean[[i, j]].is_nan() } else { a == b }, "row {i}");
            }
        }
    }
}

#[test]
fn posteriors_refuse_what_makes_no_sense() {
    let (x, y) = data::<f64>(40);
    let posterior = spectrum(&trigonometric(10, 1.0), &x, &y, true).posterior(0.1).unwrap();
    assert!(matches!(posterior.clone().with_noise(&[0.1]), Err(Error::Shape { .. })));
    assert!(matches!(posterior.clone().with_noise(&[0.1, -1.0]), Err(Error::Entry { row: 1, .. })));
    assert!(matches!(posterior.clone().with_landmarks(&Array2::zeros((0, 3))), Err(Error::NoData { .. })));
    assert!(matches!(posterior.clone().with_landmarks(&Array2::zeros((5, 2))), Err(Error::Shape { .. })));
    let holed = Array2::from_elem((5, 3), f64::NAN);
    assert!(matches!(posterior.clone().with_landmarks(&holed), Err(Error::NotFinite { .. })));
    // Equal landmarks explain what one does.
    let equal = posterior.clone().with_landmarks(&Array2::zeros((5, 3))).unwrap().predict(&x).unwrap();
    let one = posterior.clone().with_landmarks(&Array2::zeros((1, 3))).unwrap().predict(&x).unwrap();
    equal.variance_of_mean.iter().zip(&one.variance_of_mean).for_each(|(a, b)| close(*a, *b, 1e-9));
    let prediction = posterior.predict(&x).unwrap();
    for level in [0.0, 1.0, f64::NAN] {
        assert!(matches!(prediction.interval(level), Err(Error::Parameter { .. })));
    }
    let one_row = RidgeStatistics::new(trigonometric::<f64>(2, 1.0), 2).unwrap();
    let mut one_row = one_row;
    one_row.update(x.slice(s![..1, ..]), y.slice(s![..1, ..])).unwrap();
    assert!(matches!(one_row.spectrum().unwrap().posterior(1.0), Err(Error::Parameter { .. })));
}

/// Where the kernel is 0, landmarks have nothing to explain.
#[test]
fn landmarks_of_a_kernel_that_vanishes() {
    let (x, y) = data::<f64>(60);
    let map = Nonlinear::new(Activation::Relu).build(Orthogonal.draw(3, 20, 1).unwrap(), 1.0).unwrap();
    let posterior = spectrum(&map, &x, &y, true).posterior(0.1).unwrap();
    let at = Array2::zeros((1, 3));
    let plain = posterior.predict(&at).unwrap();
    assert_eq!(
        posterior.with_landmarks(&x).unwrap().predict(&at).unwrap().variance_of_mean,
        plain.variance_of_mean
    );
    let (low, high) = plain.interval(1.0 - 1.1e-16).unwrap();
    assert!(low[[0, 0]].is_finite() && high[[0, 0]].is_finite());
}

#[test]
fn products_and_eigenvectors_are_readable() {
    let map = trigonometric::<f64>(60, 1.0);
    let (x, y) = data::<f64>(300);
    let (statistics, z) = (statistics(&map, &x, &y), features(&map, &x));
    let (products, means) = (statistics.products().unwrap(), statistics.mean_features().unwrap());
    let expected = z.t().dot(&z);
    assert!(products.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-10));
    assert!(means.iter().zip(&z.mean_axis(Axis(0)).unwrap()).all(|(a, b)| (a - b).abs() < 1e-13));
    let spectrum = statistics.spectrum().unwrap();
    let centred =
        &expected - &(means.view().insert_axis(Axis(1)).dot(&means.view().insert_axis(Axis(0))) * 300.0);
    let (values, vectors) = (spectrum.eigenvalues(), spectrum.eigenvectors());
    let left = centred.dot(vectors) - vectors * values;
    assert!(left.iter().all(|v| v.abs() < 1e-9));
}

/// Against [`KernelRidge::fit`] for each λ, and leave-one-out against refitting.
#[test]
fn kernel_ridge_regressions_for_all_lambda() {
    let (x, y) = data::<f64>(40);
    let gram = Gaussian::new(0.8).unwrap().gram(&x, &x).unwrap();
    let spectrum = KernelRidge::spectrum(&gram, &y).unwrap();
    let lambdas = [1e-3, 0.1, 10.0];
    let at = Criterion::LeaveOneOut;
    let left_out = spectrum.errors(&at, &lambdas).unwrap();
    let generalised = spectrum.errors(&Criterion::GeneralisedCrossValidation, &lambdas).unwrap();
    for (k, lambda) in lambdas.into_iter().enumerate() {
        let (model, expected) =
            (spectrum.model(lambda).unwrap(), KernelRidge::fit(&gram, &y, lambda).unwrap());
        for (a, b) in model.coefficients().iter().zip(&expected.coefficients()) {
            close(*a, *b, 1e-9);
        }
        model.intercepts().iter().zip(&expected.intercepts()).for_each(|(a, b)| close(*a, *b, 1e-9));
        let mut error = 0.0;
        for i in 0..40 {
            let rest: Vec<usize> = (0..40).filter(|k| *k != i).collect();
            let own = gram.select(Axis(0), &rest).select(Axis(1), &rest);
            let model = KernelRidge::fit(&own, &y.select(Axis(0), &rest), lambda).unwrap();
            let row = gram.select(Axis(0), &[i]).select(Axis(1), &rest);
            error += (model.predict_from_gram(&row).unwrap() - y.slice(s![i..=i, ..])).mapv(|e| e * e).sum();
        }
        close(left_out[k], error / 40.0, 1e-8);
        let fitted = expected.predict_from_gram(&gram).unwrap();
        let freedom = spectrum.degrees_of_freedom(lambda).unwrap();
        let residual = (fitted - &y).mapv(|e| e * e).sum() / 40.0;
        close(generalised[k], residual / (1.0 - freedom / 40.0).powi(2), 1e-7);
    }
    assert_eq!(spectrum.choose(&at, &spectrum.lambdas()).unwrap().1, {
        let errors = spectrum.errors(&at, &spectrum.lambdas()).unwrap();
        errors.into_iter().fold(f64::INFINITY, f64::min)
    });
    assert!(matches!(spectrum.model(0.0), Err(Error::Singular { .. })));
    assert!(matches!(
        spectrum.errors(&Criterion::held_out(&x, &y), &lambdas),
        Err(Error::Unsupported { .. })
    ));
}

/// With the Gram matrix of the features both spectra are the same regressions.
#[test]
fn both_spectra_agree_on_the_kernel_of_the_features() {
    let map = trigonometric::<f64>(10, 1.0);
    let (x, y) = data::<f64>(60);
    let z = features(&map, &x);
    let (ours, exact) = (spectrum(&map, &x, &y, true), KernelRidge::spectrum(&z.dot(&z.t()), &y).unwrap());
    for lambda in [1e-3, 0.1, 10.0] {
        close(ours.log_evidence(lambda).unwrap(), exact.log_evidence(lambda).unwrap(), 1e-9);
        close(ours.degrees_of_freedom(lambda).unwrap(), exact.degrees_of_freedom(lambda).unwrap(), 1e-9);
        let criterion = Criterion::GeneralisedCrossValidation;
        let errors = [ours.errors(&criterion, &[lambda]), exact.errors(&criterion, &[lambda])];
        let [a, b] = errors.map(|errors| errors.unwrap()[0]);
        close(a, b, 1e-8);
    }
}

/// Where an estimate is indefinite, λ must be above twice what its least eigenvalue lacks.
#[test]
fn indefinite_estimates_need_a_larger_lambda() {
    let (x, y) = data::<f64>(40);
    // Least eigenvalues of next to 0, less 0.9.
    let gram = Gaussian::new(0.8).unwrap().gram(&x, &x).unwrap() - Array2::<f64>::eye(40) * 0.9;
    let spectrum = KernelRidge::spectrum(&gram, &y).unwrap();
    assert!((spectrum.resolution() / 1.8 - 1.0).abs() < 0.01, "{}", spectrum.resolution());
    for few in [1e-3, 1.0, 1.7] {
        let Err(Error::Singular { least, .. }) = spectrum.model(few) else { panic!("{few}") };
        assert!(spectrum.model(least).is_ok(), "{least}");
    }
    assert!(spectrum.model(1.9).is_ok());
}

/// Where an estimate is indefinite, models are those of the equations, and left-out errors those of models without a point.
#[test]
fn indefinite_estimates_are_solved_and_left_out_exactly() {
    let (x, y) = data::<f64>(12);
    let random =
        Array2::from_shape_fn((12, 12), |(i, j)| (0.7 * (i * j) as f64).sin() + 0.2 * (i + j) as f64);
    let gram = Gaussian::new(0.8).unwrap().gram(&x, &x).unwrap() + 0.3 * (&random + &random.t());
    let spectrum = KernelRidge::spectrum(&gram, &y).unwrap();
    let lambda = KernelRidge::fit(&gram, &y, 0.0).unwrap_err();
    let Error::Singular { least, .. } = lambda else { panic!("{lambda}") };
    let lambda = 1.5 * least.max(spectrum.resolution());
    assert!(spectrum.eigenvalues()[0] < -0.05 * lambda, "{}", spectrum.eigenvalues()[0]);
    let (ours, fitted) = (spectrum.model(lambda).unwrap(), KernelRidge::fit(&gram, &y, lambda).unwrap());
    let predicted = [&ours, &fitted].map(|model| model.predict_from_gram(&gram).unwrap());
    predicted[0].iter().zip(&predicted[1]).for_each(|(a, b)| close(*a, *b, 1e-9));
    let without = |i: usize| {
        let rest: Vec<usize> = (0..12).filter(|k| *k != i).collect();
        let rows = gram.select(Axis(0), &rest);
        let model =
            KernelRidge::fit(&rows.select(Axis(1), &rest), &y.select(Axis(0), &rest), lambda).unwrap();
        let own = gram.select(Axis(0), &[i]).select(Axis(1), &rest);
        (model.predict_from_gram(&own).unwrap() - y.row(i)).mapv(|e| e * e).sum()
    };
    let errors = spectrum.errors(&Criterion::LeaveOneOut, &[lambda]).unwrap();
    close(errors[0], (0..12).map(without).sum::<f64>() / 12.0, 1e-8);
}

/// A large λ leaves all of the squares, also where an eigenvalue is just above its rounding error.
fn large_lambda_leaves_all<T: Real>(steps: std::ops::Range<f64>) {
    let targets = [1.0, -1.0, 0.2];
    for (seed, rows) in (0..100).flat_map(|seed| [(seed, 2), (seed, 3)]) {
        let share = rng(seed).random::<f64>();
        let step = 10f64.powf(steps.start + share * (steps.end - steps.start));
        let map = Trigonometric.gaussian(Orthogonal.draw(1, 4, seed).unwrap(), 1.0).unwrap();
        let x = Array2::from_shape_fn((rows, 1), |(i, _)| T::narrow([0.3, 0.3 + step, 1.5][i]));
        let y = Array2::from_shape_fn((rows, 1), |(i, _)| T::narrow(targets[i]));
        let intercept = rows == 3;
        let mean = if intercept { 0.2 / 3.0 } else { 0.0 };
        let square: f64 = targets[..rows].iter().map(|y| (y - mean).powi(2)).sum();
        let spectrum = spectrum::<T>(&map, &x, &y, intercept);
        let noise = spectrum.posterior(1e9).unwrap().noise()[0];
        close(noise, square / 2.0, 1e-6);
        let expected = -((std::f64::consts::PI * square).ln() + 1.0);
        close(spectrum.log_evidence(1e9).unwrap(), expected, 1e-6);
    }
}

#[test]
fn large_lambda_leaves_all_squares() {
    large_lambda_leaves_all::<f32>(-3.5..-2.2);
    large_lambda_leaves_all::<f64>(-7.8..-6.5);
}

/// A search takes no λ for which there is no posterior, or that sums cannot be solved for. The leave-one-out error of the first of these
/// sets falls down to λ = 6.5e-14, where rounding is 1.3e-12.
#[test]
fn searches_choose_lambdas_that_posteriors_take() {
    let mut numbers = rng(29);
    for set in 0..17 {
        let x = Array2::from_shape_simple_fn((300, 2), || 4.0 * numbers.uniform());
        let y = Array1::from_shape_fn(300, |i| {
            (2.0 * x[[i, 0]]).sin() * x[[i, 1]].cos() + 0.2 * numbers.normal()
        });
        let skipped: f64 = (0..2000).map(|_| numbers.uniform()).sum();
        assert!(skipped + (0..1000).map(|_| numbers.normal()).sum::<f64>() > 0.0);
        if set < 14 {
            continue;
        }
        for criterion in [Criterion::LeaveOneOut, Criterion::Folds(5), Criterion::HeldOutShare(0.3)] {
            let search = RidgeSearch::gaussian(2, 128, 7).unwrap().with_criterion(criterion);
            let fit = search.fit(&x, &y).unwrap();
            assert!(fit.posterior().is_ok(), "{fit}");
            let (lambda, text) = (fit.lambda(), fit.to_string());
            assert!(fit.into_statistics().unwrap().solve(lambda).is_ok(), "{text}");
        }
        // Given λ are tried from there on, too.
        let search = RidgeSearch::gaussian(2, 128, 7).unwrap().with_lambdas((0..33).map(|k| 10f64.powi(-k)));
        assert!(search.fit(&x, &y).unwrap().posterior().is_ok());
    }
}

/// Intervals after a search by groups: a warning, unless weights let each group count as one row, and then the coverage that is
/// promised.
#[test]
fn intervals_of_groups_are_warned_of_or_cover() {
    let groups: Vec<usize> = (0..1000).map(|i| i / 10).collect();
    let weights = Array1::from_elem(1000, 0.1);
    let warned = |warnings: &[RidgeWarning]| {
        warnings.iter().any(|w| matches!(w, RidgeWarning::Groups { groups: 100, count } if *count == 1000.0))
    };
    let (mut by_rows, mut by_groups) = (0, 0);
    // Three targets at the same places have errors of their own.
    for seed in 0..7 {
        let mut numbers = rng(seed);
        let place = Array1::from_shape_simple_fn(100, || 4.0 * numbers.uniform());
        let error = Array2::from_shape_simple_fn((100, 3), || 0.5 * numbers.normal());
        let x = Array2::from_shape_fn((1000, 1), |(i, _)| place[groups[i]] + 0.02 * numbers.normal());
        let y = Array2::from_shape_fn((1000, 3), |(i, j)| {
            (2.0 * x[[i, 0]]).sin() + error[[groups[i], j]] + 0.1 * numbers.normal()
        });
        let at = Array2::from_shape_fn((50, 1), |(i, _)| 0.08 * i as f64);
        let covered = |fit: &random_features::apply::RidgeFit<f64>| {
            let prediction = fit.posterior().unwrap().predict(&at).unwrap();
            let (low, high) = prediction.interval_of_mean(0.9).unwrap();
            let inside = |(i, j): &(usize, usize)| {
                (low[[*i, *j]]..high[[*i, *j]]).contains(&(2.0 * at[[*i, 0]]).sin())
            };
            (0..50).flat_map(|i| [(i, 0), (i, 1), (i, 2)]).filter(inside).count()
        };
        let search = || {
            let search = RidgeSearch::gaussian(1, 32, 7).unwrap();
            search.with_criterion(Criterion::LeaveGroupsOut(&groups)).with_lengthscales([0.6])
        };
        let fit = search().fit(&x, &y).unwrap();
        assert!(warned(fit.warnings()) && fit.to_string().contains("100 groups"), "{fit}");
        by_rows += covered(&fit);
        let fit = search().fit(&x, Targets::from(&y).with_weights(&weights).unwrap()).unwrap();
        assert!(!fit.warnings().iter().any(|w| matches!(w, RidgeWarning::Groups { .. })), "{fit}");
        by_groups += covered(&fit);
        // Grids say it too.
        if seed == 0 {
            let mut grid = RidgeGrid::new([fit.model().map().clone()], 3).unwrap();
            grid.update(&x, &y).unwrap();
            let fit = grid.choose(&Criterion::leave_groups_out(&x, &y, &groups), None).unwrap();
            assert!(warned(fit.warnings()), "{fit}");
        }
    }
    let [rows, groups] = [by_rows, by_groups].map(|count| f64::from(count as u32) / 1050.0);
    println!("90 % intervals of groups cover {rows:.3} by rows, {groups:.3} with weights");
    assert!(rows < 0.6 && (0.8..=0.97).contains(&groups), "{rows} {groups}");
}

/// Rows that are given ten times, in groups and with a tenth of the weight, have the posterior of the rows themselves.
#[test]
fn copies_in_groups_with_weights_have_the_posterior_of_the_rows() {
    let (x, y) = data::<f64>(60);
    let (x10, y10) =
        (concatenate(Axis(0), &[x.view(); 10]).unwrap(), concatenate(Axis(0), &[y.view(); 10]).unwrap());
    let (groups, weights) = ((0..600).map(|i| i % 60).collect::<Vec<usize>>(), Array1::from_elem(600, 0.1));
    let search = || RidgeSearch::gaussian(3, 16, 7).unwrap().with_lengthscales([1.0]);
    let search = |criterion| search().with_lambdas([1e-3, 1e-2, 0.1, 1.0]).with_criterion(criterion);
    let once = search(Criterion::LeaveOneOut).fit(&x, &y).unwrap();
    let targets = Targets::from(&y10).with_weights(&weights).unwrap();
    let often = search(Criterion::LeaveGroupsOut(&groups)).fit(&x10, targets).unwrap();
    assert_eq!(once.lambdas(), often.lambdas());
    let [once, often] = [once, often].map(|fit| fit.posterior().unwrap().predict(&x).unwrap());
    for (once, often) in [(&once.mean, &often.mean), (&once.variance_of_mean, &often.variance_of_mean)] {
        assert!(once.iter().zip(often).all(|(a, b)| (a / b - 1.0).abs() < 1e-6));
    }
}
