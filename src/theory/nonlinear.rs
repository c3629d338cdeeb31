//! Variances of estimates from nonlinear features f(ω·x).

use std::f64::consts::{LN_2, PI};

use super::gaussian::{VarianceTerms, not_known};
use super::{Law, Pair, Radius, positive};
use crate::SignedLog;
use crate::kernel::{Activation, Kernel, angle, ln_norm};
use crate::numeric::special::{gauss_legendre, ln_1m_exp, ln_add_exp};

/// ln of the variance of (1/m) Σ f(ωⱼ·x) f(ωⱼ·y) at points of equal dimension, already divided by the lengthscale.
/// `None` where no closed form is known: for erf, GELU, sigmoid and tanh; and, except for exp, u and u², for rows with
/// any dependence other than antithetic pairs.
///
/// A single term has the variance E f²(ω·x) f²(ω·y) − K², where f² is again a function with a known kernel, or a sum of
/// such functions. With t = θ/π it is 4t(1−t) for sgn and (1−t)(1+t)/4 for the step, for any law of the radii; the
/// others require ω ~ N(0, I). For exp the estimate is that of the positive map times e^{(‖x‖²+‖y‖²)/2}, under any
/// known law. For ReLU² the second moment of a term is ‖x‖⁴‖y‖⁴ (12/π) ∫₀^{π−θ} (cos u + cos θ)⁴ du.
///
/// Rows at a fixed angle with cosine c: two terms have the covariance ((d−2)(x·y)² + d‖x‖²‖y‖²)(dc² − 1)/((d+2)(d−1))
/// for u, and d²(d+2)² (P₂(c) V₂ + P₄(c) V₄) for u², where V₂ and V₄ are the variances over the sphere of the second
/// and fourth harmonics of (u·x)²(u·y)² and Pₖ the Gegenbauer polynomials with Pₖ(1) = 1.
///
/// Antithetic pairs: a pair counts as one frequency if f is odd or even. The mean of its two terms has the variance
/// t(1−t)/4 for the step and ½E f²(ω·x) f²(ω·y) − K² for ReLU and ReLU², of whose terms at most one is not 0. For sgn
/// with one point 0 the two terms cancel, because sgn 0 = 1: the estimate is exactly 0, the kernel's value.
///
/// Source: Hybrid Random Features, Lemma 3.2, for sgn; the others are new.
pub fn nonlinear(f: Activation, x: &[f64], y: &[f64], law: &Law) -> Option<f64> {
    if f == Activation::Exp {
        let pair = Pair::new(x.iter().copied().zip(y.iter().copied()));
        return Some(positive(&pair, law)? + pair.norms);
    }
    let of_directions = matches!(f, Activation::Sign | Activation::Step);
    let single = ln_single(f, x, y)?;
    let pairs = if of_directions { law.directions()?.pairs(Radius::Chi)? } else { law.pairs(Radius::Chi)? };
    if !pairs.angles.is_empty() {
        return match f {
            Activation::Identity if x.len() > 1 => of_linear(x, y, single, law),
            Activation::Square if x.len() > 1 => of_squares(x, y, single, law),
            _ => None,
        };
    }
    // Unpaired rows, then paired rows: each counts twice the variance of the mean of its pair.
    let (m, paired) = (law.len() as f64, 2.0 * pairs.antithetic);
    let mut total = if paired < m { single + (m - paired).ln() } else { f64::NEG_INFINITY };
    if paired > 0.0 {
        total = ln_add_exp(total, ln_of_pair(f, x, y, single)? + (2.0 * paired).ln());
    }
    Some(total - 2.0 * m.ln())
}

