//! [`sum_leaves`]: sums of the features of the classes of each leaf.

use std::ops::Range;

use ndarray::{ArrayView2, Axis};

use super::features::Reference;
use super::nodes::{NodeRows, Nodes, sum};
use crate::Real;
use crate::apply::softmax_sampling::classes::Classes;
use crate::engine::{Batch, Program, Scratch, Side};

/// Classes whose features are computed at a time.
pub const CLASSES: usize = 240;

/// What a thread keeps while it sums leaves.
#[derive(Default)]
pub struct LeafBuffers<T> {
    batch: Batch<T>,
    scratch: Scratch<T>,
    pub sums: Vec<f64>,
}

impl<T: Real> LeafBuffers<T> {
    /// The features of some classes relative to the reference, or the first row of `x` whose features are not finite.
    pub fn fill(
        &mut self,
        program: &Program<T>,
        reference: &Reference<T>,
        x: ArrayView2<'_, T>,
    ) -> Result<(), usize> {
        self.batch.fill(program, Side::Y, reference.form, x.into(), &mut self.scratch);
        let faulty = |i: &usize| !reference.apply(program.blocks(), self.batch.row_mut(*i));
        (0..x.nrows()).find(faulty).map_or(Ok(()), Err)
    }

    /// Takes those of a class away that was removed.
    pub fn clear(&mut self, row: usize) {
        self.batch.row_mut(row).log_scales.fill(f64::NEG_INFINITY);
    }

    pub fn rows(&self, run: Range<usize>) -> NodeRows<'_, T> {
        let (width, blocks) = (self.batch.row(0).values.len(), self.batch.row(0).log_scales.len());
        NodeRows {
            values: &self.batch.values()[run.start * width..run.end * width],
            log_scales: &self.batch.log_scales()[run.start * blocks..run.end * blocks],
        }
    }
}

/// Sums the leaves from `first` on, of points that begin with the first class of that leaf, in parallel. The first row of
/// `points` whose features are not finite, if there is one.
pub fn sum_leaves<T: Real>(
    program: &Program<T>,
    reference: &Reference<T>,
    classes: &Classes,
    points: ArrayView2<'_, T>,
    leaf: usize,
    first: usize,
    leaves: &mut Nodes<T>,
) -> Result<(), usize> {
    let origin = first * leaf;
    let faults =
        leaves.fill(first, (CLASSES / leaf).max(1), |buffers: &mut LeafBuffers<T>, run, mut nodes| {
            let (start, end) = (run.start * leaf, classes.count().min(run.end * leaf));
            let points = points.slice_axis(Axis(0), (start - origin..end - origin).into());
            buffers.fill(program, reference, points).map_err(|row| start - origin + row)?;
            classes.removed_in(start..end).iter().for_each(|class| buffers.clear(class - start));
            let mut sums = std::mem::take(&mut buffers.sums);
            for i in 0..run.len() {
                let classes = i * leaf..(end - start).min((i + 1) * leaf);
                sum(program.blocks(), buffers.rows(classes), &mut sums, nodes.row(i));
            }
            buffers.sums = sums;
            Ok(())
        });
    faults.into_iter().collect()
}
