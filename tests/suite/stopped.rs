//! Long work ends when a watcher says so: features and Gram matrices between tiles, methods of applications between their steps.

use std::ops::ControlFlow;
use std::thread;
use std::time::Duration;

use ndarray::Array2;
use random_features::apply::attention::{Attention, TokenSample};
use random_features::apply::pca::KernelPca;
use random_features::apply::softmax_sampling::{Proposal, SampledSoftmax};
use random_features::apply::{ExactSmoother, Glm, Ridge, RidgeClassifier, RidgeStatistics, Smoother};
use random_features::data::shaping::Shaping;
use random_features::frequency::{Independent, Orthogonal};
use random_features::kernel::{Gaussian, Kernel, Softmax};
use random_features::planner::Planner;
use random_features::progress::{Progress, watch};
use random_features::recipe::Draw;
use random_features::{Error, Map, Positive, Real, Side, Trigonometric};

use crate::common::{frequencies, points};
use crate::threads::on_threads;

/// What work gives whose watcher stops it as soon as it is asked, which is a tenth of a second after the beginning.
fn stopped<R>(work: impl FnOnce() -> Result<R, Error>) -> Result<(), Error> {
    let stop = |_: &Progress<'_>| ControlFlow::Break(());
    watch(stop, || {
        thread::sleep(Duration::from_millis(110));
        work().map(drop)
    })
}

fn all_stop<T: Real>() {
    let (x, y) = (points::<T>(4000, 8, 1.0), points::<T>(300, 8, 1.0));
    let map: Map<T> = Trigonometric.gaussian(frequencies(8, 64, &Orthogonal, 1), 1.0).unwrap();
    let features = map.features(Side::X, &x).unwrap();
    let cotangents = Array2::from_elem((4000, map.feature_dim()), T::one());
    let right = map.features(Side::Y, &y).unwrap();
    let (mut values, mut scales) = features.clone().into_parts();
    let cancelled = Err(Error::Cancelled);
    assert_eq!(stopped(|| map.features(Side::X, &x)), cancelled);
    assert_eq!(stopped(|| map.features_into(Side::X, &x, &mut values, &mut scales)), cancelled);
    assert_eq!(stopped(|| map.gram(&x, &y)), cancelled);
    assert_eq!(stopped(|| features.gram(&right)), cancelled);
    assert_eq!(stopped(|| map.estimate_rows(&x, &x)), cancelled);
    assert_eq!(stopped(|| map.pull_back(Side::X, &x, &cotangents)), cancelled);
    assert_eq!(stopped(|| Gaussian::new(1.0).unwrap().gram(&x, &y)), cancelled);
    assert_eq!(stopped(|| Gaussian::new(1.0).unwrap().log_gram(&x, &y)), cancelled);
    // Nothing of it stays.
    assert_eq!(map.features(Side::X, &x), Ok(features));
}

#[test]
fn features_and_gram_matrices_stop_when_they_are_told() {
    on_threads(1, all_stop::<f32>);
    on_threads(3, all_stop::<f64>);
}

/// Regressions with their models, on few points.
#[test]
fn regression_stops_when_it_is_told() {
    let (x, y) = (points::<f64>(300, 3, 1.0), points::<f64>(300, 1, 1.0));
    let labels: Vec<usize> = (0..300).map(|i| i % 2).collect();
    let map: Map<f64> = Trigonometric.gaussian(frequencies(3, 32, &Orthogonal, 1), 1.0).unwrap();
    let cancelled = Err(Error::Cancelled);

    let mut statistics = RidgeStatistics::new(map.clone(), 1).unwrap();
    assert_eq!(stopped(|| statistics.update(&x, &y)), cancelled);
    assert_eq!(statistics.rows(), 0);
    statistics.update(&x, &y).unwrap();
    let model: Ridge<f64> = statistics.solve(0.1).unwrap();
    let posterior = statistics.spectrum().unwrap().posterior(0.1).unwrap();
    assert_eq!(stopped(|| model.predict(&x)), cancelled);
    assert_eq!(stopped(|| posterior.predict(&x)), cancelled);

    let mut statistics = RidgeStatistics::new(map.clone(), 2).unwrap();
    statistics.update(&x, &labels).unwrap();
    let classifier = RidgeClassifier::new(statistics.solve(0.1).unwrap()).unwrap();
    let classifier = classifier.with_calibration(&x, &labels).unwrap();
    assert_eq!(stopped(|| classifier.classify(&x)), cancelled);
    assert_eq!(stopped(|| classifier.probabilities(&x)), cancelled);

    let logistic = Glm::logistic(map.clone(), 2).unwrap();
    assert_eq!(stopped(|| logistic.fit(&x, &labels, 0.1)), cancelled);
    assert_eq!(stopped(|| logistic.search(&x, &labels)), cancelled);

    let mut smoother = Smoother::new(map.clone(), 1).unwrap();
    assert_eq!(stopped(|| smoother.update(&x, &y)), cancelled);
    smoother.update(&x, &y).unwrap();
    // Nobody is asked about work of less than a millisecond.
    let many = points::<f64>(30_000, 3, 1.0);
    assert_eq!(stopped(|| smoother.predict(&many)), cancelled);
    let (many, y) = (points::<f64>(3000, 3, 1.0), points::<f64>(3000, 1, 1.0));
    let mut exact = ExactSmoother::new(Gaussian::new(1.0).unwrap(), 3, 1).unwrap();
    exact.update(&many, &y).unwrap();
    assert_eq!(stopped(|| exact.predict(&many)), cancelled);

    assert_eq!(stopped(|| KernelPca::fit(map.clone(), &x, 2)), cancelled);
}

/// What is judged, planned and shaped.
#[test]
fn judgements_stop_when_they_are_told() {
    let x = points::<f64>(300, 3, 0.5);
    let positive = |m| -> Map<f64> { Positive.softmax(frequencies(3, m, &Orthogonal, 1)).unwrap() };
    let cancelled = Err(Error::Cancelled);

    let planner = Planner::of_one_set(&x).unwrap().with_kernel(Gaussian::default()).with_max_features(32);
    let recipe = Positive.recipe(Draw::new(3, 16, Independent), Softmax::default());
    assert_eq!(stopped(|| planner.plan()), cancelled);
    assert_eq!(stopped(|| planner.measure(&recipe, 20, 0)), cancelled);
    assert_eq!(stopped(|| planner.forecast(&recipe)), cancelled);

    let attention = Attention::new(positive(32)).unwrap();
    let tokens = TokenSample::new(&x, &x).with_values(&x);
    assert_eq!(stopped(|| attention.error_report(&tokens)), cancelled);
    assert_eq!(stopped(|| attention.simulated_report(&recipe, 20, &tokens)), cancelled);
    assert_eq!(stopped(|| attention.choose(&tokens, [1000, 1000], 0.1)), cancelled);
    assert_eq!(stopped(|| Shaping::new().with_rank_for(32).unwrap().of_points(&x, &x)), cancelled);

    let layer = SampledSoftmax::new(Proposal::new(positive(32)), &x).unwrap();
    assert_eq!(stopped(|| layer.report(&x, &[2])), cancelled);
}
