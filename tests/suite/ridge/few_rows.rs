//! Searches with fewer rows than features: no digits are lost in the products of rows, and rows of weight 0 are predicted.

use ndarray::{Array1, Array2, Axis, arr2, s};
use random_features::apply::{Criterion, RidgeFit, RidgeSearch, RidgeStatistics};
use random_features::{Map, Targets};

use super::{data, distance, features, trigonometric, weights};

/// A search on one map, with inputs as they are.
fn on(map: &Map<f64>) -> RidgeSearch<'static, f64> {
    let map = map.clone();
    let search = RidgeSearch::of(move |_| Ok(map.clone()));
    search.with_lengthscales([1.0]).without_standardisation()
}

fn fitted(map: &Map<f64>, x: &Array2<f64>, y: &Array2<f64>, w: &Array1<f64>) -> RidgeFit<f64> {
    on(map).fit(x, Targets::from(y).with_weights(w).unwrap()).unwrap()
}

/// Points on a line, whose products have eigenvalues far below their rounding error, and a noisy wave.
fn line() -> (Array2<f64>, Array2<f64>) {
    let x = Array2::from_shape_fn((40, 3), |(i, k)| match k {
        0 => (i as f64 * 0.618).fract() * 4.0 - 2.0,
        _ => 0.3,
    });
    let y = x.slice(s![.., ..1]).mapv(|x| (2.0 * x).sin() + 0.1 * (1e4 * x).sin());
    (x, y)
}

/// The gradient of Σ w (y − β·φ − b)² + λ‖β‖² is 0 up to the rounding of its largest terms.
#[test]
fn weights_solve_the_normal_equations() {
    let map = trigonometric::<f64>(64, 1.0);
    let (x, y) = line();
    for w in [Array1::ones(40), weights(40)] {
        let found = fitted(&map, &x, &y, &w);
        let z = features(&map, &x);
        let (mean, y_mean) = (w.dot(&z) / w.sum(), w.dot(&y) / w.sum());
        let root = w.mapv(f64::sqrt).insert_axis(Axis(1));
        let (z, y) = ((z - mean) * &root, (&y - &y_mean) * &root);
        let norm = |a: &Array2<f64>| a.iter().map(|v| v * v).sum::<f64>().sqrt();
        for lambda in [1e-2, 1e-4, 1e-6, 1e-8] {
            let model = found.spectrum().model(lambda).unwrap();
            let beta = model.weights().t().to_owned();
            let gradient = z.t().dot(&(&y - &z.dot(&beta))) - &beta * lambda;
            let off = norm(&gradient) / (norm(&z) * norm(&y));
            assert!(off < 1e-13, "λ {lambda:e}: {off:e}");
        }
    }
}

/// The eigenvectors are orthonormal, and predictions and variances away from the data are those of sums, which lose ε s/λ.
#[test]
fn predictions_away_from_the_data_keep_their_digits() {
    let map = trigonometric::<f64>(64, 1.0);
    let (x, y) = line();
    let found = fitted(&map, &x, &y, &Array1::ones(40));
    let v = found.spectrum().eigenvectors();
    assert!(distance(&v.t().dot(v), &Array2::eye(39)) < 1e-13);
    let mut sums = RidgeStatistics::new(map, 1).unwrap();
    sums.update(&x, &y).unwrap();
    let at = Array2::from_shape_fn((50, 3), |(i, k)| if k == 0 { i as f64 * 0.16 - 4.0 } else { 0.3 });
    for lambda in [1e-2, 1e-4, 1e-6] {
        let (few, all) = (found.spectrum(), sums.spectrum().unwrap());
        let [a, b] = [few, &all].map(|s| s.posterior(lambda).unwrap().predict(&at).unwrap());
        let tolerance = 1e-13 / lambda;
        assert!(distance(&a.mean, &b.mean) < tolerance, "{lambda:e}: {:e}", distance(&a.mean, &b.mean));
        let units = |p: &random_features::apply::Prediction<f64>| &p.variance_of_mean / p.noise[0];
        let ratio = units(&a) / units(&b);
        let off = ratio.fold(0.0, |off: f64, ratio| off.max((ratio - 1.0).abs()));
        assert!(off < 20.0 * tolerance, "{lambda:e}: {off:e}");
    }
}

/// Where all features are equal, nothing is learnt from their rounding errors.
#[test]
fn equal_points_give_the_mean() {
    let map = trigonometric::<f64>(64, 1.0);
    let x = Array2::from_elem((20, 3), 0.7);
    let y = Array2::from_shape_fn((20, 1), |(i, _)| i as f64);
    let found = fitted(&map, &x, &y, &Array1::ones(20));
    for lambda in [found.lambda(), 1e-12] {
        let model = found.spectrum().model(lambda).unwrap();
        let far = model.predict(&arr2(&[[0.7, 0.7, 0.7], [-3.0, 2.0, 0.0]])).unwrap();
        assert!(far.iter().all(|v| (v - 9.5).abs() < 1e-6), "{lambda:e}: {far}");
    }
}

