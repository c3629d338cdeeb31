//! [`Choice`]: one of some alternatives, with probabilities from estimates that may be negative.

use crate::SignedLog;
use crate::numeric::{Isa, exp_minus};

/// Sums of weights below which digits, or alternatives, may have been lost.
const SMALL: f64 = 1e-270;

/// Estimates of some alternatives, e^scale · factor each.
#[derive(Debug, Default)]
pub(super) struct Estimates {
    scales: Vec<f64>,
    factors: Vec<f64>,
}

impl Estimates {
    pub fn clear(&mut self) {
        self.scales.clear();
        self.factors.clear();
    }

    pub fn push(&mut self, scale: f64, factor: f64) {
        self.scales.push(scale);
        self.factors.push(factor);
    }

    fn positive(&self) -> impl Iterator<Item = f64> {
        let pairs = self.scales.iter().zip(&self.factors);
        pairs.filter(|(_, factor)| **factor > 0.0).map(|(scale, _)| *scale)
    }

    /// Moves the factors' magnitudes into the scales.
    fn level(&mut self) {
        for (scale, factor) in self.scales.iter_mut().zip(&mut self.factors) {
            let log = SignedLog::from(*factor).scaled(*scale);
            (*scale, *factor) = (log.ln_abs, log.sign);
        }
    }
}

/// The probabilities of some alternatives.
#[derive(Debug, Default)]
pub(super) struct Choice {
    weights: Vec<f64>,
    total: f64,
    /// The scale to which weights are relative.
    top: f64,
    /// The share of negative estimates in the sum of all magnitudes; 1 if no estimate was positive but some negative.
    pub clipped: f64,
}

impl Choice {
    /// Weights proportional to the estimates, of which negative ones count as 0; to `counts` if none is positive.
    pub fn weigh(&mut self, estimates: &mut Estimates, counts: impl Iterator<Item = usize>) {
        if !self.weigh_positive(estimates) {
            // Scales and factors differ so much that their products vanish.
            estimates.level();
            if !self.weigh_positive(estimates) {
                self.clipped = f64::from(u8::from(estimates.factors.iter().any(|factor| *factor < 0.0)));
                self.weights.clear();
                self.weights.extend(counts.map(|count| count as f64));
                self.total = self.weights.iter().sum();
            }
        }
    }

    /// Whether there is a sum of weights that has lost nothing.
    fn weigh_positive(&mut self, estimates: &Estimates) -> bool {
        let top = estimates.positive().fold(f64::NEG_INFINITY, f64::max);
        if top == f64::NEG_INFINITY {
            return false;
        }
        self.top = top;
        self.weights.clear();
        self.weights.extend(&estimates.scales);
        exp_minus(Isa::best(), &mut self.weights, top);
        let mut negative = 0.0;
        self.total = 0.0;
        for (weight, factor) in self.weights.iter_mut().zip(&estimates.factors) {
            if *factor > 0.0 {
                *weight *= factor;
                self.total += *weight;
            } else {
                negative -= if *factor < 0.0 { *weight * factor } else { 0.0 };
                *weight = 0.0;
            }
        }
        // A negative mass that overflows is all there is.
        self.clipped = if negative.is_finite() { negative / (negative + self.total) } else { 1.0 };
        self.total > SMALL
    }

    /// The alternative for a number u that is uniform in \[0, 1).
    pub fn pick(&self, u: f64) -> usize {
        let mut left = u * self.total;
        let mut last = 0;
        for (i, weight) in self.weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
            last = i;
            left -= weight;
            if left < 0.0 {
                break;
            }
        }
        last
    }

    /// ln of the probability of an alternative, from the estimates that were weighed.
    pub fn log_probability(&self, estimates: &Estimates, i: usize) -> f64 {
        let (share, factor) = (self.weights[i] / self.total, estimates.factors[i]);
        if share >= f64::MIN_POSITIVE || factor <= 0.0 {
            return share.ln();
        }
        // It is below the range of `f64`, its logarithm is not.
        estimates.scales[i] - self.top + factor.ln() - self.total.ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimates<const N: usize>(pairs: [(f64, f64); N]) -> Estimates {
        let mut estimates = Estimates::default();
        pairs.into_iter().for_each(|(scale, factor)| estimates.push(scale, factor));
        estimates
    }

    #[test]
    fn negative_estimates_have_no_weight() {
        let mut choice = Choice::default();
        let mut weighed = estimates([(0.0, 3.0), (0.0, -1.0), (7.0, 0.0), (0.0, 1.0)]);
        choice.weigh(&mut weighed, 0..4);
        assert!((choice.clipped - 0.2).abs() < 1e-15);
        assert_eq!([0.0, 0.74, 0.76, 0.999].map(|u| choice.pick(u)), [0, 0, 3, 3]);
        assert!((choice.log_probability(&weighed, 0) - 0.75f64.ln()).abs() < 1e-15);
        assert_eq!(choice.log_probability(&weighed, 1), f64::NEG_INFINITY);
    }

    #[test]
    fn without_a_positive_estimate_counts_decide() {
        let mut choice = Choice::default();
        let mut weighed = estimates([(0.0, -3.0), (1.0, 0.0), (2.0, -1.0)]);
        choice.weigh(&mut weighed, [8, 8, 4].into_iter());
        assert_eq!(choice.clipped, 1.0);
        assert!((choice.log_probability(&weighed, 2) - 0.2f64.ln()).abs() < 1e-15);
        choice.weigh(&mut estimates([(0.0, 0.0), (f64::NEG_INFINITY, 0.0)]), [1, 1].into_iter());
        assert_eq!(choice.clipped, 0.0);
    }

    #[test]
    fn sizes_beyond_the_range_are_compared() {
        let mut choice = Choice::default();
        choice.weigh(&mut estimates([(-5000.0, 1.0), (5000.0, -1.0)]), 0..2);
        assert_eq!((choice.clipped, choice.pick(0.5)), (1.0, 0));
        // e^900 · 1e-300 is more than e^100, but less than e^300.
        let mut weighed = estimates([(900.0, 1e-300), (100.0, 1.0), (300.0, 1.0)]);
        choice.weigh(&mut weighed, 0..3);
        assert!(choice.log_probability(&weighed, 2).abs() < 1e-12);
        assert!((choice.log_probability(&weighed, 0) - (900.0 - 300.0 * 10f64.ln() - 300.0)).abs() < 1e-9);
        // Probabilities below the range have logarithms.
        let mut weighed = estimates([(0.0, 3.0), (-900.0, 2.0), (-5000.0, -1.0), (-5000.0, 0.5)]);
        choice.weigh(&mut weighed, 0..4);
        let logs = [0, 1, 2, 3].map(|i| choice.log_probability(&weighed, i));
        let expected = [0.0, -900.0 + (2.0f64 / 3.0).ln(), f64::NEG_INFINITY, -5000.0 - 6f64.ln()];
        assert!(
            logs.into_iter()
                .zip(expected)
                .all(|(log, expected)| log == expected || (log - expected).abs() < 1e-11)
        );
    }
}
