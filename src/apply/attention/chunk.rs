//! [`Chunk`]: a run of tokens whose [`Keys`] enter a [`State`] together, and whose queries see those up to their own.
//!
//! Where no feature is lost to rounding, a chunk is a few matrix products; from the first key on of which one is, keys
//! enter one by one, by the logarithms of their features. Which way a token goes depends on what it may see alone, and
//! products take rows one by one, so nothing of a later token reaches an earlier one, not even a bit of rounding.

use ndarray::{ArrayView1, ArrayView2, ArrayViewMut1, ArrayViewMut2};

use super::exact_keys::ExactKeys;
use super::keys::Keys;
use super::output::Sums;
use super::state::{LogRow, Relative, State};
use super::tokens::{Element, Reading, Tokens};
use crate::Real;
use crate::engine::{Program, Scratch, Side};
use crate::numeric::{self, Isa, Packed, add_product, panel_width, product};

/// Tokens of a chunk: what later tokens of a chunk cost for each token is half of this, what the state costs is divided by
/// this.
pub(super) const CHUNK: usize = 64;

/// A map and how it is used.
#[derive(Clone, Copy)]
pub(super) struct Setup<'a, T> {
    pub program: &'a Program<T>,
    pub reading: &'a Reading,
    /// Whether outputs are divided by their normaliser.
    pub normalised: bool,
    /// Keys of the sequence that are taken exactly, and not by their features.
    pub exact: Option<&'a ExactKeys<T>>,
}

/// What a thread keeps from chunk to chunk.
#[derive(Debug, Default)]
pub(super) struct Chunk<T> {
    scratch: Scratch<T>,
    queries: Tokens<T>,
    /// Those of the keys that were read last.
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

/// The queries of a chunk, and where their outputs go, for each head that shares its keys.
pub(super) type Queries<'a, E, T> = [(ArrayView2<'a, E>, ArrayViewMut2<'a, T>)];

impl<T: Real> Chunk<T> {
    /// Takes in keys and values; keys whose `mask` is false are left out.
    pub fn read_keys<E: Element<T>>(
        &mut self,
        setup: Setup<'_, T>,
        (k, v): (ArrayView2<'_, E>, ArrayView2<'_, E>),
        mask: Option<ArrayView1<'_, bool>>,
        keys: &mut Keys<T>,
    ) {
        self.tokens.fill(setup.program, (Side::Y, setup.reading), k, &mut self.scratch);
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

    /// Sums up the keys, which were read last.
    pub fn sum(&self, keys: &mut Keys<T>) {
        keys.sum(&self.tokens);
    }

    /// Adds the keys, which were read last, to a state.
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

    /// The outputs of queries that see the keys up to their own row and what was before them in two states. The keys were
    /// read last; the first query is token `first` of its sequence. Rows without a positive normaliser are given to `report`.
    pub fn causal<E: Element<T>>(
        &mut self,
        setup: Setup<'_, T>,
        keys: &mut Keys<T>,
        states: (&State<T>, &State<T>),
        first: usize,
        queries: &mut Queries<'_, E, T>,
        mut report: impl FnMut(usize, usize),
    ) {
        let mut ready = std::mem::take(&mut self.ready);
        states.0.ready(states.1, &mut ready);
        let fast = keys.near(&ready);
        keys.seen_before = states.0.has_seen() || states.1.has_seen();
        for (member, (q, out)) in queries.iter_mut().enumerate() {
            self.queries.fill(setup.program, (Side::X, setup.reading), q.view(), &mut self.scratch);
            self.easy_outputs(setup, (keys, &ready), (first, fast), out.view_mut(), &mut |i| {
                report(member, i)
            });
            if fast < self.queries.len() || !self.queries.all_plain() {
                self.hard_outputs(setup, keys, states, (first, fast), out.view_mut(), &mut |i| {
                    report(member, i)
                });
            }
        }
        self.ready = ready;
    }

    /// As [`causal`](Chunk::causal) for keys that know [what is seen before them](Keys::part) and need not be read again.
    /// False where an output has to be computed by [`causal`](Chunk::causal).
    pub fn causal_of_ready<E: Element<T>>(
        &mut self,
        setup: Setup<'_, T>,
        keys: &Keys<T>,
        first: usize,
        queries: &mut Queries<'_, E, T>,
        mut report: impl FnMut(usize, usize),
    ) -> bool {
        let ready = keys.part();
        let near = keys.near(ready) == keys.len();
        for (member, (q, out)) in queries.iter_mut().enumerate() {
            self.queries.fill(setup.program, (Side::X, setup.reading), q.view(), &mut self.scratch);
            if !near || !self.queries.all_plain() {
                return false;
            }
            self.easy_outputs(setup, (keys, ready), (first, keys.len()), out.view_mut(), &mut |i| {
                report(member, i)
            });
        }
        true
    }

    /// The outputs of the plain ones of the first `count` queries, as products.
    fn easy_outputs(
        &mut self,
        setup: Setup<'_, T>,
        (keys, ready): (&Keys<T>, &Relative<T>),
        (start, count): (usize, usize),
        mut out: ArrayViewMut2<'_, T>,
        report: &mut dyn FnMut(usize),
    ) {
        if count == 0 {
            return;
        }
        let (isa, width, features) = (Isa::best(), panel_width::<T>(), setup.program.width());
        let targets = out.ncols();
        self.packed_values.refill_columns(keys.values.first(count), (count, targets));
        self.out.resize(count * targets, T::zero());
        self.scores.resize(count * count, T::zero());
        product(
            isa,
            &self.queries.values()[..count * features],
            features,
            ready.sums.all(),
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
                // Relative to the largest scale that the row sees.
                largest = largest.max(keys.scales[i]);
                let own = largest.max(ready.reference);
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
                let rest = (ready.reference - own).exp();
                if rest != 1.0 {
                    numeric::affine(isa, sums, T::narrow(rest), &[]);
                }
                normalisers[r] = rest * numeric::dot(isa, self.queries.row(i), &ready.weights)
                    + numeric::plain_sum(isa, near);
            }
            add_product(isa, scores, count, self.packed_values.all().shallow(seen), sums, targets);
            for (r, sums) in sums.chunks_exact_mut(targets).enumerate() {
                let i = rows.start + r;
                if self.queries.plain[i] {
                    let scale = scales[r] + self.queries.scales[i];
                    let seen = keys.seen_before || keys.hidden[..=i].contains(&false);
                    let estimate = (scale, normalisers[r], &mut *sums, seen);
                    let query = (self.queries.point(i), start + i + 1);
                    if !finish(setup, query, estimate, &mut self.row, out.row_mut(i)) {
                        report(i);
                    }
                }
            }
        }
    }

