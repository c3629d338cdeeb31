//! Prompts in parts, and queries between them.

use crate::attention::decode::{CUTS, inputs, part, parts_are_the_whole, variants};
use crate::attention::positive;
use crate::common::{read_tokens, tokens};
use crate::threads::on_threads;
use ndarray::{Array2, Array4, s};
use random_features::apply::attention::{Attention, Heads};

#[test]
fn prompts_in_parts_are_the_whole() {
    let [q, k, v] = inputs::<f64>(2, 200, 0.7);
    let wild = inputs::<f32>(2, 200, 40.0);
    // Masked: nothing, some, the first 70 as padding on the left, everything in one sequence.
    let some = Array2::from_shape_fn((2, 200), |(b, j)| (j * 7 + b) % 3 > 0);
    let left = Array2::from_shape_fn((2, 200), |(b, j)| b == 0 || j >= 70);
    let all = Array2::from_shape_fn((2, 200), |(b, _)| b == 1);
    for attention in variants() {
        for mask in [None, Some(&some)] {
            parts_are_the_whole(&attention, [&q, &k, &v], mask, &CUTS, |state| state);
        }
        for mask in [Some(&left), Some(&all)] {
            parts_are_the_whole(&attention, [&q, &k, &v], mask, &[CUTS[1], CUTS[3]], |state| state);
        }
    }
    for attention in variants() {
        for mask in [None, Some(&some)] {
            parts_are_the_whole(&attention, wild.each_ref(), mask, &CUTS, |state| state.clone());
        }
    }
}

/// A head alone, whose chunks threads share, in parts around the borders of segments.
#[test]
fn long_prompts_in_parts_are_the_whole() {
    for size in [0.6, 25.0] {
        let [q, k, v] = [1, 2, 3].map(|seed| tokens::<f32>([1, 1, 3300, 4], size, seed));
        let map = || Attention::new(positive::<f32>(4, 16)).unwrap();
        let variants =
            [map(), map().with_window(70, 0).unwrap(), map().with_keys_exact(&[0, 5, 2000]).unwrap()];
        for attention in &variants {
            let ways: [&[usize]; 4] =
                [&[3300], &[1024, 2048, 3300], &[1100, 1101, 2124, 3300], &[70, 1094, 1200, 3300]];
            for threads in [1, 2, 3] {
                on_threads(threads, || {
                    parts_are_the_whole(attention, [&q, &k, &v], None, &ways, |state| state);
                });
            }
        }
    }
}

/// What a query that sees no token has found is forgotten as soon as there are tokens, however they come.
#[test]
fn queries_before_the_first_token_see_none() {
    let attention = Attention::new(positive::<f32>(4, 16)).unwrap();
    let [q, k, v] = [1, 2, 3].map(|seed| tokens::<f32>([1, 1, 1060, 4], 0.6, seed));
    let whole = attention.causal(&Heads::new(&q, &k, &v).unwrap()).unwrap().output;
    let last = |x: &Array4<f32>, i: usize| x.slice(s![.., .., i, ..]).to_owned();
    for (count, threads) in [(1, 1), (70, 1), (70, 2), (1025, 1), (1025, 2), (1060, 2), (1060, 3)] {
        for with_queries in [false, true] {
            on_threads(threads, || {
                let mut state = attention.state(1, 1, 4).unwrap();
                let before = state.query(&last(&q, 0)).unwrap();
                assert!(before.output.iter().all(|v| *v == 0.0) && before.non_positive.is_empty());
                let [some_q, some_k, some_v] = [&q, &k, &v].map(|x| part(x, 0, count));
                let none = Heads::without_queries(&some_k, &some_v).unwrap();
                let all = Heads::new(&some_q, &some_k, &some_v).unwrap();
                state.prefill(if with_queries { &all } else { &none }).unwrap();
                let found = state.query(&last(&q, count - 1)).unwrap().output;
                assert_eq!(found, last(&whole, count - 1), "{count} tokens, {threads} threads");
            });
        }
    }
}

/// What a query has left behind is forgotten where a prompt of whole segments follows, and copies hold what was held.
#[test]
fn prompts_and_copies_after_queries() {
    let attention = Attention::new(positive::<f32>(2, 8)).unwrap();
    let [mut q, k, v] = [(1, 2), (2, 2), (3, 1)].map(|(seed, d)| tokens::<f32>([1, 1, 2100, d], 0.7, seed));
    q.fill(60.0);
    let whole = attention.causal(&Heads::new(&q, &k, &v).unwrap()).unwrap().output;
    let mut state = attention.state(1, 1, 1).unwrap();
    let query = q.slice(s![.., .., 0, ..]);
    assert_eq!(state.query(&query).unwrap().output[[0, 0, 0]], 0.0);
    for run in [0..1030, 1030..1024 + 1024, 2048..2100] {
        let last = run.end - 1;
        read_tokens(&mut state, &k.slice(s![.., .., run.clone(), ..]), &v.slice(s![.., .., run, ..]));
        let mut copies = vec![state.clone()];
        copies.push(copies[0].clone());
        for state in copies.iter_mut().chain([&mut state]) {
            assert_eq!(state.query(&query).unwrap().output, whole.slice(s![.., .., last, ..]));
        }
    }
    assert!(attention.state(0, 1, usize::MAX).is_err());
}
