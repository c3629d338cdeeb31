//! Gradients of linear attention against differences of the forward pass, and what they tend to.

use crate::attention::gradient::{backward, check_differences, exact_backward, of_head};
use crate::attention::{positive, ways};
use crate::common::{frequencies, tokens};
use ndarray::{Array2, Array4, s};
use random_features::apply::attention::{Attention, ExactAttention, Heads};
use random_features::frequency::{Frequencies, Independent, Orthogonal};
use random_features::kernel::Activation;
use random_features::{Hyperbolic, Map, Nonlinear, Positive, Trigonometric};

#[test]
fn gradients_are_slopes_of_the_forward_pass() {
    let (q, g) = (tokens::<f64>([1, 2, 6, 3], 0.8, 1), tokens::<f64>([1, 2, 6, 2], 1.0, 4));
    let mask = Array2::from_shape_fn((1, 6), |(_, j)| j != 0 && j != 3);
    for case in 0..128 {
        let [causal, masked, grouped, ragged, normalised, cosine, shrunk] =
            std::array::from_fn(|bit| case >> bit & 1 == 1);
        if shrunk && !normalised {
            continue;
        }
        let of_keys = if grouped { 1 } else { 2 };
        let (k, v) = (tokens::<f64>([1, of_keys, 6, 3], 0.8, 2), tokens::<f64>([1, of_keys, 6, 2], 1.0, 3));
        let attention = Attention::new(positive::<f64>(3, 8)).unwrap();
        let attention = if cosine { attention.with_cosine(0.7) } else { attention.with_scale(0.9) }.unwrap();
        let attention = ways::normalised(attention, normalised);
        let shares = if grouped { vec![0.3] } else { vec![0.3, 0.9] };
        let attention = if shrunk { attention.with_shrinkage(&shares).unwrap() } else { attention };
        let offsets = if causal { [[0, 2, 2, 6], [0, 2, 2, 6]] } else { [[0, 2, 2, 6], [0, 0, 2, 6]] };
        let run = |[q, k, v]: [&Array4<f64>; 3]| {
            let heads = Heads::new(q, k, v).unwrap();
            let heads = if masked { heads.with_mask(&mask).unwrap() } else { heads };
            let heads = if ragged { heads.with_sequences(&offsets[0], &offsets[1]).unwrap() } else { heads };
            let out = if causal { attention.causal(&heads) } else { attention.bidirectional(&heads) };
            ((out.unwrap().output * &g).sum(), backward(&attention, &heads, &g, causal))
        };
        let (_, gradients) = run([&q, &k, &v]);
        let name = |what| {
            format!(
                "{what}; causal {causal}, masked {masked}, grouped {grouped}, ragged {ragged}, normalised {normalised}, cosine {cosine}, shrunk {shrunk}"
            )
        };
        check_differences(&name("queries"), &q, &gradients.queries, |q| run([q, &k, &v]).0);
        check_differences(&name("keys"), &k, &gradients.keys, |k| run([&q, k, &v]).0);
        check_differences(&name("values"), &v, &gradients.values, |v| run([&q, &k, v]).0);
    }
}

/// A token 0 under functions that are 0 there with a slope: all of its features are 0, and its gradient is not.
#[test]
fn features_that_are_all_zero_have_slopes() {
    let functions = [Activation::Identity, Activation::Gelu, Activation::Tanh, Activation::Sin];
    for (causal, normalised, l) in
        [(false, true, 6), (true, true, 6), (false, false, 6), (true, false, 6), (true, true, 70)]
    {
        for activation in functions {
            let map =
                Nonlinear::new(activation).build::<f64>(frequencies(3, 8, &Orthogonal, 5), 1.0).unwrap();
            let attention = ways::normalised(Attention::signed(vec![map]).unwrap(), normalised);
            let [mut q, mut k] = [1, 2].map(|seed| tokens::<f64>([1, 1, l, 3], 0.4, seed).mapv(f64::abs));
            let [v, g] = [3, 4].map(|seed| tokens::<f64>([1, 1, l, 2], 1.0, seed));
            // Normalised, a query whose features are 0 has no output.
            if !normalised {
                q.slice_mut(s![0, 0, 4, ..]).fill(0.0);
            }
            k.slice_mut(s![0, 0, l - 4, ..]).fill(0.0);
            let loss = |[q, k]: [&Array4<f64>; 2]| {
                let heads = Heads::new(q, k, &v).unwrap();
                let out = if causal { attention.causal(&heads) } else { attention.bidirectional(&heads) };
                (out.unwrap().output * &g).sum()
            };
            let all = backward(&attention, &Heads::new(&q, &k, &v).unwrap(), &g, causal);
            let size = all.keys.iter().chain(&all.queries).fold(0.0, |a: f64, v| a.max(v.abs()));
            let entries = [(0, true), (1, false), (2, true), (2, false)].into_iter();
            for (c, of_query) in entries.filter(|(_, of_query)| !(normalised && *of_query)) {
                let (at, h) = ([0, 0, if of_query { 4 } else { l - 4 }, c], 1e-5);
                let moved = |by: f64| {
                    let (mut q, mut k) = (q.clone(), k.clone());
                    if of_query {
                        q[at] += by
                    } else {
                        k[at] += by
                    }
                    loss([&q, &k])
                };
                let (own, slope) = (
                    if of_query { all.queries[at] } else { all.keys[at] },
                    (moved(h) - moved(-h)) / (2.0 * h),
                );
                let name =
                    format!("{activation:?}, causal {causal}, normalised {normalised}, {l} tokens, {at:?}");
                assert!(own != 0.0 && (own - slope).abs() <= 1e-7 * size, "{name}: {own} is {slope}");
            }
        }
    }
}

/// With 16 times the features a quarter of the error; means over 24 draws, whose standard deviation is a few per cent of them.
fn tend_to_exact(name: &str, causal: bool, map: impl Fn(Frequencies) -> Map<f64>) {
    // Norms at which estimates have no heavy tails.
    let [q, k, v, g] = [1, 2, 3, 4].map(|seed| tokens::<f64>([1, 1, 40, 4], 0.35, seed));
    let heads = Heads::new(&q, &k, &v).unwrap();
    let exact = of_head(&exact_backward(&ExactAttention::new(), &heads, &g, causal), 0, 0);
    let error = |m: usize| {
        let mut errors = [0.0; 3];
        for seed in 0..24 {
            let attention = Attention::signed(vec![map(Independent.draw(4, m, seed).unwrap())]).unwrap();
            let own = of_head(&backward(&attention, &heads, &g, causal), 0, 0);
            for ((error, own), exact) in errors.iter_mut().zip(&own).zip(&exact) {
                *error +=
                    (own - exact).mapv(|v| v * v).sum().sqrt() / exact.mapv(|v| v * v).sum().sqrt() / 24.0;
            }
        }
        errors
    };
    for ((few, many), what) in error(256).iter().zip(error(4096)).zip(["queries", "keys", "values"]) {
        let ratio = few / many;
        assert!(
            (3.2..5.0).contains(&ratio) && many < 0.1,
            "{name}, causal {causal}, {what}: {few:.4} to {many:.4}, a ratio of {ratio:.2}"
        );
    }
}

#[test]
fn gradients_tend_to_those_of_exact_attention() {
    tend_to_exact("positive", false, |omega| Positive.softmax(omega).unwrap());
    tend_to_exact("hyperbolic", true, |omega| Hyperbolic.softmax(omega).unwrap());
    tend_to_exact("trigonometric", false, |omega| Trigonometric.softmax(omega).unwrap());
}
