//! X Wᵀ for a tile of rows X and a matrix W that is packed once.
//!
//! W lies in panels of [`Lane::PANEL`] rows of W side by side, `[panel][k][lane]`, padded with zeros. A block
//! of the result is held in registers while k runs; elements of X are broadcast from their rows, which are
//! not packed. k is cut into runs of [`DEPTH`], so that a run of a panel stays in the first cache while all
//! rows of the tile pass. Each element of the result is summed over k from left to right, whatever the shape
//! of the tile.

use super::{Isa, Lane};

/// Length of a run of k: a panel's run is 32 KiB.
const DEPTH: usize = 256;
/// Bytes to which panels are aligned.
const ALIGN: usize = 64;

/// A matrix W of `rows` × `depth`, packed for [`product`].
#[derive(Debug)]
pub struct Packed<T> {
    storage: Vec<T>,
    /// Where the aligned panels begin in `storage`.
    start: usize,
    rows: usize,
    depth: usize,
}

impl<T: Lane> Packed<T> {
    /// Packs the matrix whose element (j, k) is `element(j, k)`.
    pub fn new(rows: usize, depth: usize, element: impl Fn(usize, usize) -> T) -> Self {
        let panels = rows.div_ceil(T::PANEL);
        let mut storage = vec![T::zero(); panels * depth * T::PANEL + ALIGN];
        let start = storage.as_ptr().align_offset(ALIGN).min(ALIGN);
        for (j, k) in (0..rows).flat_map(|j| (0..depth).map(move |k| (j, k))) {
            let panel = j / T::PANEL * depth * T::PANEL;
            storage[start + panel + k * T::PANEL + j % T::PANEL] = element(j, k);
        }
        Packed { storage, start, rows, depth }
    }

    /// Rows of W: columns of the product.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns of W: the length of the sums.
    pub fn depth(&self) -> usize {
        self.depth
    }

    fn panels(&self) -> &[T] {
        &self.storage[self.start..]
    }
}

/// out[i · stride + j] ← Σₖ x[i · depth + k] W[j, k] for all rows i of x and all rows j of W.
///
/// `out` must hold `stride` elements for each row of x but the last, and `w.rows()` for that one.
pub fn product<T: Lane>(isa: Isa, x: &[T], w: &Packed<T>, out: &mut [T], stride: usize) {
    if x.is_empty() {
        return;
    }
    let depth = w.depth;
    for from in (0..depth).step_by(DEPTH) {
        let to = depth.min(from + DEPTH);
        for column in (0..w.rows).step_by(T::PANEL) {
            let panel = &w.panels()[column * depth..][from * T::PANEL..to * T::PANEL];
            let columns = T::PANEL.min(w.rows - column);
            let out = &mut out[column..];
            T::run_block(isa, Block { x, depth, from, to, panel, out, stride, columns });
        }
    }
}

/// One run of one panel against all rows of a tile.
pub struct Block<'a, T> {
    x: &'a [T],
    depth: usize,
    from: usize,
    to: usize,
    panel: &'a [T],
    out: &'a mut [T],
    stride: usize,
    columns: usize,
}

