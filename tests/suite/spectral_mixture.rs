//! Sums and products of kernels, cosines and periodic kernels: plain loops, draws, limits, texts and mistakes.

use crate::common::Sample;
use ndarray::{Array1, Array2, arr1, arr2};
use random_features::extend::ShiftInvariant;
use random_features::frequency::{Independent, Orthogonal, Sobol};
use random_features::kernel::{
    Gaussian, Kernel, Laplace, Matern, PoweredExponential, RationalQuadratic, Smoothness, SpectralMixture,
};
use random_features::map::{AnyKernel, MapConfig};
use random_features::planner::Planner;
use random_features::theory::{Law, shift_invariant};
use random_features::{Error, Map, Recipe, Trigonometric, rng};

const D: usize = 3;

/// Three terms: 0.2 of a wave within a Gaussian, 0.3 of a product of four kernels, 0.5 of a Laplace kernel.
fn mixture() -> SpectralMixture {
    let wave = SpectralMixture::cosine(vec![1.5, -0.4, 0.7]).unwrap();
    let first = SpectralMixture::product(&[&wave, &Gaussian::new(vec![2.0, 1.0, 3.0]).unwrap()]).unwrap();
    let second = SpectralMixture::product(&[
        &SpectralMixture::periodic(vec![1.3, 2.0, 0.7], 1.2).unwrap(),
        &Matern::new(Smoothness::ThreeHalves, 2.5).unwrap(),
        &RationalQuadratic::new(1.5, 2.0).unwrap(),
        &PoweredExponential::new(1.2, 4.0).unwrap(),
    ])
    .unwrap();
    SpectralMixture::sum(&[(2.0, &first), (3.0, &second), (5.0, &Laplace::new(3.0).unwrap())]).unwrap()
}

/// The value of the mixture by the definition.
fn plain(delta: [f64; D]) -> f64 {
    let sum = |of: &dyn Fn(usize) -> f64| (0..D).map(of).sum::<f64>();
    let norm = sum(&|l| delta[l] * delta[l]).sqrt();
    let wave = sum(&|l| [1.5, -0.4, 0.7][l] * delta[l]).cos();
    let gaussian = (-0.5 * sum(&|l| (delta[l] / [2.0, 1.0, 3.0][l]).powi(2))).exp();
    let chord = |l: usize| (std::f64::consts::PI * delta[l] / [1.3, 2.0, 0.7][l]).sin().powi(2);
    let periodic = (-2.0 * sum(&chord) / (1.2 * 1.2)).exp();
    let scaled = 3f64.sqrt() * norm / 2.5;
    let matern = (1.0 + scaled) * (-scaled).exp();
    let quadratic = (1.0 + (norm / 2.0).powi(2) / 3.0).powf(-1.5);
    let powered = (-(norm / 4.0).powf(1.2)).exp();
    let laplace = (-sum(&|l| delta[l].abs()) / 3.0).exp();
    0.2 * wave * gaussian + 0.3 * periodic * matern * quadratic * powered + 0.5 * laplace
}

fn deltas() -> Vec<[f64; D]> {
    let mut rng = rng(5);
    (0..200).map(|i| [(); D].map(|()| rng.normal() * [1e-3, 0.3, 1.0, 4.0][i % 4])).collect()
}

#[test]
fn values_and_variances_are_those_of_the_definition() {
    let kernel = mixture();
    let y = arr1(&[0.3, -1.0, 2.0]);
    for delta in deltas() {
        let value: f64 = kernel.value(&(&arr1(&delta) + &y), &y).unwrap();
        assert!((value - plain(delta)).abs() < 1e-14, "{delta:?}: {value} {}", plain(delta));
        let twice = delta.map(|v| 2.0 * v);
        let expected = 0.5 * (1.0 + plain(twice) - 2.0 * plain(delta).powi(2));
        let found = kernel.ln_variance(&delta).exp();
        assert!((found - expected).abs() < 1e-14, "{delta:?}: {found} {expected}");
    }
    assert_eq!(kernel.value(&y, &y), Ok(1.0));
    assert_eq!(kernel.ln_variance(&[0.0; D]), f64::NEG_INFINITY);
    assert!(kernel.ln_variance(&[1.0]).is_nan() && kernel.ln_variance(&[f64::NAN; D]).is_nan());
    let single = y.mapv(|v| v as f32);
    assert_eq!(kernel.value(&single, &single), Ok(1f32));
}

