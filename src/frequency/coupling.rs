//! [`Coupling`]: how frequencies depend on each other.

use ndarray::Array2;
use rand::Rng;

use super::radii::Radii;
use super::structured::Rotated;
use crate::error::Result;
use crate::theory::BlockLaw;

/// How the frequencies of a map depend on each other.
///
/// A coupling draws one block of mutually dependent rows at a time; [`draw`](super::draw()) puts independent blocks
/// together. It promises that each row on its own has a uniform direction and a radius of the law that it is given,
/// which alone makes every estimate unbiased; [`Hadamard`](super::Hadamard) and [`Givens`](super::Givens) keep that
/// approximately.
pub trait Coupling: std::fmt::Debug + Send + Sync {
    /// The most rows that a block for points in ℝᵈ can hold; 0 if the coupling does not exist there.
    fn capacity(&self, d: usize) -> usize;

    /// Draws one block of `size` rows in ℝᵈ: at least one row, at most the capacity. Radii come before directions.
    ///
    /// # Errors
    /// [`Parameter`](crate::Error::Parameter) if a parameter of the coupling is outside its domain, or the coupling or
    /// the radii do not exist in this dimension.
    fn draw_block(&self, d: usize, size: usize, radii: &dyn Radii, rng: &mut dyn Rng) -> Result<Drawn>;
}

impl<C: Coupling + ?Sized> Coupling for Box<C> {
    fn capacity(&self, d: usize) -> usize {
        (**self).capacity(d)
    }

    fn draw_block(&self, d: usize, size: usize, radii: &dyn Radii, rng: &mut dyn Rng) -> Result<Drawn> {
        (**self).draw_block(d, size, radii, rng)
    }
}

/// A block as it was drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    /// The rows.
    pub rows: Rows,
    /// What is known of their joint law.
    pub law: BlockLaw,
}

/// The rows of a block: written out, or as a product.
#[derive(Clone, Debug, PartialEq)]
pub enum Rows {
    /// A matrix with a frequency in each row.
    Dense(Array2<f64>),
    /// A structured block in the padded dimension N.
    Structured {
        /// N ≥ d.
        padded: usize,
        /// The block.
        block: Rotated,
    },
}
