//! Large arrays that are written once and read much later.

use ndarray::{Array, Array2, IntoDimension, s};

use super::buffer::first_line;
use super::{LINE, slice_of, vector};
use crate::Real;

/// The bytes of a huge page.
#[cfg(all(target_os = "linux", not(miri)))]
const HUGE: usize = 2 << 20;

/// An array of zeros, in huge pages if it is large enough: page faults of small pages would take longer than most
/// results take to compute.
///
/// # Panics
/// If the number of elements overflows, like [`Array::zeros`].
pub fn zeros<T: Real, S: IntoDimension>(shape: S) -> Array<T, S::Dim> {
    let array = Array::<T, S::Dim>::zeros(shape.into_dimension());
    // Miri has no huge pages.
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        let start = array.as_ptr().addr().next_multiple_of(HUGE);
        let end = (array.as_ptr().addr() + array.len() * size_of::<T>()) / HUGE * HUGE;
        if start < end {
            let offset = start - array.as_ptr().addr();
            // SAFETY: the range lies inside the array's memory and holds whole pages; the advice changes no contents
            // and may be ignored.
            unsafe {
                libc::madvise(
                    array.as_ptr().wrapping_byte_add(offset).cast_mut().cast(),
                    end - start,
                    libc::MADV_HUGEPAGE,
                )
            };
        }
    }
    array
}

/// A matrix of zeros as of [`zeros`], which begins with a cache line.
///
/// # Panics
/// If the number of elements overflows.
pub fn aligned_zeros<T: Real>(rows: usize, columns: usize) -> Array2<T> {
    let (len, room) = (rows * columns, LINE / size_of::<T>());
    let array = zeros::<T, _>((1, len + room));
    let start = first_line(slice_of(&array));
    let array = array.slice_move(s![0, start..start + len]).into_shape_with_order((rows, columns));
    array.unwrap_or_else(|_| zeros((rows, columns)))
}

/// Prefetches a large slice that will soon be read.
pub fn prefetch<T>(slice: &[T]) {
    slice.chunks((LINE / size_of::<T>().max(1)).max(1)).for_each(|line| vector::prefetch_many(line.as_ptr()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_zeros_whatever_the_size() {
        let large = if cfg!(miri) { 3 } else { 1000 };
        for (rows, columns) in [(0, 3), (3, 0), (1, 1), (large, 1025), (large * 3 / 2, 3 * large)] {
            let mut array = zeros::<f32, _>((rows, columns));
            assert_eq!(array.dim(), (rows, columns));
            assert!(array.iter().all(|v| *v == 0.0));
            array.fill(1.0);
            let mut array = aligned_zeros::<f64>(rows, columns);
            assert!(array.dim() == (rows, columns));
            assert!(array.is_empty() || array.as_ptr().align_offset(LINE) == 0);
            assert!(array.as_slice_mut().is_some_and(|all| all.iter().all(|v| *v == 0.0)));
            array.fill(1.0);
        }
    }
}
