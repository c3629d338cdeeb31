//! The engine against the definitions: equal projections are merged, gradients are difference quotients, identities tell
//! maps apart, threads change no bit, and maps of your own are maps.
//!
//! Seeds are fixed. A z-score beyond 4.5 has probability 7e-6; there are 8 here.

use std::sync::Arc;

use crate::common::own_map::ones;
use crate::common::{MAPS, MORE_MAPS, Name, Sample, changed, frequencies, gaussian, point, points, softmax};
use crate::threads::on_threads;
use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut2, Axis, ShapeBuilder, arr2, s};
use num_complex::Complex64;
use random_features::apply::Smoother;
use random_features::compose::{Bases, Centres, Clustered, Coefficient, Hybrid};
use random_features::data::Clustering;
use random_features::extend::{Coupling, Facts, FeatureMap, Form, Tile};
use random_features::frequency::{Counts, Frequencies, Givens, Hadamard, Independent, Orthogonal};
use random_features::kernel::{
    Activation, Gaussian, Kernel, Lengthscale, Matern, RegularisedSoftmax, Smoothness, Softmax,
};
use random_features::map::{AnyKernel, Shift, Transform};
use random_features::recipe::{Draw, Omega, PlainRecipe};

use random_features::theory::complex_exponential::Symmetry;
use random_features::theory::gerf::GerfSign;
use random_features::workbench::{Formula, Projection};
use random_features::{
    ComplexExponential, EluPlusOne, Error, Features, Geometric, Gerf, Hyperbolic, Map, Nonlinear, Poisson,
    Positive, Real, Side, Sign, SignedLog, Trigonometric, rng,
};

const LIMIT: f64 = 4.5;
const DRAWS: u64 = 20_000;
const SIDES: [Side; 2] = [Side::X, Side::Y];

fn omega(d: usize, m: usize, seed: u64) -> Frequencies {
    frequencies(d, m, &Independent, seed)
}

fn half<T: Real>() -> Coefficient<Map<T>> {
    Coefficient::constant(0.5).unwrap()
}

/// Lengthscales of ℝ³: one, and one for each dimension.
fn targets() -> [AnyKernel; 5] {
    let scales = || vec![0.8, 1.3, 2.1];
    [
        softmax(),
        Softmax::new(0.7).unwrap().into(),
        Softmax::new(scales()).unwrap().into(),
        Gaussian::new(0.9).unwrap().into(),
        Gaussian::new(scales()).unwrap().into(),
    ]
}

// ------------------------------------------------------------------------------------------------------ merging

/// Hybrids whose parts ask for their frequencies one by one: bipolar, of three bases, and nested.
fn on_shared<T: Real>(target: &AnyKernel, mut omega: impl FnMut() -> Omega, tau: Omega) -> [Map<T>; 3] {
    let hyperbolic = Hyperbolic.build::<T>(omega(), target.clone()).unwrap();
    let trigonometric = Trigonometric.build::<T>(omega(), target.clone()).unwrap();
    let positive = Positive.build::<T>(omega(), target.clone()).unwrap();
    let angular = Coefficient::angular(tau).unwrap();
    let bipolar = Hybrid::sum(vec![(angular.clone(), hyperbolic.clone())], trigonometric.clone()).unwrap();
    let three = vec![(angular, hyperbolic), (Coefficient::constant(0.3).unwrap(), positive)];
    let three = Hybrid::sum(three, trigonometric.clone()).unwrap();
    let nested = Hybrid::sum(vec![(half(), bipolar.clone())], trigonometric).unwrap();
    [bipolar, three, nested]
}

fn equal_projections_are_merged<T: Real>() {
    for (d, coupling) in [(3, &Independent as &dyn Coupling), (5, &Hadamard::default()), (7, &Orthogonal)] {
        for target in [softmax(), Gaussian::new(0.7).unwrap().into()] {
            let drawn = || frequencies(d, 6, coupling, 3);
            let (shared, tau) = (Arc::new(drawn()), Arc::new(omega(d, 4, 9)));
            let by_arc = on_shared::<T>(&target, || (&shared).into(), (&tau).into());
            let by_value = on_shared::<T>(&target, || drawn().into(), omega(d, 4, 9).into());
            let x = points::<T>(150, d, 1.0);
            let (p, q) = (x.row(0), x.row(1));
            for (k, (one, other)) in by_arc.iter().zip(&by_value).enumerate() {
                assert_eq!(one.identity(), other.identity());
                for side in SIDES {
                    let features = one.features(side, &x).unwrap();
                    assert!(bits_agree(&features, &other.features(side, &x).unwrap()));
                }
                let variance = one.log_variance(&p, &q).unwrap();
                assert_eq!(variance, other.log_variance(&p, &q).unwrap());
                assert_eq!(variance.is_some(), is_known(k, coupling));
            }
            // The parts alone give the same rows: what is merged is what each would have had.
            let alone = Hyperbolic.build::<T>(&shared, target.clone()).unwrap();
            let (whole, part) =
                (by_value[0].features(Side::X, &x).unwrap(), alone.features(Side::X, &x).unwrap());
            let ratio = 0.25f64.sqrt();
            for i in 0..150 {
                // The first of four signs has a block for each of its values.
                let block = usize::from(whole.log_scales()[[i, 0]] == f64::NEG_INFINITY);
                assert_eq!(whole.log_scales()[[i, 1 - block]], f64::NEG_INFINITY);
                let columns = s![i, 12 * block..12 * (block + 1)];
                let a: Vec<f64> = whole.mantissas().slice(columns).iter().map(|v| v.widen()).collect();
                let shift = (whole.log_scales()[[i, block]] - part.log_scales()[[i, 0]]).exp();
                for (a, b) in a.iter().zip(part.mantissas().row(i)) {
                    let expected = ratio * b.widen();
                    assert!(
                        (a * shift - expected).abs()
                            <= 8.0 * T::epsilon().widen() * expected.abs().max(1e-30)
                    );
                }
            }
        }
    }
}

/// Only the bipolar hybrid on independent frequencies has a closed form.
fn is_known(hybrid: usize, coupling: &dyn Coupling) -> bool {
    hybrid == 0 && format!("{coupling:?}") == "Independent"
}

fn bits_agree<T: Real>(a: &Features<T>, b: &Features<T>) -> bool {
    same_bits(a.mantissas(), b.mantissas()) && same_bits(a.log_scales(), b.log_scales())
}

fn same_bits<T: Real>(a: ArrayView2<'_, T>, b: ArrayView2<'_, T>) -> bool {
    a.dim() == b.dim() && a.iter().zip(b).all(|(a, b)| a.widen().to_bits() == b.widen().to_bits())
}

#[test]
fn hybrids_of_equal_frequencies_are_those_of_shared_ones() {
    equal_projections_are_merged::<f32>();
    equal_projections_are_merged::<f64>();
}

/// The closed form of hyperbolic and trigonometric features on the same frequencies, against draws.
#[test]
fn sharing_is_in_the_variance() {
    let (x, y) = (point::<f64>(3, 1, 0.5), point::<f64>(3, 5, 0.35));
    for target in targets().into_iter().skip(1) {
        let make = |seed: u64| {
            let maps =
                on_shared::<f64>(&target, || omega(3, 4, 2 * seed).into(), omega(3, 3, 2 * seed + 1).into());
            maps.into_iter().next().unwrap()
        };
        let exact = make(0).kernel().unwrap().value(&x, &y).unwrap();
        let stated = make(0).log_variance(&x, &y).unwrap().unwrap().exp();
        let sample: Vec<f64> = (0..DRAWS).map(|seed| make(seed).estimate(&x, &y).unwrap()).collect();
        let z = Sample::of(&sample).z(exact);
        assert!(z.abs() < LIMIT, "{target:?}: {z}");
        let errors = Sample::of(&sample.iter().map(|v| (v - exact).powi(2)).collect::<Vec<_>>());
        assert!(errors.z(stated).abs() < LIMIT, "{target:?}: {} of {stated}", errors.mean);
        assert!(errors.error < 0.05 * errors.mean, "too few draws");
        // The covariance matters: independent bases have another variance, which the draws exclude.
        let angular = Coefficient::angular(omega(3, 3, 1)).unwrap();
        let bases = Bases::independent(omega(3, 4, 0), omega(3, 4, 2));
        let independent = Hybrid::<Map<f64>>::bipolar(bases, angular, target.clone()).unwrap();
        let other = independent.log_variance(&x, &y).unwrap().unwrap().exp();
        assert!((other - stated).abs() > 1e-6 * stated, "{other} and {stated}");
    }
}

