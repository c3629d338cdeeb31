//! Options of attention against their definitions: scales, cosines, normalisers and ε.

use crate::attention::oracle::{by_features, naive};
use crate::attention::{head, positive, ways, widened};
use crate::common::tokens;
use ndarray::{Array2, Array4, ArrayView2, Axis, arr1, array};
use random_features::apply::attention::{Attention, ExactAttention, Heads};
use random_features::frequency::Frequencies;
use random_features::{Map, Positive, Side};

/// Outputs with ε beside the features of keys, and beside those of queries relative to the largest.
fn beside_epsilon(map: &Map<f64>, [q, k, v]: [&Array2<f64>; 3], epsilon: f64) -> Array2<f64> {
    let features = |side, x: &Array2<f64>| map.features(side, x).unwrap().to_array();
    let (mut left, right) = (features(Side::X, q), features(Side::Y, k) + epsilon);
    for mut row in left.rows_mut() {
        let top = row.iter().copied().fold(0.0, f64::max);
        row.mapv_inplace(|v| v / top + epsilon);
    }
    let weights = left.dot(&right.t());
    weights.dot(v) / weights.sum_axis(Axis(1)).insert_axis(Axis(1))
}

/// Logits, normalisation, ε: each against its definition.
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

    // ε beside keys' features and queries' features relative to their largest.
    let epsilon =
        Attention::new(map.clone()).unwrap().with_scale(1.0).unwrap().with_biased_epsilon(0.01).unwrap();
    let expected = beside_epsilon(&map, inputs.each_ref(), 0.01);
    assert!(close(head(&epsilon.bidirectional(&heads).unwrap().output, 0, 0), &expected));

    for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let attention = || Attention::new(map.clone()).unwrap();
        assert!(attention().with_scale(wrong).is_err() && attention().with_cosine(wrong).is_err());
        assert!(
            ExactAttention::new().with_scale(wrong).is_err()
                && (wrong == 0.0 || attention().with_biased_epsilon(wrong).is_err())
        );
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

/// ε is continuous: a tiny one changes little, also where outputs are not divided, and where features are far apart.
#[test]
fn a_tiny_epsilon_changes_little() {
    for (size, normalised) in [(0.7, true), (0.7, false), (20.0, true)] {
        let map = positive::<f32>(6, 20);
        let [q, k, v] = [(1, 6), (2, 6), (3, 3)].map(|(seed, d)| tokens::<f32>([1, 1, 70, d], size, seed));
        let heads = Heads::new(&q, &k, &v).unwrap();
        let run = |epsilon| {
            let attention = ways::normalised(Attention::new(map.clone()).unwrap(), normalised);
            attention.with_biased_epsilon(epsilon).unwrap().causal(&heads).unwrap()
        };
        let (none, tiny) = (run(0.0), run(1e-300));
        assert!(tiny.non_positive.is_empty(), "{size}");
        let scale = none.output.iter().fold(0.0f32, |a, v| a.max(v.abs()));
        assert!((&none.output - &tiny.output).iter().all(|e| e.abs() <= 1e-4 * scale), "{size} {normalised}");
    }
}

/// ε is what it is where features are below it, and where they are too far apart for products in `f32`.
#[test]
fn epsilon_is_its_definition_for_features_of_any_size() {
    // Features e^{ωx − ½x²} of 10⁻⁹ and of 10⁸, in one row and on both sides of ε; then all features of some keys below it.
    let apart = || Frequencies::from_rows(array![[20.0], [-20.0], [1.0]]).unwrap();
    for (single, double, size) in [
        (Positive.softmax::<f32>(apart()).unwrap(), Positive.softmax::<f64>(apart()).unwrap(), 1.3),
        (positive(1, 3), positive(1, 3), 5.0),
    ] {
        let [q, k] = [1, 2].map(|seed| tokens::<f32>([1, 1, 70, 1], size, seed));
        let v = tokens::<f32>([1, 1, 70, 2], 1.0, 3);
        let attention = Attention::new(single).unwrap().with_biased_epsilon(0.01).unwrap();
        let out = attention.bidirectional(&Heads::new(&q, &k, &v).unwrap()).unwrap();
        let inputs = [&q, &k, &v].map(|x| widened(x, 0, 0));
        let expected = beside_epsilon(&double, inputs.each_ref(), 0.01);
        // Exponents of up to 50 are rounded to f32.
        assert!((widened(&out.output, 0, 0) - expected).iter().all(|e| e.abs() < 50.0 * 1e-6));
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
