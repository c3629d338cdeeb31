//! [`Cholesky`]: the factor of a symmetric positive definite matrix, and its solves.

use ndarray::{Array1, Array2, ArrayRef1, ArrayRef2, ArrayView2, Axis};

use super::triangular::{backward, forward};
use crate::error::{Error, Result, check_size};
use crate::memory::check_memory;

/// The factor L of a symmetric positive definite n × n matrix A = L Lᵀ: lower triangular, with a positive diagonal.
///
/// Solves use the same code for all backends, on one thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Cholesky {
    /// Lᵀ in standard layout: column k of L is in row k, so that substitutions read rows.
    upper: Array2<f64>,
}

/// What must be as many as the rows of the factor.
const RHS_ROWS: &str = "the number of rows of the right-hand side";

impl Cholesky {
    /// From Lᵀ.
    pub(super) fn new(upper: Array2<f64>) -> Self {
        let standard = upper.is_standard_layout();
        Cholesky { upper: if standard { upper } else { upper.as_standard_layout().into_owned() } }
    }

    /// n.
    pub fn dim(&self) -> usize {
        self.upper.nrows()
    }

    /// L, n × n, with zeros above the diagonal.
    pub fn lower(&self) -> ArrayView2<'_, f64> {
        self.upper.t()
    }

    /// ln det A, which does not overflow where the determinant does. Cost O(n).
    pub fn log_determinant(&self) -> f64 {
        2.0 * self.upper.diag().iter().map(|entry| entry.ln()).sum::<f64>()
    }

    /// Solves A U = `rhs` for U, for an n × k matrix of k right-hand sides in columns. Cost 2 n² k.
    ///
    /// # Errors
    /// The errors of [`solve_inplace`](Cholesky::solve_inplace); [`Memory`](Error::Memory) if there is no memory for
    /// the solution.
    pub fn solve(&self, rhs: &ArrayRef2<f64>) -> Result<Array2<f64>> {
        check_size(RHS_ROWS, self.dim(), rhs.nrows())?;
        check_memory("columns of a solution", rhs.ncols(), rhs.nrows().saturating_mul(size_of::<f64>()))?;
        let mut solution = rhs.to_owned();
        self.solve_inplace(&mut solution)?;
        Ok(solution)
    }

    /// Solves A u = `rhs` for u. Cost 2 n².
    ///
    /// # Errors
    /// The errors of [`solve_inplace`](Cholesky::solve_inplace).
    pub fn solve_vector(&self, rhs: &ArrayRef1<f64>) -> Result<Array1<f64>> {
        check_size(RHS_ROWS, self.dim(), rhs.len())?;
        let mut solution = rhs.to_owned();
        self.solve_inplace(&mut solution.view_mut().insert_axis(Axis(1)))?;
        Ok(solution)
    }

    /// Solves A U = `rhs`, n × k, in place.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if `rhs` does not have n rows, [`NotFinite`](Error::NotFinite) if it holds NaN or an infinity.
    pub fn solve_inplace(&self, rhs: &mut ArrayRef2<f64>) -> Result<()> {
        check_size(RHS_ROWS, self.dim(), rhs.nrows())?;
        if let Some(row) = rhs.rows().into_iter().position(|row| !row.iter().all(|entry| entry.is_finite())) {
            return Err(Error::NotFinite { what: "the right-hand side", row, column: None });
        }
        forward(&self.upper, rhs);
        backward(&self.upper, rhs);
        Ok(())
    }

    /// L⁻¹, n × n. Cost n³.
    pub(crate) fn lower_inverse(&self) -> Array2<f64> {
        let mut inverse = Array2::eye(self.dim());
        forward(&self.upper, &mut inverse);
        inverse
    }
}

pub(super) fn not_positive_definite(row: Option<usize>) -> Error {
    Error::Factorisation {
        what: "the Cholesky factorisation",
        row,
        reason: "the matrix is not positive definite",
    }
}
