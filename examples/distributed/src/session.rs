//! Sessions of this process that know the functions.

use datafusion::prelude::{SessionConfig, SessionContext};

use crate::{scalar, sums};

/// Adds the aggregates and the scalar functions to a session.
pub fn register(context: &SessionContext) {
    sums::functions().into_iter().for_each(|function| context.register_udaf(function));
    scalar::functions().into_iter().for_each(|function| context.register_udf(function));
}

/// A session with as many partitions as there are cores.
pub fn local() -> SessionContext {
    local_of(SessionConfig::new())
}

/// A session with so many partitions.
pub fn local_with(partitions: usize) -> SessionContext {
    local_of(SessionConfig::new().with_target_partitions(partitions))
}

fn local_of(config: SessionConfig) -> SessionContext {
    let context = SessionContext::new_with_config(plain(config));
    register(&context);
    context
}

/// Rows of a batch: more than the engine's own choice, since sums are taken over chunks of many rows at a time.
const BATCH: usize = 1 << 16;

/// Without the distribution of single batches over partitions, which would tear rows apart that follow each other.
pub(crate) fn plain(config: SessionConfig) -> SessionConfig {
    config.with_round_robin_repartition(false).with_batch_size(BATCH)
}
