//! Many rows: fits that begin with a sample, and whose second derivatives serve several steps, are at their minimum.

use ndarray::{Array1, Array2, Axis};
use random_features::apply::{Glm, GlmFit};
use random_features::{Error, Targets};

use super::{features, labelled, scores, slope, trigonometric};

/// The largest slope of a loss that is above its minimum by 10⁻¹⁴ of itself, relative to the terms of the slope.
const FLAT: f64 = 1e-6;

/// The slope of a fit, relative to its terms.
fn slope_of(
    fit: &GlmFit<f64>,
    phi: &Array2<f64>,
    weights: &Array1<f64>,
    pull: impl Fn(usize, f64) -> f64,
) -> f64 {
    let mut pulls = scores(fit.model(), phi);
    pulls.column_mut(0).iter_mut().enumerate().for_each(|(i, eta)| *eta = weights[i] * pull(i, *eta));
    slope(fit.model(), phi, &pulls, fit.lambda())
}

/// Two classes, the second of them in one row of a hundred.
fn rare(n: usize) -> (Array2<f64>, Vec<usize>) {
    let (x, labels) = labelled::<f64>(n, 2);
    let is_rare = |i: usize| labels[i] * usize::from(i.is_multiple_of(50));
    (x, (0..n).map(is_rare).collect())
}

/// Rows in the order of their first coordinate.
fn sorted((x, labels): (Array2<f64>, Vec<usize>)) -> (Array2<f64>, Vec<usize>) {
    let mut order: Vec<usize> = (0..x.nrows()).collect();
    order.sort_by(|i, j| x[[*i, 0]].total_cmp(&x[[*j, 0]]));
    (x.select(Axis(0), &order), order.iter().map(|i| labels[*i]).collect())
}

#[test]
fn many_rows_of_two_classes_are_at_their_minimum() {
    let map = trigonometric::<f64>(20, 1.2);
    // Rows from which second derivatives are kept on, and rows from which a fit begins with a sample on.
    for n in [2048, 33_000] {
        for (place, (x, labels)) in [labelled(n, 2), sorted(labelled(n, 2)), rare(n)].into_iter().enumerate()
        {
            let phi = features(&map, &x);
            // One row counts much more than the others, and some do not count.
            let mut weights = Array1::from_shape_fn(n, |i| (i % 3) as f64);
            weights[n / 2] = 1e3;
            for (lambda, weights) in [(1e-4, Array1::ones(n)), (1.0, weights)] {
                let targets = Targets::from(&labels).with_weights(&weights).unwrap();
                let fit = Glm::logistic(map.clone(), 2).unwrap().fit(&x, targets, lambda).unwrap();
                let pull = |i: usize, eta: f64| 1.0 / (1.0 + (-eta).exp()) - labels[i] as f64;
                let flat = slope_of(&fit, &phi, &weights, pull);
                assert!(flat < FLAT, "{n} rows, {place}, λ = {lambda}: {flat:e} after {}", fit.passes());
            }
        }
    }
}

#[test]
fn many_counts_and_hinges_are_at_their_minimum() {
    let (n, map) = (33_000, trigonometric::<f64>(20, 1.2));
    let ((x, labels), ones) = (labelled::<f64>(n, 2), Array1::ones(n));
    let phi = features(&map, &x);
    let y = Array1::from_shape_fn(n, |i| {
        (2.0 * (1.5 * x[[i, 0]]).exp() * (1.0 + (7.3 * i as f64).sin())).round()
    });
    let fit = Glm::poisson(map.clone()).unwrap().fit(&x, &y, 0.1).unwrap();
    let flat = slope_of(&fit, &phi, &ones, |i, eta| eta.exp() - y[i]);
    assert!(flat < FLAT, "counts: {flat:e}");
    let fit = Glm::squared_hinge(map).unwrap().fit(&x, &labels, 0.1).unwrap();
    let sign = |i: usize| 2.0 * labels[i] as f64 - 1.0;
    let flat = slope_of(&fit, &phi, &ones, |i, eta| -2.0 * sign(i) * (1.0 - sign(i) * eta).max(0.0));
    assert!(flat < FLAT, "hinge: {flat:e}");
}

/// A point that has no features is named, wherever it is and whatever its weight is: in a sample, in none, and last.
#[test]
fn points_without_features_are_named() {
    let n = 33_000;
    let ((x, labels), map) = (labelled::<f64>(n, 2), trigonometric::<f64>(10, 1.2));
    for row in [0, 700, 1500, n - 1] {
        let mut far = x.clone();
        far[[row, 0]] = 1e200;
        for weight in [1.0, 0.0] {
            let mut weights = Array1::ones(n);
            weights[row] = weight;
            let targets = Targets::from(&labels).with_weights(&weights).unwrap();
            let error = Glm::logistic(map.clone(), 2).unwrap().fit(&far, targets, 1.0).unwrap_err();
            assert!(matches!(error, Error::NotFinite { row: found, .. } if found == row), "{row}: {error}");
        }
    }
}

/// Samples without a class, or with a class only in a row of weight 0, or of nearly no weight, do not decide.
#[test]
fn samples_that_say_nothing_are_left_out() {
    let (n, map) = (33_000, trigonometric::<f64>(10, 1.2));
    let (x, mut labels) = labelled::<f64>(n, 2);
    let phi = features(&map, &x);
    // The second class is outside all blocks of samples: each has 512 rows, and the larger one has a block for each 2100 rows.
    labels.iter_mut().enumerate().for_each(|(i, label)| *label *= usize::from((1000..1600).contains(&i)));
    labels[0] = 1;
    let mut weights = Array1::ones(n);
    weights[0] = 0.0;
    let mut heavy = Array1::ones(n);
    heavy[1200] = 1e20;
    for weights in [weights, heavy] {
        let targets = Targets::from(&labels).with_weights(&weights).unwrap();
        let fit = Glm::logistic(map.clone(), 2).unwrap().fit(&x, targets, 1.0).unwrap();
        let flat = slope_of(&fit, &phi, &weights, |i, eta| 1.0 / (1.0 + (-eta).exp()) - labels[i] as f64);
        assert!(flat < FLAT, "{flat:e}");
    }
}
