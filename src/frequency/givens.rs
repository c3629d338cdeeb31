//! Givens frequencies: orthogonal frequencies from rounds of random plane rotations.

use std::f64::consts::TAU;

use rand::RngExt;

use crate::generator::Generator;

use super::any_coupling::AnyCoupling;
use super::coupling::{Coupling, Rows};
use super::radii::draw_radii;
use super::rotation::{PlaneRotation, Rotation};
use super::shape::check_up_to;
use super::structured::Rotated;
use crate::digest::identified;
use crate::error::Result;
use crate::kernel::{Radii, Radius};
use crate::memory::check_memory;
use crate::theory::{BlockLaw, Dependence};

/// Givens frequencies, **approximate**: orthogonal frequencies from rounds of random plane rotations. Estimates have a
/// small bias.
///
/// ```
/// use random_features::frequency::Givens;
/// let omega = Givens::default().draw(8, 8, 1)?;
/// let rows = omega.rows();
/// assert!(rows.row(0).dot(&rows.row(1)).abs() < 1e-12);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// ωᵢ = rᵢ (R)ᵢ with independent radii rᵢ ~ χ_d and R a product of k rounds. A round draws a uniform random perfect
/// matching of the coordinates and rotates each of the ⌊d/2⌋ planes by an independent angle, uniform on [0, 2π); for
/// odd d one coordinate is left out. Each block has independent rotations and up to d rows.
///
/// # Variance
/// Close to that of [`Orthogonal`](super::Orthogonal). No closed form is known.
///
/// # Exact where
/// For d = 2, where one round is the uniform law; otherwise nowhere for finite k. As k grows, R converges to the
/// uniform law on rotations: for even d each round reduces the distance of E Σⱼ Rᵢⱼ⁴ from 3/(d+2), its value under the
/// uniform law, by the factor ¾ (1 − 1/(d−1)) (new). The bias is largest for points along an axis. Measured mean/K − 1
/// of positive features at x = y = e₀ (softmax, m = d; standard errors of the last digit in brackets):
///
/// | k | d = 4 | d = 16 | d = 64 | d = 256 |
/// |---|---|---|---|---|
/// | 2 ⌈log₂ d⌉ | 7.4 (2) % | 50 (1) % | 290 (30) % | over 1000 % |
/// | 4 ⌈log₂ d⌉ | 0.5 (2) % | 2.7 (2) % | 2.4 (4) % | 1.4 (5) % |
/// | 6 ⌈log₂ d⌉ | −0.1 (2) % | 0.5 (2) % | −0.1 (4) % | 0.3 (5) % |
///
/// Along (1, 1, 0, …) the bias is smaller, and along (1, 1, …, 1) smaller and of opposite sign. d = 1 is an error,
/// since one dimension has no plane.
///
/// # Cost
/// O(kd) per block to draw and to store; O(kd) per block and point to apply.
///
/// # References
/// Choromanski et al., *Rethinking Attention with Performers*, appendix B.2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(try_from = "StoredGivens"))]
#[non_exhaustive]
pub struct Givens {
    /// k, the number of rounds of ⌊d/2⌋ rotations each, from 1 to 256 ⌈log₂ d⌉; `None` is 6 ⌈log₂ d⌉.
    pub rounds: Option<usize>,
}

identified! { Givens { rounds } }

impl Givens {
    /// Sets the number of rounds. Drawing in ℝᵈ is an error if it is 0 or above 256 ⌈log₂ d⌉, some forty times the default.
    #[must_use]
    pub fn with_rounds(mut self, rounds: usize) -> Self {
        self.rounds = Some(rounds);
        self
    }

    /// The number of rounds in ℝᵈ.
    pub(crate) fn rounds_in(&self, d: usize) -> usize {
        self.rounds.unwrap_or_else(|| default_rounds(d))
    }

    /// What is known about rows in ℝᵈ. For d = 2 rotations are uniform.
    pub(super) fn dependence(d: usize) -> Dependence {
        if d == 2 { Dependence::Unknown } else { Dependence::Approximate }
    }

    /// Draws R in ℝᵈ.
    pub(super) fn draw_rotation(&self, d: usize, rng: &mut Generator) -> Result<Rotation> {
        let rounds = self.rounds_in(d);
        check_up_to("the number of rounds", rounds, most_rounds(d), "from 1 to 256 ⌈log₂ d⌉")?;
        let planes = d / 2;
        check_memory("plane rotations", rounds.saturating_mul(planes), size_of::<PlaneRotation>())?;
        check_memory("coordinates of a rotation", d, size_of::<usize>())?;
        let mut rotations = Vec::with_capacity(rounds * planes);
        let mut axes: Vec<usize> = (0..d).collect();
        for _ in 0..rounds {
            // A uniform permutation, read in pairs.
            for last in (1..d).rev() {
                axes.swap(last, rng.random_range(0..=last as u64) as usize);
            }
            let rotation = |pair: &[usize]| PlaneRotation {
                axes: [pair[0].min(pair[1]), pair[0].max(pair[1])],
                angle: TAU * rng.random::<f64>(),
            };
            rotations.extend(axes.chunks_exact(2).map(rotation));
        }
        Ok(Rotation::Givens(rotations))
    }
}

/// 6 ⌈log₂ d⌉.
fn default_rounds(d: usize) -> usize {
    6 * ceil_log2(d)
}

/// The largest number of rounds in ℝᵈ.
fn most_rounds(d: usize) -> usize {
    256 * ceil_log2(d)
}

/// ⌈log₂ d⌉.
fn ceil_log2(d: usize) -> usize {
    (usize::BITS - d.saturating_sub(1).leading_zeros()) as usize
}

impl Coupling for Givens {
    fn capacity(&self, d: usize) -> usize {
        if d < 2 { 0 } else { d }
    }

    fn draw_block(&self, d: usize, size: usize, radii: &dyn Radii, rng: &mut Generator) -> Result<Rows> {
        let lengths = draw_radii(radii, d, size, self.capacity(d), rng)?;
        let block = Rotated { rotation: self.draw_rotation(d, rng)?, vertices: 0, copies: 1, radii: lengths };
        Ok(Rows::Structured { padded: d, block })
    }

    fn block_law(&self, d: usize, size: usize, radius: Radius) -> BlockLaw {
        BlockLaw::new(size, Self::dependence(d), radius)
    }

    fn recipe(&self) -> Option<AnyCoupling> {
        Some((*self).into())
    }
}

/// The stored form, checked when it is read.
#[cfg(feature = "serde")]
#[derive(serde::Deserialize)]
#[serde(rename = "Givens")]
struct StoredGivens {
    rounds: Option<usize>,
}

#[cfg(feature = "serde")]
impl TryFrom<StoredGivens> for Givens {
    type Error = crate::error::Error;

    /// Rejects numbers of rounds that no draw in any dimension accepts.
    fn try_from(StoredGivens { rounds }: StoredGivens) -> Result<Self> {
        let domain = "from 1 to 16384, and to 256 ⌈log₂ d⌉ where it is drawn";
        rounds.map_or(Ok(()), |rounds| {
            check_up_to("the number of rounds", rounds, most_rounds(usize::MAX), domain)
        })?;
        Ok(Givens { rounds })
    }
}
