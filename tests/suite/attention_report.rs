//! Expected errors of linear attention against simulation.

use ndarray::{Array2, Array4, Axis};
use rand_distr::{Distribution, StandardNormal};
use random_features::apply::attention::{Attention, ErrorReport, ExactAttention, Heads};
use random_features::frequency::{Independent, draw};
use random_features::map::Mechanism;
use random_features::theory::covariance;
use random_features::{EluPlusOne, Error, Gerf, Hyperbolic, Map, Positive, Trigonometric, rng};

fn normal(n: usize, d: usize, size: f64, seed: u64) -> Array2<f64> {
    let mut rng = rng(seed);
    Array2::from_shape_simple_fn((n, d), || size * Distribution::<f64>::sample(&StandardNormal, &mut rng))
}

fn maps(d: usize, m: usize, seed: u64) -> [Map<f64>; 4] {
    let omega = || draw(d, m, &Independent, &mut rng(seed)).unwrap();
    [
        Positive.softmax(omega()).unwrap(),
        Hyperbolic.softmax(omega()).unwrap(),
        Trigonometric.softmax(omega()).unwrap(),
        Gerf::optimal(d, 1.5).unwrap().softmax(omega()).unwrap(),
    ]
}

/// The mean over draws of products of relative errors. With 20,000 draws its standard error is known from the sample; four
/// of them, for 8 values, leave a false-alarm rate of 5e-4.
#[test]
fn covariances_are_those_of_a_simulation() {
    let (d, draws) = (3, 20_000);
    let (x, y) = (normal(1, d, 0.5, 1), normal(2, d, 0.5, 2));
    let dots = |sign: f64| {
        let (w, v) = (&x.row(0) + &(&y.row(0) * sign), &x.row(0) + &(&y.row(1) * sign));
        (w.dot(&v), (w.dot(&w), v.dot(&v)))
    };
    let a = Gerf::optimal(d, 1.5).unwrap().a().re;
    let (sum, squares) = dots(1.0);
    let expected = [
        covariance::positive(sum),
        covariance::hyperbolic(sum),
        covariance::trigonometric(dots(-1.0).0),
        covariance::gerf(a, d, sum, squares),
    ];
    let kernel = [0, 1].map(|j| x.row(0).dot(&y.row(j)).exp());
    let mut samples = [const { Vec::new() }; 4];
    for seed in 0..draws as u64 {
        for (map, sample) in maps(d, 1, seed).iter().zip(&mut samples) {
            let gram = map.gram(&x, &y).unwrap();
            sample.push((gram[[0, 0]] / kernel[0] - 1.0) * (gram[[0, 1]] / kernel[1] - 1.0));
        }
    }
    for (sample, expected) in samples.iter().zip(expected) {
        let mean = sample.iter().sum::<f64>() / draws as f64;
        let variance = sample.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / draws as f64;
        let error = (variance / draws as f64).sqrt();
        assert!(
            (mean - expected).abs() < 4.0 * error && error < 0.3 * expected.abs() + 0.02,
            "{mean} ± {error}, {expected}"
        );
    }
    assert!(covariance::gerf(0.125, d, sum, squares).is_nan());
    assert!((covariance::gerf(0.0, d, 0.7, (2.0, 3.0)) - covariance::positive(0.7)).abs() < 1e-14);
}

fn report(map: &Map<f64>, x: [&Array2<f64>; 3]) -> ErrorReport {
    let attention = Attention::signed(vec![map.clone()]).unwrap();
    attention.error_report(0, x[0], x[1], x[2]).unwrap()
}

/// The root mean square error over draws against the report, within its domain: first-order terms are all but a few
/// percent of it there.
#[test]
fn reports_agree_with_simulation_in_their_domain() {
    let (d, m, draws) = (8, 128, 150);
    // Where ‖x + y‖² is about ½: beyond, draws that are never met make up the variance.
    let [q, k] = [1, 2].map(|seed| normal(60, d, 0.3, seed));
    let v = normal(60, 5, 1.0, 3);
    let four = |x: &Array2<f64>| -> Array4<f64> { x.clone().insert_axis(Axis(0)).insert_axis(Axis(0)) };
    let (q4, k4, v4) = (four(&q), four(&k), four(&v));
    let heads = Heads::new(&q4, &k4, &v4).unwrap();
    let exact: Array4<f64> = ExactAttention::new().bidirectional(&heads).unwrap();
    let size = exact.iter().map(|v| v * v).sum::<f64>();
    let mut errors = [0.0; 4];
    for seed in 0..draws {
        for (map, error) in maps(d, m, 1000 + seed).into_iter().zip(&mut errors) {
            let out = Attention::signed(vec![map]).unwrap().bidirectional(&heads).unwrap().output;
            *error += (&out - &exact).iter().map(|e| e * e).sum::<f64>() / size / draws as f64;
        }
    }
    for (map, error) in maps(d, m, 5).iter().zip(errors) {
        let report = report(map, [&q, &k, &v]);
        let (expected, measured) = (report.output_error().unwrap(), error.sqrt());
        assert!((measured / expected - 1.0).abs() < 0.12, "{map:?}: {measured}, {expected}");
        assert_eq!(report.shrink, 1.0);
        // A target of half the error needs four times as many.
        let needed = report.frequencies_for(0.5 * expected);
        assert!((needed / (4.0 * m as f64) - 1.0).abs() < 0.01);
        assert!(
            report.weight_error().unwrap() > 0.0 && report.to_string().contains("expected relative error")
        );
    }
}

