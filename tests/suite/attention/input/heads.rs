//! Heads of queries, keys and values: groups, masks, and sequences one after the other.

use crate::attention::oracle::{self, by_features, naive};
use crate::attention::{head, positive, ways, widened};
use crate::common::tokens;
use ndarray::{Array2, Array4, Axis, concatenate, s};
use random_features::Error;
use random_features::apply::attention::{Attention, ExactAttention, Heads};

#[test]
fn grouped_heads_are_repeated_ones() {
    let attention = Attention::new(positive::<f64>(6, 20)).unwrap();
    let (q, k, v) =
        (tokens::<f64>([2, 6, 90, 6], 0.7, 1), tokens([2, 2, 90, 6], 0.7, 2), tokens([2, 2, 90, 3], 1.0, 3));
    let repeated = |x: &Array4<f64>| {
        let heads: Vec<_> = (0..6).map(|h| x.slice(s![.., h / 3..h / 3 + 1, .., ..])).collect();
        concatenate(Axis(1), &heads).unwrap()
    };
    let (many_k, many_v) = (repeated(&k), repeated(&v));
    let (few, many) = (Heads::new(&q, &k, &v).unwrap(), Heads::new(&q, &many_k, &many_v).unwrap());
    assert_eq!(attention.bidirectional(&few).unwrap(), attention.bidirectional(&many).unwrap());
    assert_eq!(attention.causal(&few).unwrap(), attention.causal(&many).unwrap());

    // A map for each head of keys.
    let maps = [20, 31].map(|m| positive::<f64>(6, m));
    let each = Attention::per_head(maps.to_vec()).unwrap();
    let out = each.bidirectional(&few).unwrap().output;
    for (h, map) in [(0, &maps[0]), (5, &maps[1])] {
        let own = Attention::new(map.clone()).unwrap().bidirectional(&few).unwrap().output;
        assert_eq!(head(&out, 1, h), head(&own, 1, h));
    }
    assert!(matches!(each.bidirectional(&many), Err(Error::Shape { .. })));
}

/// A masked key is no key, whatever it holds.
#[test]
fn masks_leave_keys_out() {
    let map = positive::<f64>(6, 20);
    let attention = Attention::new(map.clone()).unwrap();
    let (q, mut k, mut v) = (
        tokens::<f64>([1, 1, 150, 6], 0.7, 1),
        tokens([1, 1, 150, 6], 0.7, 2),
        tokens([1, 1, 150, 3], 1.0, 3),
    );
    let mask = Array2::from_shape_fn((1, 150), |(_, j)| j % 3 != 0);
    let inputs = [&q, &k, &v].map(|x| widened(x, 0, 0));
    for j in (0..150).step_by(3) {
        k.slice_mut(s![0, 0, j, ..]).fill(if j % 2 == 0 { f64::NAN } else { 1e300 });
        v.slice_mut(s![0, 0, j, ..]).fill(f64::INFINITY);
    }
    let heads = Heads::new(&q, &k, &v).unwrap().with_mask(&mask).unwrap();
    for causal in [false, true] {
        let sees = |i: usize, j: usize| !j.is_multiple_of(3) && (!causal || j <= i);
        let out = if causal { attention.causal(&heads) } else { attention.bidirectional(&heads) }.unwrap();
        let expected = naive(&map, inputs.each_ref(), by_features(sees), true);
        assert!((&head(&out.output, 0, 0) - &expected).iter().all(|e| e.abs() < 1e-12));
        // The first query sees no key: 0, and no cause to report it.
        assert!(
            out.non_positive.is_empty()
                && (!causal || head(&out.output, 0, 0).row(0).iter().all(|v| *v == 0.0))
        );
    }
    let nothing = Array2::from_elem((1, 150), false);
    let out = attention.bidirectional(&Heads::new(&q, &k, &v).unwrap().with_mask(&nothing).unwrap()).unwrap();
    assert!(out.output.iter().all(|v| *v == 0.0) && out.non_positive.is_empty());
}

