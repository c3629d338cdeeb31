//! Inputs that have no model are refused, with what is wrong.

use ndarray::{Array1, Array2, ArrayView1, arr1};
use random_features::apply::{Glm, GlmStream, GlmSums, Standardisation};
use random_features::extend::Facts;
use random_features::{Error, Real, Targets};

use super::{labelled, trigonometric};
use crate::common::own_map::own_map;

fn logistic(classes: usize) -> Glm<f64> {
    Glm::logistic(trigonometric(5, 1.0), classes).unwrap()
}

/// Rates that a scalar cannot hold are its largest number.
#[test]
fn rates_beyond_the_scalar() {
    fn rate<T: Real>(at: f64) -> T {
        let write = |x: ArrayView1<'_, T>, values: &mut [T], _: &mut [f64]| values[0] = x[0];
        let map = own_map(Facts::new(1, vec![1]).symmetric(), write).unwrap();
        let x = Array2::from_shape_fn((50, 1), |(i, _)| T::narrow(i as f64 / 25.0));
        let y = x.column(0).mapv(|x| T::narrow((2.0 * x.widen()).exp().round()));
        let fit = Glm::poisson(map).unwrap().fit(&x, &y, 1e-3).unwrap();
        fit.model().rates(&Array2::from_elem((1, 1), T::narrow(at))).unwrap()[0]
    }
    assert!(rate::<f64>(100.0).is_finite() && rate::<f64>(100.0) > f64::from(f32::MAX));
    assert_eq!((rate::<f32>(100.0), rate::<f64>(1000.0)), (f32::MAX, f64::MAX));
}

/// Second derivatives that are lost in sums are missed by a search, and by a fit whose λ is no larger.
#[test]
fn weights_below_the_range_of_sums_are_refused() {
    let (x, labels) = labelled::<f64>(100, 2);
    let tiny = Array1::from_elem(100, 1e-291);
    let targets = || Targets::from(&labels).with_weights(&tiny).unwrap();
    let search = logistic(2).search(&x, targets()).map(drop);
    assert!(matches!(search, Err(Error::Parameter { .. })), "{search:?}");
    let fit = logistic(2).fit(&x, targets(), 1e-292).map(drop);
    assert!(matches!(fit, Err(Error::Singular { .. })), "{fit:?}");
}

#[test]
fn wrong_input_is_refused() {
    let (x, labels) = labelled::<f64>(30, 2);
    assert!(matches!(Glm::logistic(trigonometric::<f64>(5, 1.0), 1), Err(Error::Parameter { .. })));
    for lambda in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(logistic(2).fit(&x, &labels, lambda), Err(Error::Parameter { .. })));
        assert!(matches!(GlmStream::new(&logistic(2), lambda), Err(Error::Parameter { .. })));
    }
    assert!(matches!(logistic(2).fit(&x, &labels[..29], 1.0), Err(Error::Shape { .. })));
    assert!(matches!(logistic(2).fit(&Array2::zeros((30, 2)), &labels, 1.0), Err(Error::Shape { .. })));
    let mut large = labels.clone();
    large[7] = 2;
    assert!(matches!(logistic(2).fit(&x, &large, 1.0), Err(Error::Entry { row: 7, .. })));
    let mut broken = x.clone();
    broken[[3, 1]] = f64::NAN;
    assert!(matches!(logistic(2).fit(&broken, &labels, 1.0), Err(Error::NotFinite { row: 3, .. })));
    assert!(matches!(logistic(2).search(&broken, &labels), Err(Error::NotFinite { row: 3, .. })));
    let none = Array1::zeros(30);
    let weightless = Targets::from(&labels).with_weights(&none).unwrap();
    assert!(matches!(logistic(2).fit(&x, weightless, 1.0), Err(Error::NoData { .. })));
    let precise = Array1::ones(30);
    let precise = Targets::from(&labels).with_precisions(&precise).unwrap();
    assert!(matches!(logistic(2).fit(&x, precise, 1.0), Err(Error::Unsupported { .. })));
    let inputs = Standardisation::new(vec![0.0; 2], vec![1.0; 2]).unwrap();
    assert!(matches!(logistic(2).with_standardisation(inputs), Err(Error::Shape { .. })));
}

