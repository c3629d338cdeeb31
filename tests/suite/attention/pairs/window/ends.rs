//! Windows of all keys and of none, and what the outputs of windows depend on.

use crate::attention::pairs::window::near;
use crate::attention::{oracle, positive, ways, widened};
use crate::common::{frequencies, tokens};
use crate::threads::on_threads;
use ndarray::{Array2, Array4, s};
use random_features::apply::attention::{Attention, ExactAttention, Heads};
use random_features::frequency::{Independent, Orthogonal};
use random_features::{Error, Positive, Real};

#[test]
fn windows_of_all_keys_are_exact_attention() {
    fn equal<T: Real>(n: usize, size: f64, tolerance: f64) {
        let [q, k, v] = [(1, 6), (2, 6), (3, 3)].map(|(seed, d)| tokens::<T>([1, 2, n, d], size, seed));
        let heads = Heads::new(&q, &k, &v).unwrap();
        for window in [n, n + 1, usize::MAX] {
            let attention = Attention::new(positive::<T>(6, 8)).unwrap().with_window(window, window).unwrap();
            let exact: Array4<T> = ExactAttention::new().bidirectional(&heads).unwrap().output;
            let out = attention.bidirectional(&heads).unwrap();
            assert!(out.non_positive.is_empty());
            near(&widened(&out.output, 0, 1), &widened(&exact, 0, 1), tolerance, "all");
            let exact: Array4<T> = ExactAttention::new().causal(&heads).unwrap().output;
            near(
                &widened(&attention.causal(&heads).unwrap().output, 0, 1),
                &widened(&exact, 0, 1),
                tolerance,
                "causal",
            );
        }
    }
    for n in [1, 64, 200] {
        equal::<f64>(n, 1.0, 1e-13);
        equal::<f32>(n, 1.0, 1e-5);
        equal::<f64>(n, 20.0, 1e-11);
    }
}

/// Logits are those that scales, temperatures and lengthscales of a map say.
#[test]
fn logits_are_scaled_as_those_of_features() {
    let [q, k, v] = [(1, 6), (2, 6), (3, 3)].map(|(seed, d)| tokens::<f64>([1, 2, 90, d], 1.0, seed));
    let heads = Heads::new(&q, &k, &v).unwrap();
    let longer = random_features::kernel::Softmax::new(1.7).unwrap();
    let map = Positive.build::<f64>(frequencies(6, 12, &Orthogonal, 7), longer).unwrap();
    let attention = Attention::new(map).unwrap();
    for attention in
        [attention.clone(), attention.clone().with_scale(0.9).unwrap(), attention.with_cosine(0.3).unwrap()]
    {
        let exact: Array4<f64> = attention.exact_counterpart().unwrap().bidirectional(&heads).unwrap().output;
        let out = attention.with_window(90, 90).unwrap().bidirectional(&heads).unwrap().output;
        near(&widened(&out, 0, 1), &widened(&exact, 0, 1), 1e-12, "exact");
    }
}

/// A lengthscale ℓ may be so large or so small that 1/ℓ² is beyond `f32` where logits are not: in whole, by their weights and token by token.
#[test]
fn squared_lengthscales_may_be_out_of_range() {
    let every = Vec::from_iter(0..90);
    for lengthscale in [1e25, 1e-25] {
        let [q, k, v] = [(1, 6, 1.5 * lengthscale), (2, 6, 1.5 * lengthscale), (3, 3, 1.0)]
            .map(|(seed, d, size)| tokens::<f32>([1, 1, 90, d], size, seed));
        let heads = Heads::new(&q, &k, &v).unwrap();
        let wide = [(&q, lengthscale), (&k, lengthscale), (&v, 1.0)].map(|(x, unit)| widened(x, 0, 0) / unit);
        let softmax = random_features::kernel::Softmax::new(lengthscale).unwrap();
        let map = Positive.build::<f32>(frequencies(6, 12, &Orthogonal, 7), softmax).unwrap();
        let attention = Attention::new(map).unwrap();
        for attention in [attention.clone().with_window(90, 90), attention.with_keys_exact(&every)] {
            let attention = attention.unwrap();
            for causal in [false, true] {
                let expected = oracle::exact(wide.each_ref(), |i, j| !causal || j <= i);
                let out = if causal { attention.causal(&heads) } else { attention.bidirectional(&heads) };
                near(&widened(&out.unwrap().output, 0, 0), &expected, 1e-5, "outputs");
                let weights = ways::weights(&attention, &heads, ([0, 0], &every), causal).unwrap();
                near(&weights.dot(&wide[2]), &expected, 1e-5, "weights");
            }
            let (whole, mut state) =
                (attention.causal(&heads).unwrap().output, attention.state(1, 1, 3).unwrap());
            for i in 0..90 {
                let [q, k, v] = [&q, &k, &v].map(|x| x.slice(s![.., .., i, ..]));
                let out = state.step(&q, &k, &v).unwrap().output;
                assert_eq!(out, whole.slice(s![.., .., i, ..]), "token {i}");
            }
        }
    }
}

