//! [`TokenElement`]: the number types of queries, keys and values, and [`Numbers`], in which they are told apart no more.

use std::ops::Range;

use ndarray::{Array2, ArrayView2, Axis, s};

use crate::Real;
use crate::numeric::{Isa, affine};

/// The number types of queries, keys and values, for attention that computes in `T`.
///
/// They are `T` itself and, with the feature `half`, `half::bf16` and `half::f16` for attention in `f32`. The trait is sealed.
#[diagnostic::on_unimplemented(
    message = "attention in `{T}` does not read queries, keys and values of `{Self}`",
    note = "attention in `f32` reads `f32` and, with the feature `half`, `bf16` and `f16`; attention in `f64` reads `f64`"
)]
pub trait TokenElement<T>: Copy + Send + Sync + sealed::Sealed<T> {}

pub(in super::super) mod sealed {
    use super::Numbers;

    pub trait Sealed<T>: Sized {
        /// A matrix of these.
        fn numbers(x: ndarray::ArrayView2<'_, Self>) -> Numbers<'_, T>;
    }
}

/// A matrix of numbers of one of the types that attention in `T` reads.
#[derive(Clone, Copy, Debug)]
pub enum Numbers<'a, T> {
    Own(ArrayView2<'a, T>),
    #[cfg(feature = "half")]
    Bf16(ArrayView2<'a, half::bf16>),
    #[cfg(feature = "half")]
    F16(ArrayView2<'a, half::f16>),
}

impl<T: Real> TokenElement<T> for T {}

impl<T: Real> sealed::Sealed<T> for T {
    fn numbers(x: ArrayView2<'_, T>) -> Numbers<'_, T> {
        Numbers::Own(x)
    }
}

#[cfg(feature = "half")]
impl TokenElement<f32> for half::bf16 {}

#[cfg(feature = "half")]
impl sealed::Sealed<f32> for half::bf16 {
    fn numbers(x: ArrayView2<'_, Self>) -> Numbers<'_, f32> {
        Numbers::Bf16(x)
    }
}

#[cfg(feature = "half")]
impl TokenElement<f32> for half::f16 {}

#[cfg(feature = "half")]
impl sealed::Sealed<f32> for half::f16 {
    fn numbers(x: ArrayView2<'_, Self>) -> Numbers<'_, f32> {
        Numbers::F16(x)
    }
}

/// An expression of the matrix `$x` of some numbers and of the function `$convert` that makes each a `T`.
macro_rules! of_numbers {
    ($numbers:expr, |$x:ident, $convert:ident| $result:expr) => {
        match $numbers {
            Numbers::Own($x) => {
                let $convert = |v: T| v;
                $result
            }
            #[cfg(feature = "half")]
            Numbers::Bf16($x) => {
                let $convert = |v: half::bf16| T::narrow(v.to_f64());
                $result
            }
            #[cfg(feature = "half")]
            Numbers::F16($x) => {
                let $convert = |v: half::f16| T::narrow(v.to_f64());
                $result
            }
        }
    };
}

impl<'a, T: Real> Numbers<'a, T> {
    pub fn nrows(&self) -> usize {
        of_numbers!(self, |x, _convert| x.nrows())
    }

    pub fn ncols(&self) -> usize {
        of_numbers!(self, |x, _convert| x.ncols())
    }

    /// The numbers for a shorter time.
    pub fn reborrow<'b>(self) -> Numbers<'b, T>
    where
        'a: 'b,
    {
        match self {
            Numbers::Own(x) => Numbers::Own(x.reborrow()),
            #[cfg(feature = "half")]
            Numbers::Bf16(x) => Numbers::Bf16(x.reborrow()),
            #[cfg(feature = "half")]
            Numbers::F16(x) => Numbers::F16(x.reborrow()),
        }
    }

    /// The rows from the last to the first.
    pub fn reversed(self) -> Self {
        let backwards = s![..;-1, ..];
        match self {
            Numbers::Own(x) => Numbers::Own(x.slice_move(backwards)),
            #[cfg(feature = "half")]
            Numbers::Bf16(x) => Numbers::Bf16(x.slice_move(backwards)),
            #[cfg(feature = "half")]
            Numbers::F16(x) => Numbers::F16(x.slice_move(backwards)),
        }
    }

    /// Some rows, one after the other.
    pub fn rows(self, run: Range<usize>) -> Self {
        match self {
            Numbers::Own(x) => Numbers::Own(x.slice_axis_move(Axis(0), run.into())),
            #[cfg(feature = "half")]
            Numbers::Bf16(x) => Numbers::Bf16(x.slice_axis_move(Axis(0), run.into())),
            #[cfg(feature = "half")]
            Numbers::F16(x) => Numbers::F16(x.slice_axis_move(Axis(0), run.into())),
        }
    }

    /// Some rows in any order.
    pub fn select(&self, rows: &[usize]) -> Array2<T> {
        of_numbers!(self, |x, convert| x.select(Axis(0), rows).mapv(convert))
    }

    /// Writes row `i` to a slice of its length.
    pub fn copy_row(&self, i: usize, to: &mut [T]) {
        of_numbers!(self, |x, convert| match x.row(i).to_slice() {
            Some(row) => to.iter_mut().zip(row).for_each(|(to, v)| *to = convert(*v)),
            None => to.iter_mut().zip(x.row(i)).for_each(|(to, v)| *to = convert(*v)),
        });
    }

    /// Appends all numbers times a factor, row by row.
    pub fn read(&self, factor: T, to: &mut Vec<T>) {
        let first = to.len();
        of_numbers!(self, |x, convert| match x.to_slice() {
            Some(all) => to.extend(all.iter().map(|v| convert(*v))),
            None => x.rows().into_iter().for_each(|row| match row.to_slice() {
                Some(row) => to.extend(row.iter().map(|v| convert(*v))),
                None => to.extend(row.iter().map(|v| convert(*v))),
            }),
        });
        if factor != T::one() {
            affine(Isa::best(), &mut to[first..], factor, &[]);
        }
    }
}
