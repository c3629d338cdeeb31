//! [`Walker`]: many walks from the root to classes for one h; each node that they pass is evaluated once.

use super::Tree;
use super::choice::{Choices, NodeChoice};
use super::features::QueryFeatures;
use crate::Real;
use crate::engine::{Batch, Program, Scratch, Side};
use crate::numeric::{matrix_view, prefetch};

/// The number of classes of visited leaves whose features are computed at a time.
const CLASSES: usize = 512;

/// The number of elements of a leaf's points whose memory is fetched ahead.
const AHEAD: usize = 1024;

/// A walk from the root to a class.
#[derive(Clone, Copy, Debug)]
pub struct Walk {
    /// The number of the walk.
    number: usize,
    /// The place that the walk has reached: a node of a level, a leaf, and in the end the class.
    pub place: usize,
    /// The class where the walk must arrive; `None` if it is left to chance.
    target: Option<usize>,
    /// The probability of the way so far is e^ln · share.
    ln: f64,
    share: f64,
    /// The share of mass that was not clipped on the way.
    pub kept: f64,
}

impl Walk {
    /// A walk at the root.
    pub fn new(number: usize, target: Option<usize>) -> Self {
        Walk { number, place: 0, target, ln: 0.0, share: 1.0, kept: 1.0 }
    }

    /// ln of the probability of the way.
    pub fn log_probability(&self) -> f64 {
        self.ln + self.share.ln()
    }

    /// Moves to one of the alternatives, of `span` classes each.
    fn go(&mut self, choices: &Choices, choice: &NodeChoice, span: usize, uniform: &mut dyn FnMut() -> f64) {
        self.place = self.target.map_or_else(|| choices.pick(choice, uniform()), |target| target / span);
        let (ln, share) = choices.probability(choice, self.place);
        self.ln += ln;
        if self.share * share >= f64::MIN_POSITIVE {
            self.share *= share;
        } else {
            self.ln += self.share.ln() + share.ln();
            self.share = 1.0;
        }
        self.kept *= 1.0 - choice.clipped;
    }
}

/// The walks and buffers that a thread keeps from h to h.
#[derive(Default)]
pub struct Walker<T> {
    pub walks: Vec<Walk>,
    pub query: QueryFeatures<T>,
    pub scratch: Scratch<T>,
    choices: Choices,
    batch: Batch<T>,
    points: Vec<T>,
}

impl<T: Real> Walker<T> {
    /// Takes all walks, which start in order, from the root to classes for the query's h. They go level by level, in the order of
    /// their places: while some choose, the memory that others need at the next level is fetched.
    pub fn run(&mut self, program: &Program<T>, tree: &Tree<T>, uniform: &mut dyn FnMut() -> f64) {
        let mut walks = std::mem::take(&mut self.walks);
        for (level, nodes) in tree.levels().iter().enumerate() {
            self.choices.clear();
            for group in groups(&mut walks) {
                let children = nodes.children(group[0].place);
                self.query.products(program.blocks(), nodes.rows(children.clone()), &mut self.choices);
                self.choices.end(children.start);
            }
            self.choose(tree, &mut walks, level, uniform);
        }
        if tree.leaf_size() > 1 {
            self.enter_all(program, tree, &mut walks, uniform);
        }
        walks.sort_unstable_by_key(|walk| walk.number);
        self.walks = walks;
    }

    /// Lets walks make the choices of a level; walks are in the order of their places.
    fn choose(&mut self, tree: &Tree<T>, walks: &mut [Walk], level: usize, uniform: &mut dyn FnMut() -> f64) {
        let span = tree.span(level);
        self.choices.weigh(|place| tree.classes.present_in(tree.classes_of(place, span)));
        for (choice, group) in self.choices.all().iter().zip(groups(walks)) {
            group.iter_mut().for_each(|walk| walk.go(&self.choices, choice, span, uniform));
            if group.len() > 1 {
                group.sort_unstable_by_key(|walk| (walk.place, walk.number));
            }
            groups(group).for_each(|group| fetch(tree, level + 1, group[0].place));
        }
    }

    /// Takes walks from their leaves to classes, some leaves at a time.
    fn enter_all(
        &mut self,
        program: &Program<T>,
        tree: &Tree<T>,
        mut walks: &mut [Walk],
        uniform: &mut dyn FnMut() -> f64,
    ) {
        while !walks.is_empty() {
            let (mut count, mut classes) = (0, 0);
            for group in walks.chunk_by(|a, b| a.place == b.place) {
                classes += tree.leaf(group[0].place).len();
                if classes > CLASSES && count > 0 {
                    break;
                }
                count += group.len();
            }
            let (some, others) = std::mem::take(&mut walks).split_at_mut(count);
            self.enter(program, tree, some, uniform);
            walks = others;
        }
    }

    /// Takes walks from some leaves to classes.
    fn enter(
        &mut self,
        program: &Program<T>,
        tree: &Tree<T>,
        walks: &mut [Walk],
        uniform: &mut dyn FnMut() -> f64,
    ) {
        self.points.clear();
        for group in groups(walks) {
            self.points.extend_from_slice(tree.points(tree.leaf(group[0].place)));
        }
        let d = program.facts().dim;
        let x = matrix_view(self.points.len() / d, d, &self.points);
        let form = tree.reference.form;
        self.batch.fill(program, Side::Y, form, x.into(), &mut self.scratch);
        self.choices.clear();
        let mut row = 0;
        for group in groups(walks) {
            let classes = tree.leaf(group[0].place);
            for class in tree.classes.removed_in(classes.clone()) {
                self.batch.row_mut(row + class - classes.start).log_scales.fill(f64::NEG_INFINITY);
            }
            for row in row..row + classes.len() {
                self.query.product(program.blocks(), form, self.batch.row_mut(row), &mut self.choices);
            }
            row += classes.len();
            self.choices.end(classes.start);
        }
        self.choose(tree, walks, tree.levels().len(), uniform);
    }
}

/// Prefetches the memory that a walk at this place will read next.
fn fetch<T: Real>(tree: &Tree<T>, level: usize, place: usize) {
    if let Some(nodes) = tree.levels().get(level) {
        let rows = nodes.rows(nodes.children(place));
        prefetch(rows.log_scales);
        prefetch(rows.values);
    } else if level == tree.levels().len() && tree.leaf_size() > 1 {
        let points = tree.points(tree.leaf(place));
        prefetch(&points[..points.len().min(AHEAD)]);
    }
}

/// The groups of walks at one place; walks are sorted by place.
fn groups(walks: &mut [Walk]) -> impl Iterator<Item = &mut [Walk]> {
    walks.chunk_by_mut(|a, b| a.place == b.place)
}
