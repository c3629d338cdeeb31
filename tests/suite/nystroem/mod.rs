//! Nyström features: against plain loops, between 0 and the kernel, the best ones on data, landmarks, errors, refusals, applications.

mod choices;
mod errors;
mod extremes;
mod leverage;
mod precomputed;
mod refusals;
#[cfg(feature = "serde")]
mod stored;
mod unbiased;

use ndarray::{Array1, Array2, ArrayView1, Axis, arr1, arr2, concatenate, s};
use random_features::kernel::{
    Activation, ActivationKernel, Angular, Gaussian, Laplace, Matern, PoweredExponential, RationalQuadratic,
    RegularisedSoftmax, Smoothness, Softmax, SpectralMixture,
};
use random_features::map::{AnyKernel, Nystroem};
use random_features::testing::conform;
use random_features::{Error, Map, Real, Side};

use crate::common::points;
use crate::own_kernel::TwoShells;

/// Kernels for points in ℝ³ within a cube.
fn kernels() -> Vec<AnyKernel> {
    vec![
        Gaussian::new(0.8).unwrap().into(),
        Gaussian::new(vec![0.5, 1.0, 2.0]).unwrap().into(),
        Softmax::new(1.5).unwrap().into(),
        Laplace::new(1.0).unwrap().into(),
        Matern::new(Smoothness::ThreeHalves, 0.7).unwrap().into(),
        RationalQuadratic::new(0.5, 0.7).unwrap().into(),
        Angular.into(),
        ActivationKernel::new(Activation::Relu).unwrap().into(),
    ]
}

fn gaussian(lengthscale: f64) -> Gaussian {
    Gaussian::new(lengthscale).unwrap()
}

/// The estimates K̂ of a map as an array, in `f64`.
fn gram<T: Real>(features: &Nystroem, x: &Array2<T>) -> Array2<f64> {
    features.map::<T>().unwrap().gram(x, x).unwrap().mapv(|v| v.widen())
}

/// The solution of Ax = b by elimination with pivots.
fn solved(mut a: Array2<f64>, mut b: Array1<f64>) -> Array1<f64> {
    let n = b.len();
    for i in 0..n {
        let pivot = (i..n).max_by(|r, s| a[[*r, i]].abs().total_cmp(&a[[*s, i]].abs())).unwrap();
        for k in 0..n {
            a.swap([i, k], [pivot, k]);
        }
        b.swap(i, pivot);
        for r in i + 1..n {
            let factor = a[[r, i]] / a[[i, i]];
            for k in i..n {
                a[[r, k]] -= factor * a[[i, k]];
            }
            b[r] -= factor * b[i];
        }
    }
    for i in (0..n).rev() {
        b[i] = (b[i] - (i + 1..n).map(|k| a[[i, k]] * b[k]).sum::<f64>()) / a[[i, i]];
    }
    b
}

/// The eigenvalues of a symmetric matrix, descending, by rotations that remove its entries one after the other, until they are
/// rounding errors.
fn eigenvalues(mut a: Array2<f64>) -> Vec<f64> {
    let n = a.nrows();
    let rounding = 1e-16 * a.iter().fold(0.0f64, |top, v| top.max(v.abs()));
    for _ in 0..30 {
        for i in 0..n {
            for j in i + 1..n {
                if a[[i, j]].abs() <= rounding {
                    continue;
                }
                let angle = 0.5 * (2.0 * a[[i, j]]).atan2(a[[j, j]] - a[[i, i]]);
                let (sin, cos) = angle.sin_cos();
                for k in 0..n {
                    let (p, q) = (a[[i, k]], a[[j, k]]);
                    (a[[i, k]], a[[j, k]]) = (cos * p - sin * q, sin * p + cos * q);
                }
                for k in 0..n {
                    let (p, q) = (a[[k, i]], a[[k, j]]);
                    (a[[k, i]], a[[k, j]]) = (cos * p - sin * q, sin * p + cos * q);
                }
            }
        }
    }
    let mut values = a.diag().to_vec();
    values.sort_by(|a, b| b.total_cmp(a));
    values
}

