//! Precisions of rows: the definition, invariance, and what travels with sums.

use ndarray::{Array1, Array2, ArrayRef1, Axis, s};
use random_features::apply::{Criterion, RidgeSearch, RidgeSpectrum, RidgeStatistics};
use random_features::linalg::Backend;
use random_features::workbench::factors::Factorise;
use random_features::{Error, Map, Real, Targets};

use super::{data, distance, features, naive, statistics, trigonometric};

const LAMBDA: f64 = 0.3;

/// Precisions over four decades.
fn precisions(n: usize) -> Array1<f64> {
    Array1::from_shape_fn(n, |i| 10f64.powf(((i * 37) % 41) as f64 / 10.0 - 2.0))
}

/// How often rows count, sometimes not at all.
fn counts(n: usize) -> Array1<f64> {
    Array1::from_shape_fn(n, |i| ((i * 5) % 4) as f64)
}

fn known<'a, T: Real>(y: &'a Array2<T>, w: &'a ArrayRef1<f64>, p: &'a ArrayRef1<f64>) -> Targets<'a, T> {
    Targets::from(y).with_weights(w).unwrap().with_precisions(p).unwrap()
}

fn spectrum<T: Real>(
    map: &Map<T>,
    x: &Array2<T>,
    targets: Targets<'_, T>,
    intercept: bool,
) -> RidgeSpectrum<T> {
    let mut statistics = RidgeStatistics::new(map.clone(), targets.ncols()).unwrap();
    if !intercept {
        statistics = statistics.without_intercept();
    }
    statistics.update(x, targets).unwrap();
    statistics.spectrum().unwrap()
}

/// The log density of targets under the process, with b integrated out or 0: rows given as often as they count.
fn dense_evidence(z: &Array2<f64>, y: &Array1<f64>, p: &Array1<f64>, noise: f64, intercept: bool) -> f64 {
    let n = y.len();
    let mut k = z.dot(&z.t()) * (noise / LAMBDA);
    (0..n).for_each(|i| k[[i, i]] += noise / p[i]);
    let factor = Backend::default().cholesky(&k).unwrap();
    let (ones, solved) = (Array1::<f64>::ones(n), factor.solve_vector(y).unwrap());
    let of_ones = factor.solve_vector(&ones).unwrap();
    let (mut square, mut log, mut freedom) = (y.dot(&solved), factor.log_determinant(), n as f64);
    if intercept {
        square -= ones.dot(&solved).powi(2) / ones.dot(&of_ones);
        // The flat prior of b is of density 1/√n.
        log += (ones.dot(&of_ones) / n as f64).ln();
        freedom -= 1.0;
    }
    -0.5 * (freedom * std::f64::consts::TAU.ln() + square + log)
}

fn check<T: Real>(tolerance: f64, intercept: bool) {
    let (n, map) = (70, trigonometric::<T>(6, 1.0));
    let ((x, y), w, p) = (data::<T>(n), counts(n), precisions(n));
    let spectrum = spectrum(&map, &x, known(&y, &w, &p), intercept);
    let (z, wide) = (features(&map, &x), y.mapv(|v| v.widen()));
    let a = &w * &p;
    let (beta, b) = naive(&z, &wide, &a, (LAMBDA, intercept));
    let model = spectrum.model(LAMBDA).unwrap();
    assert!(distance(&model.weights().t().to_owned(), &beta) < tolerance);
    let near = |found: f64, expected: f64, what: &str| {
        assert!((found / expected - 1.0).abs() < tolerance, "{what}: {found} for {expected}");
    };
    let residuals = &wide - &(z.dot(&beta) + &b);
    let nu = w.sum() - f64::from(u8::from(intercept));
    let penalty = |j: usize| LAMBDA * beta.column(j).dot(&beta.column(j));
    let squares = |j: usize| (&a * &residuals.column(j).mapv(|e| e * e)).sum();
    let posterior = spectrum.posterior(LAMBDA).unwrap();
    let noise: Vec<f64> = (0..2).map(|j| (squares(j) + penalty(j)) / nu).collect();
    (0..2).for_each(|j| near(posterior.noise()[j], noise[j], "noise"));
    let left = 1.0 - spectrum.degrees_of_freedom(LAMBDA).unwrap() / w.sum();
    let expected = (squares(0) + squares(1)) / a.sum() / (left * left);
    near(spectrum.errors(&Criterion::GeneralisedCrossValidation, &[LAMBDA]).unwrap()[0], expected, "GCV");
    // Rows given as often as they count, with their precisions.
    let rows: Vec<usize> = (0..n).flat_map(|i| vec![i; w[i] as usize]).collect();
    let (all_z, all_y, all_p) =
        (z.select(Axis(0), &rows), wide.select(Axis(0), &rows), p.select(Axis(0), &rows));
    let evidence = |noise: &[f64]| {
        let of = |j: usize| dense_evidence(&all_z, &all_y.column(j).to_owned(), &all_p, noise[j], intercept);
        of(0) + of(1)
    };
    near(spectrum.log_evidence(LAMBDA).unwrap(), evidence(&noise), "evidence");
    let (found, face) =
        (spectrum.log_evidence_with_noise(LAMBDA, &[1.0, 0.5]).unwrap(), evidence(&[1.0, 0.5]));
    near(found, face, "known noise");
    let criterion = Criterion::LogEvidenceWithNoise(2.0);
    near(-spectrum.errors(&criterion, &[LAMBDA]).unwrap()[0], evidence(&[2.0, 2.0]), "criterion");
}

