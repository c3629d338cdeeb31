//! What plans once stated wrongly or did badly: orders of points with a period, budgets that are no multiple of a block, equal rows,
//! targets out of reach, and work that could not be stopped.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use super::data::{half, normal};
use super::{couplings, label, near};
use crate::threads::on_threads;
use ndarray::Axis;
use random_features::Error;
use random_features::Trigonometric;
use random_features::frequency::{Halton, Independent, Orthogonal};
use random_features::kernel::{Gaussian, Softmax};
use random_features::planner::{Loss, Plan, Planner, RankedRecipe};
use random_features::progress::{Progress, watch};
use random_features::recipe::Draw;
use random_features::theory::Basis;

/// The first rows state what closed forms say at all pairs.
fn is_honest(planner: &Planner, plan: &Plan) {
    for choice in plan.choices.iter().take(6).filter(|one| one.forecast.loss.basis == Basis::ClosedForm) {
        let all = planner.forecast(&choice.recipe).unwrap().unwrap().loss;
        near(choice.forecast.loss.value, all.value, &label(choice));
    }
}

/// Every fifth pair of 50 × 50 in row order has every fifth key, among which are all that are small.
#[test]
fn losses_of_keys_with_a_period() {
    let (x, mut y) = (normal(50, 4, 0.5, 1), normal(50, 4, 1.0, 2));
    y.rows_mut().into_iter().step_by(10).for_each(|mut row| row *= 0.05);
    for planner in [
        Planner::new(&x, &y).unwrap().with_kernel(Gaussian::default()),
        Planner::new(&x, &y).unwrap().with_kernel(Softmax::default()),
    ] {
        for loss in [Loss::Gram, Loss::RelativeMean] {
            let planner = planner.clone().with_couplings(couplings()).with_max_features(64).with_loss(loss);
            is_honest(&planner, &planner.plan().unwrap());
        }
    }
}

/// Keys of log-normal norms, of which a few pairs rule the Gram matrix: what does not see them must not win.
#[test]
fn losses_of_keys_of_heavy_tailed_norms() {
    for seed in 0..2 {
        let (x, mut y) = (normal(60, 4, 0.5, 100 + seed), normal(60, 4, 0.5, 200 + seed));
        let sizes = normal(60, 1, 1.0, 300 + seed);
        y.axis_iter_mut(Axis(0)).zip(sizes.column(0)).for_each(|(mut row, v)| row *= f64::exp(*v));
        let planner = Planner::new(&x, &y).unwrap().with_couplings(couplings()).with_max_features(64);
        is_honest(&planner, &planner.plan().unwrap());
    }
}

/// Five frequencies are a block of four and one that is alone: four are better where a block has hardly any error.
#[test]
fn a_budget_is_an_upper_limit() {
    let x = normal(60, 4, 0.15, 1);
    for (planner, features) in [
        (Planner::of_one_set(&x).unwrap().with_kernel(Gaussian::default()), 8..=11),
        (Planner::new(&half(&x, 0), &half(&x, 1)).unwrap().with_kernel(Softmax::default()), 4..=14),
    ] {
        let planner = planner.with_couplings([Orthogonal.into()]);
        let least = |features| {
            planner.clone().with_max_features(features).plan().unwrap().best().unwrap().forecast.loss.value
        };
        let losses: Vec<f64> = features.map(least).collect();
        for pair in losses.windows(2) {
            // Losses that differ by half a percent count as equal.
            assert!(pair[1] <= 1.006 * pair[0], "{losses:?}");
        }
    }
}

/// On a line orthogonal frequencies are independent.
#[test]
fn rows_of_one_map_are_one_row() {
    let planner = Planner::of_one_set(&normal(30, 1, 0.5, 1)).unwrap().with_kernel(Gaussian::default());
    let plan =
        planner.with_couplings([Independent.into(), Orthogonal.into()]).with_max_features(8).plan().unwrap();
    let rows = |map: &str| plan.choices.iter().filter(|choice| choice.map == map).count();
    assert!(plan.choices[0].why.contains("the same map as "), "{plan}");
    assert!(rows("trigonometric") <= 1 && rows("positive") <= 1 && rows("hyperbolic") <= 1, "{plan:#}");
}

/// What the first row says of itself is so.
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
#[test]
fn the_first_row_says_why_it_is_first() {
    for seed in 0..4 {
        let x = normal(100, 3, 1.0, seed);
        let y = x.column(0).mapv(|v| (2.0 * v).sin()).insert_axis(Axis(1)) + normal(100, 1, 0.1, 50 + seed);
        let planner =
            Planner::of_one_set(&x).unwrap().with_kernel(Gaussian::default()).with_couplings(couplings());
        let plan = planner.with_ridge_targets(&y).unwrap().with_max_features(64).plan().unwrap();
        let loss = |k: usize| plan.choices[k].forecast.loss.value;
        let is_least = (0..plan.choices.len()).all(|k| loss(0) <= loss(k));
        assert_eq!(plan.choices[0].why.starts_with("the least loss"), is_least, "{plan}");
    }
}

#[test]
fn targets_out_of_reach_have_a_number() {
    let x = normal(60, 3, 0.4, 1);
    let planner = Planner::of_one_set(&x).unwrap().with_kernel(Gaussian::default());
    let plan = planner.with_couplings(couplings()).with_max_error(1e-7).unwrap().plan().unwrap();
    assert!(plan.choices.is_empty());
    let (_, why) = plan.left_out().find(|(_, why)| why.contains("would take some ")).unwrap();
    let number: f64 = why.split(' ').nth(3).unwrap().parse().unwrap();
    // The error is some 1/√m.
    assert!((1e11..1e15).contains(&number), "{why:?}");
}

