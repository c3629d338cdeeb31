#![doc = include_str!("help.txt")]

mod cost;
mod picture;
mod table;

use std::process::ExitCode;

use experiments::command::{self, Command, Request};
use experiments::sampling::training;
use experiments::{plot, progress};

const COMMAND: Command = Command {
    help: include_str!("help.txt"),
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
        progress::begin(&format!("times draws of up to {classes} classes, and builds their trees"));
        let rows = cost::run(classes, seed).map_err(words)?;
        command::print(&table::cost(&rows))?;
        panels.push(picture::cost(&rows));
    }
    if is_asked("training") {
        let setup = training::Setup { classes: classes.min(TRAINED), steps, seeds, seed };
        progress::begin(&format!(
            "trains classifiers of {} classes in {steps} steps, {seeds} times each",
            setup.classes
        ));
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
