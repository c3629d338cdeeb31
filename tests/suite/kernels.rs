//! Shift-invariant kernels and their spectral laws: maps on frequencies of the law estimate the kernel, with the variance
//! ½(1 + k(2δ) − 2k(δ)²)/m.

use crate::common::{Ones, Sample, point, points, unbiased};
use crate::own_kernel::TwoShells;
use ndarray::arr1;
use random_features::extend::{Coupling, Marginal, Radii, Radius, ShiftInvariant, Spectrum};
use random_features::frequency::{
    Antithetic, Frequencies, Halton, Independent, Orthogonal, Product, Simplex, Sobol,
};
use random_features::kernel::{
    Activation, Gaussian, Kernel, Laplace, Lengthscale, Matern, PoweredExponential, RationalQuadratic,
    RegularisedSoftmax, Smoothness, Softmax,
};
use random_features::map::AnyKernel;
use random_features::recipe::Draw;
use random_features::testing::{check_unbiased, conform};
use random_features::theory::{self, Dependence, Law};
use random_features::workbench::{Cauchy, Chi, RootDim, draw_with};
use random_features::{Error, Map, Positive, Sign, SignedLog, Trigonometric, rng};

/// |z| beyond it has probability 7e-6; there are fewer than 40 of them: false alarms below 3e-4.
const LIMIT: f64 = 4.5;

fn each() -> Vec<f64> {
    vec![1.3, 0.8, 2.0]
}

fn quadratic(alpha: f64) -> RationalQuadratic {
    RationalQuadratic::new(alpha, each()).unwrap()
}

fn powered(alpha: f64) -> PoweredExponential {
    PoweredExponential::new(alpha, each()).unwrap()
}

type Make = Box<dyn Fn(u64) -> Frequencies>;

/// Kernels with couplings for which the variance has a closed form.
fn with_variance() -> Vec<(AnyKernel, Make)> {
    let laplace = |scale: Lengthscale| -> AnyKernel { Laplace::new(scale).unwrap().into() };
    vec![
        (
            quadratic(2.0).into(),
            Box::new(|seed| Independent.with_radii(quadratic(2.0)).draw(3, 5, seed).unwrap()),
        ),
        (
            quadratic(0.5).into(),
            Box::new(|seed| Antithetic(Independent).with_radii(quadratic(0.5)).draw(3, 5, seed).unwrap()),
        ),
        (
            powered(1.3).into(),
            Box::new(|seed| Independent.with_radii(powered(1.3)).draw(3, 5, seed).unwrap()),
        ),
        (
            powered(0.5).into(),
            Box::new(|seed| Antithetic(Independent).with_radii(powered(0.5)).draw(3, 5, seed).unwrap()),
        ),
        (laplace(1.4.into()), Box::new(|seed| Product(Cauchy).draw(3, 5, seed).unwrap())),
        (laplace(each().into()), Box::new(|seed| Antithetic(Product(Cauchy)).draw(3, 5, seed).unwrap())),
        (
            Matern::new(Smoothness::ThreeHalves, each()).unwrap().into(),
            Box::new(|seed| Independent.with_radii(Smoothness::ThreeHalves).draw(3, 5, seed).unwrap()),
        ),
    ]
}

#[test]
fn unbiased_and_of_the_closed_form_variance() {
    let (x, y) = (point::<f64>(3, 1, 0.7), point::<f64>(3, 5, 0.6));
    for (target, omega) in with_variance() {
        let exact: f64 = target.kernel().unwrap().value(&x, &y).unwrap();
        assert!((0.2..0.9).contains(&exact), "{target}: {exact} says little");
        let make = |seed| Trigonometric.build(omega(seed), target.clone()).unwrap();
        unbiased(&target.to_string(), make, (&x, &y), exact, (20_000, LIMIT));
    }
}

