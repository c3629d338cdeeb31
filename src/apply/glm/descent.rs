//! [`Descent`]: the minimum for one λ over rows in memory.

use std::ops::Range;

use ndarray::{Array2, Axis, s};

use super::ahead::Ahead;
use super::conjugate::Conjugate;
use super::{Curvature, Glm, GlmLoss, GlmSums, LossTerms, Response, Step};
use crate::engine::{Batch, FeatureSource, FoldBuffers, PointsView, Runs, fold};
use crate::error::{Error, Result};
use crate::memory::check_memory;
use crate::numeric;
use crate::threads::Pool;
use crate::{Real, progress};

/// The maximum number of steps of Newton's method.
const STEPS: usize = 500;
/// The share of the [scale](Descent::scale) of the loss at which the predicted decrease ends the iteration after one full step
/// more. With fresh second derivatives this is the decrease that the step predicts. With older ones it is the decrease that will
/// be left: that of the step, times its ratio to the decrease of the step before.
const ENOUGH: [f64; 2] = [1e-11, 1e-17];
/// The largest change of a decision value by the last step, after which its error is about the square.
const STILL: f64 = 1e-3;
/// The factor of these shares for a sample, whose minimum differs from that of all rows, and for conjugate gradients over folds.
const COARSE: f64 = 1e6;
/// The share of the predicted decrease by which the loss must fall.
pub(super) const ARMIJO: f64 = 1e-4;
/// The least fraction of a step that is tried. The step from a rate of 1 towards a count y is y, and about ln y is right.
const LEAST: f64 = 1e-200;
/// The rounding error of losses, relative to the sum of their magnitudes.
pub(super) const ROUNDING: f64 = 1e-13;
/// The number of rows from which on second derivatives are used for several steps, and the ratio of two successive predicted
/// decreases above which they are computed again.
const MANY: usize = 8192;
const SLOW: f64 = 0.05;
/// A fit of many rows begins with a sample: its least number of rows, its least number of rows for each feature, and the number
/// of consecutive rows that are taken together.
const SAMPLE: usize = 8192;
const SAMPLE_EACH: usize = 8;
const BLOCK: usize = 512;
/// The number of rows of a run of gradients.
pub(super) const RUN: usize = 512;

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
        let eta = model.linear.scores(x)?;
        Ok(Descent { model, x, response, eta, known: None, passes: 0 })
    }

    /// Moves to the minimum.
    pub fn run(&mut self, lambda: f64) -> Result<()> {
        if self.model.is_large() { Conjugate::run(self, lambda, 1.0) } else { self.newton(lambda, 1.0) }
    }

    /// Moves near to the minimum, where the loss of other rows is close to its value at the minimum.
    pub fn run_coarsely(&mut self, lambda: f64) -> Result<()> {
        if self.model.is_large() { Conjugate::run(self, lambda, COARSE) } else { self.newton(lambda, 1.0) }
    }

    /// Moves to the minimum; if there are many rows, first over a sample of them.
    pub fn run_from_sample(&mut self, lambda: f64) -> Result<()> {
        let (n, values) = (self.x.nrows(), self.model.values());
        let size = SAMPLE.max(SAMPLE_EACH * self.model.map().feature_dim()).next_multiple_of(BLOCK);
        if values == 1 && n >= 4 * size {
            let blocks: Vec<Range<usize>> = (0..size / BLOCK)
                .map(|block| block * (n - BLOCK) / (size / BLOCK - 1))
                .map(|start| start..start + BLOCK)
                .collect();
            let x = points_of(self.x, &blocks)?;
            let response = self.response.blocks(&blocks);
            let share = response.weights.sum() / self.response.weights.sum();
            // A sample in which a class does not occur gives no useful start.
            let varies = |y: f64| response.y.iter().zip(&response.weights).any(|(v, w)| *w > 0.0 && *v != y);
            if share > 0.0 && varies(response.y[[0, 0]]) {
                let model = self.model.clone();
                let mut sample = Descent::at(model, x.view().into(), &response)?;
                sample.newton(lambda * share, COARSE)?;
                let eta = sample.model.linear.scores(self.x)?;
                let (model, total) = (&sample.model, |eta| self.model.loss.total(eta, self.response));
                if total(&eta) + model.penalty(lambda) < total(&self.eta) + self.model.penalty(lambda) {
                    (self.model, self.eta) = (sample.model, eta);
                }
            }
        }
        self.run(lambda)
    }

    /// Newton's method, until the predicted decrease is a multiple of [`ENOUGH`].
    fn newton(&mut self, lambda: f64, multiple: f64) -> Result<()> {
        let keeps = self.x.nrows() >= MANY && self.model.values() == 1;
        let (mut curvature, mut ahead, mut last) = (None, None, f64::INFINITY);
        for _ in 0..STEPS {
            progress::check()?;
            let Ahead { terms, pull } = ahead.take().unwrap_or_else(|| Ahead {
                terms: self.model.loss.terms(&self.eta, self.response),
                pull: None,
            });
            let loss = terms.losses.sum() + self.model.penalty(lambda);
            let older = match &curvature {
                Some(curvature) => Some(self.step(&terms, pull, curvature, lambda)?),
                None => None,
            };
            // Second derivatives from an earlier step are computed again if convergence with them is slow.
            let older = older.filter(|(_, promise)| *promise <= SLOW * last);
            let fresh = older.is_none();
            let (direction, promise) = match older {
                Some(step) => step,
                None => {
                    let sums = match self.known.take() {
                        Some(sums) => sums,
                        None => self.sums(&terms)?,
                    };
                    let (new, gradient) = (Curvature::of(&sums, lambda)?, sums.gradient(lambda));
                    let direction = new.solve(&gradient)?;
                    let promise = direction.dot(&gradient);
                    curvature = Some(new);
                    (direction, promise)
                }
            };
            let left = if fresh { promise } else { promise * (promise / last) };
            let is_last = left <= multiple * ENOUGH[usize::from(!fresh)] * self.scale(loss, &terms);
            let (moved, largest);
            (moved, largest, ahead) = self.search(&direction, promise, (loss, lambda), keeps && !is_last)?;
            // Rows that count little beside others are not near their minimum while their η change.
            if is_last && moved == 1.0 && (largest <= STILL * multiple.sqrt() || !self.has_minimum()) {
                return Ok(());
            }
            if moved < 1.0 || !keeps {
                curvature = None;
            }
            if moved == 0.0 && fresh {
                return Err(not_found());
            }
            last = promise;
        }
        Err(not_found())
    }

    /// The step by known second derivatives, and the decrease of the loss that it predicts. The gradient of the losses may be known.
    fn step(
        &mut self,
        terms: &LossTerms,
        pull: Option<Step>,
        curvature: &Curvature,
        lambda: f64,
    ) -> Result<(Step, f64)> {
        let gradient = match pull {
            Some(pull) => self.penalised(pull, lambda),
            None => self.gradient(terms, lambda)?,
        };
        let direction = curvature.solve(&gradient)?;
        let promise = direction.dot(&gradient);
        Ok((direction, promise))
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
    fn penalised(&self, mut pull: Step, lambda: f64) -> Step {
        pull.weights.scaled_add(-lambda, &self.model.linear.weights);
        if !self.model.intercept {
            pull.intercepts.fill(0.0);
        }
        pull
    }

    /// The scale of a decrease of the loss: the loss, or for counts Σ a(y + e^η), since their loss is of any sign and depends on
    /// the unit of exposures. If all counts are 0, the loss has no minimum, and the scale is half a count.
    fn scale(&self, loss: f64, terms: &LossTerms) -> f64 {
        if self.model.loss != GlmLoss::Poisson {
            return loss.abs();
        }
        let total = self.response.total();
        // The second derivatives are a e^η.
        if total > 0.0 { total + terms.second.sum() } else { self.response.half_a_count() }
    }

    /// Whether the loss has a minimum. If all counts are 0, the intercept falls without end.
    fn has_minimum(&self) -> bool {
        self.model.loss != GlmLoss::Poisson || self.response.total() > 0.0
    }

    /// Halves a step until the loss falls enough; returns the fraction, 0 if no step does, and the largest change of a decision
    /// value. With one decision value the pass over the rows may look `ahead`: after a full step it gives the terms and the gradient
    /// there.
    fn search(
        &mut self,
        direction: &Step,
        promise: f64,
        (loss, lambda): (f64, f64),
        ahead: bool,
    ) -> Result<(f64, f64, Option<Ahead>)> {
        let counts = if self.model.loss == GlmLoss::Poisson { self.response.total() } else { 0.0 };
        let slack = ROUNDING * (loss.abs() + counts);
        let falls = |fraction: f64, new: f64| new <= loss - ARMIJO * fraction * promise + slack;
        let (change, mut at, mut fraction) = match ahead {
            true => {
                let (change, at) = self.ahead(direction)?;
                (change, Some(at), 1.0)
            }
            false => (self.change(direction)?, None, 1.0),
        };
        while fraction > LEAST {
            let (eta, model) = (&self.eta + &(&change * fraction), self.moved(direction, fraction));
            let total = match &at {
                Some(at) => at.terms.losses.sum(),
                None => model.loss.total(&eta, self.response),
            };
            if falls(fraction, total + model.penalty(lambda)) {
                (self.model, self.eta) = (model, eta);
                let rows = change.rows().into_iter().zip(&self.response.weights);
                let changes = rows.filter(|(_, weight)| **weight > 0.0).flat_map(|(row, _)| row);
                let largest = changes.fold(0.0, |largest: f64, change| largest.max(change.abs()));
                return Ok((fraction, fraction * largest, at));
            }
            (at, fraction) = (None, 0.5 * fraction);
        }
        Ok((0.0, 0.0, None))
    }

    /// The change of the decision values along a direction, n × k.
    pub fn change(&mut self, direction: &Step) -> Result<Array2<f64>> {
        self.passes += 1;
        self.model.clone().with_parameters(direction.clone()).linear.scores(self.x)
    }

    fn moved(&self, direction: &Step, fraction: f64) -> Glm<T> {
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
            for (i, pull) in pull.slice(s![run, ..]).rows().into_iter().enumerate() {
                for (mut sums, pull) in sums.rows_mut().into_iter().zip(pull).filter(|(_, p)| **p != 0.0) {
                    batch.row(i).add_to(program.blocks(), *pull, numeric::slice_of_mut(&mut sums));
                }
            }
            sums
        };
        let source = FeatureSource::standardised(program, self.standardisation());
        let shape = Runs { rows: RUN, bytes: values * width * size_of::<f64>() };
        let buffers = Pool::<FoldBuffers<T, ()>>::default();
        fold(source, x, shape, &buffers, part, |sums| weights += &sums)?;
        Ok(Step { weights, intercepts: pull.sum_axis(Axis(0)) })
    }
}

impl Response {
    /// The rows of some blocks.
    fn blocks(&self, blocks: &[Range<usize>]) -> Response {
        let rows: Vec<usize> = blocks.iter().cloned().flatten().collect();
        Response { y: self.y.select(Axis(0), &rows), weights: self.weights.select(Axis(0), &rows) }
    }
}

/// The points of some blocks of rows.
fn points_of<T: Real>(x: PointsView<'_, T>, blocks: &[Range<usize>]) -> Result<Array2<T>> {
    let mut points = Array2::zeros((blocks.iter().map(Range::len).sum(), x.ncols()));
    let mut start = 0;
    for block in blocks {
        let rows = x.rows(block.clone()).to_dense()?;
        points.slice_mut(s![start..start + block.len(), ..]).assign(&rows);
        start += block.len();
    }
    Ok(points)
}

pub(super) fn not_found() -> Error {
    Error::Factorisation {
        what: "the fit of a generalised linear model",
        row: None,
        reason: "the iteration did not converge",
    }
}
