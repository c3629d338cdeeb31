//! Gradients through pairs with exact weights: those of exact attention, and of linear attention with neighbours and exact keys.

use crate::attention::gradient::{
    Three, assert_near, backward, check_differences, exact_backward, largest, naive, of_head,
    sees_nothing_else, uneven,
};
use crate::attention::oracle::{Pair, is_near, softmax};
use crate::attention::{positive, widened};
use crate::common::{frequencies, tokens};
use crate::threads::on_threads;
use ndarray::{Array2, Array4, s};
use random_features::apply::attention::{Attended, Attention, ExactAttention, Gradients, Heads};
use random_features::frequency::{Independent, Orthogonal};
use random_features::kernel::Softmax;
use random_features::{Map, Positive, Real, Trigonometric};

/// Heads with a mask of the keys and in sequences, where there are any.
fn cut<'a>(
    [q, k, v]: [&'a Array4<f64>; 3],
    mask: Option<&'a Array2<bool>>,
    offsets: Option<&'a [[usize; 4]; 2]>,
) -> Heads<'a, f64> {
    let heads = Heads::new(q, k, v).unwrap();
    let heads = if let Some(mask) = mask { heads.with_mask(mask).unwrap() } else { heads };
    if let Some([queries, keys]) = offsets { heads.with_sequences(queries, keys).unwrap() } else { heads }
}

/// Masked, grouped and ragged heads: outputs and gradients of any attention.
fn slopes(
    name: &str,
    case: [bool; 4],
    attend: impl Fn(&Heads<'_, f64>, bool) -> Attended<f64>,
    pull_back: impl Fn(&Heads<'_, f64>, &Array4<f64>, bool) -> Gradients<f64>,
) {
    let [causal, masked, grouped, ragged] = case;
    let (q, g) = (tokens::<f64>([1, 2, 7, 3], 0.9, 1), tokens::<f64>([1, 2, 7, 2], 1.0, 4));
    let of_keys = if grouped { 1 } else { 2 };
    let (k, v) = (tokens::<f64>([1, of_keys, 7, 3], 0.9, 2), tokens::<f64>([1, of_keys, 7, 2], 1.0, 3));
    let mask = Array2::from_shape_fn((1, 7), |(_, j)| j != 0 && j != 3);
    let offsets = if causal { [[0, 2, 2, 7], [0, 2, 2, 7]] } else { [[0, 2, 2, 7], [0, 0, 2, 7]] };
    let (mask, offsets) = (masked.then_some(&mask), ragged.then_some(&offsets));
    let loss = |all: [&Array4<f64>; 3]| (attend(&cut(all, mask, offsets), causal).output * &g).sum();
    let gradients = pull_back(&cut([&q, &k, &v], mask, offsets), &g, causal);
    let name = |what| {
        format!("{what}; {name}, causal {causal}, masked {masked}, grouped {grouped}, ragged {ragged}")
    };
    check_differences(&name("queries"), &q, &gradients.queries, |q| loss([q, &k, &v]));
    check_differences(&name("keys"), &k, &gradients.keys, |k| loss([&q, k, &v]));
    check_differences(&name("values"), &v, &gradients.values, |v| loss([&q, &k, v]));
}

fn cases() -> impl Iterator<Item = [bool; 4]> {
    (0..16).map(|case| std::array::from_fn(|bit| case >> bit & 1 == 1))
}

#[test]
fn gradients_of_exact_attention_are_slopes() {
    for case in cases() {
        for attention in [ExactAttention::new(), ExactAttention::new().with_cosine(0.4).unwrap()] {
            let attend = |heads: &Heads<'_, f64>, causal| {
                if causal { attention.causal(heads) } else { attention.bidirectional(heads) }.unwrap()
            };
            slopes("exact", case, attend, |heads, g, causal| exact_backward(&attention, heads, g, causal));
        }
    }
}

/// Kinds of attention with exact pairs, causally or not.
fn kinds<T: Real>(attention: &Attention<T>, causal: bool) -> Vec<(String, Attention<T>)> {
    let windows = [(0, 0), (1, 0), (3, 0), (0, 2), (2, 1), (70, 5), (usize::MAX, usize::MAX)];
    let mut all = Vec::new();
    for (before, after) in windows {
        let near = attention.clone().with_window(before, after).unwrap();
        let name = |keys: &str| format!("window {before} {after}, {keys}");
        all.push((name("keys 1 and 4"), near.clone().with_keys_exact(&[4, 1]).unwrap()));
        if !causal {
            all.push((name("heaviest 2"), near.clone().with_heaviest_keys_exact(2).unwrap()));
        }
        all.push((name("no keys"), near));
    }
    all
}

fn slopes_beside_exact_pairs(name: &str, case: [bool; 4], attention: &Attention<f64>) {
    let attend = |heads: &Heads<'_, f64>, causal| {
        if causal { attention.causal(heads) } else { attention.bidirectional(heads) }.unwrap()
    };
    slopes(name, case, attend, |heads, g, causal| backward(attention, heads, g, causal));
}

