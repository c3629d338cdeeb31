//! Distances between two distributions over the same N ordered classes.

use ndarray::ArrayRef1;

use super::check_entries;
use crate::Real;
use crate::error::{Error, Result, check_size};
use crate::once::once;

/// The Wasserstein distance W₁ between two distributions over N classes at the places 1, 2, …, N: the smallest mean
/// distance over which mass of one must be moved to obtain the other, in [0, N − 1]. Cost O(N).
///
/// # Definition
/// W₁ = Σ_{i<N} |Pᵢ − Qᵢ| with Pᵢ = p₁ + … + pᵢ and Qᵢ likewise, after negative weights are set to 0 and both sides are
/// divided by their sums: weights need not add up to 1.
///
/// ```
/// use random_features::ndarray::arr1;
/// use random_features::apply::metrics::wasserstein;
/// // A quarter of the mass moves by two places.
/// assert_eq!(
///     wasserstein(&arr1(&[2.0, 2.0, 0.0]), &arr1(&[1.0, 2.0, 1.0]))?,
///     0.5
/// );
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Errors
/// [`Shape`](Error::Shape) if `p` and `q` differ in length, [`NotFinite`](Error::NotFinite) if a weight is not finite,
/// [`Parameter`](Error::Parameter) if there are no classes, or if no weight of one side is above 0.
#[inline(never)]
pub fn wasserstein<T: Real>(p: &ArrayRef1<T>, q: &ArrayRef1<T>) -> Result<f64> {
    // The last partial sum is over all classes, where the difference is 0 up to rounding.
    let last = p.len().saturating_sub(1);
    Ok(sums(&differences(p, q)?).take(last).sum())
}

/// The Kolmogorov–Smirnov distance maxᵢ |Pᵢ − Qᵢ| of two distributions over N ordered classes, in [0, 1], with Pᵢ = p₁ + … +
/// pᵢ and Qᵢ likewise. Negative weights count as 0, and both sides are divided by their sums. Cost O(N).
///
/// ```
/// use random_features::ndarray::arr1;
/// use random_features::apply::metrics::kolmogorov_smirnov;
/// assert_eq!(
///     kolmogorov_smirnov(&arr1(&[2.0, 2.0, 0.0]), &arr1(&[1.0, 2.0, 1.0]))?,
///     0.25
/// );
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Errors
/// The errors of [`wasserstein`].
#[inline(never)]
pub fn kolmogorov_smirnov<T: Real>(p: &ArrayRef1<T>, q: &ArrayRef1<T>) -> Result<f64> {
    let last = p.len().saturating_sub(1);
    Ok(sums(&differences(p, q)?).take(last).fold(0.0, f64::max))
}

/// The total variation distance ½ Σᵢ |pᵢ − qᵢ| of two distributions, in [0, 1]: the largest difference of the probabilities
/// of a set of classes. Negative weights count as 0, and both sides are divided by their sums. Cost O(N).
///
/// ```
/// use random_features::ndarray::arr1;
/// use random_features::apply::metrics::total_variation;
/// assert_eq!(
///     total_variation(&arr1(&[1.0, 3.0, -1.0]), &arr1(&[1.0, 2.0, 1.0]))?,
///     0.25
/// );
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Errors
/// The errors of [`wasserstein`].
#[inline(never)]
pub fn total_variation<T: Real>(p: &ArrayRef1<T>, q: &ArrayRef1<T>) -> Result<f64> {
    let sum: f64 = differences(p, q)?.iter().copied().map(f64::abs).sum();
    // Rounding may exceed the maximum.
    Ok((0.5 * sum).min(1.0))
}

/// pᵢ − qᵢ of the distributions that weights give.
fn differences<T: Real>(p: &ArrayRef1<T>, q: &ArrayRef1<T>) -> Result<Vec<f64>> {
    check_size("the number of weights of p", q.len(), p.len())?;
    let (p, q) =
        (distribution("p", "the largest weight of p", p)?, distribution("q", "the largest weight of q", q)?);
    Ok(p.iter().zip(q).map(|(p, q)| p - q).collect())
}

/// The magnitudes of the partial sums of entries, which are at most 1 but for rounding.
fn sums(entries: &[f64]) -> impl Iterator<Item = f64> {
    entries.iter().scan(0.0, |sum, entry| {
        *sum += entry;
        Some(sum.abs().min(1.0))
    })
}

/// The distribution that weights give: negative ones are set to 0, and all are divided by their sum.
fn distribution<T: Real>(
    what: &'static str,
    largest: &'static str,
    weights: &ArrayRef1<T>,
) -> Result<Vec<f64>> {
    check_entries(what, weights)?;
    let top = weights.fold(0.0, |top: f64, weight| top.max(weight.widen()));
    if top == 0.0 {
        let value = weights.fold(f64::NEG_INFINITY, |top, weight| top.max(weight.widen()));
        return Err(Error::Parameter { name: largest, value, domain: "above 0" });
    }
    // Weights are divided by the largest, so that sums do not overflow.
    let mut weights: Vec<f64> = weights.iter().map(|weight| weight.widen().max(0.0) / top).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|weight| *weight /= sum);
    Ok(weights)
}

once!(wasserstein::<T>, kolmogorov_smirnov::<T>, total_variation::<T>);
