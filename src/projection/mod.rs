//! Projections ⟨ωⱼ, x⟩ of a tile of points, and the lifts that turn them into features.
//!
//! The two hot loops of every exponential map. A [`Projection`] holds the frequencies packed once for the product kernel, or
//! as the factors of a structured product, and writes a tile of exponents; a [`Lift`] replaces each row of exponents by
//! feature values in place, while it is in cache. Below stand the vectorised loops and the frequencies; above stand the maps,
//! which add row terms and constants.
//!
//! The loops are compiled for AVX-512, for AVX2 with fused multiply-add and for what the target guarantees, and chosen once at
//! run time. Sums of a product stay in registers; tiles stay in the second cache until they are lifted; results of more than
//! 8 MiB are written past the caches. Exponentials that would be denormal numbers become 0, since processors take ten times as
//! long for those.
//!
#![doc = include_str!("../doc/growth.md")]

mod lift;
mod linear;
mod structured;
mod tile;

pub use lift::Lift;
pub use linear::{Method, Projection};
pub use tile::{Scratch, Tile};
