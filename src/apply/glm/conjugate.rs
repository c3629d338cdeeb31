//! [`Conjugate`]: nonlinear conjugate gradients for several classes with many features.
//!
//! Böhning's bound says that the second derivatives are at most ½(I − 11ᵀ/K) ⊗ A, where A = Σ a(φ − φ̄)(φ − φ̄)ᵀ. The
//! preconditioner is (½A + λI)⁻¹ for the weights of each class, and 2/N for the intercepts of centred features.

use ndarray::{Array1, Array2, Axis};

use super::Step;
use super::curvature::centred;
use super::descent::{Descent, not_found};
use super::newton::ROUNDING;
use crate::Real;
use crate::error::{Error, Result, singular};
use crate::linalg::{Backend, Cholesky};
use crate::numeric;
use crate::progress;
use crate::reduce::{GramSums, LinearisedRows};

/// The maximum number of steps: for a fit, and for one that may end at a multiple of [`ENOUGH`].
const STEPS: [usize; 2] = [8000, 1000];
/// The iteration ends when the decrease of the loss that a step predicts is below this share of the loss.
const ENOUGH: f64 = 1e-15;
/// The maximum number of halvings and steps of Newton's method along a direction.
const ALONG: usize = 30;

/// The preconditioner.
pub(super) struct Conjugate {
    /// ½A + λI.
    factor: Cholesky,
    /// φ̄, 0 without an intercept.
    mean: Array1<f64>,
    /// N = Σ a; 0 without an intercept.
    total: f64,
}

impl Conjugate {
    /// Moves to the minimum, until the predicted decrease is a multiple of [`ENOUGH`].
    pub fn run<T: Real>(descent: &mut Descent<'_, '_, T>, lambda: f64, multiple: f64) -> Result<()> {
        let own = Conjugate::new(descent, lambda)?;
        let mut last: Option<(Step, Step, f64)> = None;
        for _ in 0..STEPS[usize::from(multiple > 1.0)] {
            progress::check()?;
            let terms = descent.model.loss.terms(&descent.eta, descent.response);
            let loss = terms.losses.sum() + descent.model.penalty(lambda);
            let gradient = own.centred(descent.gradient(&terms, lambda)?);
            let preconditioned = own.apply(&gradient)?;
            let promise = preconditioned.dot(&gradient);
            if promise <= multiple * ENOUGH * loss {
                return Ok(());
            }
            let mut direction = preconditioned.clone();
            if let Some((before, old_gradient, old)) = &last {
                let beta = (promise - preconditioned.dot(old_gradient)) / old;
                direction.add(beta.max(0.0), before);
                if direction.dot(&gradient) <= 0.0 {
                    direction = preconditioned;
                }
            }
            let plain = own.plain(&direction);
            let change = descent.change(&plain)?;
            let fraction = along(descent, &plain, &change, lambda);
            if fraction == 0.0 {
                // No step lowers the loss by more than its rounding error.
                return if promise <= ROUNDING * loss { Ok(()) } else { Err(not_found()) };
            }
            descent.take(&plain, &change, fraction);
            last = Some((direction, gradient, promise));
        }
        Err(not_found())
    }

    fn new<T: Real>(descent: &Descent<'_, '_, T>, lambda: f64) -> Result<Self> {
        let (mut a, mean, total) = centred_products(descent)?;
        let noise = GramSums::<T>::rounding() * a.diag().iter().fold(0.0, |a: f64, v| a.max(*v));
        a *= 0.5;
        // The matrix is shifted so that rounding does not make it indefinite: any positive definite matrix is a preconditioner.
        a.diag_mut().mapv_inplace(|v| v + lambda.max(noise * mean.len() as f64));
        let factor = match Backend::default().cholesky(&a) {
            Err(Error::Factorisation { .. }) => return Err(singular(lambda, noise)),
            factor => factor?,
        };
        Ok(Conjugate { factor, mean, total })
    }

