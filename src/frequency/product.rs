//! Frequencies with independent coordinates.

use crate::generator::Generator;
use ndarray::Array2;

use super::any_coupling::{AnyCoupling, PlainCoupling};
use super::coupling::{Coupling, Rows};
use super::quasi::from_cell;
use super::shape::check_memory;
use crate::error::Result;
use crate::kernel::{Marginal, Radii, Radius};
use crate::theory::{BlockLaw, Dependence};

/// Independent frequencies with independent coordinates of a [`Marginal`] law, for kernels that are products over
/// coordinates.
///
/// ```
/// use random_features::extend::Radius;
/// use random_features::frequency::Product;
/// let omega = Product(Radius::Cauchy).draw(8, 32, 1)?;
/// assert_eq!(omega.rows().dim(), (32, 8));
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// ωₗ = F⁻¹(uₗ) with the distribution function F of the [`Marginal`] and independent uniform uₗ. The radii that a draw
/// asks for do not apply and are ignored.
///
/// # Variance
/// ½(1 + k(2δ) − 2k(δ)²)/m for trigonometric features: rows are independent
/// ([`ShiftInvariant`](crate::kernel::ShiftInvariant)).
///
/// # Exact where
/// The law is exact, up to the resolution of 2⁶⁴ values of u.
///
/// # Cost
/// O(md) quantiles to draw.
///
/// # References
/// Rahimi and Recht, *Random Features for Large-Scale Kernel Machines*.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Product<M>(pub M);

impl<M: Marginal> Coupling for Product<M> {
    fn capacity(&self, _: usize) -> usize {
        usize::MAX
    }

    fn draw_block(&self, d: usize, size: usize, _: &dyn Radii, rng: &mut Generator) -> Result<Rows> {
        check_memory(d, size)?;
        let rows = Array2::from_shape_simple_fn((size, d), || {
            from_cell(rng.next_u64(), |u| self.0.lower_quantile(u))
        });
        Ok(Rows::Dense(rows))
    }

    fn block_law(&self, _: usize, size: usize, _: Radius) -> BlockLaw {
        BlockLaw::new(size, Dependence::Independent, self.0.law())
    }

    fn recipe(&self) -> Option<AnyCoupling> {
        let law = Some(self.0.law()).filter(|law| law.is_named())?;
        Some(PlainCoupling::Product(law).into())
    }
}
