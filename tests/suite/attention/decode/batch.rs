//! Batches of sequences: ragged ones, forks, those that are selected and joined.

use crate::attention::decode::{inputs, part, variants};
use crate::attention::positive;
use crate::common::tokens;
use crate::threads::on_threads;
use ndarray::{Array2, Array4, Axis, concatenate, s};
use random_features::apply::attention::{Attention, Heads};

/// Packed prompts of different lengths, then steps: each sequence goes as it goes alone.
#[test]
fn ragged_prompts_go_on_together() {
    let [q, k, v] = inputs::<f64>(2, 260, 0.7);
    let offsets = [0, 3, 3, 133, 200];
    // Two batches of four sequences, packed into the first 200 places; the tokens of steps are the last 60.
    let packed = [part(&q, 0, 200), part(&k, 0, 200), part(&v, 0, 200)];
    let mask = Array2::from_shape_fn((2, 200), |(b, j)| b == 0 || j % 5 > 0);
    for attention in variants::<f64>() {
        for masked in [false, true] {
            let heads = Heads::new(&packed[0], &packed[1], &packed[2]).unwrap();
            let heads = heads.with_sequences(&offsets, &offsets).unwrap();
            let heads = if masked { heads.with_mask(&mask).unwrap() } else { heads };
            let mut state = attention.state(8, 2, 5).unwrap();
            let read = state.prefill(&heads).unwrap();
            assert_eq!(read.output, attention.causal(&heads).unwrap().output);
            assert_eq!(state.lengths(), [3, 0, 130, 67, 3, 0, 130, 67]);
            // Sequence s of batch b takes the tokens of its batch, shifted by s.
            let shift = |x: &Array4<f64>, i: usize| {
                let rows: Vec<_> = (0..8).map(|n| x.slice(s![n / 4, .., 200 + (i + n) % 60, ..])).collect();
                ndarray::stack(Axis(0), &rows).unwrap()
            };
            let steps: Vec<_> = (0..60)
                .map(|i| state.step(&shift(&q, i), &shift(&k, i), &shift(&v, i)).unwrap().output)
                .collect();
            for n in 0..8 {
                let (b, start, end) = (n / 4, offsets[n % 4], offsets[n % 4 + 1]);
                let alone = |x: &Array4<f64>| {
                    let prompt = x.slice(s![b..b + 1, .., start..end, ..]).to_owned();
                    let steps: Vec<_> = (0..60)
                        .map(|i| x.slice(s![b..b + 1, .., 200 + (i + n) % 60, ..]).insert_axis(Axis(2)))
                        .collect();
                    let steps = concatenate(Axis(2), &steps).unwrap();
                    concatenate(Axis(2), &[prompt.view(), steps.view()]).unwrap()
                };
                let [q, k, v] = [alone(&q), alone(&k), alone(&v)];
                let seen = |(_, j): (usize, usize)| !masked || j >= end - start || mask[[b, start + j]];
                let seen = Array2::from_shape_fn((1, end - start + 60), seen);
                let heads = Heads::new(&q, &k, &v).unwrap().with_mask(&seen).unwrap();
                let whole = attention.causal(&heads).unwrap().output;
                for (i, step) in steps.iter().enumerate() {
                    assert_eq!(step.slice(s![n, .., ..]), whole.slice(s![0, .., end - start + i, ..]));
                }
            }
        }
    }
}

