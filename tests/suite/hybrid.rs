//! Hybrids: their products are composed from their parts, they are unbiased, and their errors are the closed forms'.
//!
//! Seeds are fixed. A z-score beyond 4.5 has probability 7e-6, and there are some 60 of them here: false alarms below
//! 1e-3 over all seeds.

use crate::common::own_map::own_map;
use crate::common::{
    Sample, any_layout, batch_is_rows, frequencies, gaussian, point, points, promises, refusals, shifted,
    softmax, threads_change_nothing, unbiased, unbiased_at_pairs,
};
use crate::sets;
use ndarray::{Array1, Array2, ArrayView1, Axis, s};
use random_features::compose::{Bases, Coefficient, Hybrid};
use random_features::extend::{Coupling, Facts};
use random_features::frequency::{Antithetic, Frequencies, Hadamard, Independent, Orthogonal, Simplex};
use random_features::map::AnyKernel;
use random_features::theory::hybrid::{self, Sharing};
use random_features::theory::{Law, Pair, coefficient};
use random_features::{Error, Hyperbolic, Map, Positive, Real, Side, Sign, SignedLog, Trigonometric, rng};

const LIMIT: f64 = 4.5;
const DRAWS: u64 = 30_000;

/// Tests here that take many draws, and on another instruction set would see no more.
pub const BY_DRAWS: [&str; 6] = [
    "hybrid::unbiased_and_of_the_closed_form_error",
    "hybrid::antithetic_pairs_count_once",
    "hybrid::nested_coefficients",
    "hybrid::general_gaussian_coefficients",
    "hybrid::mixtures_of_clusters",
    "hybrid::parts_of_one_seed_are_independent",
];

fn omega(d: usize, m: usize, seed: u64) -> random_features::frequency::Frequencies {
    frequencies(d, m, &Independent, seed)
}

fn bases(d: usize, m: usize, seed: u64, shared: bool) -> Bases {
    if shared {
        Bases::shared(omega(d, m, seed))
    } else {
        Bases::independent(omega(d, m, seed), omega(d, m, seed + 1))
    }
}

/// A hybrid of two terms with different blocks, one of them nested.
fn composed<T: Real>(d: usize, target: &AnyKernel) -> (Map<T>, impl Fn(&Array1<T>, &Array1<T>) -> f64) {
    let seeds = [11, 12, 13, 14, 15, 16, 17, 18];
    let [a, b, c, e, f, g, h, i] = seeds;
    let positive = || Positive.build::<T>(omega(d, 5, a), target.clone()).unwrap();
    let hyperbolic = || Hyperbolic.build::<T>(omega(d, 4, b), target.clone()).unwrap();
    let inner = || {
        Hybrid::<Map<T>>::bipolar(
            bases(d, 3, c, false),
            Coefficient::angular(omega(d, 3, f)).unwrap(),
            target.clone(),
        )
        .unwrap()
    };
    let first = || Coefficient::<Map<T>>::gaussian(omega(d, 6, g), (0.7, 1.2)).unwrap();
    let second =
        || Coefficient::<Map<T>>::affine(0.3, -0.2, Sign.build(omega(d, 2, h), 1.0).unwrap()).unwrap();
    let _ = (e, i);
    let hybrid = Hybrid::sum(vec![(first(), positive()), (second(), inner())], hyperbolic()).unwrap();
    let (p, q, r) = (positive(), inner(), hyperbolic());
    let rho = -(-2.0 * (0.7f64 * 1.2).powi(2)).exp_m1();
    let g1 = Trigonometric.gaussian::<T>(omega(d, 6, g), 0.7f64.recip()).unwrap();
    let s1 = Sign.build::<T>(omega(d, 2, h), 1.0).unwrap();
    let estimate = move |x: &Array1<T>, y: &Array1<T>| {
        let value = |map: &Map<T>| map.log_estimate(x, y).unwrap().value();
        let (l1, l2) = ((1.0 - value(&g1)) / rho, 0.3 - 0.2 * value(&s1));
        l1 * value(&p) + l2 * value(&q) + (1.0 - l1 - l2) * value(&r)
    };
    (hybrid, estimate)
}

fn is_composed<T: Real>() {
    for d in [1, 3, 8] {
        for target in [softmax(), gaussian()] {
            let (map, estimate) = composed::<T>(d, &target);
            let (x, y) = (points::<T>(13, d, 1.2), points::<T>(9, d, 0.9));
            let gram = map.gram(&x, &y).unwrap();
            for ((i, j), found) in gram.indexed_iter() {
                let (x, y) = (x.row(i).to_owned(), y.row(j).to_owned());
                let expected = estimate(&x, &y);
                let log = map.log_estimate(&x, &y).unwrap().value();
                // Relative to the sizes of the terms: some tens here.
                let tolerance = T::epsilon().widen() * 3e3;
                assert!((found.widen() - expected).abs() < tolerance, "d {d}: {found} instead of {expected}");
                assert!((log - expected).abs() < tolerance, "d {d}: {log} instead of {expected}");
            }
        }
    }
}

