//! Exact neighbours: [`Neighbours`] are the keys among which queries have some, [`Ring`] keeps them packed.

use super::super::input::{Attention, CHUNK, Job, KeyRun, Reading, Window};
use super::blocks::{KeyBlock, See, SeenPlaces};
use crate::Real;

/// The keys of a sequence among which queries have neighbours.
pub(in super::super) struct Neighbours<'a, T> {
    pub window: Window,
    /// How keys are read for exact logits.
    reading: Reading,
    keys: KeyRun<'a, T>,
    /// The place of the first.
    first: usize,
}

/// What a thread keeps of the neighbours of one run of queries for the next: their keys, packed in blocks that begin at multiples of
/// [`CHUNK`].
#[derive(Debug, Default)]
pub(in super::super) struct Ring<T> {
    blocks: Vec<KeyBlock<T>>,
    room: Vec<T>,
}

/// The most blocks that are kept.
const KEPT: usize = 16;

impl<'a, T: Real> Neighbours<'a, T> {
    /// The neighbours of a job's queries, causally or not; `None` if they have none.
    pub fn of_job(attention: &Attention<T>, job: &Job<'a, T>, causal: bool) -> Option<Self> {
        let near = attention.near(attention.of_pairs(job.head), causal)?;
        Some(Neighbours::new(near, job.keys.reborrow(), 0))
    }

    /// Neighbours among some keys, of which the first is at place `first`.
    pub fn new((window, reading): (Window, Reading), keys: KeyRun<'a, T>, first: usize) -> Self {
        Neighbours { window, reading, keys, first }
    }

    /// Shows the blocks that hold what so many queries see, the i-th the keys at places `sees(i)`, which ascend.
    pub fn visit(&self, ring: &mut Ring<T>, count: usize, sees: &SeenPlaces<'_>, see: &mut See<'_, T>) {
        let (first, end) = (self.first, self.first + self.keys.len());
        let (from, to) = (sees(0).start.max(first), sees(count.saturating_sub(1)).end.min(end));
        let slots = KEPT.min((to.saturating_sub(from)).div_ceil(CHUNK) + 1);
        let Ring { blocks, room } = ring;
        if blocks.len() < slots {
            blocks.resize_with(slots, KeyBlock::default);
        }
        let slots = blocks.len();
        for index in from / CHUNK..to.div_ceil(CHUNK).max(from / CHUNK) {
            let places = first.max(index * CHUNK)..end.min((index + 1) * CHUNK);
            let block = &mut blocks[index % slots];
            if !block.holds(&places) {
                let keys = self.keys.rows(places.start - first..places.end - first);
                block.read(&self.reading, keys, places.start, room);
            }
            see(block, sees);
        }
    }
}

impl<T: Real> Ring<T> {
    /// Forgets the keys, since the next are others.
    pub fn forget(&mut self) {
        self.blocks.iter_mut().for_each(KeyBlock::forget);
    }
}
