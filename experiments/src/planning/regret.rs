//! What a plan loses on points that it has not seen, to the best of its own choices and against simple choosers.
//!
//! A plan is made on one half of the points. Its choices are judged on the other half, by their closed forms, else by draws: the
//! first ones, and every few of those whose losses are several times larger, for a mean over all. The regret of a choice is its
//! loss there over the least one, less 1. Where draws are too rare for a loss to be judged, it is the larger of the regrets of
//! the median and of the 90 % quantile of relative errors. Seeds are fixed, so that the table is the same each time.

use std::collections::BTreeMap;
use std::fmt;

use random_features::frequency::Orthogonal;
use random_features::kernel::{Gaussian, Softmax};
use random_features::planner::{Expected, Forecast, Loss, Planner, RankedRecipe};
use random_features::recipe::{AnyCoupling, Draw};
use random_features::{Positive, Recipe, Result};

use super::kinds::Kind;

/// Features of all recipes.
pub const FEATURES: usize = 128;
/// The regret that a plan may have, unless two standard errors are more.
const BOUND: f64 = 0.1;
/// Choices that are judged all, and one in how many of the others.
const FIRST: usize = 16;
const STEP: usize = 5;
/// Batches of draws of recipes without a closed form, and the relative standard error that they may have.
const BATCHES: u64 = 4;
const SPREAD: f64 = 0.02;
/// The regret beyond which all are alike, so that one infinite loss does not rule a mean.
const MOST: f64 = 1e3;

/// The regrets of the plan, of positive orthogonal features and of a random choice, for one kind of data, a kernel and a loss.
pub struct Row {
    pub name: String,
    pub planner: f64,
    pub naive: f64,
    pub random: f64,
    /// Two standard errors of the least loss, relative to it, or the bound.
    pub allowed: f64,
    pub chosen: String,
    least: String,
    /// Whether the choice is judged by quantiles.
    by_quantiles: bool,
    judged: usize,
    unjudged: usize,
}

/// The rows of a kind, over plans with these couplings, or all; with so many draws in a batch.
pub fn rows(kind: &Kind, softmax: bool, couplings: Option<&[AnyCoupling]>, draws: usize) -> Result<Vec<Row>> {
    let [seen, unseen] = kind.planners(softmax)?;
    let seen = match couplings {
        Some(couplings) => seen.with_couplings(couplings.iter().copied()),
        None => seen,
    };
    let draw = Draw::new(kind.queries.ncols(), FEATURES, Orthogonal);
    let naive = match softmax {
        true => Positive.recipe(draw, Softmax::default()),
        false => Positive.recipe(draw, Gaussian::default()),
    };
    let naive = Judged::new(&unseen, &naive, draws)?;
    let mut known: BTreeMap<String, Judged> = BTreeMap::new();
    let mut row = |loss: &Loss| -> Result<Row> {
        let plan = seen.clone().with_max_features(FEATURES).with_loss(*loss).plan()?;
        let mut all: Vec<Found> = Vec::new();
        for (i, choice) in plan.choices.iter().enumerate() {
            if i < FIRST || i.is_multiple_of(STEP) {
                let name = label(choice);
                if !known.contains_key(&name) {
                    known.insert(name.clone(), Judged::new(&unseen, &choice.recipe, draws)?);
                }
                let judged = &known[&name];
                all.push(Found { name, loss: judged.loss(*loss), forecast: judged.forecast });
            }
        }
        let (kernel, naive) = (if softmax { "softmax" } else { "Gaussian" }, of(&naive.forecast, *loss));
        Ok(Row::of(format!("{}, {kernel}, {loss:?}", kind.name), &all, naive))
    };
    losses(kind.name, softmax).iter().map(&mut row).collect()
}

/// A choice on unseen points.
struct Found {
    name: String,
    /// `None` where draws say too little.
    loss: Option<Expected>,
    forecast: Forecast,
}

/// What a choice and its recipe are called.
pub fn label(choice: &RankedRecipe) -> String {
    format!("{} / {} / m = {}", choice.map, choice.coupling, choice.m)
}

/// The loss of a kind: at large norms few pairs rule the error of the Gram matrix, and quantiles say what happens to the others.
fn losses(kind: &str, softmax: bool) -> &'static [Loss] {
    match softmax && ["large", "equal-norms", "heavy-tailed", "attention"].contains(&kind) {
        true => &[Loss::RelativeMedian, Loss::RelativeNinety],
        false => &[Loss::Gram],
    }
}

