//! Slices and matrices of one another, where layout and size are right by construction.
//!
//! A wrong layout or size is a mistake of this crate: it fails where debug assertions are on, as in tests.

use ndarray::{Array2, ArrayRef, ArrayView2, ArrayViewMut, Dimension};

/// The elements of an array in standard layout.
#[inline]
#[track_caller]
pub fn slice_of<A, D: Dimension>(array: &ArrayRef<A, D>) -> &[A] {
    debug_assert!(array.is_standard_layout(), "an array in standard layout");
    array.as_slice().unwrap_or_default()
}

/// The elements of an array in standard layout, to be changed.
#[inline]
#[track_caller]
pub fn slice_of_mut<A, D: Dimension>(array: &mut ArrayRef<A, D>) -> &mut [A] {
    debug_assert!(array.is_standard_layout(), "an array in standard layout");
    array.as_slice_mut().unwrap_or_default()
}

/// The elements of a view in standard layout, to be changed as long as what it is a view of is borrowed.
#[inline]
#[track_caller]
pub fn into_slice_of<A, D: Dimension>(view: ArrayViewMut<'_, A, D>) -> &mut [A] {
    debug_assert!(view.is_standard_layout(), "a view in standard layout");
    view.into_slice().unwrap_or_default()
}

/// A row-major slice of `rows` × `columns` elements as a matrix.
#[inline]
#[track_caller]
pub fn matrix_view<A>(rows: usize, columns: usize, elements: &[A]) -> ArrayView2<'_, A> {
    debug_assert_eq!(Some(elements.len()), rows.checked_mul(columns), "the elements of a matrix");
    ArrayView2::from_shape((rows, columns), elements).unwrap_or_else(|_| ArrayView2::from(&[[]; 0]))
}

/// The matrix of `rows` × `columns` with these elements in row-major order.
#[inline]
#[track_caller]
pub fn matrix_of<A>(rows: usize, columns: usize, elements: Vec<A>) -> Array2<A> {
    debug_assert_eq!(Some(elements.len()), rows.checked_mul(columns), "the elements of a matrix");
    Array2::from_shape_vec((rows, columns), elements).unwrap_or_else(|_| Array2::from(Vec::<[A; 0]>::new()))
}

/// The product of a matrix with a vector: each entry one sum from left to right, whatever the machine.
pub fn matrix_times(matrix: &Array2<f64>, v: &[f64]) -> Vec<f64> {
    matrix.rows().into_iter().map(|row| row.iter().zip(v).map(|(m, v)| m * v).sum()).collect()
}

#[cfg(test)]
mod tests {
    use ndarray::arr2;

    use super::*;

    #[test]
    fn rows_follow_each_other() {
        let mut a = arr2(&[[1, 2, 3], [4, 5, 6]]);
        assert_eq!(slice_of(&a), [1, 2, 3, 4, 5, 6]);
        assert_eq!(slice_of(&a.row(1)), [4, 5, 6]);
        slice_of_mut(&mut a)[3] = 9;
        assert_eq!(matrix_view(2, 3, slice_of(&a)), a);
        assert_eq!(matrix_of(2, 3, vec![1, 2, 3, 9, 5, 6]), a);
        assert_eq!(matrix_of::<u8>(0, 0, Vec::new()).dim(), (0, 0));
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic = "standard layout"]
    fn another_layout_fails_in_tests() {
        slice_of(&arr2(&[[1, 2], [3, 4]]).t());
    }
}
