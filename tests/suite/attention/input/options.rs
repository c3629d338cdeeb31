//! Options of attention against their definitions: scales, cosines and normalisers.

use crate::attention::oracle::{by_features, naive};
use crate::attention::{head, positive, widened};
use crate::common::tokens;
use ndarray::{Array2, Array4, ArrayView2, Axis, arr1};
use random_features::apply::attention::{Attention, ExactAttention, Heads};

/// Logits and normalisation against their definitions.
#[test]
fn options_are_their_definitions() {
    let map = positive::<f64>(6, 20);
    let [q, k, v] = [(1, 6), (2, 6), (3, 3)].map(|(seed, d)| tokens::<f64>([1, 1, 70, d], 0.7, seed));
    let heads = Heads::new(&q, &k, &v).unwrap();
    let inputs = [&q, &k, &v].map(|x| widened(x, 0, 0));
    let base = 6f64.powf(0.25);
    let expected = |q: &Array2<f64>, k: &Array2<f64>, factor: f64| {
        naive(
            &map,
            [&(q * (base * factor)), &(k * (base * factor)), &inputs[2]],
            by_features(|_, _| true),
            true,
        )
    };
    let close = |a: ArrayView2<'_, f64>, b: &Array2<f64>| (&a - b).iter().all(|e| e.abs() < 1e-12);
    let scaled =
        Attention::new(map.clone()).unwrap().with_scale(0.25).unwrap().bidirectional(&heads).unwrap();
    assert!(close(head(&scaled.output, 0, 0), &expected(&inputs[0], &inputs[1], 0.5)));
    let unit = |x: &Array2<f64>| {
        let norms = x.mapv(|v| v * v).sum_axis(Axis(1)).mapv(f64::sqrt).insert_axis(Axis(1));
        x / &norms
    };
    let cosine =
        Attention::new(map.clone()).unwrap().with_cosine(0.25).unwrap().bidirectional(&heads).unwrap();
    assert!(close(head(&cosine.output, 0, 0), &expected(&unit(&inputs[0]), &unit(&inputs[1]), 2.0)));

    // Not normalised: the plain sum of estimates.
    let plain = Attention::new(map.clone()).unwrap().with_scale(1.0).unwrap().without_normalisers();
    let whole = [&(&inputs[0] * base), &(&inputs[1] * base), &inputs[2]];
    for causal in [false, true] {
        let sum = naive(&map, whole, by_features(|i, j| !causal || j <= i), false);
        let out = if causal { plain.causal(&heads) } else { plain.bidirectional(&heads) }.unwrap().output;
        assert!((&head(&out, 0, 0) - &sum).iter().all(|e| e.abs() < 1e-10));
    }

    for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let attention = || Attention::new(map.clone()).unwrap();
        assert!(attention().with_scale(wrong).is_err() && attention().with_cosine(wrong).is_err());
        assert!(ExactAttention::new().with_scale(wrong).is_err());
    }
}

/// Norms of any size have the same direction.
#[test]
fn cosines_do_not_depend_on_norms() {
    let attention = Attention::new(positive::<f32>(6, 20)).unwrap().with_cosine(0.5).unwrap();
    let exact = ExactAttention::new().with_cosine(0.5).unwrap();
    let [q, k, v] = [(1, 6), (2, 6), (3, 3)].map(|(seed, d)| tokens::<f32>([1, 1, 40, d], 1.0, seed));
    let run = |a: f32, b: f32| {
        let (q, k) = (q.mapv(|v| v * a), k.mapv(|v| v * b));
        let heads = Heads::new(&q, &k, &v).unwrap();
        let out: Array4<f32> = exact.bidirectional(&heads).unwrap().output;
        (attention.bidirectional(&heads).unwrap().output, out)
    };
    let plain = run(1.0, 1.0);
    for (a, b) in [(1e-30, 1e30), (1e36, 1e-36), (1e-37, 1e-37)] {
        let other = run(a, b);
        assert!((&other.0 - &plain.0).iter().all(|e| e.abs() < 1e-5), "{a} {b}");
        assert!((&other.1 - &plain.1).iter().all(|e| e.abs() < 1e-5), "{a} {b}");
    }
}

/// What is not divided may be in range where its scale is not.
#[test]
fn outputs_that_are_not_divided_reach_the_ends_of_the_range() {
    // One frequency: φ = exp(ω x − ½x²), so the scale is far beyond the range where ω x is.
    let map = positive::<f64>(1, 1);
    let attention = Attention::new(map.clone()).unwrap().with_scale(1.0).unwrap().without_normalisers();
    for x in [-40.0, -30.0, 30.0, 40.0] {
        let log = map.log_estimate(&arr1(&[x]), &arr1(&[x])).unwrap().ln_abs;
        // The output e^±600.
        let value = ((600.0 * log.signum() - log).clamp(-690.0, 690.0)).exp();
        let (x, v) = (Array4::from_elem((1, 1, 1, 1), x), Array4::from_elem((1, 1, 1, 1), value));
        let out = attention.bidirectional(&Heads::new(&x, &x, &v).unwrap()).unwrap().output[[0, 0, 0, 0]];
        let expected = log + value.ln();
        assert!(expected.abs() > 700.0 || (out.ln() - expected).abs() < 1e-9, "{out}: e^{expected}");
        assert!(log.abs() > 710.0);
    }
}
