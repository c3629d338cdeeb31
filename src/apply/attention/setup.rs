//! [`Setup`]: a map and how attention uses it, as every step on the way of a row reads it.

use super::exact_keys::ExactKeys;
use super::reading::Reading;
use super::window::Neighbours;
use crate::engine::Program;

/// Tokens of a chunk. For each token, products with keys of its chunk cost in proportion to this, and updates of sums in inverse
/// proportion.
pub(super) const CHUNK: usize = 64;
/// Tokens of a segment, whose sums are one term of those of the whole.
pub(super) const SEGMENT: usize = 16 * CHUNK;

/// A map and how it is used.
#[derive(Clone, Copy)]
pub(super) struct Setup<'a, T> {
    pub program: &'a Program<T>,
    pub reading: &'a Reading,
    /// Whether outputs are divided by their normaliser.
    pub normalised: bool,
    /// Keys of the sequence whose weights are computed exactly instead of from features.
    pub exact: Option<&'a ExactKeys<T>>,
    /// Keys near each query of which the same holds.
    pub near: Option<&'a Neighbours<'a, T>>,
    /// Whether a query sees the keys up to its own place only.
    pub causal: bool,
}

impl<'a, T> Setup<'a, T> {
    /// The same with exact keys, and neighbours among others.
    pub fn beside<'b>(
        self,
        exact: Option<&'b ExactKeys<T>>,
        near: Option<&'b Neighbours<'b, T>>,
    ) -> Setup<'b, T>
    where
        'a: 'b,
    {
        let Setup { program, reading, normalised, causal, .. } = self;
        Setup { program, reading, normalised, exact, near, causal }
    }
}
