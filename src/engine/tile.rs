//! [`Tile`]: the buffer that features are written to.

use std::ops::Range;

use crate::Real;
use crate::numeric::{Fence, ScaledRows, Stream, Submatrix};

/// The bytes of a group of rows, which stays in the first cache while several passes go over it.
const GROUP: usize = 16 << 10;
/// The most rows of a group.
pub(super) const GROUP_ROWS: usize = 16;

/// The sizes of a tile.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TileShape {
    pub rows: usize,
    /// D, the number of values in a row.
    pub width: usize,
    /// The number of scales in a row.
    pub blocks: usize,
}

/// A tile of features under construction: a few rows of values and their logarithmic scales.
///
/// Feature f of row i, in block b, is exp(scale\[b\]) · value\[f\].
#[derive(Debug)]
pub struct Tile<'a, T> {
    values: &'a mut [T],
    log_scales: &'a mut [f64],
    /// A sign for each value, or none.
    signs: &'a mut [T],
    /// The destination of complete rows, if the values are a temporary buffer.
    stream: Option<Stream<'a, T>>,
    rows: usize,
    columns: ColumnRange,
    blocks: ColumnRange,
}

/// A row of a tile.
#[derive(Debug)]
pub struct Row<'a, T> {
    /// A value for each feature.
    pub values: &'a mut [T],
    /// ±1 for each feature in a tile of logarithms; else none.
    pub signs: &'a mut [T],
    /// A logarithmic scale for each block.
    pub log_scales: &'a mut [f64],
}

/// A range of the columns of a row-major matrix.
#[derive(Clone, Copy, Debug)]
struct ColumnRange {
    first: usize,
    count: usize,
    stride: usize,
}

impl ColumnRange {
    fn all(count: usize) -> Self {
        ColumnRange { first: 0, count, stride: count }
    }

    fn of_row(self, i: usize) -> Range<usize> {
        let start = i * self.stride + self.first;
        start..start + self.count
    }

    fn submatrix<'m, T>(self, matrix: &'m mut [T], rows: &Range<usize>) -> Submatrix<&'m mut [T]> {
        let first = if rows.is_empty() { 0 } else { self.of_row(rows.start).start };
        Submatrix { values: &mut matrix[first..], rows: rows.len(), stride: self.stride, width: self.count }
    }

    fn part(self, range: Range<usize>) -> Self {
        debug_assert!(range.start <= range.end && range.end <= self.count, "a part lies inside its tile");
        ColumnRange { first: self.first + range.start, count: range.len(), ..self }
    }
}

impl<'a, T: Real> Tile<'a, T> {
    /// A tile over row-major buffers: values, rows × width, scales, rows × blocks, and a sign for each value or none.
    pub(crate) fn new(
        values: &'a mut [T],
        signs: &'a mut [T],
        log_scales: &'a mut [f64],
        TileShape { rows, width, blocks }: TileShape,
    ) -> Self {
        debug_assert!(values.len() == rows * width && log_scales.len() == rows * blocks);
        debug_assert!(signs.is_empty() || signs.len() == values.len());
        let (columns, blocks) = (ColumnRange::all(width), ColumnRange::all(blocks));
        Tile { values, log_scales, signs, stream: None, rows, columns, blocks }
    }

    /// The tile, with rows that are copied to a slice of the same length when they are complete.
    pub(crate) fn streamed_to(self, to: &'a mut [T], fence: &'a Fence) -> Self {
        Tile { stream: Some(Stream::new(to, fence)), ..self }
    }

