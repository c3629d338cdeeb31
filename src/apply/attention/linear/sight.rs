//! [`Sight`]: the keys that queries of a chunk see, and [`Asked`]: which queries, and where their outputs go.

use std::ops::Range;

use super::super::features::{Chunk, LogBuffers, Setup, Tokens};
use super::scan::Outlet;
use crate::Real;
use crate::reduce::{RunSums, WeightedSums};

/// The keys that queries of a chunk see: those of the chunk, of which each query sees some of the first, and all before it.
pub(super) struct Sight<'a, T: Real> {
    pub chunk: &'a Chunk<T>,
    /// The sums over the keys before the chunk, to be multiplied in `T`.
    pub before: &'a RunSums<T>,
    /// What serves queries that products in `T` do not.
    pub rest: Option<Rest<'a, T>>,
}

/// The same keys, to be summed up by logarithms in `f64`.
pub(super) struct Rest<'a, T: Real> {
    /// Those of the chunk.
    pub tokens: &'a mut Tokens<T>,
    /// The sums over whole segments before the chunk, and over the chunks since.
    pub past: [&'a WeightedSums<T>; 2],
    pub logged: &'a mut Logged<T>,
}

/// The sums over all keys before a chunk and over some of its first.
#[derive(Clone, Debug, Default)]
pub(super) struct Logged<T> {
    state: Option<WeightedSums<T>>,
    keys: usize,
}

/// Which of the queries that were read are asked, and where their outputs go.
pub(in super::super) struct Asked<'a, T> {
    pub queries: Range<usize>,
    /// How many keys of the chunk the first of them sees; each query sees one more than the one before.
    pub sees: usize,
    /// The place of the first of them in the sequence.
    pub place: usize,
    pub out: Outlet<'a, T>,
    /// Takes the rows of `out` whose normaliser is not positive.
    pub report: &'a mut dyn FnMut(usize),
}

impl<T: Real> Logged<T> {
    /// Forgets the sums, whose chunk has ended.
    pub fn clear(&mut self) {
        self.state = None;
    }

    /// The sums over the keys that a query sees: all before the chunk, and `end` of it.
    pub fn upto<'a>(
        &'a mut self,
        setup: Setup<'_, T>,
        chunk: &Chunk<T>,
        (tokens, past): (&mut Tokens<T>, [&WeightedSums<T>; 2]),
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
        (self.keys..end).for_each(|j| chunk.push_to(setup, tokens, j, state, buffers));
        self.keys = end;
        state
    }
}
