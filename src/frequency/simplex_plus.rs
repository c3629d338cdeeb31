//! Simplex frequencies adapted to their radii (SimRF+).

use crate::generator::Generator;
use ndarray::{Array1, Array2, s};

use super::any_coupling::AnyCoupling;
use super::coupling::{Coupling, Rows};
use super::haar::haar_rows;
use super::radii::{assemble, draw_radii};
use super::rotation::Rotation;
use super::shape::{check_memory, check_up_to};
use super::simplex::RotationLaw;
use super::simplex_matrix::vertices;
use crate::digest::identified;
use crate::error::Result;
use crate::kernel::{Radii, Radius};
use crate::theory::{BlockLaw, Dependence};

/// Simplex frequencies adapted to their radii (SimRF+): blocks of up to d rows whose sum is nearly as short as
/// possible.
///
/// ```
/// use random_features::frequency::SimplexPlus;
/// use random_features::ndarray::Axis;
/// let omega = SimplexPlus::default().draw(6, 6, 1)?;
/// let sum = omega.rows().sum_axis(Axis(0));
/// assert!(sum.dot(&sum).sqrt() < 0.1);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// ωᵢ = rᵢ (S Q)ᵢ with independent radii rᵢ ~ χ_d, new for every block, and Q Haar-distributed. The rows sᵢ of S come from
/// coordinate descent on ‖Σ rᵢ sᵢ‖, which starts from the regular simplex; a block of r < d rows starts from the r-vertex
/// simplex. Q may instead be a fast rotation: then ωᵢ = rᵢ Q sᵢ in the padded dimension N, truncated to the
/// first d coordinates.
///
/// # Variance
/// Lower than with [`Simplex`](super::Simplex) for positive features. No closed form is known.
///
/// # Exact where
/// With a uniform rotation each row is exactly N(0, I), because the rotation is uniform and independent of the
/// radii. With other rotations the law is **approximate**. d = 1 is an error, since one dimension has no simplex.
///
/// # Cost
/// To draw a block of d rows, O(d³) with a Haar rotation or O(d² log d) with a fast one, plus O(d²) per pass. Rows are
/// always dense, since S is not a product of sparse factors; maps cost the same as with independent rows.
///
/// # References
/// Reid et al., *Simplex Random Features*, equations 12–17.
#[doc(alias = "SimRF+")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "StoredSimplexPlus")
)]
#[non_exhaustive]
pub struct SimplexPlus {
    /// The number of passes over the rows of a block, from 1 to [`MAX_PASSES`](SimplexPlus::MAX_PASSES).
    pub(crate) passes: usize,
    /// The law of the rotation Q.
    pub(crate) rotation: RotationLaw,
}

identified! { SimplexPlus { passes, rotation } }

impl Default for SimplexPlus {
    fn default() -> Self {
        SimplexPlus { passes: 3, rotation: RotationLaw::Haar }
    }
}

impl SimplexPlus {
    /// SimRF+ with this rotation: `SimplexPlus::on(Hadamard::default())` is drawn in O(d² log
    /// d).
    pub fn on(rotation: impl Into<RotationLaw>) -> Self {
        SimplexPlus { rotation: rotation.into(), ..SimplexPlus::default() }
    }

    /// The largest number of passes. A few make the sum as short as it gets.
    pub const MAX_PASSES: usize = 1000;

    /// Sets the number of passes. Drawing is an error if it is 0 or above [`MAX_PASSES`](SimplexPlus::MAX_PASSES).
    #[must_use]
    pub fn with_passes(self, passes: usize) -> Self {
        SimplexPlus { passes, ..self }
    }

    /// Rejects numbers of passes that no draw accepts.
    fn check(&self) -> Result<()> {
        check_up_to("the number of passes", self.passes, Self::MAX_PASSES, "from 1 to 1000")
    }

    /// The rows of a block with these radii.
    fn rows(&self, d: usize, lengths: &[f64], rng: &mut Generator) -> Result<Array2<f64>> {
        let placed = place(lengths, self.passes);
        let fast = match self.rotation {
            RotationLaw::Haar => {
                return Ok(assemble(lengths, placed.dot(&haar_rows(lengths.len(), d, rng))));
            }
            RotationLaw::Hadamard(hadamard) => hadamard.draw_rotation(d, rng)?,
            RotationLaw::Givens(givens) => givens.draw_rotation(d, rng)?,
        };
        Ok(assemble(lengths, rotated(placed, &fast, self.rotation.padded_dim(d))).slice_move(s![.., ..d]))
    }
}

/// The unit vectors, in rows and padded to N coordinates, each rotated.
fn rotated(directions: Array2<f64>, rotation: &Rotation, padded: usize) -> Array2<f64> {
    let mut columns = Array2::zeros((padded, directions.nrows()));
    columns.slice_mut(s![..directions.ncols(), ..]).assign(&directions.t());
    rotation.rotate(columns.view_mut());
    columns.reversed_axes()
}

