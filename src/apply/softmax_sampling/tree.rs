//! [`Tree`]: sums of the features of runs of classes, of runs of such runs, and so on.

use std::ops::Range;

use ndarray::{Array2, ArrayView2, Axis};

use super::features::Reference;
use super::nodes::{FAN_OUT, NodeRows, Nodes, sum};
use crate::Real;
use crate::engine::{Batch, Program, Scratch, Side};
use crate::error::{Error, Result};
use crate::numeric::{slice_of, zeros};

/// Classes whose features are computed at a time.
const CLASSES: usize = 240;

/// Sums of features. A leaf has some classes, a node [`FAN_OUT`] nodes of the level below; the last of each may have fewer.
/// The root is not stored: a walk begins with the choice among its children.
#[derive(Clone, Debug)]
pub(super) struct Tree<T> {
    pub reference: Reference<T>,
    /// From the children of the root down to the leaves; none if there is one leaf.
    levels: Vec<Nodes<T>>,
    /// Points of which features are computed again where a leaf is visited; none if a leaf is a class.
    points: Array2<T>,
    classes: usize,
    leaf: usize,
}

/// What a thread keeps while it sums leaves.
#[derive(Default)]
struct LeafBuffers<T> {
    batch: Batch<T>,
    scratch: Scratch<T>,
    sums: Vec<f64>,
}

impl<T: Real> LeafBuffers<T> {
    /// The features of some classes relative to the reference, or the first class whose features are not finite.
    fn fill(
        &mut self,
        program: &Program<T>,
        reference: &Reference<T>,
        x: ArrayView2<'_, T>,
    ) -> Result<(), usize> {
        self.batch.fill(program, Side::Y, reference.form, x.into(), &mut self.scratch);
        let faulty = |i: &usize| !reference.apply(program.blocks(), self.batch.row_mut(*i));
        (0..x.nrows()).find(faulty).map_or(Ok(()), Err)
    }

    fn rows(&self, run: Range<usize>) -> NodeRows<'_, T> {
        let (width, blocks) = (self.batch.row(0).values.len(), self.batch.row(0).log_scales.len());
        NodeRows {
            values: &self.batch.values()[run.start * width..run.end * width],
            log_scales: &self.batch.log_scales()[run.start * blocks..run.end * blocks],
        }
    }
}

fn not_finite(row: usize) -> Error {
    Error::NotFinite { what: "the features of the classes", row }
}

impl<T: Real> Tree<T> {
    /// Of points in rows, at least one, in parallel.
    ///
    /// # Errors
    /// [`NotFinite`](Error::NotFinite) if features are not finite.
    pub fn new(program: &Program<T>, points: Array2<T>, leaf: usize) -> Result<Self> {
        let (classes, blocks) = (points.nrows(), program.blocks());
        let reference = Reference::of(program, points.view());
        let mut leaves = Nodes::new(classes.div_ceil(leaf), program.width(), blocks.len());
        let faults = leaves.fill((CLASSES / leaf).max(1), |buffers: &mut LeafBuffers<T>, run, mut nodes| {
            let (start, end) = (run.start * leaf, classes.min(run.end * leaf));
            let points = points.slice_axis(Axis(0), (start..end).into());
            buffers.fill(program, &reference, points).map_err(|row| start + row)?;
            let mut sums = std::mem::take(&mut buffers.sums);
            for i in 0..run.len() {
                let classes = i * leaf..(end - start).min((i + 1) * leaf);
                sum(blocks, buffers.rows(classes), &mut sums, nodes.row(i));
            }
            buffers.sums = sums;
            Ok(())
        });
        faults.into_iter().collect::<Result<(), usize>>().map_err(not_finite)?;
        let mut levels = if leaves.len() > 1 { vec![leaves] } else { Vec::new() };
        while let Some(lowest) = levels.last().filter(|level| level.len() > FAN_OUT) {
            levels.push(lowest.parents(blocks));
        }
        levels.reverse();
        let points = if leaf > 1 { points } else { Array2::zeros((0, points.ncols())) };
        Ok(Tree { reference, levels, points, classes, leaf })
    }

    pub fn classes(&self) -> usize {
        self.classes
    }

    /// From the children of the root down to the leaves.
    pub fn levels(&self) -> &[Nodes<T>] {
        &self.levels
    }

    /// The most classes of a leaf.
    pub fn leaf_size(&self) -> usize {
        self.leaf
    }

