//! The effective number of features behind each normaliser, on request.

use std::ops::Range;

use ndarray::{Array2, Array4, ArrayViewMut2, Axis};

use super::super::features::{Setup, Tokens};
use super::super::input::{Attended, Attention, CHUNK, Heads, Job, KeyRun, QueryRun, TokenElement, cuts};
use super::super::linear::Visible;
use super::super::pairs::{KeySplit, Neighbours};
use crate::Real;
use crate::engine::{Scratch, Side};
use crate::error::Result;
use crate::map::Map;
use crate::memory::check_memory;
use crate::once::once;
use crate::progress;
use crate::reduce::{LogRow, WeightedSums};
use crate::threads::{self, Pool};

/// A job, and the numbers of each of its heads of queries.
type JobWithNumbers<'a, T> = (Job<'a, T>, Vec<ArrayViewMut2<'a, T>>);

impl<T: Real> Attention<T> {
    /// [Bidirectional](Attention::bidirectional) attention with [`effective_features`](Attended::effective_features), which say whether
    /// normalisers rest on many features or on a few lucky ones.
    ///
    /// ```
    /// use random_features::ndarray::Array4;
    /// use random_features::rand::RngExt;
    /// use random_features::apply::attention::{Attention, Heads};
    /// let mut rng = random_features::rng(1);
    /// let shape = (1, 2, 50, 8);
    /// let x = Array4::from_shape_simple_fn(shape, || rng.random::<f64>() - 0.5);
    /// let attention = Attention::favor_plus(8, 128, 7)?;
    /// // The share of each head's queries whose normaliser rests on
    /// // fewer than ten features.
    /// let small = attention.bidirectional_diagnosed(&Heads::new(&x, &x, &x)?)?;
    /// let few = small.share_with_features_below(10.0).unwrap();
    /// assert!(few.iter().all(|share| *share == 0.0));
    /// let large = &x * 20.0;
    /// let heads = Heads::new(&large, &large, &x)?;
    /// let large = attention.bidirectional_diagnosed(&heads)?;
    /// let few = large.share_with_features_below(10.0).unwrap();
    /// assert!(few.iter().all(|share| *share > 0.9));
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Definition
    /// The normaliser of a query is Σ_f w_f with w_f = φ_f(q) S_f and S_f = Σⱼ ψ_f(kⱼ) over the keys that it sees. The effective number of
    /// features is (Σ_f w_f)²/Σ_f w_f². It goes from 1, where one feature is all of the normaliser, to D, where all count alike.
    ///
    /// With one positive feature for each of m independent frequencies, the draw's own estimate of the normaliser's
    /// relative variance is 1/n − 1/m for n of them. Where n is above some 10, this variance is below 0.1, and an
    /// output may be useful ([`ErrorReport`](super::super::ErrorReport)). A small n is a warning, but a large n proves
    /// nothing: a draw may lack the rare frequencies with large features.
    ///
    /// Where features may be negative the w_f cancel and the number falls below 1. It is near 0 where positive and
    /// negative w_f nearly cancel in the normaliser. It is 0 where all w_f are 0, and NaN where a query sees no key, or
    /// one that is not finite.
    ///
    /// Keys with exact weights, [chosen](Attention::with_keys_exact) ones and [neighbours](Attention::with_window), are not counted: the
    /// number is NaN where there are no others. The scales of a map's blocks and masks count as in the outputs.
    ///
    /// # Cost
    /// The cost of attention, and for each token features once more and some 3 D exponentials in `f64`, on one thread for each head of
    /// keys. In all that is some five times the cost of attention (8 heads of 4096 tokens, d = 64, D = 256, `f32`). With
    /// [neighbours](Attention::with_window) on both sides, sums of features for each 64 queries are kept.
    ///
    /// # Errors
    /// The errors of [`bidirectional`](Attention::bidirectional).
    pub fn bidirectional_diagnosed<E: TokenElement<T>>(&self, heads: &Heads<'_, E>) -> Result<Attended<T>> {
        self.diagnosed(heads, false)
    }

    /// [Causal](Attention::causal) attention with [`effective_features`](Attended::effective_features), the numbers of
    /// [`bidirectional_diagnosed`](Attention::bidirectional_diagnosed) over the keys up to each query's own place.
    ///
    /// # Errors
    /// The errors of [`causal`](Attention::causal).
    pub fn causal_diagnosed<E: TokenElement<T>>(&self, heads: &Heads<'_, E>) -> Result<Attended<T>> {
        self.diagnosed(heads, true)
    }

