//! A λ for each target.

use random_features::Targets;
use random_features::apply::Criterion;

use super::targets::spectrum;
use super::{Regression, arrays, text};
use crate::golden::Scaled;
use crate::golden::formulas::Outcome;

/// Criteria of each target, the λ that they choose, and the model and posterior of the λ by evidence.
pub fn compute(case: &Regression<'_>) -> Result<Outcome, String> {
    let [phi, y, query] = [case.matrix("phi")?, case.targets("y")?, case.matrix("query")?];
    let (weights, lambdas) = (case.numbers("weights")?, case.numbers("lambdas")?.to_vec());
    let (targets, width) = (y.ncols(), phi.ncols());
    let rows = || Targets::from(&y).with_weights(&weights).map_err(text);
    let spectrum = spectrum(&phi, rows()?, true)?;
    let criteria = [
        ("leave_one_out", "choice_leave_one_out", Criterion::leave_one_out(&phi, rows()?), 1.0),
        ("generalised_cross_validation", "choice_generalised", Criterion::GeneralisedCrossValidation, 1.0),
        ("log_evidence", "choice_log_evidence", Criterion::LogEvidence, -1.0),
    ];
    let (mut computed, mut chosen) = (Vec::new(), Vec::new());
    for (table, choice, criterion, sign) in criteria {
        let errors = spectrum.errors_per_target(&criterion, &lambdas).map_err(text)?;
        computed.push(Scaled::of_units(table, errors.iter().map(|error| sign * error), |i| i % targets));
        let choices = spectrum.choose_per_target(&criterion, &lambdas).map_err(text)?;
        chosen = choices.into_iter().map(|(lambda, _)| lambda).collect();
        let place = |lambda: &f64| lambdas.iter().position(|other| other == lambda).ok_or("another λ");
        let places = chosen.iter().map(place).collect::<Result<Vec<_>, _>>()?;
        computed.push(Scaled::new(choice, places.into_iter().map(|place| place as f64)));
    }
    let posterior = spectrum.posterior_per_target(&chosen).map_err(text)?;
    let prediction = posterior.predict(&query).map_err(text)?;
    let model = posterior.model();
    computed.extend([
        Scaled::of_units("beta", model.weights().iter().copied(), |i| i / width),
        Scaled::of_units("intercept", model.intercepts().iter().copied(), |i| i),
        Scaled::of_units("noise", posterior.noise().iter().copied(), |i| i),
        Scaled::of_units("variance", prediction.variance_of_mean.t().iter().copied(), |i| i / query.nrows()),
    ]);
    arrays(computed)
}
