//! How jobs are spread over threads. Sums are cut by shapes alone, so results are the same for any number of threads.

use std::ops::Range;

use ndarray::Axis;
use ndarray::parallel::prelude::*;

use super::chunk::{CHUNK, ChunkBuffers, Past, Setup};
use super::heads::{Job, Member};
use super::keys::Keys;
use super::team::Team;
use super::tokens::Element;
use crate::Real;
use crate::reduce::{RunSums as Relative, WeightedSums as State};

/// Tokens of a segment, whose sums are one term of those of the whole.
pub(super) const SEGMENT: usize = 16 * CHUNK;

/// Where a normaliser was not positive: batch, head and row.
pub(super) type Places = Vec<[usize; 3]>;

/// Outputs of queries that see all keys, with `ways` threads.
pub(super) fn bidirectional<T: Real, E: Element<T>>(
    setup: Setup<'_, T>,
    job: Job<'_, E, T>,
    ways: usize,
) -> Places {
    let targets = job.values.ncols();
    let mut state = State::new(setup.program.width(), targets);
    add_keys(setup, &job, &mut state, ways);
    let mut ready = Relative::default();
    state.ready(&State::new(setup.program.width(), targets), &mut ready);
    let member = |Member { queries, mut out, place: [b, h, first] }: Member<'_, E, T>| -> Places {
        let runs = queries.axis_chunks_iter(Axis(0), CHUNK).into_par_iter();
        let runs = runs.zip(out.axis_chunks_iter_mut(Axis(0), CHUNK)).enumerate();
        let of_run = |chunk: &mut ChunkBuffers<T>, (run, (queries, out))| {
            let mut places = Places::new();
            let report = &mut |i| places.push([b, h, first + run * CHUNK + i]);
            chunk.bidirectional(setup, &state, &ready, queries, out, report);
            places
        };
        runs.map_init(ChunkBuffers::default, of_run).collect::<Vec<_>>().concat()
    };
    job.members.into_iter().flat_map(member).collect()
}

/// Outputs of queries that see the keys up to their own row, with `ways` threads.
pub(super) fn causal<T: Real, E: Element<T>>(
    setup: Setup<'_, T>,
    mut job: Job<'_, E, T>,
    ways: usize,
) -> Places {
    let (features, targets, tokens) = (setup.program.width(), job.values.ncols(), job.keys.nrows());
    let mut state = State::new(features, targets);
    if ways < 2 || tokens <= CHUNK {
        return walk(setup, job, &mut state);
    }
    let (mut team, mut places) = (Team::new(ways, features, targets), Places::new());
    for segment in cuts(0..tokens, SEGMENT) {
        places.extend(team.causal(setup, &mut job, &mut state, segment));
    }
    places
}

/// Causal outputs of a whole sequence, chunk after chunk on one thread.
fn walk<T: Real, E: Element<T>>(setup: Setup<'_, T>, mut job: Job<'_, E, T>, state: &mut State<T>) -> Places {
    let (mut chunk, mut keys, mut places) = (ChunkBuffers::default(), Keys::default(), Places::new());
    let mut last = State::new(setup.program.width(), job.values.ncols());
    for segment in cuts(0..job.keys.nrows(), SEGMENT) {
        last.clear();
        for run in cuts(segment, CHUNK) {
            read_keys(&mut chunk, &mut keys, setup, &job, run.clone());
            let (firsts, mut queries): (Vec<_>, Vec<_>) = job
                .members
                .iter_mut()
                .map(|member| {
                    let queries = member.queries.slice_axis(Axis(0), run.clone().into());
                    (member.place, (queries, member.out.slice_axis_mut(Axis(0), run.clone().into())))
                })
                .unzip();
            let past = Past { segments: state, since: &last };
            chunk.causal(setup, &mut keys, past, run.start, &mut queries, |member, i| {
                let [b, h, first] = firsts[member];
                places.push([b, h, first + run.start + i]);
            });
            chunk.add_to(setup, &mut keys, &mut last);
        }
        state.merge(&last);
    }
    places
}

/// Adds the keys and values of a job to a state, segment by segment, with `ways` threads.
pub(super) fn add_keys<T: Real, E: Element<T>>(
    setup: Setup<'_, T>,
    job: &Job<'_, E, T>,
    state: &mut State<T>,
    ways: usize,
) {
    let (features, targets) = (setup.program.width(), job.values.ncols());
    let of_segment = |(chunk, keys): &mut (ChunkBuffers<T>, Keys<T>), segment: Range<usize>| {
        let mut state = State::new(features, targets);
        for run in cuts(segment, CHUNK) {
            read_keys(chunk, keys, setup, job, run);
            chunk.add_to(setup, keys, &mut state);
        }
        state
    };
    let mut segments: Vec<Range<usize>> = cuts(0..job.keys.nrows(), SEGMENT).collect();
    // Segments that are too few for all threads are split by chunk instead.
    let rest = segments.split_off(segments.len() - segments.len() % ways.max(1));
    // Few states exist at a time, so that memory does not grow with the length.
    for group in segments.chunks(2 * ways.max(1)) {
        let group = group.to_vec().into_par_iter().with_min_len(if ways < 2 { 2 } else { 1 });
        let states: Vec<State<T>> = group.map_init(Default::default, of_segment).collect();
        states.iter().for_each(|segment| state.merge(segment));
    }
    if !rest.is_empty() {
        let mut team = Team::new(ways, features, targets);
        rest.into_iter().for_each(|segment| team.add_keys(setup, job, state, segment));
    }
}

/// Reads the keys and values of a run of tokens.
pub(super) fn read_keys<T: Real, E: Element<T>>(
    chunk: &mut ChunkBuffers<T>,
    to: &mut Keys<T>,
    setup: Setup<'_, T>,
    job: &Job<'_, E, T>,
    run: Range<usize>,
) {
    let keys = job.keys.slice_axis(Axis(0), run.clone().into());
    let values = job.values.slice_axis(Axis(0), run.clone().into());
    let mask = job.mask.as_ref().map(|mask| mask.slice_axis(Axis(0), run.into()));
    chunk.read_keys(setup, keys, values, mask, to);
}

/// A range in runs of `step`.
pub(super) fn cuts(range: Range<usize>, step: usize) -> impl Iterator<Item = Range<usize>> {
    range.clone().step_by(step).map(move |start| start..range.end.min(start + step))
}