impl Coupling for SimplexPlus {
    fn capacity(&self, d: usize) -> usize {
        if d < 2 { 0 } else { self.rotation.padded_dim(d) }
    }

    fn draw_block(&self, d: usize, size: usize, radii: &dyn Radii, rng: &mut Generator) -> Result<Rows> {
        self.check()?;
        check_memory(self.rotation.padded_dim(d), size)?;
        let lengths = draw_radii(radii, self.rotation.padded_dim(d), size, self.capacity(d), rng)?;
        self.rows(d, &lengths, rng).map(Rows::Dense)
    }

    fn block_law(&self, d: usize, size: usize, radius: Radius) -> BlockLaw {
        let radius = match radius {
            // Truncation changes the norm of rows of norm √N.
            Radius::RootDim if self.rotation.padded_dim(d) > d => Radius::Other,
            law => law,
        };
        let alone = size == 1 && self.rotation == RotationLaw::Haar;
        let dependence = if alone { Dependence::Independent } else { self.rotation.dependence(d) };
        BlockLaw::new(size, dependence, radius)
    }

    fn recipe(&self) -> Option<AnyCoupling> {
        Some((*self).into())
    }
}

/// Unit vectors sᵢ, in rows, for which ‖Σ rᵢ sᵢ‖ is small: `passes` of coordinate descent from the simplex.
///
/// Each step sets one vector opposite to the sum of the others, sᵢ ← −Σ_{j≠i} rⱼ sⱼ/‖·‖, using the vectors already
/// updated (Gauss–Seidel). The length therefore never increases; it tends to max(0, 2 max r − Σ r). A vector is
/// unchanged if the others sum to 0. A pass costs O(n²) with a running sum.
fn place(radii: &[f64], passes: usize) -> Array2<f64> {
    // Radii are divided by the largest, so that no square overflows or underflows.
    let largest = radii.iter().fold(0.0f64, |largest, radius| largest.max(radius.abs()));
    let unit = if largest > 0.0 { largest } else { 1.0 };
    let radii: Array1<f64> = radii.iter().map(|radius| radius / unit).collect();
    let mut directions = vertices(radii.len());
    let mut sum = radii.dot(&directions);
    for _ in 0..passes {
        for (mut direction, radius) in directions.rows_mut().into_iter().zip(&radii) {
            sum.scaled_add(-radius, &direction);
            let length = sum.dot(&sum).sqrt();
            if length > 0.0 {
                direction.assign(&(&sum / -length));
            }
            sum.scaled_add(*radius, &direction);
        }
    }
    directions
}

/// The stored form, checked when it is read.
#[cfg(feature = "serde")]
#[derive(serde::Deserialize)]
#[serde(rename = "SimplexPlus")]
struct StoredSimplexPlus {
    passes: usize,
    rotation: RotationLaw,
}

#[cfg(feature = "serde")]
impl TryFrom<StoredSimplexPlus> for SimplexPlus {
    type Error = crate::error::Error;

    fn try_from(StoredSimplexPlus { passes, rotation }: StoredSimplexPlus) -> Result<Self> {
        let coupling = SimplexPlus { passes, rotation };
        coupling.check().map(|()| coupling)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Chi;

    #[test]
    fn the_sum_never_grows_and_vanishes_where_it_can() {
        let mut rng = crate::rng(5);
        for d in 2..30 {
            let radii = Chi.draw(d, d, &mut rng).unwrap();
            let length = |passes| {
                let directions = place(&radii, passes);
                for row in directions.rows() {
                    assert!((row.dot(&row) - 1.0).abs() < 1e-13);
                }
                let sum = Array1::from(radii.clone()).dot(&directions);
                sum.dot(&sum).sqrt()
            };
            let lengths: Vec<f64> = (0..6).map(length).collect();
            assert!(lengths.windows(2).all(|w| w[1] <= w[0] + 1e-13), "d {d}: {lengths:?}");
            let largest = radii.iter().copied().fold(0.0, f64::max);
            let least = (2.0 * largest - radii.iter().sum::<f64>()).max(0.0);
            assert!(
                lengths[5] >= least - 1e-12 && (d < 4 || lengths[5] < 1e-3 + least),
                "d {d}: {lengths:?}"
            );
        }
        // Where the others cancel a vector stays: no division by 0.
        assert!(place(&[1.0, 1.0, 1.0, 1e-300], 3).iter().all(|v| v.is_finite()));
        assert_eq!(place(&[2.0], 2).dim(), (1, 1));
        // Radii of any size are placed alike.
        let radii = [1.0, 2.0, 1.5, 0.5];
        for unit in [1e-170, 1e160, 1e200] {
            let placed = place(&radii.map(|radius| radius * unit), 3);
            assert!((placed - place(&radii, 3)).iter().all(|v| v.abs() < 1e-12));
        }
    }
}
