//! Generalised linear models on features: logistic regression for two or more classes, Poisson regression and the squared hinge.

mod ahead;
mod conjugate;
mod curvature;
mod descent;
mod few_rows;
mod fit;
mod inputs;
mod leave_out;
mod loss;
mod model;
mod newton;
mod posterior;
mod probabilities;
mod quasi_newton;
mod response;
mod sample;
mod search;
mod several;
mod start;
mod step;
mod stream;
mod sums;

#[cfg(feature = "serde")]
mod stored;

pub use fit::GlmFit;
pub use inputs::StandardisedMap;
pub use model::Glm;
pub(super) use probabilities::log_ratios;
pub use stream::GlmStream;
pub use sums::GlmSums;

use super::Ridge;
use curvature::Curvature;
use loss::{GlmLoss, LossTerms, Response};
use step::Step;
