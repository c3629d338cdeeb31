//! Features that need never reach memory: consumers read them tile by tile.

use std::ops::Range;

use ndarray::parallel::prelude::*;
use ndarray::{ArrayView2, ArrayViewMut2, Axis};

use super::batch::Batch;
use super::drive::{SMALL, for_all_threads, is_wide, tile_rows};
use super::{Form, Program, Scratch, Side};
use crate::Real;

/// Partial sums that exist at a time, at most.
const PARTIALS: usize = 16;
/// Bytes of partial sums that exist at a time, if that leaves one for each of a few threads.
const PARTIAL_BYTES: usize = 32 << 20;

/// How a fold is cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Runs {
    /// Rows of a run.
    pub rows: usize,
    /// Bytes of a partial sum.
    pub bytes: usize,
}

/// What a thread keeps from tile to tile.
#[derive(Default)]
struct Worker<T, W> {
    scratch: Scratch<T>,
    batch: Batch<T>,
    own: W,
}

/// Folds the features of runs of rows of `x` into a sum, in the order of the rows: `part` computes the sum of a
/// run from its features, `add` adds it.
///
/// Runs depend on shapes alone, so the result does not depend on the number of threads. `part` may keep things of type
/// `W` from run to run.
pub(crate) fn fold<T: Real, W: Default, A: Send>(
    program: &Program<T>,
    what: (Side, Form),
    x: ArrayView2<'_, T>,
    Runs { rows, bytes }: Runs,
    part: impl Fn(Range<usize>, &mut Batch<T>, &mut W) -> A + Sync,
    mut add: impl FnMut(A),
) {
    let of_run = |worker: &mut Worker<T, W>, run: Range<usize>| {
        let x = x.slice_axis(Axis(0), run.clone().into());
        worker.batch.fill(program, what, x, &mut worker.scratch);
        part(run, &mut worker.batch, &mut worker.own)
    };
    let n = x.nrows();
    let partials = (PARTIAL_BYTES / bytes.max(1)).clamp(rayon::current_num_threads().min(PARTIALS), PARTIALS);
    for group in (0..n).step_by(rows * partials) {
        let group = group..n.min(group + rows * partials);
        let runs = group.len().div_ceil(rows);
        let run = |i: usize| group.start + i * rows..group.end.min(group.start + (i + 1) * rows);
        if runs == 1 {
            let mut worker = Worker::default();
            worker.scratch.wide = is_wide(group.len(), rows, group.len() * program.width() * x.ncols());
            add(of_run(&mut worker, run(0)));
        } else {
            let parts: Vec<A> = (0..runs)
                .into_par_iter()
                .map_init(Worker::default, |worker, i| of_run(worker, run(i)))
                .collect();
            parts.into_iter().for_each(&mut add);
        }
    }
}

/// Lets `write` fill runs of rows of `out` from the features of the same rows of `x`; `work` is the number of
/// multiplications of a row beside those of its features. `write` may keep things of type `W` from run to run.
pub(crate) fn map_rows<T: Real, U: Send + Sync, W: Default>(
    program: &Program<T>,
    what: (Side, Form),
    x: ArrayView2<'_, T>,
    mut out: ArrayViewMut2<'_, U>,
    work: usize,
    write: impl Fn(Range<usize>, &mut Batch<T>, ArrayViewMut2<'_, U>, &mut W) + Sync,
) {
    let work = work.saturating_add(program.width().saturating_mul(x.ncols()));
    let total = work.saturating_mul(x.nrows());
    let rows = for_all_threads(tile_rows::<T>(program.width()), x.nrows());
    let run = |worker: &mut Worker<T, W>, i: usize, out: ArrayViewMut2<'_, U>| {
        let run = i * rows..i * rows + out.nrows();
        let x = x.slice_axis(Axis(0), run.clone().into());
        worker.batch.fill(program, what, x, &mut worker.scratch);
        write(run, &mut worker.batch, out, &mut worker.own);
    };
    if total < SMALL || x.nrows() <= rows {
        let mut worker = Worker::default();
        worker.scratch.wide = is_wide(x.nrows(), rows, total);
        let runs = out.axis_chunks_iter_mut(Axis(0), rows).enumerate();
        runs.for_each(|(i, out)| run(&mut worker, i, out));
    } else {
        let runs = out.axis_chunks_iter_mut(Axis(0), rows).into_par_iter().enumerate();
        runs.for_each_init(Worker::default, |worker, (i, out)| run(worker, i, out));
    }
}
