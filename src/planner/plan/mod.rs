//! [`Plan`]: ranked recipes with the errors to expect.

mod advice;
mod display;

pub use self::advice::Advice;
pub(crate) use self::advice::{HOPELESS, SMALL, USELESS};
pub(crate) use self::display::number;

use super::costs::{Calibration, Cost, Measure};
use super::forecasts::Forecast;
use super::question::Loss;
use crate::Recipe;
use crate::error::{Error, Result};

/// A recipe with the errors to expect, what it costs, and why it stands where it does.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Choice {
    /// The map as data: [`draw`](Recipe::draw) it.
    pub recipe: Recipe,
    /// The name of the map and its parameters.
    pub map: String,
    /// The name of the coupling.
    pub coupling: String,
    /// m, the number of frequencies, of each base if it has several.
    pub frequencies: usize,
    /// The errors to expect.
    pub forecast: Forecast,
    /// Whether few pairs of a sample or few draws rule the loss, so that it may be off by a factor of 1.5 and more, or it is infinite: nothing
    /// is known of it then. A plan shows it as `?`.
    #[cfg_attr(feature = "serde", serde(default))]
    pub uncertain: bool,
    /// What the features of a point cost.
    pub cost: Cost,
    /// Whether estimates have a bias.
    pub biased: bool,
    /// Why it stands where it does.
    pub why: String,
}

/// What is not in a plan, and why.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct LeftOut {
    /// The map, with its coupling where that is the reason.
    pub what: String,
    /// Why.
    pub why: String,
}

/// Recipes, the best first, with the errors to expect: made by [`Planner::plan`](crate::planner::Planner::plan).
///
/// They are ranked by their loss plus one standard error of its draws, if it was simulated; losses that differ by less than about half a
/// percent count as equal, and the cheaper comes first. With a
/// [target](crate::planner::Planner::target) the cheapest come first. A budget is an upper limit: a recipe has fewer frequencies where those make
/// whole blocks of its coupling with smaller errors. Recipes that are one map are one choice.
///
/// Losses of the first recipes are over all pairs that were evaluated. Losses far behind may be over some of these pairs, as their
/// sentences say.
///
/// Its [`Display`](std::fmt::Display) is a table of the first ten, at most 100 columns wide, with a sentence for each; `{:#}` has all.
/// With the feature `serde` it is stored as plain data, as JSON for example.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Plan {
    /// What was planned, in a line.
    pub title: String,
    /// What is minimised, or kept below a target.
    pub loss: Loss,
    /// In what costs are compared.
    pub measure: Measure,
    /// The ranked recipes, the best first.
    pub choices: Vec<Choice>,
    /// If nothing within the budget works: what would.
    pub advice: Option<Advice>,
    /// What is not among the recipes, and why.
    pub left_out: Vec<LeftOut>,
    /// The number of pairs of points on which errors were evaluated.
    pub pairs: usize,
    /// The times that costs are counted with, if they are counted in time.
    pub calibration: Option<Calibration>,
}

impl Plan {
    /// The best recipe.
    ///
    /// # Errors
    /// [`Unsupported`](Error::Unsupported) if there is none within the budget or for the target.
    pub fn best(&self) -> Result<&Choice> {
        let what = "a best recipe: none fits the budget or reaches the target";
        self.choices.first().ok_or(Error::Unsupported { what })
    }

    /// The recipes of which none that costs less has as small a loss, the cheapest first, in the plan's [measure](Plan::measure); with
    /// features, of which all recipes have about as many as are allowed, in multiplications.
    ///
    /// ```
    /// # use ndarray::Array2;
    /// # use random_features::planner::Planner;
    /// # let x = Array2::from_shape_fn((100, 3), |(i, k)| (0.37 * (i * (k + 1)) as f64).sin());
    /// let plan = Planner::of_one_set(&x)?.gaussian_of_median()?.features(64).plan()?;
    /// let front = plan.pareto();
    /// assert!(front.windows(2).all(|pair| pair[0].cost.multiplications <= pair[1].cost.multiplications));
    /// assert_eq!(front.last().map(|choice| &choice.recipe), Some(&plan.best()?.recipe));
    /// # Ok::<(), random_features::Error>(())
    /// ```
    pub fn pareto(&self) -> Vec<&Choice> {
        let measure = if self.measure == Measure::Features { Measure::Multiplications } else { self.measure };
        let cost = |choice: &Choice| choice.cost.in_measure(measure);
        let mut by_cost: Vec<&Choice> = self.choices.iter().collect();
        let loss = |choice: &Choice| choice.forecast.loss.value;
        by_cost.sort_by(|a, b| cost(a).total_cmp(&cost(b)).then(loss(a).total_cmp(&loss(b))));
        let mut least = f64::INFINITY;
        by_cost.retain(|choice| {
            let better = loss(choice) < least;
            least = least.min(loss(choice));
            better
        });
        by_cost
    }
}
