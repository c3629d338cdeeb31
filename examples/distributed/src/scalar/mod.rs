//! Scalar functions: features of points, predictions of models, and parts of states.
//!
//! | function | value |
//! |---|---|
//! | `features(recipe, seed, x…)` | φ(x), a `FixedSizeList` of D numbers |
//! | `predict(model, x…)` | of a regression: a number, or the name of a class; of a PCA: a `FixedSizeList` of components |
//! | `predict_rows(model, row, x…)` | the same; what is wrong with a row names it |
//! | `fold(k, value)` | a whole number below k, drawn at random for each value: a number, a text, a Boolean or a date |
//! | `state_parts(state)` | a list of the parts of a [state](crate::sums::State), of at most 4 MiB each |
//!
//! `model` is the JSON of a [`Model`](crate::model::Model), and `recipe` that of a recipe or a [`MapSpec`](crate::map::MapSpec). All
//! of these are constants.
//!
//! A value of one row fits into the messages of a cluster up to 16 MiB. States of many features are larger:
//! `SELECT unnest(state_parts(s)) FROM (SELECT ridge(…) AS s FROM t)` gives them in rows that fit, one after the other, as
//! [`fit::state_of`](crate::fit::state_of) asks for them.

mod features;
mod fold;
mod parts;
mod predict;

pub use features::FeaturesFunction;
pub use fold::FoldFunction;
pub(crate) use fold::hash;
pub use parts::StateParts;
pub use predict::PredictFunction;

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, FixedSizeListArray, PrimitiveArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarUDF};
use datafusion::scalar::ScalarValue;
use ndarray::Array2;

use crate::columns::{Columns, Scalar};
use crate::fault::refuse;

/// The functions.
pub fn functions() -> Vec<ScalarUDF> {
    let predict = [PredictFunction::new(), PredictFunction::with_rows()].map(ScalarUDF::from);
    let features = ScalarUDF::from(FeaturesFunction::new());
    let others = [features, ScalarUDF::from(FoldFunction::new()), ScalarUDF::from(StateParts::new())];
    others.into_iter().chain(predict).collect()
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
    Ok(Columns {
        weight: None,
        target: None,
        x,
        names: fields.iter().map(|field| field.name().clone()).collect(),
    })
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
