//! The map of a kernel in one call, and frequencies of a kernel's own law.

use ndarray::{Array1, arr1};
use random_features::extend::{Coupling, Generator, Marginal, Radii, ShiftInvariant, Spectrum};
use random_features::frequency::{
    Antithetic, Frequencies, Hadamard, Halton, Independent, Orthogonal, Product, Simplex, Sobol,
};
use random_features::kernel::{
    Activation, ActivationKernel, Angular, Gaussian, Laplace, Lengthscale, Matern, PoweredExponential,
    RationalQuadratic, RegularisedSoftmax, Smoothness, Softmax, SpectralMixture,
};
use random_features::map::{AnyKernel, Mechanism, Recipe};
use random_features::workbench::{Cauchy, Chi, RootDim, draw_with};
use random_features::{Error, Map, Nonlinear, Positive, Result, Sign, SignedLog, Trigonometric};

/// The Gaussian kernel of lengthscale √2, whose law has no name.
#[derive(Clone, Debug, Default)]
struct Wide(Lengthscale);

impl Radii for Wide {
    fn draw(&self, d: usize, count: usize, rng: &mut Generator) -> Result<Vec<f64>> {
        Ok(Radii::draw(&Chi, d, count, rng)?.iter().map(|radius| radius / 2f64.sqrt()).collect())
    }
}

impl ShiftInvariant for Wide {
    fn name(&self) -> String {
        "wide".into()
    }

    fn lengthscale(&self) -> &Lengthscale {
        &self.0
    }

    fn spectrum(&self) -> Spectrum<'_> {
        Spectrum::Polar(self)
    }

    fn of_square(&self, square: f64) -> SignedLog {
        SignedLog::positive(-0.25 * square)
    }
}

/// The product of cos δₖ, whose coordinates of frequencies are ±1, as a law without a name.
#[derive(Clone, Debug, Default)]
struct Waves(Lengthscale);

impl Marginal for Waves {
    fn lower_quantile(&self, _: f64) -> f64 {
        -1.0
    }
}

impl ShiftInvariant for Waves {
    fn name(&self) -> String {
        "waves".into()
    }

    fn lengthscale(&self) -> &Lengthscale {
        &self.0
    }

    fn spectrum(&self) -> Spectrum<'_> {
        Spectrum::Product(self)
    }

    fn of_square(&self, square: f64) -> SignedLog {
        SignedLog::from(square.sqrt().cos())
    }
}

fn relu() -> ActivationKernel {
    Activation::Relu.kernel().unwrap().with_offset(0.1).unwrap().with_lengthscale(1.5).unwrap()
}

/// All kernels whose laws have names, with their maps.
fn named() -> Vec<(AnyKernel, Mechanism)> {
    let offset = Nonlinear::new(Activation::Relu).with_offset(0.1).unwrap();
    vec![
        (Softmax::new(1.5).unwrap().into(), Positive.into()),
        (RegularisedSoftmax::new(1.5).unwrap().into(), Positive.into()),
        (Gaussian::new(vec![1.0, 1.5, 2.0]).unwrap().into(), Trigonometric.into()),
        (Matern::new(Smoothness::Half, 1.5).unwrap().into(), Trigonometric.into()),
        (Matern::new(Smoothness::FiveHalves, 1.5).unwrap().into(), Trigonometric.into()),
        (RationalQuadratic::new(1.5, 1.5).unwrap().into(), Trigonometric.into()),
        (PoweredExponential::new(1.5, 1.5).unwrap().into(), Trigonometric.into()),
        (Laplace::new(1.5).unwrap().into(), Trigonometric.into()),
        (Angular.into(), Sign.into()),
        (relu().into(), offset.into()),
    ]
}

fn pair() -> [Array1<f64>; 2] {
    [arr1(&[0.5, -0.3, 0.8]), arr1(&[0.2, 0.6, 0.4])]
}

/// The mean of estimates over draws, and its standard deviation.
fn mean(draws: u64, estimate: impl Fn(u64) -> f64) -> (f64, f64) {
    let all: Vec<f64> = (0..draws).map(estimate).collect();
    let n = all.len() as f64;
    let mean = all.iter().sum::<f64>() / n;
    let square = all.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1.0);
    (mean, (square / n).sqrt())
}

