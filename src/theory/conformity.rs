//! RF-conformity: the expected product of the features of two coupled frequencies.
//!
//! Frequencies ωᵢ, ωⱼ have independent radii χ_d and a fixed angle θ between uniform directions. The conformity of
//! exponential features is ρ(v) = E exp((ωᵢ+ωⱼ)·z) with v = ‖z‖, that of trigonometric features κ = E cos(ωᵢ·z) cos(ωⱼ·z) =
//! ½(ρ_θ + ρ_{π−θ}) at v² → −‖z‖². For independent frequencies the values are e^{v²} and e^{−‖z‖²}. Mean squared errors
//! need the difference from these. It would cancel for small arguments and is summed there from its own power series.
//!
//! Source: Simplex Random Features, equations 10 and 18–24; trigonometric with an angle: new.

use std::cell::RefCell;
use std::f64::consts::FRAC_PI_2;
use std::rc::Rc;

use crate::SignedLog;
use crate::numeric::special::{
    alternating_1f1, expm1, gauss_legendre, gauss_legendre_rule, ln_1f1, scaled_sum, signed_alternating_1f1,
};

/// Arguments up to which the excess is summed from its power series.
const SMALL: f64 = 1.0;

/// The largest t |cos θ| for which the density of the angle alone says where an integrand matters: the other factor varies
/// by about e^{2t |cos θ|} at most.
const FLAT: f64 = 4.0;

/// The angles that a conformity averages over.
#[derive(Clone, Copy, PartialEq)]
enum Angles {
    /// One angle, with this cosine.
    One(f64),
    /// The angle with this cosine and its supplement π − θ, for functions that are even in ω.
    Both(f64),
}

impl Angles {
    /// The cosines.
    fn cosines(self) -> impl Iterator<Item = f64> + Clone {
        let (first, second) = match self {
            Angles::One(cos) | Angles::Both(cos) if cos == 0.0 => (0.0, None),
            Angles::One(cos) => (cos, None),
            Angles::Both(cos) => (cos, Some(-cos)),
        };
        std::iter::once(first).chain(second)
    }

    /// The mean of `f` over the cosines.
    fn mean(self, f: impl Fn(f64) -> f64) -> f64 {
        let cosines = self.cosines();
        let count = cosines.clone().count() as f64;
        cosines.map(f).sum::<f64>() / count
    }
}

/// ln ρ for two frequencies at an angle with cosine `cos`, in ℝᵈ, at v² = `v2` ≥ 0. NaN for d = 0 or |cos| > 1.
///
/// ρ = ∫ sin^{d−1}φ ₁F₁(d; d/2; ½v²(1 + cos θ sin φ)) dφ / ∫ sin^{d−1}φ dφ over \[0, π/2\], for orthogonal directions
/// ₁F₁(d; d/2; ½v²). All terms are positive for any d and v. Source: Simplex Random Features, equations 21 and 23.
pub fn ln_conformity(d: usize, v2: f64, cos: f64) -> f64 {
    let (n, t) = (d as f64, 0.5 * v2);
    if d == 0 || cos.abs() > 1.0 {
        return f64::NAN;
    }
    if cos == 0.0 {
        return ln_1f1(n, t);
    }
    if v2 <= SMALL {
        return (v2.exp_m1() + excess_series(d, v2, Angles::One(cos))).ln_1p();
    }
    let value = |sine: f64| ln_1f1(n, t * (1.0 + cos * sine));
    if t * cos.abs() <= FLAT {
        let law = sine_law(d);
        let values: Vec<(f64, f64)> = law.iter().map(|(sine, w)| (value(*sine), *w)).collect();
        let (top, sum) = scaled_sum(values.into_iter());
        return top + sum.ln();
    }
    let weight = |phi: f64| (n - 1.0) * phi.sin().ln();
    ln_integral(|phi| weight(phi) + value(phi.sin())) - ln_integral(weight)
}

/// ρ/e^{v²} − 1 for two frequencies at an angle with cosine `cos`: at most 0 for cos ≤ 0.
///
/// Its negative at `cos` = 0, times e^{v²}, is the orthogonality gap of positive features (Simplex Random
/// Features, equation 25).
pub fn conformity_excess(d: usize, v2: f64, cos: f64) -> SignedLog {
    excess(d, v2, Angles::One(cos))
}

/// ½(ρ_θ + ρ_{π−θ})/e^{v²} − 1: the mean of [`conformity_excess`] over θ and π − θ, for functions that are even in ω.
pub fn even_conformity_excess(d: usize, v2: f64, cos: f64) -> SignedLog {
    excess(d, v2, Angles::Both(cos))
}

fn excess(d: usize, v2: f64, angles: Angles) -> SignedLog {
    if v2 <= SMALL {
        return SignedLog::from(excess_series(d, v2, angles)).scaled(-v2);
    }
    let relative = angles.cosines().map(|cos| expm1(ln_conformity(d, v2, cos) - v2));
    let count = relative.clone().count() as f64;
    SignedLog::sum(relative).scaled(-count.ln())
}

