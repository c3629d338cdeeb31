//! What tests share: files of a known function, recipes, and the local pass that results are compared with.

use std::path::Path;

use datafusion::catalog::TableProvider;
use datafusion::prelude::SessionContext;
use random_features::Trigonometric;
use random_features::apply::RidgeStatistics;
use random_features::apply::pca::PcaStatistics;
use random_features::frequency::{Draw, Orthogonal};
use random_features::kernel::Gaussian;
use random_features::map::{PlainRecipe, Recipe};
use random_features::ndarray::{Array2, Axis};
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
