//! Dense-exponential features with a coefficient for each coordinate (SDERF), and truncated ones.
//!
//! f(ω, u) = Π (1 − 4aₗ)^{1/4} · exp(Σ aₗωₗ² + Σ bₗωₗuₗ − ½‖u‖²) with bₗ = √(1 − 4aₗ) and ω ~ N(0, I), for the softmax
//! kernel: E f(ω, u) f(ω, v) = e^{u·v} for aₗ < ¼. u and v are the points as the map sees them: after shifts, T and the
//! change of basis. Results depend only on w = u + v and on ρₗ = 1/(1 − 8aₗ). They are relative to K², so they hold
//! unchanged for the Gaussian kernel. Equal aₗ give OPRF ([`gerf`]); aₗ = 0 gives positive features.
//!
//! Second moments are finite for aₗ < ⅛, that is for ρₗ in (0, ∞), and +∞ for ρₗ = ∞ or ρₗ < −1 (aₗ from ⅛ to ¼). Any
//! other ρₗ is outside the domain and gives NaN, as do slices of different lengths.
//!
//! # Derivation
//! Coordinates are independent, so a mean over ω is a product of one-dimensional Gaussian integrals E exp(cω² + gω) =
//! (1 − 2c)^{−½} exp(½g²/(1 − 2c)). For the second moment c = 4a and g = 2bw: (1 − 4a)/√(1 − 8a) = (1 + ρ)/(2√ρ) = ς,
//! and the exponent relative to K² is ρw². For the pair ω, −ω the linear terms cancel, which gives ς e^{−w²}. For two
//! pairs with sums w and w′, g = b(w + w′) gives ς exp(ρ((w + w′)/2)² − ((w − w′)/2)²).
//!
//! ```
//! use random_features::theory::{Law, dense, gerf::Optimum};
//! // Sums u + v of one pair, and the mean of wₗ² over pairs of data.
//! let (w, phi) = ([0.5f64, -2.0], [0.25, 9.0]);
//! let rho: Vec<f64> =
//!     phi.iter().map(|phi| dense::optimal(*phi).rho).collect();
//! let law = Law::independent(64);
//! let ln_variance: f64 = dense::ln_variance(&w, &rho, &law).unwrap();
//! let second_moment = dense::ln_second_moment(&w, &rho).exp();
//! assert!((ln_variance - ((second_moment - 1.0) / 64.0).ln()).abs() < 1e-13);
//! // For w′ = w the covariance is the variance.
//! let covariance = dense::ln_covariance(&w, &w, &rho, &law).unwrap();
//! assert!(
//!     (covariance.ln_abs - ln_variance).abs() < 1e-13
//!         && covariance.sign == 1.0
//! );
//! # let Optimum { rho, a } = dense::optimal(9.0);
//! # assert!((rho - 1.0 / (1.0 - 8.0 * a)).abs() < 1e-15);
//! ```
//!
//! # References
//! Likhosherstov et al., *Dense-Exponential Random Features: Sharp Positive Estimators of the Gaussian Kernel*, 2023, for
//! independent frequencies. Antithetic pairs, covariances and truncation: new.

use std::f64::consts::LN_2;

use super::conformity::conformity_excess;
use super::gaussian::{VarianceTerms, not_known};
use super::gerf::{self, Optimum};
use super::{Law, Radius};
use crate::SignedLog;
use crate::numeric::special::{expm1, ln_add_exp, ln_expm1, real_part_excess};

/// ln of the second moment of one term relative to K²: Σ ln ςₗ + ρₗwₗ², with ςₗ = (1 + ρₗ)/(2√ρₗ).
///
/// It is never negative, 0 for positive features at w = 0, and does not overflow for ‖w‖ up to 1e150.
pub fn ln_second_moment(w: &[f64], rho: &[f64]) -> f64 {
    summed(w, rho, |rho, w| ln_stretch(rho) + rho * w * w)
}

