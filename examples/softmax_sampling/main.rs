//! Can classes of a huge softmax be drawn from features? The experiments of the paper *Hybrid Random Features* (Tables 4 and 5,
//! Figure 10) on synthetic embeddings, and what a draw costs.
//!
//!     cargo run --release --example softmax_sampling -- [--part distance|cost|training] [--classes 100000]
//!         [--features 512] [--queries 20] [--repetitions 10] [--steps 1000] [--seeds 3] [--seed 0]
//!         [--out target/softmax_sampling.svg]
//!
//! `distance`: how far the distribution that 64 to `--features` features estimate is from the softmax of h·cᵢ over all classes,
//! for six mechanisms at an equal number of features, and how far the distribution is that a tree really draws from.
//! `cost`: the time of a draw over the number of classes, 64 draws for each h, beside the exact softmax. `training`: a classifier
//! of 10000 classes (fewer if `--classes` is less), trained by the full softmax and by 40 draws from each mechanism.
//! Without `--part` it is all three, which takes some minutes. A picture draws them.
//!
//! Exit code 0 if all is well, 2 if the request cannot be understood or fulfilled.

#[path = "../common/command.rs"]
mod command;
mod cost;
mod data;
mod distances;
mod methods;
mod picture;
#[path = "../common/plot.rs"]
mod plot;
#[path = "../common/progress.rs"]
mod progress;
mod table;
mod training;

use std::process::ExitCode;

use command::{Command, Request};

const COMMAND: Command = Command {
    options: &[
        "--part",
        "--classes",
        "--features",
        "--queries",
        "--repetitions",
        "--steps",
        "--seeds",
        "--seed",
        "--out",
    ],
    ..Command::new(
        "softmax_sampling [--part distance|cost|training] [--classes C] [--features D] [--queries QUERIES] \
                     [--repetitions REPETITIONS] [--steps STEPS] [--seeds SEEDS] [--seed SEED] [--out FILE.svg]",
    )
};

/// The classes of the classifier that is trained, unless there are fewer.
const TRAINED: usize = 10_000;

fn run(asked: &Request) -> Result<(), String> {
    let part = asked.text("--part");
    if let Some(part) = part.as_deref().filter(|part| !["distance", "cost", "training"].contains(part)) {
        return Err(format!("--part takes one of distance, cost, training, not '{part}'"));
    }
    let is_asked = |name: &str| part.as_deref().is_none_or(|part| part == name);
    let classes = asked.count("--classes", 100_000, (1000, 10_000_000))?;
    let features = asked.count("--features", 512, (64, 4096))?;
    let queries = asked.count("--queries", 20, (1, 1000))?;
    let repetitions = asked.whole("--repetitions", 10, (2, 1000))?;
    let steps = asked.count("--steps", 1000, (10, 1_000_000))?;
    let seeds = asked.whole("--seeds", 3, (2, 1000))?;
    let (seed, out) = (asked.whole("--seed", 0, (0, u64::MAX / 2))?, asked.out("softmax_sampling.svg"));
    let words = |error: random_features::Error| error.to_string();
    let mut panels = Vec::new();
    if is_asked("distance") {
        let setup = distances::Setup { classes, features, queries, repetitions, seed };
        let found = distances::run(&setup).map_err(words)?;
        command::print(&table::distances(&setup, &found))?;
        panels.extend(picture::distances(&found));
    }
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
