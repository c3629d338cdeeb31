//! Dense against structured projections: where the crossover lies.
//!
//! `cargo bench --bench structured` projects the same Hadamard frequencies (three rounds) by both methods, on one
//! thread, over d and m, and prints nanoseconds for each point and frequency, their ratio, and the method that
//! `Projection` chooses. Methods run in alternation; medians of the times and of the ratios of neighbouring runs are
//! shown. Add `-- --all` for d up to 8192, `-- --f64` for double precision.

use std::hint::black_box;
use std::time::Instant;

use ndarray::{Array2, Axis};
use random_features::extend::Coupling;
use random_features::frequency::{Givens, Hadamard, Simplex};
use random_features::workbench::{Method, Projection, RotationLaw, Scratch, project};
use random_features::{Real, Result};

/// Points of a tile, and tiles of points.
const POINTS: usize = 48;
const TILES: usize = 8;
/// Alternations.
const ROUNDS: usize = 15;
/// Seconds that a measurement should take at least.
const LEAST: f64 = 2e-3;

/// Seconds for the projection of a tile, one tile of points after the other into the same room.
fn time<T: Real>(
    projection: &Projection<T>,
    x: &Array2<T>,
    scratch: &mut Scratch<T>,
    values: &mut [T],
) -> f64 {
    let mut scales = [0.0; POINTS];
    let mut repeats = 1;
    loop {
        let start = Instant::now();
        for _ in 0..repeats {
            for x in x.axis_chunks_iter(Axis(0), POINTS) {
                project(projection, black_box(x), values, projection.m(), &mut scales, scratch);
            }
        }
        let seconds = start.elapsed().as_secs_f64();
        if seconds > LEAST {
            return seconds / f64::from(repeats) / TILES as f64;
        }
        repeats *= 2;
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn compare<T: Real>(name: &str, coupling: &dyn Coupling, d: usize, m: usize) -> Result<()> {
    let omega = coupling.draw(d, m, 1)?;
    let chosen = Projection::<T>::new(omega.clone(), 1.0)?.method();
    let dense = Projection::<T>::with_method(omega.clone(), 1.0, Method::Dense)?;
    let structured = Projection::<T>::with_method(omega, 1.0, Method::Structured)?;
    let coordinate = |(i, k)| T::narrow(((i * 31 + k * 7) % 17) as f64 / 17.0 - 0.5);
    let x = Array2::from_shape_fn((POINTS * TILES, d), coordinate);
    let (mut scratch, mut values) = (Scratch::default(), vec![T::zero(); POINTS * m]);
    let mut times = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        times.0.push(time(&dense, &x, &mut scratch, &mut values));
        times.1.push(time(&structured, &x, &mut scratch, &mut values));
    }
    let each = 1e9 / (POINTS * m) as f64;
    let ratio = median(times.0.iter().zip(&times.1).map(|(dense, structured)| dense / structured).collect());
    let (dense, structured) = (median(times.0) * each, median(times.1) * each);
    println!("| {name} | {d} | {m} | {dense:.2} | {structured:.2} | {ratio:.1} | {chosen:?} |");
    Ok(())
}

fn run<T: Real>(largest: usize) -> Result<()> {
    println!("| coupling | d | m | dense | structured | ratio | chosen |\n|---|---|---|---|---|---|---|");
    let hadamard = Hadamard::default();
    for d in (4..14).map(|q| 1 << q).chain([48, 96, 100, 200, 600, 1100]).filter(|d| *d <= largest) {
        compare::<T>("Hadamard", &hadamard, d, d)?;
        compare::<T>("Hadamard", &hadamard, d, 4 * d)?;
    }
    for (d, m) in [(64, 16), (256, 16), (1024, 64)] {
        compare::<T>("Hadamard", &hadamard, d, m)?;
    }
    for d in [64, 256, 1024] {
        compare::<T>("simplex on Hadamard", &Simplex::on(RotationLaw::Hadamard(hadamard)), d, d)?;
        compare::<T>("Givens", &Givens::default(), d, d)?;
    }
    Ok(())
}

fn main() -> Result<()> {
    let asked = |option: &str| std::env::args().any(|argument| argument == option);
    let largest = if asked("--all") { 8192 } else { 2048 };
    if asked("--f64") { run::<f64>(largest) } else { run::<f32>(largest) }
}
