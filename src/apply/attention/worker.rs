//! [`Worker`]: computes the outputs of queries from the keys of their chunk and the sums over the keys before it.
//!
//! Where no feature is lost to rounding, the outputs of a chunk are a few matrix products. Products take rows one by one, so a
//! query has the same output, to the bit, in a chunk and alone.

use std::ops::Range;

use ndarray::ArrayViewMut2;

use super::chunk::{Chunk, LogBuffers};
use super::element::Numbers;
use super::output::Undivided;
use super::setup::{CHUNK, Setup};
use super::tokens::Tokens;
use crate::Real;
use crate::engine::Side;
use crate::numeric::{self, Isa, add_product, panel_width, product};
use crate::reduce::{RunSums, WeightedSums};

/// What a thread keeps from chunk to chunk.
#[derive(Debug, Default)]
pub(super) struct Worker<T> {
    pub logs: LogBuffers<T>,
    /// The queries that were read last.
    queries: Tokens<T>,
    /// Keys that are read on their way to a chunk.
    pub tokens: Tokens<T>,
    weights: Vec<T>,
    scores: Vec<T>,
    out: Vec<T>,
    row: Vec<f64>,
    wide: Vec<f64>,
}

/// The keys that queries of a chunk see: those of the chunk, of which each query sees some of the first, and all before it.
pub(super) struct Sight<'a, T: Real> {
    pub chunk: &'a Chunk<T>,
    /// The sums over the keys before the chunk, to be multiplied in `T`.
    pub before: &'a RunSums<T>,
    /// What serves queries that products in `T` do not.
    pub rest: Option<Rest<'a, T>>,
}

/// The same keys, to be summed up by logarithms in `f64`.
pub(super) struct Rest<'a, T: Real> {
    /// Those of the chunk.
    pub tokens: &'a mut Tokens<T>,
    /// The sums over whole segments before the chunk, and over the chunks since.
    pub past: [&'a WeightedSums<T>; 2],
    pub logged: &'a mut Logged<T>,
}

/// The sums over all keys before a chunk and over some of its first.
#[derive(Clone, Debug, Default)]
pub(super) struct Logged<T> {
    state: Option<WeightedSums<T>>,
    keys: usize,
}

/// Which of the queries that were read are asked, and where their outputs go.
pub(super) struct Asked<'a, T> {
    pub queries: Range<usize>,
    /// How many keys of the chunk the first of them sees; each query sees one more than the one before.
    pub sees: usize,
    /// The same, of the whole sequence.
    pub sees_of_all: usize,
    pub out: ArrayViewMut2<'a, T>,
    /// Takes the rows of `out` whose normaliser is not positive.
    pub report: &'a mut dyn FnMut(usize),
}

impl<T: Real> Logged<T> {
    /// Forgets the sums, whose chunk has ended.
    pub fn clear(&mut self) {
        self.state = None;
    }

    /// The sums over the keys that a query sees: all before the chunk, and `end` of it.
    fn upto<'a>(
        &'a mut self,
        setup: Setup<'_, T>,
        chunk: &Chunk<T>,
        (tokens, past): (&mut Tokens<T>, [&WeightedSums<T>; 2]),
        end: usize,
        buffers: &mut LogBuffers<T>,
    ) -> &'a WeightedSums<T> {
        if self.keys > end {
            self.state = None;
        }
        let state = self.state.get_or_insert_with(|| {
            let mut state = past[0].clone();
            state.merge(past[1]);
            self.keys = 0;
            state
        });
        (self.keys..end).for_each(|j| chunk.push_to(setup, tokens, j, state, buffers));
        self.keys = end;
        state
    }
}

impl<T: Real> Worker<T> {
    /// Reads keys on their way to a chunk.
    pub fn read_keys(&mut self, setup: Setup<'_, T>, k: Numbers<'_, T>) {
        self.tokens.fill(setup, Side::Y, k, &mut self.logs.scratch);
    }

    /// Reads queries.
    pub fn read_queries(&mut self, setup: Setup<'_, T>, q: Numbers<'_, T>) {
        self.queries.fill(setup, Side::X, q, &mut self.logs.scratch);
    }

