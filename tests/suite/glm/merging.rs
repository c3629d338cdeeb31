//! Sums of passes: parts merge to the bit, and lead to the fit of all rows.

use ndarray::{Array2, s};
use random_features::apply::{Glm, GlmStream, GlmSums, Standardisation};
use random_features::linalg::Backend;
use random_features::workbench::factors::Factorise;
use random_features::{Error, Real, Targets};

use super::{labelled, trigonometric, weights_with_zeros};

fn parts<T: Real>(classes: usize) {
    let n = 9000;
    let (x, labels) = labelled::<T>(n, classes);
    let weights = weights_with_zeros(n);
    let mut model = Glm::logistic(trigonometric::<T>(9, 1.2), classes).unwrap();
    let sums_of = |model: &Glm<T>, rows: std::ops::Range<usize>| {
        let mut sums = GlmSums::at(model).unwrap().with_first_row(rows.start as u64).unwrap();
        let own = weights.slice(s![rows.clone()]).to_owned();
        let labels = &labels[rows.clone()];
        let targets = Targets::of_labels(labels, classes).unwrap().with_weights(&own).unwrap();
        sums.update(x.slice(s![rows, ..]), targets).unwrap();
        sums
    };
    let mut losses = Vec::new();
    for _ in 0..9 {
        let whole = sums_of(&model, 0..n);
        // Chunks begin at multiples of 4096 rows.
        let mut merged = sums_of(&model, 8192..n);
        merged.merge(&sums_of(&model, 0..4096)).unwrap();
        merged.merge(&sums_of(&model, 4096..8192)).unwrap();
        assert_eq!(
            (merged.rows(), merged.row_ranges()),
            (n as u64, vec![std::ops::Range { start: 0, end: n as u64 }])
        );
        let next = merged.step(0.5).unwrap();
        assert_eq!(next.weights(), whole.step(0.5).unwrap().weights());
        assert!(matches!(merged.merge(&sums_of(&model, 0..10)), Err(Error::Row { row: 0, .. })));
        assert!(matches!(merged.merge(&sums_of(&next, 9000 - 1..n)), Err(Error::Merge { .. })));
        losses.push(merged.loss(0.5).unwrap());
        model = next;
    }
    assert!(losses.windows(2).all(|pair| pair[1] <= pair[0] * (1.0 + 1e-12)), "{losses:?}");
    let targets = Targets::from(&labels).with_weights(&weights).unwrap();
    let alone = Glm::logistic(model.map().clone(), classes).unwrap().fit(&x, targets, 0.5).unwrap();
    let difference = &alone.model().weights() - &model.weights();
    assert!(difference.iter().all(|d| d.abs() < 1e-6), "{difference}");
}

#[test]
fn parts_merge_to_the_bit() {
    parts::<f64>(2);
    parts::<f32>(2);
    parts::<f64>(3);
}

#[test]
fn a_class_that_no_part_has_is_named() {
    let (x, labels) = labelled::<f64>(50, 2);
    let model = Glm::logistic(trigonometric(4, 1.0), 3).unwrap();
    let mut sums = GlmSums::at(&model).unwrap();
    assert!(matches!(sums.step(1.0), Err(Error::NoData { .. })));
    sums.update(&x, &labels).unwrap();
    assert!(matches!(sums.step(1.0), Err(Error::Entry { row: 2, .. })));
}

#[test]
fn the_sums_at_the_minimum_are_its_posterior() {
    let (x, labels) = labelled::<f64>(300, 2);
    let fit = Glm::logistic(trigonometric(10, 1.0), 2).unwrap().fit(&x, &labels, 0.3).unwrap();
    let fit = fit.with_posterior(&x, &labels).unwrap();
    let mut sums = GlmSums::at(fit.model()).unwrap();
    sums.update(x.slice(s![..100, ..]), &labels[..100]).unwrap();
    sums.update(x.slice(s![100.., ..]), &labels[100..]).unwrap();
    let joined = sums.fit(0.3).unwrap();
    let relative = joined.log_evidence().unwrap() / fit.log_evidence().unwrap() - 1.0;
    assert!(relative.abs() < 1e-9 && (joined.loss() / fit.loss() - 1.0).abs() < 1e-9);
    // The variance of η by its definition.
    let phi = super::features(fit.model().map(), &x);
    let p = fit.model().probabilities(&x).unwrap().column(1).to_owned();
    let weighted = &phi * &p.mapv(|p| p * (1.0 - p)).insert_axis(ndarray::Axis(1));
    let mut hessian = phi.t().dot(&weighted);
    (0..phi.ncols() - 1).for_each(|f| hessian[[f, f]] += 0.3);
    let factor = Backend::default().cholesky(&hessian).unwrap();
    let expected = (&phi * &factor.solve(&phi.t()).unwrap().t()).sum_axis(ndarray::Axis(1));
    let found = fit.variances(&x).unwrap();
    assert!((found / expected - 1.0).iter().all(|d| d.abs() < 1e-8));
    // A mean is less certain than the probability at the mean.
    let means = fit.mean_probabilities(&x).unwrap();
    let nearer = |(mean, p): (&f64, &f64)| (mean - 0.5).abs() <= (p - 0.5).abs() + 1e-12;
    assert!(means.column(1).iter().zip(&p).all(nearer));
}

