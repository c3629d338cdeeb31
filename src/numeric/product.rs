//! The product X Wᵀ of a tile of rows X and a matrix W that is packed once.
//!
//! W is stored in panels of [`panel_width`] rows side by side, `[panel][k][lane]`, padded with zeros. A tile of the
//! result is held in registers during the loop over k; elements of X are broadcast from their rows, which are not
//! packed, or from a panel. The loop is cut into runs of [`RUN`] bytes, so that reused data stays in the L2 cache. Each
//! element of the result is summed over k from left to right for every shape of tile.

use super::Lane;
use super::packed::{Panels, panel_width};
use super::vector::{EDGE, Vector, load_row, prefetch, store_row};

/// The bytes of a run of k: 128 rows of X then take half of an L2 cache of 1 MiB.
const RUN: usize = 4096;
/// The steps of k by which panels are prefetched, since they may come from memory.
const AHEAD: usize = 24;
/// The most vectors of a tile of one row: enough sums to hide the latency of an addition. Fewer take as long, since each
/// addition waits for the one before, so that the columns left are one tile.
const WIDE: usize = 8;

multiversion! {
    /// out[i · stride + j] ← Σₖ x[i · x_stride + k] W[j, k] for all rows i of x and all rows j of W.
    ///
    /// The number of rows is that of row starts in `x`. The last row of `x` and of `out` need not be padded to the stride.
    ///
    /// # Panics
    /// If a row of `x` or `out` is cut short.
    pub fn product<T, vector>(x: &[T], x_stride: usize, w: Panels<'_, T>, out: &mut [T], stride: usize) = written;
}

multiversion! {
    /// out[i · stride + j] ← out[i · stride + j] + Σₖ x[i · x_stride + k] W[j, k], from left to right, with the arguments of
    /// [`product`].
    ///
    /// # Panics
    /// If a row of `x` or `out` is cut short.
    pub fn add_product<T, vector>(x: &[T], x_stride: usize, w: Panels<'_, T>, out: &mut [T], stride: usize) = added;
}

multiversion! {
    /// out[f · stride + j] ← Σₖ x[k · width + f] W[j, k] for f < `width`: the [`product`] with the transpose of x, whose rows
    /// follow each other, one for each column of W.
    ///
    /// # Panics
    /// If x does not have a row for each column of W, or a row of `out` is cut short.
    pub fn transposed_product<T, vector>(x: &[T], width: usize, w: Panels<'_, T>, out: &mut [T], stride: usize) = transposed;
}

multiversion! {
    /// out[i · stride + j] ← Σₖ X[i, k] W[j, k] for a matrix X of one panel, packed with the depth of W.
    ///
    /// # Panics
    /// If there are more rows of X than in a panel, the depths differ, or a row of `out` is cut short.
    pub fn panel_product<T, vector>(x: Panels<'_, T>, w: Panels<'_, T>, out: &mut [T], stride: usize) = of_panel;
}

/// # Safety
/// As [`body`].
#[inline(always)]
unsafe fn written<T: Lane, V: Vector<T>>(
    x: &[T],
    x_stride: usize,
    w: Panels<'_, T>,
    out: &mut [T],
    stride: usize,
) {
    // SAFETY: rows that are whole; the caller's promise.
    unsafe { body::<T, V>(by_rows(x, x_stride, w), w, out, stride, false) }
}

/// # Safety
/// As [`body`].
#[inline(always)]
unsafe fn added<T: Lane, V: Vector<T>>(
    x: &[T],
    x_stride: usize,
    w: Panels<'_, T>,
    out: &mut [T],
    stride: usize,
) {
    // SAFETY: rows that are whole; the caller's promise.
    unsafe { body::<T, V>(by_rows(x, x_stride, w), w, out, stride, true) }
}

/// # Safety
/// As [`body`].
#[inline(always)]
unsafe fn of_panel<T: Lane, V: Vector<T>>(x: Panels<'_, T>, w: Panels<'_, T>, out: &mut [T], stride: usize) {
    assert!(x.rows <= panel_width::<T>() && x.depth == w.depth, "one panel as deep as the others");
    let left = Strided { x: x.panels, rows: x.rows, stride: 1, step: panel_width::<T>() };
    // SAFETY: a panel has `panel_width` elements for each k; the caller's promise.
    unsafe { body::<T, V>(left, w, out, stride, false) }
}

/// # Safety
/// As [`body`].
#[inline(always)]
unsafe fn transposed<T: Lane, V: Vector<T>>(
    x: &[T],
    width: usize,
    w: Panels<'_, T>,
    out: &mut [T],
    stride: usize,
) {
    assert!(w.depth.checked_mul(width) == Some(x.len()), "a row of x for each column of W");
    // SAFETY: each k has `width` elements; the caller's promise.
    unsafe { body::<T, V>(Strided { x, rows: width, stride: 1, step: width }, w, out, stride, false) }
}

/// The matrix X, whose element (i, k) is at i · `stride` + k · `step`.
struct Strided<'a, T> {
    x: &'a [T],
    rows: usize,
    stride: usize,
    step: usize,
}

#[inline(always)]
fn by_rows<'a, T>(x: &'a [T], stride: usize, w: Panels<'_, T>) -> Strided<'a, T> {
    let rows = if x.is_empty() { 0 } else { x.len().div_ceil(stride) };
    assert!(rows == 0 || w.rows == 0 || last_fits(rows, x.len(), stride, w.depth), "whole rows of points");
    Strided { x, rows, stride, step: 1 }
}

/// Whether the last of some rows ends before a slice does.
#[inline(always)]
fn last_fits(rows: usize, len: usize, stride: usize, width: usize) -> bool {
    let last = (rows - 1).checked_mul(stride).and_then(|last| last.checked_add(width));
    stride >= width && last.is_some_and(|last| last <= len)
}

/// # Safety
/// The elements of X must be readable; the machine must have the instruction set of `V`.
#[inline(always)]
unsafe fn body<T: Lane, V: Vector<T>>(
    left: Strided<'_, T>,
    w: Panels<'_, T>,
    out: &mut [T],
    stride: usize,
    add: bool,
) {
    if left.rows == 0 || w.rows == 0 {
        return;
    }
    let Strided { x, rows, stride: x_stride, step } = left;
    assert!(last_fits(rows, out.len(), stride, w.rows), "room for all products");
    let (width, widest) = (panel_width::<T>(), WIDE * V::WIDTH);
    assert!(
        width.is_multiple_of(2 * V::WIDTH) && widest.is_multiple_of(width) && widest <= EDGE,
        "whole tiles in panels, and whole panels in the widest"
    );
    let run = RUN / size_of::<T>();
    for from in (0..w.depth).step_by(run) {
        let to = w.depth.min(from + run);
        let mut run = ProductRun {
            x: &x[from * step..],
            x_stride,
            step,
            panels: &w.panels[from * panel_width::<T>()..],
            panel: w.panel,
            len: to - from,
            add: add || from > 0,
            out,
            stride,
            columns: w.rows,
        };
        // SAFETY: the assertions above and the caller's promise imply what tiles require.
        unsafe {
            match V::ROWS {
                // Panels of 16 rows: a tile of 4 would read its panels faster than the second cache gives them.
                12 if step > 1 && panel_width::<T>() % 12 == 4 => run.tiles::<V, 8>(rows),
                12 => run.tiles::<V, 12>(rows),
                8 => run.tiles::<V, 8>(rows),
                6 => run.tiles::<V, 6>(rows),
                _ => run.tiles::<V, 4>(rows),
            }
        }
    }
}

/// One run of k for all rows and columns.
struct ProductRun<'a, T> {
    x: &'a [T],
    x_stride: usize,
    /// The number of elements from k to k + 1: 1, or the number of rows side by side.
    step: usize,
    /// The panels, from the first element of the run in the first panel on.
    panels: &'a [T],
    /// The number of elements of a panel.
    panel: usize,
    len: usize,
    /// Whether `out` holds the sums of the previous runs.
    add: bool,
    out: &'a mut [T],
    stride: usize,
    columns: usize,
}

impl<T: Lane> ProductRun<'_, T> {
    /// Cuts the result into tiles of `M` rows × 2 vectors; remaining rows are processed in eights, fours and ones.
    ///
    /// # Safety
    /// `x`, `panels` and `out` must hold what the fields say for `rows` rows; the machine must have the instruction
    /// set.
    #[inline(always)]
    unsafe fn tiles<V: Vector<T>, const M: usize>(&mut self, rows: usize) {
        let alone = |whole: usize| (rows - whole) % 4;
        let most = rows - rows % M;
        // There is one tile less if the rest can then be cut into fours.
        let whole = if most > 0 && alone(most - M) < alone(most) { most - M } else { most };
        let eights = if M > 8 { whole + (rows - whole) / 8 * 8 } else { whole };
        let fours = rows - alone(whole);
        let ends = [whole, eights, fours];
        // SAFETY: rows and columns lie inside the result; the caller's promises.
        unsafe {
            for column in (0..self.columns).step_by(2 * V::WIDTH) {
                match self.columns - column {
                    left if left > V::WIDTH => self.column::<V, M, 2>(column, ends),
                    left if left > V::Half::WIDTH => self.column::<V, M, 1>(column, ends),
                    _ => self.column::<V::Half, M, 1>(column, ends),
                }
            }
            for row in fours..rows {
                for column in (0..self.columns).step_by(WIDE * V::WIDTH) {
                    match (self.columns - column).div_ceil(2 * V::WIDTH) {
                        1 => self.tile::<V, 1, 2>(row, column),
                        2 => self.tile::<V, 1, 4>(row, column),
                        3 => self.tile::<V, 1, 6>(row, column),
                        _ => self.tile::<V, 1, WIDE>(row, column),
                    }
                }
            }
        }
    }

    /// The tiles of `N` vectors from a column on: of `M` rows, of eight and of four, each up to its end.
    ///
    /// # Safety
    /// As [`tile`](ProductRun::tile).
    #[inline(always)]
    unsafe fn column<V: Vector<T>, const M: usize, const N: usize>(
        &mut self,
        column: usize,
        [whole, eights, fours]: [usize; 3],
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            for row in (0..whole).step_by(M) {
                self.tile::<V, M, N>(row, column);
            }
            if M > 8 {
                for row in (whole..eights).step_by(8) {
                    self.tile::<V, 8, N>(row, column);
                }
            }
            for row in (eights..fours).step_by(4) {
                self.tile::<V, 4, N>(row, column);
            }
        }
    }

    /// # Safety
    /// `row + M` rows must exist, and `column`; the tile must begin with a panel, or lie inside one, and `panels` must hold all its
    /// vectors, padding among them. The machine must have the instruction set.
    #[inline(always)]
    #[allow(clippy::needless_range_loop, reason = "arrays of vectors that iterators move go through memory")]
    unsafe fn tile<V: Vector<T>, const M: usize, const N: usize>(&mut self, row: usize, column: usize) {
        // SAFETY: all x are inside rows and all w inside panels, by the caller's promise and the padding of panels; a
        // tile that is narrower than its vectors goes through a row of its own, which holds the widest tile. Checked indexing
        // here costs a third of the speed.
        unsafe {
            let x = self.x.as_ptr().add(row * self.x_stride);
            let w = self
                .panels
                .as_ptr()
                .add(column / panel_width::<T>() * self.panel + column % panel_width::<T>());
            let out = self.out.as_mut_ptr().add(row * self.stride + column);
            let columns = self.columns - column;
            let mut sums = [[V::splat(T::zero()); N]; M];
            if self.add {
                for i in 0..M {
                    sums[i] = load_row(out.add(i * self.stride), columns);
                }
            }
            for k in 0..self.len {
                let mut vectors = [V::splat(T::zero()); N];
                for j in 0..N {
                    let lane = j * V::WIDTH;
                    vectors[j] = V::load(w.add(
                        lane / panel_width::<T>() * self.panel
                            + k * panel_width::<T>()
                            + lane % panel_width::<T>(),
                    ));
                }
                if M > 1 {
                    let next = w.wrapping_add((k + AHEAD) * panel_width::<T>());
                    prefetch(next);
                    prefetch(next.wrapping_add(panel_width::<T>() / 2));
                    // The hardware prefetches rows. Tiles of six or fewer would read no faster: in a first cache of eight ways, lines
                    // that are fetched ahead take the place of those of this tile, where a step is a large power of two.
                    if self.step > 1 && M > 6 {
                        let next = x.wrapping_add((k + AHEAD) * self.step);
                        prefetch(next);
                        prefetch(next.wrapping_add(M - 1));
                    }
                }
                for i in 0..M {
                    let x = V::splat(*x.add(i * self.x_stride + k * self.step));
                    for j in 0..N {
                        sums[i][j] = x.madd(vectors[j], sums[i][j]);
                    }
                }
            }
            for i in 0..M {
                store_row(sums[i], out.add(i * self.stride), columns);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::{Isa, Packed};

    fn value(i: usize) -> f64 {
        ((i * 7919) % 1009) as f64 / 1009.0 - 0.5
    }

    /// Rows with arbitrary starts and strides, up to the end of the slices.
    fn against_naive<T: crate::Real>(isa: Isa, rows: usize, depth: usize, columns: usize) {
        let (x_stride, stride) = (depth + 5, columns + 3);
        let (x_len, len) = ((rows - 1) * x_stride + depth, (rows - 1) * stride + columns);
        let x: Vec<T> = (0..=x_len).map(|i| T::narrow(value(i))).collect();
        let x = &x[1..];
        let w: Vec<T> = (0..columns * depth).map(|i| T::narrow(value(3 * i + 1))).collect();
        let packed = Packed::new(columns, depth, |j, k| w[j * depth + k]);
        let mut out = vec![T::nan(); len + 1];
        product(isa, x, x_stride, packed.all(), &mut out[1..], stride);
        assert!(out[0].is_nan());
        let out = &out[1..];
        let eps = T::epsilon().widen();
        for (i, row) in out.chunks(stride).enumerate() {
            let x = &x[i * x_stride..][..depth];
            for (j, value) in row[..columns].iter().enumerate() {
                let terms = x.iter().zip(&w[j * depth..]).map(|(x, w)| x.widen() * w.widen());
                let (sum, size) = terms.fold((0.0, 0.0), |(s, a): (f64, f64), t| (s + t, a + t.abs()));
                let error = (value.widen() - sum).abs();
                assert!(
                    error <= eps * size * (depth as f64).sqrt(),
                    "{isa:?} {rows}x{depth}x{columns} at {i},{j}"
                );
            }
            assert!(row[columns..].iter().all(|v| v.is_nan()), "gap written");
            // One row at a time gives the same bits.
            let mut one = vec![T::zero(); columns];
            product(isa, x, depth, packed.all(), &mut one, columns);
            assert_eq!(one, row[..columns]);
        }
        // So do panels of rows.
        let left = Packed::new(rows, depth, |i, k| x[i * x_stride + k]);
        let mut panels = vec![T::nan(); len];
        for (left, panels) in left.runs(1).zip(panels.chunks_mut(panel_width::<T>() * stride)) {
            panel_product(isa, left, packed.all(), panels, stride);
        }
        for (row, of_panel) in out.chunks(stride).zip(panels.chunks(stride)) {
            assert_eq!(row[..columns], of_panel[..columns]);
            assert!(of_panel[columns..].iter().all(|v| v.is_nan()), "gap written");
        }
    }

    /// Whether an interpreter takes minutes for a product, in which columns are tiles of 32.
    fn is_long(rows: usize, depth: usize, columns: usize) -> bool {
        cfg!(miri) && rows * depth * columns.next_multiple_of(32) > 8_000
    }

    #[test]
    fn agrees_with_the_naive_loop_on_ragged_shapes() {
        for isa in Isa::available() {
            for (rows, depth, columns) in [
                (1, 1, 1),
                (3, 2, 5),
                (7, 17, 33),
                (13, 64, 31),
                (25, 255, 64),
                (29, 257, 65),
                (1, 70, 300),
                // Rows alone whose last tile is of 2, 4, 6 and 8 vectors of any set.
                (3, 9, 40),
                (2, 9, 50),
                (1, 9, 70),
                (3, 9, 97),
                (2, 9, 128),
                (15, 3, 7),
                (26, 1030, 41),
            ] {
                if is_long(rows, depth, columns) {
                    continue;
                }
                against_naive::<f32>(isa, rows, depth, columns);
                against_naive::<f64>(isa, rows, depth, columns);
            }
        }
    }

    #[test]
    fn transposed_products_are_those_of_the_transposed_matrix() {
        fn check<T: crate::Real>(isa: Isa, rows: usize, depth: usize, columns: usize) {
            let x: Vec<T> = (0..rows * depth).map(|i| T::narrow(value(i))).collect();
            let w = |j: usize, k: usize| T::narrow(value(3 * (j * rows + k) + 1));
            let mut flipped = vec![T::zero(); rows * depth];
            for (i, row) in x.chunks(depth).enumerate() {
                row.iter().enumerate().for_each(|(f, v)| flipped[f * rows + i] = *v);
            }
            // What comes after the sums is not read.
            let deep = Packed::new(columns, rows + 9, |j, k| if k < rows { w(j, k) } else { T::nan() });
            let (mut out, mut expected) = (vec![T::nan(); depth * columns], vec![T::nan(); depth * columns]);
            transposed_product(isa, &x, depth, deep.all().shallow(rows), &mut out, columns);
            product(isa, &flipped, rows, Packed::new(columns, rows, w).all(), &mut expected, columns);
            assert_eq!(out, expected, "{isa:?} {rows}x{depth}x{columns}");
        }
        for isa in Isa::available() {
            for (rows, depth, columns) in
                [(1, 1, 1), (9, 5, 40), (33, 5, 40), (64, 256, 32), (70, 13, 3), (1100, 6, 2)]
            {
                if is_long(rows, depth, columns) {
                    continue;
                }
                check::<f32>(isa, rows, depth, columns);
                check::<f64>(isa, rows, depth, columns);
            }
        }
    }

    /// Sums computed in two parts for the first columns equal those computed at once.
    #[test]
    fn parts_add_up_to_the_whole() {
        for isa in Isa::available() {
            for (rows, depth, columns, cut, first) in
                [(13, 64, 65, 32, 40), (5, 7, 33, 1, 33), (30, 40, 3, 39, 1)]
            {
                if is_long(rows, depth, columns) {
                    continue;
                }
                let x: Vec<f32> = (0..rows * depth).map(|i| value(i) as f32).collect();
                let w = |j: usize, k: usize| value(3 * (j * depth + k) + 1) as f32;
                let (whole, right) =
                    (Packed::new(columns, depth, w), Packed::new(columns, depth - cut, |j, k| w(j, cut + k)));
                let (mut all, mut parts) = (vec![0.0; rows * columns], vec![f32::NAN; rows * first]);
                product(isa, &x, depth, whole.all(), &mut all, columns);
                product(isa, &x, depth, whole.all().shallow(cut).first(first), &mut parts, first);
                add_product(isa, &x[cut..], depth, right.all().first(first), &mut parts, first);
                for (all, parts) in all.chunks(columns).zip(parts.chunks(first)) {
                    assert_eq!(all[..first], *parts, "{isa:?} {rows}x{depth}x{columns}");
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "room for all products")]
    fn strides_that_overflow_are_refused() {
        let packed = Packed::new(1, 1, |_, _| 1.0f32);
        product(Isa::best(), &[1.0; 3], 1, packed.all(), &mut [0.0; 2], 1 << (usize::BITS - 1));
    }

    #[test]
    fn no_rows_is_no_work() {
        let packed = Packed::new(100, 2, |_, _| 1.0f32);
        product(Isa::best(), &[], 2, packed.all(), &mut [], 100);
    }
}
