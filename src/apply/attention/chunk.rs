//! [`ChunkBuffers`]: computes the features of a chunk, which is a run of tokens, adds its [`Keys`] to a [`State`], and computes the
//! outputs of its queries.
//!
//! Where no feature is lost to rounding, a chunk is a few matrix products. From the first key on of which one is, the keys
//! of the chunk are added one by one, by the logarithms of their features. Which way a token goes depends on earlier tokens
//! and itself alone, and products take rows one by one, so nothing of a later token reaches an earlier one, not even a bit of
//! rounding.

use ndarray::{ArrayView1, ArrayView2, ArrayViewMut2};

use super::exact_keys::ExactKeys;
use super::keys::Keys;
use super::output::Undivided;
use super::tokens::{Element, Reading, Tokens};
use crate::Real;
use crate::engine::{Program, Scratch, Side};
use crate::numeric::{self, Isa, Packed, add_product, panel_width, product};
use crate::reduce::{LogRow, RunSums as Relative, WeightedSums as State};

/// Tokens of a chunk. For each token, products with keys of its chunk cost in proportion to this, and updates of the state in
/// inverse proportion.
pub(super) const CHUNK: usize = 64;

/// A map and how it is used.
#[derive(Clone, Copy)]
pub(super) struct Setup<'a, T> {
    pub program: &'a Program<T>,
    pub reading: &'a Reading,
    /// Whether outputs are divided by their normaliser.
    pub normalised: bool,
    /// Keys of the sequence whose weights are computed exactly instead of from features.
    pub exact: Option<&'a ExactKeys<T>>,
}

/// What a thread keeps from chunk to chunk.
#[derive(Debug, Default)]
pub(super) struct ChunkBuffers<T> {
    scratch: Scratch<T>,
    queries: Tokens<T>,
    /// The keys that were read last.
    tokens: Tokens<T>,
    packed_values: Packed<T>,
    weights: Vec<T>,
    scores: Vec<T>,
    out: Vec<T>,
    row: Vec<f64>,
    wide: Vec<f64>,
    logs: LogRow,
    ready: Relative<T>,
}

/// The keys before a chunk: the sums over whole segments, and over the chunks since.
#[derive(Clone, Copy)]
pub(super) struct Past<'a, T> {
    pub segments: &'a State<T>,
    pub since: &'a State<T>,
}

impl<T: Real> Past<'_, T> {
    /// Whether there is a key, even one whose features are all 0.
    fn has_seen(self) -> bool {
        self.segments.has_seen() || self.since.has_seen()
    }
}

/// The outputs of some queries.
struct Outputs<'a, T> {
    rows: ArrayViewMut2<'a, T>,
    /// The place of the first query in its sequence; `None` if queries see all keys.
    first: Option<usize>,
    /// Takes the rows whose normaliser is not positive.
    report: &'a mut dyn FnMut(usize),
}

impl<T> Outputs<'_, T> {
    /// The keys that query `i` sees are those before this row.
    fn end(&self, i: usize) -> usize {
        self.first.map_or(usize::MAX, |first| first + i + 1)
    }
}

/// The queries of a chunk, and where their outputs go, for each head that shares its keys.
pub(super) type Queries<'a, E, T> = [(ArrayView2<'a, E>, ArrayViewMut2<'a, T>)];

impl<T: Real> ChunkBuffers<T> {
    /// Takes in keys and values; keys whose `mask` is false are left out.
    pub fn read_keys<E: Element<T>>(
        &mut self,
        setup: Setup<'_, T>,
        k: ArrayView2<'_, E>,
        v: ArrayView2<'_, E>,
        mask: Option<ArrayView1<'_, bool>>,
        keys: &mut Keys<T>,
    ) {
        self.tokens.fill(setup, Side::Y, k, &mut self.scratch);
        keys.values.fill(v);
        keys.hidden.clear();
        keys.hidden.resize(self.tokens.len(), false);
        for (i, _) in mask.iter().flatten().enumerate().filter(|(_, seen)| !**seen) {
            self.tokens.clear_row(i);
            keys.values.clear_row(i);
            keys.hidden[i] = true;
        }
        keys.settle(&self.tokens);
    }

    /// Sums up the easy ones of `keys`, which were read last.
    pub fn sum(&self, keys: &mut Keys<T>) {
        keys.sum(&self.tokens);
    }

    /// Adds `keys`, which were read last, to a state.
    pub fn add_to(&mut self, setup: Setup<'_, T>, keys: &mut Keys<T>, state: &mut State<T>) {
        self.sum(keys);
        state.add(keys.part());
        if keys.has_any() {
            state.see();
        }
        for j in keys.easy..keys.len() {
            self.push(setup, keys, j, state);
        }
    }