#[test]
fn other_sharings_have_no_closed_form() {
    let d = 3;
    let (x, y) = (point::<f64>(d, 1, 0.5), point::<f64>(d, 5, 0.35));
    let known = |map: &Map<f64>| map.log_variance(&x, &y).unwrap().is_some();
    let hyperbolic = |seed| Hyperbolic.softmax::<f64>(omega(d, 4, seed)).unwrap();
    let trigonometric = |seed| Trigonometric.softmax::<f64>(omega(d, 4, seed)).unwrap();
    let positive = |seed| Positive.softmax::<f64>(omega(d, 4, seed)).unwrap();
    let angular = |seed| Coefficient::<Map<f64>>::angular(omega(d, 4, seed)).unwrap();
    let sum = |terms, rest| Hybrid::sum(terms, rest).unwrap();
    // All on their own, or the one pair that is known.
    assert!(known(&sum(vec![(angular(1), hyperbolic(2))], trigonometric(3))));
    assert!(known(&sum(vec![(angular(1), hyperbolic(2))], trigonometric(2))));
    assert!(known(&sum(vec![(half(), hyperbolic(2))], trigonometric(2))));
    assert!(known(&sum(vec![(angular(1), hyperbolic(2)), (angular(4), positive(3))], trigonometric(5))));
    // Two bases of other kinds, or for other targets.
    assert!(!known(&sum(vec![(angular(1), positive(2))], trigonometric(2))));
    assert!(!known(&sum(vec![(angular(1), hyperbolic(2))], hyperbolic(2))));
    let wide = Trigonometric.build::<f64>(omega(d, 4, 2), Softmax::new(2.0).unwrap()).unwrap();
    assert!(!known(&sum(vec![(angular(1), hyperbolic(2))], wide)));
    // A coefficient and a base, and one coefficient in two terms, as a clone and drawn again.
    assert!(!known(&sum(vec![(angular(1), hyperbolic(1))], trigonometric(3))));
    assert!(!known(&sum(vec![(angular(1), hyperbolic(2))], trigonometric(1))));
    assert!(!known(&sum(vec![(angular(1), hyperbolic(1))], trigonometric(1))));
    let twice = angular(1);
    let terms = vec![(twice.clone(), hyperbolic(2)), (twice, positive(3))];
    assert!(!known(&sum(terms, trigonometric(4))));
    let terms = vec![(angular(1), hyperbolic(2)), (angular(1), positive(3))];
    assert!(!known(&sum(terms, trigonometric(4))));
    // The known pair beside another term.
    let terms = vec![(angular(1), hyperbolic(2)), (half(), positive(3))];
    assert!(!known(&sum(terms, trigonometric(2))));
    // Through a nested hybrid: a base or a coefficient of its.
    let inner = |a, b, c| sum(vec![(angular(a), hyperbolic(b))], trigonometric(c));
    assert!(known(&sum(vec![(angular(1), inner(2, 3, 4))], trigonometric(5))));
    assert!(known(&sum(vec![(angular(1), inner(2, 3, 3))], trigonometric(5))));
    for (a, b, c) in [(1, 3, 4), (2, 1, 4), (2, 3, 1), (5, 3, 4), (2, 5, 4), (2, 3, 5)] {
        assert!(!known(&sum(vec![(angular(1), inner(a, b, c))], trigonometric(5))), "{a} {b} {c}");
    }
    // Through clusters.
    let one = || Clustering::new(arr2(&[[0.1, 0.2, 0.3]])).unwrap();
    let routed = |seed| Clustered::from_bases(one(), one(), vec![positive(seed)]).unwrap();
    assert!(known(&sum(vec![(angular(1), routed(2))], trigonometric(3))));
    assert!(!known(&sum(vec![(angular(1), routed(3))], trigonometric(3))));
    // A foreign map in two places.
    let own = Map::of_feature_map(Own::new(omega(d, 4, 8), true)).unwrap();
    assert!(known(&sum(vec![(half(), own.clone())], trigonometric(3))));
    assert!(!known(&sum(vec![(half(), own.clone())], own)));
}

// ---------------------------------------------------------------------------------------------------- gradients

/// Rows of `x` whose projections on none of the frequencies are near a kink at 0.
fn off_kinks(x: Array2<f64>, omega: &Frequencies, lengthscale: &[f64]) -> Array2<f64> {
    let scales = if lengthscale.len() == 1 { vec![lengthscale[0]; x.ncols()] } else { lengthscale.to_vec() };
    let projection = Projection::<f64>::new(omega.clone(), scales).unwrap();
    let (mut products, mut norms) = (Array2::zeros((x.nrows(), omega.m())), Array1::zeros(x.nrows()));
    projection.project_into(&x, &mut products, &mut norms).unwrap();
    let near: Vec<usize> =
        (0..x.nrows()).filter(|i| products.row(*i).iter().all(|u| u.abs() > 0.05)).collect();
    assert!(near.len() > 4, "{} rows are left", near.len());
    x.select(Axis(0), &near)
}

/// Gradients of Σ c φ e^{−s}, s those of the points themselves, against difference quotients of fourth order.
fn gradients_agree(name: &str, map: &Map<f64>, x: &Array2<f64>) {
    let (n, d, width) = (x.nrows(), map.dim(), map.feature_dim());
    let c = Array2::from_shape_fn((n, width), |(i, f)| ((i * 31 + f * 17 + 5) % 13) as f64 / 6.0 - 1.0);
    for side in SIDES {
        let base = map.features(side, x).unwrap();
        let sums = |x: &Array2<f64>| -> (Vec<f64>, Vec<f64>) {
            let moved = map.features(side, x).unwrap();
            let of_row = |i: usize| {
                let (mut sum, mut size, mut start) = (0.0, 0.0, 0);
                for (b, columns) in map.blocks().iter().enumerate() {
                    let (own, fixed) = (moved.log_scales()[[i, b]], base.log_scales()[[i, b]]);
                    assert_eq!(
                        own == f64::NEG_INFINITY,
                        fixed == f64::NEG_INFINITY,
                        "{name}: row {i}, block {b}"
                    );
                    if own > f64::NEG_INFINITY {
                        for f in start..start + columns {
                            let term = c[[i, f]] * moved.mantissas()[[i, f]] * (own - fixed).exp();
                            (sum, size) = (sum + term, size + term.abs());
                        }
                    }
                    start += columns;
                }
                (sum, size)
            };
            (0..n).map(of_row).unzip()
        };
        let found = map.pull_back(side, x, &c).unwrap();
        let (_, sizes) = sums(x);
        let h = 2e-4;
        for k in 0..d {
            let at = |step: f64| {
                let mut moved = x.clone();
                moved.column_mut(k).iter_mut().for_each(|v| *v += step * h);
                sums(&moved).0
            };
            let (a, b, e, f) = (at(-2.0), at(-1.0), at(1.0), at(2.0));
            for i in 0..n {
                let quotient = (8.0 * (e[i] - b[i]) - (f[i] - a[i])) / (12.0 * h);
                let tolerance = 2e-8 * (1.0 + sizes[i] + quotient.abs());
                assert!(
                    (found[[i, k]] - quotient).abs() <= tolerance,
                    "{name}, {side:?}: row {i}, coordinate {k}: {} instead of {quotient}",
                    found[[i, k]]
                );
            }
        }
        // Any layout, and a row alone.
        let (mut columns, mut weights) = (Array2::zeros(x.dim().f()), Array2::zeros(c.dim().f()));
        columns.assign(x);
        weights.assign(&c);
        assert_eq!(map.pull_back(side, &columns, &weights).unwrap(), found, "{name}");
        let alone = map.pull_back(side, &x.slice(s![1..2, ..]), &c.slice(s![1..2, ..])).unwrap();
        let size = sizes[1] + found.row(1).fold(0.0, |a: f64, v| a.max(v.abs()));
        assert!((&alone.row(0) - &found.row(1)).iter().all(|e| e.abs() <= 1e-12 * size), "{name}");
        // Points that are not finite have no gradient, and others have theirs.
        let mut dirty = x.clone();
        dirty[[0, d - 1]] = f64::NAN;
        let gradient = map.pull_back(side, &dirty, &c).unwrap();
        assert!(gradient.row(0).iter().any(|v| v.is_nan()), "{name}: {}", gradient.row(0));
        assert_eq!(gradient.slice(s![1.., ..]), found.slice(s![1.., ..]), "{name}");
        assert_eq!(map.pull_back(side, &x.slice(s![..0, ..]), &c.slice(s![..0, ..])).unwrap().dim(), (0, d));
    }
}

