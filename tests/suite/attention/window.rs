//! Attention with exact neighbours against the quadratic loop over all pairs, on every path.

use super::oracle::{Pair, naive};
use super::{positive, ways};
use crate::common::{frequencies, read_tokens, tokens};
use ndarray::{Array2, Array4, Axis, s};
use random_features::apply::attention::{Attention, CausalState, ExactAttention, Heads};
use random_features::compose::Conditioning;
use random_features::frequency::{Independent, Orthogonal};
use random_features::{Error, Hyperbolic, Positive, Real, Side, Trigonometric};

fn head<T: Real>(x: &Array4<T>, b: usize, h: usize) -> Array2<f64> {
    x.slice(s![b, h, .., ..]).mapv(|v| v.widen())
}

/// Whether the key at place `j` is a neighbour of the query at place `i`.
fn is_near([before, after]: [usize; 2], i: usize, j: usize) -> bool {
    i < j.saturating_add(before) && j <= i.saturating_add(after)
}

#[track_caller]
fn near(a: &Array2<f64>, b: &Array2<f64>, tolerance: f64, what: &str) {
    let size = b.iter().fold(1.0f64, |a, v| a.max(v.abs()));
    let error = (a - b).iter().fold(0.0f64, |a, e| if e.is_nan() { f64::NAN } else { a.max(e.abs()) });
    assert!(error <= tolerance * size, "{what}: {error:e} of {size}");
}

const WINDOWS: [[usize; 2]; 9] =
    [[1, 0], [3, 2], [0, 4], [64, 0], [65, 1], [70, 63], [9, 8], [1, usize::MAX], [usize::MAX, 5]];

/// Four heads of queries on two of keys, with masks and exact keys, both ways.
fn agrees<T: Real>(length: usize, window: [usize; 2], size: f64, tolerance: f64) {
    let d = 5;
    let (q, k) = (tokens::<T>([2, 4, length, d], size, 1), tokens::<T>([2, 2, length, d], size, 2));
    let v = tokens::<T>([2, 2, length, 3], 1.0, 3);
    let double = positive::<f64>(d, 20);
    let exact = [0, 7, 64];
    let plain = Attention::new(positive::<T>(d, 20)).unwrap().with_window(window[0], window[1]).unwrap();
    let mask = Array2::from_shape_fn((2, length), |(b, j)| (j + b) % 5 != 2);
    for (attention, exact, masked) in [
        (plain.clone(), &[][..], false),
        (plain.clone(), &[], true),
        (plain.with_keys_exact(&exact).unwrap(), &exact, true),
    ] {
        let heads = Heads::new(&q, &k, &v).unwrap();
        let heads = if masked { heads.with_mask(&mask).unwrap() } else { heads };
        for causal in [false, true] {
            let out = if causal {
                attention.causal(&heads).unwrap()
            } else {
                attention.bidirectional(&heads).unwrap()
            };
            for (b, h) in [(0, 0), (1, 3)] {
                let pair = |i: usize, j: usize| match () {
                    () if (causal && j > i) || (masked && !mask[[b, j]]) => Pair::Unseen,
                    () if exact.contains(&j) || is_near(window, i, j) => Pair::Exact,
                    () => Pair::Features,
                };
                let inputs = [head(&q, b, h), head(&k, b, h / 2), head(&v, b, h / 2)];
                let expected = naive(&double, inputs.each_ref(), pair, true);
                let what =
                    format!("length {length}, {window:?}, causal {causal}, masked {masked}, {exact:?}");
                near(&head(&out.output, b, h), &expected, tolerance, &what);
                let all: Vec<usize> = (0..length).step_by(31).collect();
                let weights =
                    ways::weights(&attention, &heads, ([b, h], &all), causal).unwrap().dot(&inputs[2]);
                near(&weights, &expected.select(Axis(0), &all), tolerance, &what);
            }
            let seen = |place: &[usize; 3]| !masked || mask[[place[0], 0]] || place[2] > 0;
            assert!(out.non_positive.iter().all(|place| !seen(place)), "{:?}", out.non_positive);
        }
    }
}

