//! [`Tape`]: what a forward pass keeps for the backward pass.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use ndarray::{ArrayRef, Ix4};

use super::super::input::{Attended, Attention, Heads, Job, TokenElement, check_shape};
use super::gradients::Gradients;
use super::kept_job::KeptJob;
use crate::Real;
use crate::error::{Error, Result};
use crate::map::ParameterGradients;
use crate::memory::check_memory;
use crate::numeric;
use crate::once::once;

/// The numbers that a forward pass of [`Attention`] keeps so that the backward pass need not compute them again: features of queries
/// and keys, and d_v sums of each query.
///
/// ```
/// use random_features::ndarray::Array4;
/// use random_features::apply::attention::{Attention, Heads};
/// let x = Array4::<f32>::from_elem((1, 2, 100, 4), 0.5);
/// let heads = Heads::new(&x, &x, &x)?;
/// let attention = Attention::favor_plus(4, 16, 7)?.with_tape(1_000_000);
/// let (attended, tape) = attention.causal_recorded(&heads)?;
/// assert_eq!(attended, attention.causal(&heads)?);
/// // The loss is half the sum of the squares of all outputs.
/// let gradients = tape.backward(&heads, &attended.output)?;
/// assert_eq!(gradients, attention.causal_backward(&heads, &attended.output)?);
/// assert!(tape.bytes() < 1_000_000);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// Outputs and gradients have the same bits with a tape of any size and without one, on any number of threads. A tape serves any number
/// of backward passes.
///
/// # What is kept
/// A tape keeps D features of each key, and D features and d_v sums of each query, in `T`. For each key and each query
/// it keeps some 40 bytes more, and 8 for each block of features but the first. Bidirectional attention without a
/// window keeps the sums over all keys of a head too, where these take less than the features of the keys.
///
/// [`with_tape`](Attention::with_tape) sets the largest number of these bytes. Heads take room one after the other,
/// each first for its keys and then for its queries, 64 at a time. Keys and queries that find no room are computed
/// again in the backward pass, and so are pairs with exact weights. With a window, some queries are not kept if there
/// are more or fewer queries than keys. Maps at transformed points have factors of query features that the normaliser
/// cancels. Without exact pairs the forward pass leaves them out, and the backward pass computes the features of
/// queries once more.
#[must_use]
pub struct Tape<T: Real> {
    attention: Attention<T>,
    causal: bool,
    sizes: Sizes,
    /// The room of the first jobs; there is none for the others.
    jobs: Box<[KeptJob<T>]>,
}

/// The sizes of queries, keys and values, with digests of what else the heads of both passes must have in common.
struct Sizes {
    tensors: [[usize; 4]; 3],
    /// Where the sequences of queries and of keys begin and end.
    sequences: u64,
    mask: u64,
}

impl<T: Real> fmt::Debug for Tape<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tape { causal, sizes, .. } = self;
        let mut all = f.debug_struct("Tape");
        all.field("causal", causal).field("queries", &sizes.tensors[0]).field("bytes", &self.bytes());
        all.finish_non_exhaustive()
    }
}

impl<T: Real> Attention<T> {
    /// Sets the budget of a tape: the most bytes that [`bidirectional_recorded`](Attention::bidirectional_recorded) or
    /// [`causal_recorded`](Attention::causal_recorded) keeps in one call, over all heads and batches; 256,000,000 unless stated.
    ///
    /// With a budget of 0, or without memory for a tape, nothing is kept, and the backward pass computes everything
    /// again. No bit of a result depends on the budget. It is not stored with the attention.
    ///
    /// # Cost
    /// 39 MB for a head of 16,384 tokens with d_v = 64 and D = 256 in `f32`, until the tape is dropped. A model holds as
    /// many tapes as it has layers between their forward and backward passes.
    #[must_use]
    pub fn with_tape(mut self, bytes: usize) -> Self {
        self.tape = bytes;
        self
    }

