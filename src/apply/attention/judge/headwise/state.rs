//! [`HeadwiseState`]: causal attention of a layer token by token, each head in its own way.

use ndarray::{Array3, Array4, ArrayRef3, ArrayViewMut4, Axis, Ix3, s};

use super::super::super::decode::{CausalState, SHARED};
use super::super::super::input::{Attended, Attention, Heads, TokenElement, check_multiple, in_order};
use super::{ChosenHead, HeadwiseAttention, scaled, shifted};
use crate::error::{Error, Result, check_size};
use crate::frequency::Orthogonal;
use crate::memory::check_memory;
use crate::once::once;
use crate::whole::{all_or_none, try_all_or_none};
use crate::{Positive, Real, progress, threads};

/// Causal attention of a layer as tokens come: a [`CausalState`] for each head of keys. Outputs are as approximate as
/// those of [`HeadwiseAttention`]. They have the same bits for linear heads, and agree to rounding for exact ones.
///
/// ```
/// use random_features::ndarray::{Array3, Array4};
/// use random_features::rand::RngExt;
/// use random_features::apply::attention::{HeadCalibration, HeadBudget, Heads};
/// let mut rng = random_features::rng(1);
/// let token = || rng.random_range(-2f32..2.0);
/// let x = Array4::from_shape_simple_fn((1, 2, 64, 8), token);
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
/// An exact head keeps all keys and values. A linear one keeps sums, and the keys and values of its window and its exact keys. A clone is
/// a fork: it copies the keys and values of exact heads.
///
/// # Cost
/// The cost of a [`CausalState`] for each head of keys; O(L (d + d_v)) a token for an exact head that has seen L tokens. Threads share
/// heads where that is worth it.
#[derive(Clone, Debug)]
pub struct HeadwiseState<T: Real> {
    /// For each head of keys, with one head each; not empty.
    heads: Vec<CausalState<T>>,
}

/// More tokens than a sequence has, on every machine.
const ALL: usize = u32::MAX as usize;

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
        Ok(HeadwiseState { heads: self.heads.iter().map(of_head).collect::<Result<_>>()? })
    }

    /// Exact attention as one whose window holds all tokens, so that its features count for nothing.
    fn all_exact(&self) -> Result<Attention<T>> {
        let map = Positive.softmax(Orthogonal.draw(self.dim, 1, 0)?)?;
        scaled(Attention::new(map)?.with_window(ALL, 0)?, self.scale)
    }
}

impl<T: Real> HeadwiseState<T> {
    /// The number of tokens of each sequence so far, masked ones among them.
    pub fn lengths(&self) -> Vec<usize> {
        self.heads[0].lengths()
    }

    /// Whether features of a head are computed by code of a user, which may panic.
    fn is_own(&self) -> bool {
        self.heads.iter().any(|state| state.attention().is_own())
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
        let parts: Vec<_> = (0..count).map(|head| heads.part(0..batch, head)).collect();
        let jobs = || self.heads.iter().zip(&parts);
        jobs().try_for_each(|(state, part)| state.check_prefill(part))?;
        let kept = jobs().map(|(state, part)| state.kept_bytes(part)).fold(0, usize::saturating_add);
        check_memory("tokens of windows", kept, 1)?;
        let mut output = Array4::zeros(heads.output_dim());
        let (mut outputs, mut rest) = (Vec::with_capacity(count), output.view_mut());
        for _ in &parts {
            let (own, others) = rest.split_at(Axis(1), group);
            outputs.push(own);
            rest = others;
        }
        let jobs = parts.iter().zip(outputs);
        // A watcher, or a user's code, may stop some heads when others are done.
        let at_risk = progress::is_watched() || self.is_own();
        let lost = try_all_or_none(&mut self.heads, at_risk, |states| {
            let of_head =
                |(state, (part, mut out)): (&mut CausalState<T>, (&Heads<'_, E>, ArrayViewMut4<'_, T>))| {
                    state.prefill_into(part, &mut out)
                };
            threads::map(states.iter_mut().zip(jobs), of_head).into_iter().collect::<Result<Vec<_>>>()
        })?;
        let lost = lost.into_iter().enumerate().map(|(head, lost)| shifted(lost, head * group));
        Ok(Attended::new(output, in_order(lost.collect())))
    }

