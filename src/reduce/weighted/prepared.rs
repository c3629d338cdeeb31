//! [`Prepared`]: sums in rows that are applied to points at any norm.

use std::ops::Range;

use ndarray::Array2;

use super::read::unit;
use super::{WeightedSums, exponentiate};
use crate::Real;
use crate::engine::{Batch, Form, Program, Row};
use crate::numeric::special::largest;
use crate::numeric::{self, Isa, Packed, dot, exp_minus};

/// The number of targets up to which products with their sums are taken one by one.
const FEW: usize = 6;
/// The number of features whose products with sums are summed in the scalar type; sums of such sums are `f64`.
const DEPTH: usize = 512;

/// Sums that are applied to points.
pub(crate) struct Prepared<'a, T> {
    sums: &'a WeightedSums<T>,
    /// The largest reference of each block.
    tops: Vec<f64>,
    /// References, or their exponentials, relative to the largest of their block.
    bias: Vec<T>,
    /// The sums as packed matrices, if there are many targets.
    pieces: Vec<Piece<T>>,
    form: Form,
}

/// The sums of some features of a block.
struct Piece<T> {
    block: usize,
    columns: Range<usize>,
    /// The sums of each target, divided by a power of two.
    packed: Packed<T>,
    units: Vec<f64>,
}

/// Buffers that a thread reuses while sums are applied.
#[derive(Default)]
pub(crate) struct Applied<T> {
    /// Rows × (targets + 1): the results.
    pub sums: Array2<f64>,
    /// Rows × blocks: factors of a row's products.
    weights: Vec<f64>,
    products: Vec<T>,
}

impl<T: Real> WeightedSums<T> {
    /// These sums, in rows, prepared to be applied to points.
    pub fn prepared(&self, program: &Program<T>, form: Form) -> Prepared<'_, T> {
        let references = |columns: &Range<usize>| self.reference[columns.clone()].iter().copied();
        let tops: Vec<f64> = program.blocks().iter().map(|columns| largest(references(columns))).collect();
        // A feature that was 0 in all points has no weight.
        let below = |r: f64, top: f64| if r == f64::NEG_INFINITY { r } else { r - top };
        let blocks = program.blocks().iter().zip(&tops);
        let relative = blocks.flat_map(|(columns, top)| references(columns).map(move |r| below(r, *top)));
        let mut bias: Vec<T> = relative.map(T::narrow).collect();
        if form == Form::Values {
            exp_minus(Isa::best(), &mut bias, T::zero());
        }
        // Few targets are multiplied one by one, many side by side.
        let many = self.targets + 1 > FEW;
        let pieces = if many { self.pieces(program.blocks()) } else { Vec::new() };
        Prepared { sums: self, tops, bias, pieces, form }
    }

    /// The sums of each target, then the sums of the target 1.
    fn rows(&self) -> impl Iterator<Item = &[f64]> {
        self.sums.chunks_exact(self.features().max(1)).chain([&self.weights[..]])
    }

    /// The sums, packed for products with features of many points.
    fn pieces(&self, blocks: &[Range<usize>]) -> Vec<Piece<T>> {
        let runs = |columns: &Range<usize>| {
            let end = columns.end;
            columns.clone().step_by(DEPTH).map(move |start| start..end.min(start + DEPTH))
        };
        let piece = |block: usize, columns: Range<usize>| {
            let sums: Vec<&[f64]> = self.rows().map(|sums| &sums[columns.clone()]).collect();
            let units: Vec<f64> = sums.iter().map(|sums| unit(sums.iter())).collect();
            let element = |t: usize, f: usize| T::narrow(sums[t][f] / units[t]);
            Piece { block, packed: Packed::new(sums.len(), columns.len(), element), units, columns }
        };
        let blocks = blocks.iter().enumerate();
        blocks.flat_map(|(b, columns)| runs(columns).map(move |run| piece(b, run))).collect()
    }
}

impl<T: Real> Prepared<'_, T> {
    /// Computes Σ_f φ_f(x) sums\[·, f\] for each row of the batch up to a positive factor of the row: rows × (targets + 1). The
    /// features of the batch are overwritten.
    pub fn apply(&self, batch: &mut Batch<T>, blocks: &[Range<usize>], out: &mut Applied<T>) {
        out.sums = Array2::zeros((batch.rows(), self.sums.targets + 1));
        out.weights.clear();
        for i in 0..batch.rows() {
            self.lift(batch.row_mut(i), blocks);
            let scales = batch.row(i).log_scales;
            let top = scales.iter().fold(f64::NEG_INFINITY, |top: f64, s| if *s <= top { top } else { *s });
            // Absent blocks have the weight 0.
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
                    values.iter_mut().zip(bias).for_each(|(v, b)| *v += *b);
                    *scale += exponentiate(values);
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
                    *out += weight * dot(Isa::best(), values, &sums[columns.clone()]);
                }
            }
        }
    }

    /// Adds the products of all rows with the sums of all targets, all rows at once.
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
                // An absent block may hold NaN.
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
