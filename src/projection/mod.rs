//! Projections ⟨ωⱼ, x⟩ of a tile of points, and the lifts that turn them into features.
//!
//! The two hot loops of every exponential map. A [`Projection`] holds the frequencies packed once for the
//! product kernel, or as the factors of a structured product, and writes a tile of exponents; a [`Lift`] replaces each row of exponents by feature values
//! in place, while it is in cache. Below stand the vectorised loops and the frequencies; above stand the
//! maps, which add row terms and constants.

mod lift;
mod linear;
mod structured;
mod tile;

pub use lift::Lift;
pub use linear::{Method, Projection};
pub use tile::{Scratch, Tile};
