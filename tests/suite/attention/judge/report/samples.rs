//! Samples of tokens that reports take or refuse: layouts, values, laws of frequencies.

use crate::attention::judge::normal;
use crate::attention::judge::report::{by_columns, maps};
use crate::attention::oracle;
use ndarray::{Array2, s};
use random_features::apply::attention::{Attention, ErrorReport, TokenSample};
use random_features::frequency::{Frequencies, Independent};
use random_features::kernel::{Matern, Smoothness, Softmax};
use random_features::map::Recipe;
use random_features::recipe::Draw;
use random_features::{EluPlusOne, Error, Positive, Trigonometric};

#[test]
fn samples_that_do_not_fit_are_refused() {
    let [q, k] = [(12, 1), (9, 2)].map(|(n, seed)| normal(n, 4, 0.4, seed));
    let attention = Attention::<f64>::new(maps(4, 16, 1)[0].clone()).unwrap();
    let refused = |attention: &Attention<f64>, sample: &TokenSample<'_, f64>| {
        attention.error_report(sample).unwrap_err()
    };
    // Without neighbours nothing depends on places.
    assert!(attention.error_report(&TokenSample::new(&q, &k)).is_ok());
    assert!(matches!(refused(&attention, &TokenSample::causal(&q, &k)), Error::Parameter { value: 9.0, .. }));
    let near = attention.clone().with_window(1, 1).unwrap();
    assert!(matches!(refused(&near, &TokenSample::new(&q, &k)), Error::Parameter { value: 9.0, .. }));
    assert!(matches!(refused(&near, &TokenSample::new(&q, &k).with_places(&[0; 11])), Error::Shape { .. }));
    let heaviest = attention.with_heaviest_keys_exact(2).unwrap();
    assert!(heaviest.error_report(&TokenSample::new(&k, &k)).is_ok());
    assert!(heaviest.error_report(&TokenSample::causal(&k, &k)).is_err());
}

#[test]
fn reports_refuse_what_they_cannot_say() {
    let x = normal(5, 4, 0.5, 1);
    let attention = Attention::new(EluPlusOne.build::<f64>(4, 1.0).unwrap()).unwrap();
    assert!(matches!(
        attention.error_report(&TokenSample::new(&x, &x).with_values(&x)),
        Err(Error::Unsupported { .. })
    ));
    let attention = Attention::new(maps(4, 8, 1)[0].clone()).unwrap();
    let (none, wide) = (normal(0, 4, 1.0, 1), normal(5, 3, 1.0, 1));
    assert!(
        attention.error_report(&TokenSample::new(&none, &x).with_values(&x)).is_err()
            && attention.error_report(&TokenSample::new(&x, &none).with_values(&none)).is_err()
    );
    assert!(
        attention.error_report(&TokenSample::new(&wide, &x).with_values(&x)).is_err()
            && attention.error_report(&TokenSample::new(&x, &wide).with_values(&x)).is_err()
    );
    let mut bad = x.clone();
    bad[[2, 1]] = f64::NAN;
    assert!(matches!(
        attention.error_report(&TokenSample::new(&x, &bad).with_values(&x)),
        Err(Error::NotFinite { row: 2, .. })
    ));
    assert!(matches!(
        attention.error_report(&TokenSample::new(&x, &x).with_values(&bad)),
        Err(Error::NotFinite { row: 2, .. })
    ));
}

/// Closed forms are for the law that the kernel needs: frequencies of another one, or of none that is stated, have none.
#[test]
fn other_laws_have_no_closed_forms() {
    let (d, m) = (4, 32);
    let [q, k, v] = [1, 2, 3].map(|seed| normal(10, d, 0.3, seed));
    let rows = Independent.draw(d, m, 1).unwrap().rows().mapv(|v| 3.0 * v);
    let wide = Frequencies::from_rows(rows).unwrap();
    let attention = Attention::new(Positive.softmax::<f64>(wide).unwrap()).unwrap();
    assert!(matches!(
        attention.error_report(&TokenSample::new(&q, &k).with_values(&v)),
        Err(Error::Unsupported { .. })
    ));
    let matern = Draw::new(d, m, Independent).with_radii(Smoothness::Half);
    let recipe = Trigonometric.recipe(matern, Matern::new(Smoothness::Half, 1.0).unwrap());
    assert!(matches!(
        attention.expected_report(&recipe, &TokenSample::new(&q, &k).with_values(&v)),
        Err(Error::Unsupported { .. })
    ));
}

