//! Conversions between slices and matrices whose layout and size are right by construction.
//!
//! A wrong layout or size is a mistake of this crate: it panics, since to go on would give wrong numbers in silence. Arrays of a
//! caller, and results of `ndarray`, may have any layout: they take `as_standard_layout` first.

use ndarray::linalg::general_mat_mul;
use ndarray::{
    Array2, ArrayRef, ArrayRef2, ArrayView, ArrayView1, ArrayView2, ArrayViewMut, Axis, Dimension, Slice,
};

/// The elements of an array in standard layout.
#[inline]
#[track_caller]
pub fn slice_of<A, D: Dimension>(array: &ArrayRef<A, D>) -> &[A] {
    assert!(array.is_standard_layout(), "an array in standard layout");
    array.as_slice().unwrap_or_default()
}

/// The elements of an array in standard layout, to be changed.
#[inline]
#[track_caller]
pub fn slice_of_mut<A, D: Dimension>(array: &mut ArrayRef<A, D>) -> &mut [A] {
    assert!(array.is_standard_layout(), "an array in standard layout");
    array.as_slice_mut().unwrap_or_default()
}

/// The elements of a view in standard layout, to be changed for the lifetime of the view.
#[inline]
#[track_caller]
pub fn into_slice_of<A, D: Dimension>(view: ArrayViewMut<'_, A, D>) -> &mut [A] {
    assert!(view.is_standard_layout(), "a view in standard layout");
    view.into_slice().unwrap_or_default()
}

/// Writes a row to a slice of its length.
pub fn copy_row<A: Copy>(row: ArrayView1<'_, A>, out: &mut [A]) {
    match row.to_slice() {
        Some(row) => out.copy_from_slice(row),
        None => out.iter_mut().zip(row).for_each(|(out, v)| *out = *v),
    }
}

/// A row-major slice of `rows` × `columns` elements as a matrix.
#[inline]
#[track_caller]
pub fn matrix_view<A>(rows: usize, columns: usize, elements: &[A]) -> ArrayView2<'_, A> {
    assert_eq!(Some(elements.len()), rows.checked_mul(columns), "the elements of a matrix");
    ArrayView2::from_shape((rows, columns), elements).unwrap_or_else(|_| ArrayView2::from(&[[]; 0]))
}

/// The matrix of `rows` × `columns` with these elements in row-major order.
#[inline]
#[track_caller]
pub fn matrix_of<A>(rows: usize, columns: usize, elements: Vec<A>) -> Array2<A> {
    assert_eq!(Some(elements.len()), rows.checked_mul(columns), "the elements of a matrix");
    Array2::from_shape_vec((rows, columns), elements).unwrap_or_else(|_| Array2::from(Vec::<[A; 0]>::new()))
}

/// A view of each element once: an axis along which a broadcast view repeats its elements is cut to its first place.
pub fn without_repeats<A, D: Dimension>(mut view: ArrayView<'_, A, D>) -> ArrayView<'_, A, D> {
    for axis in 0..view.ndim() {
        if view.strides()[axis] == 0 && view.shape()[axis] > 1 {
            view.slice_axis_inplace(Axis(axis), Slice::from(..1));
        }
    }
    view
}

/// x·y for each row x of one matrix and each row y of another, in standard layout; `x.dot(&y.t())` has another layout if rows
/// have one entry.
pub fn row_products(x: &ArrayRef2<f64>, y: &ArrayRef2<f64>) -> Array2<f64> {
    let mut products = Array2::zeros((x.nrows(), y.nrows()));
    general_mat_mul(1.0, x, &y.t(), 0.0, &mut products);
    products
}

/// The product of a matrix with a vector: each entry is one sum from left to right, on every machine.
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
    fn what_is_repeated_is_seen_once() {
        let row = arr2(&[[1, 2, 3]]);
        let many = row.broadcast((1 << 40, 3)).unwrap();
        assert_eq!(without_repeats(many), row);
        assert_eq!(without_repeats(many.t()), row.t());
        let one = arr2(&[[7]]);
        assert_eq!(without_repeats(one.broadcast((1 << 30, 1 << 30)).unwrap()), one);
        let a = arr2(&[[1, 2], [3, 4]]);
        assert_eq!(without_repeats(a.t()), a.t());
        assert_eq!(without_repeats(Array2::<u8>::zeros((0, 3)).view()).len(), 0);
    }

    #[test]
    fn products_of_rows_are_in_standard_layout() {
        for (n, l, d) in [(1, 1, 1), (5, 3, 1), (3, 5, 2), (1, 4, 3), (4, 1, 3)] {
            let x = Array2::from_shape_fn((n, d), |(i, k)| (i + 2 * k) as f64 - 1.5);
            let y = Array2::from_shape_fn((l, d), |(j, k)| (3 * j + k) as f64 + 0.5);
            let columns = x.t().as_standard_layout().into_owned().reversed_axes();
            for x in [&x, &columns] {
                let products = row_products(x, &y);
                assert_eq!(slice_of(&products).len(), n * l);
                assert_eq!(products, x.dot(&y.t()));
            }
        }
    }

    #[test]
    #[should_panic = "standard layout"]
    fn another_layout_is_a_mistake() {
        slice_of(&arr2(&[[1, 2], [3, 4]]).t());
    }

    #[test]
    #[should_panic = "elements of a matrix"]
    fn another_size_is_a_mistake() {
        matrix_view(2, 3, &[0; 5]);
    }
}
