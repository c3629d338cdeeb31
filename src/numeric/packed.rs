//! [`Packed`]: a matrix stored in the order in which products read it.

use std::array;

use super::{Buffer, LINE, zip};
use crate::Real;

/// The number of columns of a panel: two cache lines, or two vectors of the widest instruction set.
#[inline(always)]
pub const fn panel_width<T>() -> usize {
    2 * LINE / size_of::<T>()
}

/// The number of elements of a row that are transposed at a time.
const TRANSPOSED: usize = 16;

/// The number of columns that are written to a panel one after the other.
const TOGETHER: usize = 8;

/// Rows that are transposed side by side, in registers.
const BLOCK: usize = 4;

/// to[c · to_step + i] ← from[i · step + c] for c < `count` and i < [`BLOCK`].
#[inline]
fn transpose<T: Real>((from, step): (&[T], usize), (to, to_step): (&mut [T], usize), count: usize) {
    let rows: [&[T]; BLOCK] = array::from_fn(|i| &from[i * step..][..count]);
    let [first, second, third, fourth] = rows.map(|row| row.as_chunks::<BLOCK>().0);
    let lanes = to.chunks_mut(BLOCK * to_step);
    for (lanes, first, second, third, fourth) in zip((lanes, first, second, third, fourth)) {
        for k in 0..BLOCK {
            let column = [first[k], second[k], third[k], fourth[k]];
            lanes[k * to_step..][..BLOCK].copy_from_slice(&column);
        }
    }
    for c in count - count % BLOCK..count {
        (0..BLOCK).for_each(|i| to[c * to_step + i] = rows[i][c]);
    }
}

/// Writes a column of a panel, and zeros in the lanes beyond it.
#[inline]
fn write_lanes<T: Real>(lanes: &mut [T], column: &[T]) {
    if column.len() == lanes.len() {
        // Copies of a known length are vectors, others calls.
        let (to, from) = (lanes.as_chunks_mut::<TRANSPOSED>().0, column.as_chunks().0);
        zip((to, from)).for_each(|(to, from)| *to = *from);
    } else {
        lanes[..column.len()].copy_from_slice(column);
        lanes[column.len()..].fill(T::zero());
    }
}

/// A matrix W of `rows` × `depth`, packed for [`product`](super::product).
#[derive(Clone, Debug, Default)]
pub struct Packed<T> {
    panels: Buffer<T>,
    rows: usize,
    depth: usize,
}

/// Some of the rows of a packed matrix.
#[derive(Clone, Copy, Debug)]
pub struct Panels<'a, T> {
    pub(super) panels: &'a [T],
    pub(super) rows: usize,
    /// The length of the sums.
    pub(super) depth: usize,
    /// The number of elements of a panel.
    pub(super) panel: usize,
}

impl<T> Panels<'_, T> {
    /// The number of columns of the product.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The first rows, at most `rows` of them.
    pub fn first(self, rows: usize) -> Self {
        Panels { rows: rows.min(self.rows), ..self }
    }

    /// The first columns, at most `depth` of them, for sums that end early.
    pub fn shallow(self, depth: usize) -> Self {
        Panels { depth: depth.min(self.depth), ..self }
    }
}

