//! Sums over features that merge, so that several machines share one regression: what is left of many points when their
//! features are not kept.
//!
//! Three words: `sums()` and `into_sums()` give what travels, `of_sums` makes statistics of sums that arrive with their map, and
//! `merge` adds two of a kind (`merge_sums` adds sums to statistics).
//!
//! [`KernelSums`] serve [kernel regression](crate::apply::Smoother); [`GramSums`] serve [ridge
//! regression](crate::apply::RidgeStatistics), with its posteriors, and [PCA](crate::apply::pca). Their examples have two
//! machines and a coordinator.
//!
//! # What travels
//! Sums know the identity of the map whose features they add up, and which rows of the data they hold, but not the map: a
//! machine sends numbers that depend on its rows, and no frequencies. Two sums are added where both are of one map and no
//! row is in both; anything else is an error. Storing them (feature `serde`) changes nothing. `GramSums` have the same
//! bits in whatever order they are merged, `KernelSums` agree to rounding.
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
    training::{check_points, check_precisions, check_targets, check_training, check_weights},
    warning::RidgeWarning,
};
#[cfg(all(feature = "regression", feature = "serde"))]
pub(crate) use gram::StoredGramIntake;
#[cfg(all(feature = "regression", any(feature = "faer", feature = "ndarray-linalg")))]
pub(crate) use gram::{LinearisedRows, too_large};
pub(crate) use weighted::{
    Applied, LogRow, Precision, Prepared, RunBuffers, RunSums, Span, WeightedSums, block_scales,
    exponentiate, largest, least, limit,
};
