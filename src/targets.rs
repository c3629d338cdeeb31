//! [`Targets`]: the numbers that a regression predicts, one or several for each point.

use ndarray::{
    Array1, Array2, ArrayBase, ArrayRef1, ArrayRef2, ArrayView1, ArrayView2, Axis, Data, Ix1, Ix2,
};

use crate::Real;
use crate::error::{Result, check_size};

/// Targets of a regression, n or n × t, for methods that take `impl Into<Targets<T>>`.
///
/// ```
/// use random_features::Targets;
/// use random_features::ndarray::{arr1, arr2};
/// let (one, two) = (arr1(&[1.0, 2.0, 3.0]), arr2(&[[1.0, 4.0], [2.0, 5.0]]));
/// let (one, two) = (Targets::from(&one), Targets::from(&two));
/// assert_eq!((one.nrows(), one.ncols()), (3, 1));
/// assert_eq!((two.nrows(), two.ncols()), (2, 2));
/// ```
///
/// Arrays of one dimension hold one target for each of n points, arrays of two dimensions hold t of them in each row. Arrays of any
/// layout (owned, shared, views) convert by reference, views also by value, and vectors and slices by reference. Nothing is
/// copied. `predict` gives n × t numbers, and `predict_single` n numbers for one target.
#[derive(Clone, Copy, Debug)]
pub struct Targets<'a, T: Real> {
    columns: ArrayView2<'a, T>,
}

impl<'a, T: Real> Targets<'a, T> {
    /// n, the number of points.
    pub fn nrows(&self) -> usize {
        self.columns.nrows()
    }

    /// t, the number of targets of each point.
    pub fn ncols(&self) -> usize {
        self.columns.ncols()
    }

    /// The targets, n × t.
    pub fn view(&self) -> ArrayView2<'a, T> {
        self.columns
    }
}

/// The predictions of a model of one target, n × 1, as n numbers.
pub(crate) fn single<T>(predictions: Array2<T>) -> Result<Array1<T>> {
    check_size("the number of targets of single predictions", 1, predictions.ncols())?;
    Ok(predictions.index_axis_move(Axis(1), 0))
}

impl<'a, T: Real> From<ArrayView1<'a, T>> for Targets<'a, T> {
    fn from(targets: ArrayView1<'a, T>) -> Self {
        targets.insert_axis(Axis(1)).into()
    }
}

impl<'a, T: Real> From<ArrayView2<'a, T>> for Targets<'a, T> {
    fn from(columns: ArrayView2<'a, T>) -> Self {
        Targets { columns }
    }
}

/// Converts an array by reference.
macro_rules! by_reference {
    ($($array:ident, $dim:ident);*) => {$(
        impl<'a, T: Real> From<&'a $array<T>> for Targets<'a, T> {
            fn from(targets: &'a $array<T>) -> Self {
                targets.view().into()
            }
        }

        impl<'a, T: Real, S: Data<Elem = T>> From<&'a ArrayBase<S, $dim>> for Targets<'a, T> {
            fn from(targets: &'a ArrayBase<S, $dim>) -> Self {
                targets.view().into()
            }
        }
    )*};
}

by_reference!(ArrayRef1, Ix1; ArrayRef2, Ix2);

impl<'a, T: Real> From<&'a [T]> for Targets<'a, T> {
    fn from(targets: &'a [T]) -> Self {
        ArrayView1::from(targets).into()
    }
}

impl<'a, T: Real> From<&'a Vec<T>> for Targets<'a, T> {
    fn from(targets: &'a Vec<T>) -> Self {
        targets.as_slice().into()
    }
}

/// Borrows targets that were converted before.
impl<'a, T: Real> From<&'a Targets<'_, T>> for Targets<'a, T> {
    fn from(targets: &'a Targets<'_, T>) -> Self {
        targets.columns.reborrow().into()
    }
}
