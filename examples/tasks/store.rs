//! A map and a model are written to files and read back with the same bits.
//!
//!     cargo run --release --features serde --example task_store

use random_features::apply::Ridge;
use random_features::ndarray::{Array1, Array2};
use random_features::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut rng = rng(1);
    let x = Array2::from_shape_simple_fn((500, 2), || rng.normal());
    let y: Array1<f64> = x.rows().into_iter().map(|x| x[0] * x[1]).collect();
    let fit = RidgeSearch::gaussian(2, 64, 7)?.fit(&x, &y)?;

    // Any format of serde will do; binary ones are smaller.
    let (map, model) = (serde_json::to_string(fit.model().map())?, serde_json::to_string(fit.model())?);
    println!("{} kB for the map, {} for the model", map.len() / 1000, model.len() / 1000);
    let map: Map<f64> = serde_json::from_str(&map)?;
    let model: Ridge<f64> = serde_json::from_str(&model)?;
    println!("same map: {}", map.identity() == fit.model().map().identity());
    println!("same predictions: {}", model.predict(&x)? == fit.model().predict(&x)?);
    Ok(())
}

// Output:
// 3 kB for the map, 6 for the model
// same map: true
// same predictions: true