#[test]
fn estimates_follow_their_definition() {
    let (z, x) = (points::<f64>(6, 3, 1.5), points::<f64>(9, 3, 1.2));
    for kernel in kernels() {
        let features = Nystroem::new(kernel.clone(), &z).unwrap();
        assert_eq!((features.feature_dim(), features.dim(), features.kernel()), (6, 3, &kernel));
        let (map, exact) = (features.map::<f64>().unwrap(), kernel.kernel::<f64>().unwrap());
        let near = exact.gram(&x, &z).unwrap();
        let value = |x: ArrayView1<'_, f64>, y: ArrayView1<'_, f64>| {
            x.dot(&solved(exact.gram(&z, &z).unwrap(), y.to_owned()))
        };
        for (i, (row, x)) in near.rows().into_iter().zip(x.rows()).enumerate() {
            for (column, y) in near.rows().into_iter().zip(points::<f64>(9, 3, 1.2).rows()) {
                let (found, expected) = (map.estimate(&x, &y).unwrap(), value(row, column));
                assert!((found - expected).abs() < 1e-11 * (1.0 + expected.abs()), "{kernel}, {i}");
                let own = map.kernel().unwrap().value(&x, &y).unwrap();
                assert!((own - found).abs() < 1e-13 * (1.0 + found.abs()), "{kernel}: {own} {found}");
            }
            // It is exact where a point is a landmark.
            for (z, exact) in z.rows().into_iter().zip(row) {
                let found = map.estimate(&x, &z).unwrap();
                assert!((found - exact).abs() < 1e-11 * (1.0 + exact.abs()), "{kernel}: {found} {exact}");
            }
        }
    }
}

#[test]
fn maps_keep_what_every_map_keeps() {
    fn conforms<T: Real>() {
        for kernel in kernels() {
            for (m, n) in [(1, 30), (40, 300)] {
                let map: Map<T> =
                    Nystroem::new(kernel.clone(), &points::<T>(m, 3, 1.0)).unwrap().map().unwrap();
                conform(&map, &points::<T>(n, 3, 1.5)).unwrap();
            }
        }
    }
    conforms::<f32>();
    conforms::<f64>();
}

/// 0 ≼ K̂ ≼ K up to rounding, also for the best features, and nothing is random.
#[test]
fn estimates_are_between_0_and_the_kernel() {
    let x = points::<f64>(24, 3, 1.3);
    for kernel in kernels() {
        let exact = kernel.kernel::<f64>().unwrap().gram(&x, &x).unwrap();
        let all = Nystroem::new(kernel.clone(), &points::<f64>(10, 3, 1.2)).unwrap();
        for features in [all.clone(), all.truncated(&x, 5).unwrap()] {
            let (own, map) = (gram(&features, &x), features.map::<f64>().unwrap());
            assert!(eigenvalues(own.clone())[23] > -1e-11, "{kernel}");
            assert!(eigenvalues(&exact - &own)[23] > -1e-9, "{kernel}");
            let share = (exact.diag().sum() - own.diag().sum()) / exact.diag().sum();
            assert!((features.trace_error(&x).unwrap() - share).abs() < 1e-12, "{kernel}");
            let (a, b) = (x.row(1), x.row(7));
            assert_eq!(map.log_variance(&a, &b), Ok(Some(f64::NEG_INFINITY)));
            assert_eq!(map.relative_error(&a, &b), Ok(Some(0.0)));
            assert_ne!(map.kernel().unwrap().identity(), exact_identity(&kernel));
        }
    }
}

fn exact_identity(kernel: &AnyKernel) -> Option<random_features::map::Identity> {
    kernel.kernel::<f64>().unwrap().identity()
}

#[test]
fn copies_of_landmarks_add_nothing() {
    let (z, x) = (points::<f64>(8, 3, 1.0), points::<f64>(20, 3, 1.0));
    let twice = concatenate![Axis(0), z, z];
    for kernel in kernels() {
        let [once, twice] = [&z, &twice].map(|z| Nystroem::new(kernel.clone(), z).unwrap());
        assert_eq!((once.feature_dim(), twice.feature_dim()), (8, 8), "{kernel}");
        let difference = gram(&once, &x) - gram(&twice, &x);
        assert!(difference.iter().all(|v| v.abs() < 1e-10), "{kernel}");
    }
}

