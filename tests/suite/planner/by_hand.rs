//! What plans and forecasts state, by hand.

use super::data::{half, normal};
use super::{couplings, near};
use ndarray::{Array2, Array4, Axis, s};
use random_features::data::Reservoir;
use random_features::frequency::{Halton, Independent, Orthogonal};
use random_features::kernel::{Gaussian, Kernel, Matern, Smoothness, Softmax};
use random_features::planner::{Expected, Forecast, Loss, Measure, Planner};
use random_features::recipe::Draw;
use random_features::theory::Basis;
use random_features::workbench;
use random_features::{Positive, Recipe, Trigonometric};

fn trigonometric(d: usize, m: usize) -> Recipe {
    Trigonometric.recipe(Draw::new(d, m, Independent), Gaussian::default())
}

fn positive(d: usize, m: usize) -> Recipe {
    Positive.recipe(Draw::new(d, m, Independent), Softmax::default())
}

/// Of independent trigonometric features a pair has the variance (1 − K²)²/2m, and a point with itself none: such pairs are one in n
/// of all points, however few are kept.
#[test]
fn errors_of_one_set() {
    let (n, kept, m) = (1000, 50, 16);
    let mut reservoir = Reservoir::new(3).unwrap().with_capacity(kept).unwrap();
    reservoir.update(&normal(n, 3, 0.8, 1)).unwrap();
    let planner = Planner::of_reservoirs(&reservoir, None).unwrap().with_kernel(Gaussian::default());
    let stated = planner.forecast(&trigonometric(3, m)).unwrap().unwrap();
    let x = reservoir.points();
    let own = 1.0 / n as f64;
    let each = (1.0 - own) / (kept * (kept - 1)) as f64;
    let (mut squares, mut total, mut relative) = (0.0, own, Vec::new());
    for (i, j) in (0..kept).flat_map(|i| (0..kept).map(move |j| (i, j))).filter(|(i, j)| i != j) {
        let kernel = (-0.5 * (&x.row(i) - &x.row(j)).mapv(|v| v * v).sum()).exp();
        let error = (1.0 - kernel * kernel) / (2.0 * m as f64).sqrt();
        squares += each * error * error;
        total += each * kernel * kernel;
        relative.push(error / kernel);
    }
    relative.sort_by(f64::total_cmp);
    let quantile = |share: f64| relative[((share - own) / each - 1e-6).ceil() as usize - 1];
    near(stated.gram.value, (squares / total).sqrt(), "gram");
    near(stated.relative_mean().value, each * relative.iter().sum::<f64>(), "mean");
    for (share, found) in [
        (0.5, stated.relative_median()),
        (0.9, stated.relative_ninety()),
        (0.99, stated.relative_ninety_nine()),
    ] {
        near(found.value, quantile(share), "quantile");
        // As many independent pairs as points.
        let spread = (share * (1.0 - share) / kept as f64).sqrt();
        let width = quantile((share + spread).min(1.0 - 1e-9)) - quantile(share - spread);
        near(found.standard_error, 0.5 * width, "standard error of a quantile");
    }
    let beyond = each * relative.iter().filter(|error| **error > 1.0).count() as f64;
    near(stated.beyond_one().value, beyond, "beyond 1");
    near(stated.beyond_one().standard_error, (beyond * (1.0 - beyond) / kept as f64).sqrt(), "its error");
}

