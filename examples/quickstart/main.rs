//! The flow in 30 lines: plan features for data, draw their map, and estimate kernel values, whose error is known in advance.
//!
//!     cargo run --release --example quickstart

use random_features::kernel::{Kernel, Softmax};
use random_features::ndarray::Array2;
use random_features::planner::Planner;
use random_features::{Map, Result, Side};

fn main() -> Result<()> {
    // Queries and keys in ℝ¹⁶, one in each row, of norms below 1.
    let points = |n, step| Array2::from_shape_fn((n, 16), |(i, k)| 0.2 * ((i * 7 + k * step) as f32).sin());
    let (queries, keys) = (points(1000, 3), points(500, 5));

    let kernel = Softmax::default(); // exp(x·y)
    let plan = Planner::new(&queries, &keys)?.with_kernel(kernel.clone()).with_max_features(512).plan()?;
    println!("{plan}");
    let best = plan.best()?;
    let map: Map<f32> = best.recipe.draw(42)?; // frequencies from the seed 42
    let q = map.features(Side::X, &queries)?;
    let k = map.features(Side::Y, &keys)?;
    let gram = q.gram(&k)?; // 1000 × 500 estimates

    println!("{:>10}{:>10}{:>18}", "exact", "estimate", "relative error");
    for i in 0..5 {
        let exact = kernel.value(&queries.row(i), &keys.row(i))?;
        println!("{exact:>10.4}{:>10.4}{:>18.5}", gram[[i, i]], gram[[i, i]] / exact - 1.0);
    }
    println!("root mean squares to expect: {:.5} in the median", best.relative_error());
    Ok(())
}
