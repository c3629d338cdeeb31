//! [`Cholesky`]: the factor of a symmetric positive definite matrix, its solves and rank-one updates.

use ndarray::{Array1, Array2, ArrayRef1, ArrayRef2, ArrayView1, ArrayView2, ArrayViewMut1, Axis, Zip, s};

use super::triangular::{backward, forward};
use crate::error::{Error, Result, check_size};
use crate::memory::check_memory;
use crate::numeric::{self, Isa, slice_of};

/// The factor L of a symmetric positive definite n × n matrix A = L Lᵀ: lower triangular, with a positive diagonal.
///
/// Computed by [`Backend::cholesky`](super::Backend::cholesky). The factor of A + v vᵀ or A − v vᵀ follows in O(n²) without a
/// new factorisation, which adds a point to a regression or removes one. Solves and updates use the same code for all
/// backends, on one thread.
///
/// # Example
/// ```
/// use random_features::ndarray::array;
/// use random_features::linalg::Backend;
///
/// let a = array![[4.0, 2.0], [2.0, 5.0f64]];
/// let mut factor = Backend::default().cholesky(&a)?;
/// assert_eq!(factor.lower(), array![[2.0, 0.0], [1.0, 2.0]]);
/// assert!((factor.log_determinant() - 16f64.ln()).abs() < 1e-15);
/// // Two right-hand sides.
/// let u = factor.solve(&array![[8.0, 4.0], [12.0, 2.0]])?;
/// assert_eq!(u, array![[1.0, 1.0], [2.0, 0.0]]);
///
/// // A + v vᵀ = [[5, 0], [0, 9]].
/// factor.update(&array![1.0, -2.0])?;
/// let u = factor.solve_vector(&array![5.0, 18.0])?;
/// assert!((u[0] - 1.0).abs() < 1e-14 && (u[1] - 2.0).abs() < 1e-14);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # References
/// G. H. Golub, C. F. Van Loan, *Matrix Computations*, 4th edition, section 6.5.4, for updates by rotations;
/// J. J. Dongarra and others, *LINPACK Users' Guide*, chapter 10, for the downdate.
#[derive(Clone, Debug, PartialEq)]
pub struct Cholesky {
    /// Lᵀ in standard layout: column k of L is in row k, so that updates and substitutions read rows.
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

    /// Updates this to the factor of A + v vᵀ. Cost 3 n². Unchanged if an error is returned.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if v does not have n entries, [`NotFinite`](Error::NotFinite) if one is NaN or infinite, or the
    /// factor would overflow.
    pub fn update(&mut self, v: &ArrayRef1<f64>) -> Result<()> {
        let v = self.checked(v)?;
        let largest = |values: &[f64]| numeric::max_abs(Isa::best(), values);
        let largest = largest(slice_of(&self.upper)).max(largest(slice_of(&v)));
        // A row of L and its entry of v become a row of the same norm: no entry grows by more than √(n + 1).
        let growth = 2.0 * (self.dim() as f64 + 1.0).sqrt();
        if largest <= f64::MAX / growth {
            self.add(v);
            return Ok(());
        }
        let mut changed = self.clone();
        changed.add(v);
        // Division by an infinite radius leaves 0 on the diagonal.
        let fits = |(i, row): (usize, ArrayView1<'_, f64>)| {
            row[i] > 0.0 && row.iter().all(|entry| entry.is_finite())
        };
        match changed.lower().rows().into_iter().enumerate().position(|row| !fits(row)) {
            Some(row) => Err(Error::NotFinite { what: "the factor after the update", row, column: None }),
            None => {
                *self = changed;
                Ok(())
            }
        }
    }

    /// Updates this to the factor of A + v vᵀ, which may overflow.
    fn add(&mut self, mut v: Array1<f64>) {
        for (k, mut row) in self.upper.rows_mut().into_iter().enumerate() {
            // The rotation that brings v[k] into the diagonal.
            let radius = row[k].hypot(v[k]);
            let (cos, sin) = (row[k] / radius, v[k] / radius);
            rotate(cos, sin, row.slice_mut(s![k..]), v.slice_mut(s![k..]));
        }
    }

    /// Updates this to the factor of A − v vᵀ. Cost 4 n². Unchanged if an error is returned.
    ///
    /// The result is as accurate as a factorisation of A − v vᵀ where that is well conditioned. Digits that an update
    /// with a much larger v has rounded away do not come back.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if v does not have n entries, [`NotFinite`](Error::NotFinite) if one is NaN or infinite,
    /// [`Factorisation`](Error::Factorisation) with the first row whose pivot is not above 0 if A − v vᵀ is not positive
    /// definite up to rounding, that is, if vᵀA⁻¹v > 1 − n ε.
    pub fn downdate(&mut self, v: &ArrayRef1<f64>) -> Result<()> {
        let mut weights = self.checked(v)?;
        forward(&self.upper, &mut weights.view_mut().insert_axis(Axis(1)));
        // A − v vᵀ = L (I − w wᵀ) Lᵀ with w = L⁻¹v: the leading k × k minor is positive while |w₁…ₖ|² < 1.
        let limit = 1.0 - self.dim() as f64 * f64::EPSILON;
        let mut sum = 0.0;
        let beyond = |weight: &f64| {
            sum += weight.powi(2);
            sum > limit || sum.is_nan()
        };
        if let Some(row) = weights.iter().position(beyond) {
            return Err(not_positive_definite(Some(row)));
        }
        // Rotations that take (√(1 − |w|²), w) to (1, 0), from the last entry to the first, take (0, Lᵀ) to (−vᵀ, ·).
        let mut last = (1.0 - sum).sqrt();
        let mut v = Array1::zeros(self.dim());
        for (k, mut row) in self.upper.rows_mut().into_iter().enumerate().rev() {
            let radius = last.hypot(weights[k]);
            let (cos, sin) = (last / radius, weights[k] / radius);
            rotate(cos, sin, row.slice_mut(s![k..]), v.slice_mut(s![k..]));
            last = radius;
        }
        Ok(())
    }

    /// A copy of v, if it has n finite entries.
    fn checked(&self, v: &ArrayRef1<f64>) -> Result<Array1<f64>> {
        check_size("the dimension of v", self.dim(), v.len())?;
        match v.iter().position(|entry| !entry.is_finite()) {
            Some(row) => Err(Error::NotFinite { what: "v", row, column: None }),
            // A copy in the order of memory would be one from the last entry to the first, where v is.
            None => Ok(v.iter().copied().collect()),
        }
    }
}

/// (x, y) ← (cos x + sin y, cos y − sin x).
fn rotate(cos: f64, sin: f64, x: ArrayViewMut1<'_, f64>, y: ArrayViewMut1<'_, f64>) {
    Zip::from(x).and(y).for_each(|x, y| (*x, *y) = (cos * *x + sin * *y, cos * *y - sin * *x));
}

pub(super) fn not_positive_definite(row: Option<usize>) -> Error {
    Error::Factorisation {
        what: "the Cholesky factorisation",
        row,
        reason: "the matrix is not positive definite",
    }
}
