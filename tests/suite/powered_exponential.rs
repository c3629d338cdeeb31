//! The powered exponential kernel: its limits, the law of its radii, and their tails.

use crate::common::{Sample, point};
use ndarray::arr1;
use rand::RngExt;
use random_features::extend::ShiftInvariant;
use random_features::frequency::{Independent, Orthogonal};
use random_features::kernel::{
    Gaussian, Kernel, Laplace, Matern, PoweredExponential, Smoothness, SpectralMixture,
};
use random_features::map::AnyKernel;
use random_features::theory::{Law, shift_invariant};
use random_features::workbench::ln_stable;
use random_features::{Error, Map, Trigonometric, rng};

fn each() -> Vec<f64> {
    vec![1.3, 0.8, 2.0]
}

fn powered(alpha: f64) -> PoweredExponential {
    PoweredExponential::new(alpha, each()).unwrap()
}

/// It is the Matérn kernel of smoothness ½ for α = 1 and the Gaussian kernel of lengthscale ℓ/√2 for α = 2.
#[test]
fn known_kernels_are_special_cases() {
    let (x, y) = (arr1(&[1.0, -2.0, 0.5]), arr1(&[0.5, 0.25, 0.5]));
    let matern = Matern::new(Smoothness::Half, each()).unwrap();
    let gaussian = Gaussian::new(each().iter().map(|scale| scale / 2f64.sqrt()).collect::<Vec<_>>()).unwrap();
    let known: [(f64, f64, &dyn ShiftInvariant); 2] = [(1.0, 1.0, &matern), (2.0, 2f64.sqrt(), &gaussian)];
    for (alpha, stretch, other) in known {
        let kernel = powered(alpha);
        let (own, of_other): (f64, f64) = (kernel.value(&x, &y).unwrap(), other.value(&x, &y).unwrap());
        assert!((own / of_other - 1.0).abs() < 1e-14, "{alpha}: {own}, {of_other}");
        for size in [1e-150, 1e-9, 0.1, 1.0, 30.0, 1e200] {
            let (own, expected) =
                (kernel.ln_variance(&[0.0, size]), other.ln_variance(&[0.0, stretch * size]));
            let same = own == expected || (own - expected).abs() < 1e-13 * expected.abs().max(1.0);
            assert!(same, "{alpha} at {size}: {own} and {expected}");
        }
    }
}

#[test]
fn equal_and_far_points_have_the_limits() {
    let x = arr1(&[1.0, -2.0, 0.5]);
    let far = arr1(&[1e200, 0.0, 0.0]);
    for alpha in [0.2, 0.7, 2.0] {
        let kernel = powered(alpha);
        assert_eq!(kernel.value(&x, &x), Ok(1.0));
        let value: f64 = kernel.value(&far, &x).unwrap();
        assert!((0.0..1e-300).contains(&value), "{alpha}: {value}");
        assert_eq!(kernel.ln_variance(&[0.0; 3]), f64::NEG_INFINITY);
        assert!((kernel.ln_variance(&[1e300, 1e300]) - 0.5f64.ln()).abs() < 1e-15, "{alpha}");
    }
}

#[test]
fn parameters_outside_the_domain_are_refused() {
    for bad in [0.0, 0.19, 2.01, -1.0, f64::NAN, f64::INFINITY] {
        let refused = PoweredExponential::new(bad, 1.0);
        assert!(matches!(refused, Err(Error::Parameter { name: "α", .. })), "{bad}: {refused:?}");
    }
    assert!(PoweredExponential::new(1.0, 0.0).is_err());
}

/// The Laplace transform of a positive stable number of index β is e^{−t^β}: means of 20,000 numbers within 4.5 standard errors. A
/// false alarm has probability 7e-6 for each of twelve means.
#[test]
fn stable_numbers_have_their_transform() {
    let mut rng = rng(3);
    for beta in [0.1, 0.25, 0.5, 0.95] {
        let draw = |_| {
            let (u, e): (f64, f64) = (rng.random(), rng.random());
            ln_stable(beta, u, -(-e).ln_1p()).exp()
        };
        let numbers: Vec<f64> = (0..20_000).map(draw).collect();
        for t in [0.1f64, 1.0, 5.0] {
            let sample = Sample::of(&numbers.iter().map(|tau| (-t * tau).exp()).collect::<Vec<f64>>());
            let exact = (-t.powf(beta)).exp();
            assert!(sample.z(exact).abs() < 4.5, "β = {beta}, t = {t}: {} of {exact}", sample.mean);
        }
    }
    assert_eq!(ln_stable(1.0, 0.3, 2.0), 0.0);
    // Where πu is nearly π, its sine cancels.
    let near_one = ln_stable(0.5, 1.0 - 2f64.powi(-50), 1.0);
    let exact = 2.0 * (50.0 * std::f64::consts::LN_2 - std::f64::consts::PI.ln());
    assert!((near_one - exact).abs() < 1e-12, "{near_one}, {exact}");
}

