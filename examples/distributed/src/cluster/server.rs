//! The processes of a Ballista cluster that knows the functions and tables.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::error::{BallistaError, Result};
use ballista_core::extension::SessionConfigExt;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::start_server;
use datafusion::prelude::SessionConfig;

use super::codec::{LogicalCodec, PhysicalCodec};
use super::watch::Scheduler;
use crate::fault::sentence;

/// The options of every session of these processes.
fn config() -> SessionConfig {
    super::session::with_codecs(SessionConfig::new_with_ballista())
}

/// Serves as the scheduler of a cluster until the process ends. An executor from which nothing has come for so many seconds is
/// taken for lost, and its work is done again.
///
/// # Errors
/// If the address is none, or taken.
pub async fn scheduler(bind: &str, lost_after: u64) -> Result<()> {
    let address: SocketAddr = bind
        .parse()
        .map_err(|_| BallistaError::Configuration(format!("{bind} is not an address and a port")))?;
    let config = SchedulerConfig {
        bind_host: address.ip().to_string(),
        external_host: address.ip().to_string(),
        bind_port: address.port(),
        scheduling_policy: TaskSchedulingPolicy::PushStaged,
        executor_timeout_seconds: lost_after,
        expire_dead_executor_interval_seconds: lost_after.div_ceil(4).max(1),
        override_config_producer: Some(Arc::new(config)),
        override_logical_codec: Some(Arc::new(LogicalCodec::default())),
        override_physical_codec: Some(Arc::new(PhysicalCodec::default())),
        ..SchedulerConfig::default()
    };
    let cluster = BallistaCluster::new_from_config(&config).await?;
    start_server(cluster, address, Arc::new(config)).await
}

/// What an executor is told.
#[derive(Clone, Debug)]
pub struct Executor {
    /// Where the scheduler is, as host and port.
    pub scheduler: (String, u16),
    /// The address at which others reach this process.
    pub host: String,
    /// The port at which others fetch its results.
    pub port: u16,
    /// The port at which the scheduler reaches it.
    pub grpc_port: u16,
    /// Partitions that are worked on at a time.
    pub slots: usize,
    /// Where results are kept.
    pub folder: Option<PathBuf>,
}

/// Waits for a scheduler that does not accept connections yet.
async fn reach(scheduler: &Scheduler) -> Result<()> {
    for _ in 0..PATIENCE {
        if scheduler.reach().await.is_ok() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    scheduler.reach().await.map_err(|error| BallistaError::Configuration(sentence(&error)))
}

/// Seconds for which a scheduler is waited for.
const PATIENCE: u32 = 30;

/// Serves as an executor until the process ends.
///
/// # Errors
/// If the scheduler is not reached within half a minute, or a port is taken.
pub async fn executor(told: Executor) -> Result<()> {
    let (scheduler_host, scheduler_port) = told.scheduler;
    reach(&Scheduler::at(&format!("{scheduler_host}:{scheduler_port}"))).await?;
    let config = ExecutorProcessConfig {
        bind_host: told.host.clone(),
        external_host: Some(told.host),
        port: told.port,
        grpc_port: told.grpc_port,
        scheduler_host,
        scheduler_port,
        scheduler_connect_timeout_seconds: 30,
        vcores: told.slots,
        task_scheduling_policy: TaskSchedulingPolicy::PushStaged,
        work_dir: told.folder.map(|folder| folder.to_string_lossy().into_owned()),
        executor_heartbeat_interval_seconds: 1,
        override_config_producer: Some(Arc::new(config)),
        override_logical_codec: Some(Arc::new(LogicalCodec::default())),
        override_physical_codec: Some(Arc::new(PhysicalCodec::default())),
        ..ExecutorProcessConfig::default()
    };
    start_executor_process(Arc::new(config)).await
}