/// The variance for u and rows at fixed angles. The mean of u_a u_b v_c v_d over unit vectors with u·v = c is rotation
/// invariant and therefore a sum of three products of Kronecker deltas.
fn of_linear(x: &[f64], y: &[f64], single: f64, law: &Law) -> Option<f64> {
    let d = x.len() as f64;
    let ln_kernel = |f: Activation| f.kernel().map(|kernel| kernel.log_of_slices(x, y).ln_abs);
    let ln_norms = ln_norm(x.iter().copied()) + ln_norm(y.iter().copied());
    let squares =
        ln_add_exp((d - 2.0).ln() + 2.0 * ln_kernel(Activation::Identity)?, d.ln() + 2.0 * ln_norms);
    let of_angle =
        |cos: f64| SignedLog::from((d * cos * cos - 1.0) / ((d + 2.0) * (d - 1.0))).scaled(squares);
    let single = SignedLog::positive(single);
    VarianceTerms { single, antithetic: single.scaled(LN_2), angle: &of_angle, coupled: &not_known }
        .ln_variance(law, Radius::Chi)
}

/// The variance for u² and rows at fixed angles. The covariance of F(u) and F(v) over unit vectors with u·v = c, for F(u) =
/// (u·x)²(u·y)², is the sum over its harmonics of their variances times Pₖ(c). The second harmonic of F is that of
/// ΔF/(2(d+4)), and ΔF = uᵀQu with Q = 2‖x‖²yyᵀ + 2‖y‖²xxᵀ + 4(x·y)(xyᵀ + yxᵀ).
fn of_squares(x: &[f64], y: &[f64], single: f64, law: &Law) -> Option<f64> {
    let d = x.len() as f64;
    let theta = angle(x.iter().copied().zip(y.iter().copied()));
    // All terms are relative to ‖x‖⁴‖y‖⁴.
    let q = theta.cos().powi(2);
    let (trace, squared) = (4.0 + 8.0 * q, 8.0 + 104.0 * q + 32.0 * q * q);
    let of_laplacian = 2.0 * (d * squared - trace * trace) / (d * d * (d + 2.0));
    let second = of_laplacian / (4.0 * (d + 4.0) * (d + 4.0));
    let mean = (1.0 + 2.0 * q) / (d * (d + 2.0));
    let square = (9.0 + 72.0 * q + 24.0 * q * q) / (d * (d + 2.0) * (d + 4.0) * (d + 6.0));
    let fourth = square - mean * mean - second;
    let scale = 4.0 * (ln_norm(x.iter().copied()) + ln_norm(y.iter().copied()));
    let of_angle = |cos: f64| {
        let c = cos * cos;
        let p2 = (d * c - 1.0) / (d - 1.0);
        let p4 = ((d + 2.0) * c * ((d + 4.0) * c - 6.0) + 3.0) / ((d - 1.0) * (d + 1.0));
        SignedLog::from((d * (d + 2.0)).powi(2) * (p2 * second + p4 * fourth)).scaled(scale)
    };
    let single = SignedLog::positive(single);
    VarianceTerms { single, antithetic: single.scaled(LN_2), angle: &of_angle, coupled: &not_known }
        .ln_variance(law, Radius::Chi)
}

/// E f²(ω·x) f²(ω·y) for ReLU². In polar coordinates the radius contributes the moment 2⁴4!, the angle the mean of
/// cos⁴φ cos⁴(φ−θ) where both cosines are positive.
fn second_moment_of_relu_squared(x: &[f64], y: &[f64]) -> SignedLog {
    let half = 0.5 * (PI - angle(x.iter().copied().zip(y.iter().copied())));
    // cos u + cos θ for u = (1 + s)w/2, w = π − θ, as a product that does not cancel near θ = π.
    let term = |s: f64| (2.0 * (half * (1.5 + 0.5 * s)).sin() * (half * (0.5 - 0.5 * s)).sin()).powi(4);
    let integral = half * gauss_legendre().iter().map(|(s, w)| w * term(*s)).sum::<f64>();
    SignedLog::from(12.0 / PI * integral)
        .scaled(4.0 * (ln_norm(x.iter().copied()) + ln_norm(y.iter().copied())))
}