    fn diagnosed<E: TokenElement<T>>(&self, heads: &Heads<'_, E>, causal: bool) -> Result<Attended<T>> {
        let (_, _, n, _) = heads.queries.dim();
        heads.check_output::<T>(size_of::<T>())?;
        if !self.window.of(causal).is_none() {
            let width = self.maps.iter().map(Map::feature_dim).fold(1, usize::max);
            let sums = n.div_ceil(CHUNK).saturating_add(CHUNK);
            check_memory("sums of features", sums, width.saturating_mul(3 * size_of::<f64>()))?;
        }
        let mut attended = if causal { self.causal(heads)? } else { self.bidirectional(heads)? };
        let (batch, count, length, _) = attended.output.dim();
        let mut numbers = Array4::zeros((batch, count, length, 1));
        let parts = heads.parts_of_queries(numbers.view_mut());
        self.number(heads.jobs().into_iter().zip(parts).collect(), causal);
        // What was stopped has left out the rest.
        progress::check()?;
        attended.effective_features = Some(numbers.remove_axis(Axis(3)));
        Ok(attended)
    }

    /// Writes the numbers of jobs.
    #[inline(never)]
    fn number(&self, jobs: Vec<JobWithNumbers<'_, T>>, causal: bool) {
        threads::for_each(jobs, |(job, out): JobWithNumbers<'_, T>| {
            let keys = KeySplit::new(self, &job);
            let job = keys.rest(job);
            let near = Neighbours::of_job(self, &job, causal);
            let setup = Setup { causal, ..self.setup(job.head) };
            numbers(setup.beside(keys.exact.as_ref(), near.as_ref()), job, out);
        });
    }
}

impl<T: Real> Attended<T> {
    /// The share of each head's queries, \[batch, heads\], whose normaliser rests on fewer
    /// [effective features](Attention::bidirectional_diagnosed) than `threshold`. Queries whose number is NaN are left out; without any
    /// others the share is NaN. `None` if effective features were not asked for.
    pub fn share_with_features_below(&self, threshold: f64) -> Option<Array2<f64>> {
        let numbers = self.effective_features.as_ref()?;
        Some(numbers.map_axis(Axis(2), |rows| {
            let known = rows.iter().map(|n| n.widen()).filter(|n| !n.is_nan());
            let below = known.clone().filter(|n| *n < threshold).count();
            below as f64 / known.count() as f64
        }))
    }
}

/// What adds keys to a state one by one, and asks it for queries.
#[derive(Default)]
struct KeyReader<T> {
    scratch: Scratch<T>,
    row: LogRow,
}

impl<T: Real> KeyReader<T> {
    /// Adds key `j` of those read, without a value.
    fn push(&mut self, setup: Setup<'_, T>, keys: &mut Tokens<T>, j: usize, state: &mut WeightedSums<T>) {
        keys.log_row(setup, Side::Y, j, &mut self.scratch, &mut self.row);
        state.push(&self.row, &[]);
    }

    fn number(
        &mut self,
        setup: Setup<'_, T>,
        queries: &mut Tokens<T>,
        i: usize,
        state: &WeightedSums<T>,
    ) -> T {
        // The number is that of any multiple of the features.
        let _ = queries.relative_log_row(setup, Side::X, i, &mut self.scratch, &mut self.row);
        T::narrow(state.effective_features(&self.row))
    }
}

/// The numbers for the queries of a job.
fn numbers<T: Real>(setup: Setup<'_, T>, job: Job<'_, T>, out: Vec<ArrayViewMut2<'_, T>>) {
    if setup.causal || setup.near.is_some() {
        numbers_of_prefixes(setup, job, out)
    } else {
        numbers_of_all(setup, job, out)
    }
}

/// The numbers for queries that see all keys.
fn numbers_of_all<T: Real>(setup: Setup<'_, T>, job: Job<'_, T>, out: Vec<ArrayViewMut2<'_, T>>) {
    let (mut state, mut reader, mut keys) =
        (WeightedSums::new(setup.program.width(), 0), KeyReader::default(), Tokens::default());
    for run in cuts(0..job.keys.len(), CHUNK) {
        if progress::is_stopped() {
            return;
        }
        keys.fill(setup, Side::Y, job.keys.keys.rows(run.clone()), &mut reader.scratch);
        for j in run.clone().filter(|j| job.keys.sees(*j)) {
            reader.push(setup, &mut keys, j - run.start, &mut state);
        }
    }
    for (queries, mut out) in job.queries.into_iter().zip(out) {
        let runs = out.axis_chunks_iter_mut(Axis(0), CHUNK).enumerate();
        Pool::default().for_each(runs, |(reader, tokens): &mut (KeyReader<T>, Tokens<T>), (run, mut out)| {
            if progress::is_stopped() {
                return;
            }
            let rows = run * CHUNK..run * CHUNK + out.nrows();
            tokens.fill(setup, Side::X, queries.rows.rows(rows), &mut reader.scratch);
            out.iter_mut().enumerate().for_each(|(i, out)| *out = reader.number(setup, tokens, i, &state));
        });
    }
}

