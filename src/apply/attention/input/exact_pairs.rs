//! The options that give some pairs exact weights: [`KeyChoice`], the pairs of chosen keys, and [`Window`], the pairs of neighbours.

use std::ops::Range;

use super::attention::Attention;
use super::lengthscale::estimated_lengthscale;
use super::reading::Reading;
use crate::Real;
use crate::error::{Error, Result};
#[cfg(feature = "serde")]
use crate::tagged::named;

/// The keys near a query by place: the neighbours of the query at place i are the keys at places i − before < j ≤ i + after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Window {
    pub before: usize,
    pub after: usize,
}

impl Window {
    /// Whether no query has neighbours.
    pub fn is_none(self) -> bool {
        self == Window::default()
    }

    /// The most keys of a query's window.
    pub fn count(self) -> usize {
        self.before.saturating_add(self.after)
    }

    /// The window without later keys if attention is causal.
    pub fn of(self, causal: bool) -> Self {
        Window { after: if causal { 0 } else { self.after }, ..self }
    }

    /// The places of the neighbours of the query at a place.
    pub fn places(self, place: usize) -> Range<usize> {
        let end = place.saturating_add(1);
        end.saturating_sub(self.before)..end.saturating_add(self.after)
    }
}

/// Which keys of a sequence get exact weights.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) enum KeyChoice {
    /// No key.
    #[default]
    None,
    /// The keys with the largest total weights, of this number.
    Heaviest(usize),
    /// The keys in these rows, ascending.
    At(Vec<usize>),
}

impl KeyChoice {
    /// How many keys, if there are so many.
    pub fn count(&self) -> usize {
        match self {
            KeyChoice::None => 0,
            KeyChoice::Heaviest(count) => *count,
            KeyChoice::At(rows) => rows.len(),
        }
    }

    /// The bytes that the choice takes for each key of dimension d.
    pub fn bytes_of_key<T>(&self, d: usize) -> usize {
        match self {
            KeyChoice::None => 0,
            KeyChoice::At(_) => size_of::<bool>(),
            // Points in `T` and in `f64`, and weights.
            KeyChoice::Heaviest(_) => d.saturating_add(3).saturating_mul(size_of::<T>() + size_of::<f64>()),
        }
    }
}

#[cfg(feature = "serde")]
named!(KeyChoice, "a choice of keys" {
    "none" => None,
    "heaviest" => Heaviest(count: usize),
    "at" => At(rows: Vec<usize>),
});

impl<T: Real> Attention<T> {
    /// Gives exact weights to the `count` keys of each sequence whose total weights are largest. Features estimate the
    /// weights of the other keys, and one normaliser, the sum of all weights, divides both parts. For bidirectional
    /// attention only, since the choice depends on all tokens.
    ///
    /// The total of a key is the sum of its exact weights for up to 64 queries, which are spread evenly over a sequence
    /// and the heads that share its keys. A key whose weight for all these queries is 0 is not chosen. The choice costs
    /// O(64 l d) once, and exact keys cost O(count (d + d_v)) for each query.
    ///
    /// The weights that are still estimated may have a larger relative error than the estimates for all keys. Exact
    /// keys lower the error of features that are shaped by the data, and may raise that of positive features at large
    /// norms.
    ///
    /// # Errors
    /// [`Unsupported`](Error::Unsupported) unless every map estimates, at least approximately, the softmax kernel with the same
    /// lengthscale in all coordinates.
    pub fn with_heaviest_keys_exact(self, count: usize) -> Result<Self> {
        self.exactly(KeyChoice::Heaviest(count))
    }

    /// Gives exact weights to the keys in these rows of each sequence, in bidirectional and causal attention and token
    /// by token. Many models have their heaviest keys in the first rows. Rows beyond the end of a sequence and masked
    /// keys are ignored.
    ///
    /// # Errors
    /// The errors of [`with_heaviest_keys_exact`](Attention::with_heaviest_keys_exact).
    pub fn with_keys_exact(self, rows: &[usize]) -> Result<Self> {
        self.exactly(KeyChoice::At(rows.to_vec()))
    }

    pub(in super::super) fn exactly(mut self, mut choice: KeyChoice) -> Result<Self> {
        if let KeyChoice::At(rows) = &mut choice {
            rows.sort_unstable();
            rows.dedup();
        }
        let none = match &choice {
            KeyChoice::None => true,
            KeyChoice::Heaviest(count) => *count == 0,
            KeyChoice::At(rows) => rows.is_empty(),
        };
        self.exact = if none { KeyChoice::None } else { choice };
        if !none {
            self.check_softmax(
                "exact keys beside a map that does not estimate the softmax kernel with one lengthscale for all coordinates",
            )?;
        }
        Ok(self.prepared())
    }

    /// Refuses maps that have no exact weights of one lengthscale.
    pub(in super::super) fn check_softmax(&self, what: &'static str) -> Result<()> {
        match (0..self.maps.len()).all(|head| self.inverse(head).is_some()) {
            true => Ok(()),
            false => Err(Error::Unsupported { what }),
        }
    }

    /// 1/ℓ of a head's map, if that estimates the softmax kernel, truncated or not.
    pub(in super::super) fn inverse(&self, head: usize) -> Option<f64> {
        estimated_lengthscale(&self.maps[head % self.maps.len()]).map(f64::recip)
    }

