//! A pass over a table in a call.

use std::sync::Arc;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::{Column, Result};
use datafusion::dataframe::DataFrame;
use datafusion::logical_expr::{AggregateUDF, Expr, ScalarUDF};
use datafusion::prelude::SessionContext;

use crate::columns::{is_coordinate, is_list};
use crate::fault::refuse;
use crate::map::MapSpec;
use crate::scalar::StateParts;
use crate::sums::{Constants, State, SumsFunction};
use crate::table::{ROW, RowTable};

/// What is summed, and over which columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// What is summed.
    pub constants: Constants,
    /// The column of the target or the label, if there is one.
    pub target: Option<String>,
    /// The columns of the points: floats, or one list of them.
    pub columns: Vec<String>,
}

impl Task {
    /// The sums of a ridge regression on a number.
    pub fn ridge(
        map: MapSpec,
        target: impl Into<String>,
        columns: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        Task::new(Constants::Ridge(map), Some(target.into()), columns)
    }

    /// The sums of a ridge regression on labels.
    pub fn classes(
        map: MapSpec,
        classes: Vec<String>,
        target: impl Into<String>,
        columns: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        Task::new(Constants::Classes(map, classes), Some(target.into()), columns)
    }

    /// The sums of a kernel PCA.
    pub fn pca(map: MapSpec, columns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Task::new(Constants::Pca(map), None, columns)
    }

    /// Statistics and a sample of so many rows.
    pub fn sample(capacity: u64, seed: u64, columns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Task::new(Constants::Sample { capacity, seed }, None, columns)
    }

    /// Means and second moments.
    pub fn moments(columns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Task::new(Constants::Moments, None, columns)
    }

    fn new(
        constants: Constants,
        target: Option<String>,
        columns: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        Task { constants, target, columns: columns.into_iter().map(Into::into).collect() }
    }

    /// The aggregate over a table's columns.
    fn expression(&self) -> Expr {
        let function = AggregateUDF::from(SumsFunction::of_constants(self.constants.clone(), true));
        let names =
            std::iter::once(ROW).chain(self.target.as_deref()).chain(self.columns.iter().map(String::as_str));
        function.call(names.map(|name| Expr::Column(Column::from_name(name))).collect()).alias("state")
    }
}

/// Rejects columns that are missing, of a wrong type, or have nulls by what the footers say: with the names of file and column.
///
/// # Errors
/// A sentence.
pub fn check(table: &RowTable, task: &Task) -> Result<()> {
    check_points(table, &task.columns)?;
    let Some(target) = &task.target else { return Ok(()) };
    if task.columns.contains(target) {
        return refuse(format!("column {target} is the target, and not one of the points"));
    }
    check_target(table, target, matches!(task.constants, Constants::Classes(..)))
}

/// Rejects a target, of labels or numbers, in the same way.
///
/// # Errors
/// A sentence.
pub fn check_target(table: &RowTable, target: &str, labels: bool) -> Result<()> {
    let (fits, wanted): (fn(&DataType) -> bool, _) = match labels {
        true => (is_label, "labels are texts, whole numbers, Booleans, or other numbers"),
        false => (
            DataType::is_numeric,
            "a target is a number: name the classes of labels (--classes, or ridge_classes in SQL)",
        ),
    };
    check_type(table, target, fits, wanted)?;
    check_nulls(table, target)
}

/// Rejects columns of points in the same way.
///
/// # Errors
/// A sentence.
pub fn check_points(table: &RowTable, columns: &[String]) -> Result<()> {
    if columns.is_empty() {
        return refuse("there are no columns of points");
    }
    let wanted = "a coordinate is a number or a Boolean";
    columns.iter().try_for_each(|name| check_type(table, name, is_points, wanted))?;
    check_lists(table.file_schema(), columns)?;
    columns.iter().try_for_each(|name| check_nulls(table, name))
}

fn is_points(kind: &DataType) -> bool {
    is_coordinate(kind) || is_list(kind)
}

fn is_label(kind: &DataType) -> bool {
    use DataType::{Boolean, Dictionary, LargeUtf8, Utf8, Utf8View};
    match kind {
        Dictionary(_, values) => is_label(values),
        Utf8 | LargeUtf8 | Utf8View | Boolean => true,
        kind => kind.is_numeric(),
    }
}

fn check_type(table: &RowTable, name: &str, fits: impl Fn(&DataType) -> bool, wanted: &str) -> Result<()> {
    let first = table.files().files.first().map_or("the table", |file| &file.path);
    let Ok(field) = table.file_schema().field_with_name(name) else {
        let fields = table.file_schema().fields().iter();
        let known: Vec<&str> = fields.map(|field| field.name().as_str()).collect();
        return refuse(format!("{first} has no column {name}: it has {}", known.join(", ")));
    };
    match field.data_type() {
        kind if fits(kind) => Ok(()),
        kind => refuse(format!("column {name} of {first} is of {kind}: {wanted}")),
    }
}

/// A list is the only column of the points.
fn check_lists(schema: &Schema, columns: &[String]) -> Result<()> {
    let list = |name: &&String| {
        schema
            .field_with_name(name)
            .is_ok_and(|field| matches!(field.data_type(), DataType::FixedSizeList(..)))
    };
    match columns.iter().find(list) {
        Some(name) if columns.len() > 1 => refuse(format!(
            "column {name} is a list of all coordinates: it is not combined with other columns"
        )),
        _ => Ok(()),
    }
}

fn check_nulls(table: &RowTable, name: &str) -> Result<()> {
    for file in &table.files().files {
        if let Some((_, count)) = file.nulls.iter().find(|(column, _)| column == name) {
            return refuse(format!(
                "column {name} of {} has {count} nulls: fill them in, or leave their rows out",
                file.path
            ));
        }
    }
    Ok(())
}

/// The pass as a data frame of one row with one column, `state`: to be explained or run.
///
/// # Errors
/// As [`check`]; those of the engine.
pub fn frame(context: &SessionContext, table: RowTable, task: &Task) -> Result<DataFrame> {
    check(&table, task)?;
    context.read_table(Arc::new(table))?.aggregate(vec![], vec![task.expression()])
}

/// The sums over all rows of a table.
///
/// # Errors
/// As [`check`]; those of the engine, with the names of files.
pub async fn run(context: &SessionContext, table: RowTable, task: &Task) -> Result<State> {
    let rows = table.files().rows();
    let state = state_of(frame(context, table, task)?).await?;
    match state.count()? {
        count if count == rows => Ok(state),
        count => refuse(format!("the engine delivered {count} rows of {rows}")),
    }
}

/// The state that a data frame has in its first column and row.
///
/// It arrives in [parts](StateParts), one a row, which fit into the messages of a cluster whatever the number of features.
///
/// # Errors
/// Errors of the engine; a sentence if there is no state.
pub async fn state_of(frame: DataFrame) -> Result<State> {
    let Some(state) = frame.schema().columns().into_iter().next() else {
        return refuse("the engine was asked for no state");
    };
    let parts = ScalarUDF::from(StateParts::new()).call(vec![Expr::Column(state)]).alias("part");
    let parts = frame.limit(0, Some(1))?.select(vec![parts])?.unnest_columns(&["part"])?;
    let mut bytes = Vec::new();
    for batch in parts.collect().await? {
        let parts = batch.columns().first().and_then(|parts| parts.as_binary_opt::<i64>());
        parts.into_iter().flatten().flatten().for_each(|part| bytes.extend_from_slice(part));
    }
    match bytes.as_slice() {
        [] => refuse("the engine delivered no state"),
        bytes => State::of_bytes(bytes),
    }
}