/// Heads have the same share each.
#[test]
fn errors_of_heads() {
    let tokens = |seed: u64| -> Array4<f64> {
        let mut x = normal(48, 4, 0.7, seed).into_shape_with_order((1, 2, 24, 4)).unwrap();
        x.slice_mut(s![.., 1, .., ..]).mapv_inplace(|v| 1.5 * v);
        x
    };
    let (q, k) = (tokens(1), tokens(2));
    let of = |q: &Array4<f64>, k: &Array4<f64>| {
        let planner = Planner::of_heads(q, k, None).unwrap().with_loss(Loss::Gram);
        planner.forecast(&positive(4, 32)).unwrap().unwrap()
    };
    let whole = of(&q, &k);
    let one = |x: &Array4<f64>, h: usize| x.slice(s![.., h..h + 1, .., ..]).to_owned();
    let parts = [0, 1].map(|h| of(&one(&q, h), &one(&k, h)));
    let mean = |of: fn(&random_features::planner::Forecast) -> Expected| {
        0.5 * parts.iter().map(|part| of(part).value).sum::<f64>()
    };
    near(whole.relative_mean().value, mean(|part| part.relative_mean()), "mean");
    near(whole.beyond_one().value, mean(|part| part.beyond_one()), "beyond 1");
}

/// Heads have no point in common: of two equal heads the error of a mean is that of one, over the root of 2.
#[test]
fn heads_vary_apart() {
    let tokens = |seed: u64, heads: usize| -> Array4<f64> {
        let x = normal(24, 4, 0.7, seed).into_shape_with_order((1, 1, 24, 4)).unwrap();
        ndarray::concatenate(Axis(1), &vec![x.view(); heads]).unwrap()
    };
    let of = |heads| {
        let planner = Planner::of_heads(&tokens(1, heads), &tokens(2, heads), None).unwrap();
        planner.with_loss(Loss::Gram).forecast(&positive(4, 32)).unwrap().unwrap()
    };
    let (one, two) = (of(1), of(2));
    near(two.gram.standard_error, one.gram.standard_error / 2f64.sqrt(), "gram");
    near(two.relative_mean().standard_error, one.relative_mean().standard_error / 2f64.sqrt(), "mean");
}

/// A sample of pairs has each point with many others: of two kinds of points half of the pairs are of one kind.
#[test]
fn samples_are_of_different_pairs() {
    let side = |seed| {
        let mut x = normal(80, 1, 0.01, seed);
        x.slice_mut(s![..;2, ..]).mapv_inplace(|v| v + 10.0);
        x
    };
    for seed in 0..8 {
        let planner = Planner::new(&side(1), &side(2)).unwrap().with_kernel(Gaussian::default());
        let stated = planner.with_seed(seed).forecast(&trigonometric(1, 16)).unwrap().unwrap();
        assert!((stated.beyond_one().value - 0.5).abs() < 0.04, "{seed}: {:?}", stated.beyond_one());
    }
}

/// Draws have consecutive seeds, in parts or not; two draws say little, since the larger one counts for at least half.
#[test]
fn measured_errors() {
    let x = normal(40, 3, 0.5, 1);
    let planner = Planner::new(&half(&x, 0), &half(&x, 1)).unwrap();
    let square = |draws, first| planner.measure(&positive(3, 16), draws, first).unwrap().gram.value.powi(2);
    near(square(32, 5), 0.5 * (square(16, 5) + square(16, 21)), "32 draws");
    for first in 0..20 {
        let gram = planner.measure(&positive(3, 16), 2, 100 * first).unwrap().gram;
        assert!(gram.standard_error >= 0.25 * gram.value * (1.0 - 1e-9), "{first}: {gram:?}");
    }
}

