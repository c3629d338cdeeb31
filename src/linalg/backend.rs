//! [`Backend`]: the library that factorises matrices, and the checks of its input.

use ndarray::{Array1, Array2, ArrayRef2, ArrayView1, ArrayViewMut2, Axis, aview1, s};

use super::{Cholesky, Eigen, Svd};
use crate::error::{Error, Result, check_positive, check_size};
use crate::memory::check_memory;
use crate::numeric::{self, power_of_two_below};
use crate::threads;

/// The library that factorises matrices. Results of all backends have the same form and agree to rounding.
///
/// ```
/// use random_features::apply::RidgeStatistics;
/// use random_features::linalg::Backend;
/// use random_features::ndarray::array;
/// use random_features::prelude::*;
///
/// let map: Map<f64> = Map::for_kernel(Gaussian::new(1.0)?, 1, 16, 7)?;
/// let mut statistics = RidgeStatistics::new(map, 1)?;
/// statistics.update(&array![[0.0], [1.0], [2.0]], &array![1.0, 2.0, 0.0])?;
/// for backend in Backend::ALL {
///     let model = statistics.solve_with(*backend, 1e-3)?;
///     assert!((model.predict(&array![[1.0]])?[[0, 0]] - 2.0).abs() < 0.1);
/// }
/// # Ok::<(), random_features::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Backend {
    /// faer, on one thread but for large Cholesky factorisations.
    #[cfg(feature = "faer")]
    Faer,
    /// The LAPACK that the program links.
    #[cfg(feature = "ndarray-linalg")]
    Lapack,
}

/// Calls a function of the module of a backend.
macro_rules! by {
    ($backend:expr, $name:ident: $matrix:expr) => {
        match $backend {
            #[cfg(feature = "faer")]
            Backend::Faer => super::faer::$name($matrix),
            #[cfg(feature = "ndarray-linalg")]
            Backend::Lapack => super::lapack::$name($matrix),
        }
    };
}

impl Default for Backend {
    /// The first of [`Backend::ALL`]: faer where it is enabled.
    fn default() -> Self {
        Backend::ALL[0]
    }
}

impl Backend {
    /// The backends that are enabled.
    pub const ALL: &[Backend] = &[
        #[cfg(feature = "faer")]
        Backend::Faer,
        #[cfg(feature = "ndarray-linalg")]
        Backend::Lapack,
    ];

    /// The Cholesky factor of a symmetric positive definite n × n matrix. Cost n³/3.
    ///
    /// Only the lower triangle is read.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if the matrix is not square, [`Parameter`](Error::Parameter) if it is empty,
    /// [`NotFinite`](Error::NotFinite) if it holds NaN or an infinity, [`Factorisation`](Error::Factorisation) with the
    /// first row whose pivot is not above 0 if it is not positive definite up to rounding;
    /// [`Memory`](Error::Memory) if there is no memory for a copy of it.
    pub(crate) fn cholesky(self, a: &ArrayRef2<f64>) -> Result<Cholesky> {
        let upper = by!(self, cholesky: upper(a, 1)?);
        upper.map(Cholesky::new).map_err(super::cholesky::not_positive_definite)
    }

    /// The Cholesky factor, or `None` for a matrix that is not positive definite up to rounding or not finite.
    pub(crate) fn definite_cholesky(self, a: &ArrayRef2<f64>) -> Result<Option<Cholesky>> {
        match self.cholesky(a) {
            Err(Error::Factorisation { .. } | Error::NotFinite { .. }) => Ok(None),
            factor => factor.map(Some),
        }
    }

    /// The eigenvalues, ascending, and eigenvectors of a symmetric n × n matrix. Cost O(n³).
    ///
    /// Only the lower triangle is read.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if the matrix is not square, [`Parameter`](Error::Parameter) if it is empty,
    /// [`NotFinite`](Error::NotFinite) if it holds NaN or an infinity, [`Factorisation`](Error::Factorisation) if the
    /// backend's iteration does not converge;
    /// [`Memory`](Error::Memory) if there is no memory for copies of it and factors.
    pub(crate) fn eigen(self, a: &ArrayRef2<f64>) -> Result<Eigen> {
        let (a, unit) = in_units(upper(a, COPIES)?);
        let eigen = by!(self, eigen: a).ok_or_else(|| no_convergence("the eigendecomposition"))?;
        Ok(eigen.finish(unit))
    }