#[test]
fn products_are_those_of_the_parts() {
    is_composed::<f32>();
    is_composed::<f64>();
}

/// Two coefficients of signs and one of waves: pairs of points, features and the parts' own estimates agree.
#[test]
fn shares_of_several_signs() {
    let d = 3;
    let sign = |seed| Sign.build::<f64>(omega(d, 4, seed), 1.0).unwrap();
    let wave = Trigonometric.gaussian::<f64>(omega(d, 5, 23), 1.0).unwrap();
    let base = |seed| Positive.softmax::<f64>(omega(d, 6, seed)).unwrap();
    let coefficients = [(0.5, -0.5, sign(21)), (0.25, 0.5, sign(22)), (0.1, 0.3, wave)];
    let terms = coefficients
        .iter()
        .zip(1..)
        .map(|((a, c, map), seed)| (Coefficient::affine(*a, *c, map.clone()).unwrap(), base(seed)));
    let map = Hybrid::sum(terms.collect(), base(4)).unwrap();
    let (x, y) = (points::<f64>(20, d, 1.0), points::<f64>(18, d, 0.8));
    let gram = map.gram(&x, &y).unwrap();
    let features = map.features(Side::X, &x).unwrap().gram(&map.features(Side::Y, &y).unwrap()).unwrap();
    for ((i, j), found) in gram.indexed_iter() {
        let value = |map: &Map<f64>| map.estimate(&x.row(i), &y.row(j)).unwrap();
        let weights: Vec<f64> = coefficients.iter().map(|(a, c, map)| a + c * value(map)).collect();
        let rest = (1.0 - weights.iter().sum::<f64>()) * value(&base(4));
        let expected = weights.iter().zip(1..).map(|(w, seed)| w * value(&base(seed))).sum::<f64>() + rest;
        for found in [*found, features[[i, j]], value(&map)] {
            assert!((found - expected).abs() < 1e-13 * expected.abs().max(1.0), "{found} of {expected}");
        }
    }
}

/// Coefficients that overflow weigh estimates that underflow.
#[test]
fn coefficients_beyond_the_range() {
    let (d, norm) = (4, 45.0);
    let coefficient =
        Coefficient::<Map<f64>>::gaussian_positive(omega(d, 6, 3), Array2::eye(d), 1.0).unwrap();
    let hyperbolic = Hyperbolic.gaussian::<f64>(omega(d, 5, 1), 1.0).unwrap();
    let map = Hybrid::sum(vec![(coefficient.clone(), hyperbolic.clone())], hyperbolic.clone()).unwrap();
    let x = points::<f64>(12, d, norm).mapv(|v| v.abs());
    let gram = map.gram(&x, &x).unwrap();
    for ((i, j), found) in gram.indexed_iter() {
        let log = |map: &Map<f64>| map.log_estimate(&x.row(i), &-&x.row(j)).unwrap().ln_abs;
        assert!(!log(&map).is_nan());
        let expected = map.estimate(&x.row(i), &x.row(j)).unwrap();
        assert!(
            (found - expected).abs() <= 1e-9 * expected.abs() || *found == expected,
            "{found} {expected}"
        );
    }
}

#[test]
fn dimensions_are_the_papers() {
    let (d, m, n) = (4, 6, 5);
    let gaussian = Hybrid::<Map<f32>>::gaussian(bases(d, m, 1, true), omega(d, n, 9), (1.0, 1.0)).unwrap();
    assert_eq!(gaussian.blocks(), [2 * m, 4 * m * n, 2 * m, 4 * m * n]);
    assert!(!gaussian.facts().symmetric && !gaussian.facts().non_negative);
    // A sign has a block for each of its values, of which a point has one.
    let map = Hybrid::<Map<f32>>::angular(bases(d, m, 1, true), omega(d, n, 9)).unwrap();
    assert_eq!(map.blocks(), vec![2 * m; 4 * n]);
    assert!(!map.facts().symmetric && !map.facts().non_negative);
    let features = map.features(Side::X, &points::<f32>(40, d, 1.0)).unwrap();
    for scales in features.log_scales().rows() {
        let pairs = scales.to_vec();
        assert!(pairs.chunks(2).all(|p| (p[0] == f64::NEG_INFINITY) != (p[1] == f64::NEG_INFINITY)));
    }
    // Positive bases have positive estimates then.
    let positive = |seed| Positive.softmax::<f32>(omega(d, m, seed)).unwrap();
    let angular = Coefficient::angular(omega(d, n, 9)).unwrap();
    let facts = Hybrid::sum(vec![(angular, positive(1))], positive(2)).unwrap().facts().clone();
    assert!(facts.non_negative && !facts.symmetric);
    // Positive weights and symmetric parts make a symmetric map: λ = ¼ of two positive maps.
    let quarter = Coefficient::constant(0.25).unwrap();
    let mean = Hybrid::sum(vec![(quarter, positive(1))], positive(2)).unwrap();
    assert!(mean.facts().symmetric && mean.facts().non_negative);
    assert_eq!(mean.feature_dim(), 2 * m);
}

