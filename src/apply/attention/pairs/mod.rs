//! Pairs of queries and keys with exact weights: blocks of packed keys, neighbours, exact keys, and exact attention, which has no other
//! pairs.

mod blocks;
mod exact_attention;
mod exact_keys;
mod heaviest;
mod window;

pub(super) use self::blocks::{ExactRun, KeyBlock, See, SeenPlaces};
pub use self::exact_attention::ExactAttention;
pub(super) use self::exact_attention::{blocks, check_packed};
#[cfg(feature = "serde")]
pub(super) use self::exact_keys::stored::StoredExactKeys;
pub(super) use self::exact_keys::{ExactKeys, KeySplit};
pub(super) use self::heaviest::{finite_softmax, heaviest};
pub(super) use self::window::{Neighbours, Ring};
