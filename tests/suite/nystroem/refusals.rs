//! What Nyström features refuse, with the reason, and that long work ends when a watcher says so.

use std::ops::ControlFlow;
use std::thread;
use std::time::Duration;

use super::gaussian;
use crate::common::points;
use ndarray::{Array2, arr2};
use random_features::Error;
use random_features::kernel::{Activation, ActivationKernel, Gaussian, Softmax};
use random_features::map::{AnyKernel, Nystroem};
use random_features::progress::{Progress, watch};

fn message<A>(result: Result<A, Error>) -> String {
    result.err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn sizes_are_checked() {
    let (x, none) = (points::<f64>(20, 2, 1.0), Array2::<f64>::zeros((0, 2)));
    let parameter =
        |found: Result<Nystroem, Error>| assert!(matches!(found, Err(Error::Parameter { .. })), "{found:?}");
    for m in [0, 21] {
        parameter(Nystroem::fit(gaussian(1.0), &x, m, 1));
        parameter(Nystroem::uniform(gaussian(1.0), &x, m, 1));
        parameter(Nystroem::pivoted(gaussian(1.0), &x, m, 1));
        parameter(Nystroem::greedy(gaussian(1.0), &x, m));
        parameter(Nystroem::leverage(gaussian(1.0), &x, m, 1));
        parameter(Nystroem::new(gaussian(1.0), &x).unwrap().truncated(&x, m));
    }
    assert_eq!(
        message(Nystroem::uniform(gaussian(1.0), &x, 21, 1)),
        "the number of landmarks is 21, but must be at least 1, and at most the number of points"
    );
    let few = Nystroem::new(gaussian(1.0), &x).unwrap().truncated(&x, 5).unwrap();
    assert_eq!(
        message(few.truncated(&x, 7)),
        "the number of features D is 7, but must be at least 1, and at most the present number of features"
    );
    parameter(Nystroem::new(gaussian(1.0), &none));
    parameter(Nystroem::new(gaussian(1.0), &Array2::<f64>::zeros((3, 0))));
    let features = Nystroem::new(gaussian(1.0), &x).unwrap();
    let no_data = |found: Result<(), Error>| assert!(matches!(found, Err(Error::NoData { .. })), "{found:?}");
    no_data(Nystroem::fit(gaussian(1.0), &none, 1, 1).map(drop));
    no_data(Nystroem::leverage(gaussian(1.0), &none, 1, 1).map(drop));
    no_data(features.trace_error(&none).map(drop));
    no_data(features.frobenius_error(&none, 1).map(drop));
    no_data(features.clone().truncated(&none, 1).map(drop));
    let shape = |found: Result<(), Error>| assert!(matches!(found, Err(Error::Shape { .. })), "{found:?}");
    shape(features.trace_error(&points::<f64>(5, 3, 1.0)).map(drop));
    shape(features.frobenius_error(&points::<f64>(5, 3, 1.0), 1).map(drop));
    shape(features.clone().truncated(&points::<f64>(5, 3, 1.0), 1).map(drop));
    shape(Nystroem::new(Gaussian::new(vec![1.0; 3]).unwrap(), &x).map(drop));
    shape(Nystroem::from_parts(gaussian(1.0), x.clone(), Array2::zeros((3, 19))).map(drop));
    parameter(Nystroem::from_parts(gaussian(1.0), x.clone(), Array2::zeros((21, 20))));
    parameter(Nystroem::from_parts(gaussian(1.0), x, Array2::zeros((0, 20))));
}

/// Where K is 0 there is no error, and where a factor makes too much of it, nothing is left.
#[test]
fn trace_errors_without_a_share_of_the_kernel() {
    let relu: AnyKernel = ActivationKernel::new(Activation::Relu).unwrap().into();
    let features = Nystroem::from_parts(relu, Array2::eye(2), Array2::eye(2)).unwrap();
    assert!(features.trace_error(&Array2::<f64>::zeros((3, 2))).unwrap().is_nan());
    let features = Nystroem::from_parts(gaussian(1.0), Array2::eye(2), 3.0 * Array2::<f64>::eye(2)).unwrap();
    assert_eq!(features.trace_error(&Array2::<f64>::eye(2)).unwrap(), 0.0);
}

#[test]
fn numbers_without_a_kernel_value_are_refused() {
    let features = Nystroem::new(gaussian(1.0), &points::<f64>(5, 2, 1.0)).unwrap();
    for bad in [f64::NAN, f64::INFINITY, 1e160] {
        let mut x = points::<f64>(20, 2, 1.0);
        x[[7, 1]] = bad;
        let refused = |found: Result<(), Error>| {
            assert!(matches!(found, Err(Error::NotFinite { row: 7, .. })), "{bad}: {found:?}");
        };
        refused(Nystroem::new(gaussian(1.0), &x).map(drop));
        refused(Nystroem::fit(gaussian(1.0), &x, 3, 1).map(drop));
        refused(Nystroem::uniform(gaussian(1.0), &x, 3, 1).map(drop));
        refused(Nystroem::pivoted(gaussian(1.0), &x, 3, 1).map(drop));
        refused(Nystroem::leverage(gaussian(1.0), &x, 3, 1).map(drop));
        refused(features.trace_error(&x).map(drop));
        refused(features.frobenius_error(&x, 1).map(drop));
        refused(features.clone().truncated(&x, 2).map(drop));
        refused(Nystroem::from_parts(gaussian(1.0), x, Array2::eye(20)).map(drop));
    }
    // Softmax at norms of 100, and a kernel that is 0.
    let large = arr2(&[[1.0, 0.0], [100.0, 0.0]]);
    let found = message(Nystroem::new(Softmax::default(), &large));
    assert!(found.starts_with("row 1, column 1 of the kernel values of the landmarks"), "{found}");
    let found = message(Nystroem::greedy(Softmax::default(), &large, 1));
    assert!(found.starts_with("row 1 of the kernel values K(x, x) of the points"), "{found}");
    let found = message(Nystroem::leverage(Softmax::default(), &large, 1, 1));
    assert!(found.starts_with("row 1 of the kernel values K(x, x) of the points"), "{found}");
    let relu = ActivationKernel::new(Activation::Relu).unwrap();
    let found = message(Nystroem::new(relu, &Array2::<f64>::zeros((3, 2))));
    assert_eq!(found, "not available: landmarks at all of which the kernel is 0");
    let found = message(Nystroem::new(AnyKernel::implied(1.0), &large));
    assert!(found.contains("a lengthscale without a kernel"), "{found}");
    let found = message(Nystroem::leverage(AnyKernel::implied(1.0), &large, 1, 1));
    assert!(found.contains("a lengthscale without a kernel"), "{found}");
}

/// What work gives whose watcher stops it as soon as it is asked.
fn stopped<R>(work: impl FnOnce() -> Result<R, Error>) -> Result<(), Error> {
    let stop = |_: &Progress<'_>| ControlFlow::Break(());
    watch(stop, || {
        thread::sleep(Duration::from_millis(110));
        work().map(drop)
    })
}

#[test]
fn long_work_stops_when_it_is_told() {
    let x = points::<f64>(3000, 4, 1.0);
    let features = Nystroem::new(gaussian(1.0), &points::<f64>(30, 4, 1.0)).unwrap();
    let cancelled = Err(Error::Cancelled);
    assert_eq!(stopped(|| Nystroem::new(gaussian(1.0), &x)), cancelled);
    assert_eq!(stopped(|| Nystroem::fit(gaussian(1.0), &x, 30, 1)), cancelled);
    assert_eq!(stopped(|| Nystroem::pivoted(gaussian(1.0), &x, 30, 1)), cancelled);
    assert_eq!(stopped(|| Nystroem::leverage(gaussian(1.0), &x, 30, 1)), cancelled);
    assert_eq!(stopped(|| features.trace_error(&x)), cancelled);
    assert_eq!(stopped(|| features.frobenius_error(&x, 1)), cancelled);
    assert_eq!(stopped(|| features.clone().truncated(&x, 10)), cancelled);
}