    /// Declares the first `rows` rows complete, so that they are copied to the result while they are in the first cache. Only the
    /// engine's own maps call it, whose rows no other map changes afterwards.
    #[inline]
    pub(crate) fn complete(&mut self, rows: usize) {
        if let Some(stream) = &mut self.stream {
            stream.advance(&self.values[..rows * self.columns.stride]);
        }
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of signs in a row: D in a tile of logarithms, else 0.
    pub(crate) fn sign_count(&self) -> usize {
        if self.signs.is_empty() { 0 } else { self.columns.count }
    }

    /// The number of scales in a row.
    pub fn blocks(&self) -> usize {
        self.blocks.count
    }

    /// D, the number of values in a row.
    pub fn width(&self) -> usize {
        self.columns.count
    }

    /// Row `i`.
    ///
    /// # Panics
    /// If there is no such row.
    #[inline]
    pub fn row(&mut self, i: usize) -> Row<'_, T> {
        let columns = self.columns.of_row(i);
        Row {
            signs: if self.signs.is_empty() { &mut [] } else { &mut self.signs[columns.clone()] },
            values: &mut self.values[columns],
            log_scales: &mut self.log_scales[self.blocks.of_row(i)],
        }
    }

    /// The scale of the first block of row `i`.
    #[inline]
    pub(crate) fn scale(&mut self, i: usize) -> &mut f64 {
        &mut self.log_scales[i * self.blocks.stride + self.blocks.first]
    }

    /// The groups of rows that stay in the first cache while several passes go over them: at most [`GROUP_ROWS`] rows, and at
    /// most [`GROUP`] bytes if that is possible.
    #[inline]
    pub(crate) fn groups(&self) -> impl Iterator<Item = Range<usize>> + use<T> {
        let (rows, bytes, mut first) = (self.rows, self.columns.count * size_of::<T>(), 0);
        // For a single row the time of a division would be noticeable.
        let step = if rows == 1 { 1 } else { (GROUP / bytes.max(1)).clamp(1, GROUP_ROWS) };
        std::iter::from_fn(move || {
            let group = first..rows.min(first + step);
            first = group.end;
            (!group.is_empty()).then_some(group)
        })
    }

    /// The values and scales of a range of rows.
    pub(crate) fn rows_in(&mut self, rows: Range<usize>) -> ScaledRows<&mut [T], &mut [f64]> {
        let values = self.columns.submatrix(self.values, &rows);
        ScaledRows { values, log_scales: self.blocks.submatrix(self.log_scales, &rows) }
    }

    /// The tile of a range of the columns and a range of the blocks.
    pub(crate) fn part(&mut self, columns: Range<usize>, blocks: Range<usize>) -> Tile<'_, T> {
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
    pub(crate) fn strided(&mut self) -> (&mut [T], usize) {
        let start = self.columns.first.min(self.values.len());
        (&mut self.values[start..], self.columns.stride)
    }

    /// Makes the values and scales of row `i` NaN: the features of a point that is not finite.
    ///
    /// # Panics
    /// If there is no row `i`.
    pub fn poison(&mut self, i: usize) {
        let row = self.row(i);
        row.values.fill(T::nan());
        row.log_scales.fill(f64::NAN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_all_rows_once() {
        for (rows, width) in [(0, 3), (1, 3), (16, 3), (35, 3), (35, 900), (5, 100_000)] {
            let (mut values, mut scales) = (vec![0.0f32; rows * width], vec![0.0; rows]);
            let shape = TileShape { rows, width, blocks: 1 };
            let groups: Vec<_> = Tile::new(&mut values, &mut [], &mut scales, shape).groups().collect();
            assert!(groups.iter().all(|group| (1..=GROUP_ROWS).contains(&group.len())));
            assert!(groups.iter().all(|group| group.len() == 1 || group.len() * width * 4 <= GROUP));
            assert!(groups.into_iter().flatten().eq(0..rows));
        }
    }

    #[test]
    fn parts_are_columns_of_the_whole() {
        let (mut values, mut scales) = ([0.0f32; 12], [0.0; 4]);
        let shape = TileShape { rows: 2, width: 6, blocks: 2 };
        let mut tile = Tile::new(&mut values, &mut [], &mut scales, shape);
        let mut part = tile.part(2..5, 1..2);
        let mut inner = part.part(1..3, 0..1);
        let row = inner.row(1);
        row.values.fill(7.0);
        row.log_scales[0] = 3.0;
        assert!(row.signs.is_empty());
        assert_eq!(values, [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 7.0, 7.0, 0.0]);
        assert_eq!(scales, [0.0, 0.0, 0.0, 3.0]);
    }
}
