//! [`Advice`]: what to do where nothing within a budget works.

use std::fmt;

use crate::planner::costs::same;

/// The share of pairs beyond an error of 1 from which on a plan says that nothing works.
pub(crate) const HOPELESS: f64 = 0.1;
/// The error from which on a plan says so too: that of features that are 0 is 1.
pub(crate) const USELESS: f64 = 0.9;
/// The loss below which a plan works for what it minimises, though many small kernel values may have large relative errors.
pub(crate) const SMALL: f64 = 0.5;

/// What to do where nothing within a budget works: numbers, and what to use instead.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Advice {
    /// Whether the loss is small all the same: it is ruled by large kernel values, and small ones have large relative errors.
    pub works: bool,
    /// Whether the exact kernel fails, so that no map of it can work: on held-out points of a pilot of ridge regression it predicts no
    /// better than the mean of the targets. Losses are then relative to the mean, `more_frequencies` is infinite and `shrink` NaN.
    #[cfg_attr(feature = "serde", serde(default))]
    pub exact_fails: bool,
    /// Whether the best loss is a rough number, or none: normalisers of attention vary much, or outputs are 0.
    #[cfg_attr(feature = "serde", serde(default))]
    pub unknown: bool,
    /// The share of pairs whose error is above 1 with the best recipe.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub beyond_one: f64,
    /// The factor, from 1 on, by which frequencies of the best recipe without bias would have to grow for fewer than a tenth of the pairs
    /// above 100 %; infinite where no number is enough.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub more_frequencies: f64,
    /// The factor to shrink points by (or to divide the lengthscale by) for fewer than a tenth of the pairs above 100 %. It is for as
    /// many independent frequencies of the best of trigonometric, positive and optimal positive features; NaN for kernels that these do
    /// not serve.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub shrink: f64,
    /// What to use instead.
    pub instead: String,
}

/// Two pieces of advice are equal if numbers and words are; factors that are both NaN count as equal.
impl PartialEq for Advice {
    fn eq(&self, other: &Self) -> bool {
        let own = |advice: &Advice| {
            let Advice { works, exact_fails, unknown, beyond_one, more_frequencies, .. } = *advice;
            (works, exact_fails, unknown, beyond_one, more_frequencies)
        };
        own(self) == own(other) && same(self.shrink, other.shrink) && self.instead == other.instead
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Advice { works, exact_fails, unknown, beyond_one, more_frequencies, shrink, instead } = self;
        if *exact_fails {
            return f.write_str(instead);
        }
        if *works {
            let share = 100.0 * beyond_one;
            write!(
                f,
                "{share:.0} % of the pairs, those with small kernel values, have errors above 1, although the loss is small: "
            )?;
            return f.write_str("where they matter, minimise a relative error.");
        }
        if *unknown && *beyond_one <= HOPELESS {
            let why = "errors of attention are rough numbers at most, since its normalisers vary much or outputs are 0";
            return write!(f, "Nothing within the budget works for certain: {why}. {instead}");
        }
        f.write_str("Nothing within the budget works: ")?;
        match *beyond_one > HOPELESS {
            true => write!(f, "{:.0} % of the pairs have errors above 1. ", 100.0 * beyond_one)?,
            false => f.write_str("estimates are hardly better than 0. ")?,
        }
        match *more_frequencies {
            factor if factor.is_infinite() => write!(f, "No number of frequencies is enough")?,
            factor if factor < 1.05 => write!(f, "Another recipe without bias does better")?,
            factor => write!(f, "It would take {factor:.1e} times as many frequencies")?,
        }
        match shrink {
            shrink if *shrink > 0.0 => write!(f, ", or points shrunk to {shrink:.2} of their size. ")?,
            _ => write!(f, ". ")?,
        }
        f.write_str(instead)
    }
}