#[test]
fn targets_outside_the_domain_are_named() {
    let x = labelled::<f64>(4, 2).0;
    let poisson = Glm::poisson(trigonometric::<f64>(5, 1.0)).unwrap();
    assert!(matches!(poisson.fit(&x, &arr1(&[1.0, 0.0, -1.0, 2.0]), 1.0), Err(Error::Entry { row: 2, .. })));
    assert!(matches!(
        logistic(2).fit(&x, &arr1(&[1.0, 0.0, 0.5, 2.0]), 1.0),
        Err(Error::Entry { row: 3, .. })
    ));
    let hinge = Glm::squared_hinge(trigonometric::<f64>(5, 1.0)).unwrap();
    assert!(matches!(hinge.fit(&x, &arr1(&[1.0, 0.5, 0.0, 1.0]), 1.0), Err(Error::Entry { row: 1, .. })));
    let rows = ndarray::arr2(&[[1.0, 0.0, 0.0], [0.2, 0.3, 0.5], [0.0, 1.0, 0.0], [0.5, 0.0, 0.6]]);
    assert!(matches!(logistic(3).fit(&x, &rows, 1.0), Err(Error::Entry { row: 3, .. })));
    // Probabilities of classes are targets too.
    assert!(logistic(3).fit(&x, rows.slice(ndarray::s![..3, ..]), 1.0).is_err());
    let three = x.slice(ndarray::s![..3, ..]);
    let fit = logistic(3).fit(three, rows.slice(ndarray::s![..3, ..]), 1e-6).unwrap();
    let p = fit.model().probabilities(three).unwrap();
    assert!((p - rows.slice(ndarray::s![..3, ..])).iter().all(|d| d.abs() < 1e-2));
}

#[test]
fn what_a_loss_does_not_have_is_refused() {
    let (x, labels) = labelled::<f64>(40, 2);
    let hinge = Glm::squared_hinge(trigonometric::<f64>(5, 1.0)).unwrap().fit(&x, &labels, 1.0).unwrap();
    assert!(matches!(hinge.model().probabilities(&x), Err(Error::Unsupported { .. })));
    assert!(matches!(hinge.model().rates(&x), Err(Error::Unsupported { .. })));
    assert!(matches!(hinge.log_evidence(), Err(Error::Unsupported { .. })));
    let y = Array1::<f64>::ones(40);
    let counts = Glm::poisson(trigonometric::<f64>(5, 1.0)).unwrap().fit(&x, &y, 1.0).unwrap();
    assert!(matches!(counts.model().classify(&x), Err(Error::Unsupported { .. })));
    let two = logistic(2).fit(&x, &labels, 1.0).unwrap();
    assert!(matches!(two.variances(&x), Err(Error::Unsupported { .. })));
    assert!(matches!(two.model().clone().with_priors(&[1.0], &[1.0, 1.0]), Err(Error::Shape { .. })));
    let wrong = two.model().clone().with_priors(&[1.0, 0.0], &[1.0, 1.0]);
    assert!(matches!(wrong, Err(Error::Entry { row: 1, .. })));
    // Second derivatives of 9 · 241 weights.
    let large = Glm::logistic(trigonometric::<f64>(120, 1.0), 9).unwrap();
    assert!(matches!(GlmSums::at(&large), Err(Error::Unsupported { .. })));
}

/// Counts that are all 0, one row, constant targets: finite models.
#[test]
fn poor_data_have_finite_models() {
    let (x, _) = labelled::<f64>(30, 2);
    let poisson = Glm::poisson(trigonometric::<f64>(5, 1.0)).unwrap();
    for y in [0.0, 7.0, 1e6] {
        let fit = poisson.fit(&x, &Array1::from_elem(30, y), 1.0).unwrap();
        let rates = fit.model().rates(&x).unwrap();
        assert!(rates.iter().all(|rate| (rate - y).abs() <= 1e-6 * (1.0 + y)), "{y}: {rates}");
    }
    let one = poisson.fit(x.slice(ndarray::s![..1, ..]), &arr1(&[3.0]), 1e-6).unwrap();
    assert!((one.model().rates(x.slice(ndarray::s![..1, ..])).unwrap()[0] - 3.0).abs() < 1e-6);
    // All rows alike, with different labels.
    let alike = Array2::from_elem((30, 3), 0.5);
    let labels: Vec<usize> = (0..30).map(|i| usize::from(i % 3 == 0)).collect();
    let fit = logistic(2).fit(&alike, &labels, 1e-9).unwrap();
    assert!((fit.model().probabilities(&alike).unwrap()[[4, 1]] - 1.0 / 3.0).abs() < 1e-6);
}
