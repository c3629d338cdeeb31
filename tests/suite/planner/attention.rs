//! Plans for attention, with heads, values and grouped keys.

use super::data::{keys, normal, queries};
use super::{couplings, label, near};
use ndarray::{Array2, Array4, Axis, s};
use random_features::Error;
use random_features::apply::attention::{Attention, ErrorReport, ExactAttention, Heads, TokenSample};
use random_features::frequency::{Independent, Orthogonal};
use random_features::kernel::Softmax;
use random_features::planner::{Loss, Planner};
use random_features::recipe::Draw;
use random_features::theory::Basis;
use random_features::{Map, Positive, Recipe};

/// Tokens of batch × heads × length × dim.
fn tokens(shape: [usize; 4], deviation: f64, seed: u64) -> Array4<f64> {
    let [b, h, n, d] = shape;
    normal(b * h * n, d, deviation, seed).into_shape_with_order((b, h, n, d)).unwrap()
}

/// Three heads of queries for each of two of keys, and the same with keys repeated: one recipe for all, the same one.
#[test]
fn grouped_heads_are_repeated_keys() {
    let (q, k) = (tokens([1, 6, 24, 4], 0.8, 1), tokens([1, 2, 24, 4], 0.8, 2));
    let v = tokens([1, 2, 24, 3], 1.0, 3);
    let repeated = |x: &Array4<f64>| {
        let heads: Vec<_> = (0..6).map(|h| x.index_axis(Axis(1), h / 3)).collect();
        ndarray::stack(Axis(1), &heads).unwrap()
    };
    let plan = |k: &Array4<f64>, v: &Array4<f64>| {
        let planner =
            Planner::of_heads(&q, k, Some(v)).unwrap().with_couplings(couplings()).with_max_features(32);
        planner.plan().unwrap()
    };
    let (grouped, whole) = (plan(&k, &v), plan(&repeated(&k), &repeated(&v)));
    assert_eq!(grouped.loss, Loss::AttentionOutput);
    // A key that three heads of queries share is one key.
    assert!(grouped.title.contains("144 queries and 48 keys"), "{}", grouped.title);
    assert_eq!(label(grouped.best().unwrap()), label(whole.best().unwrap()));
    let [a, b] = [&grouped, &whole].map(|plan| plan.best().unwrap().forecast.loss.value);
    assert!((a / b - 1.0).abs() < 1e-9, "{a}, {b}");
}

/// What a plan forecasts for the output is what attention with drawn maps is off, to first order: within a fifth, for 60 draws.
#[test]
fn forecasts_of_outputs_are_what_attention_is_off() {
    let (q, k) = (tokens([1, 1, 40, 4], 0.7, 4), tokens([1, 1, 40, 4], 0.7, 5));
    let v = tokens([1, 1, 40, 3], 1.0, 6);
    let planner = Planner::of_heads(&q, &k, Some(&v)).unwrap();
    let plan = planner.clone().with_couplings(couplings()).with_max_features(128).plan().unwrap();
    let heads = Heads::new(&q, &k, &v).unwrap();
    let exact = ExactAttention::default().bidirectional(&heads).unwrap().output;
    let norm = |x: &Array4<f64>| x.iter().map(|v| v * v).sum::<f64>();
    let mut bases = Vec::new();
    for choice in plan.choices.iter().take(4) {
        let squares: f64 = (0..60)
            .map(|seed| {
                let attention = Attention::signed(vec![choice.recipe.draw(seed).unwrap()]).unwrap();
                let output = attention.bidirectional(&heads).unwrap().output;
                norm(&(output - &exact)) / norm(&exact)
            })
            .sum();
        let (found, stated) = ((squares / 60.0).sqrt(), choice.forecast.loss);
        println!("{}: attention is off {found:.4}, forecast {stated:?}", label(choice));
        assert!((found / stated.value - 1.0).abs() < 0.2, "{}: {found}, forecast {stated:?}", label(choice));
        bases.push(stated.basis);
    }
    assert!(bases.iter().any(|basis| matches!(basis, Basis::Approximate | Basis::Simulation(_))));
}

