//! Attention with some keys taken exactly, and with conditioned maps, against the loop over all pairs.

use crate::attention::oracle::{naive, with_exact};
use crate::attention::pairs::{inputs, near};
use crate::attention::{positive, widened};
use crate::common::{frequencies, tokens};
use crate::threads::on_threads;
use ndarray::{Array2, Array4, s};
use random_features::apply::attention::{Attention, ExactAttention, Heads};
use random_features::compose::Conditioning;
use random_features::frequency::{Independent, Orthogonal};
use random_features::{Error, Positive, Side, Trigonometric};

#[test]
fn all_keys_exact_is_exact_attention() {
    let [q, k, v] = inputs(1, 20, 4, &[]);
    let heads = Heads::new(&q, &k, &v).unwrap();
    let exact: Array4<f64> = ExactAttention::new().bidirectional(&heads).unwrap().output;
    // Of signed maps too: nothing is left to them.
    let signed = Trigonometric.softmax(frequencies(4, 8, &Independent, 1)).unwrap();
    for attention in
        [Attention::new(positive::<f64>(4, 8)).unwrap(), Attention::signed(vec![signed]).unwrap()]
    {
        for count in [20, 1000] {
            let out =
                attention.clone().with_heaviest_keys_exact(count).unwrap().bidirectional(&heads).unwrap();
            near(&widened(&out.output, 0, 0), &widened(&exact, 0, 0), 1e-13);
            assert!(out.non_positive.is_empty());
        }
        let causal: Array4<f64> = ExactAttention::new().causal(&heads).unwrap().output;
        let out = attention.with_keys_exact(&(0..30).collect::<Vec<_>>()).unwrap().causal(&heads).unwrap();
        near(&widened(&out.output, 0, 0), &widened(&causal, 0, 0), 1e-13);
        assert!(out.non_positive.is_empty());
    }
    // Without a key there is nothing to choose.
    let none = Array4::zeros((1, 1, 0, 4));
    let no_values = Array4::zeros((1, 1, 0, 3));
    let heads = Heads::new(&q, &none, &no_values).unwrap();
    let out = Attention::new(positive::<f64>(4, 8))
        .unwrap()
        .with_heaviest_keys_exact(3)
        .unwrap()
        .bidirectional(&heads)
        .unwrap();
    assert!(out.output.iter().all(|v| *v == 0.0));
}

#[test]
fn the_first_keys_are_exact_in_causal_attention() {
    let (d, n) = (4, 150);
    let map = positive::<f64>(d, 12);
    let [q, _, v] = inputs(2, n, d, &[]);
    let k = tokens::<f64>([1, 1, n, d], 0.6, 5);
    let attention = Attention::new(map.clone()).unwrap().with_keys_exact(&[2, 0, 1, 1]).unwrap();
    let heads = Heads::new(&q, &k, &v).unwrap();
    let out = attention.causal(&heads).unwrap();
    for h in 0..2 {
        let expected = naive(
            &map,
            [&widened(&q, 0, h), &widened(&k, 0, 0), &widened(&v, 0, 0)],
            with_exact(&[0, 1, 2], |i, j| j <= i),
            true,
        );
        near(&widened(&out.output, 0, h), &expected, 1e-12);
    }
    // Nothing of the future, not a bit.
    let mut later = k.clone();
    later.slice_mut(s![.., .., 100.., ..]).mapv_inplace(|v| 30.0 * v - 1.0);
    let changed = attention.causal(&Heads::new(&q, &later, &v).unwrap()).unwrap();
    assert_eq!(out.output.slice(s![.., .., ..100, ..]), changed.output.slice(s![.., .., ..100, ..]));
    // Long sequences are cut into segments, whose places count.
    let long = tokens::<f64>([1, 1, 2300, d], 0.6, 5);
    let v = tokens::<f64>([1, 1, 2300, 2], 1.0, 6);
    let heads = Heads::new(&long, &long, &v).unwrap();
    let run = |threads| on_threads(threads, || attention.causal(&heads).unwrap().output);
    let (one, three) = (run(1), run(3));
    assert_eq!(one, three);
    let (q, v) = (widened(&long, 0, 0), widened(&v, 0, 0));
    let rows = [0, 1, 2, 3, 1100, 2299];
    for i in rows {
        let (q, k) = (q.slice(s![i..i + 1, ..]).to_owned(), q.slice(s![..=i, ..]).to_owned());
        let expected = naive(
            &map,
            [&q, &k, &v.slice(s![..=i, ..]).to_owned()],
            with_exact(&[0, 1, 2], |_, _| true),
            true,
        );
        near(&one.slice(s![0, 0, i..i + 1, ..]).to_owned(), &expected, 1e-11);
    }
    // Sequences one after the other have first keys of their own.
    let offsets = [0, 50, 50, 150];
    let [q, _, v] = inputs(1, n, d, &[]);
    let heads = Heads::new(&q, &k, &v).unwrap().with_sequences(&offsets, &offsets).unwrap();
    let out = attention.causal(&heads).unwrap();
    let (q, k, v) = (widened(&q, 0, 0), widened(&k, 0, 0), widened(&v, 0, 0));
    let expected = naive(
        &map,
        [&q, &k, &v],
        with_exact(&[0, 1, 2, 50, 51, 52], |i, j| j <= i && (j < 50) == (i < 50)),
        true,
    );
    near(&widened(&out.output, 0, 0), &expected, 1e-12);
    let rows = attention.causal_weights(&heads, 0, 0, &[1, 49, 77]).unwrap();
    near(&rows.dot(&v), &expected.select(ndarray::Axis(0), &[1, 49, 77]), 1e-12);
}

