//! Features of many points: tiles of rows, parallel over tiles, with non-temporal stores for large results.
//!
//! Each row is computed independently, so no result depends on the size of tiles or the number of threads. Small work stays
//! on the calling thread, and where there are fewer tiles than threads a tile's projections are cut into ranges of
//! frequencies.

use ndarray::{Array2, ArrayViewMut2, Axis};

use super::{Form, PointsView, Program, Scratch, Side, Tile, TileShape};
use crate::error::Result;
use crate::numeric::{Buffer, Fence};
use crate::threads::{self, Pool};
use crate::{Real, progress};

/// The bytes of output that a tile should not exceed, so that it stays in the L2 cache until it is lifted.
const TILE_BYTES: usize = 256 << 10;
/// The range of the number of rows of a tile: enough to reuse a packed panel, few enough to balance threads.
const TILE_ROWS: std::ops::Range<usize> = 36..252;
/// The number of rows of a tile is a multiple of this, and so of the rows of every register block (4, 6 and 12).
const ROW_STEP: usize = 12;
/// The number of multiplications below which starting threads costs more than it saves.
pub(super) const SMALL: usize = 1 << 18;
/// The bytes of output from which on non-temporal stores are used.
const STREAMED: usize = 8 << 20;
/// The bytes that the coordinates of a tile's points should not exceed, since they may be copied.
const POINT_BYTES: usize = 64 << 20;
/// The bytes of the largest tile that is copied to the result by non-temporal stores.
const CACHED: usize = 2 << 20;

/// The number of rows of a tile for rows of `width` elements of `T`.
pub(super) fn tile_rows<T>(width: usize) -> usize {
    let rows = (TILE_BYTES / (width * size_of::<T>()).max(1)).clamp(TILE_ROWS.start, TILE_ROWS.end);
    rows / ROW_STEP * ROW_STEP
}

/// The most rows of a tile of points of `d` coordinates.
fn most_rows<T>(d: usize) -> usize {
    (POINT_BYTES / d.saturating_mul(size_of::<T>()).max(1)).max(1)
}

/// The rows of a run of a fold over `width` features of points of `d` coordinates, on any number of threads.
pub(crate) fn run_rows<T>(width: usize, d: usize) -> usize {
    tile_rows::<T>(width).min(most_rows::<T>(d))
}

/// The rows of a tile of a program's features of the points `x`: fewer if there would not be a tile for each thread. Few rows
/// stay together where threads [share](Program::is_wide) the product of a tile instead, since whole steps of rows would
/// leave some of them idle. Points of very many coordinates make small tiles.
pub(super) fn rows_for_all_threads<T: Real>(program: &Program<T>, x: &PointsView<'_, T>) -> usize {
    let (n, most) = (x.nrows(), most_rows::<T>(x.ncols()));
    let (rows, threads) = (tile_rows::<T>(program.width()), threads::count());
    let tile = rows.min(n.div_ceil(threads).next_multiple_of(ROW_STEP)).max(1);
    // The number of rows that would be computed in this time if every thread had as many as the busiest one.
    let spent = n.div_ceil(tile).div_ceil(threads) * threads * tile;
    let uneven = n <= TILE_ROWS.end && 4 * spent > 5 * n;
    if program.is_wide() && uneven { n.clamp(1, most) } else { tile.min(most) }
}

/// Whether one tile may use all threads, since there are fewer tiles than threads.
pub(super) fn is_wide(n: usize, rows: usize, work: usize) -> bool {
    work >= SMALL && n.div_ceil(rows) < threads::count()
}

/// Arrays of features: values, signs (n × D, or n × 0 for values) and scales.
pub(crate) struct Arrays<'a, T> {
    pub values: ArrayViewMut2<'a, T>,
    pub signs: ArrayViewMut2<'a, T>,
    pub log_scales: ArrayViewMut2<'a, f64>,
}

/// Writes the features of the rows of `x`, with as many rows in each array.
///
/// Arrays that are not in standard layout are written through a buffer; so are large results, if the map writes every
/// value once. Values of absent blocks stay as they are.
///
/// # Errors
/// [`Memory`](crate::Error::Memory) if copies of some points do not fit in memory, [`Cancelled`](crate::Error::Cancelled) if
/// the watcher stops the work; some rows are written then.
pub(crate) fn fill<T: Real>(
    program: &Program<T>,
    side: Side,
    form: Form,
    x: PointsView<'_, T>,
    arrays: Arrays<'_, T>,
) -> Result<()> {
    let (n, width) = (x.nrows(), program.width());
    let rows = rows_for_all_threads(program, &x);
    x.check_copies(rows)?;
    // Results that do not fit into the caches bypass them, from tiles that do fit.
    let bytes = |rows: usize| rows * width * size_of::<T>();
    let streamed =
        form == Form::Values && program.writes_once() && bytes(n) > STREAMED && bytes(rows) <= CACHED;
    fill_by(program, side, form, x, arrays, rows, streamed)
}

