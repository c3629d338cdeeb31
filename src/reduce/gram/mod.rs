//! Sums of products of features for ridge regression and PCA: [`GramSums`], and [`GramIntake`], which adds rows to them with a
//! map.

mod chunk;
mod counts;
mod intake;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
mod linearised;
mod normal;
mod ranges;
mod sums;
mod totals;
mod update;

#[cfg(feature = "serde")]
mod stored;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
mod values;

pub use sums::GramSums;

#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
pub(crate) use chunk::LinearisedRows;
pub(crate) use chunk::ROWS;
pub(crate) use intake::GramIntake;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
pub(crate) use linearised::size_of_linearised;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
pub(crate) use normal::too_large;
#[cfg(feature = "serde")]
pub(crate) use stored::StoredGramIntake;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
pub(crate) use totals::{LARGEST as LARGEST_SUMMAND, LEAST as LEAST_SUMMAND};

use crate::data::standardisation::Standardisation;
