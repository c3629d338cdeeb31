//! What careless edits would break and no other test would notice; and what once was wrong.

use ndarray::{Array1, Array2, Array3, ArrayView2, Axis, arr1, arr2, s};
use num_complex::Complex64;
use random_features::apply::{ExactSmoother, RidgeSearch, Smoother};
use random_features::compose::{Bases, Clustered, Coefficient, Diagonal, Hybrid};
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
use random_features::data::shaping::Shaping;
use random_features::data::{Clustering, lengthscale};
use random_features::extend::{Coupling, Facts, FeatureMap, Form, Radius, Tile};
use random_features::frequency::{
    Antithetic, Counts, Frequencies, Hadamard, Halton, Independent, Orthogonal, Simplex, SimplexPlus, Sobol,
};
use random_features::kernel::{Activation, Gaussian, Kernel, Softmax};
use random_features::map::{AnyKernel, Transform};
#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
use random_features::recipe::DrawCounts;
use random_features::recipe::{AnyCoupling, CountLaw, Draw, PlainRecipe};
use random_features::theory::complex_exponential::Symmetry;
use random_features::theory::gerf::GerfSign;
use random_features::theory::{Dependence, Law};
use random_features::{
    ComplexExponential, Error, Geometric, Gerf, Hyperbolic, Map, Nonlinear, Positive, Recipe, Side, Sign,
    Trigonometric, rng,
};

use crate::common::{changed, frequencies, points};

fn plain(recipe: Recipe, matrix: Option<Array2<f64>>) -> PlainRecipe {
    match recipe {
        Recipe::Plain(plain) => changed(&plain, |plain| plain.matrix = matrix),
        _ => unreachable!("a plain recipe"),
    }
}

/// A full M and a lengthscale for each dimension: M acts first.
#[test]
fn a_matrix_acts_before_the_lengthscale() {
    let (omega, m) = (frequencies(2, 16, &Independent, 3), arr2(&[[0.4, -0.7], [1.1, 0.3]]));
    let target: AnyKernel = Gaussian::new(vec![0.5, 3.0]).unwrap().into();
    let map = |matrix| plain(Positive.recipe(omega.clone(), target.clone()), matrix).build::<f64>().unwrap();
    let (turned, plain) = (map(Some(m.clone())), map(None));
    let (x, y) = (arr1(&[0.3, -0.2]), arr1(&[0.5, 0.9]));
    let my = m.dot(&y);
    assert!((turned.estimate(&x, &y).unwrap() / plain.estimate(&x, &my).unwrap() - 1.0).abs() < 1e-12);
    let variance = |map: &Map<f64>, y| map.log_variance(&x, y).unwrap().unwrap();
    assert!((variance(&turned, &y) - variance(&plain, &my)).abs() < 1e-12);
    let value = |map: &Map<f64>, y| map.kernel().unwrap().value(&x, y).unwrap();
    assert!((value(&turned, &y) - value(&plain, &my)).abs() < 1e-15);
    assert!(plain.facts().symmetric && !turned.facts().symmetric);
    let features = turned.features(Side::X, &points(3, 2, 1.0)).unwrap();
    assert!(matches!(features.gram(&features), Err(Error::Pairing { .. })));
}

/// What is paired wrongly is told by what the maps are, and by their identities where those are all that differs.
#[test]
fn a_mismatch_of_maps_says_which_they_are() {
    let x = points::<f64>(3, 2, 1.0);
    let of = |m: usize, seed: u64| {
        let map = Positive.gaussian::<f64>(frequencies(2, m, &Independent, seed), 0.5).unwrap();
        map.features(Side::X, &x).unwrap()
    };
    let message = |left: &random_features::map::Features<f64>,
                   right: &random_features::map::Features<f64>| {
        left.gram(right).unwrap_err().to_string()
    };
    let told = message(&of(16, 1), &of(8, 1));
    assert!(
        told.contains("the map positive, 16 frequencies in dimension 2, Gaussian, lengthscale 0.5"),
        "{told}"
    );
    assert!(told.contains("8 frequencies") && !told.contains("identity"), "{told}");
    let told = message(&of(16, 1), &of(16, 2));
    assert!(told.contains("lengthscale 0.5, identity "), "{told}");
}

