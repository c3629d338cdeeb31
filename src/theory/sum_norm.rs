//! The norm of the sum of two frequencies, w = ‖ωᵢ+ωⱼ‖: its density, as a logarithm.
//!
//! Radii are independent and ~ χ_d, directions uniform. The error of positive features grows with the mean of an increasing
//! function of w, the [conformity](super::conformity) ρ(v) = E ₀F₁(; d/2; v²w²/4). Good couplings leave little mass where w
//! is large.

use std::f64::consts::{FRAC_PI_2, LN_2};

use super::conformity::ln_integral_over;
use crate::numeric::special::ln_gamma;

/// ln of the density at `w` ≥ 0 for independent frequencies in ℝᵈ: w/√2 ~ χ_d. NaN for d = 0 or w < 0.
///
/// p(w) = w^{d−1} e^{−w²/4} / (2^{d−1} Γ(d/2)). Source: Simplex Random Features, equation 18.
pub fn ln_density_of_independent(d: usize, w: f64) -> f64 {
    if d == 0 || w.is_nan() || w < 0.0 {
        return f64::NAN;
    }
    ln_chi(d as f64, w / 2f64.sqrt()) - 0.5 * LN_2
}

/// ln of the density at `w` ≥ 0 for two frequencies in ℝᵈ at an angle with cosine `cos`. NaN for d = 0, w < 0 or |cos| > 1.
///
/// p(w) = w^{2d−1} / (2^{2d−3} Γ(d/2)²) ∫ sin^{d−1}ψ e^{−w²/(2q)} q^{−d} dψ over \[0, π/2\] with q = 1 + cos θ sin ψ. For
/// orthogonal frequencies w ~ χ_{2d}. The relative error is about 1e-12. Source: Simplex Random Features, equation 20, with
/// ψ = 2φ.
pub fn ln_density(d: usize, w: f64, cos: f64) -> f64 {
    if d == 0 || w.is_nan() || w < 0.0 || cos.is_nan() || cos.abs() > 1.0 {
        return f64::NAN;
    }
    let n = d as f64;
    if cos == 0.0 {
        return ln_chi(2.0 * n, w);
    }
    let constant = (2.0 * n - 3.0) * LN_2 + 2.0 * ln_gamma(0.5 * n);
    if w == 0.0 {
        // For opposite directions it is the density of |rᵢ − rⱼ|, which is 2 ∫ p(r)² dr at 0.
        let opposite = (n - 1.0) * LN_2 + ln_gamma(n - 0.5) - constant;
        return if cos == -1.0 { opposite } else { f64::NEG_INFINITY };
    }
    // π/2 − ψ = eᵘ: where directions are nearly opposite, the integrand is a power of this angle over many orders of magnitude.
    let value = |u: f64| {
        let angle = u.exp();
        let q = (1.0 + cos) - 2.0 * cos * (0.5 * angle).sin().powi(2);
        u + (n - 1.0) * angle.cos().ln() - 0.5 * w * w / q - n * q.ln()
    };
    // Where |cos θ| < 1 it is constant for small angles, and at −1 has its peak at an angle of about w/√d.
    let low = (w.ln() - 0.5 * n.ln()).min(0.0) - 50.0;
    (2.0 * n - 1.0) * w.ln() - constant + ln_integral_over((low, FRAC_PI_2.ln()), value)
}

/// ln of the density of χ_n at r.
fn ln_chi(n: f64, r: f64) -> f64 {
    // 0 · ln 0 is 0: half a normal density.
    let power = if n == 1.0 { 0.0 } else { (n - 1.0) * r.ln() };
    power - 0.5 * r * r - (0.5 * n - 1.0) * LN_2 - ln_gamma(0.5 * n)
}
