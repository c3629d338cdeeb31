//! [`Nodes`]: sums of features in rows, each relative to scales of its own.

use std::ops::Range;

use ndarray::parallel::prelude::*;
use ndarray::{Array2, ArrayViewMut2, Axis};

use crate::Real;
use crate::numeric::{Isa, add_scaled, aligned_zeros, max_abs, slice_of, slice_of_mut};

/// The number of children of a node, which lie next to each other in memory. A walk mostly waits for memory: with two or four
/// children it reads the least, and four need half as many steps.
pub(super) const FAN_OUT: usize = 4;

/// Parents that are summed by a job.
const PARENTS: usize = 64;

/// Rows of features or of their sums. Feature f of a row, in block b, is e^(log_scales\[b\] + reference\[f\]) · values\[f\];
/// the largest value of a block is 1 in magnitude, and a scale of −∞ says that the block is 0.
#[derive(Clone, Debug)]
pub(super) struct Nodes<T> {
    values: Array2<T>,
    log_scales: Array2<f64>,
}

/// Some rows next to each other.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeRows<'a, T> {
    pub values: &'a [T],
    pub log_scales: &'a [f64],
}

/// A row, to be written.
pub(super) struct NodeMut<'a, T> {
    pub values: &'a mut [T],
    pub log_scales: &'a mut [f64],
}

impl<T: Real> Nodes<T> {
    pub fn new(count: usize, width: usize, blocks: usize) -> Self {
        Nodes { values: aligned_zeros(count, width), log_scales: aligned_zeros(count, blocks) }
    }

    pub fn len(&self) -> usize {
        self.values.nrows()
    }

    pub fn bytes(&self) -> usize {
        self.values.len() * size_of::<T>() + self.log_scales.len() * size_of::<f64>()
    }

    pub fn rows(&self, run: Range<usize>) -> NodeRows<'_, T> {
        let (width, blocks) = (self.values.ncols(), self.log_scales.ncols());
        let (values, log_scales) = (slice_of(&self.values), slice_of(&self.log_scales));
        NodeRows {
            values: &values[run.start * width..run.end * width],
            log_scales: &log_scales[run.start * blocks..run.end * blocks],
        }
    }

    pub fn row_mut(&mut self, i: usize) -> NodeMut<'_, T> {
        let (width, blocks) = (self.values.ncols(), self.log_scales.ncols());
        let (values, log_scales) = (slice_of_mut(&mut self.values), slice_of_mut(&mut self.log_scales));
        NodeMut {
            values: &mut values[i * width..][..width],
            log_scales: &mut log_scales[i * blocks..][..blocks],
        }
    }

    /// Lets `write` fill runs of `count` rows, in parallel; what it returns for each of them, in order. Each thread keeps a
    /// `W` from run to run.
    pub fn fill<W: Default, R: Send>(
        &mut self,
        count: usize,
        write: impl Fn(&mut W, Range<usize>, NodesMut<'_, T>) -> R + Sync,
    ) -> Vec<R> {
        let runs = self.values.axis_chunks_iter_mut(Axis(0), count).into_par_iter();
        let runs = runs.zip(self.log_scales.axis_chunks_iter_mut(Axis(0), count)).enumerate();
        runs.map_init(W::default, |own, (i, (values, log_scales))| {
            write(own, i * count..i * count + values.nrows(), NodesMut { values, log_scales })
        })
        .collect()
    }

    /// The parents of these nodes: sums of [`FAN_OUT`] of them each.
    pub fn parents(&self, blocks: &[Range<usize>]) -> Self {
        let mut parents = Nodes::new(self.len().div_ceil(FAN_OUT), self.values.ncols(), blocks.len());
        parents.fill(PARENTS, |sums: &mut Vec<f64>, run, mut parents| {
            for (i, parent) in run.enumerate() {
                sum(blocks, self.rows(self.children(parent)), sums, parents.row(i));
            }
        });
        parents
    }

    /// Which of these nodes belong to a parent.
    pub fn children(&self, parent: usize) -> Range<usize> {
        parent * FAN_OUT..self.len().min((parent + 1) * FAN_OUT)
    }
}

/// Some rows, to be written.
pub(super) struct NodesMut<'a, T> {
    values: ArrayViewMut2<'a, T>,
    log_scales: ArrayViewMut2<'a, f64>,
}

impl<T: Real> NodesMut<'_, T> {
    pub fn row(&mut self, i: usize) -> NodeMut<'_, T> {
        let (width, blocks) = (self.values.ncols(), self.log_scales.ncols());
        let (values, log_scales) = (slice_of_mut(&mut self.values), slice_of_mut(&mut self.log_scales));
        NodeMut {
            values: &mut values[i * width..][..width],
            log_scales: &mut log_scales[i * blocks..][..blocks],
        }
    }
}

/// The sum of some rows. The values of absent blocks are not read.
pub(super) fn sum<T: Real>(
    blocks: &[Range<usize>],
    rows: NodeRows<'_, T>,
    sums: &mut Vec<f64>,
    out: NodeMut<'_, T>,
) {
    let (isa, width) = (Isa::best(), out.values.len());
    sums.clear();
    sums.resize(width, 0.0);
    for (b, columns) in blocks.iter().enumerate() {
        let scales = || rows.log_scales.iter().skip(b).step_by(blocks.len());
        let top = scales().copied().fold(f64::NEG_INFINITY, f64::max);
        let (sums, values) = (&mut sums[columns.clone()], &mut out.values[columns.clone()]);
        for (i, scale) in scales().enumerate().filter(|(_, scale)| **scale > f64::NEG_INFINITY) {
            let weight = (scale - top).exp();
            add_scaled(isa, sums, weight, &rows.values[i * width..][columns.clone()]);
        }
        let largest = max_abs(isa, sums).max(0.0);
        out.log_scales[b] = top + largest.ln();
        let factor = if largest > 0.0 { largest } else { 1.0 };
        values.iter_mut().zip(sums).for_each(|(v, sum)| *v = T::narrow(*sum / factor));
    }
}
