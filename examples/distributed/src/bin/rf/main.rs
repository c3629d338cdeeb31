//! `rf`: fits of random features over Parquet files, in this process or on a Ballista cluster.
//!
//! Exit code 0 if all is well, 2 if a request cannot be understood or fulfilled; standard error says why in a sentence.

mod arguments;
mod asked;
mod choice;
mod fit;
mod generate;
#[cfg_attr(not(feature = "cluster"), path = "without_cluster.rs")]
mod on_cluster;
mod output;
mod plan;
mod predict;
mod progress;
mod say;
#[cfg(feature = "cluster")]
mod serve;

use std::process::ExitCode;

use arguments::{Arguments, Command};
use clap::Parser;

fn main() -> ExitCode {
    let Arguments { command } = Arguments::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return refused(&error.to_string()),
    };
    match runtime.block_on(run(command)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => refused(&sentence),
    }
}

async fn run(command: Command) -> Result<(), String> {
    match command {
        Command::Plan(asked) => plan::run(asked).await,
        Command::Fit(asked) => fit::run(asked).await,
        Command::Predict(asked) => predict::run(asked).await,
        Command::Generate(asked) => generate::run(asked),
        #[cfg(feature = "cluster")]
        Command::Serve(asked) => serve::run(asked).await,
    }
}

fn refused(sentence: &str) -> ExitCode {
    say::note(&format!("rf: {sentence}\n"));
    ExitCode::from(2)
}
