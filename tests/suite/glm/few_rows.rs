//! Fewer rows than features: the fit in the coordinates of the rows against the fit of all features, and against the definition.

use ndarray::{Array1, Array2, Axis};
use random_features::apply::{Criterion, Glm, GlmFit};
use random_features::{Map, Real, Targets};

use super::{features, labelled, scores, trigonometric};

/// The number of copies of a row, each with this part of its weight: there are more rows than features then, and the minimum stays.
const COPIES: usize = 16;

/// Models of two classes, three classes, the hinge and counts, with a target for each row.
fn models<T: Real>(map: &Map<T>, n: usize) -> Vec<(Glm<T>, Array1<f64>)> {
    let numbers = |classes: usize| Array1::from_iter(labelled::<T>(n, classes).1).mapv(|y| y as f64);
    vec![
        (Glm::logistic(map.clone(), 2).unwrap(), numbers(2)),
        (Glm::logistic(map.clone(), 2).unwrap().without_intercept(), numbers(2)),
        (Glm::logistic(map.clone(), 3).unwrap(), numbers(3)),
        (Glm::squared_hinge(map.clone()).unwrap(), numbers(2)),
        (Glm::poisson(map.clone()).unwrap(), numbers(6)),
    ]
}

fn fit<T: Real>(
    model: &Glm<T>,
    x: &Array2<T>,
    (y, weights): (&Array1<f64>, &Array1<f64>),
    lambda: f64,
) -> GlmFit<T> {
    let labels: Vec<usize> = y.iter().map(|y| *y as usize).collect();
    let counts = y.mapv(T::narrow);
    let is_counted = model.classes().is_empty();
    let targets = if is_counted { Targets::from(&counts) } else { Targets::from(&labels) };
    model.fit(x, targets.with_weights(weights).unwrap(), lambda).unwrap()
}

fn agrees<T: Real>(tolerance: f64) {
    let n = 14;
    let (map, x) = (trigonometric::<T>(60, 1.2), labelled::<T>(n, 2).0);
    let weights = Array1::from_shape_fn(n, |i| 1.0 + (i % 4) as f64);
    let rows: Vec<usize> = (0..n).flat_map(|i| std::iter::repeat_n(i, COPIES)).collect();
    let copies = x.select(Axis(0), &rows);
    for (place, (model, y)) in models(&map, n).into_iter().enumerate() {
        for lambda in [1e-3, 0.5] {
            let few = fit(&model, &x, (&y, &weights), lambda);
            let parts = weights.select(Axis(0), &rows) / COPIES as f64;
            let all = fit(&model, &copies, (&y.select(Axis(0), &rows), &parts), lambda);
            let size = all.model().weights().iter().fold(0.0, |size: f64, weight| size.max(weight.abs()));
            let difference = &few.model().weights() - &all.model().weights();
            let largest = difference.iter().fold(0.0, |largest: f64, d| largest.max(d.abs()));
            assert!(size > 0.0 && largest < tolerance * size, "{place}, λ = {lambda}: {largest:e} of {size}");
            let intercepts = &few.model().intercepts() - &all.model().intercepts();
            assert!(intercepts.iter().all(|d| d.abs() < 100.0 * tolerance), "{place}: {intercepts}");
            assert!((few.loss() / all.loss() - 1.0).abs() < tolerance, "{place}");
        }
    }
}

#[test]
fn few_rows_have_the_minimum_of_all_features() {
    agrees::<f64>(1e-6);
    agrees::<f32>(1e-3);
}

/// A⁻¹ by Gauss and Jordan, for a positive definite A.
fn inverse(mut a: Array2<f64>) -> Array2<f64> {
    let n = a.nrows();
    let mut out = Array2::<f64>::eye(n);
    for pivot in 0..n {
        let factor = a[[pivot, pivot]].recip();
        for matrix in [&mut a, &mut out] {
            matrix.row_mut(pivot).mapv_inplace(|v| v * factor);
        }
        for row in (0..n).filter(|row| *row != pivot) {
            let factor = a[[row, pivot]];
            for matrix in [&mut a, &mut out] {
                let own = matrix.row(pivot).to_owned();
                matrix.row_mut(row).scaled_add(-factor, &own);
            }
        }
    }
    out
}

