//! [`CausalState`]: causal attention token by token.

use super::super::input::{Attention, HEADS_WITH_MAPS};
use super::super::linear::{Sequence, Worker};
use super::head::Head;
use crate::Real;
use crate::error::{Result, check_positive, check_size};
use crate::map::Map;
use crate::memory::check_memory;
use crate::once::once;

/// Causal attention as tokens come: [`prefill`](CausalState::prefill) reads prompts, then [`step`](CausalState::step)
/// reads a token of each sequence and answers it. Outputs have the same bits as those of [`Attention::causal`] over all
/// tokens so far, and are as approximate as these.
///
/// ```
/// use random_features::ndarray::{Array3, Array4};
/// use random_features::apply::attention::{Attention, Heads};
/// let attention = Attention::<f32>::favor_plus(8, 64, 7)?;
/// // One sequence, two heads of keys, values in ℝ⁸.
/// let mut state = attention.state(1, 2, 8)?;
/// let prompt = Array4::<f32>::ones((1, 2, 20, 8));
/// let read = state.prefill(&Heads::new(&prompt, &prompt, &prompt)?)?.output;
/// assert_eq!(read.dim(), (1, 2, 20, 8));
/// let token = Array3::<f32>::ones((1, 2, 8));
/// let out = state.step(&token, &token, &token)?.output;
/// assert_eq!((out.dim(), state.lengths()), ((1, 2, 8), vec![21]));
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// For each head of keys a state keeps sums of O(m d_v) numbers and the features of up to 64 last tokens, however many
/// tokens it has read. [Neighbours](Attention::with_window) and [exact keys](Attention::with_keys_exact) are kept as
/// keys and values. With the feature `serde` a state can be stored, with its maps, and continues with the same bits
/// when it is read.
///
/// # Batches
/// Sequences may differ in length, and keys may be masked, as [`prefill`](CausalState::prefill) says. Sequences come by
/// [`append`](CausalState::append) and go by [`select`](CausalState::select), which also makes copies of some, as beam search does.
///
/// # Pieces
/// Outputs do not depend on how tokens are cut: a long prompt may be read in several calls of [`prefill`](CausalState::prefill), between
/// the steps of others.
///
/// # Forks
/// A clone is a fork, and a snapshot to which `state.clone_from(&saved)` goes back. Clones share the sums over whole
/// chunks of 64 tokens until one of them changes these. A fork therefore copies only the last chunk, with its features,
/// and the keys and values that have exact weights.
///
/// # Cost
/// O(m (d + d_v)) for each head and token, and O(w (d + d_v)) more with a window of w tokens. Threads share heads where that is worth it.
#[doc(alias = "KV cache")]
#[doc(alias = "decoding")]
#[derive(Debug)]
pub struct CausalState<T: Real> {
    pub(super) attention: Attention<T>,
    /// Sequences, heads of keys and d_v.
    pub(super) shape: [usize; 3],
    /// For each sequence and head of keys.
    pub(super) heads: Vec<Head<T>>,
    /// One for each thread.
    pub(super) workers: Vec<Worker<T>>,
}

impl<T: Real> Clone for CausalState<T> {
    #[inline(never)]
    fn clone(&self) -> Self {
        let (attention, heads) = (self.attention.clone(), self.heads.clone());
        CausalState { attention, shape: self.shape, heads, workers: Vec::new() }
    }
}

impl<T: Real> Attention<T> {
    /// The state of causal attention before the first token, for `batch` sequences with `heads_of_keys` heads of keys, and values in
    /// ℝ^d_v.
    ///
    /// # Errors
    /// [`Parameter`](crate::Error::Parameter) if `d_v` is 0, [`Shape`](crate::Error::Shape) if the number of maps is
    /// neither 1 nor the number of heads of keys, [`Unsupported`](crate::Error::Unsupported) with the [heaviest
    /// keys](Attention::with_heaviest_keys_exact), whose choice depends on later tokens, or with a share of the mean
    /// but without normalisers, [`Memory`](crate::Error::Memory) if there is no memory for the state.
    #[inline(never)]
    pub fn state(&self, batch: usize, heads_of_keys: usize, d_v: usize) -> Result<CausalState<T>> {
        check_positive("the dimension of the values", d_v)?;
        self.check_causal()?;
        if self.maps.len() > 1 {
            check_size(HEADS_WITH_MAPS, self.maps.len(), heads_of_keys)?;
        }
        self.check_room([batch, heads_of_keys, d_v])?;
        self.check_shrinkage(heads_of_keys)?;
        let head = |i: usize| {
            let i = i % heads_of_keys;
            Head::new([self.setup(i).program.width(), d_v], self.shrinkage.of(i))
        };
        let all = (0..batch * heads_of_keys).map(head).collect();
        Ok(CausalState {
            attention: self.clone(),
            shape: [batch, heads_of_keys, d_v],
            heads: all,
            workers: Vec::new(),
        })
    }

    /// Refuses states of so many sequences, heads of keys and targets for which there is no memory before the first token; those without
    /// heads count as others do.
    fn check_room(&self, [batch, heads, d_v]: [usize; 3]) -> Result<()> {
        let all = batch.max(1).saturating_mul(heads.max(1));
        check_memory("bytes of the state of causal attention", all.saturating_mul(self.bytes_with(d_v, 0)), 1)
    }
}

