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
    pub fn width(&self) -> usize {
        self.left.columns.len() * self.right.columns.len()
    }

    /// Writes the products of the parts' features to a tile of their own.
    pub fn multiply<T: Real>(&self, side: Side, parts: &Room<T>, tile: &mut Tile<'_, T>) {
        let (isa, sign) = (Isa::best(), self.sign(side));
        for i in 0..tile.rows() {
            let (parts, (values, scales)) = (parts.row(i), tile.row(i));
            scales[0] = self.scale(parts.log_scales);
            // An absent block is neither computed nor read.
            if scales[0] != f64::NEG_INFINITY {
                let (left, right) =
                    (&parts.values[self.left.columns.clone()], &parts.values[self.right.columns.clone()]);
                numeric::outer(isa, values, sign, left, right);
            }
        }
    }

    /// As [`multiply`](Product::multiply), where values are logarithms.
    pub fn add<T: Real>(&self, side: Side, parts: &Room<T>, tile: &mut Tile<'_, T>) {
        let sign = self.sign::<T>(side);
        for i in 0..tile.rows() {
            let parts = parts.row(i);
            let scale = self.scale(parts.log_scales);
            tile.row(i).1[0] = scale;
            if scale != f64::NEG_INFINITY {
                let (values, signs) = tile.row_with_signs(i);
                self.combine(values, parts.values, |a, b| a + b);
                self.combine(signs, parts.signs, |a, b| sign * a * b);
            }
        }
    }

    fn sign<T: Real>(&self, side: Side) -> T {
        if self.negative && side == Side::Y { -T::one() } else { T::one() }
    }

    /// The logarithmic scale, from those of the parts.
    fn scale(&self, parts: &[f64]) -> f64 {
        parts[self.left.index] + parts[self.right.index] + self.half_weight
    }

    /// out ← combine(aₚ, b_q), for one p after the other.
    fn combine<T: Real>(&self, out: &mut [T], parts: &[T], combine: impl Fn(T, T) -> T) {
        let (left, right) = (&parts[self.left.columns.clone()], &parts[self.right.columns.clone()]);
        for (row, a) in out.chunks_exact_mut(right.len().max(1)).zip(left) {
            row.iter_mut().zip(right).for_each(|(out, b)| *out = combine(*a, *b));
        }
    }
}