#[test]
fn gradients_of_exponential_maps() {
    let c = |re, im| Complex64::new(re, im);
    let full = [Name::Full(c(0.05, 0.03)), Name::Full(c(0.05, 0.0))];
    let couplings: [&dyn Coupling; 3] = [&Independent, &Orthogonal, &Hadamard::default()];
    for name in MAPS.into_iter().chain(MORE_MAPS).chain(full) {
        for target in targets() {
            for (coupling, n) in couplings.iter().zip([70, 5, 5]) {
                let map = name.make::<f64>(frequencies(3, 5, *coupling, 1), target.clone());
                gradients_agree(&format!("{name:?}, {target:?}, {coupling:?}"), &map, &points(n, 3, 1.0));
            }
        }
    }
    // Symmetric maps with a full matrix.
    for step in [c(0.05, 0.03), c(0.05, 0.0)] {
        let a = Transform::full(Name::Full(step).matrix(3)).unwrap();
        for target in targets() {
            let map = ComplexExponential::new(a.clone(), Symmetry::Symmetric)
                .build(omega(3, 5, 1), target)
                .unwrap();
            gradients_agree("full and symmetric", &map, &points(5, 3, 1.0));
        }
    }
    // Points of 0 and of norms up to some 20.
    let mut extreme = points(6, 3, 1.0);
    extreme.row_mut(0).fill(0.0);
    extreme.row_mut(1).mapv_inplace(|v: f64| 20.0 * v);
    extreme[[2, 1]] = 0.0;
    for name in MAPS.into_iter().chain(MORE_MAPS).chain(full) {
        for target in targets() {
            gradients_agree(
                &format!("{name:?}, {target:?}, extreme"),
                &name.make(omega(3, 5, 1), target),
                &extreme,
            );
        }
    }
    // One coordinate, one frequency.
    for name in MAPS.into_iter().chain(MORE_MAPS) {
        gradients_agree("small", &name.make(omega(1, 1, 1), gaussian()), &points(3, 1, 1.0));
    }
}

/// Points on side Y go through M first.
#[test]
fn gradients_through_a_matrix() {
    let m = arr2(&[[0.9, 0.2, 0.0], [-0.1, 1.1, 0.4], [0.3, 0.0, -0.7]]);
    let gerf = |a: Complex64, sign| Gerf::new(a, sign).unwrap();
    let mechanisms: [random_features::map::Mechanism; 5] = [
        Trigonometric.into(),
        Positive.into(),
        Hyperbolic.into(),
        gerf(Complex64::new(-0.2, 0.0), GerfSign::Plus).into(),
        gerf(Complex64::new(-0.02, -0.03), GerfSign::Minus).into(),
    ];
    for mechanism in mechanisms {
        for target in targets() {
            let (mechanism, omega) = (mechanism.clone(), omega(3, 5, 1));
            let name = format!("{mechanism:?}, {target:?}");
            let map =
                changed(&PlainRecipe::new(mechanism, omega, target), |plain| plain.matrix = Some(m.clone()));
            let map = map.build().unwrap();
            gradients_agree(&name, &map, &points(9, 3, 1.0));
        }
    }
    let positive = || Positive.softmax::<f64>(omega(3, 4, 2)).unwrap();
    let trigonometric = || Trigonometric.softmax::<f64>(omega(3, 4, 3)).unwrap();
    for coefficient in [
        Coefficient::gaussian_trigonometric(omega(3, 3, 4), m.clone(), 1.3).unwrap(),
        Coefficient::gaussian_positive(omega(3, 3, 4), m.clone(), 1.3).unwrap(),
        Coefficient::around(omega(3, 3, 4), &[Complex64::new(0.0, 0.8), 1.2.into(), 0.9.into()], 0.9)
            .unwrap(),
    ] {
        let hybrid = Hybrid::sum(vec![(coefficient, positive())], trigonometric()).unwrap();
        gradients_agree("hybrid with a matrix", &hybrid, &points(9, 3, 0.8));
    }
}

#[test]
fn gradients_of_maps_of_counts() {
    let scales = vec![0.8, 1.3, 2.1];
    // Powers of small coordinates bend within a step: away from 0, or at 0.
    let away = |v: f64| v + 0.15 * v.signum();
    let mut x = points::<f64>(20, 3, 1.0).mapv(away);
    // Coordinates that are 0: one, two and all.
    x.slice_mut(s![..8, 1]).fill(0.0);
    x.slice_mut(s![4..8, 0]).fill(0.0);
    x.row_mut(7).fill(0.0);
    for seed in 1..4 {
        for m in [1, 3, 12] {
            let poisson = || Counts::poisson(3, m, vec![0.8, 1.5, 0.4], rng(seed).next_u64()).unwrap();
            let geometric = || Counts::geometric(3, m, 0.4, rng(seed).next_u64()).unwrap();
            let targets: [AnyKernel; 4] = [
                softmax(),
                Softmax::new(scales.clone()).unwrap().into(),
                Gaussian::new(0.9).unwrap().into(),
                Gaussian::new(scales.clone()).unwrap().into(),
            ];
            for target in targets {
                let name = format!("{target:?}, m = {m}, seed {seed}");
                let map = Poisson::default().build(poisson(), target.clone()).unwrap();
                gradients_agree(&format!("Poisson, {name}"), &map, &x);
                let map = Poisson::with_rates(0.7).build(poisson(), target.clone()).unwrap();
                gradients_agree(&format!("Poisson with other rates, {name}"), &map, &x);
                let map = Geometric::default().build(geometric(), target.clone()).unwrap();
                gradients_agree(&format!("geometric, {name}"), &map, &x);
                // Shifted: everything inside, and some coordinates clamped.
                for by in [-3.0, 0.013] {
                    let shift = || Shift::new(vec![by; 3], 1e-3).unwrap();
                    let map = Poisson::default().shifted(shift()).build(poisson(), target.clone()).unwrap();
                    gradients_agree(&format!("Poisson by {by}, {name}"), &map, &x);
                    let map =
                        Geometric::default().shifted(shift()).build(geometric(), target.clone()).unwrap();
                    gradients_agree(&format!("geometric by {by}, {name}"), &map, &x);
                }
            }
        }
    }
}

#[test]
fn gradients_of_functions() {
    for lengthscale in [vec![1.0], vec![0.6], vec![0.8, 1.3, 2.1]] {
        for (coupling, m) in [(&Independent as &dyn Coupling, 5), (&Givens::default(), 4)] {
            let omega = || frequencies(3, m, coupling, 1);
            let x = off_kinks(points(100, 3, 1.0), &omega(), &lengthscale);
            let scale = || -> Lengthscale {
                if lengthscale.len() == 1 { lengthscale[0].into() } else { lengthscale.clone().into() }
            };
            for activation in Activation::ALL {
                for offset in [0.0, 0.1, 3.0] {
                    let definition = Nonlinear::new(activation).with_offset(offset).unwrap();
                    let map = definition.build(omega(), scale()).unwrap();
                    gradients_agree(&format!("{activation:?} + {offset}, {lengthscale:?}"), &map, &x);
                }
            }
            let sign = Sign.build(omega(), scale()).unwrap();
            gradients_agree("sign", &sign, &x);
            let zero = sign.pull_back(Side::X, &x, &Array2::ones((x.nrows(), m))).unwrap();
            assert!(zero.iter().all(|v| *v == 0.0));
            let away = x.mapv(|v| if v.abs() < 0.05 { v + 0.2 } else { v });
            gradients_agree("elu + 1", &EluPlusOne.build(3, scale()).unwrap(), &away);
            gradients_agree(
                "elu + 1, negative",
                &EluPlusOne.build(3, scale()).unwrap(),
                &-away.mapv(f64::abs),
            );
        }
    }
}

/// Slopes beside scales whose exponential alone leaves the range of `f64`.
#[test]
fn gradients_of_functions_at_small_norms() {
    let omega = || Frequencies::from_rows(arr2(&[[1.0], [-1.0], [0.5]])).unwrap();
    let c = arr2(&[[1.0, 1.0, 1.0]]);
    for small in [1e-150, 1e-156, 1e-200, 1e-300] {
        let x = arr2(&[[small]]);
        // Σ c (ωx)² e^{−s} over the features themselves is f e^{−s}, and its derivative 2f e^{−s}/x.
        for activation in [Activation::Square, Activation::ReluSquared] {
            let map = Nonlinear::new(activation).build::<f64>(omega(), 1.0).unwrap();
            let sum = map.features(Side::X, &x).unwrap().mantissas().sum();
            let found = map.pull_back(Side::X, &x, &c).unwrap()[[0, 0]];
            assert!(sum > 0.0 && found.is_finite(), "{activation:?} at {small:e}: {found}");
            assert!(
                (found * (0.5 * small) / sum - 1.0).abs() < 1e-11,
                "{activation:?} at {small:e}: {found}"
            );
        }
        for activation in [Activation::Identity, Activation::Relu, Activation::Abs, Activation::Gelu] {
            let map = Nonlinear::new(activation).build::<f64>(omega(), 1.0).unwrap();
            let found = map.pull_back(Side::X, &x, &c).unwrap();
            assert!(found[[0, 0]].is_finite(), "{activation:?} at {small:e}: {found}");
        }
    }
    // The gradient is beyond the range, but not that of features whose slope is 0.
    let one = Frequencies::from_rows(arr2(&[[1.0], [-1.0]])).unwrap();
    let map = Nonlinear::new(Activation::Relu).build::<f64>(one, 1.0).unwrap();
    let found = map.pull_back(Side::X, &arr2(&[[1e-320]]), &arr2(&[[1.0, 1.0]])).unwrap();
    assert!(!found[[0, 0]].is_nan(), "{found}");
}