/// Estimates of the best D features are the best approximation of rank D of all estimates.
#[test]
fn truncated_features_are_the_best() {
    let x = points::<f64>(40, 3, 1.5);
    for kernel in kernels() {
        let all = Nystroem::new(kernel.clone(), &x.slice(s![..20, ..])).unwrap();
        let values = eigenvalues(gram(&all, &x));
        for features in [1, 4, 13] {
            let best = all.clone().truncated(&x, features).unwrap();
            assert_eq!((best.feature_dim(), best.landmarks()), (features, all.landmarks()));
            let error: f64 = (gram(&all, &x) - gram(&best, &x)).iter().map(|v| v * v).sum();
            let least: f64 = values[features..].iter().map(|v| v * v).sum();
            assert!(
                (error - least).abs() < 1e-6 * least + 1e-14 * values[0].powi(2),
                "{kernel}: {error} {least}"
            );
        }
    }
}

/// Products of features in `f32` are those in `f64` up to rounding, although eigenvalues are as small as the rounding of `f64`.
#[test]
fn narrow_features_are_near_wide_ones() {
    let x = points::<f32>(300, 3, 1.0);
    for kernel in kernels() {
        let features = Nystroem::fit(kernel.clone(), &x, 60, 1).unwrap();
        let wide = gram(&features, &x.mapv(f64::from));
        let largest = wide.iter().fold(0.0f64, |most, v| most.max(v.abs()));
        let difference = gram(&features, &x) - wide;
        assert!(difference.iter().all(|v| v.abs() < 2e-6 * largest), "{kernel}");
    }
}

/// Kernels with gradients beside those of [`kernels`].
fn smooth_kernels() -> Vec<AnyKernel> {
    let wave = SpectralMixture::cosine(vec![1.0, 0.5, -2.0]).unwrap();
    let mixture = SpectralMixture::sum(&[(0.3, &wave), (0.7, &Laplace::new(2.0).unwrap())]).unwrap();
    let mut all = kernels();
    all.extend([
        RegularisedSoftmax::new(vec![1.0, 2.0, 1.5]).unwrap().into(),
        Matern::new(Smoothness::of(0.8).unwrap(), vec![0.5, 1.0, 2.0]).unwrap().into(),
        PoweredExponential::new(1.3, 1.5).unwrap().into(),
        mixture.into(),
    ]);
    all
}

/// Gradients of every kernel that has them, against differences.
#[test]
fn gradients_are_slopes() {
    // The angular kernel has kinks at multiples of landmarks.
    let (z, x) = (points::<f64>(8, 3, 1.0), points::<f64>(13, 3, 3.0).slice(s![8.., ..]).to_owned());
    for kernel in smooth_kernels() {
        let features = Nystroem::new(kernel.clone(), &z).unwrap();
        let map = features.map::<f64>().unwrap();
        let cotangents = points::<f64>(5, features.feature_dim(), 1.0);
        let found = map.pull_back(Side::X, &x, &cotangents).unwrap();
        let scales = map.features(Side::X, &x).unwrap().log_scales().to_owned();
        let sum = |x: &Array2<f64>, i: usize| {
            let phi = map.transform(x).unwrap();
            cotangents.row(i).dot(&phi.row(i)) * (-scales[[i, 0]]).exp()
        };
        for ((i, k), gradient) in found.indexed_iter() {
            let [above, below] = [1e-5, -1e-5].map(|step| {
                let mut x = x.clone();
                x[[i, k]] += step;
                sum(&x, i)
            });
            let slope = (above - below) / 2e-5;
            assert!((gradient - slope).abs() < 1e-6 * (1.0 + slope.abs()), "{kernel}: {gradient} {slope}");
        }
        let narrow = features.map::<f32>().unwrap().pull_back(
            Side::X,
            &x.mapv(|v| v as f32),
            &cotangents.mapv(|v| v as f32),
        );
        let most = found.iter().fold(1.0, |most: f64, v| most.max(v.abs()));
        let off = narrow.unwrap().mapv(f64::from) - found;
        assert!(off.iter().all(|v| v.abs() < 1e-4 * most), "{kernel}: {off}");
    }
    let other = Nystroem::new(AnyKernel::own(TwoShells::default()), &z).unwrap();
    let (map, cotangents) = (other.map::<f64>().unwrap(), points::<f64>(5, other.feature_dim(), 1.0));
    assert!(matches!(map.pull_back(Side::X, &x, &cotangents), Err(Error::Unsupported { .. })));
    let (x, y) = (x.row(0).to_owned(), x.row(1).to_owned());
    assert!(matches!(map.kernel().unwrap().gradient(&x, &y), Err(Error::Unsupported { .. })));
}

