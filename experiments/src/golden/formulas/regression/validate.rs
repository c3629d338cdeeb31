//! Left-out groups, folds and blocks.

use ndarray::Axis;
use random_features::Targets;
use random_features::apply::{Criterion, RidgeStatistics};

use super::targets::{each, spectrum};
use super::{Regression, arrays, identity, text};
use crate::golden::Scaled;
use crate::golden::formulas::Outcome;

pub fn compute(case: &Regression<'_>) -> Result<Outcome, String> {
    match case.formula {
        "validate.groups" => groups(case),
        "validate.folds" => folds(case),
        _ => Ok(Outcome::Later),
    }
}

/// Residuals and errors of left-out groups.
fn groups(case: &Regression<'_>) -> Result<Outcome, String> {
    let (phi, y, lambdas) = (case.matrix("phi")?, case.targets("y")?, case.numbers("lambdas")?);
    let (weights, labels) = (case.numbers("weights")?, case.counts("groups")?);
    let targets = || Targets::from(&y).with_weights(&weights).map_err(text);
    let by_groups = Criterion::leave_groups_out(&phi, targets()?, &labels);
    let residuals = |intercept: bool| {
        let spectrum = spectrum(&phi, targets()?, intercept)?;
        let predicted = each(&lambdas, |lambda| spectrum.left_out(&by_groups, lambda))?;
        Ok::<_, String>(predicted.iter().flat_map(|predicted| &y - predicted).collect::<Vec<_>>())
    };
    let all = spectrum(&phi, targets()?, true)?;
    let errors = |criterion: &Criterion<'_, f64>| all.errors(criterion, &lambdas.to_vec()).map_err(text);
    arrays(vec![
        Scaled::new("residuals", residuals(true)?),
        Scaled::new("error", errors(&by_groups)?),
        Scaled::new("leave_one_out", errors(&Criterion::leave_one_out(&phi, targets()?))?),
        Scaled::new("residuals_without_intercept", residuals(false)?),
    ])
}

/// The statistics of the rows with each label below the largest, and of all rows.
fn parts(case: &Regression<'_>, name: &str) -> Result<Vec<RidgeStatistics<f64>>, String> {
    let (phi, y, weights) = (case.matrix("phi")?, case.targets("y")?, case.numbers("weights")?);
    let (labels, map) = (case.counts(name)?, identity(phi.ncols())?);
    let mut next = 0;
    let part = |label: usize| {
        let rows: Vec<usize> = (0..labels.len()).filter(|row| labels[*row] == label).collect();
        let (phi, y) = (phi.select(Axis(0), &rows), y.select(Axis(0), &rows));
        let weights = weights.select(Axis(0), &rows);
        let mut part = RidgeStatistics::new(map.clone(), 1).map_err(text)?;
        part = part.with_first_row(next).map_err(text)?;
        next += rows.len() as u64;
        let targets = Targets::from(&y).with_weights(&weights).map_err(text)?;
        part.update(&phi, targets).map_err(text)?;
        Ok(part)
    };
    (0..=labels.iter().copied().max().unwrap_or(0)).map(part).collect()
}

/// The statistics of all rows of some parts.
fn merged(parts: &[RidgeStatistics<f64>]) -> Result<RidgeStatistics<f64>, String> {
    let mut all = parts[0].clone();
    parts[1..].iter().try_for_each(|part| all.merge(part)).map_err(text)?;
    Ok(all)
}

/// Errors at folds and at blocks, from sums alone.
fn folds(case: &Regression<'_>) -> Result<Outcome, String> {
    let lambdas = case.numbers("lambdas")?.to_vec();
    let (folds, blocks) = (parts(case, "fold")?, parts(case, "block")?);
    let errors = |parts: &[RidgeStatistics<f64>], criterion: Criterion<'_, f64>| {
        merged(parts)?.spectrum().and_then(|all| all.errors(&criterion, &lambdas)).map_err(text)
    };
    // The blocks before one, merged, are a single block before it.
    let by_block = (2..=blocks.len()).map(|end| {
        let before = [merged(&blocks[..end - 1])?, blocks[end - 1].clone()];
        errors(&before, Criterion::forward_of(&before, 0))
    });
    let by_block = by_block.collect::<Result<Vec<_>, String>>()?;
    arrays(vec![
        Scaled::new("error_of_folds", errors(&folds, Criterion::folds_of(&folds))?),
        Scaled::new("error_forward", errors(&blocks, Criterion::forward_of(&blocks, 0))?),
        Scaled::new(
            "error_forward_by_block",
            (0..lambdas.len()).flat_map(|k| by_block.iter().map(move |errors| errors[k])),
        ),
    ])
}
