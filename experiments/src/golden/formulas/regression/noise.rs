//! Noise that is known for each row.

use random_features::Targets;
use random_features::apply::Criterion;

use super::targets::{each, spectrum};
use super::{Regression, arrays, text};
use crate::golden::Scaled;
use crate::golden::formulas::Outcome;

pub fn compute(case: &Regression<'_>) -> Result<Outcome, String> {
    match case.formula {
        "noise.known" => known(case),
        "noise.known_counts" => known_counts(case),
        _ => Ok(Outcome::Later),
    }
}

fn known(case: &Regression<'_>) -> Result<Outcome, String> {
    let (phi, y, lambdas) = (case.matrix("phi")?, case.targets("y")?, case.numbers("lambdas")?);
    let (precisions, query) = (case.numbers("precision")?, case.matrix("query")?);
    let of_query = case.numbers("query_precision")?;
    let targets = || Targets::from(&y).with_precisions(&precisions).map_err(text);
    let all = spectrum(&phi, targets()?, true)?;
    let errors = |criterion: Criterion<'_, f64>| all.errors(&criterion, &lambdas.to_vec()).map_err(text);
    let models = each(&lambdas, |lambda| all.model(lambda))?;
    let predictions =
        each(&lambdas, |lambda| all.posterior(lambda)?.predict(&query)?.with_precisions(&of_query))?;
    arrays(vec![
        Scaled::new("log_evidence", each(&lambdas, |lambda| all.log_evidence(lambda))?),
        Scaled::new("noise", predictions.iter().map(|predicted| predicted.noise[0])),
        Scaled::new("generalised_cross_validation", errors(Criterion::GeneralisedCrossValidation)?),
        Scaled::new("leave_one_out", errors(Criterion::leave_one_out(&phi, targets()?))?),
        Scaled::new("beta", models.iter().flat_map(|model| model.weights().to_owned())),
        Scaled::new("intercept", models.iter().map(|model| model.intercepts()[0])),
        Scaled::new("mean", predictions.iter().flat_map(|predicted| predicted.mean.clone())),
        Scaled::new("variance", predictions.iter().flat_map(|predicted| predicted.variance_of_mean.clone())),
        Scaled::new("variance_of_targets", predictions.iter().flat_map(|p| p.variance_of_targets())),
        Scaled::new(
            "log_evidence_known",
            each(&lambdas, |lambda| all.log_evidence_with_noise(lambda, &[1.0]))?,
        ),
    ])
}

/// Counts and precisions together.
fn known_counts(case: &Regression<'_>) -> Result<Outcome, String> {
    let (phi, y, lambda) = (case.matrix("phi")?, case.targets("y")?, case.number("lambda")?);
    let (precisions, counts) = (case.numbers("precision")?, case.numbers("counts")?);
    let targets = Targets::from(&y).with_weights(&counts).and_then(|y| y.with_precisions(&precisions));
    let all = spectrum(&phi, targets.map_err(text)?, true)?;
    let error = all.errors(&Criterion::GeneralisedCrossValidation, &[lambda]).map_err(text)?;
    arrays(vec![
        Scaled::new("log_evidence", [all.log_evidence(lambda).map_err(text)?]),
        Scaled::new("noise", all.posterior(lambda).map_err(text)?.noise().to_vec()),
        Scaled::new("generalised_cross_validation", error),
    ])
}
