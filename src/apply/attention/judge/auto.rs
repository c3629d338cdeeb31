//! The choice between linear and exact attention.

use super::super::input::{Attended, Attention, Element, Heads, kernel_lengthscale};
use super::super::pairs::ExactAttention;
use super::costs::Lengths;
use crate::Real;
use crate::error::Result;
use crate::map::Map;
use crate::once::once;

impl<T: Real> Attention<T> {
    /// [`bidirectional`](Attention::bidirectional) or [`causal`](Attention::causal), by linear or by
    /// [exact](Attention::exact_counterpart) attention, whichever is estimated to take fewer operations, those of exact pairs among
    /// them: the exact one for short sequences, up to the [crossover](Attention::crossover) where there are as many queries as keys, and for few queries or
    /// few keys. Always the linear one where [`exact_counterpart`](Attention::exact_counterpart) is `None`. The choice depends on shapes alone;
    /// [`choose`](Attention::choose) looks at errors too.
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
        self.exact_of(kernel_lengthscale)
    }

    /// The exact attention of maps that all have one lengthscale.
    pub(in super::super) fn exact_of(
        &self,
        lengthscale: impl Fn(&Map<T>) -> Option<f64>,
    ) -> Option<ExactAttention> {
        let first = lengthscale(&self.maps[0])?;
        let same = self.maps.iter().all(|map| lengthscale(map) == Some(first));
        let scale = (self.reading.factor / first).powi(2);
        let exact = ExactAttention::new();
        let exact = if self.reading.unit { exact.cosine(scale.recip()) } else { exact.scale(scale) };
        exact.ok().filter(|_| same && self.reading.epsilon == 0.0)
    }

    /// The length from which on linear attention is estimated to be faster than the exact one, for as many queries as keys:
    /// from operations alone, whose weights are fitted to times by the experiment `attention`.
    /// For lengths and an error to reach there is [`choose`](Attention::choose).
    #[inline(never)]
    pub fn crossover(&self, d_v: usize, causal: bool) -> usize {
        self.costs(d_v).crossover(causal, self.exact_pairs())
    }

    /// Whether exact attention is estimated to take fewer operations.
    fn is_short<E>(&self, heads: &Heads<'_, E>, causal: bool) -> bool {
        let [_, _, _, d_v] = heads.output_dim();
        let (costs, pairs) = (self.costs(d_v), self.exact_pairs());
        let (mut exact, mut linear) = (0.0, 0.0);
        for (queries, keys) in heads.ranges() {
            let lengths = Lengths { queries: queries.len(), keys: keys.len(), causal };
            exact += costs.exact(lengths);
            linear += costs.linear(lengths, pairs);
        }
        exact < linear
    }
}

once!(Attention::<T>::auto::<T>, Attention::<T>::crossover);
