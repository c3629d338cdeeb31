//! How far a pass is, on standard error.

use std::time::{Duration, Instant};

use random_features_distributed::table::RowTable;
use tokio::task::JoinHandle;

use crate::say::note;

/// Seconds after which a cluster without executors looks like one that works.
const LONG: f64 = 60.0;

/// A report each second, until it is dropped.
pub struct Progress {
    task: Option<JoinHandle<()>>,
    what: &'static str,
    table: RowTable,
    start: Instant,
}

impl Progress {
    /// Of a pass over a table; quiet if asked. What executors of a cluster read is not counted here.
    pub fn of(what: &'static str, table: &RowTable, local: bool, quiet: bool) -> Self {
        let (start, counted) = (Instant::now(), table.clone());
        let task = (!quiet).then(|| {
            tokio::spawn(async move {
                let before = counted.progress();
                loop {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    let done = counted.progress() - before;
                    let state = state(done, counted.files().rows(), start.elapsed(), local);
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

/// Rows, rate and time left.
fn state(done: u64, rows: u64, elapsed: Duration, local: bool) -> String {
    let seconds = elapsed.as_secs_f64();
    if !local {
        let waiting = if seconds < LONG { "" } else { ": are there executors?" };
        return format!("{rows} rows on the cluster, {seconds:.0} s{waiting}");
    }
    let rate = done as f64 / seconds;
    match rate > 0.0 {
        true => {
            let left = rows.saturating_sub(done) as f64 / rate;
            format!("{done} of {rows} rows, {rate:.0} a second, {left:.0} s left")
        }
        false => format!("{done} of {rows} rows"),
    }
}
