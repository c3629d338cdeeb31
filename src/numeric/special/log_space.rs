//! Sums and differences of exponentials, as logarithms.
//!
//! Sums of exponentials follow one rule here. They are taken relative to the largest logarithm. The logarithm −∞ stands for 0,
//! also if there is no term; ∞ outweighs every finite logarithm; a NaN makes the sum NaN.

use std::f64::consts::LN_2;

use super::elementary::{largest, ln_cosh};
use super::signed_log::SignedLog;

/// ln(eᵗ − 1) for t ≥ 0, without overflow or cancellation; −∞ at 0.
pub fn ln_expm1(t: f64) -> f64 {
    if t > 1.0 { t + (-(-t).exp()).ln_1p() } else { t.exp_m1().ln() }
}

/// ln(1 − e⁻ᵗ) for t ≥ 0, without cancellation; −∞ at 0.
pub fn ln_1m_exp(t: f64) -> f64 {
    if t > LN_2 { (-(-t).exp()).ln_1p() } else { (-(-t).exp_m1()).ln() }
}

/// ln(eᵃ + eᵇ).
pub fn ln_add_exp(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        return f64::NAN;
    }
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    if high.is_infinite() { high } else { high + (low - high).exp().ln_1p() }
}

/// The sum of wᵢ e^(hᵢ) over terms (hᵢ, wᵢ), as ln of a scale and the sum relative to that scale, which is the largest e^(hᵢ).
///
/// Without terms, or if all exponentials are 0, it is (−∞, 0). If a logarithm is NaN, it is (0, NaN). If some are ∞, they alone
/// count.
pub fn scaled_sum(terms: impl Iterator<Item = (f64, f64)> + Clone) -> (f64, f64) {
    if terms.clone().any(|(h, _)| h.is_nan()) {
        return (0.0, f64::NAN);
    }
    match largest(terms.clone().map(|(h, _)| h)) {
        f64::NEG_INFINITY => (f64::NEG_INFINITY, 0.0),
        f64::INFINITY => (f64::INFINITY, terms.filter(|(h, _)| *h == f64::INFINITY).map(|(_, w)| w).sum()),
        top => (top, terms.map(|(h, w)| w * (h - top).exp()).sum()),
    }
}

/// ln Σ e^(hᵢ); −∞ for no terms.
pub fn ln_sum_exp(logarithms: &[f64]) -> f64 {
    let (top, sum) = scaled_sum(logarithms.iter().map(|h| (*h, 1.0)));
    if top.is_infinite() { top } else { top + sum.ln() }
}

/// eᵗ − 1 for any t, without overflow or cancellation.
pub fn expm1(t: f64) -> SignedLog {
    if t >= 0.0 { SignedLog::positive(ln_expm1(t)) } else { SignedLog::from(t.exp_m1()) }
}

/// ln |sinh t|; −∞ at 0.
pub fn ln_sinh(t: f64) -> f64 {
    t.abs() + ln_1m_exp(2.0 * t.abs()) - LN_2
}

/// ½ Re e^{p−q+ib} + ½ e^{p+q} − 1 = e^p cosh q − e^{p−q} sin²(b/2) − 1, without overflow or cancellation.
pub fn real_part_excess(p: f64, q: f64, b: f64) -> SignedLog {
    let turned = SignedLog::from(-(0.5 * b).sin().powi(2)).scaled(p - q);
    let parts = if p.abs() + q.abs() < 1.0 {
        // The halves may cancel to first order; (eᵖ − 1) cosh q + 2 sinh²(q/2) does not.
        [expm1(p).scaled(ln_cosh(q)), SignedLog::positive(LN_2 + 2.0 * ln_sinh(0.5 * q))]
    } else {
        [expm1(p + q).scaled(-LN_2), expm1(p - q).scaled(-LN_2)]
    };
    SignedLog::sum(parts.into_iter().chain([turned]))
}

/// √Var / |K| from ln Var and ln |K|: 0 wherever the variance is 0, NaN where the logarithms leave no digit.
pub fn relative_deviation(ln_variance: f64, ln_kernel: f64) -> f64 {
    if ln_variance == f64::NEG_INFINITY { 0.0 } else { exp_difference(0.5 * ln_variance, ln_kernel) }
}