impl<T: Real> Packed<T> {
    /// All rows.
    pub fn all(&self) -> Panels<'_, T> {
        let (rows, depth) = (self.rows, self.depth);
        Panels { panels: &self.panels, rows, depth, panel: depth * panel_width::<T>() }
    }

    /// The rows in runs of at least `least` rows.
    pub fn runs(&self, least: usize) -> impl ExactSizeIterator<Item = Panels<'_, T>> {
        let (depth, step) = (self.depth, least.max(1).next_multiple_of(panel_width::<T>()));
        (0..self.rows).step_by(step).map(move |first| {
            let rows = step.min(self.rows - first);
            let panels = &self.panels[first * depth..][..rows.next_multiple_of(panel_width::<T>()) * depth];
            Panels { panels, rows, depth, panel: depth * panel_width::<T>() }
        })
    }

    /// Packs the matrix whose element (j, k) is `element(j, k)`.
    pub fn new(rows: usize, depth: usize, element: impl Fn(usize, usize) -> T) -> Self {
        let mut packed = Packed::default();
        packed.refill(rows, depth, &|j, first, out| {
            out.iter_mut().zip(first..).for_each(|(out, k)| *out = element(j, k));
        });
        packed
    }

    /// Packs the matrix whose row j begins with the `depth` elements of `row(j)`.
    pub fn of_rows<'a>(rows: usize, depth: usize, row: impl Fn(usize) -> &'a [T]) -> Self {
        let mut packed = Packed::default();
        packed.refill(rows, depth, &|j, first, out| out.copy_from_slice(&row(j)[first..][..out.len()]));
        packed
    }

    /// Packs Wᵀ = `values`, `depth` × `rows` in row-major order, replacing the previous matrix.
    pub fn refill_columns(&mut self, values: &[T], depth: usize, rows: usize) {
        self.panels_mut(rows, depth);
        let (width, panel) = (panel_width::<T>(), depth * panel_width::<T>());
        // Panels lie far apart: a few columns are written to each before the next.
        for (first, columns) in (0..depth).step_by(TOGETHER).zip(values.chunks(TOGETHER * rows.max(1))) {
            for (j, panel) in (0..rows).step_by(width).zip(self.panels.chunks_exact_mut(panel.max(1))) {
                let lanes = panel[first * width..].chunks_exact_mut(width);
                for (lanes, column) in lanes.zip(columns.chunks_exact(rows)) {
                    write_lanes(lanes, &column[j..rows.min(j + width)]);
                }
            }
        }
    }

    /// Writes column k of W.
    pub fn write_column(&mut self, k: usize, column: &[T]) {
        let (width, panel) = (panel_width::<T>(), self.depth * panel_width::<T>());
        for (panel, column) in zip((self.panels.chunks_exact_mut(panel), column.chunks(width))) {
            write_lanes(&mut panel[k * width..][..width], column);
        }
    }

    /// Column k of W.
    pub fn column(&self, k: usize) -> impl Iterator<Item = T> {
        let (width, panel) = (panel_width::<T>(), self.depth * panel_width::<T>());
        let lanes =
            self.panels.chunks_exact(panel.max(1)).flat_map(move |panel| &panel[k * width..][..width]);
        lanes.take(self.rows).copied()
    }

    /// Packs W = `values`, `rows` × `depth` in row-major order, replacing the previous matrix.
    pub fn refill_rows(&mut self, values: &[T], rows: usize, depth: usize) {
        self.refill(rows, depth, &|j, first, out| {
            out.copy_from_slice(&values[j * depth + first..][..out.len()]);
        });
    }

    /// Replaces the matrix: `elements(j, k, out)` writes its elements (j, k), (j, k + 1), … to `out`.
    fn refill(&mut self, rows: usize, depth: usize, elements: &dyn Fn(usize, usize, &mut [T])) {
        self.open(rows, depth);
        self.append(rows, elements);
    }

    /// Begins a matrix without rows, with room for `room` rows of `depth` elements.
    pub fn open(&mut self, room: usize, depth: usize) {
        self.panels_mut(room, depth);
        self.rows = 0;
    }

    /// Appends the rows in `values`, one after the other, to W, which must have [room](Packed::open) for them.
    pub fn push_rows(&mut self, values: &[T]) {
        let (width, depth) = (panel_width::<T>(), self.depth);
        let panels = if self.rows.is_multiple_of(width) { values.len() / (width * depth).max(1) } else { 0 };
        let (whole, rest) = values.split_at(panels * width * depth);
        whole.chunks_exact((width * depth).max(1)).for_each(|rows| self.push_panel(rows));
        self.append(rest.len() / depth.max(1), &|j, first, out| {
            out.copy_from_slice(&rest[j * depth + first..][..out.len()]);
        });
    }

    /// Appends the rows of a whole panel.
    fn push_panel(&mut self, rows: &[T]) {
        let (width, depth) = (panel_width::<T>(), self.depth);
        let panel = &mut self.panels[self.rows * depth..][..width * depth];
        // A few cache lines are written at a time, as in `append`.
        for (strip, first) in panel.chunks_mut(TRANSPOSED * width).zip((0..depth).step_by(TRANSPOSED)) {
            let columns = strip.len() / width;
            for j in (0..width).step_by(BLOCK) {
                transpose((&rows[j * depth + first..], depth), (&mut strip[j..], width), columns);
            }
        }
        self.rows += width;
    }

    /// Appends `count` rows: `elements(j, k, out)` writes the elements k, k + 1, … of the j-th new row to `out`.
    fn append(&mut self, count: usize, elements: &dyn Fn(usize, usize, &mut [T])) {
        let (width, depth) = (panel_width::<T>(), self.depth);
        let panel = depth * width;
        let (begin, end) = (self.rows, self.rows + count);
        while self.rows < end && panel > 0 {
            let (first, lane) = (self.rows - begin, self.rows % width);
            let count = (width - lane).min(end - self.rows);
            let panel = &mut self.panels[self.rows / width * panel..][..panel];
            // A few cache lines are written at a time, which stay in the cache until they are complete.
            for (strip, from) in panel.chunks_mut(TRANSPOSED * width).zip((0..depth).step_by(TRANSPOSED)) {
                let row = &mut [T::zero(); TRANSPOSED][..strip.len() / width];
                for j in 0..count {
                    elements(first + j, from, row);
                    for (lanes, v) in strip.chunks_exact_mut(width).zip(&*row) {
                        lanes[lane + j] = *v;
                    }
                }
                if lane == 0 {
                    strip.chunks_exact_mut(width).for_each(|lanes| lanes[count..].fill(T::zero()));
                }
            }
            self.rows += count;
        }
        self.rows = end;
    }

    /// The panels of a matrix of `rows` × `depth`, `[panel][k][lane]`, to be overwritten. The caller must fill the
    /// lanes after the last row with zeros.
    pub fn panels_mut(&mut self, rows: usize, depth: usize) -> &mut [T] {
        (self.rows, self.depth) = (rows, depth);
        self.panels.take(rows.div_ceil(panel_width::<T>()) * depth * panel_width::<T>())
    }

    /// Row j of W.
    pub fn row(&self, j: usize) -> impl Iterator<Item = T> {
        let (panel, width) = (self.depth * panel_width::<T>(), panel_width::<T>());
        let lanes = &self.panels[j / width * panel..][..panel];
        lanes.iter().skip(j % width).step_by(width).copied()
    }

    /// Replaces row j of W.
    pub fn write_row(&mut self, j: usize, row: impl IntoIterator<Item = T>) {
        let (panel, width) = (self.depth * panel_width::<T>(), panel_width::<T>());
        let lanes = &mut self.panels[j / width * panel..][..panel];
        lanes.iter_mut().skip(j % width).step_by(width).zip(row).for_each(|(lane, v)| *lane = v);
    }

    /// Packs the transpose of the first `rows` rows of `w`, or of all if there are fewer, replacing the previous matrix.
    pub fn refill_transposed(&mut self, w: &Self, rows: usize) {
        let (width, rows, columns) = (panel_width::<T>(), rows.min(w.rows), w.depth);
        for (k, strip) in self.panels_mut(columns, rows).chunks_exact_mut((rows * width).max(1)).enumerate() {
            let (first, count) = (k * width, width.min(columns - k * width));
            let whole = count - count % BLOCK;
            let panels = w.panels.chunks_exact((w.depth * width).max(1));
            for (strip, from) in strip.chunks_mut(width * width).zip(panels) {
                for i in (0..whole).step_by(BLOCK) {
                    let rows = strip.len() / width;
                    transpose((&from[(first + i) * width..], width), (&mut strip[i..], width), rows);
                }
                for (j, lanes) in strip.chunks_exact_mut(width).enumerate() {
                    (whole..count).for_each(|i| lanes[i] = from[(first + i) * width + j]);
                    lanes[count..].fill(T::zero());
                }
            }
        }
    }

    /// All panels, `[panel][k][lane]`.
    pub fn elements(&self) -> &[T] {
        &self.panels
    }

    /// All panels, to be changed.
    pub fn elements_mut(&mut self) -> &mut [T] {
        self.panels_mut(self.rows, self.depth)
    }

    /// The number of rows of W, which is that of columns of the product.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns of W, which is the length of the sums.
    pub fn depth(&self) -> usize {
        self.depth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_and_runs_are_those_of_the_matrix() {
        packings_agree::<f32>();
        packings_agree::<f64>();
    }

    /// Whole panels and then a rest, in one piece, and rows that begin within a panel.
    #[test]
    fn rows_in_pieces_are_those_of_the_matrix() {
        fn check<T: Real>() {
            let width = panel_width::<T>();
            for (depth, pieces) in [
                (37, vec![2 * width + 5]),
                (37, vec![width, width, 3, width]),
                (17, vec![3, 2 * width, width - 3, 2 * width, 1]),
                (3, vec![3 * width, width - 1]),
            ] {
                let rows = pieces.iter().sum();
                let element = |j: usize, k: usize| T::narrow((j * 100 + k) as f64);
                let mut grown = Packed::default();
                grown.open(rows, depth);
                let mut first = 0;
                for count in pieces {
                    let own = (first..first + count).flat_map(|j| (0..depth).map(move |k| element(j, k)));
                    grown.push_rows(&own.collect::<Vec<T>>());
                    first += count;
                }
                assert_eq!(grown.all().panels, Packed::new(rows, depth, element).all().panels);
            }
        }
        check::<f32>();
        check::<f64>();
    }

    fn packings_agree<T: Real>() {
        for (rows, depth) in [(1, 1), (31, 3), (32, 4), (70, 5), (33, 17), (70, 37)] {
            let element = |j: usize, k: usize| T::narrow((j * 100 + k) as f64);
            let whole = Packed::new(rows, depth, element);
            let columns: Vec<T> = (0..depth).flat_map(|k| (0..rows).map(move |j| element(j, k))).collect();
            let mut again = Packed::new(3, 200, |_, _| T::nan());
            again.refill_columns(&columns, depth, rows);
            assert_eq!(whole.all().panels, again.all().panels);
            again.refill_transposed(&whole, rows);
            assert_eq!(Packed::new(depth, rows, |k, j| element(j, k)).all().panels, again.all().panels);
            let by_rows: Vec<T> = (0..rows).flat_map(|j| (0..depth).map(move |k| element(j, k))).collect();
            let mut again = Packed::new(3, 200, |_, _| T::nan());
            again.refill_rows(&by_rows, rows, depth);
            assert_eq!(whole.all().panels, again.all().panels);
            let again = Packed::of_rows(rows, depth, |j| &by_rows[j * depth..]);
            assert_eq!(whole.all().panels, again.all().panels);
            let mut grown = Packed::default();
            grown.open(rows + 40, depth);
            by_rows.chunks(7 * depth).for_each(|rows| grown.push_rows(rows));
            assert_eq!(whole.all().panels, &grown.all().panels[..whole.all().panels.len()]);
            assert_eq!(grown.rows(), rows);
            assert!((0..depth).all(|k| grown.column(k).eq((0..rows).map(|j| element(j, k)))));
            let runs: Vec<Panels<'_, T>> = whole.runs(10).collect();
            assert_eq!(runs.iter().map(Panels::rows).sum::<usize>(), rows);
            assert!(runs.iter().flat_map(|run| run.panels).eq(whole.all().panels));
            let mut written = Packed::new(rows, depth, |_, _| T::zero());
            for j in 0..rows {
                written.write_row(j, whole.row(j));
                assert!(written.row(j).eq((0..depth).map(|k| element(j, k))));
            }
            assert_eq!(whole.all().panels, written.all().panels);
        }
    }
}
