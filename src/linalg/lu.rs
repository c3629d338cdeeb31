//! Gaussian elimination with partial pivoting, for the small complex matrices that are parameters of maps.

use ndarray::{Array1, Array2, ArrayViewMut1, Axis};
use num_complex::Complex64;

use crate::error::{Error, Result, check_size};

/// Solves `matrix` · u = `rhs`.
///
/// # Errors
/// [`Shape`](Error::Shape) if the matrix is not square or `rhs` has another dimension; [`Parameter`](Error::Parameter) if it
/// is singular or holds a number that is not finite.
pub(crate) fn solve(matrix: Array2<Complex64>, mut rhs: Array1<Complex64>) -> Result<Array1<Complex64>> {
    check_size("the dimension of the right-hand side", matrix.nrows(), rhs.len())?;
    Lu::factor(matrix)?.substitute(rhs.view_mut());
    Ok(rhs)
}

/// A square matrix, factored: R A C = P L U with diagonal matrices R and C, a permutation P and triangles L and U.
///
/// R and C are powers of two that bring the largest entry of every row, then of every column, to [1, 2), so that a
/// matrix whose rows or columns have different units is not mistaken for a singular one.
pub(crate) struct Lu {
    /// L below the diagonal, with ones on it; U on and above it.
    factors: Array2<Complex64>,
    /// The row that was swapped with row k in step k.
    swaps: Vec<usize>,
    /// The diagonal of R.
    rows: Array1<f64>,
    /// The diagonal of C.
    columns: Array1<f64>,
}

impl Lu {
    /// Factors a d × d matrix. Cost O(d³).
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if the matrix is not square; [`Parameter`](Error::Parameter) if it holds a number that
    /// is not finite, or if it is singular: if a pivot of R A C is at most d · ε.
    pub(crate) fn factor(mut matrix: Array2<Complex64>) -> Result<Self> {
        let d = matrix.nrows();
        check_size("the number of columns of the matrix", d, matrix.ncols())?;
        if let Some(entry) = matrix.iter().find(|entry| !entry.is_finite()) {
            return Err(singular(entry.norm()));
        }
        let rows = equilibrate(&mut matrix, Axis(0));
        let columns = equilibrate(&mut matrix, Axis(1));
        let mut swaps = Vec::with_capacity(d);
        for k in 0..d {
            let row = swap_pivot(&mut matrix, k);
            let pivot = matrix[[k, k]].norm();
            if pivot <= d as f64 * f64::EPSILON {
                return Err(singular(pivot));
            }
            swaps.push(row);
            eliminate(&mut matrix, k);
        }
        Ok(Lu { factors: matrix, swaps, rows, columns })
    }

    /// A⁻¹. Cost O(d³).
    pub(crate) fn inverse(&self) -> Array2<Complex64> {
        let mut inverse = Array2::eye(self.rows.len());
        inverse.columns_mut().into_iter().for_each(|column| self.substitute(column));
        inverse
    }

    /// u ← A⁻¹ u = C U⁻¹ L⁻¹ Pᵀ R u.
    fn substitute(&self, mut u: ArrayViewMut1<'_, Complex64>) {
        let (a, d) = (&self.factors, u.len());
        u.iter_mut().zip(&self.rows).for_each(|(u, r)| *u *= r);
        for (k, &row) in self.swaps.iter().enumerate() {
            u.swap(k, row);
        }
        for k in 0..d {
            let known: Complex64 = (0..k).map(|j| a[[k, j]] * u[j]).sum();
            u[k] -= known;
        }
        for k in (0..d).rev() {
            let known: Complex64 = (k + 1..d).map(|j| a[[k, j]] * u[j]).sum();
            u[k] = (u[k] - known) / a[[k, k]];
        }
        u.iter_mut().zip(&self.columns).for_each(|(u, c)| *u *= c);
    }
}

/// Scales each row (axis 0) or column (axis 1) so that its largest entry is in [1, 2), and returns the factors. Rows
/// and columns of zeros stay.
fn equilibrate(matrix: &mut Array2<Complex64>, axis: Axis) -> Array1<f64> {
    let mut factors = Array1::ones(matrix.len_of(axis));
    for (mut lane, factor) in matrix.axis_iter_mut(axis).zip(&mut factors) {
        let largest = lane.iter().map(|entry| entry.norm()).fold(0.0, f64::max);
        if largest > 0.0 {
            // The limit keeps powers of two normal.
            *factor = (-largest.log2().floor().clamp(-1022.0, 1022.0)).exp2();
            lane.iter_mut().for_each(|entry| *entry *= *factor);
        }
    }
    factors
}

/// Brings the largest entry of column k, from row k on, to row k, and returns the row where it was.
fn swap_pivot(matrix: &mut Array2<Complex64>, k: usize) -> usize {
    let better =
        |best: usize, i: usize| if matrix[[i, k]].norm() > matrix[[best, k]].norm() { i } else { best };
    let row = (k + 1..matrix.nrows()).fold(k, better);
    if row != k {
        for j in 0..matrix.ncols() {
            matrix.swap([k, j], [row, j]);
        }
    }
    row
}

