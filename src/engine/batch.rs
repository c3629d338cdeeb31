//! [`Batch`]: features of a run of points, in reusable buffers.

use std::ops::Range;

use super::tile::TileShape;
use super::{Form, PointsView, Program, Scratch, Side, Tile};
use crate::Real;
use crate::numeric::{self, Buffer, Isa, ScaledRows, Submatrix, add_scaled};

/// Features of a run of points, to be read row by row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch<T> {
    values: Buffer<T>,
    /// A sign for each value of a batch of logarithms, else none.
    signs: Vec<T>,
    log_scales: Vec<f64>,
    shape: TileShape,
}

/// A row of features.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FeatureRow<'a, T> {
    pub values: &'a [T],
    pub signs: &'a [T],
    pub log_scales: &'a [f64],
}

impl<T: Real> FeatureRow<'_, T> {
    /// Adds the features, times e^(log scale) and a weight, to D sums. Absent blocks add nothing.
    pub fn add_to(&self, blocks: &[Range<usize>], weight: f64, sums: &mut [f64]) {
        for (columns, scale) in blocks.iter().zip(self.log_scales) {
            if *scale > f64::NEG_INFINITY {
                let (sums, values) = (&mut sums[columns.clone()], &self.values[columns.clone()]);
                add_scaled(Isa::best(), sums, weight * scale.exp(), values);
            }
        }
    }
}

impl<T: Real> Batch<T> {
    /// Resizes the batch, with arbitrary contents; signs are 1.
    pub fn resize(&mut self, shape: TileShape, form: Form) {
        let TileShape { rows, width, blocks } = shape;
        self.shape = shape;
        self.values.take(rows * width);
        self.log_scales.resize(rows * blocks, 0.0);
        self.signs.clear();
        if form == Form::Logarithms {
            self.signs.resize(rows * width, T::one());
        }
    }

    /// Resizes to `rows` rows of the shape of another batch of values, with arbitrary contents.
    pub fn resize_like(&mut self, other: &Self, rows: usize) {
        self.resize(TileShape { rows, ..other.shape }, Form::Values);
    }

    /// Computes the features of the rows of `x`.
    pub fn fill(
        &mut self,
        program: &Program<T>,
        side: Side,
        form: Form,
        x: PointsView<'_, T>,
        scratch: &mut Scratch<T>,
    ) {
        let (width, blocks) = (program.width(), program.blocks().len());
        self.resize(TileShape { rows: x.nrows(), width, blocks }, form);
        program.fill(side, form, x, &mut self.tile(), scratch);
    }

