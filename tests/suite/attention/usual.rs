//! Attention in one call against the long way, to the bit.

use crate::common::tokens;
use ndarray::{Array2, Array4, Axis, concatenate, s};
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
use random_features::apply::attention::AttentionShaping;
use random_features::apply::attention::{Attention, Heads};
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
use random_features::data::shaping::Shaping;
use random_features::data::{PairStatistics, Statistics};
use random_features::frequency::{Coupling, Orthogonal, Simplex};
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
use random_features::kernel::Softmax;
use random_features::theory::gerf::GerfSign;
use random_features::{Error, Gerf, Map, Positive};

const D: usize = 6;
const M: usize = 12;

/// Four heads of queries and two of keys in two batches, with the keys that are not masked.
struct Inputs {
    tokens: [Array4<f32>; 3],
    mask: Array2<bool>,
}

impl Inputs {
    fn new() -> Self {
        let tokens =
            [tokens([2, 4, 30, D], 0.9, 1), tokens([2, 2, 40, D], 0.6, 2), tokens([2, 2, 40, 3], 1.0, 3)];
        Inputs { tokens, mask: Array2::from_shape_fn((2, 40), |(b, j)| b == 1 || j % 3 > 0) }
    }

    fn heads(&self) -> Heads<'_, f32> {
        let [q, k, v] = &self.tokens;
        Heads::new(q, k, v).unwrap().with_mask(&self.mask).unwrap()
    }

    /// All queries, and all keys that count, of a head of keys: batch by batch.
    fn of_head(&self, head: usize) -> [Array2<f32>; 2] {
        let [q, k, _] = &self.tokens;
        let of_batch = |b: usize| {
            let own = |h: usize| q.slice(s![b, 2 * head + h, .., ..]);
            let seen: Vec<usize> = (0..40).filter(|j| self.mask[[b, *j]]).collect();
            let keys = k.slice(s![b, head, .., ..]).select(Axis(0), &seen);
            (concatenate![Axis(0), own(0), own(1)], keys)
        };
        let ((first_q, first_k), (q, k)) = (of_batch(0), of_batch(1));
        [concatenate![Axis(0), first_q, q], concatenate![Axis(0), first_k, k]]
    }
}

/// Both attend alike, to the bit.
fn same(one: &Attention<f32>, long: &Attention<f32>) {
    let inputs = Inputs::new();
    let [_, k, v] = &inputs.tokens;
    let causal = Heads::new(k, k, v).unwrap();
    assert_eq!(one.bidirectional(&inputs.heads()).unwrap(), long.bidirectional(&inputs.heads()).unwrap());
    assert_eq!(one.causal(&causal).unwrap(), long.causal(&causal).unwrap());
}

#[test]
fn positive_features_of_orthogonal_and_of_simplex_frequencies() {
    let long = |omega| Attention::new(Positive.softmax(omega).unwrap()).unwrap();
    let orthogonal = long(Orthogonal.draw(D, M, 7).unwrap());
    same(&Attention::favor_plus(D, M, 7).unwrap(), &orthogonal);
    same(&Attention::simplex(D, M, 7).unwrap(), &long(Simplex::default().draw(D, M, 7).unwrap()));
    let inputs = Inputs::new();
    let other = Attention::favor_plus(D, M, 8).unwrap().bidirectional(&inputs.heads()).unwrap();
    assert_ne!(other, orthogonal.bidirectional(&inputs.heads()).unwrap());
}

#[test]
fn optimal_positive_features_have_the_parameter_of_each_head() {
    let inputs = Inputs::new();
    let map = |head| -> Map<f32> {
        let [x, y] = inputs.of_head(head).map(|tokens| Statistics::of(&tokens).unwrap());
        let sum = PairStatistics::new(&x, &y).unwrap().mean_squared_sum(GerfSign::Plus);
        let gerf = Gerf::optimal(D, sum / (D as f64).sqrt()).unwrap();
        gerf.softmax(Orthogonal.draw(D, M, 7).unwrap()).unwrap()
    };
    let one = Attention::favor_plus_plus(&inputs.heads(), M, 7).unwrap();
    same(&one, &Attention::per_head(vec![map(0), map(1)]).unwrap());
    assert_ne!(one.maps()[0].recipe(), one.maps()[1].recipe());
}

#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
#[test]
fn shaped_features_have_the_shape_of_each_head() {
    let inputs = Inputs::new();
    let map = |head| -> Map<f32> {
        let [q, k] = inputs.of_head(head);
        let (shape, _) = AttentionShaping::new(Shaping::new()).choose(&q, &k, 64, 0).unwrap();
        shape.build(Orthogonal.draw(D, M, 7).unwrap(), Softmax::default()).unwrap()
    };
    let one = Attention::shaped(&inputs.heads(), M, 7).unwrap();
    same(&one, &Attention::per_head(vec![map(0), map(1)]).unwrap());
}

/// A way to make attention from heads.
type Way = fn(&Heads<'_, f32>, usize) -> Result<Attention<f32>, Error>;

#[test]
fn what_has_no_features_is_refused() {
    for [d, m] in [[0, 4], [4, 0]] {
        assert!(matches!(Attention::<f32>::favor_plus(d, m, 1), Err(Error::Parameter { .. })), "{d}, {m}");
        assert!(matches!(Attention::<f32>::simplex(d, m, 1), Err(Error::Parameter { .. })), "{d}, {m}");
    }
    let ways: &[Way] = &[
        |heads, m| Attention::favor_plus_plus(heads, m, 1),
        #[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
        |heads, m| Attention::shaped(heads, m, 1),
    ];
    let inputs = Inputs::new();
    let [q, k, v] = &inputs.tokens;
    let none = Array2::from_elem((2, 40), false);
    let (flat, ones) = (Array4::zeros((1, 1, 3, 0)), Array4::ones((1, 1, 3, 1)));
    let headless = Array4::zeros((2, 0, 40, D));
    let mut odd = k.clone();
    odd[[1, 1, 5, 2]] = f32::NAN;
    for way in ways {
        let heads = || Heads::new(q, k, v).unwrap();
        assert!(matches!(way(&heads(), 0), Err(Error::Parameter { .. })));
        assert!(matches!(way(&heads().with_mask(&none).unwrap(), 4), Err(Error::NoData { .. })));
        assert!(matches!(way(&Heads::without_queries(k, v).unwrap(), 4), Err(Error::NoData { .. })));
        assert!(matches!(way(&Heads::new(&flat, &flat, &ones).unwrap(), 4), Err(Error::Parameter { .. })));
        let headless = Heads::new(&headless, &headless, &headless).unwrap();
        assert!(matches!(way(&headless, 4), Err(Error::Parameter { .. })));
        assert!(matches!(way(&Heads::new(q, &odd, v).unwrap(), 4), Err(Error::NotFinite { row: 45, .. })));
        let mut mask = Array2::from_elem((2, 40), true);
        mask[[1, 5]] = false;
        assert!(way(&Heads::new(q, &odd, v).unwrap().with_mask(&mask).unwrap(), 4).is_ok());
    }
}
