//! Which features suit these points? A plan ranks maps by their expected errors.
//!
//!     cargo run --release --example task_plan

use random_features::ndarray::Array2;
use random_features::planner::Measure;
use random_features::prelude::*;

fn main() -> Result<()> {
    let mut rng = rng(1);
    let x = Array2::from_shape_simple_fn((1000, 4), || rng.normal());

    // For the Gaussian kernel, whose lengthscale is the median distance of two points.
    let plan = Planner::of_one_set(&x)?.with_max_features(256).plan()?;
    plan.to_string().lines().take(8).for_each(|line| println!("{line}"));
    let map: Map<f64> = plan.best()?.recipe.draw(7)?;
    println!("{:?} features", map.transform(&x)?.dim());

    // How many features are enough for a maximal error of 5 %?
    let plan = Planner::of_one_set(&x)?.with_max_error(0.05)?.plan()?;
    println!("{} features for 5 %", plan.best()?.cost(Measure::Features));
    Ok(())
}

// Output:
// gaussian, ℓ = 2.62: 1000 points in 4 dimensions, the least loss for at most 256 features. Loss:
// error of the Gram matrix; errors relative to the kernel over 2200 pairs.
//  #  map                        coupling           m     loss       ±  median    90 %    99 %  >100 %
//   1 OPRF, A = −0.114           sobol            256   0.0147  9.4e-4 0.00706  0.0181  0.0546   0.0 %
//   2 trigonometric              sobol            128   0.0159  6.2e-4  0.0108  0.0506   0.197   0.0 %
//   3 complex exponential        sobol            128   0.0159  6.2e-4  0.0108  0.0506   0.197   0.0 %
//   4 GERF, s = −1, A = 0.012    sobol            128   0.0165  6.2e-4  0.0117  0.0520   0.195   0.0 %
//   5 OPRF, A = −0.114           halton           256   0.0279 0.00159  0.0152  0.0376  0.0905   0.0 %
// (1000, 256) features
// 112 features for 5 %
