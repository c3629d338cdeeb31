//! [`LogRow`]: a point's features by their logarithms, which are added to sums and multiplied with them.

use std::ops::Range;

use super::{WeightedSums, limit};
use crate::Real;
use crate::numeric::{
    Isa, add_rows, dot, dots, exp_minus, max_sum, panel_width, raise_scales, scale_and_add_rows,
};

/// A point's features by their logarithms: factor\[f\] · e^log\[f\].
#[derive(Clone, Debug, Default)]
pub(crate) struct LogRow {
    pub logs: Vec<f64>,
    pub factors: Vec<f64>,
}

impl LogRow {
    /// Makes this row the features e^scale · `features`.
    pub fn scaled<T: Real>(&mut self, features: &[T], scale: f64) {
        self.clear();
        features.iter().for_each(|v| self.push(scale, v.widen()));
    }

    /// Removes all features.
    pub fn clear(&mut self) {
        self.logs.clear();
        self.factors.clear();
    }

    /// Appends the feature factor · e^log. A feature that is 0 gets the logarithm −∞, so that it raises no reference.
    pub fn push(&mut self, log: f64, factor: f64) {
        self.logs.push(if factor == 0.0 && !log.is_nan() { f64::NEG_INFINITY } else { log });
        self.factors.push(factor);
    }
}

/// The number of features whose factors are computed at a time.
const RUN: usize = 64;

/// Multiplies weights, each e^(a number up to 0), by the factors of features. If a weight vanishes whose sum is not finite, it
/// becomes the least number above 0, so that the result is not finite either.
fn times_factors(weights: &mut [f64], factors: &[f64], shows: impl Fn(usize) -> bool) {
    for (f, (weight, factor)) in weights.iter_mut().zip(factors).enumerate() {
        *weight *= factor;
        if *weight == 0.0 && shows(f) {
            *weight = LEAST.copysign(*factor);
        }
    }
}

/// The least number above 0.
const LEAST: f64 = f64::from_bits(1);

impl<T: Real> WeightedSums<T> {
    /// Adds one point from the logarithms of its features.
    pub fn push(&mut self, row: &LogRow, value: &[T]) {
        self.see();
        if row.logs.iter().any(|log| log.is_nan()) {
            return self.poison();
        }
        self.has_zeros |= row.factors.contains(&0.0);
        self.split_references();
        self.may_overflow |= value.iter().any(|v| v.widen().abs() > limit::<T>());
        let (isa, finite) = (Isa::best(), value.iter().all(|v| v.is_finite()));
        for run in self.runs() {
            let (mut keep, mut add) = ([0.0; RUN], [0.0; RUN]);
            let (keep, add) = (&mut keep[..run.len()], &mut add[..run.len()]);
            let logs = &row.logs[run.clone()];
            add.copy_from_slice(logs);
            raise_scales(isa, &mut self.reference[run.clone()], keep, add);
            times_factors(add, &row.factors[run.clone()], |f| !finite && logs[f] > f64::NEG_INFINITY);
            let weights = self.weights[run.clone()].iter_mut().zip(&*keep).zip(&*add);
            weights.for_each(|((weight, keep), add)| *weight = keep * *weight + add);
            for (at, values) in self.places(run).zip(value.chunks(self.lanes)) {
                scale_and_add_rows(isa, &mut self.sums[at], keep, add, values);
            }
        }
    }

    /// Makes every sum NaN, for a point that is not finite.
    fn poison(&mut self) {
        self.reference.iter_mut().for_each(|r| *r = r.max(0.0));
        self.weights.fill(f64::NAN);
        self.sums.fill(f64::NAN);
    }

    /// Whether a feature's sums are finite.
    fn is_finite(&self, f: usize) -> bool {
        self.weights[f].is_finite()
            && self.places(f..f + 1).all(|at| self.sums[at].iter().all(|sum| sum.is_finite()))
    }

    /// The features in runs.
    fn runs(&self) -> impl Iterator<Item = Range<usize>> + use<T> {
        let features = self.features();
        (0..features).step_by(RUN).map(move |first| first..features.min(first + RUN))
    }

    /// Passes the query's features to `take` in runs, with their factors relative to the largest product of a feature with sums.
    /// Returns ln of that product, which is −∞ if query and points have no feature in common; `None` if a feature or a sum is not
    /// finite.
    fn weigh(&self, row: &LogRow, mut take: impl FnMut(Range<usize>, &[f64])) -> Option<f64> {
        let unknown = row.logs.iter().zip(&self.reference).any(|(log, reference)| (log + reference).is_nan());
        if unknown || row.logs.contains(&f64::INFINITY) {
            return None;
        }
        let top = max_sum(Isa::best(), &row.logs, &self.reference);
        if top == f64::NEG_INFINITY {
            return Some(top);
        }
        for run in self.runs() {
            let mut factors = [0.0; RUN];
            let factors = &mut factors[..run.len()];
            let (logs, references) = (&row.logs[run.clone()], &self.reference[run.clone()]);
            let sizes = logs.iter().zip(references).map(|(log, reference)| log + reference);
            factors.iter_mut().zip(sizes).for_each(|(factor, size)| *factor = size);
            exp_minus(Isa::best(), factors, top);
            times_factors(factors, &row.factors[run.clone()], |f| {
                logs[f] + references[f] > f64::NEG_INFINITY && !self.is_finite(run.start + f)
            });
            take(run, factors);
        }
        Some(top)
    }