    fn push(&mut self, setup: Setup<'_, T>, keys: &Keys<T>, j: usize, state: &mut State<T>) {
        if !keys.hidden[j] {
            self.tokens.log_row(setup.program, Side::Y, j, &mut self.scratch, &mut self.logs);
            state.push(&self.logs, keys.values.row(j));
        }
    }

    /// The outputs of queries that see the keys of the chunk up to their own row, and the keys before the chunk. The keys of the
    /// chunk were read last; the first query is token `first` of its sequence. Rows without a positive normaliser are given to
    /// `report`.
    pub fn causal<E: Element<T>>(
        &mut self,
        setup: Setup<'_, T>,
        keys: &mut Keys<T>,
        past: Past<'_, T>,
        first: usize,
        queries: &mut Queries<'_, E, T>,
        mut report: impl FnMut(usize, usize),
    ) {
        let mut before = std::mem::take(&mut self.ready);
        past.segments.ready(past.since, &mut before);
        let fast = keys.near(&before);
        keys.seen_before = past.has_seen();
        for (member, (q, out)) in queries.iter_mut().enumerate() {
            self.queries.fill(setup, Side::X, q.view(), &mut self.scratch);
            let report = &mut |i| report(member, i);
            let mut outputs = Outputs { rows: out.view_mut(), first: Some(first), report };
            self.easy_outputs(setup, keys, &before, fast, &mut outputs);
            if fast < self.queries.len() || !self.queries.all_plain() {
                self.hard_outputs(setup, keys, past, fast, &mut outputs);
            }
        }
        self.ready = before;
    }

    /// As [`causal`](ChunkBuffers::causal) for keys that hold [the sums over all keys before them](Keys::part) and need not be read
    /// again. False where an output has to be computed by [`causal`](ChunkBuffers::causal).
    pub fn causal_of_ready<E: Element<T>>(
        &mut self,
        setup: Setup<'_, T>,
        keys: &Keys<T>,
        first: usize,
        queries: &mut Queries<'_, E, T>,
        mut report: impl FnMut(usize, usize),
    ) -> bool {
        let before = keys.part();
        let near = keys.near(before) == keys.len();
        for (member, (q, out)) in queries.iter_mut().enumerate() {
            self.queries.fill(setup, Side::X, q.view(), &mut self.scratch);
            if !near || !self.queries.all_plain() {
                return false;
            }
            let report = &mut |i| report(member, i);
            let mut outputs = Outputs { rows: out.view_mut(), first: Some(first), report };
            self.easy_outputs(setup, keys, before, keys.len(), &mut outputs);
        }
        true
    }

    /// The outputs of the plain ones of the first `count` queries, by matrix products with the keys of the chunk and with the sums
    /// over the keys before it.
    fn easy_outputs(
        &mut self,
        setup: Setup<'_, T>,
        keys: &Keys<T>,
        before: &Relative<T>,
        count: usize,
        outputs: &mut Outputs<'_, T>,
    ) {
        if count == 0 {
            return;
        }
        let (isa, width, features) = (Isa::best(), panel_width::<T>(), setup.program.width());
        let targets = outputs.rows.ncols();
        self.packed_values.refill_columns(keys.values.first(count), count, targets);
        self.out.resize(count * targets, T::zero());
        self.scores.resize(count * count, T::zero());
        product(
            isa,
            &self.queries.values()[..count * features],
            features,
            before.sums.all(),
            &mut self.out,
            targets,
        );
        self.weights.clear();
        let (mut reference, mut largest) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
        for first in (0..count).step_by(width) {
            let rows = first..count.min(first + width);
            let seen = rows.end;
            let queries = &self.queries.values()[rows.start * features..rows.end * features];
            let scores = &mut self.scores[rows.start * count..rows.end * count];
            product(isa, queries, features, keys.packed().first(seen), scores, count);
            let sums = &mut self.out[rows.start * targets..rows.end * targets];
            let mut normalisers = [0.0; CHUNK];
            let mut scales = [0.0; CHUNK];
            for (r, (scores, sums)) in
                scores.chunks_exact_mut(count).zip(sums.chunks_exact_mut(targets)).enumerate()
            {
                let i = rows.start + r;
                // Weights are relative to the largest scale of the keys that the row sees.
                largest = largest.max(keys.scales[i]);
                let own = largest.max(before.reference);
                scales[r] = own;
                if own == f64::NEG_INFINITY {
                    scores[..seen].fill(T::zero());
                    sums.fill(T::zero());
                    continue;
                }
                let known = if own == reference { self.weights.len() } else { 0 };
                reference = own;
                self.weights.truncate(known);
                self.weights.extend(keys.scales[known..=i].iter().map(|scale| T::narrow(scale - own)));
                numeric::exp_minus(isa, &mut self.weights[known..], T::zero());
                let (near, far) = scores[..seen].split_at_mut(i + 1);
                near.iter_mut().zip(&self.weights).for_each(|(score, weight)| *score *= *weight);
                far.fill(T::zero());
                let rest = (before.reference - own).exp();
                if rest != 1.0 {
                    numeric::affine(isa, sums, T::narrow(rest), &[]);
                }
                normalisers[r] = rest * numeric::dot(isa, self.queries.row(i), &before.weights)
                    + numeric::plain_sum(isa, near);
            }
            add_product(isa, scores, count, self.packed_values.all().shallow(seen), sums, targets);
            for (r, sums) in sums.chunks_exact_mut(targets).enumerate() {
                let i = rows.start + r;
                if self.queries.plain[i] {
                    let scale = scales[r] + self.queries.scales[i];
                    let seen = keys.seen_before || keys.hidden[..=i].contains(&false);
                    let estimate = Undivided { scale, normaliser: normalisers[r], sums: &mut *sums, seen };
                    finish(setup, self.queries.point(i), estimate, &mut self.row, i, outputs);
                }
            }
        }
    }

