//! [`Coupling`]: how frequencies depend on each other.

use crate::generator::Generator;
use ndarray::Array2;

use super::any_coupling::AnyCoupling;
use super::structured::Rotated;
use crate::error::Result;
use crate::kernel::{Radii, Radius};
use crate::theory::BlockLaw;

/// How the frequencies of a map depend on each other.
///
/// ```
/// use random_features::Positive;
/// use random_features::frequency::{Orthogonal, Simplex};
/// // m = 256 rows in ℝ⁶⁴ from the seed 42.
/// let omega = Orthogonal.draw(64, 256, 42)?;
/// let map = Positive.softmax::<f32>(omega)?;
/// let first = Simplex::default().draw(8, 16, 1)?;
/// assert_ne!(first, Simplex::default().draw(8, 16, 2)?);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// A coupling draws one block of dependent rows; a draw concatenates independent blocks. Each single
/// row must have a uniform direction and a radius of the requested law, which is sufficient for every estimate to be
/// unbiased. [`Hadamard`](super::Hadamard) and [`Givens`](super::Givens) satisfy this only approximately.
///
/// # Implementing a coupling
/// Two methods are required: the capacity of a block, and how to draw one. In this example rows come in triples that share
/// a radius, with the directions of another coupling.
///
/// ```
/// use random_features::Result;
/// use random_features::extend::Generator;
/// use random_features::extend::Radii;
/// use random_features::extend::{Coupling, Rows};
/// use random_features::frequency::Orthogonal;
/// use random_features::kernel::Softmax;
/// use random_features::ndarray::Array2;
///
/// #[derive(Debug)]
/// struct Triples;
///
/// impl Coupling for Triples {
///     fn capacity(&self, d: usize) -> usize {
///         d.min(3)
///     }
///
///     fn draw_block(
///         &self,
///         d: usize,
///         size: usize,
///         radii: &dyn Radii,
///         rng: &mut Generator,
///     ) -> Result<Rows> {
///         let radius = radii.draw(d, 1, rng)?[0];
///         let mut rows: Array2<f64> =
///             Orthogonal.draw(d, size, rng.next_u64())?.rows().into_owned();
///         for mut row in rows.rows_mut() {
///             let norm = row.dot(&row).sqrt();
///             row *= radius / norm;
///         }
///         Ok(Rows::Dense(rows))
///     }
/// }
///
/// let omega = Softmax::default().draw(&Triples, 5, 7, 1)?;
/// let norms = omega.squared_norms();
/// assert!(
///     (norms[0] - norms[2]).abs() < 1e-12
///         && (norms[0] - norms[3]).abs() > 1e-12
/// );
/// # Ok::<(), random_features::Error>(())
/// ```
/// A third method, [`block_law`](Coupling::block_law), states how the rows of a block depend on each other, from which
/// closed forms of the variance follow; these triples have none. Frequencies of your own coupling have no named draw: they
/// are stored and identified by their numbers. Its parameters must show in the `Debug` text, from which the
/// stream follows.
///
/// `testing::check_unbiased` tests whether maps on the coupling are unbiased.
pub trait Coupling: std::fmt::Debug + Send + Sync {
    /// The most rows that a block for points in ℝᵈ can hold; 0 if the coupling does not exist there.
    fn capacity(&self, d: usize) -> usize;

    /// Draws one block of `size` rows in ℝᵈ, from 1 to the capacity. Radii are drawn before directions.
    ///
    /// # Errors
    /// [`Parameter`](crate::Error::Parameter) if a parameter of the coupling is outside its domain, or the coupling or
    /// the radii do not exist in this dimension.
    fn draw_block(&self, d: usize, size: usize, radii: &dyn Radii, rng: &mut Generator) -> Result<Rows>;

    /// The joint law of a block of `size` rows in ℝᵈ whose radii have the law `radius`, as far as it is known. The law of a
    /// draw follows from it.
    fn block_law(&self, _d: usize, size: usize, radius: Radius) -> BlockLaw {
        BlockLaw::unknown(size, radius)
    }

    /// The dimension to which points in ℝᵈ are padded: N of [structured](Rows::Structured) rows, d for dense ones.
    fn padded_dim(&self, d: usize) -> usize {
        d
    }

    /// The coupling as plain data; `None` for one of your own.
    fn recipe(&self) -> Option<AnyCoupling> {
        None
    }

    /// The law of the radii of a draw that asks for the law `asked`: `asked`, unless the coupling has
    /// radii of its own.
    fn radius(&self, asked: Radius) -> Radius {
        asked
    }
}

macro_rules! pointers {
    ($($Pointer:ty),*) => {$(
        impl<C: Coupling + ?Sized> Coupling for $Pointer {
            fn capacity(&self, d: usize) -> usize {
                (**self).capacity(d)
            }

            fn draw_block(&self, d: usize, size: usize, radii: &dyn Radii, rng: &mut Generator) -> Result<Rows> {
                (**self).draw_block(d, size, radii, rng)
            }

            fn block_law(&self, d: usize, size: usize, radius: Radius) -> BlockLaw {
                (**self).block_law(d, size, radius)
            }

            fn padded_dim(&self, d: usize) -> usize {
                (**self).padded_dim(d)
            }

            fn recipe(&self) -> Option<AnyCoupling> {
                (**self).recipe()
            }

            fn radius(&self, asked: Radius) -> Radius {
                (**self).radius(asked)
            }
        }
    )*};
}

pointers!(&C, Box<C>, std::sync::Arc<C>);

/// The rows of a block: a matrix, or a product of factors.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Rows {
    /// A matrix with a frequency in each row.
    Dense(Array2<f64>),
    /// A structured block in the padded dimension N.
    Structured {
        /// N ≥ d, the dimension to which points are padded.
        padded: usize,
        /// The factors and the radii of the block.
        block: Rotated,
    },
}
