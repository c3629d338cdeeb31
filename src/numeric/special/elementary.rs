//! ln Γ, logarithms of hyperbolic cosines, and the largest of some logarithms.

use std::f64::consts::{LN_2, TAU};

/// ln |Γ(x)|.
pub fn ln_gamma(x: f64) -> f64 {
    libm::lgamma(x)
}

/// The least argument for which four terms of Stirling's series are accurate to rounding.
pub(super) const STIRLING: f64 = 30.0;

/// ln Γ(x + 1) − (x + ½) ln x + x − ½ ln 2π, whose parts cancel for large x.
pub fn stirling_rest(x: f64) -> f64 {
    if x < 10.0 {
        return ln_gamma(x) - (x - 0.5) * x.ln() + x - 0.5 * TAU.ln();
    }
    let u = (x * x).recip();
    if x < STIRLING {
        let more = 1.0 / 1680.0 - u * (1.0 / 1188.0 - u * (691.0 / 360_360.0));
        return (1.0 / 12.0 - u * (1.0 / 360.0 - u * (1.0 / 1260.0 - u * more))) / x;
    }
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

    /// On both sides of the arguments where longer and shorter series begin.
    #[test]
    #[allow(clippy::excessive_precision)]
    fn the_rest_of_stirlings_series() {
        for (x, rest) in [
            (0.05, 0.75186114474776213653),
            (1.0, 0.08106146679532725822),
            (9.99, 0.0083388967977343302689),
            (10.0, 0.0083305634333628712565),
            (29.9, 0.0027869641212798201808),
            (30.0, 0.0027776749297526936036),
            (1000.0, 0.000083333330555556349206),
        ] {
            assert!((stirling_rest(x) - rest).abs() < 1e-14, "{x}");
        }
    }

    #[test]
    fn small_arguments_do_not_cancel() {
        close(ln_cosh(1e-12), 5e-25, 1e-14);
    }
}
