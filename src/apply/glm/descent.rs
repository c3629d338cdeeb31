//! [`Descent`]: the minimum for one λ over rows in memory.

use std::ops::Range;

use ndarray::{Array2, Axis};

use super::conjugate::Conjugate;
use super::newton::Newton;
use super::start::from_sample;
use super::{Glm, GlmSums, LossTerms, Response, Step};
use crate::Real;
use crate::engine::{Batch, FeatureSource, FoldBuffers, PointsView, Runs, fold};
use crate::error::{Error, Result};
use crate::memory::check_memory;
use crate::numeric;
use crate::threads::Pool;

/// The number of rows of a run of gradients.
pub(super) const RUN: usize = 128;
/// The factor of the share of the loss at which conjugate gradients over folds end.
const COARSE: f64 = 1e6;

/// A model, and the rows over which its loss is minimised.
pub(super) struct Descent<'x, 'r, T: Real> {
    pub model: Glm<T>,
    pub x: PointsView<'x, T>,
    pub response: &'r Response,
    /// The decision values, n × k.
    pub eta: Array2<f64>,
    /// The sums at the model, if they are known already.
    pub known: Option<GlmSums<T>>,
    /// The number of passes over the rows.
    pub passes: usize,
}

impl<'x, 'r, T: Real> Descent<'x, 'r, T> {
    /// Begins at a model.
    pub fn at(model: Glm<T>, x: PointsView<'x, T>, response: &'r Response) -> Result<Self> {
        let bytes = model.values().saturating_mul(5 * size_of::<f64>());
        check_memory("rows of decision values", x.nrows(), bytes)?;
        let is_flat = model.linear.weights.iter().all(|weight| *weight == 0.0);
        let eta = match is_flat {
            true => Array2::from_shape_fn((x.nrows(), model.values()), |(_, k)| model.linear.intercepts[k]),
            false => model.linear.scores(x)?,
        };
        Ok(Descent { model, x, response, eta, known: None, passes: 0 })
    }

    /// Moves to the minimum.
    pub fn run(&mut self, lambda: f64) -> Result<()> {
        if self.model.is_large() {
            Conjugate::run(self, lambda, 1.0)
        } else {
            Newton::new(lambda).run(self).map(drop)
        }
    }

    /// Moves near to the minimum, where the loss of other rows is close to its value at the minimum.
    pub fn run_coarsely(&mut self, lambda: f64) -> Result<()> {
        if self.model.is_large() { Conjugate::run(self, lambda, COARSE) } else { self.run(lambda) }
    }

    /// Moves to the minimum; if there are many rows, first over samples of them.
    pub fn run_from_sample(&mut self, lambda: f64) -> Result<()> {
        match from_sample(self, lambda)? {
            Some(start) => Newton::new(lambda).with_start(start).run(self).map(drop),
            None => self.run(lambda),
        }
    }

    /// The sums of second derivatives at the model.
    pub fn sums(&mut self, terms: &LossTerms) -> Result<GlmSums<T>> {
        self.passes += 1;
        let mut sums = GlmSums::at(&self.model)?;
        sums.add(self.x, terms, self.response)?;
        Ok(sums)
    }

    /// Minus the gradient of the penalised loss.
    pub fn gradient(&mut self, terms: &LossTerms, lambda: f64) -> Result<Step> {
        self.passes += 1;
        Ok(self.penalised(self.model.pulled(self.x, &terms.pull)?, lambda))
    }

    /// Minus the gradient of the penalised loss, from minus the gradient of the losses.
    pub fn penalised(&self, mut pull: Step, lambda: f64) -> Step {
        pull.weights.scaled_add(-lambda, &self.model.linear.weights);
        if !self.model.intercept {
            pull.intercepts.fill(0.0);
        }
        pull
    }

    /// The change of the decision values along a direction, n × k.
    pub fn change(&mut self, direction: &Step) -> Result<Array2<f64>> {
        self.passes += 1;
        self.model.clone().with_parameters(direction.clone()).linear.scores(self.x)
    }

    pub fn moved(&self, direction: &Step, fraction: f64) -> Glm<T> {
        let mut parameters = self.model.parameters();
        parameters.add(fraction, direction);
        parameters.centre();
        self.model.clone().with_parameters(parameters)
    }

    /// Moves along a direction whose change of the decision values is known.
    pub fn take(&mut self, direction: &Step, change: &Array2<f64>, fraction: f64) {
        self.eta.scaled_add(fraction, change);
        self.model = self.moved(direction, fraction);
    }
}

impl<T: Real> Glm<T> {
    /// Σ pull φ over the rows of `x`, and Σ pull, for pulls n × k.
    pub(super) fn pulled(&self, x: PointsView<'_, T>, pull: &Array2<f64>) -> Result<Step> {
        let program = self.map().program();
        let (width, values) = (program.width(), self.values());
        let mut weights = Array2::<f64>::zeros((values, width));
        let part = |run: Range<usize>, batch: &mut Batch<T>, (): &mut ()| {
            let mut sums = Array2::<f64>::zeros((values, width));
            let pull = |i, j| pull[[run.start + i, j]];
            batch.add_to(program.blocks(), pull, numeric::slice_of_mut(&mut sums));
            sums
        };
        let source = FeatureSource::standardised(program, self.standardisation());
        let shape = Runs { rows: RUN, bytes: values * width * size_of::<f64>() };
        let buffers = Pool::<FoldBuffers<T, ()>>::default();
        fold(source, x, shape, &buffers, part, |sums| weights += &sums)?;
        Ok(Step { weights, intercepts: pull.sum_axis(Axis(0)) })
    }
}

pub(super) fn not_found() -> Error {
    Error::Factorisation {
        what: "the fit of a generalised linear model",
        row: None,
        reason: "the iteration did not converge",
    }
}
