//! Poisson and geometric maps, with and without a shift: draws, features, estimates, statistics.
//!
//! Statistical tests have fixed seeds. A z-score beyond 4.5 has probability 7e-6 for another seed, and there
//! are below 100 of them here: the rate of false alarms is below 1e-3. Points are such that |xₗyₗ| ≤ λₗ or p
//! is best for them: features are bounded there, so that a sample's variance means something.

use crate::common::{
    Sample, any_layout, batch_is_rows, changed, features, gaussian, gram_is_estimates, point, points,
    promises, refusals, softmax, threads_change_nothing,
};
use ndarray::{Array1, Array2, ShapeBuilder, arr1, arr2, s};
use random_features::compose::{Coefficient, Hybrid};
use random_features::data::{PairStatistics, Statistics};
use random_features::frequency::Counts;
use random_features::kernel::{Gaussian, Softmax};
use random_features::map::{AnyKernel, Mechanism, Shift};
use random_features::recipe::{CountLaw, DrawCounts, Rates};
use random_features::theory::counts::{
    ln_geometric_variance, ln_poisson_variance, ln_poisson_variance_per_dimension, optimal_p,
};
use random_features::{Error, Geometric, Map, Poisson, Real, Recipe, Side, rng};

const LIMIT: f64 = 4.5;
const SHAPES: [(usize, usize, usize); 4] = [(1, 1, 1), (7, 3, 5), (150, 17, 40), (600, 130, 150)];
const EPSILON: f64 = 1e-3;

/// A map by name, with its parameters for dimension d.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Name {
    Poisson,
    PoissonPerDimension,
    Geometric,
}

const NAMES: [Name; 3] = [Name::Poisson, Name::PoissonPerDimension, Name::Geometric];
const P: f64 = 0.6;

impl Name {
    fn rates(self, d: usize) -> Vec<f64> {
        let rate = |l| if self == Name::Poisson { 0.4 } else { 0.1 + 0.2 * (l % 5) as f64 };
        (0..d).map(rate).collect()
    }

    fn draw(self, d: usize, m: usize, seed: u64) -> Counts {
        match self {
            Name::Poisson => Counts::poisson(d, m, 0.4, rng(seed).next_u64()).unwrap(),
            Name::PoissonPerDimension => Counts::poisson(d, m, self.rates(d), rng(seed).next_u64()).unwrap(),
            Name::Geometric => Counts::geometric(d, m, P, rng(seed).next_u64()).unwrap(),
        }
    }

    fn make<T: Real>(self, omega: Counts, target: AnyKernel) -> Map<T> {
        match self {
            Name::Geometric => Geometric::default().build(omega, target).unwrap(),
            _ => Poisson::default().build(omega, target).unwrap(),
        }
    }

    fn shifted<T: Real>(self, omega: Counts, target: AnyKernel, shift: Vec<f64>) -> Map<T> {
        let shift = Shift::new(shift, EPSILON).unwrap();
        match self {
            Name::Geometric => Geometric::default().shifted(shift).build(omega, target).unwrap(),
            _ => Poisson::default().shifted(shift).build(omega, target).unwrap(),
        }
    }

    /// What a coordinate is divided by.
    fn divisors(self, d: usize) -> Vec<f64> {
        match self {
            Name::Geometric => vec![(1.0 - P).sqrt(); d],
            _ => self.rates(d).into_iter().map(f64::sqrt).collect(),
        }
    }

    /// The features of one point for the softmax kernel, straight from the definition, in `f64`.
    fn naive(self, omega: &Counts, x: &[f64]) -> Vec<f64> {
        let (d, m) = (omega.dim(), omega.m() as f64);
        let factorial = |k: u64| (1..=k).map(|i| i as f64).product::<f64>();
        let (rates, divisors) = (self.rates(d), self.divisors(d));
        let constant = match self {
            Name::Geometric => P.powf(-0.5 * d as f64),
            _ => (0.5 * rates.iter().sum::<f64>()).exp(),
        };
        let feature = |w: ndarray::ArrayView1<u64>| {
            let factor = |l: usize| {
                let power = (x[l] / divisors[l]).powi(w[l] as i32);
                if self == Name::Geometric { power / factorial(w[l]).sqrt() } else { power }
            };
            constant / m.sqrt() * (0..d).map(factor).product::<f64>()
        };
        omega.rows().rows().into_iter().map(feature).collect()
    }

    /// Σₗ ωⱼₗ |ln |xₗ/rₗ||, to which the documented accuracy is relative.
    fn sizes(self, omega: &Counts, x: &[f64]) -> Vec<f64> {
        let divisors = self.divisors(omega.dim());
        let term = |l: usize| if x[l] == 0.0 { 0.0 } else { (x[l].abs() / divisors[l]).ln().abs() };
        let size = |w: ndarray::ArrayView1<u64>| (0..w.len()).map(|l| w[l] as f64 * term(l)).sum();
        omega.rows().rows().into_iter().map(size).collect()
    }
}

/// Points with coordinates of both signs, exact zeros, and a row of zeros.
fn mixed<T: Real>(n: usize, d: usize, scale: f64) -> Array2<T> {
    let mut x = points::<T>(n, d, scale);
    x.indexed_iter_mut()
        .filter(|((i, k), _)| (i + 3 * k) % 11 == 0 || *i == 3)
        .for_each(|(_, v)| *v = T::zero());
    x
}

fn widened<T: Real>(x: impl IntoIterator<Item = T>) -> Vec<f64> {
    x.into_iter().map(|v| v.widen()).collect()
}

/// Runs `check` on every map, shape and target.
fn every<T: Real>(check: impl Fn(&Map<T>, &Array2<T>)) {
    for (n, d, m) in SHAPES {
        let x = mixed::<T>(n, d, 1.5 / (d as f64).sqrt());
        for name in NAMES {
            let omega = name.draw(d, m, 5);
            check(&name.make::<T>(omega.clone(), softmax()), &x);
            // Some coordinates are clamped.
            let shift = vec![-1.3 / (d as f64).sqrt(); d];
            check(&name.shifted::<T>(omega, gaussian(), shift), &x);
        }
    }
}

fn both(f32s: impl Fn(&Map<f32>, &Array2<f32>), f64s: impl Fn(&Map<f64>, &Array2<f64>)) {
    every::<f32>(f32s);
    every::<f64>(f64s);
}

