//! Error metrics: errors of estimated Gram matrices relative to exact ones, and distances between distributions.
//!
//! For matrices there are [`frobenius_error`] and [`spectral_error`], relative to the exact matrix,
//! [`largest_relative_error`] and [`negative_fraction`]; for distributions over ordered classes [`wasserstein`],
//! [`kolmogorov_smirnov`] and [`total_variation`]. Everything is computed in `f64` for every scalar type and is
//! bit-identical for any number of threads and any layout.
//!
//! ```
//! use random_features::apply::metrics::{frobenius_error, spectral_error};
//! use random_features::frequency::Orthogonal;
//! use random_features::kernel::{Gaussian, Kernel};
//! use random_features::Trigonometric;
//! # use random_features::ndarray::Array2;
//! # let x = Array2::from_shape_fn((20, 3), |(i, j)| ((3 * i + j) as f64).sin());
//!
//! let exact = Gaussian::new(1.0)?.gram(&x, &x)?;
//! let map = Trigonometric.gaussian(Orthogonal.draw(3, 3000, 1)?, 1.0)?;
//! let estimate = map.gram(&x, &x)?;
//! assert!(frobenius_error(&estimate, &exact)? < 0.05);
//! assert!(spectral_error(&estimate, &exact)? < 0.05);
//! # Ok::<(), random_features::Error>(())
//! ```

mod difference;
mod distribution;
mod spectral;

use ndarray::{ArrayRef, ArrayRef2, Dimension};

pub use distribution::{kolmogorov_smirnov, total_variation, wasserstein};

use crate::Real;
use crate::error::{Error, Result, check_positive, check_size};
use crate::once::once;
use difference::ScaledMatrix;

/// The relative accuracy of the singular value that [`spectral_error`] finds by iteration. It is the largest one unless
/// the start vector is almost orthogonal to its singular vector.
pub const SPECTRAL_TOLERANCE: f64 = spectral::TOLERANCE;

/// The relative Frobenius error ‖K̂ − K‖_F / ‖K‖_F of an n × l matrix of estimates; at least 0. Cost O(n l).
///
/// ```
/// use random_features::ndarray::arr2;
/// use random_features::apply::metrics::frobenius_error;
/// let (exact, estimate) =
///     (arr2(&[[3.0, 0.0], [0.0, 4.0]]), arr2(&[[3.0, 1.0], [0.0, 4.0]]));
/// assert_eq!(frobenius_error(&estimate, &exact)?, 0.2);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Errors
/// [`Shape`](Error::Shape) if the matrices differ in shape, [`NotFinite`](Error::NotFinite) if an entry is not finite,
/// [`Parameter`](Error::Parameter) if there are no entries, or if all entries of `exact` are 0.
#[inline(never)]
pub fn frobenius_error<T: Real>(estimate: &ArrayRef2<T>, exact: &ArrayRef2<T>) -> Result<f64> {
    check(estimate, exact)?;
    relative(estimate, exact, |matrix| Ok(matrix.frobenius()))
}

/// The relative spectral error ‖K̂ − K‖₂ / ‖K‖₂ of an n × l matrix of estimates, with the largest singular values; at
/// least 0.
///
/// If n and l are at most 1000, the norms come from a singular value decomposition by [`linalg`](crate::linalg), exact to
/// rounding; the cost is O(n l min(n, l)). Larger matrices, and all matrices if no backend is enabled, use the Golub–Kahan
/// form of the Lanczos method with reorthogonalisation from a fixed start vector. It takes at least 8 steps, until the
/// residual shows that a singular value is within the relative tolerance [`SPECTRAL_TOLERANCE`]; the error is usually about
/// its square. Up to rounding the norms are never too large. Each of some tens to hundreds of steps costs O(n l) and memory
/// for n + l numbers; few are needed if the largest singular value is well separated.
///
/// ```
/// use random_features::ndarray::arr2;
/// use random_features::apply::metrics::spectral_error;
/// let (exact, estimate) =
///     (arr2(&[[3.0, 0.0], [0.0, 4.0]]), arr2(&[[2.0, 0.0], [0.0, 4.0]]));
/// assert!((spectral_error(&estimate, &exact)? - 0.25).abs() < 1e-15);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Errors
/// The errors of [`frobenius_error`]; [`Factorisation`](Error::Factorisation) if the backend's iteration does not converge.
///
/// # References
/// G. H. Golub, W. Kahan, *Calculating the Singular Values and Pseudo-Inverse of a Matrix*, SIAM J. Numer. Anal. 2, 1965;
/// G. H. Golub, C. F. Van Loan, *Matrix Computations*, 4th edition, section 10.4.
#[inline(never)]
pub fn spectral_error<T: Real>(estimate: &ArrayRef2<T>, exact: &ArrayRef2<T>) -> Result<f64> {
    check(estimate, exact)?;
    relative(estimate, exact, |matrix| matrix.spectral())
}

