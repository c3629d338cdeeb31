//! One program for all tests: the engine is linked once.

mod aggregates;
#[cfg(feature = "cluster")]
mod cluster;
mod columns;
mod common;
mod divided;
mod faults;
mod program;
mod scores;
mod signals;
