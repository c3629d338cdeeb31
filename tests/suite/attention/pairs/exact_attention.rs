//! Exact attention against its definition.

use crate::attention::oracle;
use crate::attention::{head, positive};
use crate::common::{frequencies, tokens};
use crate::threads::on_threads;
use ndarray::{Array2, Array4, s};
use random_features::Positive;
use random_features::apply::attention::{Attention, ExactAttention, Heads};
use random_features::frequency::Orthogonal;

/// Outputs with exact weights against the definition.
#[test]
fn exact_attention_is_the_definition() {
    let [q, k, v] =
        [(1, 70, 6), (2, 600, 6), (3, 600, 5)].map(|(seed, n, d)| tokens::<f64>([1, 2, n, d], 1.5, seed));
    let definition = |q: &Array2<f64>, k: &Array2<f64>, v: &Array2<f64>, causal: bool| {
        oracle::exact([q, k, v], |i, j| !causal || j <= i)
    };
    let out: Array4<f64> =
        ExactAttention::new().bidirectional(&Heads::new(&q, &k, &v).unwrap()).unwrap().output;
    let causal: Array4<f64> = ExactAttention::new().causal(&Heads::new(&k, &k, &v).unwrap()).unwrap().output;
    for h in 0..2 {
        let [q, k, v] = [&q, &k, &v].map(|x| head(x, 0, h).to_owned());
        assert!((&head(&out, 0, h) - &definition(&q, &k, &v, false)).iter().all(|e| e.abs() < 1e-13));
        assert!((&head(&causal, 0, h) - &definition(&k, &k, &v, true)).iter().all(|e| e.abs() < 1e-13));
    }
    let heads = Heads::new(&k, &k, &v).unwrap();
    let run =
        |threads| on_threads(threads, || ExactAttention::new().causal::<f64, f64>(&heads).unwrap().output);
    assert!(run(1) == run(3));
    // Beside a key of a later block nothing is left of those before.
    let mut long = k.mapv(|v| 4.0 * v);
    long.slice_mut(s![.., .., 300.., ..]).mapv_inplace(|v| 10.0 * v);
    let heads = Heads::new(&long, &long, &v).unwrap();
    let [all, causal]: [Array4<f64>; 2] = [
        ExactAttention::new().bidirectional(&heads).unwrap().output,
        ExactAttention::new().causal(&heads).unwrap().output,
    ];
    let [x, values] = [&long, &v].map(|x| head(x, 0, 1).to_owned());
    for (out, causal) in [(all, false), (causal, true)] {
        // Logits of some 10⁴ are rounded.
        let expected = definition(&x, &x, &values, causal);
        assert!((&head(&out, 0, 1) - &expected).iter().all(|e| e.abs() < 1e-10));
    }
    // Norms of 1e3: one key takes all, or keys share.
    let large = k.mapv(|v| (v * 1e3) as f32);
    let heads = Heads::new(&large, &large, &large).unwrap();
    let out: Array4<f32> = ExactAttention::new().causal(&heads).unwrap().output;
    assert!(out.iter().all(|v| v.is_finite()));
}