#[test]
fn windows_are_the_quadratic_loop() {
    for length in [1, 63, 64, 65, 150] {
        for window in WINDOWS {
            agrees::<f64>(length, window, 0.7, 1e-12);
        }
    }
    for window in [[3, 2], [64, 0], [70, 63]] {
        agrees::<f32>(200, window, 0.7, 1e-4);
    }
}

#[test]
fn norms_of_fifty_are_the_double_precision_loop() {
    // Coordinates of 22: logits of some thousands, rounded to f32 where it is used.
    for window in [[3, 2], [65, 1]] {
        agrees::<f64>(130, window, 22.0, 1e-10);
        agrees::<f32>(130, window, 22.0, 3e-3);
    }
}

/// Queries that see no key, by features or at all, get what the loop says, and are not reported.
#[test]
fn masks_of_all_keys_but_one() {
    let (n, d, map) = (150, 5, positive::<f64>(5, 20));
    let [q, k, v] = [(1, d), (2, d), (3, 3)].map(|(seed, width)| tokens::<f64>([1, 1, n, width], 0.7, seed));
    let inputs = [&q, &k, &v].map(|x| head(x, 0, 0));
    for only in [None, Some(0), Some(70), Some(n - 1)] {
        let mask = Array2::from_shape_fn((1, n), |(_, j)| Some(j) == only);
        let heads = Heads::new(&q, &k, &v).unwrap().with_mask(&mask).unwrap();
        for window in [[1, 0], [3, 2], [0, 4], [64, 64]] {
            let attention = Attention::new(map.clone()).unwrap().with_window(window[0], window[1]).unwrap();
            for causal in [false, true] {
                let pair = |i: usize, j: usize| match () {
                    () if (causal && j > i) || Some(j) != only => Pair::Unseen,
                    () if is_near(window, i, j) => Pair::Exact,
                    () => Pair::Features,
                };
                let out =
                    if causal { attention.causal(&heads) } else { attention.bidirectional(&heads) }.unwrap();
                let expected = naive(&map, inputs.each_ref(), pair, true);
                near(&head(&out.output, 0, 0), &expected, 1e-12, &format!("{only:?} {window:?} {causal}"));
                assert!(out.non_positive.is_empty(), "{only:?} {window:?} {causal}: {:?}", out.non_positive);
            }
        }
    }
}

/// Signed and conditioned maps, truncated ones too, and sums that are not divided.
#[test]
fn any_map_of_the_softmax_kernel_has_windows() {
    let (d, n) = (5, 150);
    let [q, k, v] = [(1, d), (2, d), (3, 3)].map(|(seed, width)| tokens::<f64>([1, 1, n, width], 0.5, seed));
    let t = Array2::from_shape_fn((d, d), |(k, l)| if k == l { 0.6 + 0.2 * k as f64 } else { 0.05 });
    let conditioning = Conditioning::new(t).unwrap().shifted(vec![0.1; d], vec![0.3; d]).unwrap();
    let omega = || frequencies(d, 64, &Orthogonal, 7);
    let maps = [
        Hyperbolic.softmax(omega()).unwrap(),
        Trigonometric.softmax(omega()).unwrap(),
        positive(d, 20).conditioned(&conditioning).unwrap(),
        positive(2, 20).conditioned(&conditioning.truncated(2).unwrap()).unwrap(),
    ];
    let inputs = [&q, &k, &v].map(|x| head(x, 0, 0));
    let heads = Heads::new(&q, &k, &v).unwrap();
    for (number, map) in maps.into_iter().enumerate() {
        for normalised in [true, false] {
            let attention = ways::normalised(Attention::signed(vec![map.clone()]).unwrap(), normalised);
            let attention = attention.with_window(9, 8).unwrap().with_heaviest_keys_exact(0).unwrap();
            for causal in [false, true] {
                let pair = |i: usize, j: usize| match () {
                    () if causal && j > i => Pair::Unseen,
                    () if is_near([9, 8], i, j) => Pair::Exact,
                    () => Pair::Features,
                };
                let expected = naive(&map, inputs.each_ref(), pair, normalised);
                let attended =
                    if causal { attention.causal(&heads) } else { attention.bidirectional(&heads) };
                near(&head(&attended.unwrap().output, 0, 0), &expected, 1e-11, &format!("{number}"));
            }
        }
    }
    // The heaviest keys beside windows: they are exact wherever they are, and no pair counts twice.
    let map = positive(d, 20);
    let attention = Attention::new(map.clone()).unwrap();
    let alone = attention.clone().with_heaviest_keys_exact(3).unwrap();
    let which = [0, 1, 70];
    let estimated = attention.bidirectional_weights(&heads, 0, 0, &which).unwrap();
    let chosen = alone.bidirectional_weights(&heads, 0, 0, &which).unwrap();
    let ratios = &chosen / &estimated;
    let common = |i: usize| {
        let mut all = ratios.row(i).to_vec();
        all.sort_by(f64::total_cmp);
        all[n / 2]
    };
    let is_heavy = |j: usize| (0..3).any(|i| (ratios[[i, j]] / common(i) - 1.0).abs() > 1e-9);
    let heavy: Vec<usize> = (0..n).filter(|j| is_heavy(*j)).collect();
    assert_eq!(heavy.len(), 3);
    let pair = |i: usize, j: usize| {
        if heavy.contains(&j) || is_near([4, 3], i, j) { Pair::Exact } else { Pair::Features }
    };
    let out = alone.with_window(4, 3).unwrap().bidirectional(&heads).unwrap().output;
    near(&head(&out, 0, 0), &naive(&map, inputs.each_ref(), pair, true), 1e-12, "heavy keys");
}

