//! The choice among exact, windowed and linear attention, against all candidates one by one.

use crate::attention::judge::costs::Rule;
use crate::attention::judge::report::maps;
use crate::attention::judge::{D, M, attention, four, normal, recipe};
use ndarray::{Array2, Array4, Axis};
use random_features::apply::attention::{
    Attention, AttentionCandidate, AttentionChoice, ExactAttention, Heads, TokenSample,
};
use random_features::compose::Conditioning;
use random_features::frequency::{Antithetic, Frequencies, Independent};
use random_features::{Error, Positive};

const FACTORS: [(usize, usize); 7] = [(1, 4), (1, 2), (1, 1), (2, 1), (4, 1), (8, 1), (16, 1)];
/// The number and the size of tokens where what is chosen depends on lengths and errors.
const LONG: usize = 128;
const SIZE: f64 = 0.3;
/// Errors that take neighbours and that features reach alone, with these tokens.
const AMBITIOUS: f64 = 0.03;
const EASY: f64 = 0.5;

/// Tokens whose products fall with their distance: waves of their place. ‖x‖² = d · size².
fn local(n: usize, size: f64) -> Array2<f64> {
    let frequency = |k: usize| 0.01 * 1.5f64.powi((k / 2) as i32);
    let wave = |(i, k): (usize, usize)| {
        (frequency(k) * i as f64 + if k % 2 == 0 { 0.0 } else { 0.5 * std::f64::consts::PI }).sin()
    };
    Array2::from_shape_fn((n, D), wave) * (size * 2f64.sqrt())
}

fn norm(x: &Array4<f64>) -> f64 {
    x.iter().map(|v| v * v).sum::<f64>().sqrt()
}

/// Every candidate of a choice by its own: cost by the rule, error by the report of attention with that window and that many
/// frequencies. The best is the cheapest of those that reach the error.
#[test]
fn choices_are_the_best_of_all_candidates() {
    let (n, own) = (40, [5, 3]);
    let (x, v) = (local(n, 0.8), normal(n, 4, 1.0, 3));
    for (causal, keys) in [(false, vec![]), (true, vec![]), (true, vec![0, 1])] {
        let start = attention(M, 5).with_window(own[0], own[1]).unwrap().with_keys_exact(&keys).unwrap();
        let sample = if causal { TokenSample::causal(&x, &x) } else { TokenSample::new(&x, &x) };
        let sample = sample.with_values(&v);
        let rule = Rule { d: D, d_v: 4, causal };
        // Windows of more than half of the sample are left out, since sequences are longer.
        let mut windows = vec![[0, 0], if causal { [own[0], 0] } else { own }];
        windows.extend([8, 16].map(|w| if causal { [w, 0] } else { [w / 2, w / 2] }));
        let mut errors = Vec::new();
        for window in &windows {
            for (up, down) in FACTORS {
                let m = M * up / down;
                let redrawn = attention(m, 5).with_window(window[0], window[1]).unwrap();
                let report = redrawn.with_keys_exact(&keys).unwrap().error_report(&sample).unwrap();
                errors.push((*window, m, report.output_error()));
            }
        }
        for length in [70, 1000, 50_000, 1_000_000] {
            let lengths = [length, length];
            for error in [1e-3, 0.05, 0.2, 0.6] {
                let choice = start.choose(&sample, lengths, error).unwrap();
                assert_eq!(choice.candidates.len(), errors.len() + 1);
                assert!(choice.candidates.is_sorted_by(|a, b| a.operations <= b.operations));
                let mut least = rule.exact(lengths);
                for (window, m, expected) in &errors {
                    let of = |own: &&AttentionCandidate| !own.exact && own.window == *window && own.m == *m;
                    let found = choice.candidates.iter().find(of).unwrap();
                    // Hyperbolic features are two for each frequency.
                    let cost = rule.linear(lengths, 2 * m, *window, keys.len());
                    assert!((found.operations / cost - 1.0).abs() < 1e-12, "{found:?}, {cost}");
                    assert_eq!(found.error.is_some(), expected.is_some(), "{found:?}, {expected:?}");
                    if let (Some(found), Some(expected)) = (found.error, expected) {
                        assert!((found - expected).abs() < 1e-9 * expected, "{found}, {expected}");
                        least = if found <= error { least.min(cost) } else { least };
                    }
                }
                let best = choice.best().unwrap();
                assert!((best.operations / least - 1.0).abs() < 1e-12, "{choice}");
                assert!(best.error.unwrap() <= error, "{choice}");
            }
        }
    }
}

