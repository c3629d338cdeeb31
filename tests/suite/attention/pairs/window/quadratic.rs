//! Attention with exact neighbours against the loop over all pairs.

use crate::attention::oracle::{Pair, is_near, naive};
use crate::attention::pairs::window::near;
use crate::attention::{positive, ways, widened};
use crate::common::{frequencies, tokens};
use ndarray::{Array2, Axis};
use random_features::apply::attention::{Attention, Heads};
use random_features::compose::Conditioning;
use random_features::frequency::Orthogonal;
use random_features::{Hyperbolic, Real, Trigonometric};

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
                let inputs = [widened(&q, b, h), widened(&k, b, h / 2), widened(&v, b, h / 2)];
                let expected = naive(&double, inputs.each_ref(), pair, true);
                let what =
                    format!("length {length}, {window:?}, causal {causal}, masked {masked}, {exact:?}");
                near(&widened(&out.output, b, h), &expected, tolerance, &what);
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
    let inputs = [&q, &k, &v].map(|x| widened(x, 0, 0));
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
                near(&widened(&out.output, 0, 0), &expected, 1e-12, &format!("{only:?} {window:?} {causal}"));
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
    let inputs = [&q, &k, &v].map(|x| widened(x, 0, 0));
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
                near(&widened(&attended.unwrap().output, 0, 0), &expected, 1e-11, &format!("{number}"));
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
    near(&widened(&out, 0, 0), &naive(&map, inputs.each_ref(), pair, true), 1e-12, "heavy keys");
}

/// Places are rows of the sequence where queries are not as many as keys, and where sequences stand one after the other.
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
            let inputs = [&q, &k, &v].map(|x| widened(x, 0, 0));
            let expected = naive(&map, inputs.each_ref(), pair, true);
            near(&widened(&out.output, 0, 0), &expected, 1e-12, &format!("{n} {l} {window:?}"));
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
            let inputs = [widened(&q, b, h), widened(&k, b, 0), widened(&v, b, 0)];
            let expected = naive(&map, inputs.each_ref(), pair, true);
            near(&widened(&out.output, b, h), &expected, 1e-12, "sequences");
            let rows = [0, 69, 70, 75, 229];
            let weights = ways::weights(&attention, &heads, ([b, h], &rows), causal).unwrap();
            near(&weights.dot(&inputs[2]), &expected.select(Axis(0), &rows), 1e-12, "weights");
        }
    }
}
