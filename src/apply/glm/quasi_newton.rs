//! [`QuasiNewton`]: second derivatives that serve several steps.

use std::collections::VecDeque;

use super::{Curvature, Step};
use crate::error::Result;

/// The largest number of changes of the gradient that are remembered.
const REMEMBERED: usize = 12;
/// The least share of the predicted decrease that the product of a step and its change of the gradient has. Rounding errors leave
/// less of it.
const LEAST: f64 = 1e-3;
/// The number of steps by known second derivatives that may be left, and the number of features for which it is one more. New second
/// derivatives take as long as a pass over the rows for each so many features.
const STEPS: f64 = 3.0;
const FEATURES_A_STEP: f64 = 64.0;

/// Second derivatives of an earlier step or of a sample of the rows, corrected by the changes of the gradient along the full steps
/// since (L-BFGS).
///
/// # References
/// J. Nocedal, *Updating Quasi-Newton Matrices with Limited Storage*, Mathematics of Computation 35, 1980.
pub(super) struct QuasiNewton {
    curvature: Curvature,
    /// The share of the weight of all rows that the rows of the second derivatives have.
    share: f64,
    changes: VecDeque<Change>,
    /// The last full step, with minus the gradient before it and its predicted decrease.
    last: Option<(Step, Step, f64)>,
}

/// A step s with the change y of the gradient along it.
struct Change {
    step: Step,
    gradient: Step,
    /// s·y.
    product: f64,
}

impl QuasiNewton {
    /// The second derivatives of rows that have this share of the weight of all rows.
    pub fn new(curvature: Curvature, share: f64) -> Self {
        QuasiNewton { curvature, share, changes: VecDeque::new(), last: None }
    }

    /// The second derivatives of a sample of the rows from those of the rows themselves.
    pub fn of_sample(self, share: f64) -> Self {
        QuasiNewton::new(self.curvature, self.share * share)
    }

    /// Remembers that a full step was taken where minus the gradient was `gradient`.
    pub fn stepped(&mut self, step: Step, gradient: Step, promise: f64) {
        self.last = Some((step, gradient, promise));
    }

    /// Learns from minus the gradient after the last full step.
    pub fn learn(&mut self, gradient: &Step) {
        let Some((step, mut change, promise)) = self.last.take() else { return };
        change.add(-1.0, gradient);
        let product = step.dot(&change);
        if product < LEAST * promise {
            return;
        }
        if self.changes.len() == REMEMBERED {
            self.changes.pop_front();
        }
        self.changes.push_back(Change { step, gradient: change, product });
    }

    /// The step that takes a gradient nearly to 0.
    pub fn solve(&self, gradient: &Step) -> Result<Step> {
        let mut rest = gradient.clone();
        let mut shares = Vec::with_capacity(self.changes.len());
        for change in self.changes.iter().rev() {
            let share = change.step.dot(&rest) / change.product;
            rest.add(-share, &change.gradient);
            shares.push(share);
        }
        let mut step = self.curvature.solve(&rest)?.times(self.share);
        for (change, share) in self.changes.iter().zip(shares.iter().rev()) {
            step.add(share - change.gradient.dot(&step) / change.product, &change.step);
        }
        Ok(step)
    }
}

/// Whether new second derivatives take less time than the steps by known ones that are left. The predicted decrease is `promise` now,
/// falls by `rate` in each step, and has to become `enough`. There are `width` features.
pub(super) fn is_slow(promise: f64, rate: f64, enough: f64, width: usize) -> bool {
    let most = STEPS + width as f64 / FEATURES_A_STEP;
    promise > enough && !(rate < 1.0 && (enough / promise).ln() / rate.ln() <= most)
}
