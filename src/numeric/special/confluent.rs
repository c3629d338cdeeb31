//! ₁F₁(d; d/2; ±t), the conformities of orthogonal frequencies.

use std::f64::consts::PI;

use super::elementary::{STIRLING, ln_gamma, stirling_rest};
use super::series::{ln_series, ln_series_around};
use super::signed_log::SignedLog;

/// The largest t whose direct series is summed from its first term; and the largest place of the largest term for which other
/// series are.
const LONG: f64 = 5000.0;
const NEAR: f64 = 1000.0;
/// The largest number of steps of a recurrence, some 5 ms; and the largest t for a sum of some √t terms.
const STEPS: f64 = 1_048_576.0;
const LARGEST: f64 = 1e9;

/// ln ₁F₁(d; d/2; t) for t ≥ 0, with a relative error of about 1e-15: the conformity of orthogonal frequencies. It sums some
/// 10⁴ terms at most for d up to 10⁶, and never more than about 10⁵.
pub fn ln_1f1(d: f64, t: f64) -> f64 {
    let half = 0.5 * d;
    if t.is_nan() || t < 0.0 || d <= 0.0 {
        return f64::NAN;
    }
    let direct = |k: f64| (d + k) * t / ((half + k) * (k + 1.0));
    if t <= 0.5 {
        return ln_series(direct);
    }
    if t > 50.0 * d * d + 1000.0 {
        return ln_1f1_far(d, t);
    }
    let is_far = d % 2.0 == 1.0 && t > 2.0 * d + 50.0;
    if is_far || half.fract() == 0.0 {
        // Kummer: eᵗ times a polynomial with d/2 + 1 positive terms for even d; for odd d as at large t.
        let ratio = |k: f64| (half - k) * t / ((half + k) * (k + 1.0));
        let peak = kummer_peak(half, t);
        if peak < NEAR && !is_far {
            return t + ln_series(ratio);
        }
        if half - peak < NEAR {
            return ln_1f1_far(d, t);
        }
        let k = peak.floor() + half.fract();
        let curvature = (half - k).recip() + (half + k).recip() + k.recip();
        return t + ln_term(half - k + 1.0, half, k, t) + ln_series_around(k, curvature, ratio);
    }
    if t < LONG {
        return ln_series(direct);
    }
    // The largest term is where (d + k) t = (d/2 + k)(k + 1).
    let b = 0.5 + (1.0 - t) / d;
    let k = (0.5 * d * ((b * b + 4.0 * (t - 0.5) / d).sqrt() - b)).floor();
    let curvature = (half + k).recip() - (d + k).recip() + k.recip();
    ln_term(d, half, k, t) + ln_series_around(k, curvature, direct)
}

/// The place k of the largest term of Kummer's form, where (d/2 − k) t = (d/2 + k)(k + 1).
fn kummer_peak(half: f64, t: f64) -> f64 {
    let (b, c) = (1.0 + (1.0 + t) / half, t - 1.0);
    c / (0.5 * ((b * b + 4.0 / half * c).sqrt() + b))
}

/// ln of (a)ₖ/(b)ₖ tᵏ/k! for large k: parts that grow faster than k cancel before they are rounded.
fn ln_term(a: f64, b: f64, k: f64, t: f64) -> f64 {
    let ln_factorial = 0.5 * (2.0 * PI * k).ln() + stirling_rest(k) - k;
    k * ((a + k) / (b + k) * (t / k)).ln() + ln_rising(a, k) - ln_rising(b, k) - ln_factorial
}

/// ln of (x)ₖ/(x + k)ᵏ.
fn ln_rising(x: f64, k: f64) -> f64 {
    if x < STIRLING {
        return ln_gamma(x + k) - ln_gamma(x) - k * (x + k).ln();
    }
    (x - 0.5) * (k / x).ln_1p() - k + stirling_rest(x + k) - stirling_rest(x)
}

