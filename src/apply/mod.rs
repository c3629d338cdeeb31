//! Applications of feature maps: regression, attention, sampling, metrics.
//!
//! - Kernel regression: [`Smoother`] from features in O((n + t) m); [`ExactSmoother`] from the kernel itself in O(n t), the
//!   reference.
//! - Ridge regression, which is more accurate: [`RidgeStatistics`] read points in batches, can be merged, and give a [`Ridge`]
//!   for one λ or for all λ, and a classifier with probabilities. [`RidgePosterior`] has variances of predictions. Kernel ridge
//!   regression from a Gram matrix, exact or estimated, is the reference.
//! - Kernel PCA: [`pca`].
//! - Attention in linear time, and exact attention: [`attention`].
//! - Classes of a huge softmax, drawn in O(log C) with known probabilities, with losses and partition functions from such
//!   draws: [`softmax_sampling`].
//! - Errors of Gram matrices and distances of distributions: [`metrics`].
//!
//! The features `attention`, `regression` (with PCA), `sampling` and `metrics`, all in `default`, say which of these applications are
//! compiled.

#[cfg(feature = "attention")]
pub mod attention;
#[cfg(feature = "regression")]
mod exact_smoother;
#[cfg(feature = "regression")]
mod labels;
#[cfg(feature = "metrics")]
pub mod metrics;
#[cfg(all(feature = "regression", any(feature = "faer", feature = "ndarray-linalg")))]
pub mod pca;
#[cfg(feature = "regression")]
mod ridge;
#[cfg(feature = "regression")]
mod smoother;
#[cfg(feature = "sampling")]
pub mod softmax_sampling;

#[cfg(feature = "regression")]
pub use self::{exact_smoother::ExactSmoother, ridge::*, smoother::Smoother};
