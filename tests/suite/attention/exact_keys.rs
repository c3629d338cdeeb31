//! Attention with some keys taken exactly, and with conditioned maps, against the quadratic loop.

use super::oracle::{naive, with_exact};
use super::positive;
use crate::common::{frequencies, tokens};
use ndarray::{Array1, Array2, Array4, s};
use random_features::apply::attention::{Attention, ExactAttention, Heads};
use random_features::compose::Conditioning;
use random_features::frequency::{Independent, Orthogonal};
use random_features::{Error, Map, Positive, Side, Trigonometric};

fn near(a: &Array2<f64>, b: &Array2<f64>, tolerance: f64) {
    assert!((a - b).iter().all(|e| e.abs() <= tolerance), "{a} {b}");
}

/// Keys of which `heavy` are long and point the way of the queries.
fn inputs(heads: usize, n: usize, d: usize, heavy: &[usize]) -> [Array4<f64>; 3] {
    let mut q = tokens::<f64>([1, heads, n, d], 0.5, 1);
    q.mapv_inplace(|v| v + 0.6);
    let mut k = tokens::<f64>([1, 1, n, d], 0.4, 2);
    heavy.iter().for_each(|j| k.slice_mut(s![.., .., *j, ..]).mapv_inplace(|v| v + 1.5));
    [q, k, tokens::<f64>([1, 1, n, 3], 1.0, 3)]
}

fn head(x: &Array4<f64>, h: usize) -> Array2<f64> {
    x.slice(s![0, h, .., ..]).to_owned()
}

#[test]
fn the_heaviest_keys_are_exact_and_the_others_are_not() {
    let (d, n, heavy) = (4, 90, [5, 31, 70]);
    let map = positive::<f64>(d, 12);
    let [q, k, v] = inputs(2, n, d, &heavy);
    let attention = Attention::new(map.clone()).unwrap().with_heaviest_keys_exact(3).unwrap();
    let heads = Heads::new(&q, &k, &v).unwrap();
    let out = attention.bidirectional(&heads).unwrap();
    assert!(out.non_positive.is_empty());
    for h in 0..2 {
        let expected =
            naive(&map, [&head(&q, h), &head(&k, 0), &head(&v, 0)], with_exact(&heavy, |_, _| true), true);
        near(&head(&out.output, h), &expected, 1e-12);
        let rows = attention.bidirectional_weights(&heads, 0, h, &[0, 40]).unwrap();
        near(&rows.dot(&head(&v, 0)), &expected.select(ndarray::Axis(0), &[0, 40]), 1e-12);
    }
    // f32 too.
    let single =
        Attention::new(Positive.softmax::<f32>(frequencies(d, 12, &Orthogonal, 7)).unwrap()).unwrap();
    let narrow = [&q, &k, &v].map(|x| x.mapv(|v| v as f32));
    let heads = Heads::new(&narrow[0], &narrow[1], &narrow[2]).unwrap();
    let found = single.with_heaviest_keys_exact(3).unwrap().bidirectional(&heads).unwrap().output;
    assert!(found.iter().zip(&out.output).all(|(a, b)| (f64::from(*a) - b).abs() < 1e-5));
    // Masked keys are neither.
    let mask = Array2::from_shape_fn((1, n), |(_, j)| j != 31 && j % 7 != 3);
    let heads = Heads::new(&q, &k, &v).unwrap().with_mask(&mask).unwrap();
    let out = Attention::new(map.clone())
        .unwrap()
        .with_heaviest_keys_exact(2)
        .unwrap()
        .bidirectional(&heads)
        .unwrap();
    let expected = naive(
        &map,
        [&head(&q, 1), &head(&k, 0), &head(&v, 0)],
        with_exact(&[5, 70], |_, j| mask[[0, j]]),
        true,
    );
    near(&head(&out.output, 1), &expected, 1e-12);
}

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
            near(&head(&out.output, 0), &head(&exact, 0), 1e-13);
            assert!(out.non_positive.is_empty());
        }
        let causal: Array4<f64> = ExactAttention::new().causal(&heads).unwrap().output;
        let out = attention.with_keys_exact(&(0..30).collect::<Vec<_>>()).unwrap().causal(&heads).unwrap();
        near(&head(&out.output, 0), &head(&causal, 0), 1e-13);
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
            [&head(&q, h), &head(&k, 0), &head(&v, 0)],
            with_exact(&[0, 1, 2], |i, j| j <= i),
            true,
        );
        near(&head(&out.output, h), &expected, 1e-12);
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
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| attention.causal(&heads).unwrap().output)
    };
    let (one, three) = (run(1), run(3));
    assert_eq!(one, three);
    let (q, v) = (head(&long, 0), head(&v, 0));
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
    let (q, k, v) = (head(&q, 0), head(&k, 0), head(&v, 0));
    let expected = naive(
        &map,
        [&q, &k, &v],
        with_exact(&[0, 1, 2, 50, 51, 52], |i, j| j <= i && (j < 50) == (i < 50)),
        true,
    );
    near(&head(&out.output, 0), &expected, 1e-12);
    let rows = attention.causal_weights(&heads, 0, 0, &[1, 49, 77]).unwrap();
    near(&rows.dot(&v), &expected.select(ndarray::Axis(0), &[1, 49, 77]), 1e-12);
}

