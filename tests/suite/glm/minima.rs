//! Fits against the definition: the loss is convex, so that a model without slope is its minimum.

use ndarray::{Array1, Array2, Axis};
use random_features::apply::{Glm, GlmFit, Standardisation};
use random_features::{Error, Real, Targets};

use super::{features, labelled, scores, slope, trigonometric, weights_with_zeros};

fn sigmoid(eta: f64) -> f64 {
    1.0 / (1.0 + (-eta).exp())
}

/// The largest slope that rounding leaves: of f64 sums of features, whatever the scalar of these is.
const FLAT: f64 = 1e-7;

/// The slope of a logistic fit of two classes, relative to its terms.
fn logistic_slope<T: Real>(
    fit: &GlmFit<T>,
    features: &Array2<f64>,
    (labels, weights): (&[usize], &Array1<f64>),
    has_intercept: bool,
) -> f64 {
    let mut pull = scores(fit.model(), features).mapv(sigmoid);
    pull.iter_mut().zip(labels).zip(weights).for_each(|((p, y), w)| *p = w * (*p - *y as f64));
    let mut features = features.clone();
    if !has_intercept {
        let last = features.ncols() - 1;
        features.column_mut(last).fill(0.0);
    }
    slope(fit.model(), &features, &pull, fit.lambda())
}

fn two_classes<T: Real>(n: usize, lambda: f64) {
    let ((x, labels), map) = (labelled::<T>(n, 2), trigonometric::<T>(12, 1.2));
    let (phi, weights) = (features(&map, &x), weights_with_zeros(n));
    for has_intercept in [true, false] {
        let model = Glm::logistic(map.clone(), 2).unwrap();
        let model = if has_intercept { model } else { model.without_intercept() };
        let targets = Targets::from(&labels).with_weights(&weights).unwrap();
        let fit = model.fit(&x, targets, lambda).unwrap();
        let slope = logistic_slope(&fit, &phi, (&labels, &weights), has_intercept);
        assert!(slope < FLAT, "{n} rows, λ = {lambda}: {slope:e}");
        // The loss and the penalty, by their definition.
        let eta = scores(fit.model(), &phi);
        let of_row = |((eta, y), w): ((&f64, &usize), &f64)| w * ((1.0 + eta.exp()).ln() - *y as f64 * eta);
        let mut loss: f64 = eta.iter().zip(&labels).zip(&weights).map(of_row).sum();
        loss += 0.5 * lambda * fit.model().weights().iter().map(|b| b * b).sum::<f64>();
        assert!((fit.loss() / loss - 1.0).abs() < 1e-5, "{} and {loss}", fit.loss());
    }
}

#[test]
fn two_classes_are_at_their_minimum() {
    for lambda in [1e-3, 0.3, 1e4] {
        two_classes::<f64>(200, lambda);
        two_classes::<f32>(200, lambda);
        // Fewer rows than features.
        two_classes::<f64>(15, lambda);
        two_classes::<f32>(15, lambda);
    }
}

/// A fit of many rows begins with a sample, and its second derivatives serve several steps.
#[test]
fn many_rows_are_at_their_minimum() {
    let n = 40_000;
    let ((x, labels), map) = (labelled::<f64>(n, 2), trigonometric(10, 1.2));
    let fit = Glm::logistic(map.clone(), 2).unwrap().fit(&x, &labels, 1.0).unwrap();
    let slope = logistic_slope(&fit, &features(&map, &x), (&labels, &Array1::ones(n)), true);
    assert!(slope < FLAT, "{slope:e}");
    // Sorted labels, so that the first rows are of one class.
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by_key(|i| labels[*i]);
    let sorted: Vec<usize> = order.iter().map(|i| labels[*i]).collect();
    let again = Glm::logistic(map, 2).unwrap().fit(&x.select(Axis(0), &order), &sorted, 1.0).unwrap();
    let difference = &again.model().weights() - &fit.model().weights();
    assert!(difference.iter().all(|d| d.abs() < 1e-6));
}

