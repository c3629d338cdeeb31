//! Does linear attention do what attention does, and what does it cost? The experiments of the paper *Rethinking Attention
//! with Performers* on errors (Figure 4) and costs (Figures 3 and 20), and a trained transformer's heads.
//!
//!     cargo run --release --example attention -- [--part error|cost|trained] [--m 512] [--length 4096]
//!         [--repetitions 15] [--longest 131072] [--longest-exact 32768] [--data FOLDER] [--seed 0]
//!         [--out target/attention.svg]
//!
//! `error`: the error of the output against exact attention, for five maps and three couplings of 16 to `--m` frequencies on
//! `--length` random tokens, with what the error report predicts. `cost`: time and memory of linear and exact attention for
//! lengths from 1024 on, beside "X", an output that only copies the values; each is measured in a process of its own, which
//! is this example with `--one WORK`. `trained`: the error on the queries and keys of a trained transformer, beside that of
//! the mean of the values, and what the error report says. `--data` is a folder with q.npy, k.npy and v.npy, each heads ×
//! length × dim, before the scale 1/√d; without it, two heads that come with the example are taken. Without `--part` it is
//! all three, which takes about a minute. A picture draws errors, times and memory.
//!
//! Exit code 0 if all is well, 2 if the request cannot be understood or fulfilled.

mod accuracy;
#[path = "../common/arguments.rs"]
mod arguments;
mod cost;
mod files;
mod methods;
mod picture;
#[path = "../common/plot.rs"]
mod plot;
mod table;
mod trained;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use files::Tokens;

const USAGE: &str = "attention [--part error|cost|trained] [--m M] [--length L] [--repetitions REPETITIONS] \
                     [--longest L] [--longest-exact L] [--data FOLDER] [--seed SEED] [--out FILE.svg]";

/// The frequencies of attention whose cost is measured, if `--m` allows so many.
const COST_FREQUENCIES: usize = 256;

/// What was asked on the command line.
struct Request {
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

impl Request {
    /// 16, 32, … and m itself.
    fn frequencies(&self) -> Vec<usize> {
        let doubled = std::iter::successors(Some(16), |m| Some(2 * m));
        doubled.take_while(|m| *m < self.m).chain([self.m]).collect()
    }

    fn asks_for(&self, part: &str) -> bool {
        self.part.as_ref().is_none_or(|asked| asked == part)
    }
}

/// One of some words.
fn word(option: &str, value: &str, words: &[&str]) -> Result<Option<String>, String> {
    match words.contains(&value) {
        true => Ok(Some(value.to_string())),
        false => Err(format!("{option} takes one of {}, not '{value}'", words.join(", "))),
    }
}

/// The request, or `None` for a request for help.
fn request(arguments: impl Iterator<Item = OsString>) -> Result<Option<Request>, String> {
    let known = [
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
    ];
    let Some(options) = arguments::options(arguments, &known, USAGE)? else { return Ok(None) };
    let mut request = Request {
        part: None,
        one: None,
        m: 512,
        length: 4096,
        repetitions: 15,
        longest: 1 << 17,
        longest_exact: 1 << 15,
        data: None,
        seed: 0,
        out: ["target", "attention.svg"].iter().collect(),
    };
    for (option, value) in options {
        let text = value.to_string_lossy();
        let length = |least| arguments::whole(&option, &text, least, 1 << 24).map(|length| length as usize);
        match option.as_str() {
            "--part" => request.part = word(&option, &text, &["error", "cost", "trained"])?,
            "--one" => request.one = word(&option, &text, &cost::WORKS.map(|(work, _)| work))?,
            "--m" => request.m = arguments::whole(&option, &text, 1, 4096)? as usize,
            "--length" => request.length = length(2)?,
            "--repetitions" => request.repetitions = arguments::whole(&option, &text, 2, 10_000)?,
            "--longest" => request.longest = length(2)?,
            "--longest-exact" => request.longest_exact = length(0)?,
            "--data" => request.data = Some(PathBuf::from(value)),
            "--seed" => request.seed = arguments::whole(&option, &text, 0, u64::MAX)?,
            _ => request.out = PathBuf::from(value),
        }
    }
    Ok(Some(request))
}

fn run(request: &Request) -> Result<(), String> {
    let Request { m, length, repetitions, longest, longest_exact, seed, .. } = *request;
    if let Some(work) = &request.one {
        return arguments::print(&cost::one(work, length, m, seed)?);
    }
    let words = |error: random_features::Error| error.to_string();
    let (frequencies, mut panels) = (request.frequencies(), Vec::new());
    // Files that are not right are a mistake to be told at once.
    let tokens = request.data.as_deref().map_or_else(Tokens::bundled, Tokens::read)?;
    if request.asks_for("error") {
        let setup = accuracy::Setup { length, frequencies: frequencies.clone(), repetitions, seed };
        let found = accuracy::run(&setup).map_err(words)?;
        arguments::print(&table::accuracy(&setup, &found))?;
        panels.extend(picture::accuracy(&setup, &found));
    }
    if request.asks_for("trained") {
        let setup = trained::Setup { frequencies, repetitions, seed };
        let heads = trained::run(&setup, &tokens).map_err(words)?;
        arguments::print(&table::trained(&setup, &heads))?;
        panels.extend(picture::trained(&setup, &heads));
    }
    if request.asks_for("cost") {
        let setup = cost::Setup { m: m.min(COST_FREQUENCIES), longest, longest_exact, seed };
        let rows = cost::run(&setup)?;
        arguments::print(&table::cost(&setup, &rows))?;
        panels.extend(picture::cost(&rows));
    }
    plot::write(&panels, &request.out)?;
    arguments::print(&format!("picture: {}\n", request.out.display()))
}

fn main() -> ExitCode {
    let done = request(std::env::args_os().skip(1)).and_then(|request| match request {
        Some(request) => run(&request),
        None => arguments::print(&format!("usage: {USAGE}\n")),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("{sentence}");
            ExitCode::from(2)
        }
    }
}