    pub fn tile(&mut self) -> Tile<'_, T> {
        Tile::new(&mut self.values, &mut self.signs, &mut self.log_scales, self.shape)
    }

    pub fn rows(&self) -> usize {
        self.shape.rows
    }

    /// D, the number of features.
    pub fn width(&self) -> usize {
        self.shape.width
    }

    /// All values, row by row.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Writes 0 for the values of absent blocks, which are arbitrary.
    pub fn clear_absent(&mut self, blocks: &[Range<usize>]) {
        for i in 0..self.shape.rows {
            let super::Row { values, log_scales, .. } = self.row_mut(i);
            let absent = blocks.iter().zip(log_scales).filter(|(_, scale)| **scale == f64::NEG_INFINITY);
            absent.for_each(|(columns, _)| values[columns.clone()].fill(T::zero()));
        }
    }

    /// The values, signs and scales of row `i`, to be changed.
    pub fn row_mut(&mut self, i: usize) -> super::Row<'_, T> {
        let columns = i * self.shape.width..(i + 1) * self.shape.width;
        super::Row {
            signs: if self.signs.is_empty() { &mut [] } else { &mut self.signs[columns.clone()] },
            values: &mut self.values[columns],
            log_scales: &mut self.log_scales[i * self.shape.blocks..(i + 1) * self.shape.blocks],
        }
    }

    /// Adds the features of all rows, times their weights, to sums of D each: Σᵢ weight(i, j) φ(xᵢ) to the j-th. Rows of weight 0 and
    /// absent blocks add nothing.
    pub fn add_to(&self, blocks: &[Range<usize>], weight: impl Fn(usize, usize) -> f64, sums: &mut [f64]) {
        // A few rows are added to all sums while they are in the first cache.
        for first in (0..self.shape.rows).step_by(numeric::ROWS) {
            let rows = self.rows_in(first..self.shape.rows.min(first + numeric::ROWS));
            for (j, sums) in sums.chunks_exact_mut(self.shape.width.max(1)).enumerate() {
                for (b, columns) in blocks.iter().enumerate() {
                    // A scale of a row that counts for nothing may leave the range.
                    let weight = |i: usize| {
                        let scale = rows.log_scales.values[i * rows.log_scales.stride + b];
                        let weight = if scale > f64::NEG_INFINITY { weight(first + i, j) } else { 0.0 };
                        if weight == 0.0 { 0.0 } else { weight * scale.exp() }
                    };
                    let values = &rows.values.values[columns.start..];
                    let values = Submatrix { values, width: columns.len(), ..rows.values };
                    numeric::add_multiples(Isa::best(), &mut sums[columns.clone()], weight, values);
                }
            }
        }
    }

    /// All scales, row by row.
    pub fn log_scales(&self) -> &[f64] {
        &self.log_scales
    }

    /// The values and scales of a range of rows.
    pub fn rows_in(&self, rows: Range<usize>) -> ScaledRows<&[T], &[f64]> {
        let TileShape { width, blocks, .. } = self.shape;
        let values = &self.values[rows.start * width..];
        let scales = &self.log_scales[rows.start * blocks..];
        let rows = rows.len();
        let log_scales = Submatrix { values: scales, rows, stride: blocks, width: blocks };
        ScaledRows { values: Submatrix { values, rows, stride: width, width }, log_scales }
    }

    #[inline]
    pub fn row(&self, i: usize) -> FeatureRow<'_, T> {
        let columns = i * self.shape.width..(i + 1) * self.shape.width;
        FeatureRow {
            values: &self.values[columns.clone()],
            signs: if self.signs.is_empty() { &[] } else { &self.signs[columns] },
            log_scales: &self.log_scales[i * self.shape.blocks..(i + 1) * self.shape.blocks],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums over all rows have the bits of sums row by row. A row of weight 0 adds nothing, though its scale leave the range, nor does a
    /// block that is absent or whose scale is NaN.
    #[test]
    fn rows_together_are_rows_one_by_one() {
        let (blocks, width) = ([0..5, 5..7], 7);
        for rows in [0, 1, 4, 7, 9] {
            let mut batch = Batch::<f32>::default();
            batch.resize(TileShape { rows, width, blocks: 2 }, Form::Values);
            for i in 0..rows {
                let row = batch.row_mut(i);
                row.values
                    .iter_mut()
                    .enumerate()
                    .for_each(|(f, v)| *v = ((i * 7 + f * 3) % 11) as f32 * 0.3 - 1.4);
                row.log_scales.copy_from_slice(&[0.1 * i as f64, -0.2]);
            }
            let weight = |i: usize, j: usize| if i % 5 == 2 { 0.0 } else { 0.7 * i as f64 - 1.3 + j as f64 };
            if rows > 2 {
                let row = batch.row_mut(2);
                row.values.fill(f32::NAN);
                row.log_scales.copy_from_slice(&[800.0, f64::INFINITY]);
                batch.row_mut(0).log_scales.copy_from_slice(&[f64::NEG_INFINITY, f64::NAN]);
            }
            let (mut sums, mut expected) = (vec![0.25; 3 * width], vec![0.25; 3 * width]);
            batch.add_to(&blocks, weight, &mut sums);
            for (j, sums) in expected.chunks_mut(width).enumerate() {
                for i in (0..rows).filter(|i| weight(*i, j) != 0.0) {
                    batch.row(i).add_to(&blocks, weight(i, j), sums);
                }
            }
            let bits = |sums: &[f64]| sums.iter().map(|sum| sum.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&sums), bits(&expected), "{rows} rows");
            assert!(sums.iter().all(|sum| sum.is_finite()));
        }
    }
}
