//! Limits: the least mean squared errors of estimates, whatever the features and their law.
//!
//! ```
//! use random_features::theory::limits;
//! // The singular values of a kernel with K(x, x) = 1 at independent points.
//! let values = [0.7, 0.2, 0.06, 0.03, 0.01];
//! let mean_square = values.iter().map(|v| v * v).sum();
//! let independent = limits::independent(1.0, mean_square, 3, 1);
//! let (unbiased, any) = (limits::unbiased(&values, 3), limits::any(&values, 3));
//! assert!(independent > unbiased && unbiased > any && any > 0.0);
//! ```
//!
//! A kernel K is an operator T from L²(ν) to L²(μ), with singular values σ₁ ≥ σ₂ ≥ … and the nuclear norm ‖T‖ = Σ σᵢ. Errors are means
//! of (K̂(x, y) − K(x, y))² over draws and over independent points x ~ μ and y ~ ν, in units of K². For n × l points the σᵢ are the
//! singular values of the matrix of K(xᵢ, yⱼ), divided by √(nl). `GramSpectrum` in [`data`](crate::data) computes them.
//!
//! Squares leave the range of `f64` for values beyond 10¹⁵⁴, where limits are NaN, 0 or infinite: divide values by the largest before.

/// The least error of the mean of m independent draws without bias, of t real features each: max(0, (‖T‖²/t − E K²)/m).
///
/// The nuclear norm is E K(x, x) where K is positive definite and both points have one law. `mean_square` is E K(x, y)². Values are NaN
/// for m or t of 0, and for arguments that are negative or NaN.
///
/// For the softmax and the Gaussian kernel, [`ImportanceMixture`](crate::map::ImportanceMixture) reaches the limit for one feature a draw on its
/// own points. Pairs of cosines and sines have t = 2.
/// Cost O(1). Source: Sernau, Bonacina and Saurous, *All Random Features Representations are Equivalent* (2024), for t = 1 and one law.
/// Other cases are new: a draw X has rank t, so that its mean square is at least that of its nuclear norm, over t.
pub fn independent(nuclear_norm: f64, mean_square: f64, m: usize, t: usize) -> f64 {
    if m == 0 || t == 0 || !(nuclear_norm >= 0.0 && mean_square >= 0.0) {
        return f64::NAN;
    }
    let excess = nuclear_norm * nuclear_norm / t as f64 - mean_square;
    // Rounding may leave less than nothing; NaN stays.
    if excess < 0.0 { 0.0 } else { excess / m as f64 }
}

/// The least error of D features in all without bias, however their draws depend on each other.
///
/// It is the largest of tⱼ²/(D − j) − Σ_{i>j} σᵢ² with tⱼ = Σ_{i>j} σᵢ, over the j < D that are 0 or have σⱼ ≥ tⱼ/(D − j). The first
/// j singular vectors reach it beside D − j others, drawn in proportion to σᵢ. The values must fall; it is NaN if they do not, for
/// D = 0, and for values that are negative or NaN.
///
/// Cost O(r) for r values. Source: new, after Benzing et al. (2019) on unbiased approximations of low rank. For X of rank D and any Z,
/// ‖X‖² ≥ 2⟨Z, X⟩ − Σ_{i≤D} sᵢ(Z)²; Z has the singular vectors of K, its first j values, and tⱼ/(D − j) beyond.
pub fn unbiased(values: &[f64], features: usize) -> f64 {
    if features == 0 || !are_falling(values) {
        return f64::NAN;
    }
    let (mut sum, mut squares, mut least) = (0.0, 0.0, 0.0f64);
    // Sums begin with the smallest values.
    for j in (0..=values.len()).rev() {
        let rest = features.saturating_sub(j) as f64;
        if j < features && (j == 0 || values[j - 1] >= sum / rest) {
            least = least.max(sum * sum / rest - squares);
        }
        if let Some(value) = j.checked_sub(1).map(|before| values[before]) {
            sum += value;
            squares += value * value;
        }
    }
    least
}

/// The least error of any D features, with or without bias: Σ_{i>D} σᵢ².
///
/// The first D singular vectors reach it. The values must fall; it is NaN if they do not, and for values that are negative or NaN.
///
/// Cost O(r) for r values. Source: Eckart and Young.
pub fn any(values: &[f64], features: usize) -> f64 {
    match are_falling(values) {
        true => values.iter().skip(features).rev().fold(0.0, |sum, value| sum + value * value),
        false => f64::NAN,
    }
}

/// Whether values fall, or stay, and none is negative or NaN.
fn are_falling(values: &[f64]) -> bool {
    values.iter().all(|value| *value >= 0.0) && values.windows(2).all(|pair| pair[0] >= pair[1])
}
