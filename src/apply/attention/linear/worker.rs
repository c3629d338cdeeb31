//! [`Worker`]: answers queries from the keys of their chunk and the sums over the keys before it.
//!
//! Where no feature is lost to rounding, the outputs of a chunk are a few matrix products. Products take rows one by one, so a
//! query has the same output, to the bit, in a chunk and alone.

use super::super::features::{Chunk, KeyWeights, LogBuffers, Setup, Tokens};
use super::super::input::{KeyRows, KeyRun, Numbers, Undivided};
use super::finish::Finish;
use super::request::{Request, SlowPath, VisibleKeys};
use super::sink::ChunkRead;
use crate::Real;
use crate::numeric::{self, Isa, add_product, panel_width, product};
use crate::reduce::{RunSums, WeightedSums};

/// The buffers that a thread keeps from chunk to chunk.
#[derive(Debug, Default)]
pub(in super::super) struct Worker<T> {
    pub logs: LogBuffers<T>,
    /// The queries that were read last.
    queries: Tokens<T>,
    /// Keys that are read on their way to a chunk.
    pub tokens: Tokens<T>,
    /// Tokens that leave windows, and the heads whose windows these are.
    pub leaving: (KeyRows<T>, Vec<usize>),
    /// The scales of the keys that a query sees, relative to the largest.
    weights: KeyWeights<T>,
    /// ln of the scale and the normaliser of each query of a panel.
    estimates: Vec<(f64, f64)>,
    /// The products of queries and keys, queries × keys.
    scores: Vec<T>,
    /// The weighted sums of values, queries × d_v.
    out: Vec<T>,
    finish: Finish<T>,
    /// The weighted sums of values of one query, in `f64`.
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
        self.queries.fill(setup, setup.reading_side(), q, &mut self.logs.scratch);
    }

    /// How many queries were read.
    pub fn queries(&self) -> usize {
        self.queries.len()
    }

    /// Answers a request. False, with some rows written that must be written again, if a query needs the slow path and there is none.
    pub(super) fn answer(
        &mut self,
        setup: Setup<'_, T>,
        visible: VisibleKeys<'_, T>,
        mut request: Request<'_, T>,
    ) -> bool {
        let VisibleKeys { chunk, before, slow } = visible;
        let count = request.queries.len();
        let within = |prefix: usize| (prefix + 1).saturating_sub(request.sees).min(count);
        let fast = chunk.fitting_prefix(before).map_or(0, within);
        let needs_slow =
            fast < count || request.queries.clone().any(|i| !self.queries.precision(i).is_representable);
        if needs_slow && slow.is_none() {
            return false;
        }
        self.finish.begin(setup, self.queries.points_of(request.queries.clone()), &mut request);
        if fast > 0 {
            self.by_products(setup, chunk, before, fast, &mut request);
        }
        if let (true, Some(slow)) = (needs_slow, slow) {
            self.by_logarithms(setup, chunk, slow, fast, &mut request);
        }
        true
    }

    /// Answers those of the first `count` queries whose features fit `T`, by matrix products.
    fn by_products(
        &mut self,
        setup: Setup<'_, T>,
        chunk: &Chunk<T>,
        before: &RunSums<T>,
        count: usize,
        request: &mut Request<'_, T>,
    ) {
        let (isa, width, features) = (Isa::best(), panel_width::<T>(), setup.program.width());
        let (targets, start) = (request.sink.targets(), request.queries.start);
        let keys = (request.sees + count - 1).max(1);
        let queries = &self.queries.features()[start * features..(start + count) * features];
        self.out.resize(count * targets, T::zero());
        self.scores.resize(count * keys, T::zero());
        product(isa, queries, features, before.sums.all(), &mut self.out, targets);
        self.weights.begin();
        // A panel of queries sees hardly more keys than its first.
        for first in (0..count).step_by(width) {
            let rows = first..count.min(first + width);
            let ends = request.sees + rows.start..request.sees + rows.end;
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
                if query.is_representable {
                    let scale = scale + request.sink.scale_of(&self.queries, start + i);
                    let estimate = Undivided { scale, normaliser, sums, seen };
                    self.finish.write(setup, estimate, i, request);
                }
            }
        }
        let (queries, sees) = (&self.queries, request.sees);
        let read = ChunkRead { chunk, before, queries, first: start, count, sees };
        request.sink.see_chunk(setup, read, &mut self.logs.scratch);
    }

    /// Answers all other queries, those from `fast` on and those whose features do not fit `T`, in `f64` from logarithms.
    #[cold]
    fn by_logarithms(
        &mut self,
        setup: Setup<'_, T>,
        chunk: &Chunk<T>,
        slow: SlowPath<'_, T>,
        fast: usize,
        request: &mut Request<'_, T>,
    ) {
        let SlowPath { keys, past, prefix } = slow;
        for (i, query) in request.queries.clone().enumerate() {
            if i >= fast || !self.queries.precision(query).is_representable {
                let state = prefix.upto(setup, chunk, (keys, past), request.sees + i, &mut self.logs);
                self.one_by_logarithms(setup, state, query, i, request);
            }
        }
    }

    fn one_by_logarithms(
        &mut self,
        setup: Setup<'_, T>,
        state: &WeightedSums<T>,
        query: usize,
        i: usize,
        request: &mut Request<'_, T>,
    ) {
        let LogBuffers { scratch, row, .. } = &mut self.logs;
        self.queries.log_row(setup, setup.reading_side(), query, scratch, row);
        self.wide.resize(request.sink.targets(), 0.0);
        let (mut scale, normaliser) = state.query(row, &mut self.wide);
        if self.queries.precision(query).scale == f64::NEG_INFINITY {
            scale = request.sink.scale_of(&self.queries, query);
        }
        let estimate = Undivided { scale, normaliser, sums: &mut self.wide[..], seen: state.has_seen() };
        self.finish.write_wide(setup, estimate, i, request);
        request.sink.see_logarithms(setup, state, (&self.queries, query), i, &mut self.logs);
    }

    /// Answers all queries that were read, which see the keys of a state; `ready` holds its sums relative to one reference.
    pub fn all_keys(
        &mut self,
        setup: Setup<'_, T>,
        state: &WeightedSums<T>,
        ready: &RunSums<T>,
        request: &mut Request<'_, T>,
    ) {
        let (isa, features, targets) = (Isa::best(), setup.program.width(), request.sink.targets());
        self.finish.begin(setup, self.queries.points_of(request.queries.clone()), request);
        self.out.resize(self.queries.len() * targets, T::zero());
        product(isa, self.queries.features(), features, ready.sums.all(), &mut self.out, targets);
        for i in 0..self.queries.len() {
            let query = self.queries.precision(i);
            if !query.is_representable || !ready.precision.is_representable {
                self.one_by_logarithms(setup, state, i, i, request);
                continue;
            }
            let normaliser = numeric::dot(isa, self.queries.row(i), &ready.weights);
            let scale = ready.precision.scale + request.sink.scale_of(&self.queries, i);
            let sums = &mut self.out[i * targets..][..targets];
            let estimate = Undivided { scale, normaliser, sums, seen: state.has_seen() };
            self.finish.write(setup, estimate, i, request);
        }
        request.sink.see_sums(setup, ready, &self.queries, &mut self.logs.scratch);
    }

    /// Answers queries that see no key by its features.
    pub fn no_keys(&mut self, setup: Setup<'_, T>, q: Numbers<'_, T>, request: &mut Request<'_, T>) {
        let targets = request.sink.targets();
        self.queries.read_points(setup, q);
        self.finish.begin(setup, self.queries.points_of(request.queries.clone()), request);
        for i in 0..self.queries.len() {
            self.out.clear();
            self.out.resize(targets, T::zero());
            let (scale, sums) = (f64::NEG_INFINITY, &mut self.out[..]);
            let estimate = Undivided { scale, normaliser: 0.0, sums, seen: false };
            self.finish.write(setup, estimate, i, request);
        }
    }
}
