//! [`ExactAttention`]: softmax attention itself, the reference and the better choice for short sequences.

use std::ops::Range;

use ndarray::{Array4, ArrayRef, ArrayViewMut2, Axis, Ix4};

use super::drive::Places;
use super::heads::{Heads, Job, KeyRun, Member};
use super::reading::Reading;
use super::{Attended, Element, check_output, in_order};
use crate::Real;
use crate::error::{Result, checked_positive};
use crate::numeric::{self, Isa, Packed, add_product, affine, exp_minus, max, product};
use crate::once::once;
use crate::threads::{self, Pool};

/// Keys of a block.
const KEYS: usize = 256;
/// Queries of a block.
const QUERIES: usize = 48;

/// Softmax attention itself, without approximation: out(q) = Σⱼ exp(s q·kⱼ) vⱼ / Σⱼ exp(s q·kⱼ), over all keys or, causally,
/// those up to the query's own place. Blocks of the matrix of weights are computed one after the other, relative to the
/// largest logit so far; the matrix never exists.
///
/// Sums over keys are taken in `T`, so values must be some way below its largest number. A query that sees no key gets 0; one
/// whose weights are all 0, since all its logits are −∞, gets 0 and is [reported](Attended::non_positive). NaN in a query or a key
/// makes the outputs NaN that may see it, and no others; so does a logit of NaN or +∞, as infinite coordinates and logits beyond
/// the range of `T` give, but one of −∞ has the weight 0. A value that is not finite counts where its weight is not 0. Results are
/// bit-identical on any number of threads.
///
/// # Cost
/// O(n l (d + d_v)) time for each head, O(l (d + d_v)) memory.
///
/// # Example
/// ```
/// use ndarray::Array4;
/// use random_features::apply::attention::{ExactAttention, Heads};
/// let (q, k) = (Array4::<f64>::zeros((1, 1, 3, 8)), Array4::ones((1, 1, 5, 8)));
/// let v = Array4::from_shape_fn((1, 1, 5, 2), |(_, _, j, t)| (j + t) as f64);
/// // A query of zeros attends to all alike.
/// let out = ExactAttention::new().bidirectional(&Heads::new(&q, &k, &v)?)?.output;
/// assert_eq!((out[[0, 0, 1, 0]], out[[0, 0, 1, 1]]), (2.0, 3.0));
/// let causal = ExactAttention::new().causal(&Heads::new(&k, &k, &v)?)?.output;
/// assert_eq!(causal[[0, 0, 2, 0]], 1.0);
/// # Ok::<(), random_features::Error>(())
/// ```
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

/// Keys and values of a block, packed.
struct PackedKeys<T> {
    keys: Packed<T>,
    values: Packed<T>,
    /// The rows of values that are not finite; among the packed ones they are 0.
    not_finite: Vec<(usize, Vec<T>)>,
    /// Whether keys count; all if there are none.
    mask: Vec<bool>,
    range: Range<usize>,
}

/// What a thread keeps from one run of queries to the next.
#[derive(Default)]
struct RunBuffers<T> {
    queries: Vec<T>,
    scores: Vec<T>,
    sums: Vec<T>,
    /// The largest logit so far, and Σ exp(logit − that), of each query.
    tops: Vec<T>,
    totals: Vec<f64>,
}

impl ExactAttention {
    /// With s = 1/√d.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same for logits q·k·`scale`.
    ///
    /// # Errors
    /// [`Parameter`](crate::Error::Parameter) unless the scale is positive and finite.
    pub fn scale(self, scale: f64) -> Result<Self> {
        Ok(ExactAttention { scale: Some(checked_positive("the scale of the logits", scale)?), ..self })
    }

    /// The same for logits q·k/(‖q‖ ‖k‖ `temperature`). A zero vector stays zero: it attends to all alike.
    ///
    /// # Errors
    /// [`Parameter`](crate::Error::Parameter) unless the temperature is positive and finite.
    pub fn cosine(self, temperature: f64) -> Result<Self> {
        Ok(ExactAttention {
            scale: Some(checked_positive("the temperature of the cosines", temperature)?.recip()),
            unit: true,
        })
    }

    /// Every query attends to all keys.
    ///
    /// # Errors
    /// None today; sizes are checked by [`Heads`].
    pub fn bidirectional<T: Real, E: Element<T>>(&self, heads: &Heads<'_, E>) -> Result<Attended<T>> {
        let mut output = Array4::zeros(heads.output_dim());
        let non_positive = self.bidirectional_into(heads, &mut output)?;
        Ok(Attended::new(output, non_positive))
    }

