//! What attention will cost and err: reports of errors, costs, and choices between linear, windowed and exact attention.

mod auto;
mod choice;
mod costs;
mod headwise;
mod report;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
mod shaping;
mod shrinkage;

pub use self::choice::{AttentionCandidate, AttentionChoice};
pub(crate) use self::costs::{AttentionCosts, ExactPairs};
pub use self::headwise::{
    HeadBudget, HeadCalibration, HeadCandidate, HeadComparison, HeadwiseAttention, HeadwiseState,
};
pub use self::report::{ErrorReport, TokenSample};
pub(crate) use self::report::{Redraws, closed_errors, simulated_errors};
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
pub use self::shaping::AttentionShaping;