/// Of two heads that share keys each third query is sampled, the count going on from head to head.
#[test]
fn the_sample_goes_over_all_heads_and_its_queries_count_alike() {
    let (d, n, scale) = (4, 70, 1.7);
    // Those of the first head prefer key 9 a little, of the second key 40 or, half as many, key 50 by far.
    let q = Array4::from_shape_fn((1, 2, n, d), |(_, h, i, k)| {
        let own = if h == 0 { 0 } else { [1, 3, 1, 2][i % 4] };
        f64::from(u8::from(k == own))
    });
    let mut k = Array4::zeros((1, 1, n, d));
    for (key, coordinate, size) in [(9, 0, 4.0), (40, 0, -25.0), (40, 1, 60.0), (50, 2, 60.0)] {
        k[[0, 0, key, coordinate]] = size;
    }
    let v = tokens::<f64>([1, 1, n, 3], 1.0, 3);
    let map = Positive.softmax::<f64>(frequencies(d, 12, &Orthogonal, 7)).unwrap();
    let scaled = Positive
        .build::<f64>(
            frequencies(d, 12, &Orthogonal, 7),
            random_features::kernel::Softmax::new(scale).unwrap(),
        )
        .unwrap();
    let attention = Attention::new(scaled).unwrap();
    let heads = Heads::new(&q, &k, &v).unwrap();
    let out = attention.clone().with_heaviest_keys_exact(1).unwrap().bidirectional(&heads).unwrap().output;
    for h in 0..2 {
        let (q, k) = (head(&q, h) / scale, head(&k, 0) / scale);
        near(
            &head(&out, h),
            &naive(&map, [&q, &k, &head(&v, 0)], with_exact(&[40], |_, _| true), true),
            1e-12,
        );
    }
    // Masked keys that were asked for are not taken.
    let mask = Array2::from_shape_fn((1, n), |(_, j)| j != 9);
    let masked = Heads::new(&q, &k, &v).unwrap().with_mask(&mask).unwrap();
    let out = attention.with_keys_exact(&[9, 40]).unwrap().bidirectional(&masked).unwrap().output;
    let (q, k) = (head(&q, 0) / scale, head(&k, 0) / scale);
    near(&head(&out, 0), &naive(&map, [&q, &k, &head(&v, 0)], with_exact(&[40], |_, j| j != 9), true), 1e-12);
    // Weights of sequences in any batch and head are those of the output.
    let offsets = [0, 30, n];
    let [q, k, v] = [(5, d), (6, d), (7, 2)].map(|(seed, width)| tokens::<f64>([2, 2, n, width], 0.9, seed));
    let heads = Heads::new(&q, &k, &v).unwrap().with_sequences(&offsets, &offsets).unwrap();
    let attention = Attention::new(map).unwrap().with_heaviest_keys_exact(3).unwrap();
    let out = attention.bidirectional(&heads).unwrap().output;
    for (batch, head) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let rows = [3, 29, 30, 69];
        let weights = attention.bidirectional_weights(&heads, batch, head, &rows).unwrap();
        let found = weights.dot(&v.slice(s![batch, head, .., ..]));
        near(&found, &out.slice(s![batch, head, .., ..]).select(ndarray::Axis(0), &rows), 1e-12);
    }
}

