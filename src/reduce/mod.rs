//! Sums over features that merge: what is left of many points when their features are not kept.
//!
//! [`KernelSums`] are those of [kernel regression](crate::apply::Smoother), [`GramSums`] those of [ridge
//! regression](crate::apply::RidgeStatistics), with its posteriors, and of [PCA](crate::apply::pca). Their examples have two
//! machines and a coordinator.
//!
//! # What travels
//! Sums know the identity of the map whose features they add up, and which rows of the data they hold, but not the map: a
//! machine sends numbers that depend on its rows, and no frequencies. Two sums are added where both are of one map and no
//! row is in both; anything else is an error. They are the same after they are stored (feature `serde`); `GramSums` have the same
//! bits in whatever order they are merged, `KernelSums` agree to rounding.
//!
//! `KernelSums` and `GramSums` come with the feature `ridge`, which is in `default`; without it this module has nothing public.

#[cfg(feature = "ridge")]
pub(crate) mod gram;
#[cfg(feature = "ridge")]
mod kernel;
#[cfg(feature = "ridge")]
mod training;
mod weighted;

#[cfg(feature = "ridge")]
pub use self::{gram::GramSums, kernel::KernelSums};
#[cfg(feature = "ridge")]
pub(crate) use self::{
    gram::{GramIntake, ROWS},
    training::{check_targets, check_training, check_weights},
};
#[cfg(all(feature = "ridge", feature = "serde"))]
pub(crate) use gram::StoredGramIntake;
#[cfg(all(feature = "ridge", any(feature = "faer", feature = "ndarray-linalg")))]
pub(crate) use gram::too_large;
pub(crate) use weighted::{
    Applied, LogRow, Precision, Prepared, RunBuffers, RunSums, Span, WeightedSums, block_scales,
    exponentiate, largest, least, limit,
};
