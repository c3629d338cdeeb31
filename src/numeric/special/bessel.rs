//! ₀F₁ and the modified Bessel functions.

use std::f64::consts::PI;

use super::elementary::{STIRLING, ln_cosh, ln_gamma, stirling_rest};
use super::series::ln_series;

/// ln ₀F₁(; b; x) for b > 0 and x ≥ 0, with a relative error of about 1e-15.
///
/// ₀F₁(; b; x) = Σ xᵏ/((b)ₖ k!) = Γ(b) x^{(1−b)/2} I_{b−1}(2√x).
pub fn ln_0f1(b: f64, x: f64) -> f64 {
    if x.is_nan() || x < 0.0 || b <= 0.0 {
        return f64::NAN;
    }
    let (order, argument) = (b - 1.0, 2.0 * x.sqrt());
    if x.is_infinite() {
        return x;
    }
    if b == 0.5 {
        return ln_cosh(argument);
    }
    if x > b && order >= 0.0 && order.hypot(argument) > 1000.0 {
        if order < STIRLING {
            return ln_gamma(b) - order * (0.5 * argument).ln() + ln_bessel_i_uniform(order, argument);
        }
        // Stirling's series for ln Γ(b), with the large parts cancelled analytically: r − ν is of the order of the result.
        let r = order.hypot(argument);
        let rise = argument * (argument / (r + order));
        let half = 0.5 * rise / order;
        return rise - order * half.ln_1p() - 0.5 * (2.0 * half).ln_1p()
            + stirling_rest(order)
            + debye_correction(order, r);
    }
    ln_series(|k| x / ((b + k) * (k + 1.0)))
}

/// ln I_ν(a) where √(ν² + a²) > 1000.
fn ln_bessel_i_uniform(order: f64, a: f64) -> f64 {
    order.hypot(a) + uniform_rest(order, a)
}

/// ln I_ν(a) for ν ≥ 0 and a ≥ 0: the modified Bessel function of the first kind; −∞ at a = 0 unless ν = 0.
pub fn ln_bessel_i(order: f64, a: f64) -> f64 {
    if order.hypot(a) > 1000.0 && a > 0.0 {
        return ln_bessel_i_uniform(order, a);
    }
    let power = if order == 0.0 { 0.0 } else { order * (0.5 * a).ln() };
    power - ln_gamma(order + 1.0) + ln_0f1(order + 1.0, 0.25 * a * a)
}

/// ln I_ν(a) − √(ν² + a²) by Debye's uniform expansion, whose error is of the order of (ν² + a²)^{−5/2}. NIST
/// DLMF 10.41.3.
fn uniform_rest(order: f64, a: f64) -> f64 {
    let r = order.hypot(a);
    debye_correction(order, r) - order * ((order + r) / a).ln() - 0.5 * (2.0 * PI * r).ln()
}

/// ln Σ uₖ(ν/r)/νᵏ of Debye's expansion, r = √(ν² + a²).
fn debye_correction(order: f64, r: f64) -> f64 {
    let p2 = (order / r).powi(2);
    let u1 = (3.0 - 5.0 * p2) / 24.0;
    let u2 = (81.0 - p2 * (462.0 - p2 * 385.0)) / 1152.0;
    let u3 = (30_375.0 - p2 * (369_603.0 - p2 * (765_765.0 - p2 * 425_425.0))) / 414_720.0;
    let u4 = (4_465_125.0
        - p2 * (94_121_676.0 - p2 * (349_922_430.0 - p2 * (446_185_740.0 - p2 * 185_910_725.0))))
        / 39_813_120.0;
    ((u1 + (u2 + (u3 + u4 / r) / r) / r) / r).ln_1p()
}

/// I₁(a)/I₀(a) for a ≥ 0.
pub fn bessel_i_ratio(a: f64) -> f64 {
    if a > 1000.0 {
        let u = a.recip();
        return 1.0 - u * (0.5 + u * (0.125 + u * (0.125 + u * 25.0 / 128.0)));
    }
    if a == 0.0 { 0.0 } else { (ln_bessel_i(1.0, a) - ln_bessel_i(0.0, a)).exp() }
}

#[cfg(test)]
mod tests {
    use super::super::test_support::close;
    use super::*;

