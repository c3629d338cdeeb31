//! What stands for a cluster in a program without the feature `cluster`: there is none.

use datafusion::prelude::SessionContext;
use random_features_distributed::table::RowTable;

/// No cluster.
#[derive(Clone)]
pub enum Cluster {}

/// No pass on a cluster.
pub type Job = Cluster;

impl Cluster {
    /// Refuses the scheduler that is asked for.
    pub fn at(address: &str, _: usize) -> Result<Self, String> {
        Err(format!("--ballista {address} needs an rf that is built with the feature cluster"))
    }

    pub async fn session(&self) -> Result<SessionContext, String> {
        match *self {}
    }

    pub async fn reached(&self) -> Result<(), String> {
        match *self {}
    }

    pub async fn deserted(&self) -> String {
        match *self {}
    }

    pub async fn cancel(&self) {
        match *self {}
    }

    pub fn job(&self, _: &RowTable) -> Job {
        match *self {}
    }

    pub async fn rows_done(&self) -> Option<u64> {
        match *self {}
    }
}
