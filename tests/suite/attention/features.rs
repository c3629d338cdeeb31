//! Features of any size: none hides another one, however far below it that one is.

use crate::attention::{relu, signs};
use crate::common::own_map::own_map;
use crate::common::{read_tokens, tokens};
use crate::threads::on_threads;
use ndarray::{Array2, Array4, ArrayView1, Axis, array, concatenate, s};
use random_features::apply::attention::{Attention, Heads};
use random_features::extend::Facts;
use random_features::frequency::Frequencies;
use random_features::kernel::Activation;
use random_features::{Map, Nonlinear, Real};

/// A key that shares no feature with a query hides no other, however far below it that one is.
#[test]
fn keys_without_a_common_feature_hide_none() {
    let attention = Attention::new(relu::<f32>(2, 16)).unwrap();
    for size in [1.0f32, 1e8, 1e19, 1e25] {
        // With 63 and 1023 the small one is the first of a chunk and of a segment.
        for gap in [0, 63, 70, 1023, 1100] {
            // Many keys along a, then one far smaller along −a; a query along −a sees that one alone.
            let n = gap + 2;
            let k = Array4::from_shape_fn((1, 1, n, 2), |(_, _, j, c)| {
                if j + 1 < n { [size, 0.0][c] } else { [-1.0 / size, 0.0][c] }
            });
            let q = Array4::from_shape_fn((1, 1, n, 2), |(_, _, _, c)| [-1.0f32, 0.0][c]);
            let v = Array4::from_shape_fn((1, 1, n, 1), |(_, _, j, _)| if j + 1 < n { 7.0 } else { 3.0 });
            let heads = Heads::new(&q, &k, &v).unwrap();
            let (all, causal) = (attention.bidirectional(&heads).unwrap(), attention.causal(&heads).unwrap());
            assert!(all.output.iter().all(|v| (v - 3.0).abs() < 1e-5), "{size} {gap}: {}", all.output);
            assert!((causal.output[[0, 0, n - 1, 0]] - 3.0).abs() < 1e-5, "{size} {gap}");
            assert_eq!(causal.non_positive.len(), n - 1);
            let mut state = attention.state(1, 1, 1).unwrap();
            read_tokens(&mut state, &k, &v);
            let step = state.query(&q.slice(s![.., .., 0, ..])).unwrap();
            assert!((step.output[[0, 0, 0]] - 3.0).abs() < 1e-5);
            // Token by token too, and when whole chunks of such keys are summed up.
            let mut state = attention.state(1, 1, 1).unwrap();
            for j in (0..n).chain([n - 1; 64]) {
                state.push(&k.slice(s![.., .., j, ..]), &v.slice(s![.., .., j, ..])).unwrap();
            }
            let step = state.query(&q.slice(s![.., .., 0, ..])).unwrap();
            assert!((step.output[[0, 0, 0]] - 3.0).abs() < 1e-5, "{size} {gap}");
            let weights = attention.bidirectional_weights(&heads, 0, 0, &[0]).unwrap();
            assert!((weights[[0, n - 1]] - 1.0).abs() < 1e-12);
        }
    }
}

