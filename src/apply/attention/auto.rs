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
    /// [exact](Attention::exact_counterpart) attention, whichever is estimated to take fewer operations: the exact one for short
    /// sequences, up to the [crossover](Attention::crossover) where there are as many queries as keys, and for few queries or
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
        crossover(self.maps[0].input_dim(), self.maps[0].feature_dim(), d_v, causal)
    }

    /// Whether exact attention is estimated to take fewer operations.
    fn is_short<E>(&self, heads: &Heads<'_, E>, causal: bool) -> bool {
        let [_, _, _, d_v] = heads.output_dim();
        let (token, pair) = self.costs(d_v);
        let (mut tokens, mut pairs) = (0.0, 0.0);
        for (queries, keys) in heads.ranges() {
            let (n, l) = (queries.len() as f64, keys.len() as f64);
            tokens += n + l;
            pairs += if causal { 0.5 * n * l } else { n * l };
        }
        pairs * (pair as f64) < tokens * token as f64
    }

    fn costs(&self, d_v: usize) -> (usize, usize) {
        costs(self.maps[0].input_dim(), self.maps[0].feature_dim(), d_v)
    }
}

/// The length from which on linear attention with so many features is estimated to be faster than the exact one, for as many queries as keys.
pub(crate) fn crossover(d: usize, features: usize, d_v: usize, causal: bool) -> usize {
    let (token, pair) = costs(d, features, d_v);
    (if causal { 4 * token } else { 2 * token }).div_ceil(pair)
}

/// The operations of a query or a key in linear attention, and of a pair in exact attention.
fn costs(d: usize, features: usize, d_v: usize) -> (usize, usize) {
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
