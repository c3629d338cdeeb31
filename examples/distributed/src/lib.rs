//! Fits of random features over Parquet, on [DataFusion](datafusion) and, over several machines, on Ballista.
//!
//! Ridge regression and kernel PCA need sums over rows of products of features, and such sums merge
//! ([`random_features::reduce`]). Here they are aggregates of a query engine, which does everything else: reading, planning,
//! memory, the network and retries.
//!
//! - [`register`] adds the [aggregates](sums) and the [scalar functions](scalar) to a session, for SQL and data frames.
//! - [`table::RowTable`] is a table over Parquet files whose rows are numbered, so that sums know which rows they hold: a row
//!   counted twice is an error, and results have the bits of a pass over all rows in one process.
//! - [`fit`] does both in a call, also for [parts](division) of the rows, and [`score`] says how good predictions are. The program
//!   `rf` is that from the command line.
//! - `cluster` takes fits to several machines. The feature of this name, which is on by default, adds it.
//!
//! # Example
//! ```
//! use random_features::frequency::Orthogonal;
//! use random_features::recipe::Draw;
//! use random_features::map::Recipe;
//! use random_features::recipe::PlainRecipe;
//! use random_features::{Trigonometric, kernel::Gaussian};
//! use random_features_distributed::{fit, generate, map::MapSpec, session, table::RowTable};
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! # let folder = tempfile::tempdir()?;
//! # generate::Generator { rows: 2000, columns: 3, files: 2, ..Default::default() }.write(folder.path())?;
//! # let files = format!("{}/*.parquet", folder.path().display());
//! let omega = Draw::new(3, 64, Orthogonal);
//! let recipe = Recipe::Plain(PlainRecipe::new(Trigonometric, omega, Gaussian::new(2.0)?));
//! let map = MapSpec::new(recipe, 42);
//! let context = session::local();    //  or cluster::session::ballista("127.0.0.1:50050", 16).await?
//! let table = RowTable::of_files(&context, &[files]).await?;
//! let task = fit::Task::ridge(map.clone(), "y", ["x0", "x1", "x2"]);
//! let state = fit::run(&context, table, &task).await?;
//! let model = state.ridge::<f32>(&map)?.solve(1e-3)?;
//! println!("{} rows, intercept {}", state.count()?, model.intercepts()[0]);
//! # Ok::<(), Box<dyn std::error::Error>>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(feature = "cluster")]
pub mod cluster;
pub mod division;
pub mod fit;
pub mod generate;
pub mod labels;
pub mod map;
pub mod model;
pub mod scalar;
pub mod score;
pub mod session;
pub mod sums;
pub mod table;

pub mod columns;
pub mod fault;

pub use session::register;