/// Without values a report speaks of weights alone, beside equal ones.
#[test]
fn reports_without_values_are_of_weights() {
    let (n, d, m) = (20, 4, 200);
    let [q, k] = [1, 2].map(|seed| normal(n, d, 0.4, seed));
    let v = normal(n, 3, 1.0, 3);
    let recipe = Positive.recipe(Draw::new(d, m, Independent), Softmax::default());
    let attention = Attention::<f64>::new(recipe.draw(1).unwrap()).unwrap();
    for causal in [false, true] {
        let sample = if causal { TokenSample::causal(&q, &k) } else { TokenSample::new(&q, &k) };
        let [without, with] =
            [sample, sample.with_values(&v)].map(|sample| attention.error_report(&sample).unwrap());
        assert_eq!(without.weight_error(), with.weight_error());
        assert_eq!((without.output_error(), without.normaliser_variance), (None, with.normaliser_variance));
        let error = without.weight_error().unwrap();
        assert!(
            (without.frequencies_for(error) - m as f64).abs() <= 1.0,
            "{}",
            without.frequencies_for(error)
        );
        let text = without.to_string();
        assert!(text.contains("error of the weights") && text.contains("without values"), "{text}");
        // By definition.
        let seen = |i: usize| if causal { i + 1 } else { n };
        let weights = oracle::exact([&q, &k, &Array2::eye(n)], |i, j| j < seen(i));
        let squares: f64 = weights.iter().map(|w| w * w).sum();
        let (mut from_equal, equal) = (0.0, |i: usize| 1.0 / seen(i) as f64);
        for (i, row) in weights.rows().into_iter().enumerate() {
            from_equal += row.iter().take(seen(i)).map(|w| (w - equal(i)).powi(2)).sum::<f64>();
        }
        assert!((without.mean_error / (from_equal / squares).sqrt() - 1.0).abs() < 1e-9);
        let worse = error >= without.mean_error;
        assert_eq!(without.is_worse_than_uniform(), Some(worse));
        let redrawn = attention.simulated_report(&recipe, 300, &sample).unwrap();
        assert!((redrawn.weight_error().unwrap() / error - 1.0).abs() < 0.1);
        assert_eq!((redrawn.output_error(), redrawn.mean_error), (None, without.mean_error));
    }
}

/// Whatever the layout of queries, keys and values, a report is the same; one key leaves no error.
#[test]
fn reports_do_not_depend_on_layouts() {
    let close = |a: Option<f64>, b: Option<f64>| match (a, b) {
        // The root of what rounding leaves of 0.
        (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * b.abs() + 1e-7,
        (a, b) => a == b,
    };
    let same = |a: &ErrorReport, b: &ErrorReport| {
        close(Some(a.normaliser_variance), Some(b.normaliser_variance))
            && close(Some(a.mean_error), Some(b.mean_error))
            && close(a.weight_error(), b.weight_error())
            && close(a.output_error(), b.output_error())
    };
    let turned = |x: &Array2<f64>| x.slice(s![..;-1, ..;-1]).as_standard_layout().into_owned();
    for (d, n, l, targets) in
        [(1, 4, 6, 1), (1, 4, 6, 3), (2, 4, 6, 1), (5, 4, 70, 3), (5, 1, 6, 2), (1, 3, 1, 2), (3, 3, 1, 1)]
    {
        let [q, k, v] = [(n, d, 1), (l, d, 2), (l, targets, 3)].map(|(n, d, seed)| normal(n, d, 0.4, seed));
        let recipe: Recipe = Positive.recipe(Draw::new(d, 1024, Independent), Softmax::default());
        let attention = Attention::new(recipe.draw::<f64>(7).unwrap()).unwrap();
        let all = |x: &TokenSample<'_, f64>| {
            let redrawn = attention.simulated_report(&recipe, 5, x).unwrap();
            [attention.error_report(x).unwrap(), redrawn]
        };
        let plain = all(&TokenSample::new(&q, &k).with_values(&v));
        let columns = [&q, &k, &v].map(by_columns);
        let reversed = [&q, &k, &v].map(turned);
        let backwards = reversed.each_ref().map(|x| x.slice(s![..;-1, ..;-1]));
        let views = columns.each_ref().map(|x| x.view());
        for [other_q, other_k, other_v] in [views, backwards] {
            for turn in 1..8 {
                let pick = |bit: usize| (turn >> bit) & 1 == 1;
                let q = if pick(0) { other_q } else { q.view() };
                let k = if pick(1) { other_k } else { k.view() };
                let v = if pick(2) { other_v } else { v.view() };
                for (found, expected) in all(&TokenSample::new(&q, &k).with_values(&v)).iter().zip(&plain) {
                    assert!(same(found, expected), "{d} {n} {l} {targets}, {turn}: {found} {expected}");
                }
            }
        }
        let none = plain.iter().all(|report| report.output_error().unwrap() < 1e-7);
        assert_eq!(none, l == 1, "{} {}", plain[0], plain[1]);
    }
}
