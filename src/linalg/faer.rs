//! The factorisations by [`faer`], each call of it on one thread, whatever threads other users of it allow. A large
//! Cholesky factorisation is cut into such calls here, which threads share: the bits of a result do not depend on them.

use faer::diag::Diag;
use faer::dyn_stack::{MemBuffer, MemStack, StackReq};
use faer::linalg::cholesky::llt::factor::{LltError, cholesky_in_place, cholesky_in_place_scratch};
use faer::linalg::evd::{ComputeEigenvectors, self_adjoint_evd, self_adjoint_evd_scratch};
use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::linalg::svd::{ComputeSvdVectors, svd, svd_scratch};
use faer::linalg::triangular_solve::solve_lower_triangular_in_place;
use faer::reborrow::{Reborrow, ReborrowMut};
use faer::{Accum, Mat, MatMut, MatRef, Par};
use ndarray::{Array1, Array2, ArrayRef2, s};

use super::spectral::{Eigen, Svd};
use crate::numeric::slice_of_mut;
use crate::threads::join;

/// How faer cuts work: in the same way whatever the number of threads.
const PAR: Par = Par::Seq;

/// Rows that faer factors, solves for or multiplies at a time. Where matrices are cut depends on their size alone.
const TILE: usize = 256;

/// U, upper triangular with `a` = Uᵀ U, or the row that fails.
pub(super) fn cholesky(mut a: Array2<f64>) -> Result<Array2<f64>, Option<usize>> {
    let n = a.nrows();
    // Read column by column, the rows of U are the columns of L.
    factor(MatMut::from_column_major_slice_mut(slice_of_mut(&mut a), n, n)).map_err(Some)?;
    // faer uses what is above the diagonal of L as room.
    for (i, mut row) in a.rows_mut().into_iter().enumerate() {
        row.slice_mut(s![..i]).fill(0.0);
    }
    Ok(a)
}

/// Puts L into the lower triangle of A = L Lᵀ, or says which row fails.
fn factor(a: MatMut<'_, f64>) -> Result<(), usize> {
    let n = a.nrows();
    if n <= TILE {
        return with_stack(cholesky_in_place_scratch::<f64>(n, PAR, Default::default()), |stack| {
            cholesky_in_place(a, Default::default(), PAR, stack, Default::default())
        })
        .map(|_| ())
        .map_err(|LltError::NonPositivePivot { index }| index);
    }
    let half = half(n);
    let (mut above, _, mut below, mut rest) = a.split_at_mut(half, half);
    factor(above.rb_mut())?;
    solve(above.rb(), below.rb_mut());
    subtract_square(rest.rb_mut(), below.rb());
    factor(rest).map_err(|row| half + row)
}

/// B ← B L⁻ᵀ.
fn solve(l: MatRef<'_, f64>, b: MatMut<'_, f64>) {
    if b.nrows() <= TILE {
        return solve_lower_triangular_in_place(l, b.transpose_mut(), PAR);
    }
    let half = half(b.nrows());
    let (above, below) = b.split_at_row_mut(half);
    join(|| solve(l, above), || solve(l, below));
}

/// The lower triangle of A ← A − B Bᵀ.
fn subtract_square(a: MatMut<'_, f64>, b: MatRef<'_, f64>) {
    if a.nrows() <= TILE {
        let (lower, whole) = (BlockStructure::TriangularLower, BlockStructure::Rectangular);
        return triangular::matmul(a, lower, Accum::Add, b, whole, b.transpose(), whole, -1.0, PAR);
    }
    let half = half(a.nrows());
    let (above, _, left, below) = a.split_at_mut(half, half);
    let (b, c) = b.split_at_row(half);
    join(|| subtract(left, c, b), || join(|| subtract_square(above, b), || subtract_square(below, c)));
}

/// A ← A − B Cᵀ.
fn subtract(a: MatMut<'_, f64>, b: MatRef<'_, f64>, c: MatRef<'_, f64>) {
    if a.nrows() > TILE {
        let half = half(a.nrows());
        let ((above, below), (b, d)) = (a.split_at_row_mut(half), b.split_at_row(half));
        join(|| subtract(above, b, c), || subtract(below, d, c));
    } else {
        matmul(a, Accum::Add, b, c.transpose(), -1.0, PAR);
    }
}

/// About the half of n, which is above `TILE`, in whole registers.
fn half(n: usize) -> usize {
    (n / 2).next_multiple_of(64)
}

/// Eigenvalues and eigenvectors of a symmetric matrix, if the iteration converges.
pub(super) fn eigen(a: Array2<f64>) -> Option<Eigen> {
    let n = a.nrows();
    let (mut values, mut vectors) = (Diag::zeros(n), Mat::zeros(n, n));
    let scratch = self_adjoint_evd_scratch::<f64>(n, ComputeEigenvectors::Yes, PAR, Default::default());
    with_stack(scratch, |stack| {
        let (values, vectors) = (values.as_mut(), Some(vectors.as_mut()));
        self_adjoint_evd(matrix(&a).transpose(), values, vectors, PAR, stack, Default::default())
    })
    .ok()?;
    Some(Eigen { values: list(&values), vectors: array(vectors.as_ref()) })
}

/// Singular values and vectors, if the iteration converges.
pub(super) fn thin_svd(a: Array2<f64>) -> Option<Svd> {
    let ((m, n), thin) = (a.dim(), ComputeSvdVectors::Thin);
    let rank = m.min(n);
    let (mut left, mut values, mut right) = (Mat::zeros(m, rank), Diag::zeros(rank), Mat::zeros(n, rank));
    with_stack(svd_scratch::<f64>(m, n, thin, thin, PAR, Default::default()), |stack| {
        let (left, right) = (Some(left.as_mut()), Some(right.as_mut()));
        svd(matrix(&a).as_ref(), values.as_mut(), left, right, PAR, stack, Default::default())
    })
    .ok()?;
    Some(Svd { left: array(left.as_ref()), values: list(&values), right: array(right.as_ref()) })
}

/// Singular values, if the iteration converges.
pub(super) fn singular_values(a: Array2<f64>) -> Option<Array1<f64>> {
    let ((m, n), none) = (a.dim(), ComputeSvdVectors::No);
    let mut values = Diag::zeros(m.min(n));
    with_stack(svd_scratch::<f64>(m, n, none, none, PAR, Default::default()), |stack| {
        svd(matrix(&a).as_ref(), values.as_mut(), None, None, PAR, stack, Default::default())
    })
    .ok()?;
    Some(list(&values))
}

fn with_stack<R>(scratch: StackReq, run: impl FnOnce(&mut MemStack) -> R) -> R {
    run(MemStack::new(&mut MemBuffer::new(scratch)))
}

fn matrix(a: &ArrayRef2<f64>) -> Mat<f64> {
    Mat::from_fn(a.nrows(), a.ncols(), |i, j| a[[i, j]])
}

fn array(a: MatRef<'_, f64>) -> Array2<f64> {
    Array2::from_shape_fn(a.shape(), |(i, j)| a[(i, j)])
}

fn list(values: &Diag<f64>) -> Array1<f64> {
    values.column_vector().iter().copied().collect()
}