/// [`ln_1f1`] at large t: Γ(d/2)/Γ(d) eᵗ t^{d/2} Σ (−d/2)ₛ(1−d)ₛ/(s! tˢ).
///
/// For whole d the sum ends with s = d − 1, and for odd d it lacks only Γ(d/2)/Γ(−d/2) U(d, d/2, t) (NIST DLMF 13.2.41, 13.2.7).
/// As U ≤ t^{−d}, that is relative to the sum at most Γ(d) Γ(d/2 + 1)/π · e^{−t} t^{−3d/2}: below e^{−50} for t > 2d + 50. Terms
/// up to s = d/2 are positive; later terms alternate and fall by a factor of at least 20 each for t > 2d. For other d ratios
/// must be small.
///
/// With s = d/2 − k its terms are those of Kummer's form, eᵗ (s + 1)ₖ/(d/2)ₖ tᵏ/k!.
fn ln_1f1_far(d: f64, t: f64) -> f64 {
    let half = 0.5 * d;
    let sum = ln_series(|s| (s - half) * (s + 1.0 - d) / ((s + 1.0) * t));
    ln_gamma(half) - ln_gamma(d) + t + half * t.ln() + sum
}

/// ₁F₁(d; d/2; −t) for t ≥ 0, in [−1, 1], with an absolute error of about 1e-15: the trigonometric conformity of orthogonal
/// frequencies. For even d up to 2²¹ and t > 20 the relative error is about 1e-15 d, except near zeros.
///
/// It is below e^{−36} where t > 20 and d is even and larger, and where t > 1e9 and d is odd but not small beside √t: such
/// values are 0.
///
/// Kummer's form Σ (−d/2)ₖ/(d/2)ₖ e⁻ᵗ tᵏ/k!: Poisson weights times factors of at most 1, alternating up to k
/// = d/2.
pub fn alternating_1f1(d: f64, t: f64) -> f64 {
    let half = 0.5 * d;
    if t.is_nan() || t < 0.0 || d.is_nan() || d <= 0.0 {
        return f64::NAN;
    }
    if let Some(value) = signed_alternating_1f1(d, t) {
        return value.value();
    }
    // These take too many steps or terms, and values are below the error.
    if t > LARGEST || (t > 20.0 && half > STEPS && half.fract() == 0.0) {
        return 0.0;
    }
    let factor = |k: f64| (k - half) / (half + k);
    // The sum starts at the first weight that matters, with the factor there.
    let start = (t - 12.0 * t.sqrt() - 40.0).max(0.0).floor();
    let ln_weight = |k: f64| k * t.max(f64::MIN_POSITIVE).ln() - t - ln_gamma(k + 1.0);
    let mut term = if start == 0.0 {
        (-t).exp()
    } else {
        // Γ ratios with reflection: (−h)ₖ = (−1)ᵏ Γ(h+1)/Γ(h+1−k).
        let magnitude = ln_rising_ratio(half, start);
        let sign = rising_sign(half, start);
        sign * (magnitude + ln_weight(start)).exp()
    };
    let end = t + 14.0 * t.sqrt() + 60.0;
    let (mut sum, mut k) = (0.0, start);
    while k <= end && term != 0.0 {
        sum += term;
        term *= factor(k) * t / (k + 1.0);
        k += 1.0;
    }
    sum
}

/// [`alternating_1f1`] as sign and logarithm, if it can be computed with a small relative error: for t > 20 and even d up to 2²¹,
/// and for t ≫ d².
pub(crate) fn signed_alternating_1f1(d: f64, t: f64) -> Option<SignedLog> {
    if t == f64::INFINITY {
        return Some(SignedLog::from(0.0));
    }
    if (0.5 * d).fract() == 0.0 {
        (t > 20.0 && 0.5 * d <= STEPS).then(|| even_alternating_1f1(0.5 * d, t))
    } else {
        (t > 1e4 + 10.0 * d * d).then(|| alternating_1f1_far(d, t))
    }
}

/// For d = 2h: e⁻ᵗ times the polynomial L_h^{(h−1)}(t)/binom(2h−1, h), by the recurrence of Laguerre polynomials, which
/// is stable for all t. Near zeros the error is relative to the size around them.
fn even_alternating_1f1(h: f64, t: f64) -> SignedLog {
    let (mut last, mut value, mut ln_scale, mut n) = (0.0, 1.0, 0.0, 0.0);
    while n < h {
        // Each polynomial is divided by its value at 0, binom(n + h − 1, n).
        let grown = n + h;
        (last, value) = (value, ((2.0 * n + h - t) * value - n * last) / grown);
        n += 1.0;
        let size: f64 = last.abs().max(value.abs());
        if size > 1e100 {
            (last, value, ln_scale) = (last / size, value / size, ln_scale + size.ln());
        }
    }
    SignedLog::from(value).scaled(ln_scale - t)
}