impl<T: Real> Attention<T> {
    /// The approximate number of bytes that a [state](Attention::state) keeps for each sequence and head of keys, for
    /// values in ℝ^d_v. It does not depend on the length.
    ///
    /// It counts sums, the features of a chunk, and keys and values with exact weights, up to twice a window. It is
    /// `usize::MAX` if the number overflows. A cache of keys and values would take d + `d_v` numbers for each token.
    pub fn state_bytes(&self, d_v: usize) -> usize {
        self.bytes_with(d_v, self.window.before)
    }

    /// As [`state_bytes`](Attention::state_bytes), for so many tokens in the window.
    fn bytes_with(&self, d_v: usize, near: usize) -> usize {
        let width = self.maps.iter().map(Map::feature_dim).fold(1, usize::max);
        let dims = [self.maps[0].dim(), d_v];
        // Rows that have left a window are dropped when they are as many as those in it.
        let rows = near.saturating_mul(2).saturating_add(self.exact.count());
        let exact = rows.saturating_mul(dims[0].saturating_add(d_v));
        let seen = if self.shrinkage.is_none() { 0 } else { d_v.saturating_mul(size_of::<f64>()) };
        Sequence::<T>::bytes(width, dims)
            .saturating_add(exact.saturating_mul(size_of::<T>()))
            .saturating_add(seen)
            .saturating_add(size_of::<Head<T>>())
    }
}

impl<T: Real> CausalState<T> {
    /// The attention whose state this is.
    pub fn attention(&self) -> &Attention<T> {
        &self.attention
    }

    /// The number of tokens of each sequence so far, masked ones among them.
    pub fn lengths(&self) -> Vec<usize> {
        let [batch, heads, _] = self.shape;
        (0..batch).map(|b| self.heads.get(b * heads).map_or(0, Head::length)).collect()
    }

    /// About how many bytes a fork of a head keeps for itself, if all it keeps is in use.
    pub(super) fn bytes_of_fork(&self) -> usize {
        let (attention, [_, _, d_v]) = (&self.attention, self.shape);
        let width = attention.maps.iter().map(Map::feature_dim).fold(1, usize::max);
        let dims = [self.dim(), d_v];
        let rows = attention.window.before.saturating_mul(2).saturating_add(attention.exact.count());
        let exact = rows.min(self.longest()).saturating_mul(dims[0].saturating_add(d_v));
        Sequence::<T>::bytes_of_fork(width, dims)
            .saturating_add(exact.saturating_mul(size_of::<T>()))
            .saturating_add(size_of::<Head<T>>())
    }

    /// The most tokens of a sequence.
    pub(super) fn longest(&self) -> usize {
        self.heads.iter().map(Head::length).fold(0, usize::max)
    }

    pub(super) fn dim(&self) -> usize {
        self.attention.maps[0].dim()
    }

    /// The numbers of sequences and of heads of keys, d_v, and d.
    pub(in super::super) fn sizes(&self) -> [usize; 4] {
        let [batch, heads, d_v] = self.shape;
        [batch, heads, d_v, self.dim()]
    }
}

impl<T: Real> Attention<T> {
    /// Whether features are computed by code of a user, which may panic.
    pub(in super::super) fn is_own(&self) -> bool {
        self.maps.iter().any(Map::is_own)
    }
}

once!(Attention::<T>::state, <CausalState<T> as Clone>::clone);

/// The stored form, checked when it is read.
#[cfg(feature = "serde")]
mod stored {
    use super::super::head::stored::StoredHead;
    use super::{Attention, CausalState, Real};
    use crate::sealed::sealed;

    #[derive(serde::Serialize, serde::Deserialize)]
    #[serde(rename = "CausalState", bound = "")]
    struct StoredState<T: Real> {
        attention: Attention<T>,
        shape: [usize; 3],
        heads: Vec<StoredHead<T>>,
    }

    sealed!(CausalState<T>, StoredState<T>, T, [T: Real]);

    impl<T: Real> From<&CausalState<T>> for StoredState<T> {
        fn from(state: &CausalState<T>) -> Self {
            let heads = state.heads.iter().map(StoredHead::from).collect();
            StoredState { attention: state.attention.clone(), shape: state.shape, heads }
        }
    }

    impl<T: Real> TryFrom<StoredState<T>> for CausalState<T> {
        type Error = String;

        fn try_from(stored: StoredState<T>) -> Result<Self, String> {
            let StoredState { attention, shape, heads } = stored;
            attention.check_causal().map_err(|error| error.to_string())?;
            let ([batch, count, d_v], maps) = (shape, attention.maps.len());
            let whole = d_v > 0
                && (maps == 1 || maps == count)
                && attention.check_shrinkage(count).is_ok()
                && attention.check_room(shape).is_ok()
                && batch.checked_mul(count) == Some(heads.len())
                && heads.chunk_by(|a, b| a.length() == b.length()).all(|same| same.len() % count == 0);
            let restored = |(i, head): (usize, StoredHead<T>)| {
                let i = i % count;
                let setup = attention.setup(i);
                head.restored(setup, attention.causal_pairs(setup.of_pairs), (d_v, attention.shrinkage.of(i)))
            };
            let heads = if whole { heads.into_iter().enumerate().map(restored).collect() } else { None };
            match heads {
                Some(heads) => Ok(CausalState { attention, shape, heads, workers: Vec::new() }),
                None => Err("sums of another shape than that of the maps and the heads".into()),
            }
        }
    }
}
