//! Reports of causal attention, of neighbours and of exact keys.

use crate::attention::judge::report::{conditioning, maps, shaped};
use crate::attention::judge::{four, normal};
use ndarray::{Array2, Array4, Axis, concatenate, s};
use random_features::apply::attention::{Attention, ErrorReport, ExactAttention, Heads, TokenSample};
use random_features::frequency::Independent;
use random_features::kernel::Softmax;
use random_features::recipe::Draw;
use random_features::{Map, Positive, rng};

/// Exact pairs have no part in an error. Reports, closed and redrawn, are the errors of attention with neighbours and exact
/// keys.
#[test]
fn exact_pairs_have_no_errors() {
    let (d, m, draws) = (6, 128, 300);
    let [q, k] = [1, 2].map(|seed| normal(30, d, 0.35, seed));
    let v = normal(30, 4, 1.0, 3);
    let heads = [&q, &k, &v].map(four);
    let heads = Heads::new(&heads[0], &heads[1], &heads[2]).unwrap();
    let exact: Array4<f64> = ExactAttention::new().bidirectional(&heads).unwrap().output;
    let squares = |x: &Array4<f64>| x.iter().map(|v| v * v).sum::<f64>();
    let omega = |d| Draw::new(d, m, Independent);
    let positive = Positive.recipe(omega(d), Softmax::default());
    let truncated = |seed| {
        let map = Positive.softmax::<f64>(Independent.draw(2, m, seed).unwrap()).unwrap();
        map.conditioned(&conditioning(d, 2)).unwrap()
    };
    let with = |map: Map<f64>, before, after| {
        Attention::new(map).unwrap().with_window(before, after).unwrap().with_keys_exact(&[0, 17]).unwrap()
    };
    for name in ["positive", "truncated"] {
        let draw = |seed| if name == "positive" { positive.draw(seed).unwrap() } else { truncated(seed) };
        let mut error = 0.0;
        for seed in 0..draws {
            let out = with(draw(1000 + seed), 4, 3).bidirectional(&heads).unwrap().output;
            error += squares(&(&out - &exact)) / squares(&exact) / draws as f64;
        }
        let [report, without] = [[4, 3], [0, 0]].map(|[before, after]| {
            with(draw(5), before, after)
                .error_report(&TokenSample::new(&q, &k).with_values(&v))
                .unwrap()
                .output_error()
                .unwrap()
        });
        assert!((error.sqrt() / report - 1.0).abs() < 0.1, "{name}: {}, {report}", error.sqrt());
        assert!(report < without, "{name}: {report}, {without}");
    }
    let attention = with(positive.draw(1).unwrap(), 4, 3);
    let closed = attention.expected_report(&positive, &TokenSample::new(&q, &k).with_values(&v)).unwrap();
    let redrawn =
        attention.simulated_report(&positive, 400, &TokenSample::new(&q, &k).with_values(&v)).unwrap();
    for (a, b) in
        [(closed.output_error(), redrawn.output_error()), (closed.weight_error(), redrawn.weight_error())]
    {
        assert!((a.unwrap() / b.unwrap() - 1.0).abs() < 0.1, "{a:?}, {b:?}");
    }
    // The largest of some variances, from redraws of a tail that they may not meet.
    let normalisers = closed.normaliser_variance / redrawn.normaliser_variance;
    assert!((0.7..1.3).contains(&normalisers), "{normalisers}");
    // Heaviest keys are chosen as attention chooses them, and windows of all keys leave no error.
    let heaviest = Attention::new(positive.draw(1).unwrap()).unwrap().with_heaviest_keys_exact(30).unwrap();
    let all = with(positive.draw(1).unwrap(), 30, 30);
    for attention in [heaviest, all] {
        let report = attention.error_report(&TokenSample::new(&q, &k).with_values(&v)).unwrap();
        assert_eq!((report.output_error(), report.weight_error()), (Some(0.0), Some(0.0)));
        assert_eq!(report.frequencies_for(1e-3), 1.0);
    }
}

