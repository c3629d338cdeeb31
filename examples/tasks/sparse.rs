//! Ridge regression of sparse rows, of which only the stored entries are read.
//!
//!     cargo run --release --features sparse --example task_sparse

use random_features::apply::RidgeStatistics;
use random_features::ndarray::Array1;
use random_features::prelude::*;
use random_features::sprs::CsMat;

fn main() -> Result<()> {
    // 3000 rows of 500 columns, five entries in each row.
    let mut rng = rng(1);
    let starts = (0..=3000).map(|i| 5 * i).collect();
    let columns = (0..15_000).map(|i| 100 * (i % 5) + (100.0 * rng.uniform()) as usize).collect();
    let entries: Vec<f32> = (0..15_000).map(|_| rng.normal() as f32).collect();
    let y: Array1<f32> = entries.chunks(5).map(|row| row[0] * row[1] + row[2]).collect();
    let x = CsMat::new((3000, 500), starts, columns, entries);

    let map: Map<f32> = Map::for_kernel(Gaussian::new(2.0)?, 500, 512, 7)?;
    let mut sums = RidgeStatistics::new(map, 1)?;
    sums.update(&x, &y)?;
    let model = sums.solve(1e-2)?;
    let errors = model.predict_single(&x)? - &y;
    println!("{} entries of {}", x.nnz(), x.rows() * x.cols());
    println!("variance {:.3} of the targets, {:.3} of the errors", y.var(0.0), errors.var(0.0));
    Ok(())
}

// Output:
// 15000 entries of 1500000
// variance 2.078 of the targets, 0.763 of the errors