/// Queries and keys as they leave a usual layer norm: no map of the four works, and the report says so.
#[test]
fn it_is_hopeless_at_usual_norms() {
    let (d, m) = (64, 256);
    let [q, k, v] = [1, 2, 3].map(|seed| normal(64, d, 1.0, seed));
    for (i, map) in maps(d, m, 5).into_iter().enumerate() {
        let report = report(&map, [&q, &k, &v]);
        assert!(report.is_hopeless() && report.output_error().is_none() && report.weight_error().is_none());
        assert!(report.alternatives.iter().all(|(_, variance)| *variance > 0.1), "{report}");
        assert!(report.shrink > 0.05 && report.shrink < 0.95, "{report}");
        assert!((0.5..1.1).contains(&report.mean_error), "{report}");
        assert!(report.to_string().starts_with("hopeless with m = 256"), "{report}");
        // Shrunk as it says, they are reliable.
        let (small_q, small_k) = (&q * (0.99 * report.shrink), &k * (0.99 * report.shrink));
        let shrunk = self::report(&map, [&small_q, &small_k, &v]);
        // Of generalised features those with the best A for the smaller ones.
        let fitted =
            shrunk.alternatives.iter().find(|(mechanism, _)| matches!(mechanism, Mechanism::Gerf(_)));
        let gerf = (i == 3).then(|| fitted.map_or(f64::NAN, |(_, variance)| *variance));
        assert!(gerf.unwrap_or(shrunk.normaliser_variance) < 0.1, "{shrunk}");
        // What it takes instead is enough.
        let enough = report.frequencies_for(f64::INFINITY);
        assert!(report.normaliser_variance * m as f64 / enough <= 0.1 * (1.0 + 1e-9) && enough > m as f64);
    }
    // At smaller norms one map may do where another does not.
    let (q, k) = (&q * 0.7, &k * 0.7);
    let report = report(&maps(d, m, 5)[2], [&q, &k, &v]);
    assert!(matches!(report.alternatives[0].0, Mechanism::Gerf(_)));
}

#[test]
fn reports_refuse_what_they_cannot_say() {
    let x = normal(5, 4, 0.5, 1);
    let attention = Attention::new(EluPlusOne.map::<f64>(4, 1.0).unwrap()).unwrap();
    assert!(matches!(attention.error_report(0, &x, &x, &x), Err(Error::Unsupported { .. })));
    let attention = Attention::new(maps(4, 8, 1)[0].clone()).unwrap();
    let (none, wide) = (normal(0, 4, 1.0, 1), normal(5, 3, 1.0, 1));
    assert!(
        attention.error_report(0, &none, &x, &x).is_err()
            && attention.error_report(0, &x, &none, &none).is_err()
    );
    assert!(
        attention.error_report(0, &wide, &x, &x).is_err()
            && attention.error_report(0, &x, &wide, &x).is_err()
    );
    let mut bad = x.clone();
    bad[[2, 1]] = f64::NAN;
    assert!(matches!(attention.error_report(0, &x, &bad, &x), Err(Error::NotFinite { row: 2, .. })));
    assert!(matches!(attention.error_report(0, &x, &x, &bad), Err(Error::NotFinite { row: 2, .. })));
}

/// Beyond the range of what can be summed up it is hopeless, and nothing is said of outputs that are 0.
#[test]
fn reports_at_the_ends_of_the_range() {
    for size in [30.0, 300.0] {
        let [q, k, v] = [1, 2, 3].map(|seed| normal(20, 4, size, seed));
        for map in maps(4, 32, 1) {
            let report = report(&map, [&q, &k, &v]);
            if report.is_hopeless() {
                assert!(report.frequencies_for(0.1) > 32.0, "{report}");
            }
            assert!(report.alternatives.is_sorted_by(|a, b| a.1 <= b.1), "{report:?}");
            assert_eq!(
                (report.frequencies_for(-1.0), report.frequencies_for(f64::NAN)),
                (f64::INFINITY, f64::INFINITY)
            );
        }
    }
    let (x, none) = (normal(20, 4, 0.3, 1), Array2::zeros((20, 2)));
    let report = report(&maps(4, 512, 1)[0], [&x, &x, &none]);
    assert!(!report.is_hopeless() && report.output_error().is_none() && report.weight_error().is_some());
}
