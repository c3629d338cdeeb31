//! Features and Gram matrices end between tiles when a watcher says so.

use std::ops::ControlFlow;
use std::thread;
use std::time::Duration;

use ndarray::Array2;
use random_features::frequency::Orthogonal;
use random_features::kernel::{Gaussian, Kernel};
use random_features::progress::{Progress, watch};
use random_features::{Error, Map, Real, Side, Trigonometric};

use crate::common::{frequencies, points};

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
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(all_stop::<f32>);
        pool.install(all_stop::<f64>);
    }
}
