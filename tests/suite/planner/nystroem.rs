//! Nyström features in plans: their errors at held-out points, what they cost, and where there are none.
#![cfg(any(feature = "faer", feature = "ndarray-linalg"))]

use super::data::{half, kinds, normal};
use super::{couplings, near};
use ndarray::{Array2, Array4, Axis};
use random_features::apply::RidgeSearch;
use random_features::frequency::Independent;
use random_features::kernel::{Gaussian, Kernel, Softmax};
use random_features::map::{AnyKernel, Nystroem};
use random_features::planner::{Loss, Measure, Plan, Planner, RankedRecipe};
use random_features::theory::Basis;
use random_features::{Error, Map, Recipe};

/// The plan with Nyström features beside maps of independent frequencies.
fn planned(planner: &Planner) -> Plan {
    planner.clone().with_couplings([Independent.into()]).with_nystroem().plan().unwrap()
}

fn nystroem(plan: &Plan) -> Option<&RankedRecipe> {
    plan.choices.iter().find(|choice| choice.map == "Nyström")
}

/// ‖K̂ − K‖/‖K‖ over all pairs of points, by loops.
fn error(map: &Map<f64>, kernel: &dyn Kernel<f64>, x: &Array2<f64>) -> f64 {
    error_between(map, kernel, x, x)
}

/// ‖K̂ − K‖/‖K‖ over all pairs of a point x and a point y, by loops.
fn error_between(map: &Map<f64>, kernel: &dyn Kernel<f64>, x: &Array2<f64>, y: &Array2<f64>) -> f64 {
    let [left, right] = [x, y].map(|points| map.transform(points).unwrap());
    let (mut squares, mut all) = (0.0, 0.0);
    for (i, x_i) in x.rows().into_iter().enumerate() {
        for (j, y_j) in y.rows().into_iter().enumerate() {
            let exact = kernel.value(&x_i, &y_j).unwrap();
            let estimate: f64 = left.row(i).iter().zip(right.row(j)).map(|(a, b)| a * b).sum();
            squares += (estimate - exact).powi(2);
            all += exact * exact;
        }
    }
    (squares / all).sqrt()
}

/// Errors that a plan states are those at points of the same kind that features were not fitted to: a little larger, since it fits them
/// to half of the points, and far larger than at the points themselves.
#[test]
fn errors_are_those_at_held_out_points() {
    for kind in kinds().into_iter().filter(|kind| ["small", "equal-norms", "counts"].contains(&kind.name)) {
        // Points may be in the order of their clusters.
        let every_other = |first: usize| kind.queries.slice(ndarray::s![first..; 2, ..]).to_owned();
        let (x, fresh) = (every_other(0), every_other(1));
        let planner = Planner::of_one_set(&x).unwrap().with_kernel(Gaussian::default()).with_max_features(24);
        let plan = planned(&planner);
        let one = nystroem(&plan).unwrap();
        let map: Map<f64> = one.recipe.draw(1).unwrap();
        let [new, old] = [&fresh, &x].map(|x| error(&map, &Gaussian::default(), x));
        let stated = one.forecast.gram.value;
        assert!(stated > 0.7 * new && stated < 1.7 * new, "{}: {stated}, at new points {new}", kind.name);
        assert!(stated > old, "{}: {stated}, at the fitted points {old}", kind.name);
        assert!(one.forecast.relative_median().value > 0.0 && one.forecast.gram.standard_error > 0.0);
    }
}

