//! Importance sampling by a mixture: its error is the least one of independent features, and it is a map like others.

use crate::common::points;
use ndarray::{Array2, arr1, array};
use random_features::kernel::{Gaussian, Laplace, Softmax};
use random_features::map::{AnyKernel, ImportanceMixture, Redraw, Sketched};
use random_features::testing::{check_unbiased, conform};
use random_features::theory::limits;
use random_features::{Error, Map, Real, Side};

fn gaussian() -> AnyKernel {
    Gaussian::new(vec![0.5, 1.0, 0.8]).unwrap().into()
}

fn softmax() -> AnyKernel {
    Softmax::new(0.9).unwrap().into()
}

/// The kernel values of some rows, all of them positive.
fn exact(kernel: &AnyKernel, x: &Array2<f64>) -> Array2<f64> {
    kernel.kernel::<f64>().unwrap().gram(x, x).unwrap()
}

/// The mean over 4000 draws of the mean squared error over all pairs is the limit, at 4 standard errors: four comparisons raise a false
/// alarm with probability 3e-4, and see 8 % of the limit, where weights of another law would be off by more than half.
#[test]
fn the_error_is_the_least_of_independent_features() {
    const DRAWS: u64 = 4000;
    for kernel in [gaussian(), softmax()] {
        let kernel_name = kernel.to_string();
        for x in [points::<f64>(12, 3, 0.8), points::<f64>(12, 3, 0.3) + 0.7] {
            let exact = exact(&kernel, &x);
            let (count, m) = (exact.len() as f64, 3);
            let square = exact.iter().map(|k| k * k).sum::<f64>() / count;
            let limit = limits::independent(exact.diag().mean().unwrap(), square, m, 1);
            let recipe = ImportanceMixture::new(&x, m).unwrap().recipe(kernel.clone());
            let errors: Vec<f64> = (0..DRAWS)
                .map(|seed| {
                    let estimates = recipe.draw::<f64>(seed).unwrap().gram(&x, &x).unwrap();
                    (estimates - &exact).iter().map(|v| v * v).sum::<f64>() / count
                })
                .collect();
            let mean = errors.iter().sum::<f64>() / DRAWS as f64;
            let spread = errors.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (DRAWS as f64).powi(2);
            let z = (mean - limit) / spread.sqrt();
            assert!(
                z.abs() < 4.0 && spread.sqrt() < 0.02 * limit,
                "{kernel_name}: {mean}, not {limit}, z {z}"
            );
        }
    }
}

/// Means over 4000 draws at points that the mixture does not have, at 4 standard errors: four comparisons raise a false alarm with
/// probability 3e-4.
fn unbiased<T: Real>() {
    let x = points::<T>(12, 3, 0.8);
    let of = |x: [f64; 3]| arr1(&x).mapv(T::narrow);
    let (a, b) = (of([0.1, 0.4, -0.2]), of([-0.3, 0.5, 0.2]));
    for kernel in [gaussian(), softmax()] {
        let wide = |x: &ndarray::Array1<T>| x.mapv(|v| v.widen());
        let value = kernel.kernel::<f64>().unwrap().value(&wide(&a), &wide(&b)).unwrap();
        let recipe = ImportanceMixture::new(&x, 4).unwrap().recipe(kernel);
        let found = check_unbiased(|seed| recipe.draw::<T>(seed), &a, &b, value, 4000).unwrap();
        assert!(found.z.abs() < 4.0 && found.variance_z.is_none(), "{found}");
    }
}

#[test]
fn estimates_are_unbiased_at_new_points() {
    unbiased::<f64>();
    unbiased::<f32>();
}

/// Features keep what all maps keep, at points in the middle of the mixture and far from it, and their gradients are differences.
fn kept<T: Real>(tolerance: f64) {
    let x = points::<T>(9, 3, 0.8);
    for kernel in [gaussian(), softmax()] {
        let map: Map<T> = ImportanceMixture::new(&x, 17).unwrap().recipe(kernel).draw(3).unwrap();
        assert!(map.facts().non_negative && map.feature_dim() == 17 && map.dim() == 3);
        for scale in [1.0, 30.0] {
            conform(&map, &x.mapv(|v| T::narrow(scale * v.widen()))).unwrap();
        }
        let c = points::<T>(9, 17, 1.0);
        let gradient = map.pull_back(Side::X, &x, &c).unwrap();
        let scales = map.features(Side::X, &x).unwrap().log_scales().to_owned();
        let step = if size_of::<T>() == 4 { 2f64.powi(-7) } else { 2f64.powi(-17) };
        for k in 0..3 {
            let moved = |by: f64| {
                let mut x = x.clone();
                x.column_mut(k).mapv_inplace(|v| T::narrow(v.widen() + by));
                let (values, own) = map.features(Side::X, &x).unwrap().into_parts();
                let sum = |i: usize| -> f64 {
                    let terms =
                        values.row(i).iter().zip(c.row(i)).map(|(v, c)| v.widen() * c.widen()).sum::<f64>();
                    terms * (own[[i, 0]] - scales[[i, 0]]).exp()
                };
                (0..9).map(sum).collect::<Vec<f64>>()
            };
            let (above, below) = (moved(step), moved(-step));
            for i in 0..9 {
                let slope = (above[i] - below[i]) / (2.0 * step);
                let found = gradient[[i, k]].widen();
                assert!((found - slope).abs() < tolerance * (1.0 + slope.abs()), "{found} {slope}");
            }
        }
    }
}

