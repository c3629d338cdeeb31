//! Moments of the coefficients λ̂ of hybrid estimators.

use std::f64::consts::PI;

use super::{Law, Pair};
use crate::numeric::special::ln_expm1;

/// The first two moments of a coefficient λ̂ and of its complement 1 − λ̂, as plain numbers and not as logarithms: moments
/// of positive estimates overflow at norms of about 15.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct CoefficientMoments {
    /// E λ̂.
    pub mean: f64,
    /// E λ̂².
    pub square: f64,
    /// E (1 − λ̂)².
    pub complement_square: f64,
    /// E λ̂(1 − λ̂).
    pub product: f64,
}

impl CoefficientMoments {
    /// Moments from λ, 1 − λ and the variance of λ̂. λ and 1 − λ are separate arguments because either may be tiny.
    pub fn new(mean: f64, complement: f64, variance: f64) -> Self {
        CoefficientMoments {
            mean,
            square: mean * mean + variance,
            complement_square: complement * complement + variance,
            product: mean * complement - variance,
        }
    }
}

/// The angular coefficient, λ = θ/π, from n independent sign features: λ̂ = ½ − (1/2n) Σ sgn(τ·x) sgn(τ·y).
///
/// E λ̂² = t(t − t/n + 1/n) with t = θ/π, E(1−λ̂)² = (1−t)(1−t + t/n), E λ̂(1−λ̂) = t(1−t)(1 − 1/n).
/// Source: Hybrid Random Features, Lemma 3.2.
pub fn angular(angle: f64, n: usize) -> CoefficientMoments {
    angular_of_signs(angle, n as f64)
}

/// [`angular`] under a law of the frequencies. The two rows of an antithetic pair give the same sign product, so n rows
/// with p pairs are worth n²/(n + 2p) independent ones. `None` for any other dependence between rows.
///
/// It holds for non-zero points only: where a point is 0, the two terms of a pair cancel. Source: new.
pub fn angular_of_law(angle: f64, law: &Law) -> Option<CoefficientMoments> {
    // Signs depend only on directions, and their products are even.
    Some(angular_of_signs(angle, law.directions()?.effective_count()?))
}

fn angular_of_signs(angle: f64, n: f64) -> CoefficientMoments {
    let t = angle / PI;
    // (π − θ)/π keeps digits that 1 − t would lose.
    let rest = (PI - angle) / PI;
    CoefficientMoments {
        mean: t,
        square: t * (t + rest / n),
        complement_square: rest * (rest + t / n),
        product: t * rest * (1.0 - 1.0 / n),
    }
}

/// The normalised Gaussian coefficient λ = (1 − e^{−σ²‖x−y‖²/2})/ρ, ρ = 1 − e^{−2σ²r²}, from n trigonometric features.
/// λ is 0 at x = y and 1 at x = −y with norms r.
///
/// Source: Hybrid Random Features, appendix F.1 (equation 70 lacks σ).
pub fn gaussian_normalised(pair: &Pair, sigma: f64, r: f64, n: usize) -> CoefficientMoments {
    let s2 = sigma * sigma;
    let (exponent, end) = (0.5 * s2 * pair.difference, 2.0 * s2 * r * r);
    let rho = -(-end).exp_m1();
    let variance = (-s2 * pair.difference).exp_m1().powi(2) / (2.0 * n as f64 * rho * rho);
    normalised(exponent, end, variance)
}

/// The moments of (1 − ĝ)/ρ with E ĝ = e^{−exponent}, ρ = 1 − e^{−end}.
fn normalised(exponent: f64, end: f64, variance: f64) -> CoefficientMoments {
    let rho = -(-end).exp_m1();
    let mean = -(-exponent).exp_m1() / rho;
    // (e^{−a} − e^{−b})/ρ with the larger exponential factored out.
    let complement = if exponent <= end {
        -(-exponent).exp() * (exponent - end).exp_m1() / rho
    } else {
        (-end).exp() * (end - exponent).exp_m1() / rho
    };
    CoefficientMoments::new(mean, complement, variance)
}

/// The Gaussian coefficient λ = exp(−‖u−u′‖²/2) from n trigonometric features, for the pair (u, u′) = (x/c,
/// −My/c).
///
/// E λ̂² = λ² + (1 − e^{−‖u−u′‖²})²/(2n). Source: Hybrid Random Features, equation 20.
pub fn gaussian_trigonometric(pair: &Pair, n: usize) -> CoefficientMoments {
    let variance = (-pair.difference).exp_m1().powi(2) / (2.0 * n as f64);
    gaussian(pair, variance)
}

/// The Gaussian coefficient λ = exp(−‖u−u′‖²/2) from n positive features, for the pair (u, u′) = (x/c, −My/c).
///
/// E λ̂² = λ² + e^{−2(‖u‖²+‖u′‖²)} e^q (e^q − 1)/n, q = ‖u+u′‖². Source: Hybrid Random Features, equation 20.
pub fn gaussian_positive(pair: &Pair, n: usize) -> CoefficientMoments {
    let q = pair.sum;
    let variance = (ln_expm1(q) + q - 2.0 * pair.norms).exp() / n as f64;
    gaussian(pair, variance)
}

fn gaussian(pair: &Pair, variance: f64) -> CoefficientMoments {
    let exponent = -0.5 * pair.difference;
    CoefficientMoments::new(exponent.exp(), -exponent.exp_m1(), variance)
}

/// The normalised Gaussian coefficient when its Gaussian kernel is itself estimated, with mean squared error `mse` at
/// (σx, σy).
///
/// E λ̂ = (1 − g)/ρ, E λ̂² = ((1 − g)² + MSE)/ρ², g = e^{−σ²‖x−y‖²/2}. Source: Hybrid Random Features, remark
/// in appendix F.
pub fn nested(pair: &Pair, sigma: f64, r: f64, mse: f64) -> CoefficientMoments {
    let s2 = sigma * sigma;
    let end = 2.0 * s2 * r * r;
    let rho = -(-end).exp_m1();
    normalised(0.5 * s2 * pair.difference, end, mse / (rho * rho))
}