/// Sample means and errors against the exact kernel and the closed form, for angular and Gaussian coefficients, with
/// frequencies of their own and shared ones, and norms that differ.
#[test]
fn unbiased_and_of_the_closed_form_error() {
    let (d, m, n) = (3, 3, 2);
    let (x, y) = (point::<f64>(d, 1, 0.75), point::<f64>(d, 5, 0.3));
    let exact = x.dot(&y).exp();
    let pair = Pair::new(x.iter().copied().zip(y.iter().copied()));
    for shared in [false, true] {
        let sharing = if shared { Sharing::Shared } else { Sharing::Independent };
        type Make = Box<dyn Fn(u64) -> Map<f64>>;
        let cases: [(&str, Make, _); 2] = [
            (
                "angular",
                Box::new(move |seed| {
                    Hybrid::angular(bases(d, m, 3 * seed, shared), omega(d, n, 3 * seed + 2)).unwrap()
                }),
                coefficient::angular(pair.angle, n),
            ),
            (
                "gaussian",
                Box::new(move |seed| {
                    Hybrid::gaussian(bases(d, m, 3 * seed, shared), omega(d, n, 3 * seed + 2), (0.8, 0.9))
                        .unwrap()
                }),
                coefficient::gaussian_normalised(&pair, 0.8, 0.9, n),
            ),
        ];
        for (name, make, moments) in cases {
            let stated = make(0).log_variance(&x, &y).unwrap().unwrap();
            let closed = hybrid::ln_bipolar_mse(&pair, &moments, m, sharing).unwrap();
            assert!((stated - closed).abs() < 1e-10, "{name}, shared {shared}: {stated} and {closed}");
            unbiased(&format!("{name}, shared {shared}"), make, (&x, &y), exact, (DRAWS, LIMIT));
        }
    }
}

/// Each pair ω, −ω counts once, in the signs of a coefficient and in bases that are even in ω.
#[test]
fn antithetic_pairs_count_once() {
    let d = 3;
    let (x, y) = (point::<f64>(d, 1, 0.75), point::<f64>(d, 5, 0.3));
    let exact = x.dot(&y).exp();
    // Each draw is seen at three pairs of one kernel value and one variance.
    let shifts = (&shifted(&x, 1), &shifted(&y, 1));
    let pairs: &dyn Coupling = &Antithetic(Independent);
    for (of_bases, shared, of_tau) in [
        (&Independent as &dyn Coupling, false, pairs),
        (pairs, false, &Independent),
        (pairs, true, &Independent),
        (pairs, true, pairs),
    ] {
        // Two pairs and a row that is left alone, and one pair of signs.
        let make = |seed: u64| {
            let base = |k| frequencies(d, 5, of_bases, 3 * seed + k);
            let bases = if shared { Bases::shared(base(0)) } else { Bases::independent(base(0), base(1)) };
            Hybrid::<Map<f64>>::angular(bases, frequencies(d, 2, of_tau, 3 * seed + 2)).unwrap()
        };
        let case = format!("{of_bases:?}, shared {shared}, signs {of_tau:?}");
        unbiased_at_pairs(&case, make, shifts, exact, (25_000, LIMIT));
        // Without the pairs the variance would be another.
        let law = |coupling: &dyn Coupling, m| frequencies(d, m, coupling, 1).law().clone();
        let pair = Pair::new(x.iter().copied().zip(y.iter().copied()));
        let moments = coefficient::angular_of_law(pair.angle, &law(of_tau, 2)).unwrap();
        let own = Coefficient::<Map<f64>>::angular(frequencies(d, 2, of_tau, 1)).unwrap().moments(&x, &y);
        let own = own.unwrap().unwrap();
        assert!((own.square - moments.square).abs() < 1e-14 && (own.mean - moments.mean).abs() < 1e-14);
        let stated = make(0).log_variance(&x, &y).unwrap().unwrap();
        let sharing = if shared { Sharing::Shared } else { Sharing::Independent };
        let naive = hybrid::ln_bipolar_mse(&pair, &coefficient::angular(pair.angle, 2), 5, sharing).unwrap();
        assert!((stated - naive).abs() > 0.02, "{case}: {stated} and {naive}");
    }
    let shared = Bases::shared(frequencies(d, 6, &Antithetic(Orthogonal), 1));
    let map = Hybrid::<Map<f64>>::angular(shared, omega(d, 4, 2)).unwrap();
    assert_eq!(map.log_variance(&x, &y).unwrap(), None);
}