/// Heavy tails are finite in `f64`. In `f32` a map is refused where a frequency overflows: with ℓ = 10⁻²⁰ these are two of 10⁴.
#[test]
fn heavy_tails_are_finite_or_refused() {
    let scale = 1e-20;
    let [x, y] = [(1, 0.7), (5, 0.6)].map(|(seed, norm)| point::<f64>(3, seed, norm) * scale);
    let kernel = PoweredExponential::new(0.2, scale).unwrap();
    let mut refused = 0;
    for seed in 0..40 {
        let omega = kernel.draw(&Orthogonal, 3, 3000, seed).unwrap();
        assert!(omega.rows().iter().all(|v| v.is_finite()));
        let overflows = omega.rows().iter().any(|v| !((v / scale) as f32).is_finite());
        let map: Map<f64> = Trigonometric.build(omega.clone(), kernel.clone()).unwrap();
        let (near, own) = (map.estimate(&x, &y).unwrap(), map.estimate(&x, &x).unwrap());
        assert!(near.abs() <= 1.0 + 1e-12 && (own - 1.0).abs() < 1e-12, "{near} {own}");
        match Trigonometric.build::<f32>(omega, kernel.clone()) {
            Ok(map) => {
                let [x, y] = [&x, &y].map(|x| x.mapv(|v| v as f32));
                assert!(!overflows && map.estimate(&x, &y).unwrap().abs() <= 1.0 + 1e-5);
            }
            Err(error) => {
                assert!(overflows && matches!(error, Error::NotFinite { .. }), "{error}");
                refused += 1;
            }
        }
    }
    assert!((5..35).contains(&refused), "{refused} of 40 draws overflow");
}

fn by_coordinates(alpha: f64) -> SpectralMixture {
    SpectralMixture::powered_exponential(alpha, each()).unwrap()
}

/// By coordinates it is the Laplace kernel for α = 1, and the Gaussian one of lengthscale ℓ/√2 for α = 2.
#[test]
fn known_kernels_are_special_cases_by_coordinates() {
    let (x, y) = (arr1(&[1.0, -2.0, 0.5]), arr1(&[0.5, 0.25, 0.5]));
    let exact = by_coordinates(0.7).value(&x, &y).unwrap();
    let sum: f64 = (0..3).map(|l| ((x[l] - y[l]) / each()[l]).abs().powf(0.7)).sum();
    assert!((exact / (-sum).exp() - 1.0).abs() < 1e-14, "{exact}");
    let gaussian = Gaussian::new(each().iter().map(|scale| scale / 2f64.sqrt()).collect::<Vec<_>>()).unwrap();
    let laplace = Laplace::new(each()).unwrap();
    // δ of mixtures is not divided by the lengthscales of their factors.
    let known: [(f64, &dyn ShiftInvariant); 2] = [(1.0, &laplace), (2.0, &gaussian)];
    for (alpha, other) in known {
        let kernel = by_coordinates(alpha);
        let (own, of_other): (f64, f64) = (kernel.value(&x, &y).unwrap(), other.value(&x, &y).unwrap());
        assert!((own / of_other - 1.0).abs() < 1e-14, "{alpha}: {own}, {of_other}");
        for size in [1e-9, 0.1, 1.0, 30.0, 1e200] {
            let delta = [size, -0.5 * size, 0.0];
            let scale = |l: usize| if alpha == 1.0 { each()[l] } else { each()[l] / 2f64.sqrt() };
            let scaled = [delta[0] / scale(0), delta[1] / scale(1), 0.0];
            let (own, expected) = (kernel.ln_variance(&delta), other.ln_variance(&scaled));
            let same = own == expected || (own - expected).abs() < 1e-13 * expected.abs().max(1.0);
            assert!(same, "{alpha} at {size}: {own} and {expected}");
        }
    }
    for bad in [0.0, 0.19, 2.01, f64::NAN] {
        let refused = SpectralMixture::powered_exponential(bad, 1.0);
        assert!(matches!(refused, Err(Error::Parameter { name: "α", .. })), "{bad}: {refused:?}");
    }
    assert!(SpectralMixture::powered_exponential(1.0, 0.0).is_err());
    let nan: f64 = by_coordinates(2.0).value(&arr1(&[f64::NAN, 0.0, 0.0]), &y).unwrap();
    assert!(nan.is_nan());
}

