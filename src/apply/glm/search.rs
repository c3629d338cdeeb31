//! The choice of λ.

use std::collections::BTreeSet;

use super::conjugate::centred_products;
use super::curvature::seen_trace;
use super::descent::Descent;
use super::few_rows::{FEW_FOR_SEARCH, FewRows};
use super::posterior::NO_EVIDENCE;
use super::{Curvature, Glm, GlmFit, GlmLoss, Response};
use crate::apply::ridge::{block_of, check_parts, folds_of, labels_of, repeated_rows};
use crate::apply::{Criterion, least};
use crate::engine::PointsView;
use crate::error::{Error, Result};
use crate::once::once;
use crate::{Points, Real, Targets, progress};

/// The number of folds for models whose second derivatives are too large for leave-one-out, and the most folds of groups.
const FOLDS: usize = 5;
const FOLDS_OF_GROUPS: usize = 10;
/// The number of λ that are tried after the best one.
const BEYOND: i32 = 4;
/// The places of the largest and the least λ that are tried: λ is 10^(−place/2) times the trace of the second derivatives.
const ENDS: [i32; 2] = [-8, 30];

/// The criterion of a search.
#[derive(Clone, Copy, PartialEq)]
enum By {
    LeftOut,
    Evidence,
}

impl<T: Real> Glm<T> {
    /// Fits the model to rows in memory, with the λ of least approximate leave-one-out error: points `x`, n × d, with their
    /// targets.
    ///
    /// λ falls from the trace of the second derivatives, two values for each decade, until four have been worse than
    /// the best. If the first λ is the best, larger ones are tried too. Each fit begins at the model of the λ before.
    /// The error of a λ is the mean loss at each row of the model without the row, after one step of Newton's method.
    /// For several classes with K (D + 1) above 2048 it is the mean loss over five folds instead, to which the rows of
    /// each class are dealt in turn; the only row of a class is in no fold. The search also ends at a λ for which the
    /// iteration does not converge.
    ///
    /// If rows are copies of each other, errors at left-out rows are too small, and [`warnings`](GlmFit::warnings) says so. Leave
    /// copies out together, by [`search_by`](Glm::search_by) with `LeaveGroupsOut`.
    ///
    /// Inputs are taken as they are, unless the model has a standardisation, and the lengthscale is the map's: give the model the
    /// fit of a [`RidgeSearch`](crate::apply::RidgeSearch), as in `Glm::logistic(&fit, 2)`.
    ///
    /// # Cost
    /// Each λ takes about 4 to 17 steps of O(n D² + D³) time and 12 D² bytes. If D ≥ 2n and no weight is 0, it takes
    /// steps of O(n³) after one decomposition of O(n² D) time and 60 n D bytes. One step of O(D³) at the end gives a posterior, if
    /// λ is above the rounding error of sums of features. For several classes this holds if K (D + 1) ≤ 2048 or K (n + 1) > 2048.
    ///
    /// # Errors
    /// The errors of [`fit`](Glm::fit); [`NoData`](Error::NoData) if folds are needed and each class has one row,
    /// [`Parameter`](Error::Parameter) if all products of weights and squared features are below 1e-271,
    /// [`Factorisation`](Error::Factorisation) if rounding hides the errors of all λ.
    pub fn search<'a, 't>(
        &self,
        x: impl Into<Points<'a, T>>,
        targets: impl Into<Targets<'t, T>>,
    ) -> Result<GlmFit<T>> {
        self.search_rows(x.into().view(), &targets.into(), &Criterion::LeaveOneOut)
    }

    /// Fits the model to rows in memory, with the λ that is best by a criterion.
    ///
    /// | criterion | error of a λ |
    /// |---|---|
    /// | `LeaveOneOut` | the error of [`search`](Glm::search) |
    /// | `Folds` | mean loss at each fold of the model of the others, to which the rows of each class are dealt in turn |
    /// | `LeaveGroupsOut` | the loss at folds of whole groups, which are dealt in turn to at most ten folds |
    /// | `Forward` | mean loss at each block of rows, of the model of the blocks before it |
    /// | `LogEvidence` | minus the log evidence by Laplace's approximation, in nats; for two classes and for counts |
    ///
    /// A fold is not tested if the model of the others has no minimum: if a class occurs in no other fold, or if their counts
    /// are all 0. Each λ takes one fit for each fold or block, which multiplies the time of a search by their number.
    ///
    /// # Errors
    /// The errors of [`fit`](Glm::fit). [`Unsupported`](Error::Unsupported) for other criteria, and for the evidence of several
    /// classes, of the hinge, and of weights that are not whole numbers, such as weights that balance classes;
    /// exposures of counts are allowed.
    /// [`Parameter`](Error::Parameter) if there are too few folds, groups or blocks, or too few rows for them.
    /// [`Shape`](Error::Shape) if there are not as many labels of groups as rows. [`NoData`](Error::NoData) if no fold can be
    /// tested.
    pub fn search_by<'a, 't>(
        &self,
        criterion: &Criterion<'_, T>,
        x: impl Into<Points<'a, T>>,
        targets: impl Into<Targets<'t, T>>,
    ) -> Result<GlmFit<T>> {
        self.search_rows(x.into().view(), &targets.into(), criterion)
    }