    /// As [`bidirectional`](ExactAttention::bidirectional), into an array of yours; the places of normalisers that are not
    /// positive.
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if `out` does not fit; nothing is written then.
    pub fn bidirectional_into<T: Real, E: Element<T>>(
        &self,
        heads: &Heads<'_, E>,
        out: &mut ArrayRef<T, Ix4>,
    ) -> Result<Vec<[usize; 3]>> {
        check_output(heads, out)?;
        Ok(self.run(heads, out, false))
    }

    /// Every query attends to the keys up to its own place.
    ///
    /// # Errors
    /// [`Shape`](crate::Error::Shape) if a sequence has another number of keys than of queries.
    pub fn causal<T: Real, E: Element<T>>(&self, heads: &Heads<'_, E>) -> Result<Attended<T>> {
        let mut output = Array4::zeros(heads.output_dim());
        let non_positive = self.causal_into(heads, &mut output)?;
        Ok(Attended::new(output, non_positive))
    }

    /// As [`causal`](ExactAttention::causal), into an array of yours; the places of normalisers that are not positive.
    ///
    /// # Errors
    /// As [`causal`](ExactAttention::causal), or if `out` does not fit; nothing is written then.
    pub fn causal_into<T: Real, E: Element<T>>(
        &self,
        heads: &Heads<'_, E>,
        out: &mut ArrayRef<T, Ix4>,
    ) -> Result<Vec<[usize; 3]>> {
        check_output(heads, out)?;
        heads.check_causal()?;
        Ok(self.run(heads, out, true))
    }

    fn run<T: Real, E: Element<T>>(
        &self,
        heads: &Heads<'_, E>,
        out: &mut ArrayRef<T, Ix4>,
        causal: bool,
    ) -> Places {
        let scale = self.scale.unwrap_or((heads.queries.dim().3 as f64).sqrt().recip());
        // A zero-dimensional query has the logit 0 whatever the scale.
        let scale = if scale.is_finite() { scale } else { 1.0 };
        self.attend(heads.jobs(out.view_mut()), scale, causal)
    }

    /// Writes the outputs of jobs.
    #[inline(never)]
    fn attend<T: Real>(&self, jobs: Vec<Job<'_, T>>, scale: f64, causal: bool) -> Places {
        in_order(threads::map(jobs, |job| self.of_job(job, scale, causal)))
    }

    fn of_job<T: Real>(&self, job: Job<'_, T>, scale: f64, causal: bool) -> Places {
        let reading = |factor| Reading { factor, unit: self.unit, epsilon: 0.0 };
        let keys = job.keys.len();
        let block = |start: usize| PackedKeys::new(&reading(1.0), job.keys, start..keys.min(start + KEYS));
        let blocks = threads::map((0..keys).step_by(KEYS), block);
        let of_member = |Member { queries, mut out, place: [b, h, first] }: Member<'_, T>| -> Places {
            let runs = out.axis_chunks_iter_mut(Axis(0), QUERIES).enumerate();
            let of_run = |buffers: &mut RunBuffers<T>, (run, out): (usize, ArrayViewMut2<'_, T>)| {
                let start = run * QUERIES;
                let queries = queries.rows(start..start + out.nrows());
                reading(scale).points(queries, &mut buffers.queries);
                let rows = buffers.attend(&blocks, causal.then_some(start), out);
                rows.into_iter().map(|i| [b, h, first + start + i]).collect::<Places>()
            };
            Pool::default().map(runs, of_run).concat()
        };
        threads::map(job.members, of_member).concat()
    }
}

impl<T: Real> PackedKeys<T> {
    fn new(reading: &Reading, keys: KeyRun<'_, T>, range: Range<usize>) -> Self {
        let run = keys.rows(range.clone());
        let (mut points, mut values, mut not_finite) = (Vec::new(), Vec::new(), Vec::new());
        reading.points(run.keys, &mut points);
        let mut keys = Packed::default();
        keys.refill_rows(&points, run.len(), run.keys.ncols());
        run.values.read(T::one(), &mut values);
        for (j, row) in values.chunks_exact_mut(run.values.ncols()).enumerate() {
            if row.iter().any(|v| !v.is_finite()) {
                not_finite.extend(run.sees(j).then(|| (j, row.to_vec())));
                row.fill(T::zero());
            }
        }
        let mut packed = Packed::default();
        packed.refill_columns(&values, run.len(), run.values.ncols());
        let mask = run.mask.iter().flatten().copied().collect();
        PackedKeys { keys, values: packed, not_finite, mask, range }
    }