/// [`alternating_1f1`] for odd d and t ≫ d²: Γ(d/2)/Γ(−d/2) t^{−d} Σ (d)ₛ(1+d/2)ₛ/(s! tˢ).
fn alternating_1f1_far(d: f64, t: f64) -> SignedLog {
    let half = 0.5 * d;
    let terms = (0..10).map(f64::from).scan(1.0, |term, s| {
        *term *= (d + s) * (1.0 + half + s) / ((s + 1.0) * t);
        Some(*term)
    });
    // 1/Γ(−h) = −h Γ(h) sin(πh)/π by reflection, with sin(πh) = ±1 for half-integers.
    let sign = if (half - 0.5) % 2.0 == 0.0 { -1.0 } else { 1.0 };
    let ln_size = 2.0 * ln_gamma(half) + half.ln() - PI.ln() - d * t.ln();
    SignedLog { ln_abs: ln_size + terms.sum::<f64>().ln_1p(), sign }
}

/// ln |(−h)ₖ/(h)ₖ|; −∞ where (−h)ₖ = 0.
fn ln_rising_ratio(h: f64, k: f64) -> f64 {
    if h.fract() == 0.0 && k > h {
        return f64::NEG_INFINITY;
    }
    ln_gamma(h + 1.0) - ln_gamma(h + 1.0 - k) + ln_gamma(h) - ln_gamma(h + k)
}

/// The sign of (−h)ₖ: that of (−1)^min(k, ⌈h⌉).
fn rising_sign(h: f64, k: f64) -> f64 {
    if k.min(h.ceil()) % 2.0 == 0.0 { 1.0 } else { -1.0 }
}

#[cfg(test)]
mod tests {
    use super::super::series::cost::terms;
    use super::super::test_support::close;
    use super::*;

    /// Reference values to 20 digits, from arbitrary-precision arithmetic.
    #[test]
    #[allow(clippy::excessive_precision)]
    fn reference_values() {
        assert!(ln_1f1(3.0, -1.0).is_nan());
        close(ln_1f1(2.0, 1e-09), 1.99999999950000012e-9, 1e-14);
        close(ln_1f1(3.0, 1e-09), 1.99999999960000012e-9, 1e-14);
        close(ln_1f1(1024.0, 1e-05), 1.99999998050682353e-5, 1e-14);
        close(ln_1f1(2.0, 0.3), 0.562364264467491032, 1e-14);
        close(ln_1f1(3.0, 0.7), 1.25816115365472064, 1e-14);
        close(ln_1f1(3.0, 30.0), 34.3839341230442762, 1e-14);
        close(ln_1f1(7.0, 300.0), 314.653990785628087, 1e-14);
        close(ln_1f1(5.0, 10000.0), 10020.1334796951812, 1e-14);
        close(ln_1f1(64.0, 40.0), 62.5137103999458282, 1e-14);
        close(ln_1f1(1024.0, 50.0), 95.8813007269427946, 1e-14);
        close(ln_1f1(1024.0, 5000.0), 6061.11293873638679, 1e-14);
        close(ln_1f1(1023.0, 20.0), 39.2745328630678246, 1e-14);
        close(ln_1f1(1023.0, 3000.0), 3849.73450805674377, 1e-14);
        // Asymptotic, for odd d.
        close(ln_1f1(1.0, 52.5), 55.0527715277234891, 1e-15);
        close(ln_1f1(3.0, 60.0), 65.376575982324609, 1e-15);
        close(ln_1f1(3.0, 722.0), 731.063256238906476, 1e-15);
        close(ln_1f1(5.0, 400.0), 412.110120320474717, 1e-15);
        close(ln_1f1(7.0, 1000.0), 1018.81977720530001, 1e-15);
        close(ln_1f1(63.0, 300.0), 364.873369810449005, 1e-15);
        close(ln_1f1(101.0, 260.0), 339.11264724083128, 1e-15);
        close(ln_1f1(1023.0, 2100.0), 2815.05576087630902, 1e-15);
        // Absolute: these are of the order of 1 or vanish.
        assert!((alternating_1f1(2.0, 0.5) - 0.30326532985631671).abs() < 1e-14);
        assert!((alternating_1f1(3.0, 0.5) - 0.31880538524823092).abs() < 1e-14);
        assert!((alternating_1f1(3.0, 10.0) - 0.0012044276238956865).abs() < 1e-14);
        assert!((alternating_1f1(3.0, 1000.0) - 3.7783233638561143e-10).abs() < 1e-14);
        assert!((alternating_1f1(5.0, 40.0) - -2.2743446005828633e-8).abs() < 1e-14);
        assert!((alternating_1f1(64.0, 3.0) - 0.0017698767528790286).abs() < 1e-14);
        assert!((alternating_1f1(65.0, 30.0) - 1.2405284210746666e-23).abs() < 1e-14);
        assert!((alternating_1f1(1024.0, 8.0) - 9.8933820370442189e-8).abs() < 1e-14);
        assert!((alternating_1f1(1023.0, 700.0) - 2.3080486153666675e-452).abs() < 1e-14);
        assert!((alternating_1f1(4.0, 900.0) - 1.8297775865545042e-386).abs() < 1e-14);
    }