    /// The number of classes below each node of a level; below the last level are the classes themselves.
    pub fn span(&self, level: usize) -> usize {
        if level == self.levels.len() {
            return 1;
        }
        self.leaf * FAN_OUT.pow((self.levels.len() - 1 - level) as u32)
    }

    /// The classes below a node of which there are `span` in each but the last.
    pub fn classes_of(&self, node: usize, span: usize) -> Range<usize> {
        node * span..self.classes.min((node + 1) * span)
    }

    /// The classes of a leaf.
    pub fn leaf(&self, leaf: usize) -> Range<usize> {
        self.classes_of(leaf, self.leaf)
    }

    /// The points of some classes, row by row, where leaves have more than one.
    pub fn points(&self, classes: Range<usize>) -> &[T] {
        let d = self.points.ncols();
        &slice_of(&self.points)[classes.start * d..classes.end * d]
    }

    pub fn bytes(&self) -> usize {
        self.levels.iter().map(Nodes::bytes).sum::<usize>() + self.points.len() * size_of::<T>()
    }

    /// Puts other points in the place of some classes', in rows; of a class that stands twice the last one counts. Nothing
    /// changes if features are not finite.
    ///
    /// # Errors
    /// [`NotFinite`](Error::NotFinite) with the row of `points`.
    pub fn replace(
        &mut self,
        program: &Program<T>,
        classes: &[usize],
        points: ArrayView2<'_, T>,
    ) -> Result<()> {
        let mut buffers = LeafBuffers::default();
        for (run, x) in points.axis_chunks_iter(Axis(0), CLASSES).enumerate() {
            buffers
                .fill(program, &self.reference, x)
                .map_err(|row| Error::NotFinite { what: "the features of x", row: run * CLASSES + row })?;
        }
        let own = if self.leaf > 1 { classes } else { &[] };
        own.iter().zip(points.rows()).for_each(|(class, point)| self.points.row_mut(*class).assign(&point));
        if self.levels.is_empty() {
            return Ok(());
        }
        // The last one first, so that it is the one that stays.
        let mut touched: Vec<(usize, usize)> = classes.iter().copied().zip(0..).collect();
        touched.sort_by_key(|(class, row)| (*class, std::cmp::Reverse(*row)));
        touched.dedup_by_key(|(class, _)| *class);
        let mut nodes: Vec<usize> = touched.iter().map(|(class, _)| class / self.leaf).collect();
        nodes.dedup();
        self.sum_leaves(program, &touched, points, &nodes, &mut buffers)?;
        for level in (1..self.levels.len()).rev() {
            nodes.iter_mut().for_each(|node| *node /= FAN_OUT);
            nodes.dedup();
            let (upper, lower) = self.levels.split_at_mut(level);
            let (parents, children) = (&mut upper[level - 1], &lower[0]);
            for node in &nodes {
                let rows = children.rows(children.children(*node));
                sum(program.blocks(), rows, &mut buffers.sums, parents.row_mut(*node));
            }
        }
        Ok(())
    }

    /// Sums some leaves again: those of classes that have a row of `points` each, or what is stored.
    fn sum_leaves(
        &mut self,
        program: &Program<T>,
        touched: &[(usize, usize)],
        points: ArrayView2<'_, T>,
        leaves: &[usize],
        buffers: &mut LeafBuffers<T>,
    ) -> Result<()> {
        let Some(level) = self.levels.last_mut() else { return Ok(()) };
        let mut sums = Vec::new();
        for (leaf, (_, row)) in leaves.iter().zip(touched) {
            let classes = leaf * self.leaf..self.classes.min((leaf + 1) * self.leaf);
            // Where a leaf is a class, leaves are the classes that are touched.
            let x = if self.leaf > 1 {
                self.points.slice_axis(Axis(0), classes.into())
            } else {
                points.slice_axis(Axis(0), (*row..row + 1).into())
            };
            buffers.fill(program, &self.reference, x).map_err(not_finite)?;
            sum(program.blocks(), buffers.rows(0..x.nrows()), &mut sums, level.row_mut(*leaf));
        }
        Ok(())
    }
}

/// A copy of points in the layout of a tree.
pub(super) fn standard<T: Real>(x: ArrayView2<'_, T>) -> Array2<T> {
    let mut points = zeros(x.nrows(), x.ncols());
    points.assign(&x);
    points
}
