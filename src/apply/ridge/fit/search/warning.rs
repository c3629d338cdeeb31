//! [`RidgeWarning`]: why a chosen regression may be worse than it looks.

use super::super::{Criterion, RidgeSpectrum, ScaleWarning};
use super::errors::LambdaErrors;
use crate::Real;
use crate::error::Error;
use crate::kernel::Lengthscale;

/// Nats by which a target must be likelier under a regression than under its mean and noise, for the two to be told apart.
const NATS: f64 = 4.0;
/// More nats for a choice among maps: ln of the 25 that a default search tries at most.
const MAPS: f64 = 3.2;
/// The share of its error by which the common λ may cost a target more than one of its own would.
const SHARE: f64 = 0.1;
/// The share of the error of the mean below which targets are fitted exactly.
const EXACT: f64 = 1e-4;
/// Differences of a target's errors below this share of its variance are rounding.
const ROUNDING: f64 = 1e-9;

/// Why a regression that a search chose may be worse than it looks, or than it could be: [`RidgeFit::warnings`](super::RidgeFit::warnings).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RidgeWarning {
    /// The inputs are not scaled for the kernel.
    Scale(ScaleWarning),
    /// The regression predicts no better than the mean of the targets, as far as so many rows can tell (0 without an intercept).
    ///
    /// A better regression passes two tests. Its criterion is below that of the mean. And with some λ that was tried the
    /// [log evidence](RidgeSpectrum::log_evidence) of a target, on the rows of the regression, is above that of its mean and noise
    /// by 4 nats, and by ln t more for t targets. The criterion alone does not tell: it is least by chance for some lengthscale and λ.
    ///
    /// On noise a fixed regression is not warned of with a probability of at most e⁻⁴, and what searches chose was not in 0 to 7 % of 300
    /// sets of 12, 30, 100 and 300 rows in two dimensions. Where a sine made three quarters of the variance, 100 rows were never warned
    /// of, 30 rows in 1 % by the evidence and 6 % by leave-one-out, 12 rows in 60 %. With 30 % held out it was 5 % of 100 rows and half
    /// of 30: so few held-out rows tell little.
    Mean {
        /// The criterion for the regression.
        error: f64,
        /// The criterion for the mean of the targets.
        mean_error: f64,
        /// The most nats by which a target is likelier under a regression that was tried than under its mean and noise.
        nats: f64,
        /// The nats that the second test asks for: 4 + ln t.
        needed: f64,
    },
    /// The targets do not vary on the rows of the search: each is one number, up to rounding, for all rows (without an intercept,
    /// 0). Every lengthscale and every λ then predicts them alike.
    Constant,
    /// Some maps that were asked for could not be fitted, and the others were compared without them.
    Failed {
        /// The number of such maps.
        maps: usize,
        /// The error of one of them.
        error: Error,
    },
    /// The best lengthscale is the shortest or the longest that was tried, so that a better one may lie beyond.
    Lengthscale {
        /// The end at which it lies.
        end: GridEnd,
        /// The coordinates whose lengthscales lie there, from 0; none if all coordinates have one lengthscale.
        coordinates: Vec<usize>,
    },
    /// The best λ is the least or the largest that was tried, and a better one may lie beyond.
    Lambda {
        /// The end at which it lies.
        end: GridEnd,
        /// The best λ.
        lambda: f64,
    },
    /// The best λ is the least for which the criterion is more than rounding, and a better one may lie below it. Smaller λ were
    /// tried or given, and are lost to rounding. Predictions with such a λ may be wild between and beyond the points.
    ///
    /// There is no warning where that λ leaves less than 10⁻⁴ of the error of the mean, as for targets without noise. For the log
    /// evidence that is half of ln 10⁴ nats for each row and target.
    Rounding {
        /// The best λ.
        lambda: f64,
        /// The rounding error of Σ w φ φᵀ in the spectral norm, below which no λ has a meaning.
        least: f64,
    },
    /// One λ for all targets costs a target more than 10 % of its error, by generalised cross-validation of each target alone.
    /// The target named is the one that it costs most. A regression of its own serves it better.
    Targets {
        /// The target, from 0.
        target: usize,
        /// The λ of least error for this target alone.
        lambda: f64,
        /// The generalised cross-validation of this target with its own λ.
        own_error: f64,
        /// The generalised cross-validation of this target with the λ for all targets.
        error: f64,
    },
    /// More than 1 % of the rows equal an earlier one in point and targets. If they are copies and not observations of their own,
    /// errors at rows that are left out are too small: a copy of such a row is among the others. A search warns unless its
    /// criterion is the log evidence; a grid warns only with leave-one-out, since it does not know the rows otherwise.
    Repeated {
        /// The number of rows that equal an earlier one.
        repeated: usize,
        /// The number of rows.
        rows: usize,
    },
}

