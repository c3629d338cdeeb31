//! Rows of the attention matrix, for inspection.

use std::ops::Range;

use ndarray::{Array1, Array2, ArrayView1, ArrayViewMut1, Axis};

use super::super::features::{Setup, Tokens};
use super::super::input::{Attention, Heads, Job, KeyChoice, LogScale, Numbers, Reading, TokenElement};
use crate::Real;
use crate::engine::{Scratch, Side};
use crate::error::{Error, Result};
use crate::memory::check_memory;
use crate::numeric::special::scaled_sum;
use crate::numeric::{matrix_of, slice_of};
use crate::once::once;
use crate::progress;
use crate::reduce::LogRow;

/// Which rows of the attention matrix: some queries of a head, which see all keys or those up to their own place.
#[derive(Clone, Copy)]
struct WeightRows<'a> {
    batch: usize,
    head: usize,
    rows: &'a [usize],
    causal: bool,
}

impl<T: Real> Attention<T> {
    /// Rows of the attention matrix, rows × l, for inspection: the weights with which these queries of a batch and of a head of queries
    /// take the values.
    ///
    /// ```
    /// use random_features::ndarray::Array4;
    /// use random_features::apply::attention::{Attention, Heads};
    /// let x = Array4::<f64>::ones((1, 2, 5, 8));
    /// let attention = Attention::favor_plus(8, 64, 7)?;
    /// let heads = Heads::new(&x, &x, &x)?;
    /// // Queries 0 and 3 of head 1: all keys are alike.
    /// let weights = attention.bidirectional_weights(&heads, 0, 1, &[0, 3])?;
    /// assert!(weights.iter().all(|weight| (weight - 0.2).abs() < 1e-12));
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// A row sums to 1 where the normaliser is positive. Elsewhere it is 0, or the equal weights of the mean if outputs
    /// [have a share](Attention::with_shrinkage) of it. Where a batch holds
    /// [several sequences](Heads::with_sequences), keys of other sequences have no weight. The cost is O(rows · l · m) exponentials.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if dimensions or heads do not fit, [`Parameter`](Error::Parameter) if there is no such batch,
    /// head or row, [`Memory`](Error::Memory) if there is no memory for the rows or for the features of their queries and all keys,
    /// [`Cancelled`](Error::Cancelled) if a [watcher](crate::progress::watch) stops it.
    #[inline(never)]
    pub fn bidirectional_weights<E: TokenElement<T>>(
        &self,
        heads: &Heads<'_, E>,
        batch: usize,
        head: usize,
        rows: &[usize],
    ) -> Result<Array2<f64>> {
        self.weights(heads, WeightRows { batch, head, rows, causal: false })
    }

    /// Rows of the matrix of [causal](Attention::causal) attention, rows × l, in which a query sees the keys up to its own place. There
    /// may be fewer or more keys than queries.
    ///
    /// # Errors
    /// The errors of [`bidirectional_weights`](Attention::bidirectional_weights).
    #[inline(never)]
    pub fn causal_weights<E: TokenElement<T>>(
        &self,
        heads: &Heads<'_, E>,
        batch: usize,
        head: usize,
        rows: &[usize],
    ) -> Result<Array2<f64>> {
        self.weights(heads, WeightRows { batch, head, rows, causal: true })
    }

    fn weights<E: TokenElement<T>>(
        &self,
        heads: &Heads<'_, E>,
        which: WeightRows<'_>,
    ) -> Result<Array2<f64>> {
        self.check_rows(heads, which)?;
        let key_head = heads.key_head(which.head);
        let setup = self.setup(key_head);
        self.check_weights(heads, which.rows.len(), setup.program.width())?;
        let queries = heads.queries.index_axis(Axis(0), which.batch);
        let queries = queries.index_axis(Axis(0), which.head).select(Axis(0), which.rows);
        let left = log_features(setup, Side::X, E::numbers(queries.view()))?;
        let keys = heads.keys.index_axis(Axis(0), which.batch).index_axis_move(Axis(0), key_head);
        let right = log_features(setup, Side::Y, E::numbers(keys))?;
        let exact = self.exact_rows(heads, which.batch, key_head);
        let points = |reading: &Reading, x: Numbers<'_, T>| {
            let mut points = Vec::new();
            reading.points(x, &mut points);
            matrix_of(x.nrows(), x.ncols(), points)
        };
        let window = self.window.of(which.causal);
        let has_exact = !(self.exact == KeyChoice::None && window.is_none());
        let [of_queries, of_keys] = setup.of_pairs;
        let keys = has_exact.then(|| points(&of_keys, E::numbers(keys)));
        let points = points(&of_queries, E::numbers(queries.view()));
        let ranges = heads.ranges();
        let mean = self.shrinkage.of(key_head);
        let mut weights = Array2::zeros((which.rows.len(), right.len()));
        for (i, (row, mut out)) in which.rows.iter().zip(weights.rows_mut()).enumerate() {
            let seen = heads.seen(which.batch, *row, which.causal);
            let point = points.row(i);
            let place = ranges.iter().find(|(queries, _)| queries.contains(row));
            let is_near = |j: usize| {
                place.is_some_and(|(queries, keys)| {
                    window.places(row - queries.start).contains(&(j - keys.start))
                })
            };
            let term = |j: usize| {
                let logit = || {
                    let keys = keys.as_ref().filter(|_| is_near(j) || exact.binary_search(&j).is_ok())?;
                    Some(dot(slice_of(&point), keys.row(j)))
                };
                let exactly = |logit: f64| (LogScale { own: 0.0, read: logit }, 1.0);
                match seen[j] {
                    false => (LogScale::NOTHING, 0.0),
                    true => logit().map_or_else(|| product(&left[i], &right[j]), exactly),
                }
            };
            progress::check()?;
            let terms: Vec<(LogScale, f64)> = (0..right.len()).map(term).collect();
            let own = shares(&terms);
            // Without an output of its own a query has the mean, if outputs are drawn towards it.
            let share = if own.is_none() && mean > 0.0 { 1.0 } else { mean };
            if let Some(own) = own {
                out.assign(&own);
            }
            if mean > 0.0 {
                shrink(share, &seen, out);
            }
        }
        Ok(weights)
    }
}

