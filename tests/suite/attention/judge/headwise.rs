//! An attention for each head, chosen from calibration sequences.

use std::ops::ControlFlow;

use crate::attention::head;
use crate::common::tokens;
use ndarray::{Array2, Array3, Array4, ArrayViewD, Axis, Slice, concatenate, s};
use random_features::Error;
use random_features::apply::attention::{
    ExactAttention, HeadBudget, HeadCalibration, HeadCandidate, HeadComparison, Heads, HeadwiseAttention,
};
use random_features::progress::watch;

/// Queries of four heads and keys and values of two, of so many sequences. The first head of keys attends to neighbours, the second to two
/// keys and else to all alike.
fn layer(batch: usize, l: usize, seed: usize) -> [Array4<f64>; 3] {
    let mut q = tokens::<f64>([batch, 4, l, 6], 0.5, seed);
    let mut k = tokens::<f64>([batch, 2, l, 6], 0.5, seed + 1);
    let v = tokens::<f64>([batch, 2, l, 3], 1.0, seed + 2) + 0.3;
    for b in 0..batch {
        for i in 0..l {
            let angle = i as f64 * 0.2;
            for (x, heads) in [(&mut q, 0..2), (&mut k, 0..1)] {
                for h in heads {
                    x[[b, h, i, 0]] += 5.0 * angle.cos();
                    x[[b, h, i, 1]] += 5.0 * angle.sin();
                }
            }
            for h in 2..4 {
                q[[b, h, i, 3]] += 2.0;
            }
            if i == 3 || i == l - 2 {
                k[[b, 1, i, 3]] += 4.0;
            }
        }
    }
    [q, k, v]
}

fn exact(heads: &Heads<'_, f64>, causal: bool) -> Array4<f64> {
    let exact = ExactAttention::new();
    if causal { exact.causal(heads) } else { exact.bidirectional(heads) }.unwrap().output
}

