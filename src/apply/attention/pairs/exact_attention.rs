//! [`ExactAttention`]: softmax attention itself, the reference and the better choice for short sequences.

use std::ops::Range;

use ndarray::{ArrayRef, ArrayViewMut2, Axis, Ix4};

use super::super::input::{
    Attended, Heads, Job, KeyRun, NonPositive, QueryRun, Reading, TokenElement, check_output, cuts, either,
    in_order,
};
use super::blocks::{ExactRun, KeyBlock};
use crate::Real;
use crate::error::{Result, checked_positive};
use crate::memory::check_memory;
use crate::numeric;
use crate::once::once;
use crate::progress;
use crate::threads::{self, Pool};

/// Keys of a block.
const KEYS: usize = 256;
/// Queries of a block.
const QUERIES: usize = 48;

/// Softmax attention itself, without approximation: the reference, and the better choice for short sequences.
///
/// ```
/// use random_features::ndarray::Array4;
/// use random_features::apply::attention::{ExactAttention, Heads};
/// let (q, k) = (Array4::zeros((1, 2, 3, 8)), Array4::ones((1, 2, 5, 8)));
/// let v = Array4::<f32>::ones((1, 2, 5, 2));
/// let out = ExactAttention::new().bidirectional(&Heads::new(&q, &k, &v)?)?;
/// assert_eq!(out.output.dim(), (1, 2, 3, 2));
/// let causal = ExactAttention::new().causal(&Heads::new(&k, &k, &v)?)?;
/// assert_eq!(causal.output.dim(), (1, 2, 5, 2));
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// out(q) = Σⱼ exp(s q·kⱼ) vⱼ / Σⱼ exp(s q·kⱼ), over all keys or, causally, those up to the query's own place. The scale s is 1/√d
/// unless [stated otherwise](ExactAttention::with_scale). Blocks of the matrix of weights are computed one after the other, relative to
/// the largest logit so far; the matrix never exists.
///
/// # Accuracy
/// Sums over keys are taken in `T`, so values must be some way below its largest number. A query that sees no key gets 0. A query whose
/// weights are all 0, since all its logits are −∞, gets 0 and is [reported](Attended::non_positive).
///
/// NaN in a query makes its own output NaN, and NaN in a key the outputs of all queries that may see it. A logit of NaN
/// or +∞, from infinite coordinates or beyond the range of `T`, makes the output of its query NaN. A logit of −∞ has
/// the weight 0. A value that is not finite counts where its weight is not 0. Results are bit-identical on any number
/// of threads.
///
/// # Cost
/// O(n l (d + d_v)) time for each head, O(l (d + d_v)) memory.
///
/// # References
/// Vaswani et al., *Attention Is All You Need*; the running maximum: Milakov and Gimelshein, *Online Normalizer Calculation
/// for Softmax*.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ExactAttention {
    /// s; 1/√d if it is not given.
    scale: Option<f64>,
    unit: bool,
}

/// A job, and the outputs of each of its heads of queries.
type JobWithRows<'a, T> = (Job<'a, T>, Vec<ArrayViewMut2<'a, T>>);

impl ExactAttention {
    /// Exact attention with the logits q·k/√d.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the scale: logits are q·k·`scale` instead of q·k/√d.
    ///
    /// # Errors
    /// [`Parameter`](crate::Error::Parameter) unless the scale is positive and finite.
    pub fn with_scale(self, scale: f64) -> Result<Self> {
        Ok(ExactAttention { scale: Some(checked_positive("the scale of the logits", scale)?), ..self })
    }

    /// Takes cosines: logits are q·k/(‖q‖ ‖k‖ `temperature`). A zero vector stays zero, so that all its logits are 0.
    ///
    /// # Errors
    /// [`Parameter`](crate::Error::Parameter) unless the temperature and its inverse are positive and finite.
    pub fn with_cosine(self, temperature: f64) -> Result<Self> {
        let inverse = checked_positive("the temperature of the cosines", temperature)?.recip();
        let scale = checked_positive("the inverse of the temperature of the cosines", inverse)?;
        Ok(ExactAttention { scale: Some(scale), unit: true })
    }

