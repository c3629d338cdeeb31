//! Hybrid features against plain ones: relative errors over the angle between x and y, at equal cost.
//!
//! Points of equal norm r at an angle θ, and the softmax kernel K = exp(x·y). Trigonometric features are exact at
//! θ = 0 and hyperbolic ones at θ = π. The angular hybrid of both is exact at both ends, the Gaussian hybrid at θ = 0
//! alone, since its λ̂ varies at θ = π. Which largest error over all angles is smallest? A table shows the relative errors √MSE/K by their closed forms and as sampled, at an equal
//! number of features and at equal work for making them, and a picture draws the closed forms as lines through the
//! samples (Hybrid Random Features, Figures 2 and 5). A second table and picture show surfaces over θ and r: the MSE
//! (Figure 1), and the relative error.
//!
//!     cargo run --release --example hybrid_sweep -- [--d 64] [--features 128] [--draws 10000] [--seed 0]
//!         [--out target/hybrid_sweep.svg]
//!
//! `--features` is the number of positive features whose cost every method has. The surfaces are written beside the
//! picture, as `hybrid_sweep_surface.svg`.
//!
//! Exit code 0 if all is well, 1 if a sample is more than 5 standard errors from its closed form or a map states
//! another variance, 2 if the request cannot be understood or fulfilled.

#[path = "../common/command.rs"]
mod command;
mod methods;
mod picture;
#[path = "../common/plot.rs"]
mod plot;
mod simulation;
mod surface;
mod table;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use command::{Command, Request};
use simulation::Setup;

const COMMAND: Command = Command {
    options: &["--d", "--features", "--draws", "--seed", "--out"],
    ..Command::new(
        "hybrid_sweep [--d D] [--features FEATURES] [--draws DRAWS] [--seed SEED] [--out FILE.svg]",
    )
};

/// The surfaces' file, beside the picture's.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push("_surface.");
    name.push(path.extension().unwrap_or("svg".as_ref()));
    path.with_file_name(name)
}

/// Whether all samples agree with their closed forms, and these with the maps.
fn run(request: &Request) -> Result<bool, String> {
    let setup = Setup {
        d: request.count("--d", 64, (2, 4096))?,
        // One base frequency of a Gaussian hybrid has 12 features.
        features: request.count("--features", 128, (12, 4096))?,
        draws: request.whole("--draws", 10_000, (200, 10_000_000))?,
        seed: request.whole("--seed", 0, (0, u64::MAX))?,
    };
    let out = request.out("hybrid_sweep.svg");
    let blocks = simulation::run(&setup).map_err(|error| error.to_string())?;
    let disagreement = simulation::disagreement(&setup, &blocks).map_err(|error| error.to_string())?;
    let (table, well) = table::write(&setup, &blocks, disagreement);
    command::print(&table)?;
    let surface = beside(&out);
    picture::draw(&blocks, &out)?;
    surface::draw(&surface)?;
    command::print(&format!("picture: {}\nsurfaces: {}\n", out.display(), surface.display()))?;
    Ok(well)
}

fn main() -> ExitCode {
    COMMAND.run(run)
}
