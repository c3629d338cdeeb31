//! Gradients of linear attention: against differences of the forward pass, against the quadratic loop, and where precision is short.

use super::oracle::{self, Pair, positive};
use crate::common::{frequencies, tokens};
use ndarray::{Array1, Array2, Array4, ArrayView2, Axis, array, s};
use rand_distr::{Distribution, StandardNormal};
use random_features::apply::attention::{Attention, ExactAttention, Gradients, Heads, TokenElement};
use random_features::compose::{Bases, Centres, Clustered, Conditioning, Hybrid};
use random_features::data::Clustering;
use random_features::extend::{Facts, FeatureMap, Form, Tile};
use random_features::frequency::{Counts, Frequencies, Independent, Orthogonal};
use random_features::kernel::{Activation, Softmax};
use random_features::{
    EluPlusOne, Error, Gerf, Hyperbolic, Map, Nonlinear, Poisson, Positive, Real, Side, Trigonometric, rng,
};

pub fn backward<T: Real, E: TokenElement<T>>(
    attention: &Attention<T>,
    heads: &Heads<'_, E>,
    g: &Array4<T>,
    causal: bool,
) -> Gradients<T> {
    if causal { attention.causal_backward(heads, g) } else { attention.bidirectional_backward(heads, g) }
        .unwrap()
}

pub fn exact_backward<T: Real, E: TokenElement<T>>(
    attention: &ExactAttention,
    heads: &Heads<'_, E>,
    g: &Array4<T>,
    causal: bool,
) -> Gradients<T> {
    if causal { attention.causal_backward(heads, g) } else { attention.bidirectional_backward(heads, g) }
        .unwrap()
}

/// Gradients of one head.
pub type Three = [Array2<f64>; 3];

pub fn of_head<T: Real>(all: &Gradients<T>, b: usize, h: usize) -> Three {
    [&all.queries, &all.keys, &all.values].map(|x| x.slice(s![b, h, .., ..]).mapv(|v| v.widen()))
}

pub fn largest(x: &Array2<f64>) -> f64 {
    x.iter().fold(0.0, |a: f64, v| a.max(v.abs()))
}

/// Each of the three within a tolerance relative to the largest entry of all.
#[track_caller]
pub fn assert_near(name: &str, got: &Three, expected: &Three, tolerance: f64) {
    let size = expected.iter().map(largest).fold(0.0, f64::max);
    for ((got, expected), what) in got.iter().zip(expected).zip(["queries", "keys", "values"]) {
        let error = largest(&(got - expected));
        let finite = got.iter().all(|v| v.is_finite());
        assert!(finite && error <= tolerance * size, "{name}, {what}: {error:e} of {size:e}");
    }
}

/// Features for a pair that is seen.
fn by_features(sees: bool) -> Pair {
    if sees { Pair::Features } else { Pair::Unseen }
}

