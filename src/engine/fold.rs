//! Folding over features: consumers read them tile by tile, without storing them.

use std::ops::Range;

use ndarray::{ArrayViewMut1, ArrayViewMut2, Axis};

use super::batch::{Batch, FeatureRow};
use super::drive::{SMALL, is_wide, rows_for_all_threads};
use super::{FeatureBuffers, FeatureSource, Form, PointsView, Program, Side};
use crate::error::Result;
use crate::threads::{self, Pool};
use crate::{Real, progress};

/// The largest number of partial sums that exist at a time.
const PARTIALS: usize = 16;
/// The bytes of partial sums that exist at a time, if that leaves one for each of a few threads.
const PARTIAL_BYTES: usize = 32 << 20;

/// The cost of a feature when two rows are paired, in multiplications: mostly an exponential.
const PAIR: usize = 16;

/// The division of a fold into runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Runs {
    /// The number of rows of a run.
    pub rows: usize,
    /// The bytes of a partial sum.
    pub bytes: usize,
}

/// What a thread keeps from run to run.
#[derive(Debug, Default)]
pub(crate) struct FoldBuffers<T, W> {
    features: FeatureBuffers<T>,
    /// What the consumer keeps.
    kept: W,
}

/// Folds the features of runs of rows of `x` into a sum, in the order of the rows: `part` computes the sum of a
/// run from its features, `add` adds it.
///
/// Runs depend only on shapes, so the result does not depend on the number of threads. `part` may keep a `W`
/// from run to run; `buffers` keep it from fold to fold.
///
/// # Errors
/// [`Memory`](crate::Error::Memory) if there is no memory for copies of some points; nothing is added then.
/// [`Cancelled`](crate::Error::Cancelled) if the watcher stops the work; the first runs are added then.
pub(crate) fn fold<T: Real, W: Default + Send, A: Send>(
    source: FeatureSource<'_, T>,
    x: PointsView<'_, T>,
    Runs { rows, bytes }: Runs,
    buffers: &Pool<FoldBuffers<T, W>>,
    part: impl Fn(Range<usize>, &mut Batch<T>, &mut W) -> A + Sync,
    mut add: impl FnMut(A),
) -> Result<()> {
    x.check_copies(rows)?;
    let of_run = |FoldBuffers { features, kept }: &mut FoldBuffers<T, W>, run: Range<usize>| {
        source.fill(x.rows(run.clone()), features);
        part(run, &mut features.batch, kept)
    };
    let n = x.nrows();
    let partials = (PARTIAL_BYTES / bytes.max(1)).clamp(threads::count().min(PARTIALS), PARTIALS);
    for group in (0..n).step_by(rows * partials) {
        progress::check()?;
        let group = group..n.min(group + rows * partials);
        let runs = group.len().div_ceil(rows);
        let work = group.len().saturating_mul(source.program.width()).saturating_mul(x.depth());
        let run = |i: usize| group.start + i * rows..group.end.min(group.start + (i + 1) * rows);
        if runs == 1 || work < SMALL {
            let mut own = buffers.take().unwrap_or_default();
            own.features.scratch.wide = is_wide(group.len(), rows, work);
            (0..runs).for_each(|i| add(of_run(&mut own, run(i))));
            own.features.scratch.wide = false;
            buffers.give(own);
        } else {
            let parts = buffers.map((0..runs).map(run), of_run);
            parts.into_iter().for_each(&mut add);
        }
    }
    Ok(())
}

/// Lets `write` fill runs of rows of `out` from the features of these rows of `x`; `work` is the number of
/// multiplications of a row beside those of its features. `write` may keep a `W` from run to run.
///
/// # Errors
/// The errors of [`for_runs`]; [`Memory`](crate::Error::Memory) if copies of some points do not fit in memory.
pub(crate) fn map_rows<T: Real, U: Send, W: Default + Send>(
    source: &FeatureSource<'_, T>,
    x: PointsView<'_, T>,
    out: ArrayViewMut2<'_, U>,
    work: usize,
    write: impl Fn(Range<usize>, &mut Batch<T>, ArrayViewMut2<'_, U>, &mut W) + Sync,
) -> Result<()> {
    let work = work.saturating_add(source.program.width().saturating_mul(x.depth()));
    let total = work.saturating_mul(x.nrows());
    let rows = rows_for_all_threads(source.program, &x);
    x.check_copies(rows)?;
    let alone = || {
        let mut buffers = FoldBuffers::<T, W>::default();
        buffers.features.scratch.wide = is_wide(x.nrows(), rows, total);
        buffers
    };
    for_runs(out, rows, total, alone, |FoldBuffers { features, kept }, run, out| {
        source.fill(x.rows(run.clone()), features);
        write(run, &mut features.batch, out, kept);
    })
}

/// Writes for each i `pair` of the features of row i of `x` on side X and of row i of `y` on side Y.
///
/// # Errors
/// The errors of [`map_rows`].
pub(crate) fn map_pairs<T: Real, U: Send>(
    program: &Program<T>,
    form: Form,
    x: PointsView<'_, T>,
    y: PointsView<'_, T>,
    out: ArrayViewMut1<'_, U>,
    pair: impl Fn(FeatureRow<'_, T>, FeatureRow<'_, T>) -> U + Sync,
) -> Result<()> {
    let source = FeatureSource::new(program, Side::Y, form);
    let right = |run: Range<usize>,
                 left: &mut Batch<T>,
                 mut out: ArrayViewMut2<'_, U>,
                 own: &mut FeatureBuffers<T>| {
        source.fill(y.rows(run), own);
        out.iter_mut().enumerate().for_each(|(i, out)| *out = pair(left.row(i), own.batch.row(i)));
    };
    let work = program.width().saturating_mul(y.depth() + PAIR);
    map_rows(&FeatureSource::new(program, Side::X, form), x, out.insert_axis(Axis(1)), work, right)
}

/// Lets `write` fill `out` in runs of `rows` rows, one after the other if the whole `work`, in multiplications, is small.
///
/// Each thread keeps a `W` from run to run; a single thread keeps the one of `alone`.
///
/// # Errors
/// [`Cancelled`](crate::Error::Cancelled) if the watcher stops the work between runs; some runs are written then.
pub(crate) fn for_runs<U: Send, W: Default + Send>(
    mut out: ArrayViewMut2<'_, U>,
    rows: usize,
    work: usize,
    alone: impl FnOnce() -> W,
    write: impl Fn(&mut W, Range<usize>, ArrayViewMut2<'_, U>) + Sync,
) -> Result<()> {
    let few = work < SMALL || out.nrows() <= rows;
    let run = |kept: &mut W, (i, out): (usize, ArrayViewMut2<'_, U>)| {
        write(kept, i * rows..i * rows + out.nrows(), out);
    };
    let runs = out.axis_chunks_iter_mut(Axis(0), rows).enumerate();
    if few {
        let mut kept = alone();
        runs.for_each(|item| run(&mut kept, item));
        return Ok(());
    }
    let unless_stopped = |kept: &mut W, item: (usize, ArrayViewMut2<'_, U>)| {
        if !progress::is_stopped() {
            run(kept, item);
        }
    };
    Pool::default().for_each(runs, unless_stopped);
    progress::check()
}
