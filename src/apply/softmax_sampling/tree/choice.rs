//! [`Choices`]: random choices among alternatives, with probabilities from estimates that may be negative.

use std::ops::Range;

use crate::SignedLog;
use crate::numeric::special::largest;
use crate::numeric::{Isa, exp_minus};

/// Sums of weights below which weights may have lost digits or underflowed.
const SMALL: f64 = 1e-270;

/// Choices that are made together, each among consecutive places of a list.
#[derive(Debug, Default)]
pub struct Choices {
    /// The scales of the estimates e^scale · factor of the alternatives of all choices.
    pub scales: Vec<f64>,
    pub factors: Vec<f64>,
    weights: Vec<f64>,
    all: Vec<NodeChoice>,
}

/// A choice among the children of a node or the classes of a leaf.
#[derive(Clone, Debug)]
pub struct NodeChoice {
    /// The range of its alternatives among those of all choices.
    alternatives: Range<usize>,
    /// The place of the first alternative in the list.
    first: usize,
    /// The scale to which weights are relative.
    top: f64,
    total: f64,
    /// The share of negative estimates in the sum of all magnitudes; 1 if no estimate was positive but some negative.
    pub clipped: f64,
}

impl Choices {
    pub fn clear(&mut self) {
        self.scales.clear();
        self.factors.clear();
        self.all.clear();
    }

    /// Adds the estimate of an alternative.
    pub fn push(&mut self, scale: f64, factor: f64) {
        self.scales.push(scale);
        self.factors.push(factor);
    }

    /// Makes a choice of the alternatives that were added since the last choice; `first` is the place of the first of them in the
    /// list. The estimate of a single alternative is ignored.
    pub fn end(&mut self, first: usize) {
        let start = self.all.last().map_or(0, |choice| choice.alternatives.end);
        let alternatives = start..self.scales.len();
        if alternatives.len() == 1 {
            (self.scales[start], self.factors[start]) = (0.0, 1.0);
        }
        self.all.push(NodeChoice { alternatives, first, top: 0.0, total: 0.0, clipped: 0.0 });
    }

    /// Computes weights proportional to the estimates, with 0 for negative ones; if none is positive, weights proportional to
    /// `count` of the places.
    pub fn weigh(&mut self, count: impl Fn(usize) -> usize) {
        self.weights.clear();
        self.weights.extend_from_slice(&self.scales);
        for choice in &mut self.all {
            choice.relate(&self.scales, &self.factors, &mut self.weights);
        }
        exp_minus(Isa::best(), &mut self.weights, 0.0);
        for choice in &mut self.all {
            if choice.sum(&self.factors, &mut self.weights) {
                continue;
            }
            // The products of scales and factors have underflowed: logarithms hold them.
            for i in choice.alternatives.clone() {
                let log = SignedLog::from(self.factors[i]).scaled(self.scales[i]);
                (self.scales[i], self.factors[i]) = (log.ln_abs, log.sign);
            }
            choice.relate(&self.scales, &self.factors, &mut self.weights);
            exp_minus(Isa::best(), &mut self.weights[choice.alternatives.clone()], 0.0);
            if !choice.sum(&self.factors, &mut self.weights) {
                choice.count(&self.factors, &mut self.weights, &count);
            }
        }
    }

    pub fn all(&self) -> &[NodeChoice] {
        &self.all
    }

    /// The place that a choice leads to, for a number u that is uniform in \[0, 1).
    pub fn pick(&self, choice: &NodeChoice, u: f64) -> usize {
        let weights = &self.weights[choice.alternatives.clone()];
        let (mark, mut sum, mut i) = (u * choice.total, 0.0, 0);
        // The loop has no branch, which would be mispredicted.
        for weight in weights {
            sum += weight;
            i += usize::from(sum <= mark);
        }
        // The mark is below the total, which is the same sum.
        choice.first + i.min(weights.len() - 1)
    }

    /// The probability e^ln · share of the place, as (ln, share); ln is 0 unless the probability is below the range of `f64`.
    pub fn probability(&self, choice: &NodeChoice, place: usize) -> (f64, f64) {
        let i = choice.alternatives.start + place - choice.first;
        let (share, factor) = (self.weights[i] / choice.total, self.factors[i]);
        if share >= f64::MIN_POSITIVE || factor <= 0.0 {
            return (0.0, share);
        }
        (self.scales[i] - choice.top + factor.ln() - choice.total.ln(), 1.0)
    }
}

impl NodeChoice {
    /// Writes the scales relative to the largest scale of a positive estimate.
    fn relate(&mut self, scales: &[f64], factors: &[f64], weights: &mut [f64]) {
        let run = self.alternatives.clone();
        let pairs = scales[run.clone()].iter().zip(&factors[run.clone()]);
        let positive = pairs.filter(|(_, factor)| **factor > 0.0).map(|(scale, _)| *scale);
        self.top = largest(positive);
        weights[run.clone()]
            .iter_mut()
            .zip(&scales[run])
            .for_each(|(weight, scale)| *weight = scale - self.top);
    }