/// The gradients of Σ g · out with respect to features, by their definition, and through them with respect to tokens.
pub fn naive(
    map: &Map<f64>,
    [q, k, v, g]: [ArrayView2<'_, f64>; 4],
    normalised: bool,
    pair: impl Fn(usize, usize) -> Pair,
) -> Three {
    let factor = (q.ncols() as f64).powf(-0.25);
    let (x, y) = (&q * factor, &k * factor);
    let features = |side, x: &Array2<f64>| {
        let features = map.features(side, x).unwrap();
        let blocks = map.blocks();
        let columns: Vec<usize> = (0..blocks.len()).flat_map(|b| vec![b; blocks[b]]).collect();
        let scales = features.log_scales().to_owned();
        let scales =
            Array2::from_shape_fn(features.mantissas().dim(), |(i, f)| scales[[i, columns[f]]].exp());
        // What a scale of −∞ stands before may be anything.
        let clean = |v: &f64, scale: &f64| if *scale == 0.0 { 0.0 } else { v * scale };
        (ndarray::Zip::from(features.mantissas()).and(&scales).map_collect(clean), scales)
    };
    let ((phi, at_x), (psi, at_y)) = (features(Side::X, &x), features(Side::Y, &y));
    let kernel = Array2::from_shape_fn((q.nrows(), k.nrows()), |(i, j)| match pair(i, j) {
        Pair::Unseen => 0.0,
        Pair::Features => phi.row(i).dot(&psi.row(j)),
        Pair::Exact => x.row(i).dot(&y.row(j)).exp(),
    });
    let totals = kernel.sum_axis(Axis(1));
    let inverse = |total: f64| match normalised {
        true if total > 0.0 => 1.0 / total,
        true => 0.0,
        false => 1.0,
    };
    let weights = &kernel * &totals.mapv(inverse).insert_axis(Axis(1));
    let out = weights.dot(&v);
    let of_kernel = Array2::from_shape_fn(kernel.dim(), |(i, j)| {
        let own = if normalised { g.row(i).dot(&out.row(i)) } else { 0.0 };
        let seen = pair(i, j) != Pair::Unseen;
        if seen { inverse(totals[i]) * (g.row(i).dot(&v.row(j)) - own) } else { 0.0 }
    });
    // Of the kernel of features, and of the logits of exact pairs.
    let part = |own| {
        Array2::from_shape_fn(kernel.dim(), |(i, j)| if pair(i, j) == own { of_kernel[[i, j]] } else { 0.0 })
    };
    let (estimated, of_logits) = (part(Pair::Features), part(Pair::Exact) * &kernel);
    let pull = |side, x: &Array2<f64>, of_features: Array2<f64>, scales: Array2<f64>| {
        map.pull_back(side, x, &(of_features * scales)).unwrap() * factor
    };
    [
        pull(Side::X, &x, estimated.dot(&psi), at_x) + of_logits.dot(&y) * factor,
        pull(Side::Y, &y, estimated.t().dot(&phi), at_y) + of_logits.t().dot(&x) * factor,
        weights.t().dot(&g),
    ]
}

pub fn widened<T: Real>(x: &Array4<T>) -> Array2<f64> {
    x.slice(s![0, 0, .., ..]).mapv(|v| v.widen())
}

/// Single heads, against the loop in `f64`: tolerances of sums, and of what is divided by a normaliser.
fn agrees<T: Real>(
    name: &str,
    attention: &Attention<T>,
    map: &Map<f64>,
    [n, l]: [usize; 2],
    size: f64,
    tolerances: [f64; 2],
) {
    let d = map.dim();
    let (q, k) = (tokens::<T>([1, 1, n, d], size, 1), tokens::<T>([1, 1, l, d], size, 2));
    let (v, g) = (tokens::<T>([1, 1, l, 5], 1.0, 3), tokens::<T>([1, 1, n, 5], 1.0, 4));
    let wide = [&q, &k, &v, &g].map(widened);
    let heads = Heads::new(&q, &k, &v).unwrap();
    for (normalised, tolerance) in [false, true].into_iter().zip(tolerances) {
        let attention = oracle::normalised(attention.clone(), normalised);
        for causal in [false, true].into_iter().filter(|causal| !causal || n == l) {
            let got = of_head(&backward(&attention, &heads, &g, causal), 0, 0);
            let expected = naive(map, wide.each_ref().map(|x| x.view()), normalised, |i, j| {
                by_features(!causal || j <= i)
            });
            let name = format!("{name}, {n} and {l} tokens, normalised {normalised}, causal {causal}");
            assert_near(&name, &got, &expected, tolerance);
        }
    }
}

#[test]
fn chunks_and_segments_are_the_quadratic_loop() {
    let (single, double) = (positive::<f32>(6, 24), positive::<f64>(6, 24));
    for lengths in [[1, 1], [63, 63], [64, 64], [65, 65], [1027, 1027], [3, 100], [130, 7], [0, 5], [5, 0]] {
        agrees("f64", &Attention::new(double.clone()).unwrap(), &double, lengths, USUAL, [1e-11; 2]);
        agrees("f32", &Attention::new(single.clone()).unwrap(), &double, lengths, USUAL, [1e-4; 2]);
    }
}

/// Norms of some 1.5, and of some 5, of six coordinates.
const USUAL: f64 = 0.6;
const LARGE: f64 = 2.0;

/// In `f32` sums to 1e-4; outputs too where features are never negative.
const NEVER_NEGATIVE: [f64; 2] = [1e-4; 2];
/// Where normalisers may be near 0, relative errors of outputs are of any size: that they are finite is what counts.
const SIGNED: [f64; 2] = [1e-4, 4.0];

macro_rules! agree {
    ($name:literal, $tolerance:expr, $single:expr, $make:expr) => {{
        let (single, double): (Map<f32>, Map<f64>) = ($make.unwrap(), $make.unwrap());
        let attention = Attention::signed(vec![double.clone()]).unwrap();
        agrees($name, &attention, &double, [80, 80], USUAL, [$tolerance; 2]);
        let attention = Attention::signed(vec![single]).unwrap();
        agrees($name, &attention, &double, [80, 80], USUAL, $single);
        if $single == NEVER_NEGATIVE {
            agrees($name, &attention, &double, [80, 80], LARGE, $single);
        }
    }};
}

#[test]
fn every_map_is_the_quadratic_loop() {
    let (d, m) = (6, 40);
    let omega = || frequencies(d, m, &Orthogonal, 3);
    let counts = || Counts::poisson(d, m, 1.5, rng(4).next_u64()).unwrap();
    agree!("positive", 1e-12, NEVER_NEGATIVE, Positive.softmax(omega()));
    agree!("hyperbolic", 1e-12, NEVER_NEGATIVE, Hyperbolic.softmax(omega()));
    agree!("OPRF", 1e-12, NEVER_NEGATIVE, Gerf::optimal(d, 2.0).unwrap().softmax(omega()));
    agree!("ELU + 1", 1e-12, NEVER_NEGATIVE, EluPlusOne.build(d, 1.0));
    agree!(
        "ReLU",
        1e-12,
        NEVER_NEGATIVE,
        Nonlinear::new(Activation::Relu).with_offset(1e-3).unwrap().build(omega(), 1.0)
    );
    agree!("exp", 1e-12, NEVER_NEGATIVE, Nonlinear::new(Activation::Exp).build(omega(), 1.0));
    agree!("Poisson", 1e-8, SIGNED, Poisson::default().softmax(counts()));
    agree!("trigonometric", 1e-8, SIGNED, Trigonometric.softmax(omega()));
    let shape = |(k, l)| if k == l { 0.8 + 0.1 * k as f64 } else { 0.05 * (k as f64 - l as f64) };
    let shape = Conditioning::new(Array2::from_shape_fn((d, d), shape)).unwrap();
    let shape = shape.shifted(vec![0.1; d], vec![-0.2; d]).unwrap();
    agree!(
        "shaped",
        1e-11,
        NEVER_NEGATIVE,
        Positive.softmax(omega()).and_then(|map: Map<_>| map.conditioned(&shape))
    );
    let centres = Array2::from_shape_fn((2, d), |(c, k)| if (c + k) % 2 == 0 { 0.4 } else { -0.4 });
    let clusters = Clustering::new(centres).unwrap();
    let centres = || Centres::new(&clusters, &clusters);
    agree!("clustered", 1e-8, SIGNED, Clustered::by_centres(centres(), omega(), Softmax::default()));
    agree!(
        "hybrid",
        1e-8,
        SIGNED,
        Hybrid::angular(Bases::shared(omega()), frequencies(d, 8, &Independent, 6))
    );
}

/// Heads in groups, of masked sequences that are shorter and longer than chunks and segments.
fn sequences_agree<T: Real>(attention: &Attention<T>, map: &Map<f64>, tolerance: f64) {
    let (offsets, l) = ([0, 70, 70, 71, 1130, 1280], 1280);
    let [q, g] = [1, 4].map(|seed| tokens::<T>([1, 4, l, 6], 0.6, seed));
    let [k, v] = [2, 3].map(|seed| tokens::<T>([1, 2, l, 6], 0.6, seed));
    let mask = Array2::from_shape_fn((1, l), |(_, j)| j % 3 != 0 && !(100..240).contains(&j));
    let heads =
        Heads::new(&q, &k, &v).unwrap().with_mask(&mask).unwrap().with_sequences(&offsets, &offsets).unwrap();
    for causal in [false, true] {
        let all = backward(attention, &heads, &g, causal);
        for h in [0, 1] {
            for (sequence, ends) in offsets.windows(2).enumerate() {
                let rows =
                    |x: &Array4<T>, h: usize| x.slice(s![0, h, ends[0]..ends[1], ..]).mapv(|v| v.widen());
                let pair = |i: usize, j: usize| by_features(mask[[0, ends[0] + j]] && (!causal || j <= i));
                let (key, value) = (rows(&k, h), rows(&v, h));
                let [mut of_keys, mut of_values] = [&key, &value].map(|x| Array2::<f64>::zeros(x.dim()));
                for query in [2 * h, 2 * h + 1] {
                    let (x, up) = (rows(&q, query), rows(&g, query));
                    let [of_query, keys, values] =
                        naive(map, [x.view(), key.view(), value.view(), up.view()], true, pair);
                    of_keys += &keys;
                    of_values += &values;
                    let error = largest(&(rows(&all.queries, query) - &of_query));
                    assert!(error <= tolerance, "sequence {sequence}, query {query}: {error:e}");
                }
                let error = [rows(&all.keys, h) - of_keys, rows(&all.values, h) - of_values];
                let error = error.iter().map(largest).fold(0.0, f64::max);
                assert!(error <= tolerance, "sequence {sequence}, head {h}: {error:e}, causal {causal}");
            }
        }
    }
}

#[test]
fn masked_sequences_of_groups_are_the_quadratic_loop() {
    let map = positive::<f64>(6, 16);
    sequences_agree(&Attention::new(map.clone()).unwrap(), &map, 1e-11);
    sequences_agree(&Attention::new(positive::<f32>(6, 16)).unwrap(), &map, 1e-4);
}

/// Central differences of Σ g · out in four random directions of length 1, in which all entries have a part, and the gradient
/// that they should be those of.
#[track_caller]
pub fn check_differences(
    name: &str,
    x: &Array4<f64>,
    gradient: &Array4<f64>,
    loss: impl Fn(&Array4<f64>) -> f64,
) {
    let size = gradient.iter().fold(0.0, |a: f64, v| a.max(v.abs()));
    let mut rng = rng(5);
    for number in 0..4 {
        let normal: Array4<f64> = x.mapv(|_| StandardNormal.sample(&mut rng));
        let direction = &normal / normal.pow2().sum().sqrt();
        let h = 1e-5;
        let moved = |by: f64| loss(&(x + &direction * by));
        let slope = (moved(h) - moved(-h)) / (2.0 * h);
        let expected = (gradient * &direction).sum();
        assert!((slope - expected).abs() <= 1e-7 * size, "{name}, direction {number}: {expected} is {slope}");
    }
}

#[test]
fn gradients_are_slopes_of_the_forward_pass() {
    let (q, g) = (tokens::<f64>([1, 2, 6, 3], 0.8, 1), tokens::<f64>([1, 2, 6, 2], 1.0, 4));
    let mask = Array2::from_shape_fn((1, 6), |(_, j)| j != 0 && j != 3);
    for case in 0..64 {
        let [causal, masked, grouped, ragged, normalised, cosine] =
            std::array::from_fn(|bit| case >> bit & 1 == 1);
        let of_keys = if grouped { 1 } else { 2 };
        let (k, v) = (tokens::<f64>([1, of_keys, 6, 3], 0.8, 2), tokens::<f64>([1, of_keys, 6, 2], 1.0, 3));
        let attention = Attention::new(positive::<f64>(3, 8)).unwrap();
        let attention = if cosine { attention.with_cosine(0.7) } else { attention.with_scale(0.9) }.unwrap();
        let attention = oracle::normalised(attention, normalised);
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
                "{what}; causal {causal}, masked {masked}, grouped {grouped}, ragged {ragged}, normalised {normalised}, cosine {cosine}"
            )
        };
        check_differences(&name("queries"), &q, &gradients.queries, |q| run([q, &k, &v]).0);
        check_differences(&name("keys"), &k, &gradients.keys, |k| run([&q, k, &v]).0);
        check_differences(&name("values"), &v, &gradients.values, |v| run([&q, &k, v]).0);
    }
}

