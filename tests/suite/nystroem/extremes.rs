//! Points far from all landmarks, large offsets, other units, logarithms, and points that are not finite.

use super::{gaussian, gram};
use crate::common::points;
use ndarray::{Array1, Array2, Axis, arr1, arr2, s};
use random_features::kernel::{Activation, ActivationKernel, Angular, Kernel, Laplace, Softmax};
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
    // Coordinates that are whole multiples of 2⁻⁶ keep all their digits beside the offset.
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
        let z = points::<f64>(250, d, 1.0);
        // New points on a line; in more dimensions every third landmark.
        let x = if d == 1 { points::<f64>(90, d, 0.9) } else { z.slice(s![..;3, ..]).to_owned() };
        let features = Nystroem::new(gaussian(lengthscale), &z).unwrap();
        assert!(features.feature_dim() < 250);
        let (exact, own) = (gaussian(lengthscale).gram(&x, &x).unwrap(), gram(&features, &x));
        assert!(own.diag().iter().all(|v| *v < 1.0 + 1e-8), "{d} {lengthscale}");
        let most = if d == 1 { 1e-12 } else { 1e-6 };
        assert!((own - exact).iter().all(|v| v.abs() < most), "{d} {lengthscale}");
    }
}

/// Landmarks at which the kernel is small keep their part beside those at which it is large.
#[test]
fn small_values_are_kept_beside_large_ones() {
    let softmax: AnyKernel = Softmax::default().into();
    let relu: AnyKernel = ActivationKernel::new(Activation::Relu).unwrap().into();
    let spread = points::<f64>(40, 3, 4.0);
    let cases = [
        (softmax.clone(), arr2(&[[6.5, 0.0], [0.0, 1.0]])),
        (relu, arr2(&[[1e9, 0.0], [0.0, 1.0]])),
        (softmax, spread),
    ];
    for (kernel, z) in cases {
        let features = Nystroem::new(kernel.clone(), &z).unwrap();
        let (exact, own) = (kernel.kernel::<f64>().unwrap().gram(&z, &z).unwrap(), gram(&features, &z));
        for ((i, j), exact_value) in exact.indexed_iter() {
            let size = (exact[[i, i]] * exact[[j, j]]).sqrt();
            let off = (own[[i, j]] - exact_value).abs();
            assert!(off < 1e-6 * size, "{kernel}, {i}, {j}: {} {exact_value}", own[[i, j]]);
        }
    }
}

/// What is left of the trace where values are near the end of the range.
#[test]
fn trace_errors_reach_to_the_end_of_the_range() {
    let softmax = Softmax::default();
    let none = Nystroem::from_parts(softmax.clone(), arr2(&[[20.0]]), arr2(&[[0.0]])).unwrap();
    assert_eq!(none.trace_error(&arr2(&[[20.0]])).unwrap(), 1.0);
    let half = Array2::from_shape_fn((10, 2), |(i, k)| if i % 2 == k { 26.6 } else { 0.0 });
    let found = Nystroem::new(softmax, &arr2(&[[26.6, 0.0]])).unwrap().trace_error(&half).unwrap();
    assert!((found - 0.5).abs() < 1e-12, "{found}");
}

/// Errors name rows of the points and reasons that hold.
#[test]
fn rows_and_zeros_are_named() {
    let features = Nystroem::new(Softmax::default(), &Array2::<f64>::eye(2)).unwrap();
    let mut x = Array2::<f64>::zeros((3000, 2));
    x[[2500, 0]] = 800.0;
    let error = features.truncated(&x, 1).unwrap_err();
    assert!(matches!(error, random_features::Error::NotFinite { row: 2500, .. }), "{error}");
    x[[2500, 0]] = 20.0;
    let huge =
        Nystroem::from_parts(Softmax::default(), Array2::eye(2), 1e300 * Array2::<f64>::eye(2)).unwrap();
    let error = huge.truncated(&x, 1).unwrap_err().to_string();
    assert!(error.starts_with("row 2500 of the features of the points"), "{error}");
    let zeros = Array2::<f64>::zeros((4, 3));
    for found in [
        Nystroem::fit(Angular, &zeros, 2, 1),
        Nystroem::pivoted(Angular, &zeros, 2, 1),
        Nystroem::greedy(Angular, &zeros, 2),
        Nystroem::leverage(Angular, &zeros, 2, 1),
        Nystroem::new(Angular, &zeros),
    ] {
        let error = found.unwrap_err().to_string();
        assert!(error.contains("at all of which the kernel is 0"), "{error}");
    }
    let error = Nystroem::new(Angular, &Array2::<f64>::zeros((0, 3))).unwrap_err().to_string();
    assert!(error.starts_with("the number of landmarks is 0"), "{error}");
}

/// Nearly equal landmarks at the end of the range: values have as large rounding errors as logarithms.
#[test]
fn nearly_equal_landmarks_of_large_values_add_no_noise() {
    for k in 0..400 {
        let z = 25.0 + 0.0037 * f64::from(k);
        let step = 10f64.powf(-8.0 + 0.01 * f64::from(k));
        let features = Nystroem::new(Softmax::default(), &arr2(&[[z], [z + step]])).unwrap();
        let x = arr2(&[[z - 0.5]]);
        let (exact, own) = (Softmax::default().gram(&x, &x).unwrap(), gram(&features, &x));
        assert!(own[[0, 0]] < 1.05 * exact[[0, 0]], "{z} {step}: {} {}", own[[0, 0]], exact[[0, 0]]);
    }
}