    #[inline(never)]
    fn search_rows(
        &self,
        x: PointsView<'_, T>,
        targets: &Targets<'_, T>,
        criterion: &Criterion<'_, T>,
    ) -> Result<GlmFit<T>> {
        let division = Division::of(criterion, x.nrows())?;
        let (model, response) = self.begin(x, targets)?;
        let Some(response) = response else { return Ok(GlmFit::new((model, 1.0, 0.0), 0.0, 0)) };
        let by = match criterion {
            Criterion::LeaveOneOut => By::LeftOut,
            Criterion::LogEvidence => By::Evidence,
            _ if division.is_some() => By::LeftOut,
            _ => {
                let what = "this criterion for a generalised linear model: take leave-one-out, groups, folds, forward \
                            blocks, or the log evidence";
                return Err(Error::Unsupported { what });
            }
        };
        if by == By::Evidence {
            check_evidence(&model, &response)?;
        }
        let groups = labels_of(criterion, x.nrows())?;
        let repeated = if by == By::LeftOut { repeated_rows(x, response.y.view(), groups)? } else { None };
        let warnings = model.scale_warning(x).into_iter().chain(repeated);
        // The criterion of several classes depends on the number of their weights, which coordinates would change.
        let few = match model.is_large() == model.is_large_for(x.nrows()) {
            true => FewRows::of(&model, x, &response, FEW_FOR_SEARCH)?,
            false => None,
        };
        let fit = match few {
            Some(few) => few.found(&model, x, &response, (division, by))?,
            None => found(Descent::at(model, x, &response)?, (division, by))?,
        };
        Ok(fit.with_warnings(warnings))
    }
}

