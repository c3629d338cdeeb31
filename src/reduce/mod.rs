//! Sums over the features of many points, without the features themselves. Sums merge, so that several machines share one
//! regression.
//!
//! `sums()` and `into_sums()` of statistics return sums without the map, which can be stored and sent. `of_sums` makes statistics
//! from such sums and their map. `merge` adds two objects of one type, and `merge_sums` adds sums to statistics.
//!
//! [`KernelSums`] serve [kernel regression](crate::apply::Smoother). [`GramSums`] serve [ridge
//! regression](crate::apply::RidgeStatistics), with its posteriors, and [PCA](crate::apply::pca). The examples of both have two
//! machines and a coordinator.
//!
//! # What machines exchange
//! Sums hold the identity of their map and the numbers of their rows, but not the map. A machine thus sends numbers
//! that depend on its rows, and no frequencies. Two sums may differ in their rows alone. If their maps or numbers of
//! targets differ, or standardisations of `GramSums`, merging is the error [`Merge`](crate::Error::Merge). If they have
//! a row in common, it is the error [`Row`](crate::Error::Row). Rows are numbered from 0 on: `with_first_row(r)`
//! numbers the rows of a part from r on. Storing sums (feature `serde`) does not change them. `GramSums` have the same
//! bits in whatever order they are merged, and the bits of one pass if parts begin at multiples of 4,096. `KernelSums`
//! agree to rounding.
//!
//! `KernelSums` and `GramSums` come with the feature `regression`, which is in `default`; without it this module has nothing public.

#[cfg(feature = "regression")]
pub(crate) mod gram;
#[cfg(feature = "regression")]
mod kernel;
#[cfg(feature = "regression")]
mod training;
#[cfg(feature = "regression")]
pub(crate) mod warning;
mod weighted;

#[cfg(feature = "regression")]
pub use self::{gram::GramSums, kernel::KernelSums};
#[cfg(feature = "regression")]
pub(crate) use self::{
    gram::{GramIntake, ROWS},
    training::{
        check_points, check_precisions, check_targets, check_training, check_weights, check_weights_of,
    },
    warning::RidgeWarning,
};
#[cfg(all(feature = "regression", feature = "serde"))]
pub(crate) use gram::StoredGramIntake;
#[cfg(all(feature = "regression", any(feature = "faer", feature = "ndarray-linalg")))]
pub(crate) use gram::{LARGEST_SUMMAND, LEAST_SUMMAND, LinearisedRows, size_of_linearised, too_large};
pub(crate) use weighted::{
    Applied, LogRow, Precision, Prepared, RunBuffers, RunSums, Span, WeightedSums, block_scales,
    exponentiate, least, limit,
};