#[test]
fn separable_classes_stay_finite() {
    let x = Array2::from_shape_fn((40, 3), |(i, k)| (i as f64 - 19.5) * 0.1 + 0.01 * k as f64);
    let labels: Vec<usize> = (0..40).map(|i| usize::from(i >= 20)).collect();
    for lambda in [1e-9, 1e-3] {
        let map = trigonometric::<f64>(8, 2.0);
        let fit = Glm::logistic(map, 2).unwrap().fit(&x, &labels, lambda).unwrap();
        assert_eq!(fit.model().classify(&x).unwrap(), labels);
        let p = fit.model().probabilities(&x).unwrap();
        assert!(p.iter().chain(&fit.model().weights()).all(|v| v.is_finite()));
    }
}

#[test]
fn offsets_and_constant_columns_need_a_standardisation() {
    let (near, labels) = labelled::<f64>(150, 2);
    let mut far = near.mapv(|v| v + 1e9);
    far.column_mut(2).fill(7.0);
    let mut flat = near.clone();
    flat.column_mut(2).fill(0.0);
    let map = trigonometric::<f64>(10, 1.0);
    let fit = |x: &Array2<f64>| {
        let inputs = Standardisation::of(x).unwrap();
        let model = Glm::logistic(map.clone(), 2).unwrap().with_standardisation(inputs).unwrap();
        model.fit(x, &labels, 0.1).unwrap().model().probabilities(x).unwrap()
    };
    assert!((fit(&far) - fit(&flat)).iter().all(|d| d.abs() < 1e-4));
}

#[test]
fn weights_are_repeated_rows() {
    let (x, labels) = labelled::<f64>(60, 3);
    let counts = Array1::from_shape_fn(60, |i| (i % 3) as f64);
    let rows: Vec<usize> = (0..60).flat_map(|i| std::iter::repeat_n(i, i % 3)).collect();
    let repeated: Vec<usize> = rows.iter().map(|i| labels[*i]).collect();
    let model = Glm::logistic(trigonometric(6, 1.0), 3).unwrap();
    let weighted = Targets::from(&labels).with_weights(&counts).unwrap();
    let (one, two) = (
        model.fit(&x, weighted, 0.2).unwrap(),
        model.fit(&x.select(Axis(0), &rows), &repeated, 0.2).unwrap(),
    );
    assert!((&one.model().weights() - &two.model().weights()).iter().all(|d| d.abs() < 1e-9));
}

/// Newton's method, and conjugate gradients where there are too many weights.
#[test]
fn several_classes_are_at_their_minimum() {
    for (classes, m, lambda) in [(3, 8, 0.4), (4, 8, 1e-3), (4, 300, 0.5)] {
        let n = 240;
        let ((x, labels), map) = (labelled::<f64>(n, classes), trigonometric::<f64>(m, 1.2));
        let (phi, weights) = (features(&map, &x), weights_with_zeros(n));
        let targets = Targets::from(&labels).with_weights(&weights).unwrap();
        let fit = Glm::logistic(map, classes).unwrap().fit(&x, targets, lambda).unwrap();
        let eta = scores(fit.model(), &phi);
        let mut pull = eta.clone();
        for (i, mut row) in pull.rows_mut().into_iter().enumerate() {
            let total: f64 = row.iter().map(|eta| eta.exp()).sum();
            row.mapv_inplace(|eta| weights[i] * eta.exp() / total);
            row[labels[i]] -= weights[i];
        }
        let slope = slope(fit.model(), &phi, &pull, lambda);
        // The intercepts' slopes are sums whose terms cancel.
        assert!(slope < 1e-5, "{classes} classes, m = {m}: {slope:e} after {} passes", fit.passes());
        assert!(fit.model().intercepts().sum().abs() < 1e-9);
        let p = fit.model().probabilities(&x).unwrap();
        let rows = p.rows().into_iter().zip(pull.rows()).enumerate();
        for (i, (p, pull)) in rows.filter(|(i, _)| weights[*i] > 0.0) {
            let own = pull[labels[i]] / weights[i] + 1.0;
            assert!((p[labels[i]] - own).abs() < 1e-9);
        }
    }
}

