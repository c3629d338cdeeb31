//! [`Points`]: the points that features are computed from, dense or sparse.

use std::ops::Range;

use ndarray::{ArrayView2, s};

use super::Scratch;
use crate::Real;

/// Points in rows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Points<'a, T> {
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

impl<'a, T> From<ArrayView2<'a, T>> for Points<'a, T> {
    fn from(x: ArrayView2<'a, T>) -> Self {
        Points::Dense(x)
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

impl<T: Real> Points<'_, T> {
    pub fn nrows(&self) -> usize {
        match self {
            Points::Dense(x) => x.nrows(),
            Points::Sparse(x) => x.starts.len() - 1,
        }
    }

    /// d.
    pub fn ncols(&self) -> usize {
        match self {
            Points::Dense(x) => x.ncols(),
            Points::Sparse(x) => x.dim,
        }
    }

    /// The coordinates of a point that are multiplied, on average.
    pub fn depth(&self) -> usize {
        match self {
            Points::Dense(x) => x.ncols(),
            Points::Sparse(x) => x.values.len().div_ceil(self.nrows().max(1)),
        }
    }

    /// Some of the rows.
    pub fn rows(&self, rows: Range<usize>) -> Points<'_, T> {
        match self {
            Points::Dense(x) => Points::Dense(x.slice(s![rows, ..])),
            Points::Sparse(x) => {
                Points::Sparse(SparsePoints { starts: &x.starts[rows.start..=rows.end], ..*x })
            }
        }
    }

    /// Run i of those of `len` rows.
    pub fn run(&self, i: usize, len: usize) -> Points<'_, T> {
        self.rows(i * len..self.nrows().min((i + 1) * len))
    }

    /// The first row that holds NaN or an infinity.
    pub fn first_not_finite(&self) -> Option<usize> {
        let finite = |i: usize| match self {
            Points::Dense(x) => x.row(i).iter().all(|v| v.is_finite()),
            Points::Sparse(x) => x.row(i).1.iter().all(|v| v.is_finite()),
        };
        (0..self.nrows()).find(|i| !finite(*i))
    }

    /// Lets `run` read all coordinates.
    pub fn densely(self, scratch: &mut Scratch<T>, run: impl FnOnce(ArrayView2<'_, T>, &mut Scratch<T>)) {
        let sparse = match self {
            Points::Dense(x) => return run(x, scratch),
            Points::Sparse(sparse) => sparse,
        };
        let mut all = scratch.take(self.nrows() * sparse.dim);
        all.chunks_exact_mut(sparse.dim.max(1)).enumerate().for_each(|(i, row)| sparse.write_row(i, row));
        if let Ok(all) = ArrayView2::from_shape((self.nrows(), sparse.dim), &all) {
            run(all, scratch);
        }
        scratch.give(all);
    }
}
