//! Sums of the kernels of maps: against their parts, over draws, gradients, storage, refusals; and sums whose frequencies are divided
//! among the terms.

use crate::common::{point, points, unbiased};
use ndarray::{Array2, Axis, arr2, concatenate};
use random_features::compose::{Hybrid, WeightedSum};
use random_features::frequency::{Independent, Orthogonal};
use random_features::kernel::{
    Activation, Angular, Gaussian, Kernel, Laplace, Matern, Smoothness, Softmax, SpectralMixture,
};
use random_features::map::{AnyKernel, Nystroem};
use random_features::recipe::Draw;
use random_features::testing::conform;
use random_features::{Error, Gerf, Map, Real, Recipe, Side, Trigonometric};

/// Recipes of many kernels, with different features on both sides and several blocks among them, with positive weights.
fn terms() -> Vec<(f64, Recipe)> {
    let of = |kernel: AnyKernel| Recipe::for_kernel(kernel, 3, 6).unwrap();
    let draw = |stream| Draw::new(3, 6, Orthogonal).with_stream(stream);
    let inner =
        WeightedSum::of(vec![(0.25, of(Angular.into())), (4.0, of(Laplace::new(2.0).unwrap().into()))]);
    vec![
        (0.7, of(Gaussian::new(0.8).unwrap().into())),
        (1.5, of(Softmax::new(1.3).unwrap().into())),
        (0.2, Gerf::optimal(3, 0.5).unwrap().recipe(draw(9), Softmax::default())),
        (1e-3, of(Activation::Relu.kernel().unwrap().into())),
        (2.0, inner.unwrap()),
    ]
}

fn sum(terms: &[(f64, Recipe)]) -> Recipe {
    WeightedSum::of(terms.to_vec()).unwrap()
}

#[test]
fn features_are_those_of_the_maps_one_after_another() {
    let x = points::<f64>(9, 3, 1.2);
    let drawn = sum(&terms()).drawn(5).unwrap();
    let map: Map<f64> = drawn.build().unwrap();
    let Some(Recipe::Composite(composite)) = map.recipe() else { panic!("{map}") };
    let (mut features, mut width) = ([Vec::new(), Vec::new()], 0);
    let mut gram = Array2::<f64>::zeros((9, 9));
    let mut exact = Array2::<f64>::zeros((9, 9));
    for (part, (weight, recipe)) in composite.children().into_iter().zip(terms()) {
        let part: Map<f64> = part.build().unwrap();
        assert_eq!(part.feature_dim(), recipe.feature_dim());
        for (all, side) in features.iter_mut().zip([Side::X, Side::Y]) {
            all.push(part.features(side, &x).unwrap().to_array() * weight.sqrt());
        }
        gram.scaled_add(weight, &part.gram(&x, &x).unwrap());
        exact.scaled_add(weight, &part.kernel().unwrap().gram(&x, &x).unwrap());
        width += part.feature_dim();
    }
    assert_eq!(map.feature_dim(), width);
    for (parts, side) in features.into_iter().zip([Side::X, Side::Y]) {
        let views: Vec<_> = parts.iter().map(|part| part.view()).collect();
        let expected = concatenate(Axis(1), &views).unwrap();
        let found = map.features(side, &x).unwrap().to_array();
        assert!((&found - &expected).iter().all(|v| v.abs() < 1e-12), "{found} {expected}");
    }
    let near = |a: &Array2<f64>, b: &Array2<f64>| (a - b).iter().all(|v| v.abs() < 1e-11);
    assert!(near(&map.gram(&x, &x).unwrap(), &gram));
    let kernel = map.kernel().unwrap();
    assert!(near(&kernel.gram(&x, &x).unwrap(), &exact));
    assert!(map.to_string().starts_with("0.7 × [") && map.to_string().contains(" + 2 × ["), "{map}");
}

