//! Fewer rows than features, and principal components.

use ndarray::ArrayRef1;
use random_features::Targets;
use random_features::apply::pca::KernelPca;
use random_features::apply::{Criterion, RidgeSearch};

use super::{Regression, arrays, identity, text};
use crate::golden::Scaled;
use crate::golden::formulas::Outcome;

pub fn compute(case: &Regression<'_>) -> Result<Outcome, String> {
    match case.formula {
        "dual.ridge" => ridge(case),
        "dual.pca" => components(case),
        _ => Ok(Outcome::Later),
    }
}

/// The regressions of a search on one map, as it finds them.
fn ridge(case: &Regression<'_>) -> Result<Outcome, String> {
    let (phi, y, query) = (case.matrix("phi")?, case.targets("y")?, case.matrix("query")?);
    let (weights, lambdas) = (case.numbers("weights")?, case.numbers("lambdas")?.to_vec());
    let weights: &ArrayRef1<f64> = &weights;
    let targets = || Targets::from(&y).with_weights(weights).map_err(text);
    let width = phi.ncols();
    let map = identity::<f64>(width)?;
    let search = RidgeSearch::of(move |_| Ok(map.clone())).with_lengthscales([1.0]).without_standardisation();
    let found = search.with_lambdas(lambdas.clone()).fit(&phi, targets()?).map_err(text)?;
    let spectrum = found.spectrum();
    let posteriors = lambdas.iter().map(|lambda| spectrum.posterior(*lambda));
    let posteriors = posteriors.collect::<Result<Vec<_>, _>>().map_err(text)?;
    let predictions = posteriors.iter().map(|posterior| posterior.predict(&query));
    let predictions = predictions.collect::<Result<Vec<_>, _>>().map_err(text)?;
    let of = |value: &dyn Fn(f64) -> random_features::Result<f64>| {
        lambdas.iter().map(|lambda| value(*lambda)).collect::<Result<Vec<f64>, _>>().map_err(text)
    };
    let left_out = spectrum.errors(&Criterion::leave_one_out(&phi, targets()?), &lambdas).map_err(text)?;
    let models = || posteriors.iter().map(|posterior| posterior.model());
    let beta: Vec<f64> =
        models().flat_map(|model| model.weights().iter().copied().collect::<Vec<_>>()).collect();
    arrays(vec![
        Scaled::new("beta", beta),
        Scaled::new("intercept", models().map(|model| model.intercepts()[0])),
        Scaled::new("log_evidence", of(&|lambda| spectrum.log_evidence(lambda))?),
        Scaled::new("noise", posteriors.iter().map(|posterior| posterior.noise()[0])),
        Scaled::new("leave_one_out", left_out),
        Scaled::new("degrees_of_freedom", of(&|lambda| spectrum.degrees_of_freedom(lambda))?),
        Scaled::new("mean", predictions.iter().flat_map(|found| found.mean.iter().copied())),
        Scaled::new("variance", predictions.iter().flat_map(|found| found.variance_of_mean.iter().copied())),
    ])
}

fn components(case: &Regression<'_>) -> Result<Outcome, String> {
    let phi = case.matrix("phi")?;
    let count = case.number("components")? as usize;
    let pca = KernelPca::fit(identity::<f64>(phi.ncols())?, &phi, count).map_err(text)?;
    let scores = pca.transform(&phi).map_err(text)?;
    arrays(vec![
        Scaled::new("variance", pca.explained_variance().iter().copied()),
        Scaled::new("axes", pca.directions().iter().copied()),
        Scaled::new("scores", scores.iter().copied()),
    ])
}
