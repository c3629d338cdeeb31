//! Kernel PCA from features: [`PcaStatistics`] read points in batches and merge, [`KernelPca`] projects points.
//!
//! Kernel PCA finds the directions, in the space of a kernel, in which points vary most. The exact method takes an
//! eigendecomposition of the n × n Gram matrix. With D random features it becomes PCA of the features, which takes O(n D² + D³)
//! time and memory that does not grow with n. Ridge statistics hold the same sums:
//! [`RidgeStatistics::pca`](super::RidgeStatistics::pca).

mod model;
mod points;
mod statistics;
#[cfg(feature = "serde")]
mod stored;

pub use model::KernelPca;
pub use statistics::PcaStatistics;
