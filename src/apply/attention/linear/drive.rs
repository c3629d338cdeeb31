//! How jobs are spread over threads. Sums are cut by shapes alone, so results are the same for any number of threads.
//!
//! Once a watcher has stopped the work, loops leave out the rest; who called them says so to the user.

use std::ops::Range;

use ndarray::{Array2, s};

use super::super::features::{CHUNK, Chunk, SEGMENT, Setup};
use super::super::input::Window;
use super::super::input::{Job, KeyRun, Member};
use super::scan::{Asker, HEAD, Lag, Outlet, Scan};
use super::sequence::Sequence;
use super::sight::Asked;
use super::team::Team;
use super::worker::Worker;
use crate::Real;
use crate::progress;
use crate::reduce::{RunSums, WeightedSums};
use crate::threads::Pool;

/// Where a normaliser was not positive: batch, head and row.
pub(in super::super) type Places = Vec<[usize; 3]>;

/// Outputs of the queries of a job, with `ways` threads.
pub(in super::super) fn attend<T: Real>(setup: Setup<'_, T>, job: Job<'_, T>, ways: usize) -> Places {
    match setup.near {
        Some(near) if !setup.causal => beside(setup, near.window, job, ways),
        near => {
            let lag = Lag { behind: near.map_or(0, |near| near.window.before), ..Lag::NONE };
            see(setup, Scan::of_job(job, 0, lag, []), ways)
        }
    }
}

/// Outputs of queries that see, by their features, more of the keys from place to place or, neither causally nor beside neighbours, all.
pub(in super::super) fn see<T: Real>(setup: Setup<'_, T>, scan: Scan<'_, T>, ways: usize) -> Places {
    if setup.causal || setup.near.is_some() {
        self::scan(setup, scan, ways)
    } else {
        answers_to_all(setup, scan.keys, scan.askers, ways)
    }
}

/// Outputs of queries that see the keys before and behind a window by their features: estimates of those behind it are kept.
fn beside<T: Real>(setup: Setup<'_, T>, window: Window, job: Job<'_, T>, ways: usize) -> Places {
    let lag = Lag { behind: window.before, ..Lag::NONE };
    let mut behind = estimates_behind(setup, &job, ways);
    let others = behind.iter_mut().flatten().map(|kept| kept.view_mut());
    scan(setup, Scan::of_job(job, 0, lag, others), ways)
}

/// The estimates that queries have of the keys behind their windows, if there are such keys, for each head of a job.
pub(in super::super) fn estimates_behind<T: Real>(
    setup: Setup<'_, T>,
    job: &Job<'_, T>,
    ways: usize,
) -> Option<Vec<Array2<f64>>> {
    if job.keys.len() <= setup.window().after.saturating_add(1) {
        return None;
    }
    let numbers = job.keys.values.ncols() + HEAD;
    let rows = |member: &Member<'_, T>| Array2::zeros((member.queries.nrows(), numbers));
    let mut kept: Vec<Array2<f64>> = job.members.iter().map(rows).collect();
    let askers = job.members.iter().zip(&mut kept).map(|(member, kept)| Asker {
        queries: member.queries.reversed().reborrow(),
        out: Outlet::Estimates(kept.slice_mut(s![..;-1, ..])),
        origin: member.place,
        place: 0,
    });
    behind(setup, job.keys.reborrow(), askers.collect(), ways);
    Some(kept)
}

/// What queries see by their features of the keys behind windows; askers are from the last to the first.
pub(in super::super) fn behind<'a, T: Real>(
    setup: Setup<'_, T>,
    keys: KeyRun<'a, T>,
    askers: Vec<Asker<'a, T>>,
    ways: usize,
) {
    let queries = askers.first().map_or(0, |asker| asker.queries.nrows());
    let lag = Lag { ahead: keys.len(), behind: queries.saturating_add(setup.window().after) };
    scan(setup.beside(None, None), Scan { keys: keys.reversed(), askers, lag }, ways);
}

/// Outputs of queries that see more of the keys from place to place.
pub(in super::super) fn scan<T: Real>(setup: Setup<'_, T>, scan: Scan<'_, T>, ways: usize) -> Places {
    let mut sequence = Sequence::new(setup.program.width(), scan.keys.values.ncols());
    proceed(setup, scan, &mut sequence, false, ways)
}

