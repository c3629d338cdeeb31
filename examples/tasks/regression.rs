//! Ridge regression on random Fourier features, with a search for the lengthscale and λ.
//!
//!     cargo run --release --example task_regression

use random_features::ndarray::{Array1, Array2, s};
use random_features::prelude::*;

fn main() -> Result<()> {
    // 4000 rows of three numbers, and the target of each row.
    let mut rng = rng(1);
    let x = Array2::from_shape_simple_fn((4000, 3), || rng.normal());
    let y: Array1<f64> = x.rows().into_iter().map(|x| f64::sin(2.0 * x[0]) + x[1] * x[2]).collect();
    let y = y + Array1::from_shape_simple_fn(4000, || 0.1 * rng.normal());
    let (x, x_test) = (x.slice(s![..3000, ..]), x.slice(s![3000.., ..]));
    let (y, y_test) = (y.slice(s![..3000]), y.slice(s![3000..]));

    // 128 frequencies in ℝ³, drawn from seed 7.
    let fit = RidgeSearch::gaussian(3, 128, 7)?.fit(x, y)?;
    println!("{}", fit.best());
    let errors = fit.model().predict_single(x_test)? - y_test;
    println!("root mean square error {:.3}", errors.pow2().mean().unwrap_or_default().sqrt());
    Ok(())
}

// Output:
// ℓ = 1.5600, D = 256, λ = 1.054e-5: leave-one-out MSE 1.112232e-2, 99.25 % explained
// root mean square error 0.138
