//! [`Several`]: the second derivatives for several classes.

use ndarray::{Array1, Array2, s};

use super::curvature::Hessian;
use super::sums::pairs;
use super::{GlmSums, Step};
use crate::Real;
use crate::error::Result;
use crate::linalg::Cholesky;
use crate::reduce::GramSums;

/// The second derivatives with respect to the weights and the intercept of each class, class after class.
#[derive(Clone, Debug)]
pub(super) struct Several {
    pub factor: Cholesky,
    /// The number of entries of a class: D, or D + 1 with an intercept.
    pub entries: usize,
}

impl Several {
    pub fn solve(&self, gradient: &Step) -> Result<Step> {
        let solution = self.factor.solve_vector(&gradient.flat(self.entries))?;
        Ok(Step::of_flat(&solution, self.entries, gradient.weights.ncols()))
    }
}

impl Hessian {
    /// Σ sφ̃φ̃ᵀ for one decision value. For several classes H_kl = −Σ aπ_kπ_l φ̃φ̃ᵀ for k ≠ l, and H_kk = −Σ_l H_kl over l ≠ k.
    pub fn bordered<T: Real>(sums: &GlmSums<T>) -> Self {
        let (classes, width) = (sums.model.values(), sums.model.map().feature_dim());
        let entries = width + usize::from(sums.model.intercept);
        let mut a = Array2::<f64>::zeros((classes * entries, classes * entries));
        let of = |k: usize| k * entries..(k + 1) * entries;
        for ((k, l), intake) in pairs(classes).into_iter().zip(&sums.intakes) {
            let block = bordered(intake.sums(), entries);
            let mut own = a.slice_mut(s![of(k), of(k)]);
            own += &block;
            if k != l {
                let mut own = a.slice_mut(s![of(l), of(l)]);
                own += &block;
                a.slice_mut(s![of(l), of(k)]).assign(&-block);
            }
        }
        // Intercepts add up to 0. The direction that changes all of them equally gets a second derivative too, so that the matrix
        // is not singular; no step goes along it.
        if sums.model.intercept && classes > 1 {
            let intercepts = || (0..classes).map(|k| (k + 1) * entries - 1);
            let firm = intercepts().map(|place| a[[place, place]]).sum::<f64>() / classes as f64;
            for i in intercepts() {
                intercepts().for_each(|j| a[[i, j]] += firm);
            }
        }
        let is_penalised = |place: usize| f64::from(u8::from(place % entries < width));
        let penalised = Array1::from_shape_fn(classes * entries, is_penalised);
        Hessian { a, penalised, mean: Array1::zeros(0), total: 0.0, shape: (classes, entries) }
    }

    /// The symmetric matrix.
    pub fn full(self) -> Array2<f64> {
        let mut a = self.a;
        for i in 0..a.nrows() {
            (0..i).for_each(|j| a[[j, i]] = a[[i, j]]);
        }
        a
    }
}

/// Σ sφ̃φ̃ᵀ, with the intercept last if there is an entry for it.
fn bordered<T: Real>(gram: &GramSums<T>, entries: usize) -> Array2<f64> {
    let (width, products) = (gram.feature_dim(), gram.lower_products());
    let element = |(f, g): (usize, usize)| match (f.max(g), f.min(g)) {
        (most, least) if most < width => products[[most, least]],
        (_, least) if least < width => gram.feature(least),
        _ => gram.weight(),
    };
    Array2::from_shape_fn((entries, entries), element)
}
