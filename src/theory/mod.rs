//! Closed forms: the variance of an estimate before anything is drawn.
//!
//! Pure functions of a few scalars of a pair of points ([`Pair`]) and of what is known about the
//! frequencies ([`Law`]). Everything is a logarithm first, since variances leave the range of `f64` at norms of about 13. All values
//! are for the softmax kernel; for the Gaussian kernel subtract ‖x‖² + ‖y‖² from the logarithm. "No closed form" is `None`,
//! never a guess.

mod law;
mod log_space;
mod mse;
mod pair;

pub use law::{Block, Dependence, Law, Radius};
pub use log_space::{ln_1m_exp, ln_add_exp, ln_expm1};
pub use mse::{hyperbolic, positive, trigonometric};
pub use pair::Pair;