#[test]
fn counts_are_at_their_minimum() {
    let (x, _) = labelled::<f64>(150, 2);
    let rate = |i: usize| 50.0 * (0.8 * x[[i, 0]]).exp();
    let y = Array1::from_shape_fn(150, |i| (rate(i) * (1.0 + 0.3 * (i as f64).sin())).round());
    let (map, weights) = (trigonometric::<f64>(10, 1.5), weights_with_zeros(150));
    let phi = features(&map, &x);
    let targets = Targets::from(&y).with_weights(&weights).unwrap();
    let fit = Glm::poisson(map.clone()).unwrap().fit(&x, targets, 0.5).unwrap();
    let mut pull = scores(fit.model(), &phi).mapv(f64::exp);
    pull.iter_mut().zip(&y).zip(&weights).for_each(|((p, y), w)| *p = w * (*p - y));
    let flat = slope(fit.model(), &phi, &pull, 0.5);
    assert!(flat < FLAT, "{flat:e}");
    // Exposures are weights of rates.
    let exposure = Array1::from_shape_fn(150, |i| 1.0 + (i % 4) as f64);
    let rates = &y / &exposure;
    let targets = Targets::from(&rates).with_weights(&exposure).unwrap();
    let fit = Glm::poisson(map).unwrap().fit(&x, targets, 0.5).unwrap();
    let mut pull = scores(fit.model(), &phi);
    pull.iter_mut().zip(&y).zip(&exposure).for_each(|((eta, y), e)| *eta = (*eta + e.ln()).exp() - y);
    let flat = slope(fit.model(), &phi, &pull, 0.5);
    assert!(flat < FLAT, "{flat:e}");
}

#[test]
fn the_squared_hinge_is_at_its_minimum() {
    let ((x, labels), map) = (labelled::<f64>(150, 2), trigonometric::<f64>(10, 1.5));
    let (phi, weights) = (features(&map, &x), weights_with_zeros(150));
    let targets = Targets::from(&labels).with_weights(&weights).unwrap();
    let fit = Glm::squared_hinge(map).unwrap().fit(&x, targets, 0.5).unwrap();
    let mut pull = scores(fit.model(), &phi);
    for ((eta, label), weight) in pull.iter_mut().zip(&labels).zip(&weights) {
        let y = 2.0 * *label as f64 - 1.0;
        *eta = -2.0 * weight * y * (1.0 - y * *eta).max(0.0);
    }
    let flat = slope(fit.model(), &phi, &pull, 0.5);
    assert!(flat < FLAT, "{flat:e}");
}

#[test]
fn absent_classes_have_probability_0() {
    let (x, labels) = labelled::<f64>(80, 2);
    let far: Vec<usize> = labels.iter().map(|label| 3 * label + 1).collect();
    let map = trigonometric::<f64>(8, 1.0);
    let two = Glm::logistic(map.clone(), 2).unwrap().fit(&x, &labels, 0.1).unwrap();
    let six = Glm::logistic(map.clone(), 6).unwrap().fit(&x, &far, 0.1).unwrap();
    assert_eq!(six.model().classes(), [1, 4]);
    let (p, q) = (two.model().probabilities(&x).unwrap(), six.model().probabilities(&x).unwrap());
    assert_eq!((p.column(0), p.column(1)), (q.column(1), q.column(4)));
    assert!([0, 2, 3, 5].iter().all(|class| q.column(*class).iter().all(|p| *p == 0.0)));
    // One class is certain.
    let only = Glm::logistic(map, 3).unwrap().search(&x, &vec![2; 80]).unwrap();
    assert_eq!(only.model().classify(&x).unwrap(), vec![2; 80]);
    assert!(only.model().probabilities(&x).unwrap().column(2).iter().all(|p| *p == 1.0));
}

