//! Substitution: U⁻ᵀX and U⁻¹X for an upper triangular matrix U and several right-hand sides X.

use ndarray::linalg::general_mat_mul;
use ndarray::{ArrayRef2, ArrayViewMut2, Axis, s};

/// Rows of a block, which are solved one by one before a matrix product subtracts them from the others.
const BLOCK: usize = 64;

/// X ← U⁻ᵀ X, from the first row to the last.
pub(super) fn forward(u: &ArrayRef2<f64>, x: &mut ArrayRef2<f64>) {
    for start in (0..u.nrows()).step_by(BLOCK) {
        let end = u.nrows().min(start + BLOCK);
        let (mut known, mut rest) = x.view_mut().split_at(Axis(0), end);
        let mut block = known.slice_mut(s![start.., ..]);
        forward_block(&u.slice(s![start..end, start..end]), block.view_mut());
        general_mat_mul(-1.0, &u.slice(s![start..end, end..]).t(), &block, 1.0, &mut rest);
    }
}

/// X ← U⁻¹ X, from the last row to the first.
pub(super) fn backward(u: &ArrayRef2<f64>, x: &mut ArrayRef2<f64>) {
    for start in (0..u.nrows()).step_by(BLOCK).rev() {
        let end = u.nrows().min(start + BLOCK);
        let (mut unknown, known) = x.view_mut().split_at(Axis(0), end);
        let mut block = unknown.slice_mut(s![start.., ..]);
        general_mat_mul(-1.0, &u.slice(s![start..end, end..]), &known, 1.0, &mut block);
        backward_block(&u.slice(s![start..end, start..end]), block);
    }
}

fn forward_block(u: &ArrayRef2<f64>, mut x: ArrayViewMut2<'_, f64>) {
    for k in 0..u.nrows() {
        let (mut known, mut rest) = x.view_mut().split_at(Axis(0), k + 1);
        let mut row = known.row_mut(k);
        row /= u[[k, k]];
        for (mut below, &weight) in rest.rows_mut().into_iter().zip(u.slice(s![k, k + 1..])) {
            below.scaled_add(-weight, &row);
        }
    }
}

fn backward_block(u: &ArrayRef2<f64>, mut x: ArrayViewMut2<'_, f64>) {
    for k in (0..u.nrows()).rev() {
        let (mut unknown, known) = x.view_mut().split_at(Axis(0), k + 1);
        let mut row = unknown.row_mut(k);
        for (below, &weight) in known.rows().into_iter().zip(u.slice(s![k, k + 1..])) {
            row.scaled_add(-weight, &below);
        }
        row /= u[[k, k]];
    }
}
