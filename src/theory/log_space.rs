//! Sums and differences of exponentials, as logarithms.

/// ln(eᵗ − 1) for t ≥ 0, without overflow or cancellation; −∞ at 0.
pub fn ln_expm1(t: f64) -> f64 {
    if t > 1.0 { t + (-(-t).exp()).ln_1p() } else { t.exp_m1().ln() }
}

/// ln(1 − e⁻ᵗ) for t ≥ 0, without cancellation; −∞ at 0.
pub fn ln_1m_exp(t: f64) -> f64 {
    if t > std::f64::consts::LN_2 { (-(-t).exp()).ln_1p() } else { (-(-t).exp_m1()).ln() }
}

/// ln(eᵃ + eᵇ).
pub fn ln_add_exp(a: f64, b: f64) -> f64 {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    if high == f64::NEG_INFINITY { high } else { high + (low - high).exp().ln_1p() }
}

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
        assert!((ln_add_exp(1e3, 1e3) - 1e3 - std::f64::consts::LN_2).abs() < 1e-12);
    }
}
