//! Tokens one by one.

use crate::attention::decode::inputs;
use crate::attention::{maps, positive};
use crate::common::{frequencies, read_tokens, tokens};
use ndarray::{Array4, s};
use random_features::apply::attention::{Attention, CausalState, Heads};
use random_features::frequency::Orthogonal;
use random_features::{Real, Trigonometric};

fn steps<T: Real>(
    attention: &Attention<T>,
    [q, k, v]: [&Array4<T>; 3],
    prefix: usize,
    mut store: impl FnMut(CausalState<T>) -> CausalState<T>,
) {
    let whole = attention.causal(&Heads::new(q, k, v).unwrap()).unwrap();
    let (batch, heads) = (k.dim().0, k.dim().1);
    let mut state = attention.state(batch, heads, v.dim().3).unwrap();
    // A query in between changes nothing.
    state.query(&q.slice(s![.., .., 0, ..])).unwrap();
    read_tokens(&mut state, &k.slice(s![.., .., ..prefix, ..]), &v.slice(s![.., .., ..prefix, ..]));
    for i in prefix..k.dim().2 {
        state.push(&k.slice(s![.., .., i, ..]), &v.slice(s![.., .., i, ..])).unwrap();
        let out = state.query(&q.slice(s![.., .., i, ..])).unwrap();
        assert_eq!(out.output, whole.output.slice(s![.., .., i, ..]), "token {i}");
        let positive =
            whole.non_positive.iter().filter(|place| place[2] == i).map(|place| [place[0], place[1], 0]);
        assert!(positive.eq(out.non_positive), "token {i}");
        assert!(state.lengths().iter().all(|length| *length == i + 1));
        if i == prefix + 5 || i == 1024 {
            state = store(state);
        }
    }
}

/// To the bit, whatever the sizes of keys, and whether products in the scalar suffice or not.
#[test]
fn steps_are_the_batch() {
    for (prefix, length, size) in [
        (0, 200, 0.7),
        (37, 150, 0.7),
        (1000, 1100, 0.7),
        (1024, 1100, 0.7),
        (2100, 2200, 1.0),
        (3, 140, 40.0),
    ] {
        let [q, k, v] = [(1, 4, 6), (2, 2, 6), (3, 2, 5)]
            .map(|(seed, heads, d)| tokens::<f32>([2, heads, length, d], size, seed));
        let attention = Attention::new(positive::<f32>(6, 20)).unwrap();
        steps(&attention, [&q, &k, &v], prefix, |state| state.clone());
        let maps = vec![positive::<f64>(6, 20), positive(6, 33)];
        let wide = [&q, &k, &v].map(|x| x.mapv(f64::from));
        steps(&Attention::per_head(maps).unwrap(), [&wide[0], &wide[1], &wide[2]], prefix, |state| state);
    }
    // Keys that need logarithms come and go within a chunk, and later queries need them too.
    let [q, mut k, v] = [(1, 4, 6), (2, 2, 6), (3, 2, 5)]
        .map(|(seed, heads, d)| tokens::<f32>([2, heads, 300, d], 0.7, seed));
    for i in [3, 70, 71, 127, 128, 200] {
        k.slice_mut(s![.., .., i, ..]).mapv_inplace(|v| 30.0 * v);
    }
    for (name, map, _, _) in maps(6, 20) {
        println!("{name}");
        steps(&Attention::signed(vec![map]).unwrap(), [&q, &k, &v], 65, |state| state.clone());
    }
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
