//! Classes of a [`Tree`] that get other points, are added or removed.

use std::cmp::Reverse;

use ndarray::{ArrayView2, Axis, s};

use super::leaves::{CLASSES, LeafBuffers, sum_leaves};
use super::nodes::{FAN_OUT, sum};
use super::{Tree, not_finite};
use crate::Real;
use crate::engine::Program;
use crate::error::{Error, Result};

impl<T: Real> Tree<T> {
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
            let wrong =
                |row| Error::NotFinite { what: "the features of the vectors", row: run * CLASSES + row };
            buffers.fill(program, &self.reference, x).map_err(wrong)?;
        }
        // The last one first, so that it is the one that stays.
        let mut touched: Vec<(usize, usize)> = classes.iter().copied().zip(0..).collect();
        touched.sort_by_key(|(class, row)| (*class, Reverse(*row)));
        touched.dedup_by_key(|(class, _)| *class);
        if self.leaf > 1 {
            touched.iter().for_each(|(class, row)| self.points.write_row(*class, points.row(*row)));
            return self.sum_again(program, touched.into_iter().map(|(class, _)| class), &mut buffers);
        }
        for (class, row) in &touched {
            let x = points.slice(s![*row..row + 1, ..]);
            buffers.fill(program, &self.reference, x).map_err(not_finite)?;
            self.write_leaf(program, *class, &mut buffers, 1);
        }
        self.sum_ancestors(program, touched.into_iter().map(|(class, _)| class).collect(), &mut buffers);
        Ok(())
    }

    /// Takes classes away that are present; their numbers are increasing.
    ///
    /// # Errors
    /// None: the features of the classes that stay are finite.
    pub fn remove(&mut self, program: &Program<T>, classes: &[usize]) -> Result<()> {
        let mut buffers = LeafBuffers::default();
        self.classes.remove(classes);
        if self.leaf > 1 {
            return self.sum_again(program, classes.iter().copied(), &mut buffers);
        }
        for class in classes {
            self.leaves_mut().row_mut(*class).clear();
        }
        self.sum_ancestors(program, classes.to_vec(), &mut buffers);
        Ok(())
    }

    /// Adds classes with these points after the others. Nothing changes if features are not finite.
    ///
    /// # Errors
    /// [`NotFinite`](Error::NotFinite) with the row of `points`.
    pub fn add(&mut self, program: &Program<T>, points: ArrayView2<'_, T>) -> Result<()> {
        let new = self.classes.add(points.nrows());
        // The first leaf that changes, which may have classes already.
        let (first, leaves) = (new.start / self.leaf, new.end.div_ceil(self.leaf));
        let before = new.start.div_ceil(self.leaf);
        self.leaves_mut().grow(leaves);
        let mut summed = Ok(());
        if self.leaf > 1 {
            self.points.grow(new.end);
            self.points.tail_mut(new.start).assign(&points);
            summed = self.sum_leaves_from(program, first);
        } else if let Some(level) = self.levels.last_mut() {
            summed = sum_leaves(program, &self.reference, &self.classes, points, 1, first, level);
        }
        let Err(row) = summed else {
            self.sum_above(program, first);
            return Ok(());
        };
        self.classes.forget(new.len());
        self.leaves_mut().shrink(before);
        if self.leaf > 1 {
            self.points.shrink(new.start);
            // As it was before.
            let _ = self.sum_leaves_from(program, first);
        }
        let row = row - (new.start - first * self.leaf);
        Err(Error::NotFinite { what: "the features of the vectors", row })
    }

    /// Sums the leaves of the points from one on.
    fn sum_leaves_from(&mut self, program: &Program<T>, first: usize) -> Result<(), usize> {
        let Some(level) = self.levels.last_mut() else { return Ok(()) };
        let points = self.points.view();
        let points = points.slice(s![first * self.leaf.., ..]);
        sum_leaves(program, &self.reference, &self.classes, points, self.leaf, first, level)
    }

    /// Sums the leaves of some classes again, whose numbers are increasing, from the points that are kept.
    fn sum_again(
        &mut self,
        program: &Program<T>,
        classes: impl Iterator<Item = usize>,
        buffers: &mut LeafBuffers<T>,
    ) -> Result<()> {
        let mut leaves: Vec<usize> = classes.map(|class| class / self.leaf).collect();
        leaves.dedup();
        for leaf in &leaves {
            let classes = self.leaf(*leaf);
            let points = self.points.view();
            let x = points.slice(s![classes.clone(), ..]);
            buffers.fill(program, &self.reference, x).map_err(not_finite)?;
            for class in self.classes.removed_in(classes.clone()) {
                buffers.clear(class - classes.start);
            }
            self.write_leaf(program, *leaf, buffers, classes.len());
        }
        self.sum_ancestors(program, leaves, buffers);
        Ok(())
    }

    /// Sums the first rows of the buffers to a leaf.
    fn write_leaf(
        &mut self,
        program: &Program<T>,
        leaf: usize,
        buffers: &mut LeafBuffers<T>,
        classes: usize,
    ) {
        let mut sums = std::mem::take(&mut buffers.sums);
        sum(program.blocks(), buffers.rows(0..classes), &mut sums, self.leaves_mut().row_mut(leaf));
        buffers.sums = sums;
    }

    /// Sums all nodes above some leaves again, whose numbers are increasing.
    fn sum_ancestors(&mut self, program: &Program<T>, mut nodes: Vec<usize>, buffers: &mut LeafBuffers<T>) {
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
    }
}