/// A Gaussian coefficient whose kernel is estimated by an angular hybrid: a hybrid in a hybrid's coefficient.
#[test]
fn nested_coefficients() {
    let (d, m) = (3, 3);
    let (x, y) = (point::<f64>(d, 1, 0.6), point::<f64>(d, 5, 0.5));
    let (sigma, r) = (0.8, 0.7);
    let make = |seed: u64| -> Map<f64> {
        let target = random_features::kernel::Gaussian::new(1.0 / sigma).unwrap();
        let angular = Coefficient::angular(omega(d, 4, 5 * seed)).unwrap();
        let inner = Hybrid::bipolar(
            Bases::independent(omega(d, 5, 5 * seed + 1), omega(d, 5, 5 * seed + 2)),
            angular,
            target,
        );
        let coefficient = Coefficient::normalised(inner.unwrap(), (sigma, r)).unwrap();
        Hybrid::bipolar(
            Bases::independent(omega(d, m, 5 * seed + 3), omega(d, m, 5 * seed + 4)),
            coefficient,
            random_features::kernel::Softmax::default(),
        )
        .unwrap()
    };
    let exact = x.dot(&y).exp();
    let pair = Pair::new(x.iter().copied().zip(y.iter().copied()));
    let closed = hybrid::ln_nested_mse(&pair, sigma, r, m, 5, 4).unwrap();
    let stated = make(0).log_variance(&x, &y).unwrap().unwrap();
    assert!((stated - closed).abs() < 1e-10, "{stated} and {closed}");
    let sample: Vec<f64> = (0..DRAWS).map(|seed| make(seed).estimate(&x, &y).unwrap()).collect();
    assert!(Sample::of(&sample).z(exact).abs() < LIMIT);
    let mse = Sample::of(&sample.iter().map(|v| (v - exact).powi(2)).collect::<Vec<_>>());
    assert!(mse.z(closed.exp()).abs() < LIMIT, "MSE {} of {}", mse.mean, closed.exp());
}

/// General Gaussian coefficients, largest where x = −My, from trigonometric and from positive features.
#[test]
fn general_gaussian_coefficients() {
    let (d, n, c) = (2, 5, 1.3);
    let m = ndarray::arr2(&[[0.9, 0.2], [-0.1, 1.1]]);
    let (x, y) = (point::<f64>(d, 1, 0.5), point::<f64>(d, 5, 0.4));
    let my = m.dot(&y);
    let lambda = (-(&x + &my).mapv(|v| v * v).sum() / (2.0 * c * c)).exp();
    let pair = Pair::new(x.iter().map(|v| v / c).zip(my.iter().map(|v| -v / c)));
    for positive in [false, true] {
        let make = |seed| -> Coefficient<Map<f64>> {
            let tau = omega(d, n, seed);
            if positive {
                Coefficient::gaussian_positive(tau, m.clone(), c).unwrap()
            } else {
                Coefficient::gaussian_trigonometric(tau, m.clone(), c).unwrap()
            }
        };
        let expected = if positive {
            coefficient::gaussian_positive(&pair, n)
        } else {
            coefficient::gaussian_trigonometric(&pair, n)
        };
        let moments = make(0).moments(&x, &y).unwrap().unwrap();
        assert!((moments.mean - lambda).abs() < 1e-13 && (moments.square - expected.square).abs() < 1e-12);
        // As the estimate of a hybrid of constants 1 and 0 … seen through two maps that differ by a known factor.
        let estimate = |seed| {
            let base = |seed| Positive.softmax::<f64>(omega(d, 2, seed)).unwrap();
            let hybrid = Hybrid::sum(vec![(make(seed), base(7))], base(8));
            let (p, q) = (base(7).estimate(&x, &y).unwrap(), base(8).estimate(&x, &y).unwrap());
            (hybrid.unwrap().estimate(&x, &y).unwrap() - q) / (p - q)
        };
        let sample: Vec<f64> = (0..DRAWS).map(|seed| estimate(100 + seed)).collect();
        assert!(Sample::of(&sample).z(lambda).abs() < LIMIT, "positive {positive}");
        let squares: Vec<f64> = sample.iter().map(|v| v * v).collect();
        assert!(Sample::of(&squares).z(expected.square).abs() < LIMIT, "positive {positive}");
    }
    assert!(matches!(
        Coefficient::<Map<f64>>::gaussian_positive(omega(3, 2, 1), m.clone(), 1.0),
        Err(Error::Shape { .. })
    ));
    assert!(Coefficient::<Map<f64>>::gaussian_positive(omega(2, 2, 1), m * f64::NAN, 1.0).is_err());
}

