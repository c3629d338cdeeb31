//! What are features worth that are shaped by the data, in the attention of a trained transformer's heads and of synthetic data?
//!
//!     cargo run --release --example shaped_attention -- [--data FOLDER] [--m 64,256,1024] [--repeat 8] [--seed 0]
//!         [--json] [--out target/shaped_attention.svg]
//!
//! The error of the output of linear attention against exact attention (relative, Frobenius), averaged over heads and draws, for
//! positive features and for features whose law is chosen by the data, in the steps of `data::shaping`:
//!
//!     shaped             shifts, T, the basis and coefficients, by the moments of queries and keys: unbiased
//!     weighted           the same for the pairs that matter: rows of the exact attention matrix weigh them
//!     weighted-exact     the same with the 4 heaviest keys taken exactly
//!     truncated          only the leading coordinates, whose number suits m: biased
//!     truncated-exact    the same with the 4 heaviest keys taken exactly
//!     positive-near,     with 4 heaviest keys and 8 neighbours on either side of each query taken exactly; chosen by the
//!     weighted-near,     other pairs
//!     truncated-near
//!     alone-exact,       exact pairs alone, renormalised, without features (m = 0): 4 keys, or these and the neighbours
//!     alone-near
//!
//! Each is chosen on what it is evaluated on (`same`), on the attention of half of the queries and evaluated on the other half
//! (`queries`), or on half of the tokens and evaluated on the others among themselves (`tokens`), for four random halves. Choosing on
//! the evaluated tokens is legitimate in bidirectional attention, whose frequencies do not depend on them, and not in causal
//! attention. Half of the tokens have no neighbours: rows with them are missing there.
//!
//! `--data` is a folder with q.npy, k.npy and v.npy, each heads × length × dim, before the scale 1/√d; without it, two heads that
//! come with the experiment `attention` are taken. `--json` prints one line for each map, fit and m: {map, fit, m, biased, predicted,
//! error, standard_error}; `predicted` is the mean over pairs of the logarithm of an estimate's relative second moment, less ln m: what
//! the choice expects, beside exact keys and bias. Without it the program prints tables, what shaping saves on three kinds of
//! synthetic data, and errors of causal attention over sequences of 4096 tokens that look to what is near, to topics that come
//! again, or to both. A picture draws errors over m.
//!
//! Exit code 0 if all is well, 2 if the request cannot be understood or fulfilled.

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
use experiments::plot;
use experiments::tokens::Tokens;
use trained::Setup;

const COMMAND: Command = Command {
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
    let results = trained::run(&setup, &tokens).map_err(words)?;
    if asked.has("--json") {
        return command::print(&table::json(&results));
    }
    command::print(&table::trained(&setup, tokens.heads(), &results))?;
    let synthetic = synthetic::run(&setup).map_err(words)?;
    command::print(&table::synthetic(&synthetic))?;
    let long = sequences::run(&setup).map_err(words)?;
    command::print(&table::sequences(&setup, &long))?;
    plot::write(&picture::panels(&results), &out)?;
    command::print(&format!("picture: {}\n", out.display()))
}

fn main() -> ExitCode {
    COMMAND.run(|asked| run(asked).map(|()| true))
}
