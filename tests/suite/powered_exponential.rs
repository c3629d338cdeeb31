//! The powered exponential kernel: its limits, the law of its radii, and their tails.

use crate::common::{Sample, point};
use ndarray::arr1;
use rand::RngExt;
use random_features::extend::ShiftInvariant;
use random_features::frequency::Orthogonal;
use random_features::kernel::{Gaussian, Kernel, Matern, PoweredExponential, Smoothness};
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