/// First rows of draws with seed 42. A change of stream must be announced in the changelog.
#[test]
fn draws_are_pinned() {
    let row = |omega: Counts| omega.rows().iter().copied().collect::<Vec<_>>();
    assert_eq!(row(Counts::poisson(3, 3, 1.5, 42).unwrap()), [0, 1, 3, 2, 0, 0, 0, 2, 1]);
    let rates = vec![0.1, 20.0, 1e6];
    assert_eq!(
        row(Counts::poisson(3, 3, rates, 42).unwrap()),
        [0, 14, 998_620, 0, 22, 999_665, 0, 27, 999_451]
    );
    assert_eq!(row(Counts::geometric(3, 3, 0.2, 42).unwrap()), [0, 3, 8, 0, 2, 1, 13, 0, 1]);
    assert_eq!(
        row(Counts::geometric(3, 2, 1e-9, 42).unwrap()),
        [440_168_807, 573_293_585, 122_971_512, 307_520_703, 1_598_512_082, 1_013_111_353]
    );
}

/// Means of sʷ against the generating functions e^{λ(s−1)} and p/(1−(1−p)s): 36 z-scores.
#[test]
fn draws_follow_their_law() {
    const N: usize = 100_000;
    let check = |omega: &Counts, column: usize, expected: &dyn Fn(f64) -> f64| {
        for s in [0.0, 0.5, 0.9] {
            let sample: Vec<f64> =
                omega.rows().column(column).iter().map(|k| f64::powi(s, *k as i32)).collect();
            let (sample, expected) = (Sample::of(&sample), expected(s));
            // Events so rare that none occurs have no error to measure by.
            if expected > 1e-3 {
                let z = sample.z(expected);
                assert!(z.abs() < LIMIT, "{:?} at {s}: {} of {expected}, z {z}", omega.law(), sample.mean);
            }
        }
    };
    let rates = vec![0.05, 0.8, 3.0, 11.0, 13.0, 40.0];
    let omega = Counts::poisson(6, N, rates.clone(), rng(1).next_u64()).unwrap();
    for (l, rate) in rates.iter().enumerate() {
        check(&omega, l, &|s| (rate * (s - 1.0)).exp());
        let mean = Sample::of(&omega.rows().column(l).mapv(|k| k as f64).to_vec());
        assert!(mean.z(*rate).abs() < LIMIT);
    }
    for p in [0.1, 0.5, 0.9] {
        let omega = Counts::geometric(1, N, p, rng(2).next_u64()).unwrap();
        check(&omega, 0, &|s| p / (1.0 - (1.0 - p) * s));
    }
}

#[test]
fn refusals_are_sentences() {
    let parameter = |error: Error| assert!(matches!(error, Error::Parameter { .. }), "{error}");
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, 2e15] {
        parameter(Counts::poisson(2, 2, rate, rng(1).next_u64()).unwrap_err());
        let rates = vec![1.0, rate];
        parameter(Counts::poisson(2, 2, rates.clone(), rng(1).next_u64()).unwrap_err());
        let law = CountLaw::Poisson(rates.clone().into());
        parameter(Counts::from_parts(Array2::zeros((1, 2)), law).unwrap_err());
        let omega = Counts::from_rows(Array2::zeros((1, 2))).unwrap();
        parameter(Poisson::with_rates(rates).build::<f64>(omega, softmax()).unwrap_err());
    }
    for p in [0.0, 1.0, -0.5, f64::NAN, f64::INFINITY] {
        parameter(Counts::geometric(2, 2, p, rng(1).next_u64()).unwrap_err());
        parameter(Counts::from_parts(Array2::zeros((1, 2)), CountLaw::Geometric(p)).unwrap_err());
        let omega = Counts::from_rows(Array2::zeros((1, 2))).unwrap();
        parameter(Geometric::with_p(p).build::<f64>(omega, softmax()).unwrap_err());
    }
    for (d, m) in [(0, 3), (3, 0)] {
        parameter(Counts::poisson(d, m, 1.0, rng(1).next_u64()).unwrap_err());
        parameter(Counts::geometric(d, m, 0.5, rng(1).next_u64()).unwrap_err());
    }
    let memory = |error: Error| assert!(matches!(error, Error::Memory { .. }), "{error}");
    for (d, m) in [(usize::MAX, 2), (2, usize::MAX), (1 << 46, 1), (1, 1 << 46)] {
        memory(Counts::poisson(d, m, 1.0, rng(1).next_u64()).unwrap_err());
        memory(Counts::geometric(d, m, 0.5, rng(1).next_u64()).unwrap_err());
    }
    parameter(Counts::from_rows(Array2::zeros((0, 3))).unwrap_err());
    parameter(Counts::from_rows(Array2::zeros((3, 0))).unwrap_err());
    let shape = |error: Error| assert!(matches!(error, Error::Shape { .. }), "{error}");
    shape(Counts::poisson(3, 2, vec![1.0, 2.0], rng(1).next_u64()).unwrap_err());
    let omega = || Name::Poisson.draw(2, 3, 1);
    shape(Poisson::default().gaussian::<f64>(omega(), vec![1.0; 3]).unwrap_err());
    let short = Shift::new(vec![0.0], 1.0).unwrap();
    shape(Poisson::default().shifted(short.clone()).softmax::<f64>(omega()).unwrap_err());
    shape(Geometric::with_p(P).shifted(short.clone()).softmax::<f64>(omega()).unwrap_err());
    shape(short.clamped(&Array2::<f64>::zeros((1, 2)), &1.0.into()).unwrap_err());
    shape(short.clamped(&Array2::<f64>::zeros((1, 1)), &vec![1.0; 2].into()).unwrap_err());
    parameter(short.clamped(&Array2::<f64>::zeros((1, 1)), &0.0.into()).unwrap_err());
    parameter(Shift::new(Vec::new(), 1.0).unwrap_err());
    let error = Counts::from_rows(arr2(&[[1 << 53], [(1 << 53) + 1]])).unwrap_err();
    assert!(matches!(error, Error::Entry { row: 1, .. }), "{error}");
    for bad in [f64::NAN, f64::INFINITY, 1e200] {
        let error = Shift::new(vec![0.0, bad], 1.0).unwrap_err();
        assert!(matches!(error, Error::Entry { row: 1, .. }), "{error}");
    }
    for epsilon in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        parameter(Shift::new(vec![0.0, 1.0], epsilon).unwrap_err());
    }
    let matern =
        random_features::kernel::Matern::new(random_features::kernel::Smoothness::Half, 1.0).unwrap();
    let error = Poisson::default().build::<f64>(omega(), matern).unwrap_err();
    assert!(matches!(error, Error::Kernel { .. }), "{error}");
    // The wrong law.
    let error = Geometric::default().softmax::<f64>(omega()).unwrap_err().to_string();
    assert!(error.contains("geometric") && error.contains("Poisson"), "{error}");
    let unknown = Counts::from_rows(Array2::zeros((1, 2))).unwrap();
    let error = Poisson::default().softmax::<f64>(unknown).unwrap_err().to_string();
    assert!(error.contains("unknown") && error.contains("Poisson"), "{error}");
}

