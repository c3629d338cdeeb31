//! [`Sums`]: weighted sums of features over the training points, mergeable and free of overflow.

use std::ops::Range;

use ndarray::{Array2, ArrayRef2, ArrayView2, ArrayViewMut2, Axis, s};

use crate::Real;
use crate::map::batch::{Batch, ranges};
use crate::numeric::{Isa, add_scaled, dot, exp_minus, max};

/// Σᵢ yᵢ φ_f(xᵢ) for every feature f and target, each e^reference\[f\] times what is stored, in `f64`.
///
/// Exponential features have a reference each, the largest exponent seen: no sum of them underflows whatever
/// the norms, so a weight is never 0/0. Other features share one in each block. −∞ is the reference of what
/// has not been seen, or is 0 so far.
#[derive(Clone, Debug)]
pub(super) struct Sums {
    reference: Vec<f64>,
    /// (targets + 1) × D; the last row is for the target 1.
    sums: Array2<f64>,
}

impl Sums {
    pub(super) fn new(targets: usize, features: usize) -> Self {
        Sums { reference: vec![f64::NEG_INFINITY; features], sums: Array2::zeros((targets + 1, features)) }
    }

    /// The sums over one batch.
    pub(super) fn of<T: Real>(mut batch: Batch<T>, blocks: &[usize], targets: &ArrayRef2<T>) -> Self {
        let mut sums = Sums::new(targets.ncols(), batch.values.ncols());
        for (b, columns) in ranges(blocks).enumerate() {
            let scales = batch.log_scales.column(b);
            let top = scales.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let offsets: Vec<f64> = scales.iter().map(|scale| scale - top).collect();
            if top == f64::NEG_INFINITY {
                continue;
            }
            let reference = &mut sums.reference[columns.clone()];
            reference.fill(top);
            let weights = if batch.logarithmic {
                let mut values = batch.values.slice_mut(s![.., columns.clone()]);
                exponentiate(values.view_mut(), &offsets, reference);
                values *= &batch.signs.slice(s![.., columns.clone()]);
                offsets.iter().map(|offset| f64::from(*offset > f64::NEG_INFINITY)).collect()
            } else {
                offsets.iter().map(|offset| offset.exp()).collect()
            };
            sums.accumulate(batch.values.slice(s![.., columns.clone()]), columns, weights, targets);
        }
        sums
    }

    /// Adds the rows with these weights; a weight of 0 marks an absent row, which is not read.
    fn accumulate<T: Real>(
        &mut self,
        values: ArrayView2<'_, T>,
        columns: Range<usize>,
        weights: Vec<f64>,
        targets: &ArrayRef2<T>,
    ) {
        let mut sums = self.sums.slice_mut(s![.., columns]);
        for ((row, weight), targets) in values.rows().into_iter().zip(weights).zip(targets.rows()) {
            let Some(row) = row.to_slice().filter(|_| weight != 0.0) else { continue };
            let targets = targets.iter().map(|y| y.widen()).chain([1.0]);
            for (mut sums, y) in sums.rows_mut().into_iter().zip(targets).filter(|(_, y)| *y != 0.0) {
                if let Some(sums) = sums.as_slice_mut() {
                    add_scaled(Isa::best(), sums, weight * y, row);
                }
            }
        }
    }

    /// Adds other sums to these.
    pub(super) fn add(&mut self, other: &Sums) {
        for (f, (own, their)) in self.reference.iter_mut().zip(&other.reference).enumerate() {
            if *their == f64::NEG_INFINITY {
                continue;
            }
            let top = own.max(*their);
            let (keep, add) = ((*own - top).exp(), (their - top).exp());
            *own = top;
            let columns = self.sums.column_mut(f).into_iter().zip(other.sums.column(f));
            columns.for_each(|(own, their)| *own = *own * keep + their * add);
        }
    }

