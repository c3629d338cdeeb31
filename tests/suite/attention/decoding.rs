//! States of causal attention that serve batches, against causal attention over whole sequences: to the bit, whatever the way.

use ndarray::{Array2, Array4, ArrayView4, Axis, concatenate, s};
use random_features::apply::attention::{Attention, CausalState, Heads};
use random_features::frequency::Orthogonal;
use random_features::{Error, Positive, Real, Trigonometric};

use super::positive;
use crate::common::{frequencies, tokens};
use crate::threads::on_threads;

fn part<T>(x: &Array4<T>, from: usize, to: usize) -> ArrayView4<'_, T> {
    x.slice(s![.., .., from..to, ..])
}

/// Queries of four heads, keys and values of two.
fn inputs<T: Real>(batch: usize, length: usize, size: f64) -> [Array4<T>; 3] {
    [(1, 4, 6), (2, 2, 6), (3, 2, 5)]
        .map(|(seed, heads, d)| tokens([batch, heads, length, d], size, seed + length))
}

/// Every way to choose exact pairs that a state knows.
fn variants<T: Real>() -> Vec<Attention<T>> {
    let one = || Attention::new(positive::<T>(6, 20)).unwrap();
    let each = Attention::per_head(vec![positive::<T>(6, 20), positive(6, 33)]).unwrap();
    vec![
        one(),
        one().with_window(5, 0).unwrap(),
        one().with_window(64, 3).unwrap(),
        one().with_window(usize::MAX, 0).unwrap(),
        one().with_keys_exact(&[0, 1, 2, 70, 4000]).unwrap(),
        one().with_keys_exact(&[0, 1, 64, 129]).unwrap().with_window(7, 0).unwrap(),
        each.clone().with_window(100, 0).unwrap().with_keys_exact(&[3, 99]).unwrap(),
        each.without_normalisers().with_biased_epsilon(1e-3).unwrap(),
        one().with_cosine(0.2).unwrap().with_window(9, 0).unwrap(),
    ]
}

/// Reads tokens part by part, up to each of `cuts`; the outputs of all parts are those of the whole, to the bit.
fn parts_are_the_whole<T: Real>(
    attention: &Attention<T>,
    [q, k, v]: [&Array4<T>; 3],
    mask: Option<&Array2<bool>>,
    cuts: &[usize],
    mut store: impl FnMut(CausalState<T>) -> CausalState<T>,
) {
    let heads = Heads::new(q, k, v).unwrap();
    let whole = attention.causal(&mask.map_or(heads.clone(), |mask| heads.with_mask(mask).unwrap())).unwrap();
    let mut state = attention.state(k.dim().0, k.dim().1, v.dim().3).unwrap();
    let (mut at, mut lost) = (0, Vec::new());
    for (turn, &cut) in cuts.iter().enumerate() {
        let expected = part(&whole.output, at, cut);
        if cut == at + 1 && mask.is_none() && turn % 2 == 0 {
            let [q, k, v] = [q, k, v].map(|x| x.slice(s![.., .., at, ..]));
            let step = state.step(&q, &k, &v).unwrap();
            assert_eq!(step.output, expected.index_axis(Axis(2), 0), "token {at}");
            lost.extend(step.non_positive.iter().map(|[b, h, _]| [*b, *h, at]));
        } else {
            let (q, k, v) = (part(q, at, cut), part(k, at, cut), part(v, at, cut));
            let mask = mask.map(|mask| mask.slice(s![.., at..cut]));
            let heads = if turn % 3 == 2 {
                Heads::without_queries(&k, &v).unwrap()
            } else {
                Heads::new(&q, &k, &v).unwrap()
            };
            let heads = match &mask {
                Some(mask) => heads.with_mask(mask).unwrap(),
                None => heads,
            };
            let out = state.prefill(&heads).unwrap();
            if turn % 3 == 2 {
                assert!(out.output.is_empty());
                let own = whole.non_positive.iter().filter(|[_, _, i]| (at..cut).contains(i));
                lost.extend(own);
            } else {
                assert_eq!(out.output, expected, "tokens {at}..{cut}");
                lost.extend(out.non_positive.iter().map(|[b, h, i]| [*b, *h, at + i]));
            }
        }
        at = cut;
        assert!(state.lengths().iter().all(|length| *length == at));
        state = store(state);
    }
    lost.sort_unstable();
    assert_eq!(lost, whole.non_positive);
}

