//! Linear attention against the loop over pairs: every map, large norms, long sequences.

use crate::attention::oracle::{by_features, naive};
use crate::attention::{maps, positive, widened};
use crate::common::tokens;
use ndarray::{Array4, s};
use random_features::apply::attention::{Attention, Heads};
use random_features::{Error, Map, Real};

fn agrees<T: Real>(name: &str, map: &Map<T>, double: &Map<f64>, signed: bool) {
    let (q, k, v) =
        (tokens::<T>([2, 2, 150, 6], 0.6, 1), tokens([2, 2, 150, 6], 0.6, 2), tokens([2, 2, 150, 5], 1.0, 3));
    let attention = if signed {
        assert!(matches!(Attention::new(map.clone()), Err(Error::Unsupported { .. })));
        Attention::signed(vec![map.clone()]).unwrap()
    } else {
        Attention::new(map.clone()).unwrap()
    };
    let heads = Heads::new(&q, &k, &v).unwrap();
    let (all, causal) = (attention.bidirectional(&heads).unwrap(), attention.causal(&heads).unwrap());
    assert!(signed || (all.non_positive.is_empty() && causal.non_positive.is_empty()), "{name}");
    for (b, h) in [(0, 0), (1, 1)] {
        let inputs = [&q, &k, &v].map(|x| widened(x, b, h));
        for (out, last) in [(&all.output, false), (&causal.output, true)] {
            let expected = naive(double, inputs.each_ref(), by_features(|i, j| !last || j <= i), true);
            let got = widened(out, b, h);
            // Signed weights cancel: their normalisers may be small.
            let tolerance = T::epsilon().widen() * if signed { 2e4 } else { 500.0 };
            let error = (&got - &expected).iter().fold(0.0f64, |a, e| a.max(e.abs()));
            let size = expected.iter().fold(1.0f64, |a, e| a.max(e.abs()));
            assert!(error <= tolerance * size, "{name}, causal {last}: {error:e} of {size}");
        }
    }
}

#[test]
fn every_map_is_the_quadratic_loop() {
    for (name, single, double, signed) in maps(6, 40) {
        agrees(name, &single, &double, signed);
        agrees(name, &double, &double, signed);
    }
}

/// Norms of 50 in single precision: one scale a row would be 0/0.
#[test]
fn norms_of_fifty_are_the_double_precision_loop() {
    // Rows by logarithms go 64 features at a time.
    [48, 64, 65, 130].into_iter().for_each(norms_of_fifty);
}

fn norms_of_fifty(m: usize) {
    let (single, double) = (positive::<f32>(16, m), positive::<f64>(16, m));
    // Norm 50 after the scale d^{−¼}.
    let size = 50.0 * 16f64.powf(0.25) / 4.0;
    let [q, mut k, v] = [(1, 16), (2, 16), (3, 4)].map(|(seed, d)| tokens::<f32>([1, 1, 130, d], size, seed));
    // Some keys are small, some are 0: their weights vanish beside the others.
    k.slice_mut(s![0, 0, 100..110, ..]).mapv_inplace(|v| v * 0.01);
    k.slice_mut(s![0, 0, 110..115, ..]).fill(0.0);
    let attention = Attention::new(single).unwrap();
    let heads = Heads::new(&q, &k, &v).unwrap();
    let inputs = [&q, &k, &v].map(|x| widened(x, 0, 0));
    for causal in [false, true] {
        let out = if causal { attention.causal(&heads) } else { attention.bidirectional(&heads) }.unwrap();
        let expected = naive(&double, inputs.each_ref(), by_features(|i, j| !causal || j <= i), true);
        let error = (&widened(&out.output, 0, 0) - &expected).iter().fold(0.0f64, |a, e| a.max(e.abs()));
        assert!(error < 1e-3 && out.non_positive.is_empty(), "{error}");
    }
}

/// Queries of norm 50 that point away from all keys, whose features differ too much for products in `f32`.
#[test]
fn queries_against_all_keys() {
    let (d, n) = (16, 40);
    let u = tokens::<f64>([1, 1, 1, d], 1.0, 9);
    let near = |seed, size: f64| {
        let noise = tokens::<f64>([1, 1, n, d], 0.3, seed);
        let entry = |(_, _, i, k)| (25.0 * size * u[[0, 0, 0, k]] + noise[[0, 0, i, k]]) as f32;
        Array4::from_shape_fn((1, 1, n, d), entry)
    };
    let (q, k, v) = (near(1, -1.0), near(2, 1.0), tokens::<f32>([1, 1, n, 3], 1.0, 3));
    let [wq, wk, wv] = [&q, &k, &v].map(|x| x.mapv(f64::from));
    let single = Attention::new(positive::<f32>(d, 48)).unwrap();
    let double = Attention::new(positive::<f64>(d, 48)).unwrap();
    let found = single.bidirectional(&Heads::new(&q, &k, &v).unwrap()).unwrap();
    let expected = double.bidirectional(&Heads::new(&wq, &wk, &wv).unwrap()).unwrap();
    assert!(found.non_positive.is_empty() && expected.non_positive.is_empty());
    assert!(found.output.iter().zip(&expected.output).all(|(f, e)| (f64::from(*f) - e).abs() < 2e-3));
}

/// Sums over tokens are in `f64`: the error at 10⁶ tokens is that at 10³.
#[test]
fn a_million_tokens_are_as_accurate_as_a_thousand() {
    let (single, double) = (positive::<f32>(4, 8), positive::<f64>(4, 8));
    let [q, k, v] = [(1, 4), (2, 4), (3, 2)].map(|(seed, d)| tokens::<f32>([1, 1, 1_000_000, d], 0.7, seed));
    let v = v + 1.0;
    let out = Attention::new(single).unwrap().causal(&Heads::new(&q, &k, &v).unwrap()).unwrap().output;
    let [wide_q, wide_k, wide_v] = [&q, &k, &v].map(|x| x.mapv(f64::from));
    let exact = Attention::new(double)
        .unwrap()
        .causal(&Heads::new(&wide_q, &wide_k, &wide_v).unwrap())
        .unwrap()
        .output;
    let error = |rows: std::ops::Range<usize>| {
        let (out, exact) = (out.slice(s![.., .., rows.clone(), ..]), exact.slice(s![.., .., rows, ..]));
        out.iter().zip(exact).fold(0.0f64, |a, (x, y)| a.max((f64::from(*x) - y).abs()))
    };
    assert!(
        error(0..1000) < 2e-6 && error(999_000..1_000_000) < 2e-6,
        "{} {}",
        error(0..1000),
        error(999_000..1_000_000)
    );
}