/// Gaussian coefficients for every pair of clusters and a rest: unbiased, and of the composed error.
#[test]
fn mixtures_of_clusters() {
    use num_complex::Complex64;
    use random_features::compose::Mixture;
    use random_features::data::Clustering;
    let d = 2;
    let queries = Clustering::new(ndarray::arr2(&[[0.5, 0.4], [-0.4, 0.3]])).unwrap();
    let keys = Clustering::new(ndarray::arr2(&[[0.3, -0.5]])).unwrap();
    let (x, y) = (ndarray::arr1(&[0.45, 0.35]), ndarray::arr1(&[0.25, -0.4]));
    let exact: f64 = f64::exp(x.dot(&y));
    let mixture = Mixture::new(&queries, &keys, 0.9);
    for mixture in [mixture, mixture.with_positive_weights()] {
        let make = |seed: u64| {
            let (mut bases, mut coefficients) = (20 * seed, 20 * seed + 10);
            let rest = Hyperbolic.softmax(omega(d, 3, 20 * seed + 19)).unwrap();
            Hybrid::<Map<f64>>::clustered(
                mixture,
                || {
                    bases += 1;
                    Ok(omega(d, 4, bases))
                },
                || {
                    coefficients += 1;
                    Ok(omega(d, 3, coefficients))
                },
                rest,
            )
            .unwrap()
        };
        let closed = make(0).log_variance(&x, &y).unwrap().unwrap();
        let sample: Vec<f64> = (0..DRAWS).map(|seed| make(seed).estimate(&x, &y).unwrap()).collect();
        let mean = Sample::of(&sample);
        assert!(mean.z(exact).abs() < LIMIT, "{} of {exact}", mean.mean);
        let mse = Sample::of(&sample.iter().map(|v| (v - exact).powi(2)).collect::<Vec<_>>());
        assert!(mse.z(closed.exp()).abs() < LIMIT, "MSE {} of {}", mse.mean, closed.exp());
        assert!(mse.error < 0.1 * mse.mean / 3.0, "too few draws");
    }
    // λ is the Gaussian of the Hermitian norm of Ax + A⁻¹y, and the closed form its sum over pairs and rest.
    let entries = [Complex64::new(0.0, 0.8), Complex64::new(1.2, 0.0)];
    let around = Coefficient::<Map<f64>>::around(omega(d, 5, 1), &entries, 0.9).unwrap();
    let positive = Coefficient::<Map<f64>>::around_positive(omega(d, 5, 1), &entries, 0.9).unwrap();
    let zeta: f64 = (0..d).map(|k| (entries[k] * x[k] + y[k] / entries[k]).norm_sqr()).sum();
    let sign = |k: usize| if entries[k].im == 0.0 { -1.0 } else { 1.0 };
    let turned = |k: usize| sign(k) * y[k] / entries[k].norm() / 0.9;
    let pair = Pair::new((0..d).map(|k| (entries[k].norm() * x[k] / 0.9, turned(k))));
    let closed = [coefficient::gaussian_trigonometric(&pair, 5), coefficient::gaussian_positive(&pair, 5)];
    for (own, closed) in [around, positive].into_iter().zip(closed) {
        let moments = own.moments(&x, &y).unwrap().unwrap();
        assert!((moments.mean - (-zeta / (2.0 * 0.81)).exp()).abs() < 1e-13, "{moments:?}");
        assert!((moments.square - closed.square).abs() < 1e-12, "{moments:?}");
    }
    for wrong in [Complex64::new(1.0, 1.0), Complex64::new(0.0, 0.0), Complex64::new(f64::NAN, 0.0)] {
        assert!(Coefficient::<Map<f64>>::around(omega(1, 2, 1), &[wrong], 1.0).is_err(), "{wrong}");
    }
    assert!(Coefficient::<Map<f64>>::around(omega(2, 2, 1), &entries, 0.0).is_err());
}

/// ln of the sum of the magnitudes of all products of features.
fn size_of_terms<T: Real>(map: &Map<T>, x: &Array1<T>, y: &Array1<T>) -> f64 {
    let (left, right) = (map.features_of(Side::X, x).unwrap(), map.features_of(Side::Y, y).unwrap());
    let mut start = 0;
    let mut terms = Vec::new();
    for (b, width) in map.blocks().iter().enumerate() {
        let columns = s![0, start..start + width];
        let sum: f64 = left
            .mantissas()
            .slice(columns)
            .iter()
            .zip(right.mantissas().slice(columns))
            .map(|(a, b)| (*a * *b).abs().widen())
            .sum();
        terms.push(SignedLog::from(sum).scaled(left.log_scales()[[0, b]] + right.log_scales()[[0, b]]));
        start += width;
    }
    SignedLog::sum(terms.into_iter()).ln_abs
}

