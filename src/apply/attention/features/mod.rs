//! Features of runs of tokens with their scales, up to a chunk of them, ready to be multiplied and summed up.

mod chunk;
mod key_weights;
mod lifted;
mod setup;
mod tokens;

pub(super) use self::chunk::{Chunk, LogBuffers};
pub(super) use self::key_weights::KeyWeights;
pub(super) use self::setup::Setup;
pub(super) use self::tokens::Tokens;
