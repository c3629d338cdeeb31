//! The tests that give a [`RidgeWarning`].

use std::collections::HashSet;

use super::super::{Criterion, RidgeRows, RidgeSpectrum, RidgeWarning, least};
use super::errors::{Choice, LambdaErrors, LambdaSharing, Series};
use crate::Real;
use crate::error::Error;
use crate::kernel::Lengthscale;

/// The nats by which a target must be more likely under a regression than under a constant with noise.
const NATS: f64 = 4.0;
/// The additional nats for a choice among maps: ln 25, since a default search tries at most 25.
const MAPS: f64 = 3.2;
/// The share of its error that the common λ may cost a target, compared with its own best λ, without a warning.
const COST: f64 = 0.1;
/// The share of the error of the mean below which targets count as fitted exactly.
const EXACT: f64 = 1e-4;
/// Differences of a target's errors below this share of its variance are rounding.
const ROUNDING: f64 = 1e-9;
/// The rows, as a share of the groups, that count beyond one for each group without a warning.
const BEYOND: f64 = 1e-6;

/// Warns if the least of the errors is not below the error of the mean, or if the evidence does not distinguish targets from
/// noise. The test is for all targets together, or for each if each has its own λ.
pub(super) fn mean<T: Real>(
    spectrum: &RidgeSpectrum<T>,
    criterion: &Criterion<'_, T>,
    errors: &LambdaErrors,
) -> Option<RidgeWarning> {
    let tests = tests(spectrum, criterion, errors);
    if tests.iter().any(|test| test.passes(0.0)) {
        return None;
    }
    let MeanTest { error, mean_error, nats, needed } =
        tests.into_iter().max_by(|a, b| (a.nats - a.needed).total_cmp(&(b.nats - b.needed)))?;
    Some(RidgeWarning::Mean { error, mean_error, nats, needed })
}

/// Whether a map passes the tests for being better than the mean, with a margin for the many maps that are tried.
pub(super) fn is_promising<T: Real>(
    spectrum: &RidgeSpectrum<T>,
    criterion: &Criterion<'_, T>,
    errors: &LambdaErrors,
) -> bool {
    tests(spectrum, criterion, errors).iter().any(|test| test.passes(MAPS))
}

/// The numbers that distinguish the regression of some targets from their mean.
struct MeanTest {
    error: f64,
    mean_error: f64,
    /// The largest number of nats by which a target is more likely under a regression that was tried than under a constant with
    /// noise.
    nats: f64,
    /// The number of nats that are needed.
    needed: f64,
}

impl MeanTest {
    fn passes(&self, more: f64) -> bool {
        self.error < self.mean_error && self.nats >= self.needed + more
    }
}

/// The tests, one for the targets of each λ.
fn tests<T: Real>(
    spectrum: &RidgeSpectrum<T>,
    criterion: &Criterion<'_, T>,
    errors: &LambdaErrors,
) -> Vec<MeanTest> {
    let shrinkage = &spectrum.shrinkage;
    let rows = match criterion {
        Criterion::GeneralisedCrossValidation => shrinkage.count,
        evidence if evidence.is_evidence() => shrinkage.count,
        // These errors do not change if all weights are multiplied by one number.
        _ => spectrum.training.rows(),
    };
    let varying = shrinkage.varying();
    let most = |nats: &mut dyn Iterator<Item = f64>| nats.fold(f64::NEG_INFINITY, f64::max);
    let of = |series: Series| {
        let (_, error) = least(&errors.lambdas, &series.errors).ok()?;
        let targets = || series.targets.iter().filter(|target| varying.contains(target));
        let with = |lambda: &f64| most(&mut targets().map(|target| shrinkage.nats(*target, *lambda, rows)));
        let nats = most(&mut errors.lambdas.iter().map(with));
        let needed = NATS + (varying.len() as f64).ln();
        Some(MeanTest { error, mean_error: series.mean_error, nats, needed })
    };
    errors.series().into_iter().filter_map(of).collect()
}

/// Warns if the best λ is the first or the last one tried whose error is finite, and λ beyond it could be better. If each target
/// has its own λ, targets that are no better predicted than by their mean are not tested.
pub(super) fn lambda<T: Real>(
    spectrum: &RidgeSpectrum<T>,
    criterion: &Criterion<'_, T>,
    errors: &LambdaErrors,
) -> Option<RidgeWarning> {
    let series = errors.series().into_iter().zip(tests(spectrum, criterion, errors));
    let better = series.filter(|(_, test)| test.passes(0.0));
    better.into_iter().find_map(|(series, _)| at_end(spectrum, criterion, errors, &series))
}

fn at_end<T: Real>(
    spectrum: &RidgeSpectrum<T>,
    criterion: &Criterion<'_, T>,
    errors: &LambdaErrors,
    series: &Series,
) -> Option<RidgeWarning> {
    let (lambda, error) = least(&errors.lambdas, &series.errors).ok()?;
    let known = || errors.lambdas.iter().zip(&series.errors).filter(|(_, error)| error.is_finite());
    let above = errors.lambdas.iter().any(|other| *other > lambda);
    if known().any(|(other, _)| *other < lambda) {
        return (!above).then_some(RidgeWarning::Lambda { largest: true, lambda });
    }
    let lost = errors.dropped || errors.lambdas.iter().any(|other| *other < lambda);
    let least = spectrum.normal.total_noise;
    if lost || lambda <= 4.0 * spectrum.shrinkage.bound() {
        let exact = explained(spectrum, criterion, series, error) >= 1.0 - EXACT;
        return (!exact).then_some(RidgeWarning::Rounding { lambda, least });
    }
    above.then_some(RidgeWarning::Lambda { largest: false, lambda })
}