/// Without neighbours nothing is other than it was.
#[test]
fn no_window_is_no_window() {
    let [q, k, v] = [(1, 6), (2, 6), (3, 3)].map(|(seed, d)| tokens::<f32>([1, 2, 200, d], 0.8, seed));
    let heads = Heads::new(&q, &k, &v).unwrap();
    let attention = Attention::new(positive::<f32>(6, 20)).unwrap();
    let none = attention.clone().with_window(5, 5).unwrap().with_window(0, 0).unwrap();
    assert_eq!(none.causal(&heads).unwrap(), attention.causal(&heads).unwrap());
    assert_eq!(none.bidirectional(&heads).unwrap(), attention.bidirectional(&heads).unwrap());
    // Of what comes after there is nothing causally.
    let [one, other] = [0, 7].map(|after| attention.clone().with_window(3, after).unwrap());
    assert_eq!(one.causal(&heads).unwrap(), other.causal(&heads).unwrap());
    // Trigonometric features of another kernel have no exact weights.
    let gaussian = Positive.gaussian::<f64>(frequencies(4, 8, &Independent, 1), 1.0).unwrap();
    let gaussian = Attention::new(gaussian).unwrap();
    assert!(matches!(gaussian.clone().with_window(1, 0), Err(Error::Unsupported { .. })));
    assert!(gaussian.with_window(0, 0).is_ok());
}

/// Keys and queries that need logarithms among them.
#[test]
fn threads_change_no_bit() {
    fn same<T: Real>(size: f64) {
        let [q, mut k, v] =
            [(1, 6), (2, 6), (3, 3)].map(|(seed, d)| tokens::<T>([1, 1, 2300, d], size, seed));
        for i in [70, 71, 1100, 2200] {
            k.slice_mut(s![.., .., i, ..]).mapv_inplace(|v| v * T::narrow(30.0));
        }
        for window in [[9, 8], [64, 0], [100, 1500]] {
            let attention =
                Attention::new(positive::<T>(6, 20)).unwrap().with_window(window[0], window[1]).unwrap();
            let heads = Heads::new(&q, &k, &v).unwrap();
            let both = || (attention.causal(&heads).unwrap(), attention.bidirectional(&heads).unwrap());
            let one = on_threads(1, both);
            assert_eq!(one, on_threads(3, both));
            assert_eq!(one, on_threads(2, both));
        }
    }
    same::<f32>(0.7);
    same::<f64>(0.7);
    same::<f32>(0.05);
}

#[test]
fn the_future_changes_no_bit() {
    for window in [[1, 0], [9, 3], [64, 0], [150, 0]] {
        let attention =
            Attention::new(positive::<f32>(6, 20)).unwrap().with_window(window[0], window[1]).unwrap();
        let [q, k, v] = [(1, 6), (2, 6), (3, 3)].map(|(seed, d)| tokens::<f32>([1, 1, 1300, d], 0.8, seed));
        let out = attention.causal(&Heads::new(&q, &k, &v).unwrap()).unwrap().output;
        for place in [1, 63, 64, 100, 1100] {
            let (mut k, mut v) = (k.clone(), v.clone());
            k.slice_mut(s![.., .., place.., ..]).mapv_inplace(|x| 40.0 * x - 1.0);
            v.slice_mut(s![.., .., place.., ..]).fill(f32::INFINITY);
            k[[0, 0, place, 0]] = f32::NAN;
            let changed = attention.causal(&Heads::new(&q, &k, &v).unwrap()).unwrap().output;
            assert_eq!(out.slice(s![.., .., ..place, ..]), changed.slice(s![.., .., ..place, ..]));
        }
        // Whatever length the sequence has.
        for length in [1, 64, 100, 1025] {
            let [q, k, v] = [&q, &k, &v].map(|x| x.slice(s![.., .., ..length, ..]));
            let short = attention.causal(&Heads::new(&q, &k, &v).unwrap()).unwrap().output;
            assert_eq!(short, out.slice(s![.., .., ..length, ..]));
        }
    }
}

