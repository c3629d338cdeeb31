//! [`Files`]: the files of a table, with what their footers say.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::datasource::physical_plan::parquet::metadata::DFParquetMetadata;
use datafusion::object_store::local::LocalFileSystem;
use datafusion::object_store::path::Path;
use datafusion::object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use datafusion::parquet::arrow::parquet_to_arrow_schema;
use datafusion::parquet::file::metadata::ParquetMetaData;
use futures::{StreamExt, TryStreamExt, stream};
use glob::Pattern;
use serde::{Deserialize, Serialize};

use crate::fault::refuse;

/// Footers that are read at a time.
const FOOTERS: usize = 16;

/// The files of a table, in the order of their paths, all in one store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Files {
    /// The store, such as `file:///`.
    pub store: String,
    /// The files.
    pub files: Vec<FileRows>,
}

/// A file, as it was when its footer was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRows {
    /// The path in the store.
    pub path: String,
    /// In bytes.
    pub size: u64,
    /// When it was last changed, in microseconds since 1970.
    pub modified: i64,
    /// The number of the first row in the whole table.
    pub first: u64,
    /// The number of rows.
    pub rows: u64,
    /// Columns that are known to have nulls, with their number.
    pub nulls: Vec<(String, u64)>,
    /// Columns that the first file of the table does not have, and that are not read.
    pub more: Vec<String>,
}

impl Files {
    /// The files of paths, folders and patterns such as `data/*.parquet`, and their schema.
    ///
    /// # Errors
    /// A sentence if there is none in one of the places, a footer cannot be read, or schemas differ, with the names of file and column.
    pub async fn find(session: &dyn Session, places: &[String]) -> Result<(Self, SchemaRef)> {
        let mut found: Vec<(String, ObjectMeta)> = Vec::new();
        for place in places {
            found.extend(listed(session, place).await?);
        }
        found.sort_by(|(_, a), (_, b)| a.location.cmp(&b.location));
        let mut seen = HashSet::new();
        found.retain(|(store, file)| seen.insert(place_of(store, &file.location)));
        let [(store, _), ..] = found.as_slice() else {
            return refuse("there are no places of Parquet files");
        };
        if let Some((other, _)) = found.iter().find(|(other, _)| other != store) {
            return refuse(format!("the files of one table are in one store, not in {store} and {other}"));
        }
        let store = store.clone();
        let files = ListingTableUrl::parse(&store)?;
        let source = session.runtime_env().object_store(&files)?;
        // Paths of this machine are given from its root on.
        let root = if store.starts_with("file:") { "/" } else { "" };
        let footers = stream::iter(found).map(|(_, meta)| footer(root, source.clone(), meta));
        let footers: Vec<_> = footers.buffered(FOOTERS).try_collect().await?;
        let schema = common_schema(&footers)?;
        let mut first = 0;
        let numbered = footers.into_iter().map(|(file, own)| {
            let file = FileRows { first, more: more(&own, &schema), ..file };
            first += file.rows;
            file
        });
        let files = numbered.collect();
        Ok((Files { store, files }, schema))
    }

    /// The number of rows.
    pub fn rows(&self) -> u64 {
        self.files.iter().map(|file| file.rows).sum()
    }

    /// The number of the first row.
    pub fn start(&self) -> u64 {
        self.files.first().map_or(0, |file| file.first)
    }

    /// These files, whose first row has this number.
    pub(super) fn with_first_row(self, row: u64) -> Self {
        let start = self.start();
        let moved = |file: FileRows| FileRows { first: file.first - start + row, ..file };
        Files { files: self.files.into_iter().map(moved).collect(), ..self }
    }

    /// The file that has a row, and the number of the row in it.
    pub fn file_of(&self, row: u64) -> Option<(&FileRows, u64)> {
        let file = self.files.iter().find(|file| (file.first..file.first + file.rows).contains(&row))?;
        Some((file, row - file.first))
    }
}

/// Whether a pattern fits a path as in a shell: a star stands for part of a name, two for folders as well.
fn fits(pattern: &Pattern, path: &str) -> bool {
    let depth = |text: &str| text.matches('/').count();
    pattern.matches(path) && (pattern.as_str().contains("**") || depth(pattern.as_str()) == depth(path))
}

/// Where a file is, whatever links lead to it: the same for two paths to one file of this machine.
fn place_of(store: &str, location: &Path) -> String {
    let canonical = || {
        let path = LocalFileSystem::new().path_to_filesystem(location).ok()?;
        path.canonicalize().ok()?.to_str().map(str::to_owned)
    };
    let local = if store.starts_with("file:") { canonical() } else { None };
    local.unwrap_or_else(|| location.to_string())
}