/// Writes the values and log scales of the features of the rows of `x`.
///
/// # Errors
/// The errors of [`fill`].
pub(crate) fn fill_values<T: Real>(
    program: &Program<T>,
    side: Side,
    x: PointsView<'_, T>,
    values: ArrayViewMut2<'_, T>,
    log_scales: ArrayViewMut2<'_, f64>,
) -> Result<()> {
    let mut none = Array2::zeros((x.nrows(), 0));
    fill(program, side, Form::Values, x, Arrays { values, signs: none.view_mut(), log_scales })
}

fn fill_by<T: Real>(
    program: &Program<T>,
    side: Side,
    form: Form,
    x: PointsView<'_, T>,
    arrays: Arrays<'_, T>,
    rows: usize,
    streamed: bool,
) -> Result<()> {
    // No map, including a user's own, is asked for the features of no points.
    if x.nrows() == 0 {
        return Ok(());
    }
    let work = arrays.values.len().saturating_mul(x.depth());
    // Cutting the arrays into runs would add a tenth to the time of a single row.
    if x.nrows() <= rows {
        let mut buffers = FillBuffers::default();
        buffers.scratch.wide = is_wide(x.nrows(), rows, work);
        buffers.fill(program, side, form, x, arrays, streamed);
        return Ok(());
    }
    let Arrays { mut values, mut signs, mut log_scales } = arrays;
    let tiles = (0..x.nrows().div_ceil(rows))
        .map(|i| x.run(i, rows))
        .zip(values.axis_chunks_iter_mut(Axis(0), rows))
        .zip(signs.axis_chunks_iter_mut(Axis(0), rows))
        .zip(log_scales.axis_chunks_iter_mut(Axis(0), rows))
        .map(|(((x, values), signs), log_scales)| (x, Arrays { values, signs, log_scales }));
    let fill = |buffers: &mut FillBuffers<T>, (x, arrays): (PointsView<'_, T>, Arrays<'_, T>)| {
        if !progress::is_stopped() {
            buffers.fill(program, side, form, x, arrays, streamed);
        }
    };
    if work < SMALL {
        let mut buffers = FillBuffers::default();
        tiles.for_each(|tile| fill(&mut buffers, tile));
    } else {
        Pool::default().for_each(tiles, fill);
    }
    progress::check()
}

/// The buffers that a thread reuses. Nothing is allocated if arrays are small and in standard layout.
#[derive(Default)]
struct FillBuffers<T> {
    scratch: Scratch<T>,
    values: Buffer<T>,
    signs: Vec<T>,
    log_scales: Vec<f64>,
}

impl<T: Real> FillBuffers<T> {
    fn fill(
        &mut self,
        program: &Program<T>,
        side: Side,
        form: Form,
        x: PointsView<'_, T>,
        arrays: Arrays<'_, T>,
        streamed: bool,
    ) {
        let Arrays { mut values, mut signs, mut log_scales } = arrays;
        let (rows, width, blocks) = (values.nrows(), values.ncols(), log_scales.ncols());
        let shape = TileShape { rows, width, blocks };
        let FillBuffers { scratch, values: buffer, signs: sign_buffer, log_scales: scales } = self;
        if let (Some(values), Some(signs), Some(log_scales), false) =
            (values.as_slice_mut(), signs.as_slice_mut(), log_scales.as_slice_mut(), streamed)
        {
            return program.fill(side, form, x, &mut Tile::new(values, signs, log_scales, shape), scratch);
        }
        scales.resize(rows * blocks, 0.0);
        sign_buffer.clear();
        sign_buffer.resize(signs.len(), T::one());
        let (buffer, fence) = (buffer.take(rows * width), Fence);
        match values.as_slice_mut() {
            Some(out) if streamed => {
                let mut tile = Tile::new(buffer, sign_buffer, scales, shape).streamed_to(out, &fence);
                program.fill(side, form, x, &mut tile, scratch);
                tile.complete(rows);
            }
            _ => {
                // Values of absent blocks stay as they are.
                buffer.iter_mut().zip(&values).for_each(|(v, out)| *v = *out);
                program.fill(side, form, x, &mut Tile::new(buffer, sign_buffer, scales, shape), scratch);
                values.iter_mut().zip(&*buffer).for_each(|(out, v)| *out = *v);
            }
        }
        signs.iter_mut().zip(&*sign_buffer).for_each(|(out, sign)| *out = *sign);
        log_scales.iter_mut().zip(&*scales).for_each(|(out, v)| *out = *v);
    }
}
