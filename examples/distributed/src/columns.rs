//! [`Columns`]: the columns of some rows, as points and targets.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, FixedSizeListArray};
use datafusion::arrow::compute::concat;
use datafusion::arrow::datatypes::{ArrowPrimitiveType, DataType, Float32Type, Float64Type};
use datafusion::common::Result;
use ndarray::{ArrayView1, ArrayView2, Axis};
use random_features::{Points, Real};

use crate::fault::{external, refuse};

/// A scalar type that is the element type of arrays.
pub trait Scalar: Real {
    /// This type, for arrays.
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
    /// How often each row counts, of `Float64`; each counts once if there is none.
    pub weight: Option<ArrayRef>,
    /// The target or label, if there is one.
    pub target: Option<ArrayRef>,
    /// Columns of one type of floats, or one `FixedSizeList` of these.
    pub x: Vec<ArrayRef>,
    /// The names of the weight, the target and the columns of the points, in this order, if they are known.
    pub names: Arc<[String]>,
}

impl Columns {
    /// The weight, the target and the points.
    fn all(&self) -> impl Iterator<Item = &ArrayRef> {
        self.weight.iter().chain(&self.target).chain(&self.x)
    }

    /// What a column is called, in the order of weight, target and points.
    fn name(&self, k: usize) -> String {
        let weights = usize::from(self.weight.is_some());
        let targets = usize::from(self.target.is_some());
        match self.names.get(k) {
            Some(name) => format!("column {name}"),
            None if k < weights => "the weight".into(),
            None if k < weights + targets => "the target".into(),
            None => "the points".into(),
        }
    }

    /// What the target is called.
    pub fn target_name(&self) -> String {
        self.name(usize::from(self.weight.is_some()))
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.x.first().map_or(0, |column| column.len())
    }

    /// Some of the rows, without a copy.
    pub fn slice(&self, first: usize, rows: usize) -> Columns {
        let slice = |column: &ArrayRef| column.slice(first, rows);
        let (weight, target) = (self.weight.as_ref().map(slice), self.target.as_ref().map(slice));
        Columns { weight, target, x: self.x.iter().map(slice).collect(), names: self.names.clone() }
    }

    /// Parts, one after the other.
    pub fn joined(parts: &[Columns]) -> Result<Columns> {
        let [first, ..] = parts else { return refuse("there are no rows to join") };
        let join = |column: &dyn Fn(&Columns) -> Option<&ArrayRef>| {
            let columns: Vec<&dyn Array> = parts.iter().filter_map(column).map(|c| c.as_ref()).collect();
            if columns.is_empty() { Ok(None) } else { concat(&columns).map(Some) }
        };
        let (weight, target) = (join(&|part| part.weight.as_ref())?, join(&|part| part.target.as_ref())?);
        let x = (0..first.x.len()).filter_map(|k| join(&|part| part.x.get(k)).transpose());
        Ok(Columns { weight, target, x: x.collect::<Result<_, _>>()?, names: first.names.clone() })
    }

    /// The first null of the first column that has any: its row here, and what is wrong.
    pub fn null(&self) -> Option<(usize, String)> {
        let (k, column) = self.all().enumerate().find(|(_, column)| nulls(column) > 0)?;
        let (name, count) = (self.name(k), nulls(column));
        let what = format!("{name} has {count} nulls from here on: fill them in, or leave their rows out");
        Some((first_null(column)?, what))
    }

    /// Rejects nulls, and counts them.
    pub fn check_nulls(&self) -> Result<()> {
        self.null().map_or(Ok(()), |(_, what)| refuse(what))
    }

    /// The first number that sums do not take, one that is not finite or a negative weight: its row here, and what is wrong.
    pub fn wrong_number(&self) -> Option<(usize, String)> {
        let place = |(k, column)| Some((first_not_finite(column)?, k));
        let not_finite = self.all().enumerate().filter_map(place).min();
        let not_finite =
            not_finite.map(|(row, k)| (row, format!("{} holds a number that is not finite", self.name(k))));
        let weights = self.weight.as_ref().and_then(|weights| weights.as_primitive_opt::<Float64Type>());
        let negative = weights.and_then(|weights| weights.values().iter().position(|weight| *weight < 0.0));
        let negative = negative.map(|row| (row, format!("{} holds a negative weight", self.name(0))));
        not_finite.into_iter().chain(negative).min()
    }

