//! Approximate leave-one-out: the loss at each row of the model without the row, after one step of Newton's method.

use std::ops::Range;

use ndarray::{Array1, Array2, ArrayView1, Axis, s};

use super::curvature::CurvatureKind;
use super::descent::Descent;
use super::several::Several;
use super::{Curvature, LossTerms};
use crate::apply::ridge::rotation::plain;
use crate::engine::{FeatureBuffers, FeatureSource};
use crate::error::Result;
use crate::linalg::Backend;
use crate::threads::Pool;
use crate::{Real, progress};

/// The least eigenvalue of I − VW, beyond rounding.
const LEAST: f64 = 1e-9;
/// The number of rows of a run.
const ROWS: usize = 256;

impl<T: Real> Descent<'_, '_, T> {
    /// Σ a loss / Σ a, where each row is left out in turn. The decision value without a row is η − (I − VW)⁻¹ V a(y − π), with
    /// V = φ̃ᵀH⁻¹φ̃ and the row's own second derivatives W. For one decision value, V and W are numbers.
    pub fn left_out(&self, terms: &LossTerms, curvature: &Curvature) -> Result<f64> {
        let eta = match &curvature.kind {
            CurvatureKind::Single(single) => {
                let variances = single.variances(&self.model, self.x)?;
                let row = |i: usize| {
                    let left = 1.0 - terms.second[[i, 0]] * variances[i];
                    let change = variances[i] * terms.pull[[i, 0]] / left;
                    if left > LEAST { self.eta[[i, 0]] - change } else { f64::NAN }
                };
                Array1::from_shape_fn(self.x.nrows(), row).insert_axis(Axis(1))
            }
            CurvatureKind::Several(several) => self.several_left_out(terms, several)?,
        };
        let loss = self.model.loss.total(&eta, self.response) / self.response.weights.sum();
        Ok(if loss.is_nan() { f64::INFINITY } else { loss })
    }

    fn several_left_out(&self, terms: &LossTerms, several: &Several) -> Result<Array2<f64>> {
        let inverse = several.factor.lower_inverse();
        let inverse = inverse.t().dot(&inverse);
        let runs = (0..self.x.nrows()).step_by(ROWS).map(|start| start..self.x.nrows().min(start + ROWS));
        let of_run = |buffers: &mut FeatureBuffers<T>, run: Range<usize>| {
            if progress::is_stopped() {
                return Array2::zeros((0, 0));
            }
            self.run_left_out(terms, (&inverse, several.entries), run, buffers)
        };
        let parts = Pool::default().map(runs, of_run);
        progress::check()?;
        let (mut eta, mut start) = (Array2::zeros(self.eta.dim()), 0);
        for part in parts {
            eta.slice_mut(s![start..start + part.nrows(), ..]).assign(&part);
            start += part.nrows();
        }
        Ok(eta)
    }

    fn run_left_out(
        &self,
        terms: &LossTerms,
        (inverse, entries): (&Array2<f64>, usize),
        run: Range<usize>,
        buffers: &mut FeatureBuffers<T>,
    ) -> Array2<f64> {
        let (program, classes) = (self.model.map().program(), self.model.values());
        FeatureSource::standardised(program, self.model.standardisation())
            .fill(self.x.rows(run.clone()), buffers);
        // A feature of 1 for the intercept comes last.
        let mut features = Array2::<f64>::ones((run.len(), entries));
        let mut room = vec![0.0; program.width()];
        for (i, mut row) in features.rows_mut().into_iter().enumerate() {
            plain(program.blocks(), buffers.batch.row(i), &mut room);
            row.iter_mut().zip(&room).for_each(|(out, v)| *out = *v);
        }
        let of = |k: usize| k * entries..(k + 1) * entries;
        let mut variances = vec![Array2::<f64>::zeros((classes, classes)); run.len()];
        for (k, l) in (0..classes).flat_map(|k| (k..classes).map(move |l| (k, l))) {
            let rotated = features.dot(&inverse.slice(s![of(k), of(l)]));
            for (i, v) in variances.iter_mut().enumerate() {
                let product = rotated.row(i).dot(&features.row(i));
                (v[[k, l]], v[[l, k]]) = (product, product);
            }
        }
        let mut eta = self.eta.slice(s![run.clone(), ..]).to_owned();
        for ((i, v), mut eta) in run.zip(variances).zip(eta.rows_mut()) {
            let (p, weight) = (terms.second.row(i), self.response.weights[i]);
            let own = Array2::from_shape_fn((classes, classes), |(k, l)| {
                weight * p[k] * (f64::from(u8::from(k == l)) - p[l])
            });
            match left_out(v, &own, terms.pull.row(i)) {
                Some(change) => eta -= &change,
                None => eta.fill(f64::NAN),
            }
        }
        eta
    }
}

/// (I − VW)⁻¹V g = L(I − LᵀWL)⁻¹Lᵀ g for V = LLᵀ; `None` where rounding hides it. It is 0 for a row without features.
fn left_out(v: Array2<f64>, own: &Array2<f64>, pull: ArrayView1<'_, f64>) -> Option<Array1<f64>> {
    if v.iter().all(|v| *v == 0.0) {
        return Some(Array1::zeros(v.nrows()));
    }
    let factor = Backend::default().cholesky(&v).ok()?;
    let lower = factor.lower();
    let left = Array2::<f64>::eye(v.nrows()) - lower.t().dot(own).dot(&lower);
    let inner = Backend::default().cholesky(&left).ok()?;
    Some(lower.dot(&inner.solve_vector(&lower.t().dot(&pull)).ok()?))
}