/// The sums over the first of some keys, which grow.
struct Prefix<'a, T: Real> {
    keys: KeyRun<'a, T>,
    state: WeightedSums<T>,
    count: usize,
    tokens: Tokens<T>,
    /// The keys that were read.
    read: Range<usize>,
}

impl<'a, T: Real> Prefix<'a, T> {
    fn new(setup: Setup<'_, T>, keys: KeyRun<'a, T>) -> Self {
        let state = WeightedSums::new(setup.program.width(), 0);
        Prefix { keys, state, count: 0, tokens: Tokens::default(), read: 0..0 }
    }

    /// The sums over the first `count` keys, or all if there are fewer; no fewer than before.
    fn upto(&mut self, setup: Setup<'_, T>, count: usize, reader: &mut KeyReader<T>) -> &WeightedSums<T> {
        let count = count.min(self.keys.len());
        for j in self.count..count {
            if !self.read.contains(&j) {
                self.read = j..self.keys.len().min(j + CHUNK);
                let keys = self.keys.keys.rows(self.read.clone());
                self.tokens.fill(setup, Side::Y, keys, &mut reader.scratch);
            }
            if self.keys.sees(j) {
                reader.push(setup, &mut self.tokens, j - self.read.start, &mut self.state);
            }
        }
        self.count = self.count.max(count);
        &self.state
    }
}

/// The sums over the keys behind the windows of queries: those of the last query of each chunk are kept, from which those of the
/// others follow.
struct Suffixes<'a, T: Real> {
    prefix: Prefix<'a, T>,
    visible: Visible,
    queries: usize,
    /// For each chunk, from the last on, the number of keys and their sums.
    kept: Vec<(usize, WeightedSums<T>)>,
}

impl<'a, T: Real> Suffixes<'a, T> {
    fn new(setup: Setup<'_, T>, (keys, after): (KeyRun<'a, T>, usize), queries: usize) -> Self {
        let (mut reader, mut kept) = (KeyReader::default(), Vec::new());
        let visible = Visible { ahead: keys.len(), behind: queries.saturating_add(after) };
        let mut prefix = Prefix::new(setup, keys.reversed());
        let runs: Vec<Range<usize>> = cuts(0..queries, CHUNK).collect();
        for run in runs.into_iter().rev().take_while(|_| !progress::is_stopped()) {
            let state = prefix.upto(setup, visible.of(queries - run.end), &mut reader).clone();
            kept.push((prefix.count, state));
        }
        Suffixes { prefix, visible, queries, kept }
    }

    /// The sums for the queries of the first chunk whose sums were not asked for.
    fn next(
        &mut self,
        setup: Setup<'_, T>,
        run: Range<usize>,
        reader: &mut KeyReader<T>,
    ) -> Vec<WeightedSums<T>> {
        if let Some((count, state)) = self.kept.pop() {
            (self.prefix.count, self.prefix.state) = (count, state);
        }
        let of_query = |i| self.prefix.upto(setup, self.visible.of(self.queries - 1 - i), reader).clone();
        let mut sums: Vec<WeightedSums<T>> = run.rev().map(of_query).collect();
        sums.reverse();
        sums
    }
}

/// The numbers for queries that see the keys before their windows and, not causally, those behind them.
fn numbers_of_prefixes<T: Real>(setup: Setup<'_, T>, job: Job<'_, T>, mut out: Vec<ArrayViewMut2<'_, T>>) {
    let window = setup.near.map(|near| near.window).unwrap_or_default();
    let visible = Visible::before_window(window.before);
    let rows = job.queries.first().map_or(0, QueryRun::len);
    let (mut before, mut reader) = (Prefix::new(setup, job.keys), KeyReader::default());
    let mut behind = (!setup.causal).then(|| Suffixes::new(setup, (job.keys, window.after), rows));
    let mut queries: Vec<Tokens<T>> = Vec::new();
    queries.resize_with(job.queries.len(), Tokens::default);
    for run in cuts(0..rows, CHUNK).take_while(|_| !progress::is_stopped()) {
        let mut others = behind.as_mut().map(|behind| behind.next(setup, run.clone(), &mut reader));
        for (tokens, own) in queries.iter_mut().zip(&job.queries) {
            tokens.fill(setup, Side::X, own.rows.rows(run.clone()), &mut reader.scratch);
        }
        for i in run.clone() {
            let mut state = before.upto(setup, visible.of(i), &mut reader);
            if let Some(others) = &mut others {
                others[i - run.start].merge(state);
                state = &others[i - run.start];
            }
            for (tokens, out) in queries.iter_mut().zip(&mut out) {
                out[[i, 0]] = reader.number(setup, tokens, i - run.start, state);
            }
        }
    }
}

once!(Attention::<T>::number);