/// Whether no weights are exact.
fn is_linear(candidate: &AttentionCandidate) -> bool {
    !candidate.exact && candidate.window == [0, 0]
}

/// What is chosen for local tokens, of a length and an error.
fn best(length: usize, error: f64) -> (AttentionCandidate, AttentionChoice<f64>) {
    let (x, v) = (local(LONG, SIZE), normal(LONG, 8, 1.0, 3));
    let sample = TokenSample::causal(&x, &x).with_values(&v);
    let choice = attention(M, 5).choose(&sample, [length, length], error).unwrap();
    (choice.best().unwrap(), choice)
}

#[test]
fn lengths_and_errors_decide_in_order() {
    // Short sequences are exact, whatever the error; so are errors that nothing else reaches.
    assert!(best(64, EASY).0.exact);
    assert!(best(1 << 20, 1e-9).0.exact);
    // Long ones have neighbours where the error is ambitious and features alone where it is not.
    let (near, choice) = best(1 << 18, AMBITIOUS);
    assert!(!near.exact && near.window[0] > 0 && near.window[1] == 0, "{choice}");
    let (far, choice) = best(1 << 18, EASY);
    assert!(is_linear(&far), "{choice}");
    // The longer, the further from exact; the larger the error, the cheaper.
    for error in [AMBITIOUS, EASY] {
        let exact = |power: u32| best(1 << power, error).0.exact;
        let ways: Vec<bool> = (5..=20).step_by(3).map(exact).collect();
        assert!(ways.is_sorted_by(|a, b| a >= b) && ways[0] && !ways[ways.len() - 1], "{ways:?}");
    }
    let costs: Vec<f64> =
        [1e-9, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6].map(|e| best(1 << 15, e).0.operations).into();
    assert!(costs.is_sorted_by(|a, b| a >= b) && costs[0] > costs[7], "{costs:?}");
}

/// The error of what is chosen is near the expected one. The median over 20 maps that the choice has not seen, drawn from other
/// seeds, is within a factor of 2. Single draws scatter by some 40 %, and medians by a tenth about 0.75 of what is expected. A
/// false alarm has a probability of 1e-4, and errors that are twice as large as expected would be seen.
#[test]
fn chosen_attention_errs_as_expected() {
    let (x, v) = (local(LONG, SIZE), normal(LONG, 8, 1.0, 3));
    let (four_x, four_v) = (four(&x), four(&v));
    let heads = Heads::new(&four_x, &four_x, &four_v).unwrap();
    let exact: Array4<f64> = ExactAttention::new().causal(&heads).unwrap().output;
    for error in [AMBITIOUS, EASY] {
        let (best, choice) = best(1 << 18, error);
        let [before, after] = best.window;
        let mut errors: Vec<f64> = (100..120)
            .map(|seed| {
                let attention = attention(best.m, seed).with_window(before, after).unwrap();
                norm(&(attention.causal(&heads).unwrap().output - &exact)) / norm(&exact)
            })
            .collect();
        errors.sort_by(f64::total_cmp);
        let (median, expected) = (0.5 * (errors[9] + errors[10]), best.error.unwrap());
        assert!(0.5 * expected < median && median < 2.0 * expected, "{choice}: {median}");
    }
}