/// Of other numbers of queries than of keys, and of sequences one after the other, places are rows of the sequence.
#[test]
fn places_are_rows_of_the_sequence() {
    let (d, map) = (4, positive::<f64>(4, 12));
    for (n, l) in [(150, 90), (60, 140), (1, 200), (200, 1), (70, 64), (64, 129), (5, 0)] {
        let [q, k, v] = [(1, n, d), (2, l, d), (3, l, 2)]
            .map(|(seed, length, width)| tokens::<f64>([1, 1, length, width], 0.8, seed));
        let heads = Heads::new(&q, &k, &v).unwrap();
        for window in WINDOWS {
            let attention = Attention::new(map.clone()).unwrap().with_window(window[0], window[1]).unwrap();
            let out = attention.bidirectional(&heads).unwrap();
            let pair = |i, j| if is_near(window, i, j) { Pair::Exact } else { Pair::Features };
            let inputs = [&q, &k, &v].map(|x| head(x, 0, 0));
            let expected = naive(&map, inputs.each_ref(), pair, true);
            near(&head(&out.output, 0, 0), &expected, 1e-12, &format!("{n} {l} {window:?}"));
        }
    }
    let (queries, keys) = ([0, 70, 70, 230, 240], [0, 100, 110, 240, 240]);
    let q = tokens::<f64>([2, 2, 240, d], 0.8, 1);
    let (k, v) = (tokens::<f64>([2, 1, 240, d], 0.8, 2), tokens::<f64>([2, 1, 240, 3], 1.0, 3));
    let of = |offsets: &[usize], row: usize| offsets.iter().rposition(|start| *start <= row).unwrap();
    for (causal, queries) in [(false, queries), (true, keys)] {
        let heads = Heads::new(&q, &k, &v).unwrap().with_sequences(&queries, &keys).unwrap();
        let attention = Attention::new(map.clone()).unwrap().with_window(6, 3).unwrap();
        let out = if causal { attention.causal(&heads) } else { attention.bidirectional(&heads) }.unwrap();
        let pair = |i: usize, j: usize| {
            let (own, other) = (of(&queries, i), of(&keys, j));
            let (place, key) = (i - queries[own], j - keys[other]);
            match () {
                () if own != other || (causal && key > place) => Pair::Unseen,
                () if is_near([6, 3], place, key) => Pair::Exact,
                () => Pair::Features,
            }
        };
        for (b, h) in [(0, 0), (1, 1)] {
            let inputs = [head(&q, b, h), head(&k, b, 0), head(&v, b, 0)];
            let expected = naive(&map, inputs.each_ref(), pair, true);
            near(&head(&out.output, b, h), &expected, 1e-12, "sequences");
            let rows = [0, 69, 70, 75, 229];
            let weights = ways::weights(&attention, &heads, ([b, h], &rows), causal).unwrap();
            near(&weights.dot(&inputs[2]), &expected.select(Axis(0), &rows), 1e-12, "weights");
        }
    }
}

