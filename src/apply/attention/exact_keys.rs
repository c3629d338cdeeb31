//! [`ExactKeys`]: keys whose weights are taken exactly, beside those that features estimate.

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis};

use super::heads::Job;
use super::output::Sums;
use super::tokens::{Element, Reading};
use crate::Real;
use crate::numeric::{self, Isa};

/// Which keys of a sequence are taken exactly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) enum Choice {
    /// None.
    #[default]
    None,
    /// So many with the largest total weight.
    Heaviest(usize),
    /// Those in these rows, ascending.
    At(Vec<usize>),
}

/// Queries whose exact weights choose the heaviest keys.
const SAMPLE: usize = 64;

/// The exact keys of a sequence.
#[derive(Debug, Default)]
pub(super) struct ExactKeys<T> {
    /// Their rows, ascending.
    rows: Vec<usize>,
    /// √s k of each divided by the squared lengthscale, in `f64`.
    keys: Array2<f64>,
    values: Array2<T>,
    /// The keys that are left to features.
    pub rest: Option<Array1<bool>>,
}

impl<T: Real> ExactKeys<T> {
    /// The keys of a job that are taken exactly. A pair's logit is x·y `inverse`² for points x and y.
    pub fn new<E: Element<T>>(choice: &Choice, reading: &Reading, inverse: f64, job: &Job<'_, E, T>) -> Self {
        let mask = job.mask;
        let seen = |j: usize| mask.as_ref().is_none_or(|mask| mask[j]);
        let mut rows: Vec<usize> = match choice {
            Choice::None => return ExactKeys::default(),
            Choice::At(rows) => rows.iter().copied().filter(|j| *j < job.keys.nrows() && seen(*j)).collect(),
            Choice::Heaviest(count) => heaviest(reading, inverse, job, *count),
        };
        rows.sort_unstable();
        let mut rest = mask.map_or_else(|| Array1::from_elem(job.keys.nrows(), true), |mask| mask.to_owned());
        rows.iter().for_each(|j| rest[*j] = false);
        let keys = scaled(reading, job.keys.select(Axis(0), &rows).view(), inverse * inverse);
        let values = job.values.select(Axis(0), &rows).mapv(E::convert);
        ExactKeys { rows, keys, values, rest: Some(rest) }
    }

    /// Adds to the estimated sums of a query at `point` the exact terms of the keys before row `end`; the scale and the
    /// normaliser of all. Sums of the features come relative to e^`scale`, those of all are written to `out`.
    pub fn combine<U: Real>(
        &self,
        point: &[T],
        end: usize,
        (scale, normaliser, sums): (f64, f64, &[U]),
        out: &mut Vec<f64>,
    ) -> Combined {
        let isa = Isa::best();
        let count = self.rows.partition_point(|row| *row < end);
        let logit = |key: ArrayView1<'_, f64>| numeric::dot(isa, point, key.to_slice().unwrap_or(&[]));
        let logits: Vec<f64> = self.keys.rows().into_iter().take(count).map(logit).collect();
        // An estimate without features has no scale.
        let none = normaliser == 0.0 && sums.iter().all(|sum| *sum == U::zero());
        let estimated = if none { f64::NEG_INFINITY } else { scale };
        let top = logits.iter().copied().fold(estimated, f64::max);
        out.clear();
        if top == f64::NEG_INFINITY || logits.iter().any(|logit| logit.is_nan()) || normaliser.is_nan() {
            let value = if top == f64::NEG_INFINITY { 0.0 } else { f64::NAN };
            out.resize(sums.len(), value);
            return Combined { scale: top, normaliser: value, seen: count > 0 };
        }
        let weight = if estimated == f64::NEG_INFINITY { 0.0 } else { (scale - top).exp() };
        let times = |v: &U| if weight == 0.0 { 0.0 } else { weight * v.widen() };
        out.extend(sums.iter().map(times));
        let mut total = if weight == 0.0 { 0.0 } else { weight * normaliser };
        for (logit, values) in logits.iter().zip(self.values.rows()) {
            let weight = (logit - top).exp();
            total += weight;
            if weight > 0.0 {
                numeric::add_scaled(isa, out, weight, values.to_slice().unwrap_or(&[]));
            }
        }
        Combined { scale: top, normaliser: total, seen: count > 0 }
    }

    /// The logit of a query at `point` and the exact key in row `row`.
    pub fn logit(&self, point: &[T], row: usize) -> Option<f64> {
        let key = self.keys.row(self.rows.binary_search(&row).ok()?);
        Some(point.iter().zip(key).map(|(x, k)| x.widen() * k).sum::<f64>())
    }
}

/// What a query's sums come to.
pub(super) struct Combined {
    pub scale: f64,
    pub normaliser: f64,
    /// Whether an exact key was seen.
    pub seen: bool,
}

impl Combined {
    /// The output, of sums that were combined.
    pub fn sums(self, sums: &mut [f64], seen: bool) -> Sums<'_, f64> {
        Sums { scale: self.scale, normaliser: self.normaliser, sums, seen: seen || self.seen }
    }
}

/// `count` keys with the largest weights in exact attention, summed over a sample of the queries that are spread over all;
/// of equal ones the first.
fn heaviest<T: Real, E: Element<T>>(
    reading: &Reading,
    inverse: f64,
    job: &Job<'_, E, T>,
    count: usize,
) -> Vec<usize> {
    let all: usize = job.members.iter().map(|member| member.queries.nrows()).sum();
    let step = all.div_ceil(SAMPLE).max(1);
    let keys = scaled(reading, job.keys.view(), inverse);
    let (mut totals, mut at) = (vec![0.0; keys.nrows()], 0);
    for member in &job.members {
        let chosen: Vec<usize> =
            (0..member.queries.nrows()).filter(|i| (at + i).is_multiple_of(step)).collect();
        at += member.queries.nrows();
        let queries = scaled(reading, member.queries.select(Axis(0), &chosen).view(), inverse);
        for query in queries.rows() {
            let logits: Vec<f64> = keys.rows().into_iter().map(|key| key.dot(&query)).collect();
            let seen = |j: usize| job.mask.as_ref().is_none_or(|mask| mask[j]) && logits[j].is_finite();
            let top =
                (0..logits.len()).filter(|j| seen(*j)).map(|j| logits[j]).fold(f64::NEG_INFINITY, f64::max);
            let weight = |j: usize| if seen(j) { (logits[j] - top).exp() } else { 0.0 };
            let weights: Vec<f64> = (0..logits.len()).map(weight).collect();
            let total: f64 = weights.iter().sum();
            if total > 0.0 {
                totals.iter_mut().zip(&weights).for_each(|(sum, weight)| *sum += weight / total);
            }
        }
    }
    let mut order: Vec<usize> = (0..totals.len()).filter(|j| totals[*j] > 0.0).collect();
    order.sort_by(|i, j| totals[*j].total_cmp(&totals[*i]).then(i.cmp(j)));
    order.truncate(count);
    order
}

/// The points of tokens times `factor`, in `f64`.
fn scaled<T: Real, E: Element<T>>(reading: &Reading, x: ArrayView2<'_, E>, factor: f64) -> Array2<f64> {
    let mut points: Vec<T> = Vec::new();
    reading.points(x.view(), &mut points);
    let points = points.into_iter().map(|v| factor * v.widen()).collect();
    Array2::from_shape_vec(x.dim(), points).unwrap_or_default()
}
