//! Sums over rows as aggregates: [ridge regression](ridge), [PCA](pca), [second moments](moments), and a [sample](sample) with statistics.
//!
//! In SQL, with `recipe` the JSON of a [`Recipe`](random_features::map::Recipe) or of a [`MapSpec`](crate::map::MapSpec), and
//! points `x` as columns of numbers and Booleans, or one `FixedSizeList` of floats:
//!
//! | function | sums |
//! |---|---|
//! | `ridge(recipe, seed, y, x…)` | those of a ridge regression on a number |
//! | `ridge_classes(recipe, seed, classes, label, x…)` | those of one on labels, `classes` a JSON list of their names |
//! | `pca(recipe, seed, x…)` | those of a kernel PCA |
//! | `sample(capacity, seed, x…)` | the statistics of all rows, and a random sample of them |
//! | `moments(x…)` | means, second moments and statistics of all rows |
//! | `merge_sums(state)` | those of states of any of these |
//!
//! Sums are of `f32` if points and target are all `Float32`, and of `f64` otherwise: no value is rounded to fewer digits. Labels are
//! text, whole numbers, Booleans or dictionaries (compared as text), floats or decimals (as numbers). `ORDER BY` has no effect. None is a
//! window function. The result is a [`State`], as bytes.
//!
//! # Weights
//! `ridge_weighted`, `ridge_classes_weighted`, `pca_weighted` and `sample_weighted` take a column before the target or the points that
//! says how often each row counts, a number from 0 on: `ridge_weighted(recipe, seed, w, y, x…)`. The statistics of a sample are
//! weighted, and its rows are drawn from those of positive weight alike.
//!
//! # Numbers of rows
//! With `_rows` at the end of their names (`ridge_rows`, `ridge_weighted_rows`), all but `merge_sums` take the number of each row
//! behind the constants, as [tables of numbered rows](crate::table) have it. Their states record which rows they hold: adding a row
//! twice is an error. Where partitions are cut at multiples of
//! [`CHUNK`](random_features::apply::RidgeStatistics::CHUNK) rows, their bits do not depend on partitions, also under a `WHERE` or a
//! `GROUP BY`. The other functions number rows from an offset drawn at random for each partition, and say that [rows are
//! unknown](State::knows_rows): a partition that is computed twice is not noticed, and sums agree to rounding.
//!
//! # Parts
//! Under a `GROUP BY` there is a state for each part of the rows. `GROUP BY fold(5, subject)` makes five folds, and the rows of a
//! subject are in one of them; [`Criterion::folds_of`](random_features::apply::Criterion::folds_of) chooses λ by such states.
//!
//! # What travels
//! A state: the sums in the library's stored form, with its checksum, in one value of type `LargeBinary` that has a
//! checksum of its own. Frequencies do not travel. [`state_parts`](crate::scalar) cuts it for messages of limited size.

mod accumulator;
mod function;
mod kept;
mod kind;
mod merge;
mod moments;
mod numbering;
mod pca;
mod ridge;
mod sample;
mod state;

pub(crate) use accumulator::FAR;
pub use function::SumsFunction;
pub use kind::{Constants, Kind, RowColumns};
pub use merge::MergeSums;
pub use state::State;

use datafusion::common::Result;
use datafusion::logical_expr::AggregateUDF;

use crate::columns::Columns;

/// What is summed over numbered rows.
trait Sums: std::fmt::Debug + Send + Sync {
    /// Adds rows of these numbers, which ascend.
    fn take(&mut self, numbers: &[u64], rows: &Columns) -> Result<()>;

    /// Adds sums in their stored form.
    fn join(&mut self, stored: &[u8]) -> Result<()>;

    /// The stored form.
    fn stored(&self) -> Result<Vec<u8>>;

    /// What is held, in bytes.
    fn bytes(&self) -> usize;
}

/// The aggregates.
pub fn functions() -> Vec<AggregateUDF> {
    let weighted = Kind::ALL.into_iter().filter(|kind| kind.takes_weights()).map(|kind| (kind, true));
    let kinds = Kind::ALL.into_iter().map(|kind| (kind, false)).chain(weighted);
    let sums = kinds.flat_map(|(kind, weights)| {
        [false, true].map(|numbers| SumsFunction::new(kind, RowColumns { numbers, weights }))
    });
    sums.map(AggregateUDF::from).chain([AggregateUDF::from(MergeSums::new())]).collect()
}

/// Bytes of what the library stores.
fn stored<V: serde::Serialize>(value: &V) -> Result<Vec<u8>> {
    postcard::to_stdvec(value).map_err(crate::fault::external)
}

/// What was stored.
fn read<V: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<V> {
    postcard::from_bytes(bytes).map_err(|error| {
        datafusion::common::DataFusionError::Execution(format!("a state cannot be read: {error}"))
    })
}