/// Features against the definition, within the accuracy that the docs state.
fn matches_naive<T: Real>() {
    let epsilon = T::epsilon().widen();
    for (n, d, m) in SHAPES {
        let x = mixed::<T>(n, d, 1.5 / (d as f64).sqrt());
        let shift = vec![-1.3 / (d as f64).sqrt(); d];
        for name in NAMES {
            let omega = name.draw(d, m, 5);
            let plain = name.make::<T>(omega.clone(), softmax()).features(Side::X, &x).unwrap().to_array();
            let shifted = name.shifted::<T>(omega.clone(), gaussian(), shift.clone());
            let shifted = shifted.features(Side::X, &x).unwrap().to_array();
            for (i, x) in x.rows().into_iter().enumerate() {
                let x = widened(x.iter().copied());
                let u: Vec<f64> = x.iter().zip(&shift).map(|(x, c)| (x - c).max(EPSILON)).collect();
                let factor = (-0.5 * u.iter().map(|u| u * u).sum::<f64>()).exp();
                for (row, x, factor) in [(plain.row(i), x, 1.0), (shifted.row(i), u, factor)] {
                    let (expected, sizes) = (name.naive(&omega, &x), name.sizes(&omega, &x));
                    let largest = expected.iter().fold(0.0f64, |a, v| a.max(v.abs())) * factor;
                    for ((value, expected), size) in row.iter().zip(expected).zip(sizes) {
                        let (value, expected) = (value.widen(), factor * expected);
                        let relative = epsilon * ((d as f64 + 4.0) * size + 10.0) + 1e-14 * d as f64;
                        let floor = 2.0 * T::min_positive_value().widen() * largest.max(1.0);
                        let tolerance = relative * expected.abs() + floor;
                        assert!((value - expected).abs() <= tolerance, "{name:?}: {value} not {expected}");
                        assert!(expected != 0.0 || value == 0.0, "{name:?}: {value} is not 0");
                    }
                }
            }
        }
    }
}

#[test]
fn features_are_the_naive_loop() {
    matches_naive::<f32>();
    matches_naive::<f64>();
}

