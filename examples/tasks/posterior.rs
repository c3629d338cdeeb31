//! Predictions with intervals: ridge regression as a Gaussian process.
//!
//!     cargo run --release --example task_posterior

use random_features::apply::Criterion;
use random_features::ndarray::{Array1, Array2, arr2, s};
use random_features::prelude::*;

fn main() -> Result<()> {
    let mut rng = rng(1);
    let x = Array2::from_shape_simple_fn((1000, 1), || 5.0 * rng.uniform());
    let noise = Array1::from_shape_simple_fn(1000, || 0.1 * rng.normal());
    let y = x.column(0).mapv(|x| f64::sin(2.0 * x)) + noise;

    // The lengthscale and λ have the largest evidence.
    let fit = RidgeSearch::gaussian(1, 100, 7)?.with_criterion(Criterion::LogEvidence).fit(&x, &y)?;
    let posterior = fit.posterior()?.with_landmarks(&x.slice(s![..50, ..]))?;
    println!("deviation of the noise {:.3}", posterior.noise()[0].sqrt());

    // There are data at 1 and at 4, and none at 20.
    let at = arr2(&[[1.0], [4.0], [20.0]]);
    let prediction = posterior.predict(&at)?;
    let (low, high) = prediction.interval(0.95)?;
    for i in 0..3 {
        let mean = prediction.mean[[i, 0]];
        println!("x = {:>2}: {mean:.2}, from {:.2} to {:.2}", at[[i, 0]], low[[i, 0]], high[[i, 0]]);
    }
    Ok(())
}

// Output:
// deviation of the noise 0.099
// x =  1: 0.90, from 0.71 to 1.09
// x =  4: 1.00, from 0.81 to 1.19
// x = 20: -1.00, from -5.41 to 3.41
