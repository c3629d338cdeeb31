//! Simplex frequencies (SimRF).

use crate::generator::Generator;
use ndarray::{Array2, s};

use super::any_coupling::AnyCoupling;
use super::coupling::{Coupling, Rows};
use super::givens::Givens;
use super::haar::haar_rows;
use super::hadamard::Hadamard;
use super::radii::{assemble, draw_radii};
use super::rotation::Rotation;
use super::shape::check_memory;
use super::simplex_matrix::multiply;
use super::structured::Rotated;
use crate::digest::identified;
use crate::error::Result;
use crate::kernel::{Radii, Radius};
use crate::tagged::tagged;
use crate::theory::{BlockLaw, Dependence};

/// Simplex frequencies (SimRF): blocks of up to d rows whose directions are the vertices of a regular simplex.
///
/// ```
/// use random_features::frequency::Simplex;
/// let omega = Simplex::default().draw(5, 5, 1)?;
/// let (a, b) =
///     (omega.rows().row(0).to_owned(), omega.rows().row(1).to_owned());
/// let cos = a.dot(&b) / (a.dot(&a) * b.dot(&b)).sqrt();
/// assert!((cos + 0.25).abs() < 1e-12);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// ωᵢ = rᵢ (S Q)ᵢ with independent rᵢ ~ χ_d, Q Haar-distributed and S the vertices of a regular simplex: unit rows with
/// inner products −1/(d−1). A block of r < d rows is an r-vertex simplex, or the first r rows of the d-vertex simplex
/// ([`with_truncated_blocks`](Simplex::with_truncated_blocks)). A single row is uniform on the sphere. Q may instead be a fast
/// rotation ([`on`](Simplex::on)): with an HD product no matrix is formed and S costs O(1) per row ("fast SimRF").
///
/// # Variance
/// Optimal for positive features among all couplings whose directions do not depend on the radii. For the hyperbolic
/// and trigonometric maps [`Orthogonal`](super::Orthogonal) is better. [`theory`](crate::theory) has closed forms.
///
/// # Exact where
/// With a uniform rotation the law is exact: each row ~ N(0, I). With fast rotations it is approximate, and no
/// closed form is known. d = 1 is an error, since one dimension has no simplex.
///
/// # Cost
/// The cost of orthogonal frequencies with this rotation, plus O(d) per row to draw (dense) or O(1) per row and point
/// (structured).
///
/// # References
/// Reid et al., *Simplex Random Features*, equations 8 and 9; fitted blocks: new.
#[doc(alias = "SimRF")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Simplex {
    /// What a block with fewer than d rows consists of.
    pub(crate) partial: Partial,
    /// The law of the rotation Q.
    pub(crate) rotation: RotationLaw,
}

/// What a simplex block of r < d rows consists of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Partial {
    /// An r-vertex simplex, inner products −1/(r−1): lower variance.
    #[default]
    Fitted,
    /// The first r vertices of the d-vertex simplex, inner products −1/(d−1).
    Truncated,
}

/// The law of the rotation that is applied to a simplex.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RotationLaw {
    /// Haar, the uniform law: exact. Frequencies form a dense matrix.
    #[default]
    Haar,
    /// An HD product: fast and **approximate**; d is the padded dimension everywhere.
    Hadamard(Hadamard),
    /// A product of plane rotations: **approximate**.
    Givens(Givens),
}

identified! { Simplex { partial, rotation } }

tagged!(Partial, "a partial simplex" {
    "fitted" => Fitted,
    "truncated" => Truncated,
});

tagged!(RotationLaw, "a law of rotations" {
    "haar" => Haar,
    "hadamard" => Hadamard(factors: Hadamard),
    "givens" => Givens(factors: Givens),
});

impl From<Hadamard> for RotationLaw {
    fn from(factors: Hadamard) -> Self {
        RotationLaw::Hadamard(factors)
    }
}

impl From<Givens> for RotationLaw {
    fn from(factors: Givens) -> Self {
        RotationLaw::Givens(factors)
    }
}

impl RotationLaw {
    /// What is known about rows in ℝᵈ without a closed form.
    pub(super) fn dependence(self, d: usize) -> Dependence {
        match self {
            RotationLaw::Haar => Dependence::Unknown,
            RotationLaw::Hadamard(_) => Dependence::Approximate,
            RotationLaw::Givens(_) => Givens::dependence(d),
        }
    }