#[test]
fn bases_with_matrices_of_their_own_agree_on_no_kernel() {
    let d = 24;
    let (one, mut other) = (Array2::<f64>::eye(d), Array2::<f64>::eye(d));
    other[[10, 10]] = -1.0;
    let map = |m, seed| {
        let recipe = Positive.recipe(frequencies(d, 4, &Independent, seed), Softmax::default());
        plain(recipe, Some(m)).build::<f64>().unwrap()
    };
    let half = || Coefficient::constant(0.5).unwrap();
    assert!(Hybrid::sum(vec![(half(), map(one.clone(), 1))], map(other, 2)).unwrap().kernel().is_none());
    // Hyperbolic and trigonometric features of turned points have no closed form together.
    let omega = frequencies(2, 5, &Independent, 1);
    let m = Some(Array2::eye(2));
    let hyperbolic = plain(Hyperbolic.recipe(omega.clone(), Softmax::default()), m.clone()).build::<f64>();
    let trigonometric = plain(Trigonometric.recipe(omega, Softmax::default()), m).build();
    let hybrid = Hybrid::sum(vec![(half(), hyperbolic.unwrap())], trigonometric.unwrap()).unwrap();
    assert_eq!(hybrid.log_variance(&arr1(&[0.1, 0.2]), &arr1(&[0.3, 0.1])).unwrap(), None);
}

/// Equal draws are dependent, whatever is stated of their law, copied or stored; different draws of one seed are not.
#[test]
fn equal_draws_are_seen() {
    let whole = Independent.draw(3, 8, 1).unwrap();
    let rows = whole.rows().to_owned();
    let given = Frequencies::from_parts(rows.clone(), Law::independent(8)).unwrap();
    let restated = Frequencies::from_parts(rows, Law::blocks(8, 1, Dependence::Independent, Radius::Chi));
    let again = Independent.draw(3, 8, 1).unwrap();
    let (x, y) = (arr1(&[0.5, 0.2, -0.3]), arr1(&[0.1, 0.4, 0.6]));
    let variance = |first: &Frequencies, second: &Frequencies| {
        let half = Coefficient::constant(0.5).unwrap();
        let base = |omega: &Frequencies| Positive.softmax::<f64>(omega.clone()).unwrap();
        let sum = Hybrid::sum(vec![(half, base(first))], base(second)).unwrap();
        let lambda = Coefficient::angular(second.clone()).unwrap();
        let rest = Positive.softmax(frequencies(3, 8, &Independent, 2)).unwrap();
        let kernel = Hybrid::sum(vec![(lambda, base(first))], rest).unwrap().kernel().is_some();
        (sum.log_variance(&x, &y).unwrap().is_some(), kernel)
    };
    for (first, second) in [(&whole, &again), (&given, &restated.unwrap())] {
        assert_eq!(variance(first, second), (false, false));
    }
    for other in [(3, 9), (3, 4)].map(|(d, m)| Independent.draw(d, m, 1).unwrap()) {
        assert_eq!(variance(&whole, &other), (true, true));
    }
    assert_eq!(variance(&whole, &Orthogonal.draw(3, 8, 1).unwrap()), (true, true));
}

