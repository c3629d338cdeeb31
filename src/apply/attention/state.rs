//! [`State`]: what linear attention keeps of the keys and values that it has seen.

use std::ops::Range;

use super::precision::{least, limit};
use crate::Real;
use crate::numeric::{
    self, Isa, Packed, PrefixFactors, panel_width, prefix_step, scale_and_add, weighted_sum,
};
use crate::threads;

/// Σⱼ ψ_f(kⱼ) \[vⱼ, 1\] for every feature f, each e^reference\[f\] times what is stored, in `f64`.
///
/// A reference is the largest logarithm of its feature so far, or of a whole run of tokens, so no sum underflows or
/// overflows whatever the norms of keys. A feature that was 0 in all keys so far has the reference −∞.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(bound = ""))]
pub(super) struct State<T> {
    targets: usize,
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    reference: Vec<f64>,
    /// Whether all references are the same.
    even: bool,
    /// Whether sums may overflow `T`.
    huge: bool,
    /// Whether a key was seen, even one whose features are all 0.
    seen: bool,
    /// Whether a feature of a key was 0.
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

/// The largest gap between two references, which are logarithms, that one common reference can bridge in `f64`.
const NEAR: f64 = 300.0;

/// Sums over some tokens, all relative to one reference: those over a run of keys, before they are added to a state, or those
/// over all keys that a query sees.
#[derive(Clone, Debug, Default)]
pub(super) struct Relative<T> {
    pub reference: f64,
    pub weights: Vec<f64>,
    /// In the order of those of a [`State`].
    pub sums: Packed<T>,
    /// Whether a feature of a key is 0.
    pub gaps: bool,
    /// Whether no feature's sums have been lost to rounding, so that queries may be multiplied in `T`.
    pub plain: bool,
}

/// A token's features by their logarithms: factor\[f\] · e^log\[f\].
#[derive(Clone, Debug, Default)]
pub(super) struct LogRow {
    pub logs: Vec<f64>,
    pub factors: Vec<f64>,
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

