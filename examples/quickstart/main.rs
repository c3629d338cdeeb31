//! A plan for your points, its map, and estimates of the kernel, whose error is known in advance.
//!
//!     cargo run --release --example quickstart

use random_features::ndarray::Array2;
use random_features::prelude::*;

fn main() -> Result<()> {
    // Queries and keys in ℝ¹⁶, one in each row, of norms of some 0.6.
    let mut rng = rng(1);
    let mut points = |n| Array2::from_shape_simple_fn((n, 16), || 0.15 * rng.normal() as f32);
    let (queries, keys) = (points(1000), points(500));

    let kernel = Softmax::default(); // exp(x·y)
    let plan = Planner::new(&queries, &keys)?.with_kernel(kernel.clone()).with_max_features(512).plan()?;
    println!("{plan}");
    let best = plan.best()?;
    let map: Map<f32> = best.recipe.draw(42)?; // frequencies from the seed 42

    // Inner products of features estimate the kernel.
    let gram = map.gram(&queries, &keys)?;
    println!("{:>10}{:>10}{:>18}", "exact", "estimate", "relative error");
    for i in 0..5 {
        let exact = kernel.value(&queries.row(i), &keys.row(i))?;
        println!("{exact:>10.4}{:>10.4}{:>18.5}", gram[[i, i]], gram[[i, i]] / exact - 1.0);
    }
    println!("root mean squares to expect: {:.5} in the median", best.relative_error());
    Ok(())
}
