//! Plans are the same each time, are stored, shown and cut down to those that no other beats.

use super::data::{half, normal};
use super::{couplings, label, quick};
use crate::threads::on_threads;
use random_features::data::Reservoir;
use random_features::frequency::{Halton, Independent, Orthogonal};
use random_features::kernel::{Gaussian, Softmax};
use random_features::planner::{Loss, Measure, Plan, Planner};

fn planner(deviation: f64) -> Planner {
    let x = normal(60, 5, deviation, 3);
    Planner::new(&half(&x, 0), &half(&x, 1)).unwrap().with_kernel(Softmax::default())
}

/// With each loss, in each measure, by budget and by target; some where nothing works. They are made once.
static PLANS: std::sync::LazyLock<Vec<Plan>> = std::sync::LazyLock::new(plans);

fn plans() -> Vec<Plan> {
    let small = planner(0.3).with_couplings([Independent.into(), Orthogonal.into()]);
    let mut all = vec![
        planner(0.3).with_max_features(24).plan().unwrap(),
        planner(2.0).with_couplings(couplings()).with_max_features(24).plan().unwrap(),
        small.clone().with_max_error(0.05).unwrap().plan().unwrap(),
        small.clone().with_max_error_with_probability(0.2, 0.9).unwrap().plan().unwrap(),
        small.clone().with_max_error(1e-9).unwrap().plan().unwrap(),
        // Numbers of many digits.
        small.clone().with_couplings([Independent.into()]).with_max_error(2e-4).unwrap().plan().unwrap(),
        planner(1e-70).with_couplings([Independent.into()]).with_max_features(8).plan().unwrap(),
        small
            .clone()
            .with_calibration(super::calibration())
            .with_budget(Measure::Nanoseconds, 99.5)
            .plan()
            .unwrap(),
        small.clone().with_kernel(Gaussian::default()).with_budget(Measure::Bytes, 999.0).plan().unwrap(),
    ];
    for loss in super::LOSSES_OF_PAIRS.into_iter().chain([Loss::AttentionWeights]) {
        all.push(small.clone().with_loss(loss).with_max_features(24).plan().unwrap());
    }
    all
}

/// What is known of some pairs only is near to what holds at all of them, also of quantiles.
#[test]
fn some_pairs_are_like_all() {
    let x = normal(240, 4, 0.4, 3);
    let planner = Planner::new(&half(&x, 0), &half(&x, 1)).unwrap().with_couplings(couplings());
    let planner = planner.with_loss(Loss::RelativeMedian).with_max_features(32);
    let plan = planner.plan().unwrap();
    let mut compared = 0;
    for choice in plan.choices.iter().filter(|choice| choice.why.contains("at some of the pairs")) {
        let all = planner.forecast(&choice.recipe).unwrap().unwrap().loss.value;
        let ratio = choice.loss() / all;
        assert!((0.7..1.4).contains(&ratio), "{}: {ratio}", label(choice));
        compared += 1;
    }
    assert!(compared > 0, "{plan}");
}

#[test]
fn the_same_data_give_the_same_plan() {
    // With closed forms, and by draws.
    let kinds = || couplings().into_iter().chain([Halton.into()]);
    let planner = planner(0.4).with_couplings(kinds()).with_max_features(24);
    let plan = on_threads(1, || planner.plan().unwrap());
    assert_eq!(planner.plan().unwrap(), plan);
    assert!(on_threads(3, || planner.plan().unwrap()) == plan, "3 threads");
    // Another seed draws others; the closed forms of all pairs are the same.
    let other = planner.clone().with_seed(9).plan().unwrap();
    assert_ne!(other, plan);
    let closed = |plan: &Plan| {
        let of = |choice: &&random_features::planner::RankedRecipe| {
            (choice.map.as_str(), choice.coupling.as_str()) == ("hyperbolic", "orthogonal")
        };
        plan.choices.iter().find(of).map(|choice| choice.forecast)
    };
    assert_eq!(closed(&other), closed(&plan));
    // Batches of points give the plan of all.
    let x = normal(60, 5, 0.4, 3);
    let mut reservoirs = [0, 1].map(|first| (half(&x, first), Reservoir::new(5).unwrap()));
    for (x, reservoir) in &mut reservoirs {
        for batch in x.axis_chunks_iter(ndarray::Axis(0), 7) {
            reservoir.update(&batch).unwrap();
        }
    }
    let [(_, x), (_, y)] = &reservoirs;
    let batched = Planner::of_reservoirs(x, Some(y)).unwrap().with_kernel(Softmax::default());
    let batched = batched.with_couplings(kinds()).with_max_features(24);
    assert_eq!(batched.plan().unwrap().best().unwrap().map, plan.best().unwrap().map);
}