/// The gradients with positive features from logarithms alone, at any norm: the shares pᵢⱼ φ_f ψ_f / K̂ that a feature has in a weight
/// times ω_f − x, the slope of its logarithm.
fn naive_by_logarithms(omega: &Array2<f64>, [q, k, v, g]: [&Array2<f64>; 4], causal: bool) -> Three {
    let factor = (q.ncols() as f64).powf(-0.25);
    let (x, y) = (q * factor, k * factor);
    let logs = |x: &Array2<f64>| {
        let norms: Array1<f64> = x.rows().into_iter().map(|x| 0.5 * x.dot(&x)).collect();
        x.dot(&omega.t()) - norms.insert_axis(Axis(1))
    };
    let (of_x, of_y) = (logs(&x), logs(&y));
    let [mut dq, mut dk, mut dv] = [q, k, v].map(|x| Array2::<f64>::zeros(x.dim()));
    for i in 0..q.nrows() {
        let seen = if causal { i + 1 } else { k.nrows() };
        let mut shares = Array2::from_shape_fn((seen, omega.nrows()), |(j, f)| of_x[[i, f]] + of_y[[j, f]]);
        let top = shares.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        shares.mapv_inplace(|log| (log - top).exp());
        shares /= shares.sum();
        let weights = shares.sum_axis(Axis(1));
        let out = weights.dot(&v.slice(s![..seen, ..]));
        for j in 0..seen {
            dv.row_mut(j).scaled_add(weights[j], &g.row(i));
            let slope = factor * g.row(i).dot(&(&v.row(j) - &out));
            for (f, share) in shares.row(j).iter().enumerate() {
                dq.row_mut(i).scaled_add(slope * share, &(&omega.row(f) - &x.row(i)));
                dk.row_mut(j).scaled_add(slope * share, &(&omega.row(f) - &y.row(j)));
            }
        }
    }
    [dq, dk, dv]
}

