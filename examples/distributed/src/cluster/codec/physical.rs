//! [`PhysicalCodec`]: stages of plans on their way to executors.

use std::sync::Arc;

use ballista_core::serde::BallistaPhysicalExtensionCodec;
use datafusion::arrow::datatypes::Schema;
use datafusion::common::Result;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{AggregateUDF, ScalarUDF};
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use datafusion_proto::protobuf;
use prost::Message;
use serde::{Deserialize, Serialize};

use super::functions::{decode_aggregate, decode_scalar, encode_aggregate};
use crate::fault::{external, refuse};
use crate::table::{Files, RowScan};

/// Marks a scan of numbered rows.
const MAGIC: &[u8] = b"rf-scan3";

/// Ballista's codec, with the functions and scans of this package.
#[derive(Debug, Default)]
pub struct PhysicalCodec {
    inner: BallistaPhysicalExtensionCodec,
}

/// A scan as it travels, without its input.
#[derive(Serialize, Deserialize)]
struct StoredScan {
    files: Files,
    /// In the engine's form.
    schema: Vec<u8>,
    projection: Vec<usize>,
}

impl StoredScan {
    fn of(scan: &RowScan) -> Result<Self> {
        let schema: protobuf::Schema = scan.file_schema().as_ref().try_into().map_err(external)?;
        Ok(StoredScan {
            files: scan.files().as_ref().clone(),
            schema: schema.encode_to_vec(),
            projection: scan.projection().to_vec(),
        })
    }

    fn scan(self, inputs: &[Arc<dyn ExecutionPlan>]) -> Result<RowScan> {
        let [input] = inputs else { return refuse("a scan of numbered rows has one input") };
        let schema = protobuf::Schema::decode(self.schema.as_slice()).map_err(external)?;
        let schema: Schema = (&schema).try_into().map_err(external)?;
        RowScan::new(Arc::new(self.files), Arc::new(schema), self.projection, input.clone())
    }
}

impl PhysicalExtensionCodec for PhysicalCodec {
    fn try_decode(
        &self,
        bytes: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(scan) = bytes.strip_prefix(MAGIC) else {
            return self.inner.try_decode(bytes, inputs, context, converter);
        };
        let scan: StoredScan = postcard::from_bytes(scan).map_err(external)?;
        Ok(Arc::new(scan.scan(inputs)?))
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        bytes: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        let Some(scan) = (node.as_ref() as &dyn std::any::Any).downcast_ref::<RowScan>() else {
            return self.inner.try_encode(node, bytes, converter);
        };
        bytes.extend_from_slice(MAGIC);
        bytes.extend(postcard::to_stdvec(&StoredScan::of(scan)?).map_err(external)?);
        Ok(())
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