/// One block fewer misses the target, and one feature fewer than the cheapest has in any map.
#[test]
fn targets_are_met_by_no_more_than_it_takes() {
    let x = normal(48, 4, 0.4, 1);
    let planner = Planner::new(&half(&x, 0), &half(&x, 1)).unwrap();
    let planner = planner.with_couplings([Independent.into(), Orthogonal.into()]);
    let mut compared = 0;
    for error in [0.04, 0.06, 0.1] {
        let plan = planner.clone().with_max_error(error).unwrap().plan().unwrap();
        for choice in plan
            .choices
            .iter()
            .filter(|choice| ["positive", "trigonometric", "hyperbolic"].contains(&choice.map.as_str()))
        {
            let block = if choice.coupling == "orthogonal" { 4 } else { 1 };
            let m = choice.m - block;
            let draw = if block == 4 { Draw::new(4, m, Orthogonal) } else { Draw::new(4, m, Independent) };
            let fewer = match choice.map.as_str() {
                "positive" => Positive.recipe(draw, Softmax::default()),
                "trigonometric" => Trigonometric.recipe(draw, Softmax::default()),
                _ => random_features::Hyperbolic.recipe(draw, Softmax::default()),
            };
            let missed = planner.forecast(&fewer).unwrap().unwrap().gram.value;
            assert!(missed > error, "{}, {}: {missed} of {error} with {m}", choice.map, choice.coupling);
            compared += 1;
        }
        // Of frequencies that are independent any number is whole.
        let planner = planner.clone().with_couplings([Independent.into()]);
        let fewer = planner
            .clone()
            .with_max_error(error)
            .unwrap()
            .plan()
            .unwrap()
            .best()
            .unwrap()
            .recipe
            .feature_dim()
            - 1;
        let missed = planner.with_max_features(fewer).plan().unwrap();
        let least =
            missed.choices.iter().map(|choice| choice.forecast.gram.value).fold(f64::INFINITY, f64::min);
        assert!(least > error, "{fewer} features reach {least} of {error}");
    }
    assert!(compared > 2, "{compared}");
}

/// Markov's bound where estimates have none, and McDiarmid's of cosines: a block changes the error by its share of 2/√mean K².
#[test]
fn bounds_of_probabilities() {
    let x = normal(50, 4, 0.4, 1);
    let couplings = [Independent.into(), Orthogonal.into()];
    let gaussian =
        Planner::of_one_set(&x).unwrap().with_kernel(Gaussian::default()).with_couplings(couplings);
    let softmax = Planner::new(&half(&x, 0), &half(&x, 1)).unwrap().with_couplings(couplings);
    let mean = Gaussian::default().gram(&x, &x).unwrap().mapv(|k: f64| k * k).mean().unwrap();
    let (mut markovs, mut others) = (0, 0);
    for p in [0.6, 0.9, 0.9999] {
        let of = |planner: &Planner| {
            planner.clone().with_max_error_with_probability(0.3, p).unwrap().plan().unwrap()
        };
        for choice in &of(&gaussian).choices {
            let (loss, gram) = (choice.forecast.loss.value, choice.forecast.gram.value);
            if choice.map == "trigonometric" {
                let block = if choice.coupling == "orthogonal" { 4.0 } else { 1.0 };
                let n = choice.m as f64 / block;
                let bounded = gram + 2.0 / mean.sqrt() * (-f64::ln(1.0 - p) / (2.0 * n)).sqrt();
                let markov = gram / f64::sqrt(1.0 - p);
                near(loss, markov.min(bounded), "McDiarmid");
                others += usize::from(bounded < markov);
            }
        }
        for choice in &of(&softmax).choices {
            if ["positive", "hyperbolic"].contains(&choice.map.as_str()) {
                let (loss, gram) = (choice.forecast.loss.value, choice.forecast.gram.value);
                near(loss, gram / f64::sqrt(1.0 - p), "Markov");
                markovs += 1;
            }
        }
    }
    assert!(markovs > 0 && others > 1, "{markovs}, {others}");
}

/// In steps of half a percent the cheaper of equals comes first.
#[test]
fn of_equal_losses_the_cheaper_comes_first() {
    let x = normal(120, 5, 0.3, 3);
    let planner = Planner::new(&half(&x, 0), &half(&x, 1)).unwrap();
    let mut equal = 0;
    for features in [24, 64, 200] {
        let plan = planner.clone().with_couplings(couplings()).with_max_features(features).plan().unwrap();
        let closed = plan.choices.iter().filter(|one| one.forecast.gram.basis == Basis::ClosedForm);
        let keys: Vec<(f64, f64)> = closed
            .map(|one| ((one.forecast.loss.value.ln() / 0.005).round(), one.cost(Measure::Multiplications)))
            .collect();
        for pair in keys.windows(2) {
            assert!(pair[0] <= pair[1], "{keys:?}");
            equal += usize::from(pair[0].0 == pair[1].0 && pair[0].1 < pair[1].1);
        }
    }
    assert!(equal > 0);
}

