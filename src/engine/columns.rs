//! [`ColumnPoints`]: points with a slice for each coordinate.

use std::ops::Range;

use ndarray::Array2;

use crate::Real;

/// The number of rows that are written at a time: enough to read some cache lines of each column, few enough to stay in the
/// caches.
const ROWS: usize = 64;

/// Points in columns: coordinate k of row i is `columns[k][start + i]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ColumnPoints<'a, T> {
    columns: &'a [&'a [T]],
    start: usize,
    end: usize,
}

#[cfg_attr(not(feature = "arrow"), allow(dead_code, reason = "made of the types of a feature"))]
impl<'a, T: Real> ColumnPoints<'a, T> {
    /// Points of these columns, which have equal lengths.
    pub fn new(columns: &'a [&'a [T]]) -> Self {
        ColumnPoints { columns, start: 0, end: columns.first().map_or(0, |column| column.len()) }
    }

    pub fn nrows(&self) -> usize {
        self.end - self.start
    }

    /// d, the number of columns.
    pub fn ncols(&self) -> usize {
        self.columns.len()
    }

    /// The points of a range of rows.
    pub fn rows(&self, rows: Range<usize>) -> Self {
        ColumnPoints { columns: self.columns, start: self.start + rows.start, end: self.start + rows.end }
    }

    /// The columns, one after the other.
    pub fn columns(&self) -> impl Iterator<Item = &'a [T]> + use<'a, T> {
        let rows = self.start..self.end;
        self.columns.iter().map(move |column| &column[rows.clone()])
    }

    /// The row and the column of the first NaN or infinity.
    pub fn first_not_finite(&self) -> Option<(usize, usize)> {
        let first = |(k, column): (usize, &[T])| Some((column.iter().position(|v| !v.is_finite())?, k));
        self.columns().enumerate().filter_map(first).min()
    }

    /// Copies of some rows.
    pub fn select(&self, rows: &[usize]) -> Array2<T> {
        let mut all = Array2::zeros((rows.len(), self.ncols()));
        for (mut out, column) in all.columns_mut().into_iter().zip(self.columns()) {
            out.iter_mut().zip(rows).for_each(|(out, i)| *out = column[*i]);
        }
        all
    }

    /// Writes all coordinates, row by row.
    pub fn write(&self, out: &mut [T]) {
        let d = self.ncols().max(1);
        for (i, block) in out.chunks_mut(ROWS * d).enumerate() {
            for (k, column) in self.columns().enumerate() {
                block.chunks_exact_mut(d).zip(&column[i * ROWS..]).for_each(|(row, v)| row[k] = *v);
            }
        }
    }
}
