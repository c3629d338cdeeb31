//! Exact attention against its definition.

use crate::attention::{head, positive, ways};
use crate::common::{frequencies, tokens};
use ndarray::{Array2, Array4, Axis, s};
use random_features::apply::attention::{Attention, ExactAttention, Heads};
use random_features::frequency::Orthogonal;
use random_features::{Error, Positive};

/// The exact weights against the definition, and where the two kinds meet.
#[test]
fn exact_attention_is_the_definition() {
    let [q, k, v] =
        [(1, 70, 6), (2, 600, 6), (3, 600, 5)].map(|(seed, n, d)| tokens::<f64>([1, 2, n, d], 1.5, seed));
    let definition = |q: &Array2<f64>, k: &Array2<f64>, v: &Array2<f64>, causal: bool| {
        let mut weights = q.dot(&k.t()) / 6f64.sqrt();
        weights
            .indexed_iter_mut()
            .filter(|((i, j), _)| causal && j > i)
            .for_each(|(_, w)| *w = f64::NEG_INFINITY);
        for mut row in weights.rows_mut() {
            let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            row.mapv_inplace(|logit| (logit - top).exp());
        }
        weights.dot(v) / weights.sum_axis(Axis(1)).insert_axis(Axis(1))
    };
    let out: Array4<f64> =
        ExactAttention::new().bidirectional(&Heads::new(&q, &k, &v).unwrap()).unwrap().output;
    let causal: Array4<f64> = ExactAttention::new().causal(&Heads::new(&k, &k, &v).unwrap()).unwrap().output;
    for h in 0..2 {
        let [q, k, v] = [&q, &k, &v].map(|x| head(x, 0, h).to_owned());
        assert!((&head(&out, 0, h) - &definition(&q, &k, &v, false)).iter().all(|e| e.abs() < 1e-13));
        assert!((&head(&causal, 0, h) - &definition(&k, &k, &v, true)).iter().all(|e| e.abs() < 1e-13));
    }
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let heads = Heads::new(&k, &k, &v).unwrap();
        pool.install(|| ExactAttention::new().causal::<f64, f64>(&heads).unwrap().output)
    };
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

    let attention = Attention::new(positive::<f64>(6, 20)).unwrap();
    let exact = attention.exact_counterpart().unwrap();
    let crossover = attention.bidirectional_crossover(5);
    assert!(crossover > 2 && attention.causal_crossover(5) > crossover);
    // Exact pairs move it up, by a rule that the suite `attention_choice` has again.
    let near = attention.clone().with_window(9, 4).unwrap();
    let heavy = attention.clone().with_keys_exact(&[3, 5]).unwrap();
    for (attention, causal) in
        [(&attention, false), (&attention, true), (&near, false), (&near, true), (&heavy, false)]
    {
        let crossover = ways::crossover(attention, 5, causal);
        for n in [crossover - 1, crossover] {
            let part = |x: &Array4<f64>| x.slice(s![.., .., ..n, ..]).to_owned();
            let (k, v) = (part(&k), part(&v));
            let heads = Heads::new(&k, &k, &v).unwrap();
            let expected = match (n < crossover, causal) {
                (true, false) => exact.bidirectional(&heads),
                (true, true) => exact.causal(&heads),
                (false, false) => attention.bidirectional(&heads),
                (false, true) => attention.causal(&heads),
            };
            assert_eq!(
                ways::auto(attention, &heads, causal).unwrap().output,
                expected.unwrap().output,
                "{n}, {causal}"
            );
        }
    }
    // One query, or one key, is exact beside any number of others; causally other lengths, and other shapes are errors.
    let part = |x: &Array4<f64>, n: usize| x.slice(s![.., .., ..n, ..]).to_owned();
    let (one, k_part, v_part) = (part(&k, 1), part(&k, crossover), part(&v, crossover));
    for heads in
        [Heads::new(&one, &k_part, &v_part), Heads::new(&k_part, &one, &part(&v, 1))].map(Result::unwrap)
    {
        let expected: Array4<f64> = exact.bidirectional(&heads).unwrap().output;
        assert_eq!(attention.bidirectional_auto(&heads).unwrap().output, expected);
    }
    let heads = Heads::new(&k_part, &k_part, &v_part).unwrap();
    let expected: Array4<f64> = exact.causal(&heads).unwrap().output;
    assert_eq!(attention.causal_auto(&heads).unwrap().output, expected);
    let few = part(&k, 3);
    let wrong = Heads::new(&few, &few, &few).unwrap();
    let other = Attention::new(positive::<f64>(5, 20)).unwrap();
    assert!(matches!(other.bidirectional_auto(&wrong), Err(Error::Shape { .. })));
    // What is not divided, or not softmax attention, has no other way.
    let sums = attention.clone().without_normalisers();
    assert_eq!(sums.bidirectional_auto(&wrong).unwrap(), sums.bidirectional(&wrong).unwrap());
    assert_eq!(attention.clone().with_biased_epsilon(0.1).unwrap().exact_counterpart(), None);
    let cosine: Array4<f64> = attention
        .clone()
        .with_cosine(0.3)
        .unwrap()
        .exact_counterpart()
        .unwrap()
        .bidirectional(&wrong)
        .unwrap()
        .output;
    let own: Array4<f64> =
        ExactAttention::new().with_cosine(0.3).unwrap().bidirectional(&wrong).unwrap().output;
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
