//! Changes of a [`Tree`]: classes get other points, are added or removed. Sums that change are made aside and put in their
//! places once all are there, so that nothing has changed after an error.

use std::cmp::Reverse;

use ndarray::ArrayView2;

use super::Tree;
use super::leaves::sum_leaves;
use super::nodes::{FAN_OUT, Nodes, sum};
use crate::Real;
use crate::apply::softmax_sampling::classes::Classes;
use crate::engine::Program;
use crate::error::{Error, Result};
use crate::numeric::copy_row;

impl<T: Real> Tree<T> {
    /// Gives some classes other points, in rows; the last row counts for a class that occurs twice.
    ///
    /// # Errors
    /// [`NotFinite`](Error::NotFinite) with the row of `points` if features are not finite, [`Cancelled`](Error::Cancelled). Nothing
    /// has changed then.
    pub fn replace(
        &mut self,
        program: &Program<T>,
        classes: &[usize],
        points: ArrayView2<'_, T>,
    ) -> Result<()> {
        // The last row of each class.
        let mut rows: Vec<(usize, usize)> = classes.iter().copied().zip(0..).collect();
        rows.sort_by_key(|(class, row)| (*class, Reverse(*row)));
        rows.dedup_by_key(|(class, _)| *class);
        let row_of = |class| rows.binary_search_by_key(&class, |(class, _)| *class).map(|i| rows[i].1);
        let write = |class, out: &mut [T]| match row_of(class) {
            Ok(row) => copy_row(points.row(row), out),
            Err(_) => out.copy_from_slice(self.points.run(class..class + 1)),
        };
        let leaves = self.leaves_of(rows.iter().map(|(class, _)| *class));
        let faulty = |class| not_finite(row_of(class).unwrap_or_default());
        let sums = self.sums(program, &self.classes, &leaves, write, faulty)?;
        if self.leaf > 1 {
            rows.iter().for_each(|(class, row)| self.points.write_row(*class, points.row(*row)));
        }
        self.put(program, leaves, &sums);
        Ok(())
    }

    /// Removes classes that are present; their numbers are increasing.
    ///
    /// # Errors
    /// [`Cancelled`](Error::Cancelled) only, since the features of the classes that stay are finite. Nothing has changed then.
    pub fn remove(&mut self, program: &Program<T>, removed: &[usize]) -> Result<()> {
        let mut classes = self.classes.clone();
        classes.remove(removed);
        let leaves = self.leaves_of(removed.iter().copied());
        let mut sums = Nodes::new(program.width(), program.blocks().len());
        if self.leaf > 1 {
            let write = |class, out: &mut [T]| out.copy_from_slice(self.points.run(class..class + 1));
            sums = self.sums(program, &classes, &leaves, write, not_finite)?;
        } else {
            // The sums of leaves without classes.
            sums.grow(leaves.len());
            (0..leaves.len()).for_each(|i| sums.row_mut(i).clear());
        }
        self.classes = classes;
        self.put(program, leaves, &sums);
        Ok(())
    }

    /// Adds classes with these points after the others.
    ///
    /// # Errors
    /// [`NotFinite`](Error::NotFinite) with the row of `points` if features are not finite, [`Cancelled`](Error::Cancelled). Nothing
    /// has changed then.
    pub fn add(&mut self, program: &Program<T>, points: ArrayView2<'_, T>) -> Result<()> {
        let mut classes = self.classes.clone();
        let new = classes.add(points.nrows());
        // The first of these leaves may have classes already.
        let leaves: Vec<usize> = (new.start / self.leaf..new.end.div_ceil(self.leaf)).collect();
        let write = |class, out: &mut [T]| match new.contains(&class) {
            true => copy_row(points.row(class - new.start), out),
            false => out.copy_from_slice(self.points.run(class..class + 1)),
        };
        let faulty = |class: usize| not_finite(class.saturating_sub(new.start));
        let sums = self.sums(program, &classes, &leaves, write, faulty)?;
        self.classes = classes;
        if self.leaf > 1 {
            self.points.grow(new.end);
            self.points.tail_mut(new.start).assign(&points);
        }
        if let Some(first) = leaves.first() {
            self.leaves_mut().put(*first, &sums);
            self.sum_above(program, *first);
        }
        Ok(())
    }

    /// The leaves of some classes, whose numbers are increasing.
    fn leaves_of(&self, classes: impl Iterator<Item = usize>) -> Vec<usize> {
        let mut leaves: Vec<usize> = classes.map(|class| class / self.leaf).collect();
        leaves.dedup();
        leaves
    }

    /// The sums of some leaves with these classes and points, by [`sum_leaves`].
    fn sums(
        &self,
        program: &Program<T>,
        classes: &Classes,
        leaves: &[usize],
        write: impl Fn(usize, &mut [T]) + Sync,
        faulty: impl Fn(usize) -> Error + Sync,
    ) -> Result<Nodes<T>> {
        sum_leaves(program, &self.reference, (classes, self.leaf), leaves, write, faulty)
    }

    /// Replaces the sums of some leaves, whose numbers are increasing, and sums all nodes above them again.
    fn put(&mut self, program: &Program<T>, leaves: Vec<usize>, sums: &Nodes<T>) {
        leaves
            .iter()
            .enumerate()
            .for_each(|(i, leaf)| self.leaves_mut().row_mut(*leaf).copy(sums.rows(i..i + 1)));
        self.sum_ancestors(program, leaves);
    }

    /// Sums all nodes above some leaves again, whose numbers are increasing.
    fn sum_ancestors(&mut self, program: &Program<T>, mut nodes: Vec<usize>) {
        let mut sums = Vec::new();
        for level in (1..self.levels.len()).rev() {
            nodes.iter_mut().for_each(|node| *node /= FAN_OUT);
            nodes.dedup();
            let (upper, lower) = self.levels.split_at_mut(level);
            let (parents, children) = (&mut upper[level - 1], &lower[0]);
            for node in &nodes {
                let rows = children.rows(children.children(*node));
                sum(program.blocks(), rows, &mut sums, parents.row_mut(*node));
            }
        }
    }
}

/// The error that a row of points has features that are not finite.
fn not_finite(row: usize) -> Error {
    Error::NotFinite { what: "the features of the vectors", row, column: None }
}
