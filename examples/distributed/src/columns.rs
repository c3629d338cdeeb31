//! [`Columns`]: the columns of some rows, as points and targets.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, FixedSizeListArray};
use datafusion::arrow::compute::concat;
use datafusion::arrow::datatypes::{ArrowPrimitiveType, DataType, Float32Type, Float64Type};
use datafusion::common::Result;
use ndarray::{ArrayView2, Axis};
use random_features::{Points, Real};

use crate::fault::{external, refuse};

/// A scalar type that is the element type of arrays.
pub trait Scalar: Real {
    /// The same type, for arrays.
    type Arrow: ArrowPrimitiveType<Native = Self>;
}

impl Scalar for f32 {
    type Arrow = Float32Type;
}

impl Scalar for f64 {
    type Arrow = Float64Type;
}

/// Columns of the same rows: coordinates, one a column or all in one list, and what comes before them.
#[derive(Clone, Debug)]
pub struct Columns {
    /// The target or label, if there is one.
    pub target: Option<ArrayRef>,
    /// Float columns, or one `FixedSizeList` of floats.
    pub x: Vec<ArrayRef>,
}

impl Columns {
    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.x.first().map_or(0, |column| column.len())
    }

    /// Some of the rows, without a copy.
    pub fn slice(&self, first: usize, rows: usize) -> Columns {
        let slice = |column: &ArrayRef| column.slice(first, rows);
        Columns { target: self.target.as_ref().map(slice), x: self.x.iter().map(slice).collect() }
    }

    /// Parts, one after the other.
    pub fn joined(parts: &[Columns]) -> Result<Columns> {
        let [first, ..] = parts else { return Ok(Columns { target: None, x: Vec::new() }) };
        let join = |column: &dyn Fn(&Columns) -> Option<&ArrayRef>| {
            let columns: Vec<&dyn Array> = parts.iter().filter_map(column).map(|c| c.as_ref()).collect();
            concat(&columns)
        };
        let target = match first.target {
            Some(_) => Some(join(&|part| part.target.as_ref())?),
            None => None,
        };
        let x = (0..first.x.len()).map(|k| join(&|part| part.x.get(k)));
        Ok(Columns { target, x: x.collect::<Result<_, _>>()? })
    }

    /// Rejects nulls, and counts them.
    pub fn check_nulls(&self) -> Result<()> {
        check_nulls("the target", self.target.as_slice())?;
        check_nulls("the points", &self.x)
    }

    /// The points, without a copy.
    pub fn points<T: Scalar>(&self) -> Result<Points<'_, T>> {
        let points = match self.x.as_slice() {
            [list] if list.as_fixed_size_list_opt().is_some() => Points::of_list(list),
            columns => Points::of_columns(columns),
        };
        points.map_err(external)
    }

    /// The target, n × 1, without a copy.
    pub fn targets<T: Scalar>(&self) -> Result<ArrayView2<'_, T>> {
        let Some(target) = &self.target else { return refuse("there is no target") };
        let target = random_features::arrow::column(target).map_err(external)?;
        Ok(target.insert_axis(Axis(1)))
    }
}

/// Rejects nulls in any of some columns.
fn check_nulls(what: &str, columns: &[ArrayRef]) -> Result<()> {
    let count: usize = columns.iter().map(nulls).sum();
    match count {
        0 => Ok(()),
        _ => {
            refuse(format!("{count} of the values of {what} are null: fill them in, or leave their rows out"))
        }
    }
}

/// The nulls of a column, or of a list and its elements.
fn nulls(column: &ArrayRef) -> usize {
    let inner = column.as_fixed_size_list_opt().map_or(0, |list| elements(list).null_count());
    column.null_count() + inner
}

/// The elements of the lists that an array holds.
fn elements(list: &FixedSizeListArray) -> ArrayRef {
    let size = list.value_length().max(0) as usize;
    list.values().slice(list.value_offset(0) as usize, list.len() * size)
}

/// Whether a column of this type is a coordinate as it is.
pub fn is_float(kind: &DataType) -> bool {
    matches!(kind, DataType::Float32 | DataType::Float64)
}

/// Whether a column of this type has all coordinates.
pub fn is_list(kind: &DataType) -> bool {
    matches!(kind, DataType::FixedSizeList(item, _) if is_float(item.data_type()))
}

/// The number of coordinates of points in columns of these types, and their element type.
pub fn layout(types: &[DataType]) -> Result<(usize, DataType)> {
    match types {
        [list @ DataType::FixedSizeList(field, size)] if is_list(list) && *size > 0 => {
            Ok((*size as usize, field.data_type().clone()))
        }
        [first, others @ ..] if is_float(first) && others.iter().all(|other| other == first) => {
            Ok((types.len(), first.clone()))
        }
        [] => refuse("there are no columns of points"),
        _ => refuse(format!(
            "points are columns of Float32 or of Float64, or one FixedSizeList of either, not {}",
            types.iter().map(|kind| kind.to_string()).collect::<Vec<_>>().join(", ")
        )),
    }
}
