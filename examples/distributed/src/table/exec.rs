//! [`RowScan`]: the node of a plan that reads numbered rows.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, StringArray, UInt64Array};
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{Stream, StreamExt, TryStreamExt, stream};

use super::failpoint::Failpoint;
use super::files::Files;
use super::pieces::{Piece, pieces_of};
use super::provider::{FILE, FIRST_ROW, ROW, own_columns};
use super::reader;
use crate::fault::refuse;

/// Reads rows of files, each partition a range of them, in order.
///
/// Which rows a partition reads, its input says: a table in memory of [pieces](Piece), which travels with the plan. A scheduler that
/// gives a task some partitions of a plan cuts such inputs, and need not know this node.
#[derive(Clone, Debug)]
pub struct RowScan {
    files: Arc<Files>,
    /// The schema of the files.
    file_schema: SchemaRef,
    /// The columns that are read, of the files and the table's own.
    projection: Vec<usize>,
    /// The pieces of each partition.
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
    /// Rows that were read in this process.
    progress: Arc<AtomicU64>,
}

impl RowScan {
    /// A scan of the pieces that a plan gives.
    ///
    /// # Errors
    /// A sentence if a column is not there.
    pub fn new(
        files: Arc<Files>,
        file_schema: SchemaRef,
        projection: Vec<usize>,
        input: Arc<dyn ExecutionPlan>,
    ) -> Result<Self> {
        let schema: SchemaRef = Arc::new(own_columns(&file_schema).project(&projection)?);
        let properties = Arc::new(PlanProperties::new(
            ordered(&schema),
            Partitioning::UnknownPartitioning(input.properties().output_partitioning().partition_count()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        ));
        Ok(RowScan { files, file_schema, projection, input, properties, progress: Arc::default() })
    }

    /// This scan, which counts its rows here.
    pub(super) fn counting(self, progress: Arc<AtomicU64>) -> Self {
        RowScan { progress, ..self }
    }

    /// The files of the table.
    pub fn files(&self) -> &Arc<Files> {
        &self.files
    }

    /// The schema of the files.
    pub fn file_schema(&self) -> &SchemaRef {
        &self.file_schema
    }

    /// The columns that are read.
    pub fn projection(&self) -> &[usize] {
        &self.projection
    }

    /// The rows of a piece.
    fn read(&self, piece: &Piece, context: &Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let known = self.files.files.get(piece.file).is_some_and(|file| piece.rows.end <= file.rows);
        if !known {
            return refuse("a scan reads rows that no file of its table has");
        }
        let width = self.file_schema.fields().len();
        let columns: Vec<usize> = self.projection.iter().copied().filter(|k| *k < width).collect();
        let batches = reader::open(&self.files, piece, &self.file_schema, columns, context)?;
        let numbered = self.numbered(piece.clone(), batches);
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), numbered)))
    }

    /// The batches of a piece, with the columns of the table.
    fn numbered(
        &self,
        piece: Piece,
        batches: SendableRecordBatchStream,
    ) -> impl Stream<Item = Result<RecordBatch>> + Send + use<> {
        let (scan, path) = (self.clone(), self.files.files[piece.file].path.clone());
        let named = move |error: DataFusionError| error.context(format!("{path} cannot be read"));
        let next = piece.rows.start;
        stream::try_unfold(
            (batches.map_err(named), next, scan, piece),
            |(mut batches, next, scan, piece)| async move {
                match batches.try_next().await? {
                    Some(batch) => {
                        let after = next + batch.num_rows() as u64;
                        let batch = scan.with_own_columns(&piece, next, &batch)?;
                        scan.progress.fetch_add(batch.num_rows() as u64, Ordering::Relaxed);
                        Ok(Some((batch, (batches, after, scan, piece))))
                    }
                    None if next == piece.rows.end => Ok(None),
                    None => {
                        let (path, end) = (&scan.files.files[piece.file].path, piece.rows.end);
                        refuse(format!(
                            "{path} ended at row {next}, and should have {end} rows: it has changed"
                        ))
                    }
                }
            },
        )
    }

    /// A batch of which the first row has this number in its file, with the table's own columns.
    fn with_own_columns(&self, piece: &Piece, first: u64, batch: &RecordBatch) -> Result<RecordBatch> {
        let (file, rows) = (&self.files.files[piece.file], batch.num_rows());
        let start = file.first + first;
        let mut read = batch.columns().iter();
        let own = own_columns(&self.file_schema);
        let column = |k: &usize| -> Option<ArrayRef> {
            match own.field(*k).name().as_str() {
                FILE => Some(Arc::new(StringArray::from_iter_values(std::iter::repeat_n(&file.path, rows)))),
                FIRST_ROW => Some(Arc::new(UInt64Array::from_value(file.first, rows))),
                ROW => Some(Arc::new(UInt64Array::from_iter_values(start..start + rows as u64))),
                _ => read.next().cloned(),
            }
        };
        let columns: Option<Vec<ArrayRef>> = self.projection.iter().map(column).collect();
        let Some(columns) = columns else {
            return refuse(format!("{} lacks a column that was asked for", file.path));
        };
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(self.schema(), columns, &options)?)
    }
}

