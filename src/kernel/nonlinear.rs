//! Kernels of generalised attention with a closed form.

use std::f64::consts::{FRAC_2_PI, LN_2, PI};

use super::Kernel;
use super::angular::Angle;
use crate::error::Result;
use crate::{Real, SignedLog};

/// The kernel K_f(x, y) = E\[f(ω·x) f(ω·y)\], ω ~ N(0, I), of a function f for which it has a closed form.
///
/// # Definition
/// With θ the angle between x and y, S = ‖x‖² + ‖y‖² and r = ‖x‖‖y‖; each variant states its kernel. Values
/// near zeros of a kernel keep their relative accuracy; a point 0 counts as orthogonal to all others.
///
/// ```
/// use ndarray::arr1;
/// use random_features::kernel::{Kernel, Nonlinear};
/// let x = arr1(&[2.0f64, 0.0]);
/// assert!((Nonlinear::Relu.value(&x, &x)? - 2.0).abs() < 1e-15);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # References
/// Choromanski et al., *Rethinking Attention with Performers*, equations 3 and 5; Cho and Saul, *Kernel
/// Methods for Deep Learning*; Williams, *Computing with Infinite Networks*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Nonlinear {
    /// f = sgn: 1 − 2θ/π.
    Sign,
    /// f = \[· > 0\]: ½ − θ/(2π).
    Step,
    /// f(u) = u: x·y.
    Identity,
    /// f(u) = u²: r² + 2(x·y)².
    Square,
    /// f = exp: exp(‖x+y‖²/2).
    Exp,
    /// f = cos: e^{−S/2} cosh x·y.
    Cos,
    /// f = sin: e^{−S/2} sinh x·y.
    Sin,
    /// f = erf: (2/π) asin(2x·y/√((1+2‖x‖²)(1+2‖y‖²))).
    Erf,
    /// f = max(·, 0): (r/2π)(sin θ + (π−θ) cos θ).
    Relu,
    /// f = max(·, 0)²: (r²/2π)(3 sin θ cos θ + (π−θ)(1 + 2cos²θ)).
    ReluSquared,
    /// f = |·|: (2r/π)(sin θ + (π/2−θ) cos θ).
    Abs,
}

impl<T: Real> Kernel<T> for Nonlinear {
    fn check_dim(&self, _: usize) -> Result<()> {
        Ok(())
    }

    fn log_of_slices(&self, x: &[T], y: &[T]) -> SignedLog {
        let pairs = x.iter().zip(y).map(|(x, y)| (x.widen(), y.widen()));
        let angle = Angle::between(pairs.clone());
        let sum = |term: fn(f64, f64) -> f64| pairs.clone().map(|(x, y)| term(x, y)).sum::<f64>();
        let dot = || sum(|x, y| x * y);
        let norms = || sum(|x, y| x * x + y * y);
        let nearer = || sum(|x, y| (x - y) * (x - y)).min(sum(|x, y| (x + y) * (x + y)));
        match self {
            Nonlinear::Sign => SignedLog::from(FRAC_2_PI * angle.complement()),
            Nonlinear::Step => SignedLog::from(angle.supplement() / (2.0 * PI)),
            Nonlinear::Identity => SignedLog::from(dot()),
            Nonlinear::Square => {
                SignedLog::positive(2.0 * angle.ln_norms + (2.0 * angle.cos * angle.cos).ln_1p())
            }
            Nonlinear::Exp => SignedLog::positive(0.5 * sum(|x, y| (x + y) * (x + y))),
            // ½(e^{−‖x−y‖²/2} ± e^{−‖x+y‖²/2}), from the larger one.
            Nonlinear::Cos => {
                let dot = dot().abs();
                SignedLog::positive((-2.0 * dot).exp().ln_1p() - LN_2 - 0.5 * nearer())
            }
            Nonlinear::Sin => {
                let dot = dot();
                let size = -(-2.0 * dot.abs()).exp_m1();
                SignedLog::from(size * dot.signum()).scaled(-LN_2 - 0.5 * nearer())
            }
            Nonlinear::Erf => {
                // The arc sine as an arc tangent: (1+2‖x‖²)(1+2‖y‖²) − 4(x·y)² = 1 + 2S + 4r² sin²θ.
                let cross = 2.0 * angle.ln_norms.exp() * angle.sin();
                SignedLog::from(FRAC_2_PI * (2.0 * dot()).atan2((1.0 + 2.0 * norms()).sqrt().hypot(cross)))
            }
            Nonlinear::Relu => SignedLog::from(relu(angle) / (2.0 * PI)).scaled(angle.ln_norms),
            Nonlinear::ReluSquared => {
                SignedLog::from(relu_squared(angle) / (2.0 * PI)).scaled(2.0 * angle.ln_norms)
            }
            Nonlinear::Abs => {
                let value = angle.sin() + angle.complement() * angle.cos;
                SignedLog::from(FRAC_2_PI * value).scaled(angle.ln_norms)
            }
        }
    }
}

/// sin θ + (π−θ) cos θ: with φ = π − θ, sin φ − φ cos φ, which is φ³/3 − … near φ = 0.
fn relu(angle: Angle) -> f64 {
    let phi = angle.supplement();
    if phi < 0.5 { odd_series(phi, |j| -2.0 * j) } else { angle.sin() + phi * angle.cos }
}

/// 3 sin θ cos θ + (π−θ)(1 + 2cos²θ): with u = 2(π − θ), u + (u cos u − 3 sin u)/2, which is u⁵/120 − … near
/// u = 0.
fn relu_squared(angle: Angle) -> f64 {
    let phi = angle.supplement();
    if phi < 0.5 {
        odd_series(2.0 * phi, |j| j - 1.0)
    } else {
        3.0 * angle.sin() * angle.cos + phi * (1.0 + 2.0 * angle.cos * angle.cos)
    }
}

/// Σⱼ (−1)ʲ factor(j) u^{2j+1}/(2j+1)! from j = 1 on, for |u| ≤ 1.
fn odd_series(u: f64, factor: impl Fn(f64) -> f64) -> f64 {
    let terms = (1..12).map(f64::from).scan(u, |power, j| {
        *power *= -u * u / (2.0 * j * (2.0 * j + 1.0));
        Some(*power * factor(j))
    });
    terms.sum()
}