fn large_norms<T: Real>([l, m]: [usize; 2], size: f64, tolerance: f64) {
    let d = 8;
    let omega = frequencies(d, m, &Orthogonal, 7).rows().into_owned();
    let attention = Attention::new(positive::<T>(d, m)).unwrap();
    let [q, k] = [1, 2].map(|seed| tokens::<T>([1, 1, l, d], size, seed));
    let [v, g] = [3, 4].map(|seed| tokens::<T>([1, 1, l, 3], 1.0, seed));
    let wide = [&q, &k, &v, &g].map(widened);
    for causal in [false, true] {
        let got = of_head(&backward(&attention, &Heads::new(&q, &k, &v).unwrap(), &g, causal), 0, 0);
        let expected = naive_by_logarithms(&omega, wide.each_ref(), causal);
        assert_near(
            &format!("{l} tokens, {m} features, size {size}, causal {causal}"),
            &got,
            &expected,
            tolerance,
        );
    }
}

/// Norms of 5, 50 and 1,400: products in `T`, logarithms, and far beyond what exponentials hold.
#[test]
fn norms_may_be_large() {
    large_norms::<f64>([150, 32], 1.8, 1e-11);
    large_norms::<f64>([150, 32], 18.0, 1e-9);
    large_norms::<f64>([150, 32], 500.0, 1e-7);
    large_norms::<f32>([150, 32], 1.8, 1e-4);
    large_norms::<f32>([150, 32], 18.0, 3e-3);
    // Rows by logarithms go 64 features at a time.
    large_norms::<f64>([80, 130], 18.0, 1e-9);
    large_norms::<f32>([80, 130], 18.0, 3e-3);
}

/// The sums of two segments, of which the second has much larger keys, and queries of all kinds: most of a chunk in `T`, the rest not.
pub fn uneven<T: Real>(l: usize, h: usize, seed: usize) -> Array4<T> {
    let mut x = tokens::<T>([1, h, l, 6], 0.7, seed);
    for i in (0..l).filter(|i| i % 97 == 40 || (1100..1180).contains(i)) {
        x.slice_mut(s![.., .., i, ..]).mapv_inplace(|v| v * T::narrow(12.0));
    }
    x
}

pub fn pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

