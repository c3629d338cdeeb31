//! [`AttentionChoice`]: the cheapest attention that is expected to reach an error.

mod choose;
mod display;
mod sizes;

use super::super::input::{Attended, Attention, Heads, TokenElement};
use super::super::pairs::ExactAttention;
use crate::Real;
use crate::error::{Error, Result};
use crate::once::once;

/// The cheapest of exact, windowed and linear attention that is expected to reach an error, beside what the others cost and err:
/// estimates of both, from [`Attention::choose`], which has an example.
///
/// The [`Display`](std::fmt::Display) of a choice is a table, from the cheapest to the dearest. For each window it has the least number of frequencies
/// that reaches the error, or the largest if none does. With `{:#}` it has all candidates.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AttentionChoice<T: Real> {
    /// The largest error that a candidate may have, as it was given.
    pub error: f64,
    /// The numbers of queries and of keys of a sequence.
    pub lengths: [usize; 2],
    /// Whether attention is causal.
    pub causal: bool,
    /// The candidates that were compared, the cheapest first.
    pub candidates: Vec<AttentionCandidate>,
    chosen: Option<(AttentionCandidate, Chosen<T>)>,
}

/// A way to attend that an [`AttentionChoice`] compares, with what it is estimated to cost and to err.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct AttentionCandidate {
    /// Whether all weights are exact: [`ExactAttention`].
    pub exact: bool,
    /// The [window](Attention::with_window) \[before, after\]: keys j with i − before < j ≤ i + after have exact weights for query i.
    /// \[0, 0\] if there is none.
    pub window: [usize; 2],
    /// The number m of frequencies of the map; 0 for exact attention.
    pub m: usize,
    /// The cost of a head of one sequence, in multiplications of exact attention, by the rule of
    /// [`bidirectional_auto`](Attention::bidirectional_auto).
    pub operations: f64,
    /// The expected error of the output relative to its norm, or of the weights for a sample without values. `None` if
    /// the normalisers' variance is too large for an expectation ([hopeless](super::ErrorReport::is_hopeless)), or if
    /// outputs are 0.
    pub error: Option<f64>,
}

/// What a choice runs.
#[derive(Clone, Debug)]
enum Chosen<T: Real> {
    Exact(ExactAttention),
    Linear(Box<Attention<T>>),
}

impl AttentionCandidate {
    /// Whether both have the same exact weights.
    fn is_alike(&self, other: &Self) -> bool {
        (self.exact, self.window) == (other.exact, other.window)
    }

    /// Whether it is expected to err by `error` at most.
    fn reaches(&self, error: f64) -> bool {
        self.error.is_some_and(|own| own <= error)
    }
}

impl<T: Real> AttentionChoice<T> {
    /// The cheapest candidate that is expected to reach the error. `None` if there is none, which happens only where exact attention is
    /// not among them.
    pub fn best(&self) -> Option<AttentionCandidate> {
        self.chosen.as_ref().map(|(candidate, _)| *candidate)
    }

    /// The attention to use, with its window and its number of frequencies. `None` if the best is exact attention or there is none.
    pub fn attention(&self) -> Option<&Attention<T>> {
        match &self.chosen {
            Some((_, Chosen::Linear(attention))) => Some(attention),
            _ => None,
        }
    }

    /// The outputs of attention by the best candidate, causal if the sample was causal. Sequences may have any lengths,
    /// but the candidate is the best for the lengths of the choice.
    ///
    /// # Errors
    /// [`Unsupported`](Error::Unsupported) if there is no [best](AttentionChoice::best) way; else the errors of
    /// [`Attention::causal`] and [`Attention::bidirectional`].
    #[inline(never)]
    pub fn attend<E: TokenElement<T>>(&self, heads: &Heads<'_, E>) -> Result<Attended<T>> {
        match (&self.chosen, self.causal) {
            (Some((_, Chosen::Exact(exact))), true) => exact.causal(heads),
            (Some((_, Chosen::Exact(exact))), false) => exact.bidirectional(heads),
            (Some((_, Chosen::Linear(attention))), true) => attention.causal(heads),
            (Some((_, Chosen::Linear(attention))), false) => attention.bidirectional(heads),
            (None, _) => Err(Error::Unsupported {
                what: "attention by a choice without a candidate that reaches the error",
            }),
        }
    }
}

once!(AttentionChoice::<T>::attend::<T>);