/// Means within 4.5 standard errors, a false alarm of 7e-6 for each of four pairs, and variances within a tenth: the relative error
/// of a variance of 4,000 estimates is below 0.03.
#[test]
fn estimates_are_unbiased_and_of_the_closed_form_variance() {
    let kernel = mixture();
    let m = 6;
    let law = Law::independent(m).with_radius(kernel.spectrum().law());
    let y = arr1(&[0.1, 0.2, -0.3]);
    for delta in [[0.4, 0.0, -0.2], [1.3, 2.0, 0.7], [0.6, -1.0, 1.1], [3.0, -2.0, 5.0]] {
        let x = &arr1(&delta) + &y;
        let estimate = |seed| {
            let omega = kernel.draw(&Independent, D, m, seed).unwrap();
            let map: Map<f64> = Trigonometric.build(omega, kernel.clone()).unwrap();
            map.estimate(&x, &y).unwrap()
        };
        let estimates: Vec<f64> = (0..4000).map(estimate).collect();
        let sample = Sample::of(&estimates);
        assert!(sample.z(plain(delta)).abs() < 4.5, "{delta:?}: {} of {}", sample.mean, plain(delta));
        let variance = shift_invariant(&kernel, &delta, &law).unwrap().exp();
        let found = estimates.iter().map(|v| (v - sample.mean).powi(2)).sum::<f64>() / 3999.0;
        assert!((found / variance - 1.0).abs() < 0.1, "{delta:?}: {found} {variance}");
    }
}

/// Where ½(1 + k(2δ) − 2k(δ)²) would cancel, to the leading terms of its series: of a Gaussian kernel times itself, ½δ⁴(1/ℓ²+1/ℓ′²)²,
/// and of the mean of two, the variance of the squares of frequencies times δ⁴/8.
#[test]
fn variances_of_near_points_do_not_cancel() {
    let gaussian = |scale: f64| Gaussian::new(scale).unwrap();
    let product = SpectralMixture::product(&[&gaussian(2.0), &gaussian(0.5)]).unwrap();
    let sum = SpectralMixture::sum(&[(1.0, &gaussian(2.0)), (1.0, &gaussian(0.5))]).unwrap();
    let wave =
        SpectralMixture::product(&[&gaussian(2.0), &SpectralMixture::cosine(vec![3.0]).unwrap()]).unwrap();
    let periodic = SpectralMixture::periodic(vec![2.0], 0.7).unwrap();
    for delta in [1e-5f64, 1e-7, 1e-12] {
        // Var(ω²)/4 for cos ωδ ≈ 1 − ½ω²δ²: of N(0, s) it is 2s²; a wave adds 4sμ².
        let of = |moments: f64| (0.25 * moments).ln() + 4.0 * delta.ln();
        let rate = std::f64::consts::PI.powi(2) / (0.7 * 0.7);
        for (kernel, expected) in [
            (&product, of(2.0 * 4.25f64.powi(2))),
            (&sum, of(3.0 * 0.5 * (0.25f64.powi(2) + 16.0) - 2.125f64.powi(2))),
            (&wave, of(2.0 * 0.0625 + 4.0 * 0.25 * 9.0)),
            // E ω⁴ = (3a² + a)(2π/p)⁴ with a = 1/ℓ².
            (&periodic, of(2.0 * rate * rate + rate * std::f64::consts::PI.powi(2))),
        ] {
            let found = kernel.ln_variance(&[delta]);
            assert!((found - expected).abs() < 1e-6, "{kernel:?} at {delta}: {found} {expected}");
        }
    }
}

/// A kernel of one's own may be a mixture, in several dimensions too.
#[test]
fn a_mixture_may_be_a_kernel_of_ones_own() {
    for kernel in [mixture(), SpectralMixture::cosine(vec![1.0, 2.0, -1.0]).unwrap()] {
        let map: Map<f64> = Map::for_kernel(AnyKernel::own(kernel.clone()), D, 64, 3).unwrap();
        let named: Map<f64> = Map::for_kernel(kernel, D, 64, 3).unwrap();
        let (x, y) = (arr1(&[0.7, 0.1, 2.0]), arr1(&[-0.4, 1.5, 0.3]));
        assert_eq!(map.estimate(&x, &y), named.estimate(&x, &y));
    }
}

/// First entries of a draw with seed 42: its stream follows from the name of the kernel.
#[test]
fn draws_are_pinned() {
    let omega = mixture().draw(&Independent, D, 4, 42).unwrap();
    let found: Vec<f64> = omega.rows().iter().take(6).copied().collect();
    let golden = [
        -0.0441263214881191,
        1.5316959828288939,
        -0.1419825417667576,
        1.2311560087938451,
        0.12373016691171057,
        0.5164569038585057,
    ];
    assert!(found.iter().zip(golden).all(|(a, b)| (a - b).abs() < 1e-13), "{found:?}");
}

