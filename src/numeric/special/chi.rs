//! The quantiles of the χ distribution.

use std::f64::consts::{PI, SQRT_2};

use super::elementary::{STIRLING, ln_gamma, stirling_rest};
use super::normal::normal_quantile;

/// The most terms of a series or a continued fraction: enough for d of some 10⁹.
const TERMS: usize = 1 << 20;

/// The quantile of χ with d degrees of freedom: r with P(χ_d ≤ r) = p, for 0 < p < 1; 0 and ∞ at the ends. NaN unless d > 0.
///
/// χ_d² / 2 has the gamma distribution of shape a = d/2. From the approximation of Wilson and Hilferty, Newton's method finds where
/// the logarithm of the nearer tail is that of p. The relative error is some 1e-14, and the cost O(√d) for each of some four steps.
pub fn chi_quantile(d: f64, p: f64) -> f64 {
    if !(d > 0.0 && (0.0..=1.0).contains(&p)) {
        return f64::NAN;
    }
    if p == 0.0 || p == 1.0 {
        return if p == 0.0 { 0.0 } else { f64::INFINITY };
    }
    let a = 0.5 * d;
    let lower = p <= 0.5;
    let ln_tail = if lower { p.ln() } else { (1.0 - p).ln() };
    let ln_leading = (p.ln() + ln_gamma(a + 1.0)) / a;
    if ln_leading < -80.0 {
        // x may be below the range; the first term of the power series has all digits.
        return SQRT_2 * (0.5 * ln_leading).exp();
    }
    let mut x = start(a, p, ln_leading.exp());
    for _ in 0..40 {
        let (tail, ln_density) = if lower { ln_lower(a, x) } else { ln_upper(a, x) };
        // d ln P/d ln x = x f/P, and d ln Q/d ln x = −x f/Q.
        let slope = (ln_density + x.ln() - tail).exp();
        let step = if lower { (ln_tail - tail) / slope } else { (tail - ln_tail) / slope };
        // Steps are relative; far from the solution they are kept within a factor of e.
        x *= step.clamp(-1.0, 1.0).exp();
        // The number of digits doubles with each step.
        if step.abs() < 1e-9 {
            break;
        }
    }
    (2.0 * x).sqrt()
}

/// P(χ_d ≤ r) and P(χ_d > r) for r > 0. The smaller of them has a small relative error.
pub fn chi_tails(d: f64, r: f64) -> (f64, f64) {
    let (a, x) = (0.5 * d, 0.5 * r * r);
    if x < a {
        let lower = ln_lower(a, x).0.exp();
        (lower, 1.0 - lower)
    } else {
        let upper = ln_upper(a, x).0.exp();
        (1.0 - upper, upper)
    }
}

/// The approximation of Wilson and Hilferty or, far in the lower tail, the first term of the power series.
fn start(a: f64, p: f64, leading: f64) -> f64 {
    let ninth = (9.0 * a).recip();
    let cube_root = 1.0 - ninth + normal_quantile(p) * ninth.sqrt();
    let x = a * cube_root.max(0.0).powi(3);
    if cube_root < 0.3 { leading } else { x }
}

/// ln of the density of the gamma distribution of shape a at x.
fn ln_density(a: f64, x: f64) -> f64 {
    if a < STIRLING {
        return (a - 1.0) * x.ln() - x - ln_gamma(a);
    }
    // x^a e^{−x}/Γ(a + 1) = e^{−a (μ − ln(1 + μ))}/√(2πa) up to the rest of Stirling's series, with x = a (1 + μ).
    let mu = (x - a) / a;
    let deviance = if mu > -0.5 { mu - mu.ln_1p() } else { mu - (x / a).ln() };
    -a * deviance - 0.5 * (2.0 * PI * a).ln() - stirling_rest(a) + (a / x).ln()
}

/// ln P(a, x) and ln of the density. P is the density times x/a times a series of positive terms.
fn ln_lower(a: f64, x: f64) -> (f64, f64) {
    let density = ln_density(a, x);
    (density + (x / a).ln() + series(a, x).ln(), density)
}

/// Σ xⁿ/((a + 1) … (a + n)).
fn series(a: f64, x: f64) -> f64 {
    let (mut term, mut sum) = (1.0, 1.0);
    for n in 1..TERMS {
        term *= x / (a + n as f64);
        sum += term;
        if term < 1e-17 * sum {
            break;
        }
    }
    sum
}

/// ln Q(a, x) and ln of the density. Q is the density times x times a continued fraction; where that converges slowly, Q is
/// 1 − P, which is at least some 0.4.
fn ln_upper(a: f64, x: f64) -> (f64, f64) {
    let density = ln_density(a, x);
    if x < a + 1.0 {
        let lower = (density + (x / a).ln() + series(a, x).ln()).exp();
        return ((-lower).ln_1p(), density);
    }
    (density + x.ln() + fraction(a, x).ln(), density)
}