#[test]
fn windows_of_all_keys_are_exact_attention() {
    fn equal<T: Real>(n: usize, size: f64, tolerance: f64) {
        let [q, k, v] = [(1, 6), (2, 6), (3, 3)].map(|(seed, d)| tokens::<T>([1, 2, n, d], size, seed));
        let heads = Heads::new(&q, &k, &v).unwrap();
        for window in [n, n + 1, usize::MAX] {
            let attention = Attention::new(positive::<T>(6, 8)).unwrap().with_window(window, window).unwrap();
            let exact: Array4<T> = ExactAttention::new().bidirectional(&heads).unwrap().output;
            let out = attention.bidirectional(&heads).unwrap();
            assert!(out.non_positive.is_empty());
            near(&head(&out.output, 0, 1), &head(&exact, 0, 1), tolerance, "all");
            let exact: Array4<T> = ExactAttention::new().causal(&heads).unwrap().output;
            near(
                &head(&attention.causal(&heads).unwrap().output, 0, 1),
                &head(&exact, 0, 1),
                tolerance,
                "causal",
            );
        }
    }
    for n in [1, 64, 200] {
        equal::<f64>(n, 1.0, 1e-13);
        equal::<f32>(n, 1.0, 1e-5);
        equal::<f64>(n, 20.0, 1e-11);
    }
}

/// Logits are those that scales, temperatures and lengthscales of a map say.
#[test]
fn logits_are_scaled_as_those_of_features() {
    let [q, k, v] = [(1, 6), (2, 6), (3, 3)].map(|(seed, d)| tokens::<f64>([1, 2, 90, d], 1.0, seed));
    let heads = Heads::new(&q, &k, &v).unwrap();
    let longer = random_features::kernel::Softmax::new(1.7).unwrap();
    let map = Positive.build::<f64>(frequencies(6, 12, &Orthogonal, 7), longer).unwrap();
    let attention = Attention::new(map).unwrap();
    for attention in
        [attention.clone(), attention.clone().with_scale(0.9).unwrap(), attention.with_cosine(0.3).unwrap()]
    {
        let exact: Array4<f64> = attention.exact_counterpart().unwrap().bidirectional(&heads).unwrap().output;
        let out = attention.with_window(90, 90).unwrap().bidirectional(&heads).unwrap().output;
        near(&head(&out, 0, 1), &head(&exact, 0, 1), 1e-12, "exact");
    }
}

#[cfg(feature = "half")]
#[test]
fn half_precision_is_converted() {
    let [q, k, v] = [(1, 6), (2, 6), (3, 3)]
        .map(|(seed, d)| tokens::<f32>([1, 2, 150, d], 0.8, seed).mapv(half::bf16::from_f32));
    let attention = Attention::new(positive::<f32>(6, 20)).unwrap().with_window(9, 8).unwrap();
    let wide = [&q, &k, &v].map(|x| x.mapv(f32::from));
    let (narrow, wide) = (Heads::new(&q, &k, &v).unwrap(), Heads::new(&wide[0], &wide[1], &wide[2]).unwrap());
    assert_eq!(attention.bidirectional(&narrow).unwrap(), attention.bidirectional(&wide).unwrap());
    assert_eq!(attention.causal(&narrow).unwrap(), attention.causal(&wide).unwrap());
    let mut state = attention.state(1, 2, 3).unwrap();
    read_tokens(&mut state, &k.slice(s![.., .., ..100, ..]), &v.slice(s![.., .., ..100, ..]));
    state.push(&k.slice(s![.., .., 100, ..]), &v.slice(s![.., .., 100, ..])).unwrap();
    let out = state.query(&q.slice(s![.., .., 100, ..])).unwrap().output;
    assert_eq!(out, attention.causal(&wide).unwrap().output.slice(s![.., .., 100, ..]));
}

