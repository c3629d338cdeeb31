//! The normal distribution and the error function.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// The error function.
fn erf(x: f64) -> f64 {
    libm::erf(x)
}

/// The distribution function of N(0, 1), accurate in both tails.
pub fn normal_cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x * FRAC_1_SQRT_2)
}

/// The quantile of N(0, 1): x with Φ(x) = p, for 0 < p < 1; ∓∞ at 0 and 1.
///
/// A rational approximation is refined by four steps of Halley's method on Φ. The relative error is about 1e-15.
pub fn normal_quantile(p: f64) -> f64 {
    if p >= 0.5 {
        return if p == 0.5 { 0.0 } else { -normal_quantile(1.0 - p) };
    }
    if p <= 0.0 {
        return if p == 0.0 { f64::NEG_INFINITY } else { f64::NAN };
    }
    (0..4).fold(-tail_estimate(p.ln()), |x, _| {
        // Near ½ the distance from ½ is used, in the tails Φ itself, so that nothing cancels.
        let distance = if p > 0.4 { 0.5 * erf(x * FRAC_1_SQRT_2) - (p - 0.5) } else { normal_cdf(x) - p };
        let error = distance / ((-0.5 * x * x).exp() / (2.0 * PI).sqrt());
        x - error / (1.0 + 0.5 * x * error)
    })
}

/// x ≥ 0 with Φ(−x) = eˡ for l ≤ ln ½, to 4.5e-4. Abramowitz and Stegun 26.2.23.
pub(super) fn tail_estimate(l: f64) -> f64 {
    let t = (-2.0 * l).sqrt();
    t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308)))
}

#[cfg(test)]
mod tests {
    use super::super::test_support::close;
    use super::*;

    /// Reference values to 20 digits, from arbitrary-precision arithmetic.
    #[test]
    #[allow(clippy::excessive_precision)]
    fn reference_values() {
        close(erf(1e-10), 1.12837916709551262e-10, 1e-14);
        close(erf(0.3), 0.328626759459127416, 1e-14);
        close(erf(2.5), 0.999593047982555041, 1e-14);
        close(erf(5.0), 0.99999999999846254, 1e-14);
        close(normal_cdf(-30.0), 4.90671392714818706e-198, 1e-13);
        close(normal_cdf(-8.0), 6.22096057427178412e-16, 1e-13);
        close(normal_cdf(-1.0), 0.158655253931457051, 1e-13);
        close(normal_cdf(0.5), 0.691462461274013104, 1e-13);
        close(normal_quantile(1e-300), -37.0470962993611992, 1e-15);
        close(normal_quantile(1e-20), -9.26234008979840758, 1e-15);
        close(normal_quantile(0.01), -2.32634787404084109, 1e-15);
        close(normal_quantile(0.4), -0.253347103135799741, 1e-15);
    }

    #[test]
    fn quantiles_invert_the_distribution() {
        for k in 1..300 {
            let p = 10f64.powi(-k);
            let x = normal_quantile(p);
            close(normal_cdf(x), p, 2e-14 * x.abs().max(1.0));
            if k < 10 {
                let q = 1.0 - p;
                close(normal_quantile(q), -normal_quantile(1.0 - q), 1e-15);
            }
        }
        close(normal_quantile(0.499_999), -2.506_628_274_566_559e-6, 1e-9);
        close(normal_quantile(0.5 - 2f64.powi(-40)), -(2.0 * PI).sqrt() * 2f64.powi(-40), 1e-14);
        assert_eq!(normal_quantile(0.5), 0.0);
        assert_eq!((normal_quantile(0.0), normal_quantile(1.0)), (f64::NEG_INFINITY, f64::INFINITY));
        assert!(normal_quantile(-0.1).is_nan() && normal_quantile(1.1).is_nan());
    }
}
