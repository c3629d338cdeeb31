//! [`PredictFunction`]: predictions of a model.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, PrimitiveArray, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, UInt64Type};
use datafusion::common::{DataFusionError, Result, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use ndarray::Array2;

use super::{list_type, lists, points, text};
use crate::columns::{Scalar, is_coordinate, is_list, of_scalar};
use crate::fault::{at_row, refuse};
use crate::model::{Fitted, Model, Predictions};

/// `predict(model, x…)`: a number, the name of a class, or components; or the same with the numbers of rows behind the model, which faults
/// then name.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct PredictFunction {
    with_rows: bool,
    signature: Signature,
}

impl PredictFunction {
    /// The function.
    pub fn new() -> Self {
        PredictFunction { with_rows: false, signature: Signature::variadic_any(Volatility::Immutable) }
    }

    /// The one that takes the numbers of rows.
    pub fn with_rows() -> Self {
        PredictFunction { with_rows: true, ..PredictFunction::new() }
    }
}

impl Default for PredictFunction {
    fn default() -> Self {
        Self::new()
    }
}

impl ScalarUDFImpl for PredictFunction {
    fn name(&self) -> &str {
        if self.with_rows { "predict_rows" } else { "predict" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        plan_err!("the type of predictions follows from the model")
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let model = text(args.scalar_arguments.first().copied().flatten(), "the model of predict")?;
        let kind = value_type(Model::kept(&model)?.as_ref());
        Ok(Arc::new(Field::new(self.name(), kind, false)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (x, fields) = (&args.args, &args.arg_fields);
        let before = 1 + usize::from(self.with_rows);
        let (Some(ColumnarValue::Scalar(model)), Some(x), Some(fields)) =
            (args.args.first(), x.get(before..), fields.get(before..))
        else {
            return refuse(format!("{} takes a constant model first", self.name()));
        };
        let model = Model::kept(&text(Some(model), "the model of predict")?)?;
        let mut rows = points(x, fields, args.number_rows)?;
        let scalar = if model.is_double() { DataType::Float64 } else { DataType::Float32 };
        rows.x = rows.x.iter().map(|column| in_scalar(column, &scalar)).collect::<Result<_>>()?;
        check_dim(&model, &rows.x)?;
        if let Some((row, what)) = rows.null().or_else(|| rows.wrong_number()) {
            return Err(self.fault(&args, row, what));
        }
        let values = match model.predict(&rows)? {
            Predictions::Single(values) => array(&model, values)?,
            Predictions::Double(values) => array(&model, values)?,
        };
        Ok(ColumnarValue::Array(values))
    }
}

impl PredictFunction {
    /// A fault of a row, with its number if it has one.
    fn fault(&self, args: &ScalarFunctionArgs, row: usize, what: String) -> DataFusionError {
        let numbers = args.args.get(1).filter(|_| self.with_rows);
        let number = numbers.and_then(|numbers| {
            let numbers = numbers.to_array(args.number_rows).ok()?;
            Some(numbers.as_primitive_opt::<UInt64Type>()?.value(row))
        });
        number.map_or_else(|| DataFusionError::Execution(what.clone()), |number| at_row(number, &what))
    }
}

/// The type of a model's predictions.
fn value_type(model: &Model) -> DataType {
    let scalar = if model.is_double() { DataType::Float64 } else { DataType::Float32 };
    match (&model.classes, is_pca(model) || model.width() > 1) {
        (Some(_), _) => DataType::Utf8,
        (None, true) => list_type(scalar, model.width()),
        (None, false) => scalar,
    }
}

fn is_pca(model: &Model) -> bool {
    matches!(model.fitted, Fitted::PcaSingle(_) | Fitted::PcaDouble(_))
}

/// A column of points in the model's scalar.
fn in_scalar(column: &ArrayRef, scalar: &DataType) -> Result<ArrayRef> {
    match column.data_type() {
        kind if is_coordinate(kind) || is_list(kind) => Ok(cast(column, &of_scalar(kind, scalar))?),
        kind => refuse(format!("a column of points is of {kind}, not a number")),
    }
}

fn check_dim(model: &Model, x: &[ArrayRef]) -> Result<()> {
    let list =
        x.first().and_then(|list| list.as_fixed_size_list_opt()).map(|list| list.value_length() as usize);
    match list.unwrap_or(x.len()) {
        dim if dim == model.dim() => Ok(()),
        dim => refuse(format!("the model is for points of {} coordinates, and there are {dim}", model.dim())),
    }
}

/// Predictions as a column.
fn array<T: Scalar>(model: &Model, values: Array2<T>) -> Result<ArrayRef> {
    match &model.classes {
        Some(classes) => names(classes, &values),
        None if is_pca(model) || values.ncols() > 1 => lists(values),
        None => Ok(Arc::new(values.into_iter().map(Some).collect::<PrimitiveArray<T::Arrow>>())),
    }
}

/// The class of the largest prediction of each row, the first of equal ones.
fn names<T: Scalar>(classes: &[String], values: &Array2<T>) -> Result<ArrayRef> {
    let mut names = Vec::with_capacity(values.nrows());
    for row in values.rows() {
        let larger = |best: Option<usize>, k: usize| match best {
            Some(best) if row[k] <= row[best] => Some(best),
            _ => Some(k),
        };
        let best =
            (0..row.len()).fold(None, larger).filter(|_| row.iter().all(|value| value.widen().is_finite()));
        match best.and_then(|best| classes.get(best)) {
            Some(name) => names.push(name.as_str()),
            None => return refuse("a prediction is not finite: a coordinate of its point is not"),
        }
    }
    Ok(Arc::new(StringArray::from(names)))
}
