//! [`Training`]: sums over the training rows, by which given rows are recognised as these, and [`RowPlaces`], the numbers of rows
//! in memory.

use std::collections::HashMap;
use std::hash::Hasher;

use ndarray::ArrayView1;

use super::{RidgeRows, RidgeStatistics};
use crate::Real;
use crate::digest::Digest;
use crate::engine::PointsView;
use crate::error::{Error, Result, check_size};

/// The largest difference of sums over equal rows, relative to the sum of magnitudes. Up to 10⁶ rows, the rounding of sums in
/// another order is far below it. Beyond, it is at most the number of rows times ε.
const TOLERANCE: f64 = 1e-9;

/// The number of rows of positive weight, and sums over them without features.
#[derive(Clone, Debug)]
pub(super) struct Training {
    count: u64,
    /// Σ w y for each target, and for the target 1; then Σ w y² for each target.
    moments: Vec<f64>,
}

impl<T: Real> RidgeStatistics<T> {
    pub(super) fn training(&self) -> Training {
        Training { count: self.sums().present(), moments: self.sums().moments() }
    }
}

impl Training {
    /// The sums over some rows.
    pub fn of<T: Real>(rows: &RidgeRows<'_, T>) -> Self {
        let targets = rows.targets.columns.ncols();
        let of = |target: Option<usize>, squared: bool| moment(rows, target, squared).0;
        let sums = (0..targets).map(|j| of(Some(j), false)).chain([of(None, false)]);
        let moments = sums.chain((0..targets).map(|j| of(Some(j), true))).collect();
        Training { count: present(rows) as u64, moments }
    }

    pub fn rows(&self) -> f64 {
        self.count as f64
    }

    /// Rejects a sample whose rows of positive weight cannot be the rows of the statistics. The sample has as many targets and weights
    /// as rows.
    pub fn check<T: Real>(&self, sample: &RidgeRows<'_, T>) -> Result<()> {
        let rows = usize::try_from(self.count).unwrap_or(usize::MAX);
        check_size(
            "the number of points of positive weight, which leave-one-out takes from the training data,",
            rows,
            present(sample),
        )?;
        let tolerance = TOLERANCE.max(rows as f64 * f64::EPSILON);
        let targets = self.moments.len() / 2;
        // Σ w is compared first: if it differs, all other sums differ.
        let places = [targets].into_iter().chain(0..targets).chain(targets + 1..self.moments.len());
        for (k, known) in places.map(|k| (k, self.moments[k])) {
            let (column, squared, name) = match k {
                k if k < targets => (Some(k), false, "the sum of the targets"),
                k if k == targets => (None, false, "the sum of the weights"),
                k => (Some(k - targets - 1), true, "the sum of the squared targets"),
            };
            let (value, size) = moment(sample, column, squared);
            // NaN and infinity are never near.
            if !(value.is_finite() && (value - known).abs() <= tolerance * size) {
                let domain = "its value over the training data, whose rows leave-one-out predicts";
                return Err(Error::Parameter { name, value, domain });
            }
        }
        Ok(())
    }

    /// Rejects parts that cannot be parts of the statistics.
    pub fn check_parts<T: Real>(&self, parts: &[&RidgeStatistics<T>]) -> Result<()> {
        let rows = parts.iter().fold(0u64, |rows, part| rows.saturating_add(part.sums().present()));
        let places = |rows: u64| usize::try_from(rows).unwrap_or(usize::MAX);
        check_size("the number of rows of all folds, of positive weight,", places(self.count), places(rows))?;
        let targets = self.moments.len() / 2;
        let mut sums = vec![0.0; self.moments.len()];
        for part in parts {
            sums.iter_mut().zip(part.sums().moments()).for_each(|(sum, own)| *sum += own);
        }
        for (k, (value, known)) in sums.iter().zip(&self.moments).enumerate() {
            // By Cauchy's inequality, a sum of targets is at most the root of (sum of weights) · (sum of squares).
            let size = if k < targets {
                (self.moments[targets] * self.moments[targets + 1 + k]).sqrt()
            } else {
                *known
            };
            if !(value.is_finite() && (value - known).abs() <= TOLERANCE * size) {
                let (name, domain) =
                    ("a sum over all folds", "its value over the training data, which the folds divide");
                return Err(Error::Parameter { name, value: *value, domain });
            }
        }
        Ok(())
    }
}

