//! The factorisations by a LAPACK, through [`ndarray_linalg`].

use lax::error::Error::LapackComputationalFailure;
use ndarray::{Array1, Array2};
use ndarray_linalg::error::LinalgError;
use ndarray_linalg::{CholeskyInto, EighInto, JobSvd, SVDDCInto, UPLO};

use super::spectral::{Eigen, Svd};

/// U, upper triangular with `a` = Uᵀ U, or the row that fails.
pub(super) fn cholesky(a: Array2<f64>) -> Result<Array2<f64>, Option<usize>> {
    a.cholesky_into(UPLO::Upper).map_err(|error| match error {
        // LAPACK counts from 1.
        LinalgError::Lapack(LapackComputationalFailure { return_code }) => {
            usize::try_from(return_code - 1).ok()
        }
        _ => None,
    })
}

/// Eigenvalues and eigenvectors of a symmetric matrix, if the iteration converges.
pub(super) fn eigen(a: Array2<f64>) -> Option<Eigen> {
    // It reads arrays in standard layout column by column, where the upper triangle is the lower one.
    let (values, vectors) = a.eigh_into(UPLO::Lower).ok()?;
    Some(Eigen { values, vectors: vectors.as_standard_layout().into_owned() })
}

/// Singular values and vectors, if the iteration converges.
pub(super) fn thin_svd(a: Array2<f64>) -> Option<Svd> {
    let (left, values, right) = a.svddc_into(JobSvd::Some).ok()?;
    Some(Svd { left: left?, values, right: right?.t().as_standard_layout().into_owned() })
}

/// Singular values, if the iteration converges.
pub(super) fn singular_values(a: Array2<f64>) -> Option<Array1<f64>> {
    Some(a.svddc_into(JobSvd::None).ok()?.1)
}