#[test]
fn bits_are_the_same_on_any_number_of_threads() {
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let (x, labels) = labelled::<f32>(9000, 2);
            let two = Glm::logistic(trigonometric(40, 1.0), 2).unwrap().fit(&x, &labels, 0.5).unwrap();
            let (x, labels) = labelled::<f32>(1500, 4);
            let four = Glm::logistic(trigonometric(300, 1.0), 4).unwrap().fit(&x, &labels, 5.0).unwrap();
            [two, four].map(|fit| fit.model().weights().to_owned())
        })
    };
    assert_eq!(on(1), on(3));
}

/// Counts of rows on a line, near to a wave.
fn waves(n: usize) -> (Array2<f64>, Array1<f64>) {
    let x = Array2::from_shape_fn((n, 1), |(i, _)| 4.0 * i as f64 / n as f64);
    let y = x.column(0).mapv(|x| (5.0 * (1.5 * x.sin()).exp() + 2.0 * (40.0 * x).sin()).round().max(0.0));
    (x, y)
}

/// Rates change with the unit of exposures, and the minimum is found in each: the loss itself depends on the unit.
#[test]
fn rates_follow_the_unit_of_exposures() {
    let ((x, counts), map) = (waves(400), super::line_map(0.7));
    let rates = |unit: f64| {
        let (y, exposures) = (&counts / unit, Array1::from_elem(400, unit));
        let targets = Targets::from(&y).with_weights(&exposures).unwrap();
        let fit = Glm::poisson(map.clone()).unwrap().fit(&x, targets, 1.0).unwrap();
        fit.model().rates(&x).unwrap() * unit
    };
    let plain = rates(1.0);
    assert!((plain.sum() / counts.sum() - 1.0).abs() < 1e-9);
    for unit in [1e-12, 1e-6, 1e6, 1e10, 1e12] {
        assert!((rates(unit) / &plain - 1.0).iter().all(|d| d.abs() < 1e-7), "unit {unit:e}");
    }
}

/// Without an intercept, the first step from a rate of 1 towards a count y is y, where ln y is right. Counts that are too large for
/// the iteration are an error.
#[test]
fn large_counts_are_reached_without_an_intercept() {
    let x = waves(200).0;
    for scale in [1e3, 1e9, 1e12, 1e13, 1e15] {
        let y = x.column(0).mapv(|x| scale * (1.0 + x));
        let model = Glm::poisson(super::line_map(0.7)).unwrap().without_intercept();
        let fit = match model.fit(&x, &y, 1e-3) {
            Err(Error::Factorisation { .. } | Error::Singular { .. }) if scale > 1e12 => continue,
            fit => fit.unwrap(),
        };
        let ratios = fit.model().rates(&x).unwrap() / &y;
        assert!(ratios.iter().all(|ratio| (ratio - 1.0).abs() < 0.05), "counts {scale:e}: {ratios}");
    }
}

/// A count may be small beside the largest count by more than the digits at which the iteration ends. Where rounding hides it, the fit
/// is an error.
#[test]
fn small_counts_are_reached_beside_huge_ones() {
    let x = Array2::from_shape_fn((40, 1), |(i, _)| if i < 20 { 0.0 } else { 2.0 });
    for huge in [1e8, 1e10, 1e12, 1e14] {
        let y = Array1::from_shape_fn(40, |i| if i < 20 { huge } else { 50.0 });
        let fit = match Glm::poisson(super::line_map(0.5)).unwrap().fit(&x, &y, 1e-3) {
            Err(Error::Singular { .. }) if huge > 1e11 => continue,
            fit => fit.unwrap(),
        };
        let rates = fit.model().rates(&x).unwrap();
        assert!((rates[0] / huge - 1.0).abs() < 1e-3 && (rates[30] / 50.0 - 1.0).abs() < 0.1, "{rates}");
    }
}