#[test]
fn sharing_is_seen() {
    let d = 3;
    let shared = omega(d, 5, 1);
    let angular = Hybrid::<Map<f64>>::angular(Bases::shared(shared.clone()), omega(d, 4, 2)).unwrap();
    // The same features as with two projections of the same frequencies, to the bit.
    let twice =
        Hybrid::<Map<f64>>::angular(Bases::independent(shared.clone(), shared), omega(d, 4, 2)).unwrap();
    let x = points::<f64>(50, d, 1.0);
    let (a, b) = (angular.features(Side::Y, &x).unwrap(), twice.features(Side::Y, &x).unwrap());
    assert_eq!((a.mantissas(), a.log_scales()), (b.mantissas(), b.log_scales()));
    // Orthogonal shared frequencies have no closed form, orthogonal ones of their own have.
    let (p, q) = (x.row(0), x.row(1));
    let orthogonal = |seed| frequencies(d, 3, &Orthogonal, seed);
    let map = Hybrid::<Map<f64>>::angular(Bases::shared(orthogonal(1)), omega(d, 4, 2)).unwrap();
    assert_eq!(map.log_variance(&p, &q).unwrap(), None);
    let map = Hybrid::<Map<f64>>::angular(Bases::independent(orthogonal(1), orthogonal(2)), omega(d, 4, 2))
        .unwrap();
    let pair = Pair::new(p.iter().copied().zip(q.iter().copied()));
    let law = Law::orthogonal(d, 3);
    let expected = hybrid::ln_mse(
        &coefficient::angular(pair.angle, 4),
        random_features::theory::hyperbolic(&pair, &law).unwrap(),
        random_features::theory::trigonometric(&pair, &law).unwrap(),
    );
    assert!((map.log_variance(&p, &q).unwrap().unwrap() - expected).abs() < 1e-12);
}

/// What every map keeps: batches are their rows, any layout, any number of threads, norms up to 20, wrong shapes.
fn conforms<T: Real>() {
    // How rows are divided does not depend on the instruction set.
    let n = if sets::asked().is_some() { 67 } else { 300 };
    let couplings: [&dyn Coupling; 3] = [&Orthogonal, &Simplex::default(), &Hadamard::default()];
    for coupling in couplings {
        let draw = |m, seed| frequencies(16, m, coupling, seed);
        let inner = Hybrid::<Map<T>>::angular(Bases::shared(draw(6, 1)), draw(3, 2)).unwrap();
        let map = Hybrid::sum(
            vec![(Coefficient::gaussian(draw(4, 3), (0.5, 1.0)).unwrap(), inner as Map<T>)],
            Trigonometric.softmax(draw(8, 4)).unwrap(),
        )
        .unwrap();
        let x = points::<T>(n, 16, 1.0);
        batch_is_rows(&map, &x);
        any_layout(&map, &x);
        threads_change_nothing(&map, &x);
        promises(&map, &x);
        refusals(&map, &x);
        let gram = map.gram(&x.slice(s![..5, ..]), &x.slice(s![..7, ..])).unwrap();
        assert_eq!(gram, map.gram(&x, &x).unwrap().slice(s![..5, ..7]));
        for ((i, j), value) in gram.indexed_iter() {
            let log = map.log_estimate(&x.row(i), &x.row(j)).unwrap();
            let size = size_of_terms_of(&map, &x.row(i).to_owned(), &x.row(j).to_owned()).exp();
            assert!((value.widen() - log.value()).abs() <= 60.0 * T::epsilon().widen() * size);
        }
        for norm in [1e-8, 1.0, 20.0, 1e3] {
            let (a, b) = (point::<T>(16, 1, norm), point::<T>(16, 4, 0.9 * norm));
            let features = map.features_of(Side::X, &a).unwrap();
            assert!(features.mantissas().iter().all(|v| v.is_finite()));
            assert!(features.log_scales().iter().all(|v| v.is_finite() || *v == f64::NEG_INFINITY));
            let log = map.log_estimate(&a, &b).unwrap();
            assert!(!log.ln_abs.is_nan() && log.ln_abs < f64::INFINITY, "{norm}: {log:?}");
        }
        let mut dirty = x.slice(s![..4, ..]).to_owned();
        dirty[[2, 3]] = T::nan();
        let features = map.features(Side::X, &dirty).unwrap();
        assert!(features.log_scales().row(2).iter().all(|v| v.is_nan()));
        let clean = map.features(Side::X, x.slice(s![..4, ..])).unwrap();
        for i in [0, 1, 3] {
            assert_eq!(features.mantissas().row(i), clean.mantissas().row(i));
        }
        assert!(map.features(Side::X, &Array2::<T>::zeros((3, 5))).is_err());
    }
}

