//! [`Batch`]: features of a run of points, in reusable buffers.

use std::ops::Range;

use super::{Form, PointsView, Program, Scratch, Side, Tile};
use crate::Real;
use crate::numeric::{Buffer, Window};

/// Features of a run of points, to be read row by row.
#[derive(Debug, Default)]
pub(crate) struct Batch<T> {
    values: Buffer<T>,
    /// As many as values for logarithms, else none.
    signs: Vec<T>,
    log_scales: Vec<f64>,
    rows: usize,
    width: usize,
    blocks: usize,
}

/// A row of features.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Features<'a, T> {
    pub values: &'a [T],
    pub signs: &'a [T],
    pub log_scales: &'a [f64],
}

impl<T: Real> Batch<T> {
    /// Resizes to `rows` rows of `width` features in `blocks` blocks, with arbitrary contents; signs are 1.
    pub fn resize(&mut self, rows: usize, (width, blocks): (usize, usize), form: Form) {
        (self.rows, self.width, self.blocks) = (rows, width, blocks);
        self.values.take(rows * width);
        self.log_scales.resize(rows * blocks, 0.0);
        self.signs.clear();
        if form == Form::Logarithms {
            self.signs.resize(rows * width, T::one());
        }
    }

    /// The features of the rows of `x`.
    pub fn fill(
        &mut self,
        program: &Program<T>,
        (side, form): (Side, Form),
        x: PointsView<'_, T>,
        scratch: &mut Scratch<T>,
    ) {
        self.resize(x.nrows(), (program.width(), program.blocks().len()), form);
        program.fill((side, form), x, &mut self.tile(), scratch);
    }

    pub fn tile(&mut self) -> Tile<'_, T> {
        let shape = (self.rows, self.width, self.blocks);
        Tile::new(&mut self.values, &mut self.signs, &mut self.log_scales, shape)
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// D.
    pub fn width(&self) -> usize {
        self.width
    }

    /// All values, row by row.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// The values, signs and scales of row `i`, to be changed.
    pub fn row_mut(&mut self, i: usize) -> super::Row<'_, T> {
        let columns = i * self.width..(i + 1) * self.width;
        super::Row {
            signs: if self.signs.is_empty() { &mut [] } else { &mut self.signs[columns.clone()] },
            values: &mut self.values[columns],
            log_scales: &mut self.log_scales[i * self.blocks..(i + 1) * self.blocks],
        }
    }

    /// All scales, row by row.
    pub fn log_scales(&self) -> &[f64] {
        &self.log_scales
    }

    /// The values and scales of a range of rows.
    pub fn rows_in(&self, rows: Range<usize>) -> (Window<&[T]>, Window<&[f64]>) {
        let (width, blocks) = (self.width, self.blocks);
        let values = &self.values[rows.start * width..];
        let scales = &self.log_scales[rows.start * blocks..];
        let rows = rows.len();
        let scales = Window { values: scales, rows, stride: blocks, width: blocks };
        (Window { values, rows, stride: width, width }, scales)
    }

    #[inline]
    pub fn row(&self, i: usize) -> Features<'_, T> {
        let columns = i * self.width..(i + 1) * self.width;
        Features {
            values: &self.values[columns.clone()],
            signs: if self.signs.is_empty() { &[] } else { &self.signs[columns] },
            log_scales: &self.log_scales[i * self.blocks..(i + 1) * self.blocks],
        }
    }
}
