//! One regression of rows on two machines, which exchange sums whose size does not depend on the number of rows.
//!
//!     cargo run --release --features serde --example task_two_machines

use random_features::apply::{Criterion, RidgeStatistics, Standardisation};
use random_features::data::Statistics;
use random_features::ndarray::{Array1, Array2, arr2};
use random_features::prelude::*;

/// The 8192 rows of a machine.
fn rows(machine: u64) -> (Array2<f64>, Array1<f64>) {
    let mut rng = rng(machine);
    let x = Array2::from_shape_simple_fn((8192, 2), || 3.0 * rng.normal());
    let y = x.rows().into_iter().map(|x| (x[0] / 3.0).sin() + 0.1 * rng.normal()).collect();
    (x, y)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Machines first exchange the means and variances of their points.
    let mut points = Statistics::of(&rows(0).0)?;
    points.merge(&Statistics::of(&rows(1).0)?)?;
    // Every machine draws the map from the same seed, numbers its rows, and sends its sums as text.
    let map: Map<f64> = Map::for_kernel(Gaussian::new(1.0)?, 2, 64, 7)?;
    let new = RidgeStatistics::new(map.clone(), 1)?
        .with_standardisation(Standardisation::of_statistics(&points)?)?;
    let send = |machine: u64| -> Result<String, Box<dyn std::error::Error>> {
        let ((x, y), mut part) = (rows(machine), new.clone().with_first_row(8192 * machine)?);
        part.update(&x, &y)?;
        Ok(serde_json::to_string(part.sums())?)
    };
    let mut all = RidgeStatistics::of_sums(map, serde_json::from_str(&send(0)?)?)?;
    all.merge_sums(&serde_json::from_str(&send(1)?)?)?;
    // The sums choose λ, and know how inputs are standardised.
    let spectrum = all.spectrum()?;
    let (lambda, error) = spectrum.choose(&Criterion::GeneralisedCrossValidation, &spectrum.lambdas())?;
    println!("{} rows, λ = {lambda:.1e}, expected squared error {error:.4}", all.rows());
    println!("{:.2} for sin 0.5", spectrum.model(lambda)?.predict(&arr2(&[[1.5, 0.0]]))?[[0, 0]]);
    Ok(())
}

// Output:
// 16384 rows, λ = 7.7e-3, expected squared error 0.0102
// 0.48 for sin 0.5
