//! The flow in 30 lines: draw frequencies, make a map, and estimate kernel values, whose error is known in advance.
//!
//!     cargo run --release --example quickstart

use random_features::frequency::{Coupling, Orthogonal};
use random_features::kernel::{Kernel, Softmax};
use random_features::ndarray::Array2;
use random_features::{Positive, Result, Side};

fn main() -> Result<()> {
    // Queries and keys in ℝ¹⁶, one in each row, of norms below 1.
    let points = |n, step| Array2::from_shape_fn((n, 16), |(i, k)| 0.2 * ((i * 7 + k * step) as f32).sin());
    let (queries, keys) = (points(1000, 3), points(500, 5));

    let omega = Orthogonal.draw(16, 512, 42)?; // 512 frequencies from the seed 42
    let map = Positive.softmax(omega)?; // features for exp(x·y)
    let q = map.features(Side::X, &queries)?;
    let k = map.features(Side::Y, &keys)?;
    let gram = q.gram(&k)?; // 1000 × 500 estimates

    let kernel = Softmax::default();
    println!("{:>10}{:>10}{:>12}{:>12}", "exact", "estimate", "error", "expected");
    for i in 0..5 {
        let (x, y) = (queries.row(i), keys.row(i));
        let (exact, variance) = (kernel.value(&x, &y)?, map.log_variance(&x, &y)?);
        let expected = variance.map_or("unknown".into(), |log| format!("{:.4}", (0.5 * log).exp()));
        println!("{exact:>10.4}{:>10.4}{:>12.4}{expected:>12}", gram[[i, i]], gram[[i, i]] - exact);
    }
    Ok(())
}
