//! [`Table`]: rows of numbers, to which more may be added.

use std::ops::Range;

use ndarray::{Array2, ArrayView1, ArrayView2, ArrayViewMut2, s};

use crate::Real;
use crate::numeric::{aligned_zeros, slice_of, slice_of_mut};

/// Rows of numbers, with room for more rows.
#[derive(Clone, Debug)]
pub struct Table<A> {
    rows: Array2<A>,
    len: usize,
}

impl<A: Real> Table<A> {
    /// A table without rows, of rows of this width.
    pub fn new(width: usize) -> Self {
        Table { rows: aligned_zeros(0, width), len: 0 }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn width(&self) -> usize {
        self.rows.ncols()
    }

    pub fn bytes(&self) -> usize {
        self.rows.len() * size_of::<A>()
    }

    /// Sets the number of rows, which is not less than before; new rows are to be written. If there is no room, the table becomes
    /// twice as large, or as large as it must be.
    pub fn grow(&mut self, len: usize) {
        let room = self.rows.nrows();
        if len > room {
            let mut rows = aligned_zeros(len.max(2 * room), self.width());
            rows.slice_mut(s![..self.len, ..]).assign(&self.view());
            self.rows = rows;
        }
        self.len = len;
    }

    pub fn view(&self) -> ArrayView2<'_, A> {
        self.rows.slice(s![..self.len, ..])
    }

    /// The rows from `first` on.
    pub fn tail_mut(&mut self, first: usize) -> ArrayViewMut2<'_, A> {
        self.rows.slice_mut(s![first..self.len, ..])
    }

    /// Some rows, one after the other.
    pub fn run(&self, run: Range<usize>) -> &[A] {
        &slice_of(&self.rows)[run.start * self.width()..run.end * self.width()]
    }

    pub fn row_mut(&mut self, i: usize) -> &mut [A] {
        let width = self.width();
        &mut slice_of_mut(&mut self.rows)[i * width..][..width]
    }

    pub fn write_row(&mut self, i: usize, row: ArrayView1<'_, A>) {
        self.row_mut(i).iter_mut().zip(row).for_each(|(to, v)| *to = *v);
    }
}

impl<A: Real> From<Array2<A>> for Table<A> {
    /// A table of these rows, in standard layout.
    fn from(rows: Array2<A>) -> Self {
        Table { len: rows.nrows(), rows }
    }
}
