//! [`WithRadii`]: a coupling with radii of a fixed law.

use crate::generator::Generator;

use super::any_coupling::AnyCoupling;
use super::coupling::{Coupling, Rows};
use crate::error::Result;
use crate::kernel::{Radii, Radius};
use crate::theory::BlockLaw;

/// A coupling whose frequencies have radii of this law, whichever radii a draw requests:
/// `coupling.with_radii(radii)`.
///
/// ```
/// use random_features::Positive;
/// use random_features::extend::Radius;
/// use random_features::frequency::Orthogonal;
/// let omega = Orthogonal.with_radii(Radius::RootDim).draw(16, 40, 7)?;
/// assert!((omega.squared_norms()[39] - 16.0).abs() < 1e-12);
/// let map = Positive.softmax::<f32>(omega)?; // the regularised softmax kernel
///     
/// # Ok::<(), random_features::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WithRadii<C, R> {
    coupling: C,
    radii: R,
}

impl<C: Coupling, R: Radii> WithRadii<C, R> {
    pub(super) fn new(coupling: C, radii: R) -> Self {
        WithRadii { coupling, radii }
    }
}

impl<C: Coupling, R: Radii> Coupling for WithRadii<C, R> {
    fn capacity(&self, d: usize) -> usize {
        self.coupling.capacity(d)
    }

    fn draw_block(&self, d: usize, size: usize, _: &dyn Radii, rng: &mut Generator) -> Result<Rows> {
        self.coupling.draw_block(d, size, &self.radii, rng)
    }

    fn block_law(&self, d: usize, size: usize, _: Radius) -> BlockLaw {
        self.coupling.block_law(d, size, self.radii.law())
    }

    fn padded_dim(&self, d: usize) -> usize {
        self.coupling.padded_dim(d)
    }

    fn recipe(&self) -> Option<AnyCoupling> {
        self.coupling.recipe()
    }

    /// The law of these radii, unless the inner coupling has radii of its own.
    fn radius(&self, _: Radius) -> Radius {
        self.coupling.radius(self.radii.law())
    }
}
