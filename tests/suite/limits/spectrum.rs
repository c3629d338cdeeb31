//! The limits of given points and kernel values.

use crate::common::points;
use ndarray::{Array2, array};
use random_features::data::GramSpectrum;
use random_features::kernel::{Gaussian, Kernel, Softmax};
use random_features::linalg::Backend;
use random_features::workbench::factors::Factorise;
use random_features::{Error, Real};

fn near(found: f64, expected: f64, tolerance: f64) {
    assert!((found / expected - 1.0).abs() <= tolerance, "{found} in place of {expected}");
}

/// (E K(x, x)² − E K²)/(D E K²) and what is left of K without its first singular vectors, by loops over pairs.
fn by_loops<T: Real>(tolerance: f64) {
    let (x, y) = (points::<T>(30, 3, 0.8), points::<T>(17, 3, 0.5));
    for kernel in [&Gaussian::new(0.7).unwrap() as &dyn Kernel<f64>, &Softmax::new(0.9).unwrap()] {
        for (x, y, one_set) in [(&x, &x, true), (&x, &y, false)] {
            let spectrum = GramSpectrum::new(kernel, x, y).unwrap();
            assert_eq!(spectrum.values().len(), y.nrows());
            let wide = |x: &Array2<T>| x.mapv(|v| v.widen());
            let exact = kernel.gram(&wide(x), &wide(y)).unwrap();
            let square = exact.iter().map(|k| k * k).sum::<f64>() / exact.len() as f64;
            if one_set {
                let trace = exact.diag().mean().unwrap();
                let expected = ((trace * trace - square) / (8.0 * square)).sqrt();
                near(spectrum.independent_error(8), expected, tolerance);
            }
            let svd = Backend::default().svd(&exact).unwrap();
            let mut rest = exact.clone();
            for k in 0..8 {
                for ((i, j), rest) in rest.indexed_iter_mut() {
                    *rest -= svd.values[k] * svd.left[[i, k]] * svd.right[[j, k]];
                }
            }
            let expected = (rest.iter().map(|v| v * v).sum::<f64>() / (square * exact.len() as f64)).sqrt();
            near(spectrum.least_error(8), expected, 1e-6);
            assert!(spectrum.unbiased_error(8) > spectrum.least_error(8));
            // Sides may change places, and units do not matter.
            let turned = GramSpectrum::of_gram(&(exact.t().to_owned() * 1e200)).unwrap();
            near(turned.unbiased_error(8), spectrum.unbiased_error(8), 1e-9);
        }
    }
}

#[test]
fn limits_of_points_are_their_definitions() {
    by_loops::<f64>(1e-12);
    by_loops::<f32>(1e-12);
}

#[test]
fn as_many_features_as_points_leave_nothing() {
    let spectrum =
        GramSpectrum::new(&Gaussian::default(), &points::<f64>(5, 2, 1.0), &points(5, 2, 1.0)).unwrap();
    assert_eq!((spectrum.least_error(5), spectrum.unbiased_error(5)), (0.0, 0.0));
    assert!(spectrum.independent_error(5) > 0.1);
    assert!(spectrum.independent_error(0).is_nan() && spectrum.unbiased_error(0).is_nan());
    assert!((spectrum.least_error(0) - 1.0).abs() < 1e-14);
}

#[test]
fn wrong_input_is_an_error() {
    let (kernel, x) = (Gaussian::default(), points::<f64>(5, 2, 1.0));
    let of = |x: &Array2<f64>, y: &Array2<f64>| GramSpectrum::new(&kernel, x, y).unwrap_err();
    assert!(matches!(of(&x, &points(5, 3, 1.0)), Error::Shape { .. }));
    assert!(matches!(of(&Array2::zeros((0, 2)), &x), Error::Parameter { .. }));
    assert!(matches!(of(&x, &Array2::zeros((0, 2))), Error::Parameter { .. }));
    let wrong = array![[0.0, 1.0], [f64::NAN, 0.0]];
    assert!(matches!(of(&x, &wrong), Error::NotFinite { row: 1, column: Some(0), .. }));
    let short = Gaussian::new(vec![1.0; 3]).unwrap();
    assert!(GramSpectrum::new(&short, &x, &x).is_err());
    // exp(x·y) overflows.
    assert!(matches!(
        GramSpectrum::new(&Softmax::default(), &(&x * 50.0), &(&x * 50.0)),
        Err(Error::NotFinite { .. })
    ));
    assert!(
        GramSpectrum::of_gram(&Array2::<f64>::zeros((3, 2))).is_err_and(|e| e.to_string().contains("not 0"))
    );
    assert!(GramSpectrum::of_gram(&Array2::<f32>::zeros((3, 0))).is_err());
    assert!(GramSpectrum::of_gram(&array![[1.0, f64::INFINITY]]).is_err());
}
