//! Matérn kernels of any smoothness, as means of Gaussian kernels.
//!
//! k(δ) = E exp(−‖δ‖²/(2G)) with a gamma-distributed G of shape ν and mean 1. In u = ln G the density is proportional to
//! exp(ν(u + 1 − eᵘ)), which is analytic and falls off fast: the trapezoidal rule is exact up to rounding. All terms are positive, so that
//! nothing cancels, neither in k far away nor in 1 − k nearby.

use std::f64::consts::TAU;

use crate::numeric::special::stirling_rest;

/// Terms below the largest by this much in ln are nothing beside it.
pub(super) const NEGLIGIBLE: f64 = 45.0;

/// The largest ‖δ‖² for which sums of a variance do not overflow. Beyond it kernels are 0.
const FAR: f64 = 1e300;

/// The curvature of an exponent above which a factor e⁻ᵘ hardly moves its top.
const NARROW: f64 = 100.0;

/// The size below which the part of an exponential that is linear in v is nothing.
const TINY: f64 = 1e-290;

/// The trapezoidal rule over ln G.
struct Rule {
    nu: f64,
    /// The distance of nodes: a part of the width of the integrand, for which the error of the rule is below 1e-16: it is
    /// 2|Γ(ν + 2πi/step)|/Γ(ν).
    step: f64,
    /// ln of the step over the integral of the density.
    ln_norm: f64,
}

impl Rule {
    /// For integrands whose logarithm has at most this curvature at its top.
    fn new(nu: f64, curvature: f64) -> Self {
        let step = 0.15f64.min(0.55 / curvature.sqrt());
        Rule { nu, step, ln_norm: step.ln() + 0.5 * (nu / TAU).ln() - stirling_rest(nu) }
    }

    /// u of a node.
    fn node(&self, index: i32) -> f64 {
        f64::from(index) * self.step
    }

    /// ln of the weight of a node.
    fn ln_weight(&self, u: f64) -> f64 {
        self.ln_norm + self.nu * (u - u.exp_m1())
    }

    /// The sum over all nodes relative to the largest, from ln of a node relative to it by the distance in u.
    fn relative_sum(&self, below: impl Fn(f64) -> f64) -> f64 {
        let side = |sign: i32| -> f64 {
            let terms = (1..).map(|k: i32| below(f64::from(sign * k) * self.step));
            terms.take_while(|below| *below > -NEGLIGIBLE).map(f64::exp).sum()
        };
        1.0 + side(1) + side(-1)
    }
}

/// The place at which the integrand of k is largest: its exponent ν(u + 1 − eᵘ) − ½‖δ‖²e⁻ᵘ is concave, and its slope is 0 where νG² − νG = ½‖δ‖².
struct Top {
    /// G.
    largest: f64,
    /// νG.
    of_weight: f64,
    /// ½‖δ‖²/G.
    of_kernel: f64,
}

impl Top {
    fn new(nu: f64, square: f64) -> Self {
        let largest = 0.5 + 0.5 * (1.0 + 2.0 * square / nu).sqrt();
        Top { largest, of_weight: nu * largest, of_kernel: 0.5 * square / largest }
    }
}

/// ln k at ‖δ‖² = `square`.
pub fn ln_mean(nu: f64, square: f64) -> f64 {
    let Top { largest, of_weight, of_kernel } = Top::new(nu, square);
    if square == 0.0 {
        return 0.0;
    }
    if largest.is_infinite() {
        return f64::NEG_INFINITY;
    }
    let rule = Rule::new(nu, of_weight + of_kernel);
    // Nodes by the distance from the top: the slope there is ν − νG + ½‖δ‖²/G = 0.
    let below = |v: f64| -of_weight * exp_excess(v) - of_kernel * exp_excess(-v);
    let top = rule.ln_weight(largest.ln()) - of_kernel;
    (top + rule.relative_sum(below).ln()).min(0.0)
}

