//! The title of a plan, and why each of its recipes stands where it does.

use super::ranking::Scored;
use crate::kernel::{Lengthscale, ShiftInvariant};
use crate::map::AnyKernel;
use crate::planner::costs::Measure;
use crate::planner::forecasts::Expected;
use crate::planner::plan::number;
use crate::planner::question::{Goal, Planner};
use crate::theory::Basis;

/// What is planned.
pub(crate) fn title(planner: &Planner, pairs: usize) -> String {
    let [x, y] = &planner.data.sides;
    let points = match planner.data.one_set {
        true => format!("{} points", x.count()),
        false => format!("{} queries and {} keys", x.count(), y.count()),
    };
    let goal = match planner.goal {
        Goal::Budget { measure, most } => format!("the least loss for at most {} {measure}", number(most)),
        Goal::MaxError { error, probability: None, measure } => {
            format!("the fewest {measure} for a loss of at most {}", number(error))
        }
        Goal::MaxError { error, probability: Some(p), measure } => {
            format!("the fewest {measure} for a loss of at most {} with probability {p}", number(error))
        }
    };
    let d = planner.data.dim();
    let unit = if d == 1 { "dimension" } else { "dimensions" };
    format!(
        "{}: {points} in {d} {unit}, {goal}. Loss: {}; errors relative to the kernel over {pairs} pairs.",
        kernel(&planner.kernel),
        planner.loss
    )
}

/// The kernel and its lengthscale, with three digits.
fn kernel(kernel: &AnyKernel) -> String {
    let lengthscale = match kernel.lengthscale() {
        Lengthscale::Isotropic(ell) => format!("ℓ = {}", number(*ell)),
        Lengthscale::PerDimension(all) => {
            let (least, most) = all
                .iter()
                .fold((f64::INFINITY, 0.0f64), |(least, most), ell| (least.min(*ell), most.max(*ell)));
            format!("ℓ from {} to {}", number(least), number(most))
        }
    };
    let name = match kernel {
        AnyKernel::Matern(kernel) => kernel.name(),
        AnyKernel::RationalQuadratic(kernel) => kernel.name(),
        AnyKernel::PoweredExponential(kernel) => kernel.name(),
        AnyKernel::Own(kernel) => kernel.name(),
        _ => kernel.tag().into(),
    };
    format!("{name}, {lengthscale}")
}

/// Why each recipe stands where it does, as a sentence.
pub(crate) fn sentences(scored: &[Scored], planner: &Planner, measure: Measure) -> Vec<String> {
    let reaching = matches!(planner.goal, Goal::MaxError { .. });
    let sentence = |(i, one): (usize, &Scored)| {
        let mut parts = match (i, reaching) {
            (0, true) => vec![format!("the cheapest of {} that reach the target", scored.len())],
            (0, false) => ahead(one, scored),
            (_, true) => {
                let cost = |one: &Scored| one.candidate.cost.in_measure(measure);
                vec![format!("{} times the {measure} of the first", number(cost(one) / cost(&scored[0])))]
            }
            (_, false) => behind(one, &scored[0]),
        };
        parts.extend(facts(one));
        parts.join("; ")
    };
    scored.iter().enumerate().map(sentence).collect()
}

/// Why the first of some recipes is the first, and whether by much.
fn ahead(first: &Scored, scored: &[Scored]) -> Vec<String> {
    let loss = first.forecast.loss;
    let losses = scored.iter().map(|other| other.forecast.loss.value);
    let is_least = losses.fold(f64::INFINITY, f64::min) >= loss.value;
    let mut parts = vec![match is_least {
        true => format!("the least loss of {} recipes", scored.len()),
        false => format!(
            "the first of {} recipes by the loss plus the standard error of its draws; of losses within half a percent the \
             cheapest comes first",
            scored.len()
        ),
    }];
    if let Some(second) = scored.get(1) {
        let margin = second.forecast.loss.value / loss.value;
        if margin.is_finite() && margin < 1.0 + 2.0 * loss.relative_error() {
            parts.push("no more than two standard errors ahead".into());
        }
    }
    parts
}

/// By how much the loss and the work of a recipe differ from those of the best.
fn behind(one: &Scored, best: &Scored) -> Vec<String> {
    let (least, loss) = (best.forecast.loss.value, one.forecast.loss.value);
    let mut parts = Vec::new();
    if least > 0.0 && loss > 0.0 {
        parts.push(format!("{} times the loss of the first", number(loss / least)));
    }
    let ratio = one.candidate.cost.multiplications / best.candidate.cost.multiplications;
    if !(0.95..=1.05).contains(&ratio) {
        parts.push(format!("{} times its multiplications", number(ratio)));
    }
    parts
}

/// What is true of a recipe whatever the others are: where its loss comes from, its other names, its bias and its cost.
fn facts(one: &Scored) -> Vec<String> {
    let (loss, cost) = (one.forecast.loss, one.candidate.cost);
    let some = if one.is_of_some_pairs() { " at some of the pairs" } else { "" };
    let mut parts = vec![format!("by {}{some}", loss.basis.in_words())];
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
    parts
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
            Basis::HeldOut => "errors at held-out points".into(),
            Basis::Simulation(draws) => format!("{draws} draws"),
        }
    }
}
