//! [`Head`]: the state of causal attention of one head, from token to token.

use ndarray::{ArrayView2, ArrayViewMut1, Axis};

use super::adder::{EasyKeys, KeyAdder};
use super::chunk::{CHUNK, ChunkBuffers, Setup};
use super::drive::{self, SEGMENT};
use super::heads::Job;
use super::keys::Keys;
use super::output::Undivided;
use super::span::Span;
use super::tokens::{Element, Tokens};
use super::values::Values;
use crate::Real;
use crate::engine::{Scratch, Side};
use crate::numeric::{self, Isa, product};
use crate::reduce::{LogRow, RunSums as Relative, WeightedSums as State};

/// The tokens of a head so far.
#[derive(Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(bound = ""))]
pub(super) struct Head<T: Real> {
    length: usize,
    /// Whole segments.
    before: State<T>,
    /// The keys of the last segment that are summed up.
    last: State<T>,
    /// The keys and values of the last chunk that are not summed up yet.
    pending: Pending<T>,
    /// The sums of both states, until one of them changes.
    #[cfg_attr(feature = "serde", serde(skip))]
    ready: Option<Relative<T>>,
}

/// The keys of the open chunk, whose features are multiplied in `T`, and their values.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(bound = ""))]
struct Pending<T: Real> {
    /// Whether a key of the chunk was added by logarithms in `f64`: then all that follow in the chunk are.
    closed: bool,
    /// Whether a feature of a key is 0.
    gaps: bool,
    #[cfg_attr(feature = "serde", serde(with = "stored"))]
    features: Vec<T>,
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    scales: Vec<f64>,
    #[cfg_attr(feature = "serde", serde(with = "stored"))]
    values: Vec<T>,
}

/// Buffers that heads share.
#[derive(Debug, Default)]
pub(super) struct HeadBuffers<T> {
    scratch: Scratch<T>,
    tokens: Tokens<T>,
    values: Values<T>,
    adder: KeyAdder<T>,
    logs: LogRow,
    products: Vec<f64>,
    wide: Vec<f64>,
    narrow: Vec<T>,
}

/// The most tokens of a stored state, so that counting on does not overflow.
#[cfg(feature = "serde")]
const MOST: usize = isize::MAX as usize;

impl<T: Real> Pending<T> {
    fn span(&self) -> Span {
        self.scales.iter().fold(Span::new(), |span, scale| span.with(*scale, self.gaps))
    }
}

impl<T: Real> HeadBuffers<T> {
    /// Reads keys and values of tokens, for one map.
    pub fn read_keys<E: Element<T>>(
        &mut self,
        setup: Setup<'_, T>,
        k: ArrayView2<'_, E>,
        v: ArrayView2<'_, E>,
    ) {
        self.tokens.fill(setup, Side::Y, k, &mut self.scratch);
        self.values.fill(v);
    }

    /// Reads queries, for one map.
    pub fn read_queries<E: Element<T>>(&mut self, setup: Setup<'_, T>, q: ArrayView2<'_, E>) {
        self.tokens.fill(setup, Side::X, q, &mut self.scratch);
    }
}

impl<T: Real> Head<T> {
    /// Without tokens.
    pub fn new(features: usize, targets: usize) -> Self {
        let state = State::new(features, targets);
        Head { length: 0, before: state.clone(), last: state, pending: Pending::default(), ready: None }
    }

    /// The bytes of the sums that a head keeps; the largest number if these are too many to be counted.
    pub fn bytes(features: usize, targets: usize) -> usize {
        let of_feature = State::<T>::lanes(targets).saturating_add(2);
        of_feature.saturating_mul(features).saturating_mul(2 * size_of::<f64>())
    }

