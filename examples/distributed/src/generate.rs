//! [`Generator`]: Parquet files of any size, of a known function.

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, FixedSizeListArray, Float32Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::Result;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;
use ndarray::Array2;

use crate::fault::{external, refuse};

/// Rows that are made at a time.
const BATCH: u64 = 8192;
/// What is added to the function's values: uniform noise of this width.
const NOISE: f32 = 0.2;

/// Files of points with uniform coordinates in [−1, 1) and targets f(x) = Σₖ sin(3 xₖ + k) / √d, with noise. A row depends on its
/// number and the seed alone: files of other sizes hold the same rows.
#[derive(Clone, Debug)]
pub struct Generator {
    /// All rows.
    pub rows: u64,
    /// d: the columns `x0`, `x1`, ….
    pub columns: usize,
    /// How many files.
    pub files: usize,
    /// Rows of a row group at most.
    pub group: usize,
    /// One column `x` of lists, instead of a column for each coordinate.
    pub list: bool,
    /// Rows of each file in units of others': file k has a share of k + 1.
    pub skewed: bool,
    /// The seed.
    pub seed: u64,
}

impl Default for Generator {
    /// 10 000 rows of 4 columns in one file.
    fn default() -> Self {
        Generator { rows: 10_000, columns: 4, files: 1, group: 1 << 18, list: false, skewed: false, seed: 1 }
    }
}

impl Generator {
    /// The names of the columns of the points.
    pub fn names(&self) -> Vec<String> {
        if self.list { vec!["x".into()] } else { (0..self.columns).map(|k| format!("x{k}")).collect() }
    }

    /// The rows of each file.
    pub fn sizes(&self) -> Vec<u64> {
        let files = self.files as u64;
        let total: u64 = if self.skewed { files * (files + 1) / 2 } else { files };
        let before = |k: u64| if self.skewed { k * (k + 1) / 2 } else { k };
        let cut = |k: u64| (u128::from(self.rows) * u128::from(before(k)) / u128::from(total.max(1))) as u64;
        (0..files).map(|k| cut(k + 1) - cut(k)).collect()
    }

    /// Writes the files into a folder, which is made. Memory does not depend on their size.
    ///
    /// # Errors
    /// If a size is 0, the folder has Parquet files already, which would be read with the new ones, or a file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<()> {
        self.write_while(folder, || true)
    }

    /// Writes the files into a folder while `go_on` is true. Files that are complete stay.
    ///
    /// # Errors
    /// As [`write`](Generator::write); a sentence if `go_on` is false.
    pub fn write_while(&self, folder: &Path, go_on: impl Fn() -> bool) -> Result<()> {
        if self.columns == 0 || self.files == 0 || self.group == 0 {
            return refuse("there is at least a column, a file, and a row in a row group");
        }
        std::fs::create_dir_all(folder).map_err(external)?;
        for entry in std::fs::read_dir(folder).map_err(external)? {
            let path = entry.map_err(external)?.path();
            if path.extension().is_some_and(|ending| ending == "parquet") {
                return refuse(format!("{} is there already: choose another folder", path.display()));
            }
        }
        let mut first = 0;
        for (k, rows) in self.sizes().into_iter().enumerate() {
            self.write_file_while(&folder.join(format!("part-{k:05}.parquet")), first, rows, &go_on)?;
            first += rows;
        }
        Ok(())
    }

    /// Writes a file of rows from `first` on.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_file(&self, path: &Path, first: u64, rows: u64) -> Result<()> {
        self.write_file_while(path, first, rows, &|| true)
    }

    fn write_file_while(&self, path: &Path, first: u64, rows: u64, go_on: &impl Fn() -> bool) -> Result<()> {
        // Until it is whole a file has a name that no table reads.
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let partial = path.with_file_name(format!(".{name}.partial"));
        let written = self.write_rows(&partial, first..first + rows, go_on);
        let written = written.and_then(|()| std::fs::rename(&partial, path).map_err(external));
        if written.is_err() {
            let _ = std::fs::remove_file(&partial);
        }
        written
    }

    fn write_rows(&self, path: &Path, rows: Range<u64>, go_on: impl Fn() -> bool) -> Result<()> {
        let file = File::create(path).map_err(external)?;
        let options = WriterProperties::builder().set_max_row_group_row_count(Some(self.group)).build();
        let mut writer = ArrowWriter::try_new(file, self.schema(), Some(options))?;
        let mut next = rows.start;
        while next < rows.end {
            if !go_on() {
                return refuse("the files were not completed");
            }
            let count = BATCH.min(rows.end - next);
            writer.write(&self.batch(next, count)?)?;
            next += count;
        }
        writer.close()?;
        Ok(())
    }

    fn schema(&self) -> Arc<Schema> {
        let item = || Arc::new(Field::new_list_field(DataType::Float32, false));
        let list = |size: usize| DataType::FixedSizeList(item(), i32::try_from(size).unwrap_or(i32::MAX));
        let kind = if self.list { list(self.columns) } else { DataType::Float32 };
        let names = self.names().into_iter();
        let mut fields: Vec<Field> = names.map(|name| Field::new(name, kind.clone(), false)).collect();
        fields.push(Field::new("y", DataType::Float32, false));
        Arc::new(Schema::new(fields))
    }

    /// Rows from `first` on.
    ///
    /// # Errors
    /// If there is no memory for them.
    pub fn batch(&self, first: u64, rows: u64) -> Result<RecordBatch> {
        let (x, y) = self.points(first, rows);
        let mut columns: Vec<ArrayRef> = if self.list {
            let values = Float32Array::from(x.into_raw_vec_and_offset().0);
            let item = Arc::new(Field::new_list_field(DataType::Float32, false));
            let size = i32::try_from(self.columns).map_err(external)?;
            vec![Arc::new(FixedSizeListArray::try_new(item, size, Arc::new(values), None)?)]
        } else {
            x.columns()
                .into_iter()
                .map(|column| Arc::new(Float32Array::from(column.to_vec())) as ArrayRef)
                .collect()
        };
        columns.push(Arc::new(Float32Array::from(y)));
        Ok(RecordBatch::try_new(self.schema(), columns)?)
    }

    /// The points and the targets of rows from `first` on.
    pub fn points(&self, first: u64, rows: u64) -> (Array2<f32>, Vec<f32>) {
        let mut x = Array2::zeros((rows as usize, self.columns));
        let mut y = Vec::with_capacity(rows as usize);
        for (mut point, row) in x.rows_mut().into_iter().zip(first..) {
            let mut numbers = Numbers::of(self.seed, row);
            point.iter_mut().for_each(|v| *v = 2.0 * numbers.next() - 1.0);
            let value: f32 = point.iter().zip(0u16..).map(|(v, k)| (3.0 * v + f32::from(k)).sin()).sum();
            y.push(value / (self.columns as f32).sqrt() + NOISE * (numbers.next() - 0.5));
        }
        (x, y)
    }
}

/// Uniform numbers that depend on a seed and a row: SplitMix64.
struct Numbers(u64);

impl Numbers {
    fn of(seed: u64, row: u64) -> Self {
        Numbers(mixed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ mixed(row)))
    }

    /// In [0, 1).
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        (mixed(self.0) >> 40) as f32 / (1u64 << 24) as f32
    }
}

fn mixed(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