#[test]
fn zeros_and_signs() {
    let omega =
        Counts::from_parts(arr2(&[[0, 0], [1, 0], [0, 2], [3, 1], [2, 2]]), CountLaw::Poisson(1.0.into()));
    let map = Poisson::default().softmax::<f64>(omega.unwrap()).unwrap();
    let signs = |x: [f64; 2]| {
        let phi = map.features_of(Side::X, &arr1(&x)).unwrap();
        assert!(phi.log_scales()[[0, 0]].is_finite());
        phi.mantissas().iter().map(|v| if *v == 0.0 { 0.0 } else { v.signum() }).collect::<Vec<_>>()
    };
    assert_eq!(signs([0.0, 0.0]), [1.0, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!(signs([-0.0, 2.0]), [1.0, 0.0, 1.0, 0.0, 0.0]);
    assert_eq!(signs([2.0, 3.0]), [1.0, 1.0, 1.0, 1.0, 1.0]);
    assert_eq!(signs([-2.0, 3.0]), [1.0, -1.0, 1.0, -1.0, 1.0]);
    assert_eq!(signs([-2.0, -3.0]), [1.0, -1.0, 1.0, 1.0, 1.0]);
    // A negative estimate, and one of nothing but zeros.
    let single = |row: [u64; 2]| {
        let omega = Counts::from_parts(arr2(&[row]), CountLaw::Poisson(1.0.into())).unwrap();
        Poisson::default().softmax::<f64>(omega).unwrap()
    };
    let estimate = single([1, 2]).log_estimate(&arr1(&[2.0, -3.0]), &arr1(&[-0.5, 1.0])).unwrap();
    assert_eq!(estimate.sign, -1.0);
    assert!((estimate.ln_abs - (2.0 + 9f64.ln())).abs() < 1e-14);
    let nothing = single([1, 2]);
    let zero = arr1(&[0.0, 1.0]);
    assert_eq!(nothing.log_estimate(&zero, &zero).unwrap().ln_abs, f64::NEG_INFINITY);
    let phi = nothing.features_of(Side::Y, &zero).unwrap();
    assert!(phi.mantissas()[[0, 0]] == 0.0 && phi.log_scales()[[0, 0]].is_finite());
}

/// One-hot inputs and frequencies in more dimensions than a mask's word has bits: signs and zeros of single
/// coordinates.
#[test]
fn one_hot_points() {
    let (d, coordinates) = (130, [0, 63, 64, 127, 128, 129]);
    let mut rows = Array2::<u64>::zeros((4 * coordinates.len(), d));
    for (j, mut row) in rows.rows_mut().into_iter().enumerate() {
        row[coordinates[j / 4]] = j as u64 % 4;
    }
    for name in NAMES {
        let law = name.draw(d, 1, 1).law().clone();
        let omega = Counts::from_parts(rows.clone(), law).unwrap();
        let map = name.make::<f64>(omega.clone(), softmax());
        for (i, l) in coordinates.into_iter().enumerate() {
            let mut x = Array1::zeros(d);
            x[l] = -0.7;
            let phi = map.features_of(Side::X, &x).unwrap().to_array();
            let naive = name.naive(&omega, x.as_slice().unwrap());
            let close = |a: &f64, b: &f64| (a - b).abs() <= 1e-12 * b.abs();
            assert!(phi.iter().zip(&naive).all(|(a, b)| close(a, b)));
            assert!(phi[[0, 4 * i + 1]] < 0.0 && phi[[0, 4 * i + 2]] > 0.0 && phi[[0, 4 * i + 3]] < 0.0);
        }
    }
}

#[test]
fn a_batch_is_its_rows_to_the_bit() {
    both(batch_is_rows, batch_is_rows);
}

#[test]
fn threads_change_no_bit() {
    both(threads_change_nothing, threads_change_nothing);
}

#[test]
fn any_layout_and_dirty_buffers() {
    both(any_layout, any_layout);
}

fn keeps_promises<T: Real>(map: &Map<T>, x: &Array2<T>) {
    promises(map, x);
    refusals(map, x);
    let phi = features(map, x.view());
    assert!(map.facts().symmetric && phi.log_scales().iter().all(|v| v.is_finite()));
    // Scaled by the largest feature of a row, if it has any.
    for row in phi.mantissas().rows() {
        let largest = row.iter().fold(T::zero(), |a, v| a.max(v.abs()));
        assert!(largest == T::zero() || largest == T::one());
    }
}

#[test]
fn properties_hold() {
    both(keeps_promises, keeps_promises);
}

#[test]
fn gram_and_estimates_agree() {
    both(gram_is_estimates, gram_is_estimates);
}

fn not_finite<T: Real>(map: &Map<T>, x: &Array2<T>) {
    let plain = features(map, x.view());
    for bad in [T::nan(), T::infinity(), T::neg_infinity()] {
        let mut x = x.clone();
        let row = x.nrows() / 2;
        x[[row, 0]] = bad;
        let phi = features(map, x.view());
        for i in 0..x.nrows() {
            if i == row {
                assert!(
                    phi.mantissas().row(i).iter().all(|v| v.is_nan()) && phi.log_scales()[[i, 0]].is_nan()
                );
            } else {
                assert_eq!(phi.mantissas().row(i), plain.mantissas().row(i));
                assert_eq!(phi.log_scales().row(i), plain.log_scales().row(i));
            }
        }
        let log = map.log_estimate(&x.row(row), &x.row(row)).unwrap();
        assert!(log.ln_abs.is_nan() && log.sign.is_nan());
    }
}

#[test]
fn rows_that_are_not_finite_affect_no_other() {
    both(not_finite, not_finite);
}

/// Where xₗyₗ = λₗ a Poisson estimate is the kernel for any draw: the log-estimate at any norm, within the
/// accuracy that the docs state.
fn exact_at_any_norm<T: Real>() {
    for norm in [1e-8, 1e-3, 1.0, 30.0, 1e3] {
        for (d, m) in [(1, 1), (5, 9), (70, 32)] {
            let x = point::<T>(d, 2, norm).mapv(|v| if v == T::zero() { T::narrow(0.1 * norm) } else { v });
            let y = Array1::from_shape_fn(d, |l| x[l] * T::narrow(0.3 + 0.2 * (l % 7) as f64));
            let rates: Vec<f64> = x.iter().zip(&y).map(|(x, y)| x.widen() * y.widen()).collect();
            let omega = Counts::poisson(d, m, rates.clone(), rng(3).next_u64()).unwrap();
            let size = |w: ndarray::ArrayView1<u64>| {
                let term = |l: usize| (x[l].widen().abs() / rates[l].sqrt()).ln().abs() * w[l] as f64;
                (0..d).map(term).sum::<f64>()
            };
            let size = omega.rows().rows().into_iter().map(size).fold(0.0, f64::max);
            for target in [softmax(), gaussian()] {
                let map = Poisson::default().build::<T>(omega.clone(), target).unwrap();
                let exact = map.kernel().unwrap().log_value(&x, &y).unwrap().ln_abs;
                let log = map.log_estimate(&x, &y).unwrap();
                let squared = widened(x.iter().chain(&y).copied()).iter().map(|v| v * v).sum::<f64>();
                let rounding = T::epsilon().widen() * (d as f64 + 4.0) * 2.0 * size;
                let tolerance = rounding + f64::EPSILON * (10.0 + 4.0 * squared);
                assert_eq!(log.sign, 1.0);
                let error = (log.ln_abs - exact).abs();
                assert!(error <= tolerance, "norm {norm}, d {d}: {error} of {tolerance}");
                assert_eq!(map.log_variance(&x, &x).unwrap().map(|v| v.is_nan()), Some(false));
            }
        }
    }
}

#[test]
fn poisson_is_exact_where_products_are_rates() {
    exact_at_any_norm::<f32>();
    exact_at_any_norm::<f64>();
    let (x, y) = (arr1(&[0.5, -2.0]), arr1(&[2.0, -0.25]));
    let omega = Counts::poisson(2, 3, vec![1.0, 0.5], rng(1).next_u64()).unwrap();
    let map = Poisson::default().softmax::<f64>(omega).unwrap();
    assert_eq!(map.log_variance(&x, &y).unwrap(), Some(f64::NEG_INFINITY));
}

/// A single feature's log-estimate is the sum of the definition, at any norm and for counts up to 2⁵³.
fn exponents_are_accurate<T: Real>() {
    let row = [3u64, 0, 17, 1_000_000_007, 1 << 53];
    for norm in [1e-30, 1e-8, 1.0, 1e3, 1e18] {
        for used in 1..=row.len() {
            let (x, y) = (point::<T>(used, 1, norm), point::<T>(used, 5, 0.5 * norm));
            if x.iter().chain(&y).any(|v| *v == T::zero()) {
                continue;
            }
            let omega = || Counts::from_rows(arr2(&[row]).slice(s![.., ..used]).to_owned()).unwrap();
            let poisson = Poisson::with_rates(0.4).build::<T>(omega(), softmax()).unwrap();
            let geometric = Geometric::with_p(P).build::<T>(omega(), softmax()).unwrap();
            let logs = |divisor: f64| {
                let log =
                    |x: &Array1<T>, l: usize| row[l] as f64 * (x[l].widen().abs() / divisor.sqrt()).ln();
                let all = || (0..used).flat_map(|l| [log(&x, l), log(&y, l)]).filter(|v| *v != 0.0);
                (all().sum::<f64>(), all().map(f64::abs).sum::<f64>())
            };
            let factorials: f64 = (0..used).map(|l| libm::lgamma(row[l] as f64 + 1.0)).sum();
            let ((p_sum, p_size), (g_sum, g_size)) = (logs(0.4), logs(1.0 - P));
            let g_sum = g_sum - factorials - used as f64 * P.ln();
            let p = poisson.log_estimate(&x, &y).unwrap().ln_abs;
            let g = geometric.log_estimate(&x, &y).unwrap().ln_abs;
            let tolerance = |size: f64| {
                T::epsilon().widen() * (used as f64 + 4.0) * size
                    + 8.0 * f64::EPSILON * (1.0 + size + factorials)
            };
            let p_sum = p_sum + 0.4 * used as f64;
            assert!((p - p_sum).abs() <= tolerance(p_size), "{norm}, {used}: {p} instead of {p_sum}");
            assert!((g - g_sum).abs() <= tolerance(g_size), "{norm}, {used}: {g} instead of {g_sum}");
        }
    }
}

#[test]
fn exponents_of_huge_counts_are_accurate() {
    exponents_are_accurate::<f32>();
    exponents_are_accurate::<f64>();
}

/// Rates that do not suit the points: features of any norm stay finite, and estimates are not NaN.
fn finite_at_any_norm<T: Real>() {
    for name in NAMES {
        for d in [1, 6, 65] {
            let omega = name.draw(d, 50, 4);
            for norm in [0.0, 1e-30, 1e-8, 1.0, 1e3, 1e15] {
                for target in [softmax(), gaussian()] {
                    let map = name.make::<T>(omega.clone(), target.clone());
                    let shifted = name.shifted::<T>(omega.clone(), target, vec![-0.5 * norm; d]);
                    let (x, y) = (point::<T>(d, 1, norm), point::<T>(d, 4, norm));
                    for map in [map, shifted] {
                        let phi = map.features_of(Side::X, &x).unwrap();
                        assert!(phi.mantissas().iter().all(|v| v.is_finite()));
                        assert!(phi.log_scales()[[0, 0]].is_finite());
                        let log = map.log_estimate(&x, &y).unwrap();
                        assert!(!log.ln_abs.is_nan() && log.ln_abs < f64::INFINITY && !log.sign.is_nan());
                        assert!(map.log_variance(&x, &y).unwrap().is_some_and(|v| !v.is_nan()));
                    }
                }
            }
        }
    }
}

#[test]
fn nothing_overflows() {
    finite_at_any_norm::<f32>();
    finite_at_any_norm::<f64>();
}

#[test]
fn targets_and_lengthscales() {
    let x = mixed::<f64>(20, 3, 1.0);
    let scales = vec![0.5, 2.0, 3.0];
    let divided = &x / &arr1(&scales);
    for name in NAMES {
        let make = |target: AnyKernel| name.make::<f64>(name.draw(3, 11, 2), target);
        let (plain, of_gaussian) = (make(softmax()), make(gaussian()));
        let (a, b) = (features(&plain, x.view()), features(&of_gaussian, x.view()));
        assert_eq!(a.mantissas(), b.mantissas());
        for (i, x) in x.rows().into_iter().enumerate() {
            let difference = a.log_scales()[[i, 0]] - b.log_scales()[[i, 0]];
            assert!((difference - 0.5 * x.dot(&x)).abs() < 1e-12);
        }
        assert!(a.gram(&b).is_err(), "features of different maps pair");
        let pairs: [(AnyKernel, &Map<f64>); 2] = [
            (Softmax::new(scales.clone()).unwrap().into(), &plain),
            (Gaussian::new(scales.clone()).unwrap().into(), &of_gaussian),
        ];
        for (target, without) in pairs {
            let with = make(target);
            let (a, b) = (with.gram(&x, &x).unwrap(), without.gram(&divided, &divided).unwrap());
            assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= 1e-12 * b.abs().max(1.0)));
            let a = with.log_variance(&x.row(1), &x.row(2)).unwrap().unwrap();
            let b = without.log_variance(&divided.row(1), &divided.row(2)).unwrap().unwrap();
            assert!((a - b).abs() < 1e-12);
        }
    }
}

