//! [`Submatrix`]: some columns of some rows of a matrix.

use super::zip::{Sequence, Slice};
use super::{Lane, Vector, zip};

/// Consecutive columns of consecutive rows of a row-major matrix.
#[derive(Clone, Copy, Debug)]
pub struct Submatrix<S> {
    /// The elements from the first of the first row on, at least to the last of the last row.
    pub values: S,
    pub rows: usize,
    /// The distance between rows.
    pub stride: usize,
    /// The number of columns.
    pub width: usize,
}

/// Rows of features, with the logarithmic scale of each of their blocks.
#[derive(Clone, Copy, Debug)]
pub struct ScaledRows<V, S> {
    /// The features.
    pub values: Submatrix<V>,
    /// A scale for each block of each row.
    pub log_scales: Submatrix<S>,
}

impl<'a, T> Submatrix<&'a mut [T]> {
    /// The matrix of one row.
    pub fn of_row(row: &'a mut [T]) -> Self {
        let width = row.len();
        Submatrix { values: row, rows: 1, stride: width, width }
    }

    /// This submatrix, to be read.
    #[inline(always)]
    pub fn shared(&self) -> Submatrix<&[T]> {
        Submatrix { values: self.values, rows: self.rows, stride: self.stride, width: self.width }
    }

    /// The rows, in order.
    #[inline(always)]
    pub fn rows(&mut self) -> impl Iterator<Item = &mut [T]> {
        Submatrix { values: &mut *self.values, ..*self }.into_rows()
    }

    /// The rows, in order.
    #[inline(always)]
    pub fn into_rows(self) -> impl Iterator<Item = &'a mut [T]> {
        Rows(self)
    }
}

/// The rows of a submatrix, in order.
struct Rows<'a, T>(Submatrix<&'a mut [T]>);

impl<'a, T> Iterator for Rows<'a, T> {
    type Item = &'a mut [T];

    #[inline(always)]
    fn next(&mut self) -> Option<&'a mut [T]> {
        self.0.take_first()
    }
}

// Unlike `chunks`, which divides to count them, rows need no set-up: there may be only one.
impl<S: Slice> Sequence for Submatrix<S> {
    type Element = S;

    #[inline(always)]
    fn count(&self) -> usize {
        self.rows
    }

    #[inline(always)]
    fn first(self, count: usize) -> Self {
        Submatrix { rows: count, ..self }
    }

    #[inline(always)]
    fn take_first(&mut self) -> Option<S> {
        self.rows = self.rows.checked_sub(1)?;
        Some(self.values.take_run(self.stride).first(self.width))
    }
}

/// # Safety
/// The machine must have the instruction set of `V`.
#[inline(always)]
unsafe fn copy_body<T: Lane, V: Vector<T>>(to: Submatrix<&mut [T]>, from: Submatrix<&[T]>) {
    let width = to.width.min(from.width);
    for (to, from) in zip((to, from)) {
        // SAFETY: the caller's promise. Multiplying by one is exact.
        unsafe { write_multiple::<T, V>(&mut to[..width], T::one(), &from[..width]) };
    }
}

multiversion! {
    /// Copies the first columns of each row, as many as both have. For few columns it is faster than a call for each row.
    pub fn copy_rows<T, vector>(to: Submatrix<&mut [T]>, from: Submatrix<&[T]>) = copy_body;
}

/// out ← a · b, for slices of equal lengths.
///
/// # Safety
/// The machine must have the instruction set of `V`.
#[inline(always)]
pub unsafe fn write_multiple<T: Lane, V: Vector<T>>(out: &mut [T], a: T, b: &[T]) {
    let len = out.len().min(b.len());
    let Some(last) = len.checked_sub(V::WIDTH) else {
        return zip((out, b)).for_each(|(out, b)| *out = a * *b);
    };
    let mut at = 0;
    // SAFETY: at + WIDTH is at most both lengths; the caller's promise.
    unsafe {
        let a = V::splat(a);
        while at < last {
            a.mul(V::load(b.as_ptr().add(at))).store(out.as_mut_ptr().add(at));
            at += V::WIDTH;
        }
        // The last vector ends with the slice, and may overlap the one before.
        a.mul(V::load(b.as_ptr().add(last))).store(out.as_mut_ptr().add(last));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::Isa;

    #[test]
    fn rows_are_copied() {
        for isa in Isa::available() {
            for width in 0..40 {
                let from: Vec<f32> = (0..3 * 41).map(|k| k as f32).collect();
                let mut to = vec![-1.0; 3 * 50];
                let from_rows = Submatrix { values: &from[..], rows: 3, stride: 41, width: 41 };
                copy_rows(isa, Submatrix { values: &mut to, rows: 3, stride: 50, width }, from_rows);
                for (to, from) in to.chunks(50).zip(from.chunks(41)) {
                    assert!(to[..width] == from[..width] && to[width..].iter().all(|v| *v == -1.0));
                }
            }
        }
    }
}