/// Shapes transform points: a triangle of a whole one, a rectangle of a truncated one.
#[test]
fn costs_of_shapes() {
    let x = normal(120, 5, 0.3, 3);
    let planner = Planner::new(&half(&x, 0), &half(&x, 1)).unwrap().with_couplings([Independent.into()]);
    let plan = planner.with_max_features(24).plan().unwrap();
    let mut kinds = [0, 0];
    for choice in &plan.choices {
        let m = choice.m as f64;
        if choice.map == "shaped" {
            assert_eq!(choice.cost(Measure::Multiplications), 5.0 * m + m + 15.0);
            kinds[0] += 1;
        }
        if let Some(rank) = choice.map.strip_prefix("truncated, rank ") {
            let rank: f64 = rank.split(' ').next().unwrap().parse().unwrap();
            assert_eq!(choice.cost(Measure::Multiplications), rank * m + m + rank * 5.0, "{}", choice.map);
            kinds[1] += 1;
        }
    }
    assert!(kinds[0] > 0 && kinds[1] > 0, "{kinds:?}");
}

/// Of values and targets those of the rows that are kept.
#[test]
fn values_and_targets_of_rows_that_are_kept() {
    let (q, k, v) = (normal(40, 3, 0.5, 1), normal(300, 3, 0.5, 2), normal(300, 2, 1.0, 3));
    let mut keys = Reservoir::new(3).unwrap().with_capacity(60).unwrap();
    keys.update(&k).unwrap();
    let rows: Vec<usize> = keys.row_numbers().into_iter().map(|row| row as usize).collect();
    let some = |x: &Array2<f64>| x.select(Axis(0), &rows);
    let of = |planner: Planner| planner.forecast(&positive(3, 32)).unwrap().unwrap().loss;
    let kept = Planner::of_reservoirs(&Reservoir::of(&q).unwrap(), Some(&keys)).unwrap();
    let by_hand = Planner::new(&q, &some(&k)).unwrap();
    assert_eq!(of(kept.with_values(&v).unwrap()), of(by_hand.with_values(&some(&v)).unwrap()));
    let targets = k.column(0).mapv(|v| (2.0 * v).sin()).insert_axis(Axis(1));
    let of = |planner: Planner| {
        planner.with_kernel(Gaussian::default()).measure(&trigonometric(3, 16), 4, 0).unwrap().loss.value
    };
    let kept = Planner::of_reservoirs(&keys, None).unwrap().with_ridge_targets(&targets).unwrap();
    let by_hand = Planner::of_one_set(&some(&k)).unwrap().with_ridge_targets(&some(&targets)).unwrap();
    assert_eq!(of(kept), of(by_hand));
}

/// Where nothing works, so many more frequencies bring nine of ten pairs below 1, and the Gram matrix.
#[test]
fn advised_numbers_of_frequencies() {
    let x = normal(100, 8, 1.5, 5);
    let planner = Planner::new(&half(&x, 0), &half(&x, 1)).unwrap();
    let plan =
        planner.with_couplings([Independent.into()]).only_unbiased().with_max_features(64).plan().unwrap();
    let errors =
        plan.choices.iter().map(|one| one.forecast.relative_ninety().value.max(one.forecast.gram.value));
    let least = errors.fold(f64::INFINITY, f64::min);
    let advice = workbench::advice(&plan).unwrap();
    near(advice.more_frequencies, least * least, "frequencies");
}

