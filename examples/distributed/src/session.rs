//! Sessions that know the functions: of this process, and of a Ballista cluster.

use std::sync::Arc;

use ballista::prelude::{SessionConfigExt, SessionContextExt};
use datafusion::common::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::codec::{LogicalCodec, PhysicalCodec};
use crate::{scalar, sums};

/// Adds the aggregates and the scalar functions to a session.
pub fn register(context: &SessionContext) {
    sums::functions().into_iter().for_each(|function| context.register_udaf(function));
    scalar::functions().into_iter().for_each(|function| context.register_udf(function));
}

/// A session of this process, with as many partitions as there are cores.
pub fn local() -> SessionContext {
    let context = SessionContext::new_with_config(plain(SessionConfig::new()));
    register(&context);
    context
}

/// A session of this process with so many partitions.
pub fn local_with(partitions: usize) -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(partitions);
    let context = SessionContext::new_with_config(plain(config));
    register(&context);
    context
}

/// A session of the cluster whose scheduler is at `host:port`, with so many partitions of each scan.
///
/// # Errors
/// If the address is none.
pub async fn ballista(scheduler: &str, partitions: usize) -> Result<SessionContext> {
    ballista_with(scheduler, SessionConfig::new_with_ballista().with_target_partitions(partitions)).await
}

/// As [`ballista`], with more options.
///
/// # Errors
/// As [`ballista`].
pub async fn ballista_with(scheduler: &str, config: SessionConfig) -> Result<SessionContext> {
    let config = plain(with_codecs(config));
    let state = SessionStateBuilder::new().with_config(config).with_default_features().build();
    let context = SessionContext::remote_with_state(&format!("df://{scheduler}"), state).await?;
    register(&context);
    Ok(context)
}

/// With the codecs that know the functions and tables.
pub(crate) fn with_codecs(config: SessionConfig) -> SessionConfig {
    config
        .with_ballista_logical_extension_codec(Arc::new(LogicalCodec::default()))
        .with_ballista_physical_extension_codec(Arc::new(PhysicalCodec::default()))
}

/// Rows of a batch: more than the engine's own choice, since sums are taken over chunks of many rows at a time.
const BATCH: usize = 1 << 16;

/// Without the distribution of single batches over partitions, which would tear rows apart that follow each other.
fn plain(config: SessionConfig) -> SessionConfig {
    config.with_round_robin_repartition(false).with_batch_size(BATCH)
}
