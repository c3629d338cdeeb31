//! [`GlmLoss`]: the loss of a row in a generalised linear model, and its derivatives.

use std::ops::Range;

use ndarray::{Array1, Array2, ArrayView1, s};

use crate::numeric;
use crate::numeric::special::largest;

/// The exponent up to which a rate is computed. It is far above any count, and the square of the rate is in range.
const LARGEST: f64 = 300.0;
/// The relative distance of a y/E · E from a whole number that rounding explains.
const NEAR: f64 = 1e-6;

/// The loss of a row with the decision value η, or with a vector η for several classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename = "Loss"))]
pub(super) enum GlmLoss {
    /// ln(1 + e^η) − y η for two classes, ln Σ e^η − Σ y η for more.
    Logistic,
    /// e^η − y η.
    Poisson,
    /// max(0, 1 − y η)², for y = ±1.
    SquaredHinge,
}

/// Targets in the form in which the loss takes them.
#[derive(Clone, Debug)]
pub(super) struct Response {
    /// The targets y, n × k.
    pub y: Array2<f64>,
    /// How often each row counts.
    pub weights: Array1<f64>,
}

impl Response {
    /// Consecutive rows.
    pub fn rows(&self, rows: Range<usize>) -> Response {
        let (y, weights) = (self.y.slice(s![rows.clone(), ..]), self.weights.slice(s![rows]));
        Response { y: y.to_owned(), weights: weights.to_owned() }
    }

    /// The response in which only some rows have a weight.
    pub fn only(&self, has: impl Fn(usize) -> bool) -> Response {
        let weight = |(i, weight): (usize, &f64)| if has(i) { *weight } else { 0.0 };
        let weights = self.weights.iter().enumerate().map(weight).collect();
        Response { y: self.y.clone(), weights }
    }

    /// Whether a row counts a whole number of times. For counts it is enough that a y is whole: a is an exposure then.
    pub fn is_counted(&self, row: usize, loss: GlmLoss) -> bool {
        let (weight, total) = (self.weights[row], self.weights[row] * self.y[[row, 0]]);
        let is_exposure = loss == GlmLoss::Poisson && (total - total.round()).abs() <= NEAR * total;
        weight.fract() == 0.0 || is_exposure
    }

    /// Σ a y of the first column.
    pub fn total(&self) -> f64 {
        self.y.column(0).dot(&self.weights)
    }

    /// Whether the loss has a minimum. If all counts are 0, the intercept falls without end.
    pub fn has_minimum(&self, loss: GlmLoss) -> bool {
        loss != GlmLoss::Poisson || self.total() > 0.0
    }

    /// Half a count, or Σ a if that is less: what stands for Σ a y if all counts are 0. The rate is at most 1 then, whatever the
    /// unit of the weights is.
    pub fn half_a_count(&self) -> f64 {
        self.weights.sum().min(0.5)
    }
}

/// The losses of rows at decision values, with derivatives.
#[derive(Debug)]
pub(super) struct LossTerms {
    /// The loss of each row, times its weight.
    pub losses: Array1<f64>,
    /// Minus the first derivatives of that loss with respect to η, n × k.
    pub pull: Array2<f64>,
    /// The second derivative of that loss for one decision value, or the probabilities π for several classes.
    pub second: Array2<f64>,
}

impl GlmLoss {
    /// The most that the weight of a row adds to what is measured in rows: the weights of counts may be exposures.
    pub fn most_of_exposure(self) -> f64 {
        if self == GlmLoss::Poisson { 1.0 } else { f64::INFINITY }
    }