/// Without neighbours nothing is other than it was.
#[test]
fn no_window_is_no_window() {
    let [q, k, v] = [(1, 6), (2, 6), (3, 3)].map(|(seed, d)| tokens::<f32>([1, 2, 200, d], 0.8, seed));
    let heads = Heads::new(&q, &k, &v).unwrap();
    let attention = Attention::new(positive::<f32>(6, 20)).unwrap();
    let none = attention.clone().with_window(5, 5).unwrap().with_window(0, 0).unwrap();
    assert_eq!(none.causal(&heads).unwrap(), attention.causal(&heads).unwrap());
    assert_eq!(none.bidirectional(&heads).unwrap(), attention.bidirectional(&heads).unwrap());
    // Of what comes after there is nothing causally.
    let [one, other] = [0, 7].map(|after| attention.clone().with_window(3, after).unwrap());
    assert_eq!(one.causal(&heads).unwrap(), other.causal(&heads).unwrap());
    // Trigonometric features of another kernel have no exact weights.
    let gaussian = Positive.gaussian::<f64>(frequencies(4, 8, &Independent, 1), 1.0).unwrap();
    let gaussian = Attention::new(gaussian).unwrap();
    assert!(matches!(gaussian.clone().with_window(1, 0), Err(Error::Unsupported { .. })));
    assert!(gaussian.with_window(0, 0).is_ok());
}

fn in_pool<R: Send>(threads: usize, run: impl FnOnce() -> R + Send) -> R {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(run)
}

/// Keys and queries that need logarithms among them.
#[test]
fn threads_change_no_bit() {
    fn same<T: Real>(size: f64) {
        let [q, mut k, v] =
            [(1, 6), (2, 6), (3, 3)].map(|(seed, d)| tokens::<T>([1, 1, 2300, d], size, seed));
        for i in [70, 71, 1100, 2200] {
            k.slice_mut(s![.., .., i, ..]).mapv_inplace(|v| v * T::narrow(30.0));
        }
        for window in [[9, 8], [64, 0], [100, 1500]] {
            let attention =
                Attention::new(positive::<T>(6, 20)).unwrap().with_window(window[0], window[1]).unwrap();
            let heads = Heads::new(&q, &k, &v).unwrap();
            let both = || (attention.causal(&heads).unwrap(), attention.bidirectional(&heads).unwrap());
            let one = in_pool(1, both);
            assert_eq!(one, in_pool(3, both));
            assert_eq!(one, in_pool(2, both));
        }
    }
    same::<f32>(0.7);
    same::<f64>(0.7);
    same::<f32>(0.05);
}

#[test]
fn the_future_changes_no_bit() {
    for window in [[1, 0], [9, 3], [64, 0], [150, 0]] {
        let attention =
            Attention::new(positive::<f32>(6, 20)).unwrap().with_window(window[0], window[1]).unwrap();
        let [q, k, v] = [(1, 6), (2, 6), (3, 3)].map(|(seed, d)| tokens::<f32>([1, 1, 1300, d], 0.8, seed));
        let out = attention.causal(&Heads::new(&q, &k, &v).unwrap()).unwrap().output;
        for place in [1, 63, 64, 100, 1100] {
            let (mut k, mut v) = (k.clone(), v.clone());
            k.slice_mut(s![.., .., place.., ..]).mapv_inplace(|x| 40.0 * x - 1.0);
            v.slice_mut(s![.., .., place.., ..]).fill(f32::INFINITY);
            k[[0, 0, place, 0]] = f32::NAN;
            let changed = attention.causal(&Heads::new(&q, &k, &v).unwrap()).unwrap().output;
            assert_eq!(out.slice(s![.., .., ..place, ..]), changed.slice(s![.., .., ..place, ..]));
        }
        // Whatever length the sequence has.
        for length in [1, 64, 100, 1025] {
            let [q, k, v] = [&q, &k, &v].map(|x| x.slice(s![.., .., ..length, ..]));
            let short = attention.causal(&Heads::new(&q, &k, &v).unwrap()).unwrap().output;
            assert_eq!(short, out.slice(s![.., .., ..length, ..]));
        }
    }
}