    /// The [budget](Attention::with_tape) of a tape, in bytes.
    pub fn tape_budget(&self) -> usize {
        self.tape
    }

    /// The outputs of [`bidirectional`](Attention::bidirectional) attention, and a tape for its
    /// [backward pass](Tape::backward).
    ///
    /// # Cost
    /// The cost of [`bidirectional`](Attention::bidirectional), and a copy of the d_v sums of each query that is kept. Features are kept
    /// where they are computed. The tape holds memory up to its [budget](Attention::with_tape), and a copy of this attention.
    ///
    /// # Errors
    /// The errors of [`bidirectional`](Attention::bidirectional); [`Unsupported`](Error::Unsupported) if a map has no gradients.
    pub fn bidirectional_recorded<E: TokenElement<T>>(
        &self,
        heads: &Heads<'_, E>,
    ) -> Result<(Attended<T>, Tape<T>)> {
        self.recorded(heads, false)
    }

    /// The outputs of [`causal`](Attention::causal) attention, and a tape for its [backward pass](Tape::backward).
    ///
    /// # Cost
    /// The cost of [`causal`](Attention::causal), and a copy of the d_v sums of each query that is kept. The tape holds
    /// memory up to its [budget](Attention::with_tape), and a copy of this attention.
    ///
    /// # Errors
    /// The errors of [`bidirectional_recorded`](Attention::bidirectional_recorded); [`Shape`](Error::Shape) if a sequence has another
    /// number of keys than of queries, [`Unsupported`](Error::Unsupported) if the
    /// [heaviest keys](Attention::with_heaviest_keys_exact) have exact weights.
    pub fn causal_recorded<E: TokenElement<T>>(
        &self,
        heads: &Heads<'_, E>,
    ) -> Result<(Attended<T>, Tape<T>)> {
        self.recorded(heads, true)
    }

    fn recorded<E: TokenElement<T>>(
        &self,
        heads: &Heads<'_, E>,
        causal: bool,
    ) -> Result<(Attended<T>, Tape<T>)> {
        heads.check_output::<T>(0)?;
        let mut output = numeric::zeros(heads.output_dim());
        self.check(heads, &output)?;
        self.check_differentiable()?;
        if causal {
            heads.check_causal()?;
            self.check_causal()?;
        }
        let mut jobs = self.with_outputs(heads, &mut output);
        let tape = Tape::new(self, Sizes::of(heads), jobs.iter().map(|(job, _)| job), causal);
        let queries = tape.has_features();
        jobs.iter_mut().zip(&tape.jobs).for_each(|((job, _), kept)| kept.lend(job, queries));
        let non_positive = self.attend(jobs, causal)?;
        Ok((Attended::new(output, non_positive), tape))
    }
}

