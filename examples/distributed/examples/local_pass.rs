//! The pass without an engine that figures are compared with: files are read one after the other, and summed on all cores.
//!
//!     cargo run --release --example local_pass -- FOLDER RECIPE
//!
//! RECIPE is a file as `rf plan --out` writes it.

use std::error::Error;
use std::fs::File;
use std::path::PathBuf;
use std::time::Instant;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Float32Type;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use random_features::Points;
use random_features::apply::RidgeStatistics;
use random_features::ndarray::{ArrayView1, Axis};
use random_features_distributed::map::MapSpec;

/// Rows of a batch.
const BATCH: usize = 65_536;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("local_pass FOLDER RECIPE")?);
    let recipe = arguments.next().ok_or("local_pass FOLDER RECIPE")?;
    let map = MapSpec::read(&std::fs::read_to_string(recipe)?)?;
    let mut statistics = RidgeStatistics::new(map.draw::<f32>()?, 1)?;
    if let Some(inputs) = map.standardisation {
        statistics = statistics.with_standardisation(inputs)?;
    }
    let start = Instant::now();
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "parquet"));
    files.sort();
    for file in files {
        let reader =
            ParquetRecordBatchReaderBuilder::try_new(File::open(file)?)?.with_batch_size(BATCH).build()?;
        for batch in reader {
            let batch = batch?;
            let (y, x) = batch.columns().split_last().ok_or("no columns")?;
            let targets = ArrayView1::from(y.as_primitive::<Float32Type>().values().as_ref());
            statistics.update(Points::of_columns(x)?, targets.insert_axis(Axis(1)))?;
        }
    }
    let (rows, seconds) = (statistics.rows(), start.elapsed().as_secs_f64());
    println!("{rows} rows in {seconds:.1} s, {:.0} rows a second", rows as f64 / seconds);
    Ok(())
}
