//! Mean squared errors of hybrid estimators, composed from those of their parts.
//!
//! Since the coefficients of an estimate Σ λ̂ₖ Pₖ sum to 1, its error is Σ λ̂ₖ (Pₖ − K): with coefficients independent of the bases,
//! MSE = Σₖₗ E\[λ̂ₖ λ̂ₗ\] Cov(Pₖ, Pₗ).

use std::f64::consts::LN_2;

use super::coefficient::{self, Moments};
use super::{Law, Pair, gaussian};
use crate::SignedLog;

/// Whether the two bases of a bipolar hybrid use the same frequencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Bases {
    /// Each has frequencies of its own.
    Independent,
    /// They project on the same frequencies.
    Shared,
}

/// ln MSE of λ̂ P + (1 − λ̂) Q from the moments of λ̂ and ln MSE of P and of Q, all independent.
///
/// Source: Hybrid Random Features, Theorem 3.1.
pub fn ln_mse(moments: &Moments, ln_mse_p: f64, ln_mse_q: f64) -> f64 {
    super::ln_add_exp(moments.square.ln() + ln_mse_p, moments.complement_square.ln() + ln_mse_q)
}

/// ln MSE of the bipolar hybrid of exp(x·y): λ̂ times the hyperbolic estimate plus (1 − λ̂) times the trigonometric one, m independent frequencies each.
///
/// Shared frequencies add −(2/m) e^{2x·y} (1 − cos(‖x‖²−‖y‖²)) E\[λ̂(1−λ̂)\]: nothing for equal norms. That helps where E\[λ̂(1−λ̂)\] > 0, always so for the
/// angular coefficient. Source: Hybrid Random Features, Theorems 3.1 and F.1; the term for unequal norms: erratum H8.
pub fn ln_bipolar_mse(pair: &Pair, moments: &Moments, m: usize, bases: Bases) -> Option<f64> {
    let law = Law::independent(m);
    let independent =
        ln_mse(moments, gaussian::hyperbolic(pair, &law)?, gaussian::trigonometric(pair, &law)?);
    if bases == Bases::Independent {
        return Some(independent);
    }
    let turn = (0.5 * pair.norm_difference).sin().powi(2);
    let shared = SignedLog::from(-4.0 * turn * moments.product).scaled(2.0 * pair.dot - (m as f64).ln());
    let total = SignedLog::sum([SignedLog::positive(independent), shared].into_iter());
    Some(if total.sign < 0.0 { f64::NEG_INFINITY } else { total.ln_abs })
}

/// ln MSE of the bipolar hybrid of exp(x·y) whose Gaussian coefficient is estimated by an inner angular hybrid with `inner_m` and `inner_n` frequencies.
///
/// Source: Hybrid Random Features, remark in appendix F.
pub fn ln_nested_mse(
    pair: &Pair,
    (sigma, r): (f64, f64),
    m: usize,
    (inner_m, inner_n): (usize, usize),
) -> Option<f64> {
    let scaled = pair.scaled(sigma);
    let inner_moments = coefficient::angular(pair.angle, inner_n);
    let inner = ln_bipolar_mse(&scaled, &inner_moments, inner_m, Bases::Independent)? - scaled.norms;
    let moments = coefficient::nested(pair, sigma, r, inner.exp());
    ln_bipolar_mse(pair, &moments, m, Bases::Independent)
}

/// ln of the root mean squared error of the trigonometric estimate, relative to exp(x·y), for two points of norm r at angle θ.
///
/// (2m)^{−1/2} e^{2r²s}(1 − e^{−4r²s}), s = sin²(θ/2); that of the hyperbolic estimate is the same at π − θ. Source: Hybrid Random Features, Lemma 3.4.
pub fn ln_relative_error_trigonometric(angle: f64, r: f64, m: usize) -> f64 {
    ln_relative_amplitude(2.0 * r * r * (0.5 * angle).sin().powi(2)) - 0.5 * (2.0 * m as f64).ln()
}

/// ln of the root mean squared error of the angular hybrid, relative to exp(x·y), for two points of norm r at angle θ.
///
/// Source: Hybrid Random Features, appendix D.3 with the corrected equation 47 (errata H5, H7).
pub fn ln_relative_error_angular(angle: f64, r: f64, m: usize, n: usize) -> f64 {
    let moments = coefficient::angular(angle, n);
    let hyperbolic = ln_relative_amplitude(2.0 * r * r * (0.5 * angle).cos().powi(2));
    let trigonometric = ln_relative_amplitude(2.0 * r * r * (0.5 * angle).sin().powi(2));
    0.5 * (ln_mse(&moments, 2.0 * hyperbolic, 2.0 * trigonometric) - (2.0 * m as f64).ln())
}

/// ln(eᵗ − e⁻ᵗ).
fn ln_relative_amplitude(t: f64) -> f64 {
    LN_2 + super::ln_sinh(t)
}
