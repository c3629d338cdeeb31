//! [`Sums`]: weighted sums of features over the training points, mergeable and free of overflow.

use std::ops::Range;

use ndarray::{Array2, ArrayView2, ArrayViewMut2, Axis, s};

use crate::Real;
use crate::engine::{Batch, Form, Program};
use crate::numeric::{self, Isa, Packed, dot, exp_minus, max};

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

/// What a thread keeps from run to run.
#[derive(Default)]
pub(super) struct Room<T> {
    /// (targets + 1) × n: the targets of a run, and ones.
    targets: Vec<T>,
    tops: Vec<T>,
    products: Vec<T>,
    packed: Packed<T>,
}

impl Sums {
    pub(super) fn new(targets: usize, features: usize) -> Self {
        Sums { reference: vec![f64::NEG_INFINITY; features], sums: Array2::zeros((targets + 1, features)) }
    }

    /// The sums over a run of points, from their features, which are overwritten, and their targets, n × t.
    pub(super) fn of<T: Real>(
        batch: &mut Batch<T>,
        (form, blocks): (Form, &[Range<usize>]),
        targets: ArrayView2<'_, T>,
        room: &mut Room<T>,
    ) -> Self {
        let (n, width) = (batch.rows(), blocks.last().map_or(0, |last| last.end));
        let mut sums = Sums::new(targets.ncols(), width);
        for (b, columns) in blocks.iter().enumerate() {
            let reference = &mut sums.reference[columns.clone()];
            match form {
                Form::Logarithms => exponentiate(batch, b, columns, reference, &mut room.tops),
                Form::Values => rescale(batch, b, columns, reference),
            }
        }
        // Divided by powers of two, so that no sum overflows T.
        let units: Vec<f64> = targets.columns().into_iter().map(unit).collect();
        room.targets.clear();
        for (column, unit) in targets.columns().into_iter().zip(&units) {
            room.targets.extend(column.iter().map(|y| T::narrow(y.widen() / unit)));
        }
        room.targets.resize((targets.ncols() + 1) * n, T::one());
        room.products.resize(sums.sums.len(), T::zero());
        room.packed.refill_columns(batch.values(), (n, width));
        numeric::product(Isa::best(), &room.targets, n, room.packed.all(), &mut room.products, width);
        let products = room.products.chunks_exact(width.max(1));
        let units = units.iter().chain(std::iter::once(&1.0));
        for ((mut sums, products), unit) in sums.sums.rows_mut().into_iter().zip(products).zip(units) {
            sums.iter_mut().zip(products).for_each(|(sum, product)| *sum = product.widen() * unit);
        }
        sums
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

    /// Whether these are sums for so many targets and features.
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
        let pack = |columns: &Range<usize>| {
            let sums = self.sums.slice(s![.., columns.clone()]);
            Packed::new(sums.nrows(), sums.ncols(), |t, f| sums[[t, f]])
        };
        let packed = if many { program.blocks().iter().map(pack).collect() } else { Vec::new() };
        Prepared { sums: &self.sums, tops, bias, packed, form }
    }
}

/// Targets up to which products with their sums are taken one by one.
const FEW: usize = 6;

/// Sums that are applied to points.
pub(super) struct Prepared<'a, T> {
    sums: &'a Array2<f64>,
    /// The largest reference of each block.
    tops: Vec<f64>,
    /// References, or their exponentials, relative to those.
    bias: Vec<T>,
    /// The sums of each block.
    packed: Vec<Packed<f64>>,
    form: Form,
}

