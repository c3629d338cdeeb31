//! Ridge regression on given features.

use random_features::apply::RidgeStatistics;

use super::case::{Case, Found, parts};
use super::regression::{identity, text};

pub fn ridge(case: &Case<'_>) -> Found {
    if case.formula != "krr.primal" {
        return Ok(None);
    }
    let (z, y, at) = (case.matrix("Z")?, case.matrix("Y")?, case.matrix("Zstar")?);
    let mut statistics =
        RidgeStatistics::new(identity::<f64>(z.ncols())?, y.ncols()).map_err(text)?.without_intercept();
    statistics.update(&z, &y).map_err(text)?;
    let model = statistics.solve(case.number("phi")?).map_err(text)?;
    let predicted = model.predict(&at).map_err(text)?;
    let beta = model.weights().t().iter().copied().collect();
    parts(vec![("beta", beta), ("pred", predicted.iter().copied().collect())])
}