/// Mean and variance of 40,000 estimates: z beyond 4.5 has a probability of 7e-6.
#[test]
fn estimates_are_unbiased_and_of_the_closed_form_variance() {
    let (x, y) = (point(3, 1, 0.9), point(3, 4, 0.7));
    let terms = &terms()[..3];
    let recipe = sum(terms);
    let exact: f64 = recipe.draw::<f64>(1).unwrap().kernel().unwrap().value(&x, &y).unwrap();
    unbiased("a sum", |seed| recipe.draw(seed).unwrap(), (&x, &y), exact, (40_000, 4.5));
    let parts = terms.iter().map(|(weight, recipe)| {
        weight * weight * recipe.draw::<f64>(3).unwrap().log_variance(&x, &y).unwrap().unwrap().exp()
    });
    let found = recipe.draw::<f64>(3).unwrap().log_variance(&x, &y).unwrap().unwrap().exp();
    let expected: f64 = parts.sum();
    assert!((found / expected - 1.0).abs() < 1e-12, "{found} {expected}");
}

/// Parts with one draw depend on each other, and a part may have no closed form or no kernel.
#[test]
fn what_is_not_known_is_not_told() {
    let (x, y) = (point(2, 1, 0.9), point(2, 4, 0.7));
    let omega = Independent.draw(2, 8, 1).unwrap();
    let gaussian = |ell: f64| -> Map<f64> { Trigonometric.gaussian(omega.clone(), ell).unwrap() };
    let shared = WeightedSum::of(vec![(0.5, gaussian(1.0)), (0.5, gaussian(2.0))]).unwrap();
    assert_eq!(shared.log_variance(&x, &y), Ok(None));
    assert!(shared.kernel().is_some());
    // Nyström features have no variance, and those made unbiased have no closed form.
    let nystroem = Nystroem::new(Gaussian::default(), &points::<f64>(4, 2, 1.0)).unwrap();
    let map = WeightedSum::of(vec![(0.5, gaussian(1.0)), (0.5, nystroem.map().unwrap())]).unwrap();
    let expected = gaussian(1.0).log_variance(&x, &y).unwrap().unwrap() + 0.25f64.ln();
    assert!((map.log_variance(&x, &y).unwrap().unwrap() - expected).abs() < 1e-12);
    let random: Map<f64> = Trigonometric.gaussian(Independent.draw(2, 8, 2).unwrap(), 1.0).unwrap();
    let nystroem = nystroem.unbiased(random).unwrap();
    let map = WeightedSum::of(vec![(0.5, gaussian(1.0)), (0.5, nystroem)]).unwrap();
    assert_eq!(map.log_variance(&x, &y), Ok(None));
    // Other weights are another kernel.
    let of = |weight| WeightedSum::of(vec![(weight, gaussian(1.0)), (0.5, gaussian(2.0))]).unwrap();
    let identity = |map: &Map<f64>| map.kernel().unwrap().identity().unwrap();
    assert_eq!(identity(&of(0.5)), identity(&of(0.5)));
    assert_ne!(identity(&of(0.5)), identity(&of(0.25)));
    assert_ne!(of(0.5).identity(), of(0.25).identity());
    // A hybrid takes it as a base.
    let hybrid = Hybrid::sum(
        vec![(random_features::compose::Coefficient::constant(0.4).unwrap(), of(0.5))],
        WeightedSum::of(vec![
            (0.5, Trigonometric.gaussian(Independent.draw(2, 8, 5).unwrap(), 1.0).unwrap()),
            (0.5, Trigonometric.gaussian(Independent.draw(2, 8, 6).unwrap(), 2.0).unwrap()),
        ])
        .unwrap(),
    )
    .unwrap();
    assert_eq!(hybrid.kernel().unwrap().identity(), of(0.5).kernel().unwrap().identity());
}

#[test]
fn sums_keep_what_every_map_keeps() {
    fn conforms<T: Real>() {
        let map: Map<T> = sum(&terms()).draw(1).unwrap();
        conform(&map, &points::<T>(30, 3, 1.5)).unwrap();
        conform(&map, &points::<T>(300, 3, 1.5)).unwrap();
    }
    conforms::<f32>();
    conforms::<f64>();
}