    /// How often each row counts, without a copy; `None` if each counts once.
    pub fn weights(&self) -> Result<Option<ArrayView1<'_, f64>>> {
        let weights = self.weight.as_ref().map(|weight| random_features::arrow::column(weight));
        weights.transpose().map_err(external)
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

/// The nulls of a column, or of a list and its elements.
fn nulls(column: &ArrayRef) -> usize {
    let inner = column.as_fixed_size_list_opt().map_or(0, |list| elements(list).null_count());
    column.null_count() + inner
}

/// The first row with a null of its own or in its list.
fn first_null(column: &ArrayRef) -> Option<usize> {
    let first = |column: &ArrayRef| (0..column.len()).find(|row| column.is_null(*row));
    let inner = column.as_fixed_size_list_opt().and_then(|list| Some(first(&elements(list))? / size(list)));
    [first(column), inner].into_iter().flatten().min()
}

/// The first row with a number that is not finite.
fn first_not_finite(column: &ArrayRef) -> Option<usize> {
    if let Some(list) = column.as_fixed_size_list_opt() {
        return Some(first_not_finite(&elements(list))? / size(list));
    }
    let single = || column.as_primitive_opt::<Float32Type>()?.values().iter().position(|x| !x.is_finite());
    let double = || column.as_primitive_opt::<Float64Type>()?.values().iter().position(|x| !x.is_finite());
    single().or_else(double)
}

/// The number of elements of a list, at least 1.
fn size(list: &FixedSizeListArray) -> usize {
    list.value_length().max(1) as usize
}

/// The elements of the lists that an array holds.
fn elements(list: &FixedSizeListArray) -> ArrayRef {
    let size = list.value_length().max(0) as usize;
    list.values().slice(list.value_offset(0) as usize, list.len() * size)
}

/// Whether a column of this type is a coordinate: a number or a Boolean.
pub fn is_coordinate(kind: &DataType) -> bool {
    kind.is_numeric() || *kind == DataType::Boolean
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

/// The types that columns of points, and a target that is a number, are converted to, and their scalar: `Float32` if all of them are of that,
/// `Float64` otherwise. No value is rounded to fewer digits so.
pub fn converted(points: &[DataType], target: Option<&DataType>) -> Result<(Vec<DataType>, DataType)> {
    let Ok((_, own)) = layout(points) else {
        return match points.iter().find(|kind| !is_coordinate(kind)) {
            Some(other) => refuse(format!(
                "a column of points is of {other}: points are numbers and Booleans, or one FixedSizeList of floats"
            )),
            None => Ok((vec![DataType::Float64; points.len()], DataType::Float64)),
        };
    };
    let single = own == DataType::Float32 && target.is_none_or(|kind| *kind == DataType::Float32);
    let scalar = if single { DataType::Float32 } else { DataType::Float64 };
    Ok((points.iter().map(|kind| of_scalar(kind, &scalar)).collect(), scalar))
}

/// A type of points with another scalar.
pub fn of_scalar(kind: &DataType, scalar: &DataType) -> DataType {
    match kind {
        DataType::FixedSizeList(item, size) => {
            DataType::FixedSizeList(Arc::new(item.as_ref().clone().with_data_type(scalar.clone())), *size)
        }
        _ => scalar.clone(),
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::Field;

    use super::*;

    #[test]
    fn nothing_is_converted_to_fewer_digits() {
        use DataType::{Boolean, Float32, Float64, Int8, Int64, Utf8};
        let list = |scalar| DataType::FixedSizeList(Arc::new(Field::new_list_field(scalar, true)), 3);
        let scalar = |points: &[DataType], target: Option<&DataType>| {
            converted(points, target).map(|(_, scalar)| scalar).ok()
        };
        assert_eq!(scalar(&[Float32, Float32], None), Some(Float32));
        assert_eq!(scalar(&[Float32, Float32], Some(&Float32)), Some(Float32));
        for target in [Float64, Int8, Int64] {
            assert_eq!(scalar(&[Float32, Float32], Some(&target)), Some(Float64));
            assert_eq!(converted(&[list(Float32)], Some(&target)).unwrap().0, [list(Float64)]);
        }
        assert_eq!(scalar(&[Float32, Boolean, Int64], Some(&Float32)), Some(Float64));
        assert_eq!(converted(&[list(Float32)], Some(&Float32)).unwrap(), (vec![list(Float32)], Float32));
        for wrong in [&[Float32, Utf8][..], &[list(Float32), Float32], &[list(Int64)]] {
            assert!(converted(wrong, None).is_err());
        }
    }
}
