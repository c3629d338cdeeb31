//! Kernel ridge regression from features, for any number of points, and from Gram matrices.

mod buffered;
mod model;
mod predictor;
mod room;
mod statistics;

#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
pub(crate) mod fit;
#[cfg(feature = "serde")]
mod stored;

pub use crate::data::standardisation::Standardisation;
pub use crate::reduce::warning::RidgeWarning;
pub use buffered::BufferedRidge;
pub use model::Ridge;
pub use predictor::Predictor;
pub use statistics::RidgeStatistics;

#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
pub use fit::*;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
pub(super) use fit::{
    CentredRows, Normal, RowAxes, block_of, check_parts, folds_of, labels_of, repeated_rows, rotation,
    symmetric_products,
};
