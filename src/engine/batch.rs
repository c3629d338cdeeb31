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
                    let weight = |i: usize| match rows.log_scales.values[i * rows.log_scales.stride + b] {
                        f64::NEG_INFINITY => 0.0,
                        scale => weight(first + i, j) * scale.exp(),
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
