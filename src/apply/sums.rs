//! [`Sums`]: weighted sums of features over the training points, mergeable and free of overflow.

use std::ops::Range;

use ndarray::{Array2, ArrayRef2, ArrayView2, Axis, s};

use crate::Real;
use crate::map::{FeatureMap, Scratch, Side, Tile};
use crate::numeric::{Isa, add_scaled, dot, exp_minus, max};

/// Features of a few points: ln φ relative to the scales if `logarithmic`, else φ relative to them.
pub(super) struct Batch<T> {
    values: Array2<T>,
    log_scales: Array2<f64>,
    logarithmic: bool,
}

impl<T: Real> Batch<T> {
    pub(super) fn new<M: FeatureMap<T> + ?Sized>(map: &M, side: Side, x: ArrayView2<'_, T>) -> Self {
        let (rows, width, blocks) = (x.nrows(), map.feature_dim(), map.blocks().len());
        let mut values = vec![T::zero(); rows * width];
        let mut log_scales = vec![0.0; rows * blocks];
        let mut logarithmic = false;
        if let Some(mut tile) = Tile::new(&mut values, &mut log_scales, rows, width, blocks) {
            let scratch = &mut Scratch::default();
            logarithmic = map.fill_exponents(side, x, &mut tile, scratch);
            if !logarithmic {
                map.fill(side, x, &mut tile, scratch);
            }
        }
        Batch {
            values: Array2::from_shape_vec((rows, width), values).unwrap_or_default(),
            log_scales: Array2::from_shape_vec((rows, blocks), log_scales).unwrap_or_default(),
            logarithmic,
        }
    }
}

