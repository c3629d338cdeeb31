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
//   1 shaped                     sobol            256   0.0129 0.00100 0.00647  0.0164  0.0463   0.0 %
//   2 dense exponential          sobol            256   0.0138 0.00110 0.00672  0.0179  0.0520   0.0 %
//   3 dense exponential, 2φ      sobol            256   0.0137  6.1e-4  0.0104  0.0189  0.0367   0.0 %
//   4 OPRF, A = −0.205           sobol            256   0.0145 0.00103  0.0108  0.0197  0.0390   0.0 %
//   5 OPRF, A = −0.114           sobol            256   0.0147  9.4e-4 0.00706  0.0181  0.0546   0.0 %
// (1000, 256) features
// 112 features for 5 %
