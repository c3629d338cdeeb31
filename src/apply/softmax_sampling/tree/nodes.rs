//! [`Nodes`]: sums of features in rows, each relative to scales of its own.

use std::ops::Range;

#[cfg(feature = "serde")]
use ndarray::{Array2, ArrayView2};
use ndarray::{ArrayViewMut2, Axis};

use super::table::Table;
use crate::Real;
use crate::numeric::special::largest;
use crate::numeric::{Isa, add_scaled, max_abs, quotients, slice_of_mut};
use crate::reduce::block_scales;
use crate::threads::Pool;

/// The number of children of a node, which lie next to each other in memory. A walk mostly waits for memory: with two or four
/// children it reads the least, and four need half as many steps.
pub const FAN_OUT: usize = 4;

/// The number of parents that a job sums.
const PARENTS: usize = 64;

/// Rows of features or of their sums. Feature f of a row, in block b, is e^(log_scales\[b\] + reference\[f\]) · values\[f\];
/// the largest value of a block is 1 in magnitude, and a scale of −∞ says that the block is 0.
#[derive(Clone, Debug)]
pub struct Nodes<T> {
    values: Table<T>,
    log_scales: Table<f64>,
}

/// Some rows next to each other.
#[derive(Clone, Copy, Debug)]
pub struct NodeRows<'a, T> {
    pub values: &'a [T],
    pub log_scales: &'a [f64],
}

impl<T: Real> NodeRows<'_, T> {
    /// Whether this is a single row that is relative to its largest values already.
    fn is_sum(&self, blocks: &[Range<usize>]) -> bool {
        let is_relative = |(columns, scale): (&Range<usize>, &f64)| {
            *scale > f64::NEG_INFINITY && max_abs(Isa::best(), &self.values[columns.clone()]) == T::one()
        };
        self.log_scales.len() == blocks.len() && blocks.iter().zip(self.log_scales).all(is_relative)
    }
}

/// A row, to be written.
pub struct NodeMut<'a, T> {
    pub values: &'a mut [T],
    pub log_scales: &'a mut [f64],
}

impl<T: Real> NodeMut<'_, T> {
    /// Writes the numbers of another row.
    pub fn copy(self, row: NodeRows<'_, T>) {
        self.values.copy_from_slice(row.values);
        self.log_scales.copy_from_slice(row.log_scales);
    }

    /// Makes the row 0.
    pub fn clear(self) {
        self.values.fill(T::zero());
        self.log_scales.fill(f64::NEG_INFINITY);
    }
}

impl<T: Real> Nodes<T> {
    /// No rows, with room for `width` features in so many blocks.
    pub fn new(width: usize, blocks: usize) -> Self {
        Nodes { values: Table::new(width), log_scales: Table::new(blocks) }
    }

    /// The rows of these values and scales, in standard layout; both have as many rows.
    #[cfg(feature = "serde")]
    pub fn of(values: Array2<T>, log_scales: Array2<f64>) -> Self {
        Nodes { values: values.into(), log_scales: log_scales.into() }
    }

    /// Values and scales.
    #[cfg(feature = "serde")]
    pub fn parts(&self) -> (ArrayView2<'_, T>, ArrayView2<'_, f64>) {
        (self.values.view(), self.log_scales.view())
    }

    pub fn len(&self) -> usize {
        self.values.len()
    }

    pub fn bytes(&self) -> usize {
        self.values.bytes() + self.log_scales.bytes()
    }

    /// Sets the number of rows by [`Table::grow`].
    pub fn grow(&mut self, len: usize) {
        self.values.grow(len);
        self.log_scales.grow(len);
    }

    /// Replaces all rows from `first` on by the rows of `others`, which are as many.
    pub fn put(&mut self, first: usize, others: &Nodes<T>) {
        self.grow(first + others.len());
        self.values.tail_mut(first).assign(&others.values.view());
        self.log_scales.tail_mut(first).assign(&others.log_scales.view());
    }

    pub fn rows(&self, run: Range<usize>) -> NodeRows<'_, T> {
        NodeRows { values: self.values.run(run.clone()), log_scales: self.log_scales.run(run) }
    }

    pub fn row_mut(&mut self, i: usize) -> NodeMut<'_, T> {
        NodeMut { values: self.values.row_mut(i), log_scales: self.log_scales.row_mut(i) }
    }

    /// Lets `write` fill runs of `count` rows from `first` on, in parallel, and returns its results in order. Each thread keeps a
    /// `W` from run to run.
    pub fn fill<W: Default + Send, R: Send>(
        &mut self,
        first: usize,
        count: usize,
        write: impl Fn(&mut W, Range<usize>, NodesMut<'_, T>) -> R + Sync,
    ) -> Vec<R> {
        let (mut values, mut log_scales) = (self.values.tail_mut(first), self.log_scales.tail_mut(first));
        let rows = values.nrows();
        if rows == 0 {
            return Vec::new();
        }
        let runs = values.axis_chunks_iter_mut(Axis(0), count);
        let runs = runs.zip(log_scales.axis_chunks_iter_mut(Axis(0), count)).enumerate();
        Pool::default().map(runs, |own, (i, (values, log_scales))| {
            let start = first + i * count;
            write(own, start..start + values.nrows(), NodesMut { values, log_scales })
        })
    }

    /// Makes these rows, from `first` on, the parents of `children`: each the sum of [`FAN_OUT`] of them.
    pub fn sum_children(&mut self, first: usize, children: &Nodes<T>, blocks: &[Range<usize>]) {
        self.grow(children.len().div_ceil(FAN_OUT));
        self.fill(first, PARENTS, |sums: &mut Vec<f64>, run, mut parents| {
            for (i, parent) in run.enumerate() {
                sum(blocks, children.rows(children.children(parent)), sums, parents.row(i));
            }
        });
    }

    /// The numbers of the children of a parent among these nodes.
    pub fn children(&self, parent: usize) -> Range<usize> {
        parent * FAN_OUT..self.len().min((parent + 1) * FAN_OUT)
    }
}

/// Some rows, to be written.
pub struct NodesMut<'a, T> {
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
pub fn sum<T: Real>(
    blocks: &[Range<usize>],
    rows: NodeRows<'_, T>,
    sums: &mut Vec<f64>,
    out: NodeMut<'_, T>,
) {
    let (isa, width) = (Isa::best(), out.values.len());
    if rows.is_sum(blocks) {
        out.values.copy_from_slice(rows.values);
        return out.log_scales.copy_from_slice(rows.log_scales);
    }
    sums.clear();
    sums.resize(width, 0.0);
    for (b, columns) in blocks.iter().enumerate() {
        let scales = block_scales(rows.log_scales, blocks.len(), b);
        let top = largest(scales.clone());
        let (sums, values) = (&mut sums[columns.clone()], &mut out.values[columns.clone()]);
        for (i, scale) in scales.enumerate().filter(|(_, scale)| *scale > f64::NEG_INFINITY) {
            let weight = (scale - top).exp();
            add_scaled(isa, sums, weight, &rows.values[i * width..][columns.clone()]);
        }
        let largest = max_abs(isa, sums).max(0.0);
        out.log_scales[b] = top + largest.ln();
        let factor = if largest > 0.0 { largest } else { 1.0 };
        quotients(isa, values, sums, factor);
    }
}
