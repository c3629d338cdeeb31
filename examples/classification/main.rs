//! Kernel regression on real data: random features against the exact kernel.
//!
//! A point's class is the one whose training points have the largest summed kernel to it. With the exact kernel that costs
//! a kernel evaluation for each training point; with m random features it costs m products. How much accuracy does it
//! cost? For each data set and each seed the points are split 90/5/5 into training, validation and test parts, attributes are
//! standardised on the training part, and each method picks its lengthscale on the validation part. The table shows the
//! accuracy on the test part, averaged over seeds.
//!
//!     cargo run --release --example classification -- [DATA_FILE…] [--m 128] [--seeds 50]
//!
//! A data file has one point in a row, separated by commas or blanks, with the label in the last column. Text columns are
//! coded as indicators. Without files the bundled banknote and wifi sets are used.

mod dataset;
mod methods;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use dataset::Dataset;
use methods::Method;

const USAGE: &str = "classification [DATA_FILE…] [--m M] [--seeds SEEDS]";

/// What was asked on the command line.
struct Request {
    files: Vec<String>,
    m: usize,
    seeds: u64,
}

fn request(mut arguments: impl Iterator<Item = String>) -> Result<Request, String> {
    let mut request = Request { files: Vec::new(), m: 128, seeds: 50 };
    while let Some(argument) = arguments.next() {
        let mut number = || {
            let value = arguments.next().ok_or(format!("{argument} needs a number; usage: {USAGE}"))?;
            match value.parse() {
                Ok(number) if number > 0 => Ok(number),
                _ => Err(format!("{argument} takes a whole number from 1 on, not '{value}'")),
            }
        };
        match argument.as_str() {
            "--m" => request.m = number()? as usize,
            "--seeds" => request.seeds = number()?,
            "--help" | "-h" => return Err(format!("usage: {USAGE}")),
            option if option.starts_with('-') => {
                return Err(format!("there is no option {option}; usage: {USAGE}"));
            }
            _ => request.files.push(argument),
        }
    }
    Ok(request)
}

fn datasets(files: &[String]) -> Result<Vec<Dataset>, String> {
    if files.is_empty() {
        return Ok(vec![
            Dataset::parse("banknote", include_str!("../data/banknote.txt"))?,
            Dataset::parse("wifi", include_str!("../data/wifi.txt"))?,
        ]);
    }
    files.iter().map(|file| Dataset::read(file)).collect()
}

/// A line on the terminal that says how far the work is; nothing where standard error is not a terminal.
fn progress(done: u64, of: u64) {
    if std::io::stderr().is_terminal() {
        let filled = (40 * done / of) as usize;
        eprint!("\r  [{}{}] {done}/{of} seeds", "#".repeat(filled), ".".repeat(40 - filled));
        if done == of {
            eprint!("\r{}\r", " ".repeat(70));
        }
        // A lost progress bar is no reason to stop.
        let _ = std::io::stderr().flush();
    }
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
        let error = if n > 1.0 { (squares / (n - 1.0) / n).sqrt() } else { f64::NAN };
        self.lengthscales.sort_by(f64::total_cmp);
        let median = self.lengthscales[self.lengthscales.len() / 2];
        format!("  {:<29}{:>8.2} ± {:<8.2}{median:>8.2}", method.name(), 100.0 * mean, 100.0 * error)
    }
}

fn run(request: &Request) -> Result<(), String> {
    for data in datasets(&request.files)? {
        println!(
            "{}: {} points, {} attributes, {} classes; m = {}, {} seeds",
            data.name,
            data.points.nrows(),
            data.points.ncols(),
            data.classes.len(),
            request.m,
            request.seeds
        );
        let methods = Method::all();
        let mut outcomes: Vec<Outcome> = methods.iter().map(|_| Outcome::default()).collect();
        for seed in 0..request.seeds {
            progress(seed, request.seeds);
            let split = data.split(seed)?;
            for (method, outcome) in methods.iter().zip(&mut outcomes) {
                let (accuracy, lengthscale) =
                    methods::tuned_accuracy(method, &split, request.m, seed).map_err(|e| e.to_string())?;
                outcome.accuracies.push(accuracy);
                outcome.lengthscales.push(lengthscale);
            }
        }
        progress(request.seeds, request.seeds);
        println!("  {:<29}{:>8} ± {:<8}{:>8}", "method", "test %", "s.e.", "median ℓ");
        for (method, outcome) in methods.iter().zip(&mut outcomes) {
            println!("{}", outcome.row(method));
        }
        println!();
    }
    Ok(())
}

fn main() -> ExitCode {
    match request(std::env::args().skip(1)).and_then(|request| run(&request)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("{sentence}");
            ExitCode::FAILURE
        }
    }
}