/// Draws of couplings without a closed form, in the pilot and anew: of few points they are of all pairs, with seeds that no other
/// draws have.
#[test]
fn simulated_errors_are_those_of_their_draws() {
    let x = normal(60, 3, 0.3, 1);
    let planner = Planner::new(&half(&x, 0), &half(&x, 1)).unwrap();
    let plan = planner.clone().with_max_features(24).plan().unwrap();
    let mut counts = std::collections::BTreeMap::new();
    for choice in &plan.choices {
        let Basis::Simulation(draws) = choice.forecast.gram.basis else { continue };
        *counts.entry(draws).or_insert(0) += 1;
        let first = match draws {
            48 => 1 << 16,
            192 => 2 << 16,
            _ => continue,
        };
        let measured = planner.measure(&choice.recipe, draws, first).unwrap();
        near(choice.forecast.gram.value, measured.gram.value, &super::label(choice));
        near(
            choice.forecast.relative_median().value,
            measured.relative_median().value,
            &super::label(choice),
        );
    }
    assert!(counts.contains_key(&48) && counts.contains_key(&192), "{counts:?}");
}

/// Excess risks are relative to the variance of the targets, and their standard errors are those of means.
#[test]
fn excess_risks_are_relative() {
    let x = normal(150, 3, 1.0, 1);
    let y = x.column(0).mapv(|v| (2.0 * v).sin()).insert_axis(Axis(1)) + normal(150, 1, 0.1, 2);
    let recipe = Trigonometric.recipe(Draw::new(3, 16, Independent), Gaussian::default());
    let of = |y: &Array2<f64>, draws, first| {
        let planner =
            Planner::of_one_set(&x).unwrap().with_kernel(Gaussian::default()).with_ridge_targets(y).unwrap();
        planner.measure(&recipe, draws, first).unwrap().loss
    };
    near(of(&(&y * 10.0), 4, 0).value, of(&y, 4, 0).value, "ten times the targets");
    // From means of two, two and three draws those of each.
    let (a, b, c) = (of(&y, 2, 1), of(&y, 2, 2), of(&y, 3, 1));
    let first = 3.0 * c.value - 2.0 * b.value;
    let second = 2.0 * a.value - first;
    near(a.standard_error, 0.5 * (first - second).abs(), "standard error");
}

/// What is seen at 80 points of a side is rescaled to all pairs: within 4 % here, against a quarter and more without.
#[test]
fn simulations_are_rescaled_to_all_pairs() {
    let mut worst = 0.0f64;
    for seed in 0..4 {
        let x = normal(800, 4, 0.6, 50 + seed);
        let planner = Planner::new(&half(&x, 0), &half(&x, 1)).unwrap().with_seed(seed).with_max_features(32);
        let planner = planner.with_couplings([Orthogonal.into(), Halton.into()]);
        let plan = planner.plan().unwrap();
        for choice in
            plan.choices.iter().filter(|one| matches!(one.forecast.gram.basis, Basis::Simulation(_))).take(3)
        {
            let measured = planner.measure(&choice.recipe, 200, 1 << 40).unwrap();
            let [a, b] = [choice.forecast, measured].map(|one| one.gram.value);
            worst = worst.max((a / b - 1.0).abs());
            assert_eq!(choice.forecast.loss, choice.forecast.gram);
        }
    }
    assert!(worst < 0.12, "{worst}");
}

/// Shares of pairs and standard errors are those of all points too, not of the 80 of a side.
#[test]
fn draws_stand_for_all_points() {
    let x = normal(1600, 4, 0.7, 60);
    let planner = Planner::new(&half(&x, 0), &half(&x, 1)).unwrap().with_max_features(32);
    let planner =
        planner.with_kernel(Gaussian::default()).with_couplings([Independent.into(), Halton.into()]);
    let plan = planner.plan().unwrap();
    let choice = plan
        .choices
        .iter()
        .find(|one| one.map == "trigonometric" && matches!(one.forecast.gram.basis, Basis::Simulation(_)))
        .unwrap();
    let measured = planner.measure(&choice.recipe, 60, 1 << 40).unwrap();
    let closed = planner.forecast(&trigonometric(4, 16)).unwrap().unwrap();
    let (found, seen) = (choice.forecast.beyond_one().value, measured.beyond_one().value);
    assert!((found - seen).abs() < 0.025, "{found}, {seen}");
    // Of as many points the relative error is hardly larger than by closed forms; of 80 it is twice that.
    let [own, of_all] = [choice.forecast.gram, closed.gram].map(|one| one.standard_error / one.value);
    assert!(own < 1.6 * of_all, "{own}, {of_all}");
}

