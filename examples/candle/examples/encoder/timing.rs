//! Time and memory of a pass through the encoder, over the length of a text.

use std::time::Instant;

use crate::MEMORY;
use crate::batch::Batch;
use crate::bert::Bert;
use crate::choice::Choice;
use crate::outcome::Outcome;

/// Passes whose least time counts, after one that warms up.
pub const REPETITIONS: usize = 3;

/// What a pass takes.
#[derive(Clone, Copy)]
pub struct Cost {
    /// The time of the pass, in milliseconds.
    pub all: f64,
    /// The time of attention in it.
    pub attention: f64,
    /// The most memory that it holds at once beyond the model, in millions of bytes.
    pub memory: f64,
}

/// The cost for one text: the least times, and the memory of the pass that warms up.
pub fn cost(bert: &Bert, choice: &Choice, text: &[u32]) -> Outcome<Cost> {
    let batch = Batch::new(&[text.to_vec()])?;
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    pass(bert, choice, &batch)?;
    let memory = MEMORY.peak_usage().saturating_sub(before) as f64 / 1e6;
    let mut least = [f64::INFINITY; 2];
    for _ in 0..REPETITIONS {
        let times = pass(bert, choice, &batch)?;
        least = [least[0].min(times[0]), least[1].min(times[1])];
    }
    Ok(Cost { all: least[0], attention: least[1], memory })
}

/// The milliseconds of a pass, and of attention in it.
fn pass(bert: &Bert, choice: &Choice, batch: &Batch) -> Outcome<[f64; 2]> {
    let (start, mut attention) = (Instant::now(), 0.0);
    bert.embed(batch, &mut |layer, tokens| {
        let start = Instant::now();
        let outputs = choice.attend(layer, &tokens);
        attention += milliseconds(start);
        outputs
    })?;
    Ok([milliseconds(start), attention])
}

fn milliseconds(since: Instant) -> f64 {
    1e3 * since.elapsed().as_secs_f64()
}