/// The kernel K̂ of the map has gradients where K has.
#[test]
fn estimates_have_gradients() {
    let z = points::<f64>(8, 3, 1.0);
    let (x, y) = (points::<f64>(1, 3, 0.7).row(0).to_owned(), points::<f64>(5, 3, 1.3).row(4).to_owned());
    for kernel in smooth_kernels() {
        let map = Nystroem::new(kernel.clone(), &z).unwrap().map::<f64>().unwrap();
        let own = map.kernel().unwrap();
        let found = own.gradient(&x, &y).unwrap();
        for (k, found) in found.iter().enumerate() {
            let [above, below] = [1e-5, -1e-5].map(|step| {
                let mut x = x.clone();
                x[k] += step;
                own.value(&x, &y).unwrap()
            });
            let slope = (above - below) / 2e-5;
            assert!((found - slope).abs() < 1e-6 * (1.0 + slope.abs()), "{kernel}: {found} {slope}");
        }
    }
}

/// Two landmarks with values of one size and other signs: the feature is 0 between them, its slope is not.
#[test]
fn features_of_0_have_their_slope() {
    let z = arr2(&[[-1.0], [1.0]]);
    let laplace: AnyKernel = Laplace::new(1.0).unwrap().into();
    for (kernel, slope) in [(gaussian(1.0).into(), 2.0), (laplace, 2.0)] {
        let features = Nystroem::from_parts(kernel.clone(), z.clone(), arr2(&[[-1.0, 1.0]])).unwrap();
        let map = features.map::<f64>().unwrap();
        let (x, ones) = (arr2(&[[0.0]]), arr2(&[[1.0]]));
        assert_eq!(map.transform(&x).unwrap(), arr2(&[[0.0]]));
        let scale = map.features(Side::X, &x).unwrap().log_scales()[[0, 0]];
        let found = map.pull_back(Side::X, &x, &ones).unwrap()[[0, 0]] * scale.exp();
        let value: f64 = kernel.kernel().unwrap().value(&arr1(&[0.0]), &arr1(&[1.0])).unwrap();
        assert!((found - slope * value).abs() < 1e-14, "{kernel}: {found}");
    }
}

/// Slopes may be far larger than values: near a kink, at a landmark beside it, and far from all landmarks.
#[test]
fn gradients_near_and_far() {
    let powered = PoweredExponential::new(0.5, 1.0).unwrap();
    let features = Nystroem::from_parts(powered, arr2(&[[0.0]]), arr2(&[[1.0]])).unwrap();
    let map = features.map::<f64>().unwrap();
    let x = arr2(&[[0.0], [1e-150], [-1e-12], [1e4], [1e100], [f64::NAN]]);
    let found = map.pull_back(Side::X, &x, &Array2::ones((6, 1))).unwrap();
    // The features are their own scale, so that gradients are those of logarithms.
    for (found, expected) in found.iter().zip([0.0, -0.5e75, 0.5e6, -0.5e-2, -0.5e-50]) {
        assert!((found - expected).abs() <= 1e-9 * f64::abs(expected), "{found} {expected}");
    }
    assert!(found[[5, 0]].is_nan());
}
