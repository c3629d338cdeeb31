//! Sessions, tables and columns that are asked for.

use std::path::Path;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::DataFusionError;
use datafusion::dataframe::DataFrame;
use datafusion::object_store::local::LocalFileSystem;
use datafusion::object_store::path::Path as StorePath;
use datafusion::prelude::SessionContext;
use random_features_distributed::columns::{is_float, is_list, layout};
use random_features_distributed::fault::{row_of, sentence};
use random_features_distributed::fit::{self, Task};
use random_features_distributed::session;
use random_features_distributed::sums::State;
use random_features_distributed::table::RowTable;

use crate::arguments::Source;
use crate::on_cluster::Cluster;
use crate::output::Output;
use crate::progress::Progress;
use crate::say::say;

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
        let cluster = source.ballista.as_deref();
        let cluster = cluster.map(|address| Cluster::at(address, source.partitions.unwrap_or(PARTITIONS)));
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

    /// The columns of points: those that were named, or all of floats but the target.
    pub fn columns(&self, target: Option<&str>) -> Result<Vec<String>, String> {
        if !self.source.columns.is_empty() {
            return Ok(self.source.columns.clone());
        }
        let fields = || {
            let all = self.table.file_schema().fields().iter();
            all.filter(|field| Some(field.name().as_str()) != target)
        };
        let of = |fits: fn(&DataType) -> bool| -> Vec<String> {
            fields().filter(|field| fits(field.data_type())).map(|field| field.name().clone()).collect()
        };
        match (of(is_list), of(is_float)) {
            (lists, _) if lists.len() == 1 => Ok(lists),
            (lists, floats) if lists.is_empty() && !floats.is_empty() => Ok(floats),
            _ => Err("name the columns of the points by --columns: there is no column of floats, or more than one of lists".into()),
        }
    }

    /// Whether sums over these columns are of `f64`.
    pub fn is_double(&self, columns: &[String]) -> bool {
        let field = |name: &String| self.table.file_schema().field_with_name(name).ok();
        let types: Vec<DataType> =
            columns.iter().filter_map(field).map(|field| field.data_type().clone()).collect();
        !layout(&types).is_ok_and(|(_, scalar)| scalar == DataType::Float32)
    }

    /// Begins a file, which is none of those that are read.
    pub fn output(&self, out: &Path) -> Result<Output, String> {
        let output = Output::begin(out)?;
        match self.reads(output.place()) {
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

    /// Begins to report on a pass, once there is somebody to make it.
    pub async fn progress(&self, what: &'static str) -> Result<Progress, String> {
        if let Some(cluster) = &self.cluster {
            cluster.ready().await?;
        }
        let job = self.cluster.as_ref().map(|cluster| cluster.job(&self.table));
        Ok(Progress::of(what, &self.table, job, self.source.quiet))
    }

    /// The engine's plan of a pass.
    pub async fn explain(&self, task: &Task) -> Result<(), String> {
        let frame = fit::frame(&self.context, self.table.clone(), task);
        explain(frame.map_err(|error| sentence(&error))?).await
    }

    /// The sums of a pass, with reports.
    pub async fn pass(&self, what: &'static str, task: &Task) -> Result<State, String> {
        let progress = self.progress(what).await?;
        let state = fit::run(&self.context, self.table.clone(), task).await;
        let state = state.map_err(|error| self.located(&error))?;
        progress.done();
        Ok(state)
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
