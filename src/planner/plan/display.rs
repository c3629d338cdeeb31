//! What a plan says in words.

use std::fmt;

use super::{Plan, RankedRecipe};
use crate::planner::costs::Measure;

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
            writeln!(
                f,
                "? Few pairs, few draws or a rough formula rule the loss: it may be off by a factor of 1.5 and more."
            )?;
        }
        let explained = if f.alternate() { self.choices.len() } else { 1 };
        for (i, choice) in self.choices.iter().take(explained).enumerate() {
            for line in wrapped(&format!("{}: {}", i + 1, choice.sentence(f.alternate())), "   ") {
                writeln!(f, "{line}")?;
            }
        }
        if let Some(first) = self.choices.first()
            && let Some(limits) = first.limits.listed(|limit| limit)
        {
            let features = first.cost(Measure::Features);
            writeln!(f, "The least errors of {features} features: {limits}.")?;
        }
        if self.choices.is_empty() {
            writeln!(f, "No recipe fits the budget or reaches the target.")?;
        }
        let hidden = self.choices.len().saturating_sub(shown);
        if hidden > 0 {
            writeln!(f, "{hidden} more recipes with larger losses or costs: `{{:#}}` prints all, and why.")?;
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

impl RankedRecipe {
    /// Why it stands where it does; with `ratios`, its error divided by the least ones too.
    fn sentence(&self, ratios: bool) -> String {
        match self.limits.listed(|limit| self.forecast.gram.value / limit).filter(|_| ratios) {
            Some(ratios) => format!("{}; its error over the least: {ratios}", self.why),
            None => self.why.clone(),
        }
    }

    fn row(&self) -> String {
        let (loss, relative) = (self.forecast.loss, self.forecast.relative);
        let mark = if self.uncertain { "?" } else { "" };
        let [median, ninety, ninety_nine] =
            [relative.median, relative.ninety, relative.ninety_nine].map(|error| column(error.value, 7));
        format!(
            "{} {} {:>6} {:>8} {:>7} {:>7} {:>7} {:>7} {:>7}",
            fitted(&self.map, 26),
            fitted(&self.coupling, 13),
            column(self.m as f64, 6),
            column(loss.value, 8 - mark.len()) + mark,
            column(loss.standard_error, 7),
            median,
            ninety,
            ninety_nine,
            format!("{:.1} %", 100.0 * relative.beyond_one.value),
        )
    }
}

/// Three significant digits.
pub(crate) fn number(value: f64) -> String {
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