    /// Writes the outputs of queries. False, with some written, where one needs what `sight` is without.
    pub fn answer(&mut self, setup: Setup<'_, T>, sight: Sight<'_, T>, mut asked: Asked<'_, T>) -> bool {
        let Sight { chunk, before, rest } = sight;
        let count = asked.queries.len();
        let near = |reach: usize| (reach + 1).saturating_sub(asked.sees).min(count);
        let easy = chunk.reach(before).map_or(0, near);
        let hard = easy < count || asked.queries.clone().any(|i| !self.queries.precision(i).held);
        if hard && rest.is_none() {
            return false;
        }
        if easy > 0 {
            self.easy_answers(setup, chunk, before, easy, &mut asked);
        }
        if let (true, Some(rest)) = (hard, rest) {
            self.hard_answers(setup, chunk, rest, easy, &mut asked);
        }
        true
    }

    /// The outputs of those of the first `count` queries whose features `T` holds, by matrix products.
    fn easy_answers(
        &mut self,
        setup: Setup<'_, T>,
        chunk: &Chunk<T>,
        before: &RunSums<T>,
        count: usize,
        asked: &mut Asked<'_, T>,
    ) {
        let (isa, width, features) = (Isa::best(), panel_width::<T>(), setup.program.width());
        let (targets, start) = (asked.out.ncols(), asked.queries.start);
        let keys = (asked.sees + count - 1).max(1);
        let queries = &self.queries.features()[start * features..(start + count) * features];
        self.out.resize(count * targets, T::zero());
        self.scores.resize(count * keys, T::zero());
        product(isa, queries, features, before.sums.all(), &mut self.out, targets);
        self.weights.clear();
        let mut largest = chunk.largest(0..asked.sees.saturating_sub(1));
        let mut reference = f64::NEG_INFINITY;
        for first in (0..count).step_by(width) {
            let rows = first..count.min(first + width);
            let seen = asked.sees + rows.end - 1;
            let scores = &mut self.scores[rows.start * keys..rows.end * keys];
            product(
                isa,
                &queries[rows.start * features..rows.end * features],
                features,
                chunk.keys(seen),
                scores,
                keys,
            );
            let sums = &mut self.out[rows.start * targets..rows.end * targets];
            let mut normalisers = [0.0; CHUNK];
            let mut own_scales = [0.0; CHUNK];
            for (r, (scores, sums)) in
                scores.chunks_exact_mut(keys).zip(sums.chunks_exact_mut(targets)).enumerate()
            {
                let (i, end) = (rows.start + r, asked.sees + rows.start + r);
                // Weights are relative to the largest scale of the keys that the row sees.
                largest = largest.max(chunk.largest(end.saturating_sub(1)..end));
                let own = largest.max(before.precision.scale);
                own_scales[r] = own;
                if own == f64::NEG_INFINITY {
                    scores[..seen].fill(T::zero());
                    sums.fill(T::zero());
                    continue;
                }
                let known = if own == reference { self.weights.len() } else { 0 };
                reference = own;
                self.weights.truncate(known);
                self.weights.extend(chunk.scales(known..end).map(|scale| T::narrow(scale - own)));
                numeric::exp_minus(isa, &mut self.weights[known..], T::zero());
                let (near, far) = scores[..seen].split_at_mut(end);
                near.iter_mut().zip(&self.weights).for_each(|(score, weight)| *score *= *weight);
                far.fill(T::zero());
                let rest = (before.precision.scale - own).exp();
                if rest != 1.0 {
                    numeric::affine(isa, sums, T::narrow(rest), &[]);
                }
                let query = &queries[i * features..(i + 1) * features];
                normalisers[r] =
                    rest * numeric::dot(isa, query, &before.weights) + numeric::plain_sum(isa, near);
            }
            add_product(isa, scores, keys, chunk.values(seen), sums, targets);
            for (r, sums) in sums.chunks_exact_mut(targets).enumerate() {
                let (i, end) = (rows.start + r, asked.sees + rows.start + r);
                let query = self.queries.precision(start + i);
                if query.held {
                    let scale = own_scales[r] + query.scale;
                    let seen = chunk.seen_before || chunk.has_any(end);
                    let estimate = Undivided { scale, normaliser: normalisers[r], sums: &mut *sums, seen };
                    finish(setup, self.queries.point(start + i), estimate, &mut self.row, i, asked);
                }
            }
        }
    }