/// Coupled directions keep the mean; the variance of directions at a fixed angle is known.
#[test]
fn radii_go_with_any_coupling() {
    let (x, y) = (point::<f64>(3, 1, 0.7), point::<f64>(3, 5, 0.6));
    let kernel = quadratic(2.0);
    let exact = kernel.value(&x, &y).unwrap();
    let couplings: [&dyn Coupling; 3] = [&Orthogonal, &Simplex::default(), &Sobol];
    for coupling in couplings {
        let make = |seed| -> Map<f64> {
            let omega = coupling.with_radii(kernel.clone()).draw(3, 6, seed).unwrap();
            Trigonometric.build(omega, kernel.clone()).unwrap()
        };
        let known = coupling.block_law(3, 3, kernel.law()).dependence != Dependence::Unknown;
        let variance = make(0).log_variance(&x, &y).unwrap();
        assert_eq!(variance.is_some(), known, "{coupling:?}");
        let estimate = |seed| make(seed).estimate(&x, &y).unwrap();
        let sample = Sample::of(&(0..20_000).map(estimate).collect::<Vec<f64>>());
        assert!(sample.z(exact).abs() < LIMIT, "{coupling:?}: {} of {exact}", sample.mean);
        if let Some(variance) = variance {
            let seeds = 0..20_000;
            let errors = seeds.map(|seed| (estimate(seed) - exact).powi(2)).collect::<Vec<f64>>();
            let mse = Sample::of(&errors);
            assert!(mse.z(variance.exp()).abs() < LIMIT, "{coupling:?}: {} of {}", mse.mean, variance.exp());
        }
    }
}

/// Nets with coordinates of the kernel's law: unbiased at several sizes, with half or less of the independent variance.
#[test]
fn quasi_monte_carlo_serves_product_kernels() {
    let (x, y) = (point::<f64>(3, 1, 0.7), point::<f64>(3, 5, 0.6));
    let kernel = Laplace::new(each()).unwrap();
    let exact = kernel.value(&x, &y).unwrap();
    let (sobol, halton) = (Sobol.with_marginal(Cauchy), Halton.with_marginal(Cauchy));
    let couplings: [(&dyn Coupling, usize); 4] =
        [(&sobol, 1), (&sobol, 64), (&halton, 50), (&Antithetic(sobol), 11)];
    for (coupling, m) in couplings {
        let make =
            |seed| Trigonometric.build::<f64>(coupling.draw(3, m, rng(seed).next_u64())?, kernel.clone());
        let found = check_unbiased(make, &x, &y, exact, 20_000).unwrap();
        assert!(found.z.abs() < LIMIT && found.error < 0.01, "{coupling:?}, m = {m}: {found}");
        // A single row is independent of itself: its closed form holds. Others have none.
        assert!(
            found.variance_z.map_or(m > 1, |z| m == 1 && z.abs() < LIMIT),
            "{coupling:?}, m = {m}: {found}"
        );
        let independent = theory::shift_invariant(
            &kernel,
            &x.iter().zip(&y).zip(each()).map(|((x, y), l)| (x - y) / l).collect::<Vec<_>>(),
            &Law::independent(m).with_radius(Radius::Cauchy),
        );
        assert!(m < 50 || found.variance < 0.5 * independent.unwrap().exp(), "{coupling:?}: {found}");
    }
    // Other kernels refuse their frequencies, and they refuse other kernels.
    let omega = sobol.draw(3, 8, 1).unwrap();
    assert!(matches!(Trigonometric.gaussian::<f64>(omega, 1.0), Err(Error::Kernel { .. })));
    let normal = Sobol.draw(3, 8, 1).unwrap();
    assert!(matches!(Trigonometric.build::<f64>(normal, kernel.clone()), Err(Error::Kernel { .. })));
    assert!(matches!(sobol.draw(1112, 3, 1), Err(Error::Parameter { .. })));
}

