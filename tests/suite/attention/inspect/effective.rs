//! The effective number of features behind each normaliser, against its definition.

use crate::attention::head;
use crate::attention::oracle::is_near;
use crate::attention::ways;
use crate::attention::ways::diagnosed;
use crate::common::{features, frequencies, tokens};
use ndarray::{Array1, Array2, Array3, Array4, ArrayView2, array, s};
use random_features::apply::attention::{Attended, Attention, ExactAttention, Heads};
use random_features::compose::{Bases, Hybrid};
use random_features::frequency::{Frequencies, Independent, Orthogonal};
use random_features::{Features, Hyperbolic, Map, Positive, Real, Side, Trigonometric};

/// Numbers of size `size`, whatever their place.
fn waves<T: Real>(shape: [usize; 4], size: f64, seed: usize) -> Array4<T> {
    Array4::from_shape_fn(shape, |(b, h, i, k)| {
        T::narrow(size * (1.7 * (seed + 3 * b + 5 * h + 11 * i * (k + 2)) as f64).sin())
    })
}

/// Features as they are, scales included.
fn whole<T: Real>(features: &Features<T>) -> Array2<f64> {
    let mut all = features.mantissas().mapv(|v| v.widen());
    for (mut row, scales) in all.rows_mut().into_iter().zip(features.log_scales().rows()) {
        let mut first = 0;
        for (width, scale) in features.blocks().iter().zip(scales) {
            row.slice_mut(s![first..first + width])
                .mapv_inplace(|v| if v == 0.0 { v } else { v * scale.exp() });
            first += width;
        }
    }
    all
}

