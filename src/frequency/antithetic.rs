//! Antithetic pairs over any coupling.

use crate::generator::Generator;
use ndarray::Array2;

use super::any_coupling::AnyCoupling;
use super::coupling::{Coupling, Rows};
use super::shape::check_memory;
use super::structured::Rotated;
use crate::error::Result;
use crate::kernel::{Radii, Radius};
use crate::theory::{BlockLaw, Dependence};

/// Antithetic pairs ω, −ω over any coupling.
///
/// ```
/// use random_features::frequency::{Antithetic, Independent};
/// let omega = Antithetic(Independent).draw(8, 4, 1)?;
/// assert_eq!(omega.rows().row(3), -&omega.rows().row(2));
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// Rows 0, 2, 4, … are drawn by the inner coupling; row 2i+1 is −(row 2i). If the number of rows is odd, the last one
/// is unpaired.
///
/// # Variance
/// For the positive map a pair is one hyperbolic projection, whose variance never exceeds that of two independent rows.
/// The hyperbolic and trigonometric maps are even in ω, so the second row of a pair adds nothing to them.
///
/// # Exact where
/// Each row has the law of the inner coupling.
///
/// # Cost
/// Half the draws of the inner coupling.
///
/// # References
/// Choromanski et al., *Hybrid Random Features*, equation 3.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Antithetic<C>(pub C);

impl<C: Coupling> Coupling for Antithetic<C> {
    fn capacity(&self, d: usize) -> usize {
        self.0.capacity(d).saturating_mul(2)
    }

    fn draw_block(&self, d: usize, size: usize, radii: &dyn Radii, rng: &mut Generator) -> Result<Rows> {
        let sign = |j: usize| if j.is_multiple_of(2) { 1.0 } else { -1.0 };
        Ok(match self.0.draw_block(d, size.div_ceil(2), radii, rng)? {
            Rows::Dense(half) => {
                check_memory(d, size)?;
                Rows::Dense(Array2::from_shape_fn((size, d), |(j, k)| sign(j) * half[[j / 2, k]]))
            }
            Rows::Structured { padded, block } => {
                let radii = (0..size).map(|j| sign(j) * block.radii[j / 2]).collect();
                let block = Rotated { copies: 2 * block.copies, radii, ..block };
                Rows::Structured { padded, block }
            }
        })
    }

    fn block_law(&self, d: usize, size: usize, radius: Radius) -> BlockLaw {
        let half = self.0.block_law(d, size.div_ceil(2), radius);
        // Nested pairs contain each row twice, which `BlockLaw` cannot express.
        let dependence = match half.dependence {
            Dependence::Approximate => Dependence::Approximate,
            _ if half.antithetic => Dependence::Unknown,
            dependence => dependence,
        };
        BlockLaw { size, antithetic: true, dependence, ..half }
    }

    fn padded_dim(&self, d: usize) -> usize {
        self.0.padded_dim(d)
    }

    /// `None` for pairs of pairs, which have no use.
    fn recipe(&self) -> Option<AnyCoupling> {
        match self.0.recipe()? {
            AnyCoupling::Plain(inner) => Some(AnyCoupling::Antithetic(inner)),
            AnyCoupling::Antithetic(_) | AnyCoupling::CoupledRadii(_) => None,
        }
    }

    fn radius(&self, asked: Radius) -> Radius {
        self.0.radius(asked)
    }
}