/// e^(a − b); NaN if a few rounding errors of a and b could change it by more than a factor.
fn exp_difference(a: f64, b: f64) -> f64 {
    let (difference, rounding) = (a - b, 4.0 * f64::EPSILON * (a.abs() + b.abs()));
    // The difference is infinite, or so far from 0 that the exponential is 0 or ∞ however a and b are rounded.
    let certain = difference.abs() == f64::INFINITY || difference.abs() - rounding > RANGE;
    if rounding < 0.1 || certain { difference.exp() } else { f64::NAN }
}

/// Beyond this magnitude e^t is 0 or ∞.
const RANGE: f64 = 746.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_keep_their_digits() {
        assert_eq!(ln_expm1(0.0), f64::NEG_INFINITY);
        assert!((ln_expm1(1e-12) - (1e-12f64.ln() + 5e-13)).abs() < 1e-14);
        assert_eq!(ln_expm1(1e5), 1e5);
        assert!((ln_expm1(1.0 + 1e-9) - ln_expm1(1.0)).abs() < 2e-9);
        assert_eq!(ln_1m_exp(0.0), f64::NEG_INFINITY);
        assert!((ln_1m_exp(1e-12) - 1e-12f64.ln()).abs() < 1e-12);
        assert!((ln_1m_exp(50.0) + (-50f64).exp()).abs() < 1e-36);
        assert_eq!(ln_add_exp(f64::NEG_INFINITY, f64::NEG_INFINITY), f64::NEG_INFINITY);
        assert_eq!(ln_add_exp(3.0, f64::NEG_INFINITY), 3.0);
        assert_eq!(ln_add_exp(f64::INFINITY, f64::INFINITY), f64::INFINITY);
        assert!((ln_add_exp(1e3, 1e3) - 1e3 - LN_2).abs() < 1e-12);
        assert_eq!(ln_sinh(0.0), f64::NEG_INFINITY);
        assert!((ln_sinh(-1e-9) - 1e-9f64.ln()).abs() < 1e-14);
        assert_eq!(expm1(-800.0).value(), -1.0);
    }

    #[test]
    fn sums_of_exponentials_follow_one_rule() {
        let sum = |terms: &[(f64, f64)]| scaled_sum(terms.iter().copied());
        let (zero, infinite) = (f64::NEG_INFINITY, f64::INFINITY);
        assert_eq!(sum(&[]), (zero, 0.0));
        assert_eq!(sum(&[(zero, 3.0), (zero, 1.0)]), (zero, 0.0));
        assert_eq!(sum(&[(1e4, 2.0), (zero, 5.0), (1e4, -0.5)]), (1e4, 1.5));
        assert_eq!(sum(&[(infinite, 2.0), (0.0, 7.0), (infinite, 0.5)]), (infinite, 2.5));
        let (scale, unknown) = sum(&[(infinite, 1.0), (f64::NAN, 1.0)]);
        assert!(scale == 0.0 && unknown.is_nan());
        assert_eq!(ln_sum_exp(&[]), zero);
        assert_eq!(ln_sum_exp(&[zero, infinite, 0.0]), infinite);
        assert!(ln_sum_exp(&[f64::NAN]).is_nan() && ln_sum_exp(&[1.0, f64::NAN]).is_nan());
        assert!((ln_sum_exp(&[1e3, 1e3, -1e3]) - 1e3 - LN_2).abs() < 1e-12);
        assert_eq!(largest([f64::NAN, -2.0].into_iter()), -2.0);
    }

    #[test]
    fn excess_is_its_definition() {
        for (p, q, b) in
            [(0.3f64, 0.2f64, 0.4f64), (2.0, 1.0, -2.5), (-5.0, 5.5, 0.0), (0.0, 1e-7, 0.0), (-0.4, 0.5, 1.0)]
        {
            let naive = 0.5 * (p - q).exp() * b.cos() + 0.5 * (p + q).exp() - 1.0;
            let value = real_part_excess(p, q, b).value();
            assert!((value - naive).abs() < 1e-15 * (1.0 + naive.abs()), "{value} {naive}");
        }
        // ½(e⁻ᵗ + eᵗ) − 1 = t²/2 where the terms differ from 1 by rounding alone.
        assert!((real_part_excess(0.0, 1e-9, 0.0).value() / 5e-19 - 1.0).abs() < 1e-14);
        assert_eq!(real_part_excess(1e4, 1e4, 0.0).ln_abs, 2e4 - LN_2);
    }
}
