//! [`Worker`]: computes the outputs of queries from the keys of their chunk and the sums over the keys before it.
//!
//! Where no feature is lost to rounding, the outputs of a chunk are a few matrix products. Products take rows one by one, so a
//! query has the same output, to the bit, in a chunk and alone.

use super::super::features::{Chunk, KeyWeights, LogBuffers, Setup, Tokens};
use super::super::input::{KeyRows, KeyRun, Numbers, Undivided};
use super::finish::Finish;
use super::scan::Outlet;
use super::sight::{Asked, Rest, Sight};
use crate::Real;
use crate::numeric::{self, Isa, add_product, panel_width, product};
use crate::reduce::{RunSums, WeightedSums};

/// What a thread keeps from chunk to chunk.
#[derive(Debug, Default)]
pub(in super::super) struct Worker<T> {
    pub logs: LogBuffers<T>,
    /// The queries that were read last.
    queries: Tokens<T>,
    /// Keys that are read on their way to a chunk.
    pub tokens: Tokens<T>,
    /// Tokens that leave windows, and the heads whose windows these are.
    pub leaving: (KeyRows<T>, Vec<usize>),
    weights: KeyWeights<T>,
    /// ln of the scale and the normaliser of each query of a panel.
    estimates: Vec<(f64, f64)>,
    scores: Vec<T>,
    out: Vec<T>,
    finish: Finish<T>,
    wide: Vec<f64>,
}

impl<T: Real> Worker<T> {
    /// Forgets the keys of neighbours, since the next are those of another sequence or of a longer one.
    pub fn forget(&mut self) {
        self.finish.forget();
    }

    /// Reads keys on their way to a chunk.
    pub fn read_keys(&mut self, setup: Setup<'_, T>, run: KeyRun<'_, T>) {
        self.tokens.read_keys(setup, run, &mut self.logs.scratch);
    }

    /// Reads queries.
    pub fn read_queries(&mut self, setup: Setup<'_, T>, q: Numbers<'_, T>) {
        self.queries.fill(setup, setup.asking(), q, &mut self.logs.scratch);
    }

    /// How many queries were read.
    pub fn queries(&self) -> usize {
        self.queries.len()
    }