/// A row of the plan is what `Nystroem::fit` makes of the points, whatever the seed of the draw.
#[test]
fn its_recipe_is_the_fit_of_the_points() {
    let x = normal(120, 3, 1.0, 1);
    let planner = Planner::of_one_set(&x).unwrap().with_kernel(Gaussian::new(1.5).unwrap()).with_seed(5);
    let planner = planner.with_couplings(couplings()).with_max_features(24);
    let plan = planner.clone().with_nystroem().plan().unwrap();
    let one = nystroem(&plan).unwrap();
    let fitted = Nystroem::fit(Gaussian::new(1.5).unwrap(), &x, 24, 5).unwrap();
    assert_eq!(one.recipe, fitted.recipe());
    assert!(one.biased && one.coupling == "–" && one.m == 24);
    let [a, b] = [1, 2].map(|seed| one.recipe.draw::<f64>(seed).unwrap().transform(&x).unwrap());
    assert_eq!(a, b);
    assert_eq!(one.forecast.gram.basis, Basis::HeldOut);
    assert!(one.why.contains("held-out points"), "{}", one.why);
    // Without the option there is none.
    let plain = planner.plan().unwrap();
    assert!(nystroem(&plain).is_none() && plain.left_out().all(|(what, _)| what != "Nyström"));
    // Others are as they are without it.
    let others = |plan: &Plan| {
        let others = plan.choices.iter().filter(|choice| choice.map != "Nyström");
        others.map(|choice| (choice.recipe.clone(), choice.forecast)).collect::<Vec<_>>()
    };
    assert_eq!(others(&plan), others(&plain));
}

/// Estimates of few features are negative at far points: forecasts at the fitted points are those of a loop, with their signs.
#[test]
fn forecasts_at_the_fitted_points_have_the_signs_of_estimates() {
    let x = normal(40, 3, 1.0, 3);
    let planner = Planner::of_one_set(&x).unwrap().with_kernel(Gaussian::default());
    let recipe = Nystroem::fit(Gaussian::default(), &x, 6, 0).unwrap().recipe();
    let map: Map<f64> = recipe.draw(0).unwrap();
    assert!(map.gram(&x, &x).unwrap().iter().any(|estimate| *estimate < -1e-3));
    let expected = error(&map, &Gaussian::default(), &x);
    near(planner.forecast(&recipe).unwrap().unwrap().gram.value, expected, "the forecast");
    near(planner.measure(&recipe, 2, 0).unwrap().gram.value, expected, "the measured error");
}

/// M kernel values at landmarks, each d multiplications and an exponential, and a product with a D × M matrix.
#[test]
fn its_cost_is_within_the_budget() {
    let x = normal(300, 5, 1.0, 1);
    let planner = Planner::of_one_set(&x).unwrap().with_kernel(Gaussian::new(2.0).unwrap());
    let multiplications = |features: usize| (2 * features * (5 + 1 + features)) as f64;
    for (measure, most, features) in [
        (Measure::Features, 40.0, 40),
        (Measure::Bytes, 8.0 * 33.0, 32),
        (Measure::Bytes, 8.0 * 33.0 - 1.0, 31),
        (Measure::Multiplications, multiplications(20), 20),
        (Measure::Multiplications, multiplications(20) - 1.0, 19),
    ] {
        let plan = planned(&planner.clone().with_budget(measure, most));
        let one = nystroem(&plan).unwrap();
        assert_eq!((one.m, one.recipe.feature_dim()), (features, features), "{most} {measure}");
        assert!(one.cost(measure) <= most);
        assert_eq!(one.cost(Measure::Multiplications), multiplications(features));
        assert_eq!(planner.cost(&one.recipe, Measure::Multiplications), multiplications(features));
        assert_eq!(one.cost(Measure::Bytes), 8.0 * (features + 1) as f64);
    }
    // No more than points, and no more than 512.
    let plan = planned(&Planner::of_one_set(&normal(9, 1, 1.0, 1)).unwrap().with_max_features(64));
    assert!(nystroem(&plan).unwrap().m <= 9);
    // One feature of two landmarks is too dear.
    let plan = planned(&planner.with_budget(Measure::Multiplications, 13.0));
    assert!(nystroem(&plan).is_none());
}