/// Causally a query sees its own key too, exact or not, where features are far apart in `f32`.
#[test]
fn own_keys_are_seen_where_features_are_far_apart() {
    let [x, v] =
        [(1, 16), (2, 3)].map(|(seed, d)| tokens::<f64>([1, 1, 70, d], 25.0, seed).mapv(|v| v as f32));
    let map = Positive.softmax::<f32>(frequencies(16, 48, &Orthogonal, 7)).unwrap();
    let heads = Heads::new(&x, &x, &v).unwrap();
    let all = Attention::new(map).unwrap().with_keys_exact(&(0..70).collect::<Vec<_>>()).unwrap();
    let (out, exact): (_, Array4<f32>) =
        (all.causal(&heads).unwrap(), ExactAttention::new().causal(&heads).unwrap().output);
    // Logits of up to some thousands are rounded to f32 in one of the two: 1e-3 of a weight.
    assert!(out.output.iter().zip(&exact).all(|(a, b)| (a - b).abs() <= 25.0 * 2e-3), "{}", out.output);
}

/// More than are packed in one block, in whole and as tokens come.
#[test]
fn exact_keys_may_be_many() {
    let [q, k, v] = [1, 2, 3].map(|seed| tokens::<f64>([1, 1, 620, 4], 1.0, seed));
    let heads = Heads::new(&q, &k, &v).unwrap();
    let attention = Attention::new(positive::<f64>(4, 8)).unwrap();
    let attention = attention.with_keys_exact(&(0..620).collect::<Vec<_>>()).unwrap();
    for causal in [false, true] {
        let of = |exact: bool| match (exact, causal) {
            (false, false) => attention.bidirectional(&heads),
            (false, true) => attention.causal(&heads),
            (true, false) => ExactAttention::new().bidirectional(&heads),
            (true, true) => ExactAttention::new().causal(&heads),
        };
        let (own, exact) = (of(false).unwrap().output, of(true).unwrap().output);
        near(&widened(&own, 0, 0), &widened(&exact, 0, 0), 1e-12);
    }
    let (whole, mut state) = (attention.causal(&heads).unwrap().output, attention.state(1, 1, 4).unwrap());
    for i in 0..620 {
        let [q, k, v] = [&q, &k, &v].map(|x| x.slice(s![.., .., i, ..]));
        assert_eq!(state.step(&q, &k, &v).unwrap().output, whole.slice(s![.., .., i, ..]), "token {i}");
    }
}

