//! Tokens one by one with exact neighbours.

use crate::attention::positive;
use crate::common::{frequencies, read_tokens, tokens};
use ndarray::{Array4, s};
use random_features::apply::attention::{Attention, CausalState, Heads};
use random_features::frequency::Orthogonal;
use random_features::{Positive, Real};

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
