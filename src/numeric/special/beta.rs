//! The quantiles of the beta distribution, as logarithms of odds.

use std::f64::consts::PI;

use super::elementary::stirling_rest;
use super::log_space::{ln_1m_exp, ln_add_exp};
use super::normal::tail_estimate;

/// The most terms of a continued fraction: enough for parameters of some 10⁹.
const TERMS: usize = 1 << 20;

/// ln of the odds X/(1 − X) with a beta-distributed X of these parameters. The odds are the ratio of gamma-distributed numbers of
/// the shapes a and b.
#[derive(Clone, Copy, Debug)]
pub struct BetaOdds {
    a: f64,
    b: f64,
    /// ln of the density at the odds a/b.
    ln_top: f64,
}

impl BetaOdds {
    /// The law of the odds for a, b > 0.
    pub fn new(a: f64, b: f64) -> Self {
        let rest = stirling_rest(a + b) - stirling_rest(a) - stirling_rest(b);
        BetaOdds { a, b, ln_top: 0.5 * (a / (2.0 * PI) * (b / (a + b))).ln() + rest }
    }

    /// The odds with the roles of a and b exchanged: their logarithm is that of these odds, with the other sign.
    fn opposite(self) -> Self {
        BetaOdds { a: self.b, b: self.a, ..self }
    }

    /// ln of the density of ln odds at l.
    pub fn ln_density(&self, l: f64) -> f64 {
        let (t, sum) = (l - (self.a / self.b).ln(), self.a + self.b);
        // at − (a + b) ln(b/(a + b) + a/(a + b) eᵗ), from the side of the smaller parameter, where less cancels.
        let (small, t) = if self.a <= self.b { (self.a, t) } else { (self.b, -t) };
        let mean = if t.abs() < 1.0 {
            (small / sum * t.exp_m1()).ln_1p()
        } else {
            ln_add_exp((-small / sum).ln_1p(), (small / sum).ln() + t)
        };
        self.ln_top + small * t - sum * mean
    }

    /// ln P(ln odds ≤ l).
    pub fn ln_lower(&self, l: f64) -> f64 {
        if self.is_below(l) {
            return self.ln_fraction(l);
        }
        let upper = self.opposite().ln_fraction(-l);
        // Where the other tail is nearly 1, its complement has lost digits. The fraction converges slowly here if a + b is large, and then
        // loses digits, too.
        let nearly = if self.a + self.b < 100.0 { 0.1 } else { 1e-3 };
        if upper > -nearly { self.ln_fraction(l) } else { ln_1m_exp(-upper) }
    }

    /// Whether the continued fraction of the lower tail converges fast.
    fn is_below(&self, l: f64) -> bool {
        share(l) < (self.a + 1.0) / (self.a + self.b + 2.0)
    }

    /// ln P(ln odds ≤ l) by a continued fraction. NIST DLMF 8.17.22.
    fn ln_fraction(&self, l: f64) -> f64 {
        self.ln_density(l) - self.a.ln() + fraction(self.a, self.b, share(l)).ln()
    }

    /// ln of the odds below which the probability is p, for 0 < p < 1.
    ///
    /// ln P is a concave function of ln odds, so that Newton's method converges from below, where the leading term of P starts; near the
    /// solution Halley's method is faster. The relative error of the odds is some 1e-14, and 1e-16 (a + b) where that is larger, and
    /// 1e-12 where a parameter is below 0.1 and another above 100. The cost is O(√(a + b)) for each of some three to six steps.
    pub fn quantile(&self, p: f64) -> f64 {
        if p <= 0.5 { self.lower_quantile(p) } else { -self.opposite().lower_quantile(1.0 - p) }
    }

    fn lower_quantile(&self, p: f64) -> f64 {
        let (a, b, ln_p) = (self.a, self.b, p.ln());
        // The leading term e^{al}/(a B(a, b)) is at least P.
        let ln_leading = self.ln_top + b * (a / b).ln_1p() + a * (b / a).ln_1p() - a.ln();
        let least = (ln_p - ln_leading) / a;
        let width = (a.recip() + b.recip()).sqrt();
        let mut l = ((a / b).ln() - tail_estimate(ln_p) * width).max(least);
        for _ in 0..100 {
            let ln_lower = self.ln_lower(l);
            let slope = (self.ln_density(l) - ln_lower).exp();
            let newton = (ln_p - ln_lower) / slope;
            // The second derivative of ln P over the first, of which Halley's method takes account.
            let bend = 0.5 * newton * (a - (a + b) * share(l) - slope);
            let step = if bend.abs() < 0.5 { newton / (1.0 + bend) } else { newton };
            l = (l + step).max(least);
            // What remains is the third power of the step over the scale on which ln P bends.
            if newton.abs() * slope.max(width.recip()).max(1.0) < 1e-5 {
                break;
            }
        }
        l
    }
}

/// The probability with these ln odds.
fn share(l: f64) -> f64 {
    (1.0 + (-l).exp()).recip()
}