impl<T: Lane> Block<'_, T> {
    /// Cuts the block into register tiles of `MR` rows × `NR` columns. What is left of the rows goes in twos and
    /// ones, `FEW` columns wide: as many independent sums as a few rows can have.
    #[inline(always)]
    pub(super) fn run<const FMA: bool, const MR: usize, const NR: usize, const FEW: usize>(mut self) {
        let rows = self.x.len() / self.depth;
        let whole = rows - rows % MR;
        for lane in (0..self.columns).step_by(NR) {
            for row in (0..whole).step_by(MR) {
                self.tile::<FMA, MR, NR>(row, lane);
            }
        }
        let pairs = whole + (rows - whole) / 2 * 2;
        for lane in (0..self.columns).step_by(FEW) {
            for row in (whole..pairs).step_by(2) {
                self.tile::<FMA, 2, FEW>(row, lane);
            }
            if pairs < rows {
                self.tile::<FMA, 1, FEW>(pairs, lane);
            }
        }
    }

    #[inline(always)]
    fn tile<const FMA: bool, const M: usize, const N: usize>(&mut self, first: usize, lane: usize) {
        let depth = self.to - self.from;
        let x: [&[T]; M] = std::array::from_fn(|i| &self.x[(first + i) * self.depth + self.from..][..depth]);
        let panel = &self.panel[..depth * T::PANEL];
        assert!(lane + N <= T::PANEL);

        // Ragged columns go through a row of their own, so that the sums stay in registers.
        let columns = N.min(self.columns - lane);
        let mut sums = [[T::zero(); N]; M];
        if self.from > 0 {
            for (i, sums) in sums.iter_mut().enumerate() {
                let mut row = [T::zero(); N];
                row[..columns].copy_from_slice(&self.out[(first + i) * self.stride + lane..][..columns]);
                *sums = row;
            }
        }
        for k in 0..depth {
            // SAFETY: k < depth, the length of every x[i]; k · PANEL + lane + N ≤ depth · PANEL, the length
            // of panel, by the assertion above. Checked indexing here costs a third of the speed.
            let w = unsafe { &*panel.as_ptr().add(k * T::PANEL + lane).cast::<[T; N]>() };
            for i in 0..M {
                // SAFETY: as above.
                let x = unsafe { *x[i].get_unchecked(k) };
                for j in 0..N {
                    sums[i][j] = x.madd::<FMA>(w[j], sums[i][j]);
                }
            }
        }
        for (i, row) in sums.into_iter().enumerate() {
            let out = &mut self.out[(first + i) * self.stride + lane..];
            if columns == N {
                out[..N].copy_from_slice(&row);
            } else {
                out[..columns].copy_from_slice(&row[..columns]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(i: usize) -> f64 {
        ((i * 7919) % 1009) as f64 / 1009.0 - 0.5
    }

    fn against_naive<T: crate::Real>(isa: Isa, rows: usize, depth: usize, columns: usize) {
        let x: Vec<T> = (0..rows * depth).map(|i| T::narrow(value(i))).collect();
        let w: Vec<T> = (0..columns * depth).map(|i| T::narrow(value(3 * i + 1))).collect();
        let packed = Packed::new(columns, depth, |j, k| w[j * depth + k]);
        let stride = columns + 3;
        let mut out = vec![T::nan(); rows * stride];
        product(isa, &x, &packed, &mut out, stride);
        let eps = T::epsilon().widen();
        for i in 0..rows {
            for j in 0..columns {
                let terms = (0..depth).map(|k| x[i * depth + k].widen() * w[j * depth + k].widen());
                let (sum, size) = terms.fold((0.0, 0.0), |(s, a): (f64, f64), t| (s + t, a + t.abs()));
                let error = (out[i * stride + j].widen() - sum).abs();
                assert!(
                    error <= eps * size * (depth as f64).sqrt(),
                    "{isa:?} {rows}x{depth}x{columns} at {i},{j}"
                );
            }
            assert!(out[i * stride + columns..(i + 1) * stride].iter().all(|v| v.is_nan()), "gap written");
        }
        // One row at a time gives the same bits.
        for i in 0..rows {
            let mut one = vec![T::zero(); columns];
            product(isa, &x[i * depth..(i + 1) * depth], &packed, &mut one, columns);
            assert_eq!(one, out[i * stride..][..columns]);
        }
    }

    #[test]
    fn agrees_with_the_naive_loop_on_ragged_shapes() {
        for isa in Isa::available() {
            for (rows, depth, columns) in
                [(1, 1, 1), (3, 2, 5), (7, 17, 33), (13, 64, 31), (25, 255, 64), (29, 257, 65), (5, 600, 100)]
            {
                against_naive::<f32>(isa, rows, depth, columns);
                against_naive::<f64>(isa, rows, depth, columns);
            }
        }
    }

    #[test]
    fn no_rows_is_no_work() {
        let packed = Packed::new(100, 2, |_, _| 1.0f32);
        product(Isa::best(), &[], &packed, &mut [], 100);
    }
}