const CUTS: [&[usize]; 5] = [
    &[200],
    &[0, 1, 2, 3, 63, 64, 65, 66, 128, 129, 200],
    &[100, 101, 102, 103, 104, 200],
    &[37, 90, 154, 155, 156, 200],
    &[64, 128, 192, 193, 200],
];

#[test]
fn prompts_in_parts_are_the_whole() {
    let [q, k, v] = inputs::<f64>(2, 200, 0.7);
    let wild = inputs::<f32>(2, 200, 40.0);
    // Masked: nothing, some, the first 70 as padding on the left, everything in one sequence.
    let some = Array2::from_shape_fn((2, 200), |(b, j)| (j * 7 + b) % 3 > 0);
    let left = Array2::from_shape_fn((2, 200), |(b, j)| b == 0 || j >= 70);
    let all = Array2::from_shape_fn((2, 200), |(b, _)| b == 1);
    for cuts in CUTS {
        for attention in variants() {
            for mask in [None, Some(&some), Some(&left), Some(&all)] {
                parts_are_the_whole(&attention, [&q, &k, &v], mask, cuts, |state| state);
            }
        }
        for attention in variants() {
            for mask in [None, Some(&some)] {
                parts_are_the_whole(&attention, wild.each_ref(), mask, cuts, |state| state.clone());
            }
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
            for cuts in [&[3300][..], &[1024, 2048, 3300], &[1100, 1101, 2124, 3300], &[70, 1094, 1200, 3300]]
            {
                for threads in [1, 2, 3] {
                    on_threads(threads, || {
                        parts_are_the_whole(attention, [&q, &k, &v], None, cuts, |state| state);
                    });
                }
            }
        }
    }
}

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

#[test]
fn what_does_not_fit_is_refused() {
    let attention = Attention::new(positive::<f64>(6, 20)).unwrap();
    let [q, k, v] = inputs::<f64>(2, 9, 0.7);
    let heads = Heads::new(&q, &k, &v).unwrap();
    let mut state = attention.state(2, 2, 5).unwrap();
    state.prefill(&heads).unwrap();
    let before = state.clone();
    for wrong in [attention.state(3, 2, 5), attention.state(2, 1, 5), attention.state(2, 2, 4)] {
        let mut wrong = wrong.unwrap();
        assert!(matches!(wrong.prefill(&heads), Err(Error::Shape { .. })));
        assert!(wrong.lengths().iter().all(|length| *length == 0));
        assert!(matches!(state.append(wrong), Err(Error::Merge { .. })) || state.lengths().len() == 5);
        state.clone_from(&before);
    }
    // Sequences that are packed are as many as those of the state.
    let packed = heads.clone().with_sequences(&[0, 4, 9], &[0, 4, 9]).unwrap();
    assert!(matches!(state.prefill(&packed), Err(Error::Shape { .. })));
    let uneven = heads.clone().with_sequences(&[0, 4, 9], &[0, 5, 9]).unwrap();
    let mut four = attention.state(4, 2, 5).unwrap();
    assert!(matches!(four.prefill(&uneven), Err(Error::Shape { .. })));
    assert_eq!(four.lengths(), [0; 4]);
    let few = part(&q, 0, 8);
    assert!(matches!(state.prefill(&Heads::new(&few, &k, &v).unwrap()), Err(Error::Shape { .. })));
    let narrow = Attention::new(positive::<f64>(5, 20)).unwrap().state(2, 2, 5).unwrap();
    assert!(matches!(narrow.clone().prefill(&heads), Err(Error::Shape { .. })));
    assert!(matches!(state.select(&[0, 1, 2]), Err(Error::Entry { row: 2, .. })));
    for other in [
        attention.clone().with_window(3, 0),
        attention.clone().with_scale(0.3),
        attention.clone().with_keys_exact(&[1]),
        attention.clone().with_biased_epsilon(1e-3),
        attention.clone().with_cosine(1.0),
        Ok(attention.clone().without_normalisers()),
        Attention::new(Positive.softmax(frequencies(6, 20, &Orthogonal, 4)).unwrap()),
    ] {
        let other = other.unwrap().state(2, 2, 5).unwrap();
        assert!(matches!(state.append(other), Err(Error::Merge { .. })));
    }
    let token = |x: &Array4<f64>, heads: usize| x.slice(s![.., ..heads, 0, ..]).to_owned();
    assert!(matches!(state.step(&token(&q, 3), &token(&k, 2), &token(&v, 2)), Err(Error::Multiple { .. })));
    assert!(matches!(state.step(&token(&q, 4), &token(&k, 1), &token(&v, 2)), Err(Error::Shape { .. })));
    assert!(matches!(state.step(&token(&q, 4), &token(&k, 2), &token(&q, 2)), Err(Error::Shape { .. })));
    // Nothing has been taken in.
    assert_eq!(state.lengths(), [9, 9]);
    let step =
        |state: &mut CausalState<f64>| state.step(&token(&q, 4), &token(&k, 2), &token(&v, 2)).unwrap();
    assert_eq!(step(&mut state), step(&mut before.clone()));
}

