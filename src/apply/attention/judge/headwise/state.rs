//! [`HeadwiseState`]: causal attention of a layer token by token, each head in its own way.

use ndarray::{Array3, Array4, ArrayRef3, Axis, Ix3, s};

use super::super::super::decode::CausalState;
use super::super::super::input::{Attended, Attention, Heads, TokenElement, check_multiple, in_order};
use super::{ChosenHead, HeadwiseAttention};
use crate::error::{Error, Result, check_size};
use crate::frequency::Orthogonal;
use crate::memory::check_memory;
use crate::once::once;
use crate::whole::try_all_or_none;
use crate::{Positive, Real, threads};

/// Causal attention of a layer as tokens come: a [`CausalState`] for each head of keys. Approximate, as [`HeadwiseAttention`] is, whose
/// outputs these are: to the bit for linear heads, and to rounding for exact ones.
///
/// ```
/// use random_features::ndarray::{Array3, Array4};
/// use random_features::rand::RngExt;
/// use random_features::apply::attention::{HeadCalibration, HeadBudget, Heads};
/// let mut rng = random_features::rng(1);
/// let x = Array4::from_shape_simple_fn((1, 2, 64, 8), || 4.0 * rng.random::<f32>() - 2.0);
/// let text = Heads::new(&x, &x, &x)?;
/// let layer = HeadCalibration::causal()
///     .with_m(&[16])
///     .choose::<f32, _>(&[text.clone()], HeadBudget::Pairs(8.0))?;
/// // One sequence, values in ℝ⁸.
/// let mut state = layer.state(1, 8)?;
/// assert_eq!(state.prefill(&text)?.output.dim(), (1, 2, 64, 8));
/// let token = Array3::<f32>::ones((1, 2, 8));
/// assert_eq!(state.step(&token, &token, &token)?.output.dim(), (1, 2, 8));
/// assert_eq!(state.lengths(), [65]);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// An exact head keeps all keys and values. A linear one keeps sums, and the keys and values of its window and its exact keys.
///
/// # Cost
/// The cost of a [`CausalState`] for each head of keys; O(L (d + d_v)) a token for an exact head that has seen L tokens.
#[derive(Clone, Debug)]
pub struct HeadwiseState<T: Real> {
    /// For each head of keys, with one head each; not empty.
    heads: Vec<CausalState<T>>,
    /// The numbers of sequences, d and d_v.
    shape: [usize; 3],
}

impl<T: Real> HeadwiseAttention<T> {
    /// The state before the first token, for `batch` sequences and values in ℝ^d_v.
    ///
    /// # Errors
    /// [`Unsupported`](Error::Unsupported) unless the calibration was [causal](super::super::super::HeadCalibration::causal);
    /// [`Parameter`](Error::Parameter) if `d_v` is 0, [`Memory`](Error::Memory) if there is no memory for the state.
    #[inline(never)]
    pub fn state(&self, batch: usize, d_v: usize) -> Result<HeadwiseState<T>> {
        if !self.causal {
            let what = "tokens one by one in a layer that was calibrated for both directions";
            return Err(Error::Unsupported { what });
        }
        let all_exact = self.all_exact()?;
        let of_head =
            |head: &ChosenHead<T>| head.attention.as_ref().unwrap_or(&all_exact).state(batch, 1, d_v);
        let heads = self.heads.iter().map(of_head).collect::<Result<_>>()?;
        Ok(HeadwiseState { heads, shape: [batch, self.dim, d_v] })
    }

    /// Exact attention as one whose window holds all tokens, so that its features are never computed.
    fn all_exact(&self) -> Result<Attention<T>> {
        let map = Positive.softmax(Orthogonal.draw(self.dim, 1, 0)?)?;
        let attention = Attention::new(map)?.with_window(usize::MAX, 0)?;
        self.scale.map_or(Ok(attention.clone()), |scale| attention.with_scale(scale))
    }
}

impl<T: Real> HeadwiseState<T> {
    /// The number of tokens of each sequence so far, masked ones among them.
    pub fn lengths(&self) -> Vec<usize> {
        self.heads[0].lengths()
    }

