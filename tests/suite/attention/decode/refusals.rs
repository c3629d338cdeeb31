//! What states refuse: shapes, other states, sizes beyond memory.

use crate::attention::decode::{inputs, part};
use crate::attention::positive;
use crate::common::frequencies;
use ndarray::{Array4, s};
use random_features::apply::attention::{Attention, CausalState, Heads};
use random_features::frequency::Orthogonal;
use random_features::{Error, Positive};

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
        attention.clone().with_shrinkage(&[0.5]),
        attention.clone().with_shrinkage(&[0.5, 0.0]),
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

/// Sequences in which there is nothing to keep are counted all the same.
#[test]
fn states_without_heads_are_not_endless() {
    let attention = Attention::new(positive::<f64>(6, 20)).unwrap();
    assert_eq!(attention.state(2, 0, 5).unwrap().lengths(), [0, 0]);
    for (batch, heads) in [(usize::MAX, 0), (0, usize::MAX), (usize::MAX, 1), (usize::MAX, usize::MAX)] {
        assert!(matches!(attention.state(batch, heads, 5), Err(Error::Memory { .. })), "{batch}, {heads}");
    }
}

/// What no memory holds is an error.
#[test]
fn states_beyond_memory_are_refused() {
    let attention = Attention::new(positive::<f32>(6, 20)).unwrap();
    for (batch, heads, d_v) in [(1, 1 << 40, 4), (1 << 40, 1, 4), (1 << 20, 1 << 20, 4), (1, 1, 1 << 42)] {
        let refused = attention.state(batch, heads, d_v);
        assert!(matches!(refused, Err(Error::Memory { .. })), "{batch} {heads} {d_v}");
    }
}
