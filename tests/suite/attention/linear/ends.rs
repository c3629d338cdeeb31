//! Linear attention of numbers that are not finite or nearly so, and of no token at all.

use crate::attention::{positive, ways};
use crate::common::{read_tokens, tokens};
use crate::threads::on_threads;
use ndarray::{Array4, array, s};
use random_features::apply::attention::{Attention, ExactAttention, Heads};
use random_features::frequency::Frequencies;
use random_features::{Hyperbolic, Positive, Real};

/// NaN stays in what may see it.
#[test]
fn what_is_not_finite_stays_where_it_is_seen() {
    let attention = Attention::new(positive::<f64>(6, 20)).unwrap();
    let [q, k, v] = [(1, 6), (2, 6), (3, 3)].map(|(seed, d)| tokens::<f64>([1, 2, 200, d], 0.7, seed));
    let good = attention.causal(&Heads::new(&q, &k, &v).unwrap()).unwrap().output;
    let (mut bad_q, mut bad_k, mut bad_v) = (q.clone(), k.clone(), v.clone());
    bad_q[[0, 0, 9, 2]] = f64::NAN;
    bad_k[[0, 1, 70, 0]] = f64::INFINITY;
    bad_v[[0, 0, 100, 1]] = f64::NAN;
    let heads = Heads::new(&bad_q, &bad_k, &bad_v).unwrap();
    let out = attention.causal(&heads).unwrap();
    assert!(out.non_positive.is_empty());
    // Infinite keys may have the exact weight 0.
    let nan_k = bad_k.mapv(|v| if v.is_finite() { v } else { f64::NAN });
    let of_nan = Heads::new(&bad_q, &nan_k, &bad_v).unwrap();
    let exact: Array4<f64> = ExactAttention::new().causal(&of_nan).unwrap().output;
    for ((b, h, i, t), got) in out.output.indexed_iter() {
        let seen = (h == 0 && i == 9) || (h == 1 && i >= 70) || (h == 0 && i >= 100 && t == 1);
        assert_eq!(got.is_nan(), seen, "{h} {i} {t}");
        assert!(seen || (got - good[[b, h, i, t]]).abs() < 1e-12);
        assert_eq!(exact[[b, h, i, t]].is_nan(), seen, "{h} {i} {t}");
    }
    // Nothing need have been seen before.
    let mut first = k.clone();
    first[[0, 0, 0, 1]] = f64::NAN;
    let out = attention.causal(&Heads::new(&q, &first, &v).unwrap()).unwrap();
    assert!(out.output.indexed_iter().all(|((_, h, ..), v)| v.is_nan() == (h == 0)));
    let out = attention.bidirectional(&heads).unwrap();
    assert!(out.non_positive.is_empty());
    for ((_, h, i, t), got) in out.output.indexed_iter() {
        assert_eq!(got.is_nan(), h == 1 || i == 9 || t == 1, "{h} {i} {t}");
    }
}

/// However little its key weighs, be it read before or after others, also beside exact weights.
#[test]
fn values_that_are_not_finite_show_beside_larger_keys() {
    fn check<T: Real>() {
        let omega = || Frequencies::from_rows(array![[1.0]]).unwrap();
        let rows = |x: [f64; 2]| Array4::from_shape_fn((1, 1, 2, 1), |(_, _, i, _)| T::narrow(x[i]));
        // In all outputs that see it and, of normalised attention, in all gradients of queries.
        let shown = |normalised: bool, attention: &Attention<T>, q: f64, k: [f64; 2], v: [f64; 2]| {
            let attention = ways::normalised(attention.clone(), normalised);
            let (x, y, z) = (rows([q; 2]), rows(k), rows(v));
            let heads = Heads::new(&x, &y, &z).unwrap();
            let all = attention.bidirectional(&heads).unwrap().output;
            let causal = attention.causal(&heads).unwrap().output;
            let shown = all.iter().chain(causal.iter().skip(1)).all(|out| !out.is_finite());
            assert!(shown, "{q}, {k:?}, {v:?}: {all}, {causal}");
            if normalised {
                let gradients = attention.bidirectional_backward(&heads, &Array4::ones(z.dim())).unwrap();
                let shown = gradients.queries.iter().all(|v| !v.is_finite());
                assert!(shown, "{q}, {k:?}, {v:?}: {}", gradients.queries);
            }
        };
        let positive = Attention::new(Positive.softmax::<T>(omega()).unwrap()).unwrap();
        let hyperbolic = Attention::new(Hyperbolic.softmax::<T>(omega()).unwrap()).unwrap();
        // The first key is read by features, the second one exactly.
        let near = positive.clone().with_window(1, 0).unwrap();
        let options = [f64::NAN, f64::INFINITY].into_iter().flat_map(|odd| [(odd, true), (odd, false)]);
        for (odd, normalised) in options {
            for q in [1.0, -40.0] {
                shown(normalised, &positive, q, [1.0, -40.0], [1.0, odd]);
                shown(normalised, &positive, q, [-40.0, 1.0], [odd, 1.0]);
            }
            for q in [400.0, -400.0, 1.0] {
                shown(normalised, &hyperbolic, q, [400.0, -400.0], [1.0, odd]);
                shown(normalised, &hyperbolic, q, [400.0, -400.0], [odd, 1.0]);
                shown(normalised, &hyperbolic, q, [400.0, 1.0], [1.0, odd]);
            }
            shown(normalised, &near, 40.0, [-40.0, 40.0], [odd, 1.0]);
            shown(normalised, &near, -40.0, [40.0, -40.0], [odd, 1.0]);
            shown(normalised, &near, 1.0, [1.0, -1000.0], [1.0, odd]);
        }
    }
    check::<f32>();
    check::<f64>();
}