#[test]
fn closed_forms_exist_where_the_law_is_known() {
    let (x, y) = (arr1(&[0.3, -0.2]), arr1(&[0.1, 0.4]));
    let rows = Name::Poisson.draw(2, 5, 1).rows().to_owned();
    let unknown = || Counts::from_rows(rows.clone()).unwrap();
    let map = Poisson::with_rates(0.4).build::<f64>(unknown(), softmax()).unwrap();
    assert_eq!(map.log_variance(&x, &y).unwrap(), None);
    assert!(map.kernel().is_none());
    let mechanism = |map: &Map<f64>| match map.recipe() {
        Some(Recipe::Plain(recipe)) => recipe.mechanism,
        other => panic!("{other:?}"),
    };
    let Mechanism::Poisson(poisson) = mechanism(&map) else { panic!("{map:?}") };
    assert_eq!(poisson.rates(), Some(&Rates::Same(0.4)));
    let map = Geometric::with_p(0.4).build::<f64>(unknown(), softmax()).unwrap();
    let Mechanism::Geometric(geometric) = mechanism(&map) else { panic!("{map:?}") };
    assert_eq!((map.log_variance(&x, &y).unwrap(), geometric.p()), (None, Some(0.4)));
    assert!(map.kernel().is_none());
    // Drawn for another λ than the map's.
    let other = Poisson::with_rates(0.5).build::<f64>(Name::Poisson.draw(2, 5, 1), softmax()).unwrap();
    assert_eq!(other.log_variance(&x, &y).unwrap(), None);
    assert!(other.kernel().is_none());
    // One λ or the same for each coordinate.
    let omega = Counts::poisson(2, 5, vec![0.4, 0.4], rng(1).next_u64()).unwrap();
    let same = Poisson::with_rates(0.4).build::<f64>(omega, gaussian()).unwrap();
    let (a, b) = (x.as_slice().unwrap(), y.as_slice().unwrap());
    let expected = ln_poisson_variance(a, b, 0.4, 5);
    assert_eq!(same.log_variance(&x, &y).unwrap(), Some(expected));
    assert!(same.kernel().is_some());
    assert_eq!(ln_poisson_variance_per_dimension(a, b, &[0.4, 0.4], 5), expected);
    let map = Geometric::default()
        .gaussian::<f64>(Counts::geometric(2, 5, 0.4, rng(1).next_u64()).unwrap(), 1.0)
        .unwrap();
    assert_eq!(map.log_variance(&x, &y).unwrap(), Some(ln_geometric_variance(a, b, 0.4, 5)));
}

