//! The property tests.

#[path = "../suite/common.rs"]
mod common;

mod plan;
mod properties;
