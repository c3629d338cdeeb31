//! Least errors of features: against plain loops, for given kernel values, in plans, and the map that reaches the first.

mod mixture;
#[cfg(feature = "faer")]
mod plans;
#[cfg(feature = "faer")]
mod spectrum;

use random_features::theory::limits;

/// Spectra that fall slowly and fast, with gaps, repeated values, zeros, and one value.
fn spectra() -> Vec<Vec<f64>> {
    vec![
        (1..40).map(|i| 1.0 / i as f64).collect(),
        (0..30).map(|i| 0.5f64.powi(i)).collect(),
        (0..12).map(|i| if i < 3 { 10.0 } else { 0.1 }).collect(),
        vec![1.0; 9],
        vec![3.0, 2.0, 1.0, 0.0, 0.0],
        vec![0.7],
        vec![0.0, 0.0],
        Vec::new(),
    ]
}

fn close(found: f64, expected: f64, size: f64) {
    assert!((found - expected).abs() <= 1e-12 * size, "{found} in place of {expected}");
}

/// Singular vectors that are kept with probabilities πᵢ = min(1, cσᵢ), Σ πᵢ = D, and divided by them have the variance Σ σᵢ²(1/πᵢ − 1): no choice
/// of D has less. c is found by bisection, and the least error without a loop over j.
#[test]
fn the_unbiased_limit_is_that_of_the_best_sample_of_vectors() {
    for values in spectra() {
        let positive = values.iter().filter(|v| **v > 0.0).count();
        for features in 1..values.len() + 3 {
            let expected = match features >= positive {
                true => 0.0,
                false => {
                    let count = |c: f64| values.iter().map(|v| (c * v).min(1.0)).sum::<f64>();
                    let (mut low, mut high) = (0.0, 1e15);
                    for _ in 0..300 {
                        let middle = 0.5 * (low + high);
                        if count(middle) < features as f64 { low = middle } else { high = middle }
                    }
                    let terms = values.iter().filter(|v| **v > 0.0);
                    terms.map(|v| v * v * ((high * v).min(1.0).recip() - 1.0)).sum()
                }
            };
            let size: f64 = values.iter().map(|v| v * v).sum();
            close(limits::unbiased(&values, features), expected, 10.0 * size.max(1e-300));
        }
    }
}

#[test]
fn other_limits_are_their_definitions() {
    for values in spectra() {
        for features in 0..values.len() + 3 {
            let mut rest = 0.0;
            for (i, value) in values.iter().enumerate() {
                rest += if i >= features { value * value } else { 0.0 };
            }
            close(limits::any(&values, features), rest, 1.0);
        }
    }
    for (nuclear, square, m, t) in [(1.0, 0.3, 7, 1), (2.5, 1.0, 3, 2), (1.0, 0.6, 4, 2), (0.0, 0.0, 1, 1)] {
        let expected = (nuclear * nuclear / t as f64 - square).max(0.0) / m as f64;
        close(limits::independent(nuclear, square, m, t), expected, 1.0);
    }
}

/// Limits fall as features grow, and those of fewer conditions are not above the others.
#[test]
fn limits_are_in_order() {
    for values in spectra() {
        let (sum, square) = (values.iter().sum(), values.iter().map(|v| v * v).sum());
        let mut before = [f64::INFINITY; 3];
        for features in 1..50 {
            let all = [
                limits::independent(sum, square, features, 1),
                limits::unbiased(&values, features),
                limits::any(&values, features),
            ];
            assert!(all.windows(2).all(|pair| pair[1] <= pair[0] + 1e-12), "{all:?}");
            assert!(all.iter().zip(before).all(|(now, before)| *now <= before + 1e-12), "{all:?} {before:?}");
            before = all;
        }
    }
}

#[test]
fn arguments_outside_the_domain_give_nan() {
    for wrong in [&[1.0, 2.0][..], &[-1.0], &[1.0, f64::NAN], &[f64::NAN, 1.0]] {
        assert!(limits::unbiased(wrong, 1).is_nan() && limits::any(wrong, 1).is_nan(), "{wrong:?}");
    }
    assert!(limits::unbiased(&[1.0], 0).is_nan());
    for (nuclear, square, m, t) in
        [(1.0, 0.5, 0, 1), (1.0, 0.5, 1, 0), (-1.0, 0.5, 1, 1), (1.0, f64::NAN, 1, 1), (f64::NAN, 0.5, 1, 1)]
    {
        assert!(limits::independent(nuclear, square, m, t).is_nan());
    }
}