impl<T: Real> Attention<T> {
    /// Refuses heads that do not fit, and a batch, a head or a row that does not exist.
    fn check_rows<E>(&self, heads: &Heads<'_, E>, which: WeightRows<'_>) -> Result<()> {
        let [batch, count, length, _] = heads.output_dim();
        self.check_inputs(heads)?;
        let below = |name, value: usize, size: usize, domain| match value < size {
            true => Ok(()),
            false => Err(Error::Parameter { name, value: value as f64, domain }),
        };
        below("the batch", which.batch, batch, "less than the batch size")?;
        below("the head", which.head, count, "less than the number of heads of the queries")?;
        let of_row = |row: &usize| below("a row of queries", *row, length, "less than the number of queries");
        which.rows.iter().try_for_each(of_row)
    }

    /// Refuses so many rows for which, with the features of their queries and of all keys, there is no memory.
    fn check_weights<E>(&self, heads: &Heads<'_, E>, rows: usize, width: usize) -> Result<()> {
        let ((.., l, d), float) = (heads.keys.dim(), size_of::<f64>());
        check_memory("weights", rows.saturating_mul(l), float)?;
        // Features in `T`, their logarithms and factors; points, and those for exact logits.
        let each = width.saturating_mul(3 * float).saturating_add(d.saturating_mul(3 * float));
        check_memory("tokens with their features", rows.saturating_add(l), each)?;
        heads.check_count::<T>()
    }

    /// The rows of the exact keys of a batch and a head of keys, ascending.
    fn exact_rows<E: TokenElement<T>>(&self, heads: &Heads<'_, E>, batch: usize, head: usize) -> Vec<usize> {
        let Some(inverse) = self.exact_inverse(head) else {
            return Vec::new();
        };
        let ranges = heads.ranges();
        let jobs = heads.jobs();
        let first = (batch * heads.keys.dim().1 + head) * ranges.len();
        let sequences = jobs.iter().skip(first).zip(&ranges);
        let of_sequence = |(job, (_, keys)): (&Job<'_, T>, &(_, Range<usize>))| -> Vec<usize> {
            let rows = self.exact.rows((&self.reading, inverse), job);
            rows.iter().map(|row| keys.start + row).collect()
        };
        sequences.flat_map(of_sequence).collect()
    }
}

/// A token's features by their logarithms, relative to a scale.
type Relative = (f64, LogRow);

/// The features of tokens: those of queries relative to their own scale, those of keys to 1.
fn log_features<T: Real>(setup: Setup<'_, T>, side: Side, x: Numbers<'_, T>) -> Result<Vec<Relative>> {
    let (mut tokens, mut scratch) = (Tokens::default(), Scratch::default());
    tokens.fill(setup, side, x, &mut scratch);
    let mut rows = vec![Relative::default(); tokens.len()];
    for (i, (own, row)) in rows.iter_mut().enumerate() {
        progress::check()?;
        match side {
            Side::X => *own = tokens.relative_log_row(setup, side, i, &mut scratch, row),
            Side::Y => tokens.log_row(setup, side, i, &mut scratch, row),
        }
    }
    Ok(rows)
}

/// e^scale · factor of each term relative to the sum of all; `None` if that is not positive.
fn shares(terms: &[(LogScale, f64)]) -> Option<Array1<f64>> {
    let top = terms.iter().map(|term| term.0).fold(LogScale::NOTHING, LogScale::larger);
    let term = |(scale, factor): &(LogScale, f64)| match *factor == 0.0 {
        true => 0.0,
        false => factor * scale.minus(top).exp(),
    };
    let terms: Array1<f64> = terms.iter().map(term).collect();
    let total = terms.sum();
    (total > 0.0 || total.is_nan()).then(|| terms / total)
}

/// Shrinks weights towards equal ones of the keys that are seen, which get this share.
fn shrink(share: f64, seen: &[bool], mut weights: ArrayViewMut1<'_, f64>) {
    let equal = share / seen.iter().filter(|seen| **seen).count() as f64;
    let pairs = weights.iter_mut().zip(seen);
    pairs.for_each(|(weight, seen)| *weight = (1.0 - share) * *weight + if *seen { equal } else { 0.0 });
}

/// The logit of a query and a key.
fn dot<T: Real>(point: &[T], key: ArrayView1<'_, T>) -> f64 {
    point.iter().zip(key).map(|(x, k)| x.widen() * k.widen()).sum()
}

/// The scale of a product of features, and the product relative to it.
fn product((own, query): &Relative, (_, key): &Relative) -> (LogScale, f64) {
    let logs = query.logs.iter().zip(&key.logs).map(|(a, b)| a + b);
    let factors = query.factors.iter().zip(&key.factors).map(|(a, b)| a * b);
    let (read, product) = scaled_sum(logs.zip(factors));
    (LogScale { own: *own, read }, product)
}

once!(Attention::<T>::bidirectional_weights::<T>, Attention::<T>::causal_weights::<T>);
