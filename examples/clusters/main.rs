//! Does a feature map for each pair of clusters pay? The experiment on clustered data of the paper *Hybrid Random
//! Features* (Table 3), beside its numbers.
//!
//! Four synthetic data sets in ℝ⁵⁰, with two Gaussian clusters of queries and two of keys. Their softmax kernel is
//! estimated with 20 to 200 features for each pair of points: by the cluster hybrid with the real diagonal A of the
//! paper, by the cluster hybrid with the robust one, by positive features (FAVOR+) and by trigonometric ones. A table
//! shows mean, least and largest mean squared error over all pairs of points and 20 repetitions, and what the paper
//! prints; a picture draws the means as points, the closed forms as lines and the paper's ranges.
//!
//!     cargo run --release --example clusters -- [--points 1000] [--repetitions 20] [--means 100] [--norm 0.7]
//!         [--seed 0] [--out target/clusters.svg]
//!
//! The full size takes some minutes. Exit code 0 if all is well, 2 if the request cannot be understood or fulfilled.

#[path = "../common/arguments.rs"]
mod arguments;
mod data;
mod experiment;
mod paper;
mod picture;
#[path = "../common/plot.rs"]
mod plot;
mod table;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

use data::Setup;

const USAGE: &str = "clusters [--points POINTS] [--repetitions REPETITIONS] [--means R] [--norm R] [--seed SEED] \
                     [--out FILE.svg]";

/// What was asked on the command line.
struct Request {
    setup: Setup,
    out: PathBuf,
}

/// A number from `least` to `most`.
fn number<N: FromStr + PartialOrd + std::fmt::Display>(
    option: &str,
    value: &str,
    (least, most): (N, N),
) -> Result<N, String> {
    let number = value.parse().ok().filter(|number| *number >= least && *number <= most);
    number.ok_or_else(|| format!("{option} takes a number from {least} to {most}, not '{value}'"))
}

/// The request, or `None` for a request for help.
fn request(arguments: impl Iterator<Item = OsString>) -> Result<Option<Request>, String> {
    let known = ["--points", "--repetitions", "--means", "--norm", "--seed", "--out"];
    let Some(options) = arguments::options(arguments, &known, USAGE)? else { return Ok(None) };
    let mut request = Request {
        setup: Setup { points: 1000, repetitions: 20, means: 100.0, norm: 0.7, seed: 0 },
        out: ["target", "clusters.svg"].iter().collect(),
    };
    for (option, value) in options {
        let (text, setup) = (value.to_string_lossy(), &mut request.setup);
        match option.as_str() {
            "--points" => setup.points = number(&option, &text, (10, 10_000))?,
            "--repetitions" => setup.repetitions = number(&option, &text, (1, 10_000))?,
            "--means" => setup.means = number(&option, &text, (1.0, 1e6))?,
            "--norm" => setup.norm = number(&option, &text, (0.01, 5.0))?,
            "--seed" => setup.seed = number(&option, &text, (0, u64::MAX))?,
            _ => request.out = PathBuf::from(value),
        }
    }
    Ok(Some(request))
}

fn run(request: &Request) -> Result<(), String> {
    arguments::print(&table::head(&request.setup))?;
    let mut sets = Vec::new();
    for published in &paper::SETS {
        let set = experiment::run(&request.setup, published).map_err(|error| error.to_string())?;
        arguments::print(&table::block(&set))?;
        sets.push(set);
    }
    arguments::print(&table::notes())?;
    picture::draw(&sets, &request.out)?;
    arguments::print(&format!("picture: {}\n", request.out.display()))
}

fn main() -> ExitCode {
    let done = request(std::env::args_os().skip(1)).and_then(|request| match request {
        Some(request) => run(&request),
        None => arguments::print(&format!("usage: {USAGE}\n")),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("{sentence}");
            ExitCode::from(2)
        }
    }
}
