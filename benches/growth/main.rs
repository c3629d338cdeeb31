//! How time grows with the number of points, their dimension and the number of frequencies.
//!
//! `cargo bench --bench growth` times `features_into` of the positive map in single precision, on one thread and into arrays
//! that exist, on dense and on Hadamard frequencies (three rounds), over three decades of n, d and m each while the other two
//! stay. The tables, in Markdown, have nanoseconds for each point; those divided by what they should grow with, md, or
//! M log₂ N with the power of two N ≥ d and the multiple M ≥ m of N; and the method that `Projection` chooses for the Hadamard
//! frequencies. Times are minima.

use std::hint::black_box;
use std::time::Instant;

use ndarray::Array2;
use random_features::frequency::{Coupling, Hadamard, Independent, draw};
use random_features::workbench::{Method, Projection};
use random_features::{Positive, Result, Side, rng};

/// Repetitions, and the seconds after which no other one begins.
const REPEATS: usize = 200;
const ENOUGH: f64 = 0.4;
/// Runs of the map in a repetition take at least so many seconds together.
const LEAST: f64 = 1e-4;

/// Nanoseconds for each point, and whether the projection is structured.
fn time(coupling: &dyn Coupling, n: usize, d: usize, m: usize) -> Result<(f64, bool)> {
    let omega = draw(d, m, coupling, &mut rng(1))?;
    let method = Projection::<f32>::new(omega.clone(), 1.0)?.method();
    let map = Positive.softmax::<f32>(omega)?;
    let scale = (d as f32).sqrt().recip();
    let x = Array2::from_shape_fn((n, d), |(i, k)| scale * ((i * 31 + k * 7) % 17) as f32 / 17.0);
    let (mut values, mut log_scales) = map.features(Side::X, &x)?.into_parts();
    let mut run = |runs: usize| -> Result<f64> {
        let start = Instant::now();
        for _ in 0..runs {
            map.features_into(Side::X, black_box(&x), &mut values, &mut log_scales)?;
        }
        Ok(start.elapsed().as_secs_f64() / runs as f64)
    };
    let runs = ((LEAST / run(3)?) as usize).max(1);
    let (start, mut least) = (Instant::now(), f64::INFINITY);
    for _ in 0..REPEATS {
        least = least.min(run(runs)?);
        if start.elapsed().as_secs_f64() > ENOUGH {
            break;
        }
    }
    Ok((least * 1e9 / n as f64, method == Method::Structured))
}

fn row(swept: usize, n: usize, d: usize, m: usize) -> Result<()> {
    let (dense, _) = time(&Independent, n, d, m)?;
    let (hadamard, structured) = time(&Hadamard::default(), n, d, m)?;
    // Whole blocks are transformed, whatever is used of the last.
    let padded = d.next_power_of_two();
    let transformed = (m.next_multiple_of(padded) as f64) * f64::from(padded.ilog2().max(1));
    let multiplied = (m * d) as f64;
    let (work, method) = if structured { (transformed, "structured") } else { (multiplied, "dense") };
    let (each, unit) = (dense / multiplied, hadamard / work);
    println!("| {swept} | {dense:.0} | {each:.4} | {hadamard:.0} | {unit:.4} | {method} |");
    Ok(())
}

fn table(
    name: &str,
    others: &str,
    sizes: &[usize],
    shape: impl Fn(usize) -> (usize, usize, usize),
) -> Result<()> {
    println!(
        "\n| {name} ({others}) | dense, ns a point | / md | Hadamard, ns a point | / M log₂ N, or / md | chosen |"
    );
    println!("|---|---|---|---|---|---|");
    sizes.iter().try_for_each(|size| {
        let (n, d, m) = shape(*size);
        row(*size, n, d, m)
    })
}

fn sweeps() -> Result<()> {
    let sizes = [1, 8, 64, 512, 4096, 32768];
    table("n", "d = 64, m = 256", &sizes, |n| (n, 64, 256))?;
    let sizes = [4, 16, 32, 64, 128, 512, 2048, 8192];
    table("d", "n = 504, m = 256", &sizes, |d| (504, d, 256))?;
    table("m", "n = 504, d = 128", &[16, 64, 256, 1024, 4096, 16384], |m| (504, 128, m))
}

fn main() -> Result<()> {
    match rayon::ThreadPoolBuilder::new().num_threads(1).build() {
        Ok(pool) => pool.install(sweeps),
        Err(_) => sweeps(),
    }
}