/// Of equal keys the first is taken; one that no sampled query sees with any weight is left to the features, however many may
/// be exact. Maps of heads may have lengthscales of their own.
#[test]
fn ties_and_weightless_keys_are_settled_by_the_sample() {
    let (d, n) = (4, 90);
    let map = positive::<f64>(d, 12);
    let [q, mut k, v] = inputs(1, n, d, &[31]);
    let twin = k.slice(s![.., .., 31, ..]).to_owned();
    [50, 70].into_iter().for_each(|j| k.slice_mut(s![.., .., j, ..]).assign(&twin));
    let heads = Heads::new(&q, &k, &v).unwrap();
    let attention = Attention::new(map.clone()).unwrap();
    for (count, exact) in [(1, &[31][..]), (2, &[31, 50])] {
        let out =
            attention.clone().with_heaviest_keys_exact(count).unwrap().bidirectional(&heads).unwrap().output;
        let expected =
            naive(&map, [&head(&q, 0), &head(&k, 0), &head(&v, 0)], with_exact(exact, |_, _| true), true);
        near(&head(&out, 0), &expected, 1e-12);
    }
    // 64 queries are sampled: those have the logit −2000 with key 9, the others 4.
    let sampled: Vec<usize> = (0..64).map(|i| i * n / 64).collect();
    let own = |i: usize| usize::from(!sampled.contains(&i));
    let q = Array4::from_shape_fn((1, 1, n, d), |(_, _, i, k)| f64::from(u8::from(k == own(i))));
    let mut k = tokens::<f64>([1, 1, n, d], 0.4, 2);
    [-4000.0, 8.0, 0.0, 0.0].into_iter().enumerate().for_each(|(c, value)| k[[0, 0, 9, c]] = value);
    let heads = Heads::new(&q, &k, &v).unwrap();
    let out = attention.clone().with_heaviest_keys_exact(n).unwrap().bidirectional(&heads).unwrap().output;
    let all: Vec<usize> = (0..n).filter(|j| *j != 9).collect();
    let expected =
        naive(&map, [&head(&q, 0), &head(&k, 0), &head(&v, 0)], with_exact(&all, |_, _| true), true);
    near(&head(&out, 0), &expected, 1e-12);
    // Two heads, each as if it were alone.
    let longer = Positive
        .build::<f64>(frequencies(d, 12, &Orthogonal, 7), random_features::kernel::Softmax::new(1.7).unwrap())
        .unwrap();
    let [q, k, v] = [(1, d), (2, d), (3, 3)].map(|(seed, width)| tokens::<f64>([1, 2, n, width], 0.9, seed));
    let heads = Heads::new(&q, &k, &v).unwrap();
    let run = |maps: Vec<Map<f64>>| {
        Attention::per_head(maps)
            .unwrap()
            .with_heaviest_keys_exact(3)
            .unwrap()
            .bidirectional(&heads)
            .unwrap()
            .output
    };
    let both = run(vec![map.clone(), longer.clone()]);
    assert_eq!(head(&both, 0), head(&run(vec![map]), 0));
    assert_eq!(head(&both, 1), head(&run(vec![longer]), 1));
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
        near(&head(&own, 0), &head(&exact, 0), 1e-12);
    }
    let (whole, mut state) = (attention.causal(&heads).unwrap().output, attention.state(1, 1, 4).unwrap());
    for i in 0..620 {
        let [q, k, v] = [&q, &k, &v].map(|x| x.slice(s![.., .., i, ..]));
        assert_eq!(state.step(&q, &k, &v).unwrap().output, whole.slice(s![.., .., i, ..]), "token {i}");
    }
}

