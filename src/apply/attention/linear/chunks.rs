//! Keys on their way into sums, chunk by chunk.

use super::super::features::{Chunk, Setup};
use super::super::input::{CHUNK, KeyRun, cuts};
use super::worker::Worker;
use crate::Real;
use crate::reduce::WeightedSums;

/// A chunk of keys, and the worker that reads it.
#[derive(Default)]
pub(super) struct ChunkReader<T> {
    chunk: Chunk<T>,
    worker: Worker<T>,
}

impl<T: Real> ChunkReader<T> {
    /// Adds keys to a state chunk by chunk, and shows the state before each chunk.
    pub fn add(
        &mut self,
        setup: Setup<'_, T>,
        keys: KeyRun<'_, T>,
        state: &mut WeightedSums<T>,
        mut show: impl FnMut(&WeightedSums<T>),
    ) {
        let ChunkReader { chunk, worker } = self;
        for run in cuts(0..keys.len(), CHUNK) {
            read_keys(setup, keys.rows(run), worker, chunk);
            show(state);
            chunk.add_to(setup, &mut worker.tokens, state, &mut worker.logs);
        }
    }
}

/// Reads a run of keys into an empty chunk; they are the worker's tokens then.
pub(super) fn read_keys<T: Real>(
    setup: Setup<'_, T>,
    run: KeyRun<'_, T>,
    worker: &mut Worker<T>,
    chunk: &mut Chunk<T>,
) {
    worker.read_keys(setup, run.reborrow());
    chunk.clear();
    chunk.extend(&mut worker.tokens, run.values, run.mask);
}
