//! Storage: what identifies data, keeps numbers to the bit, names variants, seals results and numbers the rows that a state holds.

pub(crate) mod digest;
#[cfg(feature = "serde")]
pub(crate) mod exact;
pub(crate) mod rows;
#[cfg(feature = "serde")]
pub(crate) mod sealed;
pub(crate) mod tagged;