#[test]
fn gradients_of_hybrids_and_clusters() {
    let tau = || omega(3, 3, 7);
    let x = off_kinks(points(100, 3, 0.9), &tau(), &[1.0]);
    for target in targets() {
        for bases in [Bases::shared(omega(3, 4, 1)), Bases::independent(omega(3, 4, 1), omega(3, 5, 2))] {
            let angular = Coefficient::<Map<f64>>::angular(tau()).unwrap();
            let map = Hybrid::bipolar(bases.clone(), angular.clone(), target.clone()).unwrap();
            gradients_agree(&format!("angular, {target:?}"), &map, &x);
            let normalised = Coefficient::gaussian(omega(3, 4, 5), (0.8, 0.9)).unwrap();
            let gaussian = Hybrid::bipolar(bases, normalised, target.clone()).unwrap();
            gradients_agree(&format!("gaussian, {target:?}"), &gaussian, &x);
            // Hybrids as bases, as the rest and in a coefficient, with negative weights.
            let weight = Coefficient::affine(0.3, -0.4, map.clone()).unwrap();
            let poisson = Poisson::default()
                .build(Counts::poisson(3, 4, 0.8, rng(3).next_u64()).unwrap(), target.clone());
            let terms = vec![(weight, poisson.unwrap()), (angular, gaussian)];
            let nested = Hybrid::sum(terms, map).unwrap();
            gradients_agree(&format!("nested, {target:?}"), &nested, &x.slice(s![..6, ..]).to_owned());
        }
    }
    // Clusters, far from the boundaries between them; one cluster has no points.
    let queries = Clustering::new(arr2(&[[2.0, 0.3, 0.5], [-2.0, 0.5, -0.4], [9.0, 9.0, 9.0]])).unwrap();
    let keys = Clustering::new(arr2(&[[1.5, 0.4, -0.6], [-1.5, 0.3, 0.4]])).unwrap();
    let x = Array2::from_shape_fn((70, 3), |(i, k)| {
        points::<f64>(70, 3, 0.3)[[i, k]] + if k == 0 { if i % 3 == 0 { 1.8 } else { -1.8 } } else { 0.0 }
    });
    for target in targets() {
        for formula in [Formula::Complex, Formula::Robust, Formula::Real] {
            for symmetry in [Symmetry::Plain, Symmetry::Symmetric] {
                let centres = Centres::new(&queries, &keys).with_diagonal(formula).with_symmetry(symmetry);
                let map = Clustered::by_centres(centres, omega(3, 4, 1), target.clone()).unwrap();
                gradients_agree(&format!("{formula:?}, {symmetry:?}, {target:?}"), &map, &x);
                let rest = Trigonometric.build(omega(3, 4, 1), target.clone()).unwrap();
                let hybrid = Hybrid::sum(vec![(Coefficient::constant(0.3).unwrap(), map)], rest).unwrap();
                gradients_agree("hybrid of clusters", &hybrid, &x);
            }
        }
    }
    let own: Vec<Map<f64>> = (0..6)
        .map(|k| match k % 3 {
            0 => Hybrid::gaussian(Bases::shared(omega(3, 3, k)), omega(3, 2, 50 + k), (0.7, 1.0)).unwrap(),
            1 => Positive.softmax(omega(3, 4, k)).unwrap(),
            _ => Trigonometric.softmax(omega(3, 2, k)).unwrap(),
        })
        .collect();
    gradients_agree("any bases", &Clustered::from_bases(queries, keys, own).unwrap(), &x);
}

/// `f32` gradients are those of `f64` to its rounding.
#[test]
fn gradients_in_single_precision() {
    for name in MAPS.into_iter().chain(MORE_MAPS) {
        let (single, double) =
            (name.make::<f32>(omega(4, 33, 1), softmax()), name.make::<f64>(omega(4, 33, 1), softmax()));
        let (x, c) = (points::<f32>(130, 4, 1.0), points::<f32>(130, single.feature_dim(), 1.0));
        for side in SIDES {
            let found = single.pull_back(side, &x, &c).unwrap();
            let exact = double.pull_back(side, &x.mapv(f64::from), &c.mapv(f64::from)).unwrap();
            let (a, b) =
                (single.features(side, &x).unwrap(), double.features(side, &x.mapv(f64::from)).unwrap());
            for ((i, k), found) in found.indexed_iter() {
                let exact = exact[[i, k]] * (b.log_scales()[[i, 0]] - a.log_scales()[[i, 0]]).exp();
                let error = (f64::from(*found) - exact).abs();
                assert!(error < 1e-4 * (1.0 + exact.abs()), "{name:?}: {found} instead of {exact}");
            }
        }
    }
}

#[test]
fn foreign_maps_have_the_gradients_that_they_offer() {
    let with = || Map::of_feature_map(Own::new(omega(3, 5, 1), true)).unwrap();
    let without = || Map::of_feature_map(Own::new(omega(3, 5, 1), false)).unwrap();
    let x = points::<f64>(70, 3, 1.0);
    gradients_agree("own", &with(), &x);
    let positive = Positive.softmax::<f64>(omega(3, 5, 1)).unwrap();
    let unknown = |map: &Map<f64>, n: usize| {
        let c = Array2::ones((n, map.feature_dim()));
        for side in SIDES {
            let refused = map.pull_back(side, &x.slice(s![..n, ..]), &c);
            assert!(matches!(refused, Err(Error::Unsupported { .. })), "{refused:?}");
        }
    };
    let queries = || Clustering::new(arr2(&[[0.5, 0.0, 0.0], [-9.0, 0.0, 0.0]])).unwrap();
    let keys = || Clustering::new(arr2(&[[0.5, 0.0, 0.0]])).unwrap();
    let composed = |own: &dyn Fn() -> Map<f64>| {
        let as_coefficient = Coefficient::affine(0.2, 0.3, own()).unwrap();
        [
            own(),
            Hybrid::sum(vec![(half(), own())], positive.clone()).unwrap(),
            Hybrid::sum(vec![(half(), positive.clone())], own()).unwrap(),
            Hybrid::sum(vec![(as_coefficient, positive.clone())], own()).unwrap(),
            Clustered::from_bases(queries(), keys(), vec![own(), positive.clone()]).unwrap(),
            // A cluster that no point belongs to.
            Clustered::from_bases(queries(), keys(), vec![positive.clone(), own()]).unwrap(),
        ]
    };
    composed(&with).iter().for_each(|map| gradients_agree("composed of own", map, &x));
    for map in composed(&without) {
        [0, 1, 70].into_iter().for_each(|n| unknown(&map, n));
    }
    // Shapes are checked first.
    let wrong = with().pull_back(Side::X, &x, &Array2::ones((70, 4)));
    assert!(matches!(wrong, Err(Error::Shape { .. })));
    let wrong = with().pull_back(Side::X, &x, &Array2::ones((69, 5)));
    assert!(matches!(wrong, Err(Error::Shape { .. })));
    assert!(with().pull_back(Side::X, &x.slice(s![.., ..2]), &Array2::ones((70, 5))).is_err());
}

// ----------------------------------------------------------------------------------------------------- identity

