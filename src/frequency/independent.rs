//! Independent frequencies.

use crate::generator::Generator;
use ndarray::Array2;

use super::any_coupling::AnyCoupling;
use super::coupling::{Coupling, Rows};
use super::radii::{draw_radii, fill_normal};
use super::shape::check_memory;
use crate::error::Result;
use crate::kernel::{Radii, Radius};
use crate::numeric::slice_of_mut;
use crate::theory::{BlockLaw, Dependence};

/// Independent frequencies ω ~ N(0, I).
///
/// ```
/// use random_features::frequency::Independent;
/// let omega = Independent.draw(8, 32, 1)?;
/// assert_eq!(omega.rows().dim(), (32, 8));
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// ω = r·u with r ~ χ_d and u uniform on the unit sphere, all independent.
///
/// # Variance
/// Closed forms for every map. The baseline for other couplings.
///
/// # Exact where
/// The law is exact.
///
/// # Cost
/// O(md) to draw.
///
/// # References
/// Rahimi and Recht, *Random Features for Large-Scale Kernel Machines*.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Independent;

impl Coupling for Independent {
    fn capacity(&self, _: usize) -> usize {
        usize::MAX
    }

    fn draw_block(&self, d: usize, size: usize, radii: &dyn Radii, rng: &mut Generator) -> Result<Rows> {
        check_memory(d, size)?;
        let lengths = draw_radii(radii, d, size, self.capacity(d), rng)?;
        let mut rows = Array2::zeros((size, d));
        for (mut row, radius) in rows.rows_mut().into_iter().zip(lengths) {
            let row = slice_of_mut(&mut row);
            let norm = fill_normal(row, rng);
            row.iter_mut().for_each(|v| *v = radius * (*v / norm));
        }
        Ok(Rows::Dense(rows))
    }

    fn block_law(&self, _: usize, size: usize, radius: Radius) -> BlockLaw {
        BlockLaw::new(size, Dependence::Independent, radius)
    }

    fn recipe(&self) -> Option<AnyCoupling> {
        Some((*self).into())
    }
}