#[test]
fn queries_of_normalised_attention_need_no_factor() {
    let d = 5;
    let t = Array2::from_shape_fn((d, d), |(k, l)| if k == l { 0.6 + 0.2 * k as f64 } else { 0.05 });
    let conditioning = Conditioning::new(t).unwrap().shifted(vec![0.1; d], vec![0.3; d]).unwrap();
    let map = positive::<f64>(d, 20).conditioned(&conditioning).unwrap();
    let truncated = positive::<f64>(2, 20).conditioned(&conditioning.truncated(2).unwrap()).unwrap();
    let [q, k, v] = inputs(1, 70, d, &[3]);
    let heads = Heads::new(&q, &k, &v).unwrap();
    for map in [map, truncated] {
        let attention = Attention::new(map.clone()).unwrap();
        let inputs = [&widened(&q, 0, 0), &widened(&k, 0, 0), &widened(&v, 0, 0)];
        let expected = naive(&map, inputs, with_exact(&[], |_, _| true), true);
        near(&widened(&attention.bidirectional(&heads).unwrap().output, 0, 0), &expected, 1e-12);
        let causal = naive(&map, inputs, with_exact(&[], |i, j| j <= i), true);
        near(&widened(&attention.causal(&heads).unwrap().output, 0, 0), &causal, 1e-12);
        // With exact keys their factors count, and so they do without a normaliser.
        let expected = naive(&map, inputs, with_exact(&[3], |_, _| true), true);
        let exact = attention.clone().with_heaviest_keys_exact(1).unwrap();
        near(&widened(&exact.bidirectional(&heads).unwrap().output, 0, 0), &expected, 1e-12);
        let sums = attention.without_normalisers().bidirectional(&heads).unwrap().output;
        let expected = naive(&map, inputs, with_exact(&[], |_, _| true), false);
        near(&widened(&sums, 0, 0), &expected, 1e-10);
        assert_eq!(map.features(Side::X, inputs[0]).unwrap().mantissas().ncols(), 20);
    }
}

#[test]
fn what_does_not_go_together_is_refused() {
    let attention = Attention::new(positive::<f64>(4, 8)).unwrap();
    let heaviest = attention.clone().with_heaviest_keys_exact(2).unwrap();
    let x = tokens::<f64>([1, 1, 9, 4], 1.0, 1);
    let heads = Heads::new(&x, &x, &x).unwrap();
    assert!(matches!(heaviest.causal(&heads), Err(Error::Unsupported { .. })));
    // Whichever way it would go.
    assert!(matches!(heaviest.causal_auto(&heads), Err(Error::Unsupported { .. })));
    assert!(heaviest.bidirectional_auto(&heads).is_ok());
    assert!(matches!(heaviest.state(1, 1, 4), Err(Error::Unsupported { .. })));
    let gaussian = Positive.gaussian::<f64>(frequencies(4, 8, &Independent, 1), 1.0).unwrap();
    assert!(matches!(
        Attention::new(gaussian).unwrap().with_heaviest_keys_exact(1),
        Err(Error::Unsupported { .. })
    ));
    // None is none.
    let none = heaviest.with_heaviest_keys_exact(0).unwrap();
    assert_eq!(none.causal(&heads).unwrap(), attention.causal(&heads).unwrap());
}

/// NaN is NaN, wherever it is: no weight is not a number's.
#[test]
fn exact_keys_that_are_not_numbers_show() {
    let x = tokens::<f64>([1, 1, 5, 4], 1.0, 1);
    let mut k = x.clone();
    k[[0, 0, 0, 2]] = f64::NAN;
    let attention = Attention::new(positive::<f64>(4, 8)).unwrap().with_keys_exact(&[0]).unwrap();
    let heads = Heads::new(&x, &k, &x).unwrap();
    for attended in [attention.causal(&heads).unwrap(), attention.bidirectional(&heads).unwrap()] {
        assert!(attended.output.iter().all(|out| out.is_nan()), "{}", attended.output);
        assert!(attended.non_positive.is_empty());
    }
}
