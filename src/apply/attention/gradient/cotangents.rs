//! [`Cotangents`]: gradients with respect to features of queries, and from them to their tokens.
//!
//! As with outputs, those of a chunk are a few matrix products, and rows that need more precision are computed from logarithms in
//! `f64`.

use ndarray::Array2;

use super::super::features::{KeyWeights, LogBuffers, Setup, Tokens};
use super::super::input::{LogScale, Undivided};
use super::super::linear::ChunkRead;
use super::roles::Role;
use super::rows::{GradientRows, GradientTerm, TokenGradients};
use crate::Real;
use crate::engine::{Form, PulledRows, Scratch, pull_back_logarithms, pull_back_rows, takes_logarithms};
use crate::numeric::{self, Isa, Packed, add_product, matrix_view, product};
use crate::reduce::{LogRow, RunSums, WeightedSums};

/// The cotangents of the features of some rows, and what they are computed with.
#[derive(Debug, Default)]
pub(super) struct Cotangents<T> {
    targets: usize,
    /// The coefficients of the targets, queries × targets.
    coefficients: Vec<T>,
    /// The other coefficients of each query, and the scale of its estimate by features; `None` when the query is finished or has no
    /// gradient by features.
    terms: Vec<Option<(GradientTerm, LogScale)>>,
    /// The cotangents of features, queries × D.
    features: Vec<T>,
    /// The products of coefficients and values, queries × keys.
    products: Vec<T>,
    weights: KeyWeights<T>,
    /// D × keys, keys × targets and D × targets.
    keys: Packed<T>,
    values: Packed<T>,
    sums: Packed<T>,
    row: LogRow,
    wide: Vec<f64>,
    of_points: Array2<f64>,
}

impl<T: Real> Cotangents<T> {
    /// Begins with so many queries.
    pub fn begin(&mut self, count: usize, targets: usize) {
        self.targets = targets;
        self.coefficients.clear();
        self.coefficients.resize(count * targets, T::zero());
        self.terms.clear();
        self.terms.resize(count, None);
    }

