//! From data to a map: which random features have the least error on these points, and is what is expected of them true?
//!
//! A planner reads the points, ranks maps, couplings and parameters by the errors to expect, and says where they come from. This
//! program prints the plan, then verifies its first five recipes: their maps are drawn many times, from seeds that the
//! planner did not use, and the measured errors stand beside the expected ones. A picture draws errors against costs.
//!
//!     cargo run --release --example plan -- [FILE | --data NAME] [--kernel KERNEL] [--lengthscale L]
//!         [--features N | --target E] [--loss LOSS] [--draws DRAWS] [--seed SEED] [--quick] [--json]
//!         [--out target/plan.svg]
//!     cargo run --release --example plan -- --study
//! FILE is a text file with a point in each row, separated by commas or blanks, whose last column, a label, is left out,
//! or an array of points in NumPy's format, n × d (.npy). A line of names is recognised, and text columns are coded: both are said. --help names the data that come with the program; banknote without a
//! request. Coordinates of text files are standardised but for the softmax kernels.
//!
//! With --study it prints the regret of plans over all couplings, on points that the planner has not seen, for six kinds of synthetic
//! data and three sets, beside that of simple choosers. This takes some twenty minutes.
//!
//! Exit code 0 if all is well, 1 if a measured error contradicts what was expected, 2 if the request cannot be understood or
//! fulfilled.

mod data;
mod kernel;
mod loss;
mod picture;
mod report;
mod study;
mod verification;

use std::process::ExitCode;

use data::Data;
use experiments::command::{self, Command, Request};
use experiments::progress;
use random_features::map::AnyKernel;
use random_features::planner::{Plan, Planner};
use verification::Verified;

const COMMAND: Command = Command {
    help: include_str!("help.txt"),
    options: &[
        "--data",
        "--kernel",
        "--lengthscale",
        "--features",
        "--target",
        "--loss",
        "--draws",
        "--seed",
        "--out",
    ],
    flags: &["--quick", "--json", "--study"],
    files: 1,
    ..Command::new(
        "plan [FILE | --data NAME] [--kernel KERNEL] [--lengthscale L] [--features N | --target E] [--loss LOSS] \
         [--draws DRAWS] [--seed SEED] [--quick] [--json] [--out FILE.svg] | --study",
    )
};

/// The number of choices that are verified.
const VERIFIED: usize = 5;

/// Draws of each verified choice, and those of a quick run.
const DRAWS: (usize, usize) = (128, 64);

fn run(request: &Request) -> Result<bool, String> {
    if request.has("--study") {
        progress::begin("judges plans for nine kinds of data");
        return study::run().map(|()| true).map_err(|error| error.to_string());
    }
    let data = data::requested(request)?;
    let quick = request.has("--quick");
    let draws = request.count("--draws", if quick { DRAWS.1 } else { DRAWS.0 }, (16, 65_536))?;
    let seed = request.whole("--seed", 0, (0, 1 << 40))?;
    let (planner, about) = planner(request, &data, seed)?;
    progress::begin(&format!("plans for {about}"));
    let plan = goal(request, planner.clone())?.plan().map_err(|error| error.to_string())?;
    if !request.has("--json") {
        command::print(&format!("{about}\n\n{plan}"))?;
    }
    plan.best().map_err(|error| error.to_string())?;
    progress::begin(&format!("draws the first recipes {draws} times each"));
    let verified = verification::verify(&planner, &plan, VERIFIED, draws, seed)?;
    let well = verified.iter().all(Verified::agrees);
    if request.has("--json") {
        command::print(&report::lines(&verified)?)?;
        return Ok(well);
    }
    command::print(&report::table(&verified, &plan, draws))?;
    draw(request, &planner, &plan, (seed, quick))?;
    Ok(well)
}

/// The planner for the data and the kernel that are asked for, and what they are in words.
fn planner(request: &Request, data: &Data, seed: u64) -> Result<(Planner, String), String> {
    let kernel = match request.text("--kernel") {
        Some(text) => text.parse::<AnyKernel>().map_err(|error| format!("--kernel: {error}"))?,
        None => kernel::default_for(data),
    };
    let (points, treatment) = data.prepared(kernel.is_shift_invariant());
    let ell = match request.text("--lengthscale") {
        Some(_) => Some(request.number("--lengthscale", 1.0, (1e-6, 1e6))?),
        None => None,
    };
    let (target, origin) = kernel::scaled(kernel, ell, &points, seed)?;
    let planner = points.planner().map_err(|error| format!("{}: {error}", data.name))?;
    let about = format!("{}{treatment}; {origin}", data.name);
    Ok((planner.with_kernel(target).with_loss(loss::requested(request)?).with_seed(seed), about))
}

/// With the budget or the target that is asked for.
fn goal(request: &Request, planner: Planner) -> Result<Planner, String> {
    match (request.text("--features"), request.text("--target")) {
        (Some(_), Some(_)) => Err("--features and --target exclude each other".into()),
        (_, None) => Ok(planner.with_max_features(request.count("--features", 256, (1, 65_536))?)),
        _ => {
            let error = request.number("--target", 0.1, (1e-9, 1e9))?;
            planner.with_max_error(error).map_err(|error| error.to_string())
        }
    }
}

/// The picture of errors against costs.
fn draw(request: &Request, planner: &Planner, plan: &Plan, (seed, quick): (u64, bool)) -> Result<(), String> {
    let out = request.out("plan.svg")?;
    progress::begin("plans and draws for the picture");
    picture::draw(planner, plan, (seed, quick), &out)?;
    command::print(&format!("picture: {}\n", out.display()))
}

fn main() -> ExitCode {
    COMMAND.run(run)
}
