//! Frobenius errors of Nyström features: of all pairs against the definition, and of pairs that are drawn.

use super::{gaussian, kernels};
use crate::common::points;
use ndarray::{Array2, Axis, arr1, arr2, s};
use random_features::Error;
use random_features::kernel::{Activation, ActivationKernel, Gaussian, Laplace, Softmax, SpectralMixture};
use random_features::map::{AnyKernel, Nystroem};

/// Σⱼ (K̂ − K)² and Σⱼ K² of each row, by a loop over all pairs.
fn square_sums(features: &Nystroem, x: &Array2<f64>) -> Array2<f64> {
    let phi = features.map::<f64>().unwrap().transform(x).unwrap();
    let kernel = features.kernel().kernel::<f64>().unwrap();
    let mut sums = Array2::zeros((x.nrows(), 2));
    for i in 0..x.nrows() {
        for j in 0..=i {
            let exact = kernel.value(&x.row(i), &x.row(j)).unwrap();
            let squares = [(phi.row(i).dot(&phi.row(j)) - exact).powi(2), exact * exact];
            for (k, square) in squares.into_iter().enumerate() {
                sums[[i, k]] += square;
                sums[[j, k]] += if i == j { 0.0 } else { square };
            }
        }
    }
    sums
}

/// ‖K̂ − K‖_F / ‖K‖_F.
fn definition(features: &Nystroem, x: &Array2<f64>) -> f64 {
    let total = square_sums(features, x).sum_axis(Axis(0));
    (total[0] / total[1]).sqrt()
}

#[test]
fn errors_of_few_points_are_exact() {
    let x = points::<f64>(150, 3, 1.3);
    for kernel in kernels() {
        let all = Nystroem::new(kernel.clone(), &points::<f64>(10, 3, 1.2)).unwrap();
        for features in [all.clone(), all.truncated(&x, 4).unwrap()] {
            for n in [1, 2, 64, 65, 150] {
                let x = x.slice(s![..n, ..]).to_owned();
                let (found, expected) = (features.frobenius_error(&x, 1).unwrap(), definition(&features, &x));
                assert!((found - expected).abs() < 1e-12, "{kernel}, {n}: {found} {expected}");
                assert_eq!(features.frobenius_error(&x, 2).unwrap(), found);
            }
        }
        let narrow = points::<f32>(150, 3, 1.3);
        let wide = narrow.mapv(f64::from);
        let features = Nystroem::new(kernel, &narrow.slice(s![..10, ..])).unwrap();
        assert_eq!(features.frobenius_error(&narrow, 1), features.frobenius_error(&wide, 1));
    }
}

/// A smooth kernel and one of tiny lengthscale, which is a multiple of the identity: it is nearly all of K − K̂, so that a wrong share of
/// the diagonal would show.
fn rough_kernel() -> AnyKernel {
    let (smooth, rough) = (Gaussian::new(1.0).unwrap(), Laplace::new(1e-6).unwrap());
    SpectralMixture::sum(&[(0.5, &smooth), (0.5, &rough)]).unwrap().into()
}

/// Estimates from 2048 of 2600 points are within five standard deviations of the definition, which are below 1 %.
#[test]
fn errors_of_many_points_are_near_the_definition() {
    let (n, s) = (2600, 2048);
    let x = Array2::from_shape_fn((n, 1), |(i, _)| (0.618_033_988_749_895 * i as f64).fract());
    let features = Nystroem::new(rough_kernel(), &x.slice(s![..100, ..])).unwrap();
    let sums = square_sums(&features, &x);
    let total = sums.sum_axis(Axis(0));
    let expected = (total[0] / total[1]).sqrt();
    let share = (1.0 / s as f64 - 1.0 / n as f64).sqrt();
    let deviation = share * (sums.std_axis(Axis(0), 1.0) * n as f64 / &total).sum();
    assert!(deviation < 0.01, "{deviation}");
    let found: Vec<f64> = (0..4).map(|seed| features.frobenius_error(&x, seed).unwrap()).collect();
    for found in &found {
        assert!((found / expected - 1.0).abs() < 5.0 * deviation, "{found} {expected} {deviation}");
    }
    assert!(found[0] != found[1] && found[2] != found[3]);
    assert_eq!(features.frobenius_error(&x, 0).unwrap(), found[0]);
    // All of 2048 points are compared, whatever the seed.
    let few = x.slice(s![..s, ..]);
    assert_eq!(features.frobenius_error(&few, 0), features.frobenius_error(&few, 1));
}