/// A choice attends as the attention that it names.
#[test]
fn choices_attend() {
    let n = 100;
    let (x, v) = (local(n, SIZE), normal(n, 3, 1.0, 3));
    let (four_x, four_v) = (four(&x), four(&v));
    let heads = Heads::new(&four_x, &four_x, &four_v).unwrap();
    for causal in [false, true] {
        let sample = if causal { TokenSample::causal(&x, &x) } else { TokenSample::new(&x, &x) };
        let sample = sample.with_values(&v);
        let run = |attention: &Attention<f64>| match causal {
            true => attention.causal(&heads).unwrap(),
            false => attention.bidirectional(&heads).unwrap(),
        };
        let choice = attention(M, 5).choose(&sample, [1 << 22, 1 << 22], 0.2).unwrap();
        let best = choice.best().unwrap();
        let [before, after] = best.window;
        // Its own seed with its own number of frequencies.
        let own = attention(best.m, 5).with_window(before, after).unwrap();
        assert_eq!(choice.attend(&heads).unwrap(), run(&own), "{choice}");
        assert_eq!(run(choice.attention().unwrap()), run(&own));
        let exact = attention(M, 5).choose(&sample, [8, 8], 0.2).unwrap();
        let expected: Array4<f64> = match causal {
            true => ExactAttention::new().causal(&heads).unwrap().output,
            false => ExactAttention::new().bidirectional(&heads).unwrap().output,
        };
        assert!(exact.attention().is_none());
        assert_eq!(exact.attend(&heads).unwrap().output, expected);
    }
    // In words: one line for each way, or all of them.
    let sample = TokenSample::new(&x, &x).with_values(&v);
    let choice = attention(M, 5).choose(&sample, [1 << 22, 1 << 22], 0.2).unwrap();
    let (text, all) = (choice.to_string(), format!("{choice:#}"));
    assert!(text.starts_with("Estimates for 4194304 queries") && text.contains("window 4 + 4"), "{text}");
    assert_eq!(text.lines().filter(|line| line.starts_with("* ")).count(), 1);
    // Neighbours up to half of 100 keys, none, and all keys.
    assert_eq!((text.lines().count(), all.lines().count()), (2 + 5 + 1, 2 + 4 * 7 + 1 + 1), "{all}");
}

#[test]
fn windows_and_sizes_that_are_tried() {
    let (x, v) = (local(100, 0.5), normal(100, 3, 1.0, 3));
    let windows = |attention: &Attention<f64>, sample: &TokenSample<'_, f64>, lengths: [usize; 2]| {
        let choice = attention.choose(sample, lengths, 0.1).unwrap();
        let mut all: Vec<[usize; 2]> = Vec::new();
        for candidate in &choice.candidates {
            if candidate.window != [0, 0] && !all.contains(&candidate.window) {
                all.push(candidate.window);
            }
        }
        all.sort();
        all
    };
    let (all, own) = (TokenSample::new(&x, &x).with_values(&v), attention(M, 5));
    let past = TokenSample::causal(&x, &x).with_values(&v);
    // Of a sequence that is no longer than the sample all windows are known, but not those of all its keys.
    assert_eq!(windows(&own, &all, [100, 100]), [[4, 4], [8, 8], [16, 16], [32, 32]]);
    assert_eq!(windows(&own, &all, [32, 32]), [[4, 4], [8, 8]]);
    assert_eq!(windows(&own, &all, [101, 101]), [[4, 4], [8, 8], [16, 16]]);
    assert_eq!(windows(&own, &past, [101, 101]), [[8, 0], [16, 0], [32, 0]]);
    // Queries that need not stand beside keys have no neighbours but those that were asked for.
    assert!(windows(&own, &all, [500, 400]).is_empty());
    assert_eq!(windows(&own.clone().with_window(7, 1).unwrap(), &all, [500, 400]), [[7, 1]]);
    assert_eq!(
        windows(&own.clone().with_window(8, 9).unwrap(), &past, [90, 90]),
        [[8, 0], [16, 0], [32, 0], [64, 0]]
    );
    // Sizes are those that can be drawn: in antithetic pairs too, and of frequencies without a name just one.
    let sizes = |map: random_features::Map<f64>| {
        let choice = Attention::new(map).unwrap().choose(&TokenSample::new(&x, &x), [500, 500], 0.1).unwrap();
        let linear = choice.candidates.iter().filter(|own| is_linear(own));
        linear.map(|own| own.m).collect::<Vec<_>>()
    };
    let law = Independent.draw(D, 24, 1).unwrap().law().clone();
    let given = Frequencies::from_parts(normal(24, D, 1.0, 1), law).unwrap();
    assert_eq!(sizes(Positive.softmax(given).unwrap()), [24]);
    let pairs = Antithetic(Independent).draw(D, 6, 1).unwrap();
    assert_eq!(sizes(Positive.softmax(pairs).unwrap())[1..], [6, 12, 24, 48, 96]);
    // Each head has its own map; samples without values have errors of weights.
    let heads = Attention::per_head([1, 2].map(|seed| recipe(M).draw(seed).unwrap()).into()).unwrap();
    let choice = heads.choose(&TokenSample::new(&x, &x).with_head(1), [1 << 22, 1 << 22], 0.5).unwrap();
    assert_eq!(choice.attention().unwrap().maps().len(), 2);
    let best = choice.best().unwrap();
    let report = attention(best.m, 2).error_report(&TokenSample::new(&x, &x)).unwrap();
    if is_linear(&best) {
        assert!((best.error.unwrap() / report.weight_error().unwrap() - 1.0).abs() < 1e-9);
    }
}

