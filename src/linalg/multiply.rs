//! Products of matrices in `f64`, cut by their sizes alone and shared by threads.

use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, Axis, s};

use crate::threads;

/// The number of rows of a product that are made at a time.
const ROWS: usize = 64;

/// The lower triangle of A Aᵀ, with some entries above it.
pub(crate) fn product_of_rows(a: &Array2<f64>) -> Array2<f64> {
    let n = a.nrows();
    let mut product = Array2::zeros((n, n));
    threads::for_each(product.axis_chunks_iter_mut(Axis(0), ROWS).enumerate(), |(chunk, mut out)| {
        let (first, end) = (chunk * ROWS, n.min((chunk + 1) * ROWS));
        let (left, right) = (a.slice(s![first..end, ..]), a.slice(s![..end, ..]));
        general_mat_mul(1.0, &left, &right.t(), 0.0, &mut out.slice_mut(s![.., ..end]));
    });
    product
}

/// Aᵀ B.
pub(crate) fn transposed_product(a: &Array2<f64>, b: &Array2<f64>) -> Array2<f64> {
    let mut product = Array2::zeros((a.ncols(), b.ncols()));
    threads::for_each(product.axis_chunks_iter_mut(Axis(0), ROWS).enumerate(), |(chunk, mut out)| {
        let (first, end) = (chunk * ROWS, a.ncols().min((chunk + 1) * ROWS));
        general_mat_mul(1.0, &a.slice(s![.., first..end]).t(), b, 0.0, &mut out);
    });
    product
}
