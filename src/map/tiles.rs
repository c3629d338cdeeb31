//! Work cut into tiles of rows, and threads over the tiles. Elsewhere only Householder reflections name rayon.
//!
//! Tiles have a fixed size that depends on shapes alone, rows are computed on their own, and sums over tiles
//! are taken in order, so no result depends on the number of threads. The caller's rayon pool is used; small
//! work stays on the calling thread.

use std::ops::Range;

use ndarray::parallel::prelude::*;
use ndarray::{ArrayView2, ArrayViewMut2, Axis};

use crate::Real;
use crate::numeric::{Buffer, Fence};
use crate::projection::{Scratch, Tile};

/// Bytes of output that a tile should not exceed: they stay in the second cache until they are lifted.
const TILE_BYTES: usize = 256 << 10;
/// Rows of a tile: enough to reuse a packed panel, few enough to balance threads.
const TILE_ROWS: Range<usize> = 36..252;
/// Rows of a tile are a multiple of every register block's rows (4, 6 and 12), so that none is ragged.
const ROW_STEP: usize = 12;
/// Multiplications below which starting threads costs more than it saves.
const SMALL: usize = 1 << 18;
/// Bytes of output from which on it is written past the caches.
const STREAMED: usize = 8 << 20;
/// Bytes of the largest tile that is written on from a buffer.
const CACHED: usize = 2 << 20;
/// Shares of the work for each thread, at most: enough to even out what they take.
const SHARES: usize = 4;
/// Partial sums that exist at a time.
const PARTIALS: usize = 16;

/// The rows of a tile for rows of `width` elements of `T`.
fn tile_rows<T>(width: usize) -> usize {
    let rows = (TILE_BYTES / (width * size_of::<T>()).max(1)).clamp(TILE_ROWS.start, TILE_ROWS.end);
    rows / ROW_STEP * ROW_STEP
}

/// Lets `fill` write every row of `values` and `log_scales` from the same row of `x`, tile by tile.
///
/// Arrays in another than the standard layout are written through a buffer; so are large values, if every value is
/// written `once`. Else values that `fill` does not write stay as they are.
pub(crate) fn fill<T: Real>(
    once: bool,
    x: ArrayView2<'_, T>,
    values: ArrayViewMut2<'_, T>,
    log_scales: ArrayViewMut2<'_, f64>,
    fill: impl Fn(ArrayView2<'_, T>, &mut Tile<'_, T>, &mut Scratch<T>) + Sync,
) {
    let rows = tile_rows::<T>(values.ncols());
    // What does not fit into the caches is written past them, from tiles that do.
    let bytes = |rows: usize| rows * values.ncols() * size_of::<T>();
    let streamed = once && bytes(x.nrows()) > STREAMED && bytes(rows) <= CACHED;
    fill_by((rows, streamed), x, values, log_scales, fill);
}

fn fill_by<T: Real>(
    (rows, streamed): (usize, bool),
    x: ArrayView2<'_, T>,
    mut values: ArrayViewMut2<'_, T>,
    mut log_scales: ArrayViewMut2<'_, f64>,
    fill: impl Fn(ArrayView2<'_, T>, &mut Tile<'_, T>, &mut Scratch<T>) + Sync,
) {
    let work = values.len().saturating_mul(x.ncols());
    if work < SMALL || x.nrows() <= rows {
        let mut worker = Worker::default();
        for ((x, values), log_scales) in x
            .axis_chunks_iter(Axis(0), rows)
            .zip(values.axis_chunks_iter_mut(Axis(0), rows))
            .zip(log_scales.axis_chunks_iter_mut(Axis(0), rows))
        {
            worker.fill(x, values, log_scales, streamed, &fill);
        }
    } else {
        // Each share has buffers of its own, whose first touch is dear.
        let share = x.nrows().div_ceil(rows) / (SHARES * rayon::current_num_threads());
        x.axis_chunks_iter(Axis(0), rows)
            .into_par_iter()
            .zip(values.axis_chunks_iter_mut(Axis(0), rows))
            .zip(log_scales.axis_chunks_iter_mut(Axis(0), rows))
            .with_min_len(share.max(1))
            .for_each_init(Worker::default, |worker, ((x, values), log_scales)| {
                worker.fill(x, values, log_scales, streamed, &fill);
            });
    }
}

/// What a thread keeps from tile to tile. Nothing is allocated while arrays are small and in standard layout.
#[derive(Default)]
struct Worker<T> {
    scratch: Scratch<T>,
    values: Buffer<T>,
    log_scales: Vec<f64>,
}