/// Large values, one token, no token.
#[test]
fn values_and_lengths_at_their_ends() {
    let attention = Attention::new(positive::<f32>(6, 20)).unwrap();
    let [q, k, v] = [(1, 6), (2, 6), (3, 3)].map(|(seed, d)| tokens::<f32>([1, 1, 100, d], 0.7, seed));
    let plain = attention.causal(&Heads::new(&q, &k, &v).unwrap()).unwrap().output;
    for size in [1e-30f32, 1e30, 1e38] {
        let large = v.mapv(|v| v * size / 2.0);
        let heads = Heads::new(&q, &k, &large).unwrap();
        let out = attention.causal(&heads).unwrap().output;
        assert!(out.iter().zip(&plain).all(|(a, b)| (a / size * 2.0 - b).abs() < 1e-4), "{size}");
        assert!(attention.bidirectional(&heads).unwrap().output.iter().all(|v| v.is_finite()));
    }
    // Values whose sums are beyond the range, in whole segments and after them.
    let [q, k, v] = [(1, 6), (2, 6), (3, 3)].map(|(seed, d)| tokens::<f32>([1, 1, 2200, d], 0.7, seed));
    let v = v.mapv(|v| 1.0 + 0.5 * v);
    let large = v.mapv(|v| v * 1e38);
    let run = |v: &Array4<f32>, threads: usize| {
        let heads = Heads::new(&q, &k, v).unwrap();
        let run = || [attention.bidirectional(&heads).unwrap(), attention.causal(&heads).unwrap()];
        let mut state = attention.state(1, 1, 3).unwrap();
        read_tokens(&mut state, &k, v);
        (on_threads(threads, run), state.query(&q.slice(s![.., .., 0, ..])).unwrap())
    };
    let (plain, step) = run(&v, 1);
    for threads in [1, 4] {
        let (found, large_step) = run(&large, threads);
        for (found, plain) in found.iter().zip(&plain) {
            assert!((found.output.mapv(|v| v / 1e38) - &plain.output).iter().all(|e| e.abs() < 1e-5));
        }
        assert!((large_step.output.mapv(|v| v / 1e38) - &step.output).iter().all(|e| e.abs() < 1e-5));
    }
    // In the first segment alone.
    let mut mixed = v.clone();
    mixed.slice_mut(s![.., .., ..1000, ..]).assign(&large.slice(s![.., .., ..1000, ..]));
    let (one, _) = run(&mixed, 1);
    assert!(one.iter().all(|found| found.output.iter().all(|v| v.is_finite())) && run(&mixed, 4).0 == one);
    let part = |x: &Array4<f32>, n: usize| x.slice(s![.., .., ..n, ..]).to_owned();
    let (q1, k1, v1) = (part(&q, 1), part(&k, 1), part(&v, 1));
    let out = attention.causal(&Heads::new(&q1, &k1, &v1).unwrap()).unwrap().output;
    assert!((&out - &v1).iter().all(|e| e.abs() < 1e-6));
    let (q0, k0, v0) = (part(&q, 0), part(&k, 0), part(&v, 0));
    assert_eq!(attention.causal(&Heads::new(&q0, &k0, &v0).unwrap()).unwrap().output.dim(), (1, 1, 0, 3));
    let no_key = attention.bidirectional(&Heads::new(&q, &k0, &v0).unwrap()).unwrap();
    assert!(no_key.output.iter().all(|v| *v == 0.0) && no_key.non_positive.is_empty());
    let empty = Array4::<f32>::zeros((0, 1, 4, 6));
    assert_eq!(
        attention.causal(&Heads::new(&empty, &empty, &empty).unwrap()).unwrap().output.dim(),
        (0, 1, 4, 6)
    );
}