/// The number of rows of positive weight.
fn present<T: Real>(sample: &RidgeRows<'_, T>) -> usize {
    let rows = sample.x.nrows();
    sample.targets.weights().map_or(rows, |weights| weights.iter().filter(|weight| **weight > 0.0).count())
}

/// Σ w y or Σ w y² over the rows of a sample, and the sum of the magnitudes. The target is `target`, or the constant 1.
fn moment<T: Real>(sample: &RidgeRows<'_, T>, target: Option<usize>, squared: bool) -> (f64, f64) {
    let term = |i: usize| {
        let y = target.map_or(1.0, |j| sample.targets.columns[[i, j]].widen());
        sample.weight(i) * y * if squared { y } else { 1.0 }
    };
    (0..sample.x.nrows()).map(term).fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()))
}

/// The places of rows among the training rows, by a hash of each.
#[derive(Clone, Debug)]
pub(super) struct RowPlaces {
    /// The places of equal rows, the last first.
    places: HashMap<u64, Vec<usize>>,
}

impl RowPlaces {
    pub fn of<T: Real>(rows: &RidgeRows<'_, T>) -> Self {
        let mut places: HashMap<u64, Vec<usize>> = HashMap::with_capacity(rows.x.nrows());
        (0..rows.x.nrows()).rev().for_each(|i| places.entry(row_digest(rows, i)).or_default().push(i));
        RowPlaces { places }
    }

    /// The place of each row of a sample; `None` for a row of weight 0. Equal rows take their places in order.
    ///
    /// # Errors
    /// [`Entry`](Error::Entry) with the first row of positive weight that is not among the training rows, or not as often.
    pub fn find<T: Real>(&self, sample: &RidgeRows<'_, T>) -> Result<Vec<Option<usize>>> {
        let mut taken: HashMap<u64, usize> = HashMap::new();
        let place = |i: usize| {
            if sample.weight(i) == 0.0 {
                return Ok(None);
            }
            let digest = row_digest(sample, i);
            let count = taken.entry(digest).or_default();
            *count += 1;
            let places = self.places.get(&digest).map_or(&[][..], Vec::as_slice);
            let place = places.len().checked_sub(*count).and_then(|k| places.get(k).copied());
            let (what, domain) =
                ("the rows of leave-one-out", "rows of the training data, with equal weights");
            place.map(Some).ok_or(Error::Entry { what, row: i, value: sample.weight(i), domain })
        };
        (0..sample.x.nrows()).map(place).collect()
    }
}

/// A hash of a row's point, targets and weight. It does not depend on the layout of points; zeros of either sign are equal.
fn row_digest<T: Real>(rows: &RidgeRows<'_, T>, i: usize) -> u64 {
    let mut digest = point_digest(rows, i);
    digest.write_u64((rows.weight(i) + 0.0).to_bits());
    digest.finish()
}

/// A hash of a row's point and targets.
pub(super) fn point_digest<T: Real>(rows: &RidgeRows<'_, T>, i: usize) -> Digest {
    digest_of(rows.x.view(), rows.targets.columns.row(i), i)
}

/// A hash of a row's point and targets.
pub(super) fn digest_of<T: Real, Y: Real>(x: PointsView<'_, T>, y: ArrayView1<'_, Y>, i: usize) -> Digest {
    let mut digest = Digest::new();
    let mut entry = |k: usize, v: T| {
        if v != T::zero() {
            digest.write_u64(k as u64);
            digest.write_u64(v.widen().to_bits());
        }
    };
    match x {
        PointsView::Dense(x) => x.row(i).iter().enumerate().for_each(|(k, v)| entry(k, *v)),
        PointsView::Sparse(x) => {
            let (columns, values) = x.row(i);
            columns.iter().zip(values).for_each(|(k, v)| entry(k, *v));
        }
        PointsView::Columns(x) => x.columns().enumerate().for_each(|(k, column)| entry(k, column[i])),
    }
    y.iter().for_each(|y| digest.write_u64((y.widen() + 0.0).to_bits()));
    digest
}
