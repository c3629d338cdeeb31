//! The operation, the layer and the cache beside candle's own operations.

mod cache;
mod common;
mod errors;
mod gradients;
mod half;
mod layer;
mod layouts;
