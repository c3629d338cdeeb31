//! How jobs are spread over threads. Sums are cut by shapes alone, so results are the same for any number of threads.

use std::ops::Range;

use ndarray::{ArrayViewMut2, Axis};

use super::chunk::Chunk;
use super::heads::{Job, KeyRun, Member};
use super::sequence::Sequence;
use super::setup::{CHUNK, SEGMENT, Setup};
use super::sight::Asked;
use super::team::Team;
use super::worker::Worker;
use crate::Real;
use crate::reduce::{RunSums, WeightedSums};
use crate::threads::Pool;

/// Where a normaliser was not positive: batch, head and row.
pub(super) type Places = Vec<[usize; 3]>;

/// Outputs of queries that see all keys, with `ways` threads.
pub(super) fn bidirectional<T: Real>(setup: Setup<'_, T>, job: Job<'_, T>, ways: usize) -> Places {
    let (features, targets) = (setup.program.width(), job.keys.values.ncols());
    let mut state = WeightedSums::new(features, targets);
    add_keys(setup, job.keys, &mut state, ways);
    let mut ready = RunSums::default();
    state.ready(&WeightedSums::new(features, targets), &mut ready);
    let member = |Member { queries, mut out, place: [b, h, first] }: Member<'_, T>| -> Places {
        let runs = out.axis_chunks_iter_mut(Axis(0), CHUNK).enumerate();
        let of_run = |worker: &mut Worker<T>, (run, out): (usize, ArrayViewMut2<'_, T>)| {
            let (mut places, start) = (Places::new(), run * CHUNK);
            worker.read_queries(setup, queries.rows(start..queries.nrows().min(start + CHUNK)));
            worker.answer_all(setup, &state, &ready, out, &mut |i| places.push([b, h, first + start + i]));
            places
        };
        Pool::default().map(runs, of_run).concat()
    };
    job.members.into_iter().flat_map(member).collect()
}

/// Outputs of queries that see the keys up to their own row, with `ways` threads.
pub(super) fn causal<T: Real>(setup: Setup<'_, T>, mut job: Job<'_, T>, ways: usize) -> Places {
    let (features, targets, tokens) = (setup.program.width(), job.keys.values.ncols(), job.keys.len());
    if ways < 2 || tokens <= CHUNK {
        return walk(setup, job);
    }
    let (mut team, mut places) = (Team::new(features, targets), Places::new());
    let mut state = WeightedSums::new(features, targets);
    for segment in cuts(0..tokens, SEGMENT) {
        places.extend(team.causal(setup, &mut job, &mut state, segment));
    }
    places
}

/// Causal outputs of a whole sequence, chunk after chunk on one thread.
fn walk<T: Real>(setup: Setup<'_, T>, mut job: Job<'_, T>) -> Places {
    let (mut worker, mut places) = (Worker::default(), Places::new());
    let mut sequence = Sequence::new(setup.program.width(), job.keys.values.ncols());
    for run in cuts(0..job.keys.len(), CHUNK) {
        sequence.read(setup, job.keys.rows(run.clone()), &mut worker);
        for Member { queries, out, place: [b, h, first] } in &mut job.members {
            worker.read_queries(setup, queries.rows(run.clone()));
            let report = &mut |i| places.push([*b, *h, *first + run.start + i]);
            let out = out.slice_axis_mut(Axis(0), run.clone().into());
            let asked = Asked { queries: 0..run.len(), sees: 1, sees_of_all: run.start + 1, out, report };
            sequence.answer(setup, asked, &mut worker);
        }
    }
    places
}

/// A chunk of keys that a thread reads to sum them up.
#[derive(Default)]
pub(super) struct Summand<T> {
    chunk: Chunk<T>,
    worker: Worker<T>,
}

/// Adds keys and values to a state, segment by segment, with `ways` threads.
pub(super) fn add_keys<T: Real>(
    setup: Setup<'_, T>,
    keys: KeyRun<'_, T>,
    state: &mut WeightedSums<T>,
    ways: usize,
) {
    let (features, targets) = (setup.program.width(), keys.values.ncols());
    let of_segment = |own: &mut Summand<T>, segment: Range<usize>| {
        let mut state = WeightedSums::new(features, targets);
        add_chunks(setup, keys.rows(segment), own, &mut state, |_| {});
        state
    };
    let mut segments: Vec<Range<usize>> = cuts(0..keys.len(), SEGMENT).collect();
    // Segments that are too few for all threads are split by chunk instead.
    let rest = segments.split_off(segments.len() - segments.len() % ways.max(1));
    // Few states exist at a time, so that memory does not grow with the length.
    let summands = Pool::default();
    for group in segments.chunks(if ways < 2 { 1 } else { 2 * ways }) {
        let states = summands.map(group.iter().cloned(), of_segment);
        states.iter().for_each(|segment| state.merge(segment));
    }
    if !rest.is_empty() {
        let mut team = Team::new(features, targets);
        rest.into_iter().for_each(|segment| team.add_keys(setup, keys, state, segment));
    }
}

/// Adds keys to a state chunk by chunk, and shows what it is before each of them.
pub(super) fn add_chunks<T: Real>(
    setup: Setup<'_, T>,
    keys: KeyRun<'_, T>,
    Summand { chunk, worker }: &mut Summand<T>,
    state: &mut WeightedSums<T>,
    mut show: impl FnMut(&WeightedSums<T>),
) {
    for run in cuts(0..keys.len(), CHUNK) {
        read_keys(setup, keys.rows(run), worker, chunk);
        show(state);
        chunk.add_to(setup, &mut worker.tokens, state, &mut worker.logs);
    }
}

/// Reads a run of keys into an empty chunk; they are the worker's tokens then.
pub(super) fn read_keys<T: Real>(
    setup: Setup<'_, T>,
    run: KeyRun<'_, T>,
    worker: &mut Worker<T>,
    chunk: &mut Chunk<T>,
) {
    worker.read_keys(setup, run.keys);
    chunk.clear();
    chunk.extend(&mut worker.tokens, run.values, run.mask);
}

/// A range in runs of `step`.
pub(super) fn cuts(range: Range<usize>, step: usize) -> impl Iterator<Item = Range<usize>> {
    range.clone().step_by(step).map(move |start| start..range.end.min(start + step))
}
