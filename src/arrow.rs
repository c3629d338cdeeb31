//! Points and targets in arrays of [Apache Arrow](https://arrow.apache.org) (feature `arrow`), read where they are.
//!
//! ```
//! use std::sync::Arc;
//!
//! use random_features::apply::RidgeStatistics;
//! use random_features::arrow::column;
//! use random_features::arrow_array::{ArrayRef, Float64Array, RecordBatch};
//! use random_features::frequency::Orthogonal;
//! use random_features::{Points, Trigonometric};
//!
//! # let batch = |start: usize| {
//! #     let wave = |f: f64| Arc::new(Float64Array::from_iter_values((start..start + 50).map(|i| (f * i as f64).sin())));
//! #     let columns: [(_, ArrayRef); 3] = [("price", wave(3.0)), ("width", wave(0.1)), ("height", wave(0.2))];
//! #     RecordBatch::try_from_iter(columns).unwrap()
//! # };
//! # let batches = [batch(0), batch(50)];
//! let map = Trigonometric.gaussian::<f64>(Orthogonal.draw(2, 64, 1)?, 1.0)?;
//! let mut ridge = RidgeStatistics::new(map, 1)?;
//! for batch in &batches {
//!     let x = Points::of_columns(["width", "height"].map(|name| &batch[name]))?;
//!     let y = column::<f64>(&batch["price"])?;
//!     ridge.update(x, y)?;
//! }
//! assert_eq!(ridge.rows(), 100);
//!
//! let error = Points::<f32>::of_columns(batches[0].columns()).unwrap_err();
//! let message = "column 0 holds elements of type Float64, not Float32";
//! assert_eq!(error.to_string(), message);
//! # Ok::<(), random_features::Error>(())
//! ```
//!
//! [`Points::of_columns`] takes a float column for each coordinate, [`Points::of_list`] takes a column of lists of one length,
//! and [`column()`] gives a view of a column of targets or weights. `Float32` is for `f32` and `Float64` for `f64`: nothing is
//! converted, and nulls are errors.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrowPrimitiveType};
use ndarray::ArrayView1;

use crate::error::{Error, Result, check_positive};
use crate::numeric::matrix_view;
use crate::once::once;
use crate::real::sealed::Family;
use crate::{Points, Real};

/// Views the numbers of a column, of type `T` and without nulls: n targets or weights.
///
/// # Errors
/// [`Arrow`](Error::Arrow) if the column has another type or nulls.
#[inline(never)]
pub fn column<T: Real>(column: &dyn Array) -> Result<ArrayView1<'_, T>> {
    Ok(ArrayView1::from(numbers(column, || "the column".into())?))
}

impl<'a, T: Real> Points<'a, T> {
    /// Takes points with a column for each coordinate (feature `arrow`): all columns of a
    /// [`RecordBatch`](arrow_array::RecordBatch), or some of them ([example](crate::arrow)).
    ///
    /// Columns are borrowed, and gathered some hundred rows at a time when they are read.
    ///
    /// # Errors
    /// [`Arrow`](Error::Arrow) with the number of a column, from 0, that has another type than `T`, another length than the
    /// first, or nulls; [`Parameter`](Error::Parameter) if there is no column.
    pub fn of_columns<A: Array + 'a>(columns: impl IntoIterator<Item = &'a A>) -> Result<Self> {
        Self::of_arrays(columns.into_iter().map(|column| column as &dyn Array).collect())
    }

    #[inline(never)]
    fn of_arrays(columns: Vec<&'a dyn Array>) -> Result<Self> {
        check_positive("the number of columns", columns.len())?;
        let n = columns[0].len();
        let slice = |(k, column): (usize, &&'a dyn Array)| {
            let name = || format!("column {k}");
            if column.len() != n {
                return Err(failure(name(), format!("has {} rows, but column 0 has {n}", column.len())));
            }
            numbers(*column, name)
        };
        let slices: Result<Vec<_>> = columns.iter().enumerate().map(slice).collect();
        Ok(Points::of_slices(slices?))
    }

    /// Takes points that are the entries of a [`FixedSizeListArray`](arrow_array::FixedSizeListArray) (feature `arrow`), such
    /// as a column of embeddings. They are borrowed as a dense array.
    ///
    /// # Errors
    /// [`Arrow`](Error::Arrow) if `list` is another array or its numbers are not of type `T`, or if there are nulls among its
    /// lists or their numbers.
    ///
    /// # Example
    /// ```
    /// use random_features::Points;
    /// use random_features::arrow_array::FixedSizeListArray;
    /// use random_features::arrow_array::types::Float32Type;
    /// use random_features::ndarray::array;
    ///
    /// let rows =
    ///     [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]].map(|row| Some(row.map(Some)));
    /// type Floats = Float32Type;
    /// let list = FixedSizeListArray::from_iter_primitive::<Floats, _, _>(rows, 2);
    /// let last = list.slice(1, 2);
    /// let points = Points::<f32>::of_list(&last)?;
    /// assert_eq!(points.to_dense()?, array![[3.0, 4.0], [5.0, 6.0]]);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    #[inline(never)]
    pub fn of_list(list: &'a dyn Array) -> Result<Self> {
        let Some(lists) = list.as_fixed_size_list_opt() else {
            let reason = format!("holds elements of type {}, not FixedSizeList", list.data_type());
            return Err(failure("the list".into(), reason));
        };
        if lists.null_count() > 0 {
            return Err(failure("the list".into(), nulls(lists)));
        }
        let values = numbers(lists.values(), || "the array of the list's numbers".into())?;
        Ok(matrix_view(lists.len(), lists.value_length() as usize, values).into())
    }
}

/// The numbers of an array that is called `name`.
fn numbers<T: Real>(array: &dyn Array, name: impl FnOnce() -> String) -> Result<&[T]> {
    let read = T::choose::<Read>(read::<Float32Type>, read::<Float64Type>);
    read(array).map_err(|reason| failure(name(), reason))
}

/// [`read`] for each scalar.
struct Read;

impl Family for Read {
    type Of<T> = fn(&dyn Array) -> Result<&[T], String>;
}

/// The numbers of an array, or the reason why it has none of this type.
fn read<A: ArrowPrimitiveType>(array: &dyn Array) -> Result<&[A::Native], String> {
    match array.as_primitive_opt::<A>() {
        None => Err(format!("holds elements of type {}, not {}", array.data_type(), A::DATA_TYPE)),
        Some(array) if array.null_count() > 0 => Err(nulls(array)),
        Some(array) => Ok(array.values()),
    }
}

fn nulls(array: &dyn Array) -> String {
    format!("holds nulls in {} of {} places", array.null_count(), array.len())
}

fn failure(array: String, reason: String) -> Error {
    Error::Arrow { array, reason }
}

once!(column::<T>, Points::<T>::of_arrays, Points::<T>::of_list);
