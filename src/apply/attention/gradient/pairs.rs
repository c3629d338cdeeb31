//! [`PairGradients`]: gradients through pairs with exact weights, block by block.

use std::ops::Range;

use super::super::input::{Reading, split_runs};
use super::super::pairs::{ExactRun, KeyBlock, Ring, See, SeenPlaces};
use super::roles::Role;
use super::rows::{GradientRows, GradientTerm, TokenGradients};
use crate::Real;
use crate::numeric::{Isa, add_product, exp_minus, product};
use crate::progress;
use crate::threads::Pool;

/// Rows whose gradients are computed together.
const ROWS: usize = 48;

/// What a thread needs for the gradients of rows, one run of these after the other.
#[derive(Debug, Default)]
struct PairGradients<T> {
    ring: Ring<T>,
    estimates: ExactRun<T>,
    points: Vec<T>,
    /// The coefficients of the targets, rows × targets.
    coefficients: Vec<T>,
    /// The other coefficients of each row; `None` for a row whose gradient is 0.
    terms: Vec<Option<GradientTerm>>,
    weights: Vec<T>,
    products: Vec<T>,
    of_points: Vec<T>,
}

/// Shows the blocks of keys that some rows see.
pub(super) trait Visit<T>: Fn(&mut Ring<T>, Range<usize>, &mut See<'_, T>) + Sync {}

impl<T, F: Fn(&mut Ring<T>, Range<usize>, &mut See<'_, T>) + Sync> Visit<T> for F {}

/// Writes the gradients of rows, which `reading` makes points, with respect to the exact weights of the pairs with keys in the blocks
/// that `visit` shows. Once the work is stopped, the rest is left out.
pub(super) fn pull_pairs<T: Real, R: Role<T>>(
    (reading, normalised): (&Reading, bool),
    tokens: TokenGradients<'_, T, R>,
    visit: impl Visit<T>,
) {
    let count = tokens.rows.len();
    let runs = split_runs(tokens, count, ROWS).into_iter().enumerate();
    Pool::default().for_each(runs, |own: &mut PairGradients<T>, (run, mut tokens)| {
        if progress::is_stopped() {
            return;
        }
        reading.points(tokens.rows.tokens, &mut own.points);
        own.estimate(normalised, &mut tokens, run * ROWS, &visit);
        own.pull(&tokens.rows, run * ROWS, &visit);
        own.write(reading, &mut tokens.rows);
    });
}

impl<T: Real> PairGradients<T> {
    /// Finds the coefficients of rows, of which the first is the row `first` of all, from their estimates unless these are known.
    fn estimate<R: Role<T>>(
        &mut self,
        normalised: bool,
        tokens: &mut TokenGradients<'_, T, R>,
        first: usize,
        visit: &impl Visit<T>,
    ) {
        let (count, targets) = (tokens.rows.len(), tokens.role.targets());
        let PairGradients { ring, estimates, points, coefficients, terms, .. } = self;
        estimates.begin(count, targets);
        if !R::KNOWN {
            visit(ring, first..first + count, &mut |block, sees| estimates.add(points, block, sees));
        }
        coefficients.clear();
        coefficients.resize(count * targets, T::zero());
        let rows = coefficients.chunks_exact_mut(targets).enumerate();
        terms.clear();
        terms.extend(rows.map(|(i, own)| tokens.take(normalised, estimates.part(i), i, own)));
    }

    /// The gradients with respect to the points of rows.
    fn pull(&mut self, rows: &GradientRows<'_, T>, first: usize, visit: &impl Visit<T>) {
        let (count, d) = (rows.len(), rows.tokens.ncols());
        self.of_points.clear();
        self.of_points.resize(count * d, T::zero());
        if d > 0 {
            let mut ring = std::mem::take(&mut self.ring);
            visit(&mut ring, first..first + count, &mut |block, sees| self.add(block, d, sees));
            self.ring = ring;
        }
    }

    /// Adds the part of the keys of a block: e^(logit − scale + log) (c·v + weight) k of each.
    fn add(&mut self, block: &KeyBlock<T>, d: usize, sees: &SeenPlaces<'_>) {
        let (isa, count) = (Isa::best(), self.terms.len());
        let (width, targets) = (block.reach(count, sees), self.coefficients.len() / count);
        if width == 0 {
            return;
        }
        let transposed = block.transposed();
        let PairGradients { points, coefficients, terms, weights, products, of_points, .. } = self;
        for numbers in [&mut *weights, &mut *products] {
            numbers.clear();
            numbers.resize(count * width, T::zero());
        }
        product(isa, points, d, block.keys(width), weights, width);
        product(isa, coefficients, targets, transposed.values.all().first(width), products, width);
        let rows = weights.chunks_exact_mut(width).zip(products.chunks_exact_mut(width));
        for (i, (weights, products)) in rows.enumerate() {
            let Some(term) = terms[i] else {
                weights.fill(T::zero());
                continue;
            };
            let seen = block.logits(sees(i), weights);
            let (logits, [first, second]) = (&mut weights[seen], term.scale.in_two::<T>(term.log));
            logits.iter_mut().for_each(|logit| *logit += first);
            exp_minus(isa, logits, -second);
            let weight = T::narrow(term.weight);
            let row = &coefficients[i * targets..(i + 1) * targets];
            for (j, values) in block.not_finite().iter().filter(|(j, _)| *j < width) {
                products[*j] = row.iter().zip(values).fold(T::zero(), |sum, (c, v)| sum + *c * *v);
            }
            // What has no weight has no part, whatever its product.
            for (own, product) in weights.iter_mut().zip(products).filter(|(own, _)| **own != T::zero()) {
                *own *= *product + weight;
            }
        }
        add_product(isa, weights, width, transposed.keys.all().shallow(width), of_points, d);
    }

    fn write(&self, reading: &Reading, rows: &mut GradientRows<'_, T>) {
        let d = rows.tokens.ncols();
        let mut of_point = Vec::new();
        for i in (0..self.terms.len()).filter(|i| self.terms[*i].is_some()) {
            of_point.clear();
            of_point.extend(self.of_points[i * d..(i + 1) * d].iter().map(|v| v.widen()));
            rows.write(reading, i, &mut of_point);
        }
    }
}
