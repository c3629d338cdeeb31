//! Causal attention token by token: states of sequences, and batches of them.

mod batch;
mod head;
mod step;

pub use self::step::{CausalState, Step};
