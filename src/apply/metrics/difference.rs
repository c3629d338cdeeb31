//! [`ScaledMatrix`]: K̂ − K, or K, read row by row and scaled by powers of two so that squares neither overflow nor
//! underflow.

use std::ops::Range;

use ndarray::{ArrayView2, CowArray, Ix2, s};

use crate::Real;
use crate::numeric::{Isa, add_scaled, dot, power_of_two_below};

/// A matrix with an entry that is not 0; all are over powers of two, by which the largest is near 1.
pub(super) struct ScaledMatrix<'a, T> {
    left: CowArray<'a, T, Ix2>,
    minus: Option<CowArray<'a, T, Ix2>>,
    /// The powers of two. Divided by the first, differences do not overflow; by the second, their squares do not vanish.
    units: [f64; 2],
}

impl<'a, T: Real> ScaledMatrix<'a, T> {
    /// The matrix `left`, less `minus` if there is one; `None` if all entries are 0.
    pub fn new(left: ArrayView2<'a, T>, minus: Option<ArrayView2<'a, T>>) -> Option<Self> {
        let size =
            |a: &ArrayView2<'a, T>| a.iter().fold(T::zero(), |size, entry| size.max(entry.abs())).widen();
        let largest = size(&left).max(minus.as_ref().map_or(0.0, size));
        // Rows are read many times, and so are made contiguous.
        let [left, minus] = [Some(left), minus].map(|a| a.map(in_rows));
        let mut matrix = ScaledMatrix { left: left?, minus, units: [power_of_two_below(largest), 1.0] };
        let largest =
            matrix.rows().fold(0.0, |size: f64, row| row.iter().fold(size, |size, v| size.max(v.abs())));
        matrix.units[1] = power_of_two_below(largest);
        (largest > 0.0).then_some(matrix)
    }

    /// The factor by which the quotient of a norm of this matrix and one of `other` is multiplied.
    pub fn units_over(&self, other: &Self) -> f64 {
        (self.units[1] / other.units[1]) * (self.units[0] / other.units[0])
    }

    /// ‖A‖_F.
    pub fn frobenius(&self) -> f64 {
        let isa = Isa::best();
        self.rows().map(|row| dot(isa, &row, &row)).sum::<f64>().sqrt()
    }

    /// All rows, one after the other.
    pub fn rows(&self) -> impl Iterator<Item = Vec<f64>> {
        (0..self.left.nrows()).map(|i| {
            let mut row = vec![0.0; self.left.ncols()];
            self.read(i, 0..row.len(), &mut row);
            row
        })
    }

    /// Some columns of row i.
    fn read(&self, i: usize, columns: Range<usize>, row: &mut [f64]) {
        let [first, second] = self.units;
        let left = self.left.slice(s![i, columns.clone()]);
        row.iter_mut().zip(left).for_each(|(to, entry)| *to = entry.widen() / first);
        if let Some(minus) = &self.minus {
            let minus = minus.slice(s![i, columns]);
            row.iter_mut().zip(minus).for_each(|(to, entry)| *to -= entry.widen() / first);
        }
        row.iter_mut().for_each(|to| *to /= second);
    }

    /// The numbers of rows and columns.
    pub fn dim(&self) -> (usize, usize) {
        self.left.dim()
    }

    /// Writes some rows of A v.
    pub fn rows_times(&self, rows: Range<usize>, v: &[f64], out: &mut [f64]) {
        let (isa, mut row) = (Isa::best(), vec![0.0; v.len()]);
        for (i, out) in rows.zip(out) {
            self.read(i, 0..v.len(), &mut row);
            *out = dot(isa, &row, v);
        }
    }

    /// Writes some columns of uᵀ A.
    pub fn times_columns(&self, columns: Range<usize>, u: &[f64], out: &mut [f64]) {
        let (isa, mut row) = (Isa::best(), vec![0.0; columns.len()]);
        out.fill(0.0);
        for (i, weight) in u.iter().enumerate() {
            self.read(i, columns.clone(), &mut row);
            add_scaled(isa, out, *weight, &row);
        }
    }
}

fn in_rows<T: Real>(a: ArrayView2<'_, T>) -> CowArray<'_, T, Ix2> {
    if a.is_standard_layout() { a.into() } else { a.as_standard_layout().into_owned().into() }
}