/// Mean and mean squared error of a map's estimates over 20 000 draws against kernel and closed form.
fn unbiased(what: &str, (x, y): (&Array1<f64>, &Array1<f64>), make: impl Fn(u64) -> Map<f64>) {
    let exact = make(0).kernel().unwrap().value(x, y).unwrap();
    crate::common::unbiased(what, make, (x, y), exact, (20_000, LIMIT));
}

#[test]
fn unbiased_and_of_the_closed_form_variance() {
    let (x, y) = (arr1(&[0.6, -0.5, 0.3]), arr1(&[0.7, 0.4, -0.8]));
    let lengthscale = vec![0.9, 1.0, 1.2];
    // With the same lengthscale the two kernels differ by a scale, in features and in closed forms: see
    // `targets_and_lengthscales`.
    let targets: [AnyKernel; 2] = [softmax(), Gaussian::new(lengthscale).unwrap().into()];
    for target in targets {
        for rates in [Rates::Same(0.6), Rates::PerDimension(vec![0.8, 0.4, 0.5])] {
            unbiased(&format!("{rates:?}, {target:?}"), (&x, &y), |seed| {
                let omega = Counts::poisson(3, 5, rates.clone(), rng(seed).next_u64()).unwrap();
                Poisson::default().build(omega, target.clone()).unwrap()
            });
        }
        let p = optimal_p(&(&x * &y).to_vec());
        unbiased(&format!("p {p}, {target:?}"), (&x, &y), |seed| {
            let omega = Counts::geometric(3, 5, p, rng(seed).next_u64()).unwrap();
            Geometric::default().build(omega, target.clone()).unwrap()
        });
    }
}

#[test]
fn shifted_maps_are_unbiased_where_nothing_is_clamped() {
    let data = arr2(&[[0.6, -0.5], [0.7, -0.9], [0.1, 0.2]]);
    let (x, y) = (data.row(0).to_owned(), data.row(1).to_owned());
    let statistics = Statistics::of(&data).unwrap().divided_by(1.3).unwrap();
    let pairs = PairStatistics::new(&statistics, &statistics).unwrap();
    let shift = pairs.shift(0.05).unwrap();
    let statistics = statistics.shifted(&shift).unwrap();
    let pairs = PairStatistics::new(&statistics, &statistics).unwrap();
    let (rates, p) = (pairs.poisson_per_dimension(), pairs.geometric());
    let shift = Shift::new(shift, 0.05).unwrap();
    assert_eq!(shift.clamped(&data, &1.3.into()).unwrap(), 0);
    let targets: [AnyKernel; 2] = [Softmax::new(1.3).unwrap().into(), Gaussian::new(1.3).unwrap().into()];
    for target in targets {
        unbiased(&format!("shifted Poisson, {target:?}"), (&x, &y), |seed| {
            let omega = Counts::poisson(2, 5, rates.clone(), rng(seed).next_u64()).unwrap();
            let map = Poisson::default().shifted(shift.clone()).build(omega, target.clone()).unwrap();
            assert!(map.features(Side::X, &data).unwrap().mantissas().iter().all(|v| *v > 0.0));
            map
        });
        unbiased(&format!("shifted geometric, {target:?}"), (&x, &y), |seed| {
            let omega = Counts::geometric(2, 5, p, rng(seed).next_u64()).unwrap();
            let map = Geometric::default().shifted(shift.clone()).build(omega, target.clone()).unwrap();
            assert!(map.features(Side::X, &data).unwrap().mantissas().iter().all(|v| *v > 0.0));
            map
        });
    }
}

/// Data that gave the shift is inside it for every ε, size and lengthscale, whatever rounding does.
#[test]
fn what_gave_the_shift_is_not_clamped() {
    for epsilon in [1e-300, 1e-12, 1e-8, 0.3, 100.0] {
        for offset in [0.0, 1e-9, -0.7, 1.0 / 3.0, 1e4, -1e9] {
            for lengthscale in [1.0, 0.37, 1e3] {
                let x = points::<f32>(50, 3, 1.7).mapv(|v| f64::from(v) + offset);
                let statistics = Statistics::of(&x).unwrap().divided_by(lengthscale).unwrap();
                let shift = PairStatistics::new(&statistics, &statistics).unwrap().shift(epsilon).unwrap();
                let clamped = Shift::new(shift, epsilon).unwrap().clamped(&x, &lengthscale.into()).unwrap();
                assert_eq!(clamped, 0, "{epsilon}, {offset}, {lengthscale}");
            }
        }
    }
}

fn clamped_are_counted<T: Real>() {
    let shift = Shift::new(vec![1.0, -1.0], 0.5).unwrap();
    let mechanism = Poisson::default().shifted(shift.clone());
    let map = mechanism.gaussian::<T>(Name::Poisson.draw(2, 4, 1), 2.0).unwrap();
    let two = 2.0.into();
    let clamped = |x: &Array2<T>| shift.clamped(x, &two).unwrap();
    // In units of the lengthscale: inside from 1.5 and −0.5 on.
    let x = arr2(&[[4.0, 0.0], [3.0, -1.0], [2.9, 0.0], [-9.0, -9.0], [f64::NAN, -9.0]]).mapv(T::narrow);
    let phi = map.features(Side::X, &x).unwrap();
    assert_eq!(clamped(&x), 3);
    assert_eq!([0, 1, 2, 3, 4].map(|i| clamped(&x.slice(s![i..=i, ..]).to_owned())), [0, 0, 1, 2, 0]);
    assert_eq!(clamped(&Array2::zeros((0, 2))), 0);
    assert!(phi.mantissas().slice(s![..4, ..]).iter().all(|v| *v > T::zero()));
    // Clamped points have the features of the points that they are clamped to.
    let inside = arr2(&[[3.0, 0.0], [3.0, -1.0]]).mapv(T::narrow);
    assert_eq!(clamped(&inside), 0);
    let inside = map.features(Side::X, &inside).unwrap();
    assert_eq!(phi.mantissas().slice(s![2..4, ..]), inside.mantissas());
    assert_eq!(phi.log_scales().slice(s![2..4, ..]), inside.log_scales());
    // A lengthscale for each coordinate: 4 and 2 are inside from 6 and −1 on.
    let x = arr2(&[[6.0, -1.0], [5.9, -1.1]]).mapv(T::narrow);
    assert_eq!(shift.clamped(&x, &vec![4.0, 2.0].into()).unwrap(), 2);
    // Any layout.
    let many = Array2::from_shape_fn((2, 5000).f(), |(_, i)| T::narrow(if i % 2 == 0 { -9.0 } else { 9.0 }));
    assert_eq!(clamped(&many.t().to_owned()), 5000);
    assert_eq!(shift.clamped(&many.t(), &two).unwrap(), 5000);
}