/// cos² + sin² of one frequency.
#[test]
fn a_cosine_is_exact() {
    let kernel = SpectralMixture::cosine(vec![2.0, -3.0]).unwrap();
    let (x, y) = (arr1(&[0.7, 0.1]), arr1(&[-0.4, 1.5]));
    let map: Map<f64> = Map::for_kernel(kernel.clone(), 2, 3, 7).unwrap();
    let exact = (2.0f64 * 1.1 - 3.0 * -1.4).cos();
    assert!((map.estimate(&x, &y).unwrap() - exact).abs() < 1e-14);
    let single = Map::<f32>::for_kernel(kernel, 2, 3, 7).unwrap();
    let [x, y] = [x, y].map(|x| x.mapv(|v| v as f32));
    assert!((f64::from(single.estimate(&x, &y).unwrap()) - exact).abs() < 1e-6);
}

/// Frequencies are whole multiples of 2π/p, and m → ∞ gives the kernel on and between periods.
#[test]
fn periodic_features_are_periodic() {
    let kernel = SpectralMixture::periodic(vec![0.25, 7.0], 0.5).unwrap();
    let omega = kernel.draw(&Independent, 2, 4000, 3).unwrap();
    for row in omega.rows().rows() {
        for (v, period) in row.iter().zip([0.25, 7.0]) {
            let multiple = v * period / std::f64::consts::TAU;
            assert!((multiple - multiple.round()).abs() < 1e-9 && multiple.abs() < 40.0, "{multiple}");
        }
    }
    let map: Map<f64> = Trigonometric.build(omega, kernel.clone()).unwrap();
    let (x, y) = (arr1(&[0.3, 1.0]), arr1(&[0.35, 3.0]));
    let later = &x + &arr1(&[0.25 * 40.0, -7.0 * 3.0]);
    let [now, then] = [&x, &later].map(|x| map.estimate(x, &y).unwrap());
    assert!((now - then).abs() < 1e-10);
    let exact: f64 = kernel.value(&x, &y).unwrap();
    assert!((now - exact).abs() < 4.5 * (0.5f64 / 4000.0).sqrt(), "{now} {exact}");
    // However many periods lie between.
    let far: f64 = kernel.value(&arr1(&[2f64.powi(60), 0.0]), &arr1(&[0.0, 0.0])).unwrap();
    assert_eq!(far, 1.0);
}

/// Points divided by ℓ, within the parts and around the whole.
#[test]
fn lengthscales_are_those_of_points() {
    let kernel = mixture();
    let scales = vec![2.0, 0.5, 4.0];
    let stretched = kernel.clone().with_lengthscale(scales.clone()).unwrap();
    let again = SpectralMixture::product(&[&stretched]).unwrap();
    let (x, y) = (arr1(&[0.7, 0.1, 2.0]), arr1(&[-0.4, 1.5, 0.3]));
    let [divided, other] = [&x, &y].map(|x| x / &Array1::from(scales.clone()));
    let expected: f64 = kernel.value(&divided, &other).unwrap();
    for kernel in [stretched, again] {
        let value: f64 = kernel.value(&x, &y).unwrap();
        assert!((value - expected).abs() < 1e-14, "{value} {expected}");
    }
}

#[test]
fn texts_are_read_as_what_was_written() {
    for kernel in [
        mixture(),
        mixture().with_lengthscale(vec![0.1, 0.2, 1.0 / 3.0]).unwrap(),
        SpectralMixture::sum(&[(0.1, &Gaussian::new(0.3).unwrap()), (0.7, &Laplace::default())]).unwrap(),
        SpectralMixture::cosine(vec![-1e-7]).unwrap(),
        SpectralMixture::powered_exponential(4.0 / 3.0, vec![0.1, 7.0]).unwrap(),
        SpectralMixture::product(&[
            &Gaussian::new(2.0).unwrap(),
            &SpectralMixture::cosine(vec![1.5, -0.0]).unwrap(),
            &SpectralMixture::powered_exponential(0.7, 3.0).unwrap(),
        ])
        .unwrap(),
    ] {
        let kernel = AnyKernel::from(kernel);
        assert_eq!(kernel.to_string().parse(), Ok(kernel));
    }
    let read: AnyKernel =
        "spectral mixture (0.3 * gaussian 2 * cosine [1.5] + 0.7 * laplace)".parse().unwrap();
    let wave = SpectralMixture::cosine(vec![1.5]).unwrap();
    let first = SpectralMixture::product(&[&Gaussian::new(2.0).unwrap(), &wave]).unwrap();
    let expected = SpectralMixture::sum(&[(0.3, &first), (0.7, &Laplace::default())]).unwrap();
    assert_eq!(read, expected.into());
    for bad in [
        "spectral mixture",
        "spectral mixture ()",
        "spectral mixture (softmax)",
        "spectral mixture (-1 × gaussian)",
        "spectral mixture (cosine)",
        "spectral mixture (cosine [1] × cosine [1, 2])",
        "spectral mixture (gaussian 1",
        "spectral mixture (0.5 ×)",
        "spectral mixture (0.5)",
        "spectral mixture (spectral mixture (gaussian))",
        "spectral mixture (matern, ν = -1)",
    ] {
        assert!(bad.parse::<AnyKernel>().is_err(), "{bad}");
    }
}

