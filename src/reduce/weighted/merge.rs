//! Addition of sums over different points, relative to the larger of the two references.

use super::{Precision, RunSums, WeightedSums};
use crate::Real;
use crate::numeric::{Isa, raise_scale, raise_scales, scale_and_add, scale_and_add_each};

/// The largest difference of two references (logarithms) for which one common reference serves both in `f64`.
pub(super) const NEAR: f64 = 300.0;

impl<T: Real> WeightedSums<T> {
    /// Adds the sums over a run of points.
    pub fn add(&mut self, part: &RunSums<T>) {
        let Precision { scale, has_zeros, .. } = part.precision;
        if scale > f64::NEG_INFINITY {
            self.has_zeros |= has_zeros;
            self.combine(self.one_reference, |_| scale, &part.weights, part.sums.elements());
        }
    }

    /// Adds other sums, which have equal features and targets in equal order.
    pub fn merge(&mut self, other: &Self) {
        let reference = &other.reference;
        self.may_overflow |= other.may_overflow;
        self.seen |= other.seen;
        self.has_zeros |= other.has_zeros;
        self.combine(
            self.one_reference && other.one_reference,
            |f| reference[f],
            &other.weights,
            &other.sums,
        );
    }

    /// Adds sums relative to the references `their`. `one_reference` says that these are equal for all features, and that the own
    /// references are.
    fn combine<U: Real>(
        &mut self,
        one_reference: bool,
        their: impl Fn(usize) -> f64,
        weights: &[f64],
        sums: &[U],
    ) {
        if self.features() == 0 || one_reference && their(0) == f64::NEG_INFINITY {
            return;
        }
        let near = |own: f64| own == f64::NEG_INFINITY || (own - their(0)).abs() <= NEAR;
        if !(one_reference && near(self.reference[0])) {
            self.split_references();
            return self.combine_each(their, weights, sums);
        }
        let (keep, add) = raise_scale(&mut self.reference[0], their(0));
        let reference = self.reference[0];
        self.reference.fill(reference);
        scale_and_add(Isa::best(), &mut self.weights, keep, add, weights);
        scale_and_add(Isa::best(), &mut self.sums, keep, add, sums);
    }

    /// Gives each feature a reference of its own; −∞ to features whose sums are all 0.
    pub(super) fn split_references(&mut self) {
        if !std::mem::take(&mut self.one_reference) {
            return;
        }
        for f in 0..self.features() {
            if self.is_zero(f, &self.weights, &self.sums) {
                self.reference[f] = f64::NEG_INFINITY;
            }
        }
    }

    /// Adds sums with a reference for each feature. A feature whose sums are all 0 raises no reference.
    fn combine_each<U: Real>(&mut self, their: impl Fn(usize) -> f64, weights: &[f64], sums: &[U]) {
        let isa = Isa::best();
        let reference = |f| if self.is_zero(f, weights, sums) { f64::NEG_INFINITY } else { their(f) };
        let mut add: Vec<f64> = (0..weights.len()).map(reference).collect();
        let mut keep = add.clone();
        raise_scales(isa, &mut self.reference, &mut keep, &mut add);
        scale_and_add_each(isa, &mut self.weights, &keep, &add, weights);
        let panel = weights.len() * self.lanes;
        for (own, their) in self.sums.chunks_exact_mut(panel).zip(sums.chunks_exact(panel)) {
            if self.lanes == 1 {
                scale_and_add_each(isa, own, &keep, &add, their);
                continue;
            }
            let pairs = own.chunks_exact_mut(self.lanes).zip(their.chunks_exact(self.lanes));
            for ((own, their), (keep, add)) in pairs.zip(keep.iter().zip(&add)) {
                scale_and_add(isa, own, *keep, *add, their);
            }
        }
    }

    /// Whether sums of feature `f`, stored as these are, are all 0.
    fn is_zero<U: Real>(&self, f: usize, weights: &[f64], sums: &[U]) -> bool {
        weights[f] == 0.0 && self.places(f..f + 1).flatten().all(|place| sums[place] == U::zero())
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::reduce::LogRow;

    /// Feature f of point i, by its logarithm; every fifth is 0.
    fn point(i: usize) -> LogRow {
        let mut row = LogRow::default();
        for f in 0..3 {
            let log = [0.3, -4e5, 7e5][(i / 2) % 3] + (i * (f + 2)) as f64;
            row.push(log, if (i + f).is_multiple_of(5) { 0.0 } else { (i + 2 * f) as f64 - 3.5 });
        }
        row
    }

    fn sums(mut empty: WeightedSums<f64>, points: Range<usize>, targets: usize) -> WeightedSums<f64> {
        for i in points {
            let values: Vec<f64> = (0..targets).map(|t| (i + t) as f64 * 0.25 - 1.0).collect();
            empty.push(&point(i), &values);
        }
        empty
    }

    /// In rows and in panels, in any order of parts, at sizes of which no two can be written beside each other.
    #[test]
    fn parts_merge_in_either_layout() {
        for targets in [1, 5, 20] {
            let whole = sums(WeightedSums::new(3, targets), 0..12, targets);
            for empty in [WeightedSums::new(3, targets), WeightedSums::in_rows(3, targets).unwrap()] {
                for [a, b, c] in [[0, 1, 2], [2, 0, 1], [1, 2, 0]] {
                    let part = |k: usize| sums(empty.clone(), 4 * k..4 * k + 4, targets);
                    let mut merged = part(a);
                    merged.merge(&part(b));
                    merged.merge(&empty);
                    merged.merge(&part(c));
                    for query in (0..6).map(point) {
                        let (mut found, mut expected) = (vec![0.0; targets], vec![0.0; targets]);
                        let (scale, normaliser) = merged.query(&query, &mut found);
                        let from_whole = whole.query(&query, &mut expected);
                        assert_eq!(scale, from_whole.0);
                        let near = |a: f64, b: f64| (a - b).abs() <= 1e-13 * (1.0 + b.abs());
                        assert!(near(normaliser, from_whole.1), "{normaliser} instead of {}", from_whole.1);
                        assert!(found.iter().zip(&expected).all(|(a, b)| near(*a, *b)), "{found:?}");
                    }
                    assert!(merged.has_seen());
                }
            }
        }
    }

    /// A key that is not finite shows in every sum.
    #[test]
    fn nothing_hides_nan() {
        let mut sums = sums(WeightedSums::in_rows(3, 2).unwrap(), 0..4, 2);
        let mut row = point(1);
        row.logs[1] = f64::NAN;
        sums.push(&row, &[1.0, 2.0]);
        let mut out = [0.0; 2];
        assert!(sums.query(&point(2), &mut out).1.is_nan() && out.iter().all(|v| v.is_nan()));
    }
}
