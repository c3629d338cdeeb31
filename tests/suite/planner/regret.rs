//! What a plan loses on points that it has not seen, to the best of its own candidates and against simple choosers.
//!
//! A plan is made on one half of the points. Its choices are judged on the other half, by their closed forms, else by draws: the
//! first ones, and every few of those whose losses are several times larger, for a mean over all. The regret of a choice is its
//! loss there over the least one, less 1. Seeds are fixed, so that the table is the same each time; `--nocapture` shows it.

use std::collections::BTreeMap;

use super::data::{Kind, kinds};
use super::label;
use crate::common::Sample;
use random_features::frequency::{Antithetic, Draw, Independent, Orthogonal, Simplex};
use random_features::kernel::{Gaussian, Softmax};
use random_features::planner::{Expected, Forecast, Loss, Planner};
use random_features::{Positive, Recipe};

/// Features of all recipes.
const FEATURES: usize = 128;
/// The regret that a plan may have, unless two standard errors are more.
const BOUND: f64 = 0.1;
/// Choices that are judged all, and one in how many of the others.
const FIRST: usize = 16;
const STEP: usize = 5;
/// Draws of recipes without a closed form, in batches, and the relative standard error that they may have.
const BATCHES: u64 = 4;
const DRAWS: usize = 128;
const SPREAD: f64 = 0.02;
/// The regret beyond which all are alike, so that one infinite loss does not rule a mean.
const MOST: f64 = 1e3;

fn of(forecast: &Forecast, loss: Loss) -> Expected {
    match loss {
        Loss::RelativeMedian => forecast.relative.median,
        Loss::RelativeNinety => forecast.relative.ninety,
        _ => forecast.gram,
    }
}

/// The errors on unseen points, and without a closed form those of batches of draws.
fn judged(unseen: &Planner, recipe: &Recipe) -> (Forecast, Vec<Forecast>) {
    if let Some(closed) = unseen.forecast(recipe).unwrap() {
        return (closed, Vec::new());
    }
    let batches = (0..BATCHES).map(|k| unseen.measure(recipe, DRAWS, k << 32).unwrap()).collect();
    (unseen.measure(recipe, DRAWS * BATCHES as usize, 1 << 48).unwrap(), batches)
}

/// A loss on unseen points; `None` where draws say too little.
fn loss_of((forecast, batches): &(Forecast, Vec<Forecast>), loss: Loss) -> Option<Expected> {
    // Batches tell the standard error of all draws, whatever that of the points is; it is uncertain by a half itself.
    let sample = Sample::of(&batches.iter().map(|batch| of(batch, loss).value).collect::<Vec<_>>());
    let known = batches.is_empty() || sample.error <= 1.5 * SPREAD * sample.mean;
    known.then(|| of(forecast, loss))
}

/// Of one kind of data, a kernel and a loss: regrets of the plan, of positive orthogonal features, and of a random choice.
struct Row {
    name: String,
    planner: f64,
    naive: f64,
    random: f64,
    /// Two standard errors of the least loss, relative to it, or the bound.
    allowed: f64,
    chosen: String,
    least: String,
    unjudged: usize,
}

/// The loss of a kind: at large norms few pairs rule the error of the Gram matrix, and quantiles say what happens to the others.
fn losses(kind: &Kind, softmax: bool) -> &'static [Loss] {
    let large = ["large norms", "equal norms, extreme angles", "heavy-tailed", "attention"];
    match softmax && large.contains(&kind.name) {
        true => &[Loss::RelativeMedian, Loss::RelativeNinety],
        false => &[Loss::Gram],
    }
}

fn rows(kind: &Kind, softmax: bool) -> Vec<Row> {
    let [seen, unseen] = kind.planners(softmax);
    let kernel = if softmax { "softmax" } else { "Gaussian" };
    let d = kind.queries.ncols();
    let draw = Draw::new(d, FEATURES, Orthogonal);
    let naive = match softmax {
        true => Positive.recipe(draw, Softmax::default()),
        false => Positive.recipe(draw, Gaussian::default()),
    };
    let naive = unseen.forecast(&naive).unwrap().unwrap();
    let mut found: BTreeMap<String, (Forecast, Vec<Forecast>)> = BTreeMap::new();
    let mut row = |loss: &Loss| {
        let planner = seen.clone().couplings([
            Independent.into(),
            Orthogonal.into(),
            Simplex::default().into(),
            Antithetic(Orthogonal).into(),
        ]);
        let planner = planner.features(FEATURES).loss(*loss);
        let plan = planner.plan().unwrap();
        let all: Vec<(String, Option<Expected>)> = (plan.choices.iter().enumerate())
            .filter(|(i, _)| *i < FIRST || i.is_multiple_of(STEP))
            .map(|(_, choice)| {
                let known = found.entry(label(choice)).or_insert_with(|| judged(&unseen, &choice.recipe));
                (label(choice), loss_of(known, *loss))
            })
            .collect();
        let known: Vec<(&String, Expected)> =
            all.iter().filter_map(|(name, found)| found.map(|found| (name, found))).collect();
        let (least_name, least) = *known.iter().min_by(|a, b| a.1.value.total_cmp(&b.1.value)).unwrap();
        let regret = |value: f64| (value / least.value - 1.0).min(MOST);
        let mean_log = known.iter().map(|(_, found)| regret(found.value).ln_1p()).sum::<f64>();
        Row {
            name: format!("{}, {kernel}, {loss:?}", kind.name),
            // A choice that cannot be judged has the regret of the worst.
            planner: all[0].1.map_or(MOST, |found| regret(found.value)),
            naive: regret(of(&naive, *loss).value),
            random: (mean_log / known.len() as f64).exp_m1(),
            allowed: (2.0 * least.standard_error / least.value).max(BOUND),
            chosen: all[0].0.clone(),
            least: least_name.clone(),
            unjudged: all.len() - known.len(),
        }
    };
    losses(kind, softmax).iter().map(&mut row).collect()
}

#[test]
fn plans_are_good_on_points_they_have_not_seen() {
    let mut all = Vec::new();
    for kind in kinds() {
        for softmax in [true, false] {
            all.extend(rows(&kind, softmax));
        }
    }
    println!("Regret in % with {FEATURES} features, on points that the plan has not seen:");
    println!("{:52} {:>8} {:>8} {:>8} {:>8}", "", "planner", "naive", "random", "allowed");
    for row in &all {
        let [planner, naive, random, allowed] =
            [row.planner, row.naive, row.random, row.allowed].map(|regret| 100.0 * regret);
        println!("{:52} {planner:8.2} {naive:8.1} {random:8.1} {allowed:8.1}", row.name);
        println!("{:10}chosen {}; least {}; {} not judged", "", row.chosen, row.least, row.unjudged);
    }
    let mean = |of: fn(&Row) -> f64| {
        (all.iter().map(|row| of(row).ln_1p()).sum::<f64>() / all.len() as f64).exp_m1()
    };
    let (planner, naive, random) = (mean(|row| row.planner), mean(|row| row.naive), mean(|row| row.random));
    println!("Geometric means: planner {planner:.4}, naive {naive:.4}, random {random:.4}");
    for row in &all {
        assert!(row.planner <= row.allowed, "{}: regret {} of {}", row.name, row.planner, row.allowed);
        let lost = (1.0 + row.planner) / (1.0 + row.naive) - 1.0;
        assert!(lost <= row.allowed, "{}: loses {lost} to positive orthogonal features", row.name);
    }
    assert!(planner < naive && planner < random, "{planner}, {naive}, {random}");
}
