//! [`Sums`]: weighted sums of features over the training points, mergeable and free of overflow.

use std::ops::Range;

use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis, s};

use crate::Real;
use crate::engine::{Batch, Form, Program, Row};
use crate::error::Result;
use crate::memory::check_memory;
use crate::numeric::{self, Isa, Packed, dot, exp_minus, max, power_of_two_below};

/// Σᵢ yᵢ φ_f(xᵢ) for every feature f and target, each e^reference\[f\] times what is stored, in `f64`.
///
/// Exponential features have a reference each, the largest exponent seen: no sum of them underflows whatever
/// the norms, so a weight is never 0/0. Other features share one in each block. −∞ is the reference of what
/// has not been seen, or is 0 so far.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Sums {
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    reference: Vec<f64>,
    /// (targets + 1) × D; the last row is for the target 1.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    sums: Array2<f64>,
}

/// Buffers that a thread reuses from run to run.
#[derive(Default)]
pub(super) struct SumBuffers<T> {
    /// (targets + 1) × n: the targets of a run, and ones.
    targets: Vec<T>,
    tops: Vec<T>,
    products: Vec<T>,
    packed: Packed<T>,
}

impl Sums {
    /// Sums of nothing.
    ///
    /// # Errors
    /// [`Memory`](crate::Error::Memory) if there is none for them.
    pub(super) fn new(targets: usize, features: usize) -> Result<Self> {
        check_memory("bytes of sums over points", Self::size(targets.saturating_add(1), features), 1)?;
        let reference = vec![f64::NEG_INFINITY; features];
        Ok(Sums { reference, sums: numeric::zeros(targets + 1, features) })
    }

    /// Becomes the sums over a run of points, from their features, which are overwritten, and their targets, n × t; these
    /// are sums for as many targets and features.
    pub(super) fn replace<T: Real>(
        &mut self,
        batch: &mut Batch<T>,
        form: Form,
        blocks: &[Range<usize>],
        targets: ArrayView2<'_, T>,
        buffers: &mut SumBuffers<T>,
    ) {
        let (n, width) = (batch.rows(), self.reference.len());
        for (b, columns) in blocks.iter().enumerate() {
            let reference = &mut self.reference[columns.clone()];
            match form {
                Form::Logarithms => exponentiate(batch, b, columns, reference, &mut buffers.tops),
                Form::Values => rescale(batch, b, columns, reference),
            }
        }
        // Divided by powers of two, so that no sum overflows T.
        let units: Vec<f64> = targets.columns().into_iter().map(unit).collect();
        let stride = numeric::spread::<T>(n);
        buffers.targets.clear();
        for (column, unit) in targets.columns().into_iter().zip(&units) {
            buffers.targets.extend(column.iter().map(|y| T::narrow(y.widen() / unit)));
            buffers.targets.resize(buffers.targets.len() + stride - n, T::zero());
        }
        buffers.targets.resize((targets.ncols() + 1) * stride, T::one());
        buffers.products.resize(self.sums.len(), T::zero());
        buffers.packed.refill_columns(batch.values(), n, width);
        numeric::product(
            Isa::best(),
            &buffers.targets,
            stride,
            buffers.packed.all(),
            &mut buffers.products,
            width,
        );
        let products = buffers.products.chunks_exact(width.max(1));
        let units = units.iter().chain(std::iter::once(&1.0));
        for ((mut sums, products), unit) in self.sums.rows_mut().into_iter().zip(products).zip(units) {
            sums.iter_mut().zip(products).for_each(|(sum, product)| *sum = product.widen() * unit);
        }
    }

    /// Adds other sums to these.
    pub(super) fn add(&mut self, other: &Sums) {
        let factors = |(own, their): (&mut f64, &f64)| {
            let top = own.max(*their);
            let factors =
                if top == f64::NEG_INFINITY { (1.0, 0.0) } else { ((*own - top).exp(), (their - top).exp()) };
            *own = top;
            factors
        };
        let factors: Vec<(f64, f64)> = self.reference.iter_mut().zip(&other.reference).map(factors).collect();
        for (mut own, their) in self.sums.rows_mut().into_iter().zip(other.sums.rows()) {
            for ((own, their), (keep, add)) in own.iter_mut().zip(their).zip(&factors) {
                *own = *own * keep + their * add;
            }
        }
    }

    /// Whether the sums are for these numbers of targets and features.
    #[cfg(feature = "serde")]
    pub(super) fn fits(&self, targets: usize, features: usize) -> bool {
        self.reference.len() == features && self.sums.dim() == (targets + 1, features)
    }

    /// Bytes.
    pub(super) fn size(targets: usize, features: usize) -> usize {
        (targets + 1).saturating_mul(features).saturating_mul(size_of::<f64>())
    }

