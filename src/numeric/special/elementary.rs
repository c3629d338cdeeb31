//! ln Γ, logarithms of hyperbolic cosines, and the largest of some logarithms.

use std::f64::consts::LN_2;

/// ln |Γ(x)|.
pub fn ln_gamma(x: f64) -> f64 {
    libm::lgamma(x)
}

/// The least argument for which Stirling's series is accurate to rounding.
pub(super) const STIRLING: f64 = 30.0;

/// ln Γ(x + 1) − (x + ½) ln x + x − ½ ln 2π for x ≥ 30.
pub(super) fn stirling_rest(x: f64) -> f64 {
    let u = (x * x).recip();
    (1.0 / 12.0 - u * (1.0 / 360.0 - u * (1.0 / 1260.0 - u / 1680.0))) / x
}

/// ln 2 cosh t, without overflow.
fn ln_2cosh(t: f64) -> f64 {
    t.abs() + (-2.0 * t.abs()).exp().ln_1p()
}

/// ln cosh t, without overflow or cancellation.
pub fn ln_cosh(t: f64) -> f64 {
    if t.abs() < 1.0 { 0.5 * (t.sinh() * t.sinh()).ln_1p() } else { ln_2cosh(t) - LN_2 }
}

/// The largest of some logarithms, ignoring NaN; −∞ if there is none.
pub fn largest(logarithms: impl Iterator<Item = f64>) -> f64 {
    logarithms.fold(f64::NEG_INFINITY, f64::max)
}

#[cfg(test)]
mod tests {
    use super::super::test_support::close;
    use super::*;

    /// Reference values to 20 digits, from arbitrary-precision arithmetic.
    #[test]
    #[allow(clippy::excessive_precision)]
    fn reference_values() {
        close(ln_gamma(0.5), 0.572364942924700087, 1e-14);
        close(ln_gamma(3.7), 1.42807232666538813, 1e-14);
        close(ln_gamma(171.5), 709.143163030928242, 1e-14);
        close(ln_gamma(100000.0), 1.05128770897365689e+6, 1e-14);
    }

    #[test]
    fn small_arguments_do_not_cancel() {
        close(ln_cosh(1e-12), 5e-25, 1e-14);
    }
}