/// The continued fraction of the incomplete beta function, by the method of Lentz.
fn fraction(a: f64, b: f64, x: f64) -> f64 {
    let ratio = |n: f64| {
        let even = n * (b - n) * x / ((a + 2.0 * n - 1.0) * (a + 2.0 * n));
        let odd = -(a + n) * (a + b + n) * x / ((a + 2.0 * n) * (a + 2.0 * n + 1.0));
        [even, odd]
    };
    let not_zero = |v: f64| if v.abs() < 1e-300 { 1e-300 } else { v };
    let mut d = not_zero(1.0 - (a + b) * x / (a + 1.0)).recip();
    let (mut c, mut value) = (1.0, d);
    for n in 1..TERMS {
        let mut factor = 1.0;
        for numerator in ratio(n as f64) {
            d = not_zero(1.0 + numerator * d).recip();
            c = not_zero(1.0 + numerator / c);
            factor *= c * d;
            value *= c * d;
        }
        if (factor - 1.0).abs() < 2e-16 {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::super::test_support::close;
    use super::*;

    /// P(ln odds ≤ l) and P(ln odds > l).
    fn tails(odds: BetaOdds, l: f64) -> (f64, f64) {
        (odds.ln_lower(l).exp(), odds.opposite().ln_lower(-l).exp())
    }

    /// For a = 1 or b = 1 the distribution function is elementary.
    #[test]
    fn elementary_quantiles() {
        for b in [0.05, 0.3, 0.5, 1.0, 2.5, 20.0, 1e3] {
            for p in [1e-300, 2f64.powi(-64), 1e-9, 0.01, 0.3, 0.5, 0.7, 0.999, 1.0 - 0.5 * f64::EPSILON] {
                // P = 1 − (1 + odds)^{−b}.
                let ln_upper =
                    if p == 1.0 - 0.5 * f64::EPSILON { (0.5 * f64::EPSILON).ln() } else { (-p).ln_1p() };
                let expected = crate::numeric::special::ln_expm1(-ln_upper / b);
                let found = BetaOdds::new(1.0, b).quantile(p);
                assert!(
                    (found - expected).abs() < 1e-13 * (1.0 + expected.abs()),
                    "{b} {p}: {found} {expected}"
                );
                let mirrored = BetaOdds::new(b, 1.0).quantile(1.0 - p);
                let expected =
                    if 1.0 - p == 1.0 { continue } else { -BetaOdds::new(1.0, b).quantile(1.0 - (1.0 - p)) };
                assert!((mirrored - expected).abs() < 1e-13 * (1.0 + expected.abs()), "{b} {p}");
            }
        }
    }

    /// Reference values to 20 digits, from arbitrary-precision arithmetic: P(ln odds ≤ l).
    #[test]
    #[allow(clippy::excessive_precision)]
    fn reference_values() {
        for (a, b, l, lower, upper) in REFERENCE {
            let (below, above) = tails(BetaOdds::new(a, b), l);
            let tolerance = 2e-14 * (1.0 + (a + b) / 100.0);
            close(below, lower, tolerance);
            close(above, upper, tolerance);
        }
    }

    #[allow(clippy::excessive_precision)]
    const REFERENCE: [(f64, f64, f64, f64, f64); 14] = [
        (0.5, 0.3, -40.0, 9.051177422268744953e-10, 0.9999999990948822578),
        (0.5, 0.3, 3.0, 0.7051052713530458224, 0.2948947286469541776),
        (0.5, 0.3, 90.0, 0.9999999999986243991, 1.375600909733515175e-12),
        (4.0, 0.5, 1.0, 0.1245876539694634941, 0.8754123460305365059),
        (4.0, 0.5, 60.0, 0.999999999999795302, 2.046980024433788195e-13),
        (1.5, 2.5, -2.0, 0.125069240538379889, 0.874930759461620111),
        (32.0, 1000.0, -3.0, 0.9964886706462742066, 0.003511329353725793416),
        (32.0, 1000.0, -5.5, 3.873701446855632503e-18, 0.9999999999999999961),
        (500.0, 0.3, 9.0, 0.5237223620110312987, 0.4762776379889687013),
        (500.0, 0.3, 5.0, 0.004268251158450765078, 0.9957317488415492349),
        (500.0, 1000.0, -1.0, 1.983913950019265286e-8, 0.9999999801608604998),
        (500.0, 1000.0, -0.4, 0.9999999728794942222, 2.712050577782443756e-8),
        (4.0, 0.05, 700.0, 0.9999999999999993101, 6.898979944993320578e-16),
        (4.0, 0.05, -3.0, 7.17872324105120097e-8, 0.9999999282127675895),
    ];

    #[test]
    fn quantiles_are_the_inverse_in_both_tails() {
        for a in [0.5, 1.0, 1.5, 4.0, 32.0, 500.0] {
            for b in [0.05, 0.3, 0.5, 1.5, 2.5, 20.0, 1e3] {
                let odds = BetaOdds::new(a, b);
                for k in 0..2000usize {
                    let p = [2f64.powi(-64), 1e-12, 1e-6, 0.0][k % 4] + (k / 4) as f64 / 500.0;
                    if p == 0.0 {
                        continue;
                    }
                    let (lower, upper) = tails(odds, odds.quantile(p));
                    close(lower, p, 1e-12);
                    close(upper, 1.0 - p, 1e-12);
                }
                let all: Vec<f64> = (1..1000).map(|k| odds.quantile(f64::from(k) / 1000.0)).collect();
                assert!(all.is_sorted_by(|a, b| a < b), "{a} {b}");
                let last = 1.0 - 0.5 * f64::EPSILON;
                close(tails(odds, odds.quantile(last)).1, 0.5 * f64::EPSILON, 1e-12);
            }
        }
    }
}
