//! [`State`]: what linear attention keeps of the keys and values that it has seen.

use std::ops::Range;

use super::span::least;
use super::values::limit;
use crate::Real;
use crate::numeric::{self, Isa, Packed, panel_width, scale_and_add, weighted_sum};

/// Σⱼ ψ_f(kⱼ) \[vⱼ, 1\] for every feature f, each e^reference\[f\] times what is stored, in `f64`.
///
/// A reference is the largest logarithm of its feature so far, or of a whole run of tokens, so no sum vanishes or
/// overflows whatever the norms of keys. −∞ is the reference of what has not been seen.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(bound = ""))]
pub(super) struct State<T> {
    targets: usize,
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    reference: Vec<f64>,
    /// Whether all references are the same.
    even: bool,
    /// Whether sums may be beyond what `T` holds.
    huge: bool,
    /// Whether a key was seen, be it one without features.
    seen: bool,
    /// Whether a key lacked a feature.
    gaps: bool,
    /// Σⱼ ψ_f(kⱼ).
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    weights: Vec<f64>,
    /// Σⱼ ψ_f(kⱼ) vⱼ, in the order of a packed matrix of targets × features: `[panel][f][lane]`.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    sums: Vec<f64>,
    #[cfg_attr(feature = "serde", serde(skip))]
    scalar: std::marker::PhantomData<T>,
}

/// By how much references may differ for sums relative to one to keep what is relative to the other.
const NEAR: f64 = 300.0;

/// The sums over a run of tokens, all relative to one reference.
pub(super) struct Part<'a, T> {
    pub reference: f64,
    /// Whether a key lacks a feature.
    pub gaps: bool,
    pub weights: &'a [f64],
    pub sums: &'a [T],
}

/// A token's features by their logarithms: factor\[f\] · e^log\[f\].
#[derive(Clone, Debug, Default)]
pub(super) struct LogRow {
    pub logs: Vec<f64>,
    pub factors: Vec<f64>,
}

/// Sums that are applied to queries, relative to their largest reference.
#[derive(Debug, Default)]
pub(super) struct Ready<T> {
    pub top: f64,
    pub weights: Vec<f64>,
    pub sums: Packed<T>,
    /// Whether no feature's sums have been lost to rounding, so that queries may be multiplied in `T`.
    pub plain: bool,
    /// Whether a key lacked a feature.
    pub gaps: bool,
}

impl LogRow {
    /// The features e^scale · features.
    pub fn scaled<T: Real>(&mut self, features: &[T], scale: f64) {
        self.clear();
        features.iter().for_each(|v| self.push(scale, v.widen()));
    }

    /// Forgets all features.
    pub fn clear(&mut self) {
        self.logs.clear();
        self.factors.clear();
    }