#[test]
fn every_kernel_has_an_unbiased_map() {
    // 13 kernels, each beyond 4.5 standard deviations by chance once in 10⁵.
    let own = [AnyKernel::own(Wide::default()), AnyKernel::own(Waves::default())];
    let wave = SpectralMixture::cosine(vec![1.0, 0.5, -2.0]).unwrap();
    let mixture = SpectralMixture::product(&[&wave, &Gaussian::new(1.5).unwrap()]).unwrap();
    let more = own.into_iter().chain([mixture.into()]);
    let all = named().into_iter().chain(more.map(|kernel| (kernel, Trigonometric.into())));
    let [x, y] = pair();
    for (kernel, mechanism) in all {
        let map = |seed| Map::<f64>::for_kernel(kernel.clone(), 3, 8, seed).unwrap();
        let Some(Recipe::Plain(plain)) = map(0).recipe() else { panic!("{kernel}") };
        assert_eq!(plain.mechanism, mechanism, "{kernel}");
        let exact = kernel.kernel::<f64>().unwrap().value(&x, &y).unwrap();
        let known = map(0).kernel().unwrap().value(&x, &y).unwrap();
        assert!((known - exact).abs() < 1e-14, "{kernel}: {known} {exact}");
        let (mean, deviation) = mean(2000, |seed| map(seed).estimate(&x, &y).unwrap());
        assert!((mean - exact).abs() < 4.5 * deviation, "{kernel}: {mean} ± {deviation}, exactly {exact}");
        assert!(deviation < 0.02 * exact.abs().max(1.0), "{kernel}: {deviation}");
    }
}

#[test]
fn recipes_give_the_same_maps() {
    for (kernel, _) in named() {
        let recipe = Recipe::for_kernel(kernel.clone(), 3, 8).unwrap();
        assert!(!recipe.is_drawn() && recipe.kernel().is_some(), "{kernel}");
        let (drawn, direct) =
            (recipe.draw::<f32>(7).unwrap(), Map::<f32>::for_kernel(kernel.clone(), 3, 8, 7).unwrap());
        assert_eq!(drawn.identity(), direct.identity(), "{kernel}");
        let one = Map::<f64>::for_kernel(AnyKernel::from(Gaussian::default()), 1, 8, 7).unwrap();
        assert_eq!(one.dim(), 1);
    }
    assert_eq!(Map::<f64>::for_kernel(Softmax::default(), 1, 8, 7).unwrap().dim(), 1);
    for own in [AnyKernel::own(Wide::default()), AnyKernel::own(Waves::default())] {
        assert!(matches!(Recipe::for_kernel(own, 3, 8), Err(Error::Sampler { .. })));
    }
}

/// The coupling of the table is nowhere much worse than independent frequencies, and better at most pairs.
#[test]
fn couplings_pay() {
    let at =
        |angle: f64, r: f64| [arr1(&[r, 0.0, 0.0, 0.0]), arr1(&[r * angle.cos(), r * angle.sin(), 0.0, 0.0])];
    let pairs = [at(0.3, 0.7), at(1.2, 0.7), at(2.5, 0.7), at(1.2, 1.5)];
    for (kernel, mechanism) in named() {
        if matches!(kernel, AnyKernel::Laplace(_) | AnyKernel::Gaussian(_)) {
            continue;
        }
        let mut ratios = Vec::new();
        for [x, y] in &pairs {
            let variance = |coupling: Option<&dyn Coupling>| {
                let (_, deviation) = mean(4000, |seed| {
                    let map: Map<f64> = match coupling {
                        None => Map::for_kernel(kernel.clone(), 4, 8, seed).unwrap(),
                        Some(coupling) => {
                            let omega = kernel.draw(coupling, 4, 8, seed).unwrap();
                            let taken = match kernel {
                                AnyKernel::Angular(_) | AnyKernel::ActivationKernel(_) => {
                                    AnyKernel::implied(kernel.lengthscale().clone())
                                }
                                _ => kernel.clone(),
                            };
                            random_features::recipe::PlainRecipe::new(mechanism.clone(), omega, taken)
                                .build()
                                .unwrap()
                        }
                    };
                    map.estimate(x, y).unwrap()
                });
                deviation * deviation
            };
            ratios.push(variance(None) / variance(Some(&Independent)));
        }
        assert!(ratios.iter().all(|ratio| *ratio < 1.12), "{kernel}: {ratios:?}");
        assert!(ratios.iter().filter(|ratio| **ratio < 0.95).count() >= 2, "{kernel}: {ratios:?}");
    }
}