    /// Ready to be applied to points.
    pub(super) fn prepared<T: Real>(&self, program: &Program<T>, form: Form) -> Prepared<'_, T> {
        let top = |columns: &Range<usize>| {
            self.reference[columns.clone()].iter().copied().fold(f64::NEG_INFINITY, f64::max)
        };
        let tops: Vec<f64> = program.blocks().iter().map(top).collect();
        let relative = program.blocks().iter().zip(&tops).flat_map(|(columns, top)| {
            // What has not been seen has no weight.
            self.reference[columns.clone()]
                .iter()
                .map(move |r| if *r == f64::NEG_INFINITY { *r } else { r - top })
        });
        let mut bias: Vec<T> = relative.map(T::narrow).collect();
        if form == Form::Values {
            exp_minus(Isa::best(), &mut bias, T::zero());
        }
        // Few targets go one by one, many side by side.
        let many = self.sums.nrows() > FEW;
        let pieces = if many { self.pieces(program.blocks()) } else { Vec::new() };
        Prepared { sums: &self.sums, tops, bias, pieces, form }
    }

    /// The sums, ready for products with features of many points.
    fn pieces<T: Real>(&self, blocks: &[Range<usize>]) -> Vec<Piece<T>> {
        let runs = |columns: &Range<usize>| {
            let end = columns.end;
            columns.clone().step_by(DEPTH).map(move |start| start..end.min(start + DEPTH))
        };
        let piece = |block: usize, columns: Range<usize>| {
            let sums = self.sums.slice(s![.., columns.clone()]);
            let units: Vec<f64> = sums.rows().into_iter().map(unit).collect();
            let element = |t: usize, f: usize| T::narrow(sums[[t, f]] / units[t]);
            Piece { block, packed: Packed::new(sums.nrows(), sums.ncols(), element), units, columns }
        };
        let blocks = blocks.iter().enumerate();
        blocks.flat_map(|(b, columns)| runs(columns).map(move |run| piece(b, run))).collect()
    }
}

/// Targets up to which products with their sums are taken one by one.
const FEW: usize = 6;
/// Features whose products with sums are summed in the scalar type; sums of these are `f64`.
const DEPTH: usize = 512;

/// Sums that are applied to points.
pub(super) struct Prepared<'a, T> {
    sums: &'a Array2<f64>,
    /// The largest reference of each block.
    tops: Vec<f64>,
    /// References, or their exponentials, relative to those.
    bias: Vec<T>,
    /// The sums of many targets.
    pieces: Vec<Piece<T>>,
    form: Form,
}

/// The sums of some features of a block.
struct Piece<T> {
    block: usize,
    columns: Range<usize>,
    /// The sums of each target over a power of two.
    packed: Packed<T>,
    units: Vec<f64>,
}

/// Buffers that a thread reuses while sums are applied.
#[derive(Default)]
pub(super) struct Applied<T> {
    /// Rows × (targets + 1): the results.
    pub sums: Array2<f64>,
    /// Rows × blocks: factors of a row's products.
    weights: Vec<f64>,
    products: Vec<T>,
}

impl<T: Real> Prepared<'_, T> {
    /// For each row of the batch, whose features are overwritten, Σ_f φ_f(x) sums\[·, f\] up to a positive factor of the row:
    /// rows × (targets + 1).
    pub(super) fn apply(&self, batch: &mut Batch<T>, blocks: &[Range<usize>], out: &mut Applied<T>) {
        out.sums = Array2::zeros((batch.rows(), self.sums.nrows()));
        out.weights.clear();
        for i in 0..batch.rows() {
            self.lift(batch.row_mut(i), blocks);
            let scales = batch.row(i).log_scales;
            let top = scales.iter().fold(f64::NEG_INFINITY, |top: f64, s| if *s <= top { top } else { *s });
            // Of absent blocks 0.
            out.weights
                .extend(scales.iter().map(|s| if *s == f64::NEG_INFINITY { 0.0 } else { (s - top).exp() }));
        }
        if self.pieces.is_empty() { self.add_dots(batch, blocks, out) } else { self.add_products(batch, out) }
    }

    /// Turns a row's features into values relative to the references.
    fn lift(&self, row: Row<'_, T>, blocks: &[Range<usize>]) {
        row.log_scales.iter_mut().zip(&self.tops).for_each(|(scale, top)| *scale += top);
        for (columns, scale) in blocks.iter().zip(row.log_scales) {
            // An absent block is not computed.
            if *scale == f64::NEG_INFINITY {
                continue;
            }
            let (values, bias) = (&mut row.values[columns.clone()], &self.bias[columns.clone()]);
            match self.form {
                Form::Logarithms => {
                    *scale += exponentiate_row(values, bias);
                    values.iter_mut().zip(&row.signs[columns.clone()]).for_each(|(v, sign)| *v *= *sign);
                }
                Form::Values => values.iter_mut().zip(bias).for_each(|(v, factor)| *v *= *factor),
            }
        }
    }

    /// Adds the products of all rows with the sums of all targets, row by row.
    fn add_dots(&self, batch: &Batch<T>, blocks: &[Range<usize>], out: &mut Applied<T>) {
        let rows = out.sums.rows_mut().into_iter().zip(out.weights.chunks_exact(blocks.len()));
        for (i, (mut out, weights)) in rows.enumerate() {
            for (columns, weight) in blocks.iter().zip(weights).filter(|(_, weight)| **weight != 0.0) {
                let values = &batch.row(i).values[columns.clone()];
                for (out, sums) in out.iter_mut().zip(self.sums.rows()) {
                    let sums = sums.slice_move(s![columns.clone()]);
                    *out += weight * dot(Isa::best(), values, numeric::slice_of(&sums));
                }
            }
        }
    }

    /// The same for all rows at once.
    fn add_products(&self, batch: &Batch<T>, out: &mut Applied<T>) {
        let Applied { sums, weights, products } = out;
        let blocks = self.tops.len();
        products.resize(sums.len(), T::zero());
        for Piece { block, columns, packed, units } in &self.pieces {
            let values = &batch.values()[columns.start..];
            numeric::product(Isa::best(), values, batch.width(), packed.all(), products, units.len());
            let rows = sums.rows_mut().into_iter().zip(products.chunks_exact(units.len()));
            for ((mut out, products), weights) in rows.zip(weights.chunks_exact(blocks)) {
                let weight = weights[*block];
                // What an absent block holds may be no number.
                if weight != 0.0 {
                    let terms = products.iter().zip(units);
                    out.iter_mut()
                        .zip(terms)
                        .for_each(|(out, (v, unit))| *out += weight * (v.widen() * unit));
                }
            }
        }
    }
}

