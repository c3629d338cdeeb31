//! Attention with the heaviest keys taken exactly: which they are, against the loop over all pairs.

use crate::attention::oracle::{naive, with_exact};
use crate::attention::pairs::{inputs, near};
use crate::attention::{positive, widened};
use crate::common::{frequencies, tokens};
use ndarray::{Array1, Array2, Array4, s};
use random_features::apply::attention::{Attention, ExactAttention, Heads};
use random_features::frequency::Orthogonal;
use random_features::{Map, Positive};

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
        let expected = naive(
            &map,
            [&widened(&q, 0, h), &widened(&k, 0, 0), &widened(&v, 0, 0)],
            with_exact(&heavy, |_, _| true),
            true,
        );
        near(&widened(&out.output, 0, h), &expected, 1e-12);
        let rows = attention.bidirectional_weights(&heads, 0, h, &[0, 40]).unwrap();
        near(&rows.dot(&widened(&v, 0, 0)), &expected.select(ndarray::Axis(0), &[0, 40]), 1e-12);
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
        [&widened(&q, 0, 1), &widened(&k, 0, 0), &widened(&v, 0, 0)],
        with_exact(&[5, 70], |_, j| mask[[0, j]]),
        true,
    );
    near(&widened(&out.output, 0, 1), &expected, 1e-12);
}

/// Each third query of two heads that share keys is sampled, and the count goes on from head to head.
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
        let (q, k) = (widened(&q, 0, h) / scale, widened(&k, 0, 0) / scale);
        near(
            &widened(&out, 0, h),
            &naive(&map, [&q, &k, &widened(&v, 0, 0)], with_exact(&[40], |_, _| true), true),
            1e-12,
        );
    }
    // Masked keys that were asked for are not taken.
    let mask = Array2::from_shape_fn((1, n), |(_, j)| j != 9);
    let masked = Heads::new(&q, &k, &v).unwrap().with_mask(&mask).unwrap();
    let out = attention.with_keys_exact(&[9, 40]).unwrap().bidirectional(&masked).unwrap().output;
    let (q, k) = (widened(&q, 0, 0) / scale, widened(&k, 0, 0) / scale);
    near(
        &widened(&out, 0, 0),
        &naive(&map, [&q, &k, &widened(&v, 0, 0)], with_exact(&[40], |_, j| j != 9), true),
        1e-12,
    );
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

/// The first of equal keys is taken. One that no sampled query sees with any weight is left to the features, however many may
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
        let expected = naive(
            &map,
            [&widened(&q, 0, 0), &widened(&k, 0, 0), &widened(&v, 0, 0)],
            with_exact(exact, |_, _| true),
            true,
        );
        near(&widened(&out, 0, 0), &expected, 1e-12);
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
    let expected = naive(
        &map,
        [&widened(&q, 0, 0), &widened(&k, 0, 0), &widened(&v, 0, 0)],
        with_exact(&all, |_, _| true),
        true,
    );
    near(&widened(&out, 0, 0), &expected, 1e-12);
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
    assert_eq!(widened(&both, 0, 0), widened(&run(vec![map]), 0, 0));
    assert_eq!(widened(&both, 0, 1), widened(&run(vec![longer]), 0, 1));
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