    #[test]
    fn series_and_asymptotic_forms_meet() {
        for d in [3.0, 101.0f64] {
            let series = ln_series(|k| (d + k) * 4999.0 / ((0.5 * d + k) * (k + 1.0)));
            close(ln_1f1(d, 4999.0), series, 1e-14);
            close(ln_1f1(d, 5001.0) - ln_1f1(d, 4999.0), 2.0 * (1.0 + 0.5 * d / 5000.0), 2e-3);
        }
        // For odd d the asymptotic form is exact from 2d + 50 on, and its terms are few.
        for d in (1..200).step_by(2).chain([255, 601, 1023]).map(f64::from) {
            let direct = |k: f64| (d + k) * t_of(d, 0) / ((0.5 * d + k) * (k + 1.0));
            close(ln_1f1_far(d, t_of(d, 0)), ln_series(direct), 2e-15);
            for step in 1..4 {
                let t = t_of(d, step);
                let direct = |k: f64| (d + k) * t / ((0.5 * d + k) * (k + 1.0));
                close(ln_1f1(d, t), ln_series(direct), 2e-15);
            }
        }
        close(ln_1f1(64.0, 1e150), 1e150, 1e-15);
        close(ln_1f1(3.0, 1e150), 1e150, 1e-15);
    }

    /// Reference values to 20 digits, as above: sums around the largest term.
    #[test]
    #[allow(clippy::excessive_precision)]
    fn many_dimensions_keep_their_digits() {
        for (d, t, value) in [
            (50.5, 20000.0, 20159.191870126059501),
            (20001.0, 6000.0, 10170.545881350235142),
            (20000.0, 20000.0, 29404.029716161048219),
            (100001.0, 100000.0, 147019.73944756068279),
            (999999.0, 900000.0, 1341202.7937386230007),
            (999999.0, 2100000.0, 2806829.3484897175404),
            (1000000.0, 4000.0, 7968.5010836204716798),
            (1000000.0, 1000000.0, 1470194.1535955514785),
            (1000000.0, 3000000.0, 3839155.1522782091323),
            (1000001.0, 1500.0, 2995.5267927005153801),
        ] {
            close(ln_1f1(d, t), value, 1e-15);
        }
    }

    /// From the first term on there would be more than a million terms, a billion, or no end.
    #[test]
    fn many_dimensions_are_cheap() {
        let direct = |k: f64| (1e6 + 1.0 + k) * 1e6 / ((5e5 + 0.5 + k) * (k + 1.0));
        let all = terms(|| ln_series(direct));
        for (d, t) in [(1e6, 1e6), (1e6 + 1.0, 1e6), (1e6 + 1.0, 3e6), (1e9 + 1.0, 1e8), (1e15, 1e15)] {
            let own = terms(|| ln_1f1(d, t));
            assert!(4 * own < all, "d {d}, t {t}: {own} terms, from the first one {all}");
        }
        // e^{2t} is the limit for many dimensions, and e^t for large t.
        for t in [10.0, 1e4, 1e9, 1e18] {
            close(ln_1f1(1e300, t), 2.0 * t, 1e-15);
        }
        assert!((1.0..1.1).contains(&(ln_1f1(1e300, 1e308) / 1e308)));
    }

    /// From where on the asymptotic form is taken for odd d, and larger arguments, four times as large each.
    fn t_of(d: f64, step: i32) -> f64 {
        (2.0 * d + 50.0) * 4f64.powi(step)
    }