/// E cos(wt) = e^{−|t|^α} for each coordinate w, and of two of them the product: independent coordinates. 36 means of 20,000 numbers
/// within 4.5 standard errors, a false alarm of 7e-6 each.
#[test]
fn coordinates_are_independent_stable_numbers() {
    for alpha in [0.2, 0.7, 1.5, 2.0] {
        let kernel = SpectralMixture::powered_exponential(alpha, 1.0).unwrap();
        let rows = kernel.draw(&Independent, 2, 20_000, 3).unwrap().rows().into_owned();
        assert!(rows.iter().all(|v| v.is_finite()));
        for t in [0.2f64, 1.0, 2.0] {
            for (s, t) in [(t, 0.0), (0.0, t), (t, -t)] {
                let waves: Vec<f64> = rows.rows().into_iter().map(|w| (s * w[0] + t * w[1]).cos()).collect();
                let exact = (-s.abs().powf(alpha) - t.abs().powf(alpha)).exp();
                let sample = Sample::of(&waves);
                assert!(sample.z(exact).abs() < 4.5, "α = {alpha}, {s}, {t}: {} of {exact}", sample.mean);
            }
        }
    }
}

/// Means within 4.5 standard errors, and variances within a tenth: their relative error for 4,000 estimates is below 0.03.
#[test]
fn estimates_by_coordinates_are_unbiased_and_of_the_closed_form_variance() {
    let (x, y) = (point::<f64>(3, 1, 0.7), point::<f64>(3, 5, 0.6));
    for alpha in [0.5, 1.3] {
        let (kernel, m) = (by_coordinates(alpha), 6);
        let exact: f64 = kernel.value(&x, &y).unwrap();
        let estimate = |seed| {
            let omega = kernel.draw(&Independent, 3, m, seed).unwrap();
            let map: Map<f64> = Trigonometric.build(omega, kernel.clone()).unwrap();
            map.estimate(&x, &y).unwrap()
        };
        let estimates: Vec<f64> = (0..4000).map(estimate).collect();
        let sample = Sample::of(&estimates);
        assert!(sample.z(exact).abs() < 4.5, "{alpha}: {} of {exact}", sample.mean);
        let law = Law::independent(m).with_radius(kernel.spectrum().law());
        let delta: Vec<f64> = x.iter().zip(&y).map(|(x, y)| x - y).collect();
        let variance = shift_invariant(&kernel, &delta, &law).unwrap().exp();
        let found = estimates.iter().map(|v| (v - sample.mean).powi(2)).sum::<f64>() / 3999.0;
        assert!((found / variance - 1.0).abs() < 0.1, "{alpha}: {found} {variance}");
    }
}

/// A lengthscale of the text is one of points.
#[test]
fn kernels_by_coordinates_have_texts() {
    let read: AnyKernel =
        "powered exponential by coordinates, α = 1.3, lengthscales [1.3, 0.8, 2]".parse().unwrap();
    let (x, y) = (arr1(&[1.0, -2.0, 0.5]), arr1(&[0.5, 0.25, 0.5]));
    let value: f64 = read.kernel().unwrap().value(&x, &y).unwrap();
    assert!((value - by_coordinates(1.3).value(&x, &y).unwrap()).abs() < 1e-15);
    assert_eq!(read.to_string().parse(), Ok(read));
}

#[cfg(feature = "serde")]
#[test]
fn kernels_by_coordinates_are_stored() {
    let kernel: AnyKernel = by_coordinates(0.1 + 0.2).into();
    let text = serde_json::to_string(&kernel).unwrap();
    assert_eq!(serde_json::from_str::<AnyKernel>(&text).unwrap(), kernel);
    assert!(
        serde_json::from_str::<AnyKernel>(&text.replace("0.30000000000000004", "3.5")).is_err(),
        "{text}"
    );
    let bytes = postcard::to_stdvec(&kernel).unwrap();
    assert_eq!(postcard::from_bytes::<AnyKernel>(&bytes).unwrap(), kernel);
}
