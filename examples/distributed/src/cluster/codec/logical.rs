//! [`LogicalCodec`]: logical plans on their way to a scheduler.

use std::sync::Arc;

use ballista_core::serde::BallistaLogicalExtensionCodec;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::common::{Result, TableReference};
use datafusion::datasource::file_format::FileFormatFactory;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{AggregateUDF, Extension, LogicalPlan, ScalarUDF};
use datafusion_proto::logical_plan::LogicalExtensionCodec;

use super::functions::{decode_aggregate, decode_scalar, encode_aggregate};
use crate::fault::external;
use crate::table::{Files, RowTable};

/// Marks a table of numbered rows.
const MAGIC: &[u8] = b"rf-rows3";

/// Ballista's codec, with the functions and tables of this package.
#[derive(Debug, Default)]
pub struct LogicalCodec {
    inner: BallistaLogicalExtensionCodec,
}

impl LogicalExtensionCodec for LogicalCodec {
    fn try_decode(&self, bytes: &[u8], inputs: &[LogicalPlan], context: &TaskContext) -> Result<Extension> {
        self.inner.try_decode(bytes, inputs, context)
    }

    fn try_encode(&self, node: &Extension, bytes: &mut Vec<u8>) -> Result<()> {
        self.inner.try_encode(node, bytes)
    }

    fn try_decode_table_provider(
        &self,
        bytes: &[u8],
        name: &TableReference,
        schema: SchemaRef,
        context: &TaskContext,
    ) -> Result<Arc<dyn TableProvider>> {
        let Some(stored) = bytes.strip_prefix(MAGIC) else {
            return self.inner.try_decode_table_provider(bytes, name, schema, context);
        };
        let (files, least): (Files, u64) = postcard::from_bytes(stored).map_err(external)?;
        let own = schema.fields().len().saturating_sub(3);
        let file_schema = Schema::new(schema.fields().iter().take(own).cloned().collect::<Vec<_>>());
        Ok(Arc::new(RowTable::new(files, Arc::new(file_schema))?.with_least_rows(least)))
    }

    fn try_encode_table_provider(
        &self,
        name: &TableReference,
        table: Arc<dyn TableProvider>,
        bytes: &mut Vec<u8>,
    ) -> Result<()> {
        let Some(rows) = (table.as_ref() as &dyn std::any::Any).downcast_ref::<RowTable>() else {
            return self.inner.try_encode_table_provider(name, table, bytes);
        };
        bytes.extend_from_slice(MAGIC);
        bytes.extend(postcard::to_stdvec(&(rows.files(), rows.least_rows())).map_err(external)?);
        Ok(())
    }

    fn try_decode_file_format(
        &self,
        bytes: &[u8],
        context: &TaskContext,
    ) -> Result<Arc<dyn FileFormatFactory>> {
        self.inner.try_decode_file_format(bytes, context)
    }

    fn try_encode_file_format(&self, bytes: &mut Vec<u8>, format: Arc<dyn FileFormatFactory>) -> Result<()> {
        self.inner.try_encode_file_format(bytes, format)
    }

    fn try_decode_udf(&self, name: &str, bytes: &[u8]) -> Result<Arc<ScalarUDF>> {
        match decode_scalar(name) {
            Some(function) => Ok(function),
            None => self.inner.try_decode_udf(name, bytes),
        }
    }

    fn try_encode_udf(&self, function: &ScalarUDF, bytes: &mut Vec<u8>) -> Result<()> {
        self.inner.try_encode_udf(function, bytes)
    }

    fn try_decode_udaf(&self, name: &str, bytes: &[u8]) -> Result<Arc<AggregateUDF>> {
        match decode_aggregate(name, bytes)? {
            Some(function) => Ok(function),
            None => self.inner.try_decode_udaf(name, bytes),
        }
    }

    fn try_encode_udaf(&self, function: &AggregateUDF, bytes: &mut Vec<u8>) -> Result<()> {
        match encode_aggregate(function, bytes)? {
            true => Ok(()),
            false => self.inner.try_encode_udaf(function, bytes),
        }
    }
}
