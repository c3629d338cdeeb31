//! [`Segment`]: keys whose chunks threads share, so that one head keeps all of them busy.
//!
//! Each chunk's keys are summed up on their own; prefix sums over chunks then give the sums over all keys before each of them, so
//! no key is read twice. Where a chunk needs more than matrix products, one thread computes the sums before each chunk, in
//! order, and threads share the outputs again.

use std::ops::Range;

use super::super::features::{Chunk, Setup};
use super::super::input::{CHUNK, KeyRun, NonPositive, cuts};
use super::chunks::{ChunkReader, read_keys};
use super::request::{PrefixSums, SlowPath, VisibleKeys};
use super::scan::{Reader, Scan};
use super::worker::Worker;
use crate::Real;
use crate::progress;
use crate::reduce::{RunSums, WeightedSums};
use crate::threads::Pool;

/// Tokens of a segment, whose sums are one term of the sums over the whole.
pub(super) const SEGMENT: usize = 16 * CHUNK;

/// The chunks of a segment, and a worker for each thread that shares them.
pub(super) struct Segment<T: Real> {
    /// The keys of each chunk.
    chunks: Vec<Chunk<T>>,
    workers: Pool<Worker<T>>,
    /// The sums over the keys of the segment.
    last: WeightedSums<T>,
}

/// The queries whose last key is in a chunk.
struct ChunkQueries<'a, T> {
    /// The queries of each head.
    readers: Vec<Reader<'a, T>>,
    /// How many keys of the chunk the first query of a head sees.
    sees: usize,
}

impl<T: Real> ChunkQueries<'_, T> {
    /// Answers the queries. `None` where they need the slow path and there is none.
    fn answer(
        &mut self,
        setup: Setup<'_, T>,
        mut visible: VisibleKeys<'_, T>,
        worker: &mut Worker<T>,
    ) -> Option<NonPositive> {
        let mut non_positive = NonPositive::new();
        for reader in &mut self.readers {
            let [b, h, first] = reader.queries.origin;
            worker.read_queries(setup, reader.queries.reborrow());
            let report = &mut |i| non_positive.push([b, h, first + i]);
            if !worker.answer(setup, visible.reborrow(), reader.request(self.sees, report)) {
                return None;
            }
        }
        Some(non_positive)
    }
}

impl<T: Real> Segment<T> {
    /// For sums of so many features and targets.
    pub fn new(features: usize, targets: usize) -> Self {
        let mut chunks = Vec::new();
        chunks.resize_with(SEGMENT / CHUNK, Chunk::default);
        Segment { chunks, workers: Pool::default(), last: WeightedSums::new(features, targets) }
    }

    /// Adds the keys of a segment to a state.
    pub fn add_keys(&mut self, setup: Setup<'_, T>, keys: KeyRun<'_, T>, state: &mut WeightedSums<T>) {
        if !self.sum(setup, keys, state) {
            self.walk(setup, keys, |_| {});
        }
        state.merge(&self.last);
    }

    /// The sums over the keys of the last segment.
    pub fn sums(&self) -> &WeightedSums<T> {
        &self.last
    }

    /// Answers the queries of a scan whose last key is in a segment, which see `state` and the keys up to that. Sums up the keys of the
    /// segment.
    pub fn answer(
        &mut self,
        setup: Setup<'_, T>,
        scan: &mut Scan<'_, T>,
        state: &WeightedSums<T>,
        segment: Range<usize>,
    ) -> NonPositive {
        let summed = self.sum(setup, scan.keys.rows(segment.clone()), state);
        let mut queries: Vec<ChunkQueries<'_, T>> = cuts(segment.clone(), CHUNK)
            .map(|run| scan.take_of(&run))
            .map(|(readers, sees)| ChunkQueries { readers, sees })
            .collect();
        let non_positive = if summed { self.by_products(setup, &mut queries) } else { None };
        non_positive.unwrap_or_else(|| self.by_logarithms(setup, (scan.keys.rows(segment), queries), state))
    }

    /// Sums up the keys of a segment, chunk by chunk, and gives each chunk the sums over all keys before it. False where a key
    /// cannot be added by matrix products.
    fn sum(&mut self, setup: Setup<'_, T>, keys: KeyRun<'_, T>, before: &WeightedSums<T>) -> bool {
        self.last.clear();
        let chunks = &mut self.chunks[..keys.len().div_ceil(CHUNK)];
        let runs = cuts(0..keys.len(), CHUNK);
        self.workers.for_each(chunks.iter_mut().zip(runs), |worker, (chunk, run)| {
            read_keys(setup, keys.rows(run), worker, chunk);
            chunk.sum(&worker.tokens);
            chunk.pack(&worker.tokens);
        });
        let mut seen = before.has_seen();
        for chunk in &mut *chunks {
            chunk.seen_before = seen;
            if chunk.has_any(chunk.len()) {
                self.last.see();
                seen = true;
            }
        }
        let all_fit = chunks.iter().all(Chunk::fits);
        let mut parts: Vec<_> = chunks.iter_mut().map(Chunk::part_mut).collect();
        all_fit && before.prefixes(&mut self.last, &mut parts)
    }

