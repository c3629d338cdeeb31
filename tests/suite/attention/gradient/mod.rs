//! Gradients of attention: what its tests share, and their definition as a loop over pairs.

mod ends;
mod future;
mod nan;
mod norms;
mod pairs;
mod parameters;
#[cfg(feature = "half")]
mod precision;
mod quadratic;
mod refusals;
mod slopes;
mod tape;

use crate::attention::oracle::Pair;
use crate::common::tokens;
use ndarray::{Array2, Array4, ArrayView2, Axis, Zip, s};
use rand_distr::{Distribution, StandardNormal};
use random_features::apply::attention::{Attention, ExactAttention, Gradients, Heads, TokenElement};
use random_features::{Map, Real, Side, rng};

fn backward<T: Real, E: TokenElement<T>>(
    attention: &Attention<T>,
    heads: &Heads<'_, E>,
    g: &Array4<T>,
    causal: bool,
) -> Gradients<T> {
    if causal { attention.causal_backward(heads, g) } else { attention.bidirectional_backward(heads, g) }
        .unwrap()
}

fn exact_backward<T: Real, E: TokenElement<T>>(
    attention: &ExactAttention,
    heads: &Heads<'_, E>,
    g: &Array4<T>,
    causal: bool,
) -> Gradients<T> {
    if causal { attention.causal_backward(heads, g) } else { attention.bidirectional_backward(heads, g) }
        .unwrap()
}

/// Gradients of one head.
type Three = [Array2<f64>; 3];

fn of_head<T: Real>(all: &Gradients<T>, b: usize, h: usize) -> Three {
    [&all.queries, &all.keys, &all.values].map(|x| x.slice(s![b, h, .., ..]).mapv(|v| v.widen()))
}

fn largest(x: &Array2<f64>) -> f64 {
    x.iter().fold(0.0, |a: f64, v| a.max(v.abs()))
}

/// Each of the three within a tolerance relative to the largest entry of all.
#[track_caller]
fn assert_near(name: &str, got: &Three, expected: &Three, tolerance: f64) {
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
fn naive(
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
        (Zip::from(features.mantissas()).and(&scales).map_collect(clean), scales)
    };
    let ((phi, at_x), (psi, at_y)) = (features(Side::X, &x), features(Side::Y, &y));
    let pairs = Array2::from_shape_fn((q.nrows(), k.nrows()), |(i, j)| pair(i, j));
    let mut kernel = phi.dot(&psi.t());
    Zip::from(&mut kernel).and(&x.dot(&y.t())).and(&pairs).for_each(|value, logit, pair| match pair {
        Pair::Unseen => *value = 0.0,
        Pair::Features => {}
        Pair::Exact => *value = logit.exp(),
    });
    let inverse = |total: f64| match normalised {
        true if total > 0.0 => 1.0 / total,
        true => 0.0,
        false => 1.0,
    };
    let inverses = kernel.sum_axis(Axis(1)).mapv(inverse).insert_axis(Axis(1));
    let weights = &kernel * &inverses;
    let out = weights.dot(&v);
    let mut of_kernel = g.dot(&v.t());
    if normalised {
        of_kernel -= &(&g * &out).sum_axis(Axis(1)).insert_axis(Axis(1));
    }
    of_kernel *= &inverses;
    // Of the kernel of features, and of the logits of exact pairs.
    let part =
        |own| Zip::from(&of_kernel).and(&pairs).map_collect(|v, pair| if *pair == own { *v } else { 0.0 });
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

/// Central differences of Σ g · out in four random directions of length 1, in which all entries have a part, against the
/// gradient.
#[track_caller]
fn check_differences(
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

/// Tokens of two segments, of which the second has much larger keys. Queries are of all kinds: most of a chunk is read in `T`,
/// the rest is not.
fn uneven<T: Real>(l: usize, h: usize, seed: usize) -> Array4<T> {
    let mut x = tokens::<T>([1, h, l, 6], 0.7, seed);
    for i in (0..l).filter(|i| i % 97 == 40 || (1100..1180).contains(i)) {
        x.slice_mut(s![.., .., i, ..]).mapv_inplace(|v| v * T::narrow(12.0));
    }
    x
}

fn bits<T: Real>(x: &Array4<T>, rows: std::ops::Range<usize>) -> Vec<u64> {
    x.slice(s![.., .., rows, ..]).iter().map(|v| v.widen().to_bits()).collect()
}

/// A query's causal gradient knows nothing of later tokens, and gradients of a key and its value know nothing of earlier
/// queries. Two heads of queries share one of keys, some of which are masked, before and after some places. What is changed becomes
/// large or infinite at one place, NaN or out of range at the next.
fn sees_nothing_else<T: Real>(places: &[usize], of: impl Fn(&Heads<'_, T>, &Array4<T>) -> Gradients<T>) {
    let l = places[places.len() - 1] + 70;
    let [q, g] = [1, 4].map(|seed| uneven::<T>(l, 2, seed));
    let [k, v] = [2, 3].map(|seed| uneven::<T>(l, 1, seed));
    let mask = Array2::from_shape_fn((1, l), |(_, j)| j % 5 != 1);
    let of = |[q, k, v, g]: [&Array4<T>; 4]| of(&Heads::new(q, k, v).unwrap().with_mask(&mask).unwrap(), g);
    let whole = of([&q, &k, &v, &g]);
    let odds = [[T::narrow(30.0), T::infinity()], [T::nan(), T::max_value()]];
    for (&at, odds) in places.iter().zip(odds.iter().cycle()) {
        for &odd in odds {
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
