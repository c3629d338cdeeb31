//! What a report says in words.

use std::fmt;

use super::{ErrorReport, RELIABLE};
use crate::map::Mechanism;
use crate::theory::Basis;

impl fmt::Display for ErrorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.weight_error(), self.output_error()) {
            (Some(weights), Some(output)) => self.write_errors(f, weights, Some(output)),
            (Some(weights), None) if !self.has_values => self.write_errors(f, weights, None),
            _ if self.is_hopeless() => self.write_hopeless(f),
            _ => write!(
                f,
                "m = {}: outputs are 0, so there is no relative error; the normaliser's relative variance is {:.2e}, by {}",
                self.m,
                self.normaliser_variance,
                words(self.basis)
            ),
        }
    }
}

impl ErrorReport {
    fn write_errors(&self, f: &mut fmt::Formatter<'_>, weights: f64, output: Option<f64>) -> fmt::Result {
        let (m, basis) = (self.m, words(self.basis));
        let [weights, mean] = [weights, self.mean_error].map(two_digits);
        let verdict = match self.is_worse_than_uniform() {
            Some(true) => ": worse than uniform weights, use exact attention or more frequencies",
            _ => "",
        };
        write!(f, "m = {m}: expected relative error of the weights {weights}")?;
        match output.map(two_digits) {
            Some(output) => write!(f, ", of the output {output} (of the mean of the values: {mean})")?,
            None => write!(f, " (of equal weights: {mean}; without values nothing is said of outputs)")?,
        }
        write!(f, ", by {basis}{verdict}")
    }

    fn write_hopeless(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (m, variance) = (self.m, self.normaliser_variance);
        let enough = variance * m as f64 / RELIABLE;
        write!(f, "hopeless with m = {m}: the normaliser's relative variance is ")?;
        match self.basis {
            Basis::Simulation(count) if variance.is_finite() => {
                write!(f, "{variance:.2e} or more, beyond {RELIABLE}, by {count} redraws.")?;
                return self.write_rough(f);
            }
            Basis::Simulation(count) => return write!(f, "beyond the range of numbers, by {count} redraws."),
            _ if enough.is_finite() => {
                write!(f, "{variance:.2e}, beyond {RELIABLE}; it would take {enough:.1e} frequencies, or")?;
            }
            _ => write!(f, "beyond the range of numbers: no number of frequencies is enough, but")?,
        }
        match self.shrink {
            shrink if shrink > 0.0 => {
                write!(f, " queries and keys shrunk to {} of their size.", two_digits(shrink))
            }
            _ => write!(f, " queries and keys shrunk to less than a millionth of their size."),
        }?;
        self.write_rough(f)?;
        self.write_alternative(f)
    }

    /// Numbers for errors that are not expectations, where there are any.
    fn write_rough(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.rough_weight_error(), self.rough_output_error()) {
            (Some(weights), Some(output)) => {
                let nearer = self.mean_error < output;
                let [weights, output, mean] = [weights, output, self.mean_error].map(two_digits);
                write!(f, " Roughly, to first order, weights err by {weights}, outputs by {output}, ")?;
                write!(f, "the mean of the values by {mean}")?;
                f.write_str(if nearer { ": equal weights are nearer than that." } else { "." })
            }
            (Some(weights), None) => {
                write!(f, " Roughly, to first order, weights err by {}.", two_digits(weights))
            }
            _ => Ok(()),
        }
    }

    fn write_alternative(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.alternatives.first().filter(|(_, variance)| *variance < RELIABLE) {
            Some((mechanism, variance)) => {
                let signed = matches!(mechanism, Mechanism::Trigonometric(_));
                let how = if signed { ", through Attention::signed," } else { "" };
                write!(f, " With {} features{how} it is {variance:.2e}.", mechanism.tag())
            }
            None => {
                write!(
                    f,
                    " With no other plain features is it below {RELIABLE}: use exact attention, or features of \
                     Attention::shaped, which may err less."
                )
            }
        }
    }
}

/// Where covariances come from.
fn words(basis: Basis) -> String {
    match basis {
        Basis::ClosedForm => "closed forms for independent frequencies or antithetic pairs".into(),
        Basis::Simulation(count) => format!("{count} redraws"),
        other => other.to_string(),
    }
}

/// A positive number with two significant digits.
fn two_digits(value: f64) -> String {
    let decimals = 1.0 - value.log10().floor();
    if (0.0..=5.0).contains(&decimals) {
        format!("{value:.*}", decimals as usize)
    } else {
        format!("{value:.1e}")
    }
}