/// Features of two sets are fitted to both, and evaluated at pairs of points of which neither was fitted to.
#[test]
fn two_sets_are_fitted_together() {
    let kernels = [Gaussian::new(1.5).unwrap().into(), AnyKernel::from(Softmax::default())];
    for (kernel, unbiased) in kernels.into_iter().flat_map(|kernel| [(kernel.clone(), false), (kernel, true)])
    {
        // Features of half of the points of a kernel that grows may err several times as much.
        let (size, most) = if kernel.is_shift_invariant() { (0.7, 2.5) } else { (0.4, 8.0) };
        let [x, fresh_x] = [1, 3].map(|seed| normal(90, 3, size, seed));
        let [y, fresh_y] = [2, 4].map(|seed| normal(150, 3, size, seed) + size);
        let planner =
            Planner::new(&x, &y).unwrap().with_kernel(kernel.clone()).with_max_features(16).with_seed(5);
        let planner = if unbiased { planner.only_unbiased() } else { planner };
        let plan = planned(&planner);
        let name = if unbiased { "unbiased Nyström" } else { "Nyström" };
        let one = plan.choices.iter().find(|choice| choice.map == name).unwrap();
        let both = ndarray::concatenate![Axis(0), x, y];
        let expected = match unbiased {
            true => Nystroem::fit_unbiased(kernel.clone(), &both, 16, 5).unwrap(),
            false => Nystroem::fit(kernel.clone(), &both, 16, 5).unwrap().recipe(),
        };
        assert_eq!(one.recipe, expected, "{kernel}");
        let exact = kernel.kernel::<f64>().unwrap();
        let new = |seed| {
            let map = one.recipe.draw(seed).unwrap();
            error_between(&map, &*exact, &fresh_x, &fresh_y).powi(2)
        };
        let new = ((0..10).map(new).sum::<f64>() / 10.0).sqrt();
        let stated = one.forecast.gram.value;
        assert!(stated > 0.5 * new && stated < most * new, "{kernel}, {name}: {stated}, at new points {new}");
    }
}

/// Points of both sets that are near each other and far from all others: features that were fitted to neither estimate 0. Copies of
/// points in the other set are the same points.
#[test]
fn pairs_of_two_sets_are_held_out() {
    let x = Array2::from_shape_fn((16, 1), |(i, _)| 100.0 * i as f64);
    for y in [&x + 0.0, &x + 0.1] {
        let planner = Planner::new(&x, &y).unwrap().with_kernel(Gaussian::default()).with_max_features(16);
        let loss = nystroem(&planned(&planner)).unwrap().loss();
        // A pair of neighbours whose parts differ may have one of them among the landmarks of another pair, never of its own.
        near(loss, 1.0, "the loss");
    }
}

/// For a maximal error the plan has about the fewest features whose error at held-out points is not above it.
#[test]
fn a_maximal_error_is_reached_with_the_fewest() {
    let x = normal(200, 3, 1.0, 1);
    let planner = Planner::of_one_set(&x).unwrap().with_kernel(Gaussian::new(1.5).unwrap());
    for unbiased in [false, true] {
        let planner = if unbiased { planner.clone().only_unbiased() } else { planner.clone() };
        let name = if unbiased { "unbiased Nyström" } else { "Nyström" };
        let of = |plan: &Plan| plan.choices.iter().find(|choice| choice.map == name).cloned();
        for most in [0.3, 0.02] {
            let plan = planned(&planner.clone().with_max_error(most).unwrap());
            let one = of(&plan).unwrap();
            assert!(one.loss() <= most && one.forecast.gram.basis == Basis::HeldOut, "{most}: {one:?}");
            // There may be a thirty-second too many.
            let features = one.cost(Measure::Features);
            for fewer in [0.5 * features, features - 2.0 - features / 16.0] {
                let fewer = fewer.max(2.0);
                let Some(fewer) = of(&planned(&planner.clone().with_budget(Measure::Features, fewer))) else {
                    continue;
                };
                let is_less = fewer.cost(Measure::Features) < features;
                assert!(!is_less || fewer.loss() > most, "{name}, {most}: {} keep it too", fewer.m);
            }
            // So it is at new points, and for other draws.
            let fresh = normal(200, 3, 1.0, 9);
            let kernel = Gaussian::new(1.5).unwrap();
            let new = |seed| error(&one.recipe.draw(seed).unwrap(), &kernel, &fresh).powi(2);
            let new = ((50..60).map(new).sum::<f64>() / 10.0).sqrt();
            assert!(new < 1.6 * most, "{name}, {most}: {new} at new points");
            assert!(plan.choices.is_sorted_by_key(|choice| choice.cost(Measure::Features)), "{plan}");
        }
        let plan =
            planned(&planner.clone().with_kernel(Gaussian::new(0.01).unwrap()).with_max_error(1e-3).unwrap());
        assert!(of(&plan).is_none());
        assert!(plan.left_out().any(|(what, why)| what == name && why.contains("do not reach")), "{plan}");
        // The fewest are two beside random ones, which have two features for a frequency.
        let loose =
            planned(&planner.clone().with_kernel(Gaussian::new(50.0).unwrap()).with_max_error(0.9).unwrap());
        let said = loose.left_out().filter(|(what, _)| *what == name).map(|(_, why)| why.to_string());
        assert!(said.into_iter().all(|why| why.contains("smaller error")), "{loose}");
        // The cheapest in multiplications come first.
        let cheapest =
            planner.clone().with_max_error(0.1).unwrap().with_cheapest_in(Measure::Multiplications);
        let plan = planned(&cheapest);
        assert!(of(&plan).is_some());
        assert!(plan.choices.is_sorted_by_key(|choice| choice.cost(Measure::Multiplications)), "{plan}");
        let two = Planner::new(&half(&x, 0), &half(&x, 1)).unwrap().with_kernel(Gaussian::new(1.5).unwrap());
        let two = if unbiased { two.only_unbiased() } else { two };
        let plan = planned(&two.with_max_error(0.1).unwrap());
        assert!(of(&plan).is_some_and(|one| one.loss() <= 0.1), "{plan}");
    }
}

