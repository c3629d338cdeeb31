//! [`Scored`]: candidates with what is expected of them, and their order.

use std::cmp::Ordering;

use super::candidates::Candidate;
use super::problem::Problem;
use crate::planner::forecasts::{Expected, Forecast};
use crate::theory::Basis;

/// The difference of ln loss below which losses count as equal.
const STEP: f64 = 0.005;

/// A candidate with the errors that are expected of it.
pub(crate) struct Scored {
    pub candidate: Candidate,
    /// ln E(K̂ − K)² of each pair, where it is known.
    pub ln_squares: Option<Vec<f64>>,
    /// The part of the loss's standard error that no other points would take away: that from draws, and from approximations.
    pub draws: f64,
    pub forecast: Forecast,
    /// Other names of this map, as "map, coupling".
    pub also: Vec<String>,
}

impl Scored {
    /// Whether its closed form was evaluated at some of the pairs only.
    pub fn is_of_some_pairs(&self) -> bool {
        self.ln_squares.is_none() && self.forecast.gram.basis == Basis::ClosedForm
    }

    /// Whether both are one map: their recipes are the same, or have as many features and the same errors of every kind by closed forms.
    pub fn is_as(&self, other: &Self) -> bool {
        let (own, others) = (&self.candidate, &other.candidate);
        if own.cost.features != others.cost.features || own.biased != others.biased {
            return false;
        }
        let errors = |one: &Scored| {
            let (gram, relative) = (one.forecast.gram, one.forecast.relative);
            [gram, relative.mean, relative.median, relative.ninety, relative.ninety_nine]
        };
        let known = self.ln_squares.is_some() == other.ln_squares.is_some() && self.forecast.gram.value > 0.0;
        let close = |(a, b): (Expected, Expected)| {
            let closed = [a, b].iter().all(|error| error.basis == Basis::ClosedForm);
            closed && (a.value - b.value).abs() < 1e-9 * a.value
        };
        known && errors(self).into_iter().zip(errors(other)).all(close) || own.recipe == others.recipe
    }
}

/// The smallest loss first, with a standard error of its draws and approximations, which is the price of not knowing; of losses that
/// hardly differ the cheaper, then the one without bias.
pub(crate) fn rank(scored: &mut [Scored]) {
    let risk = scored.iter().any(|one| one.forecast.loss.value < 0.0);
    let key = |one: &Scored| {
        let loss = one.forecast.loss.value + one.draws;
        // The excess risk of a regression may be negative.
        let step = if risk { loss } else { (loss.ln() / STEP).round() };
        let cost = one.candidate.cost.multiplications;
        // What is unknown comes last: a NaN may have any sign.
        let [step, cost] = [step, cost].map(|value| if value.is_nan() { f64::INFINITY } else { value });
        (step, one.forecast.relative.ninety.value, cost, one.candidate.biased)
    };
    scored.sort_by(|a, b| {
        let (a, b) = (key(a), key(b));
        // Where losses are beyond the range, tails tell.
        let tails = if a.0 == f64::INFINITY { a.1.total_cmp(&b.1) } else { Ordering::Equal };
        a.0.total_cmp(&b.0).then(tails).then(a.2.total_cmp(&b.2)).then(a.3.cmp(&b.3))
    });
}

impl Problem<'_> {
    /// Recipes of which those that are one map are one: the first of them.
    pub fn merged(&self, scored: Vec<Scored>, are_one: impl Fn(&Scored, &Scored) -> bool) -> Vec<Scored> {
        let mut merged: Vec<Scored> = Vec::with_capacity(scored.len());
        for one in scored {
            match merged.iter_mut().find(|first| are_one(first, &one)) {
                Some(first) => {
                    let (map, coupling) = self.names(&one.candidate);
                    first.also.push(format!("{map}, {coupling}"));
                    first.also.extend(one.also);
                }
                None => merged.push(one),
            }
        }
        merged
    }
}
