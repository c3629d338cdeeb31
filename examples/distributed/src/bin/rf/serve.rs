//! `rf scheduler` and `rf executor`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use random_features_distributed::cluster::server;
use random_features_distributed::table::Failpoint;

/// As what a process serves.
#[derive(Debug, Subcommand)]
pub enum Serve {
    /// Serves as the scheduler of a cluster
    Scheduler(Scheduler),
    /// Serves as an executor of a cluster
    Executor(Executor),
}

/// `rf scheduler`.
#[derive(Args, Debug)]
pub struct Scheduler {
    /// Address and port
    #[arg(long, default_value = "127.0.0.1:50050")]
    pub bind: String,
    /// Seconds without a word after which an executor is taken for lost
    #[arg(long, default_value_t = 30)]
    pub lost_after: u64,
}

/// `rf executor`.
#[derive(Args, Debug)]
pub struct Executor {
    /// The scheduler
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:50050")]
    pub scheduler: String,
    /// The address at which others reach this process
    #[arg(long, default_value = "127.0.0.1")]
    pub host: String,
    /// The port at which others fetch results
    #[arg(long, default_value_t = 50051)]
    pub port: u16,
    /// The port at which the scheduler calls
    #[arg(long, default_value_t = 50052)]
    pub grpc_port: u16,
    /// Partitions that are worked on at a time [the number of cores]
    #[arg(long, default_value_t = 0)]
    pub slots: usize,
    /// Where results are kept [a temporary folder]
    #[arg(long)]
    pub folder: Option<PathBuf>,
    /// For tests: the first scan writes its process into this file and hangs
    #[arg(long, hide = true)]
    pub hang: Option<PathBuf>,
    /// For tests: batches are delivered twice
    #[arg(long, hide = true)]
    pub twice: bool,
}

pub async fn run(asked: Serve) -> Result<(), String> {
    match asked {
        Serve::Scheduler(asked) => scheduler(asked).await,
        Serve::Executor(asked) => executor(asked).await,
    }
}

async fn scheduler(asked: Scheduler) -> Result<(), String> {
    server::scheduler(&asked.bind, asked.lost_after).await.map_err(|error| error.to_string())
}

async fn executor(asked: Executor) -> Result<(), String> {
    let address = || format!("--scheduler {} is not host:port", asked.scheduler);
    let (host, port) = asked.scheduler.rsplit_once(':').ok_or_else(address)?;
    let port = port.parse().map_err(|_| address())?;
    match (asked.hang.clone(), asked.twice) {
        (Some(marker), _) => Failpoint::Hang(marker).set(),
        (None, true) => Failpoint::Twice.set(),
        (None, false) => {}
    }
    let told = server::Executor {
        scheduler: (host.to_owned(), port),
        host: asked.host,
        port: asked.port,
        grpc_port: asked.grpc_port,
        slots: asked.slots,
        folder: asked.folder,
    };
    server::executor(told).await.map_err(|error| error.to_string())
}
