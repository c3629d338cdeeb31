//! [`Adder`]: a run of keys and values into a [`State`], as matrix products.

use super::state::{Part, State};
use crate::Real;
use crate::numeric::{self, Isa, Packed, Panels, add_product, panel_width, product};

/// Keys of which no feature is lost to rounding, by their features, and their values.
#[derive(Clone, Copy)]
pub(super) struct Easy<'a, T> {
    /// Keys × D.
    pub features: &'a [T],
    /// ln of each key's scale.
    pub scales: &'a [f64],
    /// Keys × d_v.
    pub values: &'a [T],
    /// Whether a key lacks a feature.
    pub gaps: bool,
}

/// Room to work in.
#[derive(Debug, Default)]
pub(super) struct Adder<T> {
    keys: Packed<T>,
    values: Packed<T>,
    weights: Vec<T>,
    weighted: Vec<T>,
    sums: Vec<T>,
    totals: Vec<f64>,
}

impl<T: Real> Adder<T> {
    /// Packs the features of so many keys, which [`add`](Adder::add) and products with queries take.
    pub fn pack(&mut self, features: &[T], count: usize) {
        self.keys.refill_rows(features, (count, features.len() / count.max(1)));
    }

    /// The features that were packed last.
    pub fn packed(&self) -> Panels<'_, T> {
        self.keys.all()
    }

    /// Adds the keys that were packed last to a state.
    pub fn add(&mut self, easy: Easy<'_, T>, state: &mut State<T>) {
        let count = easy.scales.len();
        let reference = easy.scales.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if reference == f64::NEG_INFINITY {
            return;
        }
        let (isa, width) = (Isa::best(), panel_width::<T>());
        let (features, targets) = (easy.features.len() / count, easy.values.len() / count);
        self.weigh(easy, reference, targets);
        self.totals.clear();
        self.totals.resize(features, 0.0);
        for (features, weight) in easy.features.chunks_exact(features).zip(&self.weights) {
            numeric::add_scaled(isa, &mut self.totals, weight.widen(), features);
        }
        self.sums.resize(targets.next_multiple_of(width) * features, T::zero());
        let panels = self.keys.transposed_panels().zip(self.weighted.chunks_exact(width * targets));
        for (p, (keys, values)) in panels.enumerate() {
            self.values.refill_columns(values, (width, targets));
            let product = if p == 0 { product } else { add_product };
            for (values, sums) in self.values.runs(width).zip(self.sums.chunks_mut(features * width)) {
                product(isa, keys, width, values, sums, width);
            }
        }
        state.add(&Part { reference, gaps: easy.gaps, weights: &self.totals, sums: &self.sums });
    }

    /// Values times their keys' scales, relative to a reference; 0 behind the last of them.
    fn weigh(&mut self, easy: Easy<'_, T>, reference: f64, targets: usize) {
        self.weights.clear();
        self.weights.extend(easy.scales.iter().map(|scale| T::narrow(scale - reference)));
        numeric::exp_minus(Isa::best(), &mut self.weights, T::zero());
        self.weighted.clear();
        for (values, weight) in easy.values.chunks_exact(targets).zip(&self.weights) {
            self.weighted.extend(values.iter().map(|v| *v * *weight));
        }
        self.weighted.resize(easy.scales.len().next_multiple_of(panel_width::<T>()) * targets, T::zero());
    }
}