/// Many points: what is kept of them and the pairs are random, and the same on any number of threads.
#[test]
fn plans_of_many_points_are_the_same_on_any_number_of_threads() {
    let x = normal(9000, 3, 0.4, 3);
    let plan = || {
        let planner = Planner::of_one_set(&x).unwrap().with_kernel(Gaussian::default());
        planner.with_couplings(couplings()).with_max_features(16).plan().unwrap()
    };
    assert!(on_threads(1, plan) == on_threads(3, plan));
}

#[cfg(feature = "serde")]
#[test]
fn plans_are_stored() {
    for plan in PLANS.iter() {
        let text = serde_json::to_string(plan).unwrap();
        let read: Plan = serde_json::from_str(&text).unwrap();
        assert_eq!(&read, plan);
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }
}

#[test]
fn lines_are_at_most_100_columns_wide() {
    for plan in PLANS.iter() {
        for text in [format!("{plan}"), format!("{plan:#}")] {
            for line in text.lines() {
                assert!(line.chars().count() <= 100, "{} columns: {line}", line.chars().count());
                assert!(!line.contains("NaN"), "{line}");
            }
        }
        let short = format!("{plan}");
        assert!(plan.choices.len() <= 10 || short.contains("more recipes"), "{short}");
        assert!(plan.choices.iter().all(|choice| !choice.why.is_empty()));
    }
}

#[test]
fn choices_are_ranked_and_none_of_the_front_is_beaten() {
    for plan in PLANS.iter() {
        let measure = match plan.measure {
            Measure::Features => Measure::Multiplications,
            other => other,
        };
        let front = plan.pareto();
        assert_eq!(front.is_empty(), plan.choices.is_empty());
        let at = |choice: &random_features::planner::RankedRecipe| {
            (choice.cost(measure), choice.forecast.loss.value)
        };
        for own in &front {
            let (cost, loss) = at(own);
            let beaten =
                plan.choices.iter().map(at).any(|(c, l)| c <= cost && l < loss || c < cost && l <= loss);
            assert!(!beaten, "{} is beaten", own.map);
        }
        for choice in &plan.choices {
            let (cost, loss) = at(choice);
            let kept = front.iter().map(|own| at(own)).any(|(c, l)| c <= cost && l <= loss);
            assert!(kept || loss.is_infinite(), "{}: nothing as good is in the front", choice.map);
        }
    }
}

/// With a budget of features, of which recipes may have fewer, none in the front has more multiplications and as large a loss as another.
#[test]
fn fronts_of_features_are_of_multiplications() {
    let plan = planner(0.3).with_couplings([Independent.into()]).with_max_features(24).plan().unwrap();
    let of = |choice: &random_features::planner::RankedRecipe| {
        (choice.cost(Measure::Multiplications), choice.forecast.loss.value)
    };
    let all: Vec<(f64, f64)> = plan.choices.iter().map(of).collect();
    let beaten = |(cost, loss): (f64, f64)| {
        all.iter().any(|(c, l)| *c <= cost && *l < loss || *c < cost && *l <= loss)
    };
    let mut expected: Vec<(f64, f64)> = all.iter().copied().filter(|own| !beaten(*own)).collect();
    expected.sort_by(|a, b| a.0.total_cmp(&b.0));
    let front: Vec<(f64, f64)> = plan.pareto().into_iter().map(of).collect();
    assert_eq!(front, expected);
    assert!(front.len() > 3, "{front:?}");
}

/// Closed forms are ranked by their losses; those of draws stand a little behind.
#[test]
fn the_first_has_the_least_loss() {
    for loss in super::LOSSES_OF_PAIRS {
        let plan = quick(&planner(0.3).with_loss(loss), 24);
        assert_eq!(plan.loss, loss);
        let least = plan.best().unwrap().forecast.loss;
        let forecast = plan.best().unwrap().forecast;
        let own = match loss {
            Loss::RelativeMean => forecast.relative_mean(),
            Loss::RelativeMedian => forecast.relative_median(),
            Loss::RelativeNinety => forecast.relative_ninety(),
            Loss::RelativeNinetyNine => forecast.relative_ninety_nine(),
            _ => forecast.gram,
        };
        assert_eq!(least, own);
        for choice in &plan.choices {
            let loss = choice.forecast.loss;
            let allowed = 1.0 - 3.0 * loss.standard_error / loss.value;
            assert!(loss.value >= allowed * least.value, "{}: {loss:?}, first {least:?}", choice.map);
        }
    }
}
