//! [`Tree`]: sums of the features of classes over the nodes of a tree.

mod changes;
mod choice;
mod features;
mod leaves;
mod mixture;
mod nodes;
mod table;
mod walk;

use std::ops::Range;

use ndarray::{Array2, ArrayView2, CowArray, Ix2};

pub(super) use features::FeatureReference;
pub(super) use mixture::TreeMixture;
#[cfg(feature = "serde")]
pub(super) use nodes::Nodes;
pub(super) use table::Table;
pub(super) use walk::Walker;

use super::classes::Classes;
use crate::Real;
use crate::engine::Program;
use crate::error::{Error, Result};
use crate::numeric::zeros;
use leaves::sum_leaves;
use nodes::FAN_OUT;
#[cfg(not(feature = "serde"))]
use nodes::Nodes;
use walk::Walk;

/// Sums of features. A leaf has some classes, a node [`FAN_OUT`] nodes of the level below; the last of each may have fewer.
/// The root is not stored: a walk begins with the choice among its children.
#[derive(Clone, Debug)]
pub(super) struct Tree<T> {
    pub reference: FeatureReference<T>,
    pub classes: Classes,
    /// The sums of each level, from the children of the root down to the leaves. A single leaf is the root itself.
    levels: Vec<Nodes<T>>,
    /// The points whose features are computed again when a leaf is visited; none if a leaf is a class.
    points: Table<T>,
    leaf: usize,
}

impl<T: Real> Tree<T> {
    /// The tree of points in rows, one for each number of a class, in parallel. Owned points are in the layout of a tree.
    ///
    /// # Errors
    /// [`NotFinite`](Error::NotFinite) if features are not finite, [`Cancelled`](Error::Cancelled).
    pub fn new(
        program: &Program<T>,
        reference: FeatureReference<T>,
        classes: Classes,
        points: CowArray<'_, T, Ix2>,
        leaf: usize,
    ) -> Result<Self> {
        let places: Vec<usize> = (0..classes.count().div_ceil(leaf)).collect();
        let write = |class: usize, out: &mut [T]| {
            out.iter_mut().zip(points.row(class)).for_each(|(out, v)| *out = *v);
        };
        let faulty = |row| Error::NotFinite { what: "the features of the classes", row, column: None };
        let leaves = sum_leaves(program, &reference, (&classes, leaf), &places, write, faulty)?;
        let points = match leaf {
            1 => Array2::zeros((0, points.ncols())),
            _ if points.is_owned() => points.into_owned(),
            _ => standard(points.view()),
        };
        Ok(Self::of_leaves(program, reference, classes, leaves, points, leaf))
    }

    /// The tree above these sums of leaves, with points if a leaf has several classes.
    pub fn of_leaves(
        program: &Program<T>,
        reference: FeatureReference<T>,
        classes: Classes,
        leaves: Nodes<T>,
        points: Array2<T>,
        leaf: usize,
    ) -> Self {
        let mut tree = Tree { reference, classes, levels: vec![leaves], points: points.into(), leaf };
        tree.sum_above(program, 0);
        tree
    }

    /// Sums all nodes above the leaves from `first_leaf` on.
    fn sum_above(&mut self, program: &Program<T>, first_leaf: usize) {
        let mut first = first_leaf;
        for level in (1..self.levels.len()).rev() {
            first /= FAN_OUT;
            let (upper, lower) = self.levels.split_at_mut(level);
            upper[level - 1].sum_children(first, &lower[0], program.blocks());
        }
        while let Some(top) = self.levels.first().filter(|top| top.len() > FAN_OUT) {
            let mut parents = Nodes::new(program.width(), program.blocks().len());
            parents.sum_children(0, top, program.blocks());
            self.levels.insert(0, parents);
        }
    }

    /// The levels at which a walk chooses, from the children of the root down to the leaves.
    pub fn levels(&self) -> &[Nodes<T>] {
        let is_root = self.levels.first().is_some_and(|top| top.len() == 1);
        &self.levels[usize::from(is_root)..]
    }

    /// The nodes of which the root is the sum.
    pub fn top(&self) -> &Nodes<T> {
        &self.levels[0]
    }

    /// The sums of the leaves.
    #[cfg(feature = "serde")]
    pub fn leaves(&self) -> &Nodes<T> {
        &self.levels[self.levels.len() - 1]
    }

    fn leaves_mut(&mut self) -> &mut Nodes<T> {
        let last = self.levels.len() - 1;
        &mut self.levels[last]
    }

    /// The most classes of a leaf.
    pub fn leaf_size(&self) -> usize {
        self.leaf
    }

    /// The number of classes below each node of a level; below the last level are the classes themselves.
    pub fn span(&self, level: usize) -> usize {
        let levels = self.levels().len();
        if level == levels {
            return 1;
        }
        self.leaf * FAN_OUT.pow((levels - 1 - level) as u32)
    }

    /// The classes below a node; each node but the last has `span` of them.
    pub fn classes_of(&self, node: usize, span: usize) -> Range<usize> {
        node * span..self.classes.count().min((node + 1) * span)
    }

    /// The classes of a leaf.
    pub fn leaf(&self, leaf: usize) -> Range<usize> {
        self.classes_of(leaf, self.leaf)
    }

    /// The points of some classes, row by row, if leaves have several classes.
    pub fn points(&self, classes: Range<usize>) -> &[T] {
        self.points.run(classes)
    }

    /// The points of all classes, if leaves have several classes.
    #[cfg(feature = "serde")]
    pub fn all_points(&self) -> ArrayView2<'_, T> {
        self.points.view()
    }

    pub fn bytes(&self) -> usize {
        self.levels.iter().map(Nodes::bytes).sum::<usize>() + self.points.bytes()
    }
}

/// A copy of points in the layout of a tree.
pub(super) fn standard<T: Real>(x: ArrayView2<'_, T>) -> Array2<T> {
    let mut points = zeros(x.dim());
    points.assign(&x);
    points
}
