//! Projections ⟨ωⱼ, x⟩ of a tile of points: by a packed matrix, or by the factors of a structured product.

mod linear;
mod structured;

pub use linear::{Method, Projection};
pub(crate) use linear::{givens_cost, hadamard_cost};
