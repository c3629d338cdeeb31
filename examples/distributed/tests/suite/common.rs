//! What tests share: files of a known function, recipes, and the local pass that results are compared with.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Float32Array, RecordBatch};
use datafusion::catalog::TableProvider;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::prelude::SessionContext;
use random_features::Trigonometric;
use random_features::apply::RidgeStatistics;
use random_features::apply::pca::PcaStatistics;
use random_features::frequency::Orthogonal;
use random_features::kernel::Gaussian;
use random_features::map::Recipe;
use random_features::ndarray::{Array2, Axis};
use random_features::recipe::{Draw, PlainRecipe};
use random_features::reduce::GramSums;
use random_features_distributed::generate::Generator;
use random_features_distributed::map::MapSpec;
use random_features_distributed::session;
use random_features_distributed::table::RowTable;

/// A map of so many features.
pub fn spec(dim: usize, features: usize) -> MapSpec {
    let draw = Draw::new(dim, features / 2, Orthogonal);
    MapSpec::new(Recipe::Plain(PlainRecipe::new(Trigonometric, draw, Gaussian::new(1.5).unwrap())), 42)
}

/// The rows of a chunk: the least that tests cut partitions of.
pub const CHUNK: u64 = RidgeStatistics::<f32>::CHUNK;

/// The table of a folder's files, in partitions as small as can be.
pub async fn table_of(context: &SessionContext, folder: &Path) -> RowTable {
    RowTable::of_files(context, &[pattern(folder)]).await.unwrap().with_least_rows(CHUNK)
}

/// The partitions in which a table is read, if so many are asked for.
pub async fn partitions(table: &dyn TableProvider, asked: usize) -> usize {
    let state = session::local_with(asked).state();
    let scan = table.scan(&state, None, &[], None).await.unwrap();
    scan.properties().output_partitioning().partition_count()
}

/// A pattern of a folder's files.
pub fn pattern(folder: &Path) -> String {
    format!("{}/*.parquet", folder.display())
}

/// The points and targets that a generator writes.
pub fn data(generator: &Generator) -> (Array2<f32>, Array2<f32>) {
    let (x, y) = generator.points(0, generator.rows);
    (x, Array2::from_shape_vec((y.len(), 1), y).unwrap())
}

/// The sums of one pass over all rows in memory.
pub fn local_ridge(generator: &Generator, map: &MapSpec) -> GramSums<f32> {
    let (x, y) = data(generator);
    let mut statistics = RidgeStatistics::new(map.draw::<f32>().unwrap(), 1).unwrap();
    statistics.update(&x, &y).unwrap();
    statistics.into_sums()
}

/// As [`local_ridge`], of a PCA.
pub fn local_pca(generator: &Generator, map: &MapSpec) -> GramSums<f32> {
    let (x, _) = data(generator);
    let mut statistics = PcaStatistics::new(map.draw::<f32>().unwrap()).unwrap();
    statistics.update(&x).unwrap();
    statistics.into_sums()
}

/// The bytes of sums: equal where all bits are.
pub fn bytes<V: serde::Serialize>(sums: &V) -> Vec<u8> {
    postcard::to_stdvec(sums).unwrap()
}

/// The largest difference of products of features, relative to the largest.
pub fn difference(a: &GramSums<f32>, b: &GramSums<f32>, map: &MapSpec) -> f64 {
    let products = |sums: &GramSums<f32>| {
        RidgeStatistics::of_sums(map.draw::<f32>().unwrap(), sums.clone()).unwrap().products().unwrap()
    };
    let (a, b) = (products(a), products(b));
    let largest = a.iter().fold(0.0f64, |largest, v| largest.max(v.abs()));
    a.axis_iter(Axis(0)).zip(b.axis_iter(Axis(0))).fold(0.0f64, |most, (a, b)| {
        a.iter().zip(b).fold(most, |most, (a, b)| most.max((a - b).abs() / largest))
    })
}

/// What `rf` does in a folder.
pub fn rf(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rf")).args(arguments).current_dir(folder).output().unwrap()
}

/// What was printed.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Exit code 2, and what standard error must name.
pub fn refused(folder: &Path, arguments: &[&str], names: &[&str]) {
    let output = rf(folder, arguments);
    let why = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {why}");
    for name in names {
        assert!(why.contains(name), "{arguments:?} should name {name}: {why}");
    }
    assert!(!why.contains("panicked"), "{why}");
}

/// A Parquet file of columns.
pub fn write(path: &Path, columns: Vec<(&str, ArrayRef)>) {
    write_with(path, columns, WriterProperties::default());
}

/// A Parquet file with options.
pub fn write_with(path: &Path, columns: Vec<(&str, ArrayRef)>, properties: WriterProperties) {
    let batch =
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, c)| (n, c, true))).unwrap();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// A column of `f32`.
pub fn floats(values: impl IntoIterator<Item = f32>) -> ArrayRef {
    Arc::new(Float32Array::from_iter_values(values))
}

/// The names of a folder's files.
pub fn names(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        files.map(|file| file.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