/// Σᵢ yᵢ φ_f(xᵢ) for every feature f and target, each e^reference\[f\] times what is stored, in `f64`.
///
/// Exponential features have a reference each, the largest exponent seen: no sum of them underflows whatever the
/// norms, so a weight is never 0/0. Other features share one in each block.
#[derive(Clone, Debug)]
pub(super) struct Sums {
    /// One for each feature; −∞ before the first point.
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
            let scales = batch.log_scales.column(b).to_vec();
            let top = scales.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            if top == f64::NEG_INFINITY {
                continue;
            }
            let offsets: Vec<f64> = scales.iter().map(|scale| scale - top).collect();
            sums.reference[columns.clone()].fill(top);
            let values = batch.values.slice_mut(s![.., columns.clone()]);
            let weights = if batch.logarithmic {
                let reference = &mut sums.reference[columns.clone()];
                exponentiate(values, &offsets, reference);
                vec![1.0; offsets.len()]
            } else {
                offsets.iter().map(|offset| offset.exp()).collect()
            };
            sums.accumulate(batch.values.slice(s![.., columns.clone()]), &columns, &weights, targets);
        }
        sums
    }

    fn accumulate<T: Real>(
        &mut self,
        values: ArrayView2<'_, T>,
        columns: &Range<usize>,
        weights: &[f64],
        targets: &ArrayRef2<T>,
    ) {
        let last = self.sums.nrows() - 1;
        for ((row, weight), targets) in values.rows().into_iter().zip(weights).zip(targets.rows()) {
            let Some(row) = row.to_slice() else { continue };
            let mut add = |target: usize, weight: f64| {
                if let Some(sums) = self.sums.slice_mut(s![target, columns.clone()]).as_slice_mut() {
                    add_scaled(Isa::best(), sums, weight, row);
                }
            };
            for (target, y) in targets.iter().enumerate().filter(|(_, y)| **y != T::zero()) {
                add(target, weight * y.widen());
            }
            add(last, *weight);
        }
    }

    /// Adds other sums to these.
    pub(super) fn add(&mut self, other: &Sums) {
        for (f, (own, their)) in self.reference.iter_mut().zip(&other.reference).enumerate() {
            let top = own.max(*their);
            if top == f64::NEG_INFINITY {
                continue;
            }
            let (keep, add) = ((*own - top).exp(), (their - top).exp());
            *own = top;
            let columns = self.sums.column_mut(f).into_iter().zip(other.sums.column(f));
            columns.for_each(|(own, their)| *own = *own * keep + their * add);
        }
    }

    /// For each row of the batch, Σ_f φ_f(x) sums\[·, f\] up to a positive factor of the row: rows × (targets + 1).
    pub(super) fn apply<T: Real>(&self, batch: &mut Batch<T>, blocks: &[usize]) -> Array2<f64> {
        let mut out = Array2::zeros((batch.values.nrows(), self.sums.nrows()));
        let tops: Vec<f64> = ranges(blocks)
            .map(|columns| self.reference[columns].iter().copied().fold(f64::NEG_INFINITY, f64::max))
            .collect();
        let bias: Vec<T> = ranges(blocks)
            .zip(&tops)
            .flat_map(|(columns, top)| self.reference[columns].iter().map(move |r| T::narrow(r - top)))
            .collect();
        let Batch { values, log_scales, logarithmic } = batch;
        for ((mut row, scales), mut out) in
            values.rows_mut().into_iter().zip(log_scales.rows()).zip(out.rows_mut())
        {
            let Some(row) = row.as_slice_mut() else { continue };
            let scales: Vec<f64> = scales.iter().zip(&tops).map(|(scale, top)| scale + top).collect();
            let scales = if *logarithmic { exponentials(row, &bias, scales, blocks) } else { scales };
            let top = scales.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            // A scale of −∞ is an absent block: neither computed nor added.
            for (columns, scale) in ranges(blocks).zip(scales).filter(|(_, s)| *s != f64::NEG_INFINITY) {
                let weight = (scale - top).exp();
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

/// The column ranges of blocks of these widths.
fn ranges(blocks: &[usize]) -> impl Iterator<Item = Range<usize>> + '_ {
    blocks.iter().scan(0, |start, width| {
        let range = *start..*start + width;
        *start = range.end;
        Some(range)
    })
}

/// Replaces exponents by exponentials relative to the largest of each column, which is added to `reference`.
fn exponentiate<T: Real>(mut values: ndarray::ArrayViewMut2<'_, T>, offsets: &[f64], reference: &mut [f64]) {
    let mut tops = vec![T::neg_infinity(); values.ncols()];
    for (row, offset) in values.rows_mut().into_iter().zip(offsets) {
        let offset = T::narrow(*offset);
        for (v, top) in row.into_iter().zip(&mut tops) {
            *v += offset;
            *top = if *v > *top { *v } else { *top };
        }
    }
    for mut row in values.rows_mut() {
        row.iter_mut().zip(&tops).for_each(|(v, top)| *v -= *top);
        if let Some(row) = row.as_slice_mut() {
            exp_minus(Isa::best(), row, T::zero());
        }
    }
    reference.iter_mut().zip(&tops).for_each(|(r, top)| *r += top.widen());
}

/// Adds `bias` to a row of exponents and replaces each block by exponentials relative to its largest; gives the blocks' new scales.
fn exponentials<T: Real>(row: &mut [T], bias: &[T], scales: Vec<f64>, blocks: &[usize]) -> Vec<f64> {
    let finish = |(columns, scale): (Range<usize>, f64)| {
        let row = &mut row[columns.clone()];
        row.iter_mut().zip(&bias[columns]).for_each(|(v, b)| *v += *b);
        let top = max(Isa::best(), row);
        exp_minus(Isa::best(), row, top);
        scale + top.widen()
    };
    ranges(blocks).zip(scales).map(finish).collect()
}

/// The rows `run` of a matrix.
pub(super) fn rows<T>(x: &ArrayRef2<T>, run: Range<usize>) -> ArrayView2<'_, T> {
    x.slice_axis(Axis(0), run.into())
}
