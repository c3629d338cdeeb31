//! Standardisation, and targets of any mean and scale.

use ndarray::{Array1, Array2, Axis};
use random_features::Targets;
use random_features::apply::{Criterion, Ridge, RidgeSpectrum, RidgeStatistics, Standardisation};
use random_features::data::Statistics;
use random_features::{Error, Real};

use super::{Regression, arrays, identity, text};
use crate::golden::Scaled;
use crate::golden::formulas::Outcome;

pub fn compute(case: &Regression<'_>) -> Result<Outcome, String> {
    match case.formula {
        "standardise.columns" if case.inputs["scalar"] == "f32" => columns(case, |v| v as f32),
        "standardise.columns" => columns(case, |v| v),
        "targets.offset" => offset(case),
        "targets.scale" => scale(case),
        "targets.rebase" => rebase(case),
        "targets.constant" => constant(case),
        _ => Ok(Outcome::Later),
    }
}

/// Numbers in units of a deviation for each column, which is 1 where it is 0.
fn columns<T: Real>(case: &Regression<'_>, narrow: fn(f64) -> T) -> Result<Outcome, String> {
    let (x, weights) = (case.matrix("x")?.mapv(narrow), case.numbers("weights")?);
    let mut statistics = Statistics::new(x.ncols()).map_err(text)?;
    for (rows, weights) in x.axis_chunks_iter(Axis(0), 5).zip(weights.axis_chunks_iter(Axis(0), 5)) {
        statistics.update_weighted(&rows, &weights).map_err(text)?;
    }
    let inputs = Standardisation::of_statistics(&statistics).map_err(text)?;
    let first = weights.iter().position(|w| *w > 0.0).ok_or("no row has a weight")?;
    let (min, max) = (statistics.min().map_err(text)?, statistics.max().map_err(text)?);
    let deviation: Vec<f64> = statistics.variance().map_err(text)?.iter().map(|v| v.sqrt()).collect();
    let constant = (0..x.ncols()).map(|k| f64::from(u8::from(inputs.constant_columns().contains(&k))));
    let less_first = of_first(&x, &statistics, first)?;
    let column = |k: usize| k;
    arrays(vec![
        Scaled::of_units("constant", constant, column),
        Scaled::of_units("mean_less_first_present", less_first, column),
        Scaled::of_units("deviation", deviation, column),
        Scaled::of_units("min", min, column),
        Scaled::of_units("max", max, column),
    ])
}

/// The mean of each column less its first value that has a weight, from statistics of differences from the minimum.
fn of_first<T: Real>(x: &Array2<T>, statistics: &Statistics, first: usize) -> Result<Vec<f64>, String> {
    let min = statistics.min().map_err(text)?;
    let above = statistics.shifted(&min).and_then(|moved| moved.mean()).map_err(text)?;
    Ok((0..x.ncols()).map(|k| above[k] + (min[k] - x[[first, k]].widen())).collect())
}

/// The regression of features that are given, with an intercept.
pub fn spectrum(
    phi: &Array2<f64>,
    targets: Targets<'_, f64>,
    intercept: bool,
) -> Result<RidgeSpectrum<f64>, String> {
    let mut statistics = RidgeStatistics::new(identity(phi.ncols())?, targets.ncols()).map_err(text)?;
    if !intercept {
        statistics = statistics.without_intercept();
    }
    statistics.update(phi, targets).map_err(text)?;
    statistics.spectrum().map_err(text)
}

/// A number for each λ.
pub fn each<V>(lambdas: &Array1<f64>, of: impl Fn(f64) -> Result<V, Error>) -> Result<Vec<V>, String> {
    lambdas.iter().map(|lambda| of(*lambda).map_err(text)).collect()
}

/// The numbers of one target by name: for each λ evidence, noise, criteria, β and the intercept less the offset.
fn of_offset(case: &Regression<'_>, offset: f64) -> Result<Vec<Scaled>, String> {
    let (phi, lambdas) = (case.matrix("phi")?, case.numbers("lambdas")?);
    let y = case.targets("y")? + offset;
    let spectrum = spectrum(&phi, (&y).into(), true)?;
    let statistics = Statistics::of(&y).map_err(text)?;
    let min = statistics.min().map_err(text)?;
    let mean = statistics.shifted(&min).and_then(|above| above.mean()).map_err(text)?[0] + (min[0] - offset);
    let features = phi.mean_axis(Axis(0)).ok_or("no rows")?;
    // Where half a place of the intercept is more than the tolerance, its place is what can be asked for.
    let intercept = |model: &Ridge<f64>| {
        let (found, expected) = (model.intercepts()[0], mean - features.dot(&model.weights().row(0)));
        let place = f64::EPSILON * offset.abs().max(1.0);
        if (found - (offset + expected)).abs() <= place { expected } else { found - offset }
    };
    let errors = |criterion| spectrum.errors(&criterion, &lambdas.to_vec()).map_err(text);
    let models = each(&lambdas, |lambda| spectrum.model(lambda))?;
    let noise = each(&lambdas, |lambda| Ok(spectrum.posterior(lambda)?.noise()[0]))?;
    Ok(vec![
        Scaled::new("log_evidence", each(&lambdas, |lambda| spectrum.log_evidence(lambda))?),
        Scaled::new("noise", noise),
        Scaled::new("generalised_cross_validation", errors(Criterion::GeneralisedCrossValidation)?),
        Scaled::new("leave_one_out", errors(Criterion::leave_one_out(&phi, &y))?),
        Scaled::new("beta", models.iter().flat_map(|model| model.weights().to_owned())),
        Scaled::new("intercept_less_offset", models.iter().map(intercept)),
    ])
}

