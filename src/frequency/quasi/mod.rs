//! Quasi-Monte-Carlo frequencies: quantiles of points that fill the unit cube evenly.
//!
//! [`Halton`] and [`Sobol`] place m points in (0, 1)ᵈ more evenly than independent points, randomise them so that each
//! is uniform, and take Φ⁻¹ of every coordinate. Estimates are unbiased, as with any coupling. Unlike couplings of
//! directions and radii they are not invariant under rotations: rotating the data changes the variance.
//!
//! (0, 1) is divided into 2⁶⁴ equal cells. A coordinate is the integer index of a cell until Φ⁻¹ is taken at its
//! centre, so that shifts and scrambling are exact and no coordinate is 0 or 1.

mod cells;
mod halton;
mod sobol;
mod with_marginal;

pub(super) use cells::{Net, from_cell};
pub use halton::Halton;
pub use sobol::Sobol;
pub use with_marginal::WithMarginal;