    /// For a query given by logarithms: ln of a scale, and relative to it the normaliser and, in `out`, the weighted sums. ln of
    /// the scale is −∞ if query and points have no feature in common.
    pub fn query(&self, row: &LogRow, out: &mut [f64]) -> (f64, f64) {
        let (mut normaliser, isa) = (0.0, Isa::best());
        out.fill(0.0);
        let known = self.weigh(row, |run, factors| {
            normaliser += dot(isa, factors, &self.weights[run.clone()]);
            for (at, out) in self.places(run).zip(out.chunks_mut(self.lanes)) {
                add_rows(isa, out, factors, &self.sums[at]);
            }
        });
        let Some(top) = known else {
            out.fill(f64::NAN);
            return (0.0, f64::NAN);
        };
        (top, normaliser)
    }

    /// Writes to `out`, for each feature of a point, e^(its logarithm − `top` + `log`) times its factor times a sum over targets: the
    /// feature's sums times `coefficients`, plus its weights times `weight`. A feature that is 0 gives 0 whatever the sums are.
    ///
    /// `top`, ln of a scale as that of a [query](WeightedSums::query), may be large where logarithms and references are.
    pub fn contract(
        &self,
        row: &LogRow,
        (top, log): (f64, f64),
        coefficients: &[T],
        weight: f64,
        out: &mut [f64],
    ) {
        let isa = Isa::best();
        for run in self.runs() {
            let mut products = [0.0; RUN];
            let (products, out) = (&mut products[..run.len()], &mut out[run.clone()]);
            self.products(run.clone(), coefficients, weight, products);
            let (logs, references) = (&row.logs[run.clone()], &self.reference[run.clone()]);
            let sizes = logs.iter().zip(references).map(|(own, reference)| own + reference - top + log);
            // The exponential is taken in halves, so that the factor does not leave the range before the result does.
            out.iter_mut().zip(sizes.clone()).for_each(|(half, size)| *half = 0.5 * size);
            exp_minus(isa, out, 0.0);
            let each = out.iter_mut().zip(products).zip(&row.factors[run.clone()]).zip(sizes);
            for (((out, product), factor), size) in each {
                let half = *out;
                let zero = size == f64::NEG_INFINITY || *product == 0.0 && !half.is_nan();
                *out = if zero { 0.0 } else { factor * *product * half * half };
            }
        }
    }

    /// The sums of some features over targets, weighted by `coefficients`, with `weight` times their weights.
    fn products(&self, run: Range<usize>, coefficients: &[T], weight: f64, out: &mut [f64]) {
        out.iter_mut().zip(&self.weights[run.clone()]).for_each(|(out, own)| *out = weight * own);
        for (at, coefficients) in self.places(run).zip(coefficients.chunks(self.lanes)) {
            let mut lanes = [0.0; panel_width::<f32>()];
            let lanes = &mut lanes[..self.lanes];
            lanes.iter_mut().zip(coefficients).for_each(|(lane, v)| *lane = v.widen());
            let mut products = [0.0; RUN];
            let products = &mut products[..out.len()];
            dots(Isa::best(), &self.sums[at], lanes, products);
            out.iter_mut().zip(products).for_each(|(out, product)| *out += *product);
        }
    }

    /// (Σ_f w_f)²/Σ_f w_f² for the parts w_f of a query's normaliser; NaN if no point was seen or one is not finite.
    pub fn effective_features(&self, row: &LogRow) -> f64 {
        let (mut sum, mut squares) = (0.0, 0.0);
        let known = self.weigh(row, |run, factors| {
            for part in factors.iter().zip(&self.weights[run]).map(|(factor, weight)| factor * weight) {
                sum += part;
                squares += part * part;
            }
        });
        match known {
            Some(_) if self.seen && squares == 0.0 => 0.0,
            Some(_) if self.seen => sum * sum / squares,
            _ => f64::NAN,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sum that is not finite shows in its target however little the query weighs it, and not where the query lacks its feature.
    #[test]
    fn what_is_not_finite_shows_where_there_is_a_feature() {
        let (features, targets) = (70, 20);
        let with = |own: &[(usize, f64)]| {
            let mut row = LogRow::default();
            for f in 0..features {
                let log = own.iter().find(|(place, _)| *place == f).map(|(_, log)| *log);
                row.push(log.unwrap_or_default(), if log.is_some() { 1.0 } else { 0.0 });
            }
            row
        };
        for odd in [f64::NAN, f64::INFINITY] {
            let mut sums = WeightedSums::<f64>::new(features, targets);
            let mut value = [1.0; 20];
            sums.push(&with(&[(0, 0.0)]), &value);
            value[19] = odd;
            sums.push(&with(&[(68, 0.0)]), &value);
            let mut out = [0.0; 20];
            let (scale, normaliser) = sums.query(&with(&[(0, 0.0), (68, -2000.0)]), &mut out);
            assert_eq!((scale, normaliser, &out[..19]), (0.0, 1.0, &[1.0; 19][..]));
            assert!(!out[19].is_finite(), "{out:?}");
            assert_eq!(sums.query(&with(&[(0, 0.0)]), &mut out), (0.0, 1.0));
            assert_eq!(out, [1.0; 20]);
        }
    }
}
