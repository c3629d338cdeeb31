//! Hadamard frequencies: orthogonal frequencies from fast transforms.

use crate::generator::Generator;
use ndarray::Array2;

use super::any_coupling::AnyCoupling;
use super::coupling::{Coupling, Rows};
use super::radii::draw_radii;
use super::rotation::Rotation;
use super::shape::check_up_to;
use super::structured::{Rotated, largest_padded_dim};
use crate::digest::identified;
use crate::error::Result;
use crate::kernel::{Radii, Radius};
use crate::memory::check_memory;
use crate::theory::{BlockLaw, Dependence};

/// Hadamard frequencies (HD products), **approximate**: orthogonal frequencies that cost O(log d) operations each.
/// Estimates have a small bias.
///
/// ```
/// use random_features::frequency::Hadamard;
/// let omega = Hadamard::default().draw(1000, 4096, 1)?;
/// assert_eq!(omega.padded_dim(), 1024);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// ωᵢ = rᵢ (R)ᵢ with independent radii rᵢ and R = Π_k N^{−1/2} H D_k in ℝᴺ: H is the Hadamard matrix, D_k is diagonal
/// with random signs, and N is the smallest power of two that is at least d and 16. Points are padded with zeros, which
/// truncates rows to their first d coordinates. Radii are those of dimension N (χ_N, not χ_d), so that a truncated row
/// has the norm of N(0, I) in ℝᵈ. A block has up to N rows, orthogonal before truncation.
///
/// # Variance
/// Close to that of [`Orthogonal`](super::Orthogonal) where N = d, and to that of independent rows where d is much
/// smaller than N. No closed form is known.
///
/// # Exact where
/// Nowhere: directions come from a finite set instead of the sphere. With one round every coordinate of a direction is
/// ±N^{−1/2}, and E exp(ω·z) with ‖ω‖ = √N is Π cosh z_k instead of the regularised softmax kernel; each further round
/// reduces the difference. The bias also decreases with N, which is why N is at least 16: with three rounds the mean of
/// cos ω·z at ‖z‖ = 2 should be e⁻² = 0.135, but is 0.362 for N = 2 and off by 0.032 for N = 8; the error is below
/// 0.005 for N = 16 and below 0.001 for N = 64. These numbers are for radii χ. Laws with heavy tails have larger errors:
/// with three rounds and N = 16 a Matérn kernel of smoothness 1/2 is off by up to 0.04, of 3/2 by up to 0.012, of 0.05
/// by 0.12.
///
/// # Cost
/// O(m) to draw and to store; O(k m log d) per point for k rounds. No matrix is formed.
///
/// # References
/// Yu et al., *Orthogonal Random Features*, section 4; Choromanski et al., *The Unreasonable Effectiveness of
/// Structured Random Orthogonal Embeddings*.
#[doc(alias = "SORF")]
#[doc(alias = "HD3")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "StoredHadamard")
)]
#[non_exhaustive]
pub struct Hadamard {
    /// k, the number of rounds: from 1 to [`MAX_ROUNDS`](Hadamard::MAX_ROUNDS).
    pub rounds: usize,
}

identified! { Hadamard { rounds } }

impl Default for Hadamard {
    fn default() -> Self {
        Hadamard { rounds: 3 }
    }
}

impl Hadamard {
    /// The largest number of rounds. A few are enough: each costs as much as the first, and after three a draw does not show
    /// the difference from uniform directions.
    pub const MAX_ROUNDS: usize = 64;

    /// Sets the number of rounds. Drawing is an error if it is 0 or above [`MAX_ROUNDS`](Hadamard::MAX_ROUNDS).
    #[must_use]
    pub fn with_rounds(mut self, rounds: usize) -> Self {
        self.rounds = rounds;
        self
    }

    /// Rejects numbers of rounds that no draw accepts.
    fn check(&self) -> Result<()> {
        check_up_to("the number of rounds", self.rounds, Self::MAX_ROUNDS, "from 1 to 64")
    }

    /// The padded dimension N for points in ℝᵈ, or 0 if it is too large.
    pub(super) fn padded(d: usize) -> usize {
        if d == 0 { 0 } else { largest_padded_dim(d).unwrap_or(0) }
    }

    /// Draws R for points in ℝᵈ, taking 64 flips from each random word.
    pub(super) fn draw_rotation(&self, d: usize, rng: &mut Generator) -> Result<Rotation> {
        self.check()?;
        check_memory(
            "sign flips of a rotation",
            self.rounds.saturating_mul(Self::padded(d)),
            size_of::<bool>(),
        )?;
        let mut word = 0;
        Ok(Rotation::Hadamard(Array2::from_shape_fn((self.rounds, Self::padded(d)), |(_, k)| {
            word = if k % 64 == 0 { rng.next_u64() } else { word >> 1 };
            word & 1 == 1
        })))
    }
}

impl Coupling for Hadamard {
    fn capacity(&self, d: usize) -> usize {
        Self::padded(d)
    }

    fn draw_block(&self, d: usize, size: usize, radii: &dyn Radii, rng: &mut Generator) -> Result<Rows> {
        let padded = Self::padded(d);
        let lengths = draw_radii(radii, padded, size, padded, rng)?;
        let block = Rotated { rotation: self.draw_rotation(d, rng)?, vertices: 0, copies: 1, radii: lengths };
        Ok(Rows::Structured { padded, block })
    }

    fn block_law(&self, _: usize, size: usize, radius: Radius) -> BlockLaw {
        BlockLaw::new(size, Dependence::Approximate, radius)
    }

    fn padded_dim(&self, d: usize) -> usize {
        Self::padded(d)
    }

    fn recipe(&self) -> Option<AnyCoupling> {
        Some((*self).into())
    }
}

/// The stored form, checked when it is read.
#[cfg(feature = "serde")]
#[derive(serde::Deserialize)]
#[serde(rename = "Hadamard")]
struct StoredHadamard {
    rounds: usize,
}

#[cfg(feature = "serde")]
impl TryFrom<StoredHadamard> for Hadamard {
    type Error = crate::error::Error;

    fn try_from(StoredHadamard { rounds }: StoredHadamard) -> Result<Self> {
        let hadamard = Hadamard { rounds };
        hadamard.check().map(|()| hadamard)
    }
}