#[test]
fn clusters_promise_what_their_bases_do_together() {
    let centres =
        |v: &[f64]| Clustering::new(Array2::from_shape_vec((v.len(), 1), v.to_vec()).unwrap()).unwrap();
    let base = |l| Positive.gaussian::<f64>(frequencies(1, 4, &Independent, 1), l).unwrap();
    let two = centres(&[0.0, 3.0]);
    let map = Clustered::from_bases(two.clone(), two.clone(), (0..4).map(|_| base(1.0)).collect()).unwrap();
    assert!(!map.facts().symmetric && map.facts().non_negative && map.kernel().is_some());
    let map = Clustered::from_bases(two.clone(), centres(&[0.0]), vec![base(1.0), base(2.0)]).unwrap();
    assert!(map.kernel().is_none());
    // Signs of a batch of several clusters are those of its rows.
    let a = Transform::diagonal(vec![Complex64::new(0.3, 0.9)]).unwrap();
    let signed = |seed| {
        ComplexExponential::new(a.clone(), Symmetry::Plain).softmax(frequencies(1, 5, &Independent, seed))
    };
    let bases = (0..4).map(|seed| signed(seed).unwrap()).collect();
    let map: Map<f64> = Clustered::from_bases(two.clone(), two, bases).unwrap();
    let x = points::<f64>(20, 1, 4.0);
    let (all, all_signs, _) = map.log_features(Side::X, &x).unwrap();
    for (i, row) in x.axis_chunks_iter(Axis(0), 1).enumerate() {
        let (one, signs, scales) = map.log_features(Side::X, row).unwrap();
        for f in 0..map.feature_dim() {
            if scales[[0, f / 10]] != f64::NEG_INFINITY {
                assert_eq!(signs[[0, f]], all_signs[[i, f]]);
                assert_eq!(one[[0, f]], all[[i, f]]);
            }
        }
    }
}

/// A centre's coordinate of 0 agrees with no other in sign.
#[test]
fn diagonals_at_zero_are_real() {
    let centre = |v: f64| Clustering::new(arr2(&[[v]])).unwrap();
    assert_eq!(Diagonal::complex().entries(&centre(0.0), 0, &centre(2.0), 0).unwrap()[0].im, 0.0);
    assert_eq!(Diagonal::complex().entries(&centre(2.0), 0, &centre(0.0), 0).unwrap()[0].im, 0.0);
    assert_ne!(Diagonal::complex().entries(&centre(2.0), 0, &centre(1.0), 0).unwrap()[0].im, 0.0);
}

#[test]
fn streams_are_independent_and_couplings_are_themselves() {
    let with = |stream| Draw::new(3, 8, Independent).with_stream(stream);
    assert_ne!(with(0).draw(7).unwrap(), with(1).draw(7).unwrap());
    let counts = |stream| DrawCounts::new(3, 40, CountLaw::Geometric(0.5)).unwrap().with_stream(stream);
    assert_ne!(counts(0).draw(7).unwrap(), counts(1).draw(7).unwrap());
    let recipe = |stream| Positive.recipe(with(stream), Softmax::default());
    let drawn = |stream| {
        let half = Coefficient::constant(0.5).unwrap();
        Hybrid::sum(vec![(half, recipe(0))], recipe(stream)).unwrap().drawn(7).unwrap()
    };
    assert_eq!(drawn(0).children()[0], drawn(0).children()[1]);
    assert_ne!(drawn(1).children()[0], drawn(1).children()[1]);
    assert_eq!((drawn(0).draws().len(), drawn(1).draws().len()), (1, 2));
    assert_ne!(recipe(0).identity(), recipe(1).identity());
    let geometric = |stream| Geometric::with_p(0.5).recipe(counts(stream), Gaussian::default());
    assert_ne!(geometric(0).identity(), geometric(1).identity());
    let drawn = Counts::geometric(2, 6, 0.5, rng(1).next_u64()).unwrap();
    let unstated = Counts::from_rows(drawn.rows().to_owned()).unwrap();
    let identity = |counts: Counts| Geometric::with_p(0.5).recipe(counts, Gaussian::default()).identity();
    assert_ne!(identity(drawn), identity(unstated));
    fn same<C: Coupling + Clone + Into<AnyCoupling>>(coupling: C) {
        let drawn = (&coupling as &dyn Coupling).draw(4, 9, 3).unwrap();
        assert_eq!(Draw::new(4, 9, coupling).draw(3).unwrap(), drawn);
    }
    same(Orthogonal);
    same(Simplex::default());
    same(SimplexPlus::default());
    same(Hadamard::default());
    same(Halton);
    same(Sobol);
    same(Antithetic(Orthogonal));
}

