//! Gradients of linear attention: against differences of the forward pass, against the quadratic loop, and where precision is short.

use crate::common::frequencies;
use ndarray::{Array1, Array2, Array4, ArrayView2, Axis, s};
use random_features::apply::attention::{Attention, Gradients, Heads};
use random_features::compose::{Bases, Hybrid};
use random_features::frequency::{Independent, Orthogonal, draw_poisson};
use random_features::kernel::Activation;
use random_features::map::{Facts, FeatureMap, Form, Tile};
use random_features::{
    EluPlusOne, Error, Gerf, Hyperbolic, Map, Nonlinear, Poisson, Positive, Real, Side, Trigonometric, rng,
};

/// Tokens that look random, of mean squared norm d · size², [batch, heads, length, d].
fn tokens<T: Real>(shape: [usize; 4], size: f64, seed: usize) -> Array4<T> {
    Array4::from_shape_fn(shape, |(b, h, i, k)| {
        let n = (b * 7919 + h * 104_729 + i * 1_299_709 + k * 15_485_863 + seed * 32_452_843) as u64;
        let u = (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 11) as f64 / (1u64 << 53) as f64;
        T::narrow(size * 12f64.sqrt() * (u - 0.5))
    })
}

fn positive<T: Real>(d: usize, m: usize) -> Map<T> {
    Positive.softmax(frequencies(d, m, &Orthogonal, 7)).unwrap()
}

fn backward<T: Real>(attention: &Attention<T>, heads: &Heads<'_, T>, g: &Array4<T>, causal: bool) -> Gradients<T> {
    if causal { attention.causal_backward(heads, g) } else { attention.bidirectional_backward(heads, g) }.unwrap()
}

/// Gradients of one head.
type Three = [Array2<f64>; 3];

fn of_head<T: Real>(all: &Gradients<T>, b: usize, h: usize) -> Three {
    [&all.queries, &all.keys, &all.values].map(|x| x.slice(s![b, h, .., ..]).mapv(|v| v.widen()))
}

fn largest(x: &Array2<f64>) -> f64 {
    x.iter().fold(0.0, |a: f64, v| a.max(v.abs()))
}

/// Each of the three within a tolerance relative to its largest entry.
#[track_caller]
fn assert_near(name: &str, got: &Three, expected: &Three, tolerance: f64) {
    for ((got, expected), what) in got.iter().zip(expected).zip(["queries", "keys", "values"]) {
        let (error, size) = (largest(&(got - expected)), largest(expected));
        let finite = got.iter().all(|v| v.is_finite());
        assert!(finite && error <= tolerance * size, "{name}, {what}: {error:e} of {size:e}");
    }
}

