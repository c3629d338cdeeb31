//! Training steps of a classifier of 20,000 classes, of which each step looks at few.
//!
//!     cargo run --release --example task_sampled_softmax

use random_features::apply::softmax_sampling::{Proposal, SampledSoftmax};
use random_features::ndarray::Array2;
use random_features::prelude::*;

fn main() -> Result<()> {
    let mut rng = rng(1);
    let vectors = Array2::from_shape_simple_fn((20_000, 16), || 0.5 * rng.normal() as f32);
    let h = Array2::from_shape_simple_fn((64, 16), || 0.5 * rng.normal() as f32);
    let classes: Vec<usize> = (0..64).collect();

    // Classes are drawn about in proportion to exp(h·c), by positive features of the softmax kernel.
    let map = Map::for_kernel(Softmax::default(), 16, 64, 7)?;
    let mut layer = SampledSoftmax::new(Proposal::new(map), &vectors)?;
    for step in 0..5 {
        // 40 draws for each point. The seed must differ from step to step.
        let loss = layer.loss(&h, &classes, 40, step)?;
        println!("step {step}: loss {:.3}, {} classes change", loss.mean(), loss.classes().len());
        layer.step(&loss, 1.0)?; // loss.point_gradients() are for the model that makes h
    }
    Ok(())
}

// Output:
// step 0: loss 10.411, 2323 classes change
// step 1: loss 10.378, 2333 classes change
// step 2: loss 10.337, 2311 classes change
// step 3: loss 10.217, 2344 classes change
// step 4: loss 10.176, 2345 classes change
