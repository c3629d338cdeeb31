//! [`Group`]: points of both sides of which every pair may occur.

use ndarray::{Array2, Axis};
use rand::Rng;
use rand::seq::SliceRandom;

use crate::planner::question::PlannedPoints;

/// The number of pairs of a point with itself, for points of one set.
const DIAGONAL: usize = 200;

/// Points of both sides of which every pair may occur.
pub(super) struct Group {
    pub x: Array2<f64>,
    pub y: Array2<f64>,
    pub one_set: bool,
    /// The number of all points of side X, of which these are a sample.
    count: usize,
}

/// The heads of attention, or all points.
pub(super) fn groups(data: &PlannedPoints) -> Vec<Group> {
    let [x, y] = &data.sides;
    let of = |x: &Array2<f64>, y: &Array2<f64>| Group {
        x: x.clone(),
        y: y.clone(),
        one_set: data.one_set,
        count: data.sides[0].count(),
    };
    match data.heads.len() {
        0 | 1 => vec![of(&x.points, &y.points)],
        _ => data.heads.iter().map(|head| of(&head.queries, &head.keys)).collect(),
    }
}

impl Group {
    /// Whether all pairs are hardly more than so many.
    pub fn is_small(&self, most: usize) -> bool {
        self.x.nrows().saturating_mul(self.y.nrows()) <= 2 * most
    }

    pub fn all_pairs(&self) -> Vec<(usize, usize)> {
        let (n, l) = (self.x.nrows(), self.y.nrows());
        (0..n).flat_map(|i| (0..l).map(move |j| (i, j))).filter(|(i, j)| !self.one_set || i != j).collect()
    }

    /// All pairs if there are few; else each point with as many others as there are shifts of a random order. Of one set, none of
    /// a point with itself.
    pub fn pairs(&self, most: usize, rng: &mut impl Rng) -> Vec<(usize, usize)> {
        if self.is_small(most) {
            return self.all_pairs();
        }
        let (n, l) = (self.x.nrows(), self.y.nrows());
        let [mut left, mut right] = [(0..n).collect::<Vec<_>>(), (0..l).collect()];
        left.shuffle(rng);
        if self.one_set {
            right.clone_from(&left);
        } else {
            right.shuffle(rng);
        }
        (0..most).map(|k| (left[k % n], right[(k + k / n + usize::from(self.one_set)) % l])).collect()
    }

    /// Some of the points of each side, drawn at random.
    pub fn some(&self, size: usize, rng: &mut impl Rng) -> Group {
        let mut rows = |x: &Array2<f64>| {
            let mut rows: Vec<usize> = (0..x.nrows()).collect();
            rows.shuffle(rng);
            rows.truncate(size);
            rows
        };
        let left = rows(&self.x);
        let right = if self.one_set { left.clone() } else { rows(&self.y) };
        Group { x: self.x.select(Axis(0), &left), y: self.y.select(Axis(0), &right), ..*self }
    }

    /// The pairs with the share of each: of one set, pairs of some points with themselves are added, with their own.
    pub fn with_diagonal(&self, pairs: &[(usize, usize)]) -> (Vec<(usize, usize)>, Vec<f64>) {
        let own = if self.one_set { (self.count as f64).recip() } else { 0.0 };
        // The left points of a sample of pairs are in random order.
        let mut points: Vec<usize> = match self.x.nrows() <= DIAGONAL {
            true => (0..self.x.nrows()).collect(),
            false => pairs.iter().map(|pair| pair.0).take(DIAGONAL).collect(),
        };
        points.sort_unstable();
        let diagonal: Vec<_> = points.into_iter().filter(|_| self.one_set).map(|i| (i, i)).collect();
        let mut weights = vec![(1.0 - own) / pairs.len() as f64; pairs.len()];
        weights.resize(pairs.len() + diagonal.len(), own / diagonal.len() as f64);
        (pairs.iter().copied().chain(diagonal).collect(), weights)
    }
}
