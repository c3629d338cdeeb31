//! [`RankedRecipe`]: a row of a plan.

use super::Limits;
use crate::Recipe;
use crate::planner::costs::{Cost, Measure};
use crate::planner::forecasts::Forecast;

/// A recipe of a plan with the errors to expect, its cost, and the reason for its rank.
///
/// ```
/// # use random_features::ndarray::Array2;
/// use random_features::Map;
/// use random_features::planner::{Measure, Planner};
/// # let x = Array2::from_shape_fn((300, 4), |(i, k)| (0.37 * (i * (k + 1)) as f64).sin());
/// let plan = Planner::of_one_set(&x)?.with_max_features(100).plan()?;
/// let best = plan.best()?;
/// println!("{}, {}: {} ({})", best.map, best.coupling, best.loss(), best.why);
/// assert!(best.cost(Measure::Features) <= 100.0);
/// let map: Map<f32> = best.recipe.draw(42)?;
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Names
/// These are the names of the maps of a plan. Parameters are for points divided by the lengthscale.
///
/// | name | map |
/// |---|---|
/// | trigonometric, positive, hyperbolic | [`Trigonometric`](crate::Trigonometric), [`Positive`](crate::Positive), [`Hyperbolic`](crate::Hyperbolic), which have no parameters |
/// | positive, regularised; hyperbolic, regularised | [`Positive`](crate::Positive), [`Hyperbolic`](crate::Hyperbolic) with frequencies of norm √d, which is a bias |
/// | OPRF, A = … | [`Gerf`](crate::Gerf) with s = 1 and the A that is best for one, two or four times the mean of ‖x+y‖² |
/// | GERF, s = −1, A = … | [`Gerf`](crate::Gerf) with s = −1 and the A that is best for the mean of ‖x−y‖² |
/// | real exponential; real exponential, ±ω | [`ComplexExponential`](crate::ComplexExponential) with a real diagonal; with the frequencies ±ω |
/// | complex exponential | [`ComplexExponential`](crate::ComplexExponential), imaginary where the means of both sides agree in sign |
/// | dense exponential; dense exponential, 2φ | [`DenseExponential`](crate::DenseExponential) with the best coefficients for the mean squares φ of the coordinates of x + y; for 2φ |
/// | Poisson; Poisson, one λ | [`Poisson`](crate::Poisson) with a rate for each coordinate; with one rate |
/// | geometric | [`Geometric`](crate::Geometric) |
/// | Poisson, shifted; geometric, shifted | these maps of points that are shifted to be positive |
/// | angular hybrid, n = …; Gaussian hybrid, n = … | [`Hybrid`](crate::compose::Hybrid) with a coefficient of n frequencies |
/// | clustered k × k, complex; …, real | [`Clustered`](crate::compose::Clustered), with a complex or real diagonal for each pair of clusters |
/// | Gaussian k × k, c = … | [`Hybrid`](crate::compose::Hybrid) of maps for pairs of clusters, weighted by Gaussians of width c |
/// | shaped; truncated, rank r of d | a map fitted by [`Shaping`](crate::data::shaping::Shaping), in all directions or in r of them |
/// | Nyström; unbiased Nyström | [`Nystroem`](crate::map::Nystroem) features; these with random features of the rest ([`Nystroem::fit_unbiased`](crate::map::Nystroem::fit_unbiased)) |
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct RankedRecipe {
    /// The map as data; [`draw`](Recipe::draw) makes the map.
    pub recipe: Recipe,
    /// The name of the map and its parameters.
    pub map: String,
    /// The name of the coupling.
    pub coupling: String,
    /// m, the number of frequencies: of each base map, if there are several. For Nyström features it is D.
    #[cfg_attr(feature = "serde", serde(rename = "frequencies"))]
    pub m: usize,
    /// The errors to expect.
    pub forecast: Forecast,
    /// Lower bounds of the error for as many features: of independent ones, of ones without bias, and of any.
    #[cfg_attr(feature = "serde", serde(default))]
    pub limits: Limits,
    /// Whether the loss may be off by a factor of 1.5 and more. It may if it is infinite, or if its standard error is
    /// above 15 % of it, from draws, approximations and what was not evaluated. A loss without a closed form may be
    /// off, too, if its standard error at the evaluated pairs is above 50 %. A plan prints `?` beside it.
    #[cfg_attr(feature = "serde", serde(default))]
    pub uncertain: bool,
    pub(crate) cost: Cost,
    /// Whether estimates have a bias.
    pub biased: bool,
    /// A sentence with the reason for the rank, the source of the loss, and other names of the map.
    pub why: String,
}

impl RankedRecipe {
    /// The expected loss, by which recipes are ranked: [`forecast.loss`](Forecast::loss) without its uncertainty.
    pub fn loss(&self) -> f64 {
        self.forecast.loss.value
    }

    /// The median over pairs of √E(K̂ − K)²/|K|: half of the pairs have larger errors, relative to the kernel.
    /// [`forecast`](RankedRecipe::forecast) has its uncertainty, and other quantiles.
    pub fn relative_error(&self) -> f64 {
        self.forecast.relative_median().value
    }

    /// The cost of the features of a point, on average over both sides.
    pub fn cost(&self, measure: Measure) -> f64 {
        self.cost.in_measure(measure)
    }
}