    /// Adds the feature factor · e^log. A feature that is 0 gets the logarithm −∞, so that it raises no reference.
    pub fn push(&mut self, log: f64, factor: f64) {
        self.logs.push(if factor == 0.0 && !log.is_nan() { f64::NEG_INFINITY } else { log });
        self.factors.push(factor);
    }
}

impl<T: Real> State<T> {
    /// Nothing seen.
    pub fn new(features: usize, targets: usize) -> Self {
        let sums = vec![0.0; Self::lanes(targets) * features];
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

    /// Sums of a feature: one for each target, in whole panels.
    pub fn lanes(targets: usize) -> usize {
        targets.div_ceil(panel_width::<T>()).saturating_mul(panel_width::<T>())
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.reference.fill(f64::NEG_INFINITY);
        self.weights.fill(0.0);
        self.sums.fill(0.0);
        (self.even, self.huge, self.seen, self.gaps) = (true, false, false, false);
    }

    /// Whether the sizes are those of so many features and targets, and references and flags are consistent.
    #[cfg(feature = "serde")]
    pub fn fits(&self, features: usize, targets: usize) -> bool {
        let sums = Self::lanes(targets).checked_mul(features);
        let level = |r: &f64| *r < f64::INFINITY;
        self.targets == targets
            && self.reference.len() == features
            && self.weights.len() == features
            && Some(self.sums.len()) == sums
            && self.reference.iter().all(level)
            && (!self.even || self.reference.iter().all(|r| *r == self.reference[0]))
    }

    /// Whether a key was seen, even one whose features are all 0.
    pub fn has_seen(&self) -> bool {
        self.seen
    }

    /// Notes that a key was seen.
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
    pub fn add(&mut self, part: &Relative<T>) {
        if part.reference > f64::NEG_INFINITY {
            self.gaps |= part.gaps;
            self.combine(self.even, |_| part.reference, &part.weights, part.sums.elements());
        }
    }

    /// Adds the sums of another state.
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

    /// Gives each feature a reference of its own; −∞ to features whose sums are all 0.
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
        self.see();
        if row.logs.iter().any(|log| log.is_nan()) {
            return self.poison();
        }
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

    /// Makes every sum NaN, for a key that is not finite.
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

    /// (Σ_f w_f)²/Σ_f w_f² for the parts w_f of a query's normaliser; NaN if no key was seen or one is not finite.
    pub fn effective_features(&self, row: &LogRow) -> f64 {
        let sizes = || row.logs.iter().zip(&self.reference).map(|(log, reference)| log + reference);
        if !self.seen || sizes().any(f64::is_nan) || row.logs.contains(&f64::INFINITY) {
            return f64::NAN;
        }
        let top = sizes().fold(f64::NEG_INFINITY, f64::max);
        let (mut sum, mut squares) = (0.0, 0.0);
        for (f, size) in sizes().enumerate().filter(|(_, size)| *size > f64::NEG_INFINITY) {
            let part = row.factors[f] * (size - top).exp() * self.weights[f];
            sum += part;
            squares += part * part;
        }
        if squares == 0.0 { 0.0 } else { sum * sum / squares }
    }

    /// The sums of two states, to be applied to queries in `T`.
    pub fn ready(&self, other: &Self, ready: &mut Relative<T>) {
        let (features, isa) = (self.reference.len(), Isa::best());
        let top = self.top().max(other.top());
        ready.reference = top;
        ready.gaps = self.gaps || other.gaps;
        ready.weights.resize(features, 0.0);
        let panels = ready.sums.panels_mut(self.targets, features);
        let factor = |reference: f64| if top > f64::NEG_INFINITY { (reference - top).exp() } else { 0.0 };
        if self.even && other.even {
            let (a, b) = (factor(self.reference[0]), factor(other.reference[0]));
            weighted_sum(isa, &mut ready.weights, a, &self.weights, b, &other.weights);
            weighted_sum(isa, panels, a, &self.sums, b, &other.sums);
        } else {
            for f in 0..features {
                let (a, b) = (factor(self.reference[f]), factor(other.reference[f]));
                ready.weights[f] = a * self.weights[f] + b * other.weights[f];
                for at in lanes(f, features, panel_width::<T>(), self.sums.len()) {
                    weighted_sum(isa, &mut panels[at.clone()], a, &self.sums[at.clone()], b, &other.sums[at]);
                }
            }
        }
        let vanished = ready.gaps && self.has_lost(&other.weights, &ready.weights);
        ready.plain = !(self.huge || other.huge || vanished);
    }

    /// Whether a feature with a weight in this state or in `others` has underflowed in `sums`, the sum of both. It may be the only
    /// one that a query has in common with the keys.
    fn has_lost(&self, others: &[f64], sums: &[f64]) -> bool {
        let mut weights = self.weights.iter().zip(others).zip(sums);
        weights.any(|((own, other), sum)| (*own != 0.0 || *other != 0.0) && sum.abs() < least::<T>(true))
    }

    /// Replaces the sums of each run of keys by the sums over all keys before it: this state and the runs before. `since`, which
    /// is empty, becomes the sum over all runs. Bit-identical to [`ready`](State::ready) and [`add`](State::add) in turn, but on all
    /// threads. Returns false, with nothing changed, where a sum needs a reference for each feature or may overflow `T`.
    pub fn prefixes(&self, since: &mut Self, runs: &mut [&mut Relative<T>]) -> bool {
        let (isa, mut gaps, mut last) = (Isa::best(), false, f64::NEG_INFINITY);
        let Some((references, steps)) = self.steps(runs, &mut last) else { return false };
        for ((run, step), reference) in runs.iter_mut().zip(&steps).zip(&references) {
            let before = since.weights.clone();
            prefix_step(isa, &mut run.weights, &self.weights, &mut since.weights, *step);
            (gaps, run.gaps) = (gaps || run.gaps, gaps || self.gaps);
            run.plain = !(run.gaps && self.has_lost(&before, &run.weights));
            run.reference = *reference;
        }
        let count = self.sums.len().div_ceil(SLICE);
        let mut slices: Vec<Vec<&mut [T]>> = (0..count).map(|_| Vec::with_capacity(steps.len())).collect();
        for run in runs {
            let parts = run.sums.elements_mut().chunks_mut(SLICE);
            slices.iter_mut().zip(parts).for_each(|(slices, part)| slices.push(part));
        }
        let sums = self.sums.chunks(SLICE).zip(since.sums.chunks_mut(SLICE));
        threads::for_each(slices.into_iter().zip(sums), |(runs, (before, since))| {
            runs.into_iter().zip(&steps).for_each(|(run, step)| prefix_step(isa, run, before, since, *step));
        });
        since.reference.fill(last);
        since.gaps = gaps;
        true
    }

    /// The references of the sums before each run, and the factors that give these sums; raises `last` to the reference of the sum
    /// over all runs.
    fn steps(&self, runs: &[&mut Relative<T>], last: &mut f64) -> Option<(Vec<f64>, Vec<PrefixFactors>)> {
        let own = self.reference[0];
        let step = |run: &&mut Relative<T>| {
            let (top, their) = (own.max(*last), run.reference);
            let factor = |r: f64| if top > f64::NEG_INFINITY { (r - top).exp() } else { 0.0 };
            let (before, since) = (factor(own), factor(*last));
            let near = last.min(their) == f64::NEG_INFINITY || (*last - their).abs() <= NEAR;
            near.then(|| {
                let (keep, add) = raise(last, their);
                (top, PrefixFactors { before, since, keep, add })
            })
        };
        if self.even && !self.huge { runs.iter().map(step).collect() } else { None }
    }
}

/// Sums that are taken at a time, so that they stay in the first cache.
const SLICE: usize = 1024;

/// Raises a reference to another one if that is larger; returns the factors by which sums relative to the old one and to the other
/// one become relative to the result.
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
