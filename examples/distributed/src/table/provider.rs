//! [`RowTable`]: a table of numbered rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionContext;

use super::exec::RowScan;
use super::files::Files;
use super::pieces::{CHUNK, LEAST, Piece, parts, plan};
use crate::fault::refuse;
use crate::sums::FAR;

/// The column of the path of a row's file.
pub const FILE: &str = "_file";
/// The column of the number of the first row of a row's file.
pub const FIRST_ROW: &str = "_first_row";
/// The column of the number of a row.
pub const ROW: &str = "_row";

/// A table over Parquet files, with the columns `_file`, `_first_row` and `_row` beside theirs.
#[derive(Clone, Debug)]
pub struct RowTable {
    files: Arc<Files>,
    file_schema: SchemaRef,
    schema: SchemaRef,
    least: u64,
    progress: Arc<AtomicU64>,
}

impl RowTable {
    /// The table of paths, folders and patterns such as `data/*.parquet`. Footers are read, and nothing else.
    ///
    /// # Errors
    /// As [`Files::find`]; a sentence if a file has one of the table's own columns.
    pub async fn of_files(context: &SessionContext, places: &[String]) -> Result<Self> {
        let (files, schema) = Files::find(&context.state(), places).await?;
        Self::new(files, schema)
    }

    /// The table of files whose footers were read.
    ///
    /// # Errors
    /// A sentence if a file has one of the table's own columns.
    pub fn new(files: Files, file_schema: SchemaRef) -> Result<Self> {
        if let Some(name) = [FILE, FIRST_ROW, ROW].into_iter().find(|name| file_schema.index_of(name).is_ok())
        {
            return refuse(format!("the files have a column {name}, which tables of numbered rows add"));
        }
        let schema = Arc::new(own_columns(&file_schema));
        Ok(RowTable { files: Arc::new(files), file_schema, schema, least: LEAST, progress: Arc::default() })
    }

    /// This table, with partitions of about so many rows or more [524 288], a chunk at least.
    pub fn with_least_rows(self, least: u64) -> Self {
        RowTable { least, ..self }
    }

    /// This table, with a number for the first row [0]: states of tables whose numbers do not meet merge, such as those of days of which
    /// day k begins at k · 2⁴⁰.
    ///
    /// # Errors
    /// A sentence if the number is no multiple of [`CHUNK`](random_features::apply::RidgeStatistics::CHUNK), where sums are cut, or a row would have a
    /// number of 2⁶² or more, which rows without numbers have.
    pub fn with_first_row(self, row: u64) -> Result<Self> {
        let end = row.checked_add(self.files.rows());
        if !row.is_multiple_of(CHUNK) || end.is_none_or(|end| end > FAR) {
            return refuse(format!(
                "rows are not numbered from {row} on: that is a multiple of {CHUNK}, and all are below 2^62"
            ));
        }
        let files = Arc::new(Files::clone(&self.files).with_first_row(row));
        Ok(RowTable { files, ..self })
    }

    /// The least number of rows that are worth a partition.
    pub fn least_rows(&self) -> u64 {
        self.least
    }

    /// The files.
    pub fn files(&self) -> &Files {
        &self.files
    }

    /// The schema of the files.
    pub fn file_schema(&self) -> &SchemaRef {
        &self.file_schema
    }

    /// The numbers of rows of the partitions of a scan, of which there are at most so many.
    pub fn partition_rows(&self, most: usize) -> Vec<u64> {
        let rows = |pieces: &Vec<Piece>| pieces.iter().map(|piece| piece.rows.end - piece.rows.start).sum();
        parts(&self.files, most, self.least).iter().map(rows).collect()
    }

    /// The number of rows that scans in this process have read.
    pub fn progress(&self) -> u64 {
        self.progress.load(Ordering::Relaxed)
    }
}

/// The columns of files and the table's own.
pub(super) fn own_columns(files: &Schema) -> Schema {
    let own = [(FILE, DataType::Utf8), (FIRST_ROW, DataType::UInt64), (ROW, DataType::UInt64)];
    let own = own.map(|(name, kind)| Arc::new(Field::new(name, kind, false)));
    Schema::new(files.fields().iter().cloned().chain(own).collect::<Vec<_>>())
}

#[async_trait]
impl TableProvider for RowTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let all = || (0..self.schema.fields().len()).collect();
        let projection = projection.cloned().unwrap_or_else(all);
        let parts = parts(&self.files, state.config().target_partitions(), self.least);
        let scan = RowScan::new(self.files.clone(), self.file_schema.clone(), projection, plan(&parts)?)?;
        Ok(Arc::new(scan.counting(self.progress.clone())))
    }
}
