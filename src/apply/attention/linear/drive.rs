//! How jobs are spread over threads. Sums are cut by shapes alone, so results are the same for any number of threads.
//!
//! Once a watcher has stopped the work, loops leave out the rest; who called them says so to the user.

use std::sync::OnceLock;

use ndarray::{Array2, s};

use super::super::features::Setup;
use super::super::input::{CHUNK, Job, KeyRun, NonPositive, QueryRun};
use super::scan::{Reader, Scan, Visible};
use super::segment::add_keys;
use super::sequence::Sequence;
use super::sink::{Estimates, HEAD, Outputs};
use super::worker::Worker;
use crate::Real;
use crate::progress;
use crate::reduce::{RunSums, WeightedSums};
use crate::threads::Pool;

/// Linear attention of one job: prefix sums where it is causal or has neighbours, beside suffix sums where neighbours are on both sides,
/// else one sum over all keys.
pub(super) fn attend<T: Real>(
    setup: Setup<'_, T>,
    job: Job<'_, T>,
    outputs: Vec<Outputs<'_, T>>,
    threads: usize,
) -> NonPositive {
    let visible = Visible::before_window(setup.window().before);
    let mut after = estimates_after(setup, &job, threads);
    let others = after.iter_mut().flatten().map(|kept| kept.view_mut());
    read(setup, Scan::of_job(job, outputs, visible, others), threads)
}

/// Answers the queries of a scan from prefix sums where these are causal or have neighbours, else from one sum over all keys.
pub(in super::super) fn read<T: Real>(setup: Setup<'_, T>, scan: Scan<'_, T>, threads: usize) -> NonPositive {
    if setup.causal || setup.near.is_some() {
        read_prefixes(setup, scan, threads)
    } else {
        read_all(setup, scan.keys, scan.readers, threads)
    }
}

/// The estimates that queries have of the keys after their windows on both sides, for each head of a job; `None` if there are no such
/// keys.
pub(in super::super) fn estimates_after<T: Real>(
    setup: Setup<'_, T>,
    job: &Job<'_, T>,
    threads: usize,
) -> Option<Vec<Array2<f64>>> {
    if setup.causal || setup.near.is_none() || job.keys.len() <= setup.window().after.saturating_add(1) {
        return None;
    }
    let numbers = job.keys.values.ncols() + HEAD;
    let rows = |queries: &QueryRun<'_, T>| Array2::zeros((queries.len(), numbers));
    let mut kept: Vec<Array2<f64>> = job.queries.iter().map(rows).collect();
    let readers = job.queries.iter().zip(&mut kept).map(|(queries, kept)| Reader {
        queries: queries.reversed(),
        others: None,
        sink: Box::new(Estimates(kept.slice_mut(s![..;-1, ..]))),
    });
    read_suffixes(setup, job.keys.reborrow(), readers.collect(), threads);
    Some(kept)
}

/// Suffix sums: answers queries, from the last to the first, from the keys after their windows, as prefix sums over the keys from the
/// last to the first.
pub(in super::super) fn read_suffixes<'a, T: Real>(
    setup: Setup<'_, T>,
    keys: KeyRun<'a, T>,
    readers: Vec<Reader<'a, T>>,
    threads: usize,
) {
    let queries = readers.first().map_or(0, |reader| reader.queries.len());
    let visible = Visible { ahead: keys.len(), behind: queries.saturating_add(setup.window().after) };
    read_prefixes(setup.beside(None, None), Scan { keys: keys.reversed(), readers, visible }, threads);
}

/// Prefix sums: answers queries of which each sees a prefix of the keys.
pub(in super::super) fn read_prefixes<T: Real>(
    setup: Setup<'_, T>,
    scan: Scan<'_, T>,
    threads: usize,
) -> NonPositive {
    let mut sequence = Sequence::new(setup.program.width(), scan.keys.values.ncols());
    continue_sequence(setup, scan, &mut sequence, false, threads)
}

/// As [`read_prefixes`], after the keys that a sequence has taken in; it takes in those that the last query sees. If it is not `kept` it
/// ends in an invalid state, which saves a copy.
pub(in super::super) fn continue_sequence<T: Real>(
    setup: Setup<'_, T>,
    mut scan: Scan<'_, T>,
    sequence: &mut Sequence<T>,
    kept: bool,
    threads: usize,
) -> NonPositive {
    let (queries, keys) = (scan.queries(), scan.keys);
    // Queries before `first` see no key; those from `last` on would see more keys than there are.
    let (first, last) = (scan.visible.first(0).min(queries), scan.visible.first(keys.len()).min(queries));
    let mut non_positive = read_nothing(setup, scan.take(first));
    let visible = scan.visible;
    let own = Scan { keys, readers: scan.take(last - first), visible };
    let own = Scan { keys: keys.rows(0..own.sees(own.queries().saturating_sub(1), 0)), ..own };
    if last > first {
        non_positive.extend(sequence.scan(setup, own, kept, threads));
    }
    if last < queries {
        non_positive.extend(read_all(setup, keys, scan.readers, threads));
    }
    non_positive
}

/// Answers queries that see all of some keys, with so many threads.
fn read_all<T: Real>(
    setup: Setup<'_, T>,
    keys: KeyRun<'_, T>,
    readers: Vec<Reader<'_, T>>,
    threads: usize,
) -> NonPositive {
    let (own, mut ready) = (OnceLock::new(), RunSums::default());
    let (kept, nothing) =
        (keys.sums.unwrap_or(&own), || WeightedSums::new(setup.program.width(), keys.values.ncols()));
    let state = kept.get().unwrap_or_else(|| {
        // Nothing waits for a lock while threads are at work.
        let mut state = nothing();
        add_keys(setup, keys, &mut state, threads);
        kept.get_or_init(|| state)
    });
    state.ready(&nothing(), &mut ready);
    let of_run = |worker: &mut Worker<T>, mut reader: Reader<'_, T>| {
        let (mut non_positive, [b, h, first]) = (NonPositive::new(), reader.queries.origin);
        if progress::is_stopped() {
            return non_positive;
        }
        worker.read_queries(setup, reader.queries.reborrow());
        let report = &mut |i| non_positive.push([b, h, first + i]);
        worker.all_keys(setup, state, &ready, &mut reader.request(usize::MAX, report));
        non_positive
    };
    let of_head = |reader: Reader<'_, T>| Pool::default().map(reader.runs(CHUNK), of_run).concat();
    readers.into_iter().flat_map(of_head).collect()
}

/// Answers queries that see no key by its features.
fn read_nothing<T: Real>(setup: Setup<'_, T>, readers: Vec<Reader<'_, T>>) -> NonPositive {
    let of_run = |worker: &mut Worker<T>, mut reader: Reader<'_, T>| {
        let (mut non_positive, [b, h, first]) = (NonPositive::new(), reader.queries.origin);
        if progress::is_stopped() {
            return non_positive;
        }
        let (rows, report) = (reader.queries.rows, &mut |i| non_positive.push([b, h, first + i]));
        worker.no_keys(setup, rows, &mut reader.request(0, report));
        non_positive
    };
    let runs: Vec<Reader<'_, T>> = readers.into_iter().flat_map(|reader| reader.runs(CHUNK)).collect();
    Pool::default().map(runs, of_run).concat()
}