/// An end of the values that were tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GridEnd {
    /// The least value.
    Least,
    /// The largest value.
    Largest,
}

impl std::fmt::Display for RidgeWarning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RidgeWarning::Scale(warning) => warning.fmt(f),
            RidgeWarning::Mean { error, mean_error, nats, needed } => {
                write!(f, "the regression is no better than the mean of the targets: ")?;
                if error < mean_error {
                    write!(
                        f,
                        "its evidence is {nats:.1} nats above that of the mean, and chance makes up to {needed:.1}"
                    )
                } else {
                    write!(f, "its criterion, {error:.6e}, is not below that of the mean, {mean_error:.6e}")
                }
            }
            RidgeWarning::Constant => {
                write!(
                    f,
                    "the targets do not vary on the rows of the search: no map and no λ is better than another"
                )
            }
            RidgeWarning::Failed { maps: 1, error } => write!(f, "one map could not be fitted: {error}"),
            RidgeWarning::Failed { maps, error } => {
                write!(f, "{maps} maps could not be fitted, one of them for this reason: {error}")
            }
            RidgeWarning::Lengthscale { end, coordinates } => {
                match coordinates.as_slice() {
                    [] => write!(f, "the best lengthscale is the ")?,
                    [one] => write!(f, "the best lengthscale of coordinate {one} is the ")?,
                    several => write!(f, "the best lengthscales of coordinates {several:?} are the ")?,
                }
                match end {
                    GridEnd::Least => write!(f, "shortest that was tried: try shorter ones"),
                    GridEnd::Largest => write!(f, "longest that was tried: try longer ones"),
                }
            }
            RidgeWarning::Lambda { end: GridEnd::Least, lambda } => {
                write!(f, "the best λ, {lambda:.1e}, is the least that was tried: try smaller ones")
            }
            RidgeWarning::Lambda { end: GridEnd::Largest, lambda } => {
                write!(f, "the best λ, {lambda:.1e}, is the largest that was tried: try larger ones")
            }
            RidgeWarning::Rounding { lambda, least } => write!(
                f,
                "the best λ, {lambda:.1e}, is the least that rounding leaves: with smaller ones, and below {least:.1e} always, \
                 errors are rounding"
            ),
            RidgeWarning::Targets { target, lambda, own_error, error } => write!(
                f,
                "the λ for all targets does not suit target {target}, whose error is about {error:.3e}: it would be {own_error:.3e} \
                 with λ = {lambda:.1e}, in a regression of its own"
            ),
            RidgeWarning::Repeated { repeated, rows } => write!(
                f,
                "{repeated} of {rows} rows repeat earlier ones: if they are copies, errors of rows that are left out are too small, \
                 and groups of copies should be held out together"
            ),
        }
    }
}

/// A warning if the least of these errors is not below that of the mean, or the evidence does not tell targets from noise.
pub(super) fn mean<T: Real>(
    spectrum: &RidgeSpectrum<T>,
    criterion: &Criterion<'_, T>,
    errors: &LambdaErrors,
) -> Option<RidgeWarning> {
    let (error, mean_error) = (errors.choice()?.error, errors.mean_error);
    let [nats, needed] = evidence(spectrum, criterion, errors);
    let better = error < mean_error && nats >= needed;
    (!better).then_some(RidgeWarning::Mean { error, mean_error, nats, needed })
}

/// Whether a map passes the tests for being better than the mean, with nats to spare for the many maps that are tried.
pub(super) fn is_promising<T: Real>(
    spectrum: &RidgeSpectrum<T>,
    criterion: &Criterion<'_, T>,
    errors: &LambdaErrors,
) -> bool {
    let [nats, needed] = evidence(spectrum, criterion, errors);
    errors.choice().is_some_and(|choice| choice.error < errors.mean_error) && nats >= needed + MAPS
}

/// The most nats by which a target is likelier under a regression that was tried than under its mean and noise, and how many are
/// needed.
fn evidence<T: Real>(
    spectrum: &RidgeSpectrum<T>,
    criterion: &Criterion<'_, T>,
    errors: &LambdaErrors,
) -> [f64; 2] {
    let shrinkage = &spectrum.shrinkage;
    let rows = match criterion {
        // These errors do not change if all weights are multiplied by a number.
        Criterion::LeaveOneOutOf { .. } | Criterion::HeldOut { .. } => spectrum.training.rows(),
        _ => shrinkage.weight,
    };
    let targets = shrinkage.varying();
    let most = |nats: &mut dyn Iterator<Item = f64>| nats.fold(f64::NEG_INFINITY, f64::max);
    let with = |lambda: &f64| most(&mut targets.iter().map(|target| shrinkage.nats(*target, *lambda, rows)));
    let nats = most(&mut errors.lambdas.iter().map(with));
    [nats, NATS + (targets.len() as f64).ln()]
}

