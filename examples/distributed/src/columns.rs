//! [`Columns`]: the columns of some rows, as points and targets.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, FixedSizeListArray};
use datafusion::arrow::compute::concat;
use datafusion::arrow::datatypes::{ArrowPrimitiveType, DataType, Float32Type, Float64Type};
use datafusion::common::Result;
use ndarray::{ArrayView2, Axis};
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
    /// The target or label, if there is one.
    pub target: Option<ArrayRef>,
    /// Columns of one type of floats, or one `FixedSizeList` of these.
    pub x: Vec<ArrayRef>,
    /// What the target is called and then the columns of the points, if that is known.
    pub names: Arc<[String]>,
}

impl Columns {
    /// The target and the points.
    fn all(&self) -> impl Iterator<Item = &ArrayRef> {
        self.target.iter().chain(&self.x)
    }

    /// What the target or one of the points is called, the target first.
    pub fn name(&self, k: usize) -> String {
        match (self.names.get(k), &self.target) {
            (Some(name), _) => format!("column {name}"),
            (None, Some(_)) if k == 0 => "the target".into(),
            _ => "the points".into(),
        }
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.x.first().map_or(0, |column| column.len())
    }

    /// Some of the rows, without a copy.
    pub fn slice(&self, first: usize, rows: usize) -> Columns {
        let slice = |column: &ArrayRef| column.slice(first, rows);
        let (target, x) = (self.target.as_ref().map(slice), self.x.iter().map(slice).collect());
        Columns { target, x, names: self.names.clone() }
    }

    /// Parts, one after the other.
    pub fn joined(parts: &[Columns]) -> Result<Columns> {
        let [first, ..] = parts else { return refuse("there are no rows to join") };
        let join = |column: &dyn Fn(&Columns) -> Option<&ArrayRef>| {
            let columns: Vec<&dyn Array> = parts.iter().filter_map(column).map(|c| c.as_ref()).collect();
            concat(&columns)
        };
        let target = match first.target {
            Some(_) => Some(join(&|part| part.target.as_ref())?),
            None => None,
        };
        let x = (0..first.x.len()).map(|k| join(&|part| part.x.get(k)));
        Ok(Columns { target, x: x.collect::<Result<_, _>>()?, names: first.names.clone() })
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

    /// The first number of a column that is not finite: its row here, and what is wrong.
    pub fn not_finite(&self) -> Option<(usize, String)> {
        let place = |(k, column)| Some((first_not_finite(column)?, k));
        let (row, k) = self.all().enumerate().filter_map(place).min()?;
        Some((row, format!("{} holds a number that is not finite", self.name(k))))
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