fn of(forecast: &Forecast, loss: Loss) -> Expected {
    match loss {
        Loss::RelativeMedian => forecast.relative_median(),
        Loss::RelativeNinety => forecast.relative_ninety(),
        _ => forecast.gram,
    }
}

/// The errors of a recipe on unseen points, and without a closed form those of batches of draws.
struct Judged {
    forecast: Forecast,
    batches: Vec<Forecast>,
}

impl Judged {
    fn new(unseen: &Planner, recipe: &Recipe, draws: usize) -> Result<Self> {
        if let Some(forecast) = unseen.forecast(recipe)? {
            return Ok(Judged { forecast, batches: Vec::new() });
        }
        let batches = (0..BATCHES).map(|k| unseen.measure(recipe, draws, k << 32)).collect::<Result<_>>()?;
        Ok(Judged { forecast: unseen.measure(recipe, draws * BATCHES as usize, 1 << 48)?, batches })
    }

    /// A loss; `None` where draws say too little.
    fn loss(&self, loss: Loss) -> Option<Expected> {
        let count = self.batches.len() as f64;
        let values = || self.batches.iter().map(|batch| of(batch, loss).value);
        let mean = values().sum::<f64>() / count;
        let variance = values().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
        // A standard error from four batches is uncertain by a half itself.
        let known = self.batches.is_empty() || (variance / count).sqrt() <= 1.5 * SPREAD * mean;
        known.then(|| of(&self.forecast, loss))
    }
}

impl Row {
    /// From the losses of choices in the order of a plan, and that of the naive choice.
    fn of(name: String, all: &[Found], naive: Expected) -> Self {
        let known = || all.iter().filter_map(|found| found.loss.map(|loss| (found, loss)));
        let best = known().min_by(|a, b| a.1.value.total_cmp(&b.1.value));
        let least = best.map_or(naive, |best| best.1);
        let regret = |value: f64| (value / least.value - 1.0).min(MOST);
        let of_quantiles = |found: &Found| {
            let [own, of_best] = [found, best.map_or(found, |best| best.0)].map(|one| one.forecast);
            let [median, ninety] = [Forecast::relative_median, Forecast::relative_ninety]
                .map(|error| error(&own).value / error(&of_best).value - 1.0);
            median.max(ninety).clamp(0.0, MOST)
        };
        let judged = known().count();
        let mean = known().map(|(_, loss)| regret(loss.value).ln_1p()).sum::<f64>() / judged as f64;
        let of_choice =
            |found: &Found| found.loss.map_or_else(|| of_quantiles(found), |loss| regret(loss.value));
        Row {
            name,
            planner: all.first().map_or(MOST, of_choice),
            naive: regret(naive.value),
            random: mean.exp_m1(),
            allowed: (2.0 * least.standard_error / least.value).max(BOUND),
            chosen: all.first().map_or("none", |first| &first.name).into(),
            least: best.map_or("the naive choice", |best| &best.0.name).into(),
            by_quantiles: all.first().is_some_and(|first| first.loss.is_none()),
            judged,
            unjudged: all.len() - judged,
        }
    }
}

/// The geometric mean of what a column has over 1, less 1.
pub fn mean(rows: &[Row], of: fn(&Row) -> f64) -> f64 {
    (rows.iter().map(|row| of(row).ln_1p()).sum::<f64>() / rows.len() as f64).exp_m1()
}

/// The titles of the columns.
pub fn head() -> String {
    let title = format!("Regret in % with {FEATURES} features, on points that the plan has not seen:");
    format!("{title}\n{:44} {:>8} {:>8} {:>8} {:>8}", "", "planner", "naive", "random", "allowed")
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [self.planner, self.naive, self.random, self.allowed].map(|regret| 100.0 * regret);
        write!(f, "{:44}", self.name)?;
        all.iter().try_for_each(|percent| write!(f, " {percent:8.2}"))?;
        let Row { chosen, least, judged, unjudged, by_quantiles, .. } = self;
        write!(f, "\n    chosen {chosen}{}", if *by_quantiles { ", by quantiles" } else { "" })?;
        if chosen != least {
            write!(f, "; least {least}")?;
        }
        write!(f, "; {judged} judged")?;
        if *unjudged > 0 { write!(f, ", {unjudged} beyond what draws can judge") } else { Ok(()) }
    }
}
