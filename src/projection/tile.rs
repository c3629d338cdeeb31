//! [`Tile`]: where features are written, and [`Scratch`]: room to work in.

use ndarray::{Array2, ArrayView2};

use crate::Real;
use crate::numeric::{Buffer, Fence, LINE, Stream};

/// A tile of features under construction: a few rows of values and their logarithmic scales.
///
/// Feature f of row i, in block b, is exp(scale\[b\]) · values\[f\]. A tile may be a range of the columns of
/// a wider one ([`part`](Tile::part)), so that a composed map can let its parts write in place. A tile for exponents
/// may have a sign for each of them ([`signs`](Tile::signs)).
#[derive(Debug)]
pub struct Tile<'a, T> {
    values: &'a mut [T],
    log_scales: &'a mut [f64],
    /// As many as values, or none.
    signs: &'a mut [T],
    /// Where complete rows go, if the values are but a buffer.
    stream: Option<Stream<'a, T>>,
    rows: usize,
    columns: Columns,
    blocks: Columns,
}

/// A range of the columns of a row-major matrix.
#[derive(Clone, Copy, Debug)]
struct Columns {
    first: usize,
    count: usize,
    stride: usize,
}

impl Columns {
    fn of_row(self, i: usize) -> std::ops::Range<usize> {
        let start = i * self.stride + self.first;
        start..start + self.count
    }

    fn part(self, range: std::ops::Range<usize>) -> Self {
        assert!(range.end <= self.count, "a part of a tile lies inside it");
        Columns { first: self.first + range.start, count: range.len(), ..self }
    }
}

impl<'a, T: Real> Tile<'a, T> {
    /// A tile of `rows` rows over row-major buffers of `rows` × `width` values and `rows` × `blocks` scales;
    /// `None` if the buffers have other lengths.
    pub fn new(
        values: &'a mut [T],
        log_scales: &'a mut [f64],
        rows: usize,
        width: usize,
        blocks: usize,
    ) -> Option<Self> {
        let fits = rows.checked_mul(width) == Some(values.len())
            && rows.checked_mul(blocks) == Some(log_scales.len());
        let all = |count| Columns { first: 0, count, stride: count };
        let (signs, stream) = (&mut [], None);
        fits.then_some(Tile {
            values,
            log_scales,
            signs,
            stream,
            rows,
            columns: all(width),
            blocks: all(blocks),
        })
    }

    /// The tile, with rows that are written on to a slice of the same length when they are complete.
    pub(crate) fn streamed_to(self, to: &'a mut [T], fence: &'a Fence) -> Self {
        Tile { stream: Some(Stream::new(to, fence)), ..self }
    }

    /// Says that the first `rows` rows will not change any more. It is never needed; the large result of a map that
    /// [writes once](crate::FeatureMap::writes_once) may be written sooner, while the rows are in the first cache.
    ///
    /// # Panics
    /// If there are not so many rows, in a tile that is written on.
    pub fn complete(&mut self, rows: usize) {
        if let Some(stream) = &mut self.stream {
            stream.advance(&self.values[..rows * self.columns.stride]);
        }
    }

    /// The tile with `signs`, one for each value; without them if they have another length.
    pub fn with_signs(self, signs: &'a mut [T]) -> Self {
        let fits = signs.len() == self.values.len();
        Tile { signs: if fits { signs } else { &mut [] }, ..self }
    }

    /// The tile that is all of two arrays with as many rows, both in standard layout.
    pub(crate) fn of_arrays(values: &'a mut Array2<T>, log_scales: &'a mut Array2<f64>) -> Self {
        let (rows, width, blocks) = (values.nrows(), values.ncols(), log_scales.ncols());
        let all = |count| Columns { first: 0, count, stride: count };
        Tile {
            values: values.as_slice_mut().unwrap_or_default(),
            log_scales: log_scales.as_slice_mut().unwrap_or_default(),
            signs: &mut [],
            stream: None,
            rows,
            columns: all(width),
            blocks: all(blocks),
        }
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of feature values in a row.
    pub fn width(&self) -> usize {
        self.columns.count
    }

    /// Row `i`: its values and its scales, one for each block.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&mut self, i: usize) -> (&mut [T], &mut [f64]) {
        (&mut self.values[self.columns.of_row(i)], &mut self.log_scales[self.blocks.of_row(i)])
    }