    /// For odd d too: sums from the first term have as many terms as t.
    #[test]
    fn large_arguments_are_cheap() {
        let arguments = || (0..4000).map(|k| 400.0 + 0.25 * f64::from(k));
        let of_all = |f: &dyn Fn(f64) -> f64| terms(|| arguments().map(f).sum());
        for d in [1.0, 3.0, 5.0] {
            let series = |t: f64| ln_series(|k| (d + k) * t / ((0.5 * d + k) * (k + 1.0)));
            let (own, all) = (of_all(&|t| ln_1f1(d, t)), of_all(&series));
            assert!(4 * own < all, "d {d}: {own} terms, from the first one {all}");
        }
    }

    /// Reference values from arbitrary-precision arithmetic, as logarithms where `f64` underflows.
    #[test]
    #[allow(clippy::excessive_precision)]
    fn even_dimensions_keep_their_digits() {
        for (d, t, sign, ln) in [
            (2.0, 600.0, -1.0, -593.60473840188455065),
            (4.0, 500.0, 1.0, -489.3745915624149987),
            (4.0, 900.0, 1.0, -888.19365147363648322),
            (6.0, 1e9, -1.0, -999999941.92454706638),
            (8.0, 2000.0, 1.0, -1976.3438271919972051),
            (64.0, 40.0, -1.0, -61.590245742460363933),
            (64.0, 250.0, 1.0, -206.6020257413804089),
            (64.0, 700.0, 1.0, -616.38038092170876953),
            (256.0, 300.0, -1.0, -357.31440545084362513),
            (256.0, 800.0, 1.0, -673.78914112173942037),
            (1024.0, 4000.0, 1.0, -3314.7236670737679042),
            (1024.0, 20000.0, 1.0, -18348.133940708281966),
        ] {
            let found = signed_alternating_1f1(d, t).unwrap();
            assert_eq!(found.sign, sign, "d {d}, t {t}");
            assert!((found.ln_abs - ln).abs() < 2e-15 * (d + ln.abs()), "d {d}, t {t}: {}", found.ln_abs);
        }
        assert_eq!([alternating_1f1(4.0, f64::INFINITY), alternating_1f1(5.0, f64::INFINITY)], [0.0; 2]);
        assert!(alternating_1f1(4.0, f64::NAN).is_nan() && alternating_1f1(5.0, f64::NAN).is_nan());
        // Both methods agree.
        for d in [2.0, 8.0, 64.0] {
            let (below, above) = (alternating_1f1(d, 20.0), alternating_1f1(d, 20.0 + 1e-12));
            assert!((below - above).abs() < 1e-14, "d {d}: {below}, {above}");
        }
    }

    /// A counter in `f64` stalls at 2⁵³, and a sum of 10¹¹ terms has no end: such values are below the error.
    #[test]
    fn huge_dimensions_and_arguments_have_an_end() {
        for d in [1e7, 1e8 + 1.0, 1e15, (1u64 << 60) as f64, usize::MAX as f64, 1e300] {
            for t in [20.5, 700.0, 1e6, 1e12, 1e18, 1e300] {
                let value = alternating_1f1(d, t);
                assert!(value.abs() < 1e-15, "d {d}, t {t}: {value}");
            }
            // e^{−2t} is the limit for many dimensions.
            for t in [0.0, 0.3, 5.0] {
                assert!((alternating_1f1(d, t) - (-2.0 * t).exp()).abs() < 1e-5, "d {d}, t {t}");
            }
        }
        // The largest that are still computed are as small as is stated: some e^{−40}.
        let edge = signed_alternating_1f1(2.0 * STEPS, 20.5).unwrap();
        assert!(
            (edge.ln_abs + 41.0).abs() < 0.01 && signed_alternating_1f1(2.0 * STEPS + 2.0, 20.5).is_none()
        );
        assert!(alternating_1f1(30_001.0, 0.9 * LARGEST).abs() < 1e-15);
    }

    #[test]
    fn far_tails_are_algebraic() {
        close(alternating_1f1(3.0, 1.2e4), 2.171_496_017_385_752_4e-13, 1e-6);
        close(alternating_1f1_far(3.0, 1.2e4).value(), 2.171_496_017_385_752_4e-13, 1e-12);
        close(alternating_1f1_far(1.0, 2e4).value(), -2.500_187_523_441_602_5e-5, 1e-13);
        close(alternating_1f1_far(5.0, 2e4).value(), -4.398_379_062_031_011e-22, 1e-12);
        assert_eq!(alternating_1f1(64.0, 1e9), 0.0);
        assert!(alternating_1f1(1.0, 1e300) < 0.0);
    }
}