/// Maps of ℝ³ that differ in one thing each.
fn different<T: Real>() -> Vec<Map<T>> {
    let c = |re: f64, im: f64| Complex64::new(re, im);
    let o = |seed| omega(3, 4, seed);
    let gerf = |a, sign| Gerf::new(a, sign).unwrap().softmax(o(1)).unwrap();
    let diagonal = |last| Transform::diagonal(vec![c(1.2, 0.0), c(0.8, 0.1), last]).unwrap();
    let complex = |a, symmetry| ComplexExponential::new(a, symmetry).softmax(o(1)).unwrap();
    let matrix = |m: Option<Array2<f64>>| {
        changed(&PlainRecipe::new(Positive, o(1), softmax()), |plain| plain.matrix = m).build().unwrap()
    };
    let poisson = |rates: f64, seed| Counts::poisson(3, 4, rates, rng(seed).next_u64()).unwrap();
    let shift = |by: f64, least: f64| Poisson::default().shifted(Shift::new(vec![by; 3], least).unwrap());
    let geometric = |p: f64| Counts::geometric(3, 4, p, rng(1).next_u64()).unwrap();
    let function = |f: Activation, offset: f64| Nonlinear::new(f).with_offset(offset).unwrap();
    let positive = |seed| Positive.softmax::<T>(o(seed)).unwrap();
    let sum = |a: f64, c: f64, seed, rest| {
        let coefficient = Coefficient::affine(a, c, Sign.build(o(seed), 1.0).unwrap()).unwrap();
        Hybrid::sum(vec![(coefficient, positive(2))], rest).unwrap()
    };
    let side = |shift: f64| Clustering::new(arr2(&[[1.0, shift, 0.0], [-1.0, 0.0, shift]])).unwrap();
    let routed = |a, b, seeds: [u64; 4]| {
        Clustered::from_bases(side(a), side(b), seeds.map(positive).to_vec()).unwrap()
    };
    let unstated = |seed| Frequencies::from_rows(o(seed).rows().into_owned()).unwrap();
    let mut maps = vec![
        positive(1),
        positive(2),
        Positive.softmax(omega(3, 5, 1)).unwrap(),
        Positive.softmax(omega(4, 3, 1)).unwrap(),
        Positive.softmax(frequencies(3, 4, &Orthogonal, 1)).unwrap(),
        Positive.softmax(unstated(1)).unwrap(),
        Positive.gaussian(o(1), 1.0).unwrap(),
        Positive.gaussian(o(1), 1.0 + f64::EPSILON).unwrap(),
        Positive.gaussian(o(1), vec![1.0, 1.0, 2.0]).unwrap(),
        Positive.gaussian(o(1), vec![1.0, 2.0, 1.0]).unwrap(),
        Positive.build(o(1), Softmax::new(2.0).unwrap()).unwrap(),
        Trigonometric.softmax(o(1)).unwrap(),
        Hyperbolic.softmax(o(1)).unwrap(),
        gerf(c(-0.2, 0.0), GerfSign::Plus),
        gerf(c(-0.2, 0.0), GerfSign::Minus),
        gerf(c(-0.2, 1e-9), GerfSign::Plus),
        gerf(c(-0.2, -1e-9), GerfSign::Plus),
        gerf(c(-0.25, 0.0), GerfSign::Plus),
        complex(diagonal(c(1.0, 0.0)), Symmetry::Plain),
        complex(diagonal(c(1.0, 0.0)), Symmetry::Symmetric),
        complex(diagonal(c(1.0, 0.2)), Symmetry::Plain),
        complex(diagonal(c(1.0, -0.2)), Symmetry::Plain),
        complex(Transform::full(Name::Full(c(0.05, 0.0)).matrix(3)).unwrap(), Symmetry::Plain),
        matrix(Some(Array2::eye(3))),
        matrix(Some(Array2::eye(3) * 2.0)),
        Poisson::default().gaussian(poisson(1.0, 1), 1.0).unwrap(),
        Poisson::default().gaussian(poisson(1.0, 2), 1.0).unwrap(),
        Poisson::default().gaussian(poisson(1.1, 1), 1.0).unwrap(),
        Poisson::with_rates(1.5).gaussian(poisson(1.0, 1), 1.0).unwrap(),
        Poisson::with_rates(vec![1.5, 1.0, 1.0]).gaussian(poisson(1.0, 1), 1.0).unwrap(),
        Poisson::default().softmax(poisson(1.0, 1)).unwrap(),
        shift(-3.0, 1e-3).gaussian(poisson(1.0, 1), 1.0).unwrap(),
        shift(-4.0, 1e-3).gaussian(poisson(1.0, 1), 1.0).unwrap(),
        shift(-3.0, 1e-4).gaussian(poisson(1.0, 1), 1.0).unwrap(),
        Geometric::default().gaussian(geometric(0.4), 1.0).unwrap(),
        Geometric::with_p(0.5).gaussian(geometric(0.4), 1.0).unwrap(),
        Geometric::default().gaussian(geometric(0.6), 1.0).unwrap(),
        function(Activation::Relu, 1e-3).build(o(1), 1.0).unwrap(),
        function(Activation::Relu, 1e-4).build(o(1), 1.0).unwrap(),
        function(Activation::Relu, 0.0).build(o(1), 2.0).unwrap(),
        Sign.build(o(1), 1.0).unwrap(),
        EluPlusOne.build(3, 1.0).unwrap(),
        EluPlusOne.build(4, 1.0).unwrap(),
        EluPlusOne.build(3, 2.0).unwrap(),
        EluPlusOne.build(3, vec![1.0, 2.0, 1.0]).unwrap(),
        sum(0.5, -0.5, 9, positive(3)),
        sum(0.5, 0.5, 9, positive(3)),
        sum(0.25, -0.5, 9, positive(3)),
        sum(0.5, -0.5, 8, positive(3)),
        sum(0.5, -0.5, 9, positive(4)),
        sum(0.5, -0.5, 9, Trigonometric.softmax(o(3)).unwrap()),
        Hybrid::sum(vec![(half(), positive(2))], positive(3)).unwrap(),
        Hybrid::sum(vec![(half(), positive(3))], positive(2)).unwrap(),
        Hybrid::sum(vec![(half(), positive(2)), (half(), positive(4))], positive(3)).unwrap(),
        Hybrid::sum(vec![(half(), sum(0.5, -0.5, 9, positive(3)))], positive(3)).unwrap(),
        routed(0.5, 0.2, [1, 2, 3, 4]),
        routed(0.6, 0.2, [1, 2, 3, 4]),
        routed(0.2, 0.5, [1, 2, 3, 4]),
        routed(0.5, 0.2, [1, 3, 2, 4]),
        routed(0.5, 0.2, [1, 2, 3, 5]),
    ];
    for activation in Activation::ALL {
        maps.push(function(activation, 0.0).build(o(1), 1.0).unwrap());
    }
    // Structured frequencies with the same numbers, of d = 5 and d = 7 in N = 8 and of 8 itself.
    for d in [5, 7, 8] {
        maps.push(Positive.softmax(frequencies(d, 8, &Hadamard::default(), 1)).unwrap());
    }
    maps.push(Positive.softmax(frequencies(7, 8, &Hadamard::default().with_rounds(1), 1)).unwrap());
    maps
}

#[test]
fn identities_tell_maps_apart() {
    let (maps, again, single) = (different::<f64>(), different::<f64>(), different::<f32>());
    for (i, map) in maps.iter().enumerate() {
        assert_eq!(map.identity(), again[i].identity(), "{i}");
        assert_eq!(map.identity(), single[i].identity(), "{i}");
        assert_eq!(map.identity(), map.clone().identity());
        assert_eq!(map.recipe().unwrap().identity(), map.identity());
        let rebuilt = map.recipe().unwrap().build::<f64>().unwrap();
        assert_eq!(rebuilt.identity(), map.identity());
        for (j, other) in maps.iter().enumerate().filter(|(j, _)| *j != i) {
            assert_ne!(map.identity(), other.identity(), "{i} and {j}");
            assert_ne!(map.recipe(), other.recipe(), "{i} and {j}");
        }
        let x = points::<f64>(4, map.dim(), 1.0);
        let features = map.features(Side::X, &x).unwrap();
        let right = again[i].features(Side::Y, &x).unwrap();
        // In the order of products of features, which `Map::gram` may resolve further.
        assert_eq!(
            features.gram(&right).unwrap(),
            features.gram(&rebuilt.features(Side::Y, &x).unwrap()).unwrap()
        );
        assert_eq!(features.gram(&features).is_ok(), map.facts().symmetric, "{i}");
    }
    let x = |map: &Map<f64>| points::<f64>(2, map.dim(), 1.0);
    let all: Vec<Features<f64>> = maps.iter().map(|map| map.features(Side::Y, &x(map)).unwrap()).collect();
    for (i, map) in maps.iter().enumerate() {
        let left = map.features(Side::X, &x(map)).unwrap();
        for (j, right) in all.iter().enumerate() {
            let paired = left.gram(right);
            assert_eq!(paired.is_ok(), i == j, "{i} and {j}");
            assert!(paired.is_ok() || matches!(paired, Err(Error::Pairing { .. })));
        }
    }
}

// ------------------------------------------------------------------------------------------------------ threads

type Everything<T> = (Vec<Features<T>>, Array2<T>, Vec<(Array2<T>, Array2<T>, Array2<f64>)>);

fn everything<T: Real>(map: &Map<T>, x: &Array2<T>, y: &Array2<T>) -> Everything<T> {
    let logarithms = |side: Side| map.log_features(side, x).unwrap();
    let logarithms = if map.facts().logarithms { SIDES.map(logarithms).to_vec() } else { Vec::new() };
    (SIDES.map(|side| map.features(side, x).unwrap()).to_vec(), map.gram(x, y).unwrap(), logarithms)
}

fn threads_change_nothing<T: Real>(maps: &[Map<T>], x: &Array2<T>, y: &Array2<T>) {
    for (k, map) in maps.iter().enumerate() {
        let one = on_threads(1, || everything(map, x, y));
        // Other numbers of threads: `conformance`.
        let many = on_threads(5, || everything(map, x, y));
        assert!(one.0.iter().zip(&many.0).all(|(a, b)| bits_agree(a, b)), "map {k}");
        assert!(same_bits(one.1.view(), many.1.view()), "map {k}: a Gram matrix");
        for ((logarithms, signs, scales), many) in one.2.iter().zip(&many.2) {
            let same = same_bits(logarithms.view(), many.0.view()) && same_bits(signs.view(), many.1.view());
            assert!(same && same_bits(scales.view(), many.2.view()), "map {k}: logarithms");
        }
        // A row alone, without threads to share.
        let alone = map.features(Side::X, x.slice(s![1..2, ..])).unwrap();
        for (b, range) in ranges(map.blocks()).enumerate() {
            let scale = alone.log_scales()[[0, b]];
            assert_eq!(scale.to_bits(), one.0[0].log_scales()[[1, b]].to_bits(), "map {k}");
            if scale > f64::NEG_INFINITY {
                let (a, b) = (alone.mantissas(), one.0[0].mantissas());
                assert_eq!(a.slice(s![0, range.clone()]), b.slice(s![1, range]), "map {k}");
            }
        }
    }
}