/// The largest relative error |K̂ᵢⱼ − Kᵢⱼ| / |Kᵢⱼ| of an entry, for arrays of any shape. Where Kᵢⱼ = 0 it is 0 if K̂ᵢⱼ = 0,
/// else ∞; it is ∞ too where the ratio is beyond the range of `f64`.
///
/// ```
/// use random_features::ndarray::arr1;
/// use random_features::apply::metrics::largest_relative_error;
/// assert_eq!(
///     largest_relative_error(
///         &arr1(&[1.0, 1.5, 0.0]),
///         &arr1(&[1.0, 2.0, 0.0])
///     )?,
///     0.25
/// );
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Errors
/// [`Shape`](Error::Shape) if the arrays differ in shape, [`NotFinite`](Error::NotFinite) if an entry is not finite,
/// [`Parameter`](Error::Parameter) if there are no entries.
pub fn largest_relative_error<T, D>(estimate: &ArrayRef<T, D>, exact: &ArrayRef<T, D>) -> Result<f64>
where
    T: Real,
    D: Dimension,
{
    check(estimate, exact)?;
    let error = |(a, b): (&T, &T)| match (a.widen(), b.widen()) {
        (a, b) if a == b => 0.0,
        // Where the difference overflows it is large: the ratio has no digits to lose.
        (a, b) if (a - b).is_infinite() => (a / b - 1.0).abs(),
        (a, b) => ((a - b) / b).abs(),
    };
    Ok(estimate.iter().zip(exact).map(error).fold(0.0, f64::max))
}

/// The share of entries below 0, in [0, 1], for arrays of any shape, such as estimates of a positive kernel by signed
/// features. −0 is not below 0.
///
/// ```
/// use random_features::ndarray::arr1;
/// use random_features::apply::metrics::negative_fraction;
/// assert_eq!(negative_fraction(&arr1(&[0.5, -0.1, 0.0, 0.6]))?, 0.25);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Errors
/// [`NotFinite`](Error::NotFinite) if an entry is not finite, [`Parameter`](Error::Parameter) if there are no entries.
pub fn negative_fraction<T: Real, D: Dimension>(estimate: &ArrayRef<T, D>) -> Result<f64> {
    check_entries("the estimate", estimate)?;
    Ok(estimate.iter().filter(|entry| **entry < T::zero()).count() as f64 / estimate.len() as f64)
}

/// A norm of K̂ − K divided by that of K, from norms of matrices that are scaled by powers of two.
fn relative<T: Real>(
    estimate: &ArrayRef2<T>,
    exact: &ArrayRef2<T>,
    norm: impl Fn(&ScaledMatrix<'_, T>) -> Result<f64>,
) -> Result<f64> {
    let all_zero = Error::Parameter { name: "the norm of the exact matrix", value: 0.0, domain: "above 0" };
    let kernel = ScaledMatrix::new(exact.view(), None).ok_or(all_zero)?;
    let Some(difference) = ScaledMatrix::new(estimate.view(), Some(exact.view())) else { return Ok(0.0) };
    Ok(norm(&difference)? / norm(&kernel)? * difference.units_over(&kernel))
}

/// Checks that an estimate and exact values have one shape, and are finite.
fn check<T: Real, D: Dimension>(estimate: &ArrayRef<T, D>, exact: &ArrayRef<T, D>) -> Result<()> {
    for (axis, (&found, &expected)) in estimate.shape().iter().zip(exact.shape()).enumerate() {
        let what = match axis {
            0 => "the number of rows of the estimate",
            1 => "the number of columns of the estimate",
            _ => "the size of the estimate along a further axis",
        };
        check_size(what, expected, found)?;
    }
    check_entries("the estimate", estimate)?;
    check_entries("the exact values", exact)
}

/// Checks that there are entries, and that they are finite.
fn check_entries<T: Real, D: Dimension>(what: &'static str, entries: &ArrayRef<T, D>) -> Result<()> {
    check_positive("the number of entries", entries.len())?;
    let in_row = entries.len() / entries.shape().first().copied().unwrap_or(1);
    match entries.iter().position(|entry| !entry.is_finite()) {
        Some(index) => Err(Error::NotFinite { what, row: index / in_row, column: None }),
        None => Ok(()),
    }
}

once!(frobenius_error::<T>, spectral_error::<T>);
