//! How far a pass is, on standard error.

use std::time::{Duration, Instant};

use random_features_distributed::table::RowTable;
use tokio::task::JoinHandle;

use crate::on_cluster::Job;
use crate::say::note;

/// A report each second, until it is dropped.
pub struct Progress {
    task: Option<JoinHandle<()>>,
    what: &'static str,
    table: RowTable,
    start: Instant,
}

impl Progress {
    /// The progress of a pass over a table, in this process or as a job of a cluster; quiet if asked.
    pub fn of(what: &'static str, table: &RowTable, job: Option<Job>, quiet: bool) -> Self {
        let (start, counted) = (Instant::now(), table.clone());
        let task = (!quiet).then(|| {
            tokio::spawn(async move {
                let (before, rows) = (counted.progress(), counted.files().rows());
                loop {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    let done = match &job {
                        None => Some(counted.progress() - before),
                        Some(job) => job.rows_done().await,
                    };
                    let state = state(done, rows, start.elapsed());
                    note(&format!("\r{what}: {state}   "));
                }
            })
        });
        Progress { task, what, table: table.clone(), start }
    }

    /// The last report.
    pub fn done(self) {
        if self.task.is_some() {
            let (rows, seconds) = (self.table.files().rows(), self.start.elapsed().as_secs_f64());
            let rate = rows as f64 / seconds;
            let what = self.what;
            note(&format!("\r{what}: {rows} rows in {seconds:.1} s, {rate:.0} rows a second   \n"));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// Rows, rate and time left, as far as they are known.
fn state(done: Option<u64>, rows: u64, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64();
    match done {
        None => format!("{rows} rows on the cluster, {seconds:.0} s"),
        Some(0) => format!("0 of {rows} rows"),
        Some(done) => {
            let rate = done as f64 / seconds;
            let left = rows.saturating_sub(done) as f64 / rate;
            format!("{done} of {rows} rows, {rate:.0} a second, {left:.0} s left")
        }
    }
}