/// Subtracts multiples of row k from the rows below it, so that column k vanishes there; keeps the factors in its place.
fn eliminate(matrix: &mut Array2<Complex64>, k: usize) {
    let (above, mut below) = matrix.view_mut().split_at(Axis(0), k + 1);
    let pivot_row = above.row(k);
    for mut row in below.rows_mut() {
        let factor = row[k] / pivot_row[k];
        row[k] = factor;
        for j in k + 1..row.len() {
            row[j] -= factor * pivot_row[j];
        }
    }
}

fn singular(pivot: f64) -> Error {
    Error::Parameter {
        name: "a pivot of the matrix",
        value: pivot,
        domain: "finite and not 0: the matrix must be invertible",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn c(re: f64, im: f64) -> Complex64 {
        Complex64::new(re, im)
    }

    /// A matrix whose largest entries are off the diagonal.
    fn matrix(d: usize) -> Array2<Complex64> {
        Array2::from_shape_fn((d, d), |(i, j)| {
            let diagonal = if (i + 1) % d == j { 3.0 } else { 0.0 };
            c(((i * 7 + j * 3) % 5) as f64 / 5.0 + diagonal, ((i + 2 * j) % 3) as f64 / 3.0)
        })
    }

    #[test]
    fn solves_what_needs_pivots() {
        for d in 1..12usize {
            let (matrix, u) = (matrix(d), Array1::from_shape_fn(d, |i| c(i as f64 - 1.0, 0.5)));
            let solved = solve(matrix.clone(), matrix.dot(&u)).unwrap();
            assert!((&solved - &u).iter().all(|e| e.norm() < 1e-12), "{d}: {solved}");
            let inverse = Lu::factor(matrix.clone()).unwrap().inverse();
            let unit = matrix.dot(&inverse) - Array2::<Complex64>::eye(d);
            assert!(unit.iter().all(|e| e.norm() < 1e-12), "{d}: {unit}");
        }
    }

    #[test]
    fn units_do_not_matter() {
        let plain = matrix(7) + c(0.25, 0.0);
        let row = |i: usize| 10f64.powi(40 * i as i32 - 120);
        let column = |j: usize| 10f64.powi(120 - 40 * ((3 * j) % 7) as i32);
        let scaled = Array2::from_shape_fn((7, 7), |(i, j)| plain[[i, j]] * row(i) * column(j));
        let rhs = Array1::from_shape_fn(7, |i| c(1.0, i as f64));
        let expected = solve(plain, rhs.clone()).unwrap();
        let solved = solve(scaled, Array1::from_shape_fn(7, |i| rhs[i] * row(i))).unwrap();
        for (j, (solved, expected)) in solved.iter().zip(&expected).enumerate() {
            let error = solved * column(j) - expected;
            assert!(error.norm() < 1e-12 * expected.norm(), "{j}: {error}");
        }
    }

    #[test]
    fn ill_scaled_matrices_are_not_singular() {
        for small in [1e-16, 1e-150, 1e-300] {
            let diagonal = Array2::from_diag(&ndarray::array![c(1.0, 0.0), c(0.0, small)]);
            let inverse = Lu::factor(diagonal).unwrap().inverse();
            assert_eq!(inverse[[0, 0]], c(1.0, 0.0));
            assert!((inverse[[1, 1]] * small - c(0.0, -1.0)).norm() < 1e-15, "{inverse}");
        }
        // det = 1e-20, from the small column alone.
        let column = ndarray::array![[c(1.0, 0.0), c(1e-20, 0.0)], [c(1.0, 0.0), c(2e-20, 0.0)]];
        let u = solve(column, ndarray::array![c(2.0, 0.0), c(3.0, 0.0)]).unwrap();
        assert!((u[0] - 1.0).norm() < 1e-15 && (u[1] - 1e20).norm() < 1e5, "{u}");
    }

    #[test]
    fn refuses_what_has_no_inverse() {
        let ones = Array2::from_elem((2, 2), c(1.0, 1.0));
        // Rank 2 up to rounding, in units that hide it.
        let hidden =
            Array2::from_shape_fn((3, 3), |(i, j)| c((3 * i + j) as f64 / 7.0, 0.0) * 1e9f64.powi(i as i32));
        let row = ndarray::array![[c(1.0, 0.0), c(2.0, 0.0)], [c(0.0, 0.0), c(0.0, 0.0)]];
        for matrix in [ones, hidden, row.t().to_owned(), row, Array2::zeros((2, 2))] {
            let d = matrix.nrows();
            assert!(matches!(solve(matrix, Array1::zeros(d)), Err(Error::Parameter { .. })));
        }
        for wrong in [f64::NAN, f64::INFINITY] {
            let matrix = ndarray::array![[c(1.0, 0.0), c(0.0, wrong)], [c(0.0, 0.0), c(1.0, 0.0)]];
            assert!(matches!(solve(matrix, Array1::zeros(2)), Err(Error::Parameter { .. })));
        }
        assert!(matches!(solve(Array2::zeros((2, 3)), Array1::zeros(2)), Err(Error::Shape { .. })));
        assert!(matches!(solve(Array2::eye(2), Array1::zeros(3)), Err(Error::Shape { .. })));
    }
}
