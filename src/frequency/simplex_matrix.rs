//! The matrix whose rows are the vertices of a regular simplex, and products with it.

use ndarray::{Array2, ArrayViewMut2, Axis};

/// The matrix S of `d` ≥ 2 unit rows with inner products −1/(d−1), whose last column is 0.
///
/// sᵢ = √(d/(d−1)) eᵢ − (√d+1)/(d−1)^{3/2} (1, …, 1, 0) for i < d, and s_d = (d−1)^{−1/2} (1, …, 1, 0).
pub(super) fn vertices(d: usize) -> Array2<f64> {
    let mut matrix = Array2::eye(d);
    multiply(matrix.view_mut());
    matrix
}

/// Replaces a matrix v with d rows by S v, in O(1) operations per entry. A matrix with fewer than two rows is
/// unchanged.
pub(super) fn multiply(mut v: ArrayViewMut2<'_, f64>) {
    let d = v.nrows();
    if d < 2 {
        return;
    }
    let (stretch, shift, last) = coefficients(d);
    let (mut upper, mut bottom) = v.view_mut().split_at(Axis(0), d - 1);
    let sum = upper.sum_axis(Axis(0));
    for mut row in upper.rows_mut() {
        row.iter_mut().zip(&sum).for_each(|(v, sum)| *v = stretch * *v - shift * sum);
    }
    bottom.iter_mut().zip(&sum).for_each(|(v, sum)| *v = last * sum);
}

/// √(d/(d−1)), (√d+1)/(d−1)^{3/2} and (d−1)^{−1/2}.
pub(crate) fn coefficients(d: usize) -> (f64, f64, f64) {
    let d = d as f64;
    ((d / (d - 1.0)).sqrt(), (d.sqrt() + 1.0) / (d - 1.0).powf(1.5), (d - 1.0).sqrt().recip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vertices_are_a_simplex_and_products_are_products() {
        for d in 2..40 {
            let s = vertices(d);
            for ((i, j), inner) in s.dot(&s.t()).indexed_iter() {
                let expected = if i == j { 1.0 } else { -1.0 / (d as f64 - 1.0) };
                assert!((inner - expected).abs() < 1e-14, "d {d}: {i},{j}: {inner}");
            }
            assert!(s.column(d - 1).iter().all(|v| *v == 0.0));
            let v = Array2::from_shape_fn((d, 3), |(i, k)| ((i * 7 + k * 3) % 11) as f64 - 5.0);
            let mut product = v.clone();
            multiply(product.view_mut());
            assert!((product - s.dot(&v)).iter().all(|e| e.abs() < 1e-12), "d {d}");
        }
    }
}