/// A counterpart has the logits of the features, and only softmax attention has one.
#[test]
fn exact_counterparts_have_the_logits_of_features() {
    let [k, v] = [(2, 6), (3, 5)].map(|(seed, d)| tokens::<f64>([1, 2, 600, d], 1.5, seed));
    let attention = Attention::new(positive::<f64>(6, 20)).unwrap();
    let few = k.slice(s![.., .., ..3, ..]);
    let few = Heads::new(&few, &few, &few).unwrap();
    let shrunk = attention.clone().with_shrinkage(&[0.1]).unwrap();
    assert_eq!(shrunk.exact_counterpart(), attention.exact_counterpart());
    let cosine: Array4<f64> = attention
        .clone()
        .with_cosine(0.3)
        .unwrap()
        .exact_counterpart()
        .unwrap()
        .bidirectional(&few)
        .unwrap()
        .output;
    let own: Array4<f64> =
        ExactAttention::new().with_cosine(0.3).unwrap().bidirectional(&few).unwrap().output;
    assert!((cosine - own).iter().all(|e| e.abs() < 1e-13));
    // Another kernel has no exact softmax attention.
    let gaussian = Positive.gaussian::<f64>(frequencies(6, 8, &Orthogonal, 1), 1.0).unwrap();
    assert_eq!(Attention::new(gaussian).unwrap().exact_counterpart(), None);
    let longer = Positive
        .build::<f64>(frequencies(6, 8, &Orthogonal, 1), random_features::kernel::Softmax::new(2.0).unwrap())
        .unwrap();
    let mixed = Attention::per_head(vec![positive(6, 20), longer.clone()]).unwrap();
    assert_eq!(mixed.exact_counterpart(), None);
    let heads = Heads::new(&k, &k, &v).unwrap();
    let own: Array4<f64> =
        Attention::new(longer).unwrap().exact_counterpart().unwrap().bidirectional(&heads).unwrap().output;
    let quarter: Array4<f64> =
        ExactAttention::new().with_scale(0.25 / 6f64.sqrt()).unwrap().bidirectional(&heads).unwrap().output;
    assert!((own - quarter).iter().all(|e| e.abs() < 1e-13));
}

/// A weight that has vanished beside a later, larger one takes its infinite value with it.
#[test]
fn infinite_values_vanish_with_their_weights() {
    let (mut k, mut v) = (Array4::<f64>::zeros((1, 1, 600, 1)), Array4::ones((1, 1, 600, 1)));
    (k[[0, 0, 599, 0]], v[[0, 0, 3, 0]]) = (2000.0, f64::INFINITY);
    let q = Array4::ones((1, 1, 1, 1));
    let out: Array4<f64> =
        ExactAttention::new().bidirectional(&Heads::new(&q, &k, &v).unwrap()).unwrap().output;
    assert_eq!(out[[0, 0, 0, 0]], 1.0);
    k[[0, 0, 599, 0]] = 10.0;
    let out: Array4<f64> =
        ExactAttention::new().bidirectional(&Heads::new(&q, &k, &v).unwrap()).unwrap().output;
    assert_eq!(out[[0, 0, 0, 0]], f64::INFINITY);
}

#[test]
fn a_logit_of_minus_infinity_is_reported() {
    let q = Array4::from_elem((1, 1, 1, 1), 1e200f64);
    let (k, v) = (-&q, Array4::from_elem((1, 1, 1, 1), 1.0f64));
    let out = ExactAttention::new().bidirectional::<f64, _>(&Heads::new(&q, &k, &v).unwrap()).unwrap();
    assert_eq!((out.output[[0, 0, 0, 0]], out.non_positive), (0.0, vec![[0, 0, 0]]));
}

/// A scale may be beyond the range of `f32` where the logits are not. One whose inverse is not a number is refused.
#[test]
fn scales_beyond_the_range_of_tokens() {
    let row = |values: Vec<f32>| Array4::from_shape_vec((1, 1, values.len(), 1), values).unwrap();
    let values = row(vec![1.0, 0.0]);
    for (scale, token) in [(1e-60, 1e30), (1e-40, 1e20), (1e39, 3.2e-20), (1e60, 1e-30)] {
        let [q, k] = [row(vec![token]), row(vec![token, -token])];
        let exact = ExactAttention::new().with_scale(scale).unwrap();
        let heads = Heads::new(&q, &k, &values).unwrap();
        let output = exact.bidirectional::<f32, f32>(&heads).unwrap().output[[0, 0, 0, 0]];
        let logit = scale * f64::from(token).powi(2);
        let expected = 1.0 / (1.0 + (-2.0 * logit).exp());
        assert!((f64::from(output) - expected).abs() < 1e-6, "{scale:e}: {output} for {expected}");
    }
    assert!(ExactAttention::new().with_cosine(1e-310).is_err());
}
