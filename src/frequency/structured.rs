//! Structured frequencies: rows that are never written out, only multiplied with.
//!
//! A block of them is a rotation R of ℝᴺ that is a product of sparse factors, perhaps a regular simplex S on top of
//! it, and a signed radius for each row. N ≥ d is the dimension that points are padded to, with zeros.

use ndarray::{Array1, Array2, ArrayView1, s};

pub(crate) use super::rotation::signs;
pub use super::rotation::{PlaneRotation, Rotation};
use super::shape::{check_shape, outside};
use super::simplex_matrix;
use crate::error::{Error, Result, check_positive, check_size};

/// A block of structured rows: ωⱼ = rⱼ (S R)_{⌊j/c⌋}, cut to the first d coordinates.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Rotated {
    /// R.
    pub rotation: Rotation,
    /// The number of rows of S, a regular simplex ([`simplex::vertices`](super::simplex::vertices)) on the first
    /// coordinates of Rx; 0 if S is the identity.
    pub vertices: usize,
    /// c, the number of rows in a run that share a direction: 2 for antithetic pairs, else 1.
    pub copies: usize,
    /// r, with signs; one for each row.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub radii: Vec<f64>,
}

impl Rotated {
    fn check(&self, padded: usize) -> Result<()> {
        self.rotation.check(padded)?;
        check_positive("the number of rows of a block", self.radii.len())?;
        check_positive("the number of copies of a direction", self.copies)?;
        if self.vertices == 1 || self.vertices > padded {
            return Err(outside("the number of vertices", self.vertices, "0, or from 2 to N"));
        }
        let directions = if self.vertices == 0 { padded } else { self.vertices };
        if self.radii.len().div_ceil(self.copies) > directions {
            return Err(outside(
                "the number of rows of a block",
                self.radii.len(),
                "at most N or the vertices, each copied",
            ));
        }
        match self.radii.iter().position(|radius| !radius.is_finite()) {
            Some(row) => Err(Error::NotFinite { what: "the radii", row }),
            None => Ok(()),
        }
    }

    /// The inner products of the rows with padded points, which are the columns and lost: a row for each row.
    fn project(&self, mut v: Array2<f64>) -> Array2<f64> {
        self.rotation.rotate(v.view_mut());
        if self.vertices > 0 {
            simplex_matrix::multiply(v.slice_mut(s![..self.vertices, ..]));
        }
        let product = |(j, k): (usize, usize)| self.radii[j] * v[[j / self.copies, k]];
        Array2::from_shape_fn((self.radii.len(), v.ncols()), product)
    }
}

/// The largest N of which plane rotations may leave coordinates untouched.
const UNTOUCHED: usize = 4096;

/// The largest N for points in ℝᵈ: the next power of two, and at least 16, below which rows of a transform are far from
/// Gaussian. `None` if there is none.
pub(super) fn widest(d: usize) -> Option<usize> {
    d.checked_next_power_of_two().map(|power| power.max(16))
}

/// Frequencies in structured blocks: O(m) numbers, and O(m log d) operations for a product with a point.
///
/// # Example
/// ```
/// use random_features::frequency::{Coupling, Hadamard};
/// let omega = Hadamard::default().draw(100, 300, 1)?;
/// let structured = omega.structured().unwrap();
/// assert_eq!((structured.padded(), structured.blocks().len()), (128, 3));
/// # Ok::<(), random_features::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "Parts", into = "Parts")
)]
pub struct Structured {
    dim: usize,
    padded: usize,
    blocks: Vec<Rotated>,
}

impl Structured {
    /// Blocks of rows in ℝᵈ with d = `dim`, made in ℝᴺ with N = `padded` from d to the next power of two, or to 16 if
    /// that is more.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter), [`Shape`](Error::Shape) or [`NotFinite`](Error::NotFinite) if a part does
    /// not fit the others or is outside its domain.
    pub fn new(dim: usize, padded: usize, blocks: Vec<Rotated>) -> Result<Self> {
        check_positive("the dimension d", dim)?;
        check_positive("the number of frequencies m", blocks.len())?;
        if padded < dim || widest(dim).is_none_or(|most| padded > most) {
            return Err(outside(
                "the padded dimension N",
                padded,
                "from d to the next power of two, or to 16",
            ));
        }
        blocks.iter().try_for_each(|block| block.check(padded))?;
        // What is read may claim any dimension: so few numbers must not stand for more memory than there is.
        let least = blocks.iter().map(|block| block.rotation.span()).min().unwrap_or(0);
        if padded > least.max(UNTOUCHED) {
            let domain = "at most 4096, or twice the number of planes of each block";
            return Err(outside("the padded dimension N", padded, domain));
        }
        let count: usize = blocks.iter().map(|block| block.radii.len()).sum();
        check_shape(padded, count)?;
        Ok(Structured { dim, padded, blocks })
    }

    /// d, the dimension of points.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// N, the dimension that points are padded to.
    pub fn padded(&self) -> usize {
        self.padded
    }

    /// The blocks, in the order of the rows.
    pub fn blocks(&self) -> &[Rotated] {
        &self.blocks
    }

    /// m, the number of rows.
    pub fn count(&self) -> usize {
        self.blocks.iter().map(|block| block.radii.len()).sum()
    }

    /// The inner products of all rows with a point of dimension d, straight from the definition. Maps take a faster
    /// way.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if the point does not have d entries.
    pub fn project(&self, x: ArrayView1<'_, f64>) -> Result<Array1<f64>> {
        check_size("the dimension of x", self.dim, x.len())?;
        let mut padded = Array2::zeros((self.padded, 1));
        padded.slice_mut(s![..self.dim, 0]).assign(&x);
        Ok(self.blocks.iter().flat_map(|block| block.project(padded.clone())).collect())
    }

    /// The rows, written out: m × d, one column for each coordinate's unit vector.
    pub fn to_rows(&self) -> Array2<f64> {
        let mut rows = Array2::zeros((self.count(), self.dim));
        let mut units = Array2::zeros((self.padded, self.dim));
        units.diag_mut().fill(1.0);
        let mut first = 0;
        for block in &self.blocks {
            let last = first + block.radii.len();
            rows.slice_mut(s![first..last, ..]).assign(&block.project(units.clone()));
            first = last;
        }
        rows
    }
}

/// The stored form, checked again when it is read.
#[cfg(feature = "serde")]
#[derive(serde::Serialize, serde::Deserialize)]
struct Parts {
    dim: usize,
    padded: usize,
    blocks: Vec<Rotated>,
}

#[cfg(feature = "serde")]
impl TryFrom<Parts> for Structured {
    type Error = Error;

    fn try_from(parts: Parts) -> Result<Self> {
        Structured::new(parts.dim, parts.padded, parts.blocks)
    }
}

#[cfg(feature = "serde")]
impl From<Structured> for Parts {
    fn from(structured: Structured) -> Self {
        Parts { dim: structured.dim, padded: structured.padded, blocks: structured.blocks }
    }
}
