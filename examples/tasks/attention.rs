//! Softmax attention in linear time, beside exact attention.
//!
//!     cargo run --release --example task_attention

use random_features::apply::attention::ExactAttention;
use random_features::ndarray::Array4;
use random_features::prelude::*;

fn main() -> Result<()> {
    // Batch, heads, tokens, dimension.
    let mut rng = rng(1);
    let mut tokens = |n| Array4::from_shape_simple_fn((1, 4, n, 64), || 0.3 * rng.normal() as f32);
    let (q, k, v) = (tokens(1000), tokens(2000), tokens(2000));
    let heads = Heads::new(&q, &k, &v)?;

    // 256 positive features for each token of dimension 64, from seed 42.
    let attention = Attention::<f32>::favor_plus(64, 256, 42)?;
    let out = attention.bidirectional(&heads)?.output;

    let exact = ExactAttention::new().bidirectional(&heads)?.output;
    let error = (&out - &exact).pow2().sum() / exact.pow2().sum();
    println!("output {:?}, relative error {:.3}", out.dim(), error.sqrt());
    Ok(())
}

// Output:
// output (1, 4, 1000, 64), relative error 0.081