fn same_on_any_threads<T: Real>(map: Map<T>) {
    let (l, attention) = (2300, Attention::new(map).unwrap());
    let [k, v] = [2, 3].map(|seed| uneven::<T>(l, 1, seed));
    let mask = Array2::from_shape_fn((1, l), |(_, j)| j % 5 != 1 && !(100..300).contains(&j));
    for queries in [1, 2] {
        let [q, g] = [1, 4].map(|seed| uneven::<T>(l, queries, seed));
        let run = |threads| {
            let heads = Heads::new(&q, &k, &v).unwrap().with_mask(&mask).unwrap();
            pool(threads).install(|| [false, true].map(|causal| backward(&attention, &heads, &g, causal)))
        };
        let one = run(1);
        assert!(one.iter().all(|one| one.keys.iter().all(|v| v.is_finite())));
        [2, 3, 5].into_iter().for_each(|threads| assert!(run(threads) == one, "{threads} threads"));
    }
}

#[test]
fn threads_change_no_bit() {
    same_on_any_threads(positive::<f32>(6, 16));
    same_on_any_threads(positive::<f64>(6, 16));
    same_on_any_threads::<f32>(
        Nonlinear::new(Activation::Relu).build(frequencies(6, 16, &Independent, 1), 1.0).unwrap(),
    );
}

fn bits<T: Real>(x: &Array4<T>, rows: std::ops::Range<usize>) -> Vec<u64> {
    x.slice(s![.., .., rows, ..]).iter().map(|v| v.widen().to_bits()).collect()
}

