//! [`HeadwiseAttention`]: an attention for each head, chosen by [`HeadCalibration`] from tokens and a budget.

mod budget;
mod calibration;
mod display;
mod fit;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
mod shapes;
mod state;
mod trials;

use ndarray::{Array4, ArrayViewMut4, Axis};

pub use self::budget::HeadBudget;
pub use self::calibration::{HeadCalibration, HeadComparison};
pub(super) use self::fit::{Fit, completed, means};
pub use self::state::HeadwiseState;
use super::super::input::{Attended, Attention, Heads, NonPositive, TokenElement, in_order};
use super::super::pairs::ExactAttention;
use crate::Real;
use crate::error::{Result, check_size};
use crate::once::once;
use crate::threads;

/// Attention with a separate choice for each head of a layer: exact, or linear with features, a window, exact keys and a share of the
/// mean of the values. It is approximate. [`HeadCalibration`] chooses it from tokens and has an example.
///
/// The [`Display`](std::fmt::Display) is a table with a row for each head of keys.
#[derive(Clone, Debug)]
pub struct HeadwiseAttention<T: Real> {
    pub(super) heads: Vec<ChosenHead<T>>,
    pub(super) causal: bool,
    pub(super) scale: Option<f64>,
    /// d, the dimension of queries and keys.
    pub(super) dim: usize,
}

/// What one head of keys does, and what else was compared.
#[derive(Clone, Debug)]
pub(super) struct ChosenHead<T: Real> {
    /// `None` for exact attention.
    pub attention: Option<Attention<T>>,
    pub chosen: HeadCandidate,
    pub alternatives: Vec<HeadCandidate>,
}

/// A way in which a head may attend, as a [`HeadCalibration`] compares them.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct HeadCandidate {
    /// The features: "positive", "generalised", "shaped", or "truncated to r"; "exact" for exact attention.
    pub features: String,
    /// The number m of frequencies; 0 for exact attention.
    pub m: usize,
    /// The [window](Attention::with_window) \[before, after\]: keys j with i − before < j ≤ i + after have exact weights for query i.
    pub window: [usize; 2],
    /// The number of keys with exact weights: the heaviest ones or, causally, the first ones.
    pub exact_keys: usize,
    /// The [share of the mean](Attention::with_shrinkage) of the values.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub share: f64,
    /// The number of exact pairs per query, on average over the sequence. Exact attention counts all keys that a query sees.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub pairs: f64,
    /// The cost per query, in multiplications of exact attention, by the rule of [`bidirectional_auto`](Attention::bidirectional_auto).
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub operations: f64,
    /// The error of the output relative to the norm of the exact output, over all queries of the calibration sequences.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub error: f64,
}

impl<T: Real> HeadwiseAttention<T> {
    /// The outputs, each head in its own way, causal if the calibration was causal. Sequences may have any lengths.
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) unless there are as many heads of keys as were calibrated, of this dimension; else the errors of
    /// [`Attention::causal`] and [`Attention::bidirectional`].
    #[inline(never)]
    pub fn attend<E: TokenElement<T>>(&self, heads: &Heads<'_, E>) -> Result<Attended<T>> {
        check_size("the number of heads of the keys", self.heads.len(), heads.keys.dim().1)?;
        check_size("the dimension of the queries and the keys", self.dim, heads.keys.dim().3)?;
        heads.check_output::<T>(0)?;
        let mut output = Array4::zeros(heads.output_dim());
        let group = heads.queries.dim().1 / self.heads.len().max(1);
        let parts = output.axis_chunks_iter_mut(Axis(1), group.max(1)).enumerate();
        let lost = threads::map(parts, |(head, out)| self.attend_head(heads, head, out));
        let of_all = |(head, lost): (usize, Result<NonPositive>)| Ok(shifted(lost?, head * group));
        let lost = lost.into_iter().enumerate().map(of_all).collect::<Result<Vec<_>>>()?;
        Ok(Attended::new(output, in_order(lost)))
    }

    fn attend_head<E: TokenElement<T>>(
        &self,
        heads: &Heads<'_, E>,
        head: usize,
        mut out: ArrayViewMut4<'_, T>,
    ) -> Result<Vec<[usize; 3]>> {
        let own = heads.part(0..heads.keys.dim().0, head);
        match (&self.heads[head].attention, self.causal) {
            (Some(attention), true) => attention.causal_into(&own, &mut out),
            (Some(attention), false) => attention.bidirectional_into(&own, &mut out),
            (None, true) => self.exact()?.causal_into(&own, &mut out),
            (None, false) => self.exact()?.bidirectional_into(&own, &mut out),
        }
    }

    /// The exact attention of heads that stay exact.
    fn exact(&self) -> Result<ExactAttention> {
        exact_of(self.scale)
    }

    /// The number of heads of keys.
    pub fn heads(&self) -> usize {
        self.heads.len()
    }

    /// The linear attention of a head of keys, for one head; `None` if the head stays exact or does not exist.
    pub fn attention(&self, head: usize) -> Option<&Attention<T>> {
        self.heads.get(head)?.attention.as_ref()
    }

    /// The candidate that each head of keys uses, in the order of heads.
    pub fn chosen(&self) -> impl ExactSizeIterator<Item = &HeadCandidate> {
        self.heads.iter().map(|head| &head.chosen)
    }

    /// The candidates of a head of keys that have less error than all cheaper ones, the cheapest first; none if the head does not exist.
    pub fn alternatives(&self, head: usize) -> &[HeadCandidate] {
        self.heads.get(head).map_or(&[], |head| &head.alternatives)
    }

    /// The number of exact pairs per query, on average over heads.
    pub fn pairs(&self) -> f64 {
        self.mean(|candidate| candidate.pairs)
    }

    /// The cost per query, in multiplications of exact attention, on average over heads.
    pub fn operations(&self) -> f64 {
        self.mean(|candidate| candidate.operations)
    }

    fn mean(&self, number: impl Fn(&HeadCandidate) -> f64) -> f64 {
        self.chosen().map(number).sum::<f64>() / self.heads.len() as f64
    }
}

