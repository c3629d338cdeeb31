//! Choices of λ on data that leave little to choose from.

use ndarray::{Array1, Array2, array};
use random_features::apply::{Criterion, Glm};
use random_features::frequency::Orthogonal;
use random_features::kernel::Activation;
use random_features::{Error, Nonlinear, Real, Trigonometric};

use super::{labelled, line_map};

/// Counts begin late: the model of the first blocks has no minimum, so that these blocks test nothing.
#[test]
fn blocks_without_counts_before_them_are_not_tested() {
    let x = Array2::from_shape_fn((600, 1), |(i, _)| 3.0 * (0.7 * i as f64).sin());
    let late = |i: usize| if i < 100 { 0.0 } else { (5.0 + 4.0 * (2.0 * x[[i, 0]]).sin()).round() };
    let y = Array1::from_shape_fn(600, late);
    let forward = Criterion::Forward { blocks: 6, gap: 0 };
    let fit = Glm::poisson(line_map(1.0)).unwrap().search_by(&forward, &x, &y).unwrap();
    // A fit without a minimum would prefer the first λ to all others.
    let first = fit.errors().iter().map(|(lambda, _)| *lambda).fold(0.0, f64::max);
    assert!(fit.lambda() < 1e-3 * first, "{:?}", fit.errors());
    // A sixth of the rows has no counts.
    let rate = fit.model().rates(&array![[0.8]]).unwrap()[0];
    assert!((rate / (5.0 / 6.0 * (5.0 + 4.0 * 1.6f64.sin())) - 1.0).abs() < 0.1, "{rate}");

    let no_counts = Array1::from_shape_fn(600, |i| if i < 500 { 0.0 } else { 3.0 });
    let refused = Glm::poisson(line_map(1.0)).unwrap().search_by(&forward, &x, &no_counts);
    assert!(matches!(refused, Err(Error::NoData { what }) if what.contains("count above 0")));
}

/// A row at the origin, where these features are 0, tells nothing about weights: it is no obstacle.
#[test]
fn a_row_without_features_may_be_left_out() {
    for classes in [2, 3] {
        let (mut x, labels) = labelled::<f64>(300, classes);
        let map = Nonlinear::new(Activation::Relu).build(Orthogonal.draw(3, 16, 1).unwrap(), 1.0).unwrap();
        let model = Glm::logistic(map, classes).unwrap().without_intercept();
        let before = model.clone().search(&x, &labels).unwrap();
        x.row_mut(7).fill(0.0);
        let fit = model.search(&x, &labels).unwrap();
        let least =
            |errors: &[(f64, f64)]| errors.iter().map(|(_, error)| *error).fold(f64::INFINITY, f64::min);
        assert!((least(fit.errors()) - least(before.errors())).abs() < 0.02);
        let p = fit.model().probabilities(&x).unwrap();
        assert!((p[[7, 0]] - 1.0 / classes as f64).abs() < 1e-12);
    }
}

/// All rows are alike: the shares of the classes are all that can be learnt, whatever rounding leaves of second derivatives.
fn learn_the_shares<T: Real>() {
    let x = Array2::from_elem((200, 2), T::narrow(0.5));
    let labels: Vec<usize> = (0..200).map(|i| usize::from(i % 4 == 0)).collect();
    for seed in 0..20 {
        let map = Trigonometric.gaussian(Orthogonal.draw(2, 32, seed).unwrap(), 1.0).unwrap();
        let fit = Glm::<T>::logistic(map, 2).unwrap().search(&x, &labels).unwrap();
        let p = fit.model().probabilities(&x).unwrap()[[0, 1]].widen();
        assert!((p - 0.25).abs() < 1e-4, "{seed}: {p}");
    }
}

#[test]
fn equal_rows_have_the_shares_of_their_classes() {
    learn_the_shares::<f32>();
    learn_the_shares::<f64>();
}