/// Forks go their own ways, and a state that goes back goes on as if nothing had been.
#[test]
fn forks_and_snapshots() {
    let [q, k, v] = inputs::<f32>(2, 300, 0.7);
    let other = inputs::<f32>(2, 301, 0.9);
    let token = |x: &Array4<f32>, i: usize| x.slice(s![.., .., i, ..]).to_owned();
    for attention in variants::<f32>() {
        let whole = attention.causal(&Heads::new(&q, &k, &v).unwrap()).unwrap().output;
        let mut state = attention.state(2, 2, 5).unwrap();
        for at in [10, 60, 64, 100, 250] {
            let read = state.lengths()[0];
            let heads = [part(&q, read, at), part(&k, read, at), part(&v, read, at)];
            state.prefill(&Heads::new(&heads[0], &heads[1], &heads[2]).unwrap()).unwrap();
            let saved = state.clone();
            for i in 0..70 {
                state.step(&token(&other[0], i), &token(&other[1], i), &token(&other[2], i)).unwrap();
            }
            state.clone_from(&saved);
            let mut fork = saved;
            for i in at..at + 30 {
                let out = fork.step(&token(&q, i), &token(&k, i), &token(&v, i)).unwrap().output;
                assert_eq!(out, whole.slice(s![.., .., i, ..]), "token {i} after {at}");
            }
        }
    }
}

/// As in beam search, and as sequences come and go.
#[test]
fn sequences_are_selected_and_joined() {
    let [q, k, v] = inputs::<f64>(3, 140, 0.7);
    let token = |x: &Array4<f64>, i: usize, of: &[usize]| x.slice(s![.., .., i, ..]).select(Axis(0), of);
    for attention in variants::<f64>() {
        let whole = attention.causal(&Heads::new(&q, &k, &v).unwrap()).unwrap().output;
        let mut state = attention.state(3, 2, 5).unwrap();
        let heads = [part(&q, 0, 60), part(&k, 0, 60), part(&v, 0, 60)];
        state.prefill(&Heads::new(&heads[0], &heads[1], &heads[2]).unwrap()).unwrap();
        let mut of = vec![0, 1, 2];
        for (i, choice) in (60..140).zip([&[2, 0, 0, 1][..], &[3, 1], &[1, 0, 1, 1]].into_iter().cycle()) {
            if i % 20 == 5 {
                let choice: Vec<usize> = choice.iter().map(|c| c % of.len()).collect();
                state.select(&choice).unwrap();
                of = choice.iter().map(|c| of[*c]).collect();
            }
            if i % 20 == 15 {
                // A sequence that came later and has caught up.
                let mut late = attention.state(1, 2, 5).unwrap();
                let own = [&q, &k, &v].map(|x| x.slice(s![1..2, .., ..i, ..]));
                late.prefill(&Heads::new(&own[0], &own[1], &own[2]).unwrap()).unwrap();
                state.append(late).unwrap();
                of.push(1);
            }
            let out = state.step(&token(&q, i, &of), &token(&k, i, &of), &token(&v, i, &of)).unwrap().output;
            assert_eq!(out, token(&whole, i, &of), "token {i} of {of:?}");
        }
        state.select(&[]).unwrap();
        assert!(state.lengths().is_empty());
        assert_eq!(
            state.step(&token(&q, 0, &[]), &token(&k, 0, &[]), &token(&v, 0, &[])).unwrap().output.len(),
            0
        );
    }
}

#[test]
fn many_heads_on_threads() {
    let [q, k, v] = [1, 2, 3].map(|seed| tokens::<f32>([8, 8, 70, 32], 0.5, seed));
    let attention = Attention::new(positive::<f32>(32, 128)).unwrap();
    let run = || {
        let mut state = attention.state(8, 8, 32).unwrap();
        let token = |x: &Array4<f32>, i: usize| x.slice(s![.., .., i, ..]).to_owned();
        (0..70).map(|i| state.step(&token(&q, i), &token(&k, i), &token(&v, i)).unwrap()).collect::<Vec<_>>()
    };
    let whole = attention.causal(&Heads::new(&q, &k, &v).unwrap()).unwrap().output;
    let steps = on_threads(1, run);
    assert!((0..70).all(|i| steps[i].output == whole.slice(s![.., .., i, ..])));
    assert_eq!(steps, on_threads(2, run));
    assert_eq!(steps, on_threads(5, run));
}