#[test]
fn clamped_coordinates_are_counted() {
    clamped_are_counted::<f32>();
    clamped_are_counted::<f64>();
    // The softmax factor is that of the point itself, clamped or not.
    let shift = Shift::new(vec![1.0, -1.0], 0.5).unwrap();
    let omega = Name::Poisson.draw(2, 4, 1);
    let mechanism = Poisson::default().shifted(shift.clone());
    let softmax = mechanism.clone().softmax::<f64>(omega.clone()).unwrap();
    let gaussian = mechanism.clone().gaussian::<f64>(omega.clone(), 1.0).unwrap();
    let x = arr2(&[[-2.0, 3.0]]);
    let scale = |map: &Map<f64>| map.features(Side::X, &x).unwrap().log_scales()[[0, 0]];
    assert!((scale(&softmax) - scale(&gaussian) - 6.5).abs() < 1e-14);
    assert_ne!(softmax.identity(), Poisson::default().softmax::<f64>(omega).unwrap().identity());
    assert_eq!(mechanism.shift(), Some(&shift));
    assert_eq!((shift.by(), shift.least()), ([1.0, -1.0].as_slice(), 0.5));
}

#[test]
fn shifted_statistics_are_those_of_shifted_points() {
    let x = points::<f64>(100, 3, 2.0);
    let statistics = Statistics::of(&x).unwrap();
    let shift = PairStatistics::new(&statistics, &statistics).unwrap().shift(0.1).unwrap();
    let (own, direct) = (statistics.shifted(&shift).unwrap(), Statistics::of(&(&x - &arr1(&shift))).unwrap());
    let numbers = |s: &Statistics| {
        let all = [s.mean(), s.variance(), s.mean_squares(), s.mean_magnitudes(), s.min(), s.max()];
        all.into_iter().flat_map(Result::unwrap).collect::<Vec<_>>()
    };
    assert!(numbers(&own).iter().zip(numbers(&direct)).all(|(a, b)| (a - b).abs() < 1e-13));
    assert!(matches!(statistics.shifted(&[0.0; 2]), Err(Error::Shape { .. })));
    assert!(matches!(statistics.shifted(&[-3.0, -3.0, 0.0]), Err(Error::Entry { row: 2, .. })));
    assert!(matches!(statistics.shifted(&[f64::NAN, -3.0, -3.0]), Err(Error::Entry { row: 0, .. })));
    assert!(matches!(statistics.shifted(&[-1e200, -3.0, -3.0]), Err(Error::Entry { row: 0, .. })));
    assert!(matches!(Statistics::new(1).unwrap().shifted(&[0.0]), Err(Error::NoData { .. })));
}

/// Data that are all 0: the planned λ and p are at their clamps, and the kernel, which is 1, comes out.
#[test]
fn degenerate_data() {
    let zeros = Array2::<f64>::zeros((4, 3));
    let statistics = Statistics::of(&zeros).unwrap();
    let pairs = PairStatistics::new(&statistics, &statistics).unwrap();
    let omega = Counts::poisson(3, 20, pairs.poisson(), rng(1).next_u64()).unwrap();
    let poisson = Poisson::default().softmax::<f64>(omega).unwrap().gram(&zeros, &zeros).unwrap();
    let omega = Counts::geometric(3, 20, pairs.geometric(), rng(1).next_u64()).unwrap();
    let geometric = Geometric::default().softmax::<f64>(omega).unwrap().gram(&zeros, &zeros).unwrap();
    assert!(poisson.iter().chain(&geometric).all(|v| (v - 1.0).abs() < 1e-11));
    // A λ that draws nothing but zeros for points that are not 0 is finite, too.
    let omega = Counts::poisson(3, 20, 1e-300, rng(1).next_u64()).unwrap();
    let x = points::<f32>(4, 3, 1.0);
    assert!(Poisson::default().softmax(omega).unwrap().gram(&x, &x).unwrap().iter().all(|v| *v == 1.0));
}

/// A geometric count may exceed any bound; it saturates where `f64` stops being exact.
#[test]
fn geometric_counts_saturate() {
    let omega = Counts::geometric(2, 2, 1e-300, rng(1).next_u64()).unwrap();
    assert!(omega.rows().iter().all(|count| *count == 1 << 53));
    let phi =
        Geometric::default().softmax::<f32>(omega).unwrap().features(Side::X, &arr2(&[[0.5, 2.0]])).unwrap();
    assert!(phi.mantissas().iter().all(|v| v.is_finite()) && phi.log_scales()[[0, 0]].is_finite());
}

/// A recipe holds all that a map is made of: the map comes back to the bit, and what is wrong is refused.
#[test]
fn recipes_make_the_same_map() {
    let x = mixed::<f32>(10, 3, 1.0);
    let omega = Name::PoissonPerDimension.draw(3, 7, 2);
    let map = Poisson::default().gaussian::<f32>(omega, vec![0.5, 1.0, 2.0]).unwrap();
    let Some(Recipe::Plain(recipe)) = map.recipe() else { panic!("not a plain map") };
    let read = recipe.build::<f32>().unwrap();
    assert_eq!(read.features(Side::X, &x).unwrap(), map.features(Side::X, &x).unwrap());
    assert_eq!((read.identity(), read.recipe()), (map.identity(), map.recipe()));
    // Another map on the same counts.
    let other = changed(&recipe, |plain| plain.mechanism = Geometric::default().into());
    let error = other.build::<f32>().unwrap_err().to_string();
    assert!(error.contains("Poisson") && error.contains("geometric"), "{error}");
    assert_ne!(Recipe::Plain(other).identity(), map.identity());

    let shift = Shift::new(vec![-1.0, -1.5, 0.3], 1e-8).unwrap();
    let mechanism = Geometric::default().shifted(shift.clone());
    let map = mechanism.clone().softmax::<f32>(Name::Geometric.draw(3, 7, 2)).unwrap();
    let Some(Recipe::Plain(recipe)) = map.recipe() else { panic!("not a plain map") };
    assert_eq!(recipe.mechanism, mechanism.into());
    let read = recipe.build::<f32>().unwrap();
    assert_eq!(read.features(Side::X, &x).unwrap(), map.features(Side::X, &x).unwrap());
    assert_eq!(read.identity(), map.identity());
    let refused = |mechanism: Geometric| {
        changed(&recipe, |plain| plain.mechanism = mechanism.into()).build::<f32>().is_err()
    };
    assert!(refused(Geometric::with_p(1.5)));
    assert!(refused(Geometric::default().shifted(Shift::new(vec![1.0], 1e-8).unwrap())));

    // To be drawn: one map for each seed, with the law of the draw.
    let draw = DrawCounts::new(3, 7, CountLaw::Poisson(0.4.into())).unwrap();
    let recipe = Poisson::default().recipe(draw, softmax());
    assert!(matches!(recipe.build::<f32>(), Err(Error::NotDrawn)));
    let map = recipe.draw::<f32>(2).unwrap();
    assert_eq!(map.identity(), recipe.draw::<f32>(2).unwrap().identity());
    assert_ne!(map.identity(), recipe.draw::<f32>(3).unwrap().identity());
    assert!(map.kernel().is_some());
}

