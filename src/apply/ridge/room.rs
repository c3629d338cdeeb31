//! [`RidgeBytes`]: the memory that a regression takes, before there is any data.

use crate::Real;
use crate::error::Result;
use crate::map::Map;
use crate::once::once;
use crate::reduce::{GramIntake, GramSums, ROWS};

/// The memory that a ridge regression takes, in bytes: what statistics hold, and the peak of each step beside them. It follows
/// from the map and the number of targets, and does not depend on the number of rows. Approximate: some MB that threads need
/// for themselves are left out.
///
/// # Example
/// ```
/// use random_features::apply::{RidgeBytes, RidgeStatistics};
/// use random_features::frequency::Orthogonal;
/// use random_features::{Map, Trigonometric};
/// let map: Map<f32> = Trigonometric.gaussian(Orthogonal.draw(30, 1024, 1)?, 5.0)?;
/// let bytes = RidgeBytes::of(&map, 1)?;
/// assert_eq!(bytes.statistics >> 20, 35);
/// assert_eq!(bytes.spectrum >> 20, 224);
/// let statistics = RidgeStatistics::new(map, 1)?;
/// # Ok::<(), random_features::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RidgeBytes {
    /// The bytes that statistics hold.
    pub statistics: usize,
    /// The peak of an update of 4096 rows or more: two copies of the features of a chunk, and a copy of the statistics to which
    /// chunks are added.
    pub update: usize,
    /// The peak of [`solve`](super::RidgeStatistics::solve): the normal equations, their factor, and memory of the backend.
    pub solve: usize,
    /// The peak of [`spectrum`](super::RidgeStatistics::spectrum): the normal equations, their eigenvectors, and memory of the
    /// backend.
    pub spectrum: usize,
}

impl RidgeBytes {
    /// The bytes of a regression of so many targets on the features of a map; 0 targets for [kernel PCA](super::super::pca).
    ///
    /// # Errors
    /// [`Unsupported`](crate::Error::Unsupported) if the map is not symmetric, [`Parameter`](crate::Error::Parameter) if the sums
    /// are too large to be addressed.
    #[inline(never)]
    pub fn of<T: Real>(map: &Map<T>, targets: usize) -> Result<Self> {
        GramIntake::check(map, targets)?;
        let width = map.feature_dim();
        let matrix = width.saturating_mul(width).saturating_mul(size_of::<f64>());
        let features = width.saturating_mul(ROWS as usize).saturating_mul(size_of::<T>());
        let statistics = GramSums::<T>::bytes_of(width, targets);
        Ok(RidgeBytes {
            statistics,
            update: features.saturating_mul(2).saturating_add(statistics),
            solve: matrix.saturating_mul(3),
            spectrum: matrix.saturating_mul(7),
        })
    }
}

once!(RidgeBytes::of::<T>);