/// The mean of [`ln_second_moment`] over pairs of data for which φₗ is the mean of wₗ²: Σ ln ςₗ + ρₗφₗ.
///
/// It is exact for any law of the pairs, because the logarithm is affine in wₗ². [`optimal`] minimises it.
pub fn mean_ln_second_moment(phi: &[f64], rho: &[f64]) -> f64 {
    summed(phi, rho, |rho, phi| ln_stretch(rho) + rho * phi)
}

/// ln of the variance of the estimate relative to K², `None` without a closed form.
///
/// Independent frequencies: (M − 1)/m with M = Π ςₗ e^{ρₗwₗ²}. Antithetic pairs, m features in all: (M + Π ςₗ e^{−wₗ²}
/// − 2)/m. Rows at fixed angles (orthogonal and simplex draws) have a closed form only if all ρₗ are equal, which is
/// [`gerf::ln_variance`]; otherwise their benefit is observed, not proved. −∞ where the estimate is exact.
///
/// The rounding error is relative to the variance for independent frequencies, otherwise to the sum of the absolute
/// values of its terms.
pub fn ln_variance(w: &[f64], rho: &[f64], law: &Law) -> Option<f64> {
    let pairs = law.pairs(Radius::Chi)?;
    let ln_moment = ln_second_moment(w, rho);
    if !ln_moment.is_finite() {
        return Some(ln_moment);
    }
    let equal = rho.windows(2).all(|pair| pair[0] == pair[1]);
    if !pairs.angles.is_empty() && (w.len() < 2 || !equal) {
        return None;
    }
    let square: f64 = w.iter().map(|w| w * w).sum();
    let terms = VarianceTerms {
        single: SignedLog::positive(ln_expm1(ln_moment)),
        antithetic: antithetic(w, rho, square),
        angle: &|cos| conformity_excess(w.len(), square, cos),
        coupled: &not_known,
    };
    terms.ln_variance(law, Radius::Chi)
}

/// M + Π ςₗ e^{−wₗ²} − 2.
fn antithetic(w: &[f64], rho: &[f64], square: f64) -> SignedLog {
    let (ln_moment, opposite) =
        (ln_second_moment(w, rho), ln_second_moment(&vec![0.0; w.len()], rho) - square);
    if ln_moment + square > 1.0 {
        return SignedLog::sum([expm1(ln_moment), expm1(opposite)].into_iter());
    }
    // In the form e^{p+q} + e^{p−q} − 2, because the two terms may cancel to first order.
    let p = summed(w, rho, |rho, w| ln_stretch(rho) + 0.5 * (rho - 1.0) * w * w);
    let q = summed(w, rho, |rho, w| 0.5 * (rho + 1.0) * w * w);
    real_part_excess(p, q, 0.0).scaled(LN_2)
}

/// The covariance, relative to K K′, of two estimates from the same frequencies, as sign and logarithm; `None` without
/// a closed form, such as for rows at fixed angles.
///
/// w and w′ are the sums of the two pairs of points, which may share a point or not. Independent frequencies: (C(w, w′)
/// − 1)/m with C = Π ςₗ exp(ρₗ((wₗ + w′ₗ)/2)² − ((wₗ − w′ₗ)/2)²). Antithetic pairs: (C(w, w′) + C(w, −w′) − 2)/m. At
/// w = w′ it is the variance.
pub fn ln_covariance(w: &[f64], w_prime: &[f64], rho: &[f64], law: &Law) -> Option<SignedLog> {
    let pairs = law.pairs(Radius::Chi)?;
    if !pairs.angles.is_empty() {
        return None;
    }
    let opposite: Vec<f64> = w_prime.iter().map(|w| -w).collect();
    let count = |count: f64| SignedLog::positive(count.ln());
    let product = |a: SignedLog, b: SignedLog| SignedLog { sign: a.sign * b.sign, ..a.scaled(b.ln_abs) };
    let single = expm1(ln_cross_moment(w, w_prime, rho));
    let other = expm1(ln_cross_moment(w, &opposite, rho));
    let m = law.len() as f64;
    let terms = [(m, single), (2.0 * pairs.antithetic, other)];
    let terms = terms.into_iter().filter(|(n, _)| *n > 0.0).map(|(n, term)| product(term, count(n)));
    Some(SignedLog::sum(terms.collect::<Vec<_>>().into_iter()).scaled(-2.0 * m.ln()))
}

