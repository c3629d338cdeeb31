//! Givens frequencies: orthogonal ones from random plane rotations.

use std::f64::consts::TAU;

use rand::{Rng, RngExt};

use super::coupling::{Coupling, Drawn, Rows};
use super::radii::{Radii, draw_radii};
use super::rotation::{PlaneRotation, Rotation};
use super::shape::check_shape;
use super::structured::Rotated;
use crate::error::{Result, check_positive};
use crate::theory::BlockLaw;

/// Givens frequencies: orthogonal ones from a product of random plane rotations, **approximate**: estimates have a
/// small bias.
///
/// # Definition
/// ωᵢ = rᵢ (R)ᵢ with independent radii rᵢ ~ χ_d and R a product of k rotations in planes of two coordinates i < j,
/// drawn uniformly among all pairs, by angles uniform on [0, 2π). Every block has rotations of its own, and holds up
/// to d rows.
///
/// # Variance
/// Close to that of [`Orthogonal`](super::Orthogonal). No closed form is known.
///
/// # Exact where
/// Nowhere for finite k: R tends to the uniform law on rotations as k grows, at a rate that is not known exactly;
/// k = d log₂ d mixes well. There is no plane in one dimension: d = 1 is an error.
///
/// # Cost
/// O(k) to draw and to store for a block, O(k) a point and block.
///
/// # Example
/// ```
/// use random_features::frequency::{Givens, draw};
/// let omega = draw(8, 8, &Givens::default(), &mut random_features::rng(1))?;
/// let rows = omega.rows();
/// assert!(rows.row(0).dot(&rows.row(1)).abs() < 1e-12);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # References
/// Choromanski et al., *Rethinking Attention with Performers*, section 2.4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Givens {
    /// k, the number of rotations of a block, from 1 on; `None` is ⌈d log₂ d⌉.
    pub rotations: Option<usize>,
}

impl Givens {
    /// Draws R in ℝᵈ.
    pub(super) fn draw_rotation(&self, d: usize, rng: &mut dyn Rng) -> Result<Rotation> {
        let count = self.rotations.unwrap_or_else(|| (d as f64 * (d as f64).log2()).ceil() as usize);
        check_positive("the number of rotations", count)?;
        // As many as fit into memory.
        check_shape(size_of::<PlaneRotation>(), count)?;
        let rotation = |_| {
            // The second axis is drawn among those that are left, so that the two never coincide.
            let (i, j) = (rng.random_range(0..d as u64) as usize, rng.random_range(0..d as u64 - 1) as usize);
            let j = if j < i { j } else { j + 1 };
            PlaneRotation { axes: [i.min(j), i.max(j)], angle: TAU * rng.random::<f64>() }
        };
        Ok(Rotation::Givens((0..count).map(rotation).collect()))
    }
}

impl Coupling for Givens {
    fn capacity(&self, d: usize) -> usize {
        if d < 2 { 0 } else { d }
    }

    fn draw_block(&self, d: usize, size: usize, radii: &dyn Radii, rng: &mut dyn Rng) -> Result<Drawn> {
        let lengths = draw_radii(radii, d, (size, self.capacity(d)), rng)?;
        let block = Rotated { rotation: self.draw_rotation(d, rng)?, vertices: 0, copies: 1, radii: lengths };
        Ok(Drawn { rows: Rows::Structured { padded: d, block }, law: BlockLaw::unknown(size, radii.law()) })
    }
}
