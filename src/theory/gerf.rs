//! Generalised exponential features (GERF) and optimal positive features (OPRF).
//!
//! f(ω, x) = D exp(A‖ω‖² + B ω·x + C‖x‖²), and with sB in place of B for y; A is complex and s = ±1. s = 1, A = 0 is
//! the positive map, s = −1, A = 0 the trigonometric one, and s = 1 with the optimal real A is OPRF. Variances are for
//! the Gaussian kernel; for softmax add ‖x‖² + ‖y‖² to the logarithm.

use std::f64::consts::LN_2;

use num_complex::Complex64;

use super::conformity::{conformity_excess, signed_trigonometric_excess};
use super::gaussian::{VarianceTerms, not_known, trigonometric};
use super::{Law, Pair, Radius};
use crate::SignedLog;
use crate::numeric::special::{ln_sinh, real_part_excess};
use crate::tagged::tagged;

/// The sign s of a generalised exponential feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GerfSign {
    /// s = 1: positive features and their relatives.
    Plus,
    /// s = −1: trigonometric features and their relatives.
    Minus,
}

tagged!(GerfSign, "a sign" {
    "+" => Plus,
    "-" => Minus,
});

impl GerfSign {
    /// The number s: 1 or −1.
    pub fn value(self) -> f64 {
        match self {
            GerfSign::Plus => 1.0,
            GerfSign::Minus => -1.0,
        }
    }

    /// ‖x + s y‖².
    fn distance(self, pair: &Pair) -> f64 {
        match self {
            GerfSign::Plus => pair.sum,
            GerfSign::Minus => pair.difference,
        }
    }
}

/// B, C and D of the features D exp(A‖ω‖² + B ω·x + C‖x‖²).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coefficients {
    /// B = √(s(1 − 4A)).
    pub b: Complex64,
    /// C = −(s + 1)/2.
    pub c: f64,
    /// D = (1 − 4A)^{d/4}.
    pub d: Complex64,
}

/// The parameters of OPRF.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Optimum {
    /// ρ = 1/(1 − 8A), in (0, 1\].
    pub rho: f64,
    /// A ≤ 0.
    pub a: f64,
}

/// The coefficients that make the estimate unbiased for the Gaussian kernel; NaN unless Re(1 − 4A) > 0.
///
/// B = √(s(1 − 4A)), C = −(s + 1)/2, D = (1 − 4A)^{d/4}. Source: Chefs' Random Tables, Theorem 3.1.
pub fn coefficients(a: Complex64, s: GerfSign, d: usize) -> Coefficients {
    let base = 1.0 - 4.0 * a;
    if base.re.is_nan() || base.re <= 0.0 {
        let nan = Complex64::new(f64::NAN, f64::NAN);
        return Coefficients { b: nan, c: f64::NAN, d: nan };
    }
    // Adding 0 makes a negative zero positive: √ of a negative real number is i times a positive one.
    let b = (s.value() * base + Complex64::new(0.0, 0.0)).sqrt();
    Coefficients { b, c: -0.5 * (s.value() + 1.0), d: base.powf(0.25 * d as f64) }
}

/// ln of the variance of the estimate of the Gaussian kernel; `None` without a closed form.
///
/// Finite for Re(1 − 8A) > 0, else +∞; NaN for Re(1 − 4A) ≤ 0, where the estimate does not exist. Holds for any A and s
/// and any known law with radii χ_d: independent rows, fixed angles, antithetic pairs.
///
/// The covariance of two terms whose rows are at a fixed angle does not depend on A: it is that of positive features
/// for s = 1 and of trigonometric ones for s = −1. Derivation: let z = x + sy, ωᵢ = rᵢûᵢ, and (Aᵢ, Bᵢ) be (A, B) or its
/// conjugate. Up to a constant, the product of two terms is ∏ᵢ Dᵢ² exp(2Aᵢrᵢ² + Bᵢrᵢ ûᵢ·z) over i = 1, 2. Its mean over
/// joint rotations of û₁ and û₂ is e^{2A₁r₁² + 2A₂r₂²} ₀F₁(; d/2; v·v ‖z‖²/4) with v = B₁r₁û₁ + B₂r₂û₂. The radii have
/// densities ∝ r^{d−1}e^{−r²/2}, which the factor turns into r^{d−1}e^{−(1−4Aᵢ)r²/2}. Rotating the contours of
/// integration to rᵢ = tᵢ/√(1−4Aᵢ), valid for Re(1−8A) > 0, restores the density of χ_d and gives a factor that cancels
/// Dᵢ². Since Bᵢ = ±√s √(1−4Aᵢ), v·v becomes s‖t₁û₁ ± t₂û₂‖², its value at A = 0. The derivation requires d ≥ 2 and
/// radii χ_d that are independent of each other and of the directions.
///
/// Source: Chefs' Random Tables, Theorem 3.2; angles and antithetic pairs: new.
pub fn ln_variance(pair: &Pair, a: Complex64, s: GerfSign, law: &Law) -> Option<f64> {
    let pairs = law.pairs(Radius::Chi)?;
    let (contraction, base) = (1.0 - 8.0 * a, 1.0 - 4.0 * a);
    if base.re.is_nan() || base.re <= 0.0 {
        return Some(f64::NAN);
    }
    if contraction.re <= 0.0 {
        return Some(f64::INFINITY);
    }
    if a == Complex64::ZERO && s == GerfSign::Minus {
        // The trigonometric map, relative to e^{‖x‖²+‖y‖²}.
        return trigonometric(&Pair { norms: 0.0, ..*pair }, law);
    }
    if pair.dim < 2 && !pairs.angles.is_empty() {
        return None;
    }
    let (half, w) = (0.5 * pair.dim as f64, s.distance(pair));
    // E (Re f)² = ½ Re E f² + ½ E |f|², each relative to K².
    let square = half * ln_1p(16.0 * a / contraction * a) + s.value() * w / contraction;
    // (s/2)(…) of the paper, with |1−4A| − Re(1−4A) factored out, so that nothing cancels.
    let turn = 16.0 * a.im * a.im / (base.norm() + base.re) / contraction.re;
    let growth = match s {
        GerfSign::Plus => 1.0 / contraction.re + turn,
        GerfSign::Minus => 1.0 + turn,
    };
    let modulus = half * (16.0 * a.norm() / contraction.re * a.norm()).ln_1p() + w * growth;
    let single = real_part_excess(0.5 * (modulus + square.re), 0.5 * (modulus - square.re), square.im);
    let angle = |cos| match s {
        GerfSign::Plus => conformity_excess(pair.dim, w, cos),
        GerfSign::Minus => signed_trigonometric_excess(pair.dim, w, cos).scaled(w),
    };
    let antithetic = antithetic(half, a, s, w, single);
    let terms = VarianceTerms { single, antithetic, angle: &angle, coupled: &not_known };
    Some(terms.ln_variance(law, Radius::Chi)? - pair.difference)
}