#[test]
fn what_is_not_finite_stays_where_it_is_seen() {
    let [q, k, v] = [(1, 6), (2, 6), (3, 3)].map(|(seed, d)| tokens::<f64>([1, 2, 200, d], 0.7, seed));
    let (mut bad_q, mut bad_k, mut bad_v) = (q.clone(), k.clone(), v.clone());
    bad_q[[0, 0, 9, 2]] = f64::NAN;
    bad_k[[0, 1, 70, 0]] = f64::NAN;
    bad_v[[0, 0, 100, 1]] = f64::NAN;
    for window in [[1, 0], [20, 10], [64, 64]] {
        let attention =
            Attention::new(positive::<f64>(6, 20)).unwrap().with_window(window[0], window[1]).unwrap();
        let heads = Heads::new(&bad_q, &bad_k, &bad_v).unwrap();
        let good = attention.causal(&Heads::new(&q, &k, &v).unwrap()).unwrap().output;
        let out = attention.causal(&heads).unwrap();
        for ((b, h, i, t), got) in out.output.indexed_iter() {
            let seen = (h == 0 && i == 9) || (h == 1 && i >= 70) || (h == 0 && i >= 100 && t == 1);
            assert_eq!(got.is_nan(), seen, "{window:?} {h} {i} {t}");
            assert!(seen || (got - good[[b, h, i, t]]).abs() < 1e-12);
        }
        let out = attention.bidirectional(&heads).unwrap();
        assert!(out.non_positive.is_empty());
        for ((_, h, i, t), got) in out.output.indexed_iter() {
            assert_eq!(got.is_nan(), h == 1 || i == 9 || t == 1, "{window:?} {h} {i} {t}");
        }
    }
    // Masked keys are not seen, whatever they are, and queries that see none get 0.
    let mask = Array2::from_shape_fn((1, 200), |(_, j)| j != 70 && j >= 5);
    let attention = Attention::new(positive::<f64>(6, 20)).unwrap().with_window(20, 10).unwrap();
    let heads = Heads::new(&q, &bad_k, &v).unwrap().with_mask(&mask).unwrap();
    let out = attention.causal(&heads).unwrap();
    assert!(out.output.iter().all(|v| !v.is_nan()) && out.non_positive.is_empty());
    assert!(out.output.slice(s![.., .., ..5, ..]).iter().all(|v| *v == 0.0));
}

/// Where all keys that features would see are masked, features of a query that are no numbers count for nothing: its logits are −∞.
#[test]
fn estimates_of_no_key_count_for_nothing() {
    let (n, seen, place) = (200, 130..161, 140);
    let [mut q, mut k, v] = [(1, 6), (2, 6), (3, 3)].map(|(seed, d)| tokens::<f64>([1, 1, n, d], 0.7, seed));
    k.slice_mut(s![.., .., .., 0]).mapv_inplace(|v| -v.abs() - 0.1);
    let mask = Array2::from_shape_fn((1, n), |(_, j)| seen.contains(&j));
    let attention = Attention::new(positive::<f64>(6, 20)).unwrap().with_window(20, 20).unwrap();
    let good = attention.bidirectional(&Heads::new(&q, &k, &v).unwrap().with_mask(&mask).unwrap()).unwrap();
    q[[0, 0, place, 0]] = f64::INFINITY;
    let heads = Heads::new(&q, &k, &v).unwrap().with_mask(&mask).unwrap();
    for attended in [attention.causal(&heads).unwrap(), attention.bidirectional(&heads).unwrap()] {
        assert!(attended.output.slice(s![0, 0, place, ..]).iter().all(|v| *v == 0.0), "{attended:?}");
        assert_eq!(attended.non_positive, [[0, 0, place]]);
    }
    let exact = ExactAttention::new().causal(&heads).unwrap();
    assert_eq!(exact.non_positive, [[0, 0, place]]);
    // Two such logits, of which one is finite, are the value of that.
    k[[0, 0, place, 0]] = f64::NEG_INFINITY;
    q[[0, 0, place, 0]] = 0.3;
    let heads = Heads::new(&q, &k, &v).unwrap().with_mask(&mask).unwrap();
    let out = attention.bidirectional(&heads).unwrap().output;
    assert!(out.slice(s![0, 0, place, ..]).iter().all(|v| v.is_finite()));
    assert_ne!(out.slice(s![0, 0, place, ..]), good.output.slice(s![0, 0, place, ..]));
}
