//! [`RowSpace`]: the eigenvectors of products of rows, and the targets in these eigenvectors.

use ndarray::{Array1, Array2, Axis, s};

use crate::error::Result;
use crate::linalg::Backend;
use crate::progress;

/// The eigenvectors of the products K of n rows, and the targets in these eigenvectors. If the direction of the mean is left out,
/// all eigenvectors are orthogonal to it.
#[derive(Clone, Debug)]
pub(in crate::apply) struct RowSpace {
    /// s, ascending, with r entries.
    pub values: Array1<f64>,
    /// U, n × r.
    pub vectors: Array2<f64>,
    /// Uᵀy, r × t.
    pub rotated: Array2<f64>,
}

impl RowSpace {
    /// The eigenvectors of a matrix K, n × n, of which the lower triangle is read, and the targets, n × t, in them. A unit vector
    /// `mean`, to which K and the targets are orthogonal, is left out. It gets the eigenvalue `apart`, above all others, so that
    /// it does not mix with the other eigenvectors.
    pub fn new(
        mut matrix: Array2<f64>,
        targets: &Array2<f64>,
        mean: &Array1<f64>,
        apart: f64,
    ) -> Result<Self> {
        for (row, own) in matrix.rows_mut().into_iter().zip(mean) {
            row.into_iter().zip(mean).for_each(|(v, other)| *v += apart * own * other);
        }
        progress::check()?;
        let eigen = Backend::default().eigen(&matrix)?;
        progress::check()?;
        let rest = matrix.nrows() - 1;
        let values = eigen.values.slice_move(s![..rest]);
        let vectors = eigen.vectors.slice_move(s![.., ..rest]);
        let rotated = vectors.t().dot(targets);
        Ok(RowSpace { values, vectors, rotated })
    }

    /// U diag(1/(s + λ)) Uᵀy, n × t.
    pub fn solved(&self, lambda: f64) -> Array2<f64> {
        let divisors = self.values.mapv(|s| s + lambda);
        self.vectors.dot(&(&self.rotated / &divisors.insert_axis(Axis(1))))
    }

    /// The residual of each row in the regression on all other rows, n × t: (Gy)ᵢ/Gᵢᵢ with G = U diag(1/(s + λ)) Uᵀ. No term
    /// cancels, however small λ is.
    pub fn left_out(&self, lambda: f64) -> Array2<f64> {
        let inverses = self.values.mapv(|s| (s + lambda).recip());
        let mut residuals = self.solved(lambda);
        for (mut row, vector) in residuals.rows_mut().into_iter().zip(self.vectors.rows()) {
            let left: f64 = vector.iter().zip(&inverses).map(|(v, inverse)| v * v * inverse).sum();
            row /= left;
        }
        residuals
    }
}
