//! [`PointsView`]: points whose features are computed: dense, sparse or in columns.

use std::ops::Range;

use ndarray::{Array2, ArrayView2, Axis, CowArray, Ix2, s};

use super::Scratch;
use super::columns::ColumnPoints;
use crate::error::Result;
use crate::memory::check_memory;
use crate::numeric::{Columns, into_slice_of, matrix_view, spread, without_repeats};
use crate::{Real, threads};

/// The count of numbers that are one piece of work.
const NUMBERS: usize = 1 << 18;

/// The bytes of copies of points up to which memory is not checked.
const COPIED: usize = 64 << 20;

/// Points in rows, as the engine reads them from [`Points`](crate::Points).
#[derive(Clone, Copy, Debug)]
pub(crate) enum PointsView<'a, T> {
    Dense(ArrayView2<'a, T>),
    #[cfg_attr(not(feature = "sparse"), allow(dead_code, reason = "made of the types of a feature"))]
    Sparse(SparsePoints<'a, T>),
    #[cfg_attr(not(feature = "arrow"), allow(dead_code, reason = "made of the types of a feature"))]
    Columns(ColumnPoints<'a, T>),
}

/// Points in compressed rows: `columns[starts[i]..starts[i + 1]]` are the columns of the nonzero coordinates of row i, ascending,
/// and `values` these coordinates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SparsePoints<'a, T> {
    pub starts: &'a [usize],
    pub columns: Columns<'a>,
    pub values: &'a [T],
    pub dim: usize,
}

impl<'a, T> From<ArrayView2<'a, T>> for PointsView<'a, T> {
    fn from(x: ArrayView2<'a, T>) -> Self {
        PointsView::Dense(x)
    }
}

impl<'a, T> SparsePoints<'a, T> {
    /// The columns of a row, and the values there.
    pub fn row(&self, i: usize) -> (Columns<'a>, &'a [T]) {
        let row = self.starts[i]..self.starts[i + 1];
        (self.columns.range(row.clone()), &self.values[row])
    }
}

impl<T: Real> SparsePoints<'_, T> {
    /// Writes all rows, one after the other.
    fn write(&self, out: &mut [T]) {
        out.chunks_exact_mut(self.dim.max(1)).enumerate().for_each(|(i, row)| self.write_row(i, row));
    }

    /// Writes row i with its zeros.
    pub fn write_row(&self, i: usize, out: &mut [T]) {
        out.fill(T::zero());
        let (columns, values) = self.row(i);
        columns.iter().zip(values).for_each(|(k, v)| out[k] = *v);
    }
}

impl<'a, T: Real> PointsView<'a, T> {
    pub fn nrows(&self) -> usize {
        match self {
            PointsView::Dense(x) => x.nrows(),
            PointsView::Sparse(x) => x.starts.len() - 1,
            PointsView::Columns(x) => x.nrows(),
        }
    }

    /// d, the number of columns.
    pub fn ncols(&self) -> usize {
        match self {
            PointsView::Dense(x) => x.ncols(),
            PointsView::Sparse(x) => x.dim,
            PointsView::Columns(x) => x.ncols(),
        }
    }

    /// The number of coordinates of a point that are multiplied, on average.
    pub fn depth(&self) -> usize {
        match self {
            PointsView::Sparse(x) => x.values.len().div_ceil(self.nrows().max(1)),
            _ => self.ncols(),
        }
    }

    /// The points of a range of rows.
    pub fn rows(&self, rows: Range<usize>) -> PointsView<'_, T> {
        match self {
            PointsView::Dense(x) => PointsView::Dense(x.slice(s![rows, ..])),
            PointsView::Sparse(x) => {
                PointsView::Sparse(SparsePoints { starts: &x.starts[rows.start..=rows.end], ..*x })
            }
            PointsView::Columns(x) => PointsView::Columns(x.rows(rows)),
        }
    }

    /// The i-th run of `len` rows.
    pub fn run(&self, i: usize, len: usize) -> PointsView<'_, T> {
        self.rows(i * len..self.nrows().min((i + 1) * len))
    }

    /// The row and the column of the first NaN or infinity.
    pub fn first_not_finite(&self) -> Option<(usize, usize)> {
        let finite = |v: &T| v.is_finite();
        match self {
            PointsView::Dense(x) => {
                let x = without_repeats(*x);
                let rows = (NUMBERS / x.ncols().max(1)).max(1);
                // Reads all of them first, which the compiler vectorises.
                let are_all = |run: ArrayView2<'_, T>| run.fold(true, |all, v| all & finite(v));
                // A single run allocates nothing.
                let all = match x.nrows() <= rows {
                    true => are_all(x),
                    false => !threads::map(x.axis_chunks_iter(Axis(0), rows), are_all).contains(&false),
                };
                if all { None } else { x.indexed_iter().find(|(_, v)| !finite(v)).map(|(place, _)| place) }
            }
            PointsView::Sparse(x) => (0..self.nrows()).find_map(|i| {
                let (columns, values) = x.row(i);
                columns.iter().zip(values).find(|(_, v)| !finite(v)).map(|(k, _)| (i, k))
            }),
            PointsView::Columns(x) => x.first_not_finite(),
        }
    }

    /// All coordinates, borrowed where they are dense.
    ///
    /// # Errors
    /// [`Memory`](crate::Error::Memory) if there is no memory to write them out.
    pub fn to_dense(self) -> Result<CowArray<'a, T, Ix2>> {
        if let PointsView::Dense(x) = self {
            return Ok(x.into());
        }
        check_memory(
            "points with all coordinates",
            self.nrows(),
            self.ncols().saturating_mul(size_of::<T>()),
        )?;
        let mut all = Array2::zeros((self.nrows(), self.ncols()));
        self.write(into_slice_of(all.view_mut()));
        Ok(all.into())
    }

    /// Rejects these points if they are copied before they are multiplied and copies of `rows` rows on each thread do not fit in
    /// memory. Points are copied unless they are dense, and if the distance between rows maps them to a few sets of the first
    /// cache.
    pub fn check_copies(&self, rows: usize) -> Result<()> {
        let (n, d) = (self.nrows(), self.ncols());
        match self {
            PointsView::Dense(x) if x.is_standard_layout() && (rows == 1 || spread::<T>(d) == d) => Ok(()),
            _ => {
                let copied = n.min(rows.saturating_mul(threads::count()));
                let each = d.saturating_mul(size_of::<T>());
                // The check allocates memory, which small work should not do.
                let few = copied.saturating_mul(each) <= COPIED;
                if few { Ok(()) } else { check_memory("points with all coordinates", copied, each) }
            }
        }
    }

    /// Lets `run` read all coordinates.
    pub fn densely(self, scratch: &mut Scratch<T>, run: impl FnOnce(ArrayView2<'_, T>, &mut Scratch<T>)) {
        if let PointsView::Dense(x) = self {
            return run(x, scratch);
        }
        let (n, d) = (self.nrows(), self.ncols());
        let mut all = scratch.take(n * d);
        self.write(&mut all);
        run(matrix_view(n, d, &all), scratch);
        scratch.give(all);
    }

    /// Writes all coordinates, row by row.
    fn write(self, out: &mut [T]) {
        match self {
            PointsView::Dense(x) => out.iter_mut().zip(&x).for_each(|(out, v)| *out = *v),
            PointsView::Sparse(x) => x.write(out),
            PointsView::Columns(x) => x.write(out),
        }
    }
}
