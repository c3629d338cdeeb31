//! [`Rotation`]: rotations that are products of sparse factors.

use ndarray::{Array1, Array2, ArrayView1, ArrayViewMut2, Axis, Zip, s};

use super::shape::outside;
use crate::digest::identified;
use crate::error::{Error, Result, check_positive, check_size};
use crate::numeric::{Isa, hadamard_rounds};
use crate::tagged::tagged;

/// A rotation of ℝᴺ as a product of sparse factors.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Rotation {
    /// Rounds of sign flips and Hadamard transforms, v ← N^{−1/2} H D v, one for each row of the matrix, rounds × N, from the
    /// first row on. `true` flips the sign of its coordinate. N is a power of two, H the Sylvester–Hadamard matrix.
    Hadamard(Array2<bool>),
    /// Plane rotations, applied from the first on.
    Givens(Vec<PlaneRotation>),
}

/// A rotation in the plane of two coordinates: (a, b) → (a cos t − b sin t, a sin t + b cos t).
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PlaneRotation {
    /// The coordinates a and b, which differ.
    pub axes: [usize; 2],
    /// The angle t in radians.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub angle: f64,
}

tagged!(Rotation, "a rotation" {
    "hadamard" => Hadamard(flips: Array2<bool>),
    "givens" => Givens(planes: Vec<PlaneRotation>),
});

identified! { PlaneRotation { axes, angle } }

impl Rotation {
    /// v ← R v. Cost O(N log N) per round, or O(1) per plane.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) or [`Parameter`](Error::Parameter) if the factors are not of the vector's dimension,
    /// [`NotFinite`](Error::NotFinite) if an angle is not finite.
    pub fn apply(&self, v: &mut Array1<f64>) -> Result<()> {
        self.check(v.len())?;
        self.rotate(v.view_mut().insert_axis(Axis(1)));
        Ok(())
    }

    /// Rotates every column.
    pub(super) fn rotate(&self, mut v: ArrayViewMut2<'_, f64>) {
        match self {
            Rotation::Hadamard(flips) => {
                let signs = signs(flips);
                for mut column in v.columns_mut() {
                    let mut rotated = column.to_vec();
                    hadamard_rounds(Isa::best(), &mut rotated, &signs);
                    column.assign(&ArrayView1::from(&rotated));
                }
            }
            Rotation::Givens(rotations) => {
                for PlaneRotation { axes: [i, j], angle } in rotations {
                    let (sin, cos) = angle.sin_cos();
                    let (a, b) = v.multi_slice_mut((s![*i, ..], s![*j, ..]));
                    Zip::from(a)
                        .and(b)
                        .for_each(|a, b| (*a, *b) = (*a * cos - *b * sin, *a * sin + *b * cos));
                }
            }
        }
    }

    /// The bytes of the factors.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Rotation::Hadamard(flips) => flips.len(),
            Rotation::Givens(rotations) => size_of_val(&rotations[..]),
        }
    }

    /// An upper bound on the number of coordinates that the factors change.
    pub(super) fn span(&self) -> usize {
        match self {
            Rotation::Hadamard(flips) => flips.ncols(),
            Rotation::Givens(rotations) => rotations.len().saturating_mul(2),
        }
    }

    /// Rejects factors that are not of this dimension.
    pub(super) fn check(&self, dim: usize) -> Result<()> {
        match self {
            Rotation::Hadamard(flips) => {
                check_size("the number of sign flips in a round", dim, flips.ncols())?;
                check_positive("the number of rounds", flips.nrows())?;
                if dim.is_power_of_two() {
                    Ok(())
                } else {
                    Err(outside("the dimension N", dim, "a power of two"))
                }
            }
            Rotation::Givens(rotations) => {
                let wrong =
                    |r: &&PlaneRotation| r.axes[0] == r.axes[1] || r.axes.iter().any(|axis| *axis >= dim);
                if let Some(rotation) = rotations.iter().find(wrong) {
                    return Err(outside(
                        "an axis of a plane",
                        rotation.axes[1],
                        "below N and unlike the other",
                    ));
                }
                match rotations.iter().position(|r| !r.angle.is_finite()) {
                    Some(row) => Err(Error::NotFinite { what: "the angles", row, column: None }),
                    None => Ok(()),
                }
            }
        }
    }
}

/// ±N^{−1/2} for all flips of all rounds.
pub(crate) fn signs(flips: &Array2<bool>) -> Vec<f64> {
    let size = (flips.ncols() as f64).sqrt().recip();
    flips.iter().map(|flip| if *flip { -size } else { size }).collect()
}