/// A law whose quantiles leave the range of numbers is an error, and one of your own cannot be drawn by name.
#[test]
fn marginals_of_your_own() {
    #[derive(Clone, Copy, Debug)]
    struct Uniform(f64);

    impl Marginal for Uniform {
        fn lower_quantile(&self, u: f64) -> f64 {
            self.0 * (u - 0.5)
        }
    }

    let omega = Sobol.with_marginal(Uniform(2.0)).draw(2, 64, 3).unwrap();
    assert!(omega.rows().iter().all(|w| w.abs() < 1.0));
    // One point in each of 64 cells.
    let mut cells: Vec<i64> = omega.rows().column(1).iter().map(|w| (32.0 * w).floor() as i64).collect();
    cells.sort_unstable();
    assert_eq!(cells, (-32..32).collect::<Vec<_>>());
    let endless = Sobol.with_marginal(Uniform(f64::INFINITY)).draw(2, 64, 3);
    assert!(matches!(endless, Err(Error::NotFinite { .. })));
    let error = Draw::new(2, 4, Product(Uniform(2.0))).draw(1).unwrap_err();
    assert!(error.to_string().contains("coordinates whose law has no name"), "{error}");
    let error = Draw::new(2, 4, Independent).with_radii(Ones).draw(1).unwrap_err();
    assert!(error.to_string().contains("radii whose law has no name"), "{error}");
}

/// Recipes of all laws with a name draw what the couplings draw.
#[test]
fn laws_with_a_name_are_drawn_by_it() {
    let same = |draw: Draw, direct: Frequencies| assert_eq!(draw.draw(5).unwrap(), direct);
    same(Draw::new(3, 9, Product(Cauchy)), Product(Cauchy).draw(3, 9, 5).unwrap());
    let sobol = Sobol.with_marginal(Cauchy);
    same(Draw::new(3, 9, sobol), sobol.draw(3, 9, 5).unwrap());
    let halton = Antithetic(Halton.with_marginal(Cauchy));
    same(Draw::new(3, 9, halton), halton.draw(3, 9, 5).unwrap());
    let of = |radii: &dyn Radii| draw_with(3, 9, &Orthogonal, radii, 5).unwrap();
    same(Draw::new(3, 9, Orthogonal), of(&Chi));
    same(Draw::new(3, 9, Orthogonal).with_radii(RootDim), of(&RootDim));
    same(Draw::new(3, 9, Orthogonal).with_radii(Smoothness::Half), of(&Smoothness::Half));
    let quadratic = Orthogonal.with_radii(quadratic(0.7)).draw(3, 9, 5).unwrap();
    same(Draw::new(3, 9, Orthogonal).with_radii(RationalQuadratic::new(0.7, 1.0).unwrap()), quadratic);
}

#[test]
fn maps_conform() {
    let x = points::<f32>(150, 3, 1.0);
    for (target, omega) in with_variance() {
        let map = Trigonometric.build(omega(1), target).unwrap();
        conform(&map, &x).unwrap();
        conform(
            &Trigonometric
                .build::<f64>(omega(1), AnyKernel::implied(map.kernel().map_or(1.0, |_| 2.0)))
                .unwrap(),
            &points(9, 3, 1.0),
        )
        .unwrap();
    }
}

/// Values of the definitions; γ of scikit-learn's kernels in the docs.
#[test]
fn values_of_the_definition() {
    let (x, y) = (arr1(&[1.0, -2.0, 0.5]), arr1(&[0.5, 0.25, 0.5]));
    let laplace = Laplace::new(vec![0.5, 2.25, 1.0]).unwrap();
    assert_eq!(laplace.log_value(&x, &y).unwrap().ln_abs, -2.0);
    let kernel = RationalQuadratic::new(1.5, 1.0).unwrap();
    let square: f64 = 0.25 + 2.25 * 2.25;
    assert!((kernel.value(&x, &y).unwrap() - (1.0 + square / 3.0).powf(-1.5)).abs() < 1e-16);
    // The Gaussian kernel is the limit of many α, and far points are far.
    let gaussian: f64 = Gaussian::default().value(&x, &y).unwrap();
    let near: f64 = RationalQuadratic::new(1e12, 1.0).unwrap().value(&x, &y).unwrap();
    assert!((near / gaussian - 1.0).abs() < 1e-10);
    let far = arr1(&[1e200, 0.0, 0.0]);
    for kernel in [&laplace as &dyn Kernel<f64>, &kernel] {
        let log = kernel.log_value(&far, &y).unwrap();
        assert!(!log.ln_abs.is_nan() && log.value() == 0.0 && kernel.value(&x, &x).unwrap() == 1.0);
    }
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-4, 1e13] {
        assert!(matches!(RationalQuadratic::new(bad, 1.0), Err(Error::Parameter { name: "α", .. })), "{bad}");
    }
    assert!(RationalQuadratic::new(1.0, 0.0).is_err() && Laplace::new(-1.0).is_err());
}

