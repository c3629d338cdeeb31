//! The property tests, in a package of their own so that nothing else waits for what generates their cases.

#[path = "../suite/common.rs"]
mod common;

mod plan;
mod properties;