    /// The outputs of all other queries, in `f64` from logarithms.
    #[cold]
    fn hard_outputs(
        &mut self,
        setup: Setup<'_, T>,
        keys: &Keys<T>,
        (before, last): (&State<T>, &State<T>),
        (start, easy): (usize, usize),
        mut out: ArrayViewMut2<'_, T>,
        report: &mut dyn FnMut(usize),
    ) {
        let mut state = before.clone();
        state.merge(last);
        for i in 0..self.queries.len() {
            self.push(setup, keys, i, &mut state);
            if i >= easy || !self.queries.plain[i] {
                self.hard_output(setup, (i, start + i + 1), &state, out.row_mut(i), report);
            }
        }
    }

    fn hard_output(
        &mut self,
        setup: Setup<'_, T>,
        (i, end): (usize, usize),
        state: &State<T>,
        out: ArrayViewMut1<'_, T>,
        report: &mut dyn FnMut(usize),
    ) {
        self.queries.log_row(setup.program, Side::X, i, &mut self.scratch, &mut self.logs);
        self.wide.resize(out.len(), 0.0);
        let (scale, normaliser) = state.query(&self.logs, &mut self.wide);
        let estimate = (scale, normaliser, &mut self.wide[..], state.has_seen());
        if !finish(setup, (self.queries.point(i), end), estimate, &mut self.row, out) {
            report(i);
        }
    }

    /// The outputs of queries that see all of a state.
    pub fn bidirectional<E: Element<T>>(
        &mut self,
        setup: Setup<'_, T>,
        (state, ready): (&State<T>, &Relative<T>),
        q: ArrayView2<'_, E>,
        mut out: ArrayViewMut2<'_, T>,
        report: &mut dyn FnMut(usize),
    ) {
        let (isa, features, targets) = (Isa::best(), setup.program.width(), out.ncols());
        self.queries.fill(setup.program, (Side::X, setup.reading), q, &mut self.scratch);
        self.out.resize(self.queries.len() * targets, T::zero());
        product(isa, self.queries.values(), features, ready.sums.all(), &mut self.out, targets);
        for i in 0..self.queries.len() {
            if !self.queries.plain[i] || !ready.plain {
                self.hard_output(setup, (i, usize::MAX), state, out.row_mut(i), report);
                continue;
            }
            let normaliser = numeric::dot(isa, self.queries.row(i), &ready.weights);
            let (scale, sums) =
                (ready.reference + self.queries.scales[i], &mut self.out[i * targets..][..targets]);
            let estimate = (scale, normaliser, sums, state.has_seen());
            let query = (self.queries.point(i), usize::MAX);
            if !finish(setup, query, estimate, &mut self.row, out.row_mut(i)) {
                report(i);
            }
        }
    }
}

/// Writes the output of a query, a point that sees the exact keys before a row: from the scale, the normaliser and the sums of
/// the features, and whether a key was seen. Whether the normaliser is positive, or is no number, or no key was seen.
#[inline]
fn finish<T: Real, U: Real>(
    setup: Setup<'_, T>,
    (point, end): (&[T], usize),
    (scale, normaliser, sums, seen): (f64, f64, &mut [U], bool),
    room: &mut Vec<f64>,
    mut out: ArrayViewMut1<'_, T>,
) -> bool {
    match setup.exact {
        None => Sums { scale, normaliser, sums, seen }.write(setup.normalised, out.iter_mut()),
        Some(exact) => {
            let combined = exact.combine(point, end, (scale, normaliser, sums), room);
            combined.sums(room, seen).write(setup.normalised, out.iter_mut())
        }
    }
}