/// Moments of λ̂ = a + cĈ that is not ½ − ½Ĉ.
#[test]
fn angular_moments_are_for_angular_coefficients() {
    let sign =
        |lengthscale: Vec<f64>| Sign.build::<f64>(frequencies(2, 8, &Independent, 5), lengthscale).unwrap();
    let (x, y) = (arr1(&[1.0, 0.0]), arr1(&[1.0, 1.0]));
    for (a, c) in [(0.25, -0.5), (0.5, -0.25), (0.5, 0.5)] {
        let map = Sign.build::<f64>(frequencies(2, 8, &Independent, 5), 1.0).unwrap();
        let moments = Coefficient::affine(a, c, map).unwrap().moments(&x, &y).unwrap().unwrap();
        // K = ½, and its variance (1 − ¼)/8.
        assert!((moments.mean - (a + 0.5 * c)).abs() < 1e-12);
        assert!((moments.square - moments.mean.powi(2) - c * c * 0.75 / 8.0).abs() < 1e-12);
    }
    let scaled = Coefficient::affine(0.5, -0.5, sign(vec![1.0, 9.0])).unwrap();
    assert!(scaled.moments(&x, &y).unwrap().is_none());
}

#[test]
fn many_targets_are_single_ones_over_several_blocks() {
    let omega = |m, seed| frequencies(3, m, &Independent, seed);
    let map = Hybrid::<Map<f64>>::angular(Bases::shared(omega(16, 1)), omega(5, 2)).unwrap();
    let (x, y) = (points::<f64>(40, 3, 0.5), points::<f64>(40, 9, 1.0));
    let fit = |y: &Array2<f64>| {
        let mut smoother = Smoother::new(map.clone(), y.ncols()).unwrap();
        smoother.update(&x, y).unwrap();
        smoother.predict(&x).unwrap()
    };
    let many = fit(&y);
    for j in 0..9 {
        let one = fit(&y.slice(s![.., j..=j]).to_owned());
        assert!(many.column(j).iter().zip(one.column(0)).all(|(a, b)| (a - b).abs() < 1e-9));
    }
}

/// No weight gives the mean, targets of any size do not overflow on the way, and errors name the row of the batch.
#[test]
fn smoothers_at_their_limits() {
    let one = Frequencies::from_rows(arr2(&[[1.0]])).unwrap();
    let relu = Nonlinear::new(Activation::Relu).build::<f64>(one, 1.0).unwrap();
    let mut smoother = Smoother::new(relu, 1).unwrap();
    smoother.update(&arr2(&[[1.0], [2.0]]), &arr2(&[[1.0], [2.0]])).unwrap();
    assert_eq!(smoother.predict(&arr2(&[[-1.0]])).unwrap()[[0, 0]], 1.5);

    let map = Trigonometric.gaussian::<f32>(frequencies(2, 64, &Independent, 3), 1.0).unwrap();
    let x = Array2::from_elem((128, 2), 0.05f32);
    for size in [1e36f32, 1e37, 3e38, 1e-38] {
        let mut smoother = Smoother::new(map.clone(), 2).unwrap();
        let targets = Array2::from_shape_fn((128, 2), |(_, j)| size * j as f32);
        smoother.update(&x, &targets).unwrap();
        let found = smoother.predict(x.slice(s![..1, ..])).unwrap()[[0, 1]];
        assert!((found / size - 1.0).abs() < 1e-5, "{found} instead of {size}");
        assert_eq!(smoother.classify(x.slice(s![..1, ..])).unwrap(), [1]);
    }

    let map = Positive.softmax::<f64>(frequencies(2, 8, &Independent, 1)).unwrap();
    let mut x = Array2::<f64>::zeros((600, 2));
    (x[[200, 0]], x[[500, 0]]) = (1e200, 1e200);
    let error = Smoother::new(map, 1).unwrap().update(&x, &Array2::zeros((600, 1))).unwrap_err();
    assert!(matches!(error, Error::NotFinite { row: 200, .. }), "{error}");
}