/// Gradients of estimates and of the kernel, against differences.
#[test]
fn gradients_are_slopes() {
    let (x, y) = (point(3, 2, 0.8), point(3, 5, 1.1));
    let map: Map<f64> = sum(&terms()).draw(2).unwrap();
    let kernel = map.kernel().unwrap();
    let found = kernel.gradient(&x, &y).unwrap();
    let cotangents = points::<f64>(1, map.feature_dim(), 1.0);
    let row = x.clone().insert_axis(Axis(0));
    let pulled = map.pull_back(Side::X, &row, &cotangents).unwrap();
    let scales = map.features(Side::X, &row).unwrap();
    let blocks = map.blocks().to_vec();
    let weighed = |x: &Array2<f64>| {
        let phi = map.features(Side::X, x).unwrap().to_array();
        let (mut first, mut sum) = (0, 0.0);
        for (b, width) in blocks.iter().enumerate() {
            let scale = (-scales.log_scales()[[0, b]]).exp();
            sum += (first..first + width).map(|k| cotangents[[0, k]] * phi[[0, k]] * scale).sum::<f64>();
            first += width;
        }
        sum
    };
    for k in 0..3 {
        let [above, below] = [1e-5, -1e-5].map(|step| {
            let mut x = x.clone();
            x[k] += step;
            (kernel.value(&x, &y).unwrap(), weighed(&x.insert_axis(Axis(0))))
        });
        let slopes = [(above.0 - below.0) / 2e-5, (above.1 - below.1) / 2e-5];
        assert!((found[k] - slopes[0]).abs() < 1e-7 * (1.0 + slopes[0].abs()), "{k}: {found} {slopes:?}");
        assert!(
            (pulled[[0, k]] - slopes[1]).abs() < 1e-6 * (1.0 + slopes[1].abs()),
            "{k}: {pulled} {slopes:?}"
        );
    }
}

#[test]
fn mistakes_are_refused() {
    let of = |d: usize| Recipe::for_kernel(Gaussian::default(), d, 4).unwrap();
    let refused = |terms: Vec<(f64, Recipe)>| WeightedSum::of(terms).unwrap_err();
    assert!(matches!(refused(vec![]), Error::Parameter { .. }));
    for weight in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(refused(vec![(weight, of(2))]), Error::Parameter { .. }), "{weight}");
    }
    assert!(matches!(refused(vec![(1.0, of(2)), (1.0, of(3))]), Error::Shape { .. }));
}

#[cfg(feature = "serde")]
#[test]
fn sums_are_stored() {
    let recipe = sum(&terms());
    let text = serde_json::to_string(&recipe).unwrap();
    assert_eq!(serde_json::from_str::<Recipe>(&text).unwrap(), recipe);
    for broken in [text.replacen("0.7", "-0.7", 1), text.replacen("0.7,", "", 1)] {
        assert_ne!(broken, text);
        let read = serde_json::from_str::<Recipe>(&broken);
        assert!(read.is_err() || read.unwrap().draw::<f64>(1).is_err(), "{broken}");
    }
    let map: Map<f64> = recipe.draw(3).unwrap();
    let again: Map<f64> = serde_json::from_str(&serde_json::to_string(&map).unwrap()).unwrap();
    let x = points::<f64>(5, 3, 1.0);
    assert_eq!(again.transform(&x), map.transform(&x));
    assert_eq!(again.identity(), map.identity());
}

fn mixture() -> SpectralMixture {
    let wave = SpectralMixture::cosine(vec![3.0, 1.0]).unwrap();
    let wide = SpectralMixture::product(&[&wave, &Gaussian::new(2.0).unwrap()]).unwrap();
    let matern = Matern::new(Smoothness::ThreeHalves, vec![1.0, 2.0]).unwrap();
    let sum: [(f64, &dyn random_features::extend::ShiftInvariant); 3] =
        [(0.5, &wave), (0.2, &wide), (0.3, &matern)];
    SpectralMixture::sum(&sum).unwrap()
}

