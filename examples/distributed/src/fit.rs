//! A pass over a table in a call.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::compute::cast as cast_array;
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::{Column, Result};
use datafusion::dataframe::DataFrame;
use datafusion::logical_expr::{AggregateUDF, Expr, ScalarUDF, cast, lit};
use datafusion::prelude::SessionContext;

use crate::columns::{is_coordinate, is_list};
use crate::division::Division;
use crate::fault::refuse;
use crate::map::MapSpec;
use crate::scalar::StateParts;
use crate::sums::{Constants, RowColumns, State, SumsFunction};
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
    /// Coordinates behind those of the columns, computed from any columns.
    pub computed: Vec<Expr>,
    /// How often each row counts; each counts once if there is none.
    pub weight: Option<Expr>,
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
        let columns = columns.into_iter().map(Into::into).collect();
        Task { constants, target, columns, computed: Vec::new(), weight: None }
    }

    /// Sets how often each row counts: a number from 0 on, such as [`column`] of one.
    pub fn with_weight(self, weight: Expr) -> Self {
        Task { weight: Some(weight), ..self }
    }

    /// Adds coordinates that are computed from columns.
    pub fn with_computed(self, computed: Vec<Expr>) -> Self {
        Task { computed, ..self }
    }

    /// The aggregate over a table's columns.
    fn expression(&self) -> Expr {
        let row_columns = RowColumns { numbers: true, weights: self.weight.is_some() };
        let function = AggregateUDF::from(SumsFunction::of_constants(self.constants.clone(), row_columns));
        let points = self.columns.iter().map(|name| column(name)).chain(self.computed.iter().cloned());
        let before = [column(ROW)].into_iter().chain(self.weight.clone());
        let before = before.chain(self.target.as_deref().map(column));
        function.call(before.chain(points).collect()).alias("state")
    }
}

/// A column as an expression.
pub fn column(name: &str) -> Expr {
    Expr::Column(Column::from_name(name))
}

/// Rejects columns that are missing, of a wrong type, or have nulls by what the footers say: with the names of file and column.
///
/// # Errors
/// A sentence.
pub fn check(table: &RowTable, task: &Task) -> Result<()> {
    check_points(table, &task.columns)?;
    match &task.weight {
        None => {}
        Some(Expr::Column(weight)) => check_weight(table, weight.name())?,
        Some(other) => other.column_refs().iter().try_for_each(|column| check_nulls(table, column.name()))?,
    }
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

/// Rejects weights in the same way.
///
/// # Errors
/// A sentence.
pub fn check_weight(table: &RowTable, name: &str) -> Result<()> {
    check_type(table, name, DataType::is_numeric, "a weight is a number")?;
    check_nulls(table, name)
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

/// Whether a column of this type can have labels of classes.
pub(crate) fn is_label(kind: &DataType) -> bool {
    use DataType::{Boolean, Dictionary, LargeUtf8, Utf8, Utf8View};
    match kind {
        Dictionary(_, values) => is_label(values),
        Utf8 | LargeUtf8 | Utf8View | Boolean => true,
        kind => kind.is_numeric(),
    }
}

/// Rejects a column that is missing or of another type.
///
/// # Errors
/// A sentence, which ends in what is wanted.
pub fn check_type(
    table: &RowTable,
    name: &str,
    fits: impl Fn(&DataType) -> bool,
    wanted: &str,
) -> Result<()> {
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

/// Rejects a column that has nulls by what the footers say.
///
/// # Errors
/// A sentence.
pub fn check_nulls(table: &RowTable, name: &str) -> Result<()> {
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

/// The pass as a data frame with a column `state`: of one row, or of a row for each part of a division, whose key is the column
/// before it. To be explained or run.
///
/// # Errors
/// As [`check`]; those of the engine.
pub fn frame(
    context: &SessionContext,
    table: RowTable,
    task: &Task,
    division: Option<&Division>,
) -> Result<DataFrame> {
    check(&table, task)?;
    let key = division.map(|division| division.key(&table)).transpose()?;
    let table = context.read_table(Arc::new(table))?;
    table.aggregate(Vec::from_iter(key), vec![task.expression()])
}

/// The sums over all rows of a table.
///
/// # Errors
/// As [`check`]; those of the engine, with the names of files.
pub async fn run(context: &SessionContext, table: RowTable, task: &Task) -> Result<State> {
    let rows = table.files().rows();
    let state = state_of(frame(context, table, task, None)?).await?;
    all_rows(&[&state], rows)?;
    Ok(state)
}

/// The sums over each part of a table, in one pass. Parts without rows are left out.
///
/// # Errors
/// As [`run`].
pub async fn run_divided(
    context: &SessionContext,
    table: RowTable,
    task: &Task,
    division: &Division,
) -> Result<Vec<State>> {
    let rows = table.files().rows();
    let states = states_of(frame(context, table, task, Some(division))?).await?;
    let mut states: Vec<(String, State)> = states.into_iter().collect();
    // Numbers of blocks stand in their order: those of more digits come later.
    states.sort_by(|(a, _), (b, _)| (a.len(), a).cmp(&(b.len(), b)));
    let states: Vec<State> = states.into_iter().map(|(_, state)| state).collect();
    all_rows(&states.iter().collect::<Vec<_>>(), rows)?;
    Ok(states)
}

/// Rejects states that have not all rows.
fn all_rows(states: &[&State], rows: u64) -> Result<()> {
    let counts = states.iter().map(|state| state.count()).collect::<Result<Vec<u64>>>()?;
    match counts.iter().sum::<u64>() {
        count if count == rows => Ok(()),
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
    let frame = frame.limit(0, Some(1))?.select(vec![lit(""), Expr::Column(state)])?;
    match states_of(frame).await?.into_values().next() {
        Some(state) => Ok(state),
        None => refuse("the engine delivered no state"),
    }
}

/// The states that a data frame has in its second column, by the text of its first.
///
/// # Errors
/// As [`state_of`].
pub async fn states_of(frame: DataFrame) -> Result<HashMap<String, State>> {
    let columns = frame.schema().columns();
    let [key, state] = columns.as_slice() else {
        return refuse("the engine was asked for no states with their keys");
    };
    let key = cast(Expr::Column(key.clone()), DataType::Utf8).alias("key");
    let parts = ScalarUDF::from(StateParts::new()).call(vec![Expr::Column(state.clone())]).alias("part");
    let parts = frame.select(vec![key, parts])?.unnest_columns(&["part"])?;
    let mut states: HashMap<String, Vec<u8>> = HashMap::new();
    for batch in parts.collect().await? {
        let [keys, parts] = batch.columns() else { return refuse("the engine delivered other columns") };
        let keys = cast_array(keys, &DataType::Utf8)?;
        let parts = parts.as_binary_opt::<i64>().into_iter().flatten();
        for (key, part) in keys.as_string::<i32>().iter().zip(parts) {
            let (Some(key), Some(part)) = (key, part) else {
                return refuse("the key of a part of the rows is null: fill it in, or leave these rows out");
            };
            states.entry(key.to_owned()).or_default().extend_from_slice(part);
        }
    }
    states.into_iter().map(|(key, bytes)| Ok((key, State::of_bytes(&bytes)?))).collect()
}
