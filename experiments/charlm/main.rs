#![doc = include_str!("help.txt")]

mod copy;
mod drive;
mod moved;
mod ngram;
mod outcomes;
mod picture;
mod request;
mod study;

use std::process::ExitCode;
use std::time::Instant;

use experiments::transformer::generate;
use experiments::transformer::text::Text;
use experiments::transformer::train::Run;
use experiments::{command, plot};
use ngram::WittenBell;
use request::{COMMAND, Mode, Request};

/// The orders of models beside the transformers.
const ORDERS: [usize; 2] = [3, 5];
/// What the text goes on from.
const BEGINNING: &str = "And Jesus said unto ";

/// The bits of models of the last few characters.
fn orders(request: &Request, text: &Text) -> Result<Vec<(String, f64)>, String> {
    let mut windows = text.examination(request.size(text).context);
    windows.truncate(request.judged());
    let level = |order: usize| {
        let model = WittenBell::new(&text.training, order, text.characters());
        let bits = model.bits(&windows);
        let name = format!("Witten-Bell, {order} characters");
        command::print(&format!("  {name:<26} {bits:.3} bits\n"))?;
        Ok((name, bits))
    };
    ORDERS.into_iter().map(level).collect()
}

/// What the model of a run writes.
fn writes(request: &Request, run: &Run<'_>, text: &Text) -> Result<String, String> {
    let beginning: Vec<u8> = BEGINNING.chars().filter_map(|c| text.number(c)).collect();
    let tokens = generate::generate(&run.model(), &beginning, request.generate, request.seed);
    let tokens = tokens.map_err(|error| error.to_string())?;
    Ok(format!("\n{} writes:\n{BEGINNING}{}\n", run.state.plan.method, text.string(&tokens)))
}

/// Trains on the text, and prints what was learnt.
fn train(request: &Request, text: &Text) -> Result<(), String> {
    let levels = orders(request, text)?;
    let (mut runs, mut written) = (Vec::new(), String::new());
    for method in &request.methods {
        let start = Instant::now();
        let run = request.keeping.finish(request.plan(method, text)?, text)?;
        let seconds = start.elapsed().as_secs_f64();
        let (bits, steps) = (run.judge(request.judged())?.bits(), run.state.step);
        let untaken = drive::untaken(&run.state);
        command::print(&format!(
            "  {method:<26} {bits:.3} bits after {steps} steps{untaken}, {seconds:.0} s\n"
        ))?;
        if request.generate > 0 {
            written += &writes(request, &run, text)?;
        }
        runs.push((run.state, bits));
    }
    command::print(&written)?;
    plot::write(&[picture::curves("The New Testament", &runs, &levels)], &request.out)
}

fn run(request: &Request) -> Result<(), String> {
    let text = Text::bundled()?;
    command::print(&request.heading(&text))?;
    match request.mode {
        Mode::Text | Mode::Long => train(request, &text)?,
        Mode::Copy => copy::run(request, &text)?,
        Mode::Study => return study::run(request, &text),
    }
    command::print(&format!("picture: {}\n", request.out.display()))
}

fn main() -> ExitCode {
    COMMAND.run(|asked| run(&request::read(asked)?).map(|()| true))
}
