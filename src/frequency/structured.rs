//! Structured frequencies: matrices that are never formed, only applied.
//!
//! A block consists of a rotation R of ℝᴺ that is a product of sparse factors, optionally a regular simplex S applied
//! after it, and a signed radius for each row. N ≥ d is the dimension to which points are padded with zeros.

use std::ops::Range;

use ndarray::{Array1, Array2, ArrayView1, s};

pub(crate) use super::rotation::signs;
pub use super::rotation::{PlaneRotation, Rotation};
use super::shape::{check_shape, outside};
use super::simplex_matrix;
use crate::digest::identified;
use crate::error::{Error, Result, check_positive, check_size};
use crate::memory::check_memory;

/// A block of structured rows: ωⱼ = rⱼ (S R)_{⌊j/c⌋}, truncated to the first d coordinates.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Rotated {
    /// The rotation R of ℝᴺ.
    pub rotation: Rotation,
    /// n, the number of vertices of the regular simplex S, n × n, which acts on the first n coordinates of Rx; 0 if S is the
    /// identity. Its rows are sᵢ = √(n/(n−1)) eᵢ − (√n+1)/(n−1)^{3/2} (1, …, 1, 0) for i < n, and
    /// s_n = (n−1)^{−1/2} (1, …, 1, 0).
    pub vertices: usize,
    /// c, the number of consecutive rows that share a direction: 2 for antithetic pairs, else 1.
    pub copies: usize,
    /// The signed radius rⱼ of each row.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub radii: Vec<f64>,
}

identified! {
    Rotated { rotation, vertices, copies, radii }
    Structured { dim, padded, blocks }
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
            Some(row) => Err(Error::NotFinite { what: "the radii", row, column: None }),
            None => Ok(()),
        }
    }

    /// The bytes of the factors and radii.
    pub(super) fn bytes(&self) -> usize {
        self.rotation.bytes() + size_of_val(&self.radii[..])
    }

    /// The inner products of the rows with padded points, the columns of `v`, which is overwritten.
    fn project(&self, mut v: Array2<f64>) -> Array2<f64> {
        self.rotation.rotate(v.view_mut());
        if self.vertices > 0 {
            simplex_matrix::multiply(v.slice_mut(s![..self.vertices, ..]));
        }
        let product = |(j, k): (usize, usize)| self.radii[j] * v[[j / self.copies, k]];
        Array2::from_shape_fn((self.radii.len(), v.ncols()), product)
    }
}

/// The largest N for which plane rotations may leave coordinates unchanged.
const UNTOUCHED: usize = 4096;

/// The largest N for points in ℝᵈ: the next power of two, and at least 16, because rows of smaller transforms are far
/// from Gaussian. `None` if it overflows.
pub(super) fn largest_padded_dim(d: usize) -> Option<usize> {
    d.checked_next_power_of_two().map(|power| power.max(16))
}

/// Frequencies in structured blocks: O(m) numbers to store, and O(m log d) operations for a product with a point.
///
/// ```
/// use random_features::frequency::Hadamard;
/// let omega = Hadamard::default().draw(100, 300, 1)?;
/// let structured = omega.structured().unwrap();
/// assert_eq!((structured.padded(), structured.blocks().len()), (128, 3));
/// # Ok::<(), random_features::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "StoredStructured", into = "StoredStructured")
)]
pub struct Structured {
    dim: usize,
    padded: usize,
    blocks: Vec<Rotated>,
}

impl Structured {
    /// Blocks of rows in ℝᵈ with d = `dim`, constructed in ℝᴺ with N = `padded`. N must be from d to the next power of
    /// two, or to 16 if that is larger.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter), [`Shape`](Error::Shape) or [`NotFinite`](Error::NotFinite) if a part does
    /// not fit the others or is outside its domain.
    pub fn new(dim: usize, padded: usize, blocks: Vec<Rotated>) -> Result<Self> {
        check_positive("the dimension d", dim)?;
        check_positive("the number of frequencies m", blocks.len())?;
        if padded < dim || largest_padded_dim(dim).is_none_or(|most| padded > most) {
            return Err(outside(
                "the padded dimension N",
                padded,
                "from d to the next power of two, or to 16",
            ));
        }
        blocks.iter().try_for_each(|block| block.check(padded))?;
        // Stored data may claim any dimension; a few numbers must not make a reader allocate unbounded memory.
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
    pub fn m(&self) -> usize {
        self.blocks.iter().map(|block| block.radii.len()).sum()
    }

    /// The inner products of all rows with a point of dimension d, directly from the definition. Maps use a faster
    /// method.
    ///
    /// # Errors
    /// [`Shape`](Error::Shape) if the point does not have d entries.
    pub fn project(&self, x: ArrayView1<'_, f64>) -> Result<Array1<f64>> {
        check_size("the dimension of x", self.dim, x.len())?;
        let mut padded = Array2::zeros((self.padded, 1));
        padded.slice_mut(s![..self.dim, 0]).assign(&x);
        Ok(self.blocks.iter().flat_map(|block| block.project(padded.clone())).collect())
    }

    /// Rejects these rows if there is no memory for their matrix and for computing it.
    pub(super) fn check_rows(&self) -> Result<()> {
        let units = 4 * run(self.padded) * self.padded;
        let each = self.dim.saturating_add(units.div_ceil(self.m().max(1)));
        check_memory("frequencies written out as a matrix", self.m(), each.saturating_mul(size_of::<f64>()))
    }

    /// The rows as an m × d matrix, computed by projecting the unit vectors.
    pub fn to_rows(&self) -> Array2<f64> {
        let mut rows = Array2::zeros((self.m(), self.dim));
        // Unit vectors are projected a run at a time: all of them would be a matrix of N × d.
        for columns in runs(self.dim, run(self.padded)) {
            let mut units = Array2::zeros((self.padded, columns.len()));
            units.slice_mut(s![columns.clone(), ..]).diag_mut().fill(1.0);
            let mut first = 0;
            for block in &self.blocks {
                let last = first + block.radii.len();
                rows.slice_mut(s![first..last, columns.clone()]).assign(&block.project(units.clone()));
                first = last;
            }
        }
        rows
    }
}

/// Runs of coordinates below d. No run is a single coordinate, unless d = 1: sums over one column are rounded otherwise.
fn runs(d: usize, run: usize) -> impl Iterator<Item = Range<usize>> {
    let count = (d / run).max(1);
    (0..count).map(move |k| k * run..if k + 1 == count { d } else { (k + 1) * run })
}

/// The number of unit vectors in ℝᴺ that are projected at a time: at most 64 MiB of them, but at least 2.
fn run(padded: usize) -> usize {
    ((64 << 20) / (padded * size_of::<f64>()).max(1)).clamp(2, 256)
}

/// The stored form, validated again on reading.
#[cfg(feature = "serde")]
#[derive(serde::Serialize, serde::Deserialize)]
struct StoredStructured {
    dim: usize,
    padded: usize,
    blocks: Vec<Rotated>,
}

#[cfg(feature = "serde")]
impl TryFrom<StoredStructured> for Structured {
    type Error = Error;

    fn try_from(parts: StoredStructured) -> Result<Self> {
        Structured::new(parts.dim, parts.padded, parts.blocks)
    }
}

#[cfg(feature = "serde")]
impl From<Structured> for StoredStructured {
    fn from(structured: Structured) -> Self {
        StoredStructured { dim: structured.dim, padded: structured.padded, blocks: structured.blocks }
    }
}
