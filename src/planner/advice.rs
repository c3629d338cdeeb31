//! [`Advice`]: what to do where nothing within a budget works.

use std::fmt;

use super::cost::same;
use super::evaluation::closed;
use super::pairs::Pairs;
use crate::apply::attention::{Costs, ExactPairs};
use crate::error::Result;
use crate::frequency::{Draw, Independent};
use crate::kernel::Kernel;
use crate::map::{Gerf, PlainRecipe, Recipe, Target};
use crate::{Positive, Trigonometric};

/// The share of pairs beyond an error of 1 from which on a plan says that nothing works.
pub(super) const HOPELESS: f64 = 0.1;
/// The error from which on a plan says so too: that of features that are 0 is 1.
pub(super) const USELESS: f64 = 0.9;
/// The loss below which a plan works for what it minimises, though many small kernel values may have large relative errors.
pub(super) const SMALL: f64 = 0.5;
/// Halvings of the interval in which a factor is sought.
const STEPS: usize = 20;
/// Points up to which the Gram matrix of the exact kernel is affordable: 800 MB.
const EXACT: usize = 10_000;

/// What to do where more than a tenth of the pairs have relative errors above 1 with the best recipe, or its Gram matrix is hardly better
/// than 0, or where not even the exact kernel predicts the targets of a ridge regression better than their mean.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Advice {
    /// Whether the loss is small all the same: it is ruled by large kernel values, and small ones have large relative errors.
    pub works: bool,
    /// Whether the exact kernel fails, so that no map of it can work: on held-out points of a pilot of ridge regression it predicts no
    /// better than the mean of the targets. Losses are then relative to the mean, `more_frequencies` is infinite and `shrink` NaN.
    #[cfg_attr(feature = "serde", serde(default))]
    pub exact_fails: bool,
    /// The share of pairs whose error is above 1 with the best recipe.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub beyond_one: f64,
    /// The factor by which frequencies of the best recipe without bias would have to grow for less than that, from 1 on; infinite where
    /// no number is enough.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub more_frequencies: f64,
    /// The factor by which points would have to shrink, or the lengthscale to grow, for that, with as many independent frequencies of the best of trigonometric, positive and optimal positive features; NaN for kernels that these do not serve.
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    pub shrink: f64,
    /// What to use instead.
    pub instead: String,
}

/// Of equal numbers and words; factors that there are none of are equal.
impl PartialEq for Advice {
    fn eq(&self, other: &Self) -> bool {
        let own =
            |advice: &Advice| (advice.works, advice.exact_fails, advice.beyond_one, advice.more_frequencies);
        own(self) == own(other) && same(self.shrink, other.shrink) && self.instead == other.instead
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Advice { works, exact_fails, beyond_one, more_frequencies, shrink, instead } = self;
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

impl Advice {
    /// The advice where the exact kernel predicts targets no better than their mean.
    pub(super) fn of_hopeless_kernel(beyond_one: f64) -> Self {
        let instead = "The exact kernel predicts the targets no better than their mean on held-out points, and losses are relative to the \
                       mean. Use another kernel or lengthscale (Planner::gaussian_for_targets), or more points: there may also be \
                       nothing to predict.";
        Advice {
            works: false,
            exact_fails: true,
            beyond_one,
            more_frequencies: f64::INFINITY,
            shrink: f64::NAN,
            instead: instead.into(),
        }
    }
}

/// The advice for a plan whose best recipe, with m frequencies and these errors, leaves too many pairs beyond 1.
pub(super) fn advice(
    target: &Target,
    kernel: &dyn Kernel<f64>,
    pairs: &Pairs,
    works: bool,
    (m, beyond, error): (usize, f64, f64),
    (attention, features, dim): (bool, usize, usize),
) -> Result<Advice> {
    let instead = match attention {
        true => {
            let crossover = Costs::new(dim, features, dim).crossover(false, ExactPairs::default());
            format!(
                "Use features shaped by attention (data::shaping), truncated ones with exact heavy keys, or exact attention: it is also \
                 faster up to some {crossover} tokens."
            )
        }
        false => format!(
            "Use a longer lengthscale, or the exact kernel: its Gram matrix is affordable up to some {EXACT} points, and with \
             landmarks (Nyström) beyond."
        ),
    };
    Ok(Advice {
        works,
        exact_fails: false,
        beyond_one: beyond,
        more_frequencies: (error * error).max(1.0),
        shrink: if works { 1.0 } else { shrink(target, kernel, pairs, m)? },
        instead,
    })
}

/// The largest factor of points for which a tenth of the pairs have errors above 1.
fn shrink(target: &Target, kernel: &dyn Kernel<f64>, pairs: &Pairs, m: usize) -> Result<f64> {
    if !matches!(target, Target::Softmax(_) | Target::Gaussian(_)) {
        return Ok(f64::NAN);
    }
    let works = |factor: f64| -> Result<bool> {
        let scaled = pairs.times(factor, kernel)?;
        let d = scaled.dim();
        let lengthscale = target.lengthscale();
        let sums = scaled.iter().map(|(x, y)| {
            lengthscale.divide(&x).zip(lengthscale.divide(&y)).map(|(x, y)| (x + y).powi(2)).sum::<f64>()
        });
        let mean = sums.sum::<f64>() / scaled.len() as f64;
        let draw = || Draw::new(d, m, Independent);
        let mut recipes = vec![
            Recipe::Plain(PlainRecipe::new(Positive, draw(), target.clone())),
            Recipe::Plain(PlainRecipe::new(Trigonometric, draw(), target.clone())),
        ];
        if let Ok(oprf) = Gerf::optimal(d, mean) {
            recipes.push(Recipe::Plain(PlainRecipe::new(oprf, draw(), target.clone())));
        }
        for recipe in &recipes {
            if let Some(ln_squares) = closed(recipe, target, &scaled)? {
                let relative = scaled.relative(&ln_squares, super::Basis::ClosedForm);
                let gram = scaled.gram(&ln_squares, super::Basis::ClosedForm);
                if relative.beyond_one.value <= HOPELESS && gram.value < USELESS {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    };
    // In powers of e, since points may be of any size.
    let (mut low, mut high) = (-80.0f64, 0.0f64);
    if !works(low.exp())? {
        return Ok(0.0);
    }
    for _ in 0..STEPS {
        let middle = 0.5 * (low + high);
        if works(middle.exp())? { low = middle } else { high = middle }
    }
    Ok(low.exp())
}