impl<T: Real> Tape<T> {
    /// A tape on which nothing is yet.
    fn new<'a, 'b: 'a>(
        attention: &Attention<T>,
        sizes: Sizes,
        jobs: impl Iterator<Item = &'a Job<'b, T>> + Clone,
        causal: bool,
    ) -> Self {
        let most = jobs.clone().map(|job| KeptJob::most(attention, job, causal));
        let most = most.fold(0, usize::saturating_add).min(attention.tape);
        // Outputs need no tape: without memory for it nothing is kept.
        let mut room = check_memory("bytes of a tape", most, 1).map_or(0, |()| most);
        let jobs = jobs.map_while(|job| KeptJob::new(attention, job, causal, &mut room)).collect();
        Tape { attention: attention.clone(), causal, sizes, jobs }
    }

    /// Whether the forward pass has the features that the backward pass needs of queries: with all factors.
    fn has_features(&self) -> bool {
        let with_factors = self.attention.maps.iter().any(|map| map.program().has_factors());
        !(with_factors && self.attention.may_leave_factors())
    }

    /// The bytes that are kept, never more than the [budget](Attention::with_tape). A backward pass may add some.
    #[inline(never)]
    pub fn bytes(&self) -> usize {
        self.jobs.iter().map(KeptJob::bytes).sum()
    }

    /// The gradients of a loss with respect to queries, keys and values, from its gradient with respect to the output,
    /// \[b, h, n, d_v\]: those of [`bidirectional_backward`](Attention::bidirectional_backward) or, after a causal forward pass, of
    /// [`causal_backward`](Attention::causal_backward).
    ///
    /// The heads must be the ones of the forward pass. Their sizes, sequences and mask are checked; their numbers are
    /// not, and other numbers give wrong gradients.
    ///
    /// # Cost
    /// Three times the multiplications of the forward pass if nothing is kept. If all is kept, bidirectional gradients
    /// without a window take 1.5 times as many as the forward pass. Causal gradients and gradients with a window take
    /// some 1.75 times as many, since sums over keys are computed again. The backward pass may keep what the forward
    /// pass did not.
    ///
    /// # Errors
    /// The errors of [`bidirectional_backward`](Attention::bidirectional_backward). [`Shape`](Error::Shape) if the sizes of the heads are
    /// not those of the forward pass, [`Unsupported`](Error::Unsupported) if their sequences or their mask are others.
    #[doc(alias = "vjp")]
    pub fn backward<E: TokenElement<T>>(
        &self,
        heads: &Heads<'_, E>,
        output_gradients: &ArrayRef<T, Ix4>,
    ) -> Result<Gradients<T>> {
        Ok(self.run(heads, output_gradients, false)?.0)
    }

    /// The [gradients](Tape::backward) with respect to queries, keys and values, and those with respect to the parameters of each map,
    /// over all heads and batches.
    ///
    /// # Errors
    /// The errors of [`backward`](Tape::backward); [`Unsupported`](Error::Unsupported) if a map's parameters have no gradients (see
    /// [`Map::pull_back_parameters`](crate::Map::pull_back_parameters)).
    pub fn backward_with_parameters<E: TokenElement<T>>(
        &self,
        heads: &Heads<'_, E>,
        output_gradients: &ArrayRef<T, Ix4>,
    ) -> Result<(Gradients<T>, Vec<ParameterGradients>)> {
        self.run(heads, output_gradients, true)
    }

    fn run<E: TokenElement<T>>(
        &self,
        heads: &Heads<'_, E>,
        output_gradients: &ArrayRef<T, Ix4>,
        with_parameters: bool,
    ) -> Result<(Gradients<T>, Vec<ParameterGradients>)> {
        self.sizes.check(heads)?;
        self.attention.backward(heads, output_gradients, (self.causal, &self.jobs), with_parameters)
    }
}

impl Sizes {
    fn of<E>(heads: &Heads<'_, E>) -> Self {
        let dims = [heads.queries.dim(), heads.keys.dim(), heads.values.dim()];
        let tensors = dims.map(|(b, h, n, d)| [b, h, n, d]);
        Sizes { tensors, sequences: digest(&heads.ranges()), mask: digest(&heads.mask) }
    }

    /// Refuses heads of other sizes or sequences, or with another mask.
    fn check<E>(&self, heads: &Heads<'_, E>) -> Result<()> {
        let what = [
            "the batch size of heads, which are those of the forward pass,",
            "the number of heads, which are those of the forward pass,",
            "the length of heads, which are those of the forward pass,",
            "the dimension of heads, which are those of the forward pass,",
        ];
        let found = Sizes::of(heads);
        let tensors = self.tensors.iter().zip(&found.tensors);
        tensors.into_iter().try_for_each(|(expected, found)| check_shape(what, found, *expected))?;
        if self.sequences != found.sequences {
            let what = "gradients from a tape whose forward pass had other sequences";
            return Err(Error::Unsupported { what });
        }
        if self.mask != found.mask {
            let what = "gradients from a tape whose forward pass had another mask of the keys";
            return Err(Error::Unsupported { what });
        }
        Ok(())
    }
}

fn digest(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

once!(Tape::<T>::bytes);
