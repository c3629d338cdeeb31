//! Outputs of linear attention that are 0, and the queries that are reported.

use crate::attention::oracle::{by_features, naive};
use crate::attention::{head, positive, signs, widened};
use crate::common::{frequencies, read_tokens, tokens};
use crate::threads::on_threads;
use ndarray::{Array2, Array4, Axis, array, concatenate, s};
use random_features::Trigonometric;
use random_features::apply::attention::{Attention, ExactAttention, Heads};
use random_features::frequency::Independent;

/// A query that has no feature in common with the keys is reported where it sees a key, and only there. So it is on every path,
/// wherever the first key that is not masked lies.
#[test]
fn unmet_queries_are_reported_where_they_see_a_key() {
    // The features of a number and of its negative.
    let attention = Attention::new(signs::<f32>()).unwrap();
    let n = 2200;
    let (k, v) = (Array4::<f32>::ones((1, 1, n, 1)), Array4::<f32>::ones((1, 1, n, 2)));
    let q = -&k;
    let all = |from: usize| (from..n).map(|i| [0, 0, i]).collect::<Vec<_>>();
    for first in [0, 1, 63, 64, 65, 130, 1023, 1024, 1100, 2048, n - 1, n] {
        for one in [false, true] {
            let mask = Array2::from_shape_fn((1, n), |(_, j)| j == first || (!one && j > first));
            let heads = Heads::new(&q, &k, &v).unwrap().with_mask(&mask).unwrap();
            for threads in [1, 4] {
                let run = || (attention.causal(&heads).unwrap(), attention.bidirectional(&heads).unwrap());
                let (causal, whole) = on_threads(threads, run);
                assert_eq!(causal.non_positive, all(first), "{first} {one} {threads}");
                assert_eq!(whole.non_positive, all(if first < n { 0 } else { n }), "{first} {one} {threads}");
                assert!(causal.output.iter().chain(&whole.output).all(|v| *v == 0.0));
            }
        }
    }
    // In order, with the rows of the whole batch, of heads that share keys and of sequences.
    let q = concatenate(Axis(1), &[q.view(), q.view()]).unwrap();
    let offsets = [0, 30, 1500, n];
    let heads = Heads::new(&q, &k, &v).unwrap().with_sequences(&offsets, &offsets).unwrap();
    let expected: Vec<_> = (0..2).flat_map(|h| (0..n).map(move |i| [0, h, i])).collect();
    for threads in [1, 4] {
        let run = || (attention.causal(&heads).unwrap(), attention.bidirectional(&heads).unwrap());
        let (causal, whole) = on_threads(threads, run);
        assert_eq!((causal.non_positive, whole.non_positive), (expected.clone(), expected.clone()));
    }
    // Step by step, also after whole segments.
    let each = Attention::per_head(vec![signs::<f32>(), signs()]).unwrap();
    let [k, v] = [1, 2].map(|d| Array4::<f32>::ones((2, 2, 1024, d)));
    let (token, value) = (k.slice(s![.., .., 0, ..]), v.slice(s![.., .., 0, ..]));
    let mut state = each.state(2, 2, 2).unwrap();
    let reported = [[0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 1, 0]];
    state.push(&token, &value).unwrap();
    assert_eq!(state.query(&-&token).unwrap().non_positive, reported);
    let mut state = each.state(2, 2, 2).unwrap();
    read_tokens(&mut state, &k, &v);
    assert_eq!(state.query(&-&token).unwrap().non_positive, reported);
    // Nor is a masked key seen where features are far apart.
    let attention = Attention::new(positive::<f32>(16, 48)).unwrap();
    let x = tokens::<f32>([1, 1, 70, 16], 25.0, 1);
    let mask = Array2::from_shape_fn((1, 70), |(_, j)| j >= 3);
    let out = attention.causal(&Heads::new(&x, &x, &x).unwrap().with_mask(&mask).unwrap()).unwrap();
    assert!(out.non_positive.is_empty());
    assert!(
        out.output.rows().into_iter().enumerate().all(|(i, row)| (i < 3) == row.iter().all(|v| *v == 0.0))
    );
}

