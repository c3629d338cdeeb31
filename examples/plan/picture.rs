//! The picture: errors against costs.

use std::path::Path;

use random_features::planner::{Choice, Plan, Planner};

use crate::plot::{self, Panel, Series};
use crate::{progress, verification};

/// The recipes whose errors are followed over budgets.
const FOLLOWED: usize = 4;

/// Draws of a measured point, and those of a quick run.
const DRAWS: (usize, usize) = (32, 8);

/// Draws a panel of the first recipes over the number of features, and one of the recipes of which none that is cheaper is as
/// good: lines are expected errors, points measured ones.
pub fn draw(planner: &Planner, plan: &Plan, (seed, quick): (u64, bool), path: &Path) -> Result<(), String> {
    let draws = if quick { DRAWS.1 } else { DRAWS.0 };
    let plans = plans(planner, plan, quick)?;
    let followed = plan.choices.iter().take(FOLLOWED);
    let lines: Vec<(String, Vec<&Choice>)> = followed.map(|first| followed_over(&plans, first)).collect();
    let fronts = plans.iter().map(|(most, plan)| (format!("at most {most} features"), plan.pareto()));
    let fronts: Vec<(String, Vec<&Choice>)> = fronts.collect();
    let all: usize = lines.iter().chain(&fronts).map(|(_, choices)| choices.len()).sum();
    let mut done = 0;
    let mut series = |(name, choices): (String, Vec<&Choice>), cost: fn(&Choice) -> f64| {
        let mut points = Vec::new();
        for choice in &choices {
            progress::show("points of the picture", done, all);
            let seen = planner.measure(&choice.recipe, draws, verification::fresh(seed));
            points.push((cost(choice), seen.map_err(|error| error.to_string())?.loss.value));
            done += 1;
        }
        let line = choices.iter().map(|choice| (cost(choice), choice.forecast.loss.value)).collect();
        Ok::<_, String>(Series { name, line, points })
    };
    let features = |choice: &Choice| (choice.cost.features as f64).log2();
    let work = |choice: &Choice| choice.cost.multiplications.log10();
    let lines = lines.into_iter().map(|one| series(one, features)).collect::<Result<_, _>>()?;
    let fronts = fronts.into_iter().map(|one| series(one, work)).collect::<Result<_, _>>()?;
    progress::show("points of the picture", all, all);
    let panel = |title: &str, x: &str, series| Panel {
        title: title.into(),
        x_label: x.into(),
        y_label: format!("{} (lines: expected; points: measured)", plan.loss),
        series,
    };
    let panels = [
        panel("The first recipes", "log₂ of the features", lines),
        panel("None cheaper is as good", "log₁₀ of the multiplications a point", fronts),
    ];
    plot::write(&panels, path)
}

/// Plans for an eighth to twice the features of the best.
fn plans(planner: &Planner, plan: &Plan, quick: bool) -> Result<Vec<(usize, Plan)>, String> {
    let features = plan.best().map_err(|error| error.to_string())?.cost.features;
    let all = [features / 8, features / 4, features / 2, features, 2 * features];
    let budgets: Vec<usize> = all.into_iter().filter(|budget| *budget >= 8).collect();
    let budgets = if quick { &budgets[budgets.len().saturating_sub(2)..] } else { &budgets };
    let mut plans = Vec::new();
    for (i, budget) in budgets.iter().enumerate() {
        progress::show("plans for the picture", i, budgets.len());
        let plan = planner.clone().features(*budget).plan().map_err(|error| error.to_string())?;
        plans.push((*budget, plan));
    }
    progress::show("plans for the picture", budgets.len(), budgets.len());
    Ok(plans)
}

/// The map and the coupling of a recipe in all plans, whatever its parameters.
fn followed_over<'a>(plans: &'a [(usize, Plan)], first: &Choice) -> (String, Vec<&'a Choice>) {
    let same = |choice: &&Choice| family(choice) == family(first) && choice.coupling == first.coupling;
    let choices = plans.iter().filter_map(|(_, plan)| plan.choices.iter().find(same)).collect();
    (format!("{}, {}", family(first), first.coupling), choices)
}

/// The name of a map without its parameters.
fn family(choice: &Choice) -> &str {
    choice.map.split([',', '(']).next().unwrap_or(&choice.map).trim()
}
