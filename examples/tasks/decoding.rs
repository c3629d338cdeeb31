//! Causal attention token by token: the state does not grow with the text.
//!
//!     cargo run --release --example task_decoding

use random_features::ndarray::{Array3, Array4};
use random_features::prelude::*;

fn main() -> Result<()> {
    let (batch, heads, d) = (1, 4, 64);
    let mut rng = rng(1);
    let prompt = Array4::from_shape_simple_fn((batch, heads, 1000, d), || rng.normal() as f32);
    let attention = Attention::<f32>::favor_plus(d, 256, 42)?;

    // One state for each sequence and head of keys; d is also the dimension of the values.
    let mut state = attention.state(batch, heads, d)?;
    let read = state.prefill(&Heads::new(&prompt, &prompt, &prompt)?)?.output;
    println!("outputs of the prompt: {:?}; tokens read: {:?}", read.dim(), state.lengths());
    for _ in 0..3 {
        // A model would make the next query, key and value from the last output.
        let token = Array3::from_shape_simple_fn((batch, heads, d), || rng.normal() as f32);
        let out = state.step(&token, &token, &token)?.output;
        println!("outputs of a token: {:?}; tokens read: {:?}", out.dim(), state.lengths());
    }
    Ok(())
}

// Output:
// outputs of the prompt: (1, 4, 1000, 64); tokens read: [1000]
// outputs of a token: (1, 4, 64); tokens read: [1001]
// outputs of a token: (1, 4, 64); tokens read: [1002]
// outputs of a token: (1, 4, 64); tokens read: [1003]
