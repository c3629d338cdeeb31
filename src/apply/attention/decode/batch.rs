//! Batches of [`CausalState`]: prompts that are taken in at once, and sequences that come, go and fork.

use ndarray::{ArrayRef, Ix4};

use super::super::input::{Attended, Heads, NonPositive, TokenElement, in_order, threads_of_each};
use super::super::linear::JobWithOutputs;
use super::head::Head;
use super::state::CausalState;
use crate::Real;
use crate::error::{Error, Result, check_size};
use crate::memory::check_memory;
use crate::numeric;
use crate::once::once;
use crate::whole::try_all_or_none;
use crate::{progress, threads};

impl<T: Real> CausalState<T> {
    /// Takes in the next tokens of each sequence, such as prompts, and gives the outputs of their queries, if there are
    /// [any](Heads::without_queries).
    ///
    /// ```
    /// use random_features::ndarray::{Array3, Array4};
    /// use random_features::apply::attention::{Attention, Heads};
    /// let attention = Attention::<f32>::favor_plus(8, 64, 7)?;
    /// // Prompts of 3 and of 5 tokens, one after the other,
    /// // for 4 heads of queries and 2 of keys.
    /// let q = Array4::<f32>::ones((1, 4, 8, 8));
    /// let kv = Array4::ones((1, 2, 8, 8));
    /// let prompts = Heads::new(&q, &kv, &kv)?;
    /// let prompts = prompts.with_sequences(&[0, 3, 8], &[0, 3, 8])?;
    /// let mut state = attention.state(2, 2, 8)?;
    /// assert_eq!(state.prefill(&prompts)?.output.dim(), (1, 4, 8, 8));
    /// // Then a token of each.
    /// let q = Array3::<f32>::ones((2, 4, 8));
    /// let kv = Array3::ones((2, 2, 8));
    /// assert_eq!(state.step(&q, &kv, &kv)?.output.dim(), (2, 4, 8));
    /// assert_eq!(state.lengths(), [4, 6]);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// Outputs have the same bits as those of [`causal`](super::super::Attention::causal) attention over all tokens so
    /// far. A long prompt may come in pieces, one call after the other. Features are computed once for sums and
    /// outputs.
    ///
    /// Prompts of different lengths are best packed one after the other, [as sequences](Heads::with_sequences). The
    /// state's sequences are then those of the first batch, of the second, and so on. In a padded batch a
    /// [mask](Heads::with_mask) leaves tokens out. Masked tokens keep their places, which count for the
    /// [window](super::super::Attention::with_window). Pad on the left then, so that the last places hold real tokens.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if a size does not fit, or a sequence has another number of keys than of queries although there are
    /// queries; [`Memory`](Error::Memory) if there is no memory for the outputs; [`Cancelled`](Error::Cancelled) if a
    /// [watcher](crate::progress::watch) stops it. Nothing has been taken in then.
    pub fn prefill<E: TokenElement<T>>(&mut self, heads: &Heads<'_, E>) -> Result<Attended<T>> {
        self.check_prefill(heads)?;
        let mut output = numeric::zeros(heads.output_dim());
        let non_positive = self.prefill_into(heads, &mut output)?;
        Ok(Attended::new(output, non_positive))
    }

    /// Refuses tokens that do not fit, or for which there is no memory.
    pub(in super::super) fn check_prefill<E: TokenElement<T>>(&self, heads: &Heads<'_, E>) -> Result<()> {
        let [batch, of_keys, d_v] = self.shape;
        let ((b, _, n, d), (_, found, l, _)) = (heads.queries.dim(), heads.keys.dim());
        let sequences = b.saturating_mul(heads.ranges().len());
        check_size(
            "the number of sequences, which is the batch size unless these have offsets,",
            batch,
            sequences,
        )?;
        check_size("the number of heads of the keys", of_keys, found)?;
        check_size("the dimension of the queries and the keys", self.dim(), d)?;
        check_size("the dimension of the values", d_v, heads.values.dim().3)?;
        if n > 0 {
            heads.check_causal()?;
        }
        heads.check_output::<T>(0)?;
        heads.check_count::<T>()?;
        check_memory("tokens of windows", self.kept_bytes(heads), 1)?;
        // Tokens in the window are copied, at first with all behind them.
        let of_token = d.saturating_add(d_v).saturating_mul(2 * size_of::<T>());
        let windowed = if self.attention.window.is_none() { 0 } else { of_token };
        let each = windowed.saturating_add(self.attention.exact.bytes_of_key::<T>(d));
        check_memory("tokens of which some have exact weights", l, each)
    }

    /// About how many bytes of keys and values windows keep of these tokens, with those of a copy.
    pub(in super::super) fn kept_bytes<E>(&self, heads: &Heads<'_, E>) -> usize {
        let ((b, of_keys, l, d), (.., d_v)) = (heads.keys.dim(), heads.values.dim());
        let kept = b.saturating_mul(of_keys).saturating_mul(l.min(self.attention.window.before));
        kept.saturating_mul(d.saturating_add(d_v)).saturating_mul(2 * size_of::<T>())
    }

    /// Takes in tokens that were [checked](CausalState::check_prefill), and writes the outputs of their queries. It fails only if a
    /// [watcher](crate::progress::watch) stops it; nothing has been taken in then.
    pub(in super::super) fn prefill_into<E: TokenElement<T>>(
        &mut self,
        heads: &Heads<'_, E>,
        out: &mut ArrayRef<T, Ix4>,
    ) -> Result<NonPositive> {
        self.take_in(in_order_of_heads(heads, self.attention.with_outputs(heads, out)))
    }

