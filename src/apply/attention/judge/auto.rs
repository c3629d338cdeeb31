//! The choice between linear and exact attention.

use super::super::input::{Attended, Attention, Heads, TokenElement, kernel_lengthscale};
use super::super::pairs::ExactAttention;
use super::costs::Lengths;
use crate::Real;
use crate::error::Result;
use crate::map::Map;
use crate::once::once;

impl<T: Real> Attention<T> {
    /// Every query attends to all keys, by linear attention or by its [exact counterpart](Attention::exact_counterpart), whichever is
    /// estimated to take fewer operations.
    ///
    /// Exact attention is taken for few queries or few keys and, with as many queries as keys, for lengths up to the
    /// [crossover](Attention::bidirectional_crossover). It is never taken if there is no exact counterpart. The choice
    /// depends on shapes alone. [`choose`](Attention::choose) looks at errors too.
    ///
    /// # Errors
    /// The errors of [`bidirectional`](Attention::bidirectional).
    #[inline(never)]
    pub fn bidirectional_auto<E: TokenElement<T>>(&self, heads: &Heads<'_, E>) -> Result<Attended<T>> {
        self.auto(heads, false)
    }

    /// Every query attends to the keys up to its own place, by linear or by exact attention, whichever is estimated to take fewer
    /// operations, as by [`bidirectional_auto`](Attention::bidirectional_auto).
    ///
    /// # Errors
    /// The errors of [`causal`](Attention::causal).
    #[inline(never)]
    pub fn causal_auto<E: TokenElement<T>>(&self, heads: &Heads<'_, E>) -> Result<Attended<T>> {
        self.check_causal()?;
        self.auto(heads, true)
    }

    fn auto<E: TokenElement<T>>(&self, heads: &Heads<'_, E>, causal: bool) -> Result<Attended<T>> {
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
        let exact =
            if self.reading.unit { exact.with_cosine(scale.recip()) } else { exact.with_scale(scale) };
        exact.ok().filter(|_| same)
    }

    /// The length from which on bidirectional linear attention is estimated to be faster than the exact one, for as many queries as
    /// keys and values in ℝ^d_v.
    ///
    /// It follows from operations alone, whose weights are fitted to times by the experiment `attention`.
    /// [`choose`](Attention::choose) takes an error to reach into account too.
    #[inline(never)]
    pub fn bidirectional_crossover(&self, d_v: usize) -> usize {
        self.costs(d_v).crossover(false, self.exact_pairs())
    }

    /// The length from which on causal linear attention is estimated to be faster than the exact one, for values in ℝ^d_v, by the rule
    /// of [`bidirectional_crossover`](Attention::bidirectional_crossover).
    #[inline(never)]
    pub fn causal_crossover(&self, d_v: usize) -> usize {
        self.costs(d_v).crossover(true, self.exact_pairs())
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

once!(
    Attention::<T>::bidirectional_auto::<T>,
    Attention::<T>::causal_auto::<T>,
    Attention::<T>::bidirectional_crossover,
    Attention::<T>::causal_crossover,
);
