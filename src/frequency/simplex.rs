//! Simplex frequencies (SimRF), and the products with the [simplex matrix](vertices) that make them.

use ndarray::{Array2, s};
use rand::Rng;

use super::coupling::{Coupling, Drawn, Rows};
use super::givens::Givens;
use super::haar::haar_rows;
use super::hadamard::Hadamard;
use super::radii::{Radii, assemble, draw_radii};
use super::rotation::Rotation;
pub(crate) use super::simplex_matrix::coefficients;
pub use super::simplex_matrix::{multiply, multiply_transposed, vertices};
use super::structured::Rotated;
use crate::error::Result;
use crate::theory::{BlockLaw, Dependence};

/// Simplex frequencies (SimRF): blocks of up to d rows whose directions are the vertices of a regular simplex.
///
/// # Definition
/// ωᵢ = rᵢ (S Q)ᵢ with independent rᵢ ~ χ_d, Q Haar-distributed and S the matrix of [`vertices`]: unit rows
/// with inner products −1/(d−1). A block of r < d rows is [`Partial::Fitted`] with an r-vertex simplex of its
/// own, or [`Partial::Truncated`] to the first rows of that with d. A single row is a plain one. Q may instead be a
/// fast [`RotationLaw`]: with an HD product no matrix is formed and S costs O(1) a row ("fast SimRF").
///
/// # Variance
/// The least for positive features among all couplings that do not look at the radii; for the hyperbolic and
/// trigonometric maps [`Orthogonal`](super::Orthogonal) is better. Closed forms: [`theory`](crate::theory).
///
/// # Exact where
/// With [`RotationLaw::Haar`] the law is exact: each row ~ N(0, I); with others it is approximate, and no closed form
/// is known. There is no simplex in one dimension: d = 1 is an error.
///
/// # Cost
/// That of frequencies with the same rotation and O(d) more for each row to draw (dense), O(1) more for each
/// row and point (structured).
///
/// # Example
/// ```
/// use random_features::frequency::{Coupling, Simplex};
/// let omega = Simplex::default().draw(5, 5, 1)?;
/// let (a, b) = (omega.rows().row(0).to_owned(), omega.rows().row(1).to_owned());
/// let cos = a.dot(&b) / (a.dot(&a) * b.dot(&b)).sqrt();
/// assert!((cos + 0.25).abs() < 1e-12);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # References
/// Reid et al., *Simplex Random Features*, equations 8 and 9; fitted blocks: new.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Simplex {
    /// What blocks of fewer rows than the largest are.
    pub partial: Partial,
    /// Where the rotation Q comes from.
    pub rotation: RotationLaw,
}

/// What a simplex block of r rows is, if r is less than d.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Partial {
    /// An r-vertex simplex, inner products −1/(r−1): lower variance.
    #[default]
    Fitted,
    /// The first r vertices of the d-vertex simplex, inner products −1/(d−1), as in the paper.
    Truncated,
}

/// The law of the rotation under a simplex.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum RotationLaw {
    /// Haar, the uniform law: exact. Frequencies are written out.
    #[default]
    Haar,
    /// An HD product: fast and **approximate**; d is the padded dimension everywhere.
    Hadamard(Hadamard),
    /// A product of plane rotations: **approximate**.
    Givens(Givens),
}

impl Simplex {
    /// The simplex on a rotation of another law: `Simplex::on(RotationLaw::Hadamard(Hadamard::default()))` is fast
    /// SimRF.
    pub fn on(rotation: RotationLaw) -> Self {
        Simplex { rotation, ..Simplex::default() }
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
        (padded, size): (usize, usize),
        rotation: impl FnOnce(&mut dyn Rng) -> Result<Rotation>,
        radii: &dyn Radii,
        rng: &mut dyn Rng,
    ) -> Result<Drawn> {
        let lengths = draw_radii(radii, padded, (size, padded), rng)?;
        let vertices = self.vertices(size, padded);
        // A single vertex is any direction.
        let vertices = if vertices == 1 { 0 } else { vertices };
        let block = Rotated { rotation: rotation(rng)?, vertices, copies: 1, radii: lengths };
        Ok(Drawn { rows: Rows::Structured { padded, block }, law: BlockLaw::unknown(size, radii.law()) })
    }
}

impl Coupling for Simplex {
    fn capacity(&self, d: usize) -> usize {
        match self.rotation {
            _ if d < 2 => 0,
            RotationLaw::Hadamard(_) => Hadamard::padded(d),
            RotationLaw::Haar | RotationLaw::Givens(_) => d,
        }
    }

    fn draw_block(&self, d: usize, size: usize, radii: &dyn Radii, rng: &mut dyn Rng) -> Result<Drawn> {
        match self.rotation {
            RotationLaw::Haar => {}
            RotationLaw::Hadamard(hadamard) => {
                let rotation = |rng: &mut dyn Rng| hadamard.draw_rotation(d, rng);
                return self.draw_structured((Hadamard::padded(d), size), rotation, radii, rng);
            }
            RotationLaw::Givens(givens) => {
                let rotation = |rng: &mut dyn Rng| givens.draw_rotation(d, rng);
                return self.draw_structured((d, size), rotation, radii, rng);
            }
        }
        let lengths = draw_radii(radii, d, (size, self.capacity(d)), rng)?;
        let vertices = self.vertices(size, d);
        let rows = Rows::Dense(assemble(&lengths, directions(vertices, d, rng)));
        let dependence = if size == 1 {
            Dependence::Independent
        } else {
            Dependence::Angle { cos: -1.0 / (vertices as f64 - 1.0) }
        };
        Ok(Drawn { rows, law: BlockLaw { size, dependence, radius: radii.law(), antithetic: false } })
    }
}

/// The vertices of a randomly rotated regular simplex in ℝᵈ, `vertices` ≤ d of them.
fn directions(vertices: usize, d: usize, rng: &mut dyn Rng) -> Array2<f64> {
    if vertices == 1 {
        return haar_rows(1, d, rng);
    }
    // The last column of S is 0: one rotated axis fewer than vertices.
    let mut directions = Array2::zeros((vertices, d));
    directions.slice_mut(s![..vertices - 1, ..]).assign(&haar_rows(vertices - 1, d, rng));
    multiply(directions.view_mut());
    directions
}
