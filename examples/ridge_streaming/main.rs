//! Ridge regression of ten million points, which are seen once and never kept.
//!
//! Points are drawn in batches, x ~ N(0, I), with targets f(x) + 0.1 N(0, 1) of a known function f: a sum of 64 Gaussian
//! bumps. `RidgeStatistics` takes the batches in; its memory does not depend on their number. Whenever the number of
//! points has grown by ten a model is solved for, and its error is measured against f itself on points that are not in any
//! batch. The error falls with the number of points, below the noise of the targets, to what the features leave.
//!
//!     cargo run --release --example ridge_streaming -- [--rows 10000000] [--features 2048] [--batch 65536] [--seed 1]
//!
//! With 2048 features ten million points take some minutes; --rows 100000 --features 256 takes a second.
//!
//! Exit code 0 if all is well, 2 if the request cannot be understood or fulfilled.

use std::error::Error;
use std::io::{IsTerminal, Write, stdout};
use std::ops::RangeInclusive;
use std::process::ExitCode;
use std::time::Instant;

use ndarray::Array2;
use rand_distr::{Distribution, StandardNormal};
use random_features::apply::RidgeStatistics;
use random_features::frequency::Orthogonal;
use random_features::{Trigonometric, rng_of_step};

const USAGE: &str = "usage: ridge_streaming [--rows N] [--features D] [--batch B] [--seed S]\n\
    \n\
    Ridge regression of points that are seen once and never kept, with its error as their number grows.\n\
    \n\
    --rows N      sets the number of points (default 10000000)\n\
    --features D  sets the number of features, an even one (default 2048)\n\
    --batch B     sets the number of points in a batch (default 65536)\n\
    --seed S      sets the seed of points and features (default 1)\n\
    \n\
    An example of a second: cargo run --release --example ridge_streaming -- --rows 100000 --features 256";
/// The dimension d of the points.
const DIM: usize = 8;
/// The number of bumps of the function, and their width.
const BUMPS: usize = 64;
const WIDTH: f64 = 2.0;
/// The standard deviation of what is added to the function's values.
const NOISE: f64 = 0.1;
/// Points on which errors are measured.
const TEST: usize = 10_000;
/// The penalty λ for each point.
const LAMBDA: f64 = 1e-6;

/// What is streamed.
struct Stream {
    rows: u64,
    features: usize,
    batch: usize,
    seed: u64,
}

impl Stream {
    /// Reads the command line; `None` if it asks for help.
    fn requested() -> Result<Option<Self>, Box<dyn Error>> {
        let mut asked = pico_args::Arguments::from_env();
        if asked.contains(["-h", "--help"]) {
            return Ok(None);
        }
        let mut count = |option: &'static str, default, range: RangeInclusive<u64>| {
            let text: Option<String> = asked.opt_value_from_str(option)?;
            let Some(text) = text else { return Ok(default) };
            let (least, most) = (range.start(), range.end());
            match text.parse() {
                Ok(count) if range.contains(&count) => Ok::<u64, Box<dyn Error>>(count),
                _ => {
                    Err(format!("{option} takes a whole number from {least} to {most}, not '{text}'").into())
                }
            }
        };
        let rows = count("--rows", 10_000_000, 1..=1 << 40)?;
        let features = count("--features", 2048, 2..=1 << 14)? as usize;
        let batch = count("--batch", 65_536, 1..=1 << 22)? as usize;
        let seed = count("--seed", 1, 0..=u64::MAX)?;
        if !features.is_multiple_of(2) {
            return Err(
                format!("--features takes an even number, of cosines and sines, not {features}").into()
            );
        }
        match asked.finish().first() {
            Some(other) => Err(format!("'{}' is not understood\n{USAGE}", other.display()).into()),
            None => Ok(Some(Stream { rows, features, batch, seed })),
        }
    }
}

/// A sum of Gaussian bumps.
struct Function {
    centres: Array2<f64>,
    heights: Vec<f64>,
}

impl Function {
    fn new(seed: u64) -> Self {
        let mut rng = rng_of_step(seed, 0);
        let mut normal = |_| StandardNormal.sample(&mut rng);
        Function {
            centres: Array2::from_shape_simple_fn((BUMPS, DIM), || normal(())),
            heights: (0..BUMPS).map(|_| normal(())).collect(),
        }
    }

