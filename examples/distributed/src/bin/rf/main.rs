//! `rf`: fits of random features over Parquet files, in this process or on a Ballista cluster.
//!
//! Exit code 0 if all is well, also where a command is done within half a second after a signal; 2 if a request cannot be understood
//! or fulfilled; 130 and 143 if SIGINT or SIGTERM ended a command before it was done. Standard error says why in a sentence.

mod arguments;
mod asked;
mod choice;
mod division;
mod fit;
mod generate;
#[cfg_attr(not(feature = "cluster"), path = "without_cluster.rs")]
mod on_cluster;
mod output;
mod plan;
mod predict;
mod progress;
mod reading;
mod say;
mod score;
#[cfg(feature = "cluster")]
mod serve;
mod solved;
mod stop;

use std::process::ExitCode;

use arguments::{Arguments, Command};
use clap::Parser;

fn main() -> ExitCode {
    let Arguments { command } = Arguments::parse();
    let code = match command {
        // Servers end by signals in their own way.
        #[cfg(feature = "cluster")]
        Command::Serve(asked) => run(serve::run(asked)).map(|()| ExitCode::SUCCESS),
        Command::Plan(asked) => stop::until_signal(|| run(plan::run(asked))),
        Command::Fit(asked) => stop::until_signal(|| run(fit::run(asked))),
        Command::Predict(asked) => stop::until_signal(|| run(predict::run(asked))),
        Command::Score(asked) => stop::until_signal(|| run(score::run(asked))),
        Command::Generate(asked) => stop::until_signal(|| generate::run(asked)),
    };
    code.unwrap_or_else(|sentence| {
        say::note(&format!("rf: {sentence}\n"));
        ExitCode::from(2)
    })
}

/// What a command comes to. What it leaves at work ends with the process.
fn run(command: impl Future<Output = Result<(), String>>) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let outcome = runtime.block_on(command);
    runtime.shutdown_background();
    outcome
}
