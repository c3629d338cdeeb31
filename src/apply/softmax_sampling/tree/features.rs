//! [`FeatureReference`]: the scale of each feature of classes; [`QueryFeatures`]: the features of h, for products with those of
//! classes.

use std::ops::Range;

use ndarray::{ArrayView2, Axis};

use super::choice::Choices;
use super::nodes::NodeRows;
use crate::engine::{Batch, Form, Program, Row, Scratch, Side};
use crate::numeric::special::largest;
use crate::numeric::{Isa, dot, dots, plain_sum, subtract};
use crate::reduce::{block_scales, exponentiate};
use crate::{Real, SignedLog};

/// The number of classes from whose largest features the reference is made: enough to see the size of each feature, few enough to
/// cost little.
const SAMPLE: usize = 1024;

/// A logarithm for each feature: features of classes are divided by e^reference and those of h are multiplied by it. Features of
/// classes are then near 1 and do not underflow, even where h is opposite to all classes.
#[derive(Clone, Debug)]
pub struct FeatureReference<T> {
    pub form: Form,
    /// The logarithm of each feature; 0 for features that are not in the form of logarithms.
    logarithms: Vec<T>,
}

impl<T: Real> FeatureReference<T> {
    /// The reference from classes that are evenly spaced in `x`, which has at least one.
    pub fn of(program: &Program<T>, x: ArrayView2<'_, T>) -> Self {
        let (form, mut logarithms) = (program.best_form(), vec![T::zero(); program.width()]);
        if form == Form::Values {
            return FeatureReference { form, logarithms };
        }
        let places: Vec<usize> = (0..x.nrows()).step_by(x.nrows().div_ceil(SAMPLE)).collect();
        let mut batch = Batch::default();
        batch.fill(program, Side::Y, form, x.select(Axis(0), &places).view().into(), &mut Scratch::default());
        for (b, columns) in program.blocks().iter().enumerate() {
            let scales: Vec<f64> = block_scales(batch.log_scales(), program.blocks().len(), b).collect();
            let top = largest(scales.iter().copied());
            for f in columns.clone() {
                let of = |i: usize| batch.row(i).values[f].widen() + (scales[i] - top);
                let present = (0..batch.rows()).filter(|i| scales[*i] > f64::NEG_INFINITY);
                let largest = largest(present.map(of));
                logarithms[f] = if largest.is_finite() { T::narrow(largest) } else { T::zero() };
            }
        }
        FeatureReference { form, logarithms }
    }

    /// The reference of these logarithms, if there is a finite one for each feature of the program.
    #[cfg(feature = "serde")]
    pub fn from_logarithms(program: &Program<T>, logarithms: Vec<T>) -> Option<Self> {
        let fits = logarithms.len() == program.width() && logarithms.iter().all(|v| v.is_finite());
        fits.then(|| FeatureReference { form: program.best_form(), logarithms })
    }

    #[cfg(feature = "serde")]
    pub fn logarithms(&self) -> &[T] {
        &self.logarithms
    }

    /// Turns a row of features of a class, in the form of the reference, into values relative to it. Returns whether they are finite.
    pub fn apply(&self, blocks: &[Range<usize>], row: Row<'_, T>) -> bool {
        let mut finite = true;
        for (columns, scale) in blocks.iter().zip(row.log_scales) {
            let values = &mut row.values[columns.clone()];
            if *scale == f64::NEG_INFINITY {
                continue;
            }
            if self.form == Form::Logarithms {
                subtract(Isa::best(), values, &self.logarithms[columns.clone()]);
                *scale += exponentiate(values);
                values.iter_mut().zip(&row.signs[columns.clone()]).for_each(|(v, sign)| *v *= *sign);
            }
            // The loop reads all values, so that the compiler vectorises it.
            finite &= values.iter().fold(*scale < f64::INFINITY, |finite, v| finite & v.is_finite());
        }
        finite
    }
}

/// The features of a point h.
#[derive(Debug, Default)]
pub struct QueryFeatures<T> {
    /// The features as the map gives them.
    own: Batch<T>,
    /// The features times e^reference, relative to the largest of each block, in `f64`: products with features of classes that
    /// are not 0 do not underflow.
    weights: Vec<f64>,
    log_scales: Vec<f64>,
    signed: bool,
}

impl<T: Real> QueryFeatures<T> {
    /// Computes the features of a row. Returns whether they are finite.
    pub fn fill(
        &mut self,
        program: &Program<T>,
        reference: &FeatureReference<T>,
        h: ArrayView2<'_, T>,
        scratch: &mut Scratch<T>,
    ) -> bool {
        self.own.fill(program, Side::X, reference.form, h.into(), scratch);
        self.signed = !program.facts().non_negative;
        let row = self.own.row(0);
        self.log_scales.clear();
        self.weights.clear();
        self.weights.extend(row.values.iter().map(|v| v.widen()));
        for (columns, scale) in program.blocks().iter().zip(row.log_scales) {
            let weights = &mut self.weights[columns.clone()];
            let mut scale = *scale;
            if scale == f64::NEG_INFINITY {
                weights.fill(0.0);
            } else if reference.form == Form::Logarithms {
                let logarithms = &reference.logarithms[columns.clone()];
                weights.iter_mut().zip(logarithms).for_each(|(v, r)| *v += r.widen());
                scale += exponentiate(weights);
                weights.iter_mut().zip(&row.signs[columns.clone()]).for_each(|(v, sign)| *v *= sign.widen());
            }
            self.log_scales.push(scale);
        }
        self.weights.iter().all(|v| v.is_finite())
            && self.log_scales.iter().all(|scale| *scale < f64::INFINITY)
    }