/// Advice comes with more than a tenth of the pairs beyond 1 or a loss of 0.9, and calls a loss below a half a success.
#[test]
fn advice_comes_where_it_should() {
    let mut counts = [0; 3];
    let cases = [(1, 3), (4, 3), (32, 1)].into_iter();
    for (features, k) in cases.flat_map(|(n, step)| (1..10u32).step_by(step).map(move |k| (n, k))) {
        let deviation = 0.3 + 0.1 * f64::from(k);
        let x = normal(100, 4, deviation, 5);
        let planner = Planner::of_one_set(&x)
            .unwrap()
            .with_kernel(Gaussian::default())
            .with_couplings([Independent.into()]);
        let plan = planner.only_unbiased().with_max_features(features).plan().unwrap();
        let best = plan.best().unwrap().forecast;
        let (beyond, loss) = (best.beyond_one().value, best.loss.value);
        assert_eq!(plan.advice().is_some(), beyond > 0.1 || loss >= 0.9, "{beyond}, {loss}");
        counts[0] += usize::from((0.1..0.3).contains(&beyond) && loss < 0.9);
        if let Some(advice) = workbench::advice(&plan) {
            assert_eq!(advice.works, loss < 0.5, "{beyond}, {loss}");
            counts[1] += usize::from((0.5..0.9).contains(&loss));
            counts[2] += usize::from(loss < 0.5);
        }
    }
    assert!(counts.iter().all(|n| *n > 0), "{counts:?}");
}

/// Equal points leave no uncertainty but that of the draws: the standard error of a mean of squares, or the share of the largest.
#[test]
fn standard_errors_of_draws() {
    let [x, y] = [0.5f64, -0.3].map(|v| Array2::from_elem((8, 3), v));
    let (recipe, draws) = (positive(3, 64), 200);
    let exact = f64::exp(x.row(0).dot(&y.row(0)));
    let square = |seed| {
        let map: random_features::Map<f64> = recipe.draw(seed).unwrap();
        (map.estimate(&x.row(0), &y.row(0)).unwrap() / exact - 1.0).powi(2)
    };
    let squares: Vec<f64> = (0..draws as u64).map(square).collect();
    let mean = squares.iter().sum::<f64>() / draws as f64;
    let variance = squares.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (draws - 1) as f64;
    let error = (variance / draws as f64).sqrt();
    assert!(squares.iter().all(|square| *square < error * draws as f64), "the largest would count");
    let planner = Planner::new(&x, &y).unwrap();
    let seen = planner.measure(&recipe, draws, 0).unwrap();
    let relative = [Forecast::relative_mean, Forecast::relative_median]
        .into_iter()
        .chain([Forecast::relative_ninety, Forecast::relative_ninety_nine]);
    for one in [seen.loss, seen.gram].into_iter().chain(relative.map(|error| error(&seen))) {
        near(one.value, mean.sqrt(), "value");
        near(one.standard_error, 0.5 * error / mean.sqrt(), "standard error");
    }
    // So it is in plans.
    let planner = planner.with_kernel(Matern::new(Smoothness::FiveHalves, 1.0).unwrap());
    let plan = planner
        .clone()
        .with_couplings([Independent.into(), Halton.into()])
        .with_max_features(64)
        .plan()
        .unwrap();
    let mut compared = 0;
    for choice in &plan.choices {
        let Basis::Simulation(draws) = choice.forecast.gram.basis else { continue };
        let first = if draws == 48 { 1 << 16 } else { 2 << 16 };
        let measured = planner.measure(&choice.recipe, draws, first).unwrap().gram;
        if measured.value > 1e-9 {
            near(choice.forecast.gram.standard_error, measured.standard_error, &super::label(choice));
            compared += 1;
        }
    }
    assert!(compared > 0, "{plan:#}");
}