/// The search from a model.
fn found<T: Real>(
    mut descent: Descent<'_, '_, T>,
    (division, by): (Option<Division<'_>>, By),
) -> Result<GlmFit<T>> {
    match division {
        Some(division) => by_splits(descent, &division),
        None if descent.model.is_large() => by_splits(descent, &Division::Folds(FOLDS)),
        None => by_rows(&mut descent, by),
    }
}

impl FewRows {
    /// The search in the coordinates of the rows. It ends with a posterior of all features, if rounding and memory allow it.
    fn found<T: Real>(
        &self,
        model: &Glm<T>,
        x: PointsView<'_, T>,
        response: &Response,
        by: (Option<Division<'_>>, By),
    ) -> Result<GlmFit<T>> {
        let descent = Descent::at(self.model.clone(), self.coordinates.view().into(), response)?;
        let fit = found(descent, by)?;
        let lambda = fit.lambda();
        let has_posterior = fit.single().is_ok();
        let lifted = self.lifted(model, fit.model());
        let fit = fit.with_model(lifted);
        if !has_posterior {
            return Ok(fit);
        }
        let mut descent = Descent::at(fit.model().clone(), x, response)?;
        let terms = descent.model.loss.terms(&descent.eta, response);
        let curvature = descent.sums(&terms).and_then(|sums| Curvature::of(&sums, lambda)?.exact(lambda));
        match curvature {
            Ok(curvature) => Ok(fit.with_curvature(curvature)),
            Err(Error::Singular { .. } | Error::Memory { .. }) => Ok(fit),
            Err(error) => Err(error),
        }
    }
}

/// How rows are divided into those of a fit and those at which it is tested.
enum Division<'c> {
    /// This many folds, to which the rows of each class are dealt.
    Folds(usize),
    /// Folds of whole groups, with the label of each row's group.
    Groups(&'c [usize]),
    /// Consecutive blocks, with a gap before the tested one.
    Blocks(usize, usize),
}

impl<'c> Division<'c> {
    /// The division of a criterion, if it has one.
    fn of<T: Real>(criterion: &Criterion<'c, T>, rows: usize) -> Result<Option<Self>> {
        if let Some(labels) = labels_of(criterion, rows)? {
            check_parts(("the number of groups", groups_of(labels).len()), None, rows)?;
            return Ok(Some(Division::Groups(labels)));
        }
        let folds = folds_of(criterion, rows)?;
        Ok(folds.map(|(count, gap)| gap.map_or(Division::Folds(count), |gap| Division::Blocks(count, gap))))
    }

    /// The number of folds, the fold of each row, and the gap of consecutive folds.
    fn folds<T: Real>(
        &self,
        model: &Glm<T>,
        response: &Response,
    ) -> (usize, Vec<Option<usize>>, Option<usize>) {
        let n = response.weights.len();
        match self {
            Division::Folds(folds) => (*folds, dealt(model, response, *folds), None),
            Division::Blocks(blocks, gap) => {
                (*blocks, (0..n).map(|row| Some(block_of(row, *blocks, n))).collect(), Some(*gap))
            }
            Division::Groups(labels) => {
                let groups = groups_of(labels);
                let folds = groups.len().min(FOLDS_OF_GROUPS);
                let fold = |group| groups.binary_search(group).ok().map(|place| place % folds);
                (folds, labels.iter().map(fold).collect(), None)
            }
        }
    }
}

/// The groups that rows have, ascending.
fn groups_of(labels: &[usize]) -> Vec<usize> {
    let mut groups = labels.to_vec();
    groups.sort_unstable();
    groups.dedup();
    groups
}

/// The search for models whose second derivatives are computed.
fn by_rows<T: Real>(descent: &mut Descent<'_, '_, T>, by: By) -> Result<GlmFit<T>> {
    let terms = descent.model.loss.terms(&descent.eta, descent.response);
    let top = Curvature::trace(&descent.sums(&terms)?)?;
    let mut first = None;
    let mut best: Option<GlmFit<T>> = None;
    let errors = over_grid(top, |place, lambda| {
        if place == -1
            && let Some((model, eta)) = first.take()
        {
            (descent.model, descent.eta, descent.known) = (model, eta, None);
        }
        if place == 0 {
            descent.run_from_sample(lambda)?
        } else {
            descent.run(lambda)?
        }
        if place == 0 {
            first = Some((descent.model.clone(), descent.eta.clone()));
        }
        let terms = descent.model.loss.terms(&descent.eta, descent.response);
        let sums = descent.sums(&terms)?;
        let curvature = Curvature::of(&sums, lambda)?.exact(lambda)?;
        descent.known = Some(sums);
        let loss = terms.losses.sum() + descent.model.penalty(lambda);
        let left_out = if by == By::LeftOut { Some(descent.left_out(&terms, &curvature)?) } else { None };
        let (parts, weight) = ((descent.model.clone(), lambda, loss), descent.response.weights.sum());
        let fit = GlmFit::new(parts, weight, descent.passes).with_curvature(curvature);
        let error = match left_out {
            Some(error) => error,
            None => -fit.log_evidence()?,
        };
        if best.as_ref().is_none_or(|best| error < best.errors[0].1) {
            best = Some(fit.with_errors(vec![(lambda, error)]));
        }
        Ok(error)
    })?;
    let best = best.ok_or(Error::NoData { what: "a choice of λ" })?;
    Ok(best.with_errors(errors))
}

/// The search by the loss at rows that are left out together.
fn by_splits<T: Real>(mut descent: Descent<'_, '_, T>, division: &Division<'_>) -> Result<GlmFit<T>> {
    let response = descent.response;
    let top = if descent.model.is_large() {
        let (products, mean, total) = centred_products(&descent)?;
        0.5 * seen_trace::<T>(products.diag().sum(), &mean, total)
    } else {
        let terms = descent.model.loss.terms(&descent.eta, response);
        Curvature::trace(&descent.sums(&terms)?)?
    };
    let (count, folds, gap) = division.folds(&descent.model, response);
    let parts = (gap.map_or(0, |gap| gap + 1)..count).map(|fold| {
        // Rows of no fold are in each fit and are not tested.
        let is_before = |other: usize| gap.map_or(other != fold, |gap| other + gap < fold);
        let rest = response.only(|i| folds[i].is_none_or(is_before));
        [rest, response.only(|i| folds[i] == Some(fold))]
    });
    let whole = classes_of(&descent.model, response);
    let loss = descent.model.loss;
    let is_complete = |[rest, held_out]: &[Response; 2]| {
        let has_minimum = classes_of(&descent.model, rest) == whole && rest.has_minimum(loss);
        held_out.weights.sum() > 0.0 && rest.weights.sum() > 0.0 && has_minimum
    };
    let parts: Vec<[Response; 2]> = parts.filter(is_complete).collect();
    let held_out: f64 = parts.iter().map(|[_, held_out]| held_out.weights.sum()).sum();
    if parts.is_empty() {
        let what = match loss {
            GlmLoss::Poisson => "a test of a model whose rows have a count above 0",
            _ => "a test of a model whose rows have all classes",
        };
        return Err(Error::NoData { what });
    }
    let mut models = vec![descent.model.clone(); parts.len()];
    let errors = over_grid(top, |_, lambda| {
        let mut error = 0.0;
        for (model, [rest, held_out]) in models.iter_mut().zip(&parts) {
            let mut fold = Descent::at(model.clone(), descent.x, rest)?;
            fold.run_coarsely(lambda)?;
            error += fold.model.loss.total(&fold.eta, held_out);
            descent.passes += fold.passes;
            *model = fold.model;
        }
        Ok(error / held_out)
    })?;
    let (lambdas, each): (Vec<f64>, Vec<f64>) = errors.iter().copied().unzip();
    let (lambda, _) = least(&lambdas, &each)?;
    descent.run(lambda)?;
    Ok(GlmFit::of_descent(descent, lambda).with_errors(errors))
}

/// The classes of the rows of positive weight.
fn classes_of<T: Real>(model: &Glm<T>, response: &Response) -> BTreeSet<usize> {
    let rows = response.y.rows().into_iter().zip(&response.weights);
    rows.filter(|(_, weight)| **weight > 0.0).map(|(y, _)| model.stratum(y)).collect()
}

/// The fold of each row: the rows of a class are dealt to folds in turn. The only row of a class is in no fold.
fn dealt<T: Real>(model: &Glm<T>, response: &Response, folds: usize) -> Vec<Option<usize>> {
    let of_row: Vec<usize> = response.y.rows().into_iter().map(|y| model.stratum(y)).collect();
    let counts = |i: usize| response.weights[i] > 0.0;
    let mut totals = vec![0usize; model.strata()];
    of_row.iter().enumerate().filter(|(i, _)| counts(*i)).for_each(|(_, class)| totals[*class] += 1);
    let mut next = vec![0usize; model.strata()];
    let deal = |(i, class): (usize, &usize)| {
        if !counts(i) || totals[*class] < 2 {
            return None;
        }
        next[*class] += 1;
        // Classes begin at different folds, so that folds have equal sizes.
        Some((next[*class] + class) % folds)
    };
    of_row.iter().enumerate().map(deal).collect()
}

/// Tries falling λ until several have been worse than the best, and larger λ if the first is the best. Returns the λ with their
/// errors, in falling order.
fn over_grid(top: f64, mut error: impl FnMut(i32, f64) -> Result<f64>) -> Result<Vec<(f64, f64)>> {
    let top = if top > 0.0 && top.is_finite() { top } else { 1.0 };
    let lambda = |place: i32| top * 10f64.powf(-0.5 * f64::from(place));
    let [least, most] = ENDS;
    let (mut errors, mut best) = (Vec::new(), (0, f64::INFINITY));
    for place in 0..=most {
        progress::step("values of λ tried", place as usize, most as usize)?;
        let own = match error(place, lambda(place)) {
            // Rounding hides the second derivatives for this λ and for smaller ones, or conjugate gradients take too many steps.
            Err(Error::Singular { .. } | Error::Factorisation { .. }) if place > 0 => break,
            own => own?,
        };
        errors.push((lambda(place), own));
        if own < best.1 {
            best = (place, own);
        }
        if place >= best.0 + BEYOND {
            break;
        }
    }
    for place in (least..0).rev() {
        if best.0 != place + 1 {
            break;
        }
        let own = error(place, lambda(place))?;
        errors.insert(0, (lambda(place), own));
        if own < best.1 {
            best = (place, own);
        }
    }
    if !best.1.is_finite() {
        let (what, reason) = ("the choice of λ", "no λ has a finite error at left-out rows");
        return Err(Error::Factorisation { what, row: None, reason });
    }
    Ok(errors)
}

/// Rejects models and weights without an evidence.
fn check_evidence<T: Real>(model: &Glm<T>, response: &Response) -> Result<()> {
    if model.values() > 1 || model.loss == GlmLoss::SquaredHinge {
        let what = "the evidence of several classes or of the hinge: take leave-one-out";
        return Err(Error::Unsupported { what });
    }
    let are_counted = (0..response.weights.len()).all(|i| response.is_counted(i, model.loss));
    if are_counted { Ok(()) } else { Err(NO_EVIDENCE) }
}

once!(Glm::<T>::search_rows);