    /// Answers the queries of a segment whose keys are summed up; `None` where one needs the slow path.
    fn by_products(
        &mut self,
        setup: Setup<'_, T>,
        queries: &mut [ChunkQueries<'_, T>],
    ) -> Option<NonPositive> {
        let of_chunk = |worker: &mut Worker<T>, (chunk, queries): (&Chunk<T>, &mut ChunkQueries<'_, T>)| {
            queries.answer(setup, VisibleKeys { chunk, before: chunk.part(), slow: None }, worker)
        };
        let all = self.workers.map(self.chunks.iter().zip(queries), of_chunk);
        all.into_iter().collect::<Option<Vec<NonPositive>>>().map(|non_positive| non_positive.concat())
    }

    /// As [`by_products`](Segment::by_products), for any keys and queries.
    #[cold]
    fn by_logarithms(
        &mut self,
        setup: Setup<'_, T>,
        (keys, queries): (KeyRun<'_, T>, Vec<ChunkQueries<'_, T>>),
        before: &WeightedSums<T>,
    ) -> NonPositive {
        let mut past = Vec::new();
        self.walk(setup, keys, |last| past.push(last.clone()));
        let chunks = self.chunks.iter_mut().zip(queries);
        let items = chunks.zip(past.iter().zip(cuts(0..keys.len(), CHUNK)));
        let of_chunk = |worker: &mut Worker<T>, ((chunk, queries), (since, run))| {
            answer_chunk(setup, (keys.rows(run), queries), [before, since], chunk, worker)
        };
        self.workers.map(items, of_chunk).concat()
    }

    /// Sums up the keys of a segment on one thread, and shows the sums before each chunk.
    #[cold]
    fn walk(&mut self, setup: Setup<'_, T>, keys: KeyRun<'_, T>, show: impl FnMut(&WeightedSums<T>)) {
        self.last.clear();
        ChunkReader::default().add(setup, keys, &mut self.last, show);
    }
}

/// Answers the queries of a chunk from its keys and the states before it.
fn answer_chunk<T: Real>(
    setup: Setup<'_, T>,
    (keys, mut queries): (KeyRun<'_, T>, ChunkQueries<'_, T>),
    past: [&WeightedSums<T>; 2],
    chunk: &mut Chunk<T>,
    worker: &mut Worker<T>,
) -> NonPositive {
    read_keys(setup, keys, worker, chunk);
    chunk.pack(&worker.tokens);
    let (mut before, mut prefix) = (RunSums::default(), PrefixSums::default());
    chunk.seen_before = past.iter().any(|state| state.has_seen());
    past[0].ready(past[1], &mut before);
    let mut keys = std::mem::take(&mut worker.tokens);
    let slow = Some(SlowPath { keys: &mut keys, past, prefix: &mut prefix });
    let non_positive = queries.answer(setup, VisibleKeys { chunk, before: &before, slow }, worker);
    worker.tokens = keys;
    non_positive.unwrap_or_default()
}

/// Adds keys and values to a state, segment by segment, with so many threads.
pub(super) fn add_keys<T: Real>(
    setup: Setup<'_, T>,
    keys: KeyRun<'_, T>,
    state: &mut WeightedSums<T>,
    threads: usize,
) {
    let (features, targets) = (setup.program.width(), keys.values.ncols());
    let of_segment = |reader: &mut ChunkReader<T>, segment: Range<usize>| {
        let mut state = WeightedSums::new(features, targets);
        reader.add(setup, keys.rows(segment), &mut state, |_| {});
        state
    };
    let count = keys.len().div_ceil(SEGMENT);
    let segment = |i: usize| i * SEGMENT..keys.len().min((i + 1) * SEGMENT);
    // Segments that are too few for all threads are split by chunk instead.
    let whole = count - count % threads.max(1);
    // Few states exist at a time, so that memory does not grow with the length.
    let readers = Pool::default();
    for group in cuts(0..whole, if threads < 2 { 1 } else { 2 * threads }) {
        if progress::is_stopped() {
            return;
        }
        let states = readers.map(group.map(segment), of_segment);
        states.iter().for_each(|segment| state.merge(segment));
    }
    if whole < count {
        let mut shared = Segment::new(features, targets);
        (whole..count).for_each(|i| shared.add_keys(setup, keys.rows(segment(i)), state));
    }
}