/// 1/(x + 1 − a − 1(1 − a)/(x + 3 − a − 2(2 − a)/(x + 5 − a − …))), by the method of Lentz.
fn fraction(a: f64, x: f64) -> f64 {
    let mut b = x + 1.0 - a;
    let (mut c, mut d) = (f64::MAX, b.recip());
    let mut value = d;
    for n in 1..TERMS {
        let n = n as f64;
        let numerator = -n * (n - a);
        b += 2.0;
        d = (numerator * d + b).recip();
        c = b + numerator / c;
        let factor = c * d;
        value *= factor;
        if (factor - 1.0).abs() < 1e-16 {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::super::test_support::close;
    use super::*;

    /// Reference values to 18 digits, from arbitrary-precision arithmetic.
    #[test]
    #[allow(clippy::excessive_precision)]
    fn reference_values() {
        let last = 1.0 - 2f64.powi(-40);
        let probabilities = [1e-12, 1e-3, 0.1, 0.5, 0.9, 0.999, last];
        let quantiles = [
            (
                1.0,
                [
                    1.25331413731550023e-12,
                    0.00125331446543255454,
                    0.125661346855074041,
                    0.674489750196081743,
                    1.64485362695147282,
                    3.29052673149189454,
                    7.14355203435218933,
                ],
            ),
            (
                2.0,
                [
                    1.41421356237344859e-6,
                    0.0447325459499799435,
                    0.45904360502642079,
                    1.17741002251547469,
                    2.14596602628934734,
                    3.71692218884983821,
                    7.44659482211806827,
                ],
            ),
            (
                3.0,
                [
                    0.000155498808442959966,
                    0.15587682898908591,
                    0.764443833224641351,
                    1.53817225445505233,
                    2.50027771080940601,
                    4.03314222365615679,
                    7.68847519991774326,
                ],
            ),
            (
                8.0,
                [
                    0.0665483921697721105,
                    0.925799561058896781,
                    1.86803081496259661,
                    2.71000396636274173,
                    3.65534760816419866,
                    5.11121135919618758,
                    8.58324468305378339,
                ],
            ),
            (
                16.0,
                [
                    0.491211942756674146,
                    1.98535332963196543,
                    3.05159570615047295,
                    3.91643956738791104,
                    4.85199226329722343,
                    6.26516997301497586,
                    9.61146524146091924,
                ],
            ),
            (
                64.0,
                [
                    3.62747409191645129,
                    5.88494988818507579,
                    7.07080548547601176,
                    7.95830270997101278,
                    8.88029518085472222,
                    10.2330994944366966,
                    13.3645247343922301,
                ],
            ),
            (
                1001.0,
                [
                    26.7916522946082007,
                    29.4687972543988548,
                    30.7262738488421202,
                    31.6280478740679207,
                    32.5384781316824624,
                    33.8376442266610489,
                    36.7354976383135426,
                ],
            ),
        ];
        for (d, expected) in quantiles {
            for (p, expected) in probabilities.into_iter().zip(expected) {
                close(chi_quantile(d, p), expected, 4e-15 * (1.0 + (d / 100.0)));
            }
        }
    }

    #[test]
    fn ends_and_what_has_none() {
        // P(χ₁ ≤ r) is √(2/π) r for small r.
        close(chi_quantile(1.0, 1e-200), 1e-200 * (0.5 * PI).sqrt(), 3e-13);
        assert!(chi_quantile(1.0, 5e-324) > 0.0);
        assert_eq!((chi_quantile(3.0, 0.0), chi_quantile(3.0, 1.0)), (0.0, f64::INFINITY));
        assert!(
            [(0.0, 0.5), (-1.0, 0.5), (2.0, -0.1), (2.0, 1.1), (2.0, f64::NAN)]
                .iter()
                .all(|(d, p)| chi_quantile(*d, *p).is_nan())
        );
    }

    /// Quantiles grow with p and d, and have the distribution function of two degrees of freedom, 1 − e^{−r²/2}.
    #[test]
    fn quantiles_grow() {
        let probabilities = (1..2000).map(|k| f64::from(k) / 2000.0);
        for d in [1.0, 2.0, 2.5, 7.0, 59.0, 60.0, 61.0, 513.0, 40_000.0, 1e7] {
            let all: Vec<f64> = probabilities.clone().map(|p| chi_quantile(d, p)).collect();
            assert!(all.is_sorted_by(|a, b| a < b), "{d}");
        }
        for p in probabilities {
            close(chi_quantile(2.0, p), (-2.0 * (-p).ln_1p()).sqrt(), 4e-15);
        }
    }
}
