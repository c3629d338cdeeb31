//! Applications of feature maps: regression, attention, sampling, metrics.
//!
//! - Ridge regression: [`RidgeSearch`] fits data in memory and chooses the lengthscale and λ. [`RidgeStatistics`] read points in
//!   batches, on several machines, and give a [`Ridge`]. [`RidgeClassifier`] gives probabilities, and [`RidgePosterior`]
//!   intervals. [`KernelRidge`], the reference, solves with an exact or estimated Gram matrix.
//! - Generalised linear models: [`Glm`] for classes with probabilities (logistic regression), for counts, and for the squared
//!   hinge. [`GlmSums`] fit rows on several machines, and [`GlmStream`] is updated by batches.
//! - Kernel regression, which is simpler and less accurate: [`Smoother`] from features in O((n + k) m) for n rows and k
//!   predictions, and [`ExactSmoother`] from the kernel itself in O(n k), the reference.
//! - Kernel PCA: [`pca`].
//! - Attention in linear time, and exact attention: [`attention`].
//! - Classes of a huge softmax, drawn in a time that grows with log C, with known probabilities, with losses and partition
//!   functions from such draws: [`softmax_sampling`].
//! - Errors of Gram matrices and distances of distributions: [`metrics`].
//!
//! The features `attention`, `regression` (with PCA), `sampling` and `metrics`, all in `default`, say which of these applications are
//! compiled.

#[cfg(feature = "attention")]
pub mod attention;
#[cfg(feature = "regression")]
mod exact_smoother;
#[cfg(all(feature = "regression", any(feature = "faer", feature = "ndarray-linalg")))]
mod glm;
#[cfg(feature = "metrics")]
pub mod metrics;
#[cfg(all(feature = "regression", any(feature = "faer", feature = "ndarray-linalg")))]
pub mod pca;
#[cfg(feature = "regression")]
pub(crate) mod ridge;
#[cfg(feature = "regression")]
mod smoother;
#[cfg(feature = "sampling")]
pub mod softmax_sampling;

#[cfg(all(feature = "regression", any(feature = "faer", feature = "ndarray-linalg")))]
pub use self::glm::{Glm, GlmFit, GlmStream, GlmSums, StandardisedMap};
#[cfg(feature = "regression")]
pub use self::{exact_smoother::ExactSmoother, ridge::*, smoother::Smoother};