    /// The loss of a row of weight 1. Writes −∂/∂η to `pull`, and the second derivative (for several classes the probabilities)
    /// to `second`.
    pub fn of_row(self, eta: &[f64], y: &[f64], pull: &mut [f64], second: &mut [f64]) -> f64 {
        let (e, t) = (eta[0], y[0]);
        match self {
            GlmLoss::Logistic if eta.len() > 1 => softmax(eta, y, pull, second),
            GlmLoss::Logistic => {
                let (p, other) = (sigmoid(e), sigmoid(-e));
                (pull[0], second[0]) = (t * other - (1.0 - t) * p, p * other);
                // The form for the sign of η in which nothing cancels.
                if t == 1.0 { softplus(-e) } else { softplus(e) - t * e }
            }
            GlmLoss::Poisson => {
                let rate = e.min(LARGEST).exp();
                (pull[0], second[0]) = (t - rate, rate);
                rate - t * e
            }
            GlmLoss::SquaredHinge => {
                let short = (1.0 - t * e).max(0.0);
                (pull[0], second[0]) = (2.0 * t * short, if short > 0.0 { 2.0 } else { 0.0 });
                short * short
            }
        }
    }

    /// The terms of all rows at the decision values, n × k.
    pub fn terms(self, eta: &Array2<f64>, response: &Response) -> LossTerms {
        let (n, k) = eta.dim();
        let mut terms = LossTerms {
            losses: Array1::zeros(n),
            pull: Array2::zeros((n, k)),
            second: Array2::zeros((n, k)),
        };
        for i in (0..n).filter(|i| response.weights[*i] > 0.0) {
            let weight = response.weights[i];
            let (mut pull, mut second) = (terms.pull.row_mut(i), terms.second.row_mut(i));
            let (pull, second) = (numeric::slice_of_mut(&mut pull), numeric::slice_of_mut(&mut second));
            let (eta, y) = (eta.row(i), response.y.row(i));
            let loss = self.of_row(numeric::slice_of(&eta), numeric::slice_of(&y), pull, second);
            terms.losses[i] = weight * loss;
            pull.iter_mut().for_each(|pull| *pull *= weight);
            if k == 1 {
                second[0] *= weight;
            }
        }
        terms
    }

    /// The sum of the losses at the decision values, n × k.
    pub fn total(self, eta: &Array2<f64>, response: &Response) -> f64 {
        let mut room = vec![0.0; 2 * eta.ncols()];
        let (pull, second) = room.split_at_mut(eta.ncols());
        let rows = eta.rows().into_iter().zip(response.y.rows()).zip(&response.weights);
        let of_row = |((eta, y), weight): ((ArrayView1<'_, f64>, ArrayView1<'_, f64>), &f64)| {
            let loss = self.of_row(numeric::slice_of(&eta), numeric::slice_of(&y), pull, second);
            weight * loss
        };
        rows.filter(|(_, weight)| **weight > 0.0).map(of_row).sum()
    }
}

/// The loss of several classes, with y − π and π.
fn softmax(eta: &[f64], y: &[f64], pull: &mut [f64], second: &mut [f64]) -> f64 {
    let top = largest(eta.iter().copied());
    second.iter_mut().zip(eta).for_each(|(p, e)| *p = (e - top).exp());
    let total: f64 = second.iter().sum();
    second.iter_mut().for_each(|p| *p /= total);
    pull.iter_mut().zip(y).zip(second.iter()).for_each(|((pull, y), p)| *pull = y - p);
    // ln Σ e^(η − η_own) is computed from the sum without the own class, so that small losses keep their digits.
    let own = (0..eta.len()).fold(0, |best, k| if y[k] > y[best] { k } else { best });
    if y[own] == 1.0 {
        pull[own] = (0..eta.len()).filter(|k| *k != own).map(|k| second[k]).sum();
    }
    let others = |(k, e): (usize, &f64)| if k == own { 0.0 } else { (e - eta[own]).exp() };
    let rest: f64 = eta.iter().enumerate().map(others).sum();
    let log_total = if rest.is_finite() { rest.ln_1p() } else { top - eta[own] + total.ln() };
    log_total + y.iter().zip(eta).map(|(y, e)| y * (eta[own] - e)).sum::<f64>()
}

/// 1/(1 + e^(−η)).
pub(super) fn sigmoid(eta: f64) -> f64 {
    if eta >= 0.0 {
        1.0 / (1.0 + (-eta).exp())
    } else {
        let e = eta.exp();
        e / (1.0 + e)
    }
}

/// ln(1 + e^η).
fn softplus(eta: f64) -> f64 {
    eta.max(0.0) + (-eta.abs()).exp().ln_1p()
}