    /// Writes the outputs of queries. False, with some written, where one needs what `sight` is without.
    pub(super) fn answer(
        &mut self,
        setup: Setup<'_, T>,
        sight: Sight<'_, T>,
        mut asked: Asked<'_, T>,
    ) -> bool {
        let Sight { chunk, before, rest } = sight;
        let count = asked.queries.len();
        let near = |reach: usize| (reach + 1).saturating_sub(asked.sees).min(count);
        let easy = chunk.reach(before).map_or(0, near);
        let hard = easy < count || asked.queries.clone().any(|i| !self.queries.precision(i).held);
        if hard && rest.is_none() {
            return false;
        }
        self.finish.begin(setup, self.queries.points_of(asked.queries.clone()), &asked);
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
        let (targets, start) = (asked.out.targets(), asked.queries.start);
        let keys = (asked.sees + count - 1).max(1);
        let queries = &self.queries.features()[start * features..(start + count) * features];
        self.out.resize(count * targets, T::zero());
        self.scores.resize(count * keys, T::zero());
        product(isa, queries, features, before.sums.all(), &mut self.out, targets);
        self.weights.begin();
        // A panel of queries sees hardly more keys than its first.
        for first in (0..count).step_by(width) {
            let rows = first..count.min(first + width);
            let ends = asked.sees + rows.start..asked.sees + rows.end;
            let seen = ends.end - 1;
            let queries = &queries[rows.start * features..rows.end * features];
            let scores = &mut self.scores[rows.start * keys..rows.end * keys];
            let sums = &mut self.out[rows.start * targets..rows.end * targets];
            product(isa, queries, features, chunk.keys(seen), scores, keys);
            let each = queries.chunks_exact(features).zip(scores.chunks_exact_mut(keys));
            self.estimates.clear();
            for (((query, scores), sums), end) in each.zip(sums.chunks_exact_mut(targets)).zip(ends.clone()) {
                let (near, far) = scores[..seen].split_at_mut(end);
                far.fill(T::zero());
                self.estimates.push(self.weights.weigh(chunk, before, query, near, sums));
            }
            add_product(isa, scores, keys, chunk.values(seen), sums, targets);
            let each = sums.chunks_exact_mut(targets).zip(&self.estimates).zip(rows.zip(ends));
            for ((sums, &(scale, normaliser)), (i, end)) in each {
                let (query, seen) =
                    (self.queries.precision(start + i), chunk.seen_before || chunk.has_any(end));
                if query.held {
                    let scale = scale + scale_of(&self.queries, start + i, asked);
                    let estimate = Undivided { scale, normaliser, sums, seen };
                    self.finish.write(setup, estimate, i, asked);
                }
            }
        }
        if let Outlet::Pulls(pulls) = &mut asked.out {
            let (keys, queries) = ((chunk, before), (&self.queries, start));
            let scratch = &mut self.logs.scratch;
            self.finish.cotangents.pull_from_chunk(setup, keys, queries, (count, asked.sees), pulls, scratch);
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
        self.queries.log_row(setup, setup.asking(), query, scratch, row);
        self.wide.resize(asked.out.targets(), 0.0);
        let (mut scale, normaliser) = state.query(row, &mut self.wide);
        if self.queries.precision(query).scale == f64::NEG_INFINITY {
            scale = scale_of(&self.queries, query, asked);
        }
        let estimate = Undivided { scale, normaliser, sums: &mut self.wide[..], seen: state.has_seen() };
        self.finish.write(setup, estimate, i, asked);
        if let Outlet::Pulls(pulls) = &mut asked.out {
            let queries = (&self.queries, query);
            self.finish.cotangents.pull_from_logarithms(setup, state, queries, i, pulls, &mut self.logs);
        }
    }

    /// The outputs of all queries that were read, which see the keys of a state; `ready` holds its sums relative to one reference.
    pub fn answer_all(
        &mut self,
        setup: Setup<'_, T>,
        state: &WeightedSums<T>,
        ready: &RunSums<T>,
        asked: &mut Asked<'_, T>,
    ) {
        let (isa, features, targets) = (Isa::best(), setup.program.width(), asked.out.targets());
        self.finish.begin(setup, self.queries.points_of(asked.queries.clone()), asked);
        self.out.resize(self.queries.len() * targets, T::zero());
        product(isa, self.queries.features(), features, ready.sums.all(), &mut self.out, targets);
        for i in 0..self.queries.len() {
            let query = self.queries.precision(i);
            if !query.held || !ready.precision.held {
                self.hard_answer(setup, state, i, i, asked);
                continue;
            }
            let normaliser = numeric::dot(isa, self.queries.row(i), &ready.weights);
            let scale = ready.precision.scale + scale_of(&self.queries, i, asked);
            let sums = &mut self.out[i * targets..][..targets];
            let estimate = Undivided { scale, normaliser, sums, seen: state.has_seen() };
            self.finish.write(setup, estimate, i, asked);
        }
        if let Outlet::Pulls(pulls) = &mut asked.out {
            let scratch = &mut self.logs.scratch;
            self.finish.cotangents.pull_from_sums(setup, ready, &self.queries, pulls, scratch);
        }
    }

    /// The outputs of queries that see no key by its features.
    pub fn answer_without(&mut self, setup: Setup<'_, T>, q: Numbers<'_, T>, asked: &mut Asked<'_, T>) {
        let targets = asked.out.targets();
        self.queries.read_points(setup, q);
        self.finish.begin(setup, self.queries.points_of(asked.queries.clone()), asked);
        for i in 0..self.queries.len() {
            self.out.clear();
            self.out.resize(targets, T::zero());
            let (scale, sums) = (f64::NEG_INFINITY, &mut self.out[..]);
            let estimate = Undivided { scale, normaliser: 0.0, sums, seen: false };
            self.finish.write(setup, estimate, i, asked);
        }
    }
}

/// ln of the scale of a query that was read.
fn scale_of<T: Real>(queries: &Tokens<T>, query: usize, asked: &Asked<'_, T>) -> f64 {
    match asked.out {
        Outlet::Pulls(_) => queries.gradient_scale(query),
        _ => queries.precision(query).scale,
    }
}