    /// The number of tokens so far.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Takes in the key in row `i` of those read, and its value.
    pub fn push(&mut self, setup: Setup<'_, T>, i: usize, work: &mut HeadBuffers<T>) {
        let (scale, gaps) = (work.tokens.scales[i], work.tokens.gaps[i]);
        let easy = work.tokens.plain[i] && work.values.calm[i];
        self.pending.closed |= !(easy && self.pending.span().with(scale, gaps).is_narrow::<T>());
        self.last.see();
        if self.pending.closed {
            self.flush(&mut work.adder);
            work.tokens.log_row(setup.program, Side::Y, i, &mut work.scratch, &mut work.logs);
            self.last.push(&work.logs, work.values.row(i));
            self.ready = None;
        } else {
            self.pending.features.extend_from_slice(work.tokens.row(i));
            self.pending.scales.push(scale);
            self.pending.gaps |= gaps && scale > f64::NEG_INFINITY;
            self.pending.values.extend_from_slice(work.values.row(i));
        }
        self.length = self.length.saturating_add(1);
        if self.length.is_multiple_of(CHUNK) {
            self.flush(&mut work.adder);
            self.pending.closed = false;
        }
        self.close_segment();
    }

    /// Sums up the pending keys.
    fn flush(&mut self, adder: &mut KeyAdder<T>) {
        let Pending { features, scales, values, gaps, .. } = &mut self.pending;
        if !scales.is_empty() {
            adder.pack(features, scales.len());
            adder.sum(EasyKeys { features, scales, values, gaps: std::mem::take(gaps) });
            self.last.add(&adder.part);
            features.clear();
            scales.clear();
            values.clear();
            self.ready = None;
        }
    }

    fn close_segment(&mut self) {
        if self.length.is_multiple_of(SEGMENT) {
            self.before.merge(&self.last);
            self.last.clear();
            self.ready = None;
        }
    }

    /// Takes in many tokens, with `ways` threads: in whole segments and chunks where one begins, else one by one.
    pub fn prefill<E: Element<T>>(
        &mut self,
        setup: Setup<'_, T>,
        k: ArrayView2<'_, E>,
        v: ArrayView2<'_, E>,
        ways: usize,
    ) {
        let (mut work, mut at) = (HeadBuffers::default(), 0);
        let (mut chunk, mut keys) = (ChunkBuffers::default(), Keys::default());
        while at < k.nrows() {
            let left = k.nrows() - at;
            let begins = |whole: usize| self.length.is_multiple_of(whole) && left >= whole;
            let count = if begins(SEGMENT) {
                let count = left - left % SEGMENT;
                let (keys, values) = (rows(&k, at, count), rows(&v, at, count));
                let job = Job { head: 0, keys, values, mask: None, members: Vec::new() };
                drive::add_keys::<T, E>(setup, &job, &mut self.before, ways);
                self.length += count;
                count
            } else if begins(CHUNK) {
                let (k, v) = (rows(&k, at, CHUNK), rows(&v, at, CHUNK));
                chunk.read_keys(setup, k, v, None, &mut keys);
                chunk.add_to(setup, &mut keys, &mut self.last);
                self.length += CHUNK;
                self.close_segment();
                CHUNK
            } else {
                work.read_keys(setup, rows(&k, at, 1), rows(&v, at, 1));
                self.push(setup, 0, &mut work);
                1
            };
            at += count;
        }
        self.ready = None;
    }

    /// Writes the output of the query in row `i` of those read. False if its normaliser is not positive although it has seen a key.
    pub fn query(
        &mut self,
        setup: Setup<'_, T>,
        i: usize,
        work: &mut HeadBuffers<T>,
        mut out: ArrayViewMut1<'_, T>,
    ) -> bool {
        let ready = self.ready.get_or_insert_with(|| {
            let mut ready = Relative::default();
            self.before.ready(&self.last, &mut ready);
            ready
        });
        let near = self.pending.span().with(ready.reference, ready.gaps).is_narrow::<T>();
        let easy = ready.plain && near && work.tokens.plain[i];
        work.wide.clear();
        work.wide.resize(out.len(), 0.0);
        let (scale, normaliser) =
            if easy { self.easy_query(i, work) } else { self.hard_query(setup, i, work) };
        let seen = self.before.has_seen() || self.last.has_seen();
        let sums = &mut work.wide[..];
        Undivided { scale, normaliser, sums, seen }.write(setup.normalised, out.iter_mut())
    }

