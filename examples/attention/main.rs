//! The experiments of the paper *Rethinking Attention with Performers* on errors (Figure 4) and costs (Figures 3 and 20), and
//! a trained transformer's heads; `--help` says what can be asked.

mod accuracy;
#[path = "../common/command.rs"]
mod command;
mod cost;
mod crossover;
mod files;
mod methods;
mod picture;
#[path = "../common/plot.rs"]
mod plot;
mod table;
mod trained;

use std::path::PathBuf;
use std::process::ExitCode;

use command::{Command, Request};
use files::Tokens;

const HELP: &str = "\
Does linear attention do what attention does, and what does it cost? The experiments of the paper Rethinking Attention
with Performers on errors (Figure 4) and costs (Figures 3 and 20), and a trained transformer's heads.

    cargo run --release --example attention -- [--part error|cost|crossover|trained] [--m 512] [--length 4096]
        [--repetitions 15] [--longest 131072] [--longest-exact 32768] [--data FOLDER] [--seed 0]
        [--out target/attention.svg]

error: the error of the output against exact attention, for five maps and three couplings of 16 to --m frequencies on
--length random tokens, with what the error report predicts. cost: time and memory of linear and exact attention for
lengths from 1024 on, beside \"X\", an output that only copies the values; each is measured in a process of its own, which
is this example with --one WORK. crossover: times of both up to a length of 8192, and from which length on linear
attention is faster, beside what Attention::auto goes by. trained: the error on the queries and keys of a trained transformer, beside that of
the mean of the values, and what the error report says. --data is a folder with q.npy, k.npy and v.npy, each heads ×
length × dim, before the scale 1/√d; without it, two heads that come with the example are taken. Without --part it is
all four, which takes about a minute, or trained alone where --data is given. A picture draws errors, times and memory.

Exit code 0 if all is well, 2 if the request cannot be understood or fulfilled.
";

const COMMAND: Command = Command {
    help: HELP,
    options: &[
        "--part",
        "--one",
        "--m",
        "--length",
        "--repetitions",
        "--longest",
        "--longest-exact",
        "--data",
        "--seed",
        "--out",
    ],
    ..Command::new(
        "attention [--part error|cost|crossover|trained] [--m M] [--length L] [--repetitions REPETITIONS] \
                     [--longest L] [--longest-exact L] [--data FOLDER] [--seed SEED] [--out FILE.svg]",
    )
};

/// The frequencies of attention whose cost is measured, if `--m` allows so many.
const COST_FREQUENCIES: usize = 256;

/// The frequencies and the longest sequence of the crossover, at most.
const CROSSOVER_FREQUENCIES: [usize; 2] = [64, 256];
const CROSSOVER_LONGEST: usize = 8192;

/// What was asked.
struct Asked {
    /// All if there is none.
    part: Option<String>,
    /// A measurement alone.
    one: Option<String>,
    m: usize,
    length: usize,
    repetitions: u64,
    longest: usize,
    longest_exact: usize,
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

/// One of some words, if the option was given.
fn word(asked: &Request, option: &str, words: &[&str]) -> Result<Option<String>, String> {
    match asked.text(option) {
        Some(value) if !words.contains(&value.as_str()) => {
            Err(format!("{option} takes one of {}, not '{value}'", words.join(", ")))
        }
        value => Ok(value),
    }
}

fn read(asked: &Request) -> Result<Asked, String> {
    let length = |option: &str, default, least| asked.count(option, default, (least, 1 << 24));
    let part = word(asked, "--part", &["error", "cost", "crossover", "trained"])?;
    let data = asked.text("--data").map(PathBuf::from);
    Ok(Asked {
        part: part.or_else(|| data.is_some().then(|| "trained".into())),
        one: word(asked, "--one", &cost::WORKS.map(|(work, _)| work))?,
        m: asked.count("--m", 512, (1, 4096))?,
        length: length("--length", 4096, 2)?,
        repetitions: asked.whole("--repetitions", 15, (2, 10_000))?,
        longest: length("--longest", 1 << 17, 2)?,
        longest_exact: length("--longest-exact", 1 << 15, 0)?,
        data,
        seed: asked.whole("--seed", 0, (0, u64::MAX))?,
        out: asked.out("attention.svg"),
    })
}

fn run(request: &Asked) -> Result<(), String> {
    let Asked { m, length, repetitions, longest, longest_exact, seed, .. } = *request;
    if let Some(work) = &request.one {
        return command::print(&cost::one(work, length, m, seed)?);
    }
    let words = |error: random_features::Error| error.to_string();
    let (frequencies, mut panels) = (request.frequencies(), Vec::new());
    // Files that are not right are a mistake to be told at once.
    let tokens = request.data.as_deref().map_or_else(Tokens::bundled, Tokens::read)?;
    if request.asks_for("error") {
        let setup = accuracy::Setup { length, frequencies: frequencies.clone(), repetitions, seed };
        let found = accuracy::run(&setup).map_err(words)?;
        command::print(&table::accuracy(&setup, &found))?;
        panels.extend(picture::accuracy(&setup, &found));
    }
    if request.asks_for("trained") {
        let setup = trained::Setup { frequencies, repetitions, seed };
        let heads = trained::run(&setup, &tokens).map_err(words)?;
        command::print(&table::trained(&setup, &heads))?;
        panels.extend(picture::trained(&setup, &heads));
    }
    if request.asks_for("cost") {
        let setup = cost::Setup { m: m.min(COST_FREQUENCIES), longest, longest_exact, seed };
        let rows = cost::run(&setup)?;
        command::print(&table::cost(&setup, &rows))?;
        panels.extend(picture::cost(&rows));
    }
    if request.asks_for("crossover") {
        let frequencies = CROSSOVER_FREQUENCIES.map(|most| most.min(m)).to_vec();
        let setup = crossover::Setup { frequencies, longest: longest.min(CROSSOVER_LONGEST), seed };
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
