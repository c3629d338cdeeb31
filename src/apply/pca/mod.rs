//! Kernel PCA from features: [`PcaStatistics`] read points in batches and merge, [`KernelPca`] projects points.
//!
//! Kernel PCA finds the directions, in the space of a kernel, in which points vary most. Its cost is that of an
//! eigendecomposition of the n × n Gram matrix. With D random features it is PCA of the features, in O(n D² + D³) and with
//! memory that does not grow with n. Ridge statistics hold these sums too:
//! [`RidgeStatistics::pca`](super::RidgeStatistics::pca).

mod model;
mod points;
mod statistics;
#[cfg(feature = "serde")]
mod stored;

pub use model::KernelPca;
pub use statistics::PcaStatistics;