#[test]
fn mistakes_are_refused() {
    #[derive(Debug)]
    struct Own(random_features::kernel::Lengthscale);
    impl ShiftInvariant for Own {
        fn name(&self) -> String {
            "own".into()
        }
        fn lengthscale(&self) -> &random_features::kernel::Lengthscale {
            &self.0
        }
        fn spectrum(&self) -> random_features::extend::Spectrum<'_> {
            random_features::extend::Spectrum::Polar(self)
        }
        fn of_square(&self, square: f64) -> random_features::SignedLog {
            random_features::SignedLog::positive(-square)
        }
    }
    impl random_features::extend::Radii for Own {
        fn draw(
            &self,
            _: usize,
            count: usize,
            _: &mut random_features::extend::Generator,
        ) -> random_features::Result<Vec<f64>> {
            Ok(vec![1.0; count])
        }
    }
    let gaussian = Gaussian::default();
    let own = Own(1.0.into());
    assert!(matches!(SpectralMixture::product(&[&gaussian, &own]), Err(Error::Unsupported { .. })));
    for weight in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let refused = SpectralMixture::sum(&[(weight, &gaussian), (1.0, &gaussian)]);
        assert!(matches!(refused, Err(Error::Parameter { .. })), "{weight}: {refused:?}");
    }
    assert!(SpectralMixture::sum(&[(-1.0, &gaussian)]).is_err());
    let dust = SpectralMixture::sum(&[(1e300, &gaussian), (1e-300, &gaussian)]).unwrap();
    assert_eq!(dust, SpectralMixture::product(&[&gaussian]).unwrap());
    let huge = SpectralMixture::sum(&[(1e308, &gaussian), (1e308, &gaussian)]).unwrap();
    assert_eq!(huge.value(&arr1(&[0.5]), &arr1(&[0.5])), Ok(1.0));
    assert!(SpectralMixture::sum(&[]).is_err() && SpectralMixture::product(&[]).is_err());
    assert!(SpectralMixture::cosine(vec![]).is_err() && SpectralMixture::cosine(vec![f64::NAN]).is_err());
    for period in [0.0, -1.0, f64::NAN, f64::INFINITY, 5e-324] {
        assert!(SpectralMixture::periodic(vec![period], 1.0).is_err(), "{period}");
    }
    assert!(SpectralMixture::periodic(vec![], 1.0).is_err());
    assert!(SpectralMixture::periodic(vec![1.0], 1e-3).is_err());
    let [two, three] = [vec![1.0; 2], vec![1.0; 3]].map(|wave| SpectralMixture::cosine(wave).unwrap());
    assert!(matches!(SpectralMixture::product(&[&two, &three]), Err(Error::Shape { .. })));
    let means = arr2(&[[1.0], [2.0]]);
    assert!(SpectralMixture::new(&[1.0], &means, &means).is_err());
    assert!(SpectralMixture::new(&[1.0, 1.0], &means, &Array2::zeros((2, 1))).is_err());
    // Points of another dimension, other couplings, draws that are not known by a name.
    assert!(matches!(two.draw(&Independent, 3, 8, 1), Err(Error::Shape { .. })));
    assert!(matches!(
        Kernel::<f64>::gram(&two, &Array2::ones((2, 3)), &Array2::ones((2, 3))),
        Err(Error::Shape { .. })
    ));
    assert!(matches!(two.draw(&Orthogonal, 2, 8, 1), Err(Error::Unsupported { .. })));
    assert!(matches!(two.draw(&Sobol, 2, 8, 1), Err(Error::Unsupported { .. })));
    assert!(matches!(Recipe::for_kernel(two.clone(), 2, 8), Err(Error::Sampler { .. })));
    let planner = Planner::of_one_set(&Array2::from_shape_fn((9, 2), |(i, l)| (i * i + l) as f64))
        .unwrap()
        .with_kernel(two.clone());
    assert!(matches!(planner.plan(), Err(Error::Unsupported { .. })));
    let config =
        MapConfig { kernel: Some(two.clone().into()), m: Some(8), ..MapConfig::new(Trigonometric, 2) };
    assert!(matches!(config.recipe(), Err(Error::Sampler { .. })));
    // Frequencies of another mixture.
    let other = SpectralMixture::cosine(vec![1.0, 2.0]).unwrap().draw(&Independent, 2, 8, 1).unwrap();
    assert!(matches!(Trigonometric.build::<f64>(other, two), Err(Error::Kernel { .. })));
}
