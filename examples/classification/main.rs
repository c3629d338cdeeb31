//! Classification of real data: random features against the exact kernel.
//!
//! Two models of each kernel. Kernel regression: a point's class is the one whose training points have the largest summed
//! kernel to it. Ridge: the class with the largest kernel ridge regression of indicators, one class against all. With the
//! exact kernel the first costs a kernel value for each training point and the second the factorisation of their Gram
//! matrix; with m random features both cost sums over features. How much accuracy does that cost? For each data set and
//! each seed the points are split 90/5/5 into training, validation and test parts and attributes are standardised on the
//! training part. Ridge regression, exact or from features, chooses λ and lengthscale by leave-one-out on the training part,
//! on one grid; kernel regression chooses the lengthscale on the validation part. The table shows the accuracy
//! on the test part, averaged over seeds. Most of the time goes to the eigendecompositions of exact kernel ridge regression.
//!
//!     cargo run --release --example classification -- [DATA_FILE…] [--m 128] [--seeds 10] [--all]
//!
//! With --all every mechanism and coupling has its rows. A data file has one point in a row, separated by commas or blanks,
//! with the label in the last column. Text columns are coded as indicators. Without files the bundled banknote and wifi sets
//! are used.
//!
//! Exit code 0 if all is well, 2 if the request cannot be understood or fulfilled.

#[path = "../common/command.rs"]
mod command;
mod dataset;
mod methods;
#[path = "../common/progress.rs"]
mod progress;

use std::path::PathBuf;
use std::process::ExitCode;

use command::{Command, Request};
use dataset::Dataset;
use methods::Method;
use rayon::prelude::*;

const COMMAND: Command = Command {
    options: &["--m", "--seeds"],
    flags: &["--all"],
    files: usize::MAX,
    ..Command::new("classification [DATA_FILE…] [--m M] [--seeds SEEDS] [--all]")
};

/// The largest number that an option takes.
const MOST: u64 = 1_000_000;

/// What is compared.
#[derive(Clone, Copy)]
struct Comparison {
    m: usize,
    seeds: u64,
    /// Whether all mechanisms are compared.
    all: bool,
}

fn datasets(files: &[PathBuf]) -> Result<Vec<Dataset>, String> {
    if files.is_empty() {
        return Ok(vec![
            Dataset::parse("banknote", include_str!("../data/banknote.txt"))?,
            Dataset::parse("wifi", include_str!("../data/wifi.txt"))?,
        ]);
    }
    files.iter().map(|file| Dataset::read(&file.to_string_lossy())).collect()
}

/// Accuracies of a method over seeds, and the lengthscales that it picked.
#[derive(Default)]
struct Outcome {
    accuracies: Vec<f64>,
    lengthscales: Vec<f64>,
}

impl Outcome {
    fn row(&mut self, method: &Method) -> String {
        let n = self.accuracies.len() as f64;
        let mean = self.accuracies.iter().sum::<f64>() / n;
        let squares: f64 = self.accuracies.iter().map(|a| (a - mean).powi(2)).sum();
        let error = (squares / (n - 1.0) / n).sqrt();
        let error = if n > 1.0 { format!("{:.2}", 100.0 * error) } else { "–".into() };
        self.lengthscales.sort_by(f64::total_cmp);
        let median = self.lengthscales[self.lengthscales.len() / 2];
        format!("  {:<46}{:>8.2} ± {error:<8}{median:>8.2}\n", method.name(), 100.0 * mean)
    }
}

/// Runs all methods on a data set for all seeds and reports on it.
fn report(data: &Dataset, Comparison { m, seeds, all }: Comparison) -> Result<String, String> {
    let methods = Method::all(all);
    let mut outcomes: Vec<Outcome> = methods.iter().map(|_| Outcome::default()).collect();
    for seed in 0..seeds {
        progress::show("seeds", seed as usize, seeds as usize);
        let split = data.split(seed)?;
        let tuned = |method: &Method| method.tuned_accuracy(&split, m, seed);
        let tuned: Vec<_> = methods.par_iter().map(tuned).collect();
        for (tuned, outcome) in tuned.into_iter().zip(&mut outcomes) {
            let (accuracy, lengthscale) = tuned.map_err(|error| format!("{}: {error}", data.name))?;
            outcome.accuracies.push(accuracy);
            outcome.lengthscales.push(lengthscale);
        }
    }
    progress::show("seeds", seeds as usize, seeds as usize);
    let (points, attributes) = data.points.dim();
    let classes = data.classes.len();
    let mut text = format!(
        "{}: {points} points, {attributes} attributes, {classes} classes; m = {m}, {seeds} seeds\n",
        data.name
    );
    text += &format!("  {:<46}{:>8} ± {:<8}{:>8}\n", "method", "test %", "s.e.", "median ℓ");
    methods.iter().zip(&mut outcomes).for_each(|(method, outcome)| text += &outcome.row(method));
    Ok(text + "\n")
}

fn run(request: &Request) -> Result<bool, String> {
    let comparison = Comparison {
        m: request.count("--m", 128, (1, MOST as usize))?,
        seeds: request.whole("--seeds", 10, (1, MOST))?,
        all: request.has("--all"),
    };
    for data in datasets(&request.files)? {
        command::print(&report(&data, comparison)?)?;
    }
    Ok(true)
}

fn main() -> ExitCode {
    COMMAND.run(run)
}
