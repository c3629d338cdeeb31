//! The quantiles of the χ distribution.

use std::f64::consts::{SQRT_2, TAU};

use super::elementary::stirling_rest;
use super::normal::tail_estimate;

/// The most terms of a series or a continued fraction: enough for d of some 10⁹.
const TERMS: usize = 1 << 20;

/// The quantile of χ with d degrees of freedom: r with P(χ_d ≤ r) = p, for 0 < p < 1; 0 and ∞ at the ends. NaN unless d > 0.
///
/// χ_d² / 2 has the gamma distribution of shape a = d/2. From the approximation of Wilson and Hilferty, steps of fifth order find
/// where the distribution function is p. The relative error is some 1e-14, and 2⁻⁵² |ln r| where that is larger. The cost is O(√d) for
/// each of one to four steps, of which d < 1 takes more.
pub fn chi_quantile(d: f64, p: f64) -> f64 {
    if !(d > 0.0 && (0.0..=1.0).contains(&p)) {
        return f64::NAN;
    }
    if p == 0.0 || p == 1.0 {
        return if p == 0.0 { 0.0 } else { f64::INFINITY };
    }
    Gamma::new(0.5 * d).root_of_twice_quantile(p)
}

/// P(χ_d ≤ r) and P(χ_d > r) for r > 0. The smaller of them has a small relative error.
pub fn chi_tails(d: f64, r: f64) -> (f64, f64) {
    let (law, x) = (Gamma::new(0.5 * d), 0.5 * r * r);
    let slope = law.ln_slope(x).exp();
    if x < law.a + 1.0 {
        let lower = slope * law.lower(x);
        (lower, 1.0 - lower)
    } else {
        let upper = slope * law.upper(x);
        (1.0 - upper, upper)
    }
}

/// The gamma distribution of shape a. Its tails P and Q = 1 − P are divided by their slope s(x) = x f(x), the density of ln x, so
/// that nothing underflows.
struct Gamma {
    a: f64,
    /// ln s(a), the largest slope.
    ln_top: f64,
}

/// Where the search for a quantile starts.
enum Start {
    At(f64),
    /// ln x. The first term of the power series of P has all digits if x is small.
    Leading(f64),
}

/// How far x is from the quantile of p.
struct Miss {
    /// (p − P)/s.
    excess: f64,
    /// The step of Newton's method for the logarithm of the nearer tail, as a change of ln x.
    newton: f64,
}

impl Gamma {
    fn new(a: f64) -> Self {
        Gamma { a, ln_top: 0.5 * (a / TAU).ln() - stirling_rest(a) }
    }

    /// ln s = ln s(a) − a (μ − ln(1 + μ)) with x = a (1 + μ).
    fn ln_slope(&self, x: f64) -> f64 {
        let mu = (x - self.a) / self.a;
        let deviance = if mu > -0.5 { mu - mu.ln_1p() } else { mu - (x / self.a).ln() };
        self.ln_top - self.a * deviance
    }

    /// P/s = Σ xⁿ/(a (a + 1) … (a + n)), two terms at a time.
    fn lower(&self, x: f64) -> f64 {
        let (mut last, mut sum) = (1.0, 1.0);
        for n in (1..TERMS).step_by(2) {
            let (first, second) = (self.a + n as f64, self.a + n as f64 + 1.0);
            let ratio = x / (first * second);
            sum += last * ratio * (second + x);
            last *= ratio * x;
            if last < 1e-17 * sum {
                break;
            }
        }
        sum / self.a
    }

    /// Q/s = 1/(x + 1 − a − 1(1 − a)/(x + 3 − a − 2(2 − a)/(x + 5 − a − …))) for x ≥ a + 1, by the method of Lentz.
    fn upper(&self, x: f64) -> f64 {
        let mut b = x + 1.0 - self.a;
        let (mut c, mut d) = (f64::MAX, b.recip());
        let mut value = d;
        for n in 1..TERMS {
            let n = n as f64;
            let numerator = -n * (n - self.a);
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

    /// √(2x) for the quantile x of p. It is in the range of numbers where x may be below.
    fn root_of_twice_quantile(&self, p: f64) -> f64 {
        let mut x = match self.start(p) {
            Start::At(x) => x,
            Start::Leading(ln_x) if ln_x > -80.0 => ln_x.exp(),
            Start::Leading(ln_x) => return SQRT_2 * (0.5 * ln_x).exp(),
        };
        for _ in 0..40 {
            let miss = self.miss(x, p);
            // The size of successive terms of the series, relative to each other.
            let size = miss.excess.abs() * (self.a - x).abs().max(x.sqrt()).max(1.0);
            // Far from the solution steps are kept within a factor of e.
            let step = if size < 0.1 { self.step(x, miss.excess) } else { miss.newton.clamp(-1.0, 1.0) };
            x *= step.exp();
            // What remains is the sixth power.
            if size < 2e-3 {
                break;
            }
        }
        (2.0 * x).sqrt()
    }

    /// The approximation of Wilson and Hilferty or, far in the lower tail, the first term of the power series.
    fn start(&self, p: f64) -> Start {
        let ninth = (9.0 * self.a).recip();
        let normal = if p <= 0.5 { -tail_estimate(p.ln()) } else { tail_estimate((-p).ln_1p()) };
        let cube_root = 1.0 - ninth + normal * ninth.sqrt();
        if cube_root >= 0.3 {
            return Start::At(self.a * cube_root.powi(3));
        }
        let ln_a = self.a.ln();
        Start::Leading(ln_a - 1.0 + (p.ln() + ln_a - self.ln_top) / self.a)
    }

    /// How far P is from p at x. Up to p = 0.95 the lower tail loses hardly a digit, and its series is faster.
    fn miss(&self, x: f64, p: f64) -> Miss {
        let ln_slope = self.ln_slope(x);
        let (ln_wanted, found, sign) = if p > 0.95 && x >= self.a + 1.0 {
            ((-p).ln_1p() - ln_slope, self.upper(x), -1.0)
        } else {
            (p.ln() - ln_slope, self.lower(x), 1.0)
        };
        Miss { excess: sign * (ln_wanted.exp() - found), newton: sign * found * (ln_wanted - found.ln()) }
    }

    /// The change of ln x that adds s times `excess` to P: the reversed series, up to the fifth power.
    fn step(&self, x: f64, excess: f64) -> f64 {
        let q = self.a - x;
        let square = q * q;
        // Coefficients of P/s as a series in the change of ln x, from derivatives of s.
        let c2 = q / 2.0;
        let c3 = (square - x) / 6.0;
        let c4 = (q * (square - 3.0 * x) - x) / 24.0;
        let c5 = (square * (square - 6.0 * x) + x * (3.0 * x - 4.0 * q - 1.0)) / 120.0;
        let r3 = 2.0 * c2 * c2 - c3;
        let r4 = 5.0 * c2 * (c3 - c2 * c2) - c4;
        let r5 = c2 * c2 * (14.0 * c2 * c2 - 21.0 * c3) + 3.0 * c3 * c3 + 6.0 * c2 * c4 - c5;
        excess * (1.0 + excess * (-c2 + excess * (r3 + excess * (r4 + excess * r5))))
    }
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
        close(chi_quantile(1.0, 1e-200), 1e-200 * (0.25 * TAU).sqrt(), 3e-13);
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
