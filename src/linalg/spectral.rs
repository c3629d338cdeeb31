//! [`Eigen`] and [`Svd`], and the signs of their vectors.

use ndarray::{Array1, Array2, ArrayView1};

/// The eigendecomposition A = V diag(λ) Vᵀ of a symmetric n × n matrix.
///
/// The sign of a vector is such that the first of its large entries, those within a tenth of the largest in size, is
/// positive. Where eigenvalues differ by a few ε‖A‖ or less, only the space that their vectors span is determined.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Eigen {
    /// λ, in ascending order.
    pub values: Array1<f64>,
    /// V, n × n and orthogonal: column k belongs to `values[k]`.
    pub vectors: Array2<f64>,
}

/// The thin singular value decomposition A = U diag(σ) Vᵀ of an m × n matrix, with r = min(m, n).
///
/// The signs of the pairs of vectors are such that in each column of V the first of the large entries, those within a
/// tenth of the largest in size, is positive.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Svd {
    /// U, m × r, with orthonormal columns.
    pub left: Array2<f64>,
    /// σ, descending and not negative.
    pub values: Array1<f64>,
    /// V, n × r, with orthonormal columns.
    pub right: Array2<f64>,
}

impl Eigen {
    /// Multiplies values by the unit and gives vectors their signs.
    pub(super) fn finish(mut self, unit: f64) -> Self {
        self.values *= unit;
        for mut vector in self.vectors.columns_mut() {
            let sign = sign(vector.view());
            vector *= sign;
        }
        self
    }
}

impl Svd {
    /// Multiplies values by the unit and gives vectors their signs.
    pub(super) fn finish(mut self, unit: f64) -> Self {
        self.values *= unit;
        for (mut left, mut right) in self.left.columns_mut().into_iter().zip(self.right.columns_mut()) {
            let sign = sign(right.view());
            left *= sign;
            right *= sign;
        }
        self
    }
}

/// The sign of the first large entry. The margin keeps rounding from deciding between entries of equal size.
fn sign(vector: ArrayView1<'_, f64>) -> f64 {
    let largest = vector.iter().fold(0.0, |largest: f64, entry| largest.max(entry.abs()));
    let large = vector.iter().find(|entry| entry.abs() >= largest * 0.9);
    large.map_or(1.0, |entry| entry.signum())
}