fn ranges(blocks: &[usize]) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
    blocks.iter().scan(0, |start, width| {
        *start += width;
        Some(*start - width..*start)
    })
}

/// Maps of ℝᵈ with about `width` features: plain, structured, of counts, hybrid and clustered.
fn wide_and_narrow<T: Real>(d: usize, width: usize) -> Vec<Map<T>> {
    let o = |m: usize, seed| omega(d, m, seed);
    let all = Arc::new(o(width, 1));
    let a =
        Transform::diagonal((0..d).map(|k| Complex64::new(1.0, 0.01 * (k % 3) as f64)).collect()).unwrap();
    let side = |seed| Clustering::new(points::<f64>(2, d, 0.1) + point::<f64>(d, seed, 0.05)).unwrap();
    let routed = (0..4).map(|k| Positive.softmax::<T>(o(width / 4, 20 + k)).unwrap()).collect();
    let n = (width / 20).max(1);
    let tau = o(4, 5);
    let inner = Hybrid::angular(Bases::shared(o(n / 5 + 1, 6)), o(3, 7)).unwrap();
    vec![
        Positive.softmax(&all).unwrap(),
        Trigonometric.softmax(o(width / 2, 2)).unwrap(),
        Hyperbolic.gaussian(frequencies(d, width / 2, &Hadamard::default(), 3), 2.0).unwrap(),
        ComplexExponential::new(a, Symmetry::Plain).softmax(o(width / 2, 4)).unwrap(),
        Nonlinear::new(Activation::Gelu).build(&all, 2.0).unwrap(),
        Poisson::default()
            .gaussian(Counts::poisson(d, width / 4, 0.01, rng(8).next_u64()).unwrap(), 3.0)
            .unwrap(),
        // 4n (1 + 4) features.
        Hybrid::angular(Bases::shared(o(n, 9)), tau).unwrap(),
        Hybrid::sum(vec![(half(), inner)], Positive.softmax(o(n, 6)).unwrap()).unwrap(),
        Clustered::from_bases(side(1), side(2), routed).unwrap(),
    ]
}

#[test]
fn few_rows_with_many_features_on_any_threads() {
    // Threads take 1024 frequencies at a time. In `f32` hybrids have more than that too, a twentieth of the width.
    let (x, y) = (points::<f32>(3, 512, 0.1), points::<f32>(2, 512, 0.12));
    threads_change_nothing(&wide_and_narrow::<f32>(512, 22_000), &x, &y);
    let (x, y) = (points::<f64>(3, 200, 0.1), points::<f64>(2, 200, 0.12));
    threads_change_nothing(&wide_and_narrow::<f64>(200, 8_000), &x, &y);
}

#[test]
fn many_rows_on_any_threads() {
    // Results of more than 8 MiB, which bypass the caches.
    let (x, y) = (points::<f32>(3500, 20, 0.4), points::<f32>(40, 20, 0.5));
    threads_change_nothing(&wide_and_narrow::<f32>(20, 600), &x, &y);
    let (x, y) = (points::<f64>(2100, 7, 0.4), points::<f64>(40, 7, 0.5));
    threads_change_nothing(&wide_and_narrow::<f64>(7, 500), &x, &y);
}

// --------------------------------------------------------------------------------------------- maps of your own

/// Positive features for the softmax kernel as a user would write them: plain loops, logarithms, and gradients perhaps.
#[derive(Debug)]
struct Own {
    omega: Array2<f64>,
    gradients: bool,
}

impl Own {
    fn new(omega: Frequencies, gradients: bool) -> Self {
        Own { omega: omega.rows().into_owned(), gradients }
    }

    /// ln φ for all frequencies.
    fn logarithms<T: Real>(&self, x: ndarray::ArrayView1<'_, T>) -> Vec<f64> {
        let x: Vec<f64> = x.iter().map(|v| v.widen()).collect();
        let c = -0.5 * x.iter().map(|v| v * v).sum::<f64>() - 0.5 * (self.omega.nrows() as f64).ln();
        let product = |w: ndarray::ArrayView1<'_, f64>| w.iter().zip(&x).map(|(w, v)| w * v).sum::<f64>();
        self.omega.rows().into_iter().map(|w| product(w) + c).collect()
    }

    fn scale(logarithms: &[f64]) -> f64 {
        logarithms.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }
}

impl<T: Real> FeatureMap<T> for Own {
    fn facts(&self) -> Facts {
        let (m, d) = self.omega.dim();
        Facts::new(d, vec![m]).symmetric().non_negative().logarithms()
    }

    fn fill(&self, _: Side, x: ArrayView2<'_, T>, form: Form, tile: &mut Tile<'_, T>) {
        for (i, x) in x.rows().into_iter().enumerate() {
            let logs = self.logarithms(x);
            let (scale, row) = (if logs[0].is_nan() { f64::NAN } else { Self::scale(&logs) }, tile.row(i));
            row.log_scales[0] = scale;
            for (value, log) in row.values.iter_mut().zip(logs) {
                *value = match form {
                    Form::Values => T::narrow((log - scale).exp()),
                    Form::Logarithms => T::narrow(log - scale),
                };
            }
        }
    }

    fn kernel(&self) -> Option<&dyn Kernel<T>> {
        None
    }

    fn log_variance(&self, x: &ndarray::ArrayRef1<T>, y: &ndarray::ArrayRef1<T>) -> Option<f64> {
        let dot: f64 = x.iter().zip(y).map(|(a, b)| a.widen() * b.widen()).sum();
        let sum: f64 = x.iter().zip(y).map(|(a, b)| (a.widen() + b.widen()).powi(2)).sum();
        Some(2.0 * dot + sum.exp_m1().ln() - (self.omega.nrows() as f64).ln())
    }

    fn pull_back(
        &self,
        _: Side,
        x: ArrayView2<'_, T>,
        cotangents: ArrayView2<'_, T>,
        mut out: ArrayViewMut2<'_, T>,
    ) -> bool {
        if self.gradients {
            for (i, x) in x.rows().into_iter().enumerate() {
                let logs = self.logarithms(x);
                let scale = Self::scale(&logs);
                for k in 0..x.len() {
                    let slope = |j: usize| (logs[j] - scale).exp() * (self.omega[[j, k]] - x[k].widen());
                    let sum: f64 = (0..logs.len()).map(|j| cotangents[[i, j]].widen() * slope(j)).sum();
                    out[[i, k]] = T::narrow(sum);
                }
            }
        }
        self.gradients
    }
}