/// The report on causal attention is what draws of it show, with neighbours and without, closed and redrawn.
#[test]
fn causal_reports_are_of_causal_attention() {
    let (n, d, m, draws) = (30, 6, 128, 300);
    let [q, k] = [1, 2].map(|seed| normal(n, d, 0.35, seed));
    let v = normal(n, 4, 1.0, 3);
    let heads = [&q, &k, &v].map(four);
    let heads = Heads::new(&heads[0], &heads[1], &heads[2]).unwrap();
    let exact: Array4<f64> = ExactAttention::new().causal(&heads).unwrap().output;
    let squares = |x: &Array4<f64>| x.iter().map(|v| v * v).sum::<f64>();
    let positive = Positive.recipe(Draw::new(d, m, Independent), Softmax::default());
    let sample = TokenSample::causal(&q, &k).with_values(&v);
    for before in [0, 5] {
        let with = |seed| {
            Attention::<f64>::new(positive.draw(seed).unwrap()).unwrap().with_window(before, 9).unwrap()
        };
        let mut error = 0.0;
        for seed in 0..draws {
            let out = with(1000 + seed).causal(&heads).unwrap().output;
            error += squares(&(&out - &exact)) / squares(&exact) / draws as f64;
        }
        let closed = with(1).error_report(&sample).unwrap();
        assert!((error.sqrt() / closed.output_error().unwrap() - 1.0).abs() < 0.1, "{error}, {closed}");
        let redrawn = with(1).simulated_report(&positive, 400, &sample).unwrap();
        for (a, b) in
            [(closed.output_error(), redrawn.output_error()), (closed.weight_error(), redrawn.weight_error())]
        {
            assert!((a.unwrap() / b.unwrap() - 1.0).abs() < 0.1, "{a:?}, {b:?}");
        }
        assert!((closed.mean_error / redrawn.mean_error - 1.0).abs() < 1e-12);
    }
}

/// A causal query sees what it would see if there were no keys behind its place, wherever it stands in the sample.
#[test]
fn queries_stand_at_their_places() {
    let (n, d) = (20, 4);
    let [q, k] = [1, 2].map(|seed| normal(n, d, 0.4, seed));
    let v = normal(n, 3, 1.0, 3);
    let omega = || Independent.draw(d, 200, rng(5).next_u64()).unwrap();
    for (name, map) in
        [("positive", Positive.softmax::<f64>(omega()).unwrap()), shaped(d, 200, 5).swap_remove(6)]
    {
        let attention = Attention::signed(vec![map]).unwrap();
        let close = |a: &ErrorReport, b: &ErrorReport| {
            let all = |report: &ErrorReport| {
                [
                    report.weight_error(),
                    report.output_error(),
                    Some(report.mean_error),
                    Some(report.normaliser_variance),
                ]
            };
            for (a, b) in all(a).into_iter().zip(all(b)) {
                let (a, b) = (a.unwrap(), b.unwrap());
                assert!((a - b).abs() <= 1e-12 * a.abs(), "{name}: {a}, {b}");
            }
        };
        for place in [0, 7, 19] {
            let (own, seen) = (
                q.select(Axis(0), &[place]),
                [&k, &v].map(|x| x.select(Axis(0), &Vec::from_iter(0..=place))),
            );
            let places = [place];
            let causal = TokenSample::causal(&own, &k).with_values(&v).with_places(&places);
            let whole = TokenSample::new(&own, &seen[0]).with_values(&seen[1]);
            close(&attention.error_report(&causal).unwrap(), &attention.error_report(&whole).unwrap());
        }
        let order: Vec<usize> = (0..n).rev().collect();
        let turned = q.select(Axis(0), &order);
        let near = attention.clone().with_window(3, 2).unwrap();
        for attention in [&attention, &near] {
            for causal in [false, true] {
                let of = if causal { TokenSample::causal } else { TokenSample::new };
                let [one, other] = [of(&q, &k), of(&turned, &k).with_places(&order)]
                    .map(|sample| attention.error_report(&sample.with_values(&v)).unwrap());
                close(&one, &other);
            }
        }
    }
}

/// What a causal query does not see changes nothing, however large it is.
#[test]
fn keys_behind_a_place_change_nothing() {
    let (n, d, m) = (20, 4, 200);
    let [q, k] = [1, 2].map(|seed| normal(n, d, 0.4, seed));
    let (v, places) = (normal(n, 3, 1.0, 3), [2, 7, 11, 15]);
    let few = q.select(Axis(0), &places);
    let mut huge = k.clone();
    huge.slice_mut(s![17.., ..]).mapv_inplace(|v| 1e5 * v);
    let recipe = Positive.recipe(Draw::new(d, m, Independent), Softmax::default());
    for (name, map) in [("positive", recipe.draw::<f64>(5).unwrap()), shaped(d, m, 5).swap_remove(6)] {
        for before in [0, 3] {
            let attention = Attention::new(map.clone()).unwrap().with_window(before, 2).unwrap();
            let reports = [&k, &huge].map(|k| {
                let sample = TokenSample::causal(&few, k).with_values(&v).with_places(&places);
                let closed = attention.error_report(&sample).unwrap();
                let redrawn = attention.simulated_report(&recipe, 40, &sample).unwrap();
                [closed, redrawn].map(|report| {
                    [
                        report.weight_error().unwrap(),
                        report.output_error().unwrap(),
                        report.normaliser_variance,
                        report.mean_error,
                    ]
                })
            });
            for (a, b) in reports[0].iter().flatten().zip(reports[1].iter().flatten()) {
                assert!((a - b).abs() <= 1e-9 * a, "{name}, {before}: {reports:?}");
            }
        }
    }
}

