//! What a model is given: the map of a regression with its standardisation, whole numbers as counts, weights of classes.

use ndarray::{Array1, Array2, arr1, s};
use random_features::apply::{Glm, GlmSums, RidgeSearch, RidgeStatistics};
use random_features::{Error, Targets};

use super::{labelled, trigonometric};

#[test]
fn a_model_takes_the_map_and_the_inputs_of_a_regression() {
    let (near, labels) = labelled::<f64>(200, 2);
    // A column in seconds since 1970.
    let mut x = near.clone();
    x.column_mut(1).mapv_inplace(|v| 1.7e9 + 1e6 * v);
    let ridge = RidgeSearch::gaussian(3, 24, 7).unwrap().fit(&x, &labels).unwrap();
    let by_hand = Glm::logistic(ridge.model().map().clone(), 2).unwrap();
    let by_hand = by_hand.with_standardisation(ridge.model().standardisation().unwrap().clone()).unwrap();
    let by_hand = by_hand.fit(&x, &labels, 0.1).unwrap();
    let of_fit = Glm::logistic(&ridge, 2).unwrap().fit(&x, &labels, 0.1).unwrap();
    let of_model = Glm::logistic(ridge.model(), 2).unwrap().fit(&x, &labels, 0.1).unwrap();
    for fit in [&of_fit, &of_model] {
        assert_eq!(fit.model().weights(), by_hand.model().weights());
        assert!(fit.warnings().is_empty());
    }
    assert!(Glm::squared_hinge(&ridge).unwrap().fit(&x, &labels, 0.1).is_ok());
    // The map alone, by reference: inputs as they are leave nothing to be learnt, and the fit says so.
    let plain = Glm::logistic(ridge.model().map(), 2).unwrap();
    for fit in [plain.fit(&x, &labels, 0.1).unwrap(), plain.search(&x, &labels).unwrap()] {
        assert!(fit.warnings()[0].to_string().contains("standardise"));
        assert!(!fit.with_posterior(&x, &labels).unwrap().warnings().is_empty());
    }
    let suited = Glm::logistic(trigonometric::<f64>(8, 1.2), 2).unwrap();
    assert!(suited.fit(&near, &labels, 0.1).unwrap().warnings().is_empty());
}

#[test]
fn whole_numbers_are_counts() {
    let (x, _) = labelled::<f64>(120, 2);
    let poisson = Glm::poisson(trigonometric::<f64>(8, 1.5)).unwrap();
    for most in [0, 1, 40] {
        let counts: Vec<usize> = (0..120).map(|i| (i * 7919) % (most + 1)).collect();
        let numbers: Array1<f64> = counts.iter().map(|count| *count as f64).collect();
        let weights = Array1::from_shape_fn(120, |i| (i % 3) as f64);
        let [whole, plain] = [Targets::from(&counts), Targets::from(&numbers)]
            .map(|targets| poisson.fit(&x, targets.with_weights(&weights).unwrap(), 1.0).unwrap());
        assert_eq!(whole.model().weights(), plain.model().weights());
        let mut sums = GlmSums::at(whole.model()).unwrap();
        sums.update(&x, Targets::from(&counts).with_weights(&weights).unwrap()).unwrap();
        assert!((sums.loss(1.0).unwrap() - plain.loss()).abs() < 1e-9 * (1.0 + plain.loss().abs()));
    }
    let rates = poisson.fit(&x, &vec![0usize; 120], 1.0).unwrap().model().rates(&x).unwrap();
    assert!(rates.iter().all(|rate| *rate < 1e-6));
    let labels = vec![0usize; 120];
    let stated = Targets::of_labels(&labels, 2).unwrap();
    assert!(matches!(poisson.fit(&x, stated, 1.0), Err(Error::Unsupported { .. })));
}

#[test]
fn labels_of_a_single_target_are_refused() {
    let (x, _) = labelled::<f64>(30, 2);
    let mut statistics = RidgeStatistics::new(trigonometric::<f64>(5, 1.0), 1).unwrap();
    for counts in [vec![0usize; 30], (0..30).collect()] {
        let error = statistics.update(&x, &counts).unwrap_err();
        assert!(
            matches!(error, Error::Unsupported { .. }) && error.to_string().contains("labels"),
            "{error}"
        );
    }
    assert_eq!(statistics.rows(), 0);
    let labels = vec![0usize; 30];
    let mut statistics = RidgeStatistics::new(trigonometric::<f64>(5, 1.0), 3).unwrap();
    let two = Targets::of_labels(&labels, 2).unwrap();
    assert!(matches!(statistics.update(&x, two), Err(Error::Shape { expected: 3, found: 2, .. })));
}

#[test]
fn weights_of_classes_are_the_same_in_all_batches() {
    let (x, labels) = labelled::<f64>(400, 3);
    let map = trigonometric::<f64>(8, 1.2);
    let count = |class: usize| labels.iter().filter(|label| **label == class).count() as f64;
    let shares = [0, 1, 2].map(|class| 400.0 / (3.0 * count(class)));
    let mut whole = RidgeStatistics::new(map.clone(), 3).unwrap();
    whole.update(&x, Targets::from(&labels).balanced().unwrap()).unwrap();
    let mut parts = RidgeStatistics::new(map, 3).unwrap();
    for rows in [0..30, 30..31, 31..400] {
        let own = Targets::of_labels(&labels[rows.clone()], 3).unwrap().with_class_weights(&shares).unwrap();
        parts.update(x.slice(s![rows, ..]), own).unwrap();
    }
    let [whole, parts] = [whole, parts].map(|statistics| statistics.solve(0.5).unwrap());
    assert!((&whole.weights() - &parts.weights()).iter().all(|d| d.abs() < 1e-9));
    // They multiply weights of rows.
    let (two, own) = (arr1(&[2.0, 3.0, 0.0]), [0, 2, 2]);
    let of = |targets: Targets<'_, f64>| {
        let mut statistics = RidgeStatistics::new(trigonometric::<f64>(2, 1.2), 3).unwrap();
        statistics.update(x.slice(s![..3, ..]), targets).unwrap();
        statistics.solve(0.5).unwrap().weights().to_owned()
    };
    let expected = arr1(&[1.0, 12.0, 0.0]);
    let both = Targets::from(&own).with_weights(&two).unwrap().with_class_weights(&[0.5, 7.0, 4.0]).unwrap();
    assert_eq!(of(both), of(Targets::from(&own).with_weights(&expected).unwrap()));
    let wrong = |weights: &[f64]| Targets::<f64>::from(&own).with_class_weights(weights).unwrap_err();
    assert!(matches!(wrong(&[1.0, 1.0]), Error::Entry { row: 1, .. }));
    assert!(matches!(wrong(&[1.0, -1.0, 1.0]), Error::Entry { row: 1, .. }));
    let stated = Targets::<f64>::of_labels(&own, 4).unwrap().with_class_weights(&[1.0; 3]);
    assert!(matches!(stated, Err(Error::Shape { .. })));
    let numbers = Array2::<f64>::zeros((3, 1));
    assert!(matches!(Targets::from(&numbers).with_class_weights(&[1.0]), Err(Error::Unsupported { .. })));
}