    /// The signs of row `i`, ±1 for each value; none if the tile has none, which means that all are 1.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn signs(&mut self, i: usize) -> &mut [T] {
        if self.signs.is_empty() { &mut [] } else { &mut self.signs[self.columns.of_row(i)] }
    }

    /// The values and the signs of row `i`.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row_with_signs(&mut self, i: usize) -> (&mut [T], &mut [T]) {
        let columns = self.columns.of_row(i);
        let signs = if self.signs.is_empty() { 0..0 } else { columns.clone() };
        (&mut self.values[columns], &mut self.signs[signs])
    }

    /// The tile of a range of the columns and a range of the blocks.
    ///
    /// # Panics
    /// If a range does not lie inside the tile.
    pub fn part(&mut self, columns: std::ops::Range<usize>, blocks: std::ops::Range<usize>) -> Tile<'_, T> {
        Tile {
            columns: self.columns.part(columns),
            blocks: self.blocks.part(blocks),
            values: self.values,
            log_scales: self.log_scales,
            signs: self.signs,
            stream: None,
            rows: self.rows,
        }
    }

    /// The values from the first row's first one on, and the distance between rows.
    pub(super) fn strided(&mut self) -> (&mut [T], usize) {
        let start = self.columns.first.min(self.values.len());
        (&mut self.values[start..], self.columns.stride)
    }
}

/// Buffers that a map may use while it fills a tile. Starts empty; grows when first needed and is kept
/// between tiles.
#[derive(Debug, Default)]
pub struct Scratch<T> {
    rows: Vec<T>,
    work: Buffer<T>,
    pool: Vec<Vec<T>>,
    /// Sets of coordinates of a point.
    pub(crate) masks: Vec<u64>,
}

impl<T: Real> Scratch<T> {
    /// The points in row-major order: as they lie if they lie so, else copied.
    pub fn contiguous<'a>(&'a mut self, x: &ArrayView2<'a, T>) -> &'a [T] {
        match x.to_slice() {
            Some(slice) => slice,
            None => {
                self.rows.clear();
                self.rows.extend(x.iter().copied());
                &self.rows
            }
        }
    }

    /// A buffer of `len` elements, which hold anything, to be given back after use.
    pub(crate) fn take(&mut self, len: usize) -> Vec<T> {
        let mut buffer = self.pool.pop().unwrap_or_default();
        buffer.resize(len, T::zero());
        buffer
    }

    /// Takes back a buffer of [`take`](Scratch::take).
    pub(crate) fn give(&mut self, buffer: Vec<T>) {
        self.pool.push(buffer);
    }

    /// The points row by row, the distance between rows, and a buffer for other use. Rows are as they lie, or copied
    /// where they lie otherwise or so that all begin in the same few sets of the first cache.
    pub(super) fn rows_and_work<'a>(
        &'a mut self,
        x: &ArrayView2<'a, T>,
    ) -> (&'a [T], usize, &'a mut Buffer<T>) {
        let Scratch { rows, work, .. } = self;
        let d = x.ncols();
        let aliased = (d * size_of::<T>()).is_multiple_of(ALIASING) && x.nrows() > 1;
        let stride = if aliased { d + LINE / size_of::<T>() } else { d };
        match x.to_slice() {
            Some(slice) if !aliased => (slice, stride, work),
            _ => {
                rows.resize(x.nrows() * stride, T::zero());
                for (to, from) in rows.chunks_exact_mut(stride).zip(x.rows()) {
                    to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
                }
                (rows, stride, work)
            }
        }
    }
}

/// Rows that are a multiple of this many bytes apart share too few sets of the first cache.
const ALIASING: usize = 2048;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_columns_of_the_whole() {
        let (mut values, mut scales) = ([0.0f32; 12], [0.0; 4]);
        assert!(Tile::new(&mut values, &mut scales, 2, 5, 2).is_none());
        let mut tile = Tile::new(&mut values, &mut scales, 2, 6, 2).unwrap();
        let mut part = tile.part(2..5, 1..2);
        let mut inner = part.part(1..3, 0..1);
        let (v, s) = inner.row(1);
        v.fill(7.0);
        s[0] = 3.0;
        assert_eq!(values, [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 7.0, 7.0, 0.0]);
        assert_eq!(scales, [0.0, 0.0, 0.0, 3.0]);
    }
}