/// Each head chooses its heaviest keys by the lengthscale of its own map.
#[test]
fn heads_choose_their_own_keys() {
    let (q, k) = (normal(20, 4, 0.6, 1), normal(20, 4, 1.5, 2));
    let map = |ell: f64| -> Map<f64> {
        Positive.build(Independent.draw(4, 4096, 5).unwrap(), Softmax::new(ell).unwrap()).unwrap()
    };
    let of = |ells: &[f64]| {
        let maps = ells.iter().map(|ell| map(*ell)).collect();
        let attention = Attention::signed(maps).unwrap().with_heaviest_keys_exact(5).unwrap();
        attention.error_report(&TokenSample::new(&q, &k).with_values(&k).with_head(ells.len() - 1)).unwrap()
    };
    let alone = of(&[1.2]);
    assert!(alone.weight_error().is_some(), "{alone}");
    for other in [0.3, 4.0] {
        assert_eq!(of(&[other, 1.2]), alone);
    }
}

/// A key whose weights are tiny and whose squared weights are 0 counts for nothing, though its variance is infinite.
#[test]
fn keys_without_weight_have_no_variance() {
    let [mut q, k] = [1, 2].map(|seed| normal(12, 4, 0.3, seed));
    q.column_mut(0).fill(1.0);
    let mut far = Array2::zeros((1, 4));
    far[[0, 0]] = -900.0;
    let v = normal(13, 3, 1.0, 3);
    let all = concatenate![Axis(0), k, far];
    let own = v.slice(s![..12, ..]);
    let attention = Attention::new(maps(4, 256, 5)[0].clone()).unwrap();
    let [one, other] =
        [TokenSample::new(&q, &all).with_values(&v), TokenSample::new(&q, &k).with_values(&own)]
            .map(|sample| attention.error_report(&sample).unwrap());
    for (a, b) in [
        (one.weight_error(), other.weight_error()),
        (one.output_error(), other.output_error()),
        (Some(one.normaliser_variance), Some(other.normaliser_variance)),
    ] {
        assert!((a.unwrap() / b.unwrap() - 1.0).abs() < 1e-9, "{one}, {other}");
    }
}

/// Estimates for equal keys err alike, which cancels: there is no error, of however many keys, and rounding makes none.
#[test]
fn equal_keys_leave_no_error() {
    let (d, m) = (4, 12);
    for (count, seed) in [(2, 1), (5, 2), (5, 3), (30, 4), (70, 5)] {
        let (q, v) = (normal(3, d, 0.3, seed), normal(count, 2, 1.0, seed + 10));
        let row = normal(1, d, 0.3, seed + 20);
        let k = Array2::from_shape_fn((count, d), |(_, c)| row[[0, c]]);
        let conditioned = shaped(d, m, seed).into_iter().map(|(_, map)| map);
        for (number, map) in maps(d, m, seed).into_iter().chain(conditioned).enumerate() {
            let attention = Attention::signed(vec![map]).unwrap();
            let report = attention.error_report(&TokenSample::new(&q, &k).with_values(&v)).unwrap();
            if report.is_hopeless() {
                continue;
            }
            let [weights, output] = [report.weight_error(), report.output_error()];
            assert!(weights.is_some_and(|error| error < 1e-7), "{number}, {count}: {report:?}");
            assert!(output.is_some_and(|error| error < 1e-6), "{number}, {count}: {report:?}");
        }
    }
}

/// Where all pairs are exact nothing is worse than uniform weights, not even where these are exact too.
#[test]
fn no_error_is_no_worse_than_none() {
    let (q, row) = (normal(4, 4, 0.5, 1), normal(1, 4, 0.5, 2));
    let k = Array2::from_shape_fn((4, 4), |(_, c)| row[[0, c]]);
    let attention = Attention::<f64>::new(maps(4, 16, 1)[0].clone()).unwrap().with_window(4, 4).unwrap();
    let report = attention.error_report(&TokenSample::new(&q, &k)).unwrap();
    assert_eq!((report.weight_error(), report.mean_error), (Some(0.0), 0.0));
    assert_eq!(report.is_worse_than_uniform(), Some(false));
}