/// A query's causal gradient knows nothing of later tokens, and those of a key and its value know nothing of earlier queries: with two
/// heads of queries for one of keys, some of which are masked, before and after some places.
pub fn sees_nothing_else<T: Real>(places: &[usize], of: impl Fn(&Heads<'_, T>, &Array4<T>) -> Gradients<T>) {
    let l = places[places.len() - 1] + 70;
    let [q, g] = [1, 4].map(|seed| uneven::<T>(l, 2, seed));
    let [k, v] = [2, 3].map(|seed| uneven::<T>(l, 1, seed));
    let mask = Array2::from_shape_fn((1, l), |(_, j)| j % 5 != 1);
    let of = |[q, k, v, g]: [&Array4<T>; 4]| of(&Heads::new(q, k, v).unwrap().with_mask(&mask).unwrap(), g);
    let whole = of([&q, &k, &v, &g]);
    for &at in places {
        for odd in [T::narrow(30.0), T::nan(), T::infinity(), T::max_value()] {
            let changed = |x: &Array4<T>, rows| {
                let mut x = x.clone();
                x.slice_mut(s![.., .., rows, ..]).mapv_inplace(|v| odd * v);
                x
            };
            let later = [&q, &k, &v, &g].map(|x| changed(x, at..l));
            let got = of(later.each_ref());
            assert_eq!(
                bits(&got.queries, 0..at),
                bits(&whole.queries, 0..at),
                "queries before {at}, {odd:?}"
            );
            let (early_q, early_g) = (changed(&q, 0..at), changed(&g, 0..at));
            let got = of([&early_q, &k, &v, &early_g]);
            assert_eq!(bits(&got.keys, at..l), bits(&whole.keys, at..l), "keys from {at}, {odd:?}");
            assert_eq!(bits(&got.values, at..l), bits(&whole.values, at..l), "values from {at}, {odd:?}");
        }
    }
}

#[test]
fn nothing_comes_from_the_future() {
    fn check<T: Real>() {
        let omega = || frequencies(6, 16, &Orthogonal, 3);
        let of = |map: Map<T>| Attention::signed(vec![map]).unwrap();
        let positive = of(positive(6, 16));
        // Over a segment.
        sees_nothing_else(&[1, 63, 64, 100, 1000, 1024, 1130], |heads, g| {
            backward(&positive, heads, g, true)
        });
        for attention in [
            positive.clone().with_cosine(0.7).unwrap(),
            positive.without_normalisers(),
            of(Hyperbolic.softmax(omega()).unwrap()),
            of(Trigonometric.softmax(omega()).unwrap()),
            of(Nonlinear::new(Activation::Relu).build(omega(), 1.0).unwrap()),
            of(EluPlusOne.build(6, 1.0).unwrap()),
            of(Hybrid::angular(Bases::shared(omega()), frequencies(6, 4, &Independent, 6)).unwrap()),
        ] {
            sees_nothing_else(&[64, 100], |heads, g| backward(&attention, heads, g, true));
        }
    }
    check::<f32>();
    check::<f64>();
}

#[test]
fn what_has_no_part_has_no_gradient() {
    let [q, k, v, g] = [1, 2, 3, 4].map(|seed| tokens::<f64>([1, 1, 70, 4], 0.8, seed));
    let attention = Attention::new(positive::<f64>(4, 12)).unwrap();
    let none = Array2::from_elem((1, 70), false);
    // Even NaN where nothing is seen.
    let nan = Array4::from_elem(k.dim(), f64::NAN);
    for causal in [false, true] {
        let heads = Heads::new(&q, &nan, &nan).unwrap().with_mask(&none).unwrap();
        let Gradients { queries, keys, values, .. } = backward(&attention, &heads, &g, causal);
        assert!([queries, keys, values].iter().all(|x| x.iter().all(|v| *v == 0.0)), "causal {causal}");
    }
    // Without the first keys, which are NaN, the first queries see nothing.
    let rest = Array2::from_shape_fn((1, 70), |(_, j)| j >= 10);
    let mut odd = k.clone();
    odd.slice_mut(s![.., .., ..10, ..]).fill(f64::NAN);
    let got = backward(&attention, &Heads::new(&q, &odd, &v).unwrap().with_mask(&rest).unwrap(), &g, true);
    assert!(got.queries.slice(s![0, 0, ..10, ..]).iter().all(|v| *v == 0.0));
    assert!(got.keys.slice(s![0, 0, ..10, ..]).iter().all(|v| *v == 0.0));
    let parts = [&q, &k, &v, &g].map(|x| x.slice(s![.., .., 10.., ..]).to_owned());
    let of_rest =
        backward(&attention, &Heads::new(&parts[0], &parts[1], &parts[2]).unwrap(), &parts[3], true);
    let shifted = of_head(&got, 0, 0).map(|x| x.slice(s![10.., ..]).to_owned());
    assert_near("the rest", &shifted, &of_head(&of_rest, 0, 0), 1e-12);
}

/// ReLU(x): a query of the other sign has the normaliser 0, and no gradient, nor has a key from it.
#[test]
fn queries_without_a_positive_normaliser_have_none() {
    let omega = Frequencies::from_rows(array![[1.0], [2.0]]).unwrap();
    let attention =
        Attention::new(Nonlinear::new(Activation::Relu).build::<f64>(omega, 1.0).unwrap()).unwrap();
    let one = |x: [f64; 3]| Array4::from_shape_vec((1, 1, 3, 1), x.to_vec()).unwrap();
    let (q, k, v, g) =
        (one([1.0, -1.0, 2.0]), one([0.5, 3.0, -2.0]), one([1.0, 2.0, 5.0]), one([1.0, 1.0, 1.0]));
    let heads = Heads::new(&q, &k, &v).unwrap();
    let all = attention.bidirectional_backward(&heads, &g).unwrap();
    assert_eq!(attention.bidirectional(&heads).unwrap().non_positive, [[0, 0, 1]]);
    // Weights kⱼ₊/Σ k₊ do not depend on q: for two queries ∂/∂v = 2 k₊/3.5 and ∂/∂k₁ = 2 (1 − o)/3.5 with o = 6.5/3.5.
    let expected = [
        [2.0 * 0.5 / 3.5, 2.0 * 3.0 / 3.5, 0.0],
        [2.0 * (1.0 - 6.5 / 3.5) / 3.5, 2.0 * (2.0 - 6.5 / 3.5) / 3.5, 0.0],
    ];
    for (j, (of_value, of_key)) in expected[0].iter().zip(&expected[1]).enumerate() {
        assert!(
            (all.values[[0, 0, j, 0]] - of_value).abs() < 1e-14
                && (all.keys[[0, 0, j, 0]] - of_key).abs() < 1e-14
        );
        assert!(all.queries[[0, 0, j, 0]].abs() < 1e-14);
    }
}

/// NaN shows in the gradients in which it has a part: of a query in its own and in those of the keys that it sees; of a key, in those of
/// the queries that see it, and of all keys that these see.
#[test]
fn nan_stays_where_it_has_a_part() {
    fn rows<T: Real>(x: &Array4<T>) -> Vec<usize> {
        let rows = x.index_axis(Axis(0), 0);
        (0..x.dim().2).filter(|i| rows.slice(s![0, *i, ..]).iter().any(|v| v.is_nan())).collect()
    }
    fn check<T: Real>() {
        let [q, k, v, g] = [1, 2, 3, 4].map(|seed| tokens::<T>([1, 1, 100, 4], 0.8, seed));
        let attention = Attention::new(positive::<T>(4, 12)).unwrap();
        let with = |x: &Array4<T>| {
            let mut x = x.clone();
            x[[0, 0, 70, 1]] = T::nan();
            x
        };
        let of = |q: &Array4<T>, k: &Array4<T>, v: &Array4<T>| {
            let all = backward(&attention, &Heads::new(q, k, v).unwrap(), &g, true);
            [&all.queries, &all.keys, &all.values].map(rows)
        };
        let (upto, after): (Vec<usize>, Vec<usize>) = ((0..71).collect(), (70..100).collect());
        let all: Vec<usize> = (0..100).collect();
        assert_eq!(of(&with(&q), &k, &v), [vec![70], upto.clone(), upto]);
        assert_eq!(of(&q, &with(&k), &v), [after.clone(), all.clone(), all.clone()]);
        // Gradients with respect to values are the weights, whatever the values.
        assert_eq!(of(&q, &k, &with(&v)), [after, all, vec![]]);
    }
    check::<f32>();
    check::<f64>();
}

/// NaN in a query or a key has a part in its own sequence of its own head alone, and in the other gradients of queries in none but its own.
#[test]
fn nan_stays_in_its_sequence_and_head() {
    fn places<T: Real>(x: &Array4<T>) -> Vec<[usize; 3]> {
        let rows = ndarray::indices((x.dim().0, x.dim().1, x.dim().2)).into_iter();
        rows.filter(|(b, h, i)| x.slice(s![*b, *h, *i, ..]).iter().any(|v| v.is_nan()))
            .map(|(b, h, i)| [b, h, i])
            .collect()
    }
    fn check<T: Real>() {
        let [q, g] = [1, 4].map(|seed| tokens::<T>([2, 4, 150, 4], 0.8, seed));
        let [k, v] = [2, 3].map(|seed| tokens::<T>([2, 2, 150, 4], 0.8, seed));
        let (attention, offsets) = (Attention::new(positive::<T>(4, 12)).unwrap(), [0, 20, 120, 150]);
        let with = |x: &Array4<T>, [b, h, i]: [usize; 3]| {
            let mut x = x.clone();
            x[[b, h, i, 1]] = T::nan();
            x
        };
        let of = |q: &Array4<T>, k: &Array4<T>, causal: bool| {
            let heads = Heads::new(q, k, &v).unwrap().with_sequences(&offsets, &offsets).unwrap();
            let all = backward(&attention, &heads, &g, causal);
            [&all.queries, &all.keys, &all.values].map(places)
        };
        let rows = |h: usize, rows: std::ops::Range<usize>| rows.map(|i| [1, h, i]).collect::<Vec<_>>();
        for causal in [false, true] {
            let seen = rows(1, 20..if causal { 91 } else { 120 });
            let found = of(&with(&q, [1, 2, 90]), &k, causal);
            assert_eq!(found, [vec![[1, 2, 90]], seen.clone(), seen], "causal {causal}");
            let asking = if causal { 90 } else { 20 };
            let asking = [rows(2, asking..120), rows(3, asking..120)].concat();
            let found = of(&q, &with(&k, [1, 1, 90]), causal);
            assert_eq!(found, [asking, rows(1, 20..120), rows(1, 20..120)], "causal {causal}");
        }
    }
    check::<f32>();
    check::<f64>();
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
    for causal in [false, true] {
        tend_to_exact("positive", causal, |omega| Positive.softmax(omega).unwrap());
        tend_to_exact("hyperbolic", causal, |omega| Hyperbolic.softmax(omega).unwrap());
        tend_to_exact("trigonometric", causal, |omega| Trigonometric.softmax(omega).unwrap());
    }
}

/// Each head of keys has its own map, and a batch has many of them.
#[test]
fn heads_have_their_own_maps() {
    let maps = [positive::<f64>(4, 12), Hyperbolic.softmax(frequencies(4, 6, &Independent, 2)).unwrap()];
    let [q, g] = [1, 4].map(|seed| tokens::<f64>([2, 4, 20, 4], 0.8, seed));
    let [k, v] = [2, 3].map(|seed| tokens::<f64>([2, 2, 20, 4], 0.8, seed));
    let attention = Attention::per_head(maps.to_vec()).unwrap();
    let all = backward(&attention, &Heads::new(&q, &k, &v).unwrap(), &g, true);
    for (b, h) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let mut expected: [Array2<f64>; 2] = [Array2::zeros((20, 4)), Array2::zeros((20, 4))];
        for of_group in 0..2 {
            let head = |x: &Array4<f64>, h: usize| x.slice(s![b, h, .., ..]).to_owned();
            let (query, up) = (head(&q, 2 * h + of_group), head(&g, 2 * h + of_group));
            let (key, value) = (head(&k, h), head(&v, h));
            let one = naive(&maps[h], [query.view(), key.view(), value.view(), up.view()], true, |i, j| {
                by_features(j <= i)
            });
            let own = all.queries.slice(s![b, 2 * h + of_group, .., ..]);
            assert!(largest(&(&own - &one[0])) < 1e-12);
            expected[0] += &one[1];
            expected[1] += &one[2];
        }
        assert!(largest(&(&all.keys.slice(s![b, h, .., ..]) - &expected[0])) < 1e-12);
        assert!(largest(&(&all.values.slice(s![b, h, .., ..]) - &expected[1])) < 1e-12);
    }
}

