#![doc = include_str!("help.txt")]

mod crossover;
mod picture;
mod table;
mod trained;

use std::path::PathBuf;
use std::process::ExitCode;

use experiments::command::{self, Command, Request};
use experiments::tokens::Tokens;
use experiments::{plot, progress};

const COMMAND: Command = Command {
    help: include_str!("help.txt"),
    options: &["--part", "--m", "--repetitions", "--longest", "--data", "--seed", "--out"],
    ..Command::new(
        "attention [--part crossover|trained] [--m M] [--repetitions REPETITIONS] [--longest L] [--data FOLDER] \
         [--seed SEED] [--out FILE.svg]",
    )
};

/// The frequencies of the crossover, at most.
const CROSSOVER_FREQUENCIES: [usize; 2] = [64, 256];

/// What was asked.
struct Asked {
    /// All if there is none.
    part: Option<String>,
    m: usize,
    repetitions: u64,
    longest: usize,
    data: Option<PathBuf>,
    seed: u64,
    out: PathBuf,
}

impl Asked {
    /// 16, 32, … and m itself.
    fn frequencies(&self) -> Vec<usize> {
        let doubled = std::iter::successors(Some(16), |m| Some(2 * m));
        doubled.take_while(|m| *m < self.m).chain([self.m]).collect()
    }

    fn asks_for(&self, part: &str) -> bool {
        self.part.as_ref().is_none_or(|asked| asked == part)
    }
}

const PARTS: [&str; 2] = ["crossover", "trained"];

fn read(asked: &Request) -> Result<Asked, String> {
    let part = asked.text("--part");
    if let Some(part) = part.as_deref().filter(|part| !PARTS.contains(part)) {
        return Err(format!("--part takes one of {}, not '{part}'", PARTS.join(", ")));
    }
    let data = asked.text("--data").map(PathBuf::from);
    Ok(Asked {
        part: part.or_else(|| data.is_some().then(|| "trained".into())),
        m: asked.count("--m", 512, (1, 4096))?,
        repetitions: asked.whole("--repetitions", 15, (2, 10_000))?,
        longest: asked.count("--longest", 8192, (2, 1 << 24))?,
        data,
        seed: asked.whole("--seed", 0, (0, u64::MAX))?,
        out: asked.out("attention.svg")?,
    })
}

fn run(request: &Asked) -> Result<(), String> {
    let Asked { m, repetitions, longest, seed, .. } = *request;
    let words = |error: random_features::Error| error.to_string();
    let mut panels = Vec::new();
    // Files that are not right are a mistake to be told at once.
    let tokens = request.data.as_deref().map_or_else(Tokens::bundled, Tokens::read)?;
    if request.asks_for("trained") {
        progress::begin(&format!("measures errors of five maps on {} heads", tokens.heads()));
        let setup = trained::Setup { frequencies: request.frequencies(), repetitions, seed };
        let heads = trained::run(&setup, &tokens).map_err(words)?;
        command::print(&table::trained(&setup, &heads))?;
        panels.extend(picture::trained(&setup, &heads));
    }
    if request.asks_for("crossover") {
        progress::begin(&format!("times linear and exact attention of up to {longest} tokens"));
        let frequencies = CROSSOVER_FREQUENCIES.map(|most| most.min(m)).to_vec();
        let setup = crossover::Setup { frequencies, longest, seed };
        let found = crossover::run(&setup).map_err(words)?;
        command::print(&table::crossover(&setup, &found))?;
        panels.extend(picture::crossover(&setup, &found));
    }
    plot::write(&panels, &request.out)?;
    command::print(&format!("picture: {}\n", request.out.display()))
}

fn main() -> ExitCode {
    COMMAND.run(|asked| run(&read(asked)?).map(|()| true))
}