/// The numbers of frequencies are in proportion to w √(E V), and a lone wave has one.
#[test]
fn frequencies_are_divided_by_need() {
    let (x, kernel) = (points::<f64>(200, 2, 3.0), mixture().with_lengthscale(1.5).unwrap());
    let map: Map<f64> = Map::for_mixture(&kernel, &x, 60, 7).unwrap();
    let Some(Recipe::Composite(composite)) = map.recipe() else { panic!("{map}") };
    let counts: Vec<usize> = composite.children().iter().map(|part| part.feature_dim() / 2).collect();
    assert_eq!(counts.iter().sum::<usize>(), 60);
    assert_eq!(counts[0], 1);
    // ½ (1 + k(2δ)) − k² over all pairs, by loops.
    let wide = SpectralMixture::product(&[
        &SpectralMixture::cosine(vec![3.0, 1.0]).unwrap(),
        &Gaussian::new(2.0).unwrap(),
    ]);
    let matern = Matern::new(Smoothness::ThreeHalves, vec![1.0, 2.0]).unwrap();
    let mean = |k: &dyn Kernel<f64>| {
        let mut sum = 0.0;
        for a in x.rows() {
            for b in x.rows() {
                let delta = (&a - &b) / 1.5;
                let zero = &delta * 0.0;
                let at = |delta: &ndarray::Array1<f64>| k.value(delta, &zero).unwrap();
                sum += 0.5 * (1.0 + at(&(&delta * 2.0))) - at(&delta).powi(2);
            }
        }
        sum / (200.0 * 200.0)
    };
    let needs = [0.2 * mean(&wide.unwrap()).sqrt(), 0.3 * mean(&matern).sqrt()];
    let expected = 59.0 * needs[0] / (needs[0] + needs[1]);
    assert!((counts[1] as f64 - expected).abs() < 2.0, "{counts:?} {expected}");
    // The kernel is that of the mixture.
    let (a, b) = (x.row(3), x.row(90));
    let own = kernel.value(&a, &b).unwrap();
    assert!((map.kernel().unwrap().value(&a, &b).unwrap() - own).abs() < 1e-14);
    // One seed gives one map.
    let again: Map<f64> = Map::for_mixture(&kernel, &x, 60, 7).unwrap();
    assert_eq!(map.identity(), again.identity());
    assert_ne!(map.identity(), Map::<f64>::for_mixture(&kernel, &x, 60, 8).unwrap().identity());
}

/// 10,000 draws, of which each is seen at both pairs: z beyond 4.5 has a probability of 7e-6. Frequencies whose terms are drawn at
/// random have a larger variance.
#[test]
fn divided_frequencies_are_unbiased_and_have_less_variance() {
    let (x, kernel) = (points::<f64>(50, 2, 2.0), mixture());
    let near = arr2(&[[0.3, -0.4], [0.9, 0.1]]);
    let few = x.slice(ndarray::s![..3, ..]).to_owned();
    let drawn: Vec<Map<f64>> =
        (0..10_000).map(|seed| Map::for_mixture(&kernel, &few, 12, seed).unwrap()).collect();
    let random: Map<f64> = Map::for_kernel(kernel.clone(), 2, 12, 1).unwrap();
    for (a, b) in
        [(x.row(0).to_owned(), x.row(17).to_owned()), (near.row(0).to_owned(), near.row(1).to_owned())]
    {
        let exact: f64 = kernel.value(&a, &b).unwrap();
        let make = |seed: u64| drawn[seed as usize].clone();
        unbiased("a divided sum", make, (&a, &b), exact, (10_000, 4.5));
        let [divided, random] = [&drawn[1], &random].map(|map| map.log_variance(&a, &b).unwrap().unwrap());
        assert!(divided < random - 0.5, "{divided} {random}");
    }
}

#[test]
fn requests_that_cannot_be_met_say_why() {
    let (x, kernel) = (points::<f64>(20, 2, 2.0), mixture());
    let of = |x: &Array2<f64>, m| Map::<f64>::for_mixture(&kernel, x, m, 1).map(drop);
    assert!(matches!(of(&x, 2), Err(Error::Parameter { .. })));
    assert!(of(&x, 3).is_ok());
    assert!(matches!(of(&Array2::zeros((0, 2)), 9), Err(Error::NoData { .. })));
    assert!(matches!(of(&Array2::zeros((5, 3)), 9), Err(Error::Shape { .. })));
    assert!(matches!(of(&Array2::from_elem((5, 2), f64::NAN), 9), Err(Error::NotFinite { row: 0, .. })));
    // One point has no differences, and one kernel is its own sum.
    let single: Map<f32> = Map::for_mixture(&kernel, &Array2::zeros((1, 2)), 9, 1).unwrap();
    assert_eq!(single.feature_dim(), 18);
    let lone = SpectralMixture::sum(&[(1.0, &Gaussian::default())]).unwrap();
    let map: Map<f64> = Map::for_mixture(&lone, &x, 9, 1).unwrap();
    assert_eq!(map.feature_dim(), 18);
}
