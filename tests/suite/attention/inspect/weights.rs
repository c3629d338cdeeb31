//! Rows of the matrix of weights.

use crate::attention::{head, positive, ways};
use crate::common::tokens;
use ndarray::{Array2, Array4, Axis, array, s};
use random_features::apply::attention::{Attention, Heads};
use random_features::frequency::Frequencies;
use random_features::{Error, Positive};

/// Rows of the attention matrix times the values are the outputs.
#[test]
fn weights_are_those_of_the_outputs() {
    let attention = Attention::new(positive::<f64>(6, 20)).unwrap();
    let (q, k, v) =
        (tokens::<f64>([2, 4, 90, 6], 0.7, 1), tokens([2, 2, 90, 6], 0.7, 2), tokens([2, 2, 90, 3], 1.0, 3));
    let (mask, offsets) = (Array2::from_shape_fn((2, 90), |(b, j)| (j + 2 * b) % 4 != 1), [0, 40, 90]);
    let heads =
        Heads::new(&q, &k, &v).unwrap().with_mask(&mask).unwrap().with_sequences(&offsets, &offsets).unwrap();
    for causal in [false, true] {
        let out =
            if causal { attention.causal(&heads) } else { attention.bidirectional(&heads) }.unwrap().output;
        let which = [0, 39, 40, 89];
        for own in 0..4 {
            let weights = ways::weights(&attention, &heads, ([1, own], &which), causal).unwrap();
            assert!(weights.sum_axis(Axis(1)).iter().all(|sum| (sum - 1.0).abs() < 1e-12));
            let expected = weights.dot(&head(&v, 1, own / 2));
            for (row, expected) in which.iter().zip(expected.rows()) {
                assert!((&head(&out, 1, own).row(*row) - &expected).iter().all(|e| e.abs() < 1e-12));
            }
        }
        for (place, rows) in [([2, 3], &which[..]), ([1, 4], &which), ([1, 3], &[90])] {
            let refused = ways::weights(&attention, &heads, (place, rows), causal);
            assert!(matches!(refused, Err(Error::Parameter { .. })));
        }
    }
    // Sequences with fewer or more keys than queries: places count from where each begins. Without a key all weights are 0.
    let (few_k, few_v) = (k.slice(s![.., .., ..70, ..]), v.slice(s![.., .., ..70, ..]));
    let nothing = Array2::from_elem((2, 70), false);
    let heads = Heads::new(&q, &few_k, &few_v).unwrap().with_sequences(&offsets, &[0, 10, 70]).unwrap();
    let which = [4, 30, 45, 89];
    let weights = attention.causal_weights(&heads, 0, 0, &which).unwrap();
    for (row, seen) in weights.rows().into_iter().zip([0..5, 0..10, 10..16, 10..60]) {
        assert!(row.indexed_iter().all(|(j, w)| (*w > 0.0) == seen.contains(&j)), "{seen:?} {row}");
    }
    let weights = attention.causal_weights(&heads.with_mask(&nothing).unwrap(), 0, 0, &which).unwrap();
    assert!(weights.iter().all(|w| *w == 0.0));
}

/// With the frequency 1 alone weights are in proportion to e^(k − k²/2), also for a query beside whose square k has no digits.
#[test]
fn squared_norms_may_leave_no_digits() {
    let omega = Frequencies::from_rows(array![[1.0]]).unwrap();
    let attention = Attention::new(Positive.softmax::<f64>(omega).unwrap()).unwrap();
    let (q, k) = (Array4::from_elem((1, 1, 1, 1), 1e8), tokens::<f64>([1, 1, 5, 1], 1.0, 2));
    let weights = attention.bidirectional_weights(&Heads::new(&q, &k, &k).unwrap(), 0, 0, &[0]).unwrap();
    let terms: Vec<f64> = k.iter().map(|k| (k - 0.5 * k * k).exp()).collect();
    let total: f64 = terms.iter().sum();
    let near = |(weight, term): (&f64, &f64)| (weight - term / total).abs() < 1e-12;
    assert!(weights.iter().zip(&terms).all(near), "{weights} for {terms:?}");
}
