//! [`FeaturesFunction`]: features of points.

use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::scalar::ScalarValue;
use random_features::Side;

use super::{list_type, lists, points, text};
use crate::columns::{Columns, Scalar, converted, layout};
use crate::fault::{external, refuse};
use crate::map::MapSpec;

/// `features(recipe, seed, x…)`: φ(x), as plain values.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct FeaturesFunction {
    signature: Signature,
}

impl FeaturesFunction {
    /// The function.
    pub fn new() -> Self {
        FeaturesFunction { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl Default for FeaturesFunction {
    fn default() -> Self {
        Self::new()
    }
}

impl ScalarUDFImpl for FeaturesFunction {
    fn name(&self) -> &str {
        "features"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        plan_err!("the type of features follows from the recipe")
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let [_, _, x @ ..] = given else {
            return plan_err!("features takes a recipe, a seed and then the columns of points");
        };
        let (points, _) = converted(x, None)?;
        Ok([DataType::Utf8, DataType::UInt64].into_iter().chain(points).collect())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let recipe = text(args.scalar_arguments.first().copied().flatten(), "the recipe of features")?;
        let width = MapSpec::parse(&recipe, 0)?.recipe.feature_dim();
        let types: Vec<DataType> =
            args.arg_fields.iter().skip(2).map(|field| field.data_type().clone()).collect();
        let scalar = layout(&types).map_or(DataType::Float64, |(_, scalar)| scalar);
        Ok(Arc::new(Field::new(self.name(), list_type(scalar, width), false)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [ColumnarValue::Scalar(recipe), ColumnarValue::Scalar(ScalarValue::UInt64(Some(seed))), x @ ..] =
            args.args.as_slice()
        else {
            return refuse("features takes a constant recipe and a constant seed");
        };
        let map = MapSpec::parse(&text(Some(recipe), "the recipe of features")?, *seed)?;
        let rows = points(x, args.arg_fields.get(2..).unwrap_or_default(), args.number_rows)?;
        rows.check_nulls()?;
        let types: Vec<DataType> = rows.x.iter().map(|column| column.data_type().clone()).collect();
        let features = match layout(&types)? {
            (_, DataType::Float64) => of_rows::<f64>(&map, &rows)?,
            _ => of_rows::<f32>(&map, &rows)?,
        };
        Ok(ColumnarValue::Array(features))
    }
}

/// The features of rows, as lists.
fn of_rows<T: Scalar>(spec: &MapSpec, rows: &Columns) -> Result<ArrayRef> {
    let map = spec.draw::<T>()?;
    let points = rows.points::<T>()?;
    let features = match &spec.standardisation {
        None => map.features(Side::X, points),
        Some(inputs) => {
            points.to_dense().and_then(|x| inputs.apply(&x)).and_then(|x| map.features(Side::X, &x))
        }
    };
    lists(features.map_err(external)?.into_array())
}
