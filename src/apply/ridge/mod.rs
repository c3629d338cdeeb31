//! Kernel ridge regression: from features, at any number of points, and from Gram matrices.

mod buffered;
mod chunk;
mod intake;
mod model;
mod predictor;
mod ranges;
mod room;
mod standardisation;
mod statistics;
mod sums;
mod totals;

#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
mod fit;
#[cfg(feature = "serde")]
mod stored;

#[cfg(all(feature = "serde", any(feature = "faer", feature = "ndarray-linalg")))]
pub(super) use stored::StoredRidgeStatistics;

pub use buffered::BufferedRidge;
pub use model::Ridge;
pub use predictor::Predictor;
pub use ranges::ScaleWarning;
pub use room::RidgeBytes;
pub use standardisation::Standardisation;
pub use statistics::RidgeStatistics;

#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
pub use fit::*;
