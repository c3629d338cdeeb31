//! Time and memory of a pass through the encoder, over the length of a text.

use std::time::Instant;

use crate::MEMORY;
use crate::batch::Batch;
use crate::bert::Bert;
use crate::choice::Choice;
use crate::outcome::Outcome;

/// Passes whose least time counts, after those that warm up.
pub const REPETITIONS: usize = 3;

/// What a pass takes.
#[derive(Clone, Copy)]
pub struct Cost {
    pub all: Part,
    /// The attention of all layers.
    pub attention: Part,
}

/// What a part of a pass takes.
#[derive(Clone, Copy, Default)]
pub struct Part {
    pub milliseconds: f64,
    /// The most millions of bytes that it holds at once, beyond what was there before.
    pub megabytes: f64,
}

impl Part {
    /// Does the work, and adds what it takes: times add up, of memory the most counts.
    fn add<T>(&mut self, work: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
        let (before, start) = (MEMORY.current_usage(), Instant::now());
        MEMORY.reset_peak_usage();
        let done = work()?;
        self.milliseconds += 1e3 * start.elapsed().as_secs_f64();
        let most = MEMORY.peak_usage().saturating_sub(before) as f64 / 1e6;
        self.megabytes = self.megabytes.max(most);
        Ok(done)
    }
}

/// The cost for one text: the memory of the passes that warm up, and the least times of others.
pub fn cost(bert: &Bert, choice: &Choice, text: &[u32]) -> Outcome<Cost> {
    let batch = Batch::new(&[text.to_vec()])?;
    let (mut all, mut attention) = (Part::default(), Part::default());
    // Passes are counted apart, since each count of memory begins anew.
    all.add(|| choice.embed(bert, &batch))?;
    bert.embed(&batch, &mut |layer, tokens| attention.add(|| choice.attend(layer, &tokens)))?;
    [all.milliseconds, attention.milliseconds] = [f64::INFINITY; 2];
    for _ in 0..REPETITIONS {
        let (mut whole, mut part) = (Part::default(), Part::default());
        whole.add(|| bert.embed(&batch, &mut |layer, tokens| part.add(|| choice.attend(layer, &tokens))))?;
        all.milliseconds = all.milliseconds.min(whole.milliseconds);
        attention.milliseconds = attention.milliseconds.min(part.milliseconds);
    }
    Ok(Cost { all, attention })
}
