//! Error bounds from the papers, in their corrected form.

use super::Pair;
use crate::numeric::special::{ln_0f1, ln_expm1, ln_sinh};

/// ln of a lower bound on how much m ≤ d orthogonal positive features reduce the mean squared error of independent
/// ones: 2(m−1)/(m(d+2)) (exp(x·y) − e^{−(‖x‖²+‖y‖²)/2})².
///
/// The bound is tight as ‖x+y‖ → 0. Source: Performers, Theorem 2.
pub fn ln_orthogonality_gap(pair: &Pair, m: usize) -> f64 {
    let (d, m) = (pair.dim as f64, m as f64);
    (2.0 * (m - 1.0) / (m * (d + 2.0))).ln() + 2.0 * (ln_expm1(0.5 * pair.sum) - 0.5 * pair.norms)
}

/// [`ln_orthogonality_gap`] for regularised positive features, with the regularised softmax kernel in place of the
/// softmax kernel.
///
/// Source: Performers, Theorem 6.
pub fn ln_regularised_orthogonality_gap(pair: &Pair, m: usize) -> f64 {
    let (d, m) = (pair.dim as f64, m as f64);
    let ln_mean = ln_0f1(0.5 * d, 0.25 * d * pair.sum);
    (2.0 * (m - 1.0) / (m * (d + 2.0))).ln() + 2.0 * (ln_expm1(ln_mean) - 0.5 * pair.norms)
}

/// ln of a lower bound on how much m ≤ d orthogonal OPRF features reduce the mean squared error, for the Gaussian
/// kernel and any real A: (1 − 1/m)(2/(d+2))F² with F = K − e^{−‖x‖²−‖y‖²}.
///
/// Source: Chefs' Random Tables, Theorem 4.1 (C1, C2).
pub fn ln_gerf_orthogonality_gap(pair: &Pair, m: usize) -> f64 {
    ln_orthogonality_gap(pair, m) - pair.norms
}

/// ln of the supremum of one term of the OPRF estimate of the Gaussian kernel, for A < 0.
///
/// (d/2) ln(1−4A) − (1−4A)‖x+y‖²/(8A) − ‖x‖² − ‖y‖², which is attained. Source: new; tighter than
/// [`ln_separable_supremum`].
pub fn ln_supremum(pair: &Pair, a: f64) -> f64 {
    if a >= 0.0 {
        return f64::NAN;
    }
    0.5 * pair.dim as f64 * (-4.0 * a).ln_1p() - (1.0 - 4.0 * a) * pair.sum / (8.0 * a) - pair.norms
}

/// ln of the product of the suprema of the two OPRF features, for A < 0: (d/2) ln(1−4A) − (‖x‖²+‖y‖²)/(4A).
///
/// Source: Chefs' Random Tables, Theorem 4.2.
pub fn ln_separable_supremum(pair: &Pair, a: f64) -> f64 {
    if a >= 0.0 {
        return f64::NAN;
    }
    0.5 * pair.dim as f64 * (-4.0 * a).ln_1p() - pair.norms / (4.0 * a)
}

/// Approximate ratio of the mean squared errors of orthogonal and independent trigonometric features at ‖x−y‖ = z, up
/// to O(1/d²): 1 − ((m−1)/d) e^{−z²}z⁴/(1−e^{−z²})².
///
/// Source: Simplex Random Features, equation 27.
pub fn asymptotic_trigonometric_ratio(d: usize, z: f64, m: usize) -> f64 {
    // z⁴e^{−z²}/(1−e^{−z²})² = (u/sinh u)² with u = z²/2, computed from its distance to 1, which is small for small z.
    let u = 0.5 * z * z;
    let distance = if u < 1.0 {
        let rest: f64 = (1..12)
            .map(f64::from)
            .scan(u, |term, k| {
                *term *= u * u / (2.0 * k * (2.0 * k + 1.0));
                Some(*term)
            })
            .sum();
        if u == 0.0 { 0.0 } else { rest * (2.0 * u + rest) / (u + rest).powi(2) }
    } else {
        1.0 - (-2.0 * (ln_sinh(u) - u.ln())).exp()
    };
    let weight = (m as f64 - 1.0) / d as f64;
    (1.0 - weight) + weight * distance
}
