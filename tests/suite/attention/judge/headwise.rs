//! An attention for each head, chosen from calibration sequences.

use crate::attention::head;
use crate::common::tokens;
use ndarray::{Array2, Array4, s};
use random_features::Error;
use random_features::apply::attention::{
    ExactAttention, HeadBudget, HeadCalibration, HeadCandidate, Heads, HeadwiseAttention,
};

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
    calibration.with_m(m).choose(sequences, budget).unwrap()
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
        let mut last = f64::INFINITY;
        for pairs in [0.0, 4.0, 12.0, 30.0, 1e9] {
            let layer = choose(causal, 16, &heads, HeadBudget::Pairs(pairs));
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
        assert!(
            errors(&choose(causal, 16, &heads, HeadBudget::Pairs(1e9)), &heads, causal)
                .iter()
                .all(|e| *e < 1e-12)
        );
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

/// Stored and read, a layer attends to the bit as before.
#[cfg(feature = "serde")]
#[test]
fn layers_are_stored() {
    let [q, k, v] = layer(1, 64, 1);
    let heads = Heads::new(&q, &k, &v).unwrap();
    let layer = HeadCalibration::bidirectional().with_m(8).with_scale(0.3).unwrap();
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
        calibration.with_m(16).choose(std::slice::from_ref(heads), HeadBudget::Pairs(10.0)).unwrap()
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
        HeadCalibration::bidirectional().with_m(4).choose(sequences, budget)
    };
    let pairs = HeadBudget::Pairs(4.0);
    assert!(matches!(choose(&[], pairs), Err(Error::NoData { .. })));
    for wrong in [HeadBudget::Pairs(-1.0), HeadBudget::Error(f64::NAN), HeadBudget::Operations(f64::INFINITY)]
    {
        assert!(matches!(choose(&heads, wrong), Err(Error::Parameter { .. })), "{wrong:?}");
    }
    assert!(matches!(choose(&heads, HeadBudget::Operations(1.0)), Err(Error::Parameter { .. })));
    let none = HeadCalibration::bidirectional().with_m(0).choose::<f64, _>(&heads, pairs);
    assert!(matches!(none, Err(Error::Parameter { .. })));
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
    let causal = HeadCalibration::causal().with_m(4).choose::<f64, _>(&[uneven], pairs);
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
