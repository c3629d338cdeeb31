//! [`AttentionCosts`]: what exact and linear attention are estimated to cost, by one rule for all that choose between them.

use super::super::input::{Attention, Window};
use crate::Real;

/// The cost of a pair's weight beside its products, in multiplications.
const WEIGHT: f64 = 40.0;
/// The time of an operation on features relative to one of a pair in exact attention, where every query sees all keys: fitted, at
/// lengths where both take alike, to the experiment `attention -- --part crossover`.
const FEATURE: f64 = 2.0;
// The others are fitted to medians and minima of alternating runs: one head, `f32`, d = d_v = 64, m = 64 and 256, lengths 512, 2048
// and 8192, 2 threads.
/// FEATURE for causal attention, whose sums grow from chunk to chunk: 1.1 to 1.4 times as much was measured.
const CAUSAL: f64 = 1.25 * FEATURE;
/// FEATURE beside neighbours on both sides: two such scans, and the estimates of one are kept for the other. 2.6 times that for 256
/// features, five times for 64.
const BOTH_ENDS: f64 = 3.0 * FEATURE;
/// The pairs that a query takes beside those of its window, since products are of whole blocks of keys and queries.
const BORDER: f64 = 128.0;
/// The pairs that a query takes beside those with exact keys, if there are any.
const SELECTED: f64 = 32.0;

/// The length up to which costs are compared: those of longer sequences are rounded to more than they differ by.
const LONGEST: f64 = 1e13;

/// What attention costs with maps and values of these dimensions: operations, in multiplications of exact attention. From shapes
/// alone; the weights of operations are fitted to times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttentionCosts {
    /// The cost of a query or a key in linear attention, in operations on features: D (d + d_v).
    token: f64,
    /// The cost of a pair in exact attention: d + d_v + WEIGHT.
    pair: f64,
}

/// The sequences of which costs speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lengths {
    pub queries: usize,
    pub keys: usize,
    pub causal: bool,
}

/// The pairs of linear attention whose weights are exact.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ExactPairs {
    pub window: Window,
    /// Keys that are exact for all queries.
    pub keys: usize,
}

impl AttentionCosts {
    /// Costs for points of dimension d, D features and values of dimension d_v.
    pub fn new(d: usize, features: usize, d_v: usize) -> Self {
        let [d, features, d_v] = [d, features, d_v].map(|size| size as f64);
        // A token: its features, and the sums that it is added to or multiplied with. A pair: its logit, weight and value.
        AttentionCosts { token: features * (d + d_v), pair: d + d_v + WEIGHT }
    }

    /// The cost of exact attention.
    pub fn exact(&self, lengths: Lengths) -> f64 {
        lengths.queries as f64 * lengths.seen() * self.pair
    }

    /// The cost of linear attention in which these pairs are exact.
    pub fn linear(&self, lengths: Lengths, exact: ExactPairs) -> f64 {
        let Lengths { queries, keys, causal } = lengths;
        let (tokens, seen) = (queries as f64 + keys as f64, lengths.seen());
        let near = exact.window.of(causal);
        let operation = match (causal, near.is_none()) {
            (true, _) => CAUSAL,
            (false, true) => FEATURE,
            (false, false) => BOTH_ENDS,
        };
        let neighbours = if near.is_none() { 0.0 } else { (near.count() as f64).min(seen) + BORDER };
        let selected = if exact.keys == 0 { 0.0 } else { (exact.keys as f64).min(seen) + SELECTED };
        let pairs = neighbours + selected;
        tokens * operation * self.token + queries as f64 * pairs * self.pair
    }

    /// The length from which on linear attention is not estimated to take more, for as many queries as keys; `usize::MAX` if there is
    /// none.
    pub fn crossover(&self, causal: bool, exact: ExactPairs) -> usize {
        let is_short = |length: usize| {
            let lengths = Lengths { queries: length, keys: length, causal };
            self.exact(lengths) < self.linear(lengths, exact)
        };
        // Once a query takes longer exactly, it does so at all larger lengths.
        let (mut short, mut long) = (0, 1);
        while is_short(long) {
            let double = long.checked_mul(2).filter(|double| (*double as f64) < LONGEST);
            let Some(double) = double else { return usize::MAX };
            (short, long) = (long, double);
        }
        while long - short > 1 {
            let middle = short + (long - short) / 2;
            if is_short(middle) { short = middle } else { long = middle }
        }
        long
    }
}

impl Lengths {
    /// How many keys a query sees on average.
    fn seen(self) -> f64 {
        if self.causal { 0.5 * self.keys as f64 } else { self.keys as f64 }
    }
}

impl<T: Real> Attention<T> {
    /// The costs of this attention, by its first map.
    pub(in super::super) fn costs(&self, d_v: usize) -> AttentionCosts {
        AttentionCosts::new(self.maps[0].dim(), self.maps[0].feature_dim(), d_v)
    }

    /// The pairs whose weights are exact.
    pub(in super::super) fn exact_pairs(&self) -> ExactPairs {
        ExactPairs { window: self.window, keys: self.exact.count() }
    }
}