    /// The outputs of queries that attend to all keys.
    ///
    /// # Errors
    /// [`Memory`](crate::Error::Memory) if there is no memory for the output or for a copy of keys and values,
    /// [`Cancelled`](crate::Error::Cancelled) if a [watcher](crate::progress::watch) stops it.
    pub fn bidirectional<T: Real, E: TokenElement<T>>(&self, heads: &Heads<'_, E>) -> Result<Attended<T>> {
        heads.check_output::<T>(0)?;
        let mut output = numeric::zeros(heads.output_dim());
        let non_positive = self.bidirectional_into(heads, &mut output)?;
        Ok(Attended::new(output, non_positive))
    }

    /// Writes the outputs of [`bidirectional`](ExactAttention::bidirectional) attention to `out`, \[b, h, n, d_v\], and
    /// returns batch, head and row of the queries whose normaliser is not positive.
    ///
    /// # Errors
    /// The errors of [`bidirectional`](ExactAttention::bidirectional); [`Shape`](crate::Error::Shape) if `out` does not fit. Nothing is written
    /// then, unless it is [`Cancelled`](crate::Error::Cancelled): `out` holds some of the outputs then.
    pub fn bidirectional_into<T: Real, E: TokenElement<T>>(
        &self,
        heads: &Heads<'_, E>,
        out: &mut ArrayRef<T, Ix4>,
    ) -> Result<Vec<[usize; 3]>> {
        check_output(heads, out)?;
        self.run(heads, out, false)
    }

    /// The outputs of queries that attend to the keys up to their own place.
    ///
    /// # Errors
    /// The errors of [`bidirectional`](ExactAttention::bidirectional); [`Shape`](crate::Error::Shape) if a sequence has another number of keys than of
    /// queries.
    pub fn causal<T: Real, E: TokenElement<T>>(&self, heads: &Heads<'_, E>) -> Result<Attended<T>> {
        heads.check_output::<T>(0)?;
        let mut output = numeric::zeros(heads.output_dim());
        let non_positive = self.causal_into(heads, &mut output)?;
        Ok(Attended::new(output, non_positive))
    }

    /// Writes the outputs of [`causal`](ExactAttention::causal) attention to `out`, \[b, h, n, d_v\], and returns
    /// batch, head and row of the queries whose normaliser is not positive.
    ///
    /// # Errors
    /// The errors of [`causal`](ExactAttention::causal), and [`Shape`](crate::Error::Shape) if `out` does not fit. Nothing is
    /// written then, unless it is
    /// [`Cancelled`](crate::Error::Cancelled): `out` holds some of the outputs then.
    pub fn causal_into<T: Real, E: TokenElement<T>>(
        &self,
        heads: &Heads<'_, E>,
        out: &mut ArrayRef<T, Ix4>,
    ) -> Result<Vec<[usize; 3]>> {
        check_output(heads, out)?;
        heads.check_causal()?;
        self.run(heads, out, true)
    }

    fn run<T: Real, E: TokenElement<T>>(
        &self,
        heads: &Heads<'_, E>,
        out: &mut ArrayRef<T, Ix4>,
        causal: bool,
    ) -> Result<NonPositive> {
        heads.check_count::<T>()?;
        check_packed::<T, E>(heads)?;
        let jobs = heads.jobs().into_iter().zip(heads.parts_of_queries(out.view_mut())).collect();
        self.attend(jobs, self.scale_of(heads), causal)
    }

    pub(in super::super) fn scale_of<E>(&self, heads: &Heads<'_, E>) -> f64 {
        // A zero-dimensional query has the logit 0 whatever the scale.
        self.scale.unwrap_or((heads.queries.dim().3.max(1) as f64).sqrt().recip())
    }

