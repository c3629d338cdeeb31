//! How a plan is made.

use super::limits::Bounds;
use super::problem::Problem;
use super::ranking::{Scored, rank};
use super::{max_error, words};
use crate::error::Result;
use crate::planner::forecasts::TaskLoss;
use crate::planner::plan::{LeftOut, Plan, RankedRecipe};
use crate::planner::question::{Goal, Planner, check, check_stated};
use crate::theory::Basis;

/// The relative standard error from which on a loss is called uncertain.
const UNCERTAIN: f64 = 0.15;
/// The relative standard error, over pairs and draws, from which on a loss from draws is called uncertain.
const MISSED: f64 = 0.5;

impl Planner {
    /// Ranks recipes for the points: the best within the budget, or the cheapest that keep the maximal error.
    ///
    /// ```
    /// # use random_features::ndarray::Array2;
    /// use random_features::planner::Planner;
    /// # let x = Array2::from_shape_fn((300, 4), |(i, k)| (0.37 * (i * (k + 1)) as f64).sin());
    /// let plan = Planner::of_one_set(&x)?.with_max_features(64).plan()?;
    /// println!("{plan}");
    /// # Ok::<(), random_features::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Parameter`](crate::Error::Parameter) if the kernel or the budget is outside its domain, [`Shape`](crate::Error::Shape)
    /// if the kernel is for another dimension, [`Unsupported`](crate::Error::Unsupported) if no map of this crate serves the
    /// kernel under the constraints, or the loss needs what is missing. [`Cancelled`](crate::Error::Cancelled) if a
    /// [watcher](crate::progress::watch) stops it.
    #[inline(never)]
    pub fn plan(&self) -> Result<Plan> {
        plan(self.with_known_kernel()?.as_ref())
    }
}

fn plan(planner: &Planner) -> Result<Plan> {
    let kernel = check(planner)?;
    check_stated(planner)?;
    let mut problem = Problem::new(planner, kernel)?;
    let scored = match planner.goal {
        Goal::Budget { measure, most } => problem.within(measure, most)?,
        Goal::MaxError { error, probability, measure } => {
            let found = max_error::reach(&mut problem, error, probability, measure)?;
            max_error::cheapest_first(found.into_iter().chain(problem.fitted_features()?), measure)
        }
    };
    problem.finish(scored)
}

impl Problem<'_> {
    fn finish(mut self, mut scored: Vec<Scored>) -> Result<Plan> {
        if scored.is_empty() {
            let why = match self.planner.goal {
                Goal::Budget { .. } => "none fits the budget",
                Goal::MaxError { .. } => {
                    "none with a closed form reaches the target with up to 4 million frequencies"
                }
            };
            self.space.left_out.push(LeftOut { what: "all recipes".into(), why: why.into() });
        }
        // With an error to reach the cheapest come first.
        if matches!(self.planner.goal, Goal::Budget { .. }) {
            rank(&mut scored);
        }
        let measure = self.planner.goal.measure();
        // A recipe of the caller's keeps its row unless it is a recipe of the crate.
        let is_stated = |one: &Scored| self.space.maps[one.candidate.map].is_stated();
        let scored = self.merged(scored, |a, b| match is_stated(a) || is_stated(b) {
            true => a.candidate.recipe == b.candidate.recipe,
            false => a.is_as(b),
        });
        self.say_what_is_missing(&scored);
        let advice = self.advice(&scored)?;
        let whys = words::sentences(&scored, self.planner, measure);
        let features: Vec<usize> = scored.iter().map(|one| one.candidate.cost.features).collect();
        let bounds = self.bounds(&features)?;
        let choices = scored.into_iter().zip(whys).map(|(one, why)| self.choice(one, why, &bounds)).collect();
        Ok(Plan {
            title: words::title(self.planner, self.pairs.len()),
            loss: self.planner.loss,
            measure,
            choices,
            advice,
            left_out: self.space.left_out,
            pairs: self.pairs.len(),
            calibration: self.calibration,
        })
    }

    /// Says of which recipes of the caller's there is no row.
    fn say_what_is_missing(&mut self, scored: &[Scored]) {
        let rows = |name: &str| {
            let is_row = |one: &Scored| self.space.maps[one.candidate.map].name == name;
            scored
                .iter()
                .any(|one| is_row(one) || one.also.iter().any(|also| also.starts_with(&format!("{name}, "))))
        };
        let is_said = |name: &str| {
            let with_coupling = format!("{name}: ");
            self.space.left_out.iter().any(|left| left.what == name || left.what.starts_with(&with_coupling))
        };
        let missing: Vec<String> = (self.planner.stated.iter().map(|stated| &stated.name))
            .filter(|name| !rows(name) && !is_said(name))
            .cloned()
            .collect();
        let why = match self.planner.goal {
            Goal::Budget { .. } => "one frequency is too dear, or others are far better at pairs of points",
            Goal::MaxError { .. } => "it has no closed form, or others reach the error at far less cost",
        };
        self.space.left_out.extend(missing.into_iter().map(|what| LeftOut { what, why: why.into() }));
    }

    /// Whether a sample of pairs, draws or an approximation leaves the loss uncertain by a factor, or nothing is known of it. Where all pairs of all points
    /// were evaluated, other points may have other errors, but these have no others.
    fn is_uncertain(&self, one: &Scored) -> bool {
        let loss = one.forecast.loss;
        let is_all = self.task_loss.as_ref().map_or(self.pairs.is_all(), TaskLoss::is_of_all);
        let sampled = !is_all || one.is_of_some_pairs() || loss.basis == Basis::HeldOut;
        let error = if sampled { loss.standard_error } else { one.draws };
        // Few draws may have missed what rules a quantile.
        let missed = loss.basis != Basis::ClosedForm && loss.standard_error > MISSED * loss.value.abs();
        let is_known = loss.value.is_finite() && error <= UNCERTAIN * loss.value.abs();
        missed || !is_known
    }

    fn choice(&self, one: Scored, why: String, bounds: &Bounds) -> RankedRecipe {
        let uncertain = self.is_uncertain(&one);
        let (map, coupling) = self.names(&one.candidate);
        let Scored { candidate, forecast, .. } = one;
        RankedRecipe {
            map,
            coupling,
            uncertain,
            m: candidate.m,
            limits: bounds.at(candidate.cost.features),
            recipe: candidate.recipe,
            forecast,
            cost: candidate.cost,
            biased: candidate.biased,
            why,
        }
    }
}
