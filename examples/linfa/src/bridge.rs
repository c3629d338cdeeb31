//! Features as other crates want them, without a copy.
//!
//! Crates agree on arrays only if they depend on the same version of ndarray. They always agree on `Vec`: an array gives up
//! its memory, and the other version's array, or a matrix of another kind, takes it over.

use ndarray::Array2;
use smartcore::linalg::basic::matrix::DenseMatrix;

/// The entries in row-major order, in the memory of the array if that is their order already.
fn into_rows(x: Array2<f64>) -> Vec<f64> {
    let standard = if x.is_standard_layout() { x } else { x.as_standard_layout().into_owned() };
    let len = standard.len();
    let (mut entries, offset) = standard.into_raw_vec_and_offset();
    // A part of a larger array may begin later, and end before the memory does.
    entries.drain(..offset.unwrap_or(0));
    entries.truncate(len);
    entries
}

/// For linfa, whose ndarray is 0.16.
pub fn for_linfa(x: Array2<f64>) -> Result<ndarray16::Array2<f64>, String> {
    let shape = x.dim();
    ndarray16::Array2::from_shape_vec(shape, into_rows(x)).map_err(|error| error.to_string())
}

/// For smartcore, whose matrices are its own.
pub fn for_smartcore(x: Array2<f64>) -> Result<DenseMatrix<f64>, String> {
    let (rows, columns) = x.dim();
    DenseMatrix::new(rows, columns, into_rows(x), false).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, s};

    #[test]
    fn nothing_is_copied_where_nothing_need_be() {
        let x = Array2::from_shape_fn((5, 3), |(i, j)| (10 * i + j) as f64);
        let (place, all) = (x.as_ptr(), x.clone());
        let theirs = super::for_linfa(x).unwrap();
        assert_eq!(theirs.as_ptr(), place);
        assert!(theirs.iter().eq(all.iter()) && theirs.dim() == (5, 3));
        let part = super::for_linfa(all.clone().slice_move(s![1..4, ..])).unwrap();
        assert!(part.iter().eq(all.slice(s![1..4, ..]).iter()));
        let turned = super::for_linfa(all.clone().reversed_axes()).unwrap();
        assert!(turned.iter().eq(all.t().iter()) && turned.dim() == (3, 5));
    }
}
