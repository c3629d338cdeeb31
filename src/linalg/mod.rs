//! The library that factorises matrices in `f64`, for regression, principal components and features that are fitted to
//! data: [`Backend`].
//!
//! Systems are solved from factors by the same code for every backend, and eigenvectors and singular vectors have the
//! same signs.
//!
//! # Backends
//! | value | cargo feature | what it is |
//! |---|---|---|
//! | `Backend::Faer` | `faer`, in `default` | faer, in Rust. One thread, or all for a Cholesky factorisation of more than 256 rows; the bits of a result do not depend on the number of threads. |
//! | `Backend::Lapack` | `ndarray-linalg` | A LAPACK. It manages its own threads, and bits may depend on their number: `OPENBLAS_NUM_THREADS=1` restricts OpenBLAS to one. |
//!
//! `Backend::default()` is faer where both are enabled. Without either feature this module is empty; the rest of the crate
//! works, and frequencies are the same to the bit, since their rotations use no backend.
//!
//! The feature `ndarray-linalg` alone links no LAPACK. A program selects exactly one of `openblas-system`,
//! `openblas-static`, `intel-mkl-system`, `intel-mkl-static`, `netlib-system` and `netlib-static`; a library should
//! select none and leave the choice to programs.

mod householder;
mod lu;

#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
mod backend;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
mod cholesky;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
mod lanczos;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
mod spectral;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
mod triangular;

#[cfg(feature = "faer")]
mod faer;
#[cfg(feature = "ndarray-linalg")]
mod lapack;

pub(crate) use householder::orthonormal_rows;
pub(crate) use lu::{Lu, solve};

#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
pub use self::backend::Backend;
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
pub(crate) use self::{
    cholesky::Cholesky,
    lanczos::largest_eigenpairs,
    spectral::{Eigen, Svd},
};