/// The integral by a rule that is fine beside the deviation, from far below to far above the width of the sigmoid.
#[test]
fn mean_probabilities_are_integrals() {
    let x = Array2::from_shape_fn((200, 1), |(i, _)| i as f64 / 50.0);
    let label = |i: usize| usize::from((i as f64 / 20.0 + 2.0 * ((i * i) as f64).sin()).sin() > 0.0);
    let labels: Vec<usize> = (0..200).map(label).collect();
    let at = Array2::from_shape_fn((60, 1), |(i, _)| -2.0 + 8.0 * i as f64 / 60.0);
    let mut largest = 0.0f64;
    for lambda in [10.0, 0.1, 1e-3, 1e-6] {
        let fit = Glm::logistic(super::line_map(0.5), 2).unwrap().fit(&x, &labels, lambda).unwrap();
        let fit = fit.with_posterior(&x, &labels).unwrap();
        let (means, variances) = (fit.mean_probabilities(&at).unwrap(), fit.variances(&at).unwrap());
        let eta = fit.model().scores(&at).unwrap();
        for i in 0..60 {
            let deviation = variances[i].sqrt();
            largest = largest.max(deviation);
            let step = (0.1f64).min(0.1 / deviation);
            let term = |k: i32| {
                let z = step * f64::from(k);
                step * (-0.5 * z * z).exp() / (1.0 + (-(eta[[i, 0]] + deviation * z)).exp())
            };
            let ends = (12.0 / step) as i32;
            let expected = (-ends..=ends).map(term).sum::<f64>() / std::f64::consts::TAU.sqrt();
            assert!((means[[i, 1]] - expected).abs() < 1e-10, "{} for {expected}", means[[i, 1]]);
            assert!((means[[i, 0]] + means[[i, 1]] - 1.0).abs() < 1e-12);
        }
    }
    assert!(largest > 20.0, "{largest}");
}

#[test]
fn the_posterior_of_other_rows_is_refused() {
    let (x, labels) = labelled::<f64>(120, 2);
    let model = Glm::logistic(trigonometric(10, 1.0), 2).unwrap();
    let fit = model.fit(&x, &labels, 0.3).unwrap();
    let fewer = fit.clone().with_posterior(x.slice(s![..60, ..]), &labels[..60]);
    assert!(matches!(fewer, Err(Error::Parameter { .. })));
    // As many rows, with the points in another order.
    let mut order: Vec<usize> = (0..120).collect();
    let shuffled = |order: &[usize]| x.select(ndarray::Axis(0), order);
    order.rotate_left(1);
    let others = fit.clone().with_posterior(&shuffled(&order), &labels);
    assert!(matches!(others, Err(Error::Parameter { .. })));
    let same: Vec<usize> = order.iter().map(|i| labels[*i]).collect();
    assert!(fit.clone().with_posterior(&shuffled(&order), &same).is_ok());
    let found = model.search(&x, &labels).unwrap();
    assert!(found.with_posterior(&x, &labels).is_ok());
}

/// Weights that balance classes say nothing of how often a row was seen; exposures do.
#[test]
fn weights_that_are_not_counts_have_no_evidence() {
    let (x, labels) = labelled::<f64>(200, 2);
    let model = Glm::logistic(trigonometric(10, 1.0), 2).unwrap();
    let balanced = || Targets::from(&labels).balanced().unwrap();
    let fit = model.fit(&x, balanced(), 0.1).unwrap().with_posterior(&x, balanced()).unwrap();
    assert!(matches!(fit.log_evidence(), Err(Error::Unsupported { .. })));
    assert!(fit.variances(&x).is_ok());
    let found = model.search(&x, balanced()).unwrap();
    assert!(matches!(found.log_evidence(), Err(Error::Unsupported { .. })));
    // Sums of parts know it too, in any order.
    let weights = balanced();
    let mut sums = GlmSums::at(fit.model()).unwrap();
    sums.update(&x, weights).unwrap();
    assert!(matches!(sums.fit(0.1).unwrap().log_evidence(), Err(Error::Unsupported { .. })));
    let counts = ndarray::Array1::from_shape_fn(200, |i| (i % 7) as f64);
    let exposures = ndarray::Array1::from_shape_fn(200, |i| 0.3 + 0.1 * (i % 5) as f64);
    let rates = &counts / &exposures;
    let targets = || Targets::from(&rates).with_weights(&exposures).unwrap();
    let poisson = Glm::poisson(trigonometric(10, 1.0)).unwrap();
    let fit = poisson.fit(&x, targets(), 0.1).unwrap().with_posterior(&x, targets()).unwrap();
    assert!(fit.log_evidence().unwrap().is_finite());
}

#[test]
fn what_differs_is_named() {
    let map = |ell| trigonometric::<f64>(4, ell);
    let model = || Glm::logistic(map(1.0), 2).unwrap();
    let inputs = Standardisation::new(vec![0.0; 3], vec![2.0; 3]).unwrap();
    let others = [
        (Glm::logistic(map(1.5), 2).unwrap(), "their maps differ"),
        (model().with_standardisation(inputs).unwrap(), "their standardisations differ"),
        (Glm::squared_hinge(map(1.0)).unwrap(), "their losses differ"),
        (model().without_intercept(), "only one of them has an intercept"),
        (Glm::logistic(map(1.0), 3).unwrap(), "their classes differ"),
    ];
    let stream = |model: &Glm<f64>, lambda| GlmStream::new(model, lambda).unwrap();
    for (other, reason) in &others {
        let of_streams = stream(&model(), 1.0).merge(&stream(other, 1.0)).unwrap_err();
        let of_sums = GlmSums::at(&model()).unwrap().merge(&GlmSums::at(other).unwrap()).unwrap_err();
        for error in [of_streams, of_sums] {
            assert!(matches!(error, Error::Merge { reason: found } if found.starts_with(reason)), "{error}");
        }
    }
    let error = stream(&model(), 1.0).merge(&stream(&model(), 2.0)).unwrap_err();
    assert_eq!(error, Error::Merge { reason: "their λ differ" });
}
