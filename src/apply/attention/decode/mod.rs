//! Causal attention token by token: states of sequences, and batches of them.

mod batch;
mod head;
mod state;
mod step;

pub use self::state::CausalState;
pub(super) use self::step::SHARED;
