//! [`Quality`]: how near a proposal is to the softmax.

use ndarray::{ArrayRef2, Axis};

use super::SoftmaxSampler;
use super::partition::dot;
use crate::error::{Error, Result, check_size};
use crate::memory::check_memory;
use crate::numeric::special::ln_sum_exp;
use crate::{Real, progress, threads};

/// The number of logits that a thread computes between two checks for cancellation.
const CLASSES: usize = 1 << 16;

/// How closely the distribution q of draws matches the softmax p, for some points h: a part of a
/// [`ProposalReport`](super::ProposalReport).
///
/// # Definition
/// The effective share of draws is 1/Σᵢ pᵢ²/qᵢ = 1/(1 + χ²), in \[0, 1\]: k draws from q estimate Z as precisely as this share
/// of k would if the terms of the sum were equal. ([`Partition::effective_draws`](super::Partition::effective_draws) estimates
/// it from draws.) The total variation is ½ Σᵢ |pᵢ − qᵢ|, from 0 to 1. Both are exact, over all classes that are present.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Quality {
    /// Whether features are shaped by the points and the classes. If not, they are of the map's own kind.
    pub shaped: bool,
    /// The number of frequencies divided by the map's own number; 0 for uniform draws, which take no frequencies.
    pub factor: usize,
    /// The effective share of draws 1/Σᵢ pᵢ²/qᵢ, for each of n points.
    pub effective_shares: Vec<f64>,
    /// The total variation ½ Σᵢ |pᵢ − qᵢ|, for each of n points.
    pub total_variations: Vec<f64>,
}

impl Quality {
    /// The median effective share over the points; NaN without points.
    pub fn effective_share(&self) -> f64 {
        median(self.effective_shares.clone())
    }

    /// The mean total variation over the points; NaN without points.
    pub fn total_variation(&self) -> f64 {
        self.total_variations.iter().sum::<f64>() / self.total_variations.len() as f64
    }

    /// The number of points where the effective share is less than that of `other`.
    pub fn worse_points(&self, other: &Quality) -> usize {
        let pairs = self.effective_shares.iter().zip(&other.effective_shares);
        pairs.filter(|(own, other)| own < other).count()
    }

    /// Whether the effective share is less than that of `other` at more than half of the points, or the mean total variation is
    /// more.
    pub fn is_worse_than(&self, other: &Quality) -> bool {
        2 * self.worse_points(other) > self.effective_shares.len()
            || self.total_variation() > other.total_variation()
    }

    /// The quality from ln p and ln q of some classes for each point.
    fn of<'a>(factor: usize, points: impl Iterator<Item = (&'a [f64], &'a [f64])>) -> Self {
        let (mut effective_shares, mut total_variations) = (Vec::new(), Vec::new());
        for (p, q) in points {
            // A class whose p² is 0 in `f64` has no share in the sum, even if q is 0.
            let squares = p.iter().zip(q).filter(|(p, _)| **p > -1400.0).map(|(p, q)| 2.0 * p - q);
            effective_shares.push((-ln_sum_exp(&squares.collect::<Vec<_>>())).exp().min(1.0));
            let distance = p.iter().zip(q).map(|(p, q)| (p.exp() - q.exp()).abs()).sum::<f64>();
            total_variations.push((0.5 * distance).min(1.0));
        }
        Quality { shaped: false, factor, effective_shares, total_variations }
    }
}

/// ln p of the classes that are present, and their numbers, for some points.
pub(super) struct Softmaxes {
    pub classes: Vec<usize>,
    /// ln p of these classes for each point.
    pub logs: Vec<Vec<f64>>,
}

impl Softmaxes {
    /// The exact softmax over the class vectors of a sampler at each point. Points are finite, and `rows` are their numbers in
    /// errors. Cost O(n C d), in parallel.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if sizes differ, [`NotFinite`](Error::NotFinite) if logits of a point are not finite,
    /// [`Memory`](Error::Memory) if there is no memory for n × C logits. [`Cancelled`](Error::Cancelled) if a
    /// [watcher](crate::progress::watch) stops it.
    pub fn of<T: Real>(
        sampler: &SoftmaxSampler<T>,
        h: &ArrayRef2<T>,
        rows: &[usize],
        vectors: &ArrayRef2<T>,
    ) -> Result<Self> {
        check_size("the number of class vectors", sampler.classes(), vectors.nrows())?;
        check_size("the number of columns of the class vectors", h.ncols(), vectors.ncols())?;
        check_memory("logits", h.nrows().saturating_mul(sampler.classes()), 2 * size_of::<f64>())?;
        let classes: Vec<usize> = (0..sampler.classes()).filter(|class| sampler.is_present(*class)).collect();
        let of_row = |(row, h): (&usize, ndarray::ArrayView1<'_, T>)| {
            let mut logs = Vec::with_capacity(classes.len());
            for classes in classes.chunks(CLASSES) {
                progress::check()?;
                logs.extend(classes.iter().map(|class| dot(h, vectors.row(*class))));
            }
            if !logs.iter().all(|logit| logit.is_finite()) {
                return Err(Error::NotFinite { what: "the logits of h", row: *row, column: None });
            }
            let log_z = ln_sum_exp(&logs);
            logs.iter_mut().for_each(|log| *log -= log_z);
            Ok(logs)
        };
        let logs = threads::map(rows.iter().zip(h.axis_iter(Axis(0))), of_row);
        let logs = logs.into_iter().collect::<Result<Vec<_>>>()?;
        Ok(Softmaxes { classes, logs })
    }

    /// The quality of draws from a sampler.
    ///
    /// # Errors
    /// The errors of [`SoftmaxSampler::log_probabilities`].
    pub fn quality<T: Real>(&self, sampler: &SoftmaxSampler<T>, h: &ArrayRef2<T>) -> Result<Quality> {
        let of_row = |h: ndarray::ArrayView1<'_, T>| sampler.log_probabilities(&h, &self.classes);
        let q = threads::map(h.axis_iter(Axis(0)), of_row);
        let q = q.into_iter().collect::<Result<Vec<_>>>()?;
        Ok(Quality::of(1, self.logs.iter().map(Vec::as_slice).zip(q.iter().map(Vec::as_slice))))
    }

    /// The quality of uniform draws.
    pub fn quality_of_uniform(&self) -> Quality {
        let q = vec![-(self.classes.len() as f64).ln(); self.classes.len()];
        Quality::of(0, self.logs.iter().map(|p| (p.as_slice(), q.as_slice())))
    }
}

/// The median; NaN without values.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[middle],
        _ => values[middle - 1].midpoint(values[middle]),
    }
}