/// Signed weights: where the normaliser is not positive, the row is 0 and reported, on every path.
#[test]
fn normalisers_that_are_not_positive_are_reported() {
    let map = Trigonometric.softmax::<f64>(frequencies(8, 12, &Independent, 9)).unwrap();
    let [q, k, v] = [1, 2, 3].map(|seed| tokens::<f64>([1, 2, 80, 8], 2.0, seed));
    let attention = Attention::signed(vec![map.clone()]).unwrap();
    let heads = Heads::new(&q, &k, &v).unwrap();
    for causal in [false, true] {
        let out = if causal { attention.causal(&heads) } else { attention.bidirectional(&heads) }.unwrap();
        assert!(!out.non_positive.is_empty() && out.non_positive.is_sorted());
        for h in 0..2 {
            let inputs = [&widened(&q, 0, h), &widened(&k, 0, h), &Array2::ones((80, 1))];
            let totals = naive(&map, inputs, by_features(|i, j| !causal || j <= i), false);
            for (i, total) in totals.iter().enumerate() {
                let reported = out.non_positive.contains(&[0, h, i]);
                assert_eq!(reported, *total <= 0.0, "{h} {i} {total}");
                assert!(!reported || head(&out.output, 0, h).row(i).iter().all(|v| *v == 0.0));
            }
        }
    }
    let mut state = attention.state(1, 2, 8).unwrap();
    let causal = attention.causal(&heads).unwrap();
    for i in 0..80 {
        state.push(&k.slice(s![.., .., i, ..]), &v.slice(s![.., .., i, ..])).unwrap();
        let step = state.query(&q.slice(s![.., .., i, ..])).unwrap();
        let expected: Vec<[usize; 3]> =
            causal.non_positive.iter().filter(|at| at[2] == i).map(|at| [at[0], at[1], 0]).collect();
        assert_eq!(step.non_positive, expected);
    }
}

/// Sums that are 0 stay 0, and a query that sees no key gets 0, whatever it is.
#[test]
fn zeros_stay_zeros() {
    let positive = Attention::new(positive::<f64>(1, 1)).unwrap();
    let raw = positive.clone().with_scale(1.0).unwrap().without_normalisers();
    // A weight of e^1600 and values 0 and 1.
    let (x, v) = (array![[[[40.0]]]], array![[[[0.0, 1.0]]]]);
    let heads = Heads::new(&x, &x, &v).unwrap();
    assert_eq!(raw.bidirectional(&heads).unwrap().output[[0, 0, 0, 0]], 0.0);
    assert_eq!(raw.causal(&heads).unwrap().output[[0, 0, 0, 0]], 0.0);
    // The first query sees no key.
    let (mut q, k) = (tokens::<f64>([1, 1, 70, 1], 0.5, 1), tokens::<f64>([1, 1, 70, 1], 0.5, 2));
    q[[0, 0, 0, 0]] = f64::NAN;
    let mask = Array2::from_shape_fn((1, 70), |(_, j)| j > 0);
    let heads = Heads::new(&q, &k, &k).unwrap().with_mask(&mask).unwrap();
    for attended in [positive.causal(&heads).unwrap(), raw.causal(&heads).unwrap()] {
        assert_eq!(attended.output[[0, 0, 0, 0]], 0.0);
        assert!(attended.non_positive.is_empty());
    }
    let exact: Array4<f64> = ExactAttention::new().causal(&heads).unwrap().output;
    assert_eq!(exact[[0, 0, 0, 0]], 0.0);
    let none = Array2::from_elem((1, 70), false);
    let heads = Heads::new(&q, &k, &k).unwrap().with_mask(&none).unwrap();
    assert!(positive.bidirectional(&heads).unwrap().output.iter().all(|out| *out == 0.0));
    let mut state = positive.state(1, 1, 2).unwrap();
    assert!(state.query(&array![[[f64::NAN]]]).unwrap().output.iter().all(|out| *out == 0.0));
}

#[test]
fn outputs_of_zero_are_positive() {
    let attention = Attention::new(positive::<f64>(2, 6)).unwrap();
    // A value so small that its share of the sum vanishes.
    let x = Array4::zeros((1, 1, 5, 2));
    let v = Array4::from_shape_fn((1, 1, 5, 1), |(_, _, j, _)| if j == 0 { -5e-324 } else { 0.0 });
    let heads = Heads::new(&x, &x, &v).unwrap();
    for out in [attention.bidirectional(&heads).unwrap(), attention.causal(&heads).unwrap()] {
        assert!(out.output.iter().all(|v| *v != 0.0 || v.to_bits() == 0), "{}", out.output);
    }
}