/// Without gradients.
#[derive(Debug)]
struct Ones;

impl FeatureMap<f64> for Ones {
    fn facts(&self) -> Facts {
        Facts::new(4, vec![1]).non_negative()
    }

    fn fill(&self, _: Side, _: ArrayView2<'_, f64>, _: Form, tile: &mut Tile<'_, f64>) {
        for i in 0..tile.rows() {
            let row = tile.row(i);
            row.values.fill(1.0);
            row.log_scales[0] = 0.0;
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let x = tokens::<f64>([1, 1, 10, 4], 0.8, 1);
    let longer = tokens::<f64>([1, 1, 11, 4], 0.8, 1);
    let attention = Attention::new(positive::<f64>(4, 12)).unwrap();
    let (heads, uneven) = (Heads::new(&x, &x, &x).unwrap(), Heads::new(&x, &longer, &longer).unwrap());
    assert!(matches!(attention.bidirectional_backward(&heads, &longer), Err(Error::Shape { .. })));
    assert!(matches!(attention.causal_backward(&heads, &longer), Err(Error::Shape { .. })));
    assert!(matches!(attention.causal_backward(&uneven, &x), Err(Error::Shape { .. })));
    assert!(attention.bidirectional_backward(&uneven, &x).is_ok());
    let other = Attention::new(positive::<f64>(5, 12)).unwrap();
    assert!(matches!(other.bidirectional_backward(&heads, &x), Err(Error::Shape { .. })));
    for refused in [
        Attention::new(Map::of_feature_map(Ones).unwrap()).unwrap(),
        attention.clone().with_heaviest_keys_exact(1).unwrap(),
        attention.clone().with_biased_epsilon(1e-3).unwrap(),
    ] {
        assert!(matches!(refused.causal_backward(&heads, &x), Err(Error::Unsupported { .. })));
    }
}

#[cfg(feature = "half")]
#[test]
fn half_inputs_have_gradients_in_single() {
    fn check<E: TokenElement<f32>>(narrow: fn(f32) -> E, wide: fn(E) -> f32) {
        let plain = Attention::new(positive::<f32>(4, 12)).unwrap();
        let [q, k, v, g] = [1, 2, 3, 4].map(|seed| tokens::<f32>([1, 1, 100, 4], 0.8, seed));
        let half = [&q, &k, &v].map(|x| x.mapv(narrow));
        let single = half.each_ref().map(|x| x.mapv(wide));
        let near = plain.clone().with_window(9, 0).unwrap().with_keys_exact(&[0, 40]).unwrap();
        let ([q, k, v], [x, y, z]) = (&half, &single);
        let (half, single) = (Heads::new(q, k, v).unwrap(), Heads::new(x, y, z).unwrap());
        for causal in [false, true] {
            for attention in [plain.clone(), plain.clone().with_cosine(0.5).unwrap(), near.clone()] {
                let [half, single] =
                    [backward(&attention, &half, &g, causal), backward(&attention, &single, &g, causal)];
                assert!(half == single, "causal {causal}");
            }
            for attention in [ExactAttention::new(), ExactAttention::new().with_cosine(0.5).unwrap()] {
                let of_half = exact_backward(&attention, &half, &g, causal);
                assert!(of_half == exact_backward(&attention, &single, &g, causal), "exact, causal {causal}");
            }
        }
    }
    check(half::bf16::from_f32, f32::from);
    check(half::f16::from_f32, f32::from);
}

/// Numbers that leave the range on the way to a gradient that does not.
#[test]
fn what_is_zero_stays_so_beside_what_overflows() {
    let one = |x: &[f32]| Array4::from_shape_vec((1, 1, 1, x.len()), x.to_vec()).unwrap();
    // ReLU(x): the first feature of the query is 0, and its cotangent k₁ v beyond the range.
    let omega = Frequencies::from_rows(array![[1.0, 0.0], [0.0, 1.0]]).unwrap();
    let relu = Nonlinear::new(Activation::Relu).build::<f32>(omega, 1.0).unwrap();
    let attention = Attention::new(relu).unwrap().without_normalisers().with_scale(1.0).unwrap();
    for (first, v) in [(1e10, 1e30), (1e25, 1e15)] {
        let (q, k, v, g) = (one(&[-1.0, 1.0]), one(&[first, 1.0]), one(&[v]), one(&[1.0]));
        let heads = Heads::new(&q, &k, &v).unwrap();
        for causal in [false, true] {
            let of_queries = backward(&attention, &heads, &g, causal).queries;
            // Of two features, each with the factor 1/2 in the kernel.
            let expected = 0.5 * v[[0, 0, 0, 0]];
            assert!(
                of_queries[[0, 0, 0, 0]] == 0.0 && (of_queries[[0, 0, 0, 1]] / expected - 1.0).abs() < 1e-5
            );
        }
    }
    // Values of 0 beside a kernel beyond the range.
    let omega = Frequencies::from_rows(array![[200.0]]).unwrap();
    let map = Positive.build::<f32>(omega, Softmax::default()).unwrap();
    let attention = Attention::new(map).unwrap().without_normalisers();
    let (x, v) = (one(&[60.0]), one(&[0.0]));
    let heads = Heads::new(&x, &x, &v).unwrap();
    for (causal, g) in [(false, 1.0), (false, -1.0), (true, 1.0), (true, -1.0)] {
        let all = backward(&attention, &heads, &one(&[g]), causal);
        // Also in its sign.
        let zeros = [&all.queries, &all.keys].map(|x| x[[0, 0, 0, 0]].to_bits());
        assert_eq!(zeros, [0, 0], "{all:?}");
        assert_eq!(all.values[[0, 0, 0, 0]], g * f32::INFINITY);
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
            let attention = oracle::normalised(Attention::signed(vec![map]).unwrap(), normalised);
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

/// Gradients that are 0 have no sign: it could come from a later token.
#[test]
fn zeros_have_no_sign() {
    fn check<T: Real>() {
        let [q, k, v] = [1, 2, 3].map(|seed| tokens::<T>([1, 1, 70, 4], 0.8, seed));
        let heads = Heads::new(&q, &k, &v).unwrap();
        let signed: Map<T> = Trigonometric.softmax(frequencies(4, 30, &Orthogonal, 7)).unwrap();
        for attention in [Attention::new(positive::<T>(4, 12)), Attention::signed(vec![signed])] {
            let near = attention.clone().unwrap().with_window(3, 2).unwrap();
            for attention in [attention.unwrap(), near] {
                for (causal, sign) in [(false, 1.0), (false, -1.0), (true, 1.0), (true, -1.0)] {
                    let none = Array4::from_elem(v.dim(), T::narrow(sign * 0.0));
                    let Gradients { queries, keys, values, .. } = backward(&attention, &heads, &none, causal);
                    let all = queries.iter().chain(&keys).chain(&values);
                    assert!(
                        all.into_iter().all(|v| *v == T::zero() && v.is_sign_positive()),
                        "{causal}, {sign}"
                    );
                }
            }
        }
    }
    check::<f32>();
    check::<f64>();
}
