//! Errors over pairs, and how uncertain they are.

use super::expected::{Expected, RelativeErrors, or_infinite};
use super::pairs::Pairs;
use crate::numeric::special::largest;
use crate::theory::Basis;

impl Pairs {
    /// The largest ln |K|.
    fn top(&self) -> f64 {
        largest(self.ln_kernel.iter().copied())
    }

    /// Σ w v.
    fn mean(&self, values: &[f64]) -> f64 {
        values.iter().zip(&self.weights).map(|(value, weight)| value * weight).sum()
    }

    /// ln E K².
    pub fn ln_mean_square(&self) -> f64 {
        let top = self.top();
        let squares: Vec<f64> = self.ln_kernel.iter().map(|ln| (2.0 * (ln - top)).exp()).collect();
        2.0 * top + self.mean(&squares).ln()
    }

    /// Σ (K̂ − K)²/Σ K² from (K̂ − K)²/K² of each pair.
    pub fn gram_of_relative_squares(&self, relative: &[f64]) -> f64 {
        let top = self.top();
        let (mut squares, mut total) = (0.0, 0.0);
        for ((relative, ln), weight) in relative.iter().zip(&self.ln_kernel).zip(&self.weights) {
            let kernel = weight * (2.0 * (ln - top)).exp();
            // A pair without weight counts for nothing, be its error infinite.
            squares += if kernel > 0.0 { kernel * relative } else { 0.0 };
            total += kernel;
        }
        squares / total
    }

    /// √(Σ E(K̂ − K)²/Σ K²) from ln E(K̂ − K)² of each pair: the root of the expected squared relative Frobenius error of the Gram matrix.
    pub fn gram(&self, ln_squares: &[f64], basis: Basis) -> Expected {
        let top = self.top();
        let kernel: Vec<f64> = self.ln_kernel.iter().map(|ln| (2.0 * (ln - top)).exp()).collect();
        let squares: Vec<f64> = ln_squares.iter().map(|ln| exp_of_difference(*ln, 2.0 * top)).collect();
        let total = self.mean(&kernel);
        let square = self.mean(&squares) / total;
        let residuals: Vec<f64> =
            squares.iter().zip(&kernel).map(|(square_of, kernel)| square_of - square * kernel).collect();
        let deviation = self.deviation_of_mean(&residuals) / total;
        let value = or_infinite(square.sqrt());
        let standard_error = if value > 0.0 { 0.5 * deviation / value } else { 0.0 };
        Expected { value, standard_error: or_infinite(standard_error), basis }
    }

    /// Errors relative to the kernel over pairs, from ln E(K̂ − K)² of each pair.
    pub fn relative(&self, ln_squares: &[f64], basis: Basis) -> RelativeErrors {
        let of = |(ln, kernel): (&f64, &f64)| exp_of_difference(0.5 * ln, *kernel);
        let errors: Vec<f64> = ln_squares.iter().zip(&self.ln_kernel).map(of).collect();
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_by(|a, b| errors[*a].total_cmp(&errors[*b]));
        let mut below = 0.0;
        let sorted: Vec<(f64, f64)> = order
            .into_iter()
            .map(|k| {
                below += self.weights[k];
                (below, errors[k])
            })
            .collect();
        let at = |share: f64| {
            let place = sorted.partition_point(|(below, _)| *below < share - 1e-12);
            sorted.get(place).or(sorted.last()).map_or(f64::NAN, |(_, error)| *error)
        };
        let points = self.independent();
        let quantile = |share: f64| {
            let spread = (share * (1.0 - share) / points).sqrt();
            let [low, high] = [share - spread, share + spread].map(|share| at(share.clamp(0.0, 1.0)));
            Expected { value: at(share), standard_error: or_infinite(0.5 * (high - low)), basis }
        };
        let mean = self.mean(&errors);
        let from_mean: Vec<f64> = errors.iter().map(|error| error - mean).collect();
        let beyond: f64 = errors.iter().zip(&self.weights).filter(|(e, _)| **e > 1.0).map(|(_, w)| w).sum();
        let of_share = (beyond * (1.0 - beyond) / points).max(0.0).sqrt();
        RelativeErrors {
            mean: Expected {
                value: mean,
                standard_error: or_infinite(self.deviation_of_mean(&from_mean)),
                basis,
            },
            median: quantile(0.5),
            ninety: quantile(0.9),
            ninety_nine: quantile(0.99),
            beyond_one: Expected { value: beyond.clamp(0.0, 1.0) + 0.0, standard_error: of_share, basis },
        }
    }

    /// How uncertain the ratio of errors of two recipes is for another sample of points, relative to it: of the errors of the Gram matrix, and
    /// of mean relative errors.
    pub fn ratio_uncertainty(&self, own: &[f64], other: &[f64]) -> [f64; 2] {
        let top = self.top();
        let gram = |ln: f64, _: f64| exp_of_difference(ln, 2.0 * top);
        let relative = |ln: f64, kernel: f64| exp_of_difference(0.5 * ln, kernel);
        // A squared error varies relatively twice as much as an error.
        [0.5 * self.of_ratio(own, other, gram), self.of_ratio(own, other, relative)]
    }

    fn of_ratio(&self, own: &[f64], other: &[f64], error: impl Fn(f64, f64) -> f64) -> f64 {
        let errors = |ln: &[f64]| -> Vec<f64> {
            ln.iter().zip(&self.ln_kernel).map(|(ln, kernel)| error(*ln, *kernel)).collect()
        };
        let (own, other) = (errors(own), errors(other));
        let (of_own, of_other) = (self.mean(&own), self.mean(&other));
        let residuals: Vec<f64> = own.iter().zip(&other).map(|(a, b)| a - b * (of_own / of_other)).collect();
        if of_own > 0.0 { or_infinite(self.deviation_of_mean(&residuals) / of_own) } else { 0.0 }
    }

    /// The standard deviation of Σ w r over samples of points: pairs that share a point vary together.
    fn deviation_of_mean(&self, residuals: &[f64]) -> f64 {
        let points = self.points.iter().flatten().fold(0, |most, id| most.max(id + 1));
        let mut sums = vec![0.0; points];
        let mut own = 0.0;
        for ((ids, weight), residual) in self.points.iter().zip(&self.weights).zip(residuals) {
            let part = weight * residual;
            sums[ids[0]] += part;
            if ids[0] != ids[1] {
                sums[ids[1]] += part;
                own += part * part;
            }
        }
        // A pair is in the sums of both its points.
        (sums.iter().map(|sum| sum * sum).sum::<f64>() - own).max(own).sqrt()
    }

    /// About how many independent pairs there are.
    fn independent(&self) -> f64 {
        let squares: f64 = self.weights.iter().map(|weight| weight * weight).sum();
        let mut left: Vec<usize> = self.points.iter().map(|ids| ids[0]).collect();
        left.sort_unstable();
        left.dedup();
        squares.recip().min(left.len() as f64).max(1.0)
    }
}

/// e^{a − b}; infinite where rounding leaves no digit of the difference.
fn exp_of_difference(a: f64, b: f64) -> f64 {
    let lost = (a.abs() + b.abs()) * f64::EPSILON > 0.1 && a > f64::NEG_INFINITY;
    if lost { f64::INFINITY } else { or_infinite((a - b).exp()) }
}