/// The files of a place, each with its store: a file that is named itself, or all that end in `.parquet` in a folder and its folders, or of
/// a pattern. Names that begin with `.` or `_` are those of files in the making, and are left out as Spark does.
async fn listed(session: &dyn Session, place: &str) -> Result<Vec<(String, ObjectMeta)>> {
    let url = ListingTableUrl::parse(place)?;
    let store = session.runtime_env().object_store(&url)?;
    let named = match url.get_glob().is_none() && !url.is_collection() {
        true => store.head(url.prefix()).await.ok(),
        false => None,
    };
    let is_meant = |file: &ObjectMeta| {
        let inner = file.location.as_ref().strip_prefix(url.prefix().as_ref()).unwrap_or_default();
        let inner = inner.trim_start_matches('/');
        let visible = inner.split('/').all(|part| !part.starts_with(['.', '_']));
        visible && inner.ends_with(".parquet") && url.get_glob().as_ref().is_none_or(|glob| fits(glob, inner))
    };
    // From the store, since a session may remember an old list.
    let files: Vec<ObjectMeta> = match named {
        Some(file) => vec![file],
        None => {
            let all: Vec<ObjectMeta> =
                store.list(Some(url.prefix())).try_collect().await.map_err(|error| {
                    DataFusionError::from(error).context(format!("{place} cannot be listed"))
                })?;
            all.into_iter().filter(is_meant).collect()
        }
    };
    if files.is_empty() {
        return refuse(format!("there is no Parquet file in {place}"));
    }
    Ok(files.into_iter().map(|file| (url.object_store().as_str().to_owned(), file)).collect())
}

/// A file and its schema, by its footer.
async fn footer(root: &str, store: Arc<dyn ObjectStore>, meta: ObjectMeta) -> Result<(FileRows, Schema)> {
    let path = format!("{root}{}", meta.location);
    let context = |error: DataFusionError| error.context(format!("the footer of {path} cannot be read"));
    let footer = DFParquetMetadata::new(store.as_ref(), &meta).fetch_metadata().await.map_err(context)?;
    let about = footer.file_metadata();
    let schema = parquet_to_arrow_schema(about.schema_descr(), about.key_value_metadata())?;
    let rows = u64::try_from(about.num_rows());
    let rows =
        rows.map_err(|_| DataFusionError::Execution(format!("{path} says that it has fewer than 0 rows")))?;
    let nulls = nulls(&footer);
    let modified = meta.last_modified.timestamp_micros();
    Ok((FileRows { path, size: meta.size, modified, first: 0, rows, nulls, more: Vec::new() }, schema))
}

/// The columns of which the footer says that they have nulls: by the name of the column at the top.
fn nulls(footer: &ParquetMetaData) -> Vec<(String, u64)> {
    let mut nulls = std::collections::BTreeMap::<String, u64>::new();
    for column in footer.row_groups().iter().flat_map(|group| group.columns()) {
        let count = column.statistics().and_then(|statistics| statistics.null_count_opt()).unwrap_or(0);
        if let (Some(name), 1..) = (column.column_path().parts().first(), count) {
            *nulls.entry(name.clone()).or_default() += count;
        }
    }
    nulls.into_iter().collect()
}

/// The columns of a file that the table does not have.
fn more(own: &Schema, table: &Schema) -> Vec<String> {
    let names = own.fields().iter().map(|field| field.name());
    names.filter(|name| table.index_of(name).is_err()).cloned().collect()
}

/// The schema that all files have, without what their writers noted beside.
fn common_schema(files: &[(FileRows, Schema)]) -> Result<SchemaRef> {
    let plain = |schema: &Schema| {
        let fields = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
        Schema::new(fields.map(|field| field.with_metadata(Default::default())).collect::<Vec<_>>())
    };
    let [(first, schema), others @ ..] = files else { return Ok(Arc::new(Schema::empty())) };
    let schema = plain(schema);
    for (file, other) in others {
        check_same(&schema, &plain(other), &first.path, &file.path)?;
    }
    Ok(Arc::new(schema))
}

/// Rejects a file that lacks a column of the first one, or has it with another type. Columns may come in any order, and more of them.
fn check_same(schema: &Schema, other: &Schema, first: &str, path: &str) -> Result<()> {
    for field in schema.fields() {
        let (name, kind) = (field.name(), field.data_type());
        match other.field_with_name(name).map(|field| field.data_type()) {
            Err(_) => return refuse(format!("{path} has no column {name}, which {first} has")),
            Ok(own) if own != kind => {
                return refuse(format!("column {name} of {path} is of {own}, and that of {first} of {kind}"));
            }
            Ok(_) => {}
        }
    }
    Ok(())
}