/// A warning if the best λ is the first or the last that was tried and has an error, and λ beyond it could be better.
pub(super) fn lambda<T: Real>(
    spectrum: &RidgeSpectrum<T>,
    criterion: &Criterion<'_, T>,
    errors: &LambdaErrors,
) -> Option<RidgeWarning> {
    let choice = errors.choice()?;
    let lambda = choice.lambda;
    let known = || errors.lambdas.iter().zip(&errors.errors).filter(|(_, error)| error.is_finite());
    let above = errors.lambdas.iter().any(|other| *other > lambda);
    if known().any(|(other, _)| *other < lambda) {
        return (!above).then_some(RidgeWarning::Lambda { end: GridEnd::Largest, lambda });
    }
    let lost = errors.dropped || errors.lambdas.iter().any(|other| *other < lambda);
    let least = spectrum.normal.total_noise;
    if lost || lambda <= 4.0 * spectrum.resolution() {
        let exact = explained(spectrum, criterion, errors.mean_error, choice.error) >= 1.0 - EXACT;
        return (!exact).then_some(RidgeWarning::Rounding { lambda, least });
    }
    above.then_some(RidgeWarning::Lambda { end: GridEnd::Least, lambda })
}

/// The share of the error of the mean that a regression explains; for the evidence the share of the noise's variance for which
/// nats would be as many.
fn explained<T: Real>(
    spectrum: &RidgeSpectrum<T>,
    criterion: &Criterion<'_, T>,
    mean_error: f64,
    error: f64,
) -> f64 {
    let shrinkage = &spectrum.shrinkage;
    1.0 - match criterion {
        Criterion::LogEvidence => {
            let rows = shrinkage.freedom() * shrinkage.varying().len() as f64;
            (2.0 * (error - mean_error) / rows).exp()
        }
        _ => error / mean_error,
    }
}

/// A warning that maps could not be fitted, for these reasons.
pub(super) fn failed(errors: &[Error]) -> Option<RidgeWarning> {
    errors.first().map(|error| RidgeWarning::Failed { maps: errors.len(), error: error.clone() })
}

/// Warnings if the best lengthscales lie at an end of those of their kind that were tried.
pub(super) fn lengthscales<'a>(
    best: &Lengthscale,
    tried: impl Iterator<Item = &'a Lengthscale> + Clone,
) -> Vec<RidgeWarning> {
    let (count, isotropic) = match best {
        Lengthscale::Isotropic(_) => (1, true),
        Lengthscale::PerDimension(scales) => (scales.len(), false),
    };
    let kind = std::mem::discriminant(best);
    let tried = tried.filter(|ell| std::mem::discriminant(*ell) == kind);
    let ends = [(GridEnd::Least, -1.0), (GridEnd::Largest, 1.0)];
    let at = |sign: f64| {
        let is_end = |k: &usize| {
            let beyond = tried.clone().map(|ell| sign * (ell.at(*k) - best.at(*k)));
            beyond.clone().all(|beyond| beyond <= 0.0) && beyond.clone().any(|beyond| beyond < 0.0)
        };
        (0..count).filter(is_end).collect::<Vec<usize>>()
    };
    let found = ends.map(|(end, sign)| (end, at(sign))).into_iter();
    let warnings = found.filter(|(_, coordinates)| !coordinates.is_empty());
    warnings
        .map(|(end, coordinates)| {
            let coordinates = if isotropic { Vec::new() } else { coordinates };
            RidgeWarning::Lengthscale { end, coordinates }
        })
        .collect()
}

/// A warning if another λ, among those that were tried, would serve a target much better.
pub(super) fn targets<T: Real>(
    spectrum: &RidgeSpectrum<T>,
    lambdas: &[f64],
    common: f64,
) -> Option<RidgeWarning> {
    let shrinkage = &spectrum.shrinkage;
    if shrinkage.rest.len() < 2 {
        return None;
    }
    let of_target = |target: usize| {
        let own = |lambda: &f64| (*lambda, shrinkage.generalised_of(target, *lambda));
        let (lambda, own_error) = lambdas.iter().map(own).min_by(|a, b| a.1.total_cmp(&b.1))?;
        let error = shrinkage.generalised_of(target, common);
        let rounding = ROUNDING * shrinkage.generalised_of(target, super::errors::MEAN);
        // An error is infinite where rounding outweighs it.
        let matters = error.is_finite() && error > (1.0 + SHARE) * own_error && error - own_error > rounding;
        matters.then_some((error / own_error, RidgeWarning::Targets { target, lambda, own_error, error }))
    };
    let costly = (0..shrinkage.rest.len()).filter_map(of_target);
    costly.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, warning)| warning)
}