    /// Takes in the next tokens of each sequence, such as prompts, and gives the outputs of their queries, if there are
    /// [any](Heads::without_queries). Sequences, masks and pieces are as in [`CausalState::prefill`].
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) unless there are as many heads of keys as were calibrated; the errors of [`CausalState::prefill`]. Nothing
    /// has been taken in then.
    #[inline(never)]
    pub fn prefill<E: TokenElement<T>>(&mut self, heads: &Heads<'_, E>) -> Result<Attended<T>> {
        let count = self.heads.len();
        check_size("the number of heads of the keys", count, heads.keys.dim().1)?;
        heads.check_output::<T>(0)?;
        let (batch, group) = (heads.queries.dim().0, heads.queries.dim().1 / count);
        // Some heads may fail when others are done.
        let parts = try_all_or_none(&mut self.heads, true, |states| {
            let of_head =
                |(head, state): (usize, &mut CausalState<T>)| state.prefill(&heads.part(0..batch, head));
            threads::map(states.iter_mut().enumerate(), of_head).into_iter().collect::<Result<Vec<_>>>()
        })?;
        let (mut output, mut lost) = (Array4::zeros(heads.output_dim()), Vec::new());
        for (head, part) in parts.into_iter().enumerate() {
            let first = head * group;
            output.slice_mut(s![.., first..first + group, .., ..]).assign(&part.output);
            lost.push(part.non_positive.into_iter().map(|[b, h, i]| [b, first + h, i]).collect());
        }
        Ok(Attended::new(output, in_order(lost)))
    }

    /// Takes in the next token of each sequence and gives the outputs of its queries, which see it.
    ///
    /// Queries are \[batch, heads, d\], keys \[batch, heads of keys, d\] and values \[batch, heads of keys, d_v\]. The heads of queries
    /// are a multiple of those of keys.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) or [`Multiple`](Error::Multiple) if a size does not fit, [`Memory`](Error::Memory) if there is no memory
    /// for the outputs; nothing has been taken in then.
    #[inline(never)]
    pub fn step<E: TokenElement<T>>(
        &mut self,
        queries: &ArrayRef3<E>,
        keys: &ArrayRef3<E>,
        values: &ArrayRef3<E>,
    ) -> Result<Attended<T, Ix3>> {
        let ([batch, d, d_v], count) = (self.shape, self.heads.len());
        check_size("the dimension of the queries", d, queries.len_of(Axis(2)))?;
        check_size("the number of heads of the keys", count, keys.len_of(Axis(1)))?;
        check_size("the number of heads of the values", count, values.len_of(Axis(1)))?;
        let of_queries = queries.len_of(Axis(1));
        check_multiple(count, of_queries)?;
        check_memory("outputs", batch.max(1).saturating_mul(of_queries), d_v.saturating_mul(size_of::<T>()))?;
        let (group, mut lost) = (of_queries / count, Vec::new());
        let mut output = Array3::zeros((batch, of_queries, d_v));
        // What the first head does not refuse, none does: their sizes are alike.
        for (head, state) in self.heads.iter_mut().enumerate() {
            let (own, first) = (s![.., head..head + 1, ..], head * group);
            let queries = queries.slice(s![.., first..first + group, ..]);
            let part = state.step(&queries, &keys.slice(own), &values.slice(own))?;
            output.slice_mut(s![.., first..first + group, ..]).assign(&part.output);
            lost.extend(part.non_positive.into_iter().map(|[b, h, i]| [b, first + h, i]));
        }
        lost.sort_unstable();
        Ok(Attended::new(output, lost))
    }

    /// Keeps these sequences, in this order, as [`CausalState::select`] does: one may be left out or be there several times.
    ///
    /// # Errors
    /// The errors of [`CausalState::select`]; nothing has changed then.
    #[inline(never)]
    pub fn select(&mut self, sequences: &[usize]) -> Result<()> {
        try_all_or_none(&mut self.heads, true, |states| {
            states.iter_mut().try_for_each(|state| state.select(sequences))
        })?;
        self.shape[0] = sequences.len();
        Ok(())
    }

    /// Appends the sequences of another state of this layer.
    ///
    /// # Errors
    /// [`Merge`](Error::Merge) if it is a state of another layer, or for values of another dimension; nothing has changed then.
    #[inline(never)]
    pub fn append(&mut self, other: Self) -> Result<()> {
        if self.heads.len() != other.heads.len() {
            return Err(Error::Merge { reason: "their numbers of heads differ" });
        }
        let appended = self.shape[0] + other.shape[0];
        try_all_or_none(&mut self.heads, true, |states| {
            states.iter_mut().zip(other.heads).try_for_each(|(state, other)| state.append(other))
        })?;
        self.shape[0] = appended;
        Ok(())
    }
}

once!(
    HeadwiseAttention::<T>::state,
    HeadwiseState::<T>::prefill::<T>,
    HeadwiseState::<T>::step::<T>,
    HeadwiseState::<T>::select,
    HeadwiseState::<T>::append
);

/// The stored form, checked when it is read.
#[cfg(feature = "serde")]
mod stored {
    use super::{CausalState, HeadwiseState, Real};
    use crate::sealed::sealed;

    #[derive(serde::Serialize, serde::Deserialize)]
    #[serde(rename = "HeadwiseState", bound = "")]
    struct StoredHeadwiseState<T: Real> {
        heads: Vec<CausalState<T>>,
    }

    sealed!(HeadwiseState<T>, StoredHeadwiseState<T>, T, [T: Real]);

    impl<T: Real> From<&HeadwiseState<T>> for StoredHeadwiseState<T> {
        fn from(HeadwiseState { heads, .. }: &HeadwiseState<T>) -> Self {
            StoredHeadwiseState { heads: heads.clone() }
        }
    }

    impl<T: Real> TryFrom<StoredHeadwiseState<T>> for HeadwiseState<T> {
        type Error = String;

        fn try_from(StoredHeadwiseState { heads }: StoredHeadwiseState<T>) -> Result<Self, String> {
            let sizes = |state: &CausalState<T>| (state.sizes(), state.lengths());
            match heads.first().map(sizes) {
                Some(first @ ([batch, 1, d_v, d], _)) if heads.iter().all(|state| sizes(state) == first) => {
                    Ok(HeadwiseState { heads, shape: [batch, d, d_v] })
                }
                _ => Err("states of heads that do not belong together".into()),
            }
        }
    }
}