/// ln of the mean of the product of two estimates with one frequency, relative to K K′: Σ ln ςₗ + ρₗ((wₗ + w′ₗ)/2)² − ((wₗ
/// − w′ₗ)/2)².
pub fn ln_cross_moment(w: &[f64], w_prime: &[f64], rho: &[f64]) -> f64 {
    if w.len() != w_prime.len() {
        return f64::NAN;
    }
    let pairs: Vec<(f64, f64)> = w.iter().copied().zip(w_prime.iter().copied()).collect();
    summed(&pairs, rho, |rho, (w, other)| {
        let (mean, half) = (0.5 * w + 0.5 * other, 0.5 * w - 0.5 * other);
        // Two equal forms: the first is exact for positive features, the second does not cancel for small ρ.
        let exponent =
            if rho > 0.5 { w * other - (1.0 - rho) * mean * mean } else { rho * mean * mean - half * half };
        ln_stretch(rho) + exponent
    })
}

/// The ρ and a that minimise the mean logarithm of the second moment in a coordinate where the mean of w² over pairs of
/// data is φ, any finite φ ≥ 0. ρ lies in (0, 1\], a ≤ 0.
///
/// ln ς + ρφ has the derivative (ρ − 1)/(2ρ(1 + ρ)) + φ, with the same sign as 2φρ² + (1 + 2φ)ρ − 1, which has one
/// positive root; that root is the minimum. A sum over coordinates is minimised term by term. Among all bases,
/// eigenvectors of E wwᵀ are best: the minimum over ρ is a concave function of φ (an infimum of affine functions), so
/// its sum over a diagonal is smallest at the eigenvalues (Schur–Horn).
///
/// NaN for a negative φ.
pub fn optimal(phi: f64) -> Optimum {
    gerf::optimal(1, phi)
}

/// ln of the mean squared error (variance plus squared bias), relative to K², of estimating K by features of a
/// truncated kernel K_r. `ln_variance` is ln of the variance relative to K_r²; `ln_ratio` is ln K_r/K.
///
/// `ln_ratio` is minus the sum of uₗvₗ over the dropped coordinates, in the map's coordinates. The relative bias is
/// e^`ln_ratio` − 1.
pub fn ln_error_of_truncated(ln_variance: f64, ln_ratio: f64) -> f64 {
    ln_add_exp(ln_variance + 2.0 * ln_ratio, 2.0 * expm1(ln_ratio).ln_abs)
}

/// The sum of a term over coordinates; +∞ or NaN if a ρₗ is outside (0, ∞), as stated above.
fn summed<C: Copy>(coordinates: &[C], rho: &[f64], term: impl Fn(f64, C) -> f64) -> f64 {
    let infinite = |rho: &f64| *rho == f64::INFINITY || *rho < -1.0;
    if coordinates.len() != rho.len() || !rho.iter().all(|rho| *rho > 0.0 || infinite(rho)) {
        return f64::NAN;
    }
    if rho.iter().any(infinite) {
        return f64::INFINITY;
    }
    rho.iter().zip(coordinates).map(|(rho, c)| term(*rho, *c)).sum()
}

/// ln ς = ln (1 + ρ)/(2√ρ), which is 0 at ρ = 1 and positive elsewhere, without cancellation.
fn ln_stretch(rho: f64) -> f64 {
    // (1 + ρ)²/(4ρ) = 1 + (1 − ρ)²/(4ρ), which is unchanged by ρ → 1/ρ.
    let rho = if rho > 1.0 { rho.recip() } else { rho };
    let excess = 0.25 * (1.0 - rho) * ((1.0 - rho) / rho);
    if excess.is_finite() { 0.5 * excess.ln_1p() } else { -0.5 * rho.ln() - LN_2 }
}