#[test]
fn what_is_not_finite_stays_where_it_is_seen() {
    let [q, k, v] = [(1, 6), (2, 6), (3, 3)].map(|(seed, d)| tokens::<f64>([1, 2, 200, d], 0.7, seed));
    let (mut bad_q, mut bad_k, mut bad_v) = (q.clone(), k.clone(), v.clone());
    bad_q[[0, 0, 9, 2]] = f64::NAN;
    bad_k[[0, 1, 70, 0]] = f64::NAN;
    bad_v[[0, 0, 100, 1]] = f64::NAN;
    for window in [[1, 0], [20, 10], [64, 64]] {
        let attention =
            Attention::new(positive::<f64>(6, 20)).unwrap().with_window(window[0], window[1]).unwrap();
        let heads = Heads::new(&bad_q, &bad_k, &bad_v).unwrap();
        let good = attention.causal(&Heads::new(&q, &k, &v).unwrap()).unwrap().output;
        let out = attention.causal(&heads).unwrap();
        for ((b, h, i, t), got) in out.output.indexed_iter() {
            let seen = (h == 0 && i == 9) || (h == 1 && i >= 70) || (h == 0 && i >= 100 && t == 1);
            assert_eq!(got.is_nan(), seen, "{window:?} {h} {i} {t}");
            assert!(seen || (got - good[[b, h, i, t]]).abs() < 1e-12);
        }
        let out = attention.bidirectional(&heads).unwrap();
        assert!(out.non_positive.is_empty());
        for ((_, h, i, t), got) in out.output.indexed_iter() {
            assert_eq!(got.is_nan(), h == 1 || i == 9 || t == 1, "{window:?} {h} {i} {t}");
        }
    }
    // Masked keys are not seen, whatever they are, and queries that see none get 0.
    let mask = Array2::from_shape_fn((1, 200), |(_, j)| j != 70 && j >= 5);
    let attention = Attention::new(positive::<f64>(6, 20)).unwrap().with_window(20, 10).unwrap();
    let heads = Heads::new(&q, &bad_k, &v).unwrap().with_mask(&mask).unwrap();
    let out = attention.causal(&heads).unwrap();
    assert!(out.output.iter().all(|v| !v.is_nan()) && out.non_positive.is_empty());
    assert!(out.output.slice(s![.., .., ..5, ..]).iter().all(|v| *v == 0.0));
}

/// Where all keys that features would see are masked, features of a query that are no numbers count for nothing: its logits are −∞.
#[test]
fn estimates_of_no_key_count_for_nothing() {
    let (n, seen, place) = (200, 130..161, 140);
    let [mut q, mut k, v] = [(1, 6), (2, 6), (3, 3)].map(|(seed, d)| tokens::<f64>([1, 1, n, d], 0.7, seed));
    k.slice_mut(s![.., .., .., 0]).mapv_inplace(|v| -v.abs() - 0.1);
    let mask = Array2::from_shape_fn((1, n), |(_, j)| seen.contains(&j));
    let attention = Attention::new(positive::<f64>(6, 20)).unwrap().with_window(20, 20).unwrap();
    let good = attention.bidirectional(&Heads::new(&q, &k, &v).unwrap().with_mask(&mask).unwrap()).unwrap();
    q[[0, 0, place, 0]] = f64::INFINITY;
    let heads = Heads::new(&q, &k, &v).unwrap().with_mask(&mask).unwrap();
    for attended in [attention.causal(&heads).unwrap(), attention.bidirectional(&heads).unwrap()] {
        assert!(attended.output.slice(s![0, 0, place, ..]).iter().all(|v| *v == 0.0), "{attended:?}");
        assert_eq!(attended.non_positive, [[0, 0, place]]);
    }
    let exact = ExactAttention::new().causal(&heads).unwrap();
    assert_eq!(exact.non_positive, [[0, 0, place]]);
    // Two such logits, of which one is finite, are the value of that.
    k[[0, 0, place, 0]] = f64::NEG_INFINITY;
    q[[0, 0, place, 0]] = 0.3;
    let heads = Heads::new(&q, &k, &v).unwrap().with_mask(&mask).unwrap();
    let out = attention.bidirectional(&heads).unwrap().output;
    assert!(out.slice(s![0, 0, place, ..]).iter().all(|v| v.is_finite()));
    assert_ne!(out.slice(s![0, 0, place, ..]), good.output.slice(s![0, 0, place, ..]));
}

