//! Closed forms of dense-exponential features: golden values (`tests/data/dense.py`), limits into OPRF and positive
//! features, and the edges of their domains.

use crate::common;
use random_features::SignedLog;
use random_features::extend::Radius;
use random_features::theory::gerf::{self, GerfSign, Optimum};
use random_features::theory::{Dependence, Law, Pair, covariance, dense, positive};
use serde_json::Value;

const TOLERANCE: f64 = 1e-12;

fn close(value: f64, expected: f64, tolerance: f64, what: &str) {
    assert!((value - expected).abs() <= tolerance, "{what}: {value:e} instead of {expected:e}");
}

fn number(value: &Value) -> f64 {
    value.as_str().map_or_else(|| value.as_f64().unwrap(), |text| text.parse().unwrap())
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(number).collect()
}

fn golden() -> Value {
    serde_json::from_str(include_str!("../data/dense.json")).unwrap()
}

/// |a| + |b| over m, from which a sum of two parts has its accuracy.
fn size(a: f64, b: f64, m: f64) -> f64 {
    (a.exp_m1().abs() + b.exp_m1().abs()) / m
}

#[test]
fn integrals_are_met() {
    let golden = golden();
    let cases = golden["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 32);
    for case in cases {
        let [w, other, rho] = ["w", "w_prime", "rho"].map(|name| numbers(&case[name]));
        let count = case["m"].as_u64().unwrap() as usize;
        let (m, expected) = (count as f64, |name: &str| number(&case[name]));
        let (independent, pairs) = (Law::independent(count), Law::independent(count).antithetic());
        let relative = |ln: f64, name: &str| close(ln, expected(name), TOLERANCE * ln.abs().max(1.0), name);
        let ln_moment = dense::ln_second_moment(&w, &rho);
        close(ln_moment, expected("ln_second_moment"), TOLERANCE * ln_moment, "the second moment");
        relative(dense::ln_variance(&w, &rho, &independent).unwrap(), "ln_variance");
        let minus: Vec<f64> = w.iter().map(|w| -w).collect();
        if count > 1 {
            let name = "ln_variance_antithetic";
            let variance = dense::ln_variance(&w, &rho, &pairs).unwrap().exp();
            let parts = size(ln_moment, dense::ln_cross_moment(&w, &minus, &rho), m);
            close(variance, expected(name).exp(), TOLERANCE * (parts + variance), name);
        }
        let minus: Vec<f64> = other.iter().map(|w| -w).collect();
        let [same, opposite] = [&other, &minus].map(|other| dense::ln_cross_moment(&w, other, &rho));
        let one = dense::ln_covariance(&w, &other, &rho, &independent).unwrap();
        close(one.value(), expected("covariance"), TOLERANCE * size(same, 0.0, m), "covariance");
        close(covariance::dense(&w, &other, &rho) / m, one.value(), 1e-13 * size(same, 0.0, m), "its value");
        if count > 1 {
            let two = dense::ln_covariance(&w, &other, &rho, &pairs).unwrap().value();
            let name = "covariance_antithetic";
            close(two, expected(name), TOLERANCE * size(same, opposite, m), name);
        }
    }
    for best in golden["optima"].as_array().unwrap() {
        let Optimum { rho, a } = dense::optimal(number(&best["phi"]));
        close(rho, number(&best["rho"]), 1e-14 * rho, "ρ");
        close(a, number(&best["a"]), 1e-14 * a.abs(), "a");
    }
}

fn laws(d: usize, m: usize) -> Vec<Law> {
    let cos = -1.0 / (d as f64 - 1.0);
    let simplex = Law::blocks(m, d, Dependence::Angle { cos }, Radius::Chi);
    let mut laws = vec![Law::independent(m), Law::orthogonal(d, m), simplex];
    laws.extend(laws.clone().into_iter().map(Law::antithetic));
    laws
}

#[test]
fn equal_coefficients_are_oprf_and_none_positive_features() {
    for (d, size) in [(2, 0.01), (3, 0.5), (8, 1.0), (64, 2.0)] {
        let rows = common::points::<f64>(2, d, size);
        let points: Vec<(f64, f64)> = rows.row(0).iter().copied().zip(rows.row(1).iter().copied()).collect();
        let (pair, w) = (Pair::new(points.clone()), points.iter().map(|(x, y)| x + y).collect::<Vec<_>>());
        for (law, a) in laws(d, 40).iter().flat_map(|law| [0.0, -0.02, -0.7, 0.03].map(|a| (law, a))) {
            let rho = vec![1.0 / (1.0 - 8.0 * a); d];
            let value = dense::ln_variance(&w, &rho, law).unwrap() + 2.0 * pair.dot;
            let oprf = gerf::ln_variance(&pair, a.into(), GerfSign::Plus, law).unwrap() + pair.norms;
            close(value, oprf, 1e-11 * oprf.abs().max(1.0), "OPRF");
            if a == 0.0 {
                let plain = positive(&pair, law).unwrap();
                close(value, plain, 1e-13 * plain.abs().max(1.0), "positive");
            }
        }
        let scalars = |f: fn(f64, f64) -> f64| points.iter().map(|(x, y)| f(*x, *y)).sum::<f64>();
        let (x, y): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
        let expected =
            covariance::gerf(-0.3, d, scalars(|x, y| x * y), (scalars(|x, _| x * x), scalars(|_, y| y * y)));
        let value = covariance::dense(&x, &y, &vec![1.0 / 3.4; d]);
        close(value, expected, 1e-12 * (1.0 + expected.abs()), "covariance");
    }
}

#[test]
fn what_has_no_closed_form_is_none() {
    let (w, rho) = ([0.5, 1.0, -0.2], [0.5, 0.7, 1.0]);
    for law in &laws(3, 9)[1..3] {
        assert_eq!(dense::ln_variance(&w, &rho, law), None);
        assert_eq!(dense::ln_covariance(&w, &w, &rho, law), None);
        assert!(dense::ln_variance(&w, &[0.5; 3], law).is_some());
        assert_eq!(dense::ln_variance(&w[..1], &[0.5], law), None);
    }
    for law in [Law::unknown(4), Law::independent(0), Law::independent(4).with_radius(Radius::RootDim)] {
        assert_eq!(dense::ln_variance(&w, &rho, &law), None);
        assert_eq!(dense::ln_covariance(&w, &w, &rho, &law), None);
    }
}

#[test]
fn edges_are_exact() {
    let (law, pairs) = (Law::independent(7), Law::independent(8).antithetic());
    for law in [&law, &pairs, &Law::orthogonal(2, 8)] {
        assert_eq!(dense::ln_variance(&[0.0, 0.0], &[1.0, 1.0], law), Some(f64::NEG_INFINITY));
    }
    let none = dense::ln_covariance(&[0.0, 2.0], &[3.0, 0.0], &[1.0, 1.0], &law).unwrap();
    assert_eq!((none.ln_abs, none.sign), (f64::NEG_INFINITY, 0.0));
    assert_eq!(dense::ln_second_moment(&[0.0, 0.0], &[1.0, 1.0]), 0.0);
    // Norms that fill the range of squares.
    let huge = [2e150, -1e150];
    close(dense::ln_second_moment(&huge, &[1.0, 1.0]) / 5e300, 1.0, 1e-15, "huge");
    for law in [&law, &pairs, &Law::orthogonal(2, 8)] {
        let variance = dense::ln_variance(&huge, &[1.0, 1.0], law).unwrap();
        close(variance / 5e300, 1.0, 1e-15, "a huge variance");
        assert!(dense::ln_variance(&huge, &[1e-300; 2], law).unwrap().is_finite());
    }
    let covariance = dense::ln_covariance(&huge, &[-2e150, 0.0], &[1.0, 1e-300], &pairs).unwrap();
    close(covariance.ln_abs / 3.75e300, 1.0, 1e-15, "a huge covariance");
    let opposite = dense::ln_covariance(&huge, &[-2e150, 1e150], &[1.0, 1.0], &law).unwrap();
    assert_eq!(opposite, SignedLog::from(-1.0).scaled(-7f64.ln()));
    // Nothing cancels where ρ is tiny: ς e^{ρw²} alone.
    let (w, rho) = (1e8, 1e-16f64);
    let alone = -0.5 * rho.ln() - 2f64.ln() + 1.0;
    for value in [dense::ln_second_moment(&[w], &[rho]), dense::ln_cross_moment(&[w], &[w], &[rho])] {
        close(value, alone, 1e-14 * alone, "a small ρ");
    }
    assert!(
        (dense::ln_second_moment(&[1.0], &[1e-310]) - (0.5 * 310.0 * 10f64.ln() - 2f64.ln())).abs() < 1e-9
    );
    assert!(
        (dense::ln_second_moment(&[0.0], &[1e308]) - (0.5 * 308.0 * 10f64.ln() - 2f64.ln())).abs() < 1e-9
    );
    // Variances are infinite for a from ⅛ to ¼; estimates end there.
    for rho in [f64::INFINITY, -1.0000001, -5.0] {
        assert_eq!(dense::ln_second_moment(&[1.0, 0.0], &[0.5, rho]), f64::INFINITY);
        assert_eq!(dense::ln_variance(&[1.0, 0.0], &[0.5, rho], &law), Some(f64::INFINITY));
    }
    for rho in [f64::NAN, 0.0, -0.5, -1.0] {
        assert!(dense::ln_second_moment(&[1.0, 0.0], &[f64::INFINITY, rho]).is_nan());
        assert!(dense::ln_variance(&[1.0, 0.0], &[0.5, rho], &law).unwrap().is_nan());
        assert!(dense::ln_covariance(&[1.0, 0.0], &[1.0, 0.0], &[0.5, rho], &law).unwrap().sign.is_nan());
    }
    assert!(dense::ln_second_moment(&[1.0], &[0.5, 0.5]).is_nan());
    assert!(dense::ln_covariance(&[1.0], &[1.0, 2.0], &[0.5], &law).unwrap().sign.is_nan());
    assert!(covariance::dense(&[1.0], &[1.0, 2.0], &[0.5]).is_nan());
}

#[test]
fn small_variances_keep_their_digits() {
    // One term: w² + (1 − ρ)²/8 to leading order; a pair of them: ½ (w² − (1 − ρ)/2)².
    for (w, gap) in [(1e-6f64, 0.0), (1e-6, 1e-6), (0.0, 1e-7), (1e-5, 1e-9)] {
        let one = dense::ln_variance(&[w], &[1.0 - gap], &Law::independent(1)).unwrap().exp();
        let expected = w * w * (1.0 - gap) + gap * gap / 8.0;
        close(one, expected, 2e-6 * expected, "one term");
        let two = dense::ln_variance(&[w], &[1.0 - gap], &Law::independent(2).antithetic()).unwrap().exp();
        let expected = 0.5 * (w * w - 0.5 * gap).powi(2);
        close(two, expected, 3e-6 * (w.powi(4) + gap * gap), "a pair");
    }
}

#[test]
fn optima_are_minimal_in_coordinate_and_basis() {
    for phi in [0.0, 1e-300, 1e-9, 0.3, 17.0, 1e9, 1e150, 1e300] {
        let Optimum { rho, a } = dense::optimal(phi);
        assert!(rho > 0.0 && rho <= 1.0 && a <= 0.0 && a.is_finite(), "{phi}: {rho} {a}");
        let root = 2.0 * (phi * rho) * rho + (1.0 + 2.0 * phi) * rho;
        close(root, 1.0, 1e-14, "the equation of ρ");
        let least = dense::mean_ln_second_moment(&[phi], &[rho]);
        assert!(least.is_finite());
        for factor in [0.5, 0.99, 1.01, 2.0] {
            let other = dense::mean_ln_second_moment(&[phi], &[rho * factor]);
            assert!(other > least, "{phi}: ρ {rho} times {factor}");
        }
    }
    assert_eq!(dense::optimal(0.0), Optimum { rho: 1.0, a: -0.0 });
    assert!(dense::optimal(-1.0).rho.is_nan() && dense::optimal(f64::NAN).a.is_nan());
    // In a turned basis φ is a mean of eigenvalues with the squares of the turn.
    let least = |phi: [f64; 2]| dense::mean_ln_second_moment(&phi, &phi.map(|phi| dense::optimal(phi).rho));
    for degrees in [1, 10, 30, 45, 80] {
        let (sin, cos) = f64::from(degrees).to_radians().sin_cos();
        let turned = |a: f64, b: f64| [cos * cos * a + sin * sin * b, sin * sin * a + cos * cos * b];
        assert!(least(turned(0.1, 5.0)) > least([0.1, 5.0]));
    }
}

#[test]
fn truncation_adds_its_bias() {
    close(dense::ln_error_of_truncated(f64::NEG_INFINITY, 0.5), 2.0 * 0.5f64.exp_m1().ln(), 1e-15, "bias");
    assert_eq!(dense::ln_error_of_truncated(-3.0, 0.0), -3.0);
    let naive = ((-1.0f64).exp() * (-0.6f64).exp() + (-0.3f64).exp_m1().powi(2)).ln();
    close(dense::ln_error_of_truncated(-1.0, -0.3), naive, 1e-14, "both");
    assert!(dense::ln_error_of_truncated(1e300, -1e299).is_finite());
}
