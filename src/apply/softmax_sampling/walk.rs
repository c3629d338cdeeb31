//! [`Walker`]: many walks from the root to classes for one h; each node that they pass is evaluated once.

use ndarray::ArrayView2;

use super::choice::{Choice, Estimates};
use super::features::Query;
use super::tree::Tree;
use crate::Real;
use crate::engine::{Batch, Program, Scratch, Side};
use crate::numeric::prefetch;

/// Classes of visited leaves whose features are computed at a time.
const CLASSES: usize = 512;

/// Places whose memory is fetched ahead of those that are looked at.
const AHEAD: usize = 4;

/// A walk on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Walk {
    /// Which of the walks it is.
    pub number: usize,
    /// Where it is: a node of a level, a leaf, and in the end the class.
    pub place: usize,
    /// The class where it must arrive, if it is not left to chance.
    pub target: Option<usize>,
    /// ln of the probability of the way so far.
    pub ln: f64,
    /// The share of mass that was not clipped on the way.
    pub kept: f64,
}

impl Walk {
    /// At the root.
    pub fn new(number: usize, target: Option<usize>) -> Self {
        Walk { number, place: 0, target, ln: 0.0, kept: 1.0 }
    }

    /// Goes on to one of the alternatives, of which the first is node `first` of `span` classes each.
    fn go(
        &mut self,
        (choice, estimates): (&Choice, &Estimates),
        first: usize,
        span: usize,
        uniform: &mut dyn FnMut() -> f64,
    ) {
        let i = match self.target {
            Some(target) => target / span - first,
            None => choice.pick(uniform()),
        };
        self.place = first + i;
        self.ln += choice.log_probability(estimates, i);
        self.kept *= 1.0 - choice.clipped;
    }
}

/// What a thread keeps from h to h.
#[derive(Default)]
pub(super) struct Walker<T> {
    pub query: Query<T>,
    pub scratch: Scratch<T>,
    estimates: Estimates,
    places: Vec<usize>,
    choice: Choice,
    batch: Batch<T>,
    points: Vec<T>,
}

impl<T: Real> Walker<T> {
    /// Takes all walks to classes, for the query's h. Walks are sorted by where they are, and go on in that order.
    pub fn run(
        &mut self,
        program: &Program<T>,
        tree: &Tree<T>,
        walks: &mut [Walk],
        uniform: &mut dyn FnMut() -> f64,
    ) {
        for (level, nodes) in tree.levels().iter().enumerate() {
            let span = tree.span(level);
            self.sort(walks);
            let fetch = |place: usize| {
                let rows = nodes.rows(nodes.children(place));
                prefetch(rows.values);
                prefetch(rows.log_scales);
            };
            self.places.iter().take(AHEAD).for_each(|place| fetch(*place));
            for (i, group) in groups(walks).enumerate() {
                self.places.get(i + AHEAD).into_iter().for_each(|place| fetch(*place));
                let children = nodes.children(group[0].place);
                self.estimates.clear();
                self.query.products(program.blocks(), nodes.rows(children.clone()), &mut self.estimates);
                let counts = children.clone().map(|node| tree.classes_of(node, span).len());
                self.choice.weigh(&mut self.estimates, counts);
                let choice = (&self.choice, &self.estimates);
                group.iter_mut().for_each(|walk| walk.go(choice, children.start, span, uniform));
            }
        }
        self.enter_all(program, tree, walks, uniform);
        walks.sort_unstable_by_key(|walk| walk.number);
    }

    /// Sorts walks by place, and lists the places.
    fn sort(&mut self, walks: &mut [Walk]) {
        walks.sort_unstable_by_key(|walk| (walk.place, walk.number));
        self.places.clear();
        self.places.extend(walks.iter().map(|walk| walk.place));
        self.places.dedup();
    }

    /// Takes walks from their leaves to classes, some leaves at a time.
    fn enter_all(
        &mut self,
        program: &Program<T>,
        tree: &Tree<T>,
        walks: &mut [Walk],
        uniform: &mut dyn FnMut() -> f64,
    ) {
        let (mut leaves, mut count) = (Vec::new(), 0);
        self.sort(walks);
        for group in groups(walks) {
            let classes = tree.leaf(group[0].place).len();
            if count + classes > CLASSES && !leaves.is_empty() {
                self.enter(program, tree, &mut leaves, uniform);
                count = 0;
            }
            count += classes;
            leaves.push(group);
        }
        self.enter(program, tree, &mut leaves, uniform);
    }

    /// Takes walks from some leaves, a group for each, to classes.
    fn enter(
        &mut self,
        program: &Program<T>,
        tree: &Tree<T>,
        leaves: &mut Vec<&mut [Walk]>,
        uniform: &mut dyn FnMut() -> f64,
    ) {
        self.points.clear();
        let several = |group: &&mut [Walk]| Some(tree.leaf(group[0].place)).filter(|leaf| leaf.len() > 1);
        for (i, classes) in leaves.iter().filter_map(several).enumerate() {
            let next = leaves.get(i + AHEAD).and_then(several);
            next.into_iter().for_each(|classes| prefetch(tree.points(classes)));
            self.points.extend_from_slice(tree.points(classes));
        }
        let rows = self.points.len() / program.facts().input_dim;
        let shape = (rows, program.facts().input_dim);
        let Ok(x) = ArrayView2::from_shape(shape, &self.points) else { return };
        let form = tree.reference.form;
        self.batch.fill(program, (Side::Y, form), x.into(), &mut self.scratch);
        let mut row = 0;
        for group in leaves.drain(..) {
            let classes = tree.leaf(group[0].place);
            if classes.len() == 1 {
                group.iter_mut().for_each(|walk| walk.place = classes.start);
                continue;
            }
            self.estimates.clear();
            for _ in classes.clone() {
                let features = self.batch.row_mut(row);
                self.query.product(program.blocks(), form, features, &mut self.estimates);
                row += 1;
            }
            self.choice.weigh(&mut self.estimates, classes.clone().map(|_| 1));
            let choice = (&self.choice, &self.estimates);
            group.iter_mut().for_each(|walk| walk.go(choice, classes.start, 1, uniform));
        }
    }
}

/// Walks that are at the same place, together, of those that are sorted.
fn groups(walks: &mut [Walk]) -> impl Iterator<Item = &mut [Walk]> {
    walks.chunk_by_mut(|a, b| a.place == b.place)
}