fn own_maps_are_maps<T: Real>(tolerance: f64) {
    let (own, known) = (
        Map::<T>::of_feature_map(Own::new(omega(3, 30, 1), true)).unwrap(),
        Positive.softmax::<T>(omega(3, 30, 1)).unwrap(),
    );
    let close = |a: SignedLog, b: SignedLog| {
        assert!(
            a.sign == b.sign && (a.ln_abs - b.ln_abs).abs() <= tolerance * (1.0 + a.ln_abs.abs()),
            "{a:?}, {b:?}"
        );
    };
    // Logarithms far beyond the range of values.
    for norm in [0.1, 1.0, 20.0, 60.0] {
        let (x, y) = (point::<T>(3, 1, norm), point::<T>(3, 4, norm));
        close(own.log_estimate(&x, &y).unwrap(), known.log_estimate(&x, &y).unwrap());
        let (x, y) = (x.insert_axis(Axis(0)), y.insert_axis(Axis(0)));
        let (a, b) = (own.log_features(Side::X, &x).unwrap(), known.log_features(Side::X, &x).unwrap());
        for (j, a_log) in a.0.iter().enumerate() {
            let (a, b) = (a_log.widen() + a.2[[0, 0]], b.0[[0, j]].widen() + b.2[[0, 0]]);
            assert!((a - b).abs() <= tolerance * (1.0 + norm * norm), "{a} instead of {b}");
        }
        assert!(own.gram(&x, &y).unwrap().iter().all(|v| !v.is_nan()));
    }
    // In hybrids: as a base, the rest, and in a coefficient.
    let trigonometric = || Trigonometric.softmax::<T>(omega(3, 10, 2)).unwrap();
    let make = |map: &Map<T>| {
        let weight = Coefficient::affine(0.2, 0.1, map.clone()).unwrap();
        let inner =
            Hybrid::sum(vec![(Coefficient::angular(omega(3, 4, 3)).unwrap(), map.clone())], trigonometric());
        Hybrid::sum(vec![(weight, inner.unwrap()), (half(), trigonometric())], map.clone()).unwrap()
    };
    let (hybrid, expected) = (make(&own), make(&known));
    assert_eq!(hybrid.facts(), expected.facts());
    assert!(hybrid.recipe().is_none() && expected.recipe().is_some());
    let (x, y) = (points::<T>(40, 3, 1.0), points::<T>(30, 3, 1.0));
    let (a, b) = (hybrid.gram(&x, &y).unwrap(), expected.gram(&x, &y).unwrap());
    let size = b.iter().fold(1.0, |top: f64, v| top.max(v.widen().abs()));
    assert!(a.iter().zip(&b).all(|(a, b)| (a.widen() - b.widen()).abs() <= 30.0 * tolerance * size));
    for (x, y) in x.rows().into_iter().zip(y.rows()) {
        let (a, b) =
            (hybrid.log_estimate(&x, &y).unwrap().value(), expected.log_estimate(&x, &y).unwrap().value());
        assert!((a - b).abs() <= 30.0 * tolerance * size, "{a} instead of {b}");
    }
    // In smoothers, of itself and of the hybrid.
    let targets = Array2::from_shape_fn((40, 2), |(i, k)| T::narrow((i % 7 + k) as f64));
    let smooth = |map: &Map<T>| {
        let mut smoother = Smoother::new(map.clone(), 2).unwrap();
        smoother.update(&x, &targets).unwrap();
        smoother.predict(&y).unwrap()
    };
    for (own, known) in [(&own, &known), (&hybrid, &expected)] {
        let (a, b) = (smooth(own), smooth(known));
        let error = a.iter().zip(&b).map(|(a, b)| (a.widen() - b.widen()).abs()).fold(0.0, f64::max);
        assert!(error <= 1e3 * tolerance, "{error}");
    }
    // Rows that are not finite are NaN, and no others.
    let mut dirty = x.clone();
    dirty[[5, 1]] = T::nan();
    for map in [&own, &hybrid] {
        let gram = map.gram(&dirty, &y).unwrap();
        for (i, row) in gram.rows().into_iter().enumerate() {
            assert!(row.iter().all(|v| v.is_nan() == (i == 5)), "row {i}");
        }
    }
}

#[test]
fn maps_of_ones_own_are_maps() {
    own_maps_are_maps::<f32>(1e-5);
    own_maps_are_maps::<f64>(1e-12);
}

#[test]
fn facts_that_no_map_has_are_errors() {
    let stated = |d, blocks: Vec<usize>| ones(Facts::new(d, blocks));
    let most = usize::MAX;
    for (d, blocks) in [
        (0, vec![1]),
        (1, vec![]),
        (1, vec![0]),
        (1, vec![0, 0]),
        (1, vec![most]),
        (1, vec![most, 1]),
        (1, vec![most, most]),
        (1, vec![most / 2, 1]),
        (1, vec![most / 2 + 1; 2]),
        (1, vec![most / 4; 5]),
    ] {
        let refused = stated(d, blocks.clone());
        assert!(matches!(refused, Err(Error::Parameter { .. })), "{d}, {blocks:?}: {refused:?}");
    }
    assert_eq!(stated(2, vec![1, 0, 2]).unwrap().feature_dim(), 3);
    // Of maps that are just small enough there are no products and no sums.
    let large = |width: usize| stated(2, vec![width]).unwrap();
    let refused = |map: random_features::Result<Map<f64>>| {
        assert!(matches!(map, Err(Error::Parameter { .. })), "{map:?}");
    };
    for width in [1 << 33, 1 << 40, 1 << 58] {
        let weight = Coefficient::affine(0.5, 0.5, large(width)).unwrap();
        refused(Hybrid::sum(vec![(weight, large(width))], large(1)));
    }
    refused(Hybrid::sum((0..40).map(|_| (half(), large(1 << 58))).collect(), large(1)));
    let centres = |n: usize| Clustering::new(points::<f64>(n, 2, 1.0)).unwrap();
    let bases = |n: usize| (0..n).map(|_| large(1 << 58)).collect();
    refused(Clustered::from_bases(centres(8), centres(8), bases(64)));
    // Few rows of what cannot be addressed are refused where they are asked for.
    let wide = large(1 << 50);
    assert!(matches!(wide.features(Side::X, &Array2::zeros((1 << 14, 2))), Err(Error::Memory { .. })));
    assert!(matches!(large(3).log_features(Side::X, &Array2::zeros((1, 2))), Err(Error::Unsupported { .. })));
}

/// Two blocks, of which the first is absent where the first coordinate is negative: its values and signs are NaN then.
#[derive(Debug)]
struct Halfway(Own);

impl FeatureMap<f64> for Halfway {
    fn facts(&self) -> Facts {
        let m = self.0.omega.nrows();
        Facts::new(self.0.omega.ncols(), vec![m, 0, m]).logarithms()
    }

    fn fill(&self, _: Side, x: ArrayView2<'_, f64>, form: Form, tile: &mut Tile<'_, f64>) {
        let m = self.0.omega.nrows();
        for (i, x) in x.rows().into_iter().enumerate() {
            let (logs, row) = (self.0.logarithms(x), tile.row(i));
            let scale = Own::scale(&logs);
            for (value, log) in row.values.iter_mut().zip(logs.iter().chain(&logs)) {
                *value = if form == Form::Values { (log - scale).exp() } else { log - scale };
            }
            row.log_scales.copy_from_slice(&[scale, f64::NEG_INFINITY, scale]);
            if x[0] < 0.0 {
                row.log_scales[0] = f64::NEG_INFINITY;
                row.values[..m].fill(f64::NAN);
                row.signs.iter_mut().take(m).for_each(|sign| *sign = f64::NAN);
            }
        }
    }
}

