//! [`RunSums`]: sums relative to one reference, for matrix products in `T`.

use super::{Precision, WeightedSums, least};
use crate::Real;
use crate::numeric::special::largest;
use crate::numeric::{Isa, Packed, weighted_sum};

/// Sums over some points, all relative to one reference: over a run of points, before they are added to others, or over all
/// points that a query sees.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunSums<T> {
    /// The reference, whether a feature of a point is 0, and whether `T` holds the sums, so that products in `T` are accurate.
    pub precision: Precision,
    pub weights: Vec<f64>,
    /// The sums, in the order of [`WeightedSums`] in panels.
    pub sums: Packed<T>,
}

impl<T: Real> WeightedSums<T> {
    /// Writes the sum of both, in panels, to `ready`, to be applied to queries in `T`.
    pub fn ready(&self, other: &Self, ready: &mut RunSums<T>) {
        let (features, isa) = (self.features(), Isa::best());
        let top = self.top().max(other.top());
        ready.weights.resize(features, 0.0);
        let panels = ready.sums.panels_mut(self.targets, features);
        let factor = |reference: f64| if top > f64::NEG_INFINITY { (reference - top).exp() } else { 0.0 };
        if self.one_reference && other.one_reference {
            let (a, b) = (factor(self.reference[0]), factor(other.reference[0]));
            weighted_sum(isa, &mut ready.weights, a, &self.weights, b, &other.weights);
            weighted_sum(isa, panels, a, &self.sums, b, &other.sums);
        } else {
            for f in 0..features {
                let (a, b) = (factor(self.reference[f]), factor(other.reference[f]));
                ready.weights[f] = a * self.weights[f] + b * other.weights[f];
                for at in self.places(f..f + 1) {
                    weighted_sum(isa, &mut panels[at.clone()], a, &self.sums[at.clone()], b, &other.sums[at]);
                }
            }
        }
        let has_zeros = self.has_zeros || other.has_zeros;
        let vanished = has_zeros && self.has_lost(&other.weights, &ready.weights);
        ready.precision = Precision {
            scale: top,
            has_zeros,
            is_representable: !(self.may_overflow || other.may_overflow || vanished),
        };
    }

    /// The largest reference.
    fn top(&self) -> f64 {
        if self.one_reference { self.reference[0] } else { largest(self.reference.iter().copied()) }
    }

    /// Whether a feature with a weight in these sums or in `others` has underflowed in `sums`, the sum of both. It may be the only
    /// feature that a query and the points have in common.
    pub(super) fn has_lost(&self, others: &[f64], sums: &[f64]) -> bool {
        let mut weights = self.weights.iter().zip(others).zip(sums);
        weights.any(|((own, other), sum)| (*own != 0.0 || *other != 0.0) && sum.abs() < least::<T>(true))
    }
}