fn size_of_terms_of<T: Real>(map: &Map<T>, x: &Array1<T>, y: &Array1<T>) -> f64 {
    size_of_terms(map, x, y)
}

#[test]
fn hybrids_are_maps() {
    conforms::<f32>();
    conforms::<f64>();
}

#[test]
fn a_smoother_takes_a_hybrid() {
    use random_features::apply::Smoother;
    let x = points::<f64>(60, 3, 1.0);
    let y = x.map_axis(Axis(1), |row| row.sum()).insert_axis(Axis(1));
    let target = || random_features::kernel::Gaussian::new(0.7).unwrap();
    let map: Map<f64> =
        Hybrid::bipolar(bases(3, 400, 1, true), Coefficient::angular(omega(3, 20, 5)).unwrap(), target())
            .unwrap();
    let gram = map.gram(&x, &x).unwrap();
    let mut smoother = Smoother::new(map, 1).unwrap();
    smoother.update(&x, &y).unwrap();
    let found = smoother.predict(&x).unwrap();
    // Sums of the estimates, in which signs matter.
    let expected = gram.dot(&y) / gram.sum_axis(Axis(1)).insert_axis(Axis(1));
    let error = (&found - &expected).mapv(f64::abs);
    assert!(error.iter().all(|e| *e < 1e-11), "{error}");
    // And near the kernel's.
    let kernel = random_features::kernel::Kernel::gram(&target(), &x, &x).unwrap();
    let exact = kernel.dot(&y) / kernel.sum_axis(Axis(1)).insert_axis(Axis(1));
    let error = (&found - &exact).mapv(|v: f64| v * v).mean().unwrap().sqrt();
    assert!(error < 0.25 * exact.std(0.0), "{error}");
}

#[test]
fn what_does_not_fit_is_refused() {
    let positive = |d, seed| Positive.softmax::<f32>(omega(d, 3, seed)).unwrap();
    assert!(matches!(Hybrid::sum(vec![], positive(2, 1)), Err(Error::Parameter { .. })));
    let half = || Coefficient::constant(0.5).unwrap();
    assert!(matches!(Hybrid::sum(vec![(half(), positive(2, 1))], positive(3, 1)), Err(Error::Shape { .. })));
    let tau = Coefficient::angular(omega(4, 3, 1)).unwrap();
    assert!(matches!(Hybrid::sum(vec![(tau, positive(2, 1))], positive(2, 1)), Err(Error::Shape { .. })));
    for bad in [f64::NAN, f64::INFINITY] {
        assert!(Coefficient::<Map<f32>>::constant(bad).is_err());
        assert!(Coefficient::<Map<f32>>::affine(0.0, bad, Sign.build(omega(2, 2, 1), 1.0).unwrap()).is_err());
    }
    for (sigma, r) in
        [(0.0, 1.0), (1.0, 0.0), (-1.0, 1.0), (1e-200, 1.0), (f64::NAN, 1.0), (1.0, f64::INFINITY)]
    {
        assert!(
            matches!(
                Coefficient::<Map<f32>>::gaussian(omega(2, 2, 1), (sigma, r)),
                Err(Error::Parameter { .. })
            ),
            "{sigma}, {r}"
        );
    }
    let huge = || Coefficient::<Map<f32>>::constant(f64::MAX).unwrap();
    let terms = vec![(huge(), positive(2, 1)), (huge(), positive(2, 2))];
    assert!(matches!(Hybrid::sum(terms, positive(2, 3)), Err(Error::Parameter { .. })));
    let mut generator = rng(0);
    assert!(Independent.draw(0, 1, generator.next_u64()).is_err());
}

/// A hybrid names a kernel only if it estimates it: all bases do, and no coefficient depends on a base.
#[test]
fn kernels_are_named_where_they_are_estimated() {
    let maps = |seed| Positive.softmax::<f64>(omega(3, 4, seed)).unwrap();
    let half = || Coefficient::constant(0.5).unwrap();
    let sum = |coefficient, base, rest| Hybrid::sum(vec![(coefficient, base)], rest).unwrap();
    assert!(sum(half(), maps(1), maps(2)).kernel().is_some());
    let other = Positive.gaussian::<f64>(omega(3, 4, 3), 1.0).unwrap();
    assert!(sum(half(), other.clone(), maps(2)).kernel().is_none());
    assert!(sum(half(), maps(1), other).kernel().is_none());
    let unstated = random_features::frequency::Frequencies::from_rows(Array2::ones((2, 3))).unwrap();
    assert!(sum(half(), maps(1), Positive.softmax(unstated).unwrap()).kernel().is_none());
    let angular = |seed| Coefficient::angular(omega(3, 4, seed)).unwrap();
    assert!(sum(angular(3), maps(1), maps(2)).kernel().is_some());
    let dependent = sum(angular(1), maps(1), maps(2));
    assert!(dependent.kernel().is_none());
    assert!(dependent.log_variance(&point(3, 1, 0.5), &point(3, 2, 0.5)).unwrap().is_none());
}