    /// 1/ℓ of a head's map, if some keys get exact weights.
    pub(in super::super) fn exact_inverse(&self, head: usize) -> Option<f64> {
        if self.exact == KeyChoice::None { None } else { self.inverse(head) }
    }

    /// Gives neighbours exact weights: for the query at place i the keys at places j with i − `before` < j ≤ i + `after`.
    ///
    /// ```
    /// use random_features::apply::attention::Attention;
    /// // Each query's own key and the 63 before it are exact.
    /// let attention = Attention::<f32>::favor_plus(16, 256, 7)?.with_window(64, 0)?;
    /// # let _ = attention;
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// `before` is the number of keys up to and including the query's own place, and `after` the number of keys behind
    /// it. The place of a query or key is its row in its sequence; masked keys keep their places. Causal attention
    /// ignores `after`. A window of 0 and 0 keys gives the same bits as attention without a window.
    ///
    /// # Definition
    /// out(q) = \[Σ_E exp(q·k s) v + Σ_¬E K̂(q, k) v\] / \[Σ_E exp(q·k s) + Σ_¬E K̂(q, k)\], with E the neighbours and
    /// the [exact keys](Attention::with_keys_exact), if there are any. Each pair counts once. Features of the keys
    /// before the neighbours are summed up from the first key on, and features of the keys behind them from the last
    /// key back. No sum is subtracted from another. Numerator and normaliser have no bias if K̂ has none. Windows that
    /// hold all keys are [exact attention](super::super::ExactAttention), to rounding.
    ///
    /// A [`CausalState`](super::super::CausalState) keeps the last `before` keys and values as they are. They enter the sums as they
    /// leave the window.
    ///
    /// # What it is worth
    /// A window lowers errors much where attention is local, as [measured](crate::manual::shaped#neighbours) on trained
    /// heads and on long sequences. At large norms, positive features improve little on the neighbours alone. Features
    /// that are shaped by the other pairs
    /// ([`AttentionShaping::with_window`](crate::apply::attention::AttentionShaping::with_window)) improve much on
    /// them. Where attention looks far, a window may raise the error. The errors of a query's estimates are correlated,
    /// and their common part cancels in the ratio only if all weights are estimates.
    ///
    /// # Accuracy
    /// Logits, exact weights and sums of values by them are computed in `T`, as in exact attention: a logit must fit it, and values must
    /// be some way below its largest number. Results are bit-identical on any number of threads. A causal output depends on no later
    /// token, not even in its last bit.
    ///
    /// # Cost
    /// O((before + after) (d + d_v)) for each query, in products of matrices. 64 neighbours make causal attention take
    /// 1.4 times as long (65,536 tokens, d = 64, D = 256, `f32`). Bidirectional attention sums up keys from both ends.
    /// It therefore computes their features twice, and keeps as many numbers in `f64` as the output has.
    ///
    /// # Errors
    /// [`Unsupported`](crate::Error::Unsupported) unless every map estimates, at least approximately, the softmax kernel with the same
    /// lengthscale in all coordinates.
    ///
    /// # References
    /// The combination of exact weights of neighbours with unbiased estimates of the other weights, under one
    /// normaliser, is this crate's own.
    #[doc(alias = "sliding window")]
    #[doc(alias = "local attention")]
    pub fn with_window(mut self, before: usize, after: usize) -> Result<Self> {
        let window = Window { before, after };
        if !window.is_none() {
            self.check_softmax(
                "exact neighbours beside a map that does not estimate the softmax kernel with one lengthscale for all coordinates",
            )?;
        }
        self.window = window;
        Ok(self.prepared())
    }

    /// How the queries and the keys of a head are read so that their products are exact logits; as for features if no pairs have exact
    /// weights.
    pub(in super::super) fn of_pairs(&self, head: usize) -> [Reading; 2] {
        let has_pairs = self.exact != KeyChoice::None || !self.window.is_none();
        let inverse = if has_pairs { self.inverse(head) } else { None };
        inverse.map_or([self.reading; 2], |inverse| self.reading.of_pairs(inverse))
    }

    /// The neighbours of queries, causally or not, and how keys are read for exact logits; `None` if there are no neighbours.
    pub(in super::super) fn near(
        &self,
        [_, of_keys]: [Reading; 2],
        causal: bool,
    ) -> Option<(Window, Reading)> {
        let window = self.window.of(causal);
        (!window.is_none()).then_some((window, of_keys))
    }

    /// Refuses a choice of keys that depends on later tokens.
    pub(in super::super) fn check_causal(&self) -> Result<()> {
        match &self.exact {
            KeyChoice::Heaviest(_) => Err(Error::Unsupported {
                what: "causal attention with the heaviest keys, which later tokens choose: see Attention::with_keys_exact",
            }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_key_is_the_first_of_those_before() {
        let of = |before, after, place| Window { before, after }.places(place);
        assert!(of(0, 0, 7).is_empty() && Window::default().is_none());
        assert_eq!((of(1, 0, 7), of(3, 0, 7), of(0, 2, 7)), (7..8, 5..8, 8..10));
        assert_eq!((of(3, 2, 0), of(usize::MAX, usize::MAX, 7)), (0..3, 0..usize::MAX));
    }
}