/// Points whose squares overflow or underflow: kernels of functions at an angle of π/3, along a line and across it.
#[test]
fn functions_of_points_whose_squares_are_out_of_range() {
    let log = |f: Activation, x: [f64; 2], y: [f64; 2]| {
        f.kernel().unwrap().log_value(&arr1(&x), &arr1(&y)).unwrap()
    };
    let far = 1e160;
    let [x, y] = [[far, 0.0], [0.5 * far, 0.75f64.sqrt() * far]];
    let third = |f: Activation, expected: f64| {
        let found = log(f, x, y).value();
        assert!((found - expected).abs() < 1e-12, "{f}: {found} {expected}");
    };
    // Far from 0 the error function is the sign: 1 − 2θ/π. The step has ½ − θ/2π.
    third(Activation::Erf, 1.0 / 3.0);
    third(Activation::Sign, 1.0 / 3.0);
    third(Activation::Step, 1.0 / 3.0);
    third(Activation::Cos, 0.0);
    third(Activation::Sin, 0.0);
    assert_eq!(log(Activation::Erf, x, x).value(), 1.0);
    assert_eq!(log(Activation::Erf, x, [-far, 0.0]).value(), -1.0);
    assert!((log(Activation::Cos, x, x).value() - 0.5).abs() < 1e-15);
    assert!((log(Activation::Sin, x, [-far, 0.0]).value() + 0.5).abs() < 1e-15);
    for f in [Activation::Identity, Activation::Erf, Activation::Cos, Activation::Sin] {
        let across = log(f, [far, far], [far, -far]);
        assert_eq!((across.ln_abs, across.sign), (f64::NEG_INFINITY, 0.0), "{f}");
    }
    let logarithm = |f: Activation, x: f64, y: f64, expected: f64| {
        let found = log(f, [x, 0.0], [y, 0.0]);
        assert!(
            found.sign == 1.0 && (found.ln_abs - expected).abs() < 1e-9,
            "{f} {x} {y}: {found:?} {expected}"
        );
    };
    for size in [1e-170f64, 1e160] {
        let square = 2.0 * size.ln();
        logarithm(Activation::Identity, size, size, square);
        logarithm(Activation::Square, size, size, 2.0 * square + 3f64.ln());
        logarithm(Activation::Relu, size, size, square - 2f64.ln());
        logarithm(Activation::ReluSquared, size, size, 2.0 * square + 1.5f64.ln());
        logarithm(Activation::Abs, size, size, square);
    }
    // Near 0 the sine and the error function are proportional to their arguments, u and 2u/√π.
    let near = 2.0 * 1e-170f64.ln();
    logarithm(Activation::Sin, 1e-170, 1e-170, near);
    logarithm(Activation::Erf, 1e-170, 1e-170, (4.0 / std::f64::consts::PI).ln() + near);
    // (2/π) asin(2xy/√(2x² + …)) of a far point and a near one.
    let expected = (2.0 * 2f64.sqrt() / std::f64::consts::PI * 1e-160).ln();
    logarithm(Activation::Erf, far, 1e-160, expected);
    // A gradient that overflows is infinite.
    let gradient = Activation::Exp.kernel().unwrap().gradient(&arr1(&x), &arr1(&x)).unwrap();
    assert_eq!(gradient.to_vec(), [f64::INFINITY, 0.0]);
}