#[test]
fn gradients_beside_exact_pairs_are_slopes() {
    let attention = Attention::new(positive::<f64>(3, 8)).unwrap();
    for case in cases() {
        for (name, attention) in kinds(&attention, case[0]) {
            slopes_beside_exact_pairs(&name, case, &attention);
        }
    }
    let others = [attention.clone().without_normalisers(), attention.with_cosine(0.7).unwrap()];
    for (kind, attention) in others.into_iter().enumerate() {
        for causal in [false, true] {
            let attention = attention.clone().with_window(2, 1).unwrap().with_keys_exact(&[2]).unwrap();
            let name = ["not normalised", "cosine"][kind];
            slopes_beside_exact_pairs(name, [causal, true, true, false], &attention);
        }
    }
}

/// Single heads of many chunks, against the loop in `f64`.
fn agrees<T: Real>([n, l]: [usize; 2], tolerance: f64) {
    let (d, m) = (6, 24);
    let (q, k) = (tokens::<T>([1, 1, n, d], 0.8, 1), tokens::<T>([1, 1, l, d], 0.8, 2));
    let (v, g) = (tokens::<T>([1, 1, l, 5], 1.0, 3), tokens::<T>([1, 1, n, 5], 1.0, 4));
    let wide = [&q, &k, &v, &g].map(|x| widened(x, 0, 0));
    let heads = Heads::new(&q, &k, &v).unwrap();
    let map = positive::<f64>(d, m);
    // Of many keys more than are packed in one block.
    let many: Vec<usize> = (0..l).step_by(3).collect();
    for causal in [false, true].into_iter().filter(|causal| !causal || n == l) {
        let few = [(0, 0), (1, 0), (64, 0), (100, 33), (0, 70), (1500, 0)]
            .map(|window| (window, &[0, 65, 130][..]));
        for ((before, after), keys) in few.into_iter().chain([((5, 2), &many[..])]) {
            let attention = Attention::new(positive::<T>(d, m)).unwrap();
            let attention = attention.with_window(before, after).unwrap().with_keys_exact(keys).unwrap();
            let got = of_head(&backward(&attention, &heads, &g, causal), 0, 0);
            let is_exact = Vec::from_iter((0..l).map(|j| keys.contains(&j)));
            let pair =
                |i: usize, j: usize| match (causal && j > i, is_near([before, after], i, j) || is_exact[j]) {
                    (true, _) => Pair::Unseen,
                    (_, true) => Pair::Exact,
                    _ => Pair::Features,
                };
            let expected = naive(&map, wide.each_ref().map(|x| x.view()), true, pair);
            let name = format!("{n} and {l} tokens, window {before} {after}, causal {causal}");
            assert_near(&name, &got, &expected, tolerance);
        }
        let got = of_head(&exact_backward(&ExactAttention::new(), &heads, &g, causal), 0, 0);
        let pair = |i: usize, j: usize| if causal && j > i { Pair::Unseen } else { Pair::Exact };
        let expected = naive(&map, wide.each_ref().map(|x| x.view()), true, pair);
        assert_near(&format!("exact, {n} and {l} tokens, causal {causal}"), &got, &expected, tolerance);
    }
}

