//! Exact weights, block by block: [`KeyBlock`], keys and values that are packed, and [`ExactRun`], sums over those that each of
//! some queries sees.

use std::ops::Range;
use std::sync::OnceLock;

use super::super::input::{KeyRun, LogScale, Reading, Undivided};
use crate::Real;
use crate::numeric::{self, Isa, Packed, Panels, add_product, affine, exp_minus, max, product};

/// Keys and values of a block, packed.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct KeyBlock<T> {
    keys: Packed<T>,
    values: Packed<T>,
    /// The rows of values that are not finite; among the packed ones they are 0.
    not_finite: Vec<(usize, Vec<T>)>,
    /// Whether keys count; all if there are none.
    mask: Vec<bool>,
    /// What is added to the logits of each key, [one after the other](LogScale::in_two); nothing if there are none.
    shifts: Vec<[T; 2]>,
    /// The places of the keys in the sequence.
    range: Range<usize>,
    transposed: OnceLock<Transposed<T>>,
}

/// What gradients need of a block: keys as d × keys, in which those that are not finite are 0, and values as keys × d_v.
#[derive(Clone, Debug)]
pub(in super::super) struct Transposed<T> {
    pub keys: Packed<T>,
    pub values: Packed<T>,
}

/// The places of the keys that the i-th of some queries sees.
pub(in super::super) type SeenPlaces<'a> = dyn Fn(usize) -> Range<usize> + 'a;

/// Takes in a block of keys, and which of them queries see.
pub(in super::super) type See<'a, T> = dyn FnMut(&KeyBlock<T>, &SeenPlaces<'_>) + 'a;

/// What some queries make of the keys that they see: relative to the largest logit so far, sums of weights and of weighted values.
#[derive(Debug, Default)]
pub(in super::super) struct ExactRun<T> {
    scores: Vec<T>,
    sums: Vec<T>,
    /// The largest logit so far, and Σ exp(logit − that), of each query.
    tops: Vec<T>,
    totals: Vec<f64>,
    seen: Vec<bool>,
    targets: usize,
}

impl<T: Real> KeyBlock<T> {
    /// Reads a run of keys, of which the first is at place `first`. `room` is for their numbers.
    pub fn read(&mut self, reading: &Reading, run: KeyRun<'_, T>, first: usize, room: &mut Vec<T>) {
        let targets = run.values.ncols();
        reading.points(run.keys, room);
        self.keys.refill_rows(room, run.len(), run.keys.ncols());
        room.clear();
        run.values.read(T::one(), room);
        self.not_finite.clear();
        for (j, row) in room.chunks_exact_mut(targets).enumerate() {
            if row.iter().any(|v| !v.is_finite()) {
                self.not_finite.extend(run.sees(j).then(|| (j, row.to_vec())));
                row.fill(T::zero());
            }
        }
        self.values.refill_columns(room, run.len(), targets);
        self.mask.clear();
        self.mask.extend(run.mask.iter().flatten());
        self.shifts.clear();
        if let Some(divisors) = &run.divisors {
            self.shifts.extend(LogScale::of_rows(divisors).map(|divisor| divisor.in_two::<T>(0.0)));
        }
        self.range = first..first + run.len();
        self.transposed.take();
    }

    /// The keys and values transposed, computed when they are first needed.
    pub fn transposed(&self) -> &Transposed<T> {
        self.transposed.get_or_init(|| {
            let (mut keys, mut values) = (Packed::default(), Packed::default());
            keys.refill_transposed(&self.keys, self.range.len());
            values.refill_transposed(&self.values, self.values.rows());
            let zeros = vec![T::zero(); self.keys.depth()];
            let not_finite = |j: &usize| self.keys.row(*j).any(|v| !v.is_finite());
            (0..self.range.len()).filter(not_finite).for_each(|j| keys.write_column(j, &zeros));
            Transposed { keys, values }
        })
    }

    /// The rows of values that are not finite.
    pub fn not_finite(&self) -> &[(usize, Vec<T>)] {
        &self.not_finite
    }

