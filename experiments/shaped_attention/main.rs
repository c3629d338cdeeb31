#![doc = include_str!("help.txt")]

mod alone;
mod maps;
mod picture;
mod sequences;
mod splits;
mod synthetic;
mod table;
mod trained;

use std::path::PathBuf;
use std::process::ExitCode;

use experiments::command::{self, Command, Request};
use experiments::tokens::Tokens;
use experiments::{plot, progress};
use trained::Setup;

const COMMAND: Command = Command {
    help: include_str!("help.txt"),
    options: &["--data", "--m", "--repeat", "--seed", "--out"],
    flags: &["--json"],
    ..Command::new(
        "shaped_attention [--data FOLDER] [--m M,M,…] [--repeat REPEATS] [--seed SEED] [--json] [--out FILE.svg]",
    )
};

/// The numbers of features, in the order in which they were asked for.
fn features(asked: &Request) -> Result<Vec<usize>, String> {
    let text = asked.text("--m").unwrap_or("64,256,1024".into());
    let one = |word: &str| word.trim().parse().ok().filter(|m| (2..=65_536).contains(m));
    let all: Option<Vec<usize>> = text.split(',').map(one).collect();
    all.ok_or_else(|| {
        format!("--m takes whole numbers from 2 to 65536 with commas between them, not '{text}'")
    })
}

fn run(asked: &Request) -> Result<(), String> {
    let setup = Setup {
        features: features(asked)?,
        repeat: asked.whole("--repeat", 8, (1, 10_000))?,
        seed: asked.whole("--seed", 0, (0, u64::MAX))?,
    };
    let out = asked.out("shaped_attention.svg")?;
    let tokens =
        asked.text("--data").map_or_else(Tokens::bundled, |folder| Tokens::read(&PathBuf::from(folder)))?;
    let words = |error: random_features::Error| error.to_string();
    progress::begin(&format!("measures errors of all maps on {} heads", tokens.heads()));
    let results = trained::run(&setup, &tokens).map_err(words)?;
    if asked.has("--json") {
        return command::print(&table::json(&results));
    }
    command::print(&table::trained(&setup, tokens.heads(), &results))?;
    progress::begin("measures errors on synthetic data");
    let synthetic = synthetic::run(&setup).map_err(words)?;
    command::print(&table::synthetic(&synthetic))?;
    progress::begin("measures errors of causal attention over long sequences");
    let long = sequences::run(&setup).map_err(words)?;
    command::print(&table::sequences(&setup, &long))?;
    plot::write(&picture::panels(&results), &out)?;
    command::print(&format!("picture: {}\n", out.display()))
}

fn main() -> ExitCode {
    COMMAND.run(|asked| run(asked).map(|()| true))
}
