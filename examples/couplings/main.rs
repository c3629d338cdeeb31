//! Which coupling of the frequencies is best? Mean squared errors of all samplers at equal m.
//!
//! Points x ⟂ y of equal norm, so that ‖x+y‖ = ‖x−y‖ = v and the Gaussian kernel is exp(−v²/2). For each
//! sampler and each v the kernel is estimated from many draws of m frequencies, with positive and with
//! trigonometric features. A table shows the sample mean squared errors relative to independent frequencies
//! and how far they are from the closed forms; a picture draws the closed forms as lines through the samples.
//!
//!     cargo run --release --example couplings -- [--d 16] [--m 16] [--draws 200000] [--seed 0]
//!         [--out target/couplings.svg]
//!
//! The directions of x and y are drawn anew, uniformly, for each draw: the errors of some samplers depend on
//! them, and an average over all is a fair comparison. Every sampler gets the same ones.
//!
//! Exit code 0 if all is well, 1 if a sample is more than 5 standard errors from its closed form, 2 if the
//! request cannot be understood or fulfilled.

#[path = "../common/command.rs"]
mod command;
mod picture;
#[path = "../common/plot.rs"]
mod plot;
mod simulation;
mod table;

use std::process::ExitCode;

use command::{Command, Request};
use simulation::Setup;

const COMMAND: Command = Command {
    options: &["--d", "--m", "--draws", "--seed", "--out"],
    ..Command::new("couplings [--d D] [--m M] [--draws DRAWS] [--seed SEED] [--out FILE.svg]")
};

/// Whether all samples agree with their closed forms.
fn run(request: &Request) -> Result<bool, String> {
    let setup = Setup {
        d: request.count("--d", 16, (2, 4096))?,
        m: request.count("--m", 16, (1, 4096))?,
        draws: request.whole("--draws", 200_000, (200, 10_000_000))?,
        seed: request.whole("--seed", 0, (0, u64::MAX))?,
    };
    let out = request.out("couplings.svg");
    let panels = simulation::run(&setup).map_err(|error| error.to_string())?;
    let (table, well) = table::write(&setup, &panels);
    command::print(&table)?;
    picture::draw(&setup, &panels, &out)?;
    command::print(&format!("picture: {}\n", out.display()))?;
    Ok(well)
}

fn main() -> ExitCode {
    COMMAND.run(run)
}