#[test]
fn many_chunks_are_the_quadratic_loop() {
    for lengths in [[1, 1], [64, 64], [65, 65], [300, 300], [1100, 1100], [3, 200], [200, 70], [0, 5], [5, 0]]
    {
        agrees::<f64>(lengths, 1e-11);
        agrees::<f32>(lengths, 1e-4);
    }
}

#[test]
fn windows_that_hold_all_are_exact_attention() {
    let [q, k, v, g] = [1, 2, 3, 4].map(|seed| tokens::<f64>([2, 2, 150, 4], 1.5, seed));
    let heads = Heads::new(&q, &k, &v).unwrap();
    let attention = Attention::new(positive::<f64>(4, 12)).unwrap().with_window(150, 150).unwrap();
    for causal in [false, true] {
        let (all, exact) = (
            backward(&attention, &heads, &g, causal),
            exact_backward(&ExactAttention::new(), &heads, &g, causal),
        );
        for (b, h) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            assert_near("a window of all", &of_head(&all, b, h), &of_head(&exact, b, h), 1e-12);
        }
    }
}

/// The gradients of Σ g · out by the definition of the softmax, at any norm.
fn naive_softmax([q, k, v, g]: [&Array2<f64>; 4], causal: bool) -> Three {
    let scale = (q.ncols() as f64).sqrt().recip();
    let mut logits = q.dot(&k.t()) * scale;
    let unseen = |i: usize, j: usize| causal && j > i;
    logits.indexed_iter_mut().filter(|((i, j), _)| unseen(*i, *j)).for_each(|(_, w)| *w = f64::NEG_INFINITY);
    let weights = softmax(&logits);
    let mut slopes = g.dot(&v.t());
    for (mut slopes, weights) in slopes.rows_mut().into_iter().zip(weights.rows()) {
        let mean = slopes.dot(&weights);
        slopes -= mean;
    }
    slopes *= &weights;
    slopes *= scale;
    [slopes.dot(k), slopes.t().dot(q), weights.t().dot(g)]
}

/// Norms of 5 and of 50, whose exponentials are far beyond `T`.
#[test]
fn exact_gradients_are_those_of_the_definition() {
    fn check<T: Real>(size: f64, tolerance: f64) {
        let [q, k] = [1, 2].map(|seed| tokens::<T>([1, 1, 150, 8], size, seed));
        let [v, g] = [3, 4].map(|seed| tokens::<T>([1, 1, 150, 3], 1.0, seed));
        let wide = [&q, &k, &v, &g].map(|x| widened(x, 0, 0));
        for causal in [false, true] {
            let heads = Heads::new(&q, &k, &v).unwrap();
            let got = of_head(&exact_backward(&ExactAttention::new(), &heads, &g, causal), 0, 0);
            let name = format!("size {size}, causal {causal}");
            assert_near(&name, &got, &naive_softmax(wide.each_ref(), causal), tolerance);
        }
    }
    check::<f64>(1.8, 1e-12);
    check::<f64>(18.0, 1e-11);
    check::<f32>(1.8, 1e-4);
    // A logit of some hundreds has an error of 1e-5 in `f32`.
    check::<f32>(18.0, 3e-3);
}

/// Attention in which all pairs of so many tokens have exact weights.
fn all_exact<T: Real>(map: Map<T>, count: usize) -> [Attention<T>; 2] {
    let attention = Attention::new(map).unwrap();
    let chosen = attention.clone().with_keys_exact(&Vec::from_iter(0..count)).unwrap();
    [attention.with_window(count, count).unwrap(), chosen]
}

