//! The picture: errors against costs.

use std::path::Path;

use experiments::plot::{self, Panel, Series};
use experiments::progress;
use random_features::planner::{Measure, Plan, Planner, RankedRecipe};

use crate::verification;

/// The recipes whose errors are followed over budgets.
const FOLLOWED: usize = 4;

/// Draws of a measured point.
const DRAWS: usize = 16;

/// Draws a panel of the first recipes over the number of features, and one of the recipes of all budgets of which none that is
/// cheaper is as good. Lines are expected errors, points measured ones, left out where they mean nothing.
pub fn draw(planner: &Planner, plan: &Plan, (seed, quick): (u64, bool), path: &Path) -> Result<(), String> {
    let plans = plans(planner, plan, quick)?;
    let followed = plan.choices.iter().take(FOLLOWED).map(|first| followed_over(&plans, first));
    let lines = panel(planner, plan, seed, followed.collect(), FEATURES)?;
    let front = vec![("least error for its cost".to_string(), front(&plans))];
    let front = panel(planner, plan, seed, front, MULTIPLICATIONS)?;
    plot::write(&[lines, front], path)
}

/// A cost on a logarithmic axis, with the title of its panel and its name.
type Axis = (&'static str, &'static str, fn(&RankedRecipe) -> f64);

const FEATURES: Axis =
    ("The first recipes", "log₂ of the features", |choice| (choice.recipe.feature_dim() as f64).log2());
const MULTIPLICATIONS: Axis =
    ("The best for each cost", "log₁₀ of the multiplications a point", |choice| {
        choice.cost(Measure::Multiplications).log10()
    });

/// A panel of series of recipes.
fn panel(
    planner: &Planner,
    plan: &Plan,
    seed: u64,
    recipes: Vec<(String, Vec<&RankedRecipe>)>,
    (title, x_label, cost): Axis,
) -> Result<Panel, String> {
    let all: usize = recipes.iter().map(|(_, choices)| choices.len()).sum();
    let mut done = 0;
    let mut series = Vec::new();
    for (name, choices) in recipes {
        let mut points = Vec::new();
        for choice in &choices {
            progress::show("points of the picture", done, all);
            let seen = verification::measured(planner, choice, plan.loss, DRAWS, seed)?;
            points.extend((!seen.is_vague()).then_some((cost(choice), seen.loss.value)));
            done += 1;
        }
        let line = choices.iter().map(|choice| (cost(choice), choice.forecast.loss.value)).collect();
        series.push(Series { name, line, points });
    }
    progress::show("points of the picture", all, all);
    let y_label = format!("{} (lines: expected; points: measured)", plan.loss);
    Ok(Panel { title: title.into(), x_label: x_label.into(), y_label, series })
}

/// Plans for an eighth to twice the features of the best; in a quick run for a half.
fn plans(planner: &Planner, plan: &Plan, quick: bool) -> Result<Vec<Plan>, String> {
    let features = plan.best().map_err(|error| error.to_string())?.recipe.feature_dim();
    let all = [features / 8, features / 4, features / 2, features, 2 * features];
    let budgets = if quick { &all[2..4] } else { &all[..] };
    let mut plans = Vec::new();
    for (i, budget) in budgets.iter().enumerate() {
        progress::show("plans for the picture", i, budgets.len());
        // A budget may be too small for any map.
        plans.extend(planner.clone().with_max_features(*budget).plan().ok());
    }
    progress::show("plans for the picture", budgets.len(), budgets.len());
    Ok(plans)
}

/// The map and the coupling of a recipe in all plans, whatever its parameters.
fn followed_over<'a>(plans: &'a [Plan], first: &RankedRecipe) -> (String, Vec<&'a RankedRecipe>) {
    let same = |choice: &&RankedRecipe| family(choice) == family(first) && choice.coupling == first.coupling;
    let choices = plans.iter().filter_map(|plan| plan.choices.iter().find(same)).collect();
    (format!("{}, {}", family(first), first.coupling), choices)
}

/// The name of a map without its parameters, which have digits.
fn family(choice: &RankedRecipe) -> String {
    let words = choice.map.split(", ").map(|part| part.split(|c: char| c.is_ascii_digit()).next());
    let whole = words.zip(choice.map.split(", ")).enumerate().filter_map(|(i, (word, part))| {
        let word = word.unwrap_or_default().trim();
        (i == 0 || word == part).then_some(word)
    });
    whole.collect::<Vec<_>>().join(", ")
}

/// The recipes of all plans of which none that is cheaper is as good, the cheapest first.
fn front(plans: &[Plan]) -> Vec<&RankedRecipe> {
    let mut front: Vec<&RankedRecipe> = plans.iter().flat_map(Plan::pareto).collect();
    front.sort_by(|a, b| a.cost(Measure::Multiplications).total_cmp(&b.cost(Measure::Multiplications)));
    let mut least = f64::INFINITY;
    front.retain(|choice| {
        let better = choice.forecast.loss.value < least;
        least = least.min(choice.forecast.loss.value);
        better
    });
    front
}
