//! What does a draw of classes of a huge softmax cost, and what is learnt from such draws (*Hybrid Random Features*, Figure 10)?
//! Embeddings are synthetic. How far the distributions are from the softmax is what `reproduce -- hybrid-tables-4-5` measures.
//!
//!     cargo run --release --example softmax_sampling -- [--part cost|training] [--classes 100000] [--steps 1000] [--seeds 3]
//!         [--seed 0] [--out target/softmax_sampling.svg]
//!
//! `cost`: the time of a draw over the number of classes, 64 draws for each h, beside the exact softmax. `training`: a classifier
//! of 10000 classes (fewer if `--classes` is less), trained by the full softmax and by 40 draws from each mechanism.
//! Without `--part` both are run. A picture draws both.
//!
//! Exit code 0 if all is well, 2 if the request cannot be understood or fulfilled.

mod cost;
mod picture;
mod table;

use std::process::ExitCode;

use experiments::command::{self, Command, Request};
use experiments::plot;
use experiments::sampling::training;

const COMMAND: Command = Command {
    options: &["--part", "--classes", "--steps", "--seeds", "--seed", "--out"],
    ..Command::new(
        "softmax_sampling [--part cost|training] [--classes C] [--steps STEPS] [--seeds SEEDS] [--seed SEED] [--out FILE.svg]",
    )
};

/// The classes of the classifier that is trained, unless there are fewer.
const TRAINED: usize = 10_000;

fn run(asked: &Request) -> Result<(), String> {
    let part = asked.text("--part");
    if let Some(part) = part.as_deref().filter(|part| !["cost", "training"].contains(part)) {
        return Err(format!("--part takes one of cost, training, not '{part}'"));
    }
    let is_asked = |name: &str| part.as_deref().is_none_or(|part| part == name);
    let classes = asked.count("--classes", 100_000, (1000, 10_000_000))?;
    let steps = asked.count("--steps", 1000, (10, 1_000_000))?;
    let seeds = asked.whole("--seeds", 3, (2, 1000))?;
    let (seed, out) = (asked.whole("--seed", 0, (0, u64::MAX / 2))?, asked.out("softmax_sampling.svg")?);
    let words = |error: random_features::Error| error.to_string();
    let mut panels = Vec::new();
    if is_asked("cost") {
        let rows = cost::run(classes, seed).map_err(words)?;
        command::print(&table::cost(&rows))?;
        panels.push(picture::cost(&rows));
    }
    if is_asked("training") {
        let setup = training::Setup { classes: classes.min(TRAINED), steps, seeds, seed };
        let curves = training::run(&setup).map_err(words)?;
        command::print(&table::training(&setup, &curves))?;
        panels.push(picture::training(&curves));
    }
    plot::write(&panels, &out)?;
    command::print(&format!("picture: {}\n", out.display()))
}

fn main() -> ExitCode {
    COMMAND.run(|asked| run(asked).map(|()| true))
}
