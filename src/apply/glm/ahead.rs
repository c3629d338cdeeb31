//! [`Ahead`]: the losses after a step, with their gradient, from one pass over the rows.
//!
//! A line search needs the change of the decision values along a step, and the next step needs the gradient after it. Both read all
//! features, which are computed once here, since a full step is nearly always taken.

use std::ops::Range;

use ndarray::{Array1, Array2, Axis, s};

use super::descent::{Descent, RUN};
use super::{LossTerms, Step};
use crate::Real;
use crate::engine::{Batch, FeatureSource, FoldBuffers, Runs, fold};
use crate::error::Result;
use crate::numeric::{self, Isa};
use crate::threads::Pool;

/// The terms of all rows, with minus the gradient of their losses if it is known.
pub(super) struct Ahead {
    pub terms: LossTerms,
    pub pull: Option<Step>,
}

/// A run of rows after the step.
struct RowRun {
    run: Range<usize>,
    change: Array1<f64>,
    terms: LossTerms,
    weights: Vec<f64>,
}

impl<T: Real> Descent<'_, '_, T> {
    /// The change of the one decision value along a direction, n × 1, and the losses after the full step.
    pub fn ahead(&mut self, direction: &Step) -> Result<(Array2<f64>, Ahead)> {
        self.passes += 1;
        let (program, n) = (self.model.map().program(), self.x.nrows());
        let (along, intercept) = (direction.weights.row(0), direction.intercepts[0]);
        let along = numeric::slice_of(&along);
        let part = |run: Range<usize>, batch: &mut Batch<T>, (): &mut ()| {
            let dot = |i: usize| {
                let row = batch.row(i);
                let blocks = program.blocks().iter().zip(row.log_scales);
                let parts =
                    blocks.filter(|(_, scale)| **scale != f64::NEG_INFINITY).map(|(columns, scale)| {
                        let (values, along) = (&row.values[columns.clone()], &along[columns.clone()]);
                        scale.exp() * numeric::dot(Isa::best(), values, along)
                    });
                parts.sum::<f64>() + intercept
            };
            let change: Array1<f64> = (0..run.len()).map(dot).collect();
            let eta = &self.eta.slice(s![run.clone(), ..]) + &change.view().insert_axis(Axis(1));
            let terms = self.model.loss.terms(&eta, &self.response.rows(run.clone()));
            let mut weights = vec![0.0; program.width()];
            batch.add_to(program.blocks(), |i, j| terms.pull[[i, j]], &mut weights);
            RowRun { run, change, terms, weights }
        };
        let mut change = Array2::zeros((n, 1));
        let mut terms = LossTerms {
            losses: Array1::zeros(n),
            pull: Array2::zeros((n, 1)),
            second: Array2::zeros((n, 1)),
        };
        let mut pull = Step::zeros(1, program.width());
        let source = FeatureSource::standardised(program, self.model.standardisation());
        let shape = Runs { rows: RUN, bytes: program.width() * size_of::<f64>() };
        fold(source, self.x, shape, &Pool::<FoldBuffers<T, ()>>::default(), part, |part| {
            change.slice_mut(s![part.run.clone(), 0]).assign(&part.change);
            terms.losses.slice_mut(s![part.run.clone()]).assign(&part.terms.losses);
            terms.pull.slice_mut(s![part.run.clone(), ..]).assign(&part.terms.pull);
            terms.second.slice_mut(s![part.run, ..]).assign(&part.terms.second);
            pull.weights.iter_mut().zip(part.weights).for_each(|(sum, part)| *sum += part);
        })?;
        pull.intercepts[0] = terms.pull.sum();
        Ok((change, Ahead { terms, pull: Some(pull) }))
    }
}
