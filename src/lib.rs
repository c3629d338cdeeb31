#![deny(unsafe_code)]
pub mod apply;
mod error;
pub mod frequency;
pub mod kernel;
pub mod map;
mod numeric;
pub mod projection;
mod real;
mod signed_log;
pub mod theory;
pub use error::{Error, Result};
pub use frequency::rng;
pub use map::{Exponential, FeatureMap, Features, Hyperbolic, Positive, Side, Trigonometric};
pub use real::Real;
pub use signed_log::SignedLog;
