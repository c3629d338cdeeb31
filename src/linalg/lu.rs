//! Gaussian elimination with partial pivoting, for the small complex matrices that are parameters of maps.

use ndarray::{Array1, Array2};
use num_complex::Complex64;

use crate::error::{Error, Result, check_size};

/// Solves `matrix` · u = `rhs`.
///
/// # Errors
/// [`Shape`](Error::Shape) if the matrix is not square or does not fit; [`Parameter`](Error::Parameter) if it
/// is singular or holds a number that is not finite.
pub(crate) fn solve(mut matrix: Array2<Complex64>, mut rhs: Array1<Complex64>) -> Result<Array1<Complex64>> {
    let d = matrix.nrows();
    check_size("the number of columns of the matrix", d, matrix.ncols())?;
    check_size("the dimension of the right-hand side", d, rhs.len())?;
    let largest = matrix.iter().map(|v| v.norm()).fold(0.0, f64::max);
    for k in 0..d {
        let better =
            |best: usize, i: usize| if matrix[[i, k]].norm() > matrix[[best, k]].norm() { i } else { best };
        let pivot_row = (k + 1..d).fold(k, better);
        let pivot = matrix[[pivot_row, k]];
        // The negation catches NaN.
        if !(pivot.norm() > d as f64 * f64::EPSILON * largest && largest.is_finite()) {
            return Err(Error::Parameter {
                name: "a pivot of the matrix A",
                value: pivot.norm(),
                domain: "finite and not 0, that is, A invertible",
            });
        }
        if pivot_row != k {
            for j in k..d {
                matrix.swap([k, j], [pivot_row, j]);
            }
            rhs.swap(k, pivot_row);
        }
        for i in k + 1..d {
            let factor = matrix[[i, k]] / pivot;
            for j in k + 1..d {
                let above = matrix[[k, j]];
                matrix[[i, j]] -= factor * above;
            }
            let above = rhs[k];
            rhs[i] -= factor * above;
        }
    }
    for k in (0..d).rev() {
        let known: Complex64 = (k + 1..d).map(|j| matrix[[k, j]] * rhs[j]).sum();
        rhs[k] = (rhs[k] - known) / matrix[[k, k]];
    }
    Ok(rhs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn c(re: f64, im: f64) -> Complex64 {
        Complex64::new(re, im)
    }

    #[test]
    fn solves_what_needs_pivots() {
        for d in 1..12usize {
            let matrix = Array2::from_shape_fn((d, d), |(i, j)| {
                let diagonal = if (i + 1) % d == j { 3.0 } else { 0.0 };
                c(((i * 7 + j * 3) % 5) as f64 / 5.0 + diagonal, ((i + 2 * j) % 3) as f64 / 3.0)
            });
            let u = Array1::from_shape_fn(d, |i| c(i as f64 - 1.0, 0.5));
            let solved = solve(matrix.clone(), matrix.dot(&u)).unwrap();
            assert!((&solved - &u).iter().all(|e| e.norm() < 1e-12), "{d}: {solved}");
        }
    }

    #[test]
    fn refuses_what_has_no_inverse() {
        let singular = Array2::from_elem((2, 2), c(1.0, 1.0));
        assert!(matches!(solve(singular, Array1::zeros(2)), Err(Error::Parameter { .. })));
        let nan = Array2::from_elem((1, 1), c(f64::NAN, 0.0));
        assert!(matches!(solve(nan, Array1::zeros(1)), Err(Error::Parameter { .. })));
        assert!(matches!(solve(Array2::zeros((2, 3)), Array1::zeros(2)), Err(Error::Shape { .. })));
        assert!(matches!(solve(Array2::eye(2), Array1::zeros(3)), Err(Error::Shape { .. })));
    }
}
