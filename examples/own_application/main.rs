//! An application of your own, from public items alone: it finds where the law of a stream of points changes, though means and
//! covariances stay.
//!
//! With the mean embedding μ = (1/n) Σ φ(xᵢ), ‖μ − ν‖² estimates the squared distance of two laws (MMD²). One fold over the features
//! keeps their sums at the ends of runs; the distance of what is before and after each of these ends is then compared.
//!
//!     cargo run --release --example own_application

use random_features::extend::FeatureRun;
use random_features::frequency::{Coupling, Orthogonal};
use random_features::ndarray::Array2;
use random_features::rand::RngExt;
use random_features::{Map, Result, Side, Trigonometric, rng};

/// Number of points, and of the first that is drawn from another law.
const ROWS: usize = 40_000;
const CHANGE: usize = 26_000;

fn main() -> Result<()> {
    // Uniform in a square at first, then on a circle: both have mean 0 and covariance 1.
    let mut rng = rng(1);
    let mut x = Array2::zeros((ROWS, 2));
    for (i, mut point) in x.rows_mut().into_iter().enumerate() {
        let [u, v]: [f32; 2] = [rng.random(), rng.random()];
        let (sin, cos) = (std::f32::consts::TAU * u).sin_cos();
        let (square, circle) = ([2.0 * u - 1.0, 2.0 * v - 1.0].map(|v| 3f32.sqrt() * v), [sin, cos]);
        let drawn = if i < CHANGE { square } else { circle.map(|v| 2f32.sqrt() * v) };
        point.iter_mut().zip(drawn).for_each(|(out, v)| *out = v);
    }
    let map: Map<f32> = Trigonometric.gaussian(Orthogonal.draw(2, 128, 42)?, 0.5)?;

    // Each run is summed on some thread; sums arrive here in the order of the rows.
    let part = |run: FeatureRun<'_, f32>| {
        let mut sum = vec![0.0; run.feature_dim()];
        (0..run.len()).for_each(|i| run.add_row(i, 1.0, &mut sum));
        (run.rows().end, sum)
    };
    let (mut total, mut ends) = (vec![0.0; map.feature_dim()], Vec::new());
    map.fold(Side::X, &x, part, |(end, sum)| {
        total.iter_mut().zip(sum).for_each(|(total, sum)| *total += sum);
        ends.push((end, total.clone()));
    })?;

    // MMD² of what is before and after, times k (n − k)/n: without a change some 1 − ‖μ‖² in the mean.
    ends.pop();
    let statistic = |(end, sum): &(usize, Vec<f64>)| {
        let (before, after) = (*end as f64, (ROWS - end) as f64);
        let difference = |(sum, total): (&f64, &f64)| sum / before - (total - sum) / after;
        let square: f64 = sum.iter().zip(&total).map(difference).map(|v| v * v).sum();
        (square * before * after / ROWS as f64, *end)
    };
    let found = ends.iter().map(statistic).reduce(|best, one| if one.0 > best.0 { one } else { best });
    let (size, at) = found.unwrap_or_default();
    println!("the law changes after {at} of {ROWS} points; it was made to after {CHANGE}");
    println!("statistic {size:.1}, of 1 at most in the mean where nothing changes");
    Ok(())
}
