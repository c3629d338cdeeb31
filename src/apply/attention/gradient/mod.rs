//! Gradients of attention with respect to queries, keys, values and parameters of maps.

mod backward;
mod cotangents;
mod exact_gradients;
mod gradients;
mod pair_pulls;
mod pulls;
mod records;

pub(super) use self::cotangents::Cotangents;
pub use self::gradients::Gradients;
pub(super) use self::pulls::{Pulls, Role};
