//! [`Team`]: threads that share the chunks of a segment, so that one head keeps all of them busy.
//!
//! Each chunk's keys are summed up on their own; prefix sums over chunks then give the sums over all keys before each of them, so
//! no key is read twice. Where a chunk needs more than matrix products, one thread computes the sums before each chunk, in
//! order, and threads share the outputs again.

use std::ops::Range;

use ndarray::parallel::prelude::*;
use ndarray::{ArrayView2, ArrayViewMut2, Axis};
use rayon::slice::{ParallelSlice, ParallelSliceMut};

use super::chunk::{CHUNK, ChunkBuffers, Past, Setup};
use super::drive::{Places, SEGMENT, cuts, read_keys};
use super::heads::Job;
use super::keys::Keys;
use super::tokens::Element;
use crate::Real;
use crate::reduce::WeightedSums as State;

/// The buffers of some threads for the chunks of a segment.
pub(super) struct Team<T: Real> {
    /// The keys of each chunk.
    keys: Vec<Keys<T>>,
    /// One for each thread.
    workers: Vec<ChunkBuffers<T>>,
    /// The sums over the keys of the segment.
    last: State<T>,
}

/// The queries and outputs of a chunk, for each head that shares its keys.
type Chunked<'a, E, T> = Vec<(ArrayView2<'a, E>, ArrayViewMut2<'a, T>)>;

impl<T: Real> Team<T> {
    /// For `ways` threads.
    pub fn new(ways: usize, features: usize, targets: usize) -> Self {
        let chunks = SEGMENT / CHUNK;
        let mut team = Team { keys: Vec::new(), workers: Vec::new(), last: State::new(features, targets) };
        team.keys.resize_with(chunks, Keys::default);
        team.workers.resize_with(ways.min(chunks), ChunkBuffers::default);
        team
    }

    /// Adds the keys of a segment to a state.
    pub fn add_keys<E: Element<T>>(
        &mut self,
        setup: Setup<'_, T>,
        job: &Job<'_, E, T>,
        state: &mut State<T>,
        segment: Range<usize>,
    ) {
        if !self.sum(setup, job, state, &segment) {
            self.walk(setup, job, segment, |_| {});
        }
        state.merge(&self.last);
    }

    /// The outputs of the queries of a segment, which see `state` and the keys up to their own row; then adds the keys to
    /// the state.
    pub fn causal<E: Element<T>>(
        &mut self,
        setup: Setup<'_, T>,
        job: &mut Job<'_, E, T>,
        state: &mut State<T>,
        segment: Range<usize>,
    ) -> Places {
        let places = match self.sum(setup, &job.of_keys(), state, &segment) {
            true => self.outputs(setup, job, &segment),
            false => None,
        };
        let places = places.unwrap_or_else(|| self.outputs_one_by_one(setup, job, state, segment));
        state.merge(&self.last);
        places
    }

    /// Sums up the keys of a segment, chunk by chunk, and gives each chunk the sums over all keys before it. False where a key
    /// cannot be added by matrix products.
    fn sum<E: Element<T>>(
        &mut self,
        setup: Setup<'_, T>,
        job: &Job<'_, E, T>,
        before: &State<T>,
        segment: &Range<usize>,
    ) -> bool {
        self.last.clear();
        let runs: Vec<Range<usize>> = cuts(segment.clone(), CHUNK).collect();
        let share = self.share(runs.len());
        let shares = self.keys.par_chunks_mut(share).zip(runs.par_chunks(share)).zip(&mut self.workers);
        shares.for_each(|((keys, runs), worker)| {
            for (keys, run) in keys.iter_mut().zip(runs) {
                read_keys(worker, keys, setup, job, run.clone());
                worker.sum(keys);
            }
        });
        let keys = &mut self.keys[..runs.len()];
        let mut seen = before.has_seen();
        for keys in &mut *keys {
            keys.seen_before = seen;
            if keys.has_any() {
                self.last.see();
                seen = true;
            }
        }
        let easy = keys.iter().all(Keys::is_easy);
        let mut runs: Vec<_> = keys.iter_mut().map(Keys::part_mut).collect();
        easy && before.prefixes(&mut self.last, &mut runs)
    }