/// The gradients of Σ g · out with respect to features, by their definition, and through them with respect to tokens.
fn naive(
    map: &Map<f64>,
    [q, k, v, g]: [ArrayView2<'_, f64>; 4],
    normalised: bool,
    sees: impl Fn(usize, usize) -> bool,
) -> Three {
    let factor = (q.ncols() as f64).powf(-0.25);
    let (x, y) = (&q * factor, &k * factor);
    let features = |side, x: &Array2<f64>| {
        let features = map.features(side, x).unwrap();
        let blocks = map.blocks();
        let columns: Vec<usize> = (0..blocks.len()).flat_map(|b| vec![b; blocks[b]]).collect();
        let scales = features.log_scales().to_owned();
        let scales = Array2::from_shape_fn(features.values().dim(), |(i, f)| scales[[i, columns[f]]].exp());
        // What a scale of −∞ stands before may be anything.
        let clean = |v: &f64, scale: &f64| if *scale == 0.0 { 0.0 } else { v * scale };
        (ndarray::Zip::from(features.values()).and(&scales).map_collect(clean), scales)
    };
    let ((phi, at_x), (psi, at_y)) = (features(Side::X, &x), features(Side::Y, &y));
    let kernel = Array2::from_shape_fn((q.nrows(), k.nrows()), |(i, j)| {
        if sees(i, j) { phi.row(i).dot(&psi.row(j)) } else { 0.0 }
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
        if sees(i, j) { inverse(totals[i]) * (g.row(i).dot(&v.row(j)) - own) } else { 0.0 }
    });
    let pull = |side, x: &Array2<f64>, of_features: Array2<f64>, scales: Array2<f64>| {
        map.pull_back(side, x, &(of_features * scales)).unwrap() * factor
    };
    [
        pull(Side::X, &x, of_kernel.dot(&psi), at_x),
        pull(Side::Y, &y, of_kernel.t().dot(&phi), at_y),
        weights.t().dot(&g),
    ]
}

fn widened<T: Real>(x: &Array4<T>) -> Array2<f64> {
    x.slice(s![0, 0, .., ..]).mapv(|v| v.widen())
}

/// Single heads, against the loop in `f64`.
fn agrees<T: Real>(name: &str, attention: &Attention<T>, map: &Map<f64>, [n, l]: [usize; 2], tolerance: f64) {
    let d = map.input_dim();
    let (q, k) = (tokens::<T>([1, 1, n, d], 0.6, 1), tokens::<T>([1, 1, l, d], 0.6, 2));
    let (v, g) = (tokens::<T>([1, 1, l, 5], 1.0, 3), tokens::<T>([1, 1, n, 5], 1.0, 4));
    let wide = [&q, &k, &v, &g].map(widened);
    let heads = Heads::new(&q, &k, &v).unwrap();
    for normalised in [true, false] {
        let attention = attention.clone().normalised(normalised);
        for causal in [false, true].into_iter().filter(|causal| !causal || n == l) {
            let got = of_head(&backward(&attention, &heads, &g, causal), 0, 0);
            let expected = naive(map, wide.each_ref().map(|x| x.view()), normalised, |i, j| !causal || j <= i);
            let name = format!("{name}, {n} and {l} tokens, normalised {normalised}, causal {causal}");
            assert_near(&name, &got, &expected, tolerance);
        }
    }
}

#[test]
fn chunks_and_segments_are_the_quadratic_loop() {
    let (single, double) = (positive::<f32>(6, 24), positive::<f64>(6, 24));
    for lengths in [[1, 1], [63, 63], [64, 64], [65, 65], [1027, 1027], [3, 100], [130, 7], [0, 5], [5, 0]] {
        agrees("f64", &Attention::new(double.clone()).unwrap(), &double, lengths, 1e-11);
        agrees("f32", &Attention::new(single.clone()).unwrap(), &double, lengths, 1e-4);
    }
}

macro_rules! agree {
    ($name:literal, $tolerance:expr, $make:expr) => {{
        let (single, double): (Map<f32>, Map<f64>) = ($make.unwrap(), $make.unwrap());
        let attention = Attention::signed(vec![double.clone()]).unwrap();
        agrees($name, &attention, &double, [80, 80], $tolerance);
        let attention = Attention::signed(vec![single]).unwrap();
        agrees($name, &attention, &double, [80, 80], 4e8 * $tolerance);
    }};
}

#[test]
fn every_map_is_the_quadratic_loop() {
    let (d, m) = (6, 40);
    let omega = || frequencies(d, m, &Orthogonal, 3);
    let counts = || draw_poisson(d, m, 1.5, &mut rng(4)).unwrap();
    agree!("positive", 1e-12, Positive.softmax(omega()));
    agree!("hyperbolic", 1e-12, Hyperbolic.softmax(omega()));
    agree!("OPRF", 1e-12, Gerf::optimal(d, 2.0).unwrap().softmax(omega()));
    agree!("ELU + 1", 1e-12, EluPlusOne.map(d, 1.0));
    agree!("ReLU", 1e-12, Nonlinear::new(Activation::Relu).with_offset(1e-3).unwrap().map(omega(), 1.0));
    agree!("exp", 1e-12, Nonlinear::new(Activation::Exp).map(omega(), 1.0));
    agree!("Poisson", 1e-8, Poisson::default().softmax(counts()));
    agree!("trigonometric", 1e-8, Trigonometric.softmax(omega()));
    agree!("hybrid", 1e-8, Hybrid::angular(Bases::shared(omega()), frequencies(d, 8, &Independent, 6)));
}

/// Central differences of Σ g · out with respect to each entry of an array, and the gradient that they should be.
#[track_caller]
fn check_differences(
    name: &str,
    x: &Array4<f64>,
    gradient: &Array4<f64>,
    loss: impl Fn(&Array4<f64>) -> f64,
) {
    let size = gradient.iter().fold(0.0, |a: f64, v| a.max(v.abs()));
    for at in ndarray::indices(x.dim()) {
        let h = 1e-5;
        let moved = |by: f64| {
            let mut x = x.clone();
            x[at] += by;
            loss(&x)
        };
        let slope = (moved(h) - moved(-h)) / (2.0 * h);
        assert!((slope - gradient[at]).abs() <= 1e-7 * size, "{name} {at:?}: {} is {slope}", gradient[at]);
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
        let attention = if cosine { attention.cosine(0.7) } else { attention.scale(0.9) }.unwrap();
        let attention = attention.normalised(normalised);
        let offsets = if causal { [[0, 2, 2, 6], [0, 2, 2, 6]] } else { [[0, 2, 2, 6], [0, 0, 2, 6]] };
        let run = |[q, k, v]: [&Array4<f64>; 3]| {
            let heads = Heads::new(q, k, v).unwrap();
            let heads = if masked { heads.mask(&mask).unwrap() } else { heads };
            let heads = if ragged { heads.sequences(&offsets[0], &offsets[1]).unwrap() } else { heads };
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

fn large_norms<T: Real>(size: f64, tolerance: f64) {
    let (d, l) = (8, 150);
    let omega = frequencies(d, 32, &Orthogonal, 7).rows().into_owned();
    let attention = Attention::new(positive::<T>(d, 32)).unwrap();
    let [q, k] = [1, 2].map(|seed| tokens::<T>([1, 1, l, d], size, seed));
    let [v, g] = [3, 4].map(|seed| tokens::<T>([1, 1, l, 3], 1.0, seed));
    let wide = [&q, &k, &v, &g].map(widened);
    for causal in [false, true] {
        let got = of_head(&backward(&attention, &Heads::new(&q, &k, &v).unwrap(), &g, causal), 0, 0);
        let expected = naive_by_logarithms(&omega, wide.each_ref(), causal);
        assert_near(&format!("size {size}, causal {causal}"), &got, &expected, tolerance);
    }
}

/// Norms of 5, 50 and 1,400: products in `T`, logarithms, and far beyond what exponentials hold.
#[test]
fn norms_may_be_large() {
    large_norms::<f64>(1.8, 1e-11);
    large_norms::<f64>(18.0, 1e-9);
    large_norms::<f64>(500.0, 1e-6);
    large_norms::<f32>(1.8, 1e-4);
    large_norms::<f32>(18.0, 3e-3);
}