    /// The gradient with respect to weights of centred features.
    fn centred(&self, mut gradient: Step) -> Step {
        for (mut weights, pull) in gradient.weights.rows_mut().into_iter().zip(&gradient.intercepts) {
            weights.scaled_add(-pull, &self.mean);
        }
        gradient
    }

    fn apply(&self, gradient: &Step) -> Result<Step> {
        let weights = self.factor.solve(&gradient.weights.t())?.reversed_axes();
        let factor = if self.total > 0.0 { 2.0 / self.total } else { 0.0 };
        Ok(Step {
            weights: weights.as_standard_layout().into_owned(),
            intercepts: &gradient.intercepts * factor,
        })
    }

    /// The step with weights and intercepts of features that are not centred.
    fn plain(&self, step: &Step) -> Step {
        let mut plain = step.clone();
        plain.intercepts -= &step.weights.dot(&self.mean);
        plain
    }
}

/// A = Σ a(φ − φ̄)(φ − φ̄)ᵀ, of which the lower triangle is used, φ̄ and N = Σ a. Without an intercept φ̄ and N are 0.
pub(super) fn centred_products<T: Real>(
    descent: &Descent<'_, '_, T>,
) -> Result<(Array2<f64>, Array1<f64>, f64)> {
    let (model, n) = (&descent.model, descent.x.nrows());
    let mut intake = model.intake(1)?;
    let mut values = Array2::zeros((n, 3));
    values.column_mut(1).assign(&descent.response.weights);
    let curvature = descent.response.weights.view();
    let pull = numeric::matrix_view::<f64>(n, 0, &[]);
    let rows = LinearisedRows { curvature, pull, values: values.view() };
    intake.take_in_linearised(descent.x, rows)?;
    Ok(centred(intake.sums(), model.intercept))
}

/// The fraction of a direction at which the loss is least, by Newton's method with halving; 0 if no fraction lowers the loss.
fn along<T: Real>(descent: &Descent<'_, '_, T>, step: &Step, change: &Array2<f64>, lambda: f64) -> f64 {
    let (model, response) = (&descent.model, descent.response);
    let [cross, square] = [&model.linear.weights.to_owned(), &step.weights]
        .map(|weights| lambda * weights.iter().zip(&step.weights).map(|(a, b)| a * b).sum::<f64>());
    // The loss and its first two derivatives, without the terms that do not depend on the fraction.
    let at = |t: f64| {
        let terms = model.loss.terms(&(&descent.eta + &(change * t)), response);
        let penalty = cross * t + 0.5 * square * t * t;
        let slope = -terms.pull.iter().zip(change).map(|(pull, c)| pull * c).sum::<f64>();
        let rows = terms.second.axis_iter(Axis(0)).zip(change.rows()).zip(&response.weights);
        let bend = |((p, c), w): ((ndarray::ArrayView1<'_, f64>, ndarray::ArrayView1<'_, f64>), &f64)| {
            let mean = p.dot(&c);
            w * p.iter().zip(c).map(|(p, c)| p * (c - mean).powi(2)).sum::<f64>()
        };
        let curved: f64 = rows.map(bend).sum();
        [terms.losses.sum() + penalty, slope + cross + square * t, curved + square]
    };
    let start = at(0.0);
    let (mut t, mut now) = (0.0, start);
    for _ in 0..ALONG {
        let mut step = if now[2] > 0.0 { -now[1] / now[2] } else { 0.0 };
        let mut next = at(t + step);
        while next[0] > now[0] + ROUNDING * now[0].abs() && step.abs() > 1e-12 {
            step *= 0.5;
            next = at(t + step);
        }
        if next[0] > now[0] + ROUNDING * now[0].abs() {
            break;
        }
        (t, now) = (t + step, next);
        if now[1].abs() <= 1e-3 * start[1].abs() {
            break;
        }
    }
    t
}
