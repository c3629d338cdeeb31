//! [`KeyWeights`]: the scales of a chunk's keys beside each other and beside the keys before them.

use super::chunk::Chunk;
use crate::Real;
use crate::numeric::{self, Isa};
use crate::reduce::RunSums;

/// The scales of the keys that one query after the other sees, relative to the largest of them.
#[derive(Debug, Default)]
pub(in super::super) struct KeyWeights<T> {
    weights: Vec<T>,
    /// ln of what the weights are relative to.
    reference: f64,
}

impl<T: Real> KeyWeights<T> {
    /// Begins with a query of a chunk; each sees one key more than the one before.
    pub fn begin(&mut self) {
        self.weights.clear();
        self.reference = f64::NEG_INFINITY;
    }

    /// Goes on to the next query, which sees `end` keys of the chunk and those before it: ln of the scale that all are relative to, and
    /// the weight of the keys before. `None` if it sees nothing but zeros.
    pub fn see(&mut self, chunk: &Chunk<T>, before: &RunSums<T>, end: usize) -> Option<(f64, f64)> {
        let own = chunk.largest(end).max(before.precision.scale);
        if own == f64::NEG_INFINITY {
            return None;
        }
        let known = if own == self.reference { self.weights.len() } else { 0 };
        self.reference = own;
        self.weights.truncate(known);
        self.weights.extend(chunk.scales(known..end).map(|scale| T::narrow(scale - own)));
        numeric::exp_minus(Isa::best(), &mut self.weights[known..], T::zero());
        Some((own, (before.precision.scale - own).exp()))
    }

    /// The weights of the keys of the chunk that the query sees.
    pub fn of_keys(&self) -> &[T] {
        &self.weights
    }

    /// Weighs the products of the next query with the keys that it sees in the chunk, and its products with the sums over the keys
    /// before it: ln of their scale, and the normaliser.
    pub fn weigh(
        &mut self,
        chunk: &Chunk<T>,
        before: &RunSums<T>,
        query: &[T],
        products: &mut [T],
        sums: &mut [T],
    ) -> (f64, f64) {
        let isa = Isa::best();
        let Some((own, rest)) = self.see(chunk, before, products.len()) else {
            products.fill(T::zero());
            sums.fill(T::zero());
            return (f64::NEG_INFINITY, 0.0);
        };
        products.iter_mut().zip(&self.weights).for_each(|(product, weight)| *product *= *weight);
        if rest != 1.0 {
            numeric::affine(isa, sums, T::narrow(rest), &[]);
        }
        (own, rest * numeric::dot(isa, query, &before.weights) + numeric::plain_sum(isa, products))
    }
}
