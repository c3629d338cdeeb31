//! Mean squared errors of hybrid estimators, from the errors of their bases.
//!
//! The coefficients of an estimate Σ λ̂ₖ Pₖ sum to 1, so its error is Σ λ̂ₖ (Pₖ − K). If the coefficients are
//! independent of the bases, MSE = Σₖₗ E\[λ̂ₖ λ̂ₗ\] Cov(Pₖ, Pₗ).

use super::coefficient::{self, CoefficientMoments};
use super::{Law, Pair, gaussian};
use crate::SignedLog;
use crate::numeric::special::ln_add_exp;

/// Whether the two bases of a bipolar hybrid use the same frequencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Sharing {
    /// Each base has its own frequencies.
    Independent,
    /// Both bases use the same frequencies.
    Shared,
}

/// ln MSE of λ̂ P + (1 − λ̂) Q from the moments of λ̂ and ln MSE of P and of Q, all independent.
///
/// Source: Hybrid Random Features, Theorem 3.1.
pub fn ln_mse(moments: &CoefficientMoments, ln_mse_p: f64, ln_mse_q: f64) -> f64 {
    ln_add_exp(moments.square.ln() + ln_mse_p, moments.complement_square.ln() + ln_mse_q)
}

/// ln MSE of the bipolar hybrid of exp(x·y): λ̂ times the hyperbolic estimate plus (1 − λ̂) times the
/// trigonometric one, m independent frequencies each.
///
/// Shared frequencies add −(2/m) e^{2x·y} (1 − cos(‖x‖²−‖y‖²)) E\[λ̂(1−λ̂)\], which is 0 for equal norms. This reduces
/// the error if E\[λ̂(1−λ̂)\] > 0, which always holds for the angular coefficient. Source: Hybrid Random Features,
/// Theorems 3.1 and F.1; the term for unequal norms: erratum H8.
pub fn ln_bipolar_mse(pair: &Pair, moments: &CoefficientMoments, m: usize, sharing: Sharing) -> Option<f64> {
    let law = Law::independent(m);
    let independent =
        ln_mse(moments, gaussian::hyperbolic(pair, &law)?, gaussian::trigonometric(pair, &law)?);
    if sharing == Sharing::Independent {
        return Some(independent);
    }
    Some(ln_with_bipolar_covariance(independent, moments.product, pair, 2.0 * pair.dot, m as f64))
}

/// Adds the covariance of hyperbolic and trigonometric features on shared frequencies, worth `m` independent ones, to ln MSE
/// of the hybrid of independent ones: −(2/m) s² (1 − cos(‖x‖²−‖y‖²)) E\[λ̂(1−λ̂)\], with `product` = E\[λ̂(1−λ̂)\]. ln s² is
/// 2x·y for the softmax kernel, −‖x−y‖² for the Gaussian one.
///
/// Source: Hybrid Random Features, Theorems 3.1 and F.1 (erratum H8).
pub(crate) fn ln_with_bipolar_covariance(
    ln_independent: f64,
    product: f64,
    pair: &Pair,
    ln_squared_scale: f64,
    m: f64,
) -> f64 {
    let turn = (0.5 * pair.norm_difference).sin().powi(2);
    let shared = SignedLog::from(-4.0 * turn * product).scaled(ln_squared_scale - m.ln());
    let total = SignedLog::sum([SignedLog::positive(ln_independent), shared].into_iter());
    if total.sign < 0.0 { f64::NEG_INFINITY } else { total.ln_abs }
}

/// ln MSE of the bipolar hybrid of exp(x·y) whose Gaussian coefficient is estimated by an inner angular
/// hybrid with `inner_m` and `inner_n` frequencies.
///
/// Source: Hybrid Random Features, remark in appendix F.
pub fn ln_nested_mse(
    pair: &Pair,
    sigma: f64,
    r: f64,
    m: usize,
    inner_m: usize,
    inner_n: usize,
) -> Option<f64> {
    let scaled = pair.scaled(sigma);
    let inner_moments = coefficient::angular(pair.angle, inner_n);
    let inner = ln_bipolar_mse(&scaled, &inner_moments, inner_m, Sharing::Independent)? - scaled.norms;
    let moments = coefficient::nested(pair, sigma, r, inner.exp());
    ln_bipolar_mse(pair, &moments, m, Sharing::Independent)
}
