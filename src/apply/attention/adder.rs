//! [`KeyAdder`]: the sums over a run of keys and values, as matrix products.

use crate::Real;
use crate::numeric::{self, Isa, Packed, Panels, add_product, panel_width, product};
use crate::reduce::RunSums as Relative;

/// Keys whose features can be multiplied in `T` without loss, and their values.
#[derive(Clone, Copy)]
pub(super) struct EasyKeys<'a, T> {
    /// Keys × D.
    pub features: &'a [T],
    /// ln of each key's scale.
    pub scales: &'a [f64],
    /// Keys × d_v.
    pub values: &'a [T],
    /// Whether a feature of a key is 0.
    pub gaps: bool,
}

/// Buffers for sums over runs of keys.
#[derive(Debug, Default)]
pub(super) struct KeyAdder<T> {
    keys: Packed<T>,
    values: Packed<T>,
    weights: Vec<T>,
    weighted: Vec<T>,
    /// What the keys add to a state.
    pub part: Relative<T>,
}

impl<T: Real> KeyAdder<T> {
    /// Packs the features of so many keys, which [`sum`](KeyAdder::sum) and products with queries take.
    pub fn pack(&mut self, features: &[T], count: usize) {
        self.keys.refill_rows(features, count, features.len() / count.max(1));
    }

    /// The features that were packed last.
    pub fn packed(&self) -> Panels<'_, T> {
        self.keys.all()
    }

    /// Sums up the keys that were packed last.
    pub fn sum(&mut self, easy: EasyKeys<'_, T>) {
        let count = easy.scales.len();
        let reference = easy.scales.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (self.part.reference, self.part.gaps, self.part.plain) = (reference, easy.gaps, true);
        if count == 0 {
            return;
        }
        let (isa, width) = (Isa::best(), panel_width::<T>());
        let (features, targets) = (easy.features.len() / count, easy.values.len() / count);
        self.part.weights.clear();
        self.part.weights.resize(features, 0.0);
        let sums = self.part.sums.panels_mut(targets, features);
        if reference == f64::NEG_INFINITY {
            return sums.fill(T::zero());
        }
        weigh(easy, reference, &mut self.weights, &mut self.weighted);
        for (features, weight) in easy.features.chunks_exact(features).zip(&self.weights) {
            numeric::add_scaled(isa, &mut self.part.weights, weight.widen(), features);
        }
        let panels = self.keys.transposed_panels().zip(self.weighted.chunks_exact(width * targets));
        for (p, (keys, values)) in panels.enumerate() {
            self.values.refill_columns(values, width, targets);
            let product = if p == 0 { product } else { add_product };
            for (values, sums) in self.values.runs(width).zip(sums.chunks_mut(features * width)) {
                product(isa, keys, width, values, sums, width);
            }
        }
    }
}

/// Values times their keys' scales, relative to a reference, padded with zeros to whole panels.
fn weigh<T: Real>(easy: EasyKeys<'_, T>, reference: f64, weights: &mut Vec<T>, weighted: &mut Vec<T>) {
    let targets = easy.values.len() / easy.scales.len();
    weights.clear();
    weights.extend(easy.scales.iter().map(|scale| T::narrow(scale - reference)));
    numeric::exp_minus(Isa::best(), weights, T::zero());
    weighted.clear();
    for (values, weight) in easy.values.chunks_exact(targets).zip(&*weights) {
        weighted.extend(values.iter().map(|v| *v * *weight));
    }
    weighted.resize(easy.scales.len().next_multiple_of(panel_width::<T>()) * targets, T::zero());
}