    /// Multiplies weights by factors, and adds them up. Returns whether the sum is large enough to be accurate.
    fn sum(&mut self, factors: &[f64], weights: &mut [f64]) -> bool {
        if self.top == f64::NEG_INFINITY {
            return false;
        }
        let run = self.alternatives.clone();
        let mut negative = 0.0;
        self.total = 0.0;
        for (weight, factor) in weights[run.clone()].iter_mut().zip(&factors[run]) {
            if *factor > 0.0 {
                *weight *= factor;
                self.total += *weight;
            } else {
                negative -= if *factor < 0.0 { *weight * factor } else { 0.0 };
                *weight = 0.0;
            }
        }
        // Where the negative sum overflows, the positive one is negligible.
        self.clipped = if negative.is_finite() { negative / (negative + self.total) } else { 1.0 };
        self.total > SMALL
    }

    /// Weighs places by their counts.
    fn count(&mut self, factors: &[f64], weights: &mut [f64], count: impl Fn(usize) -> usize) {
        let run = self.alternatives.clone();
        self.clipped = f64::from(u8::from(factors[run.clone()].iter().any(|factor| *factor < 0.0)));
        let weights = &mut weights[run];
        weights.iter_mut().zip(self.first..).for_each(|(weight, place)| *weight = count(place) as f64);
        self.total = weights.iter().sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One choice among alternatives from place 10 on.
    fn weighed<const N: usize>(pairs: [(f64, f64); N], counts: [usize; N]) -> Choices {
        let mut choices = Choices::default();
        // Not alone.
        choices.push(3.0, -1.0);
        choices.end(5);
        pairs.into_iter().for_each(|(scale, factor)| choices.push(scale, factor));
        choices.end(10);
        choices.push(-2000.0, 7.0);
        choices.end(2);
        choices.weigh(|place| if place < 10 { 1 } else { counts[place - 10] });
        for (i, place) in [(0, 5), (2, 2)] {
            let choice = &choices.all()[i];
            assert_eq!((choices.pick(choice, 0.7), choices.probability(choice, place)), (place, (0.0, 1.0)));
            assert_eq!(choice.clipped, 0.0, "one alternative is no choice");
        }
        choices
    }

    impl Choices {
        fn middle(&self) -> &NodeChoice {
            &self.all[1]
        }

        fn log(&self, place: usize) -> f64 {
            let (ln, share) = self.probability(self.middle(), place);
            ln + share.ln()
        }
    }

    #[test]
    fn negative_estimates_have_no_weight() {
        let choices = weighed([(0.0, 3.0), (0.0, -1.0), (7.0, 0.0), (0.0, 1.0)], [1; 4]);
        assert!((choices.middle().clipped - 0.2).abs() < 1e-15);
        let picks = [0.0, 0.74, 0.76, 0.999].map(|u| choices.pick(choices.middle(), u));
        assert_eq!(picks, [10, 10, 13, 13]);
        assert!((choices.log(10) - 0.75f64.ln()).abs() < 1e-15);
        assert_eq!(choices.log(11), f64::NEG_INFINITY);
    }

    #[test]
    fn without_a_positive_estimate_counts_decide() {
        let choices = weighed([(0.0, -3.0), (1.0, 0.0), (2.0, -1.0)], [8, 8, 4]);
        assert_eq!(choices.middle().clipped, 1.0);
        assert!((choices.log(12) - 0.2f64.ln()).abs() < 1e-15);
        let choices = weighed([(0.0, 0.0), (f64::NEG_INFINITY, 0.0)], [1, 3]);
        assert_eq!(choices.middle().clipped, 0.0);
        assert_eq!([0.2, 0.3].map(|u| choices.pick(choices.middle(), u)), [10, 11]);
    }

    #[test]
    fn sizes_beyond_the_range_are_compared() {
        let choices = weighed([(-5000.0, 1.0), (5000.0, -1.0)], [1; 2]);
        assert_eq!((choices.middle().clipped, choices.pick(choices.middle(), 0.5)), (1.0, 10));
        // e^900 · 1e-300 is more than e^100, but less than e^300.
        let choices = weighed([(900.0, 1e-300), (100.0, 1.0), (300.0, 1.0)], [1; 3]);
        assert!(choices.log(12).abs() < 1e-12);
        assert!((choices.log(10) - (900.0 - 300.0 * 10f64.ln() - 300.0)).abs() < 1e-9);
        // Probabilities below the range have logarithms.
        let choices = weighed([(0.0, 3.0), (-900.0, 2.0), (-5000.0, -1.0), (-5000.0, 0.5)], [1; 4]);
        let logs = [10, 11, 12, 13].map(|place| choices.log(place));
        let expected = [0.0, -900.0 + (2.0f64 / 3.0).ln(), f64::NEG_INFINITY, -5000.0 - 6f64.ln()];
        assert!(
            logs.into_iter()
                .zip(expected)
                .all(|(log, expected)| log == expected || (log - expected).abs() < 1e-11)
        );
    }
}
