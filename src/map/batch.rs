//! [`Batch`]: features of a few points for use inside the crate, as logarithms where the map has them.

use ndarray::{Array2, ArrayView2, s};

use super::{FeatureMap, Scratch, Side, Tile};
use crate::numeric::{Isa, dot};
use crate::{Real, SignedLog};

/// Features of a few points: ln φ relative to the scales if `logarithmic`, else φ relative to them.
pub(crate) struct Batch<T> {
    pub values: Array2<T>,
    /// The signs of what `values` are the logarithms of.
    pub signs: Array2<T>,
    pub log_scales: Array2<f64>,
    pub logarithmic: bool,
}

impl<T: Real> Batch<T> {
    /// The features of the rows of `x`, as logarithms if the map has them.
    pub fn new<M: FeatureMap<T> + ?Sized>(map: &M, side: Side, x: ArrayView2<'_, T>) -> Self {
        let mut batch = Batch::empty(map, x.nrows());
        let mut scratch = Scratch::default();
        let signs = batch.signs.as_slice_mut().unwrap_or_default();
        let mut tile = Tile::of_arrays(&mut batch.values, &mut batch.log_scales).with_signs(signs);
        batch.logarithmic = map.fill_exponents(side, x, &mut tile, &mut scratch);
        if !batch.logarithmic {
            map.fill(side, x, &mut batch.tile(), &mut scratch);
        }
        batch
    }

    /// The features of one point on each side, both as logarithms or neither.
    pub fn of_pair<M: FeatureMap<T> + ?Sized>(
        map: &M,
        x: ArrayView2<'_, T>,
        y: ArrayView2<'_, T>,
    ) -> (Self, Self) {
        let (mut left, mut right) = (Batch::new(map, Side::X, x), Batch::new(map, Side::Y, y));
        if left.logarithmic != right.logarithmic {
            (left.logarithmic, right.logarithmic) = (false, false);
            map.fill(Side::X, x, &mut left.tile(), &mut Scratch::default());
            map.fill(Side::Y, y, &mut right.tile(), &mut Scratch::default());
        }
        (left, right)
    }

    fn empty<M: FeatureMap<T> + ?Sized>(map: &M, rows: usize) -> Self {
        Batch {
            values: Array2::zeros((rows, map.feature_dim())),
            signs: Array2::ones((rows, map.feature_dim())),
            log_scales: Array2::zeros((rows, map.blocks().len())),
            logarithmic: false,
        }
    }

    fn tile(&mut self) -> Tile<'_, T> {
        Tile::of_arrays(&mut self.values, &mut self.log_scales)
    }

    /// The estimate of row `i` and row `j` of `other`, from the blocks' widths. Both must be logarithmic or
    /// neither.
    pub fn estimate(&self, i: usize, other: &Batch<T>, j: usize, blocks: &[usize]) -> SignedLog {
        let scale = |b: usize| self.log_scales[[i, b]] + other.log_scales[[j, b]];
        let present = ranges(blocks).enumerate().filter(|(b, _)| scale(*b) != f64::NEG_INFINITY);
        if self.logarithmic {
            let (p, q) = (self.values.row(i), other.values.row(j));
            let (s, t) = (self.signs.row(i), other.signs.row(j));
            let term = |(b, f): (usize, usize)| {
                let exponent = SignedLog::positive(scale(b) + (p[f].widen() + q[f].widen()));
                SignedLog { sign: (s[f] * t[f]).widen() * exponent.sign, ..exponent }
            };
            SignedLog::sum(present.flat_map(|(b, columns)| columns.map(move |f| (b, f))).map(term))
        } else {
            let product = |columns: std::ops::Range<usize>| {
                let right = other.values.slice(s![j, columns.clone()]).mapv(|v| v.widen()).to_vec();
                let left = self.values.slice(s![i, columns]).to_vec();
                SignedLog::from(dot(Isa::best(), &left, &right))
            };
            let terms: Vec<_> = present.map(|(b, columns)| product(columns).scaled(scale(b))).collect();
            SignedLog::sum(terms.into_iter())
        }
    }
}

/// The column ranges of blocks of these widths.
pub(crate) fn ranges(blocks: &[usize]) -> impl Iterator<Item = std::ops::Range<usize>> + Clone + '_ {
    blocks.iter().scan(0, |start, width| {
        let range = *start..*start + width;
        *start = range.end;
        Some(range)
    })
}