/// ln of the variance of the mean of the two terms of an antithetic pair, from ln of the variance of one term.
fn ln_of_pair(f: Activation, x: &[f64], y: &[f64], single: f64) -> Option<f64> {
    let zero = |point: &[f64]| point.iter().all(|v| *v == 0.0);
    match f {
        // If one point is 0, the sum of the two terms is the same for every ω.
        Activation::Sign | Activation::Step if zero(x) || zero(y) => Some(f64::NEG_INFINITY),
        // (1 + sgn(ω·x) sgn(ω·y))/4.
        Activation::Step => Some(ln_of_signs(Activation::Sign, x, y) - 16f64.ln()),
        Activation::Relu => {
            let kernel = |f: Activation| f.kernel().map(|kernel| kernel.log_of_slices(x, y));
            Some(excess(kernel(Activation::ReluSquared)?.scaled(-LN_2), kernel(f)?))
        }
        Activation::ReluSquared => {
            let kernel = f.kernel().map(|kernel| kernel.log_of_slices(x, y))?;
            Some(excess(second_moment_of_relu_squared(x, y).scaled(-LN_2), kernel))
        }
        _ => Some(single),
    }
}

/// [`nonlinear`] for (f(ωⱼ·x) + ε) (f(ωⱼ·y) + ε). For ε ≠ 0 `None` unless rows are independent and f is u, u², |u|, the
/// step or ReLU.
///
/// With a = ω·x and b = ω·y the variance of a term is Var f(a)f(b) + 2ε Cov(f(a)f(b), f(a)+f(b)) + ε² Var(f(a)+f(b)).
/// The mixed moments, with c = cos θ: E f²(a) f(b) is 0 for u, ‖x‖²‖y‖ √(2/π) (1 + c²) for |u|, ‖x‖⁴‖y‖² (3 + 12c²) for
/// u², K for the step, ‖x‖²‖y‖ (1 + c)²/√(8π) for the ReLU. The rounding error is relative to the largest of these
/// terms. Source: new.
pub fn nonlinear_with_offset(f: Activation, offset: f64, x: &[f64], y: &[f64], law: &Law) -> Option<f64> {
    if offset == 0.0 {
        return nonlinear(f, x, y, law);
    }
    if !law.is_independent() {
        return None;
    }
    let kernel = |f: Activation, x: &[f64], y: &[f64]| f.kernel().map(|kernel| kernel.log_of_slices(x, y));
    let product = |u: SignedLog, v: SignedLog| SignedLog { sign: u.sign * v.sign, ..u.scaled(v.ln_abs) };
    let minus = |u: SignedLog| SignedLog { sign: -u.sign, ..u };
    let (own, both) = (kernel(f, x, y)?, [(x, y), (y, x)]);
    // The half angle is used, because 1 + cos θ would cancel near θ = π.
    let theta = angle(x.iter().copied().zip(y.iter().copied()));
    let (cos, half) = (theta.cos(), (0.5 * theta).cos());
    let mixed = |x: &[f64], y: &[f64]| {
        let (of_x, of_y) = (ln_norm(x.iter().copied()), ln_norm(y.iter().copied()));
        match f {
            Activation::Identity => Some(SignedLog::from(0.0)),
            Activation::Abs => {
                Some(SignedLog::from((2.0 / PI).sqrt() * (1.0 + cos * cos)).scaled(2.0 * of_x + of_y))
            }
            Activation::Square => {
                Some(SignedLog::from(3.0 + 12.0 * cos * cos).scaled(4.0 * of_x + 2.0 * of_y))
            }
            // ½K where x is 0, since the step at 0 is ½.
            Activation::Step => Some(if of_x == f64::NEG_INFINITY { own.scaled(-LN_2) } else { own }),
            Activation::Relu => {
                Some(SignedLog::from(4.0 * half.powi(4) / (8.0 * PI).sqrt()).scaled(2.0 * of_x + of_y))
            }
            _ => None,
        }
    };
    let mean = |x: &[f64]| f.mean(ln_norm(x.iter().copied()));
    let mut terms = vec![SignedLog::positive(ln_single(f, x, y)?)];
    let (twice, square) = (SignedLog::from(2.0 * offset), SignedLog::positive(2.0 * offset.abs().ln()));
    for (x, y) in both {
        // Cov(f(a)f(b), f(a)), and Var f(a) + Cov(f(a), f(b)).
        terms.push(product(twice, mixed(x, y)?));
        terms.push(minus(product(twice, product(own, mean(x)))));
        terms.push(product(square, kernel(f, x, x)?));
        terms.push(minus(product(square, product(mean(x), mean(x)))));
        terms.push(product(square, own));
        terms.push(minus(product(square, product(mean(x), mean(y)))));
    }
    let variance = SignedLog::sum(terms.into_iter());
    // A variance below the rounding of its terms counts as zero.
    let ln = if variance.sign < 0.0 { f64::NEG_INFINITY } else { variance.ln_abs };
    Some(ln - (law.len() as f64).ln())
}

