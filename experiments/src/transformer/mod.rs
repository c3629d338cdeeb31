//! A transformer of characters, what it learns from, and its training.

pub mod checkpoint;
pub mod generate;
pub mod layers;
pub mod lists;
pub mod mechanism;
pub mod methods;
pub mod model;
pub mod moved;
pub mod optimiser;
pub mod shape;
pub mod task;
#[cfg(test)]
mod tests;
pub mod text;
pub mod train;