    /// Reference values to 20 digits, from arbitrary-precision arithmetic.
    #[test]
    #[allow(clippy::excessive_precision)]
    fn reference_values() {
        close(ln_0f1(0.5, 1e-09), 1.99999999866666679e-9, 1e-14);
        close(ln_0f1(0.5, 3.0), 2.7719337146169257, 1e-14);
        close(ln_0f1(1.5, 400.0), 35.6179733653261184, 1e-14);
        close(ln_0f1(32.0, 1e-06), 3.12499999852035971e-8, 1e-14);
        close(ln_0f1(32.0, 700.0), 17.6454638122088697, 1e-14);
        close(ln_0f1(512.0, 30000.0), 55.6691987072048103, 1e-14);
        close(ln_0f1(1.0, 2000000.0), 2823.5344923900636, 1e-14);
        close(ln_0f1(512.0, 1000000000.0), 60622.0702545705917, 1e-14);
        close(ln_bessel_i(0.0, 0.001), 2.49999984375001747e-7, 1e-14);
        close(ln_bessel_i(0.0, 3.0), 1.58530762181342092, 1e-14);
        close(ln_bessel_i(1.0, 50.0), 47.1174736165871265, 1e-14);
        close(ln_bessel_i(2.5, 700.0), 695.801232523772824, 1e-14);
        close(ln_bessel_i(0.0, 5000.0), 4994.82248987358773, 1e-14);
        close(ln_bessel_i(511.0, 2000.0), 1930.33297200329257, 1e-14);
        close(ln_bessel_i(31.0, 1000000.0), 999992.172825812573, 1e-14);
        // Large orders, where ln Γ(b) and ln I cancel.
        close(ln_0f1(5e3, 6e3), 1.1998560748259052032, 4e-15);
        close(ln_0f1(5e3, 1e7), 1726.5765561335537724, 4e-15);
        close(ln_0f1(5e3, 1e12), 1968504.4682705227051, 4e-15);
        close(ln_0f1(5e6, 6e6), 1.1999998560000748799, 4e-15);
        close(ln_0f1(5e6, 1e9), 199.99600021411720663, 4e-15);
        close(ln_0f1(5e6, 1e14), 10912460.149862568795, 4e-15);
        close(ln_0f1(1e9, 3e9), 2.9999999955000000225, 4e-15);
        // On both sides of the order where Stirling's series begins to be used.
        close(ln_0f1(29.5, 3e5), 980.51061241364417602, 4e-15);
        close(ln_0f1(31.0, 3e5), 976.10104878904473408, 4e-15);
        close(ln_0f1(30.5, 3e6), 3311.9521404444857142, 4e-15);
        close(ln_0f1(800.0, 1e6), 863.64075742142794617, 4e-15);
        close(bessel_i_ratio(1e-08), 5.00000000000000004e-9, 1e-14);
        close(bessel_i_ratio(0.5), 0.242499612580801945, 1e-14);
        close(bessel_i_ratio(30.0), 0.983189555365336093, 1e-14);
        close(bessel_i_ratio(100000.0), 0.999994999987499875, 1e-10);
    }

    #[test]
    fn series_and_asymptotic_forms_meet() {
        for order in [0.0, 0.5, 1.0, 31.0, 511.0] {
            for a in [900.0, 998.0, 1002.0, 1500.0f64] {
                let series = ln_series(|k| 0.25 * a * a / ((order + 1.0 + k) * (k + 1.0)));
                let power = order * (0.5 * a).ln() - ln_gamma(order + 1.0);
                close(power + series, ln_bessel_i_uniform(order, a), 1e-14);
            }
        }
        close(bessel_i_ratio(1000.0), bessel_i_ratio(1000.1), 1e-6);
        close(1.0 - bessel_i_ratio(1e5), 5.000_012_500_125e-6, 1e-9);
        // Huge arguments are cheap and stay finite.
        close(ln_0f1(0.5, 1e300), 2e150, 1e-15);
        assert_eq!(ln_0f1(0.5, f64::INFINITY), f64::INFINITY);
        close(ln_bessel_i(3.0, 1e150), 1e150, 1e-15);
        close(ln_0f1(512.0, 1e280), 2e140, 1e-15);
        assert!(ln_0f1(-1.0, 1.0).is_nan());
    }
}