/// Batch and head of queries without a positive normaliser are those of the queries, of which several share a head of keys.
#[test]
fn steps_name_queries_that_are_lost() {
    let [q, k, v] = inputs::<f64>(2, 40, 2.5);
    let map = |seed| Trigonometric.softmax(frequencies(6, 3, &Orthogonal, seed)).unwrap();
    for maps in [vec![map(3)], vec![map(3), map(4)]] {
        let attention = Attention::signed(maps).unwrap();
        let whole = attention.causal(&Heads::new(&q, &k, &v).unwrap()).unwrap();
        // Not only in the first of the heads that share keys, and not only for the first keys.
        assert!([1, 2].map(|bit| whole.non_positive.iter().any(|[_, h, _]| h & bit > 0)) == [true; 2]);
        let mut state = attention.state(2, 2, 5).unwrap();
        for i in 0..40 {
            let [q, k, v] = [&q, &k, &v].map(|x| x.slice(s![.., .., i, ..]));
            let step = state.step(&q, &k, &v).unwrap();
            let own = whole.non_positive.iter().filter(|place| place[2] == i);
            assert_eq!(step.non_positive, own.map(|[b, h, _]| [*b, *h, 0]).collect::<Vec<_>>(), "token {i}");
            assert_eq!(state.query(&q).unwrap(), step);
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

/// Tokens that have left the window are not kept.
#[test]
fn states_do_not_grow() {
    let attention = Attention::new(positive::<f32>(6, 5)).unwrap().with_window(5, 0).unwrap();
    let x = tokens::<f32>([1, 1, 64, 6], 0.7, 1);
    let mut state = attention.state(1, 1, 6).unwrap();
    let mut size = || {
        for i in 0..64 {
            let token = x.slice(s![.., .., i, ..]);
            state.step(&token, &token, &token).unwrap();
        }
        format!("{state:?}").len()
    };
    let sizes: Vec<usize> = (0..12).map(|_| size()).collect();
    assert!(sizes[11] < sizes[1] + sizes[1] / 5, "{sizes:?}");
}

/// Sequences in which there is nothing to keep are counted all the same.
#[test]
fn states_without_heads_are_not_endless() {
    let attention = Attention::new(positive::<f64>(6, 20)).unwrap();
    assert_eq!(attention.state(2, 0, 5).unwrap().lengths(), [0, 0]);
    for (batch, heads) in [(usize::MAX, 0), (0, usize::MAX), (usize::MAX, 1), (usize::MAX, usize::MAX)] {
        assert!(matches!(attention.state(batch, heads, 5), Err(Error::Memory { .. })), "{batch}, {heads}");
    }
}

#[cfg(feature = "serde")]
#[test]
fn stored_states_go_on_to_the_bit() {
    use crate::stored::resealed;

    let inputs = inputs::<f32>(2, 200, 0.7);
    let mask = Array2::from_shape_fn((2, 200), |(b, j)| (j * 7 + b) % 3 > 0);
    for attention in variants::<f32>() {
        for mask in [None, Some(&mask)] {
            parts_are_the_whole(&attention, inputs.each_ref(), mask, CUTS[1], |state| {
                serde_json::from_str(&serde_json::to_string(&state).unwrap()).unwrap()
            });
        }
    }
    // What no state can be is refused.
    let attention = variants::<f32>().swap_remove(5);
    let mut state = attention.state(2, 2, 5).unwrap();
    let [q, k, v] = inputs.each_ref().map(|x| part(x, 0, 80));
    state.prefill(&Heads::new(&q, &k, &v).unwrap()).unwrap();
    let stored = serde_json::to_value(&state).unwrap();
    assert_eq!(resealed::<CausalState<f32>>(stored.clone()).unwrap().lengths(), [80, 80]);
    for (place, value) in [
        ("/data/heads/0/recent/mask", serde_json::json!([true])),
        ("/data/heads/0/exact/rows", serde_json::json!([0, 1])),
        ("/data/heads/0/exact/rows", serde_json::json!([0, 2, 64])),
        ("/data/heads/0/exact/rows", serde_json::json!([1, 0, 64])),
        ("/data/heads/0/exact/rows", serde_json::json!([0, 64, 129])),
        ("/data/heads/0/sequence/mask", serde_json::json!([true])),
        ("/data/heads/0/sequence/length", serde_json::json!(137)),
        ("/data/shape", serde_json::json!([2, 1, 5])),
    ] {
        let mut wrong = stored.clone();
        *wrong.pointer_mut(place).unwrap() = value;
        assert!(resealed::<CausalState<f32>>(wrong).is_err(), "{place}");
    }
    // As many in the last chunk of every head, but more than can be counted on.
    for (more, fits) in [(64u64, true), (1 << 63, false)] {
        let mut other = stored.clone();
        for head in 0..4 {
            let length = other.pointer_mut(&format!("/data/heads/{head}/sequence/length")).unwrap();
            *length = serde_json::json!(length.as_u64().unwrap() + more);
        }
        assert_eq!(resealed::<CausalState<f32>>(other).is_ok(), fits, "{more} more");
    }
    // Keys that later tokens choose have no state.
    let attention = Attention::new(positive::<f32>(6, 20)).unwrap();
    let heaviest = attention.clone().with_heaviest_keys_exact(3).unwrap();
    assert!(matches!(heaviest.state(2, 2, 5), Err(Error::Unsupported { .. })));
    let mut wrong = serde_json::to_value(attention.state(2, 2, 5).unwrap()).unwrap();
    assert!(resealed::<CausalState<f32>>(wrong.clone()).is_ok());
    *wrong.pointer_mut("/data/attention").unwrap() = serde_json::to_value(&heaviest).unwrap();
    assert!(resealed::<CausalState<f32>>(wrong).is_err());
    let wrong = serde_json::to_value(attention.state(2, 0, 5).unwrap()).unwrap();
    assert_eq!(resealed::<CausalState<f32>>(wrong.clone()).unwrap().lengths(), [0, 0]);
    for (place, size) in [("/data/shape/0", u64::MAX), ("/data/shape/2", 0)] {
        let mut wrong = wrong.clone();
        *wrong.pointer_mut(place).unwrap() = serde_json::json!(size);
        assert!(resealed::<CausalState<f32>>(wrong).is_err(), "{place}");
    }
}