/// ln(second − kernel²) for second ≥ kernel².
fn excess(second: SignedLog, kernel: SignedLog) -> f64 {
    let excess = second.ln_abs - 2.0 * kernel.ln_abs;
    if second.sign == 0.0 { f64::NEG_INFINITY } else { second.ln_abs + ln_1m_exp(excess) }
}

/// ln Var f(ω·x) f(ω·y).
fn ln_single(f: Activation, x: &[f64], y: &[f64]) -> Option<f64> {
    let kernel = |f: Activation| f.kernel().map(|kernel| kernel.log_of_slices(x, y));
    match f {
        Activation::Sign | Activation::Step => Some(ln_of_signs(f, x, y)),
        // E a²b² = ‖x‖²‖y‖² + 2(x·y)² for a = ω·x and b = ω·y.
        Activation::Identity | Activation::Abs => Some(excess(kernel(Activation::Square)?, kernel(f)?)),
        Activation::Relu => Some(excess(kernel(Activation::ReluSquared)?, kernel(f)?)),
        Activation::Square => {
            // E a⁴b⁴ = 9r⁴ + 72r²(x·y)² + 24(x·y)⁴, and K = r² + 2(x·y)².
            let (kernel, dot) = (kernel(f)?.ln_abs, kernel(Activation::Identity)?.ln_abs);
            let share = if kernel == f64::NEG_INFINITY { 0.0 } else { (2.0 * dot - kernel).exp() };
            Some(2.0 * kernel + (8.0 + share * (36.0 - 84.0 * share)).ln())
        }
        Activation::Cos | Activation::Sin => of_waves(f, x, y).map(f64::ln),
        Activation::ReluSquared => Some(excess(second_moment_of_relu_squared(x, y), kernel(f)?)),
        Activation::Exp | Activation::Erf | Activation::Gelu | Activation::Sigmoid | Activation::Tanh => None,
    }
}

/// ln Var f(ω·x) f(ω·y) for sgn and the step.
fn ln_of_signs(f: Activation, x: &[f64], y: &[f64]) -> f64 {
    let share = |sign: f64| angle(x.iter().copied().zip(y.iter().map(|y| sign * y))) / PI;
    let zeros = [x, y].into_iter().filter(|point| point.iter().all(|v| *v == 0.0)).count();
    match (f, zeros) {
        // With both points 0 nothing is random; the step at 0 is ½.
        (_, 2) => f64::NEG_INFINITY,
        (Activation::Step, 1) => 0.0625f64.ln(),
        (Activation::Step, _) => (0.25 * share(-1.0) * (1.0 + share(1.0))).ln(),
        _ => (4.0 * share(1.0) * share(-1.0)).ln(),
    }
}

/// Var f(ω·x) f(ω·y) for cos and sin, from terms that do not cancel.
fn of_waves(f: Activation, x: &[f64], y: &[f64]) -> Option<f64> {
    let square = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>();
    let (of_x, of_y) = (square(x), square(y));
    if f == Activation::Cos {
        let pair = Pair::new(x.iter().copied().zip(y.iter().copied()));
        let halves = (-pair.difference).exp_m1().powi(2) + (-pair.sum).exp_m1().powi(2);
        return Some(0.25 * (0.5 * halves + ((-of_x).exp_m1() - (-of_y).exp_m1()).powi(2)));
    }
    let squared = |f: Activation| f.kernel().map(|kernel| (2.0 * kernel.log_of_slices(x, y).ln_abs).exp());
    let independent = 0.25 * (-2.0 * of_x).exp_m1() * (-2.0 * of_y).exp_m1();
    Some(independent + squared(Activation::Sin)? * (2.0 * squared(Activation::Cos)? - 1.0))
}
