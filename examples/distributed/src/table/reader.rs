//! How rows of a file are read: by the engine's own reader of Parquet.

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::datasource::listing::{ListingTableUrl, PartitionedFile};
use datafusion::datasource::physical_plan::parquet::ParquetRowSelection;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::object_store::path::Path;
use datafusion::object_store::{ObjectMeta, ObjectStoreExt};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::future::ready;
use futures::{StreamExt, TryStreamExt, stream};

use super::files::{FileRows, Files};
use super::pieces::Piece;
use crate::fault::{external, refuse};

/// The rows of a piece, in order. The file must be the one whose footer was read.
pub fn open(
    files: &Files,
    piece: &Piece,
    schema: &SchemaRef,
    columns: Vec<usize>,
    context: &Arc<TaskContext>,
) -> Result<SendableRecordBatchStream> {
    let Some(file) = files.files.get(piece.file).cloned() else { return refuse("there is no such file") };
    let projected: SchemaRef = Arc::new(schema.project(&columns)?);
    let (store, piece, schema) = (ListingTableUrl::parse(&files.store)?, piece.clone(), schema.clone());
    // A file that was replaced while it was read may have given rows of both.
    let again = {
        let (store, file, context) = (store.clone(), file.clone(), context.clone());
        async move { checked(&store, &file, &context).await.err() }
    };
    let again = stream::once(again).filter_map(|error| ready(error.map(Err)));
    let context = context.clone();
    let rows = async move {
        let meta = checked(&store, &file, &context).await?;
        let selection = ParquetRowSelection::new(piece.selection(file.rows));
        let part = PartitionedFile::new_from_meta(meta).with_extension(selection);
        let source = Arc::new(ParquetSource::new(TableSchema::from(schema)));
        let scan = FileScanConfigBuilder::new(store.object_store(), source)
            .with_file_group(FileGroup::new(vec![part]))
            .with_projection_indices(Some(columns))?
            .with_preserve_order(true)
            .build();
        DataSourceExec::from_data_source(scan).execute(0, context)
    };
    let rows = stream::once(rows).try_flatten().chain(again);
    Ok(Box::pin(RecordBatchStreamAdapter::new(projected, rows.boxed())))
}

/// What the store says of a file that has not changed.
async fn checked(store: &ListingTableUrl, file: &FileRows, context: &Arc<TaskContext>) -> Result<ObjectMeta> {
    let source = context.runtime_env().object_store(store)?;
    let path = Path::parse(&file.path).map_err(external)?;
    let meta = source.head(&path).await?;
    match (meta.size, meta.last_modified.timestamp_micros()) == (file.size, file.modified) {
        true => Ok(meta),
        false => refuse(format!("{} has changed since its footer was read", file.path)),
    }
}
