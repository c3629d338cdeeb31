//! Tables over Parquet files whose rows are numbered.
//!
//! An aggregate sees values, and not where they come from. A [`RowTable`] has beside the columns of its files `_file`, the path of
//! the file of a row, `_first_row`, the number of that file's first row, and `_row`, the number of the row over all files, in the order of their
//! paths: numbers that follow from the footers alone. A partition of a scan is a range of such rows, from one multiple of
//! [`CHUNK`](random_features::apply::RidgeStatistics::CHUNK) to another, whatever the files are. Numbered rows therefore have
//! sums with the bits of one pass over all rows, for any number of files, partitions and machines.
//!
//! A file that has changed since its footer was read, or holds another number of rows than it said, is an error, and so is a
//! page whose checksum is wrong, where its writer gave it one.

mod exec;
mod failpoint;
mod files;
mod pieces;
mod provider;
mod reader;

pub use exec::RowScan;
pub use failpoint::Failpoint;
pub use files::{FileRows, Files};
pub use pieces::Piece;
pub use provider::{FILE, FIRST_ROW, ROW, RowTable};