    /// The outputs of all other queries, those from `easy` on and those that are not plain, in `f64` from logarithms.
    #[cold]
    fn hard_outputs(
        &mut self,
        setup: Setup<'_, T>,
        keys: &Keys<T>,
        past: Past<'_, T>,
        easy: usize,
        outputs: &mut Outputs<'_, T>,
    ) {
        let mut state = past.segments.clone();
        state.merge(past.since);
        for i in 0..self.queries.len() {
            self.push(setup, keys, i, &mut state);
            if i >= easy || !self.queries.plain[i] {
                self.hard_output(setup, i, &state, outputs);
            }
        }
    }

    fn hard_output(&mut self, setup: Setup<'_, T>, i: usize, state: &State<T>, outputs: &mut Outputs<'_, T>) {
        self.queries.log_row(setup.program, Side::X, i, &mut self.scratch, &mut self.logs);
        self.wide.resize(outputs.rows.ncols(), 0.0);
        let (scale, normaliser) = state.query(&self.logs, &mut self.wide);
        let estimate = Undivided { scale, normaliser, sums: &mut self.wide[..], seen: state.has_seen() };
        finish(setup, self.queries.point(i), estimate, &mut self.row, i, outputs);
    }

    /// The outputs of queries that see all keys, from the sums over these: `ready` holds those of `state`, relative to one
    /// reference.
    pub fn bidirectional<E: Element<T>>(
        &mut self,
        setup: Setup<'_, T>,
        state: &State<T>,
        ready: &Relative<T>,
        q: ArrayView2<'_, E>,
        out: ArrayViewMut2<'_, T>,
        report: &mut dyn FnMut(usize),
    ) {
        let (isa, features, targets) = (Isa::best(), setup.program.width(), out.ncols());
        self.queries.fill(setup, Side::X, q, &mut self.scratch);
        self.out.resize(self.queries.len() * targets, T::zero());
        product(isa, self.queries.values(), features, ready.sums.all(), &mut self.out, targets);
        let mut outputs = Outputs { rows: out, first: None, report };
        for i in 0..self.queries.len() {
            if !self.queries.plain[i] || !ready.plain {
                self.hard_output(setup, i, state, &mut outputs);
                continue;
            }
            let normaliser = numeric::dot(isa, self.queries.row(i), &ready.weights);
            let scale = ready.reference + self.queries.scales[i];
            let sums = &mut self.out[i * targets..][..targets];
            let estimate = Undivided { scale, normaliser, sums, seen: state.has_seen() };
            finish(setup, self.queries.point(i), estimate, &mut self.row, i, &mut outputs);
        }
    }
}

/// Adds the exact terms that query `i` sees, if there are any, to the estimated sums, and writes its output. Reports the query if
/// the normaliser is not positive although a key was seen.
#[inline]
fn finish<T: Real, U: Real>(
    setup: Setup<'_, T>,
    point: &[T],
    estimate: Undivided<'_, U>,
    buffer: &mut Vec<f64>,
    i: usize,
    outputs: &mut Outputs<'_, T>,
) {
    let end = outputs.end(i);
    let mut out = outputs.rows.row_mut(i);
    let positive = match setup.exact {
        None => estimate.write(setup.normalised, out.iter_mut()),
        Some(exact) => exact.combine(point, end, estimate, buffer).write(setup.normalised, out.iter_mut()),
    };
    if !positive {
        (outputs.report)(i);
    }
}
