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

#[path = "../common/command.rs"]
mod command;
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

use std::process::ExitCode;

use command::{Command, Request};
use landscape::{Block, Cell, Statistic};
use mechanisms::Mechanism;
use regimes::{Regime, Setup};

const COMMAND: Command = Command {
    options: &["--d", "--pairs", "--features", "--quantile", "--seed", "--out"],
    ..Command::new(
        "variance_landscape [--d D] [--pairs PAIRS] [--features FEATURES] [--quantile PERCENT] [--seed SEED] \
         [--out FILE.svg]",
    )
};

/// Whether all values are finite.
fn run(request: &Request) -> Result<bool, String> {
    let setup = &Setup {
        d: request.count("--d", 64, (2, 4096))?,
        pairs: request.count("--pairs", 1000, (2, 100_000))?,
        seed: request.whole("--seed", 0, (0, u64::MAX))?,
    };
    let features = &request.count("--features", 128, (2, 1_000_000))?;
    if !features.is_multiple_of(2) {
        return Err(format!("--features takes an even number, not {features}"));
    }
    let statistic = &match request.whole("--quantile", 0, (1, 100))? {
        0 => Statistic::Mean,
        percent => Statistic::Quantile(percent),
    };
    let out = request.out("variance_landscape.svg");
    let mechanisms = Mechanism::all();
    command::print(&table::heading(setup, *features, *statistic))?;
    let mut blocks: Vec<(Regime, Block)> = Vec::new();
    for regime in Regime::all(setup)? {
        let block = landscape::block(&regime, &mechanisms, *features, *statistic)
            .map_err(|error| format!("{}: {error}", regime.name))?;
        command::print(&table::block(&regime, &mechanisms, &block))?;
        blocks.push((regime, block));
    }
    command::print(&table::notes())?;
    let cells = || blocks.iter().flat_map(|(_, block)| block.cells.iter().flatten());
    let strays = cells().filter(|cell: &&Cell| !cell.value.is_finite()).count();
    if strays > 0 {
        command::print(&format!("{strays} OF {} VALUES ARE NOT FINITE\n", cells().count()))?;
    }
    picture::draw(&blocks, &mechanisms, *features, *statistic, &out)?;
    command::print(&format!("picture: {}\n", out.display()))?;
    Ok(strays == 0)
}

fn main() -> ExitCode {
    COMMAND.run(run)
}
