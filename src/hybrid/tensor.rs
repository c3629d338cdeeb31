//! Tensor products of features: what a product of two estimates is.

use std::ops::Range;

use super::room::Room;
use crate::Real;
use crate::map::{Side, Tile};
use crate::numeric::{self, Isa};

/// A block of features: a block of a coefficient's times a block of a base's, and a weight.
#[derive(Clone, Debug)]
pub(super) struct Product {
    /// The coefficient's.
    pub left: Block,
    /// The base's.
    pub right: Block,
    /// Half the logarithm of the weight's magnitude, for each side.
    pub half_weight: f64,
    /// Whether the weight is negative, which is seen on side Y.
    pub negative: bool,
}

/// Where a block stands in a row of the features of all parts.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub columns: Range<usize>,
    pub index: usize,
}

impl Product {
    /// The number of features.
    #[inline]
    pub fn width(&self) -> usize {
        self.left.columns.len() * self.right.columns.len()
    }

    fn sign<T: Real>(&self, side: Side) -> T {
        if self.negative && side == Side::Y { -T::one() } else { T::one() }
    }

    /// The logarithmic scale, from those of the parts.
    #[inline]
    fn scale(&self, parts: &[f64]) -> f64 {
        parts[self.left.index] + parts[self.right.index] + self.half_weight
    }

    fn blocks_of<'a, T>(&self, row: &'a [T]) -> (&'a [T], &'a [T]) {
        (&row[self.left.columns.clone()], &row[self.right.columns.clone()])
    }
}

/// Writes products one after the other to the rows of a tile, from the features of all parts.
pub(super) fn multiply<T: Real>(products: &[Product], side: Side, parts: &Room<T>, tile: &mut Tile<'_, T>) {
    let isa = Isa::best();
    for i in 0..tile.rows() {
        let (parts, (mut values, scales)) = (parts.row(i), tile.row(i));
        for (product, scale) in products.iter().zip(scales) {
            let (own, rest) = values.split_at_mut(product.width());
            *scale = product.scale(parts.log_scales);
            // An absent block is neither computed nor read.
            if *scale != f64::NEG_INFINITY {
                let (left, right) = product.blocks_of(parts.values);
                numeric::outer(isa, own, product.sign(side), left, right);
            }
            values = rest;
        }
        tile.complete(i + 1);
    }
}

/// As [`multiply`], where values are logarithms and have signs.
pub(super) fn add<T: Real>(products: &[Product], side: Side, parts: &Room<T>, tile: &mut Tile<'_, T>) {
    for i in 0..tile.rows() {
        let parts = parts.row(i);
        let scales = tile.row(i).1.iter_mut().zip(products);
        scales.for_each(|(scale, product)| *scale = product.scale(parts.log_scales));
        let (mut values, mut signs) = tile.row_with_signs(i);
        for product in products {
            let (own, rest) = values.split_at_mut(product.width());
            let (own_signs, rest_of_signs) = signs.split_at_mut(own.len().min(signs.len()));
            if product.scale(parts.log_scales) != f64::NEG_INFINITY {
                combine(own, product.blocks_of(parts.values), |a, b| a + b);
                combine(own_signs, product.blocks_of(parts.signs), |a, b| product.sign::<T>(side) * a * b);
            }
            (values, signs) = (rest, rest_of_signs);
        }
    }
}

/// out ← combine(aₚ, b_q), for one p after the other.
fn combine<T: Real>(out: &mut [T], (a, b): (&[T], &[T]), combine: impl Fn(T, T) -> T) {
    for (row, a) in out.chunks_exact_mut(b.len().max(1)).zip(a) {
        row.iter_mut().zip(b).for_each(|(out, b)| *out = combine(*a, *b));
    }
}
