//! What was measured, as a table and as lines of JSON.

use random_features::planner::{Measure, Plan};
use serde::Serialize;

use crate::verification::{LIMIT, SHARES, Verified};

/// Expected and measured errors side by side.
pub fn table(verified: &[Verified], plan: &Plan, draws: usize) -> String {
    let mut text = format!(
        "\nVerified by {draws} draws each, from seeds that the planner did not use, at the pairs of the plan:\n\
         {:44} {:<36}{}\n #  {:41}{:>8}  {:>8} ± {:<6} {:>5}  {:>8}  {:>8}\n",
        "",
        plan.loss.to_string(),
        "median relative error",
        "recipe",
        "expected",
        "measured",
        "s.e.",
        "ratio",
        "expected",
        "measured"
    );
    for (i, one) in verified.iter().enumerate() {
        let Verified { choice, loss, median, .. } = one;
        let (expected, relative) = (choice.forecast.loss.value, choice.forecast.relative_median().value);
        text += &format!(
            "{:>2}  {:40.40} {:>8} {}{:>8} ± {:<6} {:>5.2}  {:>8} {}{:>8}\n",
            i + 1,
            name(one),
            digits(expected, 4),
            mark(one.is_vague()),
            digits(loss.value, 4),
            digits(loss.standard_error, 1),
            loss.value / expected,
            digits(relative, 4),
            mark(one.is_median_vague()),
            digits(median.value, 4)
        );
    }
    text + &notes(verified)
}

fn name(one: &Verified) -> String {
    format!("{}, {}", one.choice.map, one.choice.coupling)
}

fn mark(vague: bool) -> char {
    if vague { '~' } else { ' ' }
}

/// What marks mean, and the verdict.
fn notes(verified: &[Verified]) -> String {
    let mut text = String::new();
    if verified.iter().any(|one| one.is_vague() || one.is_median_vague()) {
        text += "~  At these norms draws too rare to be met rule the mean of squared errors: what is measured is too small or too\n   \
                 uncertain and means nothing. Where only the loss has the mark, the median over pairs is compared.\n";
    }
    let meaningless = verified.iter().filter(|one| one.is_vague() && one.is_median_vague()).count();
    let medians = verified.iter().any(|one| one.is_vague() && !one.is_median_vague());
    let [of_loss, of_median] = SHARES.map(|share| 100.0 * share);
    let places =
        if medians { format!(", medians in place of losses to {of_median} %") } else { String::new() };
    let limits = format!("{LIMIT} standard errors of both or {of_loss} %{places}");
    text + &match verified.iter().all(Verified::agrees) {
        false => format!("SOME ERRORS DO NOT AGREE with the expected ones to {limits}\n"),
        true if meaningless == verified.len() => "no error can be verified by draws\n".to_string(),
        true => format!("all errors that can be compared agree to {limits}\n"),
    }
}

/// A verified recipe; numbers that JSON does not have are null.
#[derive(Serialize)]
struct Line {
    recipe: String,
    predicted: f64,
    predicted_standard_error: f64,
    measured: f64,
    measured_standard_error: f64,
    basis: String,
    cost: usize,
    multiplications: f64,
    frequencies: usize,
    median: f64,
    measured_median: f64,
    ninety: f64,
    measured_ninety: f64,
    ninety_nine: f64,
    beyond_one: f64,
    draws: usize,
    vague: bool,
    agrees: bool,
}

impl Line {
    fn of(one: &Verified) -> Self {
        let (choice, forecast) = (&one.choice, one.choice.forecast);
        Line {
            recipe: format!("{}, m = {}", name(one), choice.m),
            predicted: forecast.loss.value,
            predicted_standard_error: forecast.loss.standard_error,
            measured: one.loss.value,
            measured_standard_error: one.loss.standard_error,
            basis: forecast.loss.basis.to_string(),
            cost: choice.recipe.feature_dim(),
            multiplications: choice.cost(Measure::Multiplications),
            frequencies: choice.m,
            median: forecast.relative_median().value,
            measured_median: one.median.value,
            ninety: forecast.relative_ninety().value,
            measured_ninety: one.ninety.value,
            ninety_nine: forecast.relative_ninety_nine().value,
            beyond_one: forecast.beyond_one().value,
            draws: one.draws,
            vague: one.is_vague(),
            agrees: one.agrees(),
        }
    }
}

/// A line of JSON for each.
pub fn lines(verified: &[Verified]) -> Result<String, String> {
    let line = |one| serde_json::to_string(&Line::of(one)).map(|line| line + "\n");
    verified.iter().map(line).collect::<Result<_, _>>().map_err(|error| error.to_string())
}

/// So many significant digits.
fn digits(value: f64, count: i32) -> String {
    match value.abs() {
        size if size == 0.0 || !size.is_finite() => format!("{value}"),
        size if !(1e-4..1e5).contains(&size) => format!("{value:.*e}", (count - 1).min(2) as usize),
        size => format!("{value:.*}", (count - 1 - size.log10().floor() as i32).max(0) as usize),
    }
}