fn choose(
    causal: bool,
    m: usize,
    sequences: &[Heads<'_, f64>],
    budget: HeadBudget,
) -> HeadwiseAttention<f64> {
    let calibration = if causal { HeadCalibration::causal() } else { HeadCalibration::bidirectional() };
    calibration.with_m(&[m]).choose(sequences, budget).unwrap()
}

/// The relative error of each head of keys.
fn errors(layer: &HeadwiseAttention<f64>, sequences: &[Heads<'_, f64>], causal: bool) -> Vec<f64> {
    (0..2)
        .map(|of_keys| {
            let (mut square, mut size) = (0.0, 0.0);
            for heads in sequences {
                let (out, exact) = (layer.attend(heads).unwrap().output, exact(heads, causal));
                let own = s![.., 2 * of_keys..2 * of_keys + 2, .., ..];
                square += (&out - &exact).slice(own).pow2().sum();
                size += exact.slice(own).pow2().sum();
            }
            (square / size).sqrt()
        })
        .collect()
}

/// With one sequence the errors that are stated are those of the outputs, and each head's output is that of its own attention.
#[test]
fn errors_of_one_sequence_are_those_of_its_outputs() {
    let [q, k, v] = layer(1, 96, 1);
    let heads = Heads::new(&q, &k, &v).unwrap();
    for causal in [false, true] {
        let layer = choose(causal, 16, std::slice::from_ref(&heads), HeadBudget::Pairs(12.0));
        let found = errors(&layer, std::slice::from_ref(&heads), causal);
        for ((chosen, found), of_keys) in layer.chosen().zip(found).zip(0..) {
            assert!((chosen.error - found).abs() < 1e-9, "{chosen:?} {found}");
            let attention = layer.attention(of_keys).unwrap();
            let [q, k, v] = [(&q, 2), (&k, 1), (&v, 1)]
                .map(|(x, group)| x.slice(s![.., group * of_keys..group * (of_keys + 1), .., ..]).to_owned());
            let own = Heads::new(&q, &k, &v).unwrap();
            let own = if causal { attention.causal(&own) } else { attention.bidirectional(&own) }.unwrap();
            let out = layer.attend(&heads).unwrap();
            assert_eq!(head(&own.output, 0, 1), head(&out.output, 0, 2 * of_keys + 1));
        }
        assert!(layer.pairs() <= 12.0);
        assert_eq!((layer.heads(), layer.attention(2).is_none()), (2, true));
    }
}

/// More pairs never make the layer's error larger, as many as all make it 0, and pairs are those of a count one by one.
#[test]
fn budgets_of_pairs_are_kept() {
    let sequences = [layer(2, 96, 1), layer(1, 80, 50)];
    let heads = Vec::from_iter(sequences.iter().map(|[q, k, v]| Heads::new(q, k, v).unwrap()));
    for causal in [false, true] {
        let calibration = if causal { HeadCalibration::causal() } else { HeadCalibration::bidirectional() };
        let ways: HeadComparison<f64> = calibration.with_m(&[16]).compare(&heads).unwrap();
        let mut last = f64::INFINITY;
        for pairs in [0.0, 4.0, 12.0, 30.0, 1e9] {
            let layer = ways.choose(HeadBudget::Pairs(pairs)).unwrap();
            let mean = layer.chosen().map(|chosen| chosen.pairs).sum::<f64>() / 2.0;
            assert!(mean <= pairs && (mean - layer.pairs()).abs() < 1e-12);
            let squares: f64 = layer.chosen().map(|chosen| chosen.error.powi(2)).sum();
            assert!(squares <= 1.5 * last, "{pairs}: {squares} {last}");
            last = squares;
            for HeadCandidate { window: [before, after], exact_keys, pairs, features, .. } in layer.chosen() {
                let near = |i: usize, j: usize| j + before > i && j < i + 1 + after && (!causal || j <= i);
                let of_query = |i: usize| {
                    let seen = if causal { i + 1 } else { 91 };
                    ((0..91).filter(|j| near(i, *j)).count() + exact_keys).min(seen)
                };
                // The mean length is 91.
                let count = (0..91).map(of_query).sum::<usize>() as f64 / 91.0;
                let all = if causal { 46.0 } else { 91.0 };
                let expected = if features == "exact" { all } else { count };
                assert!((pairs - expected).abs() < 1e-9, "{features} {pairs} {expected}");
            }
        }
        assert_eq!(last, 0.0);
        let exact = ways.choose(HeadBudget::Pairs(1e9)).unwrap();
        assert!(errors(&exact, &heads, causal).iter().all(|e| *e < 1e-12));
    }
}

/// A head that attends to neighbours gets a window, one that attends to few keys gets these. Errors on other sequences are near those that
/// are stated, which are of choices from half of the sequences.
#[test]
fn heads_get_what_they_attend_to() {
    let sequences = [1, 11, 21, 31].map(|seed| layer(1, 128, seed));
    let heads = Vec::from_iter(sequences.iter().map(|[q, k, v]| Heads::new(q, k, v).unwrap()));
    let layer_of = choose(false, 32, &heads, HeadBudget::Pairs(20.0));
    let chosen = Vec::from_iter(layer_of.chosen());
    assert!(chosen[0].window[0] >= 5 && chosen[1].exact_keys >= 4, "{layer_of}");
    assert!(chosen[0].pairs > chosen[1].pairs, "{layer_of}");
    let others = [41, 51].map(|seed| layer(1, 128, seed));
    let others = Vec::from_iter(others.iter().map(|[q, k, v]| Heads::new(q, k, v).unwrap()));
    for (stated, found) in chosen.iter().zip(errors(&layer_of, &others, false)) {
        assert!(found < 1.6 * stated.error + 1e-3 && stated.error < 3.0 * found + 1e-3, "{stated} {found}");
    }
}

/// Each head takes the fewest operations that reach an error, and exact attention where nothing else does.
#[test]
fn errors_are_reached() {
    let [q, k, v] = layer(2, 96, 1);
    let heads = [Heads::new(&q, &k, &v).unwrap()];
    for most in [0.5, 0.1, 0.01, 0.0] {
        let layer = choose(false, 16, &heads, HeadBudget::Error(most));
        for (of_keys, chosen) in layer.chosen().enumerate() {
            assert!(chosen.error <= most);
            let ways = layer.alternatives(of_keys);
            let cheaper = ways.iter().filter(|way| way.operations < chosen.operations);
            assert!(cheaper.into_iter().all(|way| way.error > most));
            assert!(ways.is_sorted_by(|a, b| a.operations < b.operations && a.error > b.error), "{ways:?}");
            assert_eq!(ways.last().unwrap().features, "exact");
        }
        assert!(most > 0.0 || layer.chosen().all(|chosen| chosen.features == "exact"));
    }
    let dear = choose(false, 16, &heads, HeadBudget::Operations(1e12));
    assert_eq!(dear.operations(), choose(false, 16, &heads, HeadBudget::Error(0.0)).operations());
    let half = choose(false, 16, &heads, HeadBudget::Operations(0.5 * dear.operations()));
    assert!(half.operations() <= 0.5 * dear.operations());
}

/// Heads take few frequencies where these are enough, and many where they pay; more to choose from never costs more.
#[test]
fn numbers_of_frequencies_are_chosen() {
    let sequences = [1, 11].map(|seed| layer(1, 96, seed));
    let heads = Vec::from_iter(sequences.iter().map(|[q, k, v]| Heads::new(q, k, v).unwrap()));
    let compared =
        |m: &[usize]| HeadCalibration::bidirectional().with_m(m).compare::<f64, _>(&heads).unwrap();
    let (few, many, both) = (compared(&[4]), compared(&[48]), compared(&[4, 48]));
    let mut found = Vec::new();
    for error in [0.5, 0.3, 0.2, 0.1, 0.05] {
        let [few, many, both] =
            [&few, &many, &both].map(|ways| ways.choose(HeadBudget::Error(error)).unwrap());
        for ((few, many), both) in few.chosen().zip(many.chosen()).zip(both.chosen()) {
            assert!(both.error <= error && both.operations == few.operations.min(many.operations));
            found.push(both.m);
        }
    }
    assert!(found.contains(&4) && found.contains(&48), "{found:?}");
    assert!(found.iter().all(|m| [0, 4, 48].contains(m)), "{found:?}");
    for operations in [3e3, 1e4] {
        let squares = |ways: &HeadComparison<f64>| -> f64 {
            let layer = ways.choose(HeadBudget::Operations(operations)).unwrap();
            assert!(layer.operations() <= operations);
            layer.chosen().map(|chosen| chosen.error.powi(2)).sum()
        };
        assert!(squares(&both) <= 1.5 * squares(&few).min(squares(&many)), "{operations}");
    }
}

/// Pairs and operations are counted for the stated length, and errors of the calibration sequences stay.
#[test]
fn costs_are_those_of_the_stated_length() {
    let [q, k, v] = layer(1, 48, 1);
    let sequences = [Heads::new(&q, &k, &v).unwrap()];
    let chosen = |calibration: HeadCalibration| -> Vec<HeadCandidate> {
        let calibration = calibration.with_m(&[8]);
        calibration.choose::<f64, _>(&sequences, HeadBudget::Error(1e-9)).unwrap().chosen().cloned().collect()
    };
    let (own, long) = (
        chosen(HeadCalibration::bidirectional()),
        chosen(HeadCalibration::bidirectional().with_length(1000)),
    );
    for (own, long) in own.iter().zip(&long) {
        assert_eq!([&*own.features, &*long.features], ["exact", "exact"]);
        assert_eq!([own.pairs, long.pairs], [48.0, 1000.0]);
        assert!(long.operations > 15.0 * own.operations && own.error == long.error);
    }
    let nothing =
        HeadCalibration::causal().with_length(0).choose::<f64, _>(&sequences, HeadBudget::Error(0.1));
    assert!(matches!(nothing, Err(Error::Parameter { .. })));
}

/// A causal layer, of whose heads one is exact and one is not.
fn causal_layer(l: usize) -> ([Array4<f64>; 3], HeadwiseAttention<f64>) {
    let all = layer(2, l, 1);
    let heads = [Heads::new(&all[0], &all[1], &all[2]).unwrap()];
    let ways = HeadCalibration::causal().with_m(&[8]).with_scale(0.3).unwrap().compare(&heads).unwrap();
    let is_mixed = |layer: &HeadwiseAttention<f64>| {
        layer.chosen().filter(|chosen| chosen.features == "exact").count() == 1
    };
    let mut layers = (0..200).map(|step| ways.choose(HeadBudget::Pairs(0.25 * step as f64)).unwrap());
    (all, layers.find(is_mixed).unwrap())
}

/// Outputs of a state are those of the layer, in one piece, in pieces, token by token, and where sequences come and go.
#[test]
fn states_give_the_outputs_of_the_layer() {
    let ([q, k, v], layer) = causal_layer(80);
    let whole = layer.attend(&Heads::new(&q, &k, &v).unwrap()).unwrap();
    let near = |found: ArrayViewD<'_, f64>, expected: ArrayViewD<'_, f64>| {
        assert_eq!(found.shape(), expected.shape());
        found.iter().zip(expected).for_each(|(a, b)| assert!((a - b).abs() < 1e-10, "{a} {b}"));
    };
    let mut state = layer.state(2, 3).unwrap();
    for (from, to) in [(0, 1), (1, 50), (50, 50), (50, 70)] {
        let own = s![.., .., from..to, ..];
        let [q, k, v] = [&q, &k, &v].map(|x| x.slice(own));
        let part = state.prefill(&Heads::new(&q, &k, &v).unwrap()).unwrap();
        near(part.output.view().into_dyn(), whole.output.slice(own).into_dyn());
    }
    // A fork, in another order.
    let mut fork = state.clone();
    fork.select(&[1, 0, 1]).unwrap();
    state.append(fork).unwrap();
    let order = [0, 1, 1, 0, 1];
    for i in 70..80 {
        let [q, k, v] = [&q, &k, &v].map(|x| x.index_axis(Axis(2), i).select(Axis(0), &order));
        let out = state.step(&q, &k, &v).unwrap();
        assert!(out.non_positive.is_empty());
        let expected = whole.output.index_axis(Axis(2), i).select(Axis(0), &order);
        near(out.output.view().into_dyn(), expected.view().into_dyn());
    }
    assert_eq!(state.lengths(), [80; 5]);
}

/// Linear heads are those of the layer to the bit, in pieces and token by token; so are masked and packed prompts to rounding.
#[test]
fn states_take_what_attention_takes() {
    let ([q, k, v], layer) = causal_layer(80);
    let whole = layer.attend(&Heads::new(&q, &k, &v).unwrap()).unwrap();
    let linear = (0..2).find(|head| layer.attention(*head).is_some()).unwrap();
    let mut state = layer.state(2, 3).unwrap();
    let [q_0, k_0, v_0] = [&q, &k, &v].map(|x| x.slice(s![.., .., ..70, ..]));
    let read = state.prefill(&Heads::new(&q_0, &k_0, &v_0).unwrap()).unwrap();
    let own = s![.., 2 * linear..2 * linear + 2, ..70, ..];
    assert_eq!(read.output.slice(own), whole.output.slice(own));
    for i in 70..80 {
        let [q, k, v] = [&q, &k, &v].map(|x| x.index_axis(Axis(2), i));
        let out = state.step(&q, &k, &v).unwrap().output;
        let own = s![.., 2 * linear..2 * linear + 2, ..];
        assert_eq!(out.slice(own), whole.output.index_axis(Axis(2), i).slice(own));
    }
    let near = |found: &Array4<f64>, expected: &Array4<f64>| {
        assert!((found - expected).iter().all(|v| v.abs() < 1e-10));
    };
    let mask = Array2::from_shape_fn((2, 80), |(b, j)| j % 7 != 2 * b);
    let masked = Heads::new(&q, &k, &v).unwrap().with_mask(&mask).unwrap();
    let read = layer.state(2, 3).unwrap().prefill(&masked).unwrap();
    near(&read.output, &layer.attend(&masked).unwrap().output);
    let packed = Heads::new(&q, &k, &v).unwrap().with_sequences(&[0, 33, 80], &[0, 33, 80]).unwrap();
    let mut state = layer.state(4, 3).unwrap();
    near(&state.prefill(&packed).unwrap().output, &layer.attend(&packed).unwrap().output);
    assert_eq!(state.lengths(), [33, 47, 33, 47]);
    // Keys without queries, and no sequence at all.
    let mut state = layer.state(2, 3).unwrap();
    let none = state.prefill(&Heads::without_queries(&k, &v).unwrap()).unwrap();
    assert_eq!((none.output.dim(), state.lengths()), ((2, 2, 0, 3), vec![80, 80]));
    let mut empty = layer.state(0, 3).unwrap();
    assert!(empty.lengths().is_empty());
    empty.append(layer.state(2, 3).unwrap()).unwrap();
    assert_eq!(empty.lengths(), [0, 0]);
    empty.select(&[]).unwrap();
    assert!(empty.lengths().is_empty());
}

/// A prefill that a watcher stops leaves the state as it was.
#[test]
fn stopped_prompts_leave_states_as_they_were() {
    let (_, chosen) = causal_layer(80);
    let prompt = |l| layer(1, l, 1);
    let ([q, k, v], [long_q, long_k, long_v]) = (prompt(9), prompt(30_000));
    let mut state = chosen.state(1, 3).unwrap();
    state.prefill(&Heads::new(&q, &k, &v).unwrap()).unwrap();
    let long = Heads::new(&long_q, &long_k, &long_v).unwrap();
    let mut untouched = state.clone();
    // An exact head takes seconds for it.
    let stopped = watch(|_| ControlFlow::Break(()), || state.prefill(&long));
    assert!(matches!(stopped, Err(Error::Cancelled)));
    let [a, b, c] = [&q, &k, &v].map(|x| x.index_axis(Axis(2), 3));
    assert_eq!(state.step(&a, &b, &c).unwrap(), untouched.step(&a, &b, &c).unwrap());
    assert_eq!(state.lengths(), [10]);
}

/// What a state refuses leaves it as it was.
#[test]
fn states_refuse_what_does_not_fit() {
    let ([q, k, v], layer) = causal_layer(48);
    let mut state = layer.state(2, 3).unwrap();
    state.prefill(&Heads::new(&q, &k, &v).unwrap()).unwrap();
    let token = |x: &Array4<f64>| x.index_axis(Axis(2), 5).to_owned();
    let [a, b, c] = [&q, &k, &v].map(token);
    let before = state.clone().step(&a, &b, &c).unwrap();
    let cut = |x: &Array3<f64>, axis| x.slice_axis(Axis(axis), Slice::from(..1)).to_owned();
    for axis in 0..3 {
        assert!(state.step(&cut(&a, axis), &b, &c).is_err());
        assert!(state.step(&a, &cut(&b, axis), &c).is_err());
        assert!(state.step(&a, &b, &cut(&c, axis)).is_err());
    }
    let three = concatenate![Axis(1), a, cut(&a, 1)];
    assert!(matches!(state.step(&three, &b, &c), Err(Error::Multiple { .. })));
    let few = Heads::without_queries(&k, &k).unwrap();
    assert!(matches!(state.prefill(&few), Err(Error::Shape { .. })));
    assert!(matches!(state.select(&[0, 2]), Err(Error::Entry { .. })));
    let other = layer.state(1, 4).unwrap();
    assert!(matches!(state.append(other), Err(Error::Merge { .. })));
    assert_eq!(state.lengths(), [48, 48]);
    assert_eq!(state.step(&a, &b, &c).unwrap(), before);
    assert!(matches!(layer.state(2, 0), Err(Error::Parameter { .. })));
    let heads = [Heads::new(&q, &k, &v).unwrap()];
    let both = choose(false, 8, &heads, HeadBudget::Pairs(4.0));
    assert!(matches!(both.state(1, 3), Err(Error::Unsupported { .. })));
    let narrow = k.slice(s![.., .., .., ..5]);
    let narrow = Heads::new(&narrow, &narrow, &v).unwrap();
    assert!(matches!(both.attend(&narrow), Err(Error::Shape { .. })));
}

/// Stored and read, a layer attends to the bit as before.
#[cfg(feature = "serde")]
#[test]
fn layers_are_stored() {
    let [q, k, v] = layer(1, 64, 1);
    let heads = Heads::new(&q, &k, &v).unwrap();
    let layer = HeadCalibration::bidirectional().with_m(&[8]).with_scale(0.3).unwrap();
    let layer: HeadwiseAttention<f64> =
        layer.choose(std::slice::from_ref(&heads), HeadBudget::Pairs(40.0)).unwrap();
    let read: HeadwiseAttention<f64> = serde_json::from_str(&serde_json::to_string(&layer).unwrap()).unwrap();
    assert_eq!(read.attend(&heads).unwrap(), layer.attend(&heads).unwrap());
    assert_eq!((read.to_string(), read.alternatives(1)), (layer.to_string(), layer.alternatives(1)));
}

/// Logits of another scale are those of scaled queries.
#[test]
fn scales_are_those_of_queries() {
    let [q, k, v] = layer(1, 64, 1);
    let (heads, half) = (Heads::new(&q, &k, &v).unwrap(), &q * 0.5);
    let half = Heads::new(&half, &k, &v).unwrap();
    let of = |calibration: HeadCalibration, heads: &Heads<'_, f64>| -> HeadwiseAttention<f64> {
        calibration.with_m(&[16]).choose(std::slice::from_ref(heads), HeadBudget::Pairs(10.0)).unwrap()
    };
    let scaled = of(HeadCalibration::bidirectional().with_scale(0.5 / 6f64.sqrt()).unwrap(), &heads);
    let plain = of(HeadCalibration::bidirectional(), &half);
    for (scaled, plain) in scaled.chosen().zip(plain.chosen()) {
        assert_eq!((&scaled.features, scaled.window), (&plain.features, plain.window));
        assert!((scaled.error - plain.error).abs() < 1e-6, "{scaled} {plain}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let [q, k, v] = layer(1, 20, 1);
    let heads = [Heads::new(&q, &k, &v).unwrap()];
    let choose = |sequences: &[Heads<'_, f64>], budget| -> Result<HeadwiseAttention<f64>, Error> {
        HeadCalibration::bidirectional().with_m(&[4]).choose(sequences, budget)
    };
    let pairs = HeadBudget::Pairs(4.0);
    assert!(matches!(choose(&[], pairs), Err(Error::NoData { .. })));
    for wrong in [HeadBudget::Pairs(-1.0), HeadBudget::Error(f64::NAN), HeadBudget::Operations(f64::INFINITY)]
    {
        assert!(matches!(choose(&heads, wrong), Err(Error::Parameter { .. })), "{wrong:?}");
    }
    assert!(matches!(choose(&heads, HeadBudget::Operations(1.0)), Err(Error::Parameter { .. })));
    let with_m = |m: &[usize]| HeadCalibration::bidirectional().with_m(m).choose::<f64, _>(&heads, pairs);
    assert!(matches!(with_m(&[4, 0]), Err(Error::Parameter { .. })));
    assert!(matches!(with_m(&[]), Err(Error::Parameter { .. })));
    let (few_k, few_v) = (k.slice(s![.., ..1, .., ..]).to_owned(), v.slice(s![.., ..1, .., ..]).to_owned());
    let other = Heads::new(&q, &few_k, &few_v).unwrap();
    assert!(matches!(choose(&[heads[0].clone(), other.clone()], pairs), Err(Error::Shape { .. })));
    assert!(matches!(choose(&heads, pairs).unwrap().attend(&other), Err(Error::Shape { .. })));
    let empty = Array4::<f64>::zeros((1, 2, 0, 6));
    assert!(matches!(
        choose(&[Heads::new(&empty, &empty, &empty).unwrap()], pairs),
        Err(Error::NoData { .. })
    ));
    let short = k.slice(s![.., .., ..9, ..]).to_owned();
    let uneven = Heads::new(&q, &short, &short).unwrap();
    assert!(choose(std::slice::from_ref(&uneven), pairs).is_ok());
    let causal = HeadCalibration::causal().with_m(&[4]).choose::<f64, _>(&[uneven], pairs);
    assert!(matches!(causal, Err(Error::Shape { .. })));
    for wrong in [f64::NAN, f64::INFINITY] {
        for which in 0..3 {
            let mut all = [q.clone(), k.clone(), v.clone()];
            all[which][[0, 1, 7, 2]] = wrong;
            let heads = Heads::new(&all[0], &all[1], &all[2]).unwrap();
            assert!(choose(&[heads], pairs).is_err(), "{wrong} {which}");
        }
    }
    // A masked key may be anything.
    let mask = Array2::from_shape_fn((1, 20), |(_, j)| j != 7);
    let mut all = [k.clone(), v.clone()];
    all.iter_mut().for_each(|x| x.slice_mut(s![.., .., 7, ..]).fill(f64::NAN));
    let masked = Heads::new(&q, &all[0], &all[1]).unwrap().with_mask(&mask).unwrap();
    assert!(choose(&[masked], pairs).is_ok());
}