    /// The largest logarithm.
    pub fn top(&self) -> f64 {
        self.logs.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    /// Adds e^log to every feature.
    pub fn add(&mut self, log: f64) {
        if log > f64::NEG_INFINITY {
            for (own, factor) in self.logs.iter_mut().zip(&mut self.factors) {
                let top = own.max(log);
                *factor = *factor * (*own - top).exp() + (log - top).exp();
                *own = if own.is_nan() { *own } else { top };
            }
        }
    }

    /// Adds the feature factor · e^log. One that is 0 has the logarithm −∞, so that it is the reference of nothing.
    pub fn push(&mut self, log: f64, factor: f64) {
        self.logs.push(if factor == 0.0 && !log.is_nan() { f64::NEG_INFINITY } else { log });
        self.factors.push(factor);
    }
}

impl<T: Real> State<T> {
    /// Nothing seen.
    pub fn new(features: usize, targets: usize) -> Self {
        let sums = vec![0.0; targets.next_multiple_of(panel_width::<T>()) * features];
        let (reference, weights) = (vec![f64::NEG_INFINITY; features], vec![0.0; features]);
        State {
            targets,
            reference,
            even: true,
            huge: false,
            seen: false,
            gaps: false,
            weights,
            sums,
            scalar: Default::default(),
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.reference.fill(f64::NEG_INFINITY);
        self.weights.fill(0.0);
        self.sums.fill(0.0);
        (self.even, self.huge, self.seen, self.gaps) = (true, false, false, false);
    }

    /// Whether these are the sums of so many features and targets, as they can come to be.
    #[cfg(feature = "serde")]
    pub fn fits(&self, features: usize, targets: usize) -> bool {
        let width = panel_width::<T>();
        let sums = targets.div_ceil(width).checked_mul(width).and_then(|lanes| lanes.checked_mul(features));
        let level = |r: &f64| *r < f64::INFINITY;
        self.targets == targets
            && self.reference.len() == features
            && self.weights.len() == features
            && Some(self.sums.len()) == sums
            && self.reference.iter().all(level)
            && (!self.even || self.reference.iter().all(|r| *r == self.reference[0]))
    }

    /// Whether a key was seen, be it one without features.
    pub fn has_seen(&self) -> bool {
        self.seen
    }

    /// Takes note of a key.
    pub fn see(&mut self) {
        self.seen = true;
    }

    /// The largest reference.
    fn top(&self) -> f64 {
        if self.even {
            self.reference[0]
        } else {
            self.reference.iter().copied().fold(f64::NEG_INFINITY, f64::max)
        }
    }

    /// Adds the sums over a run of tokens.
    pub fn add(&mut self, part: &Part<'_, T>) {
        self.gaps |= part.gaps;
        self.combine(self.even, |_| part.reference, part.weights, part.sums);
    }

    /// Adds what another state has seen.
    pub fn merge(&mut self, other: &Self) {
        let reference = &other.reference;
        self.huge |= other.huge;
        self.seen |= other.seen;
        self.gaps |= other.gaps;
        self.combine(self.even && other.even, |f| reference[f], &other.weights, &other.sums);
    }

    fn combine<U: Real>(&mut self, even: bool, their: impl Fn(usize) -> f64, weights: &[f64], sums: &[U]) {
        let isa = Isa::best();
        if their(0) == f64::NEG_INFINITY && even {
            return;
        }
        if even && (self.reference[0] == f64::NEG_INFINITY || (self.reference[0] - their(0)).abs() <= NEAR) {
            let (keep, add) = raise(&mut self.reference[0], their(0));
            let reference = self.reference[0];
            self.reference.fill(reference);
            scale_and_add(isa, &mut self.weights, keep, add, weights);
            return scale_and_add(isa, &mut self.sums, keep, add, sums);
        }
        self.disperse();
        let (features, width) = (self.reference.len(), panel_width::<T>());
        for (f, weight) in weights.iter().enumerate() {
            let at = || lanes(f, features, width, self.sums.len());
            let zero = *weight == 0.0 && at().flatten().all(|place| sums[place] == U::zero());
            let their = if zero { f64::NEG_INFINITY } else { their(f) };
            let (keep, add) = raise(&mut self.reference[f], their);
            self.weights[f] = keep * self.weights[f] + add * weight;
            for at in lanes(f, features, width, self.sums.len()) {
                scale_and_add(isa, &mut self.sums[at.clone()], keep, add, &sums[at]);
            }
        }
    }

    /// Gives each feature a reference of its own; one whose sums are all 0 has none.
    fn disperse(&mut self) {
        if !std::mem::take(&mut self.even) {
            return;
        }
        let (features, width) = (self.reference.len(), panel_width::<T>());
        for (f, weight) in self.weights.iter().enumerate() {
            let mut places = lanes(f, features, width, self.sums.len()).flatten();
            if *weight == 0.0 && places.all(|place| self.sums[place] == 0.0) {
                self.reference[f] = f64::NEG_INFINITY;
            }
        }
    }

    /// Adds one token from the logarithms of its features.
    pub fn push(&mut self, row: &LogRow, value: &[T]) {
        if row.logs.iter().any(|log| log.is_nan()) {
            return self.poison();
        }
        self.see();
        self.gaps |= row.factors.contains(&0.0);
        self.disperse();
        let (features, width, targets) = (self.reference.len(), panel_width::<T>(), self.targets);
        self.huge |= value.iter().any(|v| v.widen().abs() > limit::<T>());
        for f in 0..features {
            let (keep, add) = raise(&mut self.reference[f], row.logs[f]);
            let add = add * row.factors[f];
            self.weights[f] = keep * self.weights[f] + add;
            for (panel, at) in lanes(f, features, width, self.sums.len()).enumerate() {
                for (sum, t) in self.sums[at].iter_mut().zip(panel * width..targets) {
                    *sum = if add == 0.0 { keep * *sum } else { keep * *sum + add * value[t].widen() };
                }
            }
        }
    }

    /// Makes every sum NaN: a key was not finite.
    fn poison(&mut self) {
        self.reference.iter_mut().for_each(|r| *r = r.max(0.0));
        self.weights.fill(f64::NAN);
        self.sums.fill(f64::NAN);
    }

    /// For a query given by logarithms: ln of the scale, the normaliser and the weighted sums relative to it. The scale is
    /// −∞ where query and keys have no feature in common.
    pub fn query(&self, row: &LogRow, out: &mut [f64]) -> (f64, f64) {
        out.fill(0.0);
        let sizes = || row.logs.iter().zip(&self.reference).map(|(log, reference)| log + reference);
        if sizes().any(f64::is_nan) || row.logs.contains(&f64::INFINITY) {
            out.fill(f64::NAN);
            return (0.0, f64::NAN);
        }
        let top = sizes().fold(f64::NEG_INFINITY, f64::max);
        let (mut normaliser, isa) = (0.0, Isa::best());
        let (features, width) = (self.reference.len(), panel_width::<T>());
        for (f, size) in sizes().enumerate().filter(|(_, size)| *size > f64::NEG_INFINITY) {
            let weight = row.factors[f] * (size - top).exp();
            normaliser += weight * self.weights[f];
            for (at, out) in lanes(f, features, width, self.sums.len()).zip(out.chunks_mut(width)) {
                numeric::add_scaled(isa, out, weight, &self.sums[at]);
            }
        }
        (top, normaliser)
    }

    /// The sums of two states, to be applied to queries in `T`.
    pub fn ready(&self, other: &Self, ready: &mut Ready<T>) {
        let (features, isa) = (self.reference.len(), Isa::best());
        let top = self.top().max(other.top());
        ready.top = top;
        ready.gaps = self.gaps || other.gaps;
        ready.weights.resize(features, 0.0);
        let panels = ready.sums.panels_mut((self.targets, features));
        let factor = |reference: f64| if top > f64::NEG_INFINITY { (reference - top).exp() } else { 0.0 };
        if self.even && other.even {
            let (a, b) = (factor(self.reference[0]), factor(other.reference[0]));
            weighted_sum(isa, &mut ready.weights, (a, &self.weights), (b, &other.weights));
            weighted_sum(isa, panels, (a, &self.sums), (b, &other.sums));
        } else {
            for f in 0..features {
                let (a, b) = (factor(self.reference[f]), factor(other.reference[f]));
                ready.weights[f] = a * self.weights[f] + b * other.weights[f];
                for at in lanes(f, features, panel_width::<T>(), self.sums.len()) {
                    weighted_sum(
                        isa,
                        &mut panels[at.clone()],
                        (a, &self.sums[at.clone()]),
                        (b, &other.sums[at]),
                    );
                }
            }
        }
        // A feature that is all that a query shares with the keys must not have vanished beside the others.
        let lost = |f: usize| {
            (self.weights[f] != 0.0 || other.weights[f] != 0.0) && ready.weights[f].abs() < least::<T>(true)
        };
        let vanished = ready.gaps && (0..features).any(lost);
        ready.plain = !(self.huge || other.huge || vanished);
    }
}

/// Raises a reference to another one; the factors of what was relative to the two.
fn raise(reference: &mut f64, their: f64) -> (f64, f64) {
    let top = reference.max(their);
    if top == f64::NEG_INFINITY {
        return (1.0, 0.0);
    }
    let factors = ((*reference - top).exp(), (their - top).exp());
    *reference = top;
    factors
}

/// Where the sums of feature `f` lie, panel by panel.
fn lanes(f: usize, features: usize, width: usize, len: usize) -> impl Iterator<Item = Range<usize>> {
    (0..len).step_by((features * width).max(1)).map(move |panel| panel + f * width..panel + (f + 1) * width)
}