/// The error of weights and its standard error: of eight parts of the queries, each with its share of Σ p², and of the draws.
#[test]
fn errors_of_weights_by_hand() {
    let draws = 12;
    let (q, k) = (tokens([1, 1, 16, 3], 0.4, 1), tokens([1, 1, 20, 3], 0.4, 2));
    let recipe: Recipe = Positive.recipe(Draw::new(3, 256, Independent), Softmax::default());
    let planner = Planner::of_heads(&q, &k, None).unwrap();
    let [q, k] = [q, k].map(|x| x.slice(s![0, 0, .., ..]).to_owned());
    let [x, y]: [Array2<f64>; 2] = [&q, &k].map(|x| x * 3f64.powf(-0.25));
    let kernel = x.dot(&y.t()).mapv(f64::exp);
    let normalisers = kernel.sum_axis(Axis(1)).insert_axis(Axis(1));
    let p = kernel / &normalisers;
    let size = |x: &Array2<f64>| x.iter().map(|v| v * v).sum::<f64>();
    let attention = Attention::new(recipe.draw(1).unwrap()).unwrap();
    let pooled = |report: &dyn Fn(&TokenSample<'_, f64>) -> ErrorReport| {
        let of_part = |part: usize| {
            let rows = [part, part + 8];
            let report = report(&TokenSample::new(&q.select(Axis(0), &rows), &k));
            (size(&p.select(Axis(0), &rows)) / size(&p), report.weight_error().unwrap().powi(2))
        };
        let parts: Vec<(f64, f64)> = (0..8).map(of_part).collect();
        let mean: f64 = parts.iter().map(|(share, square)| share * square).sum();
        let spread: f64 = parts.iter().map(|(share, square)| (share * (square - mean)).powi(2)).sum();
        (mean.sqrt(), 0.5 * (8.0 / 7.0 * spread).sqrt() / mean.sqrt())
    };
    let (value, error) = pooled(&|sample| attention.error_report(sample).unwrap());
    let stated = planner.forecast(&recipe).unwrap().unwrap().loss;
    near(stated.value, value, "value");
    near(stated.standard_error, error, "standard error");
    let (value, of_tokens) = pooled(&|sample| attention.simulated_report(&recipe, draws, sample).unwrap());
    let square = |seed: u64| {
        let map: Map<f64> = recipe.draw(seed).unwrap();
        let estimates = map.gram(&x, &y).unwrap() / &normalisers;
        let totals = estimates.sum_axis(Axis(1)).insert_axis(Axis(1));
        size(&(estimates - &p * &totals)) / size(&p)
    };
    let squares: Vec<f64> = (0..draws as u64).map(square).collect();
    let mean = squares.iter().sum::<f64>() / draws as f64;
    let variance = squares.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (draws - 1) as f64;
    let largest = squares.iter().copied().fold(0.0, f64::max) / draws as f64;
    let of_draws = 0.5 * (variance / draws as f64).sqrt().max(largest) / mean * value;
    let measured = planner.measure(&recipe, draws, 0).unwrap().loss;
    near(measured.value, value, "value of draws");
    near(measured.standard_error, of_tokens.hypot(of_draws), "standard error of draws");
}

/// Points that are scaled by hand have the plan of one head.
#[test]
fn one_head_is_scaled_points() {
    let (q, k) = (tokens([1, 1, 30, 4], 0.8, 7), tokens([1, 1, 30, 4], 0.8, 8));
    let v = tokens([1, 1, 30, 2], 1.0, 9);
    let of_heads = Planner::of_heads(&q, &k, Some(&v)).unwrap();
    let scaled = |x: &Array4<f64>| x.slice(s![0, 0, .., ..]).mapv(|v| v * 4f64.powf(-0.25));
    let by_hand = Planner::new(&scaled(&q), &scaled(&k)).unwrap().with_kernel(Softmax::default());
    let by_hand = by_hand.with_values(&v.slice(s![0, 0, .., ..])).unwrap();
    let [a, b] = [of_heads, by_hand].map(|planner| {
        let plan = planner.with_couplings(couplings()).with_max_features(24).plan().unwrap();
        let best = plan.best().unwrap();
        (label(best), best.forecast.loss)
    });
    assert_eq!(a.0, b.0);
    assert!((a.1.value / b.1.value - 1.0).abs() < 1e-9, "{a:?}, {b:?}");
}

#[test]
fn a_trained_transformer_has_a_plan_or_advice() {
    // Every second token, of which each head has more pairs than are evaluated.
    let of = |x: ndarray::Array3<f64>| x.slice(s![.., ..;2, ..]).insert_axis(Axis(0)).to_owned();
    let plan = Planner::of_heads(&of(queries()), &of(keys()), None).unwrap();
    let couplings = [Independent.into(), Orthogonal.into()];
    let plan = plan.with_couplings(couplings).with_max_features(128).plan().unwrap();
    assert_eq!(plan.loss, Loss::AttentionWeights);
    let best = plan.best().unwrap();
    let loss = best.forecast.loss;
    // A rough number is as uncertain as it is large.
    let works = loss.standard_error < loss.value && best.forecast.beyond_one().value <= 0.1;
    assert_eq!(plan.advice().is_none(), works, "{plan}");
    if let Some(advice) = plan.advice() {
        assert!(advice.contains("exact attention"), "{advice}");
    }
}

