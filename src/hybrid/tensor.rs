//! Tensor products of features: what a product of two estimates is.

use std::ops::Range;

use super::room::Row;
use crate::Real;
use crate::map::{Side, Tile};
use crate::numeric::{self, Isa};

/// A block of a product: a block of a coefficient's features times one of a base's, and a weight.
#[derive(Clone, Debug)]
pub(super) struct Product {
    /// The coefficient's; without it the one feature 1.
    pub left: Option<Block>,
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
    pub fn width(&self) -> usize {
        self.left.as_ref().map_or(1, |left| left.columns.len()) * self.right.columns.len()
    }

    /// The logarithmic scale, from those of all parts.
    fn scale(&self, parts: &[f64]) -> f64 {
        let left = self.left.as_ref().map_or(0.0, |left| parts[left.index]);
        left + parts[self.right.index] + self.half_weight
    }

    fn sign<T: Real>(&self, side: Side) -> T {
        if self.negative && side == Side::Y { -T::one() } else { T::one() }
    }
}

/// Writes the products of a row of parts to row `i`; where side Y is meant, with the signs of the weights.
pub(super) fn multiply<T: Real>(
    products: &[Product],
    parts: &Row<'_, T>,
    side: Side,
    tile: &mut Tile<'_, T>,
    i: usize,
) {
    let (isa, one) = (Isa::best(), [T::one()]);
    write(products, parts, tile, i, |product, values, _| {
        let left = product.left.as_ref().map_or(&one[..], |left| &parts.values[left.columns.clone()]);
        numeric::outer(isa, values, product.sign(side), left, &parts.values[product.right.columns.clone()]);
    });
}

/// As [`multiply`], where values are logarithms.
pub(super) fn add<T: Real>(
    products: &[Product],
    parts: &Row<'_, T>,
    side: Side,
    tile: &mut Tile<'_, T>,
    i: usize,
) {
    // The logarithm of 1, and its sign.
    let (zero, plus) = ([T::zero()], [T::one()]);
    write(products, parts, tile, i, |product, values, signs| {
        let right = product.right.columns.clone();
        let left = product.left.as_ref().map(|left| left.columns.clone());
        let left_values = left.clone().map_or(&zero[..], |left| &parts.values[left]);
        let left_signs = left.map_or(&plus[..], |left| &parts.signs[left]);
        combine(values, left_values, &parts.values[right.clone()], |a, b| a + b);
        combine(signs, left_signs, &parts.signs[right], |a, b| product.sign::<T>(side) * a * b);
    });
}

/// Writes the scales of row `i` and lets `write` have the values and signs of each block that is not absent.
fn write<T: Real>(
    products: &[Product],
    parts: &Row<'_, T>,
    tile: &mut Tile<'_, T>,
    i: usize,
    write: impl Fn(&Product, &mut [T], &mut [T]),
) {
    let scales = tile.row(i).1;
    scales.iter_mut().zip(products).for_each(|(scale, product)| *scale = product.scale(parts.log_scales));
    let (mut values, mut signs) = tile.row_with_signs(i);
    for product in products {
        let width = product.width();
        let own = values.split_off_mut(..width).unwrap_or_default();
        let own_signs = signs.split_off_mut(..width).unwrap_or_default();
        if product.scale(parts.log_scales) != f64::NEG_INFINITY {
            write(product, own, own_signs);
        }
    }
}

/// out ← combine(aₚ, b_q), row by row.
fn combine<T: Real>(out: &mut [T], a: &[T], b: &[T], combine: impl Fn(T, T) -> T) {
    for (row, a) in out.chunks_exact_mut(b.len().max(1)).zip(a) {
        row.iter_mut().zip(b).for_each(|(out, b)| *out = combine(*a, *b));
    }
}
