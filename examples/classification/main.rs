//! Classification of real data: random features against the exact kernel.
//!
//! Each kernel has two models. Kernel regression takes the class whose training points have the largest summed kernel to a
//! point. Ridge takes the class with the largest kernel ridge regression of indicators, one class against all. With the
//! exact kernel the first costs a kernel value for each training point and the second the factorisation of their Gram
//! matrix; with m random features both cost sums over features. How much accuracy does that cost? For each data set and
//! each seed the points are split 90/5/5 into training, validation and test parts and attributes are standardised on the
//! training part. Ridge regression, exact or from features, chooses λ and lengthscale by leave-one-out on the training part,
//! on one grid; kernel regression chooses the lengthscale on the validation part. The table shows the accuracy
//! on the test part, averaged over seeds. Most of the time goes to the eigendecompositions of exact kernel ridge regression.
//!
//!     cargo run --release --example classification -- [DATA_FILE…] [--m 128] [--seeds 3] [--all]
//!
//! The tables of `experiments/README.md` take --seeds 50. With --all every mechanism and coupling has its rows. A data file has one
//! point in a row, separated by commas or blanks, with the class in the last column. A line of names is recognised, and text columns
//! are coded as indicators: standard error says so, and which split is being worked on. Without files the bundled banknote and wifi
//! sets are used.
//!
//! Exit code 0 if all is well, 2 if the request cannot be understood or fulfilled.

mod dataset;
mod methods;

use std::error::Error;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use dataset::Dataset;
use methods::Method;
use rayon::prelude::*;

const USAGE: &str = "usage: classification [DATA_FILE…] [--m M] [--seeds SEEDS] [--all]\n\
    \n\
    Accuracy of ridge and kernel regression with random features, beside the exact kernel.\n\
    \n\
    DATA_FILE      points in rows, the class in the last column (default: two bundled data sets); a line of names is\n\
    \x20              recognised and text columns are coded, which standard error says\n\
    --m M          sets the number of frequencies (default 128)\n\
    --seeds SEEDS  sets the number of random splits that results are averaged over (default 3)\n\
    --all          compares every mechanism and coupling\n\
    \n\
    An example: cargo run --release --example classification -- --m 64 --seeds 1";

/// The largest number that an option takes.
const MOST: usize = 1_000_000;

/// What is compared.
struct Comparison {
    files: Vec<PathBuf>,
    m: usize,
    seeds: usize,
    /// Whether all mechanisms are compared.
    all: bool,
}

impl Comparison {
    /// Reads the command line; `None` if it asks for help.
    fn requested() -> Result<Option<Self>, Box<dyn Error>> {
        let mut asked = pico_args::Arguments::from_env();
        if asked.contains(["-h", "--help"]) {
            return Ok(None);
        }
        let mut count = |option: &'static str, default| {
            let text: Option<String> = asked.opt_value_from_str(option)?;
            let Some(text) = text else { return Ok(default) };
            match text.parse() {
                Ok(count) if (1..=MOST).contains(&count) => Ok::<usize, Box<dyn Error>>(count),
                _ => Err(format!("{option} takes a whole number from 1 to {MOST}, not '{text}'").into()),
            }
        };
        let (m, seeds) = (count("--m", 128)?, count("--seeds", 3)?);
        let all = asked.contains("--all");
        let files: Vec<PathBuf> = asked.finish().into_iter().map(PathBuf::from).collect();
        match files.iter().find(|file| file.to_string_lossy().starts_with('-')) {
            Some(option) => Err(format!("'{}' is not understood\n{USAGE}", option.display()).into()),
            None => Ok(Some(Comparison { files, m, seeds, all })),
        }
    }

    fn datasets(&self) -> Result<Vec<Dataset>, String> {
        if self.files.is_empty() {
            return Ok(vec![
                Dataset::parse("banknote", include_str!("../data/banknote.txt"))?,
                Dataset::parse("wifi", include_str!("../data/wifi.txt"))?,
            ]);
        }
        self.files.iter().map(|file| Dataset::read(file)).collect()
    }

    /// Runs all methods on a data set for all seeds and reports on it.
    fn report(&self, data: &Dataset) -> Result<String, String> {
        let methods = Method::all(self.all);
        let mut outcomes: Vec<Outcome> = methods.iter().map(|_| Outcome::default()).collect();
        for seed in 0..self.seeds {
            say(&format!("{}: split {} of {} …", data.name, seed + 1, self.seeds));
            let split = data.split(seed as u64)?;
            let tuned = |method: &Method| method.tuned_accuracy(&split, self.m, seed as u64);
            let tuned: Vec<_> = methods.par_iter().map(tuned).collect();
            for (tuned, outcome) in tuned.into_iter().zip(&mut outcomes) {
                let (accuracy, lengthscale) = tuned.map_err(|error| format!("{}: {error}", data.name))?;
                outcome.accuracies.push(accuracy);
                outcome.lengthscales.push(lengthscale);
            }
        }
        say("");
        let (points, attributes) = data.points.dim();
        let (name, classes, m, seeds) = (&data.name, data.classes, self.m, self.seeds);
        let mut text = format!(
            "{name}: {points} points, {attributes} attributes, {classes} classes; m = {m}, {seeds} seeds\n"
        );
        text += &format!("  {:<46}{:>8} ± {:<8}{:>8}\n", "method", "test %", "s.e.", "median ℓ");
        methods.iter().zip(&mut outcomes).for_each(|(method, outcome)| text += &outcome.row(method));
        Ok(text)
    }
}

/// Says on standard error what is being done: on a terminal in place of what was said before.
fn say(what: &str) {
    match std::io::stderr().is_terminal() {
        true => eprint!("\r\x1b[2K{what}"),
        false if what.is_empty() => {}
        false => eprintln!("{what}"),
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
        let error = (squares / (n - 1.0) / n).sqrt();
        let error = if n > 1.0 { format!("{:.2}", 100.0 * error) } else { "–".into() };
        self.lengthscales.sort_by(f64::total_cmp);
        let median = self.lengthscales[self.lengthscales.len() / 2];
        format!("  {:<46}{:>8.2} ± {error:<8}{median:>8.2}\n", method.name(), 100.0 * mean)
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout();
    let Some(comparison) = Comparison::requested()? else {
        return Ok(writeln!(out, "{USAGE}")?);
    };
    for data in comparison.datasets()? {
        writeln!(out, "{}", comparison.report(&data)?)?;
    }
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
