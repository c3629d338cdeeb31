#![deny(unsafe_code)]
mod error;
pub mod frequency;
pub mod kernel;
mod numeric;
mod real;
mod signed_log;
pub mod theory;
pub use error::{Error, Result};
pub use frequency::rng;
pub use real::Real;
pub use signed_log::SignedLog;