    /// Whether a query sees a key of the block: causally, the query at place `own` of the sequence.
    fn is_seen(&self, own: Option<usize>) -> bool {
        let len = self.range.len();
        let end = own.map_or(len, |own| (own + 1).saturating_sub(self.range.start).min(len));
        if self.mask.is_empty() { end > 0 } else { self.mask[..end].contains(&true) }
    }
}

impl<T: Real> RunBuffers<T> {
    /// Writes the outputs of a run of queries and returns the rows whose normaliser is not positive. Causally, `first` is the place
    /// of the first query in its sequence.
    fn attend(
        &mut self,
        blocks: &[PackedKeys<T>],
        first: Option<usize>,
        mut out: ArrayViewMut2<'_, T>,
    ) -> Vec<usize> {
        let (count, targets) = out.dim();
        self.sums.clear();
        self.sums.resize(count * targets, T::zero());
        self.tops.clear();
        self.tops.resize(count, T::neg_infinity());
        self.totals.clear();
        self.totals.resize(count, 0.0);
        let seen = |block: &&PackedKeys<T>| first.is_none_or(|first| block.range.start < first + count);
        for block in blocks.iter().filter(seen) {
            self.add(block, first, targets);
        }
        let rows = out.rows_mut().into_iter().zip(self.sums.chunks_exact(targets)).zip(&self.totals);
        for ((mut out, sums), total) in rows {
            let inverse = if *total == 0.0 { 0.0 } else { total.recip() };
            out.iter_mut().zip(sums).for_each(|(out, sum)| *out = T::narrow(sum.widen() * inverse));
        }
        let own = |i: usize| first.map(|first| first + i);
        let zero = (0..count).filter(|i| self.totals[*i] == 0.0);
        zero.filter(|i| blocks.iter().any(|block| block.is_seen(own(*i)))).collect()
    }

    fn add(&mut self, block: &PackedKeys<T>, first: Option<usize>, targets: usize) {
        let (isa, count) = (Isa::best(), self.tops.len());
        let d = self.queries.len() / count;
        // Keys that no query of the run sees are not multiplied.
        let last = first.map_or(block.range.end, |first| block.range.end.min(first + count));
        let width = last - block.range.start;
        self.scores.clear();
        self.scores.resize(count * width, T::zero());
        if d > 0 {
            product(isa, &self.queries, d, block.keys.all().first(width), &mut self.scores, width);
        }
        for (i, scores) in self.scores.chunks_exact_mut(width).enumerate() {
            if let Some(first) = first {
                let seen = (first + i + 1).saturating_sub(block.range.start).min(width);
                scores[seen..].fill(T::neg_infinity());
            }
            let hidden = scores.iter_mut().zip(&block.mask).filter(|(_, seen)| !**seen);
            hidden.for_each(|(score, _)| *score = T::neg_infinity());
            let top = max(isa, scores).max(self.tops[i]);
            if top == T::neg_infinity() && !scores.iter().any(|score| score.is_nan()) {
                scores.fill(T::zero());
                continue;
            }
            let keep = (self.tops[i] - top).widen().exp();
            let sums = &mut self.sums[i * targets..(i + 1) * targets];
            match T::narrow(keep) {
                // Infinite sums vanish with their weights.
                none if none == T::zero() => sums.fill(T::zero()),
                keep if keep == T::one() => {}
                keep => affine(isa, sums, keep, &[]),
            }
            self.tops[i] = top;
            exp_minus(isa, scores, top);
            self.totals[i] = self.totals[i] * keep + numeric::plain_sum(isa, scores);
        }
        add_product(isa, &self.scores, width, block.values.all().shallow(width), &mut self.sums, targets);
        for (j, values) in block.not_finite.iter().filter(|(j, _)| *j < width) {
            for (sums, scores) in self.sums.chunks_exact_mut(targets).zip(self.scores.chunks_exact(width)) {
                // What a query does not see has the weight 0, and so has what underflows.
                if scores[*j] != T::zero() {
                    sums.iter_mut().zip(values).for_each(|(sum, v)| *sum += scores[*j] * *v);
                }
            }
        }
    }
}

once!(ExactAttention::attend::<T>);