/// Six keys share a logit beside which ln 6 has few digits or none, and three have logits that are less by 8 or 4. All logits are exact in
/// `T`.
#[test]
fn logits_may_leave_no_digits() {
    fn check<T: Real>(sizes: [f64; 2], tolerance: f64) {
        let one = |number: &dyn Fn(usize) -> f64| {
            Array4::from_shape_fn((1, 1, 9, 1), |(_, _, i, _)| T::narrow(number(i)))
        };
        let [v, g] = [3, 4].map(|seed| tokens::<T>([1, 1, 9, 3], 1.0, seed));
        for size in sizes {
            let q = one(&|i: usize| if i.is_multiple_of(2) { size } else { 0.5 * size });
            let k = one(&|j: usize| if j % 3 == 1 { 8.0 - 8.0 / size } else { 8.0 });
            let heads = Heads::new(&q, &k, &v).unwrap();
            let wide = [&q, &k, &v, &g].map(|x| widened(x, 0, 0));
            let map = Positive.softmax::<T>(frequencies(1, 12, &Independent, 7)).unwrap();
            for causal in [false, true] {
                let expected = naive_softmax(wide.each_ref(), causal);
                let linear = all_exact(map.clone(), 9);
                let linear = linear.map(|attention| backward(&attention, &heads, &g, causal));
                let exact = exact_backward(&ExactAttention::new(), &heads, &g, causal);
                for got in linear.iter().chain([&exact]).map(|all| of_head(all, 0, 0)) {
                    for (got, expected) in got.iter().zip(&expected) {
                        let (error, most) = (got - expected, tolerance * (1.0 + largest(expected)));
                        assert!(largest(&error) <= most, "{size:e}, causal {causal}: {got} for {expected}");
                    }
                }
            }
        }
    }
    check::<f32>([2f64.powi(14), 2f64.powi(23)], 1e-4);
    check::<f64>([2f64.powi(30), 2f64.powi(53)], 1e-13);
}

/// Lengthscales ℓ for which 1/ℓ² is beyond `f32`, and the logits are not.
#[test]
fn squared_lengthscales_may_be_out_of_range() {
    let [v, g] = [3, 4].map(|seed| tokens::<f32>([1, 1, 90, 3], 1.0, seed));
    for lengthscale in [1e25, 1e-25] {
        let [q, k] = [1, 2].map(|seed| tokens::<f32>([1, 1, 90, 6], 1.5 * lengthscale, seed));
        let heads = Heads::new(&q, &k, &v).unwrap();
        let scaled = [&q, &k].map(|x| widened(x, 0, 0) / lengthscale);
        let (v, wide_g) = (widened(&v, 0, 0), widened(&g, 0, 0));
        let softmax = Softmax::new(lengthscale).unwrap();
        let map = Positive.build::<f32>(frequencies(6, 12, &Orthogonal, 7), softmax).unwrap();
        for attention in all_exact(map, 90) {
            for causal in [false, true] {
                let expected = naive_softmax([&scaled[0], &scaled[1], &v, &wide_g], causal);
                let [of_queries, of_keys, of_values] =
                    of_head(&backward(&attention, &heads, &g, causal), 0, 0);
                let got = [of_queries * lengthscale, of_keys * lengthscale, of_values];
                assert_near(&format!("{lengthscale:e}, causal {causal}"), &got, &expected, 1e-4);
            }
        }
    }
}

/// Large norms, of which no product by features is in `T`, beside neighbours.
#[test]
fn norms_may_be_large() {
    let [q, k] = [1, 2].map(|seed| tokens::<f64>([1, 1, 90, 8], 18.0, seed));
    let [v, g] = [3, 4].map(|seed| tokens::<f64>([1, 1, 90, 3], 1.0, seed));
    let heads = Heads::new(&q, &k, &v).unwrap();
    for causal in [false, true] {
        let exact = exact_backward(&ExactAttention::new(), &heads, &g, causal);
        let attention = Attention::new(positive::<f64>(8, 12)).unwrap();
        let near = backward(&attention.clone().with_window(90, 90).unwrap(), &heads, &g, causal);
        assert_near("a window of all", &of_head(&near, 0, 0), &of_head(&exact, 0, 0), 1e-11);
        let some = backward(&attention.with_window(5, 5).unwrap(), &heads, &g, causal);
        assert!([&some.queries, &some.keys, &some.values].iter().all(|x| x.iter().all(|v| v.is_finite())));
    }
}