/// κ = E cos(ωᵢ·z) cos(ωⱼ·z) at ‖z‖² = `z2`. The absolute error is about 1e-15 in any dimension, at the cost of up to d/2
/// steps, at most 2²⁰, for each of some hundred angles.
///
/// For orthogonal directions it is ₁F₁(d; d/2; −½‖z‖²). Source: Simplex Random Features, appendix A.8; with an angle: new.
pub fn trigonometric_conformity(d: usize, z2: f64, cos: f64) -> f64 {
    let (n, t) = (d as f64, 0.5 * z2);
    if d == 0 || cos.abs() > 1.0 {
        return f64::NAN;
    }
    if cos == 0.0 {
        return alternating_1f1(n, t);
    }
    let value = |sine: f64| Angles::Both(cos).mean(|cos| alternating_1f1(n, t * (1.0 + cos * sine)));
    sine_law(d).iter().map(|(sine, weight)| weight * value(*sine)).sum()
}

/// κ − e^{−‖z‖²} at ‖z‖² = `z2`. Negative where coupling reduces the error of trigonometric features.
pub fn trigonometric_excess(d: usize, z2: f64, cos: f64) -> f64 {
    if z2 <= SMALL {
        excess_series(d, -z2, Angles::Both(cos))
    } else {
        trigonometric_conformity(d, z2, cos) - (-z2).exp()
    }
}

/// [`trigonometric_excess`] as sign and logarithm. For orthogonal directions and even d up to 2²¹ it stays accurate where the
/// value itself underflows `f64`.
pub(super) fn signed_trigonometric_excess(d: usize, z2: f64, cos: f64) -> SignedLog {
    let far =
        if cos == 0.0 && z2 > SMALL && d > 0 { signed_alternating_1f1(d as f64, 0.5 * z2) } else { None };
    match far {
        Some(conformity) => SignedLog::sum([conformity, SignedLog { ln_abs: -z2, sign: -1.0 }].into_iter()),
        None => SignedLog::from(trigonometric_excess(d, z2, cos)),
    }
}

/// ρ(x) − eˣ by the power series Σ xᵏ/k! (Πₖ Eₖ − 1), for |x| ≤ 1.
fn excess_series(d: usize, x: f64, angles: Angles) -> f64 {
    if d == 0 {
        return f64::NAN;
    }
    with_excess_coefficients(d, angles, |coefficients| {
        let (mut power, mut sum) = (1.0, 0.0);
        for k in 1..60 {
            power *= x / k as f64;
            sum += power * coefficients.at(k);
            // Each coefficient is at most 2ᵏ.
            if (power * (k as f64).exp2()).abs() < 1e-18 * sum.abs() {
                break;
            }
        }
        sum
    })
}

/// Calls a function with the coefficients for d and the angles. A thread keeps the last few, since series at many arguments
/// follow each other.
fn with_excess_coefficients<R>(
    d: usize,
    angles: Angles,
    call: impl FnOnce(&mut ExcessCoefficients) -> R,
) -> R {
    const KEPT: usize = 8;
    thread_local! {
        static RECENT: RefCell<Vec<ExcessCoefficients>> = const { RefCell::new(Vec::new()) };
    }
    RECENT.with_borrow_mut(|recent| {
        let of_these = |one: &ExcessCoefficients| (one.d, one.angles) == (d, angles);
        let place = recent.iter().position(of_these).unwrap_or_else(|| {
            recent.truncate(KEPT - 1);
            recent.push(ExcessCoefficients::new(d, angles));
            recent.len() - 1
        });
        recent[..=place].rotate_right(1);
        call(&mut recent[0])
    })
}

/// Πₖ Eₖ − 1 for k from 1 to the largest that was needed, each without cancellation.
///
/// Πₖ = (d)ₖ/(2ᵏ (d/2)ₖ) is the series of orthogonal frequencies, Eₖ the mean of (1 + cos θ sin φ)ᵏ.
struct ExcessCoefficients {
    d: usize,
    angles: Angles,
    /// The nodes and weights of sin φ; none for orthogonal frequencies, whose Eₖ is 1.
    law: SineLaw,
    /// ln Πₖ for the last k.
    ln_pi: f64,
    known: Vec<f64>,
}

impl ExcessCoefficients {
    fn new(d: usize, angles: Angles) -> Self {
        let coupled = angles.cosines().any(|cos| cos != 0.0);
        let law = if coupled { sine_law(d) } else { Rc::new([]) };
        Self { d, angles, law, ln_pi: 0.0, known: Vec::new() }
    }

    fn at(&mut self, k: usize) -> f64 {
        while self.known.len() < k {
            let next = self.next();
            self.known.push(next);
        }
        self.known[k - 1]
    }