    /// The thin singular value decomposition of an m × n matrix. Cost O(m n min(m, n)).
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if the matrix is empty, [`NotFinite`](Error::NotFinite) if it holds NaN or an
    /// infinity, [`Factorisation`](Error::Factorisation) if the backend's iteration does not converge;
    /// [`Memory`](Error::Memory) if there is no memory for copies of it and factors.
    pub(crate) fn svd(self, a: &ArrayRef2<f64>) -> Result<Svd> {
        let (a, unit) = in_units(rectangular(a)?);
        let svd = by!(self, thin_svd: a).ok_or_else(|| no_convergence("the singular value decomposition"))?;
        Ok(svd.finish(unit))
    }

    /// The min(m, n) singular values of an m × n matrix, descending, at a lower cost than `svd`.
    ///
    /// # Errors
    /// The errors of `svd`.
    pub(crate) fn singular_values(self, a: &ArrayRef2<f64>) -> Result<Array1<f64>> {
        let (a, unit) = in_units(rectangular(a)?);
        let values = by!(self, singular_values: a);
        Ok(values.ok_or_else(|| no_convergence("the singular value decomposition"))? * unit)
    }
}

/// The side of the squares that are transposed one at a time, through a buffer: where rows are a power of two long, the lines
/// of both matrices would evict each other from the L1 cache.
const SQUARE: usize = 16;

/// The lower triangle of `a`, transposed: the upper triangle of the symmetric matrix, with zeros below it.
fn upper(a: &ArrayRef2<f64>, copies: usize) -> Result<Array2<f64>> {
    check_positive("the dimension of the matrix", a.nrows())?;
    check_size("the number of columns of the matrix", a.nrows(), a.ncols())?;
    check_room(a, copies)?;
    let n = a.nrows();
    let mut upper = numeric::zeros((n, n));
    let transpose = |(strip, mut rows): (usize, ArrayViewMut2<'_, f64>)| {
        let first = strip * SQUARE;
        let mut square = [[0.0; SQUARE]; SQUARE];
        for start in (first..n).step_by(SQUARE) {
            let end = n.min(start + SQUARE);
            for (k, row) in
                a.slice(s![start..end, first..n.min(first + SQUARE)]).rows().into_iter().enumerate()
            {
                row.iter().zip(&mut square).for_each(|(entry, column)| column[k] = *entry);
            }
            for ((i, mut row), column) in (first..).zip(rows.rows_mut()).zip(&square) {
                let above = start.max(i);
                row.slice_mut(s![above..end]).assign(&aview1(&column[above - start..end - start]));
            }
        }
        rows.iter().fold(true, |finite, entry| finite & entry.is_finite())
    };
    let finite = threads::map(upper.axis_chunks_iter_mut(Axis(0), SQUARE).enumerate(), transpose);
    if finite.into_iter().all(|finite| finite) {
        return Ok(upper);
    }
    let finite = |column: ArrayView1<'_, f64>| column.iter().all(|entry| entry.is_finite());
    let row = upper.columns().into_iter().position(|column| !finite(column)).unwrap_or(0);
    Err(Error::NotFinite { what: "the lower triangle of the matrix", row, column: None })
}

/// `a` in standard layout.
fn rectangular(a: &ArrayRef2<f64>) -> Result<Array2<f64>> {
    check_positive("the number of rows of the matrix", a.nrows())?;
    check_positive("the number of columns of the matrix", a.ncols())?;
    check_room(a, COPIES)?;
    match a.indexed_iter().find(|(_, entry)| !entry.is_finite()) {
        Some(((row, column), _)) => Err(Error::NotFinite { what: "the matrix", row, column: Some(column) }),
        None => Ok(a.as_standard_layout().into_owned()),
    }
}

/// The matrix divided by a power of two near its largest entry, which is exact, and that power. Backends form squares of
/// entries, which then neither overflow nor underflow.
fn in_units(mut a: Array2<f64>) -> (Array2<f64>, f64) {
    let largest = a.iter().fold(0.0, |largest: f64, entry| largest.max(entry.abs()));
    // Below this, numbers are denormal.
    let largest = largest.max(f64::MIN_POSITIVE);
    let unit = power_of_two_below(largest);
    a /= unit;
    (a, unit)
}

/// The most copies of a matrix that a decomposition makes beside each other: its input in the layout of a library, factors, and room to
/// work in.
const COPIES: usize = 6;

/// Refuses a matrix for so many copies of which there is no memory: a view may repeat its entries.
fn check_room(a: &ArrayRef2<f64>, copies: usize) -> Result<()> {
    let row = a.ncols().saturating_mul(copies * size_of::<f64>());
    check_memory("rows of a matrix", a.nrows(), row)
}

fn no_convergence(what: &'static str) -> Error {
    Error::Factorisation { what, row: None, reason: "the iteration did not converge" }
}