fn same_on_any_threads<T: Real>() {
    let l = 2300;
    let attention = Attention::new(positive::<T>(6, 16)).unwrap().with_window(40, 9).unwrap();
    let attention = attention.with_keys_exact(&[0, 7, 1500]).unwrap();
    let [k, v] = [2, 3].map(|seed| uneven::<T>(l, 1, seed));
    let [q, g] = [1, 4].map(|seed| uneven::<T>(l, 2, seed));
    let mask = Array2::from_shape_fn((1, l), |(_, j)| j % 5 != 1 && !(100..300).contains(&j));
    // Exact attention has blocks of some hundred keys, and no segments.
    let [some_q, some_k, some_v, some_g] =
        [&q, &k, &v, &g].map(|x| x.slice(s![.., .., ..600, ..]).to_owned());
    let some_mask = mask.slice(s![.., ..600]);
    let run = |threads| {
        let heads = Heads::new(&q, &k, &v).unwrap().with_mask(&mask).unwrap();
        let some = Heads::new(&some_q, &some_k, &some_v).unwrap().with_mask(&some_mask).unwrap();
        on_threads(threads, || {
            [false, true].map(|causal| {
                let exact = exact_backward(&ExactAttention::new(), &some, &some_g, causal);
                (backward(&attention, &heads, &g, causal), exact)
            })
        })
    };
    let one = run(1);
    assert!(one.iter().all(|(one, exact)| one.keys.iter().chain(&exact.keys).all(|v| v.is_finite())));
    [2, 5].into_iter().for_each(|threads| assert!(run(threads) == one, "{threads} threads"));
}

#[test]
fn threads_change_no_bit() {
    same_on_any_threads::<f32>();
    same_on_any_threads::<f64>();
}

#[test]
fn nothing_comes_from_the_future() {
    fn check<T: Real>() {
        let attention = Attention::new(positive::<T>(6, 16)).unwrap().with_window(20, 0).unwrap();
        let attention = attention.with_keys_exact(&[0, 50, 120]).unwrap();
        // Over a segment.
        sees_nothing_else(&[1, 63, 64, 100, 1000, 1024, 1130], |heads, g| {
            backward(&attention, heads, g, true)
        });
        // Over blocks of 48 queries and of 256 keys.
        sees_nothing_else(&[1, 47, 48, 100, 255, 256, 300], |heads, g| {
            exact_backward::<T, T>(&ExactAttention::new(), heads, g, true)
        });
    }
    check::<f32>();
    check::<f64>();
}

#[test]
fn what_has_no_part_has_no_gradient() {
    let [q, v, g] = [1, 3, 4].map(|seed| tokens::<f64>([1, 1, 70, 4], 0.8, seed));
    let (none, nan) = (Array2::from_elem((1, 70), false), Array4::from_elem(v.dim(), f64::NAN));
    let near = Attention::new(positive::<f64>(4, 12)).unwrap().with_window(9, 3).unwrap();
    let near = near.with_keys_exact(&[1, 2]).unwrap();
    for causal in [false, true] {
        for q in [&q, &nan] {
            let heads = Heads::new(q, &nan, &nan).unwrap().with_mask(&none).unwrap();
            for all in [
                backward(&near, &heads, &g, causal),
                backward(&near.clone().without_normalisers(), &heads, &g, causal),
                exact_backward(&ExactAttention::new(), &heads, &g, causal),
            ] {
                let Gradients { queries, keys, values, .. } = all;
                assert!(
                    [queries, keys, values].iter().all(|x| x.iter().all(|v| *v == 0.0)),
                    "causal {causal}"
                );
            }
        }
    }
    // NaN in a value has a part in the gradients of the queries that see it, and of all their keys, not in those of values.
    let mut odd = v.clone();
    odd[[0, 0, 60, 1]] = f64::NAN;
    let all = exact_backward(&ExactAttention::new(), &Heads::new(&q, &v, &odd).unwrap(), &g, true);
    let with_nan = |x: &Array4<f64>| -> Vec<usize> {
        (0..70).filter(|i| x.slice(s![0, 0, *i, ..]).iter().any(|v| v.is_nan())).collect()
    };
    assert_eq!(with_nan(&all.queries), (60..70).collect::<Vec<_>>());
    assert_eq!(with_nan(&all.keys), (0..70).collect::<Vec<_>>());
    assert!(with_nan(&all.values).is_empty());
}