/// (Σ w)²/Σ w² for each query of one head, with w_f = φ_f Σ ψ_f over the keys that it sees.
fn naive<T: Real>(
    map: &Map<T>,
    [q, k]: [ArrayView2<'_, T>; 2],
    sees: impl Fn(usize, usize) -> bool,
) -> Array1<f64> {
    let scale = T::narrow((q.ncols() as f64).powf(-0.25));
    let points = |x: ArrayView2<'_, T>| x.mapv(|v| v * scale);
    let phi = whole(&features(map, points(q).view()));
    let psi = whole(&map.features(Side::Y, &points(k)).unwrap());
    let number = |i: usize| {
        let mut sums = Array1::<f64>::zeros(psi.ncols());
        (0..psi.nrows()).filter(|j| sees(i, *j)).for_each(|j| sums += &psi.row(j));
        let parts = &phi.row(i) * &sums;
        parts.sum().powi(2) / parts.dot(&parts)
    };
    (0..phi.nrows()).map(number).collect()
}

fn numbers<T: Real>(attended: &Attended<T>) -> Array3<f64> {
    attended.effective_features.as_ref().unwrap().mapv(|n| n.widen())
}

fn maps<T: Real>(d: usize, m: usize) -> Vec<(&'static str, Map<T>)> {
    let omega = || frequencies(d, m, &Orthogonal, 3);
    let other = frequencies(d, 8, &Independent, 6);
    vec![
        ("positive", Positive.softmax(omega()).unwrap()),
        ("hyperbolic", Hyperbolic.softmax(omega()).unwrap()),
        ("trigonometric", Trigonometric.softmax(omega()).unwrap()),
        ("angular hybrid", Hybrid::angular(Bases::shared(omega()), other).unwrap()),
    ]
}

/// Positive, signed and maps of several blocks, two heads of queries on one of keys, with masks, both ways.
fn agrees<T: Real>(tolerance: f64) {
    let (d, m) = (6, 40);
    let (q, k) = (waves::<T>([2, 4, 150, d], 0.8, 1), waves::<T>([2, 2, 150, d], 0.9, 2));
    let v = waves::<T>([2, 2, 150, 3], 1.0, 3);
    let mask = Array2::from_shape_fn((2, 150), |(b, j)| (j + b) % 5 != 2);
    for (name, map) in maps::<T>(d, m) {
        let attention = Attention::signed(vec![map.clone()]).unwrap();
        for masked in [false, true] {
            let heads = Heads::new(&q, &k, &v).unwrap();
            let heads = if masked { heads.with_mask(&mask).unwrap() } else { heads };
            for causal in [false, true] {
                let found = diagnosed(&attention, &heads, causal).unwrap();
                let plain = if causal { attention.causal(&heads) } else { attention.bidirectional(&heads) };
                let plain = plain.unwrap();
                assert!(plain.effective_features.is_none() && plain.share_with_features_below(1.0).is_none());
                assert_eq!((&found.output, &found.non_positive), (&plain.output, &plain.non_positive));
                let found = numbers(&found);
                assert_eq!(found.dim(), (2, 4, 150));
                for (b, h) in [(0, 0), (0, 3), (1, 2)] {
                    let sees = |i: usize, j: usize| (!masked || mask[[b, j]]) && (!causal || j <= i);
                    let expected = naive(&map, [head(&q, b, h), head(&k, b, h / 2)], sees);
                    for (found, expected) in found.slice(s![b, h, ..]).iter().zip(&expected) {
                        let off = (found - expected).abs();
                        assert!(
                            off <= tolerance * expected.abs().max(1.0)
                                || (found.is_nan() && expected.is_nan()),
                            "{name} {masked} {causal}: {found}, {expected}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn numbers_are_their_definition() {
    agrees::<f64>(1e-9);
    agrees::<f32>(2e-3);
}

/// Large norms: features of a row differ by hundreds of nats, and their scales from token to token too.
/// With first coordinates of 1 in all frequencies, the first coordinate of a query is a factor of all its features.
#[test]
fn squared_norms_may_leave_no_digits() {
    let omega = array![[1.0, -1.3], [1.0, -0.4], [1.0, 0.4], [1.0, 1.3]];
    let map = Positive.softmax::<f64>(Frequencies::from_rows(omega).unwrap()).unwrap();
    let (attention, k) = (Attention::new(map).unwrap(), tokens::<f64>([1, 1, 20, 2], 1.0, 2));
    for causal in [false, true] {
        let of = |first: f64| {
            let mut q = tokens::<f64>([1, 1, 20, 2], 1.0, 1);
            q.slice_mut(s![.., .., .., 0]).fill(first);
            let found = diagnosed(&attention, &Heads::new(&q, &k, &k).unwrap(), causal).unwrap();
            numbers(&found)
        };
        let (near, far) = (of(0.0), of(1e8));
        assert!(near.iter().zip(&far).all(|(a, b)| (a - b).abs() < 1e-6), "{near} {far}");
    }
}

#[test]
fn numbers_survive_large_norms() {
    let (d, m, n) = (6, 40, 70);
    for size in [4.0, 12.0, 400.0] {
        let (q, k) = (waves::<f64>([1, 1, n, d], size, 1), waves::<f64>([1, 1, n, d], size, 2));
        let map = Positive.softmax::<f64>(frequencies(d, m, &Orthogonal, 3)).unwrap();
        let attention = Attention::new(map.clone()).unwrap();
        for causal in [false, true] {
            let found = diagnosed(&attention, &Heads::new(&q, &k, &k).unwrap(), causal).unwrap();
            let found = numbers(&found);
            assert!(found.iter().all(|n| (1.0 - 1e-9..=m as f64).contains(n)), "{size}: {found}");
            let single: Array4<f32> = q.mapv(|v| v as f32);
            let keys: Array4<f32> = k.mapv(|v| v as f32);
            let narrow = Attention::new(Positive.softmax::<f32>(frequencies(d, m, &Orthogonal, 3)).unwrap());
            let narrow =
                diagnosed(&narrow.unwrap(), &Heads::new(&single, &keys, &keys).unwrap(), causal).unwrap();
            assert!(numbers(&narrow).iter().all(|n| (0.999..=m as f64).contains(n)), "{size}");
            if size < 10.0 {
                let sees = |i: usize, j: usize| !causal || j <= i;
                let expected = naive(&map, [head(&q, 0, 0), head(&k, 0, 0)], sees);
                let near = |(a, b): (&f64, &f64)| (a / b - 1.0).abs() < 1e-8;
                assert!(found.iter().zip(&expected).all(near), "{size}: {found} {expected}");
            }
        }
    }
}

/// Keys with exact weights are not counted, whether chosen or given; what sees no other key has no number.
#[test]
fn exact_keys_are_not_counted() {
    let (d, n) = (4, 80);
    let (q, k) = (waves::<f64>([1, 1, n, d], 0.8, 1), waves::<f64>([1, 1, n, d], 0.8, 2));
    let map = Positive.softmax::<f64>(frequencies(d, 24, &Orthogonal, 3)).unwrap();
    let attention = Attention::new(map.clone()).unwrap().with_keys_exact(&[0, 1, 7, 40]).unwrap();
    let heads = Heads::new(&q, &k, &k).unwrap();
    for causal in [false, true] {
        let found = diagnosed(&attention, &heads, causal).unwrap();
        let sees = |i: usize, j: usize| ![0, 1, 7, 40].contains(&j) && (!causal || j <= i);
        let expected = naive(&map, [head(&q, 0, 0), head(&k, 0, 0)], sees);
        let all = numbers(&found);
        for (i, (found, expected)) in all.iter().zip(&expected).enumerate() {
            assert_eq!(found.is_nan(), causal && i < 2, "{i}");
            assert!(found.is_nan() || (found / expected - 1.0).abs() < 1e-9, "{i}: {found} {expected}");
        }
        // Shares are of the rows that have a number.
        let known: Vec<f64> = expected.iter().copied().filter(|n| !n.is_nan()).collect();
        for threshold in [0.5, 9.0, 14.0, 1e9] {
            let share = known.iter().filter(|n| **n < threshold).count() as f64 / known.len() as f64;
            assert_eq!(found.share_with_features_below(threshold).unwrap(), Array2::from_elem((1, 1), share));
        }
    }
}

#[test]
fn rows_without_keys_have_no_number() {
    let x = waves::<f64>([1, 1, 5, 4], 0.8, 1);
    let attention =
        Attention::new(Positive.softmax::<f64>(frequencies(4, 8, &Orthogonal, 3)).unwrap()).unwrap();
    let none = Array2::from_elem((1, 5), false);
    let heads = Heads::new(&x, &x, &x).unwrap().with_mask(&none).unwrap();
    let found = attention.bidirectional_diagnosed(&heads).unwrap();
    assert!(
        numbers(&found).iter().all(|n| n.is_nan())
            && found.share_with_features_below(3.0).unwrap()[[0, 0]].is_nan()
    );
    // A NaN reaches those that may see it.
    let mut bad = x.clone();
    bad[[0, 0, 2, 1]] = f64::NAN;
    let found = attention.causal_diagnosed(&Heads::new(&x, &bad, &x).unwrap()).unwrap();
    let nan: Vec<bool> = numbers(&found).iter().map(|n| n.is_nan()).collect();
    assert_eq!(nan, [false, false, true, true, true]);
    assert!(
        attention
            .causal_diagnosed(
                &Heads::new(&x, &waves([1, 1, 6, 4], 1.0, 1), &waves([1, 1, 6, 2], 1.0, 1)).unwrap()
            )
            .is_err()
    );
    // What is exact rests on no features.
    let exact: Attended<f64> = ExactAttention::new().bidirectional(&Heads::new(&x, &x, &x).unwrap()).unwrap();
    assert!(exact.effective_features.is_none());
}

/// (Σ w)²/Σ w² with w the parts of the normaliser that features estimate.
#[test]
fn effective_features_are_those_of_the_rest() {
    let (d, n) = (5, 150);
    let map = Positive.softmax::<f64>(frequencies(d, 24, &Orthogonal, 3)).unwrap();
    let [q, k, v] = [(1, d), (2, d), (3, 2)].map(|(seed, width)| tokens::<f64>([1, 1, n, width], 0.8, seed));
    let mask = Array2::from_shape_fn((1, n), |(_, j)| j % 6 != 1);
    let heads = Heads::new(&q, &k, &v).unwrap().with_mask(&mask).unwrap();
    for window in [[1, 0], [3, 2], [70, 64], [0, 4]] {
        let attention = Attention::new(map.clone()).unwrap().with_window(window[0], window[1]).unwrap();
        let attention = attention.with_keys_exact(&[4]).unwrap();
        for causal in [false, true] {
            let attended = ways::diagnosed(&attention, &heads, causal).unwrap();
            let found = attended.effective_features.unwrap();
            let counts =
                |i: usize, j: usize| mask[[0, j]] && j != 4 && !(causal && j > i) && !is_near(window, i, j);
            let expected = naive(&map, [head(&q, 0, 0), head(&k, 0, 0)], counts);
            for (i, expected) in expected.iter().enumerate() {
                let found = found[[0, 0, i]];
                let same = (found - expected).abs() < 1e-9 * expected || found.is_nan() && expected.is_nan();
                assert!(same, "{window:?}, causal {causal}, {i}: {found} instead of {expected}");
            }
        }
    }
}
