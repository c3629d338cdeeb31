//! The cheaper of linear and exact attention.

use crate::attention::{positive, ways};
use crate::common::tokens;
use ndarray::{Array4, s};
use random_features::Error;
use random_features::apply::attention::{Attention, Heads};

fn part(x: &Array4<f64>, n: usize) -> Array4<f64> {
    x.slice(s![.., .., ..n, ..]).to_owned()
}

/// Keys and values of two heads.
fn inputs() -> [Array4<f64>; 2] {
    [(2, 6), (3, 5)].map(|(seed, d)| tokens::<f64>([1, 2, 600, d], 1.5, seed))
}

#[test]
fn exact_attention_is_taken_below_the_crossover() {
    let [k, v] = inputs();
    let attention = Attention::new(positive::<f64>(6, 20)).unwrap();
    let exact = attention.exact_counterpart().unwrap();
    let crossover = attention.bidirectional_crossover(5);
    assert!(crossover > 2 && attention.causal_crossover(5) > crossover);
    // Exact pairs move it up.
    let near = attention.clone().with_window(9, 4).unwrap();
    let heavy = attention.clone().with_keys_exact(&[3, 5]).unwrap();
    for (attention, causal) in
        [(&attention, false), (&attention, true), (&near, false), (&near, true), (&heavy, false)]
    {
        let crossover = ways::crossover(attention, 5, causal);
        for n in [crossover - 1, crossover] {
            let (k, v) = (part(&k, n), part(&v, n));
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
}

#[test]
fn what_is_taken_depends_on_all_lengths_and_on_options() {
    let [k, v] = inputs();
    let attention = Attention::new(positive::<f64>(6, 20)).unwrap();
    let (exact, crossover) = (attention.exact_counterpart().unwrap(), attention.bidirectional_crossover(5));
    // One query, or one key, is exact beside any number of others; causally other lengths, and other shapes are errors.
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
}
