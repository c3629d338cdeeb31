//! [`LogRow`]: a point's features by their logarithms, to be added to sums and to be multiplied with them.

use super::{WeightedSums, largest, limit};
use crate::Real;
use crate::numeric::{self, Isa, raise_scale};

/// A point's features by their logarithms: factor\[f\] · e^log\[f\].
#[derive(Clone, Debug, Default)]
pub(crate) struct LogRow {
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
        largest(self.logs.iter().copied())
    }

    /// Adds e^log to every feature; one that is NaN stays so.
    pub fn add(&mut self, log: f64) {
        let known = |log: &f64| !log.is_nan();
        for (own, factor) in self.logs.iter_mut().zip(&mut self.factors).filter(|(own, _)| known(own)) {
            let (keep, add) = raise_scale(own, log);
            *factor = *factor * keep + add;
        }
    }

    /// Adds the feature factor · e^log. A feature that is 0 gets the logarithm −∞, so that it raises no reference.
    pub fn push(&mut self, log: f64, factor: f64) {
        self.logs.push(if factor == 0.0 && !log.is_nan() { f64::NEG_INFINITY } else { log });
        self.factors.push(factor);
    }
}

impl<T: Real> WeightedSums<T> {
    /// Adds one point from the logarithms of its features.
    pub fn push(&mut self, row: &LogRow, value: &[T]) {
        self.see();
        if row.logs.iter().any(|log| log.is_nan()) {
            return self.poison();
        }
        self.gaps |= row.factors.contains(&0.0);
        self.disperse();
        self.huge |= value.iter().any(|v| v.widen().abs() > limit::<T>());
        for f in 0..self.features() {
            let (keep, add) = raise_scale(&mut self.reference[f], row.logs[f]);
            let add = add * row.factors[f];
            self.weights[f] = keep * self.weights[f] + add;
            for (at, values) in self.places(f).zip(value.chunks(self.lanes)) {
                for (sum, value) in self.sums[at].iter_mut().zip(values) {
                    *sum = if add == 0.0 { keep * *sum } else { keep * *sum + add * value.widen() };
                }
            }
        }
    }

    /// Makes every sum NaN, for a point that is not finite.
    fn poison(&mut self) {
        self.reference.iter_mut().for_each(|r| *r = r.max(0.0));
        self.weights.fill(f64::NAN);
        self.sums.fill(f64::NAN);
    }

    /// ln of the largest product of the query's features with sums, and each feature with a product that is not 0 with its factor
    /// relative to that. `None` if a feature or a sum is not finite.
    fn weigh<'a>(&'a self, row: &'a LogRow) -> Option<(f64, impl Iterator<Item = (usize, f64)> + 'a)> {
        let sizes = move || row.logs.iter().zip(&self.reference).map(|(log, reference)| log + reference);
        if sizes().any(f64::is_nan) || row.logs.contains(&f64::INFINITY) {
            return None;
        }
        let top = largest(sizes());
        let sizes = sizes().enumerate().filter(|(_, size)| *size > f64::NEG_INFINITY);
        Some((top, sizes.map(move |(f, size)| (f, row.factors[f] * (size - top).exp()))))
    }

    /// For a query given by logarithms: ln of the scale, the normaliser and the weighted sums relative to it. The scale is
    /// −∞ where query and points have no feature in common.
    pub fn query(&self, row: &LogRow, out: &mut [f64]) -> (f64, f64) {
        let Some((top, weighed)) = self.weigh(row) else {
            out.fill(f64::NAN);
            return (0.0, f64::NAN);
        };
        out.fill(0.0);
        let (mut normaliser, isa) = (0.0, Isa::best());
        for (f, weight) in weighed {
            normaliser += weight * self.weights[f];
            for (at, out) in self.places(f).zip(out.chunks_mut(self.lanes)) {
                numeric::add_scaled(isa, out, weight, &self.sums[at]);
            }
        }
        (top, normaliser)
    }

    /// Writes to `out` for each feature of a point e^(its logarithm + `log`) times its factor times the sum over targets of its
    /// sums weighted by `coefficients`, with those of its weights by `weight`. One that is 0 is so whatever the sums.
    pub fn contract(&self, row: &LogRow, log: f64, coefficients: &[T], weight: f64, out: &mut [f64]) {
        let (isa, sizes) = (Isa::best(), row.logs.iter().zip(&self.reference));
        for (f, (out, (own, reference))) in out.iter_mut().zip(sizes).enumerate() {
            let size = own + reference + log;
            if size == f64::NEG_INFINITY {
                *out = 0.0;
                continue;
            }
            let mut sum = weight * self.weights[f];
            for (at, coefficients) in self.places(f).zip(coefficients.chunks(self.lanes)) {
                sum += numeric::dot(isa, coefficients, &self.sums[at][..coefficients.len()]);
            }
            // By halves, so that the factor does not leave the range before the result does.
            let half = (0.5 * size).exp();
            *out = if sum == 0.0 && !half.is_nan() { 0.0 } else { row.factors[f] * sum * half * half };
        }
    }

    /// (Σ_f w_f)²/Σ_f w_f² for the parts w_f of a query's normaliser; NaN if no point was seen or one is not finite.
    pub fn effective_features(&self, row: &LogRow) -> f64 {
        let Some((_, weighed)) = self.weigh(row).filter(|_| self.seen) else { return f64::NAN };
        let (mut sum, mut squares) = (0.0, 0.0);
        for part in weighed.map(|(f, weight)| weight * self.weights[f]) {
            sum += part;
            squares += part * part;
        }
        if squares == 0.0 { 0.0 } else { sum * sum / squares }
    }
}
