//! Concentration bounds: the number of features that gives error ε with probability 1 − δ.
//!
//! Counts are `f64` because worst-case counts can exceed every integer type. They are +∞ where no count is enough.

use crate::numeric::special::ln_add_exp;

/// m by Chebyshev's inequality: m ≥ Var/(ε²δ), from ln of the variance of a single term.
///
/// It holds for any map and law whose variance decreases as 1/m. ε is an absolute error.
pub fn chebyshev_count(ln_single_variance: f64, epsilon: f64, delta: f64) -> f64 {
    at_least_one((ln_single_variance - 2.0 * epsilon.ln() - delta.ln()).exp())
}

/// ln of Hoeffding's bound on P\[|K̂ − K| ≥ ε\] for m independent terms between 0 and e^`ln_supremum`: 2
/// exp(−2mε²/sup²).
///
/// Source: Chefs' Random Tables, Theorem 4.2, with the factor 2 in the exponent (erratum C1).
pub fn ln_hoeffding(m: f64, epsilon: f64, ln_supremum: f64) -> f64 {
    std::f64::consts::LN_2 - 2.0 * m * (2.0 * (epsilon.ln() - ln_supremum)).exp()
}

/// m by [`ln_hoeffding`]: sup² ln(2/δ)/(2ε²).
pub fn hoeffding_count(epsilon: f64, delta: f64, ln_supremum: f64) -> f64 {
    at_least_one(0.5 * (2.0 / delta).ln() * (2.0 * (ln_supremum - epsilon.ln())).exp())
}

/// The count rounded up, at least 1; NaN stays NaN.
fn at_least_one(count: f64) -> f64 {
    if count < 1.0 { 1.0 } else { count.ceil() }
}

/// ln of Chernoff's bound on P\[K̂ ≥ a\] for m independent terms with moment generating function M: M(θ)ᵐ e^{−θma}.
///
/// `ln_mgf` is ln M(θ). The bound requires a > K and θ > 0, and holds for orthogonal frequencies too. Source: Performers,
/// Lemma 4, where the minus sign is missing (erratum P1).
pub fn ln_chernoff(theta: f64, m: f64, a: f64, ln_mgf: f64) -> f64 {
    m * (ln_mgf - theta * a)
}

/// m by [`ln_chernoff`]: ln(1/δ)/(θa − ln M(θ)); +∞ where θa ≤ ln M(θ), where the bound is vacuous.
pub fn chernoff_count(theta: f64, a: f64, ln_mgf: f64, delta: f64) -> f64 {
    let rate = theta * a - ln_mgf;
    if rate <= 0.0 { f64::INFINITY } else { at_least_one(-delta.ln() / rate) }
}

/// The amount by which orthogonality reduces M(θ)ᵐ for regularised positive features, m ≤ d: e^{−2(‖x‖²+‖y‖²)} θ⁴
/// m(m−1)‖x+y‖⁴/(4(d+2)).
///
/// Source: Performers, Theorem 3 with the corrected power (erratum P2: as printed it is false for m = 2 and 3).
pub fn regularised_chernoff_gap(pair: &super::Pair, theta: f64, m: usize) -> f64 {
    let (d, m) = (pair.dim as f64, m as f64);
    (-2.0 * pair.norms).exp() * theta.powi(4) * m * (m - 1.0) * pair.sum.powi(2) / (4.0 * (d + 2.0))
}

/// m for a uniform bound: with probability 1 − δ, every entry exp(q·k/√d) of an unnormalised attention matrix with ‖q‖,
/// ‖k‖ ≤ `radius` is within ε. For independent OPRF features with A < 0.
///
/// m ≥ (2M²(d+1)/ε²) ln(256 ρ²γ²/(ε²δ)), ℓ² = R²/√d, M = (1−4A)^{d/2} e^{(1−1/(2A))ℓ²}, γ² = 2(4M²((1−4A)d + ℓ²) +
/// 2ℓ²e^{2ℓ²}), ρ² = 2ℓ². The count is sufficient, but very loose. Source: new proof of Chefs' Random Tables, Theorem 4.3
/// (erratum C3).
pub fn uniform_count(d: usize, radius: f64, a: f64, epsilon: f64, delta: f64) -> f64 {
    let n = d as f64;
    let l2 = radius * radius / n.sqrt();
    let ln_max = 0.5 * n * (-4.0 * a).ln_1p() + (1.0 - 1.0 / (2.0 * a)) * l2;
    let ln_gamma2 =
        ln_add_exp(8f64.ln() + 2.0 * ln_max + ((1.0 - 4.0 * a) * n + l2).ln(), (4.0 * l2).ln() + 2.0 * l2);
    let ln_rho2 = (2.0 * l2).ln();
    // γ is an upper bound, so it may be increased until the net has more than one ball.
    let ln_cover = 256f64.ln() + ln_rho2 + ln_gamma2 - 2.0 * epsilon.ln() - delta.ln();
    let ln_cover = if ln_cover < (4.0 / delta).ln() { (4.0 / delta).ln() } else { ln_cover };
    if a.is_nan() || a >= 0.0 {
        return f64::NAN;
    }
    ((2.0 * (n + 1.0)).ln() + 2.0 * (ln_max - epsilon.ln()) + ln_cover.ln()).exp().ceil()
}

/// The order of m for the guarantee of [`uniform_count`] with trigonometric features: (d/δ²) ln(4√d R/(δ d^{1/4})), δ =
/// ε e^{−R²/√d}. **Up to an unknown constant.**
///
/// Source: Performers, Theorem 4 (σ corrected: erratum P6).
pub fn uniform_order_trigonometric(d: usize, radius: f64, epsilon: f64) -> f64 {
    let n = d as f64;
    let delta = epsilon * (-radius * radius / n.sqrt()).exp();
    n / (delta * delta) * (4.0 * n.sqrt() * radius / (delta * n.powf(0.25))).ln()
}
