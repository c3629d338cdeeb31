//! What error to expect of a recipe: by closed forms, or by draws.
//!
//! Here belongs what evaluates one recipe on points, whatever the budget and the other recipes are.

mod attention_loss;
mod closed_forms;
mod draws;
mod expected;
mod groups;
mod pair_errors;
mod pairs;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
mod ridge_loss;
mod task_loss;

pub(crate) use self::closed_forms::{closed, forecast};
pub(crate) use self::draws::{Simulated, simulate};
pub(crate) use self::expected::or_infinite;
pub use self::expected::{Expected, Forecast};
pub(crate) use self::pairs::{Pairs, SIDE};
pub(crate) use self::task_loss::TaskLoss;