/// All questions without Nyström features say why.
#[test]
fn plans_say_why_there_is_none() {
    let x = normal(60, 2, 0.5, 1);
    let one_set = Planner::of_one_set(&x).unwrap().with_kernel(Gaussian::default()).with_max_features(16);
    let two_sets = Planner::new(&half(&x, 0), &half(&x, 1)).unwrap().with_max_features(16);
    let tokens = Array4::from_shape_fn((1, 2, 12, 2), |(_, h, i, k)| 0.1 * (h + i * (k + 2)) as f64).sin();
    let heads = Planner::of_heads(&tokens, &tokens, None).unwrap().with_max_features(16);
    for (planner, why) in [
        (heads.with_loss(Loss::Gram), "one head"),
        (two_sets.with_loss(Loss::AttentionWeights), "normalisers"),
        (one_set.clone().only_non_negative(), "any sign"),
        (
            one_set.clone().with_calibration(super::calibration()).with_budget(Measure::Nanoseconds, 1e4),
            "no calibration has their time",
        ),
        (one_set.clone().with_max_error_with_probability(0.5, 0.9).unwrap(), "no bound"),
        (
            one_set
                .clone()
                .with_calibration(super::calibration())
                .with_max_error(0.5)
                .unwrap()
                .with_cheapest_in(Measure::Nanoseconds),
            "no calibration has their time",
        ),
    ] {
        let plan = planned(&planner);
        assert!(nystroem(&plan).is_none());
        let found: Vec<_> = plan.left_out().filter(|(what, _)| *what == "Nyström").collect();
        assert!(found.len() == 1 && found[0].1.contains(why), "{why}: {found:?}");
        assert!(plan.to_string().contains(why), "{why}");
    }
    // Values K(x, x) beyond the range of numbers: the plan has other recipes.
    let large = Planner::of_one_set(&(x * 60.0)).unwrap().with_kernel(Softmax::default());
    let plan = planned(&large.with_max_features(16));
    assert!(nystroem(&plan).is_none() && !plan.choices.is_empty());
    assert!(plan.left_out().any(|(what, why)| what == "Nyström" && why.contains("finite")), "{plan}");
}

