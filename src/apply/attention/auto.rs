//! The choice between linear and exact attention.

use super::{Attended, Attention, Element, ExactAttention, Heads};
use crate::Real;
use crate::error::Result;
use crate::map::Map;
use crate::once::once;

/// The cost of a pair's weight beside its products, in multiplications.
const PAIR: usize = 40;

impl<T: Real> Attention<T> {
    /// [`bidirectional`](Attention::bidirectional) or [`causal`](Attention::causal), by linear or by
    /// [exact](Attention::exact_counterpart) attention, whichever is estimated to take fewer operations, those of exact pairs among
    /// them: the exact one for short sequences, up to the [crossover](Attention::crossover) where there are as many queries as keys, and for few queries or
    /// few keys. Always the linear one where [`exact_counterpart`](Attention::exact_counterpart) is `None`. The choice depends on shapes alone.
    ///
    /// # Errors
    /// As theirs.
    #[inline(never)]
    pub fn auto<E: Element<T>>(&self, heads: &Heads<'_, E>, causal: bool) -> Result<Attended<T>> {
        if causal {
            self.check_causal()?;
        }
        match self.exact_counterpart().filter(|_| self.normalised && self.is_short(heads, causal)) {
            Some(exact) => {
                self.check_inputs(heads)?;
                if causal { exact.causal(heads) } else { exact.bidirectional(heads) }
            }
            None if causal => self.causal(heads),
            None => self.bidirectional(heads),
        }
    }

    /// The exact attention that this one approximates, if every map is one of the softmax kernel with the same lengthscale in all
    /// coordinates.
    pub fn exact_counterpart(&self) -> Option<ExactAttention> {
        let first = softmax_lengthscale(&self.maps[0])?;
        let same = self.maps.iter().all(|map| softmax_lengthscale(map) == Some(first));
        let scale = (self.reading.factor / first).powi(2);
        let exact = ExactAttention::new();
        let exact = if self.reading.unit { exact.cosine(scale.recip()) } else { exact.scale(scale) };
        exact.ok().filter(|_| same && self.reading.epsilon == 0.0)
    }

    /// The length from which on linear attention is estimated to be faster than the exact one, for as many queries as keys:
    /// from operations alone, whose weights are fitted to times; the manual has a
    /// [table](crate::manual::experiments#attention).
    #[inline(never)]
    pub fn crossover(&self, d_v: usize, causal: bool) -> usize {
        let map = &self.maps[0];
        crossover([map.input_dim(), map.feature_dim(), d_v], self.exact_pairs_of_query(causal), causal)
    }

    /// How many keys of a query have exact weights, if there are so many.
    pub(super) fn exact_pairs_of_query(&self, causal: bool) -> usize {
        let after = if causal { 0 } else { self.window.after };
        self.window.before.saturating_add(after).saturating_add(self.exact.count())
    }

    /// Whether exact attention is estimated to take fewer operations.
    fn is_short<E>(&self, heads: &Heads<'_, E>, causal: bool) -> bool {
        let [_, _, _, d_v] = heads.output_dim();
        let (token, pair) = costs([self.maps[0].input_dim(), self.maps[0].feature_dim(), d_v]);
        let exact = self.exact_pairs_of_query(causal) as f64;
        let (mut linear, mut pairs) = (0.0, 0.0);
        for (queries, keys) in heads.ranges() {
            let (n, l) = (queries.len() as f64, keys.len() as f64);
            let seen = if causal { 0.5 * l } else { l };
            pairs += n * seen;
            linear += (n + l) * token as f64 + n * exact.min(seen) * pair as f64;
        }
        pairs * (pair as f64) < linear
    }
}

/// The length from which on linear attention of these dimensions, d, D and d_v, with so many exact pairs for each query is estimated
/// to be faster than the exact one, for as many queries as keys: where a query's pairs take as long as two tokens and its exact pairs.
pub(crate) fn crossover(dims: [usize; 3], exact: usize, causal: bool) -> usize {
    let (token, pair) = costs(dims);
    // Causal queries see half of the keys, on average.
    let share = if causal { 2 } else { 1 };
    (2 * share * token).div_ceil(pair).saturating_add(exact.saturating_mul(share))
}

/// The operations of a query or a key in linear attention, and of a pair in exact attention.
fn costs([d, features, d_v]: [usize; 3]) -> (usize, usize) {
    // A token: its features, and the sums that it is added to or multiplied with. A pair: its logit, weight and value. An operation
    // of a token takes twice the time of one of a pair at such lengths, as measured (`example attention --part crossover`).
    (2 * features * (d + d_v), d + d_v + PAIR)
}

/// ℓ of a map of the softmax kernel, if it is the same for all coordinates.
pub(super) fn softmax_lengthscale<T: Real>(map: &Map<T>) -> Option<f64> {
    let exponential = map.kernel()?.exponential().filter(|exponential| exponential.row == 0.0)?;
    exponential.lengthscale.isotropic()
}

once!(Attention::<T>::auto::<T>, Attention::<T>::crossover);
