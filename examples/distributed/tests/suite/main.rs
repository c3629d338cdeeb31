//! One program for all tests: the engine is linked once.

mod aggregates;
#[cfg(feature = "cluster")]
mod cluster;
mod columns;
mod common;
mod faults;
mod program;
mod signals;