/// A mask of each batch, over more than one block of keys, of exact attention and of the features'.
#[test]
fn each_batch_has_its_own_mask() {
    let n = 600;
    let [x, v] = [(1, 6), (2, 3)].map(|(seed, d)| tokens::<f64>([2, 1, n, d], 0.7, seed));
    let map = positive::<f64>(6, 20);
    let attention = Attention::new(map.clone()).unwrap();
    let mask = Array2::from_shape_fn((2, n), |(b, j)| (j * j + b) % 7 < 4 && (b == 0 || j >= 300));
    let heads = Heads::new(&x, &x, &v).unwrap().with_mask(&mask).unwrap();
    for causal in [false, true] {
        let (exact, out): (Array4<f64>, _) = if causal {
            (ExactAttention::new().causal(&heads).unwrap().output, attention.causal(&heads).unwrap())
        } else {
            (
                ExactAttention::new().bidirectional(&heads).unwrap().output,
                attention.bidirectional(&heads).unwrap(),
            )
        };
        for b in 0..2 {
            let (x, v) = (widened(&x, b, 0), widened(&v, b, 0));
            let sees = |i: usize, j: usize| mask[[b, j]] && (!causal || j <= i);
            let expected = naive(&map, [&x, &x, &v], by_features(&sees), true);
            assert!((&head(&out.output, b, 0) - &expected).iter().all(|e| e.abs() < 1e-12));
            // Of rows that see nothing the output is 0.
            let expected = oracle::exact([&x, &x, &v], sees);
            assert!((&head(&exact, b, 0) - &expected).iter().all(|e| e.abs() < 1e-13));
        }
        let which = [2, 310, 599];
        let found = ways::weights(&attention, &heads, ([1, 0], &which), causal).unwrap().dot(&head(&v, 1, 0));
        let expected = head(&out.output, 1, 0).select(Axis(0), &which);
        assert!((found - expected).iter().all(|e| e.abs() < 1e-12));
    }
}

/// Sequences side by side are the same as each on its own.
#[test]
fn sequences_do_not_see_each_other() {
    let attention = Attention::new(positive::<f32>(6, 20)).unwrap();
    let (q, k, v) = (
        tokens::<f32>([2, 4, 180, 6], 0.7, 1),
        tokens([2, 2, 200, 6], 0.7, 2),
        tokens([2, 2, 200, 3], 1.0, 3),
    );
    let (of_q, of_k) = ([0, 70, 70, 180], [0, 0, 150, 200]);
    let heads = Heads::new(&q, &k, &v).unwrap().with_sequences(&of_q, &of_k).unwrap();
    let out = attention.bidirectional(&heads).unwrap().output;
    let exact: Array4<f32> = ExactAttention::new().bidirectional(&heads).unwrap().output;
    for s in 0..3 {
        let (a, b) = (of_q[s]..of_q[s + 1], of_k[s]..of_k[s + 1]);
        let (q, k, v) = (
            q.slice(s![.., .., a.clone(), ..]),
            k.slice(s![.., .., b.clone(), ..]),
            v.slice(s![.., .., b, ..]),
        );
        let own = Heads::new(&q, &k, &v).unwrap();
        assert_eq!(out.slice(s![.., .., a.clone(), ..]), attention.bidirectional(&own).unwrap().output);
        assert_eq!(
            exact.slice(s![.., .., a, ..]),
            ExactAttention::new().bidirectional::<f32, f32>(&own).unwrap().output
        );
    }
    assert!(matches!(attention.causal(&heads), Err(Error::Shape { .. })));
    let (of_q, k) = ([0, 1, 130, 180], k.slice(s![.., .., ..180, ..]).to_owned());
    let v = v.slice(s![.., .., ..180, ..]).to_owned();
    let heads = Heads::new(&q, &k, &v).unwrap().with_sequences(&of_q, &of_q).unwrap();
    let out = attention.causal(&heads).unwrap().output;
    let (q, k, v) =
        (q.slice(s![.., .., 1..130, ..]), k.slice(s![.., .., 1..130, ..]), v.slice(s![.., .., 1..130, ..]));
    assert_eq!(
        out.slice(s![.., .., 1..130, ..]),
        attention.causal(&Heads::new(&q, &k, &v).unwrap()).unwrap().output
    );
}

/// Auto looks at the sequences, not at their sum; weights say NaN where outputs do.
#[test]
fn sequences_and_nan_reach_the_side_doors() {
    let attention = Attention::new(positive::<f64>(6, 100)).unwrap();
    let x = tokens::<f64>([1, 1, 2000, 6], 0.7, 1);
    let offsets: Vec<usize> = (0..=100).map(|s| 20 * s).collect();
    let heads = Heads::new(&x, &x, &x).unwrap().with_sequences(&offsets, &offsets).unwrap();
    assert!(attention.bidirectional_crossover(6) > 20);
    let expected: Array4<f64> = attention.exact_counterpart().unwrap().bidirectional(&heads).unwrap().output;
    assert_eq!(attention.bidirectional_auto(&heads).unwrap().output, expected);
    let mut k = x.clone();
    k[[0, 0, 25, 0]] = f64::NAN;
    let heads = Heads::new(&x, &k, &x).unwrap().with_sequences(&offsets, &offsets).unwrap();
    let weights = attention.bidirectional_weights(&heads, 0, 0, &[3, 30]).unwrap();
    assert!(weights.row(0).iter().all(|w| w.is_finite()) && weights.row(1).iter().any(|w| w.is_nan()));
    assert!(attention.state(usize::MAX, 2, 1).is_err() && attention.state(1, 1, usize::MAX / 2).is_err());
}
