//! [`Request`]: which queries a worker answers, and where what they read goes; [`VisibleKeys`]: the keys that they see.

use std::ops::Range;
use std::sync::OnceLock;

use ndarray::ArrayViewMut2;

use super::super::features::{Chunk, LogBuffers, Setup, Tokens};
use super::super::input::Estimated;
use super::sink::Sink;
use crate::Real;
use crate::reduce::{RunSums, WeightedSums};

/// The keys that queries of a chunk see: all before the chunk, and a prefix of its own keys for each query.
pub(super) struct VisibleKeys<'a, T: Real> {
    pub chunk: &'a Chunk<T>,
    /// The sums over the keys before the chunk, to be multiplied in `T`.
    pub before: &'a RunSums<T>,
    /// What serves queries whose features do not fit `T`; without it these are not answered.
    pub slow: Option<SlowPath<'a, T>>,
}

/// The visible keys, to be summed up by logarithms in `f64`.
pub(super) struct SlowPath<'a, T: Real> {
    /// The keys of the chunk.
    pub keys: &'a mut Tokens<T>,
    /// The sums over whole segments before the chunk, and over the chunks since.
    pub past: [&'a WeightedSums<T>; 2],
    pub prefix: &'a mut PrefixSums<T>,
}

/// The sums over all keys before a chunk and over the first of its own.
#[derive(Clone, Debug, Default)]
pub(super) struct PrefixSums<T> {
    state: Option<WeightedSums<T>>,
    /// How many keys of the chunk are in it.
    keys: usize,
}

/// Which of the queries that a worker has read it answers, and where what they read goes.
pub(in super::super) struct Request<'a, T> {
    pub queries: Range<usize>,
    /// How many keys of the chunk the first query sees; each query sees one more than the one before.
    pub sees: usize,
    /// The position of the first query in its sequence.
    pub position: usize,
    /// Estimates from keys that are not visible here, a row for each query.
    pub others: Option<ArrayViewMut2<'a, f64>>,
    /// Where estimates by products of features are kept.
    pub estimated: Option<&'a OnceLock<Estimated<T>>>,
    /// Takes a row for each query.
    pub sink: &'a mut dyn Sink<T>,
    /// Takes the rows whose normaliser is not positive.
    pub report: &'a mut dyn FnMut(usize),
}

impl<T: Real> VisibleKeys<'_, T> {
    /// The keys for a shorter time.
    pub fn reborrow(&mut self) -> VisibleKeys<'_, T> {
        let slow =
            self.slow.as_mut().map(|SlowPath { keys, past, prefix }| SlowPath { keys, past: *past, prefix });
        VisibleKeys { chunk: self.chunk, before: self.before, slow }
    }
}

impl<T: Real> PrefixSums<T> {
    /// Forgets the sums, whose chunk has ended.
    pub fn clear(&mut self) {
        self.state = None;
    }

    /// The sums over the keys that a query sees: all before the chunk, and the first `end` of its own.
    pub fn upto<'a>(
        &'a mut self,
        setup: Setup<'_, T>,
        chunk: &Chunk<T>,
        (keys, past): (&mut Tokens<T>, [&WeightedSums<T>; 2]),
        end: usize,
        buffers: &mut LogBuffers<T>,
    ) -> &'a WeightedSums<T> {
        if self.keys > end {
            self.state = None;
        }
        let state = self.state.get_or_insert_with(|| {
            let mut state = past[0].clone();
            state.merge(past[1]);
            self.keys = 0;
            state
        });
        (self.keys..end).for_each(|j| chunk.push_to(setup, keys, j, state, buffers));
        self.keys = end;
        state
    }
}