#[test]
fn wrong_heads_and_values_are_refused() {
    let (q, k) = (tokens([2, 6, 10, 4], 0.8, 1), tokens([2, 2, 12, 4], 0.8, 2));
    let refused = |q: &Array4<f64>, k: &Array4<f64>, v: Option<&Array4<f64>>, words: &str| {
        let error = Planner::of_heads(q, k, v.map(|v| &**v)).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    refused(&q, &tokens([2, 4, 12, 4], 0.8, 2), None, "the number of heads of the queries is 6");
    refused(&q, &tokens([1, 2, 12, 4], 0.8, 2), None, "the batch of the keys is 1");
    refused(&q, &tokens([2, 2, 12, 3], 0.8, 2), None, "the dimension of the keys is 3");
    refused(&q, &k, Some(&tokens([2, 2, 11, 3], 1.0, 3)), "the number of values of a head is 11");
    refused(&q, &k, Some(&tokens([2, 6, 12, 3], 1.0, 3)), "the number of heads of the values is 6");
    refused(&q, &k, Some(&tokens([1, 2, 12, 3], 1.0, 3)), "the batch of the values is 1");
    refused(&tokens([2, 6, 10, 0], 1.0, 1), &k, None, "the dimension d is 0");
    refused(&q, &Array4::zeros((2, 0, 12, 4)), None, "the number of heads of the keys");
    refused(&Array4::zeros((0, 6, 10, 4)), &Array4::zeros((0, 2, 12, 4)), None, "the number of queries is 0");
    refused(&q, &Array4::zeros((2, 2, 0, 4)), None, "the number of keys is 0");
    let mut bad = k.clone();
    bad[[1, 0, 3, 2]] = f64::NAN;
    refused(&q, &bad, None, "not finite");
    let mut values = tokens([2, 2, 12, 3], 1.0, 3);
    values[[0, 1, 3, 2]] = f64::INFINITY;
    refused(&q, &k, Some(&values), "not finite");
}

/// Values that are stated after heads are refused, and those that are stated again replace others.
#[test]
fn values_are_those_that_were_stated_last() {
    let (q, k) = (normal(20, 4, 0.5, 1), normal(30, 4, 0.5, 2));
    let planner = Planner::new(&q, &k).unwrap().with_couplings(couplings()).with_max_features(16);
    let wrong = planner.clone().with_values(&normal(29, 2, 1.0, 3));
    assert!(matches!(wrong, Err(Error::Shape { .. })));
    let mut bad = normal(30, 2, 1.0, 3);
    bad[[7, 1]] = f64::NAN;
    assert!(matches!(planner.clone().with_values(&bad), Err(Error::NotFinite { row: 7, .. })));
    let [first, second] = [3, 4].map(|seed| normal(30, 2, 1.0, seed));
    let of = |planner: Planner| planner.plan().unwrap().best().unwrap().forecast.loss.value;
    let once = of(planner.clone().with_values(&second).unwrap());
    let twice = of(planner.with_values(&first).unwrap().with_values(&second).unwrap());
    assert_eq!(once, twice);
    let heads = tokens([1, 1, 30, 4], 0.5, 1);
    let planner = Planner::of_heads(&heads, &heads, None).unwrap();
    let refused = planner.with_values(&first);
    assert!(matches!(refused, Err(Error::Shape { .. })), "the heads have their own values");
}

/// Some of many queries are evaluated, from anywhere in the sequence: a tenth of them at its beginning counts for a tenth.
#[test]
fn queries_are_from_anywhere() {
    let (mut q, k) = (tokens([1, 1, 480, 4], 0.5, 1), tokens([1, 1, 60, 4], 0.5, 2));
    let recipe: Recipe = Positive.recipe(Draw::new(4, 1024, Independent), Softmax::default());
    let of = |q: &Array4<f64>| {
        Planner::of_heads(q, &k, None).unwrap().forecast(&recipe).unwrap().unwrap().loss.value
    };
    let all = of(&q);
    q.slice_mut(s![.., .., ..48, ..]).fill(0.0);
    let (most, none) = (of(&q), of(&(&q * 0.0)));
    assert!(none < 0.8 * all && (most / all - 1.0).abs() < 0.1, "{all}, {most}, {none}");
}