/// The same where a sequence has taken in keys before; it takes in those that the last query sees. If it is not `kept`, it is of no
/// use afterwards.
pub(in super::super) fn proceed<T: Real>(
    setup: Setup<'_, T>,
    mut scan: Scan<'_, T>,
    sequence: &mut Sequence<T>,
    kept: bool,
    ways: usize,
) -> Places {
    let (queries, keys) = (scan.queries(), scan.keys);
    // Queries before `first` see no key; those from `last` on would see more keys than there are.
    let (first, last) = (scan.lag.first(0).min(queries), scan.lag.first(keys.len()).min(queries));
    let (mut before, mut after) = (Vec::new(), Vec::new());
    scan.askers = (scan.askers.into_iter())
        .map(|asker| {
            let (asker, rest) = asker.split(last);
            let (none, own) = asker.split(first);
            before.extend(none.runs(CHUNK));
            after.push(rest);
            own
        })
        .collect();
    let mut places = answers_without(setup, before);
    scan.lag = scan.lag.after(first);
    scan.keys = keys.rows(0..scan.sees(scan.queries().saturating_sub(1), 0));
    if last > first {
        places.extend(sequence.scan(setup, scan, kept, ways));
    }
    if last < queries {
        places.extend(answers_to_all(setup, keys, after, ways));
    }
    places
}

/// Outputs of queries that see all of some keys, with `ways` threads.
fn answers_to_all<T: Real>(
    setup: Setup<'_, T>,
    keys: KeyRun<'_, T>,
    askers: Vec<Asker<'_, T>>,
    ways: usize,
) -> Places {
    let (features, targets) = (setup.program.width(), keys.values.ncols());
    let mut state = WeightedSums::new(features, targets);
    add_keys(setup, keys, &mut state, ways);
    let mut ready = RunSums::default();
    state.ready(&WeightedSums::new(features, targets), &mut ready);
    let of_run = |worker: &mut Worker<T>, mut asker: Asker<'_, T>| {
        let (mut places, count) = (Places::new(), asker.queries.nrows());
        if progress::is_stopped() {
            return places;
        }
        let Asker { queries, out, origin: [b, h, first], place } = asker.rows(0..count);
        worker.read_queries(setup, queries);
        let report = &mut |i| places.push([b, h, first + i]);
        let mut asked = Asked { queries: 0..count, sees: usize::MAX, place, out, report };
        worker.answer_all(setup, &state, &ready, &mut asked);
        places
    };
    let of_asker = |asker: Asker<'_, T>| Pool::default().map(asker.runs(CHUNK), of_run).concat();
    askers.into_iter().flat_map(of_asker).collect()
}

/// Outputs of runs of queries that see no key by its features.
fn answers_without<T: Real>(setup: Setup<'_, T>, runs: Vec<Asker<'_, T>>) -> Places {
    let of_run = |worker: &mut Worker<T>, mut asker: Asker<'_, T>| {
        let (mut places, count) = (Places::new(), asker.queries.nrows());
        if progress::is_stopped() {
            return places;
        }
        let Asker { queries, out, origin: [b, h, first], place } = asker.rows(0..count);
        let report = &mut |i| places.push([b, h, first + i]);
        let mut asked = Asked { queries: 0..count, sees: 0, place, out, report };
        worker.answer_without(setup, queries, &mut asked);
        places
    };
    Pool::default().map(runs, of_run).concat()
}

/// A chunk of keys that a thread reads to sum them up.
#[derive(Default)]
pub(in super::super) struct Summand<T> {
    chunk: Chunk<T>,
    worker: Worker<T>,
}

/// Adds keys and values to a state, segment by segment, with `ways` threads.
pub(in super::super) fn add_keys<T: Real>(
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
    let count = keys.len().div_ceil(SEGMENT);
    let segment = |i: usize| i * SEGMENT..keys.len().min((i + 1) * SEGMENT);
    // Segments that are too few for all threads are split by chunk instead.
    let whole = count - count % ways.max(1);
    // Few states exist at a time, so that memory does not grow with the length.
    let summands = Pool::default();
    for group in cuts(0..whole, if ways < 2 { 1 } else { 2 * ways }) {
        if progress::is_stopped() {
            return;
        }
        let states = summands.map(group.map(segment), of_segment);
        states.iter().for_each(|segment| state.merge(segment));
    }
    if whole < count {
        let mut team = Team::new(features, targets);
        (whole..count).for_each(|i| team.add_keys(setup, keys, state, segment(i)));
    }
}

/// Adds keys to a state chunk by chunk, and shows what it is before each of them.
pub(in super::super) fn add_chunks<T: Real>(
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
pub(in super::super) fn read_keys<T: Real>(
    setup: Setup<'_, T>,
    run: KeyRun<'_, T>,
    worker: &mut Worker<T>,
    chunk: &mut Chunk<T>,
) {
    worker.read_keys(setup, run.reborrow());
    chunk.clear();
    chunk.extend(&mut worker.tokens, run.values, run.mask);
}

/// A range in runs of `step`.
pub(in super::super) fn cuts(range: Range<usize>, step: usize) -> impl Iterator<Item = Range<usize>> {
    range.clone().step_by(step).map(move |start| start..range.end.min(start + step))
}