    /// How many of the first keys hold all that so many queries see: the i-th those at places `sees(i)`.
    pub fn reach(&self, count: usize, sees: impl Fn(usize) -> Range<usize>) -> usize {
        let seen = (0..count).map(|i| self.part(sees(i))).filter(|seen| !seen.is_empty());
        seen.map(|seen| seen.end).fold(0, usize::max)
    }

    /// Makes logits of the products of a query and the first keys, of which it sees those at some places: −∞ for those that are
    /// masked, 0 for those that are not seen. Which of them are seen.
    pub fn logits(&self, places: Range<usize>, products: &mut [T]) -> Range<usize> {
        let Range { start, end } = self.part(places);
        let (start, end) = (start.min(products.len()), end.min(products.len()));
        products[..start].fill(T::zero());
        products[end..].fill(T::zero());
        let seen = &mut products[start..end];
        let shifted = seen.iter_mut().zip(self.shifts.iter().skip(start));
        shifted.for_each(|(logit, [first, second])| *logit = (*logit + *first) + *second);
        let hidden = seen.iter_mut().zip(self.mask.iter().skip(start)).filter(|(_, seen)| !**seen);
        hidden.for_each(|(logit, _)| *logit = T::neg_infinity());
        start..end
    }

    /// The first keys, packed.
    pub fn keys(&self, count: usize) -> Panels<'_, T> {
        self.keys.all().first(count)
    }

    /// Forgets the keys.
    pub fn forget(&mut self) {
        self.range = 0..0;
    }

    /// Whether these, of which there are some, are the keys of this block.
    pub fn holds(&self, range: &Range<usize>) -> bool {
        self.range == *range
    }

    /// Which of its keys are at these places.
    fn part(&self, places: Range<usize>) -> Range<usize> {
        let at = |place: usize| place.saturating_sub(self.range.start).min(self.range.len());
        at(places.start)..at(places.end)
    }

    /// Whether one of some keys counts.
    fn has_any(&self, keys: Range<usize>) -> bool {
        if self.mask.is_empty() { !keys.is_empty() } else { self.mask[keys].contains(&true) }
    }
}

impl<T: Real> ExactRun<T> {
    /// Begins with so many queries.
    pub fn begin(&mut self, count: usize, targets: usize) {
        self.targets = targets;
        self.sums.clear();
        self.sums.resize(count * targets, T::zero());
        self.tops.clear();
        self.tops.resize(count, T::neg_infinity());
        self.totals.clear();
        self.totals.resize(count, 0.0);
        self.seen.clear();
        self.seen.resize(count, false);
    }

    /// Adds the keys of a block that queries see: the i-th those at places `sees(i)`, which are 0 or more in a row. Logits are products
    /// of `queries`, one after the other, and keys.
    ///
    /// What a query does not see changes no bit of its sums, so that blocks may hold more or fewer of such keys.
    pub fn add(&mut self, queries: &[T], block: &KeyBlock<T>, sees: impl Fn(usize) -> Range<usize>) {
        let (isa, count, targets) = (Isa::best(), self.tops.len(), self.targets);
        // Keys after all that are seen are not multiplied.
        let width = block.reach(count, &sees);
        if width == 0 {
            return;
        }
        let d = queries.len() / count;
        self.scores.clear();
        self.scores.resize(count * width, T::zero());
        if d > 0 {
            product(isa, queries, d, block.keys(width), &mut self.scores, width);
        }
        for (i, scores) in self.scores.chunks_exact_mut(width).enumerate() {
            let seen = block.logits(sees(i), scores);
            self.seen[i] |= block.has_any(seen.clone());
            let scores = &mut scores[seen];
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

    /// The sums of query `i`.
    pub fn part(&mut self, i: usize) -> Undivided<'_, T> {
        let (scale, normaliser) = (LogScale { own: 0.0, read: self.tops[i].widen() }, self.totals[i]);
        let sums = &mut self.sums[i * self.targets..(i + 1) * self.targets];
        Undivided { scale, normaliser, sums, seen: self.seen[i] }
    }
}
