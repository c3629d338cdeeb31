//! Shapes and options that are refused, and the sentences that say so.

use crate::attention::positive;
use crate::common::tokens;
use ndarray::{Array2, Array3, Array4, s};
use random_features::Error;
use random_features::apply::attention::{Attention, ExactAttention, Heads};

#[test]
fn wrong_shapes_are_errors() {
    let attention = Attention::new(positive::<f64>(6, 20)).unwrap();
    let zeros = |b, h, n, d| Array4::<f64>::zeros((b, h, n, d));
    let (q, k, v) = (zeros(1, 4, 5, 6), zeros(1, 2, 7, 6), zeros(1, 2, 7, 3));
    assert!(Heads::new(&q, &k, &v).is_ok());
    for (q, k, v) in [
        (&zeros(2, 4, 5, 6), &k, &v),
        (&q, &zeros(1, 2, 7, 5), &v),
        (&q, &k, &zeros(1, 2, 6, 3)),
        (&q, &k, &zeros(1, 1, 7, 3)),
    ] {
        assert!(matches!(Heads::new(q, k, v), Err(Error::Shape { .. })));
    }
    assert!(matches!(Heads::new(&zeros(1, 3, 5, 6), &k, &v), Err(Error::Multiple { .. })));
    let none = Heads::new(&q, &zeros(1, 0, 7, 6), &zeros(1, 0, 7, 3)).err();
    assert!(matches!(none, Some(Error::Parameter { .. })), "{none:?}");
    assert!(matches!(Heads::new(&q, &k, &zeros(1, 2, 7, 0)), Err(Error::Parameter { .. })));
    let short = Array2::from_elem((1, 5), true);
    assert!(Heads::new(&q, &k, &v).unwrap().with_mask(&short).is_err());
    for (queries, keys) in
        [(vec![0, 5], vec![0, 6]), (vec![0, 5], vec![0, 3, 7]), (vec![1, 5], vec![0, 7]), (vec![5], vec![7])]
    {
        assert!(Heads::new(&q, &k, &v).unwrap().with_sequences(&queries, &keys).is_err());
    }
    let heads = || Heads::new(&q, &k, &v).unwrap();
    let decreasing = heads().with_sequences(&[0, 4, 2, 5], &[0, 1, 2, 7]);
    assert!(matches!(decreasing, Err(Error::Entry { row: 2, .. })));
    assert!(matches!(attention.causal(&heads()), Err(Error::Shape { .. })));
    let narrow = Attention::new(positive::<f64>(5, 20)).unwrap();
    assert!(matches!(narrow.bidirectional(&heads()), Err(Error::Shape { .. })));
    assert!(Attention::<f64>::signed(vec![]).is_err());
    assert!(Attention::per_head(vec![positive::<f64>(5, 20), positive(6, 20)]).is_err());
    let mut state = attention.state(1, 2, 3).unwrap();
    let token = |h, d| Array3::<f64>::zeros((1, h, d));
    assert!(
        state.push(&token(2, 6), &token(2, 4)).is_err() && state.push(&token(1, 6), &token(1, 3)).is_err()
    );
    assert!(state.query(&token(3, 6)).is_err() && state.query(&token(2, 5)).is_err());
    assert!(Heads::without_queries(&zeros(1, 2, 4, 6), &zeros(1, 2, 5, 3)).is_err());
    assert_eq!(state.lengths(), [0]);
    // A query before the first key sees nothing.
    let step = state.query(&token(4, 6)).unwrap();
    assert!(step.output.iter().all(|v| *v == 0.0) && step.non_positive.is_empty());
    assert!(attention.state(1, 2, 0).is_err());
}