/// Rows ascend, where their numbers are read.
fn ordered(schema: &SchemaRef) -> EquivalenceProperties {
    let Ok(k) = schema.index_of(ROW) else { return EquivalenceProperties::new(schema.clone()) };
    let ascending = SortOptions { descending: false, nulls_first: false };
    let order = PhysicalSortExpr::new(Arc::new(Column::new(ROW, k)), ascending);
    EquivalenceProperties::new_with_orderings(schema.clone(), [vec![order]])
}

impl DisplayAs for RowScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (files, rows) = (self.files.files.len(), self.files.rows());
        let partitions = self.properties.output_partitioning().partition_count();
        write!(f, "RowScan: {rows} rows of {files} files in {partitions} partitions, columns=[")?;
        let schema = self.schema();
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        write!(f, "{}]", names.join(", "))
    }
}

impl ExecutionPlan for RowScan {
    fn name(&self) -> &str {
        "RowScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Ok([input]) = <[_; 1]>::try_from(children) else {
            return refuse("a scan of numbered rows has one input");
        };
        let RowScan { files, file_schema, projection, progress, .. } = (*self).clone();
        Ok(Arc::new(RowScan::new(files, file_schema, projection, input)?.counting(progress)))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let batches = self.input.execute(partition, context.clone())?;
        let parts = batches.map(|batch| pieces_of(&batch?));
        let pieces =
            parts.map_ok(|pieces| stream::iter(pieces).map(Ok::<Piece, DataFusionError>)).try_flatten();
        let scan = self.clone();
        let opened = pieces.map(move |piece| scan.read(&piece?, &context));
        let rows = opened.try_flatten();
        let rows = match Failpoint::get() {
            None => rows.boxed(),
            Some(failpoint) => failing(rows.boxed(), failpoint),
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}

type Rows = futures::stream::BoxStream<'static, Result<RecordBatch>>;

/// Rows with a fault that a test asked for.
fn failing(rows: Rows, failpoint: &'static Failpoint) -> Rows {
    match failpoint {
        Failpoint::Hang(_) if failpoint.hangs() => stream::pending().boxed(),
        Failpoint::Hang(_) => rows,
        Failpoint::Twice => {
            let twice = |(k, batch): (usize, Result<RecordBatch>)| match (k, batch) {
                (0, Ok(batch)) => stream::iter(vec![Ok(batch.clone()), Ok(batch)]).boxed(),
                (_, batch) => stream::iter(vec![batch]).boxed(),
            };
            rows.enumerate().flat_map(twice).boxed()
        }
    }
}
