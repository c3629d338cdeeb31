//! [`Piece`]: rows of a file that a partition reads.

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, UInt64Type};
use datafusion::common::Result;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::parquet::arrow::arrow_reader::{RowSelection, RowSelector};
use datafusion::physical_plan::ExecutionPlan;
use random_features::apply::RidgeStatistics;

use super::files::Files;
use crate::fault::refuse;

/// Fewer rows are not worth a partition of their own, unless a table says so.
pub const LEAST: u64 = 128 * CHUNK;
pub(super) const CHUNK: u64 = RidgeStatistics::<f64>::CHUNK;

/// Rows of a file, by their numbers in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The place of the file among those of the table.
    pub file: usize,
    /// The rows.
    pub rows: Range<u64>,
}

impl Piece {
    /// Which rows are read, of all rows of the file.
    pub fn selection(&self, rows: u64) -> RowSelection {
        let length = |range: Range<u64>| (range.end - range.start) as usize;
        RowSelection::from(vec![
            RowSelector::skip(length(0..self.rows.start)),
            RowSelector::select(length(self.rows.clone())),
            RowSelector::skip(length(self.rows.end..rows)),
        ])
    }
}

/// The rows of the whole table in at most so many parts, of about `least` rows or more, cut at multiples of a chunk; one part of no rows if there are none.
pub fn parts(files: &Files, most: usize, least: u64) -> Vec<Vec<Piece>> {
    let rows = files.rows();
    let count = (most.max(1) as u64).min(rows.div_ceil(least.max(CHUNK))).max(1);
    let cut = |k: u64| match k {
        k if k == count => rows,
        k => (u128::from(rows) * u128::from(k) / u128::from(count)) as u64 / CHUNK * CHUNK,
    };
    let start = files.start();
    (0..count).map(|k| pieces(files, start + cut(k)..start + cut(k + 1))).collect()
}

/// The pieces of files that hold a range of rows.
fn pieces(files: &Files, range: Range<u64>) -> Vec<Piece> {
    let files = files.files.iter().enumerate();
    let pieces = files.map(|(k, file)| {
        let start = range.start.max(file.first) - file.first;
        let end = range.end.min(file.first + file.rows).saturating_sub(file.first);
        Piece { file: k, rows: start..end }
    });
    pieces.filter(|piece| piece.rows.start < piece.rows.end).collect()
}

/// A plan that gives the pieces of each part, a partition of its own.
pub fn plan(parts: &[Vec<Piece>]) -> Result<Arc<dyn ExecutionPlan>> {
    let fields = ["file", "start", "end"].map(|name| Field::new(name, DataType::UInt64, false));
    let schema = Arc::new(Schema::new(fields.to_vec()));
    let batch = |pieces: &Vec<Piece>| {
        let numbers: [fn(&Piece) -> u64; 3] =
            [|piece| piece.file as u64, |piece| piece.rows.start, |piece| piece.rows.end];
        let column = |number| Arc::new(UInt64Array::from_iter_values(pieces.iter().map(number))) as ArrayRef;
        RecordBatch::try_new(schema.clone(), numbers.map(column).to_vec()).map(|batch| vec![batch])
    };
    let batches = parts.iter().map(batch).collect::<Result<Vec<_>, _>>()?;
    Ok(MemorySourceConfig::try_new_exec(&batches, schema.clone(), None)?)
}

/// The pieces that such a plan gives in a batch.
pub fn pieces_of(batch: &RecordBatch) -> Result<Vec<Piece>> {
    let column = |column: &ArrayRef| column.as_primitive_opt::<UInt64Type>().cloned();
    let columns: Option<Vec<UInt64Array>> = batch.columns().iter().map(column).collect();
    let Some([file, start, end]) = columns.as_deref() else {
        return refuse("a scan of numbered rows does not say which rows it reads");
    };
    let piece = |i: usize| match (usize::try_from(file.value(i)), start.value(i)..end.value(i)) {
        (Ok(file), rows) if rows.start < rows.end => Ok(Piece { file, rows }),
        _ => refuse("a scan of numbered rows reads rows that no file has"),
    };
    (0..batch.num_rows()).map(piece).collect()
}

#[cfg(test)]
mod tests {
    use super::super::files::FileRows;
    use super::*;

    fn files(rows: &[u64]) -> Files {
        let mut first = 0;
        let file = |rows: &u64| {
            let (path, nulls, more) = (String::new(), vec![], vec![]);
            let file = FileRows { path, size: 0, modified: 0, first, rows: *rows, nulls, more };
            first += rows;
            file
        };
        Files { store: String::new(), files: rows.iter().map(file).collect() }
    }

    #[test]
    fn parts_are_cut_at_chunks_and_hold_each_row_once() {
        for (sizes, most) in
            [(vec![1_000_000], 7), (vec![0, 3, 500_000, 1, 0, 400_001], 5), (vec![0], 3), (vec![10], 9)]
        {
            let files = files(&sizes).with_first_row(7 * CHUNK);
            let parts = parts(&files, most, CHUNK);
            assert_eq!(parts.len() as u64, files.rows().div_ceil(CHUNK).clamp(1, most as u64));
            let mut next = 7 * CHUNK;
            for part in &parts {
                assert_eq!(next % CHUNK, 0);
                for piece in part {
                    let file = &files.files[piece.file];
                    assert_eq!(file.first + piece.rows.start, next);
                    assert!(piece.rows.end <= file.rows);
                    next = file.first + piece.rows.end;
                }
            }
            assert_eq!(next, 7 * CHUNK + files.rows());
        }
    }
}