    /// How queries and keys are read. Both take a root of a scale that `f32` does not hold.
    pub(in super::super) fn readings(&self, scale: f64) -> [Reading; 2] {
        let [of_keys, of_queries] = either([1.0, scale], scale.sqrt());
        [of_queries, of_keys].map(|factor| Reading { factor, unit: self.unit })
    }

    /// Writes the outputs of jobs.
    #[inline(never)]
    fn attend<T: Real>(
        &self,
        jobs: Vec<JobWithRows<'_, T>>,
        scale: f64,
        causal: bool,
    ) -> Result<NonPositive> {
        let non_positive = in_order(threads::map(jobs, |job| self.of_job(job, scale, causal)));
        // What was stopped has left out the rest.
        progress::check().map(|()| non_positive)
    }

    fn of_job<T: Real>(&self, (job, outputs): JobWithRows<'_, T>, scale: f64, causal: bool) -> NonPositive {
        let [of_queries, of_keys] = self.readings(scale);
        let blocks = blocks(&of_keys, job.keys.reborrow());
        let of_head = |(QueryRun { rows, origin: [b, h, first], .. }, mut out): (
            QueryRun<'_, T>,
            ArrayViewMut2<'_, T>,
        )|
         -> NonPositive {
            let runs = out.axis_chunks_iter_mut(Axis(0), QUERIES).enumerate();
            let of_run = |(exact, points): &mut (ExactRun<T>, Vec<T>),
                          (run, out): (usize, ArrayViewMut2<'_, T>)| {
                if progress::is_stopped() {
                    return NonPositive::new();
                }
                let start = run * QUERIES;
                of_queries.points(rows.rows(start..start + out.nrows()), points);
                let rows = answer(exact, (points, &blocks), causal.then_some(start), out);
                rows.into_iter().map(|i| [b, h, first + start + i]).collect::<NonPositive>()
            };
            Pool::default().map(runs, of_run).concat()
        };
        threads::map(job.queries.into_iter().zip(outputs), of_head).concat()
    }
}

/// Refuses heads for a packed copy of whose keys and values there is no memory.
pub(in super::super) fn check_packed<T, E>(heads: &Heads<'_, E>) -> Result<()> {
    let ((.., l, d), (.., d_v)) = (heads.keys.dim(), heads.values.dim());
    check_memory("keys with their values", l, d.saturating_add(d_v).saturating_mul(size_of::<T>()))
}

/// Keys with their values, packed; empty blocks once the work is stopped.
pub(in super::super) fn blocks<T: Real>(reading: &Reading, keys: KeyRun<'_, T>) -> Vec<KeyBlock<T>> {
    threads::map(cuts(0..keys.len(), KEYS), |run: Range<usize>| {
        let mut block = KeyBlock::default();
        if progress::is_stopped() {
            return block;
        }
        block.read(reading, keys.rows(run.clone()), run.start, &mut Vec::new());
        block
    })
}

/// Writes the outputs of a run of queries and returns the rows whose normaliser is not positive. Causally, `first` is the place of the
/// first query in its sequence.
fn answer<T: Real>(
    run: &mut ExactRun<T>,
    (queries, blocks): (&[T], &[KeyBlock<T>]),
    first: Option<usize>,
    mut out: ArrayViewMut2<'_, T>,
) -> Vec<usize> {
    let (count, targets) = out.dim();
    let sees = |i: usize| 0..first.map_or(usize::MAX, |first| first + i + 1);
    run.begin(count, targets);
    blocks.iter().take_while(|_| !progress::is_stopped()).for_each(|block| run.add(queries, block, sees));
    for (i, mut out) in out.rows_mut().into_iter().enumerate() {
        let part = run.part(i);
        let inverse = if part.normaliser == 0.0 { 0.0 } else { part.normaliser.recip() };
        out.iter_mut().zip(part.sums).for_each(|(out, sum)| *out = T::narrow(sum.widen() * inverse));
    }
    (0..count).filter(|i| run.part(*i).is_lost()).collect()
}

once!(ExactAttention::attend::<T>);