#[test]
fn keys_that_dwarf_all_others_neither_vanish_nor_overflow() {
    let [q, mut k, v] = inputs(1, 40, 4, &[]);
    k.slice_mut(s![.., .., 7, ..]).fill(500.0);
    k.slice_mut(s![.., .., 8, ..]).fill(-500.0);
    let heads = Heads::new(&q, &k, &v).unwrap();
    let exact: Array4<f64> = ExactAttention::new().bidirectional(&heads).unwrap().output;
    let out = Attention::new(positive::<f64>(4, 64))
        .unwrap()
        .with_heaviest_keys_exact(1)
        .unwrap()
        .bidirectional(&heads)
        .unwrap();
    let opposed = |i: usize| q.slice(s![0, 0, i, ..]).sum() < 0.5;
    for i in (0..40).filter(|i| !opposed(*i)) {
        let (a, b): (Array1<f64>, Array1<f64>) =
            (out.output.slice(s![0, 0, i, ..]).to_owned(), exact.slice(s![0, 0, i, ..]).to_owned());
        assert!((&a - &b).iter().all(|e| e.abs() < 1e-9), "{i}: {a} {b}");
    }
    // NaN in a token stays in the rows that may see it.
    let mut bad = q.clone();
    bad[[0, 0, 3, 1]] = f64::NAN;
    let out = Attention::new(positive::<f64>(4, 64)).unwrap().with_heaviest_keys_exact(2).unwrap();
    let out = out.bidirectional(&Heads::new(&bad, &k, &v).unwrap()).unwrap().output;
    assert!(out.rows().into_iter().enumerate().all(|(i, row)| row.iter().all(|v| v.is_nan()) == (i == 3)));
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
        let inputs = [&head(&q, 0), &head(&k, 0), &head(&v, 0)];
        let expected = naive(&map, inputs, with_exact(&[], |_, _| true), true);
        near(&head(&attention.bidirectional(&heads).unwrap().output, 0), &expected, 1e-12);
        let causal = naive(&map, inputs, with_exact(&[], |i, j| j <= i), true);
        near(&head(&attention.causal(&heads).unwrap().output, 0), &causal, 1e-12);
        // With exact keys their factors count, and so they do without a normaliser.
        let expected = naive(&map, inputs, with_exact(&[3], |_, _| true), true);
        let exact = attention.clone().with_heaviest_keys_exact(1).unwrap();
        near(&head(&exact.bidirectional(&heads).unwrap().output, 0), &expected, 1e-12);
        let sums = attention.without_normalisers().bidirectional(&heads).unwrap().output;
        let scale = (d as f64).powf(-0.25);
        let weights = map.gram(&(inputs[0] * scale), &(inputs[1] * scale)).unwrap();
        near(&head(&sums, 0), &weights.dot(inputs[2]), 1e-10);
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

#[cfg(feature = "serde")]
#[test]
fn the_choice_is_stored() {
    let attention = Attention::new(positive::<f64>(4, 8)).unwrap().with_heaviest_keys_exact(2).unwrap();
    let read: Attention<f64> = serde_json::from_str(&serde_json::to_string(&attention).unwrap()).unwrap();
    let [q, k, v] = inputs(1, 30, 4, &[3, 9]);
    let heads = Heads::new(&q, &k, &v).unwrap();
    assert_eq!(read.bidirectional(&heads).unwrap(), attention.bidirectional(&heads).unwrap());
}

#[cfg(feature = "serde")]
#[test]
fn stored_choices_are_checked() {
    use crate::stored::resealed;
    use random_features::apply::attention::CausalState;

    let attention = Attention::new(positive::<f64>(4, 8)).unwrap().with_keys_exact(&[1]).unwrap();
    let mut stored = serde_json::to_value(&attention).unwrap();
    let rows = stored.pointer_mut("/data/exact/1").unwrap();
    *rows = serde_json::json!([7, 1, 1, 1]);
    let read = resealed::<Attention<f64>>(stored.clone()).unwrap();
    let [q, k, v] = inputs(1, 30, 4, &[1]);
    let heads = Heads::new(&q, &k, &v).unwrap();
    let expected = Attention::new(positive::<f64>(4, 8)).unwrap().with_keys_exact(&[1, 7]).unwrap();
    assert_eq!(read.bidirectional(&heads).unwrap(), expected.bidirectional(&heads).unwrap());
    // A state with the heaviest keys has never been.
    let state = Attention::new(positive::<f64>(4, 8)).unwrap().state(1, 1, 4).unwrap();
    let mut state = serde_json::to_value(&state).unwrap();
    let heaviest = Attention::new(positive::<f64>(4, 8)).unwrap().with_heaviest_keys_exact(3).unwrap();
    state["data"]["attention"] = serde_json::to_value(&heaviest).unwrap();
    let refused = resealed::<CausalState<f64>>(state).map(drop).unwrap_err();
    assert!(refused.contains("heaviest keys"), "{refused}");
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

#[test]
fn a_first_key_that_dwarfs_all_others_is_chosen() {
    let q = Array4::from_elem((1, 1, 3, 1), 30.0f64);
    let k = Array4::from_shape_fn((1, 1, 3, 1), |(_, _, j, _)| if j == 0 { 30.0 } else { 0.1 });
    let v = Array4::from_shape_fn((1, 1, 3, 1), |(_, _, j, _)| j as f64 + 1.0);
    // Frequencies that point away: the estimate alone would not see the key.
    let rows = ndarray::arr2(&[[-3.0], [-2.0], [-4.0]]);
    let omega = random_features::frequency::Frequencies::from_rows(rows).unwrap();
    let attention = Attention::new(Positive.softmax::<f64>(omega).unwrap()).unwrap();
    let attention = attention.with_heaviest_keys_exact(1).unwrap();
    let out = attention.bidirectional(&Heads::new(&q, &k, &v).unwrap()).unwrap().output;
    assert!(out.iter().all(|v| (v - 1.0).abs() < 1e-12), "{out}");
}
