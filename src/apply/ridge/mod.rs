//! Kernel ridge regression: from features, at any number of points, and from Gram matrices.

mod chunk;
mod model;
mod rows;
mod standardisation;
mod statistics;
mod sums;
mod totals;

#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
mod calibration;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
mod classifier;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
mod kernel_ridge;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
mod normal;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
mod spectrum;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
mod training;

#[cfg(feature = "serde")]
mod stored;

pub use model::{Predictor, Ridge};
pub use standardisation::Standardisation;
pub use statistics::RidgeStatistics;

#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
pub use self::{
    classifier::RidgeClassifier,
    kernel_ridge::KernelRidge,
    spectrum::{Criterion, LambdaChoice, RidgeSpectrum, Sample},
};
