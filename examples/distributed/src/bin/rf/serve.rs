//! `rf scheduler` and `rf executor`.

use random_features_distributed::server;
use random_features_distributed::table::Failpoint;

use crate::arguments::{Executor, Scheduler};

pub async fn scheduler(asked: Scheduler) -> Result<(), String> {
    server::scheduler(&asked.bind, asked.lost_after).await.map_err(|error| error.to_string())
}

pub async fn executor(asked: Executor) -> Result<(), String> {
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