    /// The outputs of the queries of a segment whose keys are summed up; `None` where one cannot be computed by matrix products.
    fn outputs<E: Element<T>>(
        &mut self,
        setup: Setup<'_, T>,
        job: &mut Job<'_, E, T>,
        segment: &Range<usize>,
    ) -> Option<Places> {
        let (firsts, mut chunks) = chunked(job, segment);
        let share = self.share(chunks.len());
        let shares = self.keys.par_chunks(share).zip(chunks.par_chunks_mut(share)).zip(&mut self.workers);
        let of_shares = shares.enumerate().map(|(s, ((keys, chunks), worker))| {
            let mut places = Places::new();
            for (c, (keys, queries)) in keys.iter().zip(chunks).enumerate() {
                let first = segment.start + (s * share + c) * CHUNK;
                let done = worker.causal_of_ready::<E>(setup, keys, first, queries, |member, i| {
                    places.push(place(firsts[member], first + i));
                });
                if !done {
                    return None;
                }
            }
            Some(places)
        });
        of_shares.collect::<Option<Vec<Places>>>().map(|places| places.concat())
    }

    /// As [`outputs`](Team::outputs), for any keys and queries.
    #[cold]
    fn outputs_one_by_one<E: Element<T>>(
        &mut self,
        setup: Setup<'_, T>,
        job: &mut Job<'_, E, T>,
        before: &State<T>,
        segment: Range<usize>,
    ) -> Places {
        let (source, mut seen) = (job.of_keys(), Vec::new());
        self.walk(setup, &source, segment.clone(), |last| seen.push(last.clone()));
        let (firsts, mut chunks) = chunked(job, &segment);
        let share = self.share(chunks.len());
        let shares = self.keys.par_chunks_mut(share).zip(chunks.par_chunks_mut(share)).zip(&mut self.workers);
        let of_shares = shares.enumerate().map(|(s, ((keys, chunks), worker))| {
            let mut places = Places::new();
            for (c, (keys, queries)) in keys.iter_mut().zip(chunks).enumerate() {
                let (number, first) = (s * share + c, segment.start + (s * share + c) * CHUNK);
                read_keys(worker, keys, setup, &source, first..segment.end.min(first + CHUNK));
                let past = Past { segments: before, since: &seen[number] };
                worker.causal::<E>(setup, keys, past, first, queries, |member, i| {
                    places.push(place(firsts[member], first + i));
                });
            }
            places
        });
        of_shares.collect::<Vec<_>>().concat()
    }

    /// Sums up a segment on one thread, and shows the sums before each chunk.
    #[cold]
    fn walk<E: Element<T>>(
        &mut self,
        setup: Setup<'_, T>,
        job: &Job<'_, E, T>,
        segment: Range<usize>,
        mut show: impl FnMut(&State<T>),
    ) {
        self.last.clear();
        for run in cuts(segment, CHUNK) {
            let (worker, keys) = (&mut self.workers[0], &mut self.keys[0]);
            read_keys(worker, keys, setup, job, run);
            show(&self.last);
            worker.add_to(setup, keys, &mut self.last);
        }
    }

    /// The number of chunks that a thread takes.
    fn share(&self, chunks: usize) -> usize {
        chunks.div_ceil(self.workers.len())
    }
}

/// The place of each member's first row, and the queries of a segment, chunk by chunk.
fn chunked<'b, E, T>(
    job: &'b mut Job<'_, E, T>,
    segment: &Range<usize>,
) -> (Vec<[usize; 3]>, Vec<Chunked<'b, E, T>>) {
    let firsts = job.members.iter().map(|member| member.place).collect();
    let mut chunks: Vec<Chunked<'b, E, T>> = cuts(segment.clone(), CHUNK).map(|_| Vec::new()).collect();
    for member in &mut job.members {
        let mut out = member.out.slice_axis_mut(Axis(0), segment.clone().into());
        for (chunk, run) in chunks.iter_mut().zip(cuts(segment.clone(), CHUNK)) {
            let (own, rest) = out.split_at(Axis(0), run.len());
            chunk.push((member.queries.slice_axis_move(Axis(0), run.into()), own));
            out = rest;
        }
    }
    (firsts, chunks)
}

/// The place of a row of a member whose first one is known.
fn place([b, h, first]: [usize; 3], row: usize) -> [usize; 3] {
    [b, h, first + row]
}