/// Where a bias is not allowed, random features of the rest are added: the recipe is that of `fit_unbiased`, its errors are those at new
/// points, and it keeps the budget. Where random features alone err less, the plan says so.
#[test]
fn unbiased_plans_have_features_of_the_rest() {
    let (x, fresh) = (normal(240, 3, 1.0, 1), normal(240, 3, 1.0, 2));
    let kernel = Gaussian::new(2.0).unwrap();
    let planner = Planner::of_one_set(&x).unwrap().with_kernel(kernel.clone()).with_seed(5).only_unbiased();
    let of = |plan: &Plan| plan.choices.iter().find(|choice| choice.map == "unbiased Nyström").cloned();
    let plan = planned(&planner.clone().with_max_features(32));
    let one = of(&plan).unwrap();
    assert_eq!(one.recipe, Nystroem::fit_unbiased(kernel.clone(), &x, 32, 5).unwrap());
    assert!(!one.biased && one.cost(Measure::Features) <= 32.0 && nystroem(&plan).is_none());
    assert_eq!(plan.best().unwrap().map, "unbiased Nyström");
    let new = |seed| error(&one.recipe.draw(seed).unwrap(), &kernel, &fresh).powi(2);
    let new = ((0..10).map(new).sum::<f64>() / 10.0).sqrt();
    let stated = one.forecast.gram.value;
    assert!(stated > 0.5 * new && stated < 2.5 * new, "{stated}, at new points {new}");
    for (measure, most) in [(Measure::Bytes, 8.0 * 34.0), (Measure::Multiplications, 3000.0)] {
        let one = of(&planned(&planner.clone().with_budget(measure, most))).unwrap();
        assert!(one.cost(measure) <= most && planner.cost(&one.recipe, measure) <= most, "{measure}");
    }
    let flat = planner.with_kernel(Gaussian::new(1e-3).unwrap()).with_max_features(32);
    let plan = planned(&flat);
    assert!(of(&plan).is_none());
    assert!(plan.left_out().any(|(what, why)| what == "unbiased Nyström" && why.contains("smaller error")));
}

/// A pair of points that are far from all others: features at held-out points estimate 0, so that its error is all of K = 1 on the
/// diagonal, which the features of all points would hide.
#[test]
fn points_that_no_landmark_is_near_are_not_estimated() {
    let x = Array2::from_shape_fn((16, 1), |(i, _)| 100.0 * i as f64);
    let planner = Planner::of_one_set(&x).unwrap().with_kernel(Gaussian::default()).with_max_features(16);
    let plan = planned(&planner);
    let one = nystroem(&plan).unwrap();
    // K is the identity: each point for itself.
    near(one.loss(), 1.0, "the loss");
    near(planner.measure(&one.recipe, 2, 0).unwrap().gram.value + 1.0, 1.0, "the loss at the fitted points");
    // Copies of all points are near each other.
    let twice = ndarray::concatenate(Axis(0), &[x.view(), x.view(), x.view(), x.view(), x.view(), x.view()]);
    let planner = Planner::of_one_set(&twice.unwrap()).unwrap().with_kernel(Gaussian::default());
    let plan = planned(&planner.with_max_features(16));
    assert!(nystroem(&plan).unwrap().loss() < 0.5, "{plan}");
}

/// A regression on as many features as training points is that of the exact kernel: nothing is left to be lost, and a part of the
/// points is held out. On few features something is.
#[test]
fn regressions_are_tried_on_features_of_the_training_points() {
    let x = normal(90, 3, 1.0, 1);
    let y = x.column(0).mapv(|v| (2.0 * v).sin());
    let planner = Planner::of_one_set(&x).unwrap().with_kernel(Gaussian::new(1.5).unwrap());
    let planner = planner.with_ridge_targets(&y).unwrap();
    let [many, few] = [512, 4].map(|features| planned(&planner.clone().with_max_features(features)));
    let [many, few] = [&many, &few].map(|plan| nystroem(plan).unwrap().forecast.loss);
    assert!(many.value.abs() < 1e-6, "{many:?}");
    assert!(few.value > 0.01, "{few:?}");
    assert_eq!((many.basis, few.basis), (Basis::HeldOut, Basis::HeldOut));
    // A search would try lengthscales that their factor is not for.
    let recipe = Nystroem::fit(Gaussian::new(1.5).unwrap(), &x, 8, 0).unwrap().recipe();
    let refused = RidgeSearch::<f64>::of_recipe(&recipe, 0).map(drop);
    assert!(matches!(refused, Err(Error::Unsupported { .. })), "{refused:?}");
}

#[cfg(feature = "serde")]
#[test]
fn plans_with_it_are_stored() {
    let x = normal(60, 2, 1.0, 1);
    let plan = planned(&Planner::of_one_set(&x).unwrap().with_max_features(12));
    let again: Plan = serde_json::from_str(&serde_json::to_string(&plan).unwrap()).unwrap();
    assert_eq!(again, plan);
    let recipe: &Recipe = &nystroem(&again).unwrap().recipe;
    assert_eq!(recipe.identity(), nystroem(&plan).unwrap().recipe.identity());
}
