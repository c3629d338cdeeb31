//! Simplex frequencies placed by their radii (SimRF+).

use ndarray::{Array1, Array2, s};
use rand::Rng;

use super::coupling::{Coupling, Drawn, Rows};
use super::haar::haar_rows;
use super::hadamard::Hadamard;
use super::radii::{Radii, assemble, draw_radii};
use super::rotation::Rotation;
use super::simplex::RotationLaw;
use super::simplex_matrix::vertices;
use crate::error::{Result, check_positive};
use crate::theory::{BlockLaw, Dependence, Radius};

/// Simplex frequencies placed by their radii (SimRF+): blocks of up to d rows whose sum is as short as can be.
///
/// # Definition
/// ωᵢ = rᵢ (S Q)ᵢ with independent radii rᵢ ~ χ_d, fresh for every block, Q Haar-distributed, and S from [`place`]:
/// passes of coordinate descent on ‖Σ rᵢ sᵢ‖ that start at the simplex. A block of r < d rows starts at the
/// r-vertex simplex. Q may instead be a fast [`RotationLaw`]: then ωᵢ = rᵢ Q sᵢ in the padded dimension N, cut to the
/// first d coordinates.
///
/// # Variance
/// Below that of [`Simplex`](super::Simplex) for positive features. No closed form is known.
///
/// # Exact where
/// With [`RotationLaw::Haar`] the law of each row is exact, N(0, I): the rotation is uniform and independent of the
/// radii; with others it is **approximate**. There is no simplex in one dimension: d = 1 is an error.
///
/// # Cost
/// To draw a block of d rows, O(d³) with a Haar rotation and O(d² log d) with a fast one; a pass takes O(d²). Rows are
/// written out in either case: they are no product of sparse factors, so maps cost the same as with independent rows.
///
/// # Example
/// ```
/// use random_features::frequency::{Coupling, SimplexPlus};
/// let omega = SimplexPlus::default().draw(6, 6, 1)?;
/// let sum = omega.rows().sum_axis(ndarray::Axis(0));
/// assert!(sum.dot(&sum).sqrt() < 0.1);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # References
/// Reid et al., *Simplex Random Features*, equations 12–17.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SimplexPlus {
    /// Passes over the rows of a block, from 1 on.
    pub passes: usize,
    /// Where the rotation Q comes from.
    #[cfg_attr(feature = "serde", serde(default))]
    pub rotation: RotationLaw,
}

impl Default for SimplexPlus {
    fn default() -> Self {
        SimplexPlus { passes: 3, rotation: RotationLaw::Haar }
    }
}

impl SimplexPlus {
    /// SimRF+ on a rotation of another law: `SimplexPlus::on(RotationLaw::Hadamard(Hadamard::default()))` is drawn in
    /// O(d² log d).
    pub fn on(rotation: RotationLaw) -> Self {
        SimplexPlus { rotation, ..SimplexPlus::default() }
    }

    /// N for points in ℝᵈ.
    fn padded(&self, d: usize) -> usize {
        match self.rotation {
            RotationLaw::Hadamard(_) => Hadamard::padded(d),
            RotationLaw::Haar | RotationLaw::Givens(_) => d,
        }
    }

    /// The rows of a block with these radii.
    fn rows(&self, d: usize, lengths: &[f64], rng: &mut dyn Rng) -> Result<Array2<f64>> {
        let placed = place(lengths, self.passes);
        let fast = match self.rotation {
            RotationLaw::Haar => {
                return Ok(assemble(lengths, placed.dot(&haar_rows(lengths.len(), d, rng))));
            }
            RotationLaw::Hadamard(hadamard) => hadamard.draw_rotation(d, rng)?,
            RotationLaw::Givens(givens) => givens.draw_rotation(d, rng)?,
        };
        Ok(assemble(lengths, rotated(placed, &fast, self.padded(d))).slice_move(s![.., ..d]))
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
        if d < 2 { 0 } else { self.padded(d) }
    }

    fn draw_block(&self, d: usize, size: usize, radii: &dyn Radii, rng: &mut dyn Rng) -> Result<Drawn> {
        check_positive("the number of passes", self.passes)?;
        let lengths = draw_radii(radii, self.padded(d), (size, self.capacity(d)), rng)?;
        let rows = Rows::Dense(self.rows(d, &lengths, rng)?);
        let radius = match radii.law() {
            // Rows of norm √N have another norm once they are cut.
            Radius::RootDim if self.padded(d) > d => Radius::Other,
            law => law,
        };
        let alone = size == 1 && self.rotation == RotationLaw::Haar;
        let dependence = if alone { Dependence::Independent } else { Dependence::Unknown };
        Ok(Drawn { rows, law: BlockLaw { size, dependence, radius, antithetic: false } })
    }
}

/// Unit vectors sᵢ, in rows, for which ‖Σ rᵢ sᵢ‖ is small: `passes` of coordinate descent from the simplex.
///
/// Each step turns one vector against the sum of the others, sᵢ ← −Σ_{j≠i} rⱼ sⱼ/‖·‖, with what the steps
/// before have left (Gauss–Seidel), so the length never grows; it tends to max(0, 2 max r − Σ r). A vector
/// stays where the others sum to 0. O(n²) a pass, by a running sum.
pub fn place(radii: &[f64], passes: usize) -> Array2<f64> {
    // Relative to the largest, so that no square leaves the range.
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
                direction.zip_mut_with(&sum, |s, others| *s = -others / length);
            }
            sum.scaled_add(*radius, &direction);
        }
    }
    directions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frequency::radii::Chi;

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
