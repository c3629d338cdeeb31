//! The sums over all points before each of many runs, in place.

use super::merge::NEAR;
use super::{Precision, RunSums, WeightedSums};
use crate::Real;
use crate::numeric::{Isa, PrefixFactors, prefix_step, raise_scale};
use crate::threads;

/// The number of sums that are taken at a time, so that they stay in the first cache.
const SLICE: usize = 1024;

impl<T: Real> WeightedSums<T> {
    /// Replaces the sums of each run of points by the sums over all points before it: these sums and the runs before. `since`,
    /// which is empty, becomes the sum over all runs. The bits are those of [`ready`](WeightedSums::ready) and
    /// [`add`](WeightedSums::add) in turn, but all threads work. Returns false, with nothing changed, if a sum needs a reference
    /// for each feature or may overflow `T`.
    pub fn prefixes(&self, since: &mut Self, runs: &mut [&mut RunSums<T>]) -> bool {
        let (isa, mut has_zeros, mut last) = (Isa::best(), false, f64::NEG_INFINITY);
        let Some((references, steps)) = self.steps(runs, &mut last) else { return false };
        for ((run, step), reference) in runs.iter_mut().zip(&steps).zip(&references) {
            let before = since.weights.clone();
            prefix_step(isa, &mut run.weights, &self.weights, &mut since.weights, *step);
            let zeros_before = has_zeros || self.has_zeros;
            has_zeros |= run.precision.has_zeros;
            let is_representable = !(zeros_before && self.has_lost(&before, &run.weights));
            run.precision = Precision { scale: *reference, has_zeros: zeros_before, is_representable };
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
        since.has_zeros = has_zeros;
        true
    }

    /// The references of the sums before each run, and the factors that give these sums; raises `last` to the reference of the sum
    /// over all runs.
    fn steps(&self, runs: &[&mut RunSums<T>], last: &mut f64) -> Option<(Vec<f64>, Vec<PrefixFactors>)> {
        let own = self.reference[0];
        let step = |run: &&mut RunSums<T>| {
            let (top, their) = (own.max(*last), run.precision.scale);
            let factor = |r: f64| if top > f64::NEG_INFINITY { (r - top).exp() } else { 0.0 };
            let (before, since) = (factor(own), factor(*last));
            let near = last.min(their) == f64::NEG_INFINITY || (*last - their).abs() <= NEAR;
            near.then(|| {
                let (keep, add) = raise_scale(last, their);
                (top, PrefixFactors { before, since, keep, add })
            })
        };
        if self.one_reference && !self.may_overflow { runs.iter().map(step).collect() } else { None }
    }
}