#[test]
fn it_is_a_map_like_others() {
    kept::<f64>(1e-7);
    kept::<f32>(2e-2);
}

/// With one point there is no error there.
#[test]
fn one_point_is_exact() {
    let x = array![[0.3, -2.0, 5.0]];
    for kernel in [gaussian(), softmax()] {
        let value = exact(&kernel, &x)[[0, 0]];
        let map: Map<f64> = ImportanceMixture::new(&x, 5).unwrap().recipe(kernel).draw(1).unwrap();
        assert!((map.estimate(&x.row(0), &x.row(0)).unwrap() / value - 1.0).abs() < 1e-12);
    }
}

/// Σᵢ φⱼ(xᵢ)² is Σᵢ K(xᵢ, xᵢ)/m for each feature: the best density makes all features equally large. Where the origin is does not matter
/// for the Gaussian kernel.
#[test]
fn all_features_are_equally_large() {
    let x = points::<f64>(20, 3, 0.8);
    for (x, kernel) in
        [(&x, gaussian()), (&x, softmax()), (&(&x + 1e6), gaussian()), (&(&x + 3.0), softmax())]
    {
        let expected = exact(&kernel, x).diag().sum() / 32.0;
        let map: Map<f64> = ImportanceMixture::new(x, 32).unwrap().recipe(kernel).draw(2).unwrap();
        let features = map.transform(x).unwrap();
        for feature in features.columns() {
            assert!((feature.dot(&feature) / expected - 1.0).abs() < 1e-9, "{feature} {expected}");
        }
    }
}

/// Draws follow from seeds, on any number of threads; the parameters of others differ.
#[test]
fn draws_have_identities() {
    let x = points::<f64>(6, 3, 0.8);
    let recipe = ImportanceMixture::new(&x, 8).unwrap().recipe(gaussian());
    let [one, again, other] = [5, 5, 6].map(|seed| recipe.draw::<f64>(seed).unwrap());
    assert_eq!(one.identity(), again.identity());
    assert_eq!(one.transform(&x).unwrap(), again.transform(&x).unwrap());
    assert_ne!(one.identity(), other.identity());
    assert_ne!(one.transform(&x).unwrap(), other.transform(&x).unwrap());
    let redraw = Redraw::new(recipe, 7, 10).unwrap();
    assert!(redraw.build::<f32>(1).is_ok());
}

#[cfg(feature = "serde")]
#[test]
fn it_is_stored() {
    use random_features::Recipe;
    let x = points::<f64>(6, 3, 0.8);
    let recipe = ImportanceMixture::new(&x, 8).unwrap().recipe(softmax());
    let map: Map<f32> = recipe.draw(5).unwrap();
    let text = serde_json::to_string(&recipe).unwrap();
    assert_eq!(serde_json::from_str::<Recipe>(&text).unwrap(), recipe);
    let bytes = postcard::to_stdvec(&map).unwrap();
    let again: Map<f32> = postcard::from_bytes(&bytes).unwrap();
    assert_eq!(again.identity(), map.identity());
    let x = x.mapv(|v| v as f32);
    assert_eq!(again.transform(&x).unwrap(), map.transform(&x).unwrap());
    // Sizes that do not fit the numbers are refused.
    for wrong in ["6,3,0", "5,3,8", "0,3,8", "6,3", "18446744073709551615,3,8"] {
        let damaged = text.replace("[6,3,8]", &format!("[{wrong}]"));
        assert_ne!(damaged, text);
        assert!(serde_json::from_str::<Recipe>(&damaged).is_err(), "{wrong}");
    }
}

#[test]
fn wrong_input_is_an_error() {
    let x = points::<f64>(6, 3, 0.8);
    assert!(matches!(ImportanceMixture::new(&x, 0), Err(Error::Parameter { .. })));
    assert!(ImportanceMixture::new(&Array2::<f64>::zeros((0, 3)), 4).is_err());
    assert!(ImportanceMixture::new(&Array2::<f32>::zeros((4, 0)), 4).is_err());
    let wrong = array![[1.0, 2.0], [f64::INFINITY, 0.0]];
    assert!(matches!(ImportanceMixture::new(&wrong, 4), Err(Error::NotFinite { row: 1, .. })));
    let mixture = ImportanceMixture::new(&x, 4).unwrap();
    assert!(mixture.recipe(Laplace::new(1.0).unwrap()).draw::<f64>(1).is_err());
    assert!(mixture.recipe(AnyKernel::implied(1.0)).draw::<f64>(1).is_err());
    assert!(mixture.recipe(Gaussian::new(vec![1.0; 2]).unwrap()).draw::<f64>(1).is_err());
    assert!(Sketched.recipe(mixture, gaussian()).draw::<f64>(1).is_ok());
    for kernel in [AnyKernel::from(Gaussian::default()), Softmax::default().into()] {
        let far = ImportanceMixture::new(&(&x * 1e200), 4).unwrap().recipe(kernel);
        assert!(matches!(far.draw::<f64>(1), Err(Error::NotFinite { .. })));
    }
    // What one point of the sample dwarfs, and points that are all equal.
    for (x, kernel) in
        [(&x * 25.0, softmax()), (Array2::zeros((6, 3)), softmax()), (Array2::ones((6, 3)), gaussian())]
    {
        let map: Map<f64> = ImportanceMixture::new(&x, 4).unwrap().recipe(kernel).draw(1).unwrap();
        let features = map.features(Side::X, &x).unwrap();
        assert!(features.log_scales().iter().all(|scale| scale.is_finite()));
    }
}