    /// For each row of the batch, Σ_f φ_f(x) sums\[·, f\] up to a positive factor of the row: rows × (targets
    /// + 1).
    pub(super) fn apply<T: Real>(&self, mut batch: Batch<T>, blocks: &[usize]) -> Array2<f64> {
        let tops: Vec<f64> = ranges(blocks)
            .map(|columns| self.reference[columns].iter().copied().fold(f64::NEG_INFINITY, f64::max))
            .collect();
        let mut bias: Vec<T> = ranges(blocks)
            .zip(&tops)
            .flat_map(|(columns, top)| self.reference[columns].iter().map(move |r| T::narrow(r - top)))
            .collect();
        if !batch.logarithmic {
            exp_minus(Isa::best(), &mut bias, T::zero());
        }
        let mut out = Array2::zeros((batch.values.nrows(), self.sums.nrows()));
        let rows = batch.values.rows_mut().into_iter().zip(batch.log_scales.rows());
        for (((mut row, scales), signs), mut out) in rows.zip(batch.signs.rows()).zip(out.rows_mut()) {
            let Some(row) = row.as_slice_mut() else { continue };
            let mut scales: Vec<f64> = scales.iter().zip(&tops).map(|(scale, top)| scale + top).collect();
            // A scale of −∞ is an absent block: neither computed nor added.
            let present = |scales: &[f64]| -> Vec<(usize, Range<usize>)> {
                ranges(blocks).enumerate().filter(|(b, _)| scales[*b] != f64::NEG_INFINITY).collect()
            };
            for (b, columns) in present(&scales) {
                let (row, bias) = (&mut row[columns.clone()], &bias[columns.clone()]);
                if batch.logarithmic {
                    scales[b] += exponentiate_row(row, bias);
                    row.iter_mut().zip(signs.slice(s![columns])).for_each(|(v, sign)| *v *= *sign);
                } else {
                    row.iter_mut().zip(bias).for_each(|(v, factor)| *v *= *factor);
                }
            }
            let top = scales.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            for (b, columns) in present(&scales) {
                let weight = (scales[b] - top).exp();
                for (out, sums) in out.iter_mut().zip(self.sums.rows()) {
                    let sums = sums.slice_move(s![columns.clone()]);
                    let product = sums.to_slice().map(|sums| dot(Isa::best(), &row[columns.clone()], sums));
                    *out += weight * product.unwrap_or(f64::NAN);
                }
            }
        }
        out
    }
}

/// Replaces exponents by exponentials relative to the largest of each column, which is added to `reference`.
/// Rows with an offset of −∞ are absent and not read.
fn exponentiate<T: Real>(mut values: ArrayViewMut2<'_, T>, offsets: &[f64], reference: &mut [f64]) {
    let mut tops = vec![T::neg_infinity(); values.ncols()];
    let present = |offset: f64| offset != f64::NEG_INFINITY;
    for (row, offset) in values.rows_mut().into_iter().zip(offsets).filter(|(_, offset)| present(**offset)) {
        let offset = T::narrow(*offset);
        for (v, top) in row.into_iter().zip(&mut tops) {
            *v += offset;
            *top = if *v > *top { *v } else { *top };
        }
    }
    reference.iter_mut().zip(&tops).for_each(|(r, top)| *r += top.widen());
    // A column of nothing but −∞ is a feature that is 0: relative to 0 it stays so.
    tops.iter_mut().filter(|top| **top == T::neg_infinity()).for_each(|top| *top = T::zero());
    for (mut row, _) in values.rows_mut().into_iter().zip(offsets).filter(|(_, offset)| present(**offset)) {
        row.iter_mut().zip(&tops).for_each(|(v, top)| *v -= *top);
        if let Some(row) = row.as_slice_mut() {
            exp_minus(Isa::best(), row, T::zero());
        }
    }
}

/// Adds `bias` to exponents and replaces them by exponentials relative to the largest, which is returned.
fn exponentiate_row<T: Real>(row: &mut [T], bias: &[T]) -> f64 {
    row.iter_mut().zip(bias).for_each(|(v, b)| *v += *b);
    let top = max(Isa::best(), row);
    if top > T::neg_infinity() {
        exp_minus(Isa::best(), row, top);
    }
    top.widen()
}

/// The rows `run` of a matrix.
pub(super) fn rows<T>(x: &ArrayRef2<T>, run: Range<usize>) -> ArrayView2<'_, T> {
    x.slice_axis(Axis(0), run.into())
}
