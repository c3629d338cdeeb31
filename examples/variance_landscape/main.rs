//! Which mechanism is best for which points? Variances of all of them on random and real data.
//!
//! Queries and keys are drawn in several regimes and scaled to several norms; the parameters of each mechanism
//! are chosen from them. A table shows, for an equal number D of real features, the mean over pairs of
//! ln(Var/K²) of the estimates of the Gaussian kernel K: the logarithm of the squared relative error. It is
//! relative because kernels of distant points differ by many orders of magnitude, which a mean of ln Var would
//! show instead of the estimates' quality. A picture shows the most telling mechanisms, up to where they are
//! useless. Everything is computed by closed forms; no frequency is drawn.
//!
//!     cargo run --release --example variance_landscape -- [--d 64] [--pairs 1000] [--features 128]
//!         [--quantile PERCENT] [--seed 0] [--out target/variance_landscape.svg]
//!
//! `--quantile 50` shows medians and `--quantile 90` what all but a tenth of the pairs keep below. Real data
//! have a dimension of their own.
//!
//! Exit code 0 if all is well, 1 if a value is not finite, 2 if the request cannot be understood or fulfilled.

#[path = "../common/arguments.rs"]
mod arguments;
#[path = "../classification/dataset.rs"]
#[allow(dead_code, reason = "labels and the reading of files are for the example `classification`")]
mod dataset;
mod landscape;
mod mechanisms;
mod picture;
#[path = "../common/plot.rs"]
mod plot;
mod regimes;
mod table;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use landscape::{Block, Cell, Statistic};
use mechanisms::Mechanism;
use regimes::{Regime, Setup};

const USAGE: &str = "variance_landscape [--d D] [--pairs PAIRS] [--features FEATURES] [--quantile PERCENT] \
                     [--seed SEED] [--out FILE.svg]";

/// What was asked on the command line.
struct Request {
    setup: Setup,
    features: usize,
    statistic: Statistic,
    out: PathBuf,
}

/// The request, or `None` for a request for help.
fn request(arguments: impl Iterator<Item = OsString>) -> Result<Option<Request>, String> {
    let known = ["--d", "--pairs", "--features", "--quantile", "--seed", "--out"];
    let Some(options) = arguments::options(arguments, &known, USAGE)? else { return Ok(None) };
    let mut request = Request {
        setup: Setup { d: 64, pairs: 1000, seed: 0 },
        features: 128,
        statistic: Statistic::Mean,
        out: ["target", "variance_landscape.svg"].iter().collect(),
    };
    for (option, value) in options {
        let text = value.to_string_lossy();
        match option.as_str() {
            "--d" => request.setup.d = arguments::whole(&option, &text, 2, 4096)? as usize,
            "--pairs" => request.setup.pairs = arguments::whole(&option, &text, 2, 100_000)? as usize,
            "--features" => request.features = arguments::whole(&option, &text, 2, 1_000_000)? as usize,
            "--quantile" => {
                request.statistic = Statistic::Quantile(arguments::whole(&option, &text, 1, 100)?)
            }
            "--seed" => request.setup.seed = arguments::whole(&option, &text, 0, u64::MAX)?,
            _ => request.out = PathBuf::from(value),
        }
    }
    if !request.features.is_multiple_of(2) {
        return Err(format!("--features takes an even number, not {}", request.features));
    }
    Ok(Some(request))
}

/// Whether all values are finite.
fn run(request: &Request) -> Result<bool, String> {
    let Request { setup, features, statistic, out } = request;
    let mechanisms = Mechanism::all();
    arguments::print(&table::heading(setup, *features, *statistic))?;
    let mut blocks: Vec<(Regime, Block)> = Vec::new();
    for regime in Regime::all(setup)? {
        let block = landscape::block(&regime, &mechanisms, *features, *statistic)
            .map_err(|error| format!("{}: {error}", regime.name))?;
        arguments::print(&table::block(&regime, &mechanisms, &block))?;
        blocks.push((regime, block));
    }
    arguments::print(&table::notes())?;
    let cells = || blocks.iter().flat_map(|(_, block)| block.cells.iter().flatten());
    let strays = cells().filter(|cell: &&Cell| !cell.value.is_finite()).count();
    if strays > 0 {
        arguments::print(&format!("{strays} OF {} VALUES ARE NOT FINITE\n", cells().count()))?;
    }
    picture::draw(&blocks, &mechanisms, *features, *statistic, out)?;
    arguments::print(&format!("picture: {}\n", out.display()))?;
    Ok(strays == 0)
}

fn main() -> ExitCode {
    let well = request(std::env::args_os().skip(1)).and_then(|request| match request {
        Some(request) => run(&request),
        None => arguments::print(&format!("usage: {USAGE}\n")).map(|()| true),
    });
    match well {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(sentence) => {
            eprintln!("{sentence}");
            ExitCode::from(2)
        }
    }
}
