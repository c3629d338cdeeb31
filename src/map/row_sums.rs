//! [`RowSums`]: a row of a Gram matrix while it is being summed.

use super::gram::{BlockTerms, scaled};
use super::pairing::WeightRow;
use crate::Real;
use crate::numeric::{Isa, exp_minus, raise_scales};

/// One row of a Gram matrix while it is being summed: for each entry, a sum over blocks relative to the entry's largest
/// scale.
#[derive(Default)]
pub(super) struct RowSums {
    /// ln of the largest scale of the entry's blocks.
    top: Vec<f64>,
    sum: Vec<f64>,
    /// The magnitude below which the sum may be inaccurate because of underflow.
    floor: Vec<f64>,
    /// e^(a block's scale − top), then e^top.
    weight: Vec<f64>,
    scratch: Vec<f64>,
}

impl RowSums {
    /// Starts a row with the blocks that are present in it.
    pub fn start<'a, T: Real>(&mut self, len: usize, blocks: impl Iterator<Item = BlockTerms<'a, T>>) {
        for (v, start) in [(&mut self.sum, 0.0), (&mut self.floor, 0.0), (&mut self.top, f64::NEG_INFINITY)] {
            v.clear();
            v.resize(len, start);
        }
        self.weight.resize(len, 0.0);
        for terms in blocks {
            // NaN is kept.
            let larger = |top: f64, scale: f64| if scale <= top { top } else { scale };
            terms.each().for_each(|(j, scale)| self.top[j] = larger(self.top[j], scale));
        }
    }

    /// Adds a block.
    pub fn add<T: Real>(&mut self, terms: &BlockTerms<'_, T>) {
        let floor = terms.floor();
        let weight = &mut self.weight[..terms.products.len()];
        for (weight, (j, scale)) in weight.iter_mut().zip(terms.each()) {
            // A scale of −∞ cannot be subtracted.
            *weight = if self.top[j] == f64::NEG_INFINITY { scale } else { scale - self.top[j] };
        }
        exp_minus(Isa::best(), weight, 0.0);
        for ((product, weight), (j, _)) in terms.products.iter().zip(weight).zip(terms.each()) {
            self.sum[j] += product.widen() * *weight;
            self.floor[j] += floor * *weight;
        }
    }

    /// Adds estimates times weights, skipping weights of 0.
    pub fn add_weighted(&mut self, weights: &WeightRow, other: &RowSums) {
        let len = self.sum.len();
        let taken = |j: usize| {
            let (weight, floor) = (weights.value[j], weights.floor[j]);
            (weight != 0.0 || floor != 0.0) && other.top[j] != f64::NEG_INFINITY
        };
        // Both sums are taken relative to the larger scale.
        self.scratch.resize(len, 0.0);
        for (j, its) in self.scratch.iter_mut().enumerate() {
            *its = if taken(j) { other.top[j] } else { f64::NEG_INFINITY };
        }
        raise_scales(Isa::best(), &mut self.top, &mut self.weight[..len], &mut self.scratch);
        for j in (0..len).filter(|j| taken(*j)) {
            let (weight, floor, sum) = (weights.value[j], weights.floor[j], other.sum[j]);
            self.sum[j] = self.sum[j] * self.weight[j] + weight * sum * self.scratch[j];
            let added = (weight.abs() * other.floor[j] + floor * sum.abs()) * self.scratch[j];
            self.floor[j] = self.floor[j] * self.weight[j] + added;
        }
    }

    /// Computes the exponentials of the scales.
    pub fn resolve_scales(&mut self) {
        self.weight.copy_from_slice(&self.top);
        exp_minus(Isa::best(), &mut self.weight, 0.0);
    }

    /// The sums and their floors, after [`resolve_scales`](RowSums::resolve_scales).
    pub fn resolved(&self) -> impl Iterator<Item = (f64, f64)> {
        let sums = self.sum.iter().zip(&self.floor).zip(&self.weight);
        sums.map(|((sum, floor), weight)| (sum * weight, floor * weight))
    }

    /// Writes the row and reports the entries that are not resolved.
    pub fn finish<T: Real>(&mut self, out: &mut [T], mut unresolved: impl FnMut(usize)) {
        self.resolve_scales();
        for (j, out) in out.iter_mut().enumerate() {
            let weight = self.weight[j];
            let times =
                |v: f64| if weight > 0.0 && weight.is_finite() { v * weight } else { scaled(v, self.top[j]) };
            *out = T::narrow(times(self.sum[j]));
            // An entry that underflows T anyway need not be recomputed.
            if self.sum[j].abs() <= self.floor[j] && times(self.floor[j]) >= T::min_positive_value().widen() {
                unresolved(j);
            }
        }
    }
}
