//! What was measured, as a table and as lines of JSON.

use random_features::planner::{Expected, Plan};
use serde::Serialize;

use crate::verification::{Measured, Verified};

/// Expected and measured errors side by side.
pub fn table(verified: &[Verified], plan: &Plan, draws: usize) -> String {
    let mut text = format!(
        "\nVerified by {draws} draws each, from seeds that the planner did not use:\n\
         {:36}{:^27}   {:^27}\n #  {:32}{:>8}  {:>8} ± {:<6}   {:>8}  {:>8} ± {:<6}\n",
        "", plan.loss, "median relative error", "recipe", "expected", "measured", "s.e.", "expected", "measured", "s.e."
    );
    for (i, one) in verified.iter().enumerate() {
        let forecast = one.choice.forecast;
        text += &format!(
            "{:>2}  {:32.32}{}   {}\n",
            i + 1,
            name(one),
            cells(forecast.loss, one.loss, one.is_vague()),
            cells(forecast.relative.median, one.median, one.is_median_vague())
        );
    }
    text + &notes(verified)
}

fn name(one: &Verified) -> String {
    format!("{}, {}", one.choice.map, one.choice.coupling)
}

fn cells(expected: Expected, measured: Measured, vague: bool) -> String {
    let mark = if vague { "~" } else { " " };
    let Measured { value, standard_error } = measured;
    format!("{:>8} {mark}{:>8} ± {:<6}", number(expected.value), number(value), short(standard_error))
}

/// What marks mean, and the verdict.
fn notes(verified: &[Verified]) -> String {
    let mut text = String::new();
    if verified.iter().any(|one| one.is_vague() || one.is_median_vague()) {
        text += "~  at these norms a mean over draws is ruled by draws too rare to be met: what is measured is too small or too\n   \
                 uncertain, and means nothing. Compare the medians over pairs where they are not marked.\n";
    }
    let compared = verified.iter().filter(|one| !one.is_vague()).count();
    text + &match (compared, verified.iter().all(Verified::agrees)) {
        (_, false) => "SOME MEASURED ERRORS CONTRADICT THE EXPECTED ONES\n".to_string(),
        (0, true) => "no loss can be verified by draws\n".to_string(),
        (_, true) => "all measured errors agree with the expected ones\n".to_string(),
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
            recipe: format!("{}, m = {}", name(one), choice.frequencies),
            predicted: forecast.loss.value,
            predicted_standard_error: forecast.loss.standard_error,
            measured: one.loss.value,
            measured_standard_error: one.loss.standard_error,
            basis: forecast.loss.basis.to_string(),
            cost: choice.cost.features,
            multiplications: choice.cost.multiplications,
            frequencies: choice.frequencies,
            median: forecast.relative.median.value,
            measured_median: one.median.value,
            ninety: forecast.relative.ninety.value,
            measured_ninety: one.ninety.value,
            ninety_nine: forecast.relative.ninety_nine.value,
            beyond_one: forecast.relative.beyond_one.value,
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

/// Four significant digits.
fn number(value: f64) -> String {
    digits(value, 4)
}

fn short(value: f64) -> String {
    digits(value, 1)
}

fn digits(value: f64, count: i32) -> String {
    match value.abs() {
        size if size == 0.0 || !size.is_finite() => format!("{value}"),
        size if !(1e-4..1e5).contains(&size) => format!("{value:.*e}", (count - 1).min(2) as usize),
        size => format!("{value:.*}", (count - 1 - size.log10().floor() as i32).max(0) as usize),
    }
}