#[test]
fn precisions_are_those_of_the_definition() {
    for intercept in [true, false] {
        check::<f64>(1e-9, intercept);
        check::<f32>(2e-3, intercept);
    }
}

/// A row's error is that of the regression without it, weighted by counts times precisions.
#[test]
fn left_out_rows_are_weighted_by_precisions() {
    let (n, map) = (50, trigonometric::<f64>(5, 1.0));
    let ((x, y), p) = (data::<f64>(n), precisions(n));
    let targets = || Targets::from(&y).with_precisions(&p).unwrap();
    let spectrum = spectrum(&map, &x, targets(), true);
    let found = spectrum.errors(&Criterion::leave_one_out(&x, targets()), &[LAMBDA]).unwrap()[0];
    let z = features(&map, &x);
    let error = |i: usize| {
        let others: Vec<usize> = (0..n).filter(|other| *other != i).collect();
        let of = |a: &Array2<f64>| a.select(Axis(0), &others);
        let (beta, b) = naive(&of(&z), &of(&y), &p.select(Axis(0), &others), (LAMBDA, true));
        let error = &y.row(i) - &(z.row(i).dot(&beta) + &b);
        p[i] * error.dot(&error)
    };
    let expected = (0..n).map(error).sum::<f64>() / p.sum();
    assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
}

/// For p → kp and λ → kλ nothing changes but units of noise.
#[test]
fn multiples_of_precisions_change_nothing() {
    let (n, map) = (80, trigonometric::<f64>(6, 1.0));
    let ((x, y), w, p) = (data::<f64>(n), counts(n), precisions(n));
    // With noise no error is that of rounding.
    let y = y + Array2::from_shape_fn((n, 2), |(i, j)| 0.3 * (1e4 * (2 * i + j) as f64).sin());
    for k in [1e-6, 1e7] {
        let scaled = &p * k;
        let [one, other] = [&p, &scaled].map(|p| spectrum(&map, &x, known(&y, &w, p), true));
        let near =
            |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
        near(other.log_evidence(k * LAMBDA).unwrap(), one.log_evidence(LAMBDA).unwrap());
        let criterion = Criterion::GeneralisedCrossValidation;
        let errors = |of: &RidgeSpectrum<f64>, lambda| of.errors(&criterion, &[lambda]).unwrap()[0];
        near(errors(&other, k * LAMBDA), errors(&one, LAMBDA));
        let [one, other] = [(&one, LAMBDA, &p), (&other, k * LAMBDA, &scaled)].map(|(of, lambda, p)| {
            of.posterior(lambda).unwrap().predict(&x).unwrap().with_precisions(p).unwrap()
        });
        assert!(distance(&other.mean, &one.mean) < 1e-9);
        assert!(distance(&other.variance_of_targets(), &one.variance_of_targets()) < 1e-9);
        near(other.noise[0], k * one.noise[0]);
        let search = |p: &Array1<f64>| {
            let search = RidgeSearch::gaussian(3, 24, 5).unwrap();
            search.fit(&x, known(&y, &w, p)).unwrap()
        };
        let [one, other] = [&p, &scaled].map(search);
        assert_eq!(one.best().lengthscale, other.best().lengthscale);
        assert!((other.error() / one.error() - 1.0).abs() < 1e-6, "{one}\n{other}");
    }
}