/// Parts of one seed that differ in m or coupling are independent: estimates have the mean and the variance that the
/// closed form states for independent parts. With parts that share their first numbers the mean of the first case would
/// be 7.5 % off. Ten z-scores beyond 4.5: false alarms below 7e-5.
#[test]
fn parts_of_one_seed_are_independent() {
    let d = 3;
    let (x, y) = (point::<f64>(d, 1, 0.5), point::<f64>(d, 5, 0.4));
    let exact = x.dot(&y).exp();
    // Each draw is seen at three pairs of one kernel value and one variance.
    let shifts = (&shifted(&x, 1), &shifted(&y, 1));
    let simplex: &dyn Coupling = &Simplex::default();
    // Couplings and sizes of the bases and of the coefficient.
    let cases: [[(&dyn Coupling, usize); 3]; 4] = [
        [(&Independent, 1), (&Independent, 2), (&Orthogonal, 1)],
        [(&Independent, 2), (&Independent, 3), (&Independent, 1)],
        [(&Orthogonal, 3), (simplex, 3), (&Independent, 2)],
        [(&Antithetic(Independent), 2), (&Orthogonal, 2), (&Independent, 2)],
    ];
    for case in cases {
        let make = |seed: u64| {
            let [first, second, tau] = case.map(|(coupling, m)| frequencies(d, m, coupling, seed));
            Hybrid::<Map<f64>>::angular(Bases::independent(first, second), tau).unwrap()
        };
        unbiased_at_pairs(&format!("{case:?}"), make, shifts, exact, (50_000, LIMIT));
    }
    let make = |seed: u64| {
        let [first, second, tau] = [2, 3, 4].map(|m| frequencies(d, m, &Orthogonal, seed));
        let coefficient = Coefficient::gaussian(tau, (0.8, 0.9)).unwrap();
        Hybrid::<Map<f64>>::bipolar(Bases::independent(first, second), coefficient, softmax()).unwrap()
    };
    unbiased_at_pairs("gaussian coefficient", make, shifts, exact, (50_000, LIMIT));
}

/// Where the estimate of a coefficient leaves the range, all pairs are still what the pairs are one by one.
#[test]
fn coefficients_beyond_the_range_are_those_of_pairs() {
    let one = |omega: f64| {
        let omega = Frequencies::from_rows(ndarray::arr2(&[[omega]])).unwrap();
        Positive.softmax::<f64>(omega).unwrap()
    };
    // Ĉ = e^900, and P = e^−900.
    let weight = Coefficient::affine(0.0, 1.0, one(50.0)).unwrap();
    let map = Hybrid::sum(vec![(weight, one(-40.0))], one(-45.0)).unwrap();
    let x = Array2::from_elem((1, 1), 10.0);
    let (gram, pair) = (map.gram(&x, &x).unwrap(), map.estimate(&x.row(0), &x.row(0)).unwrap());
    assert!((pair - 1.0).abs() < 1e-12 && gram[[0, 0]] == pair, "{gram} {pair}");
}

/// A base of NaN in a map of one dimension.
fn not_a_number() -> Map<f64> {
    let write = |x: ArrayView1<'_, f64>, values: &mut [f64], _: &mut [f64]| {
        values[0] = if x[0] > 5.0 { f64::NAN } else { 1.0 };
    };
    own_map(Facts::new(1, vec![1]).symmetric(), write).unwrap()
}

/// What has no weight does not count, be it NaN.
#[test]
fn bases_without_weight_do_not_count() {
    let rest = || Trigonometric.gaussian::<f64>(omega(1, 8, 1), 1.0).unwrap();
    let none = Coefficient::constant(0.0).unwrap();
    let map = Hybrid::sum(vec![(none, not_a_number())], rest()).unwrap();
    let x = ndarray::arr2(&[[0.5], [7.0]]);
    let expected = rest().gram(&x, &x).unwrap();
    let gram = map.gram(&x, &x).unwrap();
    let pairs = map.estimate_rows(&x, &x).unwrap();
    for i in 0..2 {
        assert!((pairs[i] - expected[[i, i]]).abs() < 1e-14, "{pairs}");
        assert!((gram[[i, i]] - expected[[i, i]]).abs() < 1e-14, "{gram}");
    }
}
