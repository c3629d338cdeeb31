//! The title of a plan, and why each of its recipes stands where it does.

use super::ranking::Scored;
use crate::kernel::Lengthscale;
use crate::map::Target;
use crate::planner::costs::Measure;
use crate::planner::forecasts::{Basis, Expected};
use crate::planner::plan::number;
use crate::planner::question::{Goal, Planner};

/// What is planned.
pub(crate) fn title(planner: &Planner, pairs: usize) -> String {
    let [x, y] = &planner.data.sides;
    let points = match planner.data.one_set {
        true => format!("{} points", x.count()),
        false => format!("{} queries and {} keys", x.count(), y.count()),
    };
    let goal = match planner.goal {
        Goal::Budget { measure, most } => format!("the least loss for at most {} {measure}", number(most)),
        Goal::Target { error, probability: None, measure } => {
            format!("the fewest {measure} for a loss of at most {}", number(error))
        }
        Goal::Target { error, probability: Some(p), measure } => {
            format!("the fewest {measure} for a loss of at most {} with probability {p}", number(error))
        }
    };
    format!(
        "{}: {points} in {} dimensions, {goal}. Loss: {}; errors relative to the kernel over {pairs} pairs.",
        kernel(&planner.target),
        planner.data.dim(),
        planner.loss
    )
}

/// The kernel and its lengthscale, with three digits.
fn kernel(target: &Target) -> String {
    let lengthscale = match target.lengthscale() {
        Lengthscale::Isotropic(ell) => format!("ℓ = {}", number(*ell)),
        Lengthscale::PerDimension(all) => {
            let (least, most) = all
                .iter()
                .fold((f64::INFINITY, 0.0f64), |(least, most), ell| (least.min(*ell), most.max(*ell)));
            format!("ℓ from {} to {}", number(least), number(most))
        }
    };
    format!("{}, {lengthscale}", target.tag())
}

/// Why each stands where it does.
pub(crate) fn sentences(scored: &[Scored], planner: &Planner, measure: Measure) -> Vec<String> {
    let Some(best) = scored.first() else { return Vec::new() };
    let least = best.forecast.loss.value;
    let cheapest = best.candidate.cost.in_measure(measure);
    let sentence = |(i, one): (usize, &Scored)| {
        let (loss, cost) = (one.forecast.loss, one.candidate.cost);
        let mut parts = Vec::new();
        let targeted = matches!(planner.goal, Goal::Target { .. });
        match i {
            0 if targeted => parts.push(format!("the cheapest of {} that reach the target", scored.len())),
            0 => {
                let losses = scored.iter().map(|other| other.forecast.loss.value);
                let is_least = losses.fold(f64::INFINITY, f64::min) >= least;
                parts.push(match is_least {
                    true => format!("the least loss of {} recipes", scored.len()),
                    false => format!(
                        "the first of {} recipes by the loss plus the standard error of its draws; of losses within half a percent the \
                         cheapest comes first",
                        scored.len()
                    ),
                });
                if let Some(second) = scored.get(1) {
                    let margin = second.forecast.loss.value / least;
                    let near = margin.is_finite() && margin < 1.0 + 2.0 * loss.relative_error();
                    if near {
                        parts.push("no more than two standard errors ahead".into());
                    }
                }
            }
            _ if targeted => {
                parts.push(format!(
                    "{} times the {measure} of the first",
                    number(cost.in_measure(measure) / cheapest)
                ));
            }
            _ => {
                if least > 0.0 && loss.value > 0.0 {
                    parts.push(format!("{} times the loss of the first", number(loss.value / least)));
                }
                let ratio = cost.multiplications / best.candidate.cost.multiplications;
                if !(0.95..=1.05).contains(&ratio) {
                    parts.push(format!("{} times its multiplications", number(ratio)));
                }
            }
        }
        let some = one.ln_squares.is_none() && one.forecast.gram.basis == Basis::ClosedForm;
        parts.push(format!(
            "by {}{}",
            loss.basis.in_words(),
            if some { " at some of the pairs" } else { "" }
        ));
        if !one.also.is_empty() {
            parts.push(format!("the same map as {}", one.also.join("; ")));
        }
        if one.candidate.biased {
            parts.push("biased".into());
        }
        parts.push(format!(
            "{} features, {} multiplications a point",
            cost.features,
            number(cost.multiplications)
        ));
        if cost.nanoseconds.is_finite() {
            parts.push(format!("{} ns a point", number(cost.nanoseconds)));
        }
        parts.join("; ")
    };
    scored.iter().enumerate().map(sentence).collect()
}

impl Expected {
    fn relative_error(&self) -> f64 {
        if self.value > 0.0 { self.standard_error / self.value } else { 0.0 }
    }
}

impl Basis {
    fn in_words(self) -> String {
        match self {
            Basis::ClosedForm => "closed form".into(),
            Basis::Bound => "a bound".into(),
            Basis::Approximate => "closed forms to first order, for independent frequencies".into(),
            Basis::Simulation(draws) => format!("{draws} draws"),
        }
    }
}