/// The mean loss at rows without their own step, and minus the log evidence, by their definitions.
fn by_definition(fit: &GlmFit<f64>, phi: &Array2<f64>, labels: &[usize]) -> [f64; 2] {
    let (n, width) = phi.dim();
    let eta = scores(fit.model(), phi).column(0).to_owned();
    let p = eta.mapv(|eta| 1.0 / (1.0 + (-eta).exp()));
    let mut a =
        Array2::from_diag(&Array1::from_shape_fn(width, |f| if f + 1 < width { fit.lambda() } else { 0.0 }));
    for (row, p) in phi.rows().into_iter().zip(&p) {
        for (f, g) in (0..width).flat_map(|f| (0..width).map(move |g| (f, g))) {
            a[[f, g]] += p * (1.0 - p) * row[f] * row[g];
        }
    }
    let log_determinant = {
        let mut rest = a.clone();
        (0..width).fold(0.0, |sum: f64, pivot| {
            let own = rest.row(pivot).to_owned();
            for row in pivot + 1..width {
                let factor = rest[[row, pivot]] / own[pivot];
                rest.row_mut(row).scaled_add(-factor, &own);
            }
            sum + own[pivot].ln()
        })
    };
    let inverse = inverse(a);
    let loss = |eta: f64, label: usize| (1.0 + eta.exp()).ln() - label as f64 * eta;
    let left_out = (0..n).map(|i| {
        let row = phi.row(i);
        let variance = row.dot(&inverse.dot(&row));
        let pull = labels[i] as f64 - p[i];
        loss(eta[i] - variance * pull / (1.0 - p[i] * (1.0 - p[i]) * variance), labels[i])
    });
    let penalty = 0.5 * fit.lambda() * fit.model().weights().iter().map(|b| b * b).sum::<f64>();
    let total = (0..n).map(|i| loss(eta[i], labels[i])).sum::<f64>() + penalty;
    let evidence = 0.5 * (width - 1) as f64 * fit.lambda().ln() - total - 0.5 * log_determinant
        + 0.5 * std::f64::consts::TAU.ln();
    [left_out.sum::<f64>() / n as f64, -evidence]
}

#[test]
fn searches_of_few_rows_have_errors_by_their_definition() {
    let ((x, labels), map) = (labelled::<f64>(20, 2), trigonometric::<f64>(30, 1.2));
    let (model, phi) = (Glm::logistic(map.clone(), 2).unwrap(), features(&map, &x));
    for (place, criterion) in [Criterion::LeaveOneOut, Criterion::LogEvidence].iter().enumerate() {
        let found = model.search_by(criterion, &x, &labels).unwrap();
        assert!(found.errors().len() > 4);
        for (lambda, error) in found.errors() {
            let fit = model.fit(&x, &labels, *lambda).unwrap();
            let expected = by_definition(&fit, &phi, &labels)[place];
            assert!((error - expected).abs() < 1e-6, "λ = {lambda}: {error} and {expected}");
        }
        // The search ends with the posterior of all features.
        let again = model.fit(&x, &labels, found.lambda()).unwrap().with_posterior(&x, &labels).unwrap();
        assert!((found.log_evidence().unwrap() - again.log_evidence().unwrap()).abs() < 1e-6);
        let new = labelled::<f64>(40, 2).0;
        let difference = found.variances(&new).unwrap() - again.variances(&new).unwrap();
        assert!(difference.iter().all(|d| d.abs() < 1e-6));
    }
}

/// Rows that are copies of each other have fewer directions than rows.
#[test]
fn repeated_rows_are_few_directions() {
    let (x, labels) = labelled::<f64>(8, 2);
    let rows: Vec<usize> = (0..16).map(|i| i / 2).collect();
    let copies = x.select(Axis(0), &rows);
    let twice: Vec<usize> = rows.iter().map(|i| labels[*i]).collect();
    let model = Glm::logistic(trigonometric::<f64>(80, 1.2), 2).unwrap();
    let once = model.fit(&x, Targets::from(&labels).with_weights(&Array1::from_elem(8, 2.0)).unwrap(), 0.1);
    let difference =
        &model.fit(&copies, &twice, 0.1).unwrap().model().weights() - &once.unwrap().model().weights();
    assert!(difference.iter().all(|d| d.abs() < 1e-7));
}

/// A single row, whose target is a distribution over classes, has a model in its one direction.
#[test]
fn one_row_is_enough() {
    let (x, y) = (labelled::<f64>(1, 2).0, ndarray::arr2(&[[0.2, 0.3, 0.5]]));
    let map = trigonometric::<f64>(20, 1.2);
    let fit = Glm::logistic(map.clone(), 3).unwrap().fit(&x, &y, 1e-3).unwrap();
    let p = fit.model().probabilities(&x).unwrap();
    assert!((&p - &y).iter().all(|d| d.abs() < 1e-6), "{p}");
    let phi = features(&map, &x);
    let again = scores(fit.model(), &phi).mapv(f64::exp);
    assert!((&again / again.sum() - &p).iter().all(|d| d.abs() < 1e-9));
}

/// Rows that do not count change nothing, though coordinates are not taken then.
#[test]
fn rows_of_weight_0_change_nothing() {
    let ((x, labels), map) = (labelled::<f64>(14, 2), trigonometric::<f64>(80, 1.2));
    let model = Glm::logistic(map, 2).unwrap();
    let weights = Array1::from_shape_fn(14, |i| if i < 10 { 1.0 } else { 0.0 });
    let weighted = model.fit(&x, Targets::from(&labels).with_weights(&weights).unwrap(), 0.1).unwrap();
    let rest = model.fit(x.slice(ndarray::s![..10, ..]), &labels[..10], 0.1).unwrap();
    let difference = &weighted.model().weights() - &rest.model().weights();
    assert!(difference.iter().all(|d| d.abs() < 1e-7));
}