/// Rows of weight 0 are no training rows. Criteria do not count them, and they are predicted by all rows of other groups.
#[test]
fn rows_of_weight_0_may_be_among_left_out_rows() {
    let map = trigonometric::<f64>(20, 1.0);
    for n in [25, 90] {
        let (x, y) = data::<f64>(n);
        let w = Array1::from_shape_fn(n, |i| if i % 4 == 1 { 0.0 } else { weights(n)[i] });
        let kept: Vec<usize> = (0..n).filter(|i| i % 4 != 1).collect();
        let (own_x, own_y, own_w) =
            (x.select(Axis(0), &kept), y.select(Axis(0), &kept), w.select(Axis(0), &kept));
        let groups: Vec<usize> = (0..n).map(|i| i % 6).collect();
        let own_groups: Vec<usize> = kept.iter().map(|i| groups[*i]).collect();
        let targets = || Targets::from(&y).with_weights(&w).unwrap();
        let own = || Targets::from(&own_y).with_weights(&own_w).unwrap();
        let found = fitted(&map, &x, &y, &w);
        let (spectrum, lambda) = (found.spectrum(), 0.01);
        let pairs = [
            (Criterion::leave_one_out(&x, targets()), Criterion::leave_one_out(&own_x, own())),
            (
                Criterion::leave_groups_out(&x, targets(), &groups),
                Criterion::leave_groups_out(&own_x, own(), &own_groups),
            ),
        ];
        for (all, own) in &pairs {
            let [a, b] = [all, own].map(|criterion| spectrum.errors(criterion, &[lambda]).unwrap()[0]);
            assert!((a / b - 1.0).abs() < 1e-12, "{n}: {a} {b}");
            let [a, b] = [all, own].map(|criterion| spectrum.left_out(criterion, lambda).unwrap());
            assert!(distance(&a.select(Axis(0), &kept), &b) < 1e-12, "{n}");
        }
        // A group of its own is predicted by all rows.
        let alone = spectrum.left_out(&pairs[0].0, lambda).unwrap();
        let model = spectrum.model(lambda).unwrap().predict(&x).unwrap();
        let absent: Vec<usize> = (0..n).filter(|i| i % 4 == 1).collect();
        assert!(distance(&alone.select(Axis(0), &absent), &model.select(Axis(0), &absent)) < 1e-9, "{n}");
        // Others are predicted by a regression without their group.
        let grouped = spectrum.left_out(&pairs[1].0, lambda).unwrap();
        for group in 0..6 {
            let rest: Array1<f64> =
                w.iter().zip(&groups).map(|(w, other)| if *other == group { 0.0 } else { *w }).collect();
            let refitted = fitted(&map, &x, &y, &rest).spectrum().model(lambda).unwrap().predict(&x).unwrap();
            let rows: Vec<usize> = (0..n).filter(|i| groups[*i] == group).collect();
            let off = distance(&grouped.select(Axis(0), &rows), &refitted.select(Axis(0), &rows));
            assert!(off < 1e-8, "{n}, group {group}: {off:e}");
        }
    }
}

/// A regression on a single row predicts its target: with a large λ, so does every block the mean of those before it.
#[test]
fn regressions_on_a_single_row_predict_the_mean() {
    for n in [2, 3, 5, 8] {
        let (x, y) = line();
        let (x, y) = (x.slice(s![..n, ..]).to_owned(), y.slice(s![..n, ..]).to_owned());
        let search = |criterion| on(&trigonometric::<f64>(64, 1.0)).with_criterion(criterion);
        let forward = Criterion::Forward { blocks: n, gap: 0 };
        let found = search(forward.clone()).with_lambdas([1e9]).fit(&x, &y).unwrap();
        let before = |k: usize| y.slice(s![..k, 0]).mean().unwrap();
        let expected = (1..n).map(|k| (y[[k, 0]] - before(k)).powi(2)).sum::<f64>() / (n - 1) as f64;
        assert!((found.error() / expected - 1.0).abs() < 1e-6, "{n}: {} {expected}", found.error());
        for criterion in [forward, Criterion::Folds(2), Criterion::HeldOutShare(0.5)] {
            let found = search(criterion).fit(&x, &y);
            assert!(found.as_ref().is_ok_and(|fit| !fit.error().is_nan()) || found.is_err());
        }
    }
}