    /// The outputs of all other queries, those from `easy` on and those whose features `T` does not hold, in `f64` from logarithms.
    #[cold]
    fn hard_answers(
        &mut self,
        setup: Setup<'_, T>,
        chunk: &Chunk<T>,
        rest: Rest<'_, T>,
        easy: usize,
        asked: &mut Asked<'_, T>,
    ) {
        let Rest { tokens, past, logged } = rest;
        for (i, query) in asked.queries.clone().enumerate() {
            if i >= easy || !self.queries.precision(query).held {
                let state = logged.upto(setup, chunk, (tokens, past), asked.sees + i, &mut self.logs);
                self.hard_answer(setup, state, query, i, asked);
            }
        }
    }

    fn hard_answer(
        &mut self,
        setup: Setup<'_, T>,
        state: &WeightedSums<T>,
        query: usize,
        i: usize,
        asked: &mut Asked<'_, T>,
    ) {
        let LogBuffers { scratch, row, .. } = &mut self.logs;
        self.queries.log_row(setup, Side::X, query, scratch, row);
        self.wide.resize(asked.out.ncols(), 0.0);
        let (scale, normaliser) = state.query(row, &mut self.wide);
        let estimate = Undivided { scale, normaliser, sums: &mut self.wide[..], seen: state.has_seen() };
        finish(setup, self.queries.point(query), estimate, &mut self.row, i, asked);
    }

    /// The outputs of all queries that were read, which see the keys of a state; `ready` holds its sums relative to one reference.
    pub fn answer_all(
        &mut self,
        setup: Setup<'_, T>,
        state: &WeightedSums<T>,
        ready: &RunSums<T>,
        out: ArrayViewMut2<'_, T>,
        report: &mut dyn FnMut(usize),
    ) {
        let (isa, features, targets) = (Isa::best(), setup.program.width(), out.ncols());
        self.out.resize(self.queries.len() * targets, T::zero());
        product(isa, self.queries.features(), features, ready.sums.all(), &mut self.out, targets);
        let queries = 0..self.queries.len();
        let mut asked = Asked { queries, sees: usize::MAX, sees_of_all: usize::MAX, out, report };
        for i in 0..self.queries.len() {
            let query = self.queries.precision(i);
            if !query.held || !ready.precision.held {
                self.hard_answer(setup, state, i, i, &mut asked);
                continue;
            }
            let normaliser = numeric::dot(isa, self.queries.row(i), &ready.weights);
            let scale = ready.precision.scale + query.scale;
            let sums = &mut self.out[i * targets..][..targets];
            let estimate = Undivided { scale, normaliser, sums, seen: state.has_seen() };
            finish(setup, self.queries.point(i), estimate, &mut self.row, i, &mut asked);
        }
    }
}

/// Adds the exact terms that the `i`-th query asked sees, if there are any, to the estimated sums, and writes its output. Reports
/// the query if the normaliser is not positive although a key was seen.
#[inline]
fn finish<T: Real, U: Real>(
    setup: Setup<'_, T>,
    point: &[T],
    estimate: Undivided<'_, U>,
    buffer: &mut Vec<f64>,
    i: usize,
    asked: &mut Asked<'_, T>,
) {
    let mut out = asked.out.row_mut(i);
    let positive = match setup.exact {
        None => estimate.write(setup.normalised, out.iter_mut()),
        Some(exact) => {
            let end = asked.sees_of_all.saturating_add(i);
            exact.combine(point, end, estimate, buffer).write(setup.normalised, out.iter_mut())
        }
    };
    if !positive {
        (asked.report)(i);
    }
}
