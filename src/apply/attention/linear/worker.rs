//! [`Worker`]: answers queries from the keys of their chunk and the sums over the keys before it.
//!
//! Where no feature is lost to rounding, the outputs of a chunk are a few matrix products. Products take rows one by one, so a
//! query has the same output, to the bit, in a chunk and alone.

use std::ops::Range;
use std::sync::OnceLock;

use super::super::features::{Chunk, KeyWeights, LogBuffers, Setup, Tokens};
use super::super::input::{Estimated, KeyRows, KeyRun, LogScale, Numbers, QueryRun, Undivided};
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
    /// ln of the scale and the normaliser of each query.
    estimates: Vec<(f64, f64)>,
    /// The products of queries with the weights of keys: one for each query.
    normalisers: Vec<f64>,
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
    pub fn read_queries(&mut self, setup: Setup<'_, T>, run: QueryRun<'_, T>) {
        self.queries.read_queries(setup, run, &mut self.logs.scratch);
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
        let (targets, start, sees) = (request.sink.targets(), request.queries.start, request.sees);
        if !self.recall(request, count) {
            self.estimate(setup, (chunk, before), start..start + count, (sees, targets));
            self.keep(request);
        }
        let each = self.out.chunks_exact_mut(targets).zip(&self.estimates);
        for (i, (sums, &(read, normaliser))) in each.enumerate() {
            let seen = chunk.seen_before || chunk.has_any(sees + i);
            if self.queries.precision(start + i).is_representable {
                let own = request.sink.scale_of(&self.queries, start + i);
                let estimate = Undivided { scale: LogScale { own, read }, normaliser, sums, seen };
                self.finish.write(setup, estimate, i, request);
            }
        }
        let read = ChunkRead { chunk, before, queries: &self.queries, first: start, count, sees };
        request.sink.see_chunk(setup, read, &mut self.logs.scratch);
    }

    /// Estimates what some queries read of a chunk, of which the first sees so many keys, and of the sums before it.
    fn estimate(
        &mut self,
        setup: Setup<'_, T>,
        (chunk, before): (&Chunk<T>, &RunSums<T>),
        queries: Range<usize>,
        (sees, targets): (usize, usize),
    ) {
        let (isa, width, features) = (Isa::best(), panel_width::<T>(), setup.program.width());
        let (count, keys) = (queries.len(), (sees + queries.len() - 1).max(1));
        let queries = &self.queries.features()[queries.start * features..queries.end * features];
        self.out.resize(count * targets, T::zero());
        self.scores.resize(count * keys, T::zero());
        product(isa, queries, features, before.sums.all(), &mut self.out, targets);
        self.weights.begin();
        self.estimates.clear();
        // A panel of queries sees hardly more keys than its first.
        for first in (0..count).step_by(width) {
            let rows = first..count.min(first + width);
            let ends = sees + rows.start..sees + rows.end;
            let seen = ends.end - 1;
            let queries = &queries[rows.start * features..rows.end * features];
            let scores = &mut self.scores[rows.start * keys..rows.end * keys];
            let sums = &mut self.out[rows.start * targets..rows.end * targets];
            product(isa, queries, features, chunk.keys(seen), scores, keys);
            let each = queries.chunks_exact(features).zip(scores.chunks_exact_mut(keys));
            for (((query, scores), sums), end) in each.zip(sums.chunks_exact_mut(targets)).zip(ends) {
                let (near, far) = scores[..seen].split_at_mut(end);
                far.fill(T::zero());
                self.estimates.push(self.weights.weigh(chunk, before, query, near, sums));
            }
            add_product(isa, scores, keys, chunk.values(seen), sums, targets);
        }
    }

    /// Takes the estimates of `count` queries from where they are kept. False if they are not.
    fn recall(&mut self, request: &Request<'_, T>, count: usize) -> bool {
        let kept = request.estimated.and_then(OnceLock::get).filter(|kept| kept.estimates.len() == count);
        kept.inspect(|kept| {
            self.out.clone_from(&kept.sums);
            self.estimates.clone_from(&kept.estimates);
        })
        .is_some()
    }

    /// Keeps the estimates, if there is room for them.
    fn keep(&self, request: &Request<'_, T>) {
        if let Some(room) = request.estimated {
            room.get_or_init(|| Estimated { sums: self.out.clone(), estimates: self.estimates.clone() });
        }
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
        let own = self.queries.relative_log_row(setup, setup.reading_side(), query, scratch, row);
        self.wide.resize(request.sink.targets(), 0.0);
        let (read, normaliser) = state.query(row, &mut self.wide);
        let scale = match self.queries.precision(query).scale == f64::NEG_INFINITY {
            true => LogScale { own: request.sink.scale_of(&self.queries, query), read: 0.0 },
            false => LogScale { own, read },
        };
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
        let targets = request.sink.targets();
        self.finish.begin(setup, self.queries.points_of(request.queries.clone()), request);
        if !self.recall(request, self.queries.len()) {
            self.estimate_all(ready, targets);
            self.keep(request);
        }
        for i in 0..self.queries.len() {
            let query = self.queries.precision(i);
            if !query.is_representable || !ready.precision.is_representable {
                self.one_by_logarithms(setup, state, i, i, request);
                continue;
            }
            let (read, normaliser) = self.estimates[i];
            let scale = LogScale { own: request.sink.scale_of(&self.queries, i), read };
            let sums = &mut self.out[i * targets..][..targets];
            let estimate = Undivided { scale, normaliser, sums, seen: state.has_seen() };
            self.finish.write(setup, estimate, i, request);
        }
        request.sink.see_sums(setup, ready, &self.queries, &mut self.logs.scratch);
    }

    /// Estimates what all queries that were read have of these sums.
    fn estimate_all(&mut self, sums: &RunSums<T>, targets: usize) {
        let (isa, queries) = (Isa::best(), &self.queries);
        self.out.resize(queries.len() * targets, T::zero());
        product(isa, queries.features(), queries.width(), sums.sums.all(), &mut self.out, targets);
        self.normalisers.resize(queries.len(), 0.0);
        numeric::dots(isa, queries.features(), &sums.weights, &mut self.normalisers);
        self.estimates.clear();
        self.estimates.extend(self.normalisers.iter().map(|normaliser| (sums.precision.scale, *normaliser)));
    }

    /// Answers queries that see no key by its features.
    pub fn no_keys(&mut self, setup: Setup<'_, T>, q: Numbers<'_, T>, request: &mut Request<'_, T>) {
        let targets = request.sink.targets();
        self.queries.read_points(setup, q);
        self.finish.begin(setup, self.queries.points_of(request.queries.clone()), request);
        for i in 0..self.queries.len() {
            self.out.clear();
            self.out.resize(targets, T::zero());
            let (scale, sums) = (LogScale::NOTHING, &mut self.out[..]);
            let estimate = Undivided { scale, normaliser: 0.0, sums, seen: false };
            self.finish.write(setup, estimate, i, request);
        }
    }
}