/// NaN in a token shows too where all logits of a query are NaN, so that none of them is the largest.
#[test]
fn nan_shows_where_all_logits_are_nan() {
    fn check<T: Real>() {
        let [q, k, v, g] = [1, 2, 3, 4].map(|seed| tokens::<T>([1, 1, 70, 4], 0.8, seed));
        let near = Attention::new(positive::<T>(4, 12)).unwrap().with_window(usize::MAX, usize::MAX).unwrap();
        let with_nan = |x: &Array4<T>, row| {
            let mut x = x.clone();
            x[[0, 0, row, 1]] = T::nan();
            x
        };
        let (of_query, of_key) = (with_nan(&q, 60), with_nan(&k, 0));
        for causal in [false, true] {
            let of = |q: &Array4<T>, k: &Array4<T>| {
                let heads = Heads::new(q, k, &v).unwrap();
                let all = [
                    exact_backward(&ExactAttention::new(), &heads, &g, causal),
                    backward(&near, &heads, &g, causal),
                ];
                all.map(|all| {
                    [all.queries, all.keys, all.values].map(|x| -> Vec<usize> {
                        (0..70).filter(|i| x.slice(s![0, 0, *i, ..]).iter().any(|v| v.is_nan())).collect()
                    })
                })
            };
            let (all, seen): (Vec<usize>, Vec<usize>) =
                ((0..70).collect(), (0..if causal { 61 } else { 70 }).collect());
            for got in of(&of_query, &k) {
                assert_eq!(got, [vec![60], seen.clone(), seen.clone()], "causal {causal}");
            }
            // Causally the first query sees nothing else.
            for got in of(&q, &of_key) {
                assert_eq!(got, [all.clone(), all.clone(), all.clone()], "causal {causal}");
            }
        }
    }
    check::<f32>();
    check::<f64>();
}

/// Signed features beside exact pairs: a query whose normaliser is not positive has no part in any gradient. Neither its features nor
/// its exact weights give it one.
#[test]
fn queries_without_a_positive_normaliser_have_none() {
    let [q, k, v, g] = [1, 2, 3, 4].map(|seed| tokens::<f64>([1, 1, 80, 4], 2.5, seed));
    let map: Map<f64> = Trigonometric.softmax(frequencies(4, 6, &Orthogonal, 7)).unwrap();
    let attention =
        Attention::signed(vec![map]).unwrap().with_window(1, 1).unwrap().with_keys_exact(&[70]).unwrap();
    let heads = Heads::new(&q, &k, &v).unwrap();
    for causal in [false, true] {
        let out = if causal { attention.causal(&heads) } else { attention.bidirectional(&heads) };
        let rows: Vec<usize> = out.unwrap().non_positive.iter().map(|place| place[2]).collect();
        assert!(!rows.is_empty(), "causal {causal}");
        let mut rest = g.clone();
        rows.iter().for_each(|i| rest.slice_mut(s![0, 0, *i, ..]).fill(0.0));
        let (all, of_rest) =
            (backward(&attention, &heads, &g, causal), backward(&attention, &heads, &rest, causal));
        assert!(rows.iter().all(|i| all.queries.slice(s![0, 0, *i, ..]).iter().all(|v| *v == 0.0)));
        assert_near(&format!("causal {causal}"), &of_head(&all, 0, 0), &of_head(&of_rest, 0, 0), 1e-13);
    }
}
