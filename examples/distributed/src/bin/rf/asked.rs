//! Sessions, tables and columns that are asked for.

use std::path::Path;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::DataFusionError;
use datafusion::dataframe::DataFrame;
use datafusion::object_store::local::LocalFileSystem;
use datafusion::object_store::path::Path as StorePath;
use datafusion::prelude::SessionContext;
use random_features_distributed::columns::converted;
use random_features_distributed::division::Division;
use random_features_distributed::fault::{row_of, sentence};
use random_features_distributed::fit::{self, Task};
use random_features_distributed::session;
use random_features_distributed::sums::State;
use random_features_distributed::table::RowTable;

use crate::arguments::Source;
use crate::on_cluster::Cluster;
use crate::output::Output;
use crate::progress::Progress;
use crate::reading::Reading;
use crate::say::say;
use crate::stop;

/// Partitions on a cluster unless stated.
const PARTITIONS: usize = 16;

/// A session and a table.
pub struct Asked {
    /// Where passes are made, if not in this process.
    cluster: Option<Cluster>,
    pub context: SessionContext,
    pub table: RowTable,
    pub source: Source,
}

impl Asked {
    pub async fn open(input: &[String], source: Source) -> Result<Self, String> {
        if let Some(place) = input.iter().find(|place| place.contains("://") && !place.starts_with("file://"))
        {
            return Err(format!(
                "{place} is in a store that rf does not set up: it reads files of this machine"
            ));
        }
        let cluster = source.ballista.as_deref();
        let cluster = cluster.map(|address| Cluster::at(address, source.partitions.unwrap_or(PARTITIONS)));
        let cluster = cluster.transpose()?;
        let context = match (&cluster, source.partitions) {
            (_, Some(0)) => return Err("--partitions is at least 1".into()),
            (None, None) => session::local(),
            (None, Some(partitions)) => session::local_with(partitions),
            (Some(cluster), _) => cluster.session().await?,
        };
        let table = RowTable::of_files(&context, input).await.map_err(|error| sentence(&error))?;
        if table.files().rows() == 0 {
            return Err(format!("there are no rows in {}", input.join(", ")));
        }
        Ok(Asked { cluster, context, table, source })
    }

    /// The columns of points: those that were named, or all that can be but some others.
    pub fn columns(&self, others: &[&str]) -> Result<Vec<String>, String> {
        if !self.source.columns.is_empty() {
            return Ok(self.source.columns.clone());
        }
        let reading = Reading::of(&self.table, others)?;
        reading.tell();
        Ok(reading.points)
    }

    /// Whether sums over these columns, with a target of numbers or without, are of `f64`.
    pub fn is_double(&self, columns: &[String], target: Option<&str>) -> bool {
        let kind = |name: &str| Some(self.table.file_schema().field_with_name(name).ok()?.data_type());
        let points: Vec<DataType> = columns.iter().filter_map(|name| kind(name)).cloned().collect();
        !converted(&points, target.and_then(kind)).is_ok_and(|(_, scalar)| scalar == DataType::Float32)
    }

    /// Begins a file, which is none of those that are read: the table's, and one more.
    pub fn output(&self, out: &Path, read: Option<&Path>) -> Result<Output, String> {
        let output = Output::begin(out)?;
        let is_read = read.and_then(|read| read.canonicalize().ok()).as_deref() == Some(output.place());
        match is_read || self.reads(output.place()) {
            true => Err(format!("{} is one of the files that are read: write to another one", out.display())),
            false => Ok(output),
        }
    }

    /// Whether a file of this machine is one of the table's.
    fn reads(&self, place: &Path) -> bool {
        let files = self.table.files();
        let local = LocalFileSystem::new();
        let path = |path: &str| {
            let path = local.path_to_filesystem(&StorePath::parse(path).ok()?).ok()?;
            path.canonicalize().ok()
        };
        files.store.starts_with("file:")
            && files.files.iter().any(|file| path(&file.path).as_deref() == Some(place))
    }

    /// A pass to its end, with reports. What is interrupted, or has lost its executors, ends on the cluster too.
    pub async fn passed<V>(
        &self,
        what: &'static str,
        pass: impl Future<Output = datafusion::common::Result<V>>,
    ) -> Result<V, String> {
        let job = self.cluster.as_ref().map(|cluster| cluster.job(&self.table));
        let progress = Progress::of(what, &self.table, job, self.source.quiet);
        let why = tokio::select! {
            done = pass => match done {
                Ok(value) => {
                    progress.done();
                    return Ok(value);
                }
                Err(error) => return Err(self.failed(&error).await),
            },
            why = stop::wait() => why,
            why = self.deserted() => why,
        };
        if let Some(cluster) = &self.cluster {
            cluster.cancel().await;
        }
        Err(why)
    }

    /// Returns if a cluster has no executors for some time.
    async fn deserted(&self) -> String {
        match &self.cluster {
            Some(cluster) => cluster.deserted().await,
            None => std::future::pending().await,
        }
    }

    /// Why a pass failed.
    async fn failed(&self, error: &DataFusionError) -> String {
        let lost = match &self.cluster {
            Some(cluster) => cluster.reached().await.err(),
            None => None,
        };
        lost.unwrap_or_else(|| self.located(error))
    }

    /// The engine's plan of a pass.
    pub async fn explain(&self, task: &Task, division: Option<&Division>) -> Result<(), String> {
        let frame = fit::frame(&self.context, self.table.clone(), task, division);
        explain(frame.map_err(|error| sentence(&error))?).await
    }

    /// The sums of a pass, with reports.
    pub async fn pass(&self, what: &'static str, task: &Task) -> Result<State, String> {
        self.passed(what, fit::run(&self.context, self.table.clone(), task)).await
    }

    /// The sums of each part in a pass, with reports.
    pub async fn pass_divided(
        &self,
        what: &'static str,
        task: &Task,
        division: &Division,
    ) -> Result<Vec<State>, String> {
        self.passed(what, fit::run_divided(&self.context, self.table.clone(), task, division)).await
    }

    /// A sentence with the file of the row that it names.
    pub fn located(&self, error: &DataFusionError) -> String {
        let text = sentence(error);
        let file = |row| self.table.files().file_of(row);
        match row_of(&text).and_then(|(row, what)| Some((file(row)?, what))) {
            Some(((file, row), what)) => format!("{}, row {row}: {what}", file.path),
            None => text,
        }
    }
}

/// Prints the engine's plan.
pub async fn explain(frame: DataFrame) -> Result<(), String> {
    let plan = frame.explain(false, false).map_err(|error| sentence(&error))?;
    say(&plan.to_string().await.map_err(|error| sentence(&error))?)
}