    /// Takes in the jobs of all heads, or, if the work is stopped, none.
    #[inline(never)]
    fn take_in(&mut self, jobs: Vec<JobWithOutputs<'_, T>>) -> Result<NonPositive> {
        let (attention, threads, all) = (&self.attention, threads_of_each(self.heads.len()), self.shape[1]);
        let of_head = |(i, (head, job)): (usize, (&mut Head<T>, JobWithOutputs<'_, T>))| {
            let setup = attention.setup(i % all);
            head.prefill(setup, attention.causal_pairs(setup.of_pairs), job, threads)
        };
        try_all_or_none(&mut self.heads, attention.is_own() || progress::is_watched(), |heads| {
            let non_positive = in_order(threads::map(heads.iter_mut().zip(jobs).enumerate(), of_head));
            progress::check().map(|()| non_positive)
        })
    }

    /// Keeps these sequences, in this order. A sequence may be left out, or be listed several times, as in beam search:
    /// its copies are [forks](CausalState#forks).
    ///
    /// # Errors
    /// [`Entry`](Error::Entry) if there is no such sequence, [`Memory`](Error::Memory) if there is no memory for what forks do not share;
    /// nothing has changed then.
    #[inline(never)]
    pub fn select(&mut self, sequences: &[usize]) -> Result<()> {
        self.check_select(sequences)?;
        self.keep(sequences);
        Ok(())
    }

    /// Refuses sequences that do not exist, or for whose forks there is no memory.
    pub(in super::super) fn check_select(&self, sequences: &[usize]) -> Result<()> {
        let [batch, heads, _] = self.shape;
        if let Some(row) = sequences.iter().position(|b| *b >= batch) {
            let (what, value) = ("the sequences to select", sequences[row] as f64);
            return Err(Error::Entry { what, row, value, domain: "below the number of sequences" });
        }
        check_memory("forks of heads", self.bytes_of_forks(sequences), 1)?;
        check_memory("heads", sequences.len().saturating_mul(heads), size_of::<Head<T>>())
    }

    /// About how many bytes forks of these sequences, which exist, take.
    pub(in super::super) fn bytes_of_forks(&self, sequences: &[usize]) -> usize {
        let forks = self.uses(sequences).into_iter().map(|count| count.saturating_sub(1)).sum::<usize>();
        forks.saturating_mul(self.shape[1]).saturating_mul(self.bytes_of_fork())
    }

    /// How often each sequence is selected.
    fn uses(&self, sequences: &[usize]) -> Vec<usize> {
        let mut uses = vec![0; self.shape[0]];
        sequences.iter().for_each(|b| uses[*b] += 1);
        uses
    }

    /// Keeps sequences that exist.
    pub(in super::super) fn keep(&mut self, sequences: &[usize]) {
        let (heads, mut left) = (self.shape[1], self.uses(sequences));
        let mut all: Vec<Option<Head<T>>> = std::mem::take(&mut self.heads).into_iter().map(Some).collect();
        for b in sequences {
            left[*b] -= 1;
            let own = &mut all[b * heads..(b + 1) * heads];
            self.heads.extend(
                own.iter_mut().filter_map(|head| if left[*b] == 0 { head.take() } else { head.clone() }),
            );
        }
        self.shape[0] = sequences.len();
    }

    /// Appends the sequences of another state, such as prompts that came later.
    ///
    /// # Errors
    /// [`Merge`](Error::Merge) if it is a state of another attention, or of other numbers of heads or dimensions; nothing has changed then.
    #[inline(never)]
    pub fn append(&mut self, other: Self) -> Result<()> {
        self.check_append(&other)?;
        self.extend(other);
        Ok(())
    }

    /// Refuses sequences of another attention.
    pub(in super::super) fn check_append(&self, other: &Self) -> Result<()> {
        if self.shape[1..] != other.shape[1..] || !self.attention.is_same(&other.attention) {
            return Err(Error::Merge { reason: "their attention, numbers of heads or dimensions differ" });
        }
        Ok(())
    }

    /// Appends sequences of the same attention.
    pub(in super::super) fn extend(&mut self, other: Self) {
        self.heads.extend(other.heads);
        self.shape[0] += other.shape[0];
    }
}

/// Jobs in the order of sequences and of their heads of keys.
fn in_order_of_heads<'b, T: Real, E>(
    heads: &Heads<'_, E>,
    jobs: Vec<JobWithOutputs<'b, T>>,
) -> Vec<JobWithOutputs<'b, T>> {
    let (sequences, of_keys) = (heads.ranges().len(), heads.keys.dim().1);
    // They come batch by batch, head by head, and sequence by sequence.
    let position = |i: usize| {
        let (row, s) = (i / sequences, i % sequences);
        (row / of_keys * sequences + s, row % of_keys)
    };
    let mut jobs: Vec<_> = jobs.into_iter().enumerate().map(|(i, job)| (position(i), job)).collect();
    jobs.sort_by_key(|(position, _)| *position);
    jobs.into_iter().map(|(_, job)| job).collect()
}

once!(CausalState::<T>::take_in, CausalState::<T>::select, CausalState::<T>::append);
