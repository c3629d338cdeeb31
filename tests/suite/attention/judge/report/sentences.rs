//! What reports say of uniform weights, of maps and heads, and of outputs that are 0.

use crate::attention::judge::normal;
use crate::attention::judge::report::{maps, report};
use ndarray::Array2;
use random_features::Error;
use random_features::apply::attention::{Attention, TokenSample};

/// What is worse than uniform weights says so.
#[test]
fn reports_compare_with_uniform_weights() {
    let [q, k] = [1, 2].map(|seed| normal(20, 4, 0.3, seed));
    let v = normal(20, 3, 1.0, 3);
    let few = report(&maps(4, 16, 1)[0], [&q, &k, &v]);
    assert!(few.output_error().unwrap() >= few.mean_error, "{few}");
    assert_eq!(few.is_worse_than_uniform(), Some(true));
    assert!(few.to_string().contains("worse than uniform weights"), "{few}");
    let many = report(&maps(4, 4096, 1)[0], [&q, &k, &v]);
    assert_eq!(many.is_worse_than_uniform(), Some(false));
    assert!(!many.to_string().contains("uniform"), "{many}");
    let none = report(&maps(4, 256, 1)[0], [&q, &k, &Array2::zeros((20, 3))]);
    assert_eq!(none.is_worse_than_uniform(), None);
}

/// A head without a map has no report, and what a map is called is its name.
#[test]
fn reports_name_heads_and_maps() {
    let [q, k, v] = [1, 2, 3].map(|seed| normal(20, 4, 1.4, seed));
    let [a, b, ..] = maps(4, 16, 1);
    let attention = Attention::per_head(vec![a.clone(), b]).unwrap();
    assert!(attention.error_report(&TokenSample::new(&q, &k).with_values(&v).with_head(1)).is_ok());
    let refused = attention.error_report(&TokenSample::new(&q, &k).with_values(&v).with_head(5)).unwrap_err();
    assert!(matches!(refused, Error::Parameter { value: 5.0, .. }), "{refused}");
    // One map is that of every head.
    assert!(
        Attention::new(a.clone())
            .unwrap()
            .error_report(&TokenSample::new(&q, &k).with_values(&v).with_head(5))
            .is_ok()
    );
    let report = report(&a, [&q, &k, &v]);
    let text = report.to_string();
    assert!(report.is_hopeless() && !text.contains('('), "{text}");
}

/// Outputs of 0 have no relative error, which is not to say that it is hopeless.
#[test]
fn reports_of_no_values_say_so() {
    let [q, k] = [1, 2].map(|seed| normal(20, 4, 0.3, seed));
    let report = report(&maps(4, 256, 1)[0], [&q, &k, &Array2::zeros((20, 3))]);
    assert!(!report.is_hopeless() && report.output_error().is_none());
    assert!(report.to_string().contains("outputs are 0"), "{report}");
}

/// Beyond the range of what can be summed up it is hopeless, and nothing is said of outputs that are 0.
#[test]
fn reports_at_the_ends_of_the_range() {
    for size in [30.0, 300.0] {
        let [q, k, v] = [1, 2, 3].map(|seed| normal(20, 4, size, seed));
        for map in maps(4, 32, 1) {
            let report = report(&map, [&q, &k, &v]);
            if report.is_hopeless() {
                assert!(report.frequencies_for(0.1) > 32.0, "{report}");
            }
            assert!(report.alternatives.is_sorted_by(|a, b| a.1 <= b.1), "{report:?}");
            // Logits beyond the range of exponentials have weights.
            assert!(report.mean_error.is_finite(), "{report}");
            assert_eq!(
                (report.frequencies_for(-1.0), report.frequencies_for(f64::NAN)),
                (f64::INFINITY, f64::INFINITY)
            );
        }
    }
    let (x, none) = (normal(20, 4, 0.3, 1), Array2::zeros((20, 2)));
    let report = report(&maps(4, 512, 1)[0], [&x, &x, &none]);
    assert!(!report.is_hopeless() && report.output_error().is_none() && report.weight_error().is_some());
}
