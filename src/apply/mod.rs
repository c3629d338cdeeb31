//! Applications of feature maps: regression, attention, sampling, metrics.
//!
//! Kernel regression: [`Smoother`] from features in O((n + t) m), [`ExactSmoother`] from the kernel itself in O(n t),
//! as the reference. Ridge regression, which is more accurate: [`RidgeStatistics`] read points in batches, can be
//! merged, and give a [`Ridge`] for one λ or all of them, and a classifier with probabilities; kernel ridge regression
//! from a Gram matrix, exact or estimated, is the reference. Variances of predictions: [`RidgePosterior`]. Kernel PCA: [`pca`]. Attention in linear time, and exact attention:
//! [`attention`]. Errors of Gram matrices and distances of distributions: [`metrics`]. Classes of a huge softmax, drawn
//! in O(log C) with known probabilities, losses and partition functions from such draws: [`softmax_sampling`]. All of
//! them take any feature map or kernel. What machines exchange to train together: [`reduce`](crate::reduce).

pub mod attention;
mod exact_smoother;
pub mod metrics;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
pub mod pca;
mod ridge;
mod smoother;
pub mod softmax_sampling;

pub use exact_smoother::ExactSmoother;
pub use ridge::*;
pub use smoother::Smoother;

use ndarray::Array2;

use crate::Real;
use crate::error::{Error, Result, check_finite};
use crate::memory::check_memory;
use crate::reduce::{check_targets, check_training};

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
