//! [`Chunk`]: the keys and values of up to [`CHUNK`] tokens, ready to be multiplied with queries and to be summed up.

use std::ops::Range;

use ndarray::ArrayView1;

use super::super::input::{CHUNK, Numbers};
use super::setup::Setup;
use super::tokens::Tokens;
use crate::Real;
use crate::engine::Scratch;
use crate::numeric::{self, Isa, Packed, Panels, Submatrix, panel_width, transposed_product};
use crate::reduce::{LogRow, Precision, RunSums, Span, WeightedSums, limit};

/// The keys and values of a chunk, which grows until it is full. Keys `0..fitting` are summed up by matrix products in `T`, the
/// rest one by one by the logarithms of their features, in `f64`.
///
/// Which way a key goes depends on the keys before it and on itself alone, so nothing of a later token reaches an earlier one.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Chunk<T> {
    /// How well `T` holds each key with its value.
    precision: Vec<Precision>,
    /// ln of the largest scale up to each key.
    largest: Vec<f64>,
    /// Keys that are masked.
    hidden: Vec<bool>,
    /// The number of keys from the first on that matrix products in `T` can sum up.
    fitting: usize,
    /// The span of the scales of the fitting keys.
    span: Span,
    /// The features of fitting keys, packed.
    keys: Packed<T>,
    /// Values, d_v × [`CHUNK`].
    values: Packed<T>,
    weights: Vec<T>,
    weighted: Packed<T>,
    rows: Vec<T>,
    part: RunSums<T>,
    /// Whether a key was seen before these.
    pub seen_before: bool,
}

/// Buffers for rows that are handled by logarithms.
#[derive(Debug, Default)]
pub(in super::super) struct LogBuffers<T> {
    pub scratch: Scratch<T>,
    pub row: LogRow,
    value: Vec<T>,
}

impl<T: Real> Chunk<T> {
    pub fn len(&self) -> usize {
        self.precision.len()
    }

    /// Whether there is no room left.
    pub fn is_full(&self) -> bool {
        self.len() == CHUNK
    }

    /// Forgets all keys.
    pub fn clear(&mut self) {
        self.precision.clear();
        self.largest.clear();
        self.hidden.clear();
        (self.fitting, self.span) = (0, Span::default());
    }

    /// Takes in the keys that `tokens` has more than these, with their values; keys whose `mask` is false are left out.
    pub fn extend(
        &mut self,
        tokens: &mut Tokens<T>,
        values: Numbers<'_, T>,
        mask: Option<ArrayView1<'_, bool>>,
    ) {
        let (first, targets) = (self.len(), values.ncols());
        self.rows.clear();
        values.read(T::one(), &mut self.rows);
        if first == 0 {
            self.keys.open(CHUNK, tokens.width());
            self.values.panels_mut(targets, CHUNK);
        }
        let (limit, mut largest) = (T::narrow(limit::<T>()), self.largest(first));
        for (j, value) in self.rows.chunks_exact_mut(targets).enumerate() {
            let hidden = mask.is_some_and(|mask| !mask[j]);
            if hidden {
                tokens.clear_row(first + j);
                value.fill(T::zero());
            }
            let calm = value.iter().fold(true, |calm, v| calm & (v.abs() <= limit));
            let own = tokens.precision(first + j);
            largest = largest.max(own.scale);
            self.largest.push(largest);
            self.precision.push(Precision { is_representable: own.is_representable && calm, ..own });
            self.hidden.push(hidden);
            self.values.write_column(first + j, value);
        }
        if self.fitting == first {
            self.extend_fitting();
        }
    }

    /// Extends the run of keys that a product in `T` can sum up.
    fn extend_fitting(&mut self) {
        let first = self.fitting;
        for key in &self.precision[first..] {
            let wider = self.span.with(*key);
            if !(key.is_representable && wider.is_narrow::<T>()) {
                break;
            }
            (self.span, self.fitting) = (wider, self.fitting + 1);
        }
    }

    /// Packs the features of fitting keys that are not packed yet, which were read as `tokens`.
    pub fn pack(&mut self, tokens: &Tokens<T>) {
        let (packed, width) = (self.keys.rows(), tokens.width());
        self.keys.push_rows(&tokens.features()[packed * width..self.fitting * width]);
    }

    /// Whether all keys are summed up by matrix products.
    pub fn fits(&self) -> bool {
        self.fitting == self.len()
    }

    /// Whether one of the first `end` keys is not masked.
    pub fn has_any(&self, end: usize) -> bool {
        self.hidden[..end].contains(&false)
    }

    /// ln of the scales of some keys.
    pub fn scales(&self, keys: Range<usize>) -> impl Iterator<Item = f64> {
        self.precision[keys].iter().map(|key| key.scale)
    }

    /// ln of the largest scale of the first `end` keys.
    pub fn largest(&self, end: usize) -> f64 {
        if end == 0 { f64::NEG_INFINITY } else { self.largest[end - 1] }
    }