/// Differences and products whose squares overflow: heavy tails, long lengthscales, and terms that cancel.
#[test]
fn points_whose_squares_are_out_of_range() {
    let zero = arr1(&[0.0, 0.0]);
    for (alpha, scale, far) in [(1e-3, 1.0f64, 1e154f64), (1e-3, 1.0, 1e160), (1e-2, 1e10, 1e160)] {
        let kernel = RationalQuadratic::new(alpha, scale).unwrap();
        let expected = -alpha * (2.0 * (far.ln() - scale.ln()) - (2.0 * alpha).ln());
        let found = kernel.log_value(&arr1(&[far, 0.0]), &zero).unwrap().ln_abs;
        assert!((found / expected - 1.0).abs() < 1e-12, "{found} {expected}");
        // ½(1 + k(2δ) − 2k(δ)²).
        let [once, twice] = [expected.exp(), (expected - 2.0 * alpha * 2f64.ln()).exp()];
        let variance = 0.5 * (1.0 + twice - 2.0 * once * once);
        let delta = [far / scale, 0.0];
        assert!((kernel.ln_variance(&delta).exp() / variance - 1.0).abs() < 1e-9, "{alpha}");
    }
    // ℓ² is in range, and (x − y)² is not.
    let (scale, x) = (6e153, arr1(&[1.5e154, 0.0]));
    let gaussian: f64 = Gaussian::new(scale).unwrap().value(&x, &zero).unwrap();
    assert!((gaussian / (-3.125f64).exp() - 1.0).abs() < 1e-14, "{gaussian}");
    let softmax = Softmax::new(vec![scale; 2]).unwrap().log_value(&x, &x).unwrap().ln_abs;
    assert!((softmax - 6.25).abs() < 1e-14, "{softmax}");
    // A product of 0 and a number that overflows when it is divided by ℓ.
    let (x, y) = (arr1(&[1e300, 1.0]), arr1(&[0.0, 1e300]));
    assert_eq!(Softmax::new(1e-100).unwrap().log_value(&x, &y).unwrap().ln_abs, f64::INFINITY);
    // 10³²⁰ − 10³²⁰.
    let (x, y) = (arr1(&[1e160, 1e160]), arr1(&[1e160, -1e160]));
    assert_eq!(Softmax::default().value(&x, &y).unwrap(), 1.0);
    for norm in [1e20, 1e153, 1e160] {
        let x = arr1(&[norm, 0.0]);
        let kernel = RegularisedSoftmax::default();
        assert_eq!(kernel.value(&x, &x).unwrap(), 0.0);
        assert_eq!(kernel.gradient(&x, &x).unwrap().to_vec(), [0.0, 0.0], "{norm}");
    }
}

/// Half of all Cauchy numbers are below 1 in size, a quarter above 1 + √2 = tan 3π/8: within 5 standard deviations of
/// 10⁵, so that a false alarm has probability 1e-6.
#[test]
fn coordinates_have_the_cauchy_distribution() {
    let rows = Product(Cauchy).draw(10, 10_000, 3).unwrap().rows().into_owned();
    let share = |least: f64| rows.iter().filter(|v| v.abs() > least).count() as f64 / 1e5;
    assert!((share(1.0) - 0.5).abs() < 5.0 * (0.25f64 / 1e5).sqrt(), "{}", share(1.0));
    assert!((share(1.0 + 2f64.sqrt()) - 0.25).abs() < 5.0 * (0.1875f64 / 1e5).sqrt());
    let below = rows.iter().filter(|v| **v < 0.0).count() as f64 / 1e5;
    assert!((below - 0.5).abs() < 5.0 * (0.25f64 / 1e5).sqrt());
    assert!(rows.iter().all(|v| v.is_finite()) && rows.iter().any(|v| v.abs() > 1e3));
}

