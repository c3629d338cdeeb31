//! [`Keys`]: the keys and values of a chunk, ready to be multiplied with queries and to be summed up.

use super::adder::{Adder, Easy};
use super::span::Span;
use super::state::Relative;
use super::tokens::Tokens;
use super::values::Values;
use crate::Real;
use crate::numeric::Panels;

/// The keys and values of a chunk: those before the first that enters on its own by what products take.
#[derive(Debug, Default)]
pub(super) struct Keys<T> {
    pub values: Values<T>,
    /// ln of each key's scale.
    pub scales: Vec<f64>,
    /// Whether a key lacks a feature.
    gaps: Vec<bool>,
    /// Keys that are masked.
    pub hidden: Vec<bool>,
    /// The keys before the first one that enters on its own.
    pub easy: usize,
    adder: Adder<T>,
    /// Whether a key was seen before these.
    pub seen_before: bool,
}

impl<T: Real> Keys<T> {
    /// Takes in what is known of keys beside their values and masks, and packs their features.
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

    /// Whether no key enters on its own.
    pub fn is_easy(&self) -> bool {
        self.easy == self.len()
    }

    /// Whether a key counts.
    pub fn has_any(&self) -> bool {
        self.hidden.contains(&false)
    }

    fn easy_features<'a>(&self, tokens: &'a Tokens<T>) -> &'a [T] {
        let width = tokens.values().len() / tokens.len().max(1);
        &tokens.values()[..self.easy * width]
    }

    /// Sums up the easy keys, whose features are `tokens`.
    pub fn sum(&mut self, tokens: &Tokens<T>) {
        let gaps = self.adder.part.gaps;
        let (scales, values) = (&self.scales[..self.easy], self.values.first(self.easy));
        let features = self.easy_features(tokens);
        self.adder.sum(Easy { features, scales, values, gaps });
    }

    /// What was summed up; after [`State::prefixes`](super::state::State::prefixes), what queries see before these keys.
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

    /// The number of queries, of those of the easy keys, for which these and what they see before are near each other.
    pub fn near(&self, ready: &Relative<T>) -> usize {
        let mut span = Span::new().with(ready.reference, ready.gaps);
        let fits = |j: &usize| {
            span = span.with(self.scales[*j], self.gaps[*j]);
            span.is_narrow::<T>()
        };
        if ready.plain { (0..self.easy).take_while(fits).count() } else { 0 }
    }
}
