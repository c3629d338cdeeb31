//! What errors say: a λ that is larger than the one that was tried, and the number that is wrong; and what is refused.

use ndarray::{Array1, Array2, arr2};
use random_features::apply::{
    Criterion, KernelRidge, RidgeClassifier, RidgeSearch, RidgeStatistics, Standardisation,
};
use random_features::frequency::Orthogonal;
use random_features::{Error, Map, Targets, Trigonometric};

fn line(n: usize) -> Array2<f64> {
    Array2::from_shape_fn((n, 1), |(i, _)| i as f64 / 50.0)
}

fn gaussian<'a>() -> RidgeSearch<'a, f64> {
    RidgeSearch::gaussian(1, 32, 7).unwrap()
}

/// Labels 0 and 1 with their scores, from a regression of 200 rows.
fn scored() -> (Vec<usize>, Array2<f64>, RidgeClassifier<f64>) {
    let labels: Vec<usize> = (0..200).map(|i| usize::from(i > 100)).collect();
    let map: Map<f64> = Trigonometric.gaussian(Orthogonal.draw(1, 32, 7).unwrap(), 0.5).unwrap();
    let mut statistics = RidgeStatistics::new(map, 2).unwrap();
    statistics.update(&line(200), &labels).unwrap();
    let model = statistics.solve(0.1).unwrap();
    (labels, model.predict(&line(200)).unwrap(), RidgeClassifier::new(model).unwrap())
}

#[test]
fn singular_equations_name_a_larger_lambda() {
    let larger = |error: Error| match error {
        Error::Singular { lambda, least, .. } => assert!(least > lambda && least.is_finite(), "{error}"),
        error => panic!("{error}"),
    };
    larger(KernelRidge::fit(&Array2::<f64>::zeros((3, 3)), &Array1::<f64>::ones(3), 0.0).unwrap_err());
    let map: Map<f64> = Trigonometric.gaussian(Orthogonal.draw(1, 32, 7).unwrap(), 0.5).unwrap();
    let hinge = random_features::apply::Glm::squared_hinge(map.clone()).unwrap();
    let (labels, ..) = scored();
    larger(hinge.fit(&line(200), &labels, 1e-20).map(drop).unwrap_err());
    let mut statistics = RidgeStatistics::new(map, 2).unwrap();
    statistics.update(&line(200), &labels).unwrap();
    for lambda in [0.0, 1e-300, 1e-20] {
        larger(statistics.solve(lambda).unwrap_err());
        larger(statistics.spectrum().unwrap().model(lambda).unwrap_err());
    }
}

#[test]
fn errors_name_what_is_wrong() {
    let (labels, scores, classifier) = scored();
    let one = classifier.clone().with_threshold(&scores, &vec![1usize; 200]).unwrap_err();
    assert!(matches!(one, Error::Parameter { value: 1.0, .. }), "{one}");
    let half = Array2::from_elem((200, 2), 0.5);
    let half = classifier.clone().with_score_calibration(&scores, &half).unwrap_err();
    assert!(matches!(half, Error::Entry { value: 0.5, .. }), "{half}");
    let huge = Array1::from_elem(200, 1e308);
    let targets = || Targets::from(&labels).with_weights(&huge).unwrap();
    for error in [
        classifier.clone().with_score_calibration(&scores, targets()).map(drop),
        classifier.clone().with_threshold(&scores, targets()).map(drop),
    ] {
        let error = error.unwrap_err();
        assert!(matches!(error, Error::Parameter { name: "the sum of the weights", .. }), "{error}");
    }
    let (x, tiny) = (line(200), Array1::from_elem(200, 1e-300));
    let y = x.column(0).to_owned();
    let error = gaussian().fit(&x, Targets::from(&y).with_weights(&tiny).unwrap()).unwrap_err();
    assert!(matches!(error, Error::Parameter { name: "the sum of the weights", .. }), "{error}");
}

/// Held-out points without finite features have no error.
#[test]
fn held_out_points_have_finite_features() {
    for n in [40, 200] {
        let x = line(n);
        let y = x.column(0).mapv(|v| (2.0 * v).sin());
        let (hx, hy) = (arr2(&[[0.5], [1e308]]), Array1::from_vec(vec![1f64.sin(), 0.0]));
        let error = gaussian().with_criterion(Criterion::held_out(&hx, &hy)).fit(&x, &y).unwrap_err();
        assert!(matches!(error, Error::NotFinite { row: 1, .. }), "{n}: {error}");
        let without = Array1::from_vec(vec![1.0, 0.0]);
        let held_out = Criterion::held_out(&hx, Targets::from(&hy).with_weights(&without).unwrap());
        assert!(gaussian().with_criterion(held_out).fit(&x, &y).unwrap().error() < 1e-3);
    }
}

/// The model and all its trials have inputs that all rows standardise, in order of time too.
#[test]
fn blocks_in_time_are_standardised_by_all_rows() {
    let x = Array2::from_shape_fn((25, 1), |(i, _)| if i == 12 { 100.0 } else { i as f64 });
    let y = x.column(0).mapv(|x| (x / 5.0).sin());
    let forward = Criterion::Forward { blocks: 2, gap: 0 };
    let search = RidgeSearch::gaussian(1, 4, 7).unwrap().with_lengthscales([1.0]).with_lambdas([1e-2]);
    let fit = search.with_criterion(forward).fit(&x, &y).unwrap();
    assert_eq!(fit.model().standardisation(), Some(&Standardisation::of(&x).unwrap()));
}

/// Each order of options has one result, or an error.
#[test]
fn no_option_drops_another() {
    let x = line(200);
    let labels: Vec<usize> = (0..200).map(|i| usize::from(i % 17 == 0)).collect();
    let w = Array1::from_shape_fn(200, |i| 0.5 + (i % 3) as f64);
    let fit = |targets: Targets<'_, f64>| {
        let search = gaussian().with_lengthscales([1.0]).with_lambdas([1.0]);
        search.fit(&x, targets).unwrap().model().predict(&x).unwrap()
    };
    let of = || Targets::from(&labels);
    let first = fit(of().with_weights(&w).unwrap().balanced().unwrap());
    assert_eq!(first, fit(of().balanced().unwrap().with_weights(&w).unwrap()));
    assert_eq!(first, fit(of().balanced().unwrap().with_weights(&w).unwrap().balanced().unwrap()));
    assert_eq!(first, fit(Targets::from(&of().balanced().unwrap()).with_weights(&w).unwrap()));
    assert!(first != fit(of().with_weights(&w).unwrap()));
    let (labels, scores, classifier) = scored();
    let calibrated = classifier.with_score_calibration(&scores, &labels).unwrap();
    let corrected = calibrated.with_priors(&[0.5, 0.5], &[0.9, 0.1]).unwrap();
    let again = corrected.with_score_calibration(&scores, &labels);
    assert!(matches!(again, Err(Error::Unsupported { .. })));
}
