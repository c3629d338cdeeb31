//! Scalar functions: features of points and predictions of models.
//!
//! | function | value |
//! |---|---|
//! | `features(recipe, seed, x…)` | φ(x), a `FixedSizeList` of D numbers |
//! | `predict(model, x…)` | of a regression: a number, or the name of a class; of a PCA: a `FixedSizeList` of components |
//! | `predict_rows(model, row, x…)` | the same; what is wrong with a row names it |
//!
//! `model` is the JSON of a [`Model`](crate::model::Model), and `recipe` that of a recipe or a [`MapSpec`](crate::map::MapSpec). All
//! of these are constants.

mod features;
mod predict;

pub use features::FeaturesFunction;
pub use predict::PredictFunction;

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, FixedSizeListArray, PrimitiveArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarUDF};
use datafusion::scalar::ScalarValue;
use ndarray::Array2;

use crate::columns::{Columns, Scalar, layout};
use crate::fault::refuse;

/// The functions.
pub fn functions() -> Vec<ScalarUDF> {
    let predict = [PredictFunction::new(), PredictFunction::with_rows()].map(ScalarUDF::from);
    std::iter::once(ScalarUDF::from(FeaturesFunction::new())).chain(predict).collect()
}

/// A constant text among arguments.
fn text(value: Option<&ScalarValue>, what: &str) -> Result<String> {
    match value {
        Some(
            ScalarValue::Utf8(Some(text))
            | ScalarValue::LargeUtf8(Some(text))
            | ScalarValue::Utf8View(Some(text)),
        ) => Ok(text.clone()),
        _ => refuse(format!("{what} is not a constant text")),
    }
}

/// The points of the arguments that are left.
fn points(arguments: &[ColumnarValue], fields: &[FieldRef], rows: usize) -> Result<Columns> {
    let x = arguments.iter().map(|argument| argument.to_array(rows)).collect::<Result<Vec<ArrayRef>>>()?;
    Ok(Columns { target: None, x, names: fields.iter().map(|field| field.name().clone()).collect() })
}

/// The types that columns of points are converted to, for points of a scalar.
fn converted(name: &str, given: &[DataType], scalar: Option<DataType>) -> Result<Vec<DataType>> {
    let own = layout(given).ok();
    match (own, scalar) {
        (Some((_, own)), Some(scalar)) if own == scalar => Ok(given.to_vec()),
        (Some(_), None) => Ok(given.to_vec()),
        _ if given.iter().all(DataType::is_numeric) && !given.is_empty() => {
            Ok(vec![DataType::Float64; given.len()])
        }
        _ => datafusion::common::plan_err!("points of {name} are numbers, or one FixedSizeList of floats"),
    }
}

/// The type of lists of so many numbers.
fn list_type(scalar: DataType, width: usize) -> DataType {
    let width = i32::try_from(width).unwrap_or(i32::MAX);
    DataType::FixedSizeList(Arc::new(Field::new_list_field(scalar, false)), width)
}

/// Rows as lists.
fn lists<T: Scalar>(rows: Array2<T>) -> Result<ArrayRef> {
    use datafusion::arrow::datatypes::ArrowPrimitiveType;
    let width = rows.ncols();
    let values: PrimitiveArray<T::Arrow> = rows.into_iter().map(Some).collect();
    let field = Arc::new(Field::new_list_field(T::Arrow::DATA_TYPE, false));
    let width = i32::try_from(width).unwrap_or(i32::MAX);
    Ok(Arc::new(FixedSizeListArray::try_new(field, width, Arc::new(values), None)?))
}
