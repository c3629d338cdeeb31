//! What is asked: points, kernel, goal, loss and constraints.
//!
//! Here belongs what a user states, its checks, and what the data say before any map is considered.

mod check;
mod constraints;
mod goal;
mod lengthscales;
mod options;
mod planner;
mod points;
mod stated;

pub(crate) use self::check::{check, check_attention, check_stated};
pub(crate) use self::constraints::is_biased;
pub(crate) use self::goal::Goal;
pub use self::goal::Loss;
pub use self::planner::Planner;
pub(crate) use self::points::{HeadTokens, PlannedPoints};
pub(crate) use self::stated::StatedRecipe;