    /// Takes in the next token of each sequence and gives the outputs of its queries, which see it.
    ///
    /// Queries are \[batch, heads, d\], keys \[batch, heads of keys, d\] and values \[batch, heads of keys, d_v\]. The
    /// number of heads of queries is a multiple of the number of heads of keys. Arguments are references to arrays or
    /// to views with any strides, such as `&q.slice(s![.., .., t, ..])`.
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
        let (count, of_queries) = (self.heads.len(), queries.len_of(Axis(1)));
        check_size("the number of heads of the keys", count, keys.len_of(Axis(1)))?;
        check_size("the number of heads of the values", count, values.len_of(Axis(1)))?;
        check_multiple(count, of_queries)?;
        let [batch, _, d_v, d] = self.heads[0].sizes();
        // Outputs of the heads, and all of them together.
        let each = d_v.saturating_mul(2).saturating_add(d).saturating_mul(size_of::<T>());
        check_memory("outputs", batch.max(1).saturating_mul(of_queries), each)?;
        let group = of_queries / count;
        let token = |head: usize| {
            let (own, first) = (s![.., head..head + 1, ..], head * group);
            (queries.slice(s![.., first..first + group, ..]), keys.slice(own), values.slice(own))
        };
        // The sizes of all heads are alike.
        let (q, k, v) = token(0);
        self.heads[0].check_step(&q, &k, &v)?;
        let work: usize =
            self.heads.iter().map(|state| state.multiplications(group)).fold(0, usize::saturating_add);
        let of_head = |(head, state): (usize, &mut CausalState<T>)| {
            let (q, k, v) = token(head);
            state.take_step(&q, &k, &v)
        };
        let own = self.is_own();
        let parts = all_or_none(&mut self.heads, own, |states| {
            let states = states.iter_mut().enumerate();
            if work < SHARED { states.map(of_head).collect() } else { threads::map(states, of_head) }
        });
        let (mut output, mut lost) = (Array3::zeros((batch, of_queries, d_v)), Vec::new());
        for (head, part) in parts.into_iter().enumerate() {
            let first = head * group;
            output.slice_mut(s![.., first..first + group, ..]).assign(&part.output);
            lost.push(shifted(part.non_positive, first));
        }
        Ok(Attended::new(output, in_order(lost)))
    }

    /// Keeps these sequences, in this order, as [`CausalState::select`] does: one may be left out or be there several times.
    ///
    /// # Errors
    /// The errors of [`CausalState::select`]; nothing has changed then.
    #[inline(never)]
    pub fn select(&mut self, sequences: &[usize]) -> Result<()> {
        self.heads.iter().try_for_each(|state| state.check_select(sequences))?;
        let forks = self.heads.iter().map(|state| state.bytes_of_forks(sequences));
        check_memory("forks of heads", forks.fold(0, usize::saturating_add), 1)?;
        self.heads.iter_mut().for_each(|state| state.keep(sequences));
        Ok(())
    }

    /// Appends the sequences of another state of this layer.
    ///
    /// # Errors
    /// [`Merge`](Error::Merge) if a head of it attends in another way, or values are of another dimension; nothing has changed then.
    #[inline(never)]
    pub fn append(&mut self, other: Self) -> Result<()> {
        if self.heads.len() != other.heads.len() {
            return Err(Error::Merge { reason: "their numbers of heads differ" });
        }
        self.heads.iter().zip(&other.heads).try_for_each(|(state, other)| state.check_append(other))?;
        self.heads.iter_mut().zip(other.heads).for_each(|(state, other)| state.extend(other));
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
    use super::super::is_of_head;
    use super::{CausalState, HeadwiseState, Real};
    use crate::sealed::sealed;

    #[derive(serde::Serialize, serde::Deserialize)]
    #[serde(rename = "HeadwiseState", bound = "")]
    struct StoredHeadwiseState<T: Real> {
        heads: Vec<CausalState<T>>,
    }

    sealed!(HeadwiseState<T>, StoredHeadwiseState<T>, T, [T: Real]);

    impl<T: Real> From<&HeadwiseState<T>> for StoredHeadwiseState<T> {
        fn from(HeadwiseState { heads }: &HeadwiseState<T>) -> Self {
            StoredHeadwiseState { heads: heads.clone() }
        }
    }

    impl<T: Real> TryFrom<StoredHeadwiseState<T>> for HeadwiseState<T> {
        type Error = String;

        fn try_from(StoredHeadwiseState { heads }: StoredHeadwiseState<T>) -> Result<Self, String> {
            let sizes = |state: &CausalState<T>| (state.sizes(), state.lengths());
            let Some(first @ ([_, 1, _, d], _)) = heads.first().map(sizes) else {
                return Err("a state without heads, or with several in one".into());
            };
            let fits =
                |state: &CausalState<T>| sizes(state) == first && is_of_head(state.attention(), d, true);
            match heads.iter().all(fits) {
                true => Ok(HeadwiseState { heads }),
                false => Err("states of heads that do not belong together".into()),
            }
        }
    }
}