#[test]
fn maps_without_an_exact_counterpart() {
    let (x, v) = (local(60, 0.4), normal(60, 3, 1.0, 3));
    let sample = TokenSample::new(&x, &x).with_values(&v);
    // Truncated features have one kernel of their own, but exact attention and neighbours all the same.
    let turned = Conditioning::new(Array2::eye(D)).unwrap().truncated(D - 2).unwrap();
    let map = Positive
        .softmax::<f64>(Independent.draw(D - 2, M, 1).unwrap())
        .unwrap()
        .conditioned(&turned)
        .unwrap();
    let truncated = Attention::new(map).unwrap();
    assert!(truncated.exact_counterpart().is_none());
    let choice = truncated.choose(&sample, [1000, 1000], 1e-6).unwrap();
    assert_eq!(choice.best().map(|best| best.exact), Some(true));
    assert!(choice.candidates.iter().any(|own| own.window != [0, 0]));
    let heads = four(&x);
    let heads = Heads::new(&heads, &heads, &heads).unwrap();
    let expected: Array4<f64> = ExactAttention::new().bidirectional(&heads).unwrap().output;
    assert_eq!(choice.attend(&heads).unwrap().output, expected);
    // Of another kernel there is neither, so there may be nothing to choose.
    let gaussian = Positive.gaussian::<f64>(Independent.draw(D, M, 1).unwrap(), 1.0).unwrap();
    let gaussian = Attention::new(gaussian).unwrap();
    let choice = gaussian.choose(&sample, [10, 10], 1e-6).unwrap();
    assert!(choice.best().is_none() && choice.attention().is_none());
    assert!(choice.candidates.iter().all(is_linear));
    assert!(choice.to_string().contains("None of them"));
    assert!(matches!(choice.attend(&heads), Err(Error::Unsupported { .. })));
    let choice = gaussian.choose(&sample, [10, 10], 10.0).unwrap();
    assert!(choice.best().is_some_and(|best| is_linear(&best)));
}

#[test]
fn choices_that_make_no_sense_are_refused() {
    let (x, v) = (local(20, 0.4), normal(20, 3, 1.0, 3));
    let (sample, own) = (TokenSample::new(&x, &x).with_values(&v), attention(M, 5));
    for error in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(own.choose(&sample, [9, 9], error), Err(Error::Parameter { .. })), "{error}");
    }
    for lengths in [[0, 9], [9, 0]] {
        assert!(matches!(own.choose(&sample, lengths, 0.1), Err(Error::Parameter { value: 0.0, .. })));
    }
    assert!(own.choose(&sample, [9, 8], 0.1).is_ok());
    assert!(matches!(
        own.choose(&TokenSample::causal(&x, &x).with_values(&v), [9, 8], 0.1),
        Err(Error::Shape { expected: 9, found: 8, .. })
    ));
    let other = normal(20, D + 1, 1.0, 3);
    assert!(matches!(own.choose(&TokenSample::new(&other, &other), [9, 9], 0.1), Err(Error::Shape { .. })));
    assert!(matches!(
        own.choose(&TokenSample::new(&x, &x).with_values(&v.select(Axis(0), &[1])), [9, 9], 0.1),
        Err(Error::Shape { .. })
    ));
    let unknown = own.clone().without_normalisers();
    assert!(matches!(unknown.choose(&sample, [9, 9], 0.1), Err(Error::Unsupported { .. })));
    assert!(matches!(unknown.error_report(&sample), Err(Error::Unsupported { .. })));
    let heaviest = own.with_heaviest_keys_exact(2).unwrap();
    assert!(heaviest.choose(&sample, [9, 9], 0.1).is_ok());
    assert!(matches!(
        heaviest.choose(&TokenSample::causal(&x, &x).with_values(&v), [9, 9], 0.1),
        Err(Error::Unsupported { .. })
    ));
}

/// In one dimension no error is a reason to take few features.
#[test]
fn choices_in_one_dimension_know_errors() {
    let [q, k] = [1, 2].map(|seed| normal(5, 1, 1.0, seed));
    let attention = Attention::new(maps(1, 256, 3)[0].clone()).unwrap();
    let choice =
        attention.choose(&TokenSample::new(&q, &k).with_values(&k), [100_000, 100_000], 1e-9).unwrap();
    assert_eq!(choice.best().map(|best| best.exact), Some(true), "{choice:#}");
}