/// What is absent is not read by anything that stands on a map of your own: hybrids, smoothers, Gram matrices, arrays.
#[test]
fn absent_blocks_of_ones_own_are_never_read() {
    let map = Map::of_feature_map(Halfway(Own::new(omega(3, 8, 1), false))).unwrap();
    let known = Positive.softmax::<f64>(omega(3, 8, 1)).unwrap();
    let trigonometric = Trigonometric.softmax::<f64>(omega(3, 6, 2)).unwrap();
    let weight = Coefficient::affine(0.3, 0.1, map.clone()).unwrap();
    let hybrid =
        Hybrid::sum(vec![(weight, map.clone()), (half(), trigonometric.clone())], map.clone()).unwrap();
    let (x, y) = (points::<f64>(50, 3, 0.8), points::<f64>(40, 3, 0.9));
    let once = |x: ndarray::ArrayView1<'_, f64>, y: ndarray::ArrayView1<'_, f64>| {
        let both = if x[0] < 0.0 || y[0] < 0.0 { 1.0 } else { 2.0 };
        both * known.estimate(&x, &y).unwrap()
    };
    let weighed = |x: ndarray::ArrayView1<'_, f64>, y: ndarray::ArrayView1<'_, f64>| {
        let (p, t) = (once(x, y), trigonometric.estimate(&x, &y).unwrap());
        let lambda = 0.3 + 0.1 * p;
        lambda * p + 0.5 * t + (0.5 - lambda) * p
    };
    type Exact<'a> = &'a dyn Fn(ndarray::ArrayView1<'_, f64>, ndarray::ArrayView1<'_, f64>) -> f64;
    for (map, exact) in [(&map, &once as Exact<'_>), (&hybrid, &weighed)] {
        let expected = Array2::from_shape_fn((50, 40), |(i, j)| exact(x.row(i), y.row(j)));
        let close = |found: &Array2<f64>, what: &str| {
            let error = (found - &expected).fold(0.0, |top: f64, e| if *e <= top { top } else { e.abs() });
            assert!(error < 1e-11 && found.iter().all(|v| v.is_finite()), "{what}: {error}");
        };
        close(&map.gram(&x, &y).unwrap(), "gram");
        let (left, right) = (map.features(Side::X, &x).unwrap(), map.features(Side::Y, &y).unwrap());
        close(&left.gram(&right).unwrap(), "gram of features");
        close(&left.to_array().dot(&right.to_array().t()), "arrays");
        let log = |(i, j)| map.log_estimate(&x.row(i), &y.row(j)).unwrap().value();
        close(&Array2::from_shape_fn((50, 40), log), "logarithms");
        assert_eq!((left.lost_rows(), right.lost_rows()), (0, 0));
        for targets in [1, 9] {
            let values = Array2::from_shape_fn((40, targets), |(i, k)| (i % 5 + k) as f64);
            let mut smoother = Smoother::new(map.clone(), targets).unwrap();
            // Also a batch from which the block is absent altogether.
            let (negative, others): (Vec<usize>, Vec<usize>) = (0..40).partition(|i| y[[*i, 0]] < 0.0);
            for rows in [negative, others] {
                smoother.update(&y.select(Axis(0), &rows), &values.select(Axis(0), &rows)).unwrap();
            }
            let mean = expected.dot(&values) / expected.sum_axis(Axis(1)).insert_axis(Axis(1));
            let found = smoother.predict(&x).unwrap();
            assert!((&found - &mean).iter().all(|e| e.abs() < 1e-9), "{targets} targets");
        }
    }
}

#[test]
fn errors_say_what_is_wrong() {
    let says = |map: Result<Map<f64>, Error>, expected: &str| {
        assert_eq!(map.unwrap_err().to_string(), expected);
    };
    let counts = || Counts::poisson(2, 3, 1.0, rng(1).next_u64()).unwrap();
    let draw = || Draw::new(2, 3, Orthogonal);
    says(Positive.softmax(counts()), "the positive map needs real frequencies, but got counts");
    says(Positive.softmax(4), "the positive map needs real frequencies, but got only a dimension");
    says(
        Poisson::default().softmax(omega(2, 3, 1)),
        "the Poisson map needs counts, but got real frequencies",
    );
    let undrawn = "the frequencies are not drawn yet: Recipe::draw(seed) draws them";
    says(Positive.softmax(draw()), undrawn);
    says(Trigonometric.matern(Draw::new(2, 3, Orthogonal).with_radii(Smoothness::Half), 1.0), undrawn);
    says(EluPlusOne.build(omega(2, 3, 1), 1.0), "the elu+1 map takes no frequencies: give the dimension d");
    says(
        Trigonometric.matern(omega(2, 3, 1), 1.0),
        "the trigonometric map with frequencies of radii χ does not estimate a Matérn kernel: they were not drawn with a \
         Matérn smoothness",
    );
    says(
        Positive.build(omega(2, 3, 1), AnyKernel::implied(1.0)),
        "the positive map with frequencies of radii χ does not estimate a kernel for a bare lengthscale, which names none",
    );
    says(
        PlainRecipe::new(Nonlinear::new(Activation::Relu), omega(2, 3, 1), Softmax::new(2.0).unwrap())
            .build(),
        "the nonlinear map with frequencies of radii χ does not estimate the kernel softmax, lengthscale 2",
    );
    let d1 = random_features::frequency::Simplex::default();
    let refused = d1.draw(1, 2, rng(1).next_u64()).unwrap_err().to_string();
    assert_eq!(
        refused,
        "the dimension d is 1, but must be at least 2 for this coupling: take Orthogonal or Independent in one dimension"
    );
}

#[test]
fn targets_recipes_and_identities_in_print() {
    let matern = Matern::new(Smoothness::ThreeHalves, 0.5).unwrap();
    for (target, expected) in [
        (AnyKernel::from(Softmax::new(2.0).unwrap()), "softmax, lengthscale 2"),
        (Gaussian::new(vec![1.0, 0.5]).unwrap().into(), "Gaussian, lengthscales [1.0, 0.5]"),
        (matern.into(), "Matérn 3/2, lengthscale 0.5"),
        (RegularisedSoftmax::in_dimension(8).into(), "regularised softmax in dimension 8, lengthscale 1"),
        (AnyKernel::implied(3.0), "a lengthscale without a kernel: 3"),
    ] {
        assert_eq!(target.to_string(), expected);
    }
    let recipe = Positive.recipe(Draw::new(2, 3, Orthogonal), Softmax::default());
    let expected = "positive, 3 frequencies in dimension 2, softmax, lengthscale 1, to be drawn: orthogonal";
    assert_eq!(recipe.to_string(), expected);
    let identity = recipe.identity();
    assert_eq!(format!("{identity:?}"), format!("Identity({identity})"));
}

/// Gradients are finite wherever they are in the range of the scalar: with coordinates that are denormal numbers, and of
/// structured hybrids at norms whose gradients, as large as the points, just fit.
#[test]
fn gradients_at_the_ends_of_the_range() {
    fn check<T: Real>(map: &Map<T>, size: f64) {
        let x = points::<T>(4, map.dim(), 1.0).mapv(|v| T::narrow(v.widen().clamp(-1.0, 1.0) * size));
        for side in SIDES {
            let c = Array2::from_elem((4, map.feature_dim()), T::one());
            let gradient = map.pull_back(side, &x, &c).unwrap();
            assert!(gradient.iter().all(|v| v.is_finite()), "{map:?} at {size}: {gradient}");
        }
    }
    for coupling in [&Independent as &dyn Coupling, &Hadamard::default()] {
        let omega = |seed| frequencies(16, 8, coupling, seed);
        let make = || Hybrid::<Map<f32>>::angular(Bases::shared(omega(1)), omega(2)).unwrap();
        for size in [1e-45, 1e-40, 1e30, 1e36] {
            check(&make(), size);
            check(
                &Hybrid::<Map<f32>>::gaussian(Bases::shared(omega(1)), omega(2), (1.0, 1.0)).unwrap(),
                size,
            );
            check(&Trigonometric.softmax::<f32>(omega(1)).unwrap(), size);
        }
        for size in [5e-324, 1e-310, 1e100, 1e150] {
            check(&Hybrid::<Map<f64>>::angular(Bases::shared(omega(1)), omega(2)).unwrap(), size);
            check(&Hyperbolic.softmax::<f64>(omega(1)).unwrap(), size);
        }
    }
    // Gradients of parts beyond the range, and of features that are beyond it themselves: infinite, and a number.
    fn is_number<T: Real>(map: &Map<T>, size: f64) {
        let x = points::<T>(4, map.dim(), 1.0).mapv(|v| T::narrow(v.widen().clamp(-1.0, 1.0) * size));
        for side in SIDES {
            let c = Array2::from_elem((4, map.feature_dim()), T::one());
            let gradient = map.pull_back(side, &x, &c).unwrap();
            assert!(!gradient.iter().any(|v| v.is_nan()), "{map:?} at {size}: {gradient}");
        }
    }
    for coupling in [&Independent as &dyn Coupling, &Hadamard::default()] {
        let omega = |seed| frequencies(16, 8, coupling, seed);
        let weight = (1.0, 1.0);
        for size in [1e38, 3e38] {
            is_number(&Hybrid::<Map<f32>>::angular(Bases::shared(omega(1)), omega(2)).unwrap(), size);
            is_number(
                &Hybrid::<Map<f32>>::gaussian(Bases::shared(omega(1)), omega(2), weight).unwrap(),
                size,
            );
            is_number(&Hyperbolic.softmax::<f32>(omega(1)).unwrap(), size);
        }
        for f in Activation::ALL {
            let map = Nonlinear::new(f).build::<f64>(omega(1), 1.0).unwrap();
            [5e-324, 1e-320, 1e-310].into_iter().for_each(|size| is_number(&map, size));
            let map = Nonlinear::new(f).build::<f32>(omega(1), 1.0).unwrap();
            [1e-45, 1e-40, 1e38, 3e38].into_iter().for_each(|size| is_number(&map, size));
        }
    }
    // Features as large as the points: gradients of scaled ones are as large as 1 over the points.
    for f in [Activation::Identity, Activation::Relu, Activation::Abs] {
        let map = Nonlinear::new(f).build::<f64>(frequencies(4, 8, &Independent, 1), 1.0).unwrap();
        let x = points::<f64>(4, 4, 1.0).mapv(|v| (v * 16.0).round() / 16.0);
        let at = |exponent: i32| {
            // In two steps: powers of 2 below 2⁻¹⁰²³ are made from infinite ones.
            let (c, root) = (Array2::from_elem((4, 8), 1.0), 2f64.powi(exponent / 2));
            map.pull_back(Side::X, &(&x * root * root), &c).unwrap() * root * root
        };
        let expected = at(0);
        // Points are denormal from 2⁻¹⁰²² on, gradients beyond the range from about 2⁻¹⁰²³ on.
        for exponent in [-500, -1000, -1020, 500] {
            for (found, expected) in at(exponent).iter().zip(&expected) {
                assert!((found - expected).abs() < 1e-12 * (1.0 + expected.abs()), "{f:?} at 2^{exponent}");
            }
        }
        for (found, expected) in at(-1050).iter().zip(&expected) {
            assert!(*found == f64::INFINITY * expected.signum() || expected.abs() < 1e-6, "{f:?}: {found}");
        }
    }
    // Relative to a scale of the points' size: below it, the gradient of a scaled feature is beyond the range.
    for f in Activation::ALL {
        for size in [1e-300, 1e-150] {
            check(&Nonlinear::new(f).build::<f64>(frequencies(4, 8, &Independent, 1), 1.0).unwrap(), size);
        }
    }
    let counts = Counts::poisson(4, 8, 1.0, rng(1).next_u64()).unwrap();
    for size in [1e-300, 1e-150] {
        check(&Poisson::default().gaussian::<f64>(counts.clone(), 1.0).unwrap(), size);
    }
}
