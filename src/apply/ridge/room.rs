//! The memory that a regression takes, before there is any data.

use super::RidgeStatistics;
use crate::Real;
use crate::error::Result;
use crate::map::Map;
use crate::once::once;
use crate::reduce::{GramIntake, GramSums, ROWS};

impl<T: Real> RidgeStatistics<T> {
    /// Returns the memory that a regression of `targets` targets on the features of a map takes, in bytes. The first
    /// number is what statistics hold. The other three are the peaks in addition to the first: of an update, of
    /// [`solve`](RidgeStatistics::solve) and of [`spectrum`](RidgeStatistics::spectrum). The numbers are approximate,
    /// since some MB that threads use are left out.
    ///
    /// ```
    /// use random_features::apply::RidgeStatistics;
    /// use random_features::frequency::Orthogonal;
    /// use random_features::{Map, Trigonometric};
    /// let map: Map<f32> =
    ///     Trigonometric.gaussian(Orthogonal.draw(30, 1024, 1)?, 5.0)?;
    /// let [held, update, solve, spectrum] = RidgeStatistics::bytes(&map, 1)?;
    /// assert_eq!((held >> 20, spectrum >> 20), (35, 224));
    /// # assert!(update > held && solve < spectrum);
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// The memory does not depend on the number of rows. The peak of an update is given for 4096 rows or more. It consists of two
    /// copies of the features of a chunk, and a copy of the statistics to which chunks are added. The other peaks are the normal
    /// equations, their factor or their eigenvectors, and the memory of the backend. [Kernel PCA](super::super::pca) has 0
    /// targets.
    ///
    /// # Errors
    /// [`Unsupported`](crate::Error::Unsupported) if the map is not symmetric, [`Parameter`](crate::Error::Parameter) if the sums
    /// are too large to be addressed.
    #[inline(never)]
    pub fn bytes(map: &Map<T>, targets: usize) -> Result<[usize; 4]> {
        GramIntake::check(map, targets)?;
        let width = map.feature_dim();
        let matrix = width.saturating_mul(width).saturating_mul(size_of::<f64>());
        let features = width.saturating_mul(ROWS as usize).saturating_mul(size_of::<T>());
        let held = GramSums::<T>::bytes_of(width, targets);
        let update = features.saturating_mul(2).saturating_add(held);
        Ok([held, update, matrix.saturating_mul(3), matrix.saturating_mul(7)])
    }
}

once!(RidgeStatistics::<T>::bytes);