/// Precisions of 1 leave every bit, and merging, removal and cuts do too.
#[test]
fn what_travels_with_sums() {
    let (n, map) = (5000, trigonometric::<f64>(8, 1.0));
    let ((x, y), ones) = (data::<f64>(n), Array1::ones(n));
    let plain = statistics(&map, &x, &y);
    let mut of_ones = RidgeStatistics::new(map.clone(), 2).unwrap();
    of_ones.update(&x, Targets::from(&y).with_precisions(&ones).unwrap()).unwrap();
    assert_eq!(format!("{plain:?}"), format!("{of_ones:?}"));

    let p = precisions(n);
    let part = |start: usize, end: usize| {
        let mut part = RidgeStatistics::new(map.clone(), 2).unwrap().with_first_row(start as u64).unwrap();
        let p = p.slice(s![start..end]);
        let targets = Targets::from(y.slice(s![start..end, ..]));
        part.update(x.slice(s![start..end, ..]), targets.with_precisions(&p).unwrap()).unwrap();
        part
    };
    let whole = part(0, n);
    let mut merged = part(4096, n);
    merged.merge(&part(0, 4096)).unwrap();
    let evidence = |of: &RidgeStatistics<f64>| of.spectrum().unwrap().log_evidence(LAMBDA).unwrap();
    assert_eq!(evidence(&merged), evidence(&whole));
    #[cfg(feature = "serde")]
    {
        let read: RidgeStatistics<f64> = postcard::from_bytes(&postcard::to_stdvec(&whole).unwrap()).unwrap();
        assert_eq!(evidence(&read), evidence(&whole));
    }
    let tail = p.slice(s![4096..]);
    let targets = Targets::from(y.slice(s![4096.., ..])).with_precisions(&tail).unwrap();
    merged.downdate(4096, x.slice(s![4096.., ..]), targets).unwrap();
    let rest = part(0, 4096);
    assert!((evidence(&merged) / evidence(&rest) - 1.0).abs() < 1e-12);
    // Rows without precisions have 1.
    let mut mixed = part(0, 4096);
    mixed.update(x.slice(s![4096.., ..]), y.slice(s![4096.., ..])).unwrap();
    let mut with_ones = p.clone();
    with_ones.slice_mut(s![4096..]).fill(1.0);
    let mut expected = RidgeStatistics::new(map.clone(), 2).unwrap();
    expected.update(&x, Targets::from(&y).with_precisions(&with_ones).unwrap()).unwrap();
    assert_eq!(evidence(&mixed), evidence(&expected));
}

/// Precisions that add up to less than 1 are no rows less.
#[test]
fn tiny_precisions_are_rows() {
    let (n, map) = (30, trigonometric::<f64>(4, 1.0));
    let ((x, y), p) = (data::<f64>(n), Array1::from_elem(n, 1e-3));
    let spectrum = spectrum(&map, &x, Targets::from(&y).with_precisions(&p).unwrap(), true);
    let plain = statistics(&map, &x, &y).spectrum().unwrap();
    let criterion = Criterion::GeneralisedCrossValidation;
    let [found, expected] =
        [(&spectrum, 1e-3), (&plain, 1.0)].map(|(of, lambda)| of.errors(&criterion, &[lambda]).unwrap()[0]);
    assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
    let [found, expected] =
        [(&spectrum, 1e-3), (&plain, 1.0)].map(|(of, lambda)| of.log_evidence(lambda).unwrap());
    assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
}

#[test]
fn precisions_out_of_their_domain_are_refused() {
    let (x, y) = data::<f64>(20);
    let targets = |p: &Array1<f64>| Targets::from(&y).with_precisions(p).map(drop);
    assert!(matches!(targets(&Array1::ones(19)), Err(Error::Shape { expected: 20, found: 19, .. })));
    for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let mut p = Array1::ones(20);
        p[7] = wrong;
        assert!(matches!(targets(&p), Err(Error::Entry { row: 7, .. })), "{wrong}");
    }
    let spectrum = statistics(&trigonometric::<f64>(4, 1.0), &x, &y).spectrum().unwrap();
    for wrong in [0.0, -1.0, f64::NAN] {
        let found = spectrum.log_evidence_with_noise(1.0, &[1.0, wrong]);
        assert!(matches!(found, Err(Error::Entry { row: 1, .. })), "{wrong}: {found:?}");
    }
    assert!(matches!(spectrum.log_evidence_with_noise(1.0, &[1.0]), Err(Error::Shape { .. })));
    let prediction = spectrum.posterior(1.0).unwrap().predict(&x).unwrap();
    assert!(matches!(prediction.clone().with_precisions(&Array1::ones(19)), Err(Error::Shape { .. })));
    assert!(matches!(prediction.with_precisions(&Array1::zeros(20)), Err(Error::Entry { row: 0, .. })));
}

/// A prediction takes a precision for each point, also where targets have their own λ.
#[test]
fn predictions_take_a_precision_for_each_point() {
    let (x, y) = data::<f64>(60);
    let spectrum = statistics(&trigonometric::<f64>(6, 1.0), &x, &y).spectrum().unwrap();
    for lambdas in [[0.3, 0.3], [0.3, 2.0]] {
        let predicted = || spectrum.posterior_per_target(&lambdas).unwrap().predict(&x).unwrap();
        let plain = predicted();
        let with = predicted().with_precisions(&precisions(60)).unwrap().variance_of_targets();
        let unknown = predicted().with_precisions(&Array1::from_elem(60, 1e-315)).unwrap();
        assert!(unknown.variance_of_targets().iter().all(|v| *v == f64::MAX));
        for (i, p) in precisions(60).iter().enumerate() {
            for j in 0..2 {
                let expected = plain.variance_of_mean[[i, j]] + plain.noise[j] / p;
                assert!((with[[i, j]] / expected - 1.0).abs() < 1e-12);
            }
        }
        for n in [0, 1, 59, 61, 120] {
            let wrong = predicted().with_precisions(&Array1::ones(n)).unwrap_err();
            assert!(matches!(wrong, Error::Shape { expected: 60, found, .. } if found == n), "{wrong}");
        }
    }
}
