//! One regression of rows on two machines, which exchange sums whose size does not depend on the number of rows.
//!
//!     cargo run --release --features serde --example task_two_machines

use random_features::apply::RidgeStatistics;
use random_features::ndarray::{Array1, Array2, arr2};
use random_features::prelude::*;
use random_features::reduce::GramSums;

/// The map, which every machine draws from the same seed.
fn map() -> Result<Map<f64>> {
    Map::for_kernel(Gaussian::new(1.0)?, 2, 64, 7)
}

/// The sums of 8192 rows, the first of which is row `first` of the whole data set.
fn machine(first: u64) -> Result<String, Box<dyn std::error::Error>> {
    let mut rng = rng(first);
    let x = Array2::from_shape_simple_fn((8192, 2), || rng.normal());
    let y: Array1<f64> = x.rows().into_iter().map(|x| x[0] * x[1]).collect();
    let mut part = RidgeStatistics::new(map()?, 1)?.with_first_row(first)?;
    part.update(&x, &y)?;
    Ok(serde_json::to_string(part.sums())?)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut sums: GramSums<f64> = serde_json::from_str(&machine(0)?)?;
    sums.merge(&serde_json::from_str(&machine(8192)?)?)?;
    let all = RidgeStatistics::of_sums(map()?, sums)?;
    let model = all.solve(1e-6)?;
    println!("{} rows", all.rows());
    println!("{:.3} for 0.5 × 0.6", model.predict(&arr2(&[[0.5, 0.6]]))?[[0, 0]]);
    Ok(())
}

// Output:
// 16384 rows
// 0.300 for 0.5 × 0.6