    /// Adds the products with some rows of sums.
    pub fn products(&self, blocks: &[Range<usize>], rows: NodeRows<'_, T>, out: &mut Choices) {
        let width = self.weights.len();
        if let [own] = self.log_scales[..] {
            let start = out.scales.len();
            out.scales.extend(rows.log_scales.iter().map(|scale| scale + own));
            out.factors.resize(out.scales.len(), 0.0);
            return dots(Isa::best(), rows.values, &self.weights, &mut out.factors[start..]);
        }
        let rows = rows.values.chunks_exact(width).zip(rows.log_scales.chunks_exact(blocks.len()));
        for (values, log_scales) in rows {
            self.over_blocks(blocks, log_scales, &self.log_scales, out, |columns| {
                (0.0, dot(Isa::best(), &values[columns.clone()], &self.weights[columns]))
            });
        }
    }

    /// Adds the product with the features of a class in the map's best form, which are overwritten: from logarithms where the map
    /// has them, so that nothing underflows.
    pub fn product(&self, blocks: &[Range<usize>], form: Form, row: Row<'_, T>, out: &mut Choices) {
        let (own, values, signs) = (self.own.row(0), row.values, row.signs);
        self.over_blocks(blocks, row.log_scales, own.log_scales, out, |columns| {
            let (values, own_values) = (&mut values[columns.clone()], &own.values[columns.clone()]);
            if form == Form::Values {
                return (0.0, dot(Isa::best(), values, &self.weights[columns]));
            }
            values.iter_mut().zip(own_values).for_each(|(v, own)| *v += *own);
            let top = exponentiate(values);
            if self.signed {
                let signs = signs[columns.clone()].iter().zip(&own.signs[columns]);
                values.iter_mut().zip(signs).for_each(|(v, (a, b))| *v *= *a * *b);
            }
            (top, plain_sum(Isa::best(), values))
        });
    }

    /// Adds Σ e^(left + right) · product over the blocks that are present in both; `product` gives the logarithm of a scale and a
    /// factor.
    fn over_blocks(
        &self,
        blocks: &[Range<usize>],
        left: &[f64],
        right: &[f64],
        out: &mut Choices,
        mut product: impl FnMut(Range<usize>) -> (f64, f64),
    ) {
        let mut term = |b: usize| {
            let scale = left[b] + right[b];
            if scale == f64::NEG_INFINITY {
                return (scale, 0.0);
            }
            let (log, factor) = product(blocks[b].clone());
            (log + scale, factor)
        };
        if blocks.len() == 1 {
            let (scale, factor) = term(0);
            return out.push(scale, factor);
        }
        let mut sum = SignedLog::from(0.0);
        for b in 0..blocks.len() {
            let (scale, factor) = term(b);
            sum = SignedLog::sum([sum, SignedLog::from(factor).scaled(scale)].into_iter());
        }
        out.push(sum.ln_abs, sum.sign);
    }
}

/// (Σ_f φ_f S_f)² / Σ_f (φ_f S_f)² with the sums S of some rows: the number of features behind an estimate. It is D if all
/// terms are equal, 1 if one outweighs the others, less if terms of opposite signs cancel, 0 if all are 0.
pub fn effective_features<T: Real>(
    query: &QueryFeatures<T>,
    blocks: &[Range<usize>],
    rows: NodeRows<'_, T>,
) -> f64 {
    let (width, count) = (query.weights.len(), rows.log_scales.len() / blocks.len());
    let scale = |b: usize, i: usize| rows.log_scales[i * blocks.len() + b] + query.log_scales[b];
    let scales = || (0..blocks.len()).flat_map(|b| (0..count).map(move |i| (b, i)));
    let top = largest(scales().map(|(b, i)| scale(b, i)));
    let mut terms = vec![0.0; width];
    for (b, i) in scales().filter(|(b, i)| scale(*b, *i) > f64::NEG_INFINITY) {
        let (factor, columns) = ((scale(b, i) - top).exp(), blocks[b].clone());
        let values = &rows.values[i * width..][columns.clone()];
        for ((term, weight), value) in
            terms[columns.clone()].iter_mut().zip(&query.weights[columns]).zip(values)
        {
            *term += factor * weight * value.widen();
        }
    }
    let (sum, squares) = terms.iter().fold((0.0, 0.0), |(sum, squares), t| (sum + t, squares + t * t));
    if squares > 0.0 { sum * sum / squares } else { 0.0 }
}