/// Rows of some heads of queries, of which the first is this one of all.
fn shifted(rows: NonPositive, first: usize) -> NonPositive {
    rows.into_iter().map(|[b, h, i]| [b, first + h, i]).collect()
}

/// Whether a calibration may give this attention to a head.
#[cfg(feature = "serde")]
fn is_of_head<T: Real>(attention: &Attention<T>, dim: usize, causal: bool) -> bool {
    attention.maps.len() == 1
        && attention.normalised
        && attention.maps[0].dim() == dim
        && attention.check_shrinkage(1).is_ok()
        && (!causal || attention.check_causal().is_ok())
}

/// Attention with a scale of the logits, if one was stated.
fn scaled<T: Real>(attention: Attention<T>, scale: Option<f64>) -> Result<Attention<T>> {
    match scale {
        Some(scale) => attention.with_scale(scale),
        None => Ok(attention),
    }
}

/// Exact attention with a scale of the logits, if one was stated.
fn exact_of(scale: Option<f64>) -> Result<ExactAttention> {
    scale.map_or(Ok(ExactAttention::new()), |scale| ExactAttention::new().with_scale(scale))
}

/// The stored form, checked when it is read.
#[cfg(feature = "serde")]
mod stored {
    use super::{Attention, ChosenHead, HeadCandidate, HeadwiseAttention, Real, exact_of, is_of_head};
    use crate::sealed::sealed;

    #[derive(serde::Serialize, serde::Deserialize)]
    #[serde(rename = "HeadwiseAttention", bound = "")]
    struct StoredHeadwise<T: Real> {
        heads: Vec<(Option<Attention<T>>, HeadCandidate, Vec<HeadCandidate>)>,
        causal: bool,
        #[serde(with = "crate::exact")]
        scale: Option<f64>,
        dim: usize,
    }

    sealed!(HeadwiseAttention<T>, StoredHeadwise<T>, T, [T: Real]);

    impl<T: Real> From<&HeadwiseAttention<T>> for StoredHeadwise<T> {
        fn from(HeadwiseAttention { heads, causal, scale, dim }: &HeadwiseAttention<T>) -> Self {
            let head = |head: &ChosenHead<T>| {
                (head.attention.clone(), head.chosen.clone(), head.alternatives.clone())
            };
            StoredHeadwise {
                heads: heads.iter().map(head).collect(),
                causal: *causal,
                scale: *scale,
                dim: *dim,
            }
        }
    }

    impl<T: Real> TryFrom<StoredHeadwise<T>> for HeadwiseAttention<T> {
        type Error = String;

        fn try_from(stored: StoredHeadwise<T>) -> Result<Self, String> {
            let StoredHeadwise { heads, causal, scale, dim } = stored;
            exact_of(scale).map_err(|error| error.to_string())?;
            let mut linear = heads.iter().filter_map(|(attention, ..)| attention.as_ref());
            let fits = |attention: &Attention<T>| is_of_head(attention, dim, causal);
            if heads.is_empty() || dim == 0 || !linear.all(fits) {
                return Err("heads that no calibration gives".into());
            }
            let head = |(attention, chosen, alternatives)| ChosenHead { attention, chosen, alternatives };
            Ok(HeadwiseAttention { heads: heads.into_iter().map(head).collect(), causal, scale, dim })
        }
    }
}

once!(HeadwiseAttention::<T>::attend::<T>);
