//! Nyström features of a kernel whose values are given.

use ndarray::{Array2, ArrayRef2};

use super::Nystroem;
use super::fitted::{check_count, factor_of};
use super::landmarks::pivots;
use crate::data::clustering::drawn;
use crate::error::{Error, Result, check_finite, check_positive, check_size};
use crate::generator::rng;
use crate::kernel::Kernel;
use crate::memory::check_memory;
use crate::numeric::matrix_of;
use crate::once::once;
use crate::{Real, SignedLog};

/// The share of the largest eigenvalue from which on a negative one is no rounding.
const INDEFINITE: f64 = 1e-4;

/// A kernel that is precomputed: between texts, graphs or molecules, from another program.
impl Nystroem {
    /// The factor A, D × M, for kernel values of M landmarks, M × M. Features of n objects are their kernel values with the landmarks,
    /// n × M, times Aᵀ.
    ///
    /// ```
    /// use random_features::map::Nystroem;
    /// use random_features::ndarray::{Array2, Axis};
    /// // Kernel values of 60 objects: how many digits of two numbers agree.
    /// let digits = |i: usize| [i % 2, i % 3, i % 5];
    /// let gram = Array2::from_shape_fn((60, 60), |(i, j)| {
    ///     digits(i).iter().zip(digits(j)).filter(|(a, b)| **a == *b).count() as f64
    /// });
    /// let landmarks = Nystroem::pivots_of_gram(&gram, 8, 7)?;
    /// let near = gram.select(Axis(1), &landmarks);
    /// let factor = Nystroem::factor_of_gram(&near.select(Axis(0), &landmarks))?;
    /// let features = near.dot(&factor.t());
    /// let error = (features.dot(&features.t()) - &gram).mapv(f64::abs).sum();
    /// assert!(error < 1e-9 * gram.sum());
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// D is the rank up to rounding in `T`, and the first features have the largest eigenvalues. The definition is that of
    /// [`new`](Nystroem::new). Cost O(M³).
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) without a landmark, or if an eigenvalue of the values over √(K(x, x)K(y, y)) is below −10⁻⁴ of the
    /// largest;
    /// [`Shape`](Error::Shape) unless the matrix is square, [`NotFinite`](Error::NotFinite) with the first row that holds NaN or an
    /// infinity, [`Entry`](Error::Entry) with the first row that is not that of a symmetric matrix, has a negative K(x, x), or a value above
    /// √(K(x, x)K(y, y)) in size;
    /// [`Unsupported`](Error::Unsupported) if all values are 0, [`Memory`](Error::Memory) if a copy does not fit in memory,
    /// [`Factorisation`](Error::Factorisation) if eigenvalues do not converge.
    #[doc(alias = "precomputed")]
    #[inline(never)]
    pub fn factor_of_gram<T: Real>(gram: &ArrayRef2<T>) -> Result<Array2<f64>> {
        factor_of(checked(gram)?, T::epsilon().widen(), INDEFINITE)
    }

    /// At most m of n objects as landmarks, by randomly pivoted Cholesky of their kernel values, n × n: the numbers of their rows, as
    /// [`pivoted`](Nystroem::pivoted) chooses them. There are none if all values are 0. Cost O(nm²).
    ///
    /// # Errors
    /// [`NoData`](Error::NoData) without objects, [`Parameter`](Error::Parameter) if m is 0 or above n, [`Cancelled`](Error::Cancelled) if a
    /// [watcher](crate::progress::watch) stops it; the errors of [`factor_of_gram`](Nystroem::factor_of_gram) that do not need eigenvalues.
    #[inline(never)]
    pub fn pivots_of_gram<T: Real>(gram: &ArrayRef2<T>, m: usize, seed: u64) -> Result<Vec<usize>> {
        check_count("the number of landmarks", m, gram.nrows())?;
        let gram = checked(gram)?;
        let (own, n, mut rng) = (gram.diag().to_vec(), gram.nrows(), rng(seed));
        let rows = matrix_of(n, 1, (0..n).map(|i| i as f64).collect());
        pivots(&Entries(gram), own, &rows, m, |residuals| drawn(residuals, &mut rng))
    }
}

/// Kernel values of some objects, which must be those of a symmetric matrix.
fn checked<T: Real>(gram: &ArrayRef2<T>) -> Result<Array2<f64>> {
    let (what, n) = ("the kernel values", gram.nrows());
    check_positive("the number of objects", n)?;
    check_size("the number of columns of the kernel values", n, gram.ncols())?;
    check_finite(what, gram)?;
    check_memory("kernel values", n, n.saturating_mul(size_of::<f64>()))?;
    let gram = matrix_of(n, n, gram.iter().map(|v| v.widen()).collect());
    let tolerance = T::epsilon().widen().sqrt();
    let roots = gram.diag().sqrt();
    for row in 0..n {
        let own = gram[[row, row]];
        if own < 0.0 {
            return Err(Error::Entry { what, row, value: own, domain: "not negative on the diagonal" });
        }
        for j in 0..row {
            // Divided one after the other, since the product may overflow.
            let cosine = |value: f64| if value == 0.0 { 0.0 } else { value / roots[row] / roots[j] };
            let [value, mirrored] = [[row, j], [j, row]].map(|place| cosine(gram[place]));
            let (largest, apart) = (value.abs().max(mirrored.abs()), (value - mirrored).abs());
            let value = gram[[row, j]];
            if largest.is_nan() || largest > 1.0 + tolerance {
                let domain = "at most √(K(x, x)K(y, y)) in size";
                return Err(Error::Entry { what, row, value, domain });
            }
            if apart > tolerance {
                return Err(Error::Entry { what, row, value, domain: "those of a symmetric matrix" });
            }
        }
    }
    Ok(gram)
}

/// A kernel between numbers of rows.
#[derive(Debug)]
struct Entries(Array2<f64>);

impl Kernel<f64> for Entries {
    fn check_dim(&self, d: usize) -> Result<()> {
        check_size("the dimension of the points", 1, d)
    }

    fn log_of_slices(&self, x: &[f64], y: &[f64]) -> SignedLog {
        SignedLog::from(self.0[[x[0] as usize, y[0] as usize]])
    }
}

once!(Nystroem::factor_of_gram::<T>, Nystroem::pivots_of_gram::<T>);
