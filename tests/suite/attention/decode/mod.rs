//! States of causal attention, against causal attention over whole sequences: to the bit, whatever the way.

mod batch;
mod prompts;
mod refusals;
mod step;
#[cfg(feature = "serde")]
mod stored;
mod window;

use crate::attention::positive;
use crate::common::tokens;
use ndarray::{Array2, Array4, ArrayView4, Axis, s};
use random_features::Real;
use random_features::apply::attention::{Attention, CausalState, Heads};

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
        each.clone().with_shrinkage(&[0.3, 0.8]).unwrap(),
        each.without_normalisers(),
        one().with_cosine(0.2).unwrap().with_window(9, 0).unwrap().with_shrinkage(&[0.0, 0.4]).unwrap(),
        one().with_keys_exact(&[0, 70]).unwrap().with_shrinkage(&[1.0]).unwrap(),
    ]
}

/// Reads tokens part by part, up to each cut, in each of several ways; the outputs of all parts are those of the whole, to the bit.
fn parts_are_the_whole<T: Real>(
    attention: &Attention<T>,
    [q, k, v]: [&Array4<T>; 3],
    mask: Option<&Array2<bool>>,
    ways: &[&[usize]],
    mut store: impl FnMut(CausalState<T>) -> CausalState<T>,
) {
    let heads = Heads::new(q, k, v).unwrap();
    let whole = attention.causal(&mask.map_or(heads.clone(), |mask| heads.with_mask(mask).unwrap())).unwrap();
    for cuts in ways {
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
}

const CUTS: [&[usize]; 5] = [
    &[200],
    &[0, 1, 2, 3, 63, 64, 65, 66, 128, 129, 200],
    &[100, 101, 102, 103, 104, 200],
    &[37, 90, 154, 155, 156, 200],
    &[64, 128, 192, 193, 200],
];