/// Replaces a block's logarithms by signed exponentials relative to the largest of each column, which becomes its
/// reference. Rows from which the block is absent become 0.
fn exponentiate<T: Real>(
    batch: &mut Batch<T>,
    b: usize,
    columns: &Range<usize>,
    reference: &mut [f64],
    tops: &mut Vec<T>,
) {
    let top = (0..batch.rows()).map(|i| batch.row(i).log_scales[b]).fold(f64::NEG_INFINITY, f64::max);
    tops.clear();
    tops.resize(columns.len(), T::neg_infinity());
    for i in 0..batch.rows() {
        let row = batch.row_mut(i);
        let offset = row.log_scales[b] - top;
        if row.log_scales[b] == f64::NEG_INFINITY {
            row.values[columns.clone()].fill(T::neg_infinity());
            row.signs[columns.clone()].fill(T::one());
            continue;
        }
        numeric::raise(Isa::best(), tops, &mut row.values[columns.clone()], T::narrow(offset));
    }
    reference.iter_mut().zip(&*tops).for_each(|(r, column)| *r = top + column.widen());
    // A column of nothing but −∞ is a feature that is 0: relative to 0 it stays so.
    tops.iter_mut().filter(|top| **top == T::neg_infinity()).for_each(|top| *top = T::zero());
    for i in 0..batch.rows() {
        let row = batch.row_mut(i);
        let values = &mut row.values[columns.clone()];
        numeric::subtract(Isa::best(), values, tops);
        exp_minus(Isa::best(), values, T::zero());
        values.iter_mut().zip(&row.signs[columns.clone()]).for_each(|(v, sign)| *v *= *sign);
    }
}

/// Makes a block's values relative to the largest scale, which becomes the reference of all its columns. Rows from which
/// the block is absent become 0.
fn rescale<T: Real>(batch: &mut Batch<T>, b: usize, columns: &Range<usize>, reference: &mut [f64]) {
    let top = (0..batch.rows()).map(|i| batch.row(i).log_scales[b]).fold(f64::NEG_INFINITY, f64::max);
    reference.fill(top);
    for i in 0..batch.rows() {
        let row = batch.row_mut(i);
        let values = &mut row.values[columns.clone()];
        if row.log_scales[b] == f64::NEG_INFINITY {
            values.fill(T::zero());
        } else {
            let weight = T::narrow((row.log_scales[b] - top).exp());
            values.iter_mut().for_each(|v| *v *= weight);
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

/// A power of two near the largest magnitude of numbers.
fn unit<T: Real>(column: ndarray::ArrayView1<'_, T>) -> f64 {
    power_of_two_below(column.iter().fold(0.0, |largest: f64, y| largest.max(y.widen().abs())))
}

/// The rows `run` of a matrix.
pub(super) fn rows<T>(x: &ndarray::ArrayRef2<T>, run: Range<usize>) -> ArrayView2<'_, T> {
    x.slice_axis(Axis(0), run.into())
}

/// Rows that a result is written to.
pub(super) type Out<'a, T> = ArrayViewMut2<'a, T>;
