//! Sessions of a Ballista cluster that know the functions.

use std::sync::Arc;

use ballista::prelude::{SessionConfigExt, SessionContextExt};
use datafusion::common::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};

use super::codec::{LogicalCodec, PhysicalCodec};
use crate::session::{plain, register};

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
pub(super) fn with_codecs(config: SessionConfig) -> SessionConfig {
    config
        .with_ballista_logical_extension_codec(Arc::new(LogicalCodec::default()))
        .with_ballista_physical_extension_codec(Arc::new(PhysicalCodec::default()))
}