    /// The scale and the normaliser, and in `work.wide` the sums of values, relative to the scale; from products in `T`.
    fn easy_query(&self, i: usize, work: &mut HeadBuffers<T>) -> (f64, f64) {
        let (isa, query) = (Isa::best(), work.tokens.row(i));
        let (features, targets) = (query.len(), work.wide.len());
        let Some(ready) = &self.ready else { return (f64::NEG_INFINITY, 0.0) };
        let top = self.pending.scales.iter().copied().fold(ready.reference, f64::max);
        if top == f64::NEG_INFINITY {
            return (top, 0.0);
        }
        work.narrow.resize(targets, T::zero());
        product(isa, query, features, ready.sums.all(), &mut work.narrow, targets);
        let rest = (ready.reference - top).exp();
        numeric::add_scaled(isa, &mut work.wide, rest, &work.narrow);
        let mut normaliser = rest * numeric::dot(isa, query, &ready.weights);
        let wide = &mut work.logs.factors;
        wide.clear();
        wide.extend(query.iter().map(|v| v.widen()));
        let Pending { features: keys, scales, values, .. } = &self.pending;
        let (weights, products) = (&mut work.logs.logs, &mut work.products);
        weights.clone_from(scales);
        numeric::exp_minus(isa, weights, top);
        products.resize(scales.len(), 0.0);
        numeric::dots(isa, keys, wide, products);
        for ((weight, product), value) in weights.iter().zip(&*products).zip(values.chunks_exact(targets)) {
            normaliser += weight * product;
            numeric::add_scaled(isa, &mut work.wide, weight * product, value);
        }
        (top + work.tokens.scales[i], normaliser)
    }

    /// As [`easy_query`](Head::easy_query), in `f64` from logarithms.
    #[cold]
    fn hard_query(&self, setup: Setup<'_, T>, i: usize, work: &mut HeadBuffers<T>) -> (f64, f64) {
        let mut state = self.before.clone();
        state.merge(&self.last);
        let Pending { features, scales, values, .. } = &self.pending;
        let keys = features.chunks_exact(setup.program.width()).zip(values.chunks_exact(work.wide.len()));
        for ((features, values), scale) in keys.zip(scales) {
            work.logs.scaled(features, *scale);
            state.push(&work.logs, values);
        }
        work.tokens.log_row(setup.program, Side::X, i, &mut work.scratch, &mut work.logs);
        state.query(&work.logs, &mut work.wide)
    }

    /// Whether the sizes are those of so many features and targets.
    #[cfg(feature = "serde")]
    pub fn fits(&self, features: usize, targets: usize) -> bool {
        let Pending { features: keys, scales, values, .. } = &self.pending;
        let sizes = [scales.len().checked_mul(features), scales.len().checked_mul(targets)];
        self.before.fits(features, targets)
            && self.last.fits(features, targets)
            && scales.len() <= self.length % CHUNK
            && self.length <= MOST
            && sizes == [Some(keys.len()), Some(values.len())]
    }
}

/// `count` rows from row `at` on.
fn rows<'a, E>(x: &'a ArrayView2<'_, E>, at: usize, count: usize) -> ArrayView2<'a, E> {
    x.slice_axis(Axis(0), (at..at + count).into())
}

impl<T: Real> Clone for Head<T> {
    fn clone(&self) -> Self {
        let Head { length, before, last, pending, .. } = self;
        let (before, last, pending) = (before.clone(), last.clone(), pending.clone());
        Head { length: *length, before, last, pending, ready: None }
    }
}

/// Numbers of any scalar, stored to the bit.
#[cfg(feature = "serde")]
mod stored {
    use serde::{Deserializer, Serializer};

    use crate::Real;
    use crate::exact;

    pub fn serialize<T: Real, S: Serializer>(numbers: &[T], serializer: S) -> Result<S::Ok, S::Error> {
        exact::serialize(&numbers.iter().map(|v| v.widen()).collect::<Vec<f64>>(), serializer)
    }

    pub fn deserialize<'de, T: Real, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
        let numbers: Vec<f64> = exact::deserialize(deserializer)?;
        Ok(numbers.into_iter().map(T::narrow).collect())
    }
}
