//! Attention: what it gives against the definition, and what is said of it.

mod decoding;
mod effective_features;
mod exact_keys;
mod gradient;
mod judge;
mod limits;
mod linear;
mod oracle;
mod usual;
mod ways;
mod window;

use random_features::frequency::Orthogonal;
use random_features::{Map, Positive, Real};

use crate::common::frequencies;

/// Positive features of the softmax kernel.
fn positive<T: Real>(d: usize, m: usize) -> Map<T> {
    Positive.softmax(frequencies(d, m, &Orthogonal, 7)).unwrap()
}