fn steps<T: Real>(
    attention: &Attention<T>,
    [q, k, v]: [&Array4<T>; 3],
    prefixes: &[usize],
    mut store: impl FnMut(CausalState<T>) -> CausalState<T>,
) {
    let whole = attention.causal(&Heads::new(q, k, v).unwrap()).unwrap();
    let mut state = attention.state(k.dim().0, k.dim().1, v.dim().3).unwrap();
    let none = state.query(&q.slice(s![.., .., 0, ..])).unwrap();
    assert!(none.output.iter().all(|v| *v == T::zero()) && none.non_positive.is_empty());
    let mut at = 0;
    for prefix in prefixes {
        let run = s![.., .., at..*prefix, ..];
        read_tokens(&mut state, &k.slice(run), &v.slice(run));
        at = *prefix;
        if at > 0 {
            let out = state.query(&q.slice(s![.., .., at - 1, ..])).unwrap().output;
            assert_eq!(out, whole.output.slice(s![.., .., at - 1, ..]), "after {at}");
        }
    }
    for i in at..k.dim().2 {
        state.push(&k.slice(s![.., .., i, ..]), &v.slice(s![.., .., i, ..])).unwrap();
        let out = state.query(&q.slice(s![.., .., i, ..])).unwrap();
        assert_eq!(out.output, whole.output.slice(s![.., .., i, ..]), "token {i}");
        assert!(state.lengths().iter().all(|length| *length == i + 1));
        if i % 40 == 5 {
            state = store(state);
        }
    }
}

/// To the bit, whatever the sizes of keys and however the tokens came.
#[test]
fn steps_are_the_batch() {
    for before in [1, 5, 64, 100, 5000] {
        for (prefixes, length, size) in
            [(&[0][..], 200, 0.7), (&[37, 90], 230, 0.7), (&[1000, 1024, 1100], 1190, 0.7), (&[3], 140, 40.0)]
        {
            let [q, k, v] = [(1, 4, 6), (2, 2, 6), (3, 2, 5)]
                .map(|(seed, heads, d)| tokens::<f32>([2, heads, length, d], size, seed));
            let attention = Attention::new(positive::<f32>(6, 20)).unwrap().with_window(before, 0).unwrap();
            steps(&attention, [&q, &k, &v], prefixes, |state| state.clone());
            let maps = vec![positive::<f64>(6, 20), positive(6, 33)];
            let wide = [&q, &k, &v].map(|x| x.mapv(f64::from));
            let attention = Attention::per_head(maps).unwrap().with_window(before, 7).unwrap();
            steps(&attention, wide.each_ref(), prefixes, |state| state);
        }
    }
}

/// Logits of each head are those of its own map.
#[test]
fn heads_of_a_state_have_lengthscales_of_their_own() {
    let [q, k, v] = [(1, 4), (2, 2), (3, 2)].map(|(seed, heads)| tokens::<f64>([2, heads, 90, 6], 0.7, seed));
    let map = |lengthscale: f64| {
        let target = random_features::kernel::Softmax::new(lengthscale).unwrap();
        Positive.build::<f64>(frequencies(6, 12, &Orthogonal, 7), target).unwrap()
    };
    let attention = Attention::per_head(vec![map(1.0), map(1.7)]).unwrap().with_window(5, 0).unwrap();
    steps(&attention, [&q, &k, &v], &[10], |state| state);
}