#[test]
fn errors_do_not_depend_on_threads() {
    let x = points::<f64>(2500, 3, 1.0);
    let features = Nystroem::new(gaussian(1.0), &x.slice(s![..20, ..])).unwrap();
    let error = || features.frobenius_error(&x, 7).unwrap();
    let [one, three] = [1, 3]
        .map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(error));
    assert_eq!(one, three);
}

/// Values at the end of the range, kernels that are 0, and factors that make too much of them.
#[test]
fn errors_reach_to_the_end_of_the_range() {
    let half = Array2::from_shape_fn((10, 2), |(i, k)| if i % 2 == k { 26.6 } else { 0.0 });
    let found = Nystroem::new(Softmax::default(), &arr2(&[[26.6, 0.0]])).unwrap().frobenius_error(&half, 1);
    assert!((found.clone().unwrap() - 0.5f64.sqrt()).abs() < 1e-12, "{found:?}");
    let none = Nystroem::from_parts(Softmax::default(), arr2(&[[20.0]]), arr2(&[[0.0]])).unwrap();
    assert_eq!(none.frobenius_error(&arr2(&[[20.0], [3.0]]), 1), Ok(1.0));
    let relu: AnyKernel = ActivationKernel::new(Activation::Relu).unwrap().into();
    let features = Nystroem::from_parts(relu, Array2::eye(2), Array2::eye(2)).unwrap();
    assert!(features.frobenius_error(&Array2::<f64>::zeros((3, 2)), 1).unwrap().is_nan());
    let double = Nystroem::from_parts(gaussian(1.0), arr2(&[[0.0]]), arr2(&[[2.0]])).unwrap();
    assert_eq!(double.frobenius_error(&arr2(&[[0.0]]), 1), Ok(3.0));
    for factor in [1e80, 1e200] {
        let huge = Nystroem::from_parts(gaussian(1.0), arr2(&[[0.0]]), arr2(&[[factor]])).unwrap();
        let found = huge.frobenius_error(&arr2(&[[60.0], [0.0]]), 1);
        assert!(matches!(found, Err(Error::NotFinite { row: 1, .. })), "{factor}: {found:?}");
    }
}

/// A point whose kernel value is far above all others counts only where it is drawn, and never makes the error NaN.
#[test]
fn a_huge_point_that_is_not_drawn_is_no_harm() {
    let mut x = points::<f64>(4096, 2, 0.5);
    x.row_mut(1000).assign(&arr1(&[20.0, 0.0]));
    let few = x.slice(s![..50, ..]);
    let features = Nystroem::uniform(Softmax::new(1.0).unwrap(), &few, 10, 1).unwrap();
    for seed in 0..6 {
        let error = features.frobenius_error(&x, seed).unwrap();
        assert!(error > 0.0 && error <= 1.0 + 1e-9, "{seed}: {error}");
    }
}

/// Features that overflow are an error of the row, in both reports.
#[test]
fn features_that_overflow_are_refused() {
    let kernel = Gaussian::new(1.0).unwrap();
    let z = arr2(&[[0.0], [0.1]]);
    let features = Nystroem::from_parts(kernel, z.clone(), arr2(&[[1e308, 1e308]])).unwrap();
    let expected = Error::NotFinite { what: "the features of the points", row: 0, column: None };
    assert_eq!(features.trace_error(&z), Err(expected.clone()));
    assert_eq!(features.frobenius_error(&z, 1), Err(expected));
}