impl<T: Real> Worker<T> {
    fn fill(
        &mut self,
        x: ArrayView2<'_, T>,
        mut values: ArrayViewMut2<'_, T>,
        mut log_scales: ArrayViewMut2<'_, f64>,
        streamed: bool,
        fill: &impl Fn(ArrayView2<'_, T>, &mut Tile<'_, T>, &mut Scratch<T>),
    ) {
        let (rows, width, blocks) = (values.nrows(), values.ncols(), log_scales.ncols());
        let Worker { scratch, values: buffer, log_scales: scales } = self;
        if let (Some(values), Some(log_scales), false) =
            (values.as_slice_mut(), log_scales.as_slice_mut(), streamed)
        {
            if let Some(mut tile) = Tile::new(values, log_scales, rows, width, blocks) {
                fill(x, &mut tile, scratch);
            }
            return;
        }
        scales.resize(rows * blocks, 0.0);
        let (buffer, fence) = (buffer.take(rows * width), Fence);
        match values.as_slice_mut() {
            Some(out) if streamed => {
                if let Some(tile) = Tile::new(buffer, scales, rows, width, blocks) {
                    let mut tile = tile.streamed_to(out, &fence);
                    fill(x, &mut tile, scratch);
                    tile.complete(rows);
                }
            }
            _ => {
                // Values of absent blocks stay as they are.
                buffer.iter_mut().zip(&values).for_each(|(v, out)| *v = *out);
                if let Some(mut tile) = Tile::new(buffer, scales, rows, width, blocks) {
                    fill(x, &mut tile, scratch);
                }
                values.iter_mut().zip(&*buffer).for_each(|(out, v)| *out = *v);
            }
        }
        log_scales.iter_mut().zip(scales).for_each(|(out, v)| *out = *v);
    }
}

/// Lets `fill` write runs of rows of `out`, each with the index of its first row. `work` is the number of
/// multiplications of one row.
pub(crate) fn fill_rows<T: Real>(
    mut out: ArrayViewMut2<'_, T>,
    work: usize,
    fill: impl Fn(usize, ArrayViewMut2<'_, T>) + Sync,
) {
    let rows = tile_rows::<T>(out.ncols()).min((4 * SMALL / work.max(1)).max(ROW_STEP));
    if out.is_empty() {
    } else if out.nrows().saturating_mul(work) < SMALL {
        fill(0, out);
    } else {
        let chunks = out.axis_chunks_iter_mut(Axis(0), rows).into_par_iter().enumerate();
        chunks.for_each(|(i, chunk)| fill(i * rows, chunk));
    }
}

/// Folds runs of `rows` of `0..n` into a sum, in order: `part` computes the sum of a run, `add` adds it.
pub(crate) fn fold<A: Send>(
    n: usize,
    rows: usize,
    part: impl Fn(Range<usize>) -> A + Sync,
    mut add: impl FnMut(A),
) {
    for group in (0..n).step_by(rows * PARTIALS) {
        let group = group..n.min(group + rows * PARTIALS);
        let runs = group.len().div_ceil(rows);
        let run = |i: usize| part(group.start + i * rows..group.end.min(group.start + (i + 1) * rows));
        if runs == 1 {
            add(run(0));
        } else {
            let parts: Vec<A> = (0..runs).into_par_iter().map(run).collect();
            parts.into_iter().for_each(&mut add);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array2, s};

    fn double(x: ArrayView2<'_, f32>, tile: &mut Tile<'_, f32>, _: &mut Scratch<f32>) {
        for (i, x) in x.rows().into_iter().enumerate() {
            let (values, scales) = tile.row(i);
            values.iter_mut().zip(x).for_each(|(v, x)| *v = 2.0 * x);
            scales[0] = f64::from(x[0]);
        }
    }

    #[test]
    fn any_tile_size_and_layout_gives_the_same() {
        let x = Array2::from_shape_fn((601, 30), |(i, j)| (i * 30 + j) as f32);
        for rows in [(1, true), (7, false), (7, true), (256, false), (256, true), (1000, false), (1000, true)]
        {
            let (mut values, mut scales) = (Array2::zeros((601, 30)), Array2::zeros((601, 1)));
            fill_by(rows, x.view(), values.view_mut(), scales.view_mut(), double);
            assert_eq!(values, &x * 2.0);
            assert!(scales.column(0).iter().zip(x.column(0)).all(|(s, x)| *s == f64::from(*x)));
            // Into the columns of a wider array, from a transposed one.
            let mut wide = Array2::<f32>::zeros((601, 50));
            let columns = x.t().as_standard_layout().reversed_axes().to_owned();
            fill_by(rows, columns.view(), wide.slice_mut(s![.., 10..40]), scales.view_mut(), double);
            assert_eq!(wide.slice(s![.., 10..40]), values);
            assert!(wide.slice(s![.., ..10]).iter().chain(wide.slice(s![.., 40..])).all(|v| *v == 0.0));
        }
    }

    #[test]
    fn folds_in_order() {
        let mut seen = Vec::new();
        fold(1003, 10, |run| run, |run| seen.extend(run));
        assert_eq!(seen, (0..1003).collect::<Vec<_>>());
        fold(0, 10, |run| run, |_| unreachable!());
    }
}
