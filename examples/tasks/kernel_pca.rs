//! Kernel principal components of rows that are read in batches.
//!
//!     cargo run --release --example task_kernel_pca

use random_features::apply::pca::PcaStatistics;
use random_features::ndarray::Array2;
use random_features::prelude::*;

fn main() -> Result<()> {
    // The first component of a Gaussian kernel on points of the plane.
    let map: Map<f32> = Map::for_kernel(Gaussian::new(1.0)?, 2, 256, 7)?;
    let mut sums = PcaStatistics::new(map)?;
    for batch in 0..5 {
        let mut rng = rng(batch);
        let x = Array2::from_shape_simple_fn((4096, 2), || rng.normal() as f32);
        sums.update(&x)?;
    }
    let pca = sums.components(5)?;
    println!("rows {}, shares of the variance {:.3?}", sums.rows(), pca.explained_variance_ratio());

    let x = Array2::from_shape_fn((4, 2), |(i, _)| i as f32 / 2.0 - 0.75);
    println!("{:.3}", pca.transform(&x)?);
    Ok(())
}

// Output:
// rows 20480, shares of the variance [0.227, 0.215, 0.152, 0.091, 0.079]
// [[-0.582, 0.316, 0.038, 0.171, 0.257],
//  [-0.262, 0.141, 0.489, 0.044, 0.070],
//  [0.265, -0.157, 0.485, 0.048, 0.072],
//  [0.580, -0.321, 0.030, 0.177, 0.261]]
