//! Texts to train on: each is made of a few tokens, which only those before tell.

use candle_core::{Device, Result, Tensor};
use random_features::rand::RngExt;
use random_features::rng_of_step;

/// Tokens that there are.
pub const TOKENS: usize = 16;
/// Tokens that a text is made of, some of which may be the same.
pub const OF_A_TEXT: usize = 4;

const SEED: u64 = 5;

/// Texts of so many tokens, so many at once.
pub struct Task {
    pub batch: usize,
    pub length: usize,
}

/// Tokens \[batch, length\], and those that follow each.
pub struct Batch {
    pub tokens: Tensor,
    pub next: Tensor,
}

impl Task {
    /// The texts of a step.
    pub fn batch(&self, step: u64) -> Result<Batch> {
        let mut rng = rng_of_step(SEED, step);
        let mut all = Vec::new();
        for _ in 0..self.batch {
            let alphabet = [(); OF_A_TEXT].map(|()| rng.random_range(0..TOKENS as u32));
            all.extend((0..=self.length).map(|_| alphabet[rng.random_range(0..OF_A_TEXT)]));
        }
        let texts = Tensor::from_vec(all, (self.batch, self.length + 1), &Device::Cpu)?;
        Ok(Batch { tokens: texts.narrow(1, 0, self.length)?, next: texts.narrow(1, 1, self.length)? })
    }
}