/// Scores, not their shares of a total that may be negative; and the mean where there is no positive total.
#[test]
fn exact_smoothers_with_signed_kernels() {
    let kernel = || Activation::Sign.kernel().unwrap();
    let mut smoother = ExactSmoother::new(kernel(), 2, 2).unwrap();
    smoother.update(&arr2(&[[1.0, 0.0], [-1.0, 0.1], [-1.0, -0.1]]), &[0, 1, 1]).unwrap();
    assert_eq!(smoother.classify(&arr2(&[[1.0f64, 0.0]])).unwrap(), [0]);
    let mut smoother = ExactSmoother::new(kernel(), 2, 1).unwrap();
    smoother.update(&arr2(&[[1.0, 0.0], [-1.0, 0.0]]), &arr2(&[[1.0], [2.0]])).unwrap();
    assert_eq!(smoother.predict(&arr2(&[[1.0f64, 0.0]])).unwrap(), arr2(&[[1.5]]));
}

/// An entry of a Gram matrix depends on its two points alone, to the bit.
#[test]
fn entries_of_gram_matrices_do_not_see_each_other() {
    for d in [1, 4] {
        let map = Positive.softmax::<f64>(frequencies(d, 16, &Independent, 1)).unwrap();
        for odd in [f64::NAN, 30.0, 300.0] {
            let (x, mut y) = (points::<f64>(600, d, 1.0), points::<f64>(300, d, 1.0));
            y.row_mut(270).fill(odd);
            let all = map.gram(&x, &y).unwrap();
            assert!(map.gram(&x, &y.slice(s![..270, ..])).unwrap() == all.slice(s![.., ..270]));
            for i in [0, 299, 599] {
                assert!(
                    map.gram(&x.slice(s![i..=i, ..]), &y.slice(s![..270, ..])).unwrap().row(0)
                        == all.slice(s![i, ..270])
                );
            }
            let swapped = map.gram(&y, &x).unwrap();
            assert!(swapped.slice(s![..270, ..]).t() == all.slice(s![.., ..270]), "symmetric to the bit");
        }
    }
}

#[test]
fn sides_and_shapes_are_compared() {
    let map = Positive.softmax::<f64>(frequencies(2, 4, &Independent, 1)).unwrap();
    let x = points::<f64>(2, 2, 1.0);
    let (a, b) = (map.features(Side::X, &x).unwrap(), map.features(Side::Y, &x).unwrap());
    assert_eq!(a.mantissas(), b.mantissas());
    assert_ne!(a, b);
    let (mut values, mut scales) = (Array2::zeros((2, 4)), Array2::zeros((3, 1)));
    assert!(map.features_into(Side::X, &x, &mut values, &mut scales).is_err());
    // A finite point whose norm overflows has no numbers for features.
    let features = map.features(Side::X, &arr2(&[[1e200, 0.0], [0.1, 0.2]])).unwrap();
    assert!(features.mantissas().row(0).iter().all(|v| v.is_nan()) && features.log_scales()[[0, 0]].is_nan());
    assert!(features.mantissas().row(1).iter().all(|v| v.is_finite()));
    let wide = Array3::<f64>::zeros((1, 1, 2));
    let huge = wide.index_axis(Axis(0), 0);
    let huge = huge.broadcast((1 << 60, 2)).unwrap();
    assert!(matches!(map.features(Side::X, huge), Err(Error::Memory { .. })));
    assert!(matches!(
        map.gram(&huge.slice(s![..1_usize << 56, ..]), &Array2::zeros((1 << 10, 2))),
        Err(Error::Memory { .. })
    ));
}

/// A coefficient without a map has no factor.
#[test]
fn factors_without_maps_are_refused() {
    for factor in [f64::NAN, 3.0] {
        let coefficient = Coefficient::<Recipe> { constant: 0.5, factor, map: None };
        let base = Positive.recipe(Draw::new(3, 8, Independent), Softmax::default());
        let hybrid = Hybrid::sum(vec![(coefficient, base.clone())], base);
        assert!(matches!(hybrid, Err(Error::Parameter { .. })));
    }
}

