//! The choice of λ.

use ndarray::{Array1, Axis};

use super::conjugate::centred_products;
use super::descent::Descent;
use super::{Curvature, Glm, GlmFit, Loss, Response};
use crate::apply::{Criterion, least};
use crate::engine::PointsView;
use crate::error::{Error, Result};
use crate::once::once;
use crate::{Points, Real, Targets, progress};

/// The number of folds for models whose second derivatives are too large for leave-one-out.
const FOLDS: usize = 5;
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
    /// λ falls from the trace of the second derivatives, two values for each decade, until four have been worse than the best.
    /// Each fit begins at the model of the λ before. The error of a λ is the mean loss at each row of the model without the row,
    /// after one step of Newton's method. For several classes with K (D + 1) above 2048 it is the mean loss over five folds
    /// instead, to which the rows of each class are dealt in turn.
    ///
    /// # Errors
    /// The errors of [`fit`](Glm::fit).
    pub fn search<'a, 't>(
        &self,
        x: impl Into<Points<'a, T>>,
        targets: impl Into<Targets<'t, T>>,
    ) -> Result<GlmFit<T>> {
        self.search_rows(x.into().view(), &targets.into(), &Criterion::LeaveOneOut)
    }

    /// Fits the model to rows in memory, with the λ that is best by a criterion. That is `LeaveOneOut`, or for two classes and
    /// for counts `LogEvidence`, by Laplace's approximation. Errors are then minus the log evidence, in nats.
    ///
    /// # Errors
    /// The errors of [`fit`](Glm::fit); [`Unsupported`](Error::Unsupported) for other criteria. The evidence is also unsupported
    /// for several classes, for the hinge, and for weights that are not whole numbers, such as weights that balance classes.
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
        let (model, response) = self.begin(x, targets)?;
        let Some(response) = response else { return Ok(GlmFit::new((model, 1.0, 0.0), 0)) };
        let by = match criterion {
            Criterion::LeaveOneOut => By::LeftOut,
            Criterion::LogEvidence => By::Evidence,
            _ => {
                let what =
                    "criteria other than leave-one-out and the log evidence for a generalised linear model";
                return Err(Error::Unsupported { what });
            }
        };
        if by == By::Evidence {
            check_evidence(&model, &response)?;
        }
        let mut descent = Descent::at(model, x, &response)?;
        if descent.model.is_large() { by_folds(descent) } else { by_rows(&mut descent, by) }
    }
}

/// The search for models whose second derivatives are computed.
fn by_rows<T: Real>(descent: &mut Descent<'_, '_, T>, by: By) -> Result<GlmFit<T>> {
    let terms = descent.model.loss.terms(&descent.eta, descent.response);
    let top = Curvature::trace(&descent.sums(&terms)?);
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
        let fit =
            GlmFit::new((descent.model.clone(), lambda, loss), descent.passes).with_curvature(curvature);
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

/// The search by the loss at left-out folds.
fn by_folds<T: Real>(mut descent: Descent<'_, '_, T>) -> Result<GlmFit<T>> {
    let response = descent.response;
    let (products, ..) = centred_products(&descent)?;
    let top = 0.5 * products.diag().sum();
    let folds = dealt(response);
    let part = |fold: usize, inside: bool| {
        let counts = |i: usize| (folds[i] == Some(fold)) == inside;
        let weight = |(i, weight): (usize, &f64)| if counts(i) { *weight } else { 0.0 };
        let weights: Array1<f64> = response.weights.iter().enumerate().map(weight).collect();
        Response { y: response.y.clone(), weights }
    };
    let parts: Vec<[Response; 2]> = (0..FOLDS).map(|fold| [part(fold, false), part(fold, true)]).collect();
    let held: f64 = parts.iter().map(|[_, held]| held.weights.sum()).sum();
    let mut models = vec![descent.model.clone(); FOLDS];
    let errors = over_grid(top, |_, lambda| {
        let mut error = 0.0;
        for (model, [rest, held]) in models.iter_mut().zip(&parts) {
            let mut fold = Descent::at(model.clone(), descent.x, rest)?;
            fold.run(lambda)?;
            error += fold.model.loss.total(&fold.eta, held);
            descent.passes += fold.passes;
            *model = fold.model;
        }
        Ok(error / held)
    })?;
    let (lambdas, each): (Vec<f64>, Vec<f64>) = errors.iter().copied().unzip();
    let (lambda, _) = least(&lambdas, &each)?;
    descent.run(lambda)?;
    Ok(GlmFit::of_descent(descent, lambda).with_errors(errors))
}

/// The fold of each row: the rows of a class are dealt to folds in turn. The only row of a class is in no fold.
fn dealt(response: &Response) -> Vec<Option<usize>> {
    let classes = response.y.ncols();
    let class = |i: usize| {
        (0..classes).fold(0, |best, k| if response.y[[i, k]] > response.y[[i, best]] { k } else { best })
    };
    let of_row: Vec<usize> = (0..response.y.len_of(Axis(0))).map(class).collect();
    let counts = |i: usize| response.weights[i] > 0.0;
    let mut totals = vec![0usize; classes];
    of_row.iter().enumerate().filter(|(i, _)| counts(*i)).for_each(|(_, class)| totals[*class] += 1);
    let mut next = vec![0usize; classes];
    let deal = |(i, class): (usize, &usize)| {
        if !counts(i) || totals[*class] < 2 {
            return None;
        }
        next[*class] += 1;
        // Classes begin at different folds, so that folds have equal sizes.
        Some((next[*class] + class) % FOLDS)
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
            // Rounding hides the second derivatives for this λ and for smaller ones.
            Err(Error::Singular { .. }) if place > 0 => break,
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
    Ok(errors)
}

/// Rejects models and weights without an evidence.
fn check_evidence<T: Real>(model: &Glm<T>, response: &Response) -> Result<()> {
    let what = if model.values() > 1 || model.loss == Loss::SquaredHinge {
        "the evidence of several classes or of the hinge: take leave-one-out"
    } else if response.weights.iter().any(|weight| weight.fract() != 0.0) {
        "the evidence of weights that are not whole numbers: take leave-one-out"
    } else {
        return Ok(());
    };
    Err(Error::Unsupported { what })
}

once!(Glm::<T>::search_rows);
