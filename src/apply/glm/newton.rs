//! [`Newton`]: steps of Newton's method.

use super::ahead::Ahead;
use super::descent::{Descent, not_found};
use super::quasi_newton::{QuasiNewton, is_slow};
use super::{Curvature, GlmLoss, LossTerms, Step};
use crate::error::Result;
use crate::{Real, progress};

/// The maximum number of steps.
const STEPS: usize = 500;
/// The shares of the [scale](Descent::scale) of the loss at which the predicted decrease ends the iteration after one full step
/// more. With fresh second derivatives this is the decrease that the step predicts. With older ones it is the decrease that will
/// be left: that of the step, times its ratio to the decrease of the step before.
const ENOUGH: [f64; 2] = [1e-11, 1e-14];
/// The shares for a sample, whose minimum differs from that of all rows by more.
const ENOUGH_OF_SAMPLE: [f64; 2] = [1e-3, 1e-3];
/// The largest change of a decision value by the last step, after which its error is about the square.
const STILL: f64 = 1e-3;
/// The share of the predicted decrease by which the loss must fall.
pub(super) const ARMIJO: f64 = 1e-4;
/// The least fraction of a step that is tried. The step from a rate of 1 towards a count y is y, and about ln y is right.
const LEAST: f64 = 1e-200;
/// The rounding error of losses, relative to the sum of their magnitudes.
pub(super) const ROUNDING: f64 = 1e-13;
/// The number of rows from which on second derivatives are used for several steps.
const MANY: usize = 2048;

/// Newton's method for one λ.
pub(super) struct Newton {
    lambda: f64,
    /// The shares of the loss at which the iteration ends, and the largest last change of a decision value.
    enough: [f64; 2],
    still: f64,
    /// Second derivatives that are known.
    second: Option<QuasiNewton>,
    /// The losses at the model with their gradient, if they are known.
    ahead: Option<Ahead>,
    /// The decrease of the loss that the last step predicted.
    last: f64,
}

/// A step, with minus the gradient before it and the decrease of the loss that it predicts.
struct Proposal {
    step: Step,
    gradient: Step,
    promise: f64,
    /// Whether its second derivatives are those of the model.
    is_fresh: bool,
}

impl Newton {
    /// Begins without second derivatives.
    pub fn new(lambda: f64) -> Self {
        Newton { lambda, enough: ENOUGH, still: STILL, second: None, ahead: None, last: f64::INFINITY }
    }

    /// Ends near to the minimum, where the loss of other rows is close to its value at the minimum.
    pub fn coarsely(lambda: f64) -> Self {
        Newton { enough: ENOUGH_OF_SAMPLE, still: f64::INFINITY, ..Self::new(lambda) }
    }

    /// Begins with second derivatives from elsewhere, and with the losses at the model.
    pub fn with_start(self, known: (Option<QuasiNewton>, Ahead)) -> Self {
        Newton { second: known.0, ahead: Some(known.1), ..self }
    }

    /// Moves to the minimum; returns the second derivatives of the last steps, if they are near to those at the minimum.
    pub fn run<T: Real>(mut self, descent: &mut Descent<'_, '_, T>) -> Result<Option<QuasiNewton>> {
        let keeps = descent.x.nrows() >= MANY && descent.model.values() == 1;
        for _ in 0..STEPS {
            progress::check()?;
            let Ahead { terms, pull } = self.ahead.take().unwrap_or_else(|| Ahead {
                terms: descent.model.loss.terms(&descent.eta, descent.response),
                pull: None,
            });
            let loss = terms.losses.sum() + descent.model.penalty(self.lambda);
            let scale = descent.scale(loss, &terms);
            let Proposal { step, gradient, promise, is_fresh } =
                match self.older(descent, &terms, pull, scale)? {
                    Some(proposal) => proposal,
                    None => self.fresh(descent, &terms)?,
                };
            let left = if is_fresh { promise } else { promise * self.rate(promise) };
            let is_last = left <= self.enough[usize::from(!is_fresh)] * scale;
            let (moved, largest);
            (moved, largest, self.ahead) =
                descent.search(&step, promise, (loss, self.lambda), keeps && !is_last)?;
            // Rows that count little beside others are not near their minimum while their η change.
            if is_last
                && moved == 1.0
                && (largest <= self.still || !descent.response.has_minimum(descent.model.loss))
            {
                return Ok(self.second);
            }
            if moved == 0.0 && is_fresh {
                return Err(not_found());
            }
            match &mut self.second {
                // Rows may still move although the loss hardly falls; new second derivatives move them faster.
                Some(second) if moved == 1.0 && keeps && !is_last => second.stepped(step, gradient, promise),
                _ => self.second = None,
            }
            self.last = promise;
        }
        Err(not_found())
    }

    /// The ratio of a predicted decrease to the one before; 1 for the first.
    fn rate(&self, promise: f64) -> f64 {
        if self.last.is_finite() { promise / self.last } else { 1.0 }
    }

    /// The step by known second derivatives, if there are any and convergence with them is not slow. The gradient of the losses may
    /// be known.
    fn older<T: Real>(
        &mut self,
        descent: &mut Descent<'_, '_, T>,
        terms: &LossTerms,
        pull: Option<Step>,
        scale: f64,
    ) -> Result<Option<Proposal>> {
        let Some(second) = &mut self.second else { return Ok(None) };
        let gradient = match pull {
            Some(pull) => descent.penalised(pull, self.lambda),
            None => descent.gradient(terms, self.lambda)?,
        };
        second.learn(&gradient);
        let step = second.solve(&gradient)?;
        let promise = step.dot(&gradient);
        let width = descent.model.map().feature_dim();
        let is_slow =
            self.last.is_finite() && is_slow(promise, self.rate(promise), self.enough[1] * scale, width);
        Ok((!is_slow).then_some(Proposal { step, gradient, promise, is_fresh: false }))
    }

    /// The step by the second derivatives at the model.
    fn fresh<T: Real>(&mut self, descent: &mut Descent<'_, '_, T>, terms: &LossTerms) -> Result<Proposal> {
        let sums = match descent.known.take() {
            Some(sums) => sums,
            None => descent.sums(terms)?,
        };
        let (curvature, gradient) = (Curvature::of(&sums, self.lambda)?, sums.gradient(self.lambda));
        let step = curvature.solve(&gradient)?;
        let promise = step.dot(&gradient);
        self.second = Some(QuasiNewton::new(curvature, 1.0));
        Ok(Proposal { step, gradient, promise, is_fresh: true })
    }
}

impl<T: Real> Descent<'_, '_, T> {
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
}
