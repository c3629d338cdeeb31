//! [`Plan`]: ranked recipes with the errors to expect.

mod advice;
mod display;
mod limits;
mod ranked;

pub use self::advice::Advice;
pub(crate) use self::advice::{HOPELESS, SMALL, USELESS};
pub(crate) use self::display::number;
pub use self::limits::Limits;
pub use self::ranked::RankedRecipe;

use super::costs::{Calibration, Measure};
use super::question::Loss;
use crate::error::{Error, Result};

/// What is not in a plan, and why.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct LeftOut {
    /// The map, with its coupling where that is the reason.
    pub what: String,
    /// The reason.
    pub why: String,
}

/// Ranked recipes, the best first, each with the errors to expect: the answer of [`Planner::plan`](crate::planner::Planner::plan).
///
/// ```
/// # use random_features::ndarray::Array2;
/// use random_features::Map;
/// use random_features::planner::Planner;
/// # let x = Array2::from_shape_fn((300, 4), |(i, k)| (0.37 * (i * (k + 1)) as f64).sin());
/// let plan = Planner::of_one_set(&x)?.with_max_features(256).plan()?;
/// println!("{plan}");
/// if !plan.works() {
///     println!("{}", plan.advice().unwrap_or_default());
/// }
/// let best = plan.best()?;
/// println!("errors of {:.1} % in the median", 100.0 * best.relative_error());
/// let map: Map<f32> = best.recipe.draw(42)?;
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Text
/// `{plan}` is a table of the first ten recipes, at most 100 columns wide, with the reason for the first. `{plan:#}` has all recipes,
/// with the reason for each.
///
/// | column | content |
/// |---|---|
/// | m | number of frequencies |
/// | loss, ± | [`loss`](RankedRecipe::loss), which is minimised, and its standard error |
/// | median | [`relative_error`](RankedRecipe::relative_error): half of the pairs have larger errors, relative to the kernel |
/// | 90 %, 99 % | the errors that a tenth and a hundredth of the pairs exceed |
/// | >100 % | the share of pairs whose error exceeds the kernel |
///
/// Where [limits](RankedRecipe::limits) are known, a line states them for as many features as the first recipe has. `{plan:#}` also states
/// each recipe's error divided by them. Features that are not independent may have errors below the first limit: pairs of a cosine and a
/// sine, and frequencies of a coupling.
///
/// With the feature `serde` a plan is stored as plain data, as JSON for example.
///
/// # Order
/// Recipes are ranked by their loss plus one standard error of its draws, if it was simulated; losses that differ by
/// less than about half a percent count as equal, and the cheaper comes first. With a [maximal
/// error](crate::planner::Planner::with_max_error) the cheapest come first. A budget is an upper limit: a recipe has
/// fewer frequencies if whole blocks of its coupling then have smaller errors. Equal recipes share a row, and its
/// sentence names the others. So do recipes of this crate with equally many features and equal errors in closed form.
///
/// The losses of the leading recipes are evaluated at all [`pairs`](Plan::pairs). A loss far behind may be evaluated at
/// some of these pairs, and its recipe's sentence then says so.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Plan {
    /// One line with the kernel, the lengthscale, the points, the loss and the budget.
    pub title: String,
    /// The loss that is minimised, or kept below a maximal error.
    pub loss: Loss,
    /// The unit in which costs are counted, such as features or multiplications.
    pub measure: Measure,
    /// The ranked recipes, the best first.
    pub choices: Vec<RankedRecipe>,
    pub(crate) advice: Option<Advice>,
    pub(crate) left_out: Vec<LeftOut>,
    /// The number of pairs of points on which errors were evaluated.
    pub pairs: usize,
    /// The nanoseconds of each operation; `None` if costs are not counted in time and no calibration was given.
    pub calibration: Option<Calibration>,
}

impl Plan {
    /// The best recipe.
    ///
    /// # Errors
    /// [`Unsupported`](Error::Unsupported) if there is none within the budget or for the maximal error.
    pub fn best(&self) -> Result<&RankedRecipe> {
        let what = "a best recipe: none fits the budget or reaches the target";
        self.choices.first().ok_or(Error::Unsupported { what })
    }

    /// Whether the best recipe has a usable loss. It is usable if it keeps a maximal error, if it is below 0.5, or if
    /// it is below 0.9 and at most a tenth of the pairs have relative errors above 1. A loss of ridge regression may be
    /// above 0.9, but is not usable if the exact kernel predicts no better than the mean. With a budget, a rough number
    /// for attention is not usable. The [advice](Plan::advice) says why a loss is not usable, or which errors a usable
    /// one hides.
    pub fn works(&self) -> bool {
        !self.choices.is_empty() && self.advice.as_ref().is_none_or(|advice| advice.works)
    }

    /// What to do where more than a tenth of the pairs have relative errors above 1 with the best recipe, or its Gram matrix is hardly
    /// better than 0, or where not even the exact kernel predicts the targets of a ridge regression better than their mean.
    pub fn advice(&self) -> Option<String> {
        self.advice.as_ref().map(Advice::to_string)
    }

    /// The maps and couplings that are not among the recipes, each with the reason.
    ///
    /// ```
    /// # use random_features::ndarray::Array2;
    /// use random_features::planner::Planner;
    /// # let x = Array2::from_shape_fn((300, 4), |(i, k)| (0.37 * (i * (k + 1)) as f64).sin());
    /// let plan = Planner::of_one_set(&x)?.plan()?;
    /// for (what, why) in plan.left_out() {
    ///     println!("{what}: {why}");
    /// }
    /// # Ok::<(), random_features::Error>(())
    /// ```
    pub fn left_out(&self) -> impl Iterator<Item = (&str, &str)> {
        self.left_out.iter().map(|left| (left.what.as_str(), left.why.as_str()))
    }

    /// The Pareto front of cost and loss, the cheapest recipe first: no other recipe costs less and has as small a loss. Cost is
    /// counted in the plan's [measure](Plan::measure), or in multiplications if that is features, since all recipes use the whole budget.
    ///
    /// ```
    /// # use random_features::ndarray::Array2;
    /// use random_features::planner::{Measure, Planner};
    /// # let x = Array2::from_shape_fn((100, 3), |(i, k)| (0.37 * (i * (k + 1)) as f64).sin());
    /// let plan = Planner::of_one_set(&x)?.with_max_features(64).plan()?;
    /// for choice in plan.pareto() {
    ///     println!("{} for {}", choice.loss(), choice.cost(Measure::Multiplications));
    /// }
    /// assert_eq!(plan.pareto().last(), Some(&plan.best()?));
    /// # Ok::<(), random_features::Error>(())
    /// ```
    pub fn pareto(&self) -> Vec<&RankedRecipe> {
        let measure = if self.measure == Measure::Features { Measure::Multiplications } else { self.measure };
        let mut by_cost: Vec<&RankedRecipe> = self.choices.iter().collect();
        by_cost
            .sort_by(|a, b| a.cost(measure).total_cmp(&b.cost(measure)).then(a.loss().total_cmp(&b.loss())));
        let mut least = f64::INFINITY;
        by_cost.retain(|choice| {
            let better = choice.loss() < least;
            least = least.min(choice.loss());
            better
        });
        by_cost
    }
}