/// The features (1 + x₀, 2) of a wrapper, spoilt in one way or another.
#[derive(Clone, Copy, Debug)]
enum Spoilt {
    Not,
    Unwritten,
    UnwrittenScale,
    OfOthers,
    Unsymmetric,
    Negative,
    FormIgnored,
    WrongSigns,
}

impl FeatureMap<f64> for Spoilt {
    fn facts(&self) -> Facts {
        Facts::new(2, vec![2]).symmetric().non_negative().logarithms()
    }

    fn fill(&self, side: Side, x: ArrayView2<'_, f64>, form: Form, tile: &mut Tile<'_, f64>) {
        for (i, x) in x.rows().into_iter().enumerate() {
            let mut features = [1.0 + x[0], 2.0];
            match self {
                Spoilt::OfOthers => features[1] += i as f64,
                Spoilt::Unsymmetric if side == Side::Y => features[1] = 3.0,
                Spoilt::Negative => features[1] = -2.0,
                _ => {}
            }
            let row = tile.row(i);
            for (f, value) in features.into_iter().enumerate() {
                if matches!(self, Spoilt::Unwritten) && f == 1 {
                    continue;
                }
                let values = form == Form::Values || matches!(self, Spoilt::FormIgnored);
                row.values[f] = if values { value } else { value.abs().ln() };
                if let Some(sign) = row.signs.get_mut(f) {
                    *sign = if matches!(self, Spoilt::WrongSigns) { -1.0 } else { value.signum() };
                }
            }
            if !matches!(self, Spoilt::UnwrittenScale) {
                row.log_scales[0] = 0.0;
            }
        }
    }
}

#[test]
fn maps_that_break_their_word_are_refused() {
    let map = Map::of_feature_map(Spoilt::Not).unwrap();
    let estimate = map.estimate(&arr1(&[1.0, 0.0]), &arr1(&[2.0, 0.0])).unwrap();
    assert!((estimate - 10.0).abs() < 1e-13);
    for (spoilt, word) in [
        (Spoilt::Unwritten, "unwritten"),
        (Spoilt::UnwrittenScale, "unwritten"),
        (Spoilt::OfOthers, "other points"),
        (Spoilt::Unsymmetric, "symmetric"),
        (Spoilt::Negative, "negative"),
        (Spoilt::FormIgnored, "form"),
        (Spoilt::WrongSigns, "logarithms"),
    ] {
        let error = Map::of_feature_map(spoilt).unwrap_err();
        assert!(
            matches!(error, Error::Contract { .. }) && error.to_string().contains(word),
            "{spoilt:?}: {error}"
        );
    }
}

/// Steps of several coefficients: Σ E λ̂² Var P + E (1 − Σ λ̂)² Var Q.
#[test]
fn variances_of_several_coefficients_add() {
    let omega = |m, seed| frequencies(2, m, &Independent, seed);
    let base = |seed| Positive.softmax::<f64>(omega(6, seed)).unwrap();
    let lambda = |seed| Coefficient::angular(omega(4, seed)).unwrap();
    let (x, y) = (arr1(&[0.3, 0.5]), arr1(&[-0.2, 0.4]));
    let moments = lambda(1).moments(&x, &y).unwrap().unwrap();
    let map = Hybrid::sum(vec![(lambda(1), base(3)), (lambda(2), base(4))], base(5)).unwrap();
    let variance = base(3).log_variance(&x, &y).unwrap().unwrap().exp();
    let own = moments.square - moments.mean.powi(2);
    let rest = (1.0 - 2.0 * moments.mean).powi(2) + 2.0 * own;
    let expected = (2.0 * moments.square + rest) * variance;
    assert!((map.log_variance(&x, &y).unwrap().unwrap().exp() / expected - 1.0).abs() < 1e-12);
}

