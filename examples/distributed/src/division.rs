//! [`Division`]: how rows are divided into parts, of which each is predicted from others.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::{Expr, ScalarUDF, cast, lit};
use datafusion::prelude::SessionContext;

use crate::fault::{external, refuse};
use crate::fit::{check_nulls, check_type, column, is_label};
use crate::scalar::{FoldFunction, hash};
use crate::table::{ROW, RowTable};

/// The most groups that are dealt to folds by a list; more are divided evenly by chance.
const LISTED: usize = 10_000;

/// The most parts of a division: each has D² sums, and a regression on the others.
pub const MOST: u64 = 100;

/// How rows are divided into parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Division {
    /// k folds of rows: any k rows from a multiple of k on are dealt to the folds, one to each, in an order drawn at random.
    Folds(u64),
    /// A part for each value of a column.
    Values(String),
    /// k folds of the values of a column: rows of equal values are in one fold. The values of the list are dealt to the folds in turn,
    /// and each other value is in a fold drawn at random.
    Groups(String, u64, Vec<String>),
    /// k blocks of rows that follow each other, whose numbers of rows differ by 1 at most.
    Blocks(u64),
}

impl Division {
    /// The division by a column: a part for each value if there are at most `folds` values, and `folds` folds of values otherwise. It
    /// reads the column once.
    ///
    /// # Errors
    /// A sentence if the column is missing, of another type, holds nulls, or has a single value; errors of the engine.
    pub async fn by(context: &SessionContext, table: &RowTable, name: &str, folds: u64) -> Result<Self> {
        if !(2..=MOST).contains(&folds) {
            return refuse(format!("rows are divided into 2 to {MOST} folds, not into {folds}"));
        }
        check_type(table, name, is_group, "groups are numbers, texts, Booleans or dates")?;
        check_nulls(table, name)?;
        let mut values = values(context, table, name).await?;
        values.sort_by_key(|value| hash(value));
        match values.len() {
            0 | 1 => refuse(format!("column {name} has a single value: groups are left out of two or more")),
            count if count as u64 <= folds => Ok(Division::Values(name.to_owned())),
            count if count <= LISTED => Ok(Division::Groups(name.to_owned(), folds, values)),
            _ => Ok(Division::Groups(name.to_owned(), folds, Vec::new())),
        }
    }

    /// What tells the parts apart.
    pub(crate) fn key(&self, table: &RowTable) -> Result<Expr> {
        let fold = |arguments: Vec<Expr>| ScalarUDF::from(FoldFunction::new()).call(arguments);
        let files = table.files();
        let place = || column(ROW) - lit(files.start());
        if let Division::Folds(parts) | Division::Groups(_, parts, _) | Division::Blocks(parts) = self
            && !(2..=MOST).contains(parts)
        {
            return refuse(format!(
                "rows are divided into 2 to {MOST} parts, each with sums of its own, not into {parts}"
            ));
        }
        let key = match self {
            Division::Folds(folds) => {
                let turn = fold(vec![lit(*folds), place() / lit(*folds)]);
                (place() + turn) % lit(*folds)
            }
            Division::Values(name) => cast(column(name), DataType::Utf8),
            Division::Groups(name, folds, values) => {
                let list = serde_json::to_string(values).map_err(external)?;
                fold(vec![lit(*folds), column(name), lit(list)])
            }
            Division::Blocks(blocks) => place() * lit(*blocks) / lit(files.rows().max(1)),
        };
        Ok(key.alias("part"))
    }

    /// The number of a row's group, below 2³², which rows of equal values of a column share; `None` if rows are not grouped.
    pub fn group(&self) -> Option<Expr> {
        match self {
            Division::Values(name) | Division::Groups(name, ..) => {
                let fold = ScalarUDF::from(FoldFunction::new());
                let group = fold.call(vec![lit(1u64 << 32), column(name)]);
                Some(cast(group, DataType::Float64))
            }
            Division::Folds(_) | Division::Blocks(_) => None,
        }
    }
}

/// Whether a column of this type has groups.
fn is_group(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, values) => is_group(values),
        kind => is_label(kind) || kind.is_temporal(),
    }
}

/// The different values of a column as texts, one more than are dealt by a list at most.
async fn values(context: &SessionContext, table: &RowTable, name: &str) -> Result<Vec<String>> {
    let rows = context.read_table(Arc::new(table.clone()))?;
    let different = rows.select(vec![cast(column(name), DataType::Utf8).alias("value")])?.distinct()?;
    let mut values = Vec::new();
    for batch in different.limit(0, Some(LISTED + 1))?.collect().await? {
        let texts = datafusion::arrow::compute::cast(batch.column(0), &DataType::Utf8)?;
        if texts.null_count() > 0 {
            return refuse(format!("column {name} has nulls: fill them in, or leave their rows out"));
        }
        values.extend(texts.as_string::<i32>().iter().flatten().map(str::to_owned));
    }
    Ok(values)
}