/// Positive keys are seen by positive queries alone, and negative ones by negative ones, with their sizes as weights. Sizes are
/// 2^`low` to 2^`high`, one for each run of tokens. Runs have many lengths, and are whole chunks for odd seeds.
fn signs_do_not_meet<T: Real>(low: i32, high: i32) {
    for seed in 0..14 {
        let lengths: &[usize] = if seed % 2 == 0 {
            &[1, 63, 3, 61, 64, 128, 40, 500, 7, 164, 1, 90, 1024]
        } else {
            &[64, 128, 64, 512, 256, 192, 64, 128, 512, 64]
        };
        let run_of: Vec<usize> = lengths.iter().enumerate().flat_map(|(run, n)| vec![run; *n]).collect();
        let n = run_of.len();
        let hash = |run: usize| ((run + 17 * seed + 1) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
        let sign = |j: usize| if hash(run_of[j]) % 5 < 2 { -1.0 } else { 1.0 };
        let any = |j: usize| (hash(run_of[j] + 1000) % (high - low + 1) as u64) as i32 + low;
        // In the last rounds all keys of one sign are as small as can be beside the others.
        let exponent = |j: usize| match seed {
            0..6 => any(j),
            6..10 => {
                if sign(j) > 0.0 {
                    high
                } else {
                    low
                }
            }
            _ => {
                if sign(j) > 0.0 {
                    low
                } else {
                    high
                }
            }
        };
        let k = Array4::from_shape_fn((1, 1, n, 1), |at| T::narrow(sign(at.2) * 2f64.powi(exponent(at.2))));
        let v = tokens::<T>([1, 1, n, 2], 0.2, seed).mapv(|v| v + T::one());
        let positive = Array4::from_elem((1, 1, n, 1), T::one());
        let negative = positive.mapv(|v| -v);
        let q = concatenate(Axis(1), &[positive.view(), negative.view()]).unwrap();
        // Of each head and row, of keys up to it: 0 where there is none.
        let expected: Vec<Vec<[f64; 2]>> = [1.0, -1.0]
            .map(|own| {
                let (mut top, mut total, mut sums) = (low, 0.0, [0.0; 2]);
                let mut of_row = |j: usize| {
                    if sign(j) == own {
                        let keep = 2f64.powi((top - exponent(j)).min(0));
                        top = top.max(exponent(j));
                        let weight = 2f64.powi(exponent(j) - top);
                        total = keep * total + weight;
                        sums = [0, 1].map(|t| keep * sums[t] + weight * v[[0, 0, j, t]].widen());
                    }
                    sums.map(|sum| if total > 0.0 { sum / total } else { 0.0 })
                };
                (0..n).map(&mut of_row).collect()
            })
            .into();
        // Means of numbers of size 1, in `T`; each is summed up in some steps.
        let close = |found: T, expected: f64| (found.widen() - expected).abs() < 40.0 * T::epsilon().widen();
        let attention = Attention::new(signs::<T>()).unwrap();
        let heads = Heads::new(&q, &k, &v).unwrap();
        for threads in [1, 3] {
            let run = || (attention.bidirectional(&heads).unwrap(), attention.causal(&heads).unwrap());
            let (all, causal) = on_threads(threads, run);
            for ((_, h, i, t), found) in causal.output.indexed_iter() {
                let own = expected[h][i][t];
                assert!(close(*found, own), "{seed} {h} {i}: {found}, {own}");
                assert_eq!(causal.non_positive.binary_search(&[0, h, i]).is_ok(), own == 0.0);
                let (found, own) = (all.output[[0, h, i, t]], expected[h][n - 1][t]);
                assert!(close(found, own), "{seed} {h} {i}: {found}, {own}");
            }
        }
        for prefix in [0, 128, 700, 1024, 1110] {
            let mut state = attention.state(1, 1, 2).unwrap();
            read_tokens(&mut state, &k.slice(s![.., .., ..prefix, ..]), &v.slice(s![.., .., ..prefix, ..]));
            while state.lengths()[0] < prefix + 140 {
                let i = state.lengths()[0];
                state.push(&k.slice(s![.., .., i, ..]), &v.slice(s![.., .., i, ..])).unwrap();
                let step = state.query(&q.slice(s![.., .., 0, ..])).unwrap();
                for ((_, h, t), found) in step.output.indexed_iter() {
                    let own = expected[h][i][t];
                    assert!(close(*found, own), "{seed} {prefix} {h} {i}: {found}, {own}");
                }
            }
        }
    }
}

#[test]
fn keys_of_any_size_are_seen_by_their_own_sign_alone() {
    signs_do_not_meet::<f32>(-100, 100);
    signs_do_not_meet::<f64>(-100, 100);
    // Squares are within the range.
    signs_do_not_meet::<f64>(-1000, 500);
    // A value beyond all bounds too.
    let x = array![[[[1.0], [-1.0]]]];
    let v = array![[[[f64::INFINITY], [3.0]]]];
    let heads = Heads::new(&x, &x, &v).unwrap();
    let out = Attention::new(signs::<f64>()).unwrap().bidirectional(&heads).unwrap().output;
    assert!(!out[[0, 0, 0, 0]].is_finite() && (out[[0, 0, 1, 0]] - 3.0).abs() < 1e-15);
    // What is shared may be the least of the features on both sides.
    let omega = Frequencies::from_rows(Array2::eye(3)).unwrap();
    let attention = Attention::new(Nonlinear::new(Activation::Relu).build(omega, 1.0).unwrap()).unwrap();
    for share in [1e-5f32, 1e-10, 1e-20, 1e-30] {
        let q = array![[[[1.0, -1.0, share], [1.0, -1.0, share]]]];
        let k = array![[[[-1.0, 1.0, share], [-1.0, 1.0, 3.0 * share]]]];
        let v = array![[[[1.0f32], [3.0]]]];
        let heads = Heads::new(&q, &k, &v).unwrap();
        for out in [attention.bidirectional(&heads).unwrap(), attention.causal(&heads).unwrap()] {
            assert!((out.output[[0, 0, 1, 0]] - 2.5).abs() < 1e-5, "{share} {}", out.output);
        }
        let mut state = attention.state(1, 1, 1).unwrap();
        read_tokens(&mut state, &k, &v);
        let step = state.query(&q.slice(s![.., .., 0, ..])).unwrap();
        assert!((step.output[[0, 0, 0]] - 2.5).abs() < 1e-5, "{share}");
    }
}

/// A map of your own whose values are of any size, some of them 0.
fn of_size<T: Real>(size: f64) -> Map<T> {
    let facts = Facts::new(1, vec![2, 1]).symmetric().non_negative();
    let write = move |x: ArrayView1<'_, T>, values: &mut [T], _: &mut [f64]| {
        let x = x[0].widen();
        let all = [size * x.max(0.0), size * (-x).max(0.0), size];
        values.iter_mut().zip(all).for_each(|(to, v)| *to = T::narrow(v));
    };
    own_map(facts, write).unwrap()
}

#[test]
fn values_of_a_map_may_be_of_any_size() {
    let [q, k] = [1, 2].map(|seed| tokens::<f32>([1, 1, 150, 1], 1.0, seed));
    let v = tokens::<f32>([1, 1, 150, 2], 1.0, 3);
    let run = |size: f64| {
        let attention = Attention::new(of_size::<f32>(size)).unwrap();
        let heads = Heads::new(&q, &k, &v).unwrap();
        (attention.bidirectional(&heads).unwrap(), attention.causal(&heads).unwrap())
    };
    let plain = run(1.0);
    for size in [1e-30, 1e-12, 1e12, 1e30] {
        let other = run(size);
        for (a, b) in [(&other.0, &plain.0), (&other.1, &plain.1)] {
            assert!(a.non_positive.is_empty());
            assert!((&a.output - &b.output).iter().all(|e| e.abs() < 1e-5), "{size}");
        }
    }
}