impl<T: Real> Prepared<'_, T> {
    /// For each row of the batch, whose features are overwritten, Σ_f φ_f(x) sums\[·, f\] up to a positive factor of the row:
    /// rows × (targets + 1).
    pub(super) fn apply(&self, batch: &mut Batch<T>, blocks: &[Range<usize>], out: &mut Array2<f64>) {
        *out = Array2::zeros((batch.rows(), self.sums.nrows()));
        let (mut wide, mut products) = (Vec::new(), vec![0.0; self.sums.nrows()]);
        for (i, mut out) in out.rows_mut().into_iter().enumerate() {
            let row = batch.row_mut(i);
            row.log_scales.iter_mut().zip(&self.tops).for_each(|(scale, top)| *scale += top);
            // A scale of −∞ is an absent block: neither computed nor added.
            let present = |scale: f64| scale != f64::NEG_INFINITY;
            for (columns, scale) in
                blocks.iter().zip(&mut *row.log_scales).filter(|(_, scale)| present(**scale))
            {
                let (values, bias) = (&mut row.values[columns.clone()], &self.bias[columns.clone()]);
                match self.form {
                    Form::Logarithms => {
                        *scale += exponentiate_row(values, bias);
                        values.iter_mut().zip(&row.signs[columns.clone()]).for_each(|(v, sign)| *v *= *sign);
                    }
                    Form::Values => values.iter_mut().zip(bias).for_each(|(v, factor)| *v *= *factor),
                }
            }
            let top =
                row.log_scales.iter().fold(f64::NEG_INFINITY, |top: f64, s| if *s <= top { top } else { *s });
            for (b, columns) in blocks.iter().enumerate().filter(|(b, _)| present(row.log_scales[*b])) {
                let weight = (row.log_scales[b] - top).exp();
                let values = &row.values[columns.clone()];
                self.multiply(b, columns, values, &mut wide, &mut products);
                out.iter_mut().zip(&products).for_each(|(out, product)| *out += weight * product);
            }
        }
    }

    /// The products of a row's block with the sums of all targets.
    fn multiply(
        &self,
        b: usize,
        columns: &Range<usize>,
        values: &[T],
        wide: &mut Vec<f64>,
        products: &mut [f64],
    ) {
        if let Some(packed) = self.packed.get(b) {
            wide.clear();
            wide.extend(values.iter().map(|v| v.widen()));
            numeric::product(Isa::best(), wide, values.len(), packed.all(), products, products.len());
            return;
        }
        for (product, sums) in products.iter_mut().zip(self.sums.rows()) {
            let sums = sums.slice_move(s![columns.clone()]);
            *product = sums.to_slice().map_or(f64::NAN, |sums| dot(Isa::best(), values, sums));
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
        let offset = T::narrow(offset);
        for (v, top) in row.values[columns.clone()].iter_mut().zip(&mut *tops) {
            *v += offset;
            *top = if *v > *top { *v } else { *top };
        }
    }
    reference.iter_mut().zip(&*tops).for_each(|(r, column)| *r = top + column.widen());
    // A column of nothing but −∞ is a feature that is 0: relative to 0 it stays so.
    tops.iter_mut().filter(|top| **top == T::neg_infinity()).for_each(|top| *top = T::zero());
    for i in 0..batch.rows() {
        let row = batch.row_mut(i);
        let values = &mut row.values[columns.clone()];
        values.iter_mut().zip(&*tops).for_each(|(v, top)| *v -= *top);
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

/// The power of two next to the largest magnitude of a column.
fn unit<T: Real>(column: ndarray::ArrayView1<'_, T>) -> f64 {
    let largest = column.iter().fold(0.0, |largest: f64, y| largest.max(y.widen().abs()));
    let (_, exponent) = libm::frexp(largest);
    // Within the normal numbers, so that division is exact.
    if largest == 0.0 { 1.0 } else { libm::ldexp(1.0, exponent.clamp(-1000, 1000)) }
}

/// The rows `run` of a matrix.
pub(super) fn rows<T>(x: &ndarray::ArrayRef2<T>, run: Range<usize>) -> ArrayView2<'_, T> {
    x.slice_axis(Axis(0), run.into())
}

/// Rows that a result is written to.
pub(super) type Out<'a, T> = ArrayViewMut2<'a, T>;
