//! Errors relative to the softmax kernel for two points of equal norm r at an angle θ, and their maxima over θ.
//!
//! Root mean squared errors of estimates with m independent frequencies, divided by exp(x·y), as logarithms.
//! W = e^{2r²}(1 − e^{−4r²}).

use std::f64::consts::{LN_2, PI};

use super::{coefficient, hybrid};
use crate::numeric::special::{ln_expm1, ln_sinh};

/// The trigonometric estimate: (2m)^{−1/2} e^{2r²s}(1 − e^{−4r²s}), s = sin²(θ/2).
///
/// Source: Hybrid Random Features, Lemma 3.4.
pub fn ln_trigonometric(angle: f64, r: f64, m: usize) -> f64 {
    ln_amplitude(2.0 * r * r * (0.5 * angle).sin().powi(2)) - 0.5 * (2.0 * m as f64).ln()
}

/// The hyperbolic estimate: the trigonometric one at π − θ. Source: Hybrid Random Features, Lemma 3.4.
pub fn ln_hyperbolic(angle: f64, r: f64, m: usize) -> f64 {
    ln_amplitude(2.0 * r * r * (0.5 * angle).cos().powi(2)) - 0.5 * (2.0 * m as f64).ln()
}

/// The positive estimate: m^{−1/2} √(e^{4r²cos²(θ/2)} − 1). Source: Performers, Lemma 2.
pub fn ln_positive(angle: f64, r: f64, m: usize) -> f64 {
    0.5 * (ln_expm1(4.0 * r * r * (0.5 * angle).cos().powi(2)) - (m as f64).ln())
}

/// The angular hybrid of hyperbolic and trigonometric estimates with m frequencies each and n for the
/// coefficient.
///
/// Source: Hybrid Random Features, appendix D.3 with the corrected equation 47 (errata H5, H7).
pub fn ln_angular(angle: f64, r: f64, m: usize, n: usize) -> f64 {
    let moments = coefficient::angular(angle, n);
    let (p, q) = (ln_hyperbolic(angle, r, m), ln_trigonometric(angle, r, m));
    0.5 * hybrid::ln_mse(&moments, 2.0 * p, 2.0 * q)
}

/// The maximum over θ of the trigonometric error (at θ = π) and of the hyperbolic error (at θ = 0): W/√(2m).
///
/// Source: Hybrid Random Features, Lemma 3.4.
pub fn ln_max_trigonometric(r: f64, m: usize) -> f64 {
    ln_amplitude(2.0 * r * r) - 0.5 * (2.0 * m as f64).ln()
}

/// The maximum over θ of the positive error, at θ = 0: √((e^{4r²} − 1)/m).
pub fn ln_max_positive(r: f64, m: usize) -> f64 {
    ln_positive(0.0, r, m)
}

/// A bound on the error of the angular hybrid over all θ, for r ≥ 1: (W/√(2m)) √((1−1/n)/(πr²) + 1/(n√π r)).
///
/// Source: Hybrid Random Features, Theorem 3.5, whose last term has 1/r² by mistake (erratum H6).
pub fn ln_max_angular_bound(r: f64, m: usize, n: usize) -> f64 {
    let n = n as f64;
    let factor = (1.0 - 1.0 / n) / (PI * r * r) + 1.0 / (n * PI.sqrt() * r);
    ln_max_trigonometric(r, m) + 0.5 * factor.ln()
}

/// ln(eᵗ − e⁻ᵗ).
fn ln_amplitude(t: f64) -> f64 {
    LN_2 + ln_sinh(t)
}