#[test]
fn draws_have_the_law_of_the_kernel() {
    let of = |omega: Result<Frequencies>| omega.unwrap();
    let matern = Matern::new(Smoothness::ThreeHalves, 0.5).unwrap();
    let by_hand = of(Orthogonal.with_radii(Smoothness::ThreeHalves).draw(3, 10, 7));
    assert_eq!(of(matern.draw(&Orthogonal, 3, 10, 7)), by_hand);
    assert_eq!(of(matern.draw(&Orthogonal.with_radii(Smoothness::ThreeHalves), 3, 10, 7)), by_hand);
    let coupling: &dyn Coupling = &Simplex::default();
    assert_eq!(of(Softmax::default().draw(coupling, 3, 10, 7)), of(coupling_draw(Simplex::default())));
    assert_eq!(
        of(RegularisedSoftmax::in_dimension(16).draw(&Hadamard::default(), 3, 10, 7)),
        of(Hadamard::default().with_radii(RootDim).draw(3, 10, 7))
    );
    let rational = RationalQuadratic::new(1.5, 2.0).unwrap();
    assert_eq!(
        of(rational.draw(&Sobol, 3, 10, 7)),
        of(Sobol.with_radii(RationalQuadratic::new(1.5, 1.0).unwrap()).draw(3, 10, 7))
    );
    let laplace = Laplace::new(2.0).unwrap();
    let product = of(Product(Cauchy).draw(3, 10, 7));
    assert_eq!(of(laplace.draw(&Independent, 3, 10, 7)), product);
    assert_eq!(of(laplace.draw(&Product(Cauchy), 3, 10, 7)), product);
    assert_eq!(
        of(laplace.draw(&Antithetic(Independent), 3, 10, 7)),
        of(Antithetic(Product(Cauchy)).draw(3, 10, 7))
    );
    assert_eq!(of(laplace.draw(&Sobol, 3, 10, 7)), of(Sobol.with_marginal(Cauchy).draw(3, 10, 7)));
    assert_eq!(of(laplace.draw(&Halton, 3, 10, 7)), of(Halton.with_marginal(Cauchy).draw(3, 10, 7)));
    let wide = AnyKernel::own(Wide::default());
    assert_eq!(of(wide.draw(&Orthogonal, 3, 10, 7)), of(draw_with(3, 10, &Orthogonal, &Wide::default(), 7)));
    let waves = AnyKernel::own(Waves::default());
    assert_eq!(of(waves.draw(&Independent, 3, 10, 7)), of(Product(Waves::default()).draw(3, 10, 7)));
    assert_eq!(of(AnyKernel::from(Angular).draw(&Orthogonal, 3, 10, 7)), of(Orthogonal.draw(3, 10, 7)));
    assert_eq!(of(AnyKernel::from(relu()).draw(&Orthogonal, 3, 10, 7)), of(Orthogonal.draw(3, 10, 7)));
}

fn coupling_draw(coupling: impl Coupling) -> Result<Frequencies> {
    draw_with(3, 10, &coupling, &Chi, 7)
}

#[test]
fn refusals_say_why() {
    let map = |kernel: AnyKernel, d, m| Map::<f64>::for_kernel(kernel, d, m, 1).err();
    let recipe = |kernel: AnyKernel, d, m| Recipe::for_kernel(kernel, d, m).err();
    for (kernel, _) in named() {
        assert!(matches!(map(kernel.clone(), 3, 0), Some(Error::Parameter { .. })), "{kernel}");
        assert!(matches!(recipe(kernel.clone(), 3, 0), Some(Error::Parameter { .. })), "{kernel}");
        if matches!(kernel.lengthscale(), Lengthscale::Isotropic(_)) {
            assert!(matches!(map(kernel.clone(), 0, 4), Some(Error::Parameter { .. })), "{kernel}");
            assert!(matches!(recipe(kernel.clone(), 0, 4), Some(Error::Parameter { .. })), "{kernel}");
        } else {
            assert!(matches!(map(kernel.clone(), 2, 4), Some(Error::Shape { .. })), "{kernel}");
            assert!(matches!(recipe(kernel.clone(), 2, 4), Some(Error::Shape { .. })), "{kernel}");
        }
    }
    let padded = AnyKernel::from(RegularisedSoftmax::in_dimension(8));
    assert!(map(padded.clone(), 8, 4).is_none());
    for refused in [map(padded.clone(), 6, 4), recipe(padded, 6, 4)] {
        assert!(matches!(refused, Some(Error::Shape { expected: 8, found: 6, .. })), "{refused:?}");
    }
    let hadamard = |kernel: RegularisedSoftmax| kernel.draw(&Hadamard::default(), 4, 8, 1);
    let refused = hadamard(RegularisedSoftmax::default()).unwrap_err();
    assert!(matches!(refused, Error::Shape { expected: 4, found: 16, .. }), "{refused}");
    let kernel = RegularisedSoftmax::in_dimension(16);
    assert!(Positive.build::<f64>(hadamard(kernel.clone()).unwrap(), kernel).is_ok());
    let implied = AnyKernel::implied(1.0);
    assert!(matches!(map(implied.clone(), 3, 4), Some(Error::Unsupported { .. })));
    assert!(matches!(recipe(implied, 3, 4), Some(Error::Unsupported { .. })));
    let matern = Matern::new(Smoothness::Half, 1.0).unwrap();
    assert!(matches!(matern.draw(&Orthogonal.with_radii(RootDim), 3, 4, 1), Err(Error::Unsupported { .. })));
    let laplace = Laplace::new(1.0).unwrap();
    let message = laplace.draw(&Orthogonal, 3, 4, 1).unwrap_err().to_string();
    assert!(message.contains("take Independent"), "{message}");
    assert!(matches!(
        Positive.build::<f64>(Orthogonal.draw(3, 4, 1).unwrap(), Angular),
        Err(Error::Kernel { .. })
    ));
    assert!(matches!(
        Positive.build::<f64>(Orthogonal.draw(3, 4, 1).unwrap(), relu()),
        Err(Error::Kernel { .. })
    ));
}