    fn value(&self, x: ndarray::ArrayView1<'_, f32>) -> f64 {
        let bump = |(centre, height): (ndarray::ArrayView1<'_, f64>, &f64)| {
            let squares = centre.iter().zip(x).map(|(c, x)| (c - f64::from(*x)).powi(2));
            height * (-squares.sum::<f64>() / (2.0 * WIDTH * WIDTH)).exp()
        };
        self.centres.rows().into_iter().zip(&self.heights).map(bump).sum()
    }

    /// Points and the function's values with noise: a stream of random numbers for each step.
    fn points(&self, n: usize, noise: f64, (seed, step): (u64, u64)) -> (Array2<f32>, Array2<f32>) {
        let mut rng = rng_of_step(seed, step);
        let x: Array2<f32> = Array2::from_shape_simple_fn((n, DIM), || StandardNormal.sample(&mut rng));
        let mut target = |i: usize| -> f64 {
            let error: f64 = StandardNormal.sample(&mut rng);
            self.value(x.row(i)) + noise * error
        };
        let y = (0..n).map(|i| target(i) as f32).collect::<Vec<f32>>();
        let y = Array2::from_shape_vec((n, 1), y).unwrap_or_default();
        (x, y)
    }
}

/// The most memory that the program has used so far, in MB, where the system says so.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kilobytes| kilobytes / 1024)
}

fn root_mean_square(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = values.len() as f64;
    (values.map(|v| v * v).sum::<f64>() / n).sqrt()
}

fn run(Stream { rows, features, batch, seed }: Stream) -> Result<(), Box<dyn Error>> {
    let function = Function::new(seed);
    let (x, truth) = function.points(TEST, 0.0, (seed, u64::MAX));
    let mean = truth.mean().unwrap_or_default();
    let spread = root_mean_square(truth.iter().map(|y| f64::from(y - mean)));
    let omega = Orthogonal.draw(DIM, features / 2, rng_of_step(seed, 1).next_u64())?;
    let mut statistics = RidgeStatistics::new(Trigonometric.gaussian(omega, WIDTH)?, 1)?;
    writeln!(
        stdout(),
        "{rows} points in {DIM} dimensions, {features} features, batches of {batch}\n\
         a target is a function of deviation {spread:.3} and noise of deviation {NOISE}\n\n\
         {:>12}{:>14}{:>12}{:>14}{:>14}",
        "rows",
        "rows/s",
        "Gflop/s",
        "peak MB",
        "rms error"
    )?;
    let (mut seconds, mut done, mut report) = (0.0, 0, 1000.min(rows));
    while done < rows {
        let n = (batch as u64).min(report - done);
        let (x_batch, y) = function.points(n as usize, NOISE, (seed, 2 + done));
        let start = Instant::now();
        statistics.update(&x_batch, &y)?;
        seconds += start.elapsed().as_secs_f64();
        done += n;
        say(&format!("{done} rows, {:.0} s left", seconds * (rows - done) as f64 / done as f64));
        if done == report {
            let model = statistics.solve(LAMBDA * done as f64)?;
            let predicted = model.predict(&x)?;
            let error = root_mean_square(predicted.iter().zip(&truth).map(|(a, b)| f64::from(a - b)));
            let rate = done as f64 / seconds;
            // Products of the lower triangle.
            let flops = rate * (features as f64) * (features as f64 + 1.0) / 1e9;
            let memory = peak_memory().map_or("–".into(), |memory| memory.to_string());
            say("");
            writeln!(stdout(), "{done:>12}{rate:>14.0}{flops:>12.0}{memory:>14}{error:>14.5}")?;
            report = (10 * report).min(rows);
        }
    }
    Ok(())
}

/// Says on a terminal what is being done, in place of what was said before.
fn say(what: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[2K{what}");
    }
}

fn main() -> ExitCode {
    let done = Stream::requested().and_then(|stream| match stream {
        Some(stream) => run(stream),
        None => Ok(writeln!(stdout(), "{USAGE}")?),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