/// Directions of independent Cauchy coordinates are not uniform: the angular kernel is not claimed, and is not
/// estimated.
#[test]
fn product_laws_have_no_angular_kernel() {
    let map = Sign.build::<f64>(Product(Cauchy).draw(2, 40_000, 1).unwrap(), 1.0).unwrap();
    let (x, y) = (arr1(&[1.0, 0.0]), arr1(&[1.0, 2.0]));
    assert!(map.kernel().is_none() && map.log_variance(&x, &y).unwrap().is_none());
    // (4/π²) ∫ ln t/(t² − 1) from 2 on, within 5 standard deviations, and not 1 − 2θ/π = 0.295.
    assert!((map.estimate(&x, &y).unwrap() - 0.3632).abs() < 0.025);
    let polar =
        Sign.build::<f64>(Independent.with_radii(quadratic(1.0)).draw(2, 9, 1).unwrap(), 1.0).unwrap();
    assert!(polar.kernel().is_some() && polar.log_variance(&x, &y).unwrap().is_some());
}

#[test]
fn laws_that_do_not_fit_are_refused() {
    let cauchy = || Product(Cauchy).draw(2, 3, 1).unwrap();
    let chi = || Independent.draw(2, 3, 1).unwrap();
    let radii = || Independent.with_radii(quadratic(2.0)).draw(3, 3, 1).unwrap();
    let refused = [
        Trigonometric.build::<f32>(chi(), Laplace::default()).map(drop),
        Trigonometric.gaussian::<f32>(cauchy(), 1.0).map(drop),
        Trigonometric.build::<f32>(radii(), RationalQuadratic::new(3.0, 1.0).unwrap()).map(drop),
        Positive.build::<f32>(cauchy(), Laplace::default()).map(drop),
        Positive.build::<f32>(radii(), quadratic(2.0)).map(drop),
        Trigonometric.build::<f32>(chi(), AnyKernel::own(TwoShells::default())).map(drop),
    ];
    for found in refused {
        assert!(matches!(found, Err(Error::Kernel { .. })), "{found:?}");
    }
    let error = Trigonometric
        .build::<f32>(cauchy(), RationalQuadratic::new(2.0, 1.0).unwrap())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("for the kernel Laplace") && error.contains("rational quadratic, α = 2"),
        "{error}"
    );
}

#[test]
fn a_kernel_of_ones_own_has_features_and_a_variance() {
    for norm in [0.5, 2.0, 4.0] {
        let (x, y) = (point::<f64>(3, 1, norm), point::<f64>(3, 5, 0.6));
        let exact = TwoShells::default().value(&x, &y).unwrap();
        let make = |seed| {
            let omega = Independent.with_radii(TwoShells::default()).draw(3, 5, seed).unwrap();
            Trigonometric.build(omega, AnyKernel::own(TwoShells::default())).unwrap()
        };
        let map = make(0);
        assert_eq!(map.kernel().unwrap().value(&x, &y).unwrap(), exact);
        unbiased(&format!("norm {norm}"), make, (&x, &y), exact, (20_000, LIMIT));
    }
}

#[cfg(feature = "serde")]
#[test]
fn kernels_and_draws_are_stored() {
    use random_features::Recipe;
    use random_features::recipe::Draw;
    let recipes = [
        Trigonometric.recipe(Draw::new(3, 5, Orthogonal).with_radii(quadratic(0.1)), quadratic(0.1)),
        Trigonometric.recipe(Draw::new(3, 5, Product(Cauchy)), Laplace::new(each()).unwrap()),
        Trigonometric.recipe(Draw::new(3, 5, Antithetic(Product(Cauchy))), Laplace::default()),
    ];
    for recipe in recipes {
        for recipe in [recipe.clone(), recipe.drawn(4).unwrap()] {
            let text = serde_json::to_string(&recipe).unwrap();
            assert_eq!(serde_json::from_str::<Recipe>(&text).unwrap(), recipe);
            let bytes = postcard::to_stdvec(&recipe).unwrap();
            assert_eq!(postcard::from_bytes::<Recipe>(&bytes).unwrap(), recipe);
        }
        assert!(recipe.draw::<f32>(4).unwrap().kernel().is_some());
    }
    // Radii have no lengthscale: draws for kernels of different ones are the same.
    let draw =
        |scale: f64| Draw::new(2, 2, Independent).with_radii(RationalQuadratic::new(1.0, scale).unwrap());
    assert_eq!(draw(1.0), draw(2.0));
    // What no file can hold says so.
    let omega = Independent.with_radii(TwoShells::default()).draw(3, 5, 1).unwrap();
    let own = Trigonometric.recipe(omega, AnyKernel::own(TwoShells::default()));
    assert!(
        serde_json::to_string(&own)
            .unwrap_err()
            .to_string()
            .contains("a kernel of your own cannot be stored")
    );
}

