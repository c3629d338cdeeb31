//! [`SumsFunction`]: an aggregate of sums.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{DataFusionError, Result, plan_err};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::function::{AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Expr, Signature, Volatility};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::scalar::ScalarValue;

use super::accumulator::SumsAccumulator;
use super::kind::{Constants, Kind, RowColumns};
use crate::columns::{converted, layout};
use crate::fault::{refuse, sentence};

/// An aggregate of sums: as SQL names it, with constants among the arguments, or with these read already, which is what is run.
#[derive(Debug)]
pub struct SumsFunction {
    kind: Kind,
    row_columns: RowColumns,
    name: String,
    constants: Option<Constants>,
    signature: Signature,
}

impl SumsFunction {
    /// The function of SQL.
    pub fn new(kind: Kind, row_columns: RowColumns) -> Self {
        let (name, signature) = (row_columns.name(kind), Signature::user_defined(Volatility::Immutable));
        SumsFunction { kind, row_columns, name, constants: None, signature }
    }

    /// The function that takes only the columns: the numbers of rows, the weights and the target, those that there are, and the points.
    pub fn of_constants(constants: Constants, row_columns: RowColumns) -> Self {
        let function = SumsFunction::new(constants.kind(), row_columns);
        SumsFunction { constants: Some(constants), ..function }
    }

    /// The constants, if they are read already.
    pub fn constants(&self) -> Option<&Constants> {
        self.constants.as_ref()
    }

    /// What it takes before the target and the points.
    pub fn row_columns(&self) -> RowColumns {
        self.row_columns
    }

    /// The number of arguments before the points.
    fn before_points(&self) -> usize {
        let constants = if self.constants.is_none() { self.kind.constants() } else { 0 };
        constants + self.row_columns.count() + usize::from(self.kind.has_target())
    }

    /// The types that the arguments are converted to.
    fn types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let before = self.before_points();
        if given.len() <= before {
            return plan_err!("{} takes {before} arguments and then the columns of points", self.name());
        }
        let (head, x) = given.split_at(before);
        let target = head.last().filter(|_| self.kind == Kind::Ridge);
        let (x, scalar) = self.planned(converted(x, target))?;
        let mut types = self.leading(head, &scalar)?;
        types.extend(x);
        Ok(types)
    }

    /// The types of the arguments before the points.
    fn leading(&self, given: &[DataType], scalar: &DataType) -> Result<Vec<DataType>> {
        let constants = match (self.constants.is_none(), self.kind) {
            (false, _) => vec![],
            (true, Kind::Ridge | Kind::Pca) => vec![DataType::Utf8, DataType::UInt64],
            (true, Kind::Classes) => vec![DataType::Utf8, DataType::UInt64, DataType::Utf8],
            (true, Kind::Sample) => vec![DataType::UInt64, DataType::UInt64],
            (true, Kind::Moments) => vec![],
        };
        let rows = self.row_columns.numbers.then_some(DataType::UInt64);
        let weights = self.row_columns.weights.then_some(DataType::Float64);
        if let Some(given) =
            weights.as_ref().and_then(|_| given.get(constants.len() + usize::from(rows.is_some())))
            && !given.is_numeric()
        {
            return plan_err!("the weight of {} is of {given}, not a number", self.name());
        }
        let target = match self.kind {
            Kind::Ridge => Some(scalar.clone()),
            Kind::Classes => given.last().map(label_type),
            _ => None,
        };
        if let (Kind::Ridge, Some(last)) = (self.kind, given.last())
            && !last.is_numeric()
        {
            return plan_err!(
                "the target of {} is of {last}, not a number: {} takes labels",
                self.name(),
                Kind::Classes.name()
            );
        }
        Ok(constants.into_iter().chain(rows).chain(weights).chain(target).collect())
    }

    /// A fault of the types of arguments, with the name of the function.
    fn planned<V>(&self, found: Result<V>) -> Result<V> {
        found.map_err(|error| DataFusionError::Plan(format!("{}: {}", self.name(), sentence(&error))))
    }

    /// This function with the constants that stand at the beginning of these arguments.
    fn bound(&self, arguments: &[Expr]) -> Result<SumsFunction> {
        let literal = |argument: &Expr| match argument {
            Expr::Literal(value, _) => Ok(value.clone()),
            other => refuse(format!("{} takes constants first, and {other} is none", self.name())),
        };
        let values = arguments.iter().take(self.kind.constants()).map(literal);
        let values = values.collect::<Result<Vec<ScalarValue>>>()?;
        Ok(SumsFunction::of_constants(self.kind.constants_of(&values)?, self.row_columns))
    }
}

/// The type that labels are converted to: text. Floats and decimals stay numbers, since 1 and 1.0 are one label.
fn label_type(given: &DataType) -> DataType {
    match given {
        DataType::Dictionary(_, values) => label_type(values),
        kind if kind.is_floating() || kind.is_decimal() => kind.clone(),
        _ => DataType::Utf8,
    }
}

/// What an argument is called: a column by its name, also if it is converted.
fn name(argument: &Arc<dyn PhysicalExpr>) -> String {
    match (argument.downcast_ref::<Column>(), argument.children().as_slice()) {
        (Some(column), _) => column.name().to_owned(),
        (None, [inner]) => name(inner),
        _ => argument.to_string(),
    }
}

impl AggregateUDFImpl for SumsFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::LargeBinary)
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        self.types(given)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(vec![Arc::new(Field::new(format_state_name(args.name, "state"), DataType::LargeBinary, true))])
    }

    /// Sums do not depend on an `ORDER BY` among the arguments, and do not see its values.
    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        if self.constants.is_some() {
            return None;
        }
        let own = SumsFunction::new(self.kind, self.row_columns);
        Some(Box::new(move |mut call: AggregateFunction, _| {
            let function = own.bound(&call.params.args)?;
            call.params.args.drain(..own.kind.constants());
            Ok(Expr::AggregateFunction(AggregateFunction {
                func: Arc::new(AggregateUDF::from(function)),
                params: call.params,
            }))
        }))
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let Some(constants) = &self.constants else {
            return refuse(format!(
                "{} sums the rows of a table or a group, and is no window function: leave OVER out, or take GROUP BY",
                self.name()
            ));
        };
        if args.is_distinct || args.ignore_nulls {
            return refuse(format!("{} takes neither DISTINCT nor IGNORE NULLS", self.name()));
        }
        let types: Vec<DataType> = args.expr_fields.iter().map(|field| field.data_type().clone()).collect();
        let (dim, scalar) = layout(types.get(self.before_points()..).unwrap_or_default())?;
        let double = scalar == DataType::Float64;
        let names = args.exprs.iter().skip(usize::from(self.row_columns.numbers)).map(name).collect();
        Ok(Box::new(SumsAccumulator::new(constants, dim, double, self.row_columns, names)?))
    }
}

impl PartialEq for SumsFunction {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.constants) == (&other.name, &other.constants)
    }
}

impl Eq for SumsFunction {}

impl Hash for SumsFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}