/// The share of the mean's error that a regression explains. For the evidence, it is the share of the noise's variance whose
/// explanation would give this number of nats.
fn explained<T: Real>(
    spectrum: &RidgeSpectrum<T>,
    criterion: &Criterion<'_, T>,
    series: &Series,
    error: f64,
) -> f64 {
    let (shrinkage, mean_error) = (&spectrum.shrinkage, series.mean_error);
    1.0 - match criterion {
        Criterion::LogEvidence => {
            let varying = shrinkage.varying().into_iter().filter(|target| series.targets.contains(target));
            let rows = shrinkage.freedom() * varying.count() as f64;
            (2.0 * (error - mean_error) / rows).exp()
        }
        // With a known noise, nats do not correspond to a share of its variance.
        Criterion::LogEvidenceWithNoise(_) => 1.0,
        _ => error / mean_error,
    }
}

/// A warning that maps could not be fitted, for these reasons.
pub(super) fn failed(errors: &[Error]) -> Option<RidgeWarning> {
    errors.first().map(|error| RidgeWarning::Failed { maps: errors.len(), error: error.clone() })
}

/// Warns if the best lengthscales are the shortest or the longest of their kind that were tried, and drops advice that this refutes.
/// `at_limit` says whether the default grid ended at its limit, for the shortest and for the longest.
pub(super) fn add_lengthscales<'a>(
    warnings: &mut Vec<RidgeWarning>,
    best: &Lengthscale,
    tried: impl Iterator<Item = &'a Lengthscale> + Clone,
    at_limit: [bool; 2],
) {
    let (count, isotropic) = match best {
        Lengthscale::Isotropic(_) => (1, true),
        Lengthscale::PerDimension(scales) => (scales.len(), false),
    };
    let kind = std::mem::discriminant(best);
    let tried = tried.filter(|ell| std::mem::discriminant(*ell) == kind);
    let ends = [(false, -1.0), (true, 1.0)];
    let at = |sign: f64| {
        let is_end = |k: &usize| {
            let beyond = tried.clone().map(|ell| sign * (ell.at(*k) - best.at(*k)));
            beyond.clone().all(|beyond| beyond <= 0.0) && beyond.clone().any(|beyond| beyond < 0.0)
        };
        (0..count).filter(is_end).collect::<Vec<usize>>()
    };
    for (longest, sign) in ends {
        let coordinates = at(sign);
        if coordinates.is_empty() {
            continue;
        }
        // A shorter lengthscale is no advice where the longest has the least error, nor a longer one where the shortest has.
        warnings.retain(|warning| match warning {
            RidgeWarning::NarrowInputs { .. } => !longest,
            RidgeWarning::WideInputs { .. } => longest,
            _ => true,
        });
        let coordinates = if isotropic { Vec::new() } else { coordinates };
        let at_limit = at_limit[usize::from(longest)];
        warnings.push(RidgeWarning::Lengthscale { longest, coordinates, at_limit });
    }
}

/// Warns if another λ among those tried would be much better for a target than the common λ.
pub(super) fn targets<T: Real>(
    spectrum: &RidgeSpectrum<T>,
    lambdas: &[f64],
    choice: &Choice,
    share: LambdaSharing,
) -> Option<RidgeWarning> {
    let shrinkage = &spectrum.shrinkage;
    let common = *choice.lambdas.first()?;
    if shrinkage.rest.len() < 2 || share == LambdaSharing::PerTarget {
        return None;
    }
    let of_target = |target: usize| {
        let own = |lambda: &f64| (*lambda, shrinkage.generalised_of(target, *lambda));
        let (lambda, own_error) = lambdas.iter().map(own).min_by(|a, b| a.1.total_cmp(&b.1))?;
        let error = shrinkage.generalised_of(target, common);
        let rounding = ROUNDING * shrinkage.generalised_of(target, shrinkage.lambda_of_mean());
        // An error is infinite where rounding outweighs it.
        let matters = error.is_finite() && error > (1.0 + COST) * own_error && error - own_error > rounding;
        matters.then_some((error / own_error, RidgeWarning::Targets { target, lambda, own_error, error }))
    };
    let costly = (0..shrinkage.rest.len()).filter_map(of_target);
    costly.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, warning)| warning)
}

/// Warns if rows count for more than one for each group, since a posterior takes errors of rows for independent.
pub(super) fn groups<T: Real>(rows: &RidgeRows<'_, T>, labels: &[usize]) -> Option<RidgeWarning> {
    let present = labels.iter().enumerate().filter(|(row, _)| rows.weight(*row) > 0.0);
    let groups = present.map(|(_, label)| *label).collect::<HashSet<usize>>().len();
    let count = rows.targets.counts()[0];
    (count > (1.0 + BEYOND) * groups as f64).then_some(RidgeWarning::Groups { groups, count })
}