/// The variance of a term plus its covariance with the term of −ω: E f(ω)f(−ω) is K² (1 + 16A²/(1 − 8A))^{d/2} e^{−sw},
/// and E f(ω)f̄(−ω) is K² (1 + 16|A|²/Re(1 − 8A))^{d/2} e^{−sw − 2(Im B)²w/Re(1 − 8A)}.
fn antithetic(half: f64, a: Complex64, s: GerfSign, w: f64, single: SignedLog) -> SignedLog {
    if a == Complex64::ZERO {
        // (e^w − 1) + (e^{−w} − 1) without cancellation.
        return SignedLog::positive(2.0 * (LN_2 + ln_sinh(0.5 * w)));
    }
    let (contraction, b) = (1.0 - 8.0 * a, coefficients(a, s, 1).b);
    let square = half * ln_1p(16.0 * a / contraction * a) - s.value() * w;
    let growth = s.value() + 2.0 * b.im * b.im / contraction.re;
    let modulus = half * (16.0 * a.norm() / contraction.re * a.norm()).ln_1p() - w * growth;
    let covariance = real_part_excess(0.5 * (modulus + square.re), 0.5 * (modulus - square.re), square.im);
    SignedLog::sum([single, covariance].into_iter())
}

/// ln(1 + z), accurate where z is small.
fn ln_1p(z: Complex64) -> Complex64 {
    let size = if z.norm() < 1e8 { 0.5 * (2.0 * z.re + z.norm_sqr()).ln_1p() } else { (1.0 + z).norm().ln() };
    Complex64::new(size, z.im.atan2(1.0 + z.re))
}

/// The real A ≤ 0 that minimises the variance of OPRF at ‖x+y‖² = `v2`.
///
/// `v2` may be the mean of ‖x+y‖² over pairs of data: then A* minimises the mean logarithm of the second moment. Valid
/// for any finite `v2` ≥ 0. Source: Chefs' Random Tables, Theorem 3.3, rewritten to avoid 0/0 at 0.
pub fn optimal(d: usize, v2: f64) -> Optimum {
    let d = d as f64;
    // In units of d, so that the square of a huge v² does not overflow.
    let u = v2 / d;
    let root = (2.0 * u + 1.0).hypot((8.0 * u).sqrt());
    let rho = 2.0 / (root + 2.0 * u + 1.0);
    let root_minus_one = u * (4.0 * u + 12.0) / (root + 1.0);
    let excess = if u > 1e100 { 2.0 * u } else { 0.5 * (root_minus_one + 2.0 * u) };
    Optimum { rho, a: -excess / 8.0 }
}

/// The real A that minimises the second moment for s = −1 at ‖x−y‖² = `w`: in \[0, ⅛).
///
/// With c = 1 − 8A and relative to the squared kernel it is ½ ((1+c)²/(4c))^{d/2} (e^w + e^{−w/c}). Its
/// logarithm has the derivative 16dA/(c(1−4A)) − 8v/(c(e^{w+v} + 1)) with v = w/c, which is negative at A =
/// 0, positive near ⅛ and has one zero between, found by bisection. Source: new.
pub fn optimal_minus(d: usize, w: f64) -> f64 {
    // Above this value A is 0 up to rounding.
    let w = w.min(1e3);
    let rises = |a: f64| {
        let v = w / (1.0 - 8.0 * a);
        2.0 * d as f64 * a / (1.0 - 4.0 * a) >= v / ((w + v).exp() + 1.0)
    };
    let (mut low, mut high) = (0.0, 0.125);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if rises(middle) { high = middle } else { low = middle }
    }
    low
}