/// The numbers of the offset for which they differ most from those of the first one.
fn offset(case: &Regression<'_>) -> Result<Outcome, String> {
    let offsets = case.numbers("offsets")?;
    let mut found = of_offset(case, 0.0)?;
    let first: Vec<Vec<f64>> = found.iter().map(|array| array.values.clone()).collect();
    for offset in &offsets {
        for ((array, other), first) in found.iter_mut().zip(of_offset(case, *offset)?).zip(&first) {
            for ((value, other), first) in array.values.iter_mut().zip(other.values).zip(first) {
                *value = if (other - first).abs() > (*value - first).abs() { other } else { *value };
            }
        }
    }
    arrays(found)
}

/// Evidence and noise.
fn scale(case: &Regression<'_>) -> Result<Outcome, String> {
    arrays(of_offset(case, 0.0)?.into_iter().take(2).collect())
}

/// The sums of two parts about a reference, which follow from those that a regression with a λ gives.
fn rebase(case: &Regression<'_>) -> Result<Outcome, String> {
    const LAMBDA: f64 = 1.0;
    let map = identity(case.matrix("phi_left")?.ncols())?;
    let part = |side: &str, first: u64| {
        let (phi, y) = (case.matrix(&format!("phi_{side}"))?, case.targets(&format!("y_{side}"))?);
        let weights = case.numbers(&format!("weights_{side}"))?;
        let mut part = RidgeStatistics::new(map.clone(), 1).map_err(text)?;
        part = part.with_first_row(first).map_err(text)?;
        let targets = Targets::from(&y).with_weights(&weights).map_err(text)?;
        part.update(&phi, targets).map_err(text)?;
        Ok::<_, String>((part, weights.sum()))
    };
    let (mut all, left) = part("left", 0)?;
    let (right, more) = part("right", all.rows())?;
    all.merge(&right).map_err(text)?;
    let (n, reference) = (left + more, case.number("reference")?);
    let (model, spectrum) = (all.solve(LAMBDA).map_err(text)?, all.spectrum().map_err(text)?);
    let (mean, beta) = (all.mean_features().map_err(text)?, model.weights().row(0).to_owned());
    // ȳ − r, and c = (A + λI) β.
    let above = (model.intercepts()[0] - reference) + mean.dot(&beta);
    let spread = Array2::from_shape_fn((mean.len(), mean.len()), |(i, j)| n * mean[i] * mean[j]);
    let centred = all.products().map_err(text)? - spread + Array2::<f64>::eye(mean.len()) * LAMBDA;
    let cross = centred.dot(&beta);
    let left = spectrum.posterior(LAMBDA).map_err(text)?.noise()[0] * (n - 1.0);
    arrays(vec![
        Scaled::new("n", [n]),
        Scaled::new("s", &mean * n),
        Scaled::new("m", [n * above]),
        Scaled::new("c", &cross + &(&mean * (n * above))),
        Scaled::new("q", [left + cross.dot(&beta) + n * above * above]),
    ])
}

/// Constant targets, which add nothing.
fn constant(case: &Regression<'_>) -> Result<Outcome, String> {
    let (phi, y, lambdas) = (case.matrix("phi")?, case.targets("y")?, case.numbers("lambdas")?);
    let spectrum = spectrum(&phi, (&y).into(), true)?;
    let errors = |criterion| spectrum.errors(&criterion, &lambdas.to_vec()).map_err(text);
    let model = spectrum.model(lambdas[0]).map_err(text)?;
    let noise = each(&lambdas, |lambda| Ok(spectrum.posterior(lambda)?.noise().to_vec()))?;
    arrays(vec![
        Scaled::new("log_evidence", each(&lambdas, |lambda| spectrum.log_evidence(lambda))?),
        Scaled::new("noise", noise.concat()),
        Scaled::new("generalised_cross_validation", errors(Criterion::GeneralisedCrossValidation)?),
        Scaled::new("leave_one_out", errors(Criterion::leave_one_out(&phi, &y))?),
        Scaled::new("beta_of_constant", model.weights().row(1).to_owned()),
        Scaled::new("intercept_of_constant", model.intercepts().iter().skip(1).copied()),
    ])
}