    /// The padded dimension N for points in ℝᵈ.
    pub(super) fn padded_dim(self, d: usize) -> usize {
        match self {
            RotationLaw::Hadamard(_) => Hadamard::padded(d),
            RotationLaw::Haar | RotationLaw::Givens(_) => d,
        }
    }
}

impl Simplex {
    /// A simplex with a fast rotation: `Simplex::on(Hadamard::default())` is fast SimRF, `Simplex::on(Givens::default())`
    /// takes plane rotations. Both are **approximate**.
    pub fn on(rotation: impl Into<RotationLaw>) -> Self {
        Simplex { rotation: rotation.into(), ..Simplex::default() }
    }

    /// Takes the first r vertices of the d-vertex simplex for a block of r < d rows, with inner products −1/(d−1). The
    /// default, an r-vertex simplex with inner products −1/(r−1), has lower variance.
    #[must_use]
    pub fn with_truncated_blocks(self) -> Self {
        Simplex { partial: Partial::Truncated, ..self }
    }

    /// The number of vertices of the simplex of a block in ℝᵈ.
    fn vertices(&self, size: usize, d: usize) -> usize {
        match self.partial {
            Partial::Fitted => size,
            Partial::Truncated => d,
        }
    }

    fn draw_structured(
        &self,
        padded: usize,
        size: usize,
        rotation: impl FnOnce(&mut Generator) -> Result<Rotation>,
        radii: &dyn Radii,
        rng: &mut Generator,
    ) -> Result<Rows> {
        let lengths = draw_radii(radii, padded, size, padded, rng)?;
        let vertices = self.vertices(size, padded);
        // A single vertex is any direction: no simplex is needed.
        let vertices = if vertices == 1 { 0 } else { vertices };
        let block = Rotated { rotation: rotation(rng)?, vertices, copies: 1, radii: lengths };
        Ok(Rows::Structured { padded, block })
    }
}

impl Coupling for Simplex {
    fn capacity(&self, d: usize) -> usize {
        if d < 2 { 0 } else { self.rotation.padded_dim(d) }
    }

    fn draw_block(&self, d: usize, size: usize, radii: &dyn Radii, rng: &mut Generator) -> Result<Rows> {
        match self.rotation {
            RotationLaw::Haar => check_memory(d, self.vertices(size, d))?,
            RotationLaw::Hadamard(hadamard) => {
                let rotation = |rng: &mut Generator| hadamard.draw_rotation(d, rng);
                return self.draw_structured(Hadamard::padded(d), size, rotation, radii, rng);
            }
            RotationLaw::Givens(givens) => {
                let rotation = |rng: &mut Generator| givens.draw_rotation(d, rng);
                return self.draw_structured(d, size, rotation, radii, rng);
            }
        }
        let lengths = draw_radii(radii, d, size, self.capacity(d), rng)?;
        let vertices = self.vertices(size, d);
        Ok(Rows::Dense(assemble(&lengths, directions(vertices, d, rng))))
    }

    fn block_law(&self, d: usize, size: usize, radius: Radius) -> BlockLaw {
        let cos = || -1.0 / (self.vertices(size, d) as f64 - 1.0);
        let dependence = match self.rotation {
            RotationLaw::Haar if size == 1 => Dependence::Independent,
            RotationLaw::Haar => Dependence::Angle { cos: cos() },
            fast => fast.dependence(d),
        };
        BlockLaw::new(size, dependence, radius)
    }

    fn padded_dim(&self, d: usize) -> usize {
        self.rotation.padded_dim(d)
    }

    fn recipe(&self) -> Option<AnyCoupling> {
        Some((*self).into())
    }
}

/// The vertices of a randomly rotated regular simplex in ℝᵈ, `vertices` ≤ d of them.
fn directions(vertices: usize, d: usize, rng: &mut Generator) -> Array2<f64> {
    if vertices == 1 {
        return haar_rows(1, d, rng);
    }
    // The last column of S is 0, so one rotated axis fewer than vertices is needed.
    let mut directions = Array2::zeros((vertices, d));
    directions.slice_mut(s![..vertices - 1, ..]).assign(&haar_rows(vertices - 1, d, rng));
    multiply(directions.view_mut());
    directions
}