/// A kernel is named only where the counts have the law of the map.
#[test]
fn kernels_are_known_where_the_law_fits() {
    let poisson = || Counts::poisson(2, 5, 0.5, rng(1).next_u64()).unwrap();
    let geometric = || Counts::geometric(2, 5, 0.9, rng(1).next_u64()).unwrap();
    let known = |map: Result<Map<f32>, Error>| map.unwrap().kernel().is_some();
    assert!(known(Poisson::default().softmax(poisson())));
    assert!(known(Poisson::with_rates(0.5).gaussian(poisson(), 2.0)));
    assert!(known(Poisson::with_rates(vec![0.5, 0.5]).softmax(poisson())));
    assert!(!known(Poisson::with_rates(3.0).softmax(poisson())));
    assert!(!known(Poisson::with_rates(3.0).gaussian(poisson(), 1.0)));
    assert!(!known(Poisson::with_rates(vec![0.5, 0.6]).softmax(poisson())));
    assert!(!known(Poisson::with_rates(0.5).softmax(geometric())));
    assert!(known(Geometric::default().softmax(geometric())));
    assert!(known(Geometric::with_p(0.9).gaussian(geometric(), 2.0)));
    assert!(!known(Geometric::with_p(0.3).softmax(geometric())));
    assert!(!known(Geometric::with_p(0.5).softmax(poisson())));
    // A shift changes neither.
    let shift = Shift::new(vec![-3.0, -3.0], 1e-3).unwrap();
    assert!(known(Poisson::default().shifted(shift.clone()).gaussian(poisson(), 1.0)));
    assert!(!known(Poisson::with_rates(3.0).shifted(shift.clone()).gaussian(poisson(), 1.0)));
    assert!(!known(Geometric::with_p(0.3).shifted(shift).softmax(geometric())));
}

/// Features, estimates and counts of clamped coordinates are the same in both precisions.
#[test]
fn shifts_in_both_precisions() {
    let x = mixed::<f32>(40, 3, 1.0);
    let wide = x.mapv(f64::from);
    let lengthscale = vec![0.5, 1.0, 2.0];
    // Some coordinates are clamped, most are not.
    let shift = Shift::new(vec![-1.2, -0.8, -0.6], EPSILON).unwrap();
    let clamped = shift.clamped(&x, &lengthscale.clone().into()).unwrap();
    assert_eq!(clamped, shift.clamped(&wide, &lengthscale.clone().into()).unwrap());
    assert!((5..60).contains(&clamped), "{clamped}");
    let targets: [AnyKernel; 2] =
        [Softmax::new(lengthscale.clone()).unwrap().into(), Gaussian::new(lengthscale).unwrap().into()];
    for name in NAMES {
        for target in targets.clone() {
            let make = || name.draw(3, 25, 8);
            let single = name.shifted::<f32>(make(), target.clone(), shift.by().to_vec());
            let double = name.shifted::<f64>(make(), target.clone(), shift.by().to_vec());
            assert!(single.facts().non_negative && double.facts().non_negative);
            let (a, b) = (single.gram(&x, &x).unwrap(), double.gram(&wide, &wide).unwrap());
            for (a, b) in a.iter().zip(&b) {
                assert!(*a > 0.0 && (f64::from(*a) / b - 1.0).abs() < 3e-4, "{name:?}: {a} and {b}");
            }
            let squared = |i: usize| double.log_variance(&wide.row(i), &wide.row(i)).unwrap().unwrap();
            assert!((0..40).all(|i| squared(i).is_finite()));
        }
    }
}

/// A draw of rates or a p outside the domain is refused when it is made; where a field was set to NaN later, the draw is equal to
/// itself, can be printed, and makes no map.
#[test]
fn laws_outside_their_domain_are_refused_when_they_are_made() {
    for wrong in [f64::NAN, 0.0, -1.0, f64::INFINITY, 2e15] {
        let laws = [Rates::Same(wrong), Rates::PerDimension(vec![0.3, wrong, 0.3, 0.3])];
        for law in laws.map(CountLaw::Poisson) {
            assert!(matches!(DrawCounts::new(4, 5, law), Err(Error::Parameter { .. })), "{wrong}");
        }
    }
    for wrong in [f64::NAN, 0.0, 1.0, -0.5] {
        assert!(matches!(DrawCounts::new(4, 5, CountLaw::Geometric(wrong)), Err(Error::Parameter { .. })));
    }
    let few = CountLaw::Poisson(vec![0.3; 3].into());
    assert!(matches!(DrawCounts::new(4, 5, few), Err(Error::Shape { .. })));
    // As many dimensions as there can be, without a look at each.
    assert!(DrawCounts::new(usize::MAX, 5, CountLaw::Poisson(0.3.into())).is_ok());

    let mut draw = DrawCounts::new(4, 5, CountLaw::Poisson(0.3.into())).unwrap();
    draw.law = CountLaw::Poisson(Rates::Same(f64::NAN));
    let recipe = Poisson::default().recipe(draw, softmax());
    assert!(recipe.build::<f64>().is_err() && recipe.draw::<f64>(1).is_err() && recipe.kernel().is_none());
    assert_eq!(recipe.draws().len(), 1);
    let sum = Hybrid::sum(vec![(Coefficient::constant(0.5).unwrap(), recipe.clone())], recipe);
    assert!(sum.and_then(|sum: Recipe| sum.build::<f64>()).is_err());
}
