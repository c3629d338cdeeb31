#![doc = include_str!("../README.md")]
//!
//! # Items
//! [`LinearAttention`] is a custom operation on tensors \[batch, heads, length, dim\], with gradients;
//! [`LinearSelfAttention`] is the layer around it: [`Projections`] before and after, [`Cache`] for decoding token by token.
//! Tensors of any strides are read where they lie, without a copy, and nothing of the size length² is ever made.
//! [`naive`] is the same attention out of candle's own operations, against which this crate is tested.

mod attention;
mod cache;
mod layer;
pub mod naive;
mod precision;
mod views;

pub use attention::LinearAttention;
pub use cache::Cache;
pub use layer::{LinearSelfAttention, Projections};
pub use precision::Precision;
