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

#[path = "../common/command.rs"]
mod command;
mod data;
mod experiment;
mod paper;
mod picture;
#[path = "../common/plot.rs"]
mod plot;
mod table;

use std::process::ExitCode;

use command::{Command, Request};
use data::Setup;

const COMMAND: Command = Command {
    options: &["--points", "--repetitions", "--means", "--norm", "--seed", "--out"],
    ..Command::new(
        "clusters [--points POINTS] [--repetitions REPETITIONS] [--means R] [--norm R] [--seed SEED] [--out FILE.svg]",
    )
};

fn run(request: &Request) -> Result<bool, String> {
    let setup = Setup {
        points: request.count("--points", 1000, (10, 10_000))?,
        repetitions: request.whole("--repetitions", 20, (1, 10_000))?,
        means: request.number("--means", 100.0, (1.0, 1e6))?,
        norm: request.number("--norm", 0.7, (0.01, 5.0))?,
        seed: request.whole("--seed", 0, (0, u64::MAX))?,
    };
    let out = request.out("clusters.svg");
    command::print(&table::head(&setup))?;
    let mut sets = Vec::new();
    for published in &paper::SETS {
        let set = experiment::run(&setup, published).map_err(|error| error.to_string())?;
        command::print(&table::block(&set))?;
        sets.push(set);
    }
    command::print(&table::notes())?;
    picture::draw(&sets, &out)?;
    command::print(&format!("picture: {}\n", out.display()))?;
    Ok(true)
}

fn main() -> ExitCode {
    COMMAND.run(run)
}
