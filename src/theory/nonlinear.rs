//! Variances of the estimates from features f(ω·x), independent frequencies.

use std::f64::consts::PI;

use super::{Law, Pair, Radius, ln_1m_exp, ln_expm1};
use crate::SignedLog;
use crate::kernel::{Activation, Kernel, angle};

/// ln of the variance of (1/m) Σ f(ωⱼ·x) f(ωⱼ·y) at points of equal dimension, already divided by the
/// lengthscale; `None` where no closed form is known: for erf, ReLU², GELU, the sigmoid and tanh, and for
/// rows that depend on each other.
///
/// A single term has the variance E f²(ω·x) f²(ω·y) − K², and f² is again a function with a kernel, or a
/// sum of such. With t = θ/π it is 4t(1−t) for sgn and (1−t)(1+t)/4 for the step, whatever the law of the
/// radii; the others are for ω ~ N(0, I). An antithetic pair counts as one frequency where f is odd or even;
/// for other f it has no closed form here.
///
/// Source: sgn, Hybrid Random Features, Lemma 3.2; others new.
pub fn nonlinear(f: Activation, x: &[f64], y: &[f64], law: &Law) -> Option<f64> {
    let of_directions = matches!(f, Activation::Sign | Activation::Step);
    let single = ln_single(f, x, y)?;
    let pairs = if of_directions {
        law.clone().with_radius(Radius::Chi).pairs(Radius::Chi)?
    } else {
        law.pairs(Radius::Chi)?
    };
    let parity = !matches!(f, Activation::Step | Activation::Relu | Activation::Exp);
    let independent = pairs.angles.is_empty() && (parity || pairs.antithetic == 0.0);
    let m = law.len() as f64;
    independent.then(|| single + (m + 2.0 * pairs.antithetic).ln() - 2.0 * m.ln())
}

/// ln Var f(ω·x) f(ω·y).
fn ln_single(f: Activation, x: &[f64], y: &[f64]) -> Option<f64> {
    let kernel = |f: Activation| f.kernel().map(|kernel| kernel.log_of_slices(x, y));
    let above = |second: SignedLog, kernel: SignedLog| {
        let excess = second.ln_abs - 2.0 * kernel.ln_abs;
        if second.sign == 0.0 { f64::NEG_INFINITY } else { second.ln_abs + ln_1m_exp(excess) }
    };
    match f {
        Activation::Sign | Activation::Step => Some(ln_of_signs(f, x, y)),
        // E a²b² = ‖x‖²‖y‖² + 2(x·y)² for a = ω·x and b = ω·y.
        Activation::Identity | Activation::Abs => Some(above(kernel(Activation::Square)?, kernel(f)?)),
        Activation::Relu => Some(above(kernel(Activation::ReluSquared)?, kernel(f)?)),
        Activation::Square => {
            // E a⁴b⁴ = 9r⁴ + 72r²(x·y)² + 24(x·y)⁴, and K = r² + 2(x·y)².
            let (kernel, dot) = (kernel(f)?.ln_abs, kernel(Activation::Identity)?.ln_abs);
            let share = if kernel == f64::NEG_INFINITY { 0.0 } else { (2.0 * dot - kernel).exp() };
            Some(2.0 * kernel + (8.0 + share * (36.0 - 84.0 * share)).ln())
        }
        Activation::Exp => {
            let sum = 2.0 * kernel(f)?.ln_abs;
            Some(sum + ln_expm1(sum))
        }
        Activation::Cos | Activation::Sin => of_waves(f, x, y).map(f64::ln),
        Activation::Erf
        | Activation::ReluSquared
        | Activation::Gelu
        | Activation::Sigmoid
        | Activation::Tanh => None,
    }
}

/// For sgn and the step.
fn ln_of_signs(f: Activation, x: &[f64], y: &[f64]) -> f64 {
    let share = |sign: f64| angle(x.iter().copied().zip(y.iter().map(|y| sign * y))) / PI;
    let zeros = [x, y].into_iter().filter(|point| point.iter().all(|v| *v == 0.0)).count();
    match (f, zeros) {
        // What is not random has no variance, and a step at 0 is ½.
        (_, 2) => f64::NEG_INFINITY,
        (Activation::Step, 1) => 0.0625f64.ln(),
        (Activation::Step, _) => (0.25 * share(-1.0) * (1.0 + share(1.0))).ln(),
        _ => (4.0 * share(1.0) * share(-1.0)).ln(),
    }
}

/// For cos and sin, from terms of which none cancels.
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
