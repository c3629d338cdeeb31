//! How jobs are spread over threads. Sums are cut by shapes alone, so results are the same for any number of threads.

use std::ops::Range;

use ndarray::Axis;
use ndarray::parallel::prelude::*;

use super::chunk::{CHUNK, Chunk, Setup};
use super::heads::{Job, Member};
use super::state::{Ready, State};
use super::tokens::Element;
use crate::Real;

/// Tokens of a segment, whose sums are one term of those of the whole.
pub(super) const SEGMENT: usize = 16 * CHUNK;
/// What the sums of keys cost beside a causal output, keys and all.
const KEYS: f64 = 0.43;

/// Where a normaliser was not positive: batch, head and row.
pub(super) type Places = Vec<[usize; 3]>;

impl<'a, E, T> Job<'a, E, T> {
    /// The tokens before `row` and the others.
    fn split_at(self, row: usize) -> (Self, Self) {
        let Job { head, keys, values, mask, start, members } = self;
        let ((left_keys, right_keys), (left_values, right_values)) =
            (keys.split_at(Axis(0), row), values.split_at(Axis(0), row));
        let masks = mask.map(|mask| mask.split_at(Axis(0), row)).unzip();
        let (left, right) = members.into_iter().map(|member| member.split_at(row)).unzip();
        let job = |keys, values, mask, start, members| Job { head, keys, values, mask, start, members };
        let left = job(left_keys, left_values, masks.0, start, left);
        (left, job(right_keys, right_values, masks.1, start + row, right))
    }

    /// The keys, for no query.
    fn of_keys(&self) -> Self {
        Job { members: Vec::new(), ..*self }
    }
}

impl<'a, E, T> Member<'a, E, T> {
    fn split_at(self, row: usize) -> (Self, Self) {
        let Member { queries, out, place: [b, h, first] } = self;
        let ((left, right), (out, right_out)) = (queries.split_at(Axis(0), row), out.split_at(Axis(0), row));
        let member = |queries, out, row| Member { queries, out, place: [b, h, row] };
        (member(left, out, first), member(right, right_out, first + row))
    }
}

/// Outputs of queries that see all keys.
pub(super) fn bidirectional<T: Real, E: Element<T>>(setup: Setup<'_, T>, job: Job<'_, E, T>) -> Places {
    let targets = job.values.ncols();
    let mut state = State::new(setup.program.width(), targets);
    add_keys(setup, &job, &mut state);
    let mut ready = Ready::default();
    state.ready(&State::new(setup.program.width(), targets), &mut ready);
    let member = |Member { queries, mut out, place: [b, h, first] }: Member<'_, E, T>| -> Places {
        let runs = queries.axis_chunks_iter(Axis(0), CHUNK).into_par_iter();
        let runs = runs.zip(out.axis_chunks_iter_mut(Axis(0), CHUNK)).enumerate();
        let of_run = |chunk: &mut Chunk<T>, (run, (queries, out))| {
            let mut places = Places::new();
            let report = &mut |i| places.push([b, h, first + run * CHUNK + i]);
            chunk.bidirectional(setup, (&state, &ready), queries, out, report);
            places
        };
        runs.map_init(Chunk::default, of_run).collect::<Vec<_>>().concat()
    };
    job.members.into_iter().flat_map(member).collect()
}

/// Outputs of queries that see the keys up to their own row and what `state` has seen, with `ways` threads.
pub(super) fn causal<T: Real, E: Element<T>>(
    setup: Setup<'_, T>,
    job: Job<'_, E, T>,
    mut state: State<T>,
    ways: usize,
) -> Places {
    let segments = job.keys.nrows() / SEGMENT;
    let cut = (share(ways) * segments as f64).round() as usize * SEGMENT;
    if ways < 2 || cut == 0 || cut >= job.keys.nrows() {
        return walk(setup, job, &mut state);
    }
    let (left, right) = job.split_at(cut);
    let (keys, mut before) = (left.of_keys(), state.clone());
    let of_right = || {
        add_keys(setup, &keys, &mut before);
        causal(setup, right, before, ways - 1)
    };
    let (mut places, others) = rayon::join(|| walk(setup, left, &mut state), of_right);
    places.extend(others);
    places
}

/// The share of the tokens that one of `ways` threads takes, while the others first sum up its keys, so that all end at
/// the same time.
fn share(ways: usize) -> f64 {
    (1..ways).fold(1.0, |share, others| share / (1.0 - KEYS / others as f64 + share))
}

/// Causal outputs from one end to the other.
fn walk<T: Real, E: Element<T>>(setup: Setup<'_, T>, mut job: Job<'_, E, T>, state: &mut State<T>) -> Places {
    let (mut chunk, mut places) = (Chunk::default(), Places::new());
    let mut last = State::new(setup.program.width(), job.values.ncols());
    for segment in cuts(0..job.keys.nrows(), SEGMENT) {
        last.clear();
        for run in cuts(segment, CHUNK) {
            read_keys(&mut chunk, setup, &job, run.clone());
            let (firsts, mut queries): (Vec<_>, Vec<_>) = job
                .members
                .iter_mut()
                .map(|member| {
                    let queries = member.queries.slice_axis(Axis(0), run.clone().into());
                    (member.place, (queries, member.out.slice_axis_mut(Axis(0), run.clone().into())))
                })
                .unzip();
            let first = job.start + run.start;
            chunk.causal(setup, (state, &mut last), first, &mut queries, |member, i| {
                let [b, h, first] = firsts[member];
                places.push([b, h, first + run.start + i]);
            });
        }
        state.merge(&last);
    }
    places
}

/// Adds the keys and values of a job to a state, segment by segment.
pub(super) fn add_keys<T: Real, E: Element<T>>(
    setup: Setup<'_, T>,
    job: &Job<'_, E, T>,
    state: &mut State<T>,
) {
    let (features, targets) = (setup.program.width(), job.values.ncols());
    let of_segment = |chunk: &mut Chunk<T>, segment: Range<usize>| {
        let mut state = State::new(features, targets);
        for run in cuts(segment, CHUNK) {
            read_keys(chunk, setup, job, run);
            chunk.add_to(setup, &mut state);
        }
        state
    };
    // Few states exist at a time, so that memory does not grow with the length.
    for group in cuts(0..job.keys.nrows(), SEGMENT * 2 * rayon::current_num_threads()) {
        let segments: Vec<Range<usize>> = cuts(group, SEGMENT).collect();
        let states: Vec<State<T>> = segments.into_par_iter().map_init(Chunk::default, of_segment).collect();
        states.iter().for_each(|segment| state.merge(segment));
    }
}

fn read_keys<T: Real, E: Element<T>>(
    chunk: &mut Chunk<T>,
    setup: Setup<'_, T>,
    job: &Job<'_, E, T>,
    run: Range<usize>,
) {
    let keys = job.keys.slice_axis(Axis(0), run.clone().into());
    let values = job.values.slice_axis(Axis(0), run.clone().into());
    let mask = job.mask.as_ref().map(|mask| mask.slice_axis(Axis(0), run.into()));
    chunk.read_keys(setup, (keys, values), mask);
}

/// A range in runs of `step`.
fn cuts(range: Range<usize>, step: usize) -> impl Iterator<Item = Range<usize>> {
    range.clone().step_by(step).map(move |start| start..range.end.min(start + step))
}