#[cfg(feature = "serde")]
#[test]
fn stored_states_go_on_to_the_bit() {
    use crate::stored::resealed;

    let attention = Attention::new(positive::<f32>(6, 20)).unwrap().with_cosine(0.3).unwrap();
    let x = tokens::<f32>([2, 2, 150, 6], 0.7, 1);
    for before in [0, 3, 64, 90] {
        let attention = attention.clone().with_window(before, 4).unwrap();
        let through_text = |state: CausalState<f32>| -> CausalState<f32> {
            serde_json::from_str(&serde_json::to_string(&state).unwrap()).unwrap()
        };
        steps(&attention, [&x, &x, &x], &[0], through_text);
        let read: Attention<f32> = serde_json::from_str(&serde_json::to_string(&attention).unwrap()).unwrap();
        let heads = Heads::new(&x, &x, &x).unwrap();
        assert_eq!(read.bidirectional(&heads).unwrap(), attention.bidirectional(&heads).unwrap());
    }
    // A window that is not full, of tokens that have left it, has never been.
    let mut state = attention.with_window(3, 0).unwrap().state(1, 1, 6).unwrap();
    let one = x.slice(s![..1, ..1, ..10, ..]);
    read_tokens(&mut state, &one, &one);
    for (field, length) in [("keys", 12), ("values", 12), ("keys", 0)] {
        let mut stored = serde_json::to_value(&state).unwrap();
        let numbers = stored.pointer_mut(&format!("/data/heads/0/recent/{field}")).unwrap();
        numbers.as_array_mut().unwrap().truncate(length);
        assert!(resealed::<CausalState<f32>>(stored).is_err());
    }
    let mut stored = serde_json::to_value(&state).unwrap();
    for (field, length) in [("keys", 12), ("values", 12), ("mask", 2)] {
        let numbers = stored.pointer_mut(&format!("/data/heads/0/recent/{field}")).unwrap();
        numbers.as_array_mut().unwrap().truncate(length);
    }
    assert!(resealed::<CausalState<f32>>(stored).is_err());
    // Nor has one of more tokens than it holds, of which none has left.
    let mut state = state.attention().state(1, 1, 6).unwrap();
    let one = x.slice(s![..1, ..1, ..3, ..]);
    read_tokens(&mut state, &one, &one);
    let mut stored = serde_json::to_value(&state).unwrap();
    assert!(resealed::<CausalState<f32>>(stored.clone()).is_ok());
    for (field, more) in [("keys", 6), ("values", 6), ("mask", 1)] {
        let numbers = stored.pointer_mut(&format!("/data/heads/0/recent/{field}")).unwrap();
        let numbers = numbers.as_array_mut().unwrap();
        numbers.extend_from_within(..more);
    }
    assert!(resealed::<CausalState<f32>>(stored).is_err());
}

/// (Σ w)²/Σ w² with w the parts of the normaliser that features estimate.
#[test]
fn effective_features_are_those_of_the_rest() {
    let (d, n) = (5, 150);
    let map = Positive.softmax::<f64>(frequencies(d, 24, &Orthogonal, 3)).unwrap();
    let [q, k, v] = [(1, d), (2, d), (3, 2)].map(|(seed, width)| tokens::<f64>([1, 1, n, width], 0.8, seed));
    let mask = Array2::from_shape_fn((1, n), |(_, j)| j % 6 != 1);
    let heads = Heads::new(&q, &k, &v).unwrap().with_mask(&mask).unwrap();
    let scale = (d as f64).powf(-0.25);
    let whole = |side, x: &Array4<f64>| {
        let features = map.features(side, &(head(x, 0, 0) * scale)).unwrap();
        &features.mantissas() * &features.log_scales().mapv(f64::exp)
    };
    let (phi, psi) = (whole(Side::X, &q), whole(Side::Y, &k));
    for window in [[1, 0], [3, 2], [70, 64], [0, 4]] {
        let attention = Attention::new(map.clone()).unwrap().with_window(window[0], window[1]).unwrap();
        let attention = attention.with_keys_exact(&[4]).unwrap();
        for causal in [false, true] {
            let attended = ways::diagnosed(&attention, &heads, causal).unwrap();
            let found = attended.effective_features.unwrap();
            for i in 0..n {
                let mut sums = ndarray::Array1::<f64>::zeros(psi.ncols());
                let counts =
                    |j: &usize| mask[[0, *j]] && *j != 4 && !(causal && *j > i) && !is_near(window, i, *j);
                (0..n).filter(counts).for_each(|j| sums += &psi.row(j));
                let parts = &phi.row(i) * &sums;
                let expected = parts.sum().powi(2) / parts.dot(&parts);
                let found = found[[0, 0, i]];
                let same = (found - expected).abs() < 1e-9 * expected || found.is_nan() && expected.is_nan();
                assert!(same, "{window:?}, causal {causal}, {i}: {found} instead of {expected}");
            }
        }
    }
}
