//! What a plan says in words.

use std::fmt;

use super::Measure;
use super::options::{Goal, Planner};
use super::plan::{Choice, Plan};
use super::ranking::Scored;
use crate::frequency::AnyCoupling;
use crate::kernel::Lengthscale;
use crate::map::Target;

/// Recipes in a table unless all are asked for.
const SHOWN: usize = 10;
/// Columns of a line.
const WIDTH: usize = 100;

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in wrapped(&self.title, "") {
            writeln!(f, "{line}")?;
        }
        let head = ["m", "loss", "±", "median", "90 %", "99 %", ">100 %"];
        writeln!(
            f,
            " #  {:26} {:13} {:>6} {:>8} {:>7} {:>7} {:>7} {:>7} {:>7}",
            "map", "coupling", head[0], head[1], head[2], head[3], head[4], head[5], head[6]
        )?;
        let shown = if f.alternate() { self.choices.len() } else { SHOWN };
        for (i, choice) in self.choices.iter().take(shown).enumerate() {
            writeln!(f, "{:>3} {}", i + 1, choice.row())?;
        }
        if self.choices.iter().take(shown).any(|choice| choice.uncertain) {
            writeln!(f, "? Few pairs or few draws rule the loss, which may be off by a factor of 1.5.")?;
        }
        for (i, choice) in self.choices.iter().take(shown.min(SHOWN)).enumerate() {
            for line in wrapped(&format!("{}: {}", i + 1, choice.why), "   ") {
                writeln!(f, "{line}")?;
            }
        }
        if self.choices.is_empty() {
            writeln!(f, "No recipe fits the budget or reaches the target.")?;
        }
        let hidden = self.choices.len().saturating_sub(shown);
        if hidden > 0 {
            writeln!(f, "{hidden} more recipes with larger losses or costs.")?;
        }
        if let Some(calibration) = &self.calibration {
            for line in wrapped(&format!("Time counted by {calibration}."), "") {
                writeln!(f, "{line}")?;
            }
        }
        for left in &self.left_out {
            for line in wrapped(&format!("Left out: {}: {}.", left.what, left.why), "   ") {
                writeln!(f, "{line}")?;
            }
        }
        if let Some(advice) = &self.advice {
            for line in wrapped(&advice.to_string(), "") {
                writeln!(f, "{line}")?;
            }
        }
        Ok(())
    }
}

impl Choice {
    fn row(&self) -> String {
        let (loss, relative) = (self.forecast.loss, self.forecast.relative);
        let mark = if self.uncertain { "?" } else { "" };
        let [median, ninety, ninety_nine] =
            [relative.median, relative.ninety, relative.ninety_nine].map(|error| column(error.value, 7));
        format!(
            "{} {} {:>6} {:>8} {:>7} {:>7} {:>7} {:>7} {:>7}",
            fitted(&self.map, 26),
            fitted(&self.coupling, 13),
            column(self.frequencies as f64, 6),
            column(loss.value, 8 - mark.len()) + mark,
            column(loss.standard_error, 7),
            median,
            ninety,
            ninety_nine,
            format!("{:.1} %", 100.0 * relative.beyond_one.value),
        )
    }
}

/// The name of a coupling.
pub(super) fn coupling(coupling: &AnyCoupling) -> String {
    match coupling {
        AnyCoupling::Plain(plain) => plain.tag().into(),
        AnyCoupling::Antithetic(plain) => format!("±{}", plain.tag()),
    }
}

/// What is planned.
pub(super) fn title(planner: &Planner, pairs: usize) -> String {
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
pub(super) fn sentences(scored: &[Scored], planner: &Planner, measure: Measure) -> Vec<String> {
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
        let some = one.ln_squares.is_none() && one.forecast.gram.basis == super::Basis::ClosedForm;
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

impl super::Expected {
    fn relative_error(&self) -> f64 {
        if self.value > 0.0 { self.standard_error / self.value } else { 0.0 }
    }
}

impl super::Basis {
    fn in_words(self) -> String {
        match self {
            super::Basis::ClosedForm => "closed form".into(),
            super::Basis::Bound => "a bound".into(),
            super::Basis::Approximate => "closed forms to first order, for independent frequencies".into(),
            super::Basis::Simulation(draws) => format!("{draws} draws"),
        }
    }
}

/// Three significant digits.
fn number(value: f64) -> String {
    let size = value.abs();
    match size {
        _ if value.is_nan() => "–".into(),
        _ if value.is_infinite() => "∞".into(),
        0.0 => "0".into(),
        1.0..1e7 if value.fract() == 0.0 => format!("{value}"),
        1e4.. | ..1e-3 => format!("{value:.1e}"),
        _ => format!("{value:.*}", (2 - size.log10().floor() as i32).max(0) as usize),
    }
}

/// A number of at most so many columns.
fn column(value: f64, width: usize) -> String {
    match number(value) {
        long if long.chars().count() > width => format!("{value:.0e}"),
        short => short,
    }
}

/// A text of exactly so many columns.
fn fitted(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return format!("{text:width$}");
    }
    text.chars().take(width - 1).chain(['…']).collect()
}

/// The lines of a text; all but the first begin with `indent`.
fn wrapped(text: &str, indent: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().map_or(0, |line| line.chars().count());
        if last > 0 && last + 1 + word.chars().count() > WIDTH {
            lines.push(indent.into());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() && !line.ends_with(' ') {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}
