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
//! All take any feature map or kernel. [`reduce`](crate::reduce) has the sums that machines exchange to train together.
//!
//! The features `attention`, `ridge` (all kinds of regression and PCA) and `sampling`, all in `default`, select the
//! applications that are compiled; metrics always are.

#[cfg(feature = "attention")]
pub mod attention;
#[cfg(feature = "ridge")]
mod exact_smoother;
#[cfg(feature = "ridge")]
mod labels;
pub mod metrics;
#[cfg(all(feature = "ridge", any(feature = "faer", feature = "ndarray-linalg")))]
pub mod pca;
#[cfg(feature = "ridge")]
mod ridge;
#[cfg(feature = "ridge")]
mod smoother;
#[cfg(feature = "sampling")]
pub mod softmax_sampling;

#[cfg(feature = "ridge")]
pub use self::{exact_smoother::ExactSmoother, ridge::*, smoother::Smoother};