#[test]
fn uncertain_losses_are_marked() {
    // Of 300 × 300 pairs two thousand are evaluated, and a few rule the Gram matrix.
    let (x, mut y) = (normal(300, 4, 0.7, 1), normal(300, 4, 0.7, 2));
    let sizes = normal(300, 1, 1.0, 3);
    y.axis_iter_mut(Axis(0)).zip(sizes.column(0)).for_each(|(mut row, v)| row *= f64::exp(*v));
    let planner = Planner::new(&x, &y).unwrap().with_couplings([Independent.into()]).only_unbiased();
    let plan = planner.with_max_features(32).plan().unwrap();
    assert!(plan.choices.iter().any(|choice| choice.uncertain), "{plan}");
    let far = |choice: &RankedRecipe| {
        let loss = choice.forecast.loss;
        loss.value.is_infinite() || loss.standard_error > 0.15 * loss.value
    };
    assert!(plan.choices.iter().all(|choice| choice.uncertain == far(choice)), "{plan}");
    assert!(format!("{plan}").contains('?'), "{plan}");
    let small = normal(60, 3, 0.2, 1);
    let planner = Planner::of_one_set(&small).unwrap().with_kernel(Softmax::default());
    let plan = planner.with_couplings(couplings()).with_max_features(32).plan().unwrap();
    assert!(!plan.best().unwrap().uncertain && !format!("{plan}").contains('?'), "{plan}");
}

/// Four of five points are 0, where positive features are exact and others are not: the median error is 0, and nothing is less.
#[test]
fn no_error_is_the_least() {
    let mut x = normal(50, 3, 0.4, 1);
    x.rows_mut().into_iter().enumerate().filter(|(i, _)| i % 5 > 0).for_each(|(_, mut row)| row.fill(0.0));
    let planner = Planner::new(&x, &x).unwrap().with_couplings(couplings()).with_loss(Loss::RelativeMedian);
    let plan = planner.with_max_features(16).plan().unwrap();
    let losses: Vec<f64> = plan.choices.iter().map(|choice| choice.forecast.loss.value).collect();
    assert!(losses.iter().any(|loss| *loss > 0.0 && *loss < 1.0), "{losses:?}");
    assert_eq!(losses[0], 0.0, "{losses:?}");
    assert!(losses.windows(2).all(|pair| pair[0] <= 1.006 * pair[1]), "{losses:?}");
}

/// All of 120 pairs are evaluated at once, for the recipes that are far behind as well.
#[test]
fn few_pairs_are_all_pairs() {
    let planner = Planner::new(&normal(12, 3, 0.4, 1), &normal(10, 3, 0.4, 2)).unwrap();
    let plan = planner.with_couplings(couplings()).with_max_features(32).plan().unwrap();
    assert!(plan.choices.len() > 30, "{plan:#}");
    for choice in &plan.choices {
        assert!(
            !choice.why.contains("some of the pairs") && !choice.uncertain,
            "{}: {}",
            label(choice),
            choice.why
        );
    }
}

/// Plans, forecasts and measurements tell a watcher their steps, and stop at any of them.
#[test]
fn long_work_is_watched_and_stopped() {
    // Of 64 points not all pairs are evaluated.
    let x = normal(64, 3, 0.4, 1);
    let planner = Planner::of_one_set(&x).unwrap().with_kernel(Gaussian::default());
    let planner = planner.with_couplings([Orthogonal.into(), Halton.into()]).with_max_features(16);
    #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
    let planner = planner.with_nystroem();
    let recipe = Trigonometric.recipe(Draw::new(3, 8, Orthogonal), Gaussian::default());
    let tasks = Arc::new(Mutex::new(Vec::new()));
    let sink = tasks.clone();
    let seen = move |progress: &Progress<'_>| {
        sink.lock().unwrap().push((progress.task, progress.done));
        ControlFlow::Continue(())
    };
    let work = || (planner.plan().unwrap(), planner.measure(&recipe, 64, 0).unwrap());
    let watched = on_threads(1, || watch(seen.clone(), work));
    assert!(watched == work());
    let tasks: Vec<_> = std::mem::take(&mut *tasks.lock().unwrap());
    let names: std::collections::BTreeSet<&str> = tasks.iter().map(|task| task.0).collect();
    assert!(names.len() >= 5, "{names:?}");
    for name in names {
        let stop = move |progress: &Progress<'_>| match progress.task == name && progress.done > 0 {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        // On one thread a watcher sees each step: of two at once it is told one.
        let work = || planner.plan().and_then(|_| planner.measure(&recipe, 64, 0));
        let stopped = on_threads(1, || watch(stop, || work().map(drop)));
        assert_eq!(stopped, Err(Error::Cancelled), "{name}");
    }
    let stopped = watch(
        |_: &Progress<'_>| ControlFlow::Break(()),
        || {
            let first = planner.plan().map(drop);
            (first, planner.forecast(&recipe).map(drop), planner.measure(&recipe, 4, 0).map(drop))
        },
    );
    assert_eq!(stopped, (Err(Error::Cancelled), Err(Error::Cancelled), Err(Error::Cancelled)));
    let target = planner.clone().with_max_error(0.1).unwrap();
    assert_eq!(
        watch(|_: &Progress<'_>| ControlFlow::Break(()), || target.plan().map(drop)),
        Err(Error::Cancelled)
    );
}