/// An error names what was given and what it must be.
#[test]
fn shapes_that_do_not_fit_are_named() {
    let x = tokens::<f64>([1, 3, 5, 4], 1.0, 1);
    let q = tokens::<f64>([1, 8, 5, 4], 1.0, 1);
    let error = Heads::new(&q, &x, &x).unwrap_err().to_string();
    assert!(error.contains("8") && error.contains("multiple") && error.contains("3"), "{error}");
    let mut state = Attention::new(positive::<f64>(4, 8)).unwrap().state(1, 3, 4).unwrap();
    let error = state.query(&q.slice(s![.., .., 0, ..])).unwrap_err().to_string();
    assert!(error.contains("8") && error.contains("multiple") && error.contains("3"), "{error}");
}

/// Each sentence names the argument, what it was and what it must be.
#[test]
fn sentences_name_arguments() {
    let x = tokens::<f64>([1, 2, 5, 4], 1.0, 1);
    let of = |shape| tokens::<f64>(shape, 1.0, 1);
    let says = |error: Error, sentence: &str| assert_eq!(error.to_string(), sentence);
    let heads =
        |q: [usize; 4], k: [usize; 4], v: [usize; 4]| Heads::new(&of(q), &of(k), &of(v)).err().unwrap();
    says(heads([3, 2, 5, 4], [1, 2, 5, 4], [1, 2, 5, 4]), "the batch size of the keys is 1, but must be 3");
    says(
        heads([1, 2, 5, 4], [1, 0, 5, 4], [1, 0, 5, 4]),
        "the number of heads of the keys is 0, but must be at least 1",
    );
    says(
        heads([1, 8, 5, 4], [1, 3, 5, 4], [1, 3, 5, 4]),
        "the number of heads of the queries is 8, but must be a multiple of 3",
    );
    let map = positive::<f64>(4, 8);
    let attention = Attention::new(map.clone()).unwrap();
    let mut state = attention.state(1, 3, 4).unwrap();
    let token = of([1, 2, 1, 4]);
    let error = state.push(&token.slice(s![.., .., 0, ..]), &token.slice(s![.., .., 0, ..])).unwrap_err();
    says(error, "the number of heads of the keys is 2, but must be 3");
    let mut none = attention.state(1, 0, 4).unwrap();
    let error = none.query(&token.slice(s![.., .., 0, ..])).unwrap_err();
    says(error, "the number of heads of the keys is 0, but must be at least 1");
    let error = Attention::per_head(vec![map.clone(); 3]).unwrap().state(1, 2, 4).unwrap_err();
    says(error, "the number of heads of the keys, of which each has its own map, is 2, but must be 3");
    let offsets =
        |q: &[usize], k: &[usize]| Heads::new(&x, &x, &x).unwrap().with_sequences(q, k).err().unwrap();
    says(offsets(&[0, 5], &[0, 2, 5]), "the number of key offsets is 3, but must be 2");
    says(
        offsets(&[5], &[5]),
        "the number of query offsets is 1, but must be at least 2: the start of a sequence and its end",
    );
    says(offsets(&[0, 5], &[1, 5]), "the first key offset is 1, but must be 0");
    says(offsets(&[0, 4], &[0, 5]), "the last query offset is 4, but must be 5");
    says(
        offsets(&[0, 3, 2, 5], &[0, 1, 2, 5]),
        "row 2 of the query offsets is 2, but must be at least the one before",
    );
    let all = Heads::new(&x, &x, &x).unwrap();
    let row =
        |batch, head, row: usize| attention.bidirectional_weights(&all, batch, head, &[row]).unwrap_err();
    says(row(1, 0, 0), "the batch is 1, but must be less than the batch size");
    says(row(0, 2, 0), "the head is 2, but must be less than the number of heads of the queries");
    says(row(0, 0, 5), "a row of queries is 5, but must be less than the number of queries");
    says(
        attention.clone().with_scale(0.0).unwrap_err(),
        "the scale of the logits is 0, but must be positive and finite",
    );
    says(
        ExactAttention::new().with_cosine(-1.0).unwrap_err(),
        "the temperature of the cosines is -1, but must be positive and finite",
    );
    let error = attention.state(1 << 40, 1 << 10, 64).unwrap_err();
    assert!(error.to_string().ends_with("bytes of the state of causal attention"), "{error}");
}