/// Minus the slope of ln k at ‖δ‖ = `distance`, finite and above 0: ‖δ‖ E\[exp(−‖δ‖²/(2G))/G\]/k.
pub fn steepness(nu: f64, distance: f64) -> f64 {
    let square = distance * distance;
    let Top { largest, of_weight, of_kernel } = Top::new(nu, square);
    if of_weight + of_kernel < NARROW {
        let ln_mean = ln_inverse_mean(nu, distance) - ln_mean(nu, square);
        let mean = ln_mean.exp();
        // Near 0 the mean may exceed the range of numbers while its product with a tiny distance does not.
        return if mean.is_finite() { distance * mean } else { (distance.ln() + ln_mean).exp() };
    }
    // Both means have nearly the same narrow integrand, and ln k may be large.
    let rule = Rule::new(nu, of_weight + of_kernel);
    let below = |v: f64| -of_weight * exp_excess(v) - of_kernel * exp_excess(-v);
    distance / largest * (rule.relative_sum(|v| below(v) - v) / rule.relative_sum(below))
}

/// ln E exp(−‖δ‖²/(2G))/G at ‖δ‖ = `distance`.
fn ln_inverse_mean(nu: f64, distance: f64) -> f64 {
    // The exponent ν(u + 1 − eᵘ) − u − ½‖δ‖²e⁻ᵘ is concave; its slope is 0 where νG − ½‖δ‖²/G = ν − 1. These two sizes have the product
    // ½ν‖δ‖²: the smaller one may be below the range of numbers.
    let gap = (nu - 1.0).abs();
    let larger = (0.5 * (gap + gap.hypot((2.0 * nu).sqrt() * distance))).max(f64::MIN_POSITIVE);
    let larger = Size { value: larger, ln: larger.ln() };
    let value = 0.5 * nu * distance * (distance / larger.value);
    let smaller = Size { value, ln: (0.5 * nu).ln() + 2.0 * distance.ln() - larger.ln };
    let (of_weight, of_kernel) = if nu < 1.0 { (smaller, larger) } else { (larger, smaller) };
    let rule = Rule::new(nu, of_weight.value + of_kernel.value);
    let below = |v: f64| -of_weight.times_excess(v) - of_kernel.times_excess(-v);
    let u = of_weight.ln - nu.ln();
    rule.ln_weight(u) - u - of_kernel.value + rule.relative_sum(below).ln()
}

/// The size of an exponential in an exponent.
struct Size {
    value: f64,
    ln: f64,
}

impl Size {
    /// The size times eᵛ − 1 − v; of a tiny one only what grows matters.
    fn times_excess(&self, v: f64) -> f64 {
        if self.value > TINY { self.value * exp_excess(v) } else { (self.ln + v).exp() }
    }
}

/// ln ½(1 + k(2δ) − 2k(δ)²) at ‖δ‖² = `square`.
///
/// With the Gaussian kernel q = exp(−‖δ‖²/(2G)), whose value at 2δ is q⁴, it is ln ½(E\[(1 − q)²(3 + 2q + q²)\] − 2(1 − Eq)²).
pub fn ln_variance(nu: f64, square: f64) -> f64 {
    match square {
        0.0 => return f64::NEG_INFINITY,
        FAR.. => return 0.5f64.ln(),
        _ => {}
    }
    let rule = Rule::new(nu, nu);
    let (mut first, mut second) = (LnSum::default(), LnSum::default());
    // Adds a node to E(1 − q) and to the other mean; whether it matters to either.
    let mut add = |u: f64| {
        let power = 0.5 * square * (-u).exp();
        let (q, ln_complement) = ((-power).exp(), (-(-power).exp_m1()).ln());
        let term = rule.ln_weight(u) + ln_complement;
        let of_first = first.add(term);
        second.add(term + ln_complement + (3.0 + q * (2.0 + q)).ln()) || of_first
    };
    let mut right = (0..).map(|index| rule.node(index));
    while right.next().is_some_and(&mut add) {}
    // Far to the left q is 0 and the weights are a geometric series.
    let is_series = |u: f64| 0.5 * square * (-u).exp() > NEGLIGIBLE && nu * u.exp() < 1e-17;
    let mut left = 1;
    while !is_series(rule.node(-left)) && add(rule.node(-left)) {
        left += 1;
    }
    let end = rule.node(-left);
    if is_series(end) {
        let rest = rule.ln_weight(end) - (-(-nu * rule.step).exp_m1()).ln();
        first.add(rest);
        second.add(rest + 3f64.ln());
    }
    let (first, second) = (first.ln(), second.ln());
    second + (-2.0 * (2.0 * first - second).exp()).ln_1p() - std::f64::consts::LN_2
}

