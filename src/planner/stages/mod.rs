//! How recipes are chosen: candidates, closed forms, pilots, trials, ranks, words.
//!
//! Here belongs what compares recipes with each other, under a budget or for a maximal error.

mod advising;
mod budget;
mod candidates;
mod limits;
mod max_error;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
mod nystroem;
mod pilots;
mod planning;
mod problem;
mod ranking;
mod single;
mod steps;
mod trials;
mod words;
