//! Sums of passes: parts merge to the bit, and lead to the fit of all rows.

use ndarray::s;
use random_features::apply::{Glm, GlmSums};
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
    let factor = random_features::linalg::Backend::default().cholesky(&hessian).unwrap();
    let expected = (&phi * &factor.solve(&phi.t()).unwrap().t()).sum_axis(ndarray::Axis(1));
    let found = fit.variances(&x).unwrap();
    assert!((found / expected - 1.0).iter().all(|d| d.abs() < 1e-8));
    // A mean is less certain than the probability at the mean.
    let means = fit.mean_probabilities(&x).unwrap();
    let nearer = |(mean, p): (&f64, &f64)| (mean - 0.5).abs() <= (p - 0.5).abs() + 1e-12;
    assert!(means.column(1).iter().zip(&p).all(nearer));
}
