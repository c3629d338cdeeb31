//! Features in blocks as values near 1, relative to references: logarithms are exponentiated relative to the largest of their
//! row or column.

use std::ops::Range;

use crate::Real;
use crate::engine::{Batch, Form};
use crate::numeric::special::largest;
use crate::numeric::{Isa, exp_minus, max, raise, subtract};

/// The scales of block `b` in all rows; a row has a scale for each of `blocks` blocks.
pub(crate) fn block_scales(
    log_scales: &[f64],
    blocks: usize,
    b: usize,
) -> impl Iterator<Item = f64> + Clone + '_ {
    log_scales.iter().skip(b).step_by(blocks).copied()
}

/// Replaces a row's logarithms by exponentials relative to the largest logarithm, which is returned.
pub(crate) fn exponentiate<T: Real>(values: &mut [T]) -> f64 {
    let top = max(Isa::best(), values);
    if top > T::neg_infinity() {
        exp_minus(Isa::best(), values, top);
    } else if values.iter().all(|v| *v == T::neg_infinity()) {
        values.fill(T::zero());
    }
    top.widen()
}

/// Replaces all features of a batch by values relative to a reference for each column; `tops` is room for a block. Rows from
/// which a block is absent become 0 there.
pub(super) fn relative_to_columns<T: Real>(
    batch: &mut Batch<T>,
    form: Form,
    blocks: &[Range<usize>],
    reference: &mut [f64],
    tops: &mut Vec<T>,
) {
    for (b, columns) in blocks.iter().enumerate() {
        let reference = &mut reference[columns.clone()];
        match form {
            Form::Logarithms => exponentiate_columns(batch, blocks, b, reference, tops),
            Form::Values => rescale(batch, blocks, b, reference),
        }
    }
}

/// Replaces a block's logarithms by signed exponentials relative to the largest of each column, which becomes its
/// reference.
fn exponentiate_columns<T: Real>(
    batch: &mut Batch<T>,
    blocks: &[Range<usize>],
    b: usize,
    reference: &mut [f64],
    tops: &mut Vec<T>,
) {
    let (columns, top) = (&blocks[b], largest(block_scales(batch.log_scales(), blocks.len(), b)));
    tops.clear();
    tops.resize(columns.len(), T::neg_infinity());
    for i in 0..batch.rows() {
        let row = batch.row_mut(i);
        let values = &mut row.values[columns.clone()];
        if row.log_scales[b] == f64::NEG_INFINITY {
            values.fill(T::neg_infinity());
            row.signs[columns.clone()].fill(T::one());
        } else {
            raise(Isa::best(), tops, values, T::narrow(row.log_scales[b] - top));
        }
    }
    reference.iter_mut().zip(&*tops).for_each(|(r, column)| *r = top + column.widen());
    // A feature that is 0 in all rows has the logarithm −∞ there: relative to 0 it stays 0.
    tops.iter_mut().filter(|top| **top == T::neg_infinity()).for_each(|top| *top = T::zero());
    for i in 0..batch.rows() {
        let row = batch.row_mut(i);
        let values = &mut row.values[columns.clone()];
        subtract(Isa::best(), values, tops);
        exp_minus(Isa::best(), values, T::zero());
        values.iter_mut().zip(&row.signs[columns.clone()]).for_each(|(v, sign)| *v *= *sign);
    }
}

/// Makes a block's values relative to the largest scale, which becomes the reference of all its columns.
fn rescale<T: Real>(batch: &mut Batch<T>, blocks: &[Range<usize>], b: usize, reference: &mut [f64]) {
    let top = largest(block_scales(batch.log_scales(), blocks.len(), b));
    reference.fill(top);
    for i in 0..batch.rows() {
        let row = batch.row_mut(i);
        let values = &mut row.values[blocks[b].clone()];
        if row.log_scales[b] == f64::NEG_INFINITY {
            values.fill(T::zero());
        } else {
            let weight = T::narrow((row.log_scales[b] - top).exp());
            values.iter_mut().for_each(|v| *v *= weight);
        }
    }
}