#[test]
fn quantiles_of_cauchy_invert_its_distribution() {
    use random_features::extend::Marginal;
    use random_features::workbench::Cauchy;

    for u in [1e-9, 0.1, 0.249, 0.25, 0.3, 0.49, 0.5] {
        let quantile = Cauchy.lower_quantile(u);
        assert!((0.5 + quantile.atan() / std::f64::consts::PI - u).abs() < 1e-15, "{u}: {quantile}");
    }
}

/// exp(−a‖δ‖²/2) with radii χ √b: one kernel, if a is b.
#[derive(Debug, Default)]
struct Stretched(f64, f64, Lengthscale);

impl Radii for Stretched {
    fn draw(
        &self,
        d: usize,
        count: usize,
        rng: &mut random_features::extend::Generator,
    ) -> random_features::Result<Vec<f64>> {
        Ok(Chi.draw(d, count, rng)?.iter().map(|radius| radius * self.1.sqrt()).collect())
    }
}

impl ShiftInvariant for Stretched {
    fn name(&self) -> String {
        format!("stretched {} {}", self.0, self.1)
    }

    fn lengthscale(&self) -> &Lengthscale {
        &self.2
    }

    fn spectrum(&self) -> Spectrum<'_> {
        Spectrum::Polar(self)
    }

    fn of_square(&self, square: f64) -> SignedLog {
        SignedLog { ln_abs: -0.5 * self.0 * square, sign: 1.0 }
    }
}

/// The kernel Π 1/(1 + δ²/b²) of coordinates with a Laplace distribution of scale 1/b.
#[derive(Debug)]
struct Rational(f64, Lengthscale);

impl Marginal for Rational {
    fn lower_quantile(&self, u: f64) -> f64 {
        (2.0 * u).ln() / self.0
    }
}

impl ShiftInvariant for Rational {
    fn name(&self) -> String {
        format!("rational {}", self.0)
    }

    fn lengthscale(&self) -> &Lengthscale {
        &self.1
    }

    fn spectrum(&self) -> Spectrum<'_> {
        Spectrum::Product(self)
    }

    fn of_square(&self, square: f64) -> SignedLog {
        SignedLog::from(1.0 / (1.0 + square / (self.0 * self.0)))
    }
}

/// Rows in threes, which share a radius.
#[derive(Debug)]
struct Triples;

impl Coupling for Triples {
    fn capacity(&self, _: usize) -> usize {
        3
    }

    fn draw_block(
        &self,
        d: usize,
        size: usize,
        radii: &dyn Radii,
        rng: &mut random_features::extend::Generator,
    ) -> random_features::Result<random_features::extend::Rows> {
        let radius = radii.draw(d, 1, rng)?[0];
        let mut rows = Orthogonal.draw(d, size, rng.next_u64())?.rows().into_owned();
        for mut row in rows.rows_mut() {
            let norm = row.dot(&row).sqrt();
            row *= radius / norm;
        }
        Ok(random_features::extend::Rows::Dense(rows))
    }
}