    fn next(&mut self) -> f64 {
        let (n, k) = (self.d as f64, (self.known.len() + 1) as f64);
        self.ln_pi += (-(k - 1.0) / (n + 2.0 * (k - 1.0))).ln_1p();
        let growth = |sine: f64| match self.angles {
            Angles::One(cos) => (k * (cos * sine).ln_1p()).exp_m1(),
            Angles::Both(cos) => even_growth(k, cos * sine),
        };
        let grown: f64 = self.law.iter().map(|(sine, weight)| weight * growth(*sine)).sum();
        self.ln_pi.exp_m1() + self.ln_pi.exp() * grown
    }
}

/// ½((1+z)ᵏ + (1−z)ᵏ) − 1 = Σ binom(k, 2j) z²ʲ from j = 1 on: positive terms, none for k = 1.
fn even_growth(k: f64, z: f64) -> f64 {
    let (mut sum, mut term, mut j) = (0.0, 1.0, 0.0);
    while 2.0 * j + 2.0 <= k {
        term *= (k - 2.0 * j) * (k - 2.0 * j - 1.0) / ((2.0 * j + 1.0) * (2.0 * j + 2.0)) * z * z;
        sum += term;
        j += 1.0;
    }
    sum
}

/// sin φ and the weight of each node.
type SineLaw = Rc<[(f64, f64)]>;

/// Quadrature nodes and weights for means over sin φ, with density ∝ sin^{d−1}φ on \[0, π/2\]. The nodes of the last d are
/// kept.
fn sine_law(d: usize) -> SineLaw {
    thread_local! {
        static LAST: RefCell<(usize, SineLaw)> = RefCell::new((0, Rc::new([])));
    }
    LAST.with_borrow_mut(|last| {
        if last.0 != d {
            *last = (d, sine_nodes(d).into());
        }
        last.1.clone()
    })
}

fn sine_nodes(d: usize) -> Vec<(f64, f64)> {
    polar_nodes(d as f64 - 1.0, f64::sin, gauss_legendre())
}

/// Nodes and weights for means over |cos φ| of a uniform direction in ℝᵈ and a fixed one, d ≥ 2: the density is ∝ sin^{d−2}φ.
pub(super) fn angle_law(d: usize, count: usize) -> Vec<(f64, f64)> {
    polar_nodes(d as f64 - 2.0, f64::cos, &gauss_legendre_rule(count))
}

/// Nodes and weights for means of a function of φ, with density ∝ sinⁿφ on \[0, π/2\].
fn polar_nodes(n: f64, of: fn(f64) -> f64, rule: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let weight = |phi: f64| n * phi.sin().ln();
    let (low, high) = window((0.0, FRAC_PI_2), weight);
    let nodes = rule.iter().map(|(x, w)| (0.5 * (low + high + x * (high - low)), w));
    let nodes: Vec<(f64, f64)> = nodes.map(|(phi, w)| (of(phi), w * weight(phi).exp())).collect();
    let total: f64 = nodes.iter().map(|(_, w)| w).sum();
    nodes.into_iter().map(|(value, w)| (value, w / total)).collect()
}

/// ln ∫ e^{h(φ)} dφ over \[0, π/2\] for unimodal h.
fn ln_integral(h: impl Fn(f64) -> f64) -> f64 {
    ln_integral_over((0.0, FRAC_PI_2), h)
}

/// ln ∫ e^{h(φ)} dφ over an interval for unimodal h.
pub(super) fn ln_integral_over(interval: (f64, f64), h: impl Fn(f64) -> f64) -> f64 {
    let (low, high) = window(interval, &h);
    let values: Vec<(f64, f64)> =
        gauss_legendre().iter().map(|(x, w)| (h(0.5 * (low + high + x * (high - low))), *w)).collect();
    let (top, sum) = scaled_sum(values.into_iter());
    top + (0.5 * (high - low) * sum).ln()
}

/// The part of an interval where unimodal h is within 45 of its maximum, narrow enough for Gauss–Legendre quadrature.
fn window((start, end): (f64, f64), h: impl Fn(f64) -> f64) -> (f64, f64) {
    const DEPTH: f64 = 45.0;
    let (mut a, mut b) = (start, end);
    for _ in 0..80 {
        let (left, right) = (a + 0.382 * (b - a), b - 0.382 * (b - a));
        if h(left) < h(right) { a = left } else { b = right }
    }
    let peak = 0.5 * (a + b);
    let level = h(peak).max(h(end)) - DEPTH;
    let edge = |mut outside: f64| {
        if h(outside) >= level {
            return outside;
        }
        let mut inside = peak;
        for _ in 0..40 {
            let middle = 0.5 * (inside + outside);
            if h(middle) >= level { inside = middle } else { outside = middle }
        }
        outside
    };
    (edge(start), edge(end))
}
