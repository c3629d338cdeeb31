//! Passes on a cluster: whether it can take them, and how far they are.

use std::time::Duration;

use ballista::prelude::SessionConfigExt;
use datafusion::prelude::{SessionConfig, SessionContext};
use random_features_distributed::cluster::session;
use random_features_distributed::cluster::watch::Scheduler;
use random_features_distributed::fault::sentence;
use random_features_distributed::table::RowTable;

/// How many seconds a cluster may be without executors.
const PATIENCE: u32 = 30;

/// A cluster, and what jobs are called there.
#[derive(Clone)]
pub struct Cluster {
    address: String,
    name: String,
    partitions: usize,
}

/// A pass that a cluster is asked for.
pub struct Job {
    cluster: Cluster,
    /// The rows of each partition.
    rows: Vec<u64>,
}

impl Cluster {
    /// The one whose scheduler is at `host:port`, for passes in so many partitions.
    pub fn at(address: &str, partitions: usize) -> Result<Self, String> {
        if !address.contains(':') {
            return Err("--ballista takes a host and a port, such as 127.0.0.1:50050".into());
        }
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let name = format!("rf-{}-{}", std::process::id(), since.unwrap_or_default().as_nanos());
        Ok(Cluster { address: address.into(), name, partitions })
    }

    pub async fn session(&self) -> Result<SessionContext, String> {
        self.reached().await?;
        let config = SessionConfig::new_with_ballista().with_target_partitions(self.partitions);
        let config = config.with_ballista_job_name(&self.name);
        session::ballista_with(&self.address, config).await.map_err(|error| sentence(&error))
    }

    /// That the scheduler is there.
    pub async fn reached(&self) -> Result<(), String> {
        self.scheduler().reach().await.map_err(|error| sentence(&error))
    }

    fn scheduler(&self) -> Scheduler {
        Scheduler::at(&self.address)
    }

    /// Returns when there has been no executor for some time, and says so. A scheduler that does not say is believed to have some.
    pub async fn deserted(&self) -> String {
        let mut seconds = 0;
        while seconds < PATIENCE {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let empty = matches!(self.scheduler().executors().await, Ok(0));
            seconds = if empty { seconds + 1 } else { 0 };
        }
        let address = &self.address;
        format!("the cluster of {address} has no executors: start one by rf executor --scheduler {address}")
    }

    /// Ends what runs, if the scheduler can still be asked.
    pub async fn cancel(&self) {
        let _ = self.scheduler().cancel(&self.name).await;
    }

    /// The next pass over a table.
    pub fn job(&self, table: &RowTable) -> Job {
        Job { cluster: self.clone(), rows: table.partition_rows(self.partitions) }
    }
}

impl Job {
    /// The rows of partitions that are done, if the scheduler says.
    pub async fn rows_done(&self) -> Option<u64> {
        let done = self.cluster.scheduler().partitions_done(&self.cluster.name).await.ok()?;
        Some(done.into_iter().filter_map(|partition| self.rows.get(partition)).sum())
    }
}
