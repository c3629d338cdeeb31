#![deny(unsafe_code)]
mod numeric;
mod real;

pub use real::Real;