    /// Takes all that row `i` has read; the scale is that of its estimate by features.
    pub fn take<U: Real, R: Role<T>>(
        &mut self,
        normalised: bool,
        (sum, scale): (Undivided<'_, U>, LogScale),
        i: usize,
        tokens: &mut TokenGradients<'_, T, R>,
    ) {
        let own = &mut self.coefficients[i * self.targets..(i + 1) * self.targets];
        let term = tokens.take(normalised, sum, i, own);
        self.terms[i] = term.filter(|_| scale.sum() != f64::NEG_INFINITY).map(|term| (term, scale));
    }

    /// Writes the gradients of the rows that have read a chunk, except those whose estimate is not known yet.
    pub fn pull_from_chunk(
        &mut self,
        setup: Setup<'_, T>,
        ChunkRead { chunk, before, queries, first, count, sees }: ChunkRead<'_, T>,
        rows: &mut GradientRows<'_, T>,
        scratch: &mut Scratch<T>,
    ) {
        let (isa, width, targets) = (Isa::best(), setup.program.width(), self.targets);
        let keys = (sees + count - 1).max(1);
        self.multiply(before, width, count);
        self.values.refill_transposed(chunk.packed_values(), targets);
        self.keys.refill_transposed(chunk.packed_keys(), keys);
        self.products.resize(count * keys, T::zero());
        let coefficients = &self.coefficients[..count * targets];
        product(isa, coefficients, targets, self.values.all().first(keys), &mut self.products, keys);
        self.weights.begin();
        let each = self.products.chunks_exact_mut(keys).zip(self.features.chunks_exact_mut(width));
        for ((i, (products, features)), term) in each.enumerate().zip(&self.terms) {
            let (near, far) = products.split_at_mut((sees + i).min(keys));
            far.fill(T::zero());
            let known = self.weights.see(chunk, before, near.len());
            let (Some((_, rest)), Some((term, _))) = (known, term) else {
                near.fill(T::zero());
                features.fill(T::zero());
                continue;
            };
            let weight = T::narrow(term.weight);
            let scales = near.iter_mut().zip(self.weights.of_keys());
            scales.for_each(|(product, scale)| *product = (*product + weight) * *scale);
            add_weights(features, term.weight, before, rest);
        }
        let packed = self.keys.all().shallow(keys);
        add_product(isa, &self.products, keys, packed, &mut self.features, width);
        self.pull(setup, (queries, first), rows, scratch);
    }

    /// Writes the gradients of all queries, which see the same keys, but for those that have been done.
    pub fn pull_from_sums(
        &mut self,
        setup: Setup<'_, T>,
        sums: &RunSums<T>,
        queries: &Tokens<T>,
        rows: &mut GradientRows<'_, T>,
        scratch: &mut Scratch<T>,
    ) {
        let width = setup.program.width();
        self.multiply(sums, width, queries.len());
        for (features, term) in self.features.chunks_exact_mut(width).zip(&self.terms) {
            let weight = term.map_or(0.0, |(term, _)| term.weight);
            add_weights(features, weight, sums, 1.0);
        }
        self.pull(setup, (queries, 0), rows, scratch);
    }

    /// The products of coefficients and sums, for `count` queries.
    fn multiply(&mut self, sums: &RunSums<T>, width: usize, count: usize) {
        let targets = self.targets;
        self.features.resize(count * width, T::zero());
        self.sums.refill_transposed(&sums.sums, targets);
        let coefficients = &self.coefficients[..count * targets];
        product(Isa::best(), coefficients, targets, self.sums.all(), &mut self.features, width);
    }

    /// Writes the gradients of queries from the products with their keys; `first` is the row of the first among those that were read.
    fn pull(
        &mut self,
        setup: Setup<'_, T>,
        (queries, first): (&Tokens<T>, usize),
        rows: &mut GradientRows<'_, T>,
        scratch: &mut Scratch<T>,
    ) {
        let (width, form) = (setup.program.width(), form(setup));
        let count = self.features.len() / width;
        for (i, features) in self.features.chunks_exact_mut(width).enumerate() {
            match self.terms[i] {
                None => features.fill(T::zero()),
                Some((term, of_estimate)) if form == Form::Logarithms => {
                    let half = (0.5 * term.ln_factor(of_estimate)).exp();
                    numeric::scale_products(Isa::best(), features, queries.row(first + i), half);
                }
                Some((term, of_estimate)) => {
                    let (log, blocks) = (term.ln_factor(of_estimate), setup.program.blocks());
                    for (columns, block) in blocks.iter().zip(queries.block_scales(first + i)) {
                        // From the row's scale to that of the block.
                        scale(&mut features[columns.clone()], log + (block - of_estimate.own));
                    }
                }
            }
        }
        self.through_map(setup, queries.points_of(first..first + count), form, scratch);
        for (i, mut of_point) in self.of_points.rows_mut().into_iter().enumerate() {
            if self.terms[i].take().is_some() {
                if let Some(residuals) = &mut rows.residuals {
                    residuals.put(i, &self.features[i * width..(i + 1) * width]);
                }
                rows.write(setup.reading, i, numeric::slice_of_mut(&mut of_point));
            }
        }
    }

    /// Writes the gradient of row `i`, which is the row `query` of `queries`, from the logarithms of its features in
    /// `buffers`, relative to the row's scale, and of sums.
    pub fn pull_from_logarithms(
        &mut self,
        setup: Setup<'_, T>,
        state: &WeightedSums<T>,
        (queries, query): (&Tokens<T>, usize),
        i: usize,
        rows: &mut GradientRows<'_, T>,
        buffers: &mut LogBuffers<T>,
    ) {
        let Some((GradientTerm { weight, log, scale }, LogScale { own, .. })) = self.terms[i].take() else {
            return;
        };
        let (targets, form) = (self.targets, form(setup));
        let row = match form {
            Form::Logarithms => &buffers.row,
            Form::Values => {
                self.row.clear();
                for (columns, block) in setup.program.blocks().iter().zip(queries.block_scales(query)) {
                    columns.clone().for_each(|_| self.row.push(block - own, 1.0));
                }
                &self.row
            }
        };
        self.wide.resize(setup.program.width(), 0.0);
        let coefficients = &self.coefficients[i * targets..(i + 1) * targets];
        let rest = (own - scale.own) + log;
        state.contract(row, (scale.read, rest), coefficients, weight, &mut self.wide);
        self.features.clear();
        self.features.extend(self.wide.iter().map(|v| T::saturated(*v)));
        self.through_map(setup, queries.point(query), form, &mut buffers.scratch);
        if let Some(residuals) = &mut rows.residuals {
            residuals.put(i, &self.features);
        }
        rows.write(setup.reading, i, numeric::slice_of_mut(&mut self.of_points));
    }

    /// From cotangents of features to gradients with respect to points.
    fn through_map(&mut self, setup: Setup<'_, T>, points: &[T], form: Form, scratch: &mut Scratch<T>) {
        let (program, side) = (setup.program, setup.reading_side());
        let (d, width) = (program.facts().dim, program.width());
        let count = self.features.len() / width;
        match self.of_points.dim() == (count, d) {
            true => self.of_points.fill(0.0),
            false => self.of_points = Array2::zeros((count, d)),
        }
        let (x, cotangents) = (matrix_view(count, d, points), matrix_view(count, width, &self.features));
        let (rows, out) = (PulledRows { side, x, cotangents }, self.of_points.view_mut());
        match form {
            Form::Logarithms => pull_back_logarithms(program, rows, out),
            Form::Values => pull_back_rows(program, rows, out, scratch),
        }
    }
}

/// Which cotangents are pulled back through a map: ∂/∂ln φ where the map takes these, else ∂/∂φ.
fn form<T: Real>(setup: Setup<'_, T>) -> Form {
    if takes_logarithms(setup.program) { Form::Logarithms } else { Form::Values }
}

/// features ← rest · (features + weight · the sums' weights).
fn add_weights<T: Real>(features: &mut [T], weight: f64, sums: &RunSums<T>, rest: f64) {
    if rest == 0.0 {
        return features.fill(T::zero());
    }
    numeric::add_weighted(Isa::best(), features, rest, weight, &sums.weights);
}

/// Multiplies by e^log; what is 0 stays so, however large the factor.
fn scale<T: Real>(values: &mut [T], log: f64) {
    // By halves, so that the factor does not leave the range before the result does. Saturated, so that a feature that is 0 has no part
    // in a gradient, however large its cotangent.
    numeric::scale_twice(Isa::best(), values, (0.5 * log).exp());
}
