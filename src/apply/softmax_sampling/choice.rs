//! [`Choice`]: one of some alternatives, with probabilities from estimates that may be negative.

use crate::SignedLog;

/// The probabilities of some alternatives.
#[derive(Debug, Default)]
pub(super) struct Choice {
    weights: Vec<f64>,
    total: f64,
    /// The share of negative estimates in the sum of all magnitudes; 1 if no estimate was positive.
    pub clipped: f64,
}

impl Choice {
    /// Weights proportional to the estimates, of which negative ones count as 0; to `counts` if none is positive.
    pub fn weigh(&mut self, estimates: &[SignedLog], counts: impl Iterator<Item = usize>) {
        let top_of = |sign: f64| {
            let such = estimates.iter().filter(|estimate| estimate.sign == sign);
            such.map(|estimate| estimate.ln_abs).fold(f64::NEG_INFINITY, f64::max)
        };
        let (top, lowest) = (top_of(1.0), top_of(-1.0));
        self.weights.clear();
        if top == f64::NEG_INFINITY {
            self.weights.extend(counts.map(|count| count as f64));
            self.clipped = f64::from(u8::from(lowest > top));
        } else {
            let weight = |estimate: &SignedLog| {
                if estimate.sign == 1.0 { (estimate.ln_abs - top).exp() } else { 0.0 }
            };
            self.weights.extend(estimates.iter().map(weight));
            self.clipped = 0.0;
        }
        self.total = self.weights.iter().sum();
        if top > f64::NEG_INFINITY && lowest > f64::NEG_INFINITY {
            let negative = estimates.iter().filter(|estimate| estimate.sign == -1.0);
            let negative = negative.map(|estimate| (estimate.ln_abs - top).exp()).sum::<f64>();
            // A negative mass that overflows is all there is.
            self.clipped = if negative.is_finite() { negative / (negative + self.total) } else { 1.0 };
        }
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

    /// ln of the probability of an alternative.
    pub fn log_probability(&self, i: usize) -> f64 {
        (self.weights[i] / self.total).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_estimates_have_no_weight() {
        let mut choice = Choice::default();
        let estimates = [3.0, -1.0, 0.0, 1.0].map(SignedLog::from);
        choice.weigh(&estimates, 0..4);
        assert!((choice.clipped - 0.2).abs() < 1e-15);
        assert_eq!([0.0, 0.74, 0.76, 0.999].map(|u| choice.pick(u)), [0, 0, 3, 3]);
        assert!((choice.log_probability(0) - 0.75f64.ln()).abs() < 1e-15);
        assert_eq!(choice.log_probability(1), f64::NEG_INFINITY);
    }

    #[test]
    fn without_a_positive_estimate_counts_decide() {
        let mut choice = Choice::default();
        choice.weigh(&[-3.0, 0.0, -1.0].map(SignedLog::from), [8, 8, 4].into_iter());
        assert_eq!(choice.clipped, 1.0);
        assert!((choice.log_probability(2) - 0.2f64.ln()).abs() < 1e-15);
        choice.weigh(&[0.0, 0.0].map(SignedLog::from), [1, 1].into_iter());
        assert_eq!(choice.clipped, 0.0);
        // Sizes beyond the range of f64.
        let far = |ln_abs, sign| SignedLog { ln_abs, sign };
        choice.weigh(&[far(-5000.0, 1.0), far(5000.0, -1.0)], 0..2);
        assert_eq!((choice.clipped, choice.pick(0.5)), (1.0, 0));
    }
}