/// eᵛ − 1 − v, by its series where it would cancel.
pub(super) fn exp_excess(v: f64) -> f64 {
    if v.abs() > 0.1 {
        return v.exp_m1() - v;
    }
    let rest = (3..=9).rev().fold(1.0, |rest, k| 1.0 + v / f64::from(k) * rest);
    0.5 * v * v * rest
}

/// A sum of exponentials.
struct LnSum {
    /// The largest exponent.
    top: f64,
    /// The sum relative to the largest term.
    relative: f64,
}

impl Default for LnSum {
    fn default() -> Self {
        LnSum { top: f64::NEG_INFINITY, relative: 0.0 }
    }
}

impl LnSum {
    /// Adds e^`term`, unless it is nothing beside the largest; whether it was added.
    fn add(&mut self, term: f64) -> bool {
        if term > self.top {
            self.relative = self.relative * (self.top - term).exp() + 1.0;
            self.top = term;
            return true;
        }
        let matters = term > self.top - NEGLIGIBLE;
        if matters {
            self.relative += (term - self.top).exp();
        }
        matters
    }

    fn ln(&self) -> f64 {
        self.top + self.relative.ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ν = ½ and 3/2 have closed forms.
    #[test]
    fn half_integers_are_their_closed_forms() {
        for distance in [1e-140f64, 1e-9, 1e-3, 0.1, 1.0, 7.0, 300.0, 1e14, 1e36, 1e140] {
            let square = distance * distance;
            let half = -distance;
            let scaled = 3f64.sqrt() * distance;
            let three_halves = scaled.ln_1p() - scaled;
            for (nu, exact) in [(0.5, half), (1.5, three_halves)] {
                let found = ln_mean(nu, square);
                assert!(
                    (found - exact).abs() <= 2e-14 * exact.abs().max(1.0),
                    "{nu} {distance}: {found} {exact}"
                );
            }
            // ½(1 − e^{−2δ}).
            let exact = (-0.5 * (-2.0 * distance).exp_m1()).ln();
            let found = ln_variance(0.5, square);
            assert!((found - exact).abs() <= 1e-13 * exact.abs().max(1.0), "{distance}: {found} {exact}");
        }
    }

    /// ν = ½ and 3/2 have closed forms: minus the derivative of ln k by ½‖δ‖² is 1/δ and 3/(1 + √3 δ).
    #[test]
    fn derivatives_of_half_integers_are_their_closed_forms() {
        for distance in [1e-300f64, 1e-140, 1e-9, 1e-3, 0.1, 1.0, 7.0, 60.0, 300.0, 1e14, 1e140] {
            let three_halves = 3.0 / (1.0 + 3f64.sqrt() * distance);
            for (nu, exact) in [(0.5, distance.recip()), (1.5, three_halves)] {
                let (found, exact) = (steepness(nu, distance), distance * exact);
                assert!((found / exact - 1.0).abs() <= 2e-13, "{nu} {distance}: {found} {exact}");
            }
        }
    }

    #[test]
    fn the_smallest_distances_have_slopes() {
        for nu in [0.05, 0.3, 0.5, 1.0, 1.7] {
            for distance in [5e-324, 1e-310, f64::MIN_POSITIVE] {
                assert!(steepness(nu, distance).is_finite(), "{nu} {distance}");
            }
        }
    }

    /// For ν > 1 it is ν/(ν − 1) times the kernel of ν − 1 at a larger distance; near δ = 0 a power of δ for ν < 1, and a logarithm for
    /// ν = 1, K₀(√2 δ) · 2.
    #[test]
    fn derivatives_have_their_limits() {
        for (nu, distance) in [(1.3f64, 0.4f64), (2.7, 3.0), (30.0, 0.01), (1000.0, 1.0)] {
            let exact = (nu / (nu - 1.0)).ln() + ln_mean(nu - 1.0, distance * distance * nu / (nu - 1.0));
            assert!((ln_inverse_mean(nu, distance) - exact).abs() < 1e-12, "{nu} {distance}");
        }
        let euler = 0.577_215_664_901_532_9;
        for distance in [1e-300f64, 1e-160, 1e-20, 1e-9] {
            let exact = (2.0 * (-(0.5f64.sqrt() * distance).ln() - euler)).ln();
            for nu in [1.0 - 1e-16, 1.0, 1.0 + 3e-16] {
                let found = ln_inverse_mean(nu, distance);
                assert!((found - exact).abs() < 1e-12, "{nu} {distance}: {found} {exact}");
            }
            // 1 − k is nearly (½ν)^ν Γ(1−ν)/Γ(1+ν) δ^{2ν}.
            for nu in [0.05, 0.3, 0.8] {
                let ratio =
                    crate::numeric::special::ln_gamma(1.0 - nu) - crate::numeric::special::ln_gamma(nu);
                let exact = nu * (0.5 * nu).ln() + ratio + 2f64.ln() + (2.0 * nu - 2.0) * distance.ln();
                let found = ln_inverse_mean(nu, distance);
                assert!((found - exact).abs() < 1e-2, "{nu} {distance}: {found} {exact}");
                let slope = (exact + distance.ln() - ln_mean(nu, distance * distance)).exp();
                assert!((steepness(nu, distance) / slope - 1.0).abs() < 2e-2, "{nu} {distance}");
            }
        }
    }

    /// Large ν tend to the Gaussian kernel, by about ‖δ‖⁴/(8ν) of ln k.
    #[test]
    fn many_degrees_are_nearly_gaussian() {
        for distance in [0.1f64, 1.0, 2.0] {
            let square = distance * distance;
            let off = ln_mean(1000.0, square) + 0.5 * square;
            assert!(off.abs() < square * square / 8000.0 + 1e-3 * square, "{distance}: {off}");
            let gaussian = (0.5 * (-square).exp_m1().powi(2)).ln();
            assert!((ln_variance(1000.0, square) - gaussian).abs() < 0.01, "{distance}");
        }
    }

    #[test]
    fn ends_have_their_limits() {
        for nu in [0.05, 0.7, 2.5, 1000.0] {
            assert_eq!((ln_mean(nu, 0.0), ln_variance(nu, 0.0)), (0.0, f64::NEG_INFINITY));
            assert_eq!(ln_mean(nu, f64::INFINITY), f64::NEG_INFINITY);
            for far in [1e30, 1e299, f64::INFINITY] {
                assert!((ln_variance(nu, far) - 0.5f64.ln()).abs() < 1e-13, "{nu} {far}");
            }
            // 1 − k is nearly a multiple of δ^{2ν} for ν < 1, else of δ², and the variance of its square or of it: nothing underflows.
            let (ln_k, share) = (ln_mean(nu, 1e-200), 1e-200f64.powf(nu.min(1.0)));
            assert!(ln_k <= 0.0 && -ln_k < 10.0 * share.max(1e-15), "{nu}: {ln_k}");
            assert!(ln_variance(nu, 1e-200).is_finite());
        }
    }
}
