//! [`PointsView`]: the points that features are computed from, dense or sparse.

use std::ops::Range;

use ndarray::{Array2, ArrayView2, CowArray, Ix2, s};

use super::Scratch;
use crate::Real;
use crate::numeric::{into_slice_of, matrix_view};

/// Points in rows: what the engine reads of [`Points`](crate::Points).
#[derive(Clone, Copy, Debug)]
pub(crate) enum PointsView<'a, T> {
    Dense(ArrayView2<'a, T>),
    #[cfg_attr(not(feature = "sparse"), allow(dead_code, reason = "made of the types of a feature"))]
    Sparse(SparsePoints<'a, T>),
}

/// Points in compressed rows: `columns[starts[i]..starts[i + 1]]` are the columns of the nonzero coordinates of row i, ascending,
/// and `values` these coordinates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SparsePoints<'a, T> {
    pub starts: &'a [usize],
    pub columns: &'a [usize],
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
    pub fn row(&self, i: usize) -> (&'a [usize], &'a [T]) {
        let row = self.starts[i]..self.starts[i + 1];
        (&self.columns[row.clone()], &self.values[row])
    }
}

impl<T: Real> SparsePoints<'_, T> {
    /// Writes row i with its zeros.
    pub fn write_row(&self, i: usize, out: &mut [T]) {
        out.fill(T::zero());
        let (columns, values) = self.row(i);
        columns.iter().zip(values).for_each(|(k, v)| out[*k] = *v);
    }
}

impl<'a, T: Real> PointsView<'a, T> {
    pub fn nrows(&self) -> usize {
        match self {
            PointsView::Dense(x) => x.nrows(),
            PointsView::Sparse(x) => x.starts.len() - 1,
        }
    }

    /// d.
    pub fn ncols(&self) -> usize {
        match self {
            PointsView::Dense(x) => x.ncols(),
            PointsView::Sparse(x) => x.dim,
        }
    }

    /// The coordinates of a point that are multiplied, on average.
    pub fn depth(&self) -> usize {
        match self {
            PointsView::Dense(x) => x.ncols(),
            PointsView::Sparse(x) => x.values.len().div_ceil(self.nrows().max(1)),
        }
    }

    /// Some of the rows.
    pub fn rows(&self, rows: Range<usize>) -> PointsView<'_, T> {
        match self {
            PointsView::Dense(x) => PointsView::Dense(x.slice(s![rows, ..])),
            PointsView::Sparse(x) => {
                PointsView::Sparse(SparsePoints { starts: &x.starts[rows.start..=rows.end], ..*x })
            }
        }
    }

    /// Run i of those of `len` rows.
    pub fn run(&self, i: usize, len: usize) -> PointsView<'_, T> {
        self.rows(i * len..self.nrows().min((i + 1) * len))
    }

    /// The first row that holds NaN or an infinity.
    pub fn first_not_finite(&self) -> Option<usize> {
        let finite = |i: usize| match self {
            PointsView::Dense(x) => x.row(i).iter().all(|v| v.is_finite()),
            PointsView::Sparse(x) => x.row(i).1.iter().all(|v| v.is_finite()),
        };
        (0..self.nrows()).find(|i| !finite(*i))
    }

    /// All coordinates, borrowed where they are dense.
    pub fn to_dense(self) -> CowArray<'a, T, Ix2> {
        let sparse = match self {
            PointsView::Dense(x) => return x.into(),
            PointsView::Sparse(sparse) => sparse,
        };
        let mut all = Array2::zeros((self.nrows(), sparse.dim));
        for (i, row) in all.rows_mut().into_iter().enumerate() {
            sparse.write_row(i, into_slice_of(row));
        }
        all.into()
    }

    /// Lets `run` read all coordinates.
    pub fn densely(self, scratch: &mut Scratch<T>, run: impl FnOnce(ArrayView2<'_, T>, &mut Scratch<T>)) {
        let sparse = match self {
            PointsView::Dense(x) => return run(x, scratch),
            PointsView::Sparse(sparse) => sparse,
        };
        let mut all = scratch.take(self.nrows() * sparse.dim);
        all.chunks_exact_mut(sparse.dim.max(1)).enumerate().for_each(|(i, row)| sparse.write_row(i, row));
        run(matrix_view(self.nrows(), sparse.dim, &all), scratch);
        scratch.give(all);
    }
}
