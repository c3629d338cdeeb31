//! The factorisations by a LAPACK, through [`ndarray_linalg`].

use lax::error::Error::LapackComputationalFailure;
use ndarray::{Array1, Array2};
use ndarray_linalg::error::LinalgError;
use ndarray_linalg::{CholeskyInto, EighInto, JobSvd, Lapack, SVDDCInto, Scalar, UPLO};

use super::spectral::{Eigen, Svd};

/// U, upper triangular with `a` = Uᵀ U, or the row that fails.
pub(super) fn cholesky<T: Lapack>(a: Array2<T>) -> Result<Array2<T>, Option<usize>> {
    a.cholesky_into(UPLO::Upper).map_err(|error| match error {
        // LAPACK counts from 1.
        LinalgError::Lapack(LapackComputationalFailure { return_code }) => {
            usize::try_from(return_code - 1).ok()
        }
        _ => None,
    })
}

/// Eigenvalues and eigenvectors of a symmetric matrix, if the iteration converges.
pub(super) fn eigen<T: Lapack + Scalar<Real = T>>(a: Array2<T>) -> Option<Eigen<T>> {
    // It reads arrays in standard layout column by column, where the upper triangle is the lower one.
    let (values, vectors) = a.eigh_into(UPLO::Lower).ok()?;
    Some(Eigen { values, vectors: vectors.as_standard_layout().into_owned() })
}

/// Singular values and vectors, if the iteration converges.
pub(super) fn thin_svd<T: Lapack + Scalar<Real = T>>(a: Array2<T>) -> Option<Svd<T>> {
    let (left, values, right) = a.svddc_into(JobSvd::Some).ok()?;
    Some(Svd { left: left?, values, right: right?.t().as_standard_layout().into_owned() })
}

/// Singular values, if the iteration converges.
pub(super) fn singular_values<T: Lapack + Scalar<Real = T>>(a: Array2<T>) -> Option<Array1<T>> {
    Some(a.svddc_into(JobSvd::None).ok()?.1)
}