    /// The features of the first keys, at most `end` of them, all of which fit and are [packed](Chunk::pack).
    pub fn keys(&self, end: usize) -> Panels<'_, T> {
        self.keys.all().first(end)
    }

    /// The values of the first keys, at most `end` of them.
    pub fn values(&self, end: usize) -> Panels<'_, T> {
        self.values.all().shallow(end)
    }

    /// The features of fitting keys, keys × D, packed.
    pub fn packed_keys(&self) -> &Packed<T> {
        &self.keys
    }

    /// The values of all keys, d_v × [`CHUNK`].
    pub fn packed_values(&self) -> &Packed<T> {
        &self.values
    }

    /// Length of the prefix of keys that can be summed up in `T` with one scale, together with `before`, the sums over earlier keys;
    /// `None` if the earlier keys do not fit `T`.
    pub fn fitting_prefix(&self, before: &RunSums<T>) -> Option<usize> {
        let mut span = Span::default().with(before.precision);
        let fits = |key: &&Precision| {
            span = span.with(**key);
            span.is_narrow::<T>()
        };
        before
            .precision
            .is_representable
            .then(|| self.precision[..self.fitting].iter().take_while(fits).count())
    }

    /// The sums over the fitting keys; after [`WeightedSums::prefixes`], the sums over all keys before these.
    pub fn part(&self) -> &RunSums<T> {
        &self.part
    }

    pub fn part_mut(&mut self) -> &mut RunSums<T> {
        &mut self.part
    }

    /// Sums up the fitting keys, which were read as `tokens`.
    pub fn sum(&mut self, tokens: &Tokens<T>) {
        let (isa, features, targets) = (Isa::best(), tokens.width(), self.values.rows());
        let reference = self.largest(self.fitting);
        self.part.precision =
            Precision { scale: reference, has_zeros: self.span.has_zeros(), is_representable: true };
        if self.fitting == 0 {
            return;
        }
        self.part.weights.clear();
        self.part.weights.resize(features, 0.0);
        if reference == f64::NEG_INFINITY {
            return self.part.sums.panels_mut(targets, features).fill(T::zero());
        }
        self.weigh(reference);
        let keys =
            Submatrix { values: tokens.features(), rows: self.fitting, stride: features, width: features };
        numeric::add_multiples(isa, &mut self.part.weights, |j| self.weights[j].widen(), keys);
        let width = panel_width::<T>();
        let sums = self.part.sums.panels_mut(targets, features).chunks_mut(features * width);
        let keys = &tokens.features()[..self.fitting * features];
        for (values, sums) in self.weighted.runs(width).zip(sums) {
            transposed_product(isa, keys, features, values.shallow(self.fitting), sums, width);
        }
    }

    /// The weights of the fitting keys, which are their scales relative to a reference, and their values times these.
    fn weigh(&mut self, reference: f64) {
        let (width, scales) = (panel_width::<T>(), &self.precision[..self.fitting]);
        self.weights.clear();
        self.weights.extend(scales.iter().map(|key| T::narrow(key.scale - reference)));
        numeric::exp_minus(Isa::best(), &mut self.weights, T::zero());
        let weighted = self.weighted.panels_mut(self.values.rows(), CHUNK);
        let panels = weighted.chunks_exact_mut(CHUNK * width);
        for (weighted, values) in panels.zip(self.values.elements().chunks_exact(CHUNK * width)) {
            let lanes = weighted.chunks_exact_mut(width).zip(values.chunks_exact(width));
            for ((weighted, values), weight) in lanes.zip(&self.weights) {
                weighted.iter_mut().zip(values).for_each(|(weighted, v)| *weighted = *v * *weight);
            }
        }
    }

    /// Adds all keys, which were read as `tokens`, to a state.
    pub fn add_to(
        &mut self,
        setup: Setup<'_, T>,
        tokens: &mut Tokens<T>,
        state: &mut WeightedSums<T>,
        buffers: &mut LogBuffers<T>,
    ) {
        self.sum(tokens);
        state.add(&self.part);
        if self.has_any(self.len()) {
            state.see();
        }
        (self.fitting..self.len()).for_each(|j| self.push_to(setup, tokens, j, state, buffers));
    }

    /// Adds key `j` to a state by its logarithms.
    pub fn push_to(
        &self,
        setup: Setup<'_, T>,
        tokens: &mut Tokens<T>,
        j: usize,
        state: &mut WeightedSums<T>,
        buffers: &mut LogBuffers<T>,
    ) {
        if !self.hidden[j] {
            let LogBuffers { scratch, row, value } = buffers;
            tokens.log_row(setup, setup.summed_side(), j, scratch, row);
            value.clear();
            value.extend(self.values.column(j));
            state.push(row, value);
        }
    }

    /// Which keys are not masked.
    #[cfg(feature = "serde")]
    pub fn mask(&self) -> impl Iterator<Item = bool> {
        self.hidden.iter().map(|hidden| !hidden)
    }

    /// The values of all keys, one after the other.
    #[cfg(feature = "serde")]
    pub fn all_values(&self) -> impl Iterator<Item = T> {
        (0..self.len()).flat_map(|j| self.values.column(j))
    }
}