/// Laws without a name are compared by what they draw.
#[test]
fn laws_of_ones_own_are_verified() {
    let shells = || AnyKernel::own(TwoShells::default());
    let stretched = |a, b| Stretched(a, b, Lengthscale::default());
    let refused = |omega: Frequencies, target: AnyKernel| {
        let error = Trigonometric.build::<f64>(omega, target).unwrap_err();
        assert!(matches!(error, Error::Kernel { .. }), "{error}");
        assert!(error.to_string().contains("another law than those that the kernel draws"), "{error}");
    };
    // Radii of another law than the kernel's, and the right kind at another scale.
    refused(draw_with(3, 256, &Orthogonal, &stretched(1.0, 1.0), 1).unwrap(), shells());
    refused(
        draw_with(3, 64, &Orthogonal, &stretched(4.0, 4.0), 1).unwrap(),
        AnyKernel::own(stretched(0.5, 0.5)),
    );
    refused(
        Orthogonal.with_radii(stretched(1.0, 1.0)).draw(2, 1000, 1).unwrap(),
        AnyKernel::own(stretched(0.5, 0.5)),
    );
    refused(
        draw_with(3, 300, &Triples, &stretched(4.0, 4.0), 1).unwrap(),
        AnyKernel::own(stretched(0.5, 0.5)),
    );
    let rational = |b| Rational(b, Lengthscale::default());
    refused(Product(rational(3.0)).draw(3, 200, 1).unwrap(), AnyKernel::own(rational(1.0)));
    // Those of the kernel, for every coupling, whatever the seed.
    for seed in 0..20 {
        let couplings: [&dyn Coupling; 7] = [
            &Independent,
            &Orthogonal,
            &Simplex::default(),
            &Antithetic(Orthogonal),
            &Halton,
            &Sobol,
            &Triples,
        ];
        for coupling in couplings {
            for m in [3, 30, 300] {
                let of = |radii: &dyn Radii| draw_with(3, m, coupling, radii, seed).unwrap();
                let map = Trigonometric.build::<f64>(of(&TwoShells::default()), shells()).unwrap();
                assert!(map.kernel().is_some(), "{coupling:?} {m} {seed}");
                Trigonometric
                    .build::<f64>(of(&stretched(0.5, 0.5)), AnyKernel::own(stretched(0.5, 0.5)))
                    .unwrap();
            }
        }
        for omega in
            [Product(rational(2.0)).draw(3, 50, seed), Sobol.with_marginal(rational(2.0)).draw(3, 64, seed)]
        {
            Trigonometric.build::<f64>(omega.unwrap(), AnyKernel::own(rational(2.0))).unwrap();
        }
    }
    // A kernel that is not that of its own law, whatever the frequencies are.
    let omega = draw_with(3, 10, &Orthogonal, &stretched(1.0, 0.5), 1).unwrap();
    let error = Trigonometric.build::<f64>(omega, AnyKernel::own(stretched(1.0, 0.5))).unwrap_err();
    assert!(error.to_string().contains("the mean of cos ω·δ over its own spectral law"), "{error}");
    // Numbers of which no law is stated are accepted, and no kernel is promised.
    let rows = Orthogonal.with_radii(Chi).draw(3, 64, 1).unwrap().rows().into_owned();
    let map = Trigonometric.build::<f64>(Frequencies::from_rows(rows).unwrap(), shells()).unwrap();
    assert!(map.kernel().is_none());
}

/// Squared distances overflow before kernels are 0 by their exponents.
#[test]
fn kernels_of_points_that_are_very_far_apart() {
    let [x, y] = [arr1(&[1e154]), arr1(&[0.0])];
    for smoothness in
        [Smoothness::Half, Smoothness::ThreeHalves, Smoothness::FiveHalves, Smoothness::of(2.2).unwrap()]
    {
        assert_eq!(Matern::new(smoothness, 1.0).unwrap().value(&x, &y).unwrap(), 0.0, "{smoothness:?}");
    }
    // One cosine has the variance ½ where the kernel is 0.
    for distance in [1e20, 1e100, 1e154, 1e200] {
        let ln = RationalQuadratic::new(1.0, 1.0).unwrap().ln_variance(&[distance]);
        assert!((ln - 0.5f64.ln()).abs() < 1e-12, "{distance:e}: {ln}");
    }
}
