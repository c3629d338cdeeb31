//! Tensor products of features: what a product of two estimates is.

use std::sync::Arc;

use ndarray::ArrayView2;

use crate::map::batch::ranges;
use crate::map::{Projected, Scratch, Side, Tile};
use crate::numeric::{self, Isa};
use crate::projection::Projection;
use crate::{FeatureMap, Real};

/// The features of one part on a tile.
pub(super) struct Filled<T> {
    pub values: Vec<T>,
    log_scales: Vec<f64>,
    signs: Vec<T>,
    width: usize,
    blocks: usize,
}

impl<T: Real> Filled<T> {
    fn row(&self, i: usize) -> (&[T], &[T], &[f64]) {
        let columns = i * self.width..(i + 1) * self.width;
        let signs = if self.signs.is_empty() { &[][..] } else { &self.signs[columns.clone()] };
        (&self.values[columns], signs, &self.log_scales[i * self.blocks..(i + 1) * self.blocks])
    }
}

impl<T: Real> Filled<T> {
    fn empty(map: &dyn FeatureMap<T>, rows: usize, scratch: &mut Scratch<T>) -> Self {
        let (width, blocks) = (map.feature_dim(), map.blocks().len());
        let (values, log_scales) = (scratch.take(rows * width), vec![0.0; rows * blocks]);
        Filled { values, log_scales, signs: Vec::new(), width, blocks }
    }

    fn tile(&mut self, rows: usize) -> Option<Tile<'_, T>> {
        Tile::new(&mut self.values, &mut self.log_scales, rows, self.width, self.blocks)
    }
}

/// The features of one map, or their logarithms and signs, which are taken of the features if it has none itself.
pub(super) fn fill_one<T: Real>(
    map: &dyn FeatureMap<T>,
    side: Side,
    x: ArrayView2<'_, T>,
    scratch: &mut Scratch<T>,
    logarithmic: bool,
) -> Filled<T> {
    let rows = x.nrows();
    let mut filled = Filled::empty(map, rows, scratch);
    if logarithmic {
        let mut signs = vec![T::one(); filled.values.len()];
        let tile = filled.tile(rows).map(|tile| tile.with_signs(&mut signs));
        let done = tile.is_some_and(|mut tile| map.fill_exponents(side, x, &mut tile, scratch));
        filled.signs = signs;
        if done {
            return filled;
        }
    }
    if let Some(mut tile) = filled.tile(rows) {
        map.fill(side, x, &mut tile, scratch);
    }
    if logarithmic {
        for (sign, value) in filled.signs.iter_mut().zip(&mut filled.values) {
            (*sign, *value) = (value.signum(), value.abs().ln());
        }
    }
    filled
}

/// A projection that several parts share, taken once.
pub(super) struct Shared<'a, T> {
    pub projection: &'a Arc<Projection<T>>,
    pub values: Vec<T>,
    squared_norms: Vec<f64>,
}

impl<'a, T: Real> Shared<'a, T> {
    pub fn project(
        projection: &'a Arc<Projection<T>>,
        x: ArrayView2<'_, T>,
        scratch: &mut Scratch<T>,
    ) -> Self {
        let (rows, count) = (x.nrows(), projection.count());
        let (mut values, mut squared_norms) = (scratch.take(rows * count), vec![0.0; rows]);
        if let Some(mut tile) = Tile::new(&mut values, &mut squared_norms, rows, count, 1) {
            projection.project(x, &mut tile, scratch);
        }
        Shared { projection, values, squared_norms }
    }

    pub fn fill(
        &self,
        map: &dyn FeatureMap<T>,
        side: Side,
        rows: usize,
        scratch: &mut Scratch<T>,
    ) -> Filled<T> {
        let mut filled = Filled::empty(map, rows, scratch);
        let projected = Projected { values: &self.values, squared_norms: &self.squared_norms };
        if let Some(mut tile) = filled.tile(rows) {
            map.fill_projected(side, &projected, &mut tile);
        }
        filled
    }
}

/// A coefficient's features times a base's, and a weight.
pub(super) struct Product<'a, T> {
    /// The coefficient's; without it the one feature 1.
    pub left: Option<&'a Filled<T>>,
    pub left_widths: &'a [usize],
    /// The base's.
    pub right: &'a Filled<T>,
    pub right_widths: &'a [usize],
    /// The sign of the weight, on side Y.
    pub sign: T,
    /// Half the logarithm of the weight's magnitude, for each side.
    pub half_weight: f64,
    /// Whether values are logarithms.
    pub logarithmic: bool,
}

impl<T: Real> Product<'_, T> {
    /// Writes the tensor products of all pairs of blocks for row `i`, from column and block `at` on, which it moves on.
    pub fn write(&self, i: usize, tile: &mut Tile<'_, T>, at: &mut (usize, usize)) {
        // The logarithm of 1 is 0.
        let (one, plus, zero) = ([if self.logarithmic { T::zero() } else { T::one() }], [T::one()], [0.0]);
        let (left, left_signs, left_scales) =
            self.left.map_or((&one[..], &plus[..], &zero[..]), |left| left.row(i));
        let (right, right_signs, right_scales) = self.right.row(i);
        for (p, left_scale) in ranges(self.left_widths).zip(left_scales) {
            for (q, right_scale) in ranges(self.right_widths).zip(right_scales) {
                let columns = at.0..at.0 + p.len() * q.len();
                let scale = left_scale + right_scale + self.half_weight;
                tile.row(i).1[at.1] = scale;
                *at = (columns.end, at.1 + 1);
                // An absent block is neither computed nor read.
                if scale == f64::NEG_INFINITY {
                    continue;
                }
                let (values, signs) = tile.row_with_signs(i);
                if self.logarithmic {
                    outer(&mut values[columns.clone()], &left[p.clone()], &right[q.clone()], |a, b| a + b);
                    if !signs.is_empty() {
                        let sign = |a, b| self.sign * a * b;
                        outer(&mut signs[columns], &left_signs[p.clone()], &right_signs[q.clone()], sign);
                    }
                } else {
                    let rows = values[columns].chunks_exact_mut(q.len().max(1));
                    for (row, a) in rows.zip(&left[p.clone()]) {
                        numeric::scaled(Isa::best(), row, self.sign * *a, &right[q.clone()]);
                    }
                }
            }
        }
    }
}

/// out ← combine(aₚ, b_q), row by row.
fn outer<T: Real>(out: &mut [T], a: &[T], b: &[T], combine: impl Fn(T, T) -> T) {
    for (row, a) in out.chunks_exact_mut(b.len().max(1)).zip(a) {
        row.iter_mut().zip(b).for_each(|(out, b)| *out = combine(*a, *b));
    }
}