/// A bound of exponents below which scaled features would exceed 1: at many points of one dimension, where it is attained.
#[test]
fn bounds_of_projections_hold_in_one_dimension() {
    for m in [1, 3] {
        let map = Positive.softmax::<f32>(frequencies(1, m, &Independent, 7)).unwrap();
        let twice = Hyperbolic.softmax::<f32>(frequencies(1, m, &Independent, 7)).unwrap();
        let x = Array2::from_shape_fn((20_000, 1), |(i, _)| (i as f32 - 1e4) * 3.7e-4);
        for map in [map, twice] {
            let features = map.features(Side::X, &x).unwrap();
            let largest = features.mantissas().iter().fold(0.0f32, |top, v| top.max(*v));
            assert!(largest <= 1.0, "{largest}");
            // Where it is small the scale is the bound, which one frequency attains to the rounding that it allows for.
            assert!(m > 1 || features.mantissas().iter().any(|v| *v > 0.999_99));
        }
    }
}

#[test]
fn saturated_projections_have_finite_logarithms() {
    let map = Positive.softmax::<f32>(frequencies(64, 8, &Independent, 1)).unwrap();
    let x = Array1::from_elem(64, 3e37f32).insert_axis(Axis(0));
    let (logarithms, _, scales) = map.log_features(Side::X, &x).unwrap();
    assert!(logarithms.iter().all(|v| v.is_finite()) && scales[[0, 0]].is_finite());
    // Not above MAX/4, so that sums of two and a weight's logarithm stay finite: with weights too.
    let gerf = Gerf::new(-0.3, GerfSign::Plus).unwrap();
    for map in [map, gerf.softmax(frequencies(64, 8, &Independent, 1)).unwrap()] {
        let (logarithms, ..) = map.log_features(Side::X, &x).unwrap();
        assert!(logarithms.iter().all(|v| v.abs() <= f32::MAX / 4.0), "{logarithms:?}");
    }
    let lost = Trigonometric.softmax::<f32>(frequencies(2, 8, &Independent, 1)).unwrap();
    assert_eq!(lost.features(Side::X, &arr2(&[[20.0, 0.0], [1.0, 0.0]])).unwrap().lost_rows(), 1);
}

/// What does not change may be used after a panic elsewhere, and by all threads.
#[test]
fn maps_and_models_are_shared() {
    fn shared<V: Send + Sync + std::panic::UnwindSafe + std::panic::RefUnwindSafe>() {}
    shared::<Map<f32>>();
    shared::<random_features::Recipe>();
    shared::<random_features::apply::Smoother<f64>>();
    shared::<random_features::apply::Ridge<f32>>();
    shared::<random_features::apply::attention::Attention<f32>>();
}

/// Any number is a lengthscale.
#[test]
fn lengthscales_are_any_numbers() {
    let omega = || frequencies(2, 4, &Independent, 1);
    let two = Positive.gaussian::<f64>(omega(), 2.0).unwrap().identity();
    assert_eq!(Positive.gaussian::<f64>(omega(), 2).unwrap().identity(), two);
    assert_eq!(Positive.gaussian::<f64>(omega(), 2f32).unwrap().identity(), two);
    assert_eq!(Positive.gaussian::<f64>(omega(), 2usize).unwrap().identity(), two);
    assert!(Positive.gaussian::<f64>(omega(), 0).is_err() && Positive.gaussian::<f64>(omega(), -1).is_err());
}

