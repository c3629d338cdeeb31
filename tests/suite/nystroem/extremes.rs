//! Points far from all landmarks, large offsets, other units, logarithms, and points that are not finite.

use super::{gaussian, gram};
use crate::common::points;
use ndarray::{Array1, Array2, Axis, arr1, arr2, s};
use random_features::kernel::{Kernel, Laplace, Softmax};
use random_features::map::{AnyKernel, Nystroem};
use random_features::{Map, Real, Side};

#[test]
fn far_points_have_estimates_of_0() {
    fn of<T: Real>() {
        for kernel in [gaussian(0.8).into(), AnyKernel::from(Laplace::new(1.0).unwrap())] {
            let z = points::<T>(12, 3, 1.0);
            let map: Map<T> = Nystroem::new(kernel.clone(), &z).unwrap().map().unwrap();
            for far in [1e2, 1e5, 1e15, 1e18] {
                let x = Array1::from_elem(3, T::narrow(far));
                let y = z.row(0).to_owned();
                assert!(map.estimate(&x, &y).unwrap().abs() < T::narrow(1e-30), "{kernel}");
                assert!(map.estimate(&x, &x).unwrap().abs() < T::narrow(1e-30), "{kernel}");
                assert!(
                    map.transform(&x.insert_axis(Axis(0))).unwrap().iter().all(|v| v.abs().widen() < 1e-15)
                );
            }
        }
    }
    of::<f32>();
    of::<f64>();
}

/// Units of points and offsets of all of them change nothing but rounding; distances from all landmarks do not either.
#[test]
fn estimates_do_not_depend_on_units_and_offsets() {
    let (z, x) = (points::<f64>(12, 3, 1.0), points::<f64>(20, 3, 6.0));
    let base = gram(&Nystroem::new(gaussian(0.7), &z).unwrap(), &x);
    for (unit, offset, tolerance) in
        [(1e30, 0.0, 1e-12), (1e-30, 0.0, 1e-12), (1.0, 1e8, 1e-6), (1e-8, 1.0, 1e-6)]
    {
        let moved = |x: &Array2<f64>| x.mapv(|v| unit * v + offset);
        let features = Nystroem::new(gaussian(0.7 * unit), &moved(&z)).unwrap();
        let difference = gram(&features, &moved(&x)) - &base;
        assert!(difference.iter().all(|v| v.abs() < tolerance), "{unit} {offset}");
    }
    // Coordinates that are whole multiples of 2⁻²⁴ keep all their digits beside the offset.
    let round = |x: &Array2<f64>| x.mapv(|v| (v * 64.0).round() / 64.0);
    let moved = |x: &Array2<f64>| round(x) + 1e8;
    let base = gram(&Nystroem::new(gaussian(0.7), &round(&z)).unwrap(), &round(&x));
    let far = gram(&Nystroem::new(gaussian(0.7), &moved(&z)).unwrap(), &moved(&x));
    assert!((far - base).iter().all(|v| v.abs() < 1e-11));
}

/// Where logarithms of estimates are far below the range of numbers, they follow from the values themselves.
#[test]
fn logarithms_are_known_where_values_are_not() {
    let kernel = gaussian(1.0);
    let z = arr2(&[[0.0, 0.0]]);
    let map: Map<f64> = Nystroem::new(kernel.clone(), &z).unwrap().map().unwrap();
    let (x, y) = (arr1(&[300.0, 0.0]), arr1(&[0.0, 400.0]));
    assert_eq!(map.log_estimate(&x, &y).unwrap().ln_abs, -125_000.0);
    let softmax: Map<f64> = Nystroem::new(Softmax::default(), &arr2(&[[1.0, 0.0]])).unwrap().map().unwrap();
    assert!((softmax.log_estimate(&x, &x).unwrap().ln_abs - 599.0).abs() < 1e-9);
}

#[test]
fn rows_that_are_not_finite_are_nan_alone() {
    let map: Map<f64> = Nystroem::new(gaussian(1.0), &points::<f64>(5, 2, 1.0)).unwrap().map().unwrap();
    for bad in [f64::NAN, f64::INFINITY, 1e200] {
        let mut x = points::<f64>(70, 2, 1.0);
        let good = map.features(Side::X, &x).unwrap();
        x[[40, 1]] = bad;
        let found = map.features(Side::X, &x).unwrap();
        assert!(found.mantissas().row(40).iter().all(|v| v.is_nan()));
        assert_eq!(found.mantissas().slice(s![..40, ..]), good.mantissas().slice(s![..40, ..]));
        assert_eq!(found.mantissas().slice(s![41.., ..]), good.mantissas().slice(s![41.., ..]));
    }
}

/// Landmarks whose Gram matrix has eigenvalues down to rounding: estimates are not above the kernel, and near it between landmarks.
#[test]
fn nearly_dependent_landmarks_do_no_harm() {
    for (d, lengthscale) in [(1, 0.5), (1, 2.0), (2, 1.0), (3, 3.0)] {
        let (z, x) = (points::<f64>(250, d, 1.0), points::<f64>(90, d, 0.9));
        let features = Nystroem::new(gaussian(lengthscale), &z).unwrap();
        assert!(features.feature_dim() < 250);
        let (exact, own) = (gaussian(lengthscale).gram(&x, &x).unwrap(), gram(&features, &x));
        assert!(own.diag().iter().all(|v| *v < 1.0 + 1e-8), "{d} {lengthscale}");
        let near = d > 1 || (own - exact).iter().all(|v| v.abs() < 1e-12);
        assert!(near, "{d} {lengthscale}");
    }
}
