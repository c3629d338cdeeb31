//! Applications of feature maps: regression, attention, sampling, metrics.
//!
//! Kernel regression: [`Smoother`] from features in O((n + t) m), [`ExactSmoother`] from the kernel itself in O(n t),
//! as the reference; [`KernelSums`] are what machines exchange to train a smoother together. Ridge regression, which is more accurate: [`RidgeStatistics`] read points in batches, can be
//! merged, and give a [`Ridge`] for one λ or all of them, and a classifier with probabilities; kernel ridge regression
//! from a Gram matrix, exact or estimated, is the reference. Variances of predictions: [`RidgePosterior`]. Kernel PCA: [`pca`]. Attention in linear time, and exact attention:
//! [`attention`]. Errors of Gram matrices and distances of distributions: [`metrics`]. Classes of a huge softmax, drawn
//! in O(log C) with known probabilities, losses and partition functions from such draws: [`softmax_sampling`]. All of
//! them take any feature map or kernel.

pub mod attention;
mod exact_smoother;
mod kernel_sums;
pub mod metrics;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
pub mod pca;
mod ridge;
mod smoother;
pub mod softmax_sampling;

pub use exact_smoother::ExactSmoother;
pub use kernel_sums::KernelSums;
pub use ridge::*;
pub use smoother::Smoother;

use ndarray::{Array2, ArrayRef2};

use crate::Real;
use crate::engine::PointsView;
use crate::error::{Error, Result, check_size};
use crate::memory::check_memory;

/// Checks training points in ℝᵈ and their targets, of which each point has `count`.
fn check_training<T: Real>(
    x: PointsView<'_, T>,
    d: usize,
    targets: &ArrayRef2<T>,
    count: usize,
) -> Result<()> {
    check_size("the number of columns of x", d, x.ncols())?;
    check_size("the number of rows of targets", x.nrows(), targets.nrows())?;
    check_size("the number of columns of targets", count, targets.ncols())?;
    match x.first_not_finite() {
        Some(row) => Err(Error::NotFinite { what: "x", row }),
        None => check_finite("the targets", targets),
    }
}

/// Rejects data that is not finite.
fn check_finite<T: Real>(what: &'static str, x: &ArrayRef2<T>) -> Result<()> {
    match x.rows().into_iter().position(|row| row.iter().any(|v| !v.is_finite())) {
        None => Ok(()),
        Some(row) => Err(Error::NotFinite { what, row }),
    }
}

/// Checks that a matrix of targets × `width` can exist.
fn check_targets(targets: usize, width: usize) -> Result<()> {
    let most = isize::MAX as usize / size_of::<f64>();
    let fits = |size: usize| size <= most;
    if targets > 0 && targets.checked_add(1).and_then(|rows| rows.checked_mul(width.max(1))).is_some_and(fits)
    {
        return Ok(());
    }
    let domain = "at least 1 and small enough for their sums to be addressed";
    Err(Error::Parameter { name: "the number of targets", value: targets as f64, domain })
}

/// Labels as indicator rows: n × classes.
fn one_hot<T: Real>(labels: &[usize], classes: usize) -> Result<Array2<T>> {
    check_memory("rows of indicators", labels.len(), classes.saturating_mul(size_of::<T>()))?;
    let mut targets = Array2::zeros((labels.len(), classes));
    for (i, (mut row, &label)) in targets.rows_mut().into_iter().zip(labels).enumerate() {
        let domain = "below the number of classes";
        let wrong = Error::Entry { what: "the labels", row: i, value: label as f64, domain };
        *row.get_mut(label).ok_or(wrong)? = T::one();
    }
    Ok(targets)
}

/// The column of the largest entry of each row; the first of equals.
fn largest_columns(scores: &Array2<f64>) -> Result<Vec<usize>> {
    check_finite("x", scores)?;
    let largest = |row: ndarray::ArrayView1<'_, f64>| {
        let better = |best: usize, (j, v): (usize, &f64)| if *v > row[best] { j } else { best };
        row.indexed_iter().fold(0, better)
    };
    Ok(scores.rows().into_iter().map(largest).collect())
}
