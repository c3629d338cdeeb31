//! A small language model trained with linear attention as an operation, and with the same features composed of candle's own
//! operations.
//!
//! Both models begin with the same weights and see the same texts; frequencies are redrawn on the way, as performers do. The first table
//! has their losses, which only rounding keeps apart. The second has the times of a step of training and of attention alone, forward
//! and backward, over the length: the composition multiplies all pairs of tokens.
//!
//!     cd examples/candle && cargo run --release --example train -- [--steps 200] [--length 64] [--features 64] [--redraw 50] [--longest 2048]
//!
//! Exit code 0 if all is well, 1 if losses differ by more than 0.1 percent or are not finite, 2 if the request cannot be understood or
//! fulfilled.

#[path = "../arguments/mod.rs"]
mod arguments;
mod model;
mod request;
mod task;
mod timing;

use std::error::Error;
use std::io::Write;
use std::process::ExitCode;

use candle_core::Result;
use model::{Composed, Model, Sizes};
use pico_args::Arguments;
use random_features_candle::LinearSelfAttention;
use request::{HELP, Request};
use task::Task;

/// The largest difference of losses, relative to the loss.
const LIMIT: f64 = 0.001;

/// Losses that are printed.
const ROWS: usize = 10;

/// Trains both, prints their losses, and says whether they agree.
fn train(sizes: Sizes, task: &Task, steps: usize, redraw: usize) -> Result<(String, bool)> {
    let mut linear = Model::<LinearSelfAttention<f32>>::new(sizes)?;
    let mut composed = Model::<Composed>::new(sizes)?;
    let mut text = format!(
        "{steps} steps on texts of {} tokens, {} features, redrawn every {redraw} steps\n{:>6}{:>12}{:>12}{:>12}\n",
        task.length, sizes.features, "step", "operation", "composed", "difference"
    );
    let (mut largest, mut well) = (0f64, true);
    for step in 0..steps {
        if step > 0 && step % redraw == 0 {
            let frequencies = sizes.frequencies((step / redraw) as u64)?;
            linear.redraw(&frequencies)?;
            composed.redraw(&frequencies)?;
        }
        let batch = task.batch(step as u64)?;
        let losses = [linear.step(&batch)?, composed.step(&batch)?];
        let difference = (losses[0] - losses[1]).abs() / losses[1];
        largest = largest.max(difference);
        // NaN is no agreement.
        well &= difference <= LIMIT;
        if step % steps.div_ceil(ROWS) == 0 || step + 1 == steps {
            text += &format!("{step:>6}{:>12.6}{:>12.6}{difference:>12.1e}\n", losses[0], losses[1]);
        }
    }
    text += &format!(
        "Largest difference {:.2e} %. A guess has the loss {:.3}, who knows the tokens of each text at most {:.3}.\n\n",
        100.0 * largest,
        (task::TOKENS as f64).ln(),
        (task::OF_A_TEXT as f64).ln()
    );
    Ok((text, well))
}

/// Prints both tables, and says whether losses agree.
fn run(request: Option<Request>) -> std::result::Result<bool, Box<dyn Error>> {
    let mut out = std::io::stdout();
    let Some(Request { steps, length, features, redraw, longest }) = request else {
        out.write_all(HELP.as_bytes())?;
        return Ok(true);
    };
    let sizes = Sizes { features };
    let (text, well) = train(sizes, &Task { batch: 8, length }, steps, redraw)?;
    out.write_all(text.as_bytes())?;
    out.write_all(timing::table(sizes, longest)?.as_bytes())?;
    Ok(well)
}

fn main() -> ExitCode {
    match Request::read(Arguments::from_env()).map_err(Into::into).and_then(run) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(sentence) => {
            eprintln!("{sentence}");
            ExitCode::from(2)
        }
    }
}
