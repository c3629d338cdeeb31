//! [`Keys`]: the keys and values of a chunk, ready to be multiplied with queries and to be summed up.

use super::adder::{EasyKeys, KeyAdder};
use super::span::Span;
use super::tokens::Tokens;
use super::values::Values;
use crate::Real;
use crate::numeric::Panels;
use crate::reduce::RunSums as Relative;

/// The keys and values of a chunk. Keys `0..easy` are summed up by matrix products, the rest one by one in `f64`.
#[derive(Debug, Default)]
pub(super) struct Keys<T> {
    pub values: Values<T>,
    /// ln of each key's scale.
    pub scales: Vec<f64>,
    /// Whether a feature of a key is 0.
    gaps: Vec<bool>,
    /// Keys that are masked.
    pub hidden: Vec<bool>,
    /// The number of leading keys that are summed up by matrix products.
    pub easy: usize,
    adder: KeyAdder<T>,
    /// Whether a key was seen before these.
    pub seen_before: bool,
}

impl<T: Real> Keys<T> {
    /// Takes in the scales and features of keys whose values and masks are known, and packs the features of the easy ones.
    pub fn settle(&mut self, tokens: &Tokens<T>) {
        self.scales.clone_from(&tokens.scales);
        self.gaps.clone_from(&tokens.gaps);
        let mut span = Span::new();
        self.easy = self.scales.len();
        for j in 0..self.scales.len() {
            let wider = span.with(self.scales[j], self.gaps[j]);
            if !(tokens.plain[j] && self.values.calm[j] && wider.is_narrow::<T>()) {
                self.easy = j;
                break;
            }
            span = wider;
        }
        self.adder.part.gaps = span.gaps();
        self.adder.pack(self.easy_features(tokens), self.easy);
    }

    pub fn len(&self) -> usize {
        self.scales.len()
    }

    /// Whether all keys are summed up by matrix products.
    pub fn is_easy(&self) -> bool {
        self.easy == self.len()
    }

    /// Whether a key is not masked.
    pub fn has_any(&self) -> bool {
        self.hidden.contains(&false)
    }

    fn easy_features<'a>(&self, tokens: &'a Tokens<T>) -> &'a [T] {
        let width = tokens.values().len() / tokens.len().max(1);
        &tokens.values()[..self.easy * width]
    }

    /// Sums up the easy keys, which were read as `tokens`.
    pub fn sum(&mut self, tokens: &Tokens<T>) {
        let gaps = self.adder.part.gaps;
        let (scales, values) = (&self.scales[..self.easy], self.values.first(self.easy));
        let features = self.easy_features(tokens);
        self.adder.sum(EasyKeys { features, scales, values, gaps });
    }

    /// The sums over the easy keys; after [`prefixes`](crate::reduce::WeightedSums::prefixes), the sums over all keys before these.
    pub fn part(&self) -> &Relative<T> {
        &self.adder.part
    }

    pub fn part_mut(&mut self) -> &mut Relative<T> {
        &mut self.adder.part
    }

    /// The features of the easy keys.
    pub fn packed(&self) -> Panels<'_, T> {
        self.adder.packed()
    }

    /// The number of leading queries for which the keys of the chunk up to their own place, and `before`, the sums over earlier
    /// keys, can share one reference in `T`.
    pub fn near(&self, before: &Relative<T>) -> usize {
        let mut span = Span::new().with(before.reference, before.gaps);
        let fits = |j: &usize| {
            span = span.with(self.scales[*j], self.gaps[*j]);
            span.is_narrow::<T>()
        };
        if before.plain { (0..self.easy).take_while(fits).count() } else { 0 }
    }
}