/// Rows of a view that repeats one row: results of more numbers than any machine has memory for.
#[test]
fn results_beyond_memory_are_refused() {
    let memory = |refused: Error| assert!(matches!(refused, Error::Memory { .. }), "{refused}");
    let map = Trigonometric.gaussian::<f64>(frequencies(2, 4, &Independent, 1), 1.0).unwrap();
    let positive = Positive.gaussian::<f64>(frequencies(2, 4, &Independent, 1), 1.0).unwrap();
    let halves = || Coefficient::constant(0.5).unwrap();
    let hybrid = Hybrid::sum(vec![(halves(), map.clone())], positive.clone()).unwrap();
    let row = arr1(&[0.3, -0.2]);
    let rows = |n: usize| row.broadcast((n, 2)).unwrap();
    for n in [1 << 45, 1 << 55] {
        memory(map.features(Side::X, rows(n)).unwrap_err());
        memory(positive.log_features(Side::Y, rows(n)).unwrap_err());
        memory(map.estimate_rows(&rows(n), &rows(n)).unwrap_err());
    }
    let few = rows(10_000_000);
    for map in [&map, &positive, &hybrid] {
        memory(map.gram(&few, &few).unwrap_err());
    }
    memory(Gaussian::default().gram(&few, &few).unwrap_err());
    memory(Gaussian::default().log_gram(&few, &few).unwrap_err());
}

/// Sizes that no machine has are counted without overflow.
#[test]
fn the_largest_sizes_do_not_overflow() {
    let clusters = Clustering::new(arr2(&[[1.0, 0.5], [0.2, 0.1]])).unwrap();
    for (i, j) in [(usize::MAX, 0), (0, usize::MAX), (2, 0), (usize::MAX, usize::MAX)] {
        let entries = Diagonal::complex().entries(&clusters, i, &clusters, j);
        assert!(matches!(entries, Err(Error::Shape { .. })), "{i} {j}: {entries:?}");
    }
    let facts = Facts::new(3, vec![usize::MAX, 2, usize::MAX]);
    assert_eq!(facts.feature_dim(), usize::MAX);
    assert_eq!(Facts::new(3, vec![7, 2]).feature_dim(), 9);
}

#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
#[test]
fn a_shape_counts_any_number_of_features() {
    let x = ndarray::Array2::from_shape_fn((50, 3), |(i, k)| (i as f64 * [0.7, 1.9, 0.3][k]).sin());
    for shape in [Shaping::new(), Shaping::new().with_rank(2).unwrap()] {
        let shape = shape.of_points(&x, &x).unwrap();
        for m in [usize::MAX, usize::MAX / 3 + 1, 1 << 63] {
            let [plain, shaped] = shape.multiplications(m);
            assert_eq!((plain, shaped == usize::MAX || shape.is_truncated()), (usize::MAX, true));
            assert!(shape.summary(m).contains(&usize::MAX.to_string()));
        }
        assert_eq!(shape.multiplications(64)[0], 64 * 3 + 3);
    }
}

/// Views that repeat one row 2⁴⁰ times are judged at once, where numbers are looked at.
#[test]
fn a_repeated_row_is_looked_at_once() {
    let row = arr2(&[[1.0, f64::NAN]]);
    let many = row.broadcast((1 << 40, 2)).unwrap();
    assert!(matches!(lengthscale::median_of_subsample(&many, 9, 1), Err(Error::NotFinite { row: 0, .. })));
    let row = arr2(&[[1.0, 2.0]]);
    let many = row.broadcast((1 << 40, 2)).unwrap();
    let median = lengthscale::median_of_subsample(&many, 9, 1);
    assert!(matches!(median, Err(Error::Parameter { name: "the median distance", .. })), "{median:?}");
    let many = row.broadcast((1 << 45, 2)).unwrap();
    assert!(matches!(Clustering::of(&many, 2, 1), Err(Error::Memory { .. })));
}

#[cfg(any(feature = "faer", feature = "ndarray-linalg"))]
#[test]
fn a_search_over_a_repeated_row_ends() {
    let (x, y) = (arr2(&[[1.0, 2.0]]), arr2(&[[1.0]]));
    let search =
        RidgeSearch::new(Orthogonal.draw(2, 8, 1).unwrap(), |omega, ell| Trigonometric.gaussian(omega, ell));
    let search = search.without_standardisation();
    for rows in [1 << 33, 1 << 40] {
        let found = search.fit(x.broadcast((rows, 2)).unwrap(), y.broadcast((rows, 1)).unwrap());
        assert!(matches!(found, Err(Error::Parameter { name: "the median distance", .. })));
    }
}