/// At large norms draws of another coupling do not show what closed forms say: what has none is left out.
#[test]
fn what_draws_cannot_show_is_left_out() {
    let of = |deviation| {
        let x = normal(120, 5, deviation, 3);
        let planner = Planner::new(&half(&x, 0), &half(&x, 1)).unwrap().with_max_features(24);
        let plan = planner.with_couplings([Independent.into(), Halton.into()]).plan().unwrap();
        plan.left_out().filter(|(_, why)| why.contains("draws too rare")).count()
    };
    assert_eq!(of(0.2), 0);
    assert!(of(1.5) > 0);
}

/// Pairs that share a point vary together, of either side; the same number on both sides is not the same point.
#[test]
fn standard_errors_of_two_sets() {
    let (n, l, m) = (9, 12, 16);
    // Queries differ more than keys do.
    let (x, y) = (normal(n, 3, 1.2, 1), normal(l, 3, 0.4, 2));
    let planner = Planner::new(&x, &y).unwrap().with_kernel(Gaussian::default());
    let stated = planner.forecast(&trigonometric(3, m)).unwrap().unwrap().gram;
    let gram = Gaussian::default().gram(&x, &y).unwrap();
    let squares = gram.mapv(|k| (1.0 - k * k).powi(2) / (2.0 * m as f64));
    let total = gram.mapv(|k| k * k).sum();
    let square = squares.sum() / total;
    near(stated.value, square.sqrt(), "value");
    let parts = (squares - gram.mapv(|k| square * k * k)) / total;
    let of = |sums: ndarray::Array1<f64>| sums.dot(&sums);
    let own = parts.mapv(|part| part * part).sum();
    let variance = of(parts.sum_axis(Axis(0))) + of(parts.sum_axis(Axis(1))) - own;
    assert!(variance > own, "a pair would count for itself");
    near(stated.standard_error, 0.5 * variance.sqrt() / square.sqrt(), "standard error");
}

/// Where few pairs rule the Gram matrix, points shrink until its error is below 0.9, though nine of ten pairs are below 1 long before.
#[test]
fn advised_factors_heed_the_gram_matrix() {
    let (x, mut y) = (normal(40, 4, 0.3, 1), normal(40, 4, 0.3, 2));
    y.row_mut(0).mapv_inplace(|v| 12.0 * v);
    let of = |factor: f64| Planner::new(&(&x * factor), &(&y * factor)).unwrap();
    let plan = of(1.0).with_couplings([Independent.into()]).with_max_features(64).plan().unwrap();
    let (m, advice) = (plan.best().unwrap().m, workbench::advice(&plan).unwrap());
    assert!(advice.beyond_one < 0.1 && !advice.works, "{advice:?}");
    let works = |factor: f64| {
        let sum = |i: usize, j: usize| (&x.row(i) + &y.row(j)).mapv(|v| (factor * v).powi(2)).sum();
        let mean = Array2::from_shape_fn((40, 40), |(i, j)| sum(i, j)).mean().unwrap();
        let gerf = random_features::Gerf::optimal(4, mean).unwrap();
        let draw = || Draw::new(4, m, Independent);
        let recipes: [Recipe; 3] = [
            Positive.recipe(draw(), Softmax::default()),
            Trigonometric.recipe(draw(), Softmax::default()),
            gerf.recipe(draw(), Softmax::default()),
        ];
        recipes.iter().any(|recipe| {
            let forecast = of(factor).forecast(recipe).unwrap().unwrap();
            forecast.beyond_one().value <= 0.1 && forecast.gram.value < 0.9
        })
    };
    assert!(works(0.999 * advice.shrink) && !works(1.001 * advice.shrink), "{advice:?}");
    assert!(advice.shrink < 0.95, "{advice:?}");
}
