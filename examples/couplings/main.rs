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

#[path = "../common/arguments.rs"]
mod arguments;
mod picture;
#[path = "../common/plot.rs"]
mod plot;
mod simulation;
mod table;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use simulation::Setup;

const USAGE: &str = "couplings [--d D] [--m M] [--draws DRAWS] [--seed SEED] [--out FILE.svg]";

/// What was asked on the command line.
struct Request {
    setup: Setup,
    out: PathBuf,
}

/// The request, or `None` for a request for help.
fn request(arguments: impl Iterator<Item = OsString>) -> Result<Option<Request>, String> {
    let known = ["--d", "--m", "--draws", "--seed", "--out"];
    let Some(options) = arguments::options(arguments, &known, USAGE)? else { return Ok(None) };
    let mut request = Request {
        setup: Setup { d: 16, m: 16, draws: 200_000, seed: 0 },
        out: ["target", "couplings.svg"].iter().collect(),
    };
    for (option, value) in options {
        let text = value.to_string_lossy();
        match option.as_str() {
            "--d" => request.setup.d = arguments::whole(&option, &text, 2, 4096)? as usize,
            "--m" => request.setup.m = arguments::whole(&option, &text, 1, 4096)? as usize,
            "--draws" => request.setup.draws = arguments::whole(&option, &text, 200, 10_000_000)?,
            "--seed" => request.setup.seed = arguments::whole(&option, &text, 0, u64::MAX)?,
            _ => request.out = PathBuf::from(value),
        }
    }
    Ok(Some(request))
}

/// Whether all samples agree with their closed forms.
fn run(request: &Request) -> Result<bool, String> {
    let panels = simulation::run(&request.setup).map_err(|error| error.to_string())?;
    let (table, well) = table::write(&request.setup, &panels);
    arguments::print(&table)?;
    picture::draw(&request.setup, &panels, &request.out)?;
    arguments::print(&format!("picture: {}\n", request.out.display()))?;
    Ok(well)
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
