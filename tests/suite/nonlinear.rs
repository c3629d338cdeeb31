//! Sign features, features f(ω·x) + ε and elu + 1: their definitions, their kernels, and what every map
//! promises.

use crate::common::{
    Sample, at_pairs, changed, couplings_from_two_dimensions, features, frequencies, normal_cdf, point,
    points, shifted,
};
use ndarray::{Array1, Array2, arr1, s};
use random_features::extend::Coupling;
use random_features::frequency::{Antithetic, Frequencies, Independent, Orthogonal, Simplex};
use random_features::kernel::{Activation, ActivationKernel, Angular, Kernel, angle};
use random_features::map::AnyKernel;
use random_features::recipe::{Draw, Omega};
use random_features::workbench::{RootDim, draw_with};
use random_features::{EluPlusOne, Error, Map, Nonlinear, Real, Recipe, Side, Sign, rng};

const WITHOUT_KERNEL: [Activation; 3] = [Activation::Gelu, Activation::Sigmoid, Activation::Tanh];
const OFFSETS: [f64; 3] = [0.0, 0.25, -1e3];

/// f, from its definition.
fn value(f: Activation, u: f64) -> f64 {
    match f {
        Activation::Identity => u,
        Activation::Square => u * u,
        Activation::Exp => u.exp(),
        Activation::Cos => u.cos(),
        Activation::Sin => u.sin(),
        Activation::Sign => {
            if u < 0.0 {
                -1.0
            } else {
                1.0
            }
        }
        Activation::Step => {
            if u < 0.0 {
                0.0
            } else if u > 0.0 {
                1.0
            } else {
                0.5
            }
        }
        Activation::Erf => libm::erf(u),
        Activation::Relu => u.max(0.0),
        Activation::ReluSquared => u.max(0.0).powi(2),
        Activation::Abs => u.abs(),
        Activation::Gelu => u * normal_cdf(u),
        Activation::Sigmoid => 1.0 / (1.0 + (-u).exp()),
        Activation::Tanh => u.tanh(),
        other => panic!("{other:?} has no definition here"),
    }
}

fn nonlinear<T: Real>(omega: &Frequencies, f: Activation, offset: f64) -> Map<T> {
    Nonlinear::new(f).with_offset(offset).unwrap().build(omega.clone(), 1.0).unwrap()
}

/// The features of a point from the definition, each with a bound of its error: what a projection may be off
/// by in `T`, and rounding relative to the largest feature.
fn naive<T: Real>(f: Activation, offset: f64, omega: &Frequencies, x: &[f64]) -> Vec<(f64, f64)> {
    let epsilon = T::epsilon().widen();
    let norm = |v: &mut dyn Iterator<Item = f64>| v.map(|v| v * v).sum::<f64>().sqrt();
    let length = norm(&mut x.iter().copied());
    let mean = (omega.m() as f64).sqrt();
    let feature = |row: ndarray::ArrayView1<'_, f64>| {
        let u: f64 = row.iter().zip(x).map(|(w, v)| w * v).sum();
        let error = epsilon * (x.len() + 8) as f64 * length * norm(&mut row.iter().copied());
        let around = [u - error, u + error].map(|v| (value(f, v) - value(f, u)).abs());
        ((value(f, u) + offset) / mean, around[0].max(around[1]) / mean)
    };
    let features: Vec<_> = omega.rows().rows().into_iter().map(feature).collect();
    let largest = features.iter().fold(0.0f64, |a, (v, _)| a.max(v.abs())).max(offset.abs() / mean);
    features.into_iter().map(|(v, error)| (v, error + 16.0 * epsilon * largest)).collect()
}

fn is_the_definition<T: Real>() {
    for (n, d, m) in [(1, 1, 1), (7, 3, 5), (40, 17, 70), (20, 128, 150)] {
        for norm in [0.0, 1e-8, 1e-3, 1.5, 40.0, 1e3] {
            let omega = frequencies(d, m, &Independent, 5);
            let x = points::<T>(n, d, norm / (d as f64).sqrt());
            for f in Activation::ALL {
                for offset in OFFSETS {
                    if f == Activation::Exp && norm > 10.0 {
                        continue; // Out of range; see exponents_at_any_norm.
                    }
                    let phi = nonlinear::<T>(&omega, f, offset).features(Side::X, &x).unwrap();
                    let phi = phi.to_array();
                    for (phi, x) in phi.rows().into_iter().zip(x.rows()) {
                        let x: Vec<f64> = x.iter().map(|v| v.widen()).collect();
                        for (v, (expected, error)) in phi.iter().zip(naive::<T>(f, offset, &omega, &x)) {
                            let found = (v.widen() - expected).abs();
                            assert!(found <= error, "{f:?} + {offset}, norm {norm}: {v} not {expected}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn features_are_the_definition() {
    is_the_definition::<f32>();
    is_the_definition::<f64>();
}

fn sign_is_the_definition<T: Real>() {
    let omega = frequencies(5, 30, &Orthogonal, 2);
    let map = Sign.build::<T>(omega.clone(), 1.0).unwrap();
    let same = nonlinear::<T>(&omega, Activation::Sign, 0.0);
    for norm in [0.0, 1e-30, 1e-8, 1.0, 1e3, 1e30] {
        let x = points::<T>(20, 5, norm);
        let phi = map.features(Side::X, &x).unwrap();
        assert!(phi.mantissas().iter().all(|v| v.abs() == T::one()));
        assert!(phi.log_scales().iter().all(|s| *s == -0.5 * 30f64.ln()));
        assert_eq!(phi.mantissas(), same.features(Side::X, &x).unwrap().mantissas());
        let unit = map.features(Side::X, &points::<T>(20, 5, 1.0)).unwrap();
        let zero = map.features(Side::X, &Array2::zeros((20, 5))).unwrap();
        assert!(zero.mantissas().iter().all(|v| *v == T::one()));
        // The length of a point does not matter.
        assert_eq!(phi, if norm == 0.0 { zero } else { unit });
    }
    let x = point::<T>(5, 1, 3.0);
    assert_eq!(map.estimate(&x, &x.mapv(|v| v + v)).unwrap(), T::one());
    assert_eq!(map.estimate(&x, &x.mapv(|v| -v)).unwrap(), -T::one());
}

#[test]
fn sign_features_are_the_definition() {
    sign_is_the_definition::<f32>();
    sign_is_the_definition::<f64>();
}

/// At norms of 1e30 and 1e-30, where f itself leaves the range of `f32`: scaling points by a power of two
/// changes the scale alone.
fn homogeneous<T: Real>() {
    let degrees = [
        (Activation::Identity, 1.0),
        (Activation::Abs, 1.0),
        (Activation::Relu, 1.0),
        (Activation::Square, 2.0),
        (Activation::ReluSquared, 2.0),
    ];
    let x = points::<T>(50, 7, 1.0);
    for (f, degree) in degrees {
        for coupling in couplings_from_two_dimensions() {
            let map = nonlinear::<T>(&frequencies(7, 20, coupling.as_ref(), 3), f, 0.0);
            let phi = map.features(Side::X, &x).unwrap();
            for power in [100, -100] {
                let factor = T::narrow(2f64.powi(power));
                let scaled = map.features(Side::X, &x.mapv(|v| v * factor)).unwrap();
                assert_eq!(scaled.mantissas(), phi.mantissas(), "{f:?}");
                let shift = degree * f64::from(power) * std::f64::consts::LN_2;
                let scales = scaled.log_scales().to_owned() - phi.log_scales();
                assert!(scales.iter().all(|s| (s - shift).abs() < 1e-12));
            }
        }
    }
    // With an ε that is lost beside the largest value, but not where f is 0.
    let omega = frequencies(7, 20, &Independent, 3);
    let map = nonlinear::<f64>(&omega, Activation::ReluSquared, 1e-3);
    let phi = map.features(Side::X, &points(10, 7, 1e30)).unwrap();
    let least = phi.to_array().iter().fold(f64::INFINITY, |a, v| a.min(*v));
    assert!((least * 20f64.sqrt() / 1e-3 - 1.0).abs() < 1e-12, "{least}");
}

#[test]
fn any_norm_is_a_scale() {
    homogeneous::<f32>();
    homogeneous::<f64>();
}

fn is_finite_at<T: Real>(norm: f64) {
    let (omega, x) = (frequencies(6, 33, &Independent, 1), points::<T>(30, 6, norm));
    for f in Activation::ALL {
        for offset in [0.0, 1e-3, -2.0, 1e300, 5e-324] {
            let phi = nonlinear::<T>(&omega, f, offset).features(Side::X, &x).unwrap();
            assert!(phi.mantissas().iter().all(|v| v.abs() <= T::one()), "{f:?} + {offset} at {norm}");
            assert!(phi.log_scales().iter().all(|s| s.is_finite()), "{f:?} + {offset} at {norm}");
            if offset == 1e300 && norm < 1e3 {
                let log = phi.log_scales()[[0, 0]] + phi.mantissas()[[0, 0]].widen().ln() + 0.5 * 33f64.ln();
                assert!((log - 1e300f64.ln()).abs() < 1e-6, "{f:?}: {log}");
            }
        }
    }
}

#[test]
fn features_are_finite_at_any_norm() {
    for norm in [0.0, 1e-30, 1e-8, 1.0, 1e3, 1e30, 1e37] {
        is_finite_at::<f32>(norm);
        is_finite_at::<f64>(norm);
    }
    is_finite_at::<f64>(1e150);
}

/// Estimates of the exponential kernel far beyond the range of `f32`, and far below: the log-sum-exp of the
/// projections.
#[test]
fn exponents_at_any_norm() {
    let omega = frequencies(6, 40, &Orthogonal, 2);
    let map = nonlinear::<f32>(&omega, Activation::Exp, 0.0);
    for (norm, sign) in [(1.0, 1.0), (1e3, 1.0), (1e3, -1.0)] {
        let (x, y) = (point::<f32>(6, 1, norm), point::<f32>(6, 1, norm) * sign);
        let z = (&x + &y).mapv(f64::from);
        let terms: Vec<f64> = omega.rows().dot(&z).to_vec();
        let top = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let exact = top + (terms.iter().map(|t| (t - top).exp()).sum::<f64>() / 40.0).ln();
        let log = map.log_estimate(&x, &y).unwrap();
        assert!((log.ln_abs - exact).abs() < 1e-5 * norm.max(1.0), "{log:?} {exact}");
        let phi = map.features_of(Side::X, &x).unwrap();
        assert!(phi.mantissas().iter().all(|v| *v <= 1.0) && phi.log_scales()[[0, 0]].is_finite());
    }
    // Scaled features cannot resolve it, exponents can.
    let x = point::<f32>(6, 1, 200.0).insert_axis(ndarray::Axis(0));
    assert!((map.gram(&x, &-&x).unwrap()[[0, 0]] - 1.0).abs() < 1e-3);
}

/// All maps of this file by shape.
fn every<T: Real>(check: impl Fn(&Map<T>, &Array2<T>)) {
    for (n, d, m) in [(1, 1, 1), (7, 3, 5), (150, 17, 40), (300, 64, 130)] {
        let omega = frequencies(d, m, &Orthogonal, 5);
        let x = points::<T>(n, d, 1.5 / (d as f64).sqrt());
        check(&Sign.build(omega.clone(), 1.0).unwrap(), &x);
        check(&EluPlusOne.build(d, 0.5).unwrap(), &x);
        for f in Activation::ALL {
            check(&Nonlinear::new(f).build(omega.clone(), 1.0).unwrap(), &x);
            // An offset is added to values, whatever the size: of the largest maps one has it.
            if n < 300 || f == Activation::Relu {
                check(&nonlinear(&omega, f, 0.5), &x);
            }
        }
    }
}

fn keeps_promises<T: Real>(map: &Map<T>, x: &Array2<T>) {
    let (n, d) = x.dim();
    random_features::testing::conform(map, x).unwrap();
    assert!(map.facts().symmetric);
    let batch = features(map, x.view());

    // Rows that are not numbers affect no other.
    if n > 3 {
        let mut spoilt = x.clone();
        spoilt[[1, d - 1]] = T::nan();
        spoilt[[2, 0]] = T::neg_infinity();
        let phi = features(map, spoilt.view());
        for i in [1, 2] {
            assert!(phi.mantissas().row(i).iter().all(|v| v.is_nan()) && phi.log_scales()[[i, 0]].is_nan());
        }
        assert_eq!(phi.mantissas().slice(s![3.., ..]), batch.mantissas().slice(s![3.., ..]));
        assert_eq!(phi.mantissas().row(0), batch.mantissas().row(0));
    }
}

#[test]
fn maps_keep_their_promises() {
    every::<f32>(keeps_promises);
    every::<f64>(keeps_promises);
}

/// A z-score beyond it has probability 7e-6, and there are fewer than 140: false alarms below 1e-3.
const LIMIT: f64 = 4.5;

/// Estimates and their squared errors over many draws of seven frequencies: odd, and more than one block with a partial one. Each draw is
/// seen at pairs whose coordinates are shifted.
fn estimates(
    draws: u64,
    coupling: &dyn Coupling,
    map: impl Fn(Frequencies) -> Map<f64>,
    (x, y): (&Array1<f64>, &Array1<f64>),
    exact: f64,
) -> (Sample, Sample) {
    let make = |seed| map(frequencies(x.len(), 7, coupling, seed));
    at_pairs(draws, make, (&shifted(x, 1), &shifted(y, 1)), exact)
}

#[test]
fn unbiased_where_there_is_a_kernel() {
    let (x, y) = (point::<f64>(4, 1, 0.6), point::<f64>(4, 5, 0.9));
    let couplings: [&dyn Coupling; 3] = [&Independent, &Orthogonal, &Simplex::default()];
    for coupling in couplings {
        for f in Activation::ALL.into_iter().filter(|f| f.kernel().is_some()) {
            for (offset, scale) in [(0.0, 1.0), (-0.4, 1.7)] {
                let make = |omega| -> Map<f64> {
                    Nonlinear::new(f).with_offset(offset).unwrap().build(omega, scale).unwrap()
                };
                let map = make(frequencies(4, 7, coupling, 0));
                let exact = map.kernel().unwrap().value(&x, &y).unwrap();
                let (mean, _) = estimates(4_000, coupling, make, (&x, &y), exact);
                let z = mean.z(exact);
                assert!(z.abs() < LIMIT, "{f:?} + {offset}, {coupling:?}: {} of {exact}, z {z}", mean.mean);
                // The test has teeth: 7 % of the size of a product of features would be seen.
                let size = [&x, &y].map(|v| map.kernel().unwrap().value(v, v).unwrap());
                assert!(LIMIT * mean.error < 0.07 * (size[0] * size[1]).sqrt(), "{f:?}: too few draws");
            }
        }
        let make = |omega| -> Map<f64> { Sign.build(omega, 1.0).unwrap() };
        let exact: f64 = Angular.value(&x, &y).unwrap();
        let (mean, _) = estimates(8_000, coupling, make, (&x, &y), exact);
        assert!(mean.z(exact).abs() < LIMIT && exact.abs() > 0.1, "{} of {exact}", mean.mean);
    }
}

#[test]
fn of_the_closed_form_variance() {
    use Activation::{Abs, Cos, Exp, Identity, Relu, ReluSquared, Sin, Square, Step};
    let (x, y) = (point::<f64>(4, 1, 0.6), point::<f64>(4, 5, 0.9));
    let mut closed = Vec::new();
    let couplings: [&dyn Coupling; 4] =
        [&Independent, &Antithetic(Independent), &Orthogonal, &Simplex::default()];
    for f in Activation::ALL {
        for (coupling, offset) in couplings.into_iter().map(|c| (c, 0.0)).chain([(couplings[0], 0.3)]) {
            let make = |omega| -> Map<f64> {
                Nonlinear::new(f).with_offset(offset).unwrap().build(omega, 1.2).unwrap()
            };
            let map = make(frequencies(4, 7, coupling, 0));
            let Some(log) = map.log_variance(&x, &y).unwrap() else { continue };
            closed.push(f);
            let exact = map.kernel().unwrap().value(&x, &y).unwrap();
            // Eighth powers of normal numbers, and exponentials, need more draws to show a tenth of a variance.
            let draws = if matches!(f, Exp | Square | ReluSquared) { 25_000 } else { 6_000 };
            let (_, mse) = estimates(draws, coupling, make, (&x, &y), exact);
            let z = mse.z(log.exp());
            let case = format!("{f:?} + {offset}, {coupling:?}");
            assert!(z.abs() < LIMIT, "{case}: MSE {} of {}, z {z}", mse.mean, log.exp());
            assert!(mse.error < 0.1 * mse.mean / 3.0, "{case}: too few draws, {}", mse.error);
        }
    }
    // Independent rows and pairs; exp, u and u² under any angles; an offset for five.
    let times = |f: Activation| match f {
        Exp => 4,
        Identity | Square => 5,
        Abs | Step | Relu => 3,
        _ => 2,
    };
    let all = [Identity, Square, Exp, Cos, Sin, Activation::Sign, Step, Relu, ReluSquared, Abs];
    assert_eq!(closed, all.into_iter().flat_map(|f| vec![f; times(f)]).collect::<Vec<_>>());
}

/// Nodes a = ω·x and b = ω·y at norms X and Y and angle θ, and their weights, of a quadrature in polar coordinates, cut where a or b
/// changes sign.
fn nodes(norms: [f64; 2], theta: f64) -> Vec<[f64; 3]> {
    use std::f64::consts::PI;
    let mut cuts = [-0.5 * PI, theta - 0.5 * PI, 0.5 * PI, theta + 0.5 * PI, 1.5 * PI];
    cuts.sort_by(f64::total_cmp);
    // The tanh-sinh rule: x = tanh(π/2 sinh t) at equidistant t.
    let rule = |from: f64, to: f64| {
        let node = move |k: i32| {
            let t = f64::from(k) / 20.0;
            let (u, slope) = (0.5 * PI * t.sinh(), 0.5 * PI * t.cosh() / 20.0);
            let half = 0.5 * (to - from);
            (0.5 * (from + to) + half * u.tanh(), half * slope / u.cosh().powi(2))
        };
        (-62..=62).map(node)
    };
    let radii: Vec<(f64, f64)> =
        rule(0.0, 16.0).map(|(r, w)| (r, w * r * (-0.5 * r * r).exp() / (2.0 * PI))).collect();
    let angles = cuts.windows(2).flat_map(|ends| rule(ends[0], ends[1]));
    let ray = |(phi, w): (f64, f64)| {
        let (a, b) = (norms[0] * phi.cos(), norms[1] * (phi - theta).cos());
        radii.iter().map(move |(r, v)| [r * a, r * b, w * v])
    };
    angles.flat_map(ray).collect()
}

/// E g(a, b) by a quadrature.
fn expectation(nodes: &[[f64; 3]], g: impl Fn(f64, f64) -> f64) -> f64 {
    nodes.iter().map(|[a, b, weight]| weight * g(*a, *b)).sum()
}

#[test]
fn kernels_and_variances_are_their_integrals() {
    let (omega, two) = (frequencies(2, 1, &Independent, 1), frequencies(2, 2, &Antithetic(Independent), 1));
    for norms in [[0.6, 0.9], [1.1, 0.2], [1e-3, 0.7]] {
        for theta in [0.01, 0.8, 1.7, 3.1f64] {
            let (x, y) = (arr1(&[norms[0], 0.0]), arr1(&[theta.cos(), theta.sin()]) * norms[1]);
            let nodes = nodes(norms, theta);
            for f in Activation::ALL {
                for offset in [0.0, 0.7, -0.2] {
                    let map = nonlinear::<f64>(&omega, f, offset);
                    let Some(kernel) = map.kernel() else { continue };
                    let g = |a: f64, b: f64| (value(f, a) + offset) * (value(f, b) + offset);
                    let (mean, exact) = (expectation(&nodes, g), kernel.value(&x, &y).unwrap());
                    let square = expectation(&nodes, |a, b| g(a, b).powi(2));
                    let case = format!("{f:?} + {offset} at {norms:?}, {theta}");
                    assert!((mean - exact).abs() < 1e-10 * square.sqrt(), "{case}: {exact} not {mean}");
                    if let Some(log) = map.log_variance(&x, &y).unwrap() {
                        let variance = square - mean * mean;
                        let found = (log.exp() - variance).abs();
                        assert!(found < 1e-10 * square, "{case}: {} not {variance}", log.exp());
                    }
                    if let Some(log) = nonlinear::<f64>(&two, f, offset).log_variance(&x, &y).unwrap() {
                        let pair = |a: f64, b: f64| (0.5 * (g(a, b) + g(-a, -b))).powi(2);
                        let variance = expectation(&nodes, pair) - mean * mean;
                        let found = (log.exp() - variance).abs();
                        assert!(found < 1e-10 * square, "{case}, a pair: {} not {variance}", log.exp());
                    }
                }
            }
        }
    }
}

#[test]
fn variances_of_signs() {
    let (x, y, zero) = (arr1(&[1.0, 0.0]), arr1(&[1.0, 1.0]), arr1(&[0.0, 0.0]));
    let map = |coupling: &dyn Coupling, radii: &dyn random_features::extend::Radii| {
        Sign.build::<f64>(draw_with(2, 5, coupling, radii, rng(1).next_u64()).unwrap(), 1.0).unwrap()
    };
    let sign = map(&Independent, &RootDim);
    let variance = |x: &Array1<f64>, y: &Array1<f64>| sign.log_variance(x, y).unwrap().unwrap().exp();
    assert!((variance(&x, &y) - 0.75 / 5.0).abs() < 1e-15, "1 − (1 − 2/4)²");
    assert!((variance(&x, &zero) - 0.2).abs() < 1e-15);
    assert_eq!([variance(&x, &x), variance(&y, &-&y), variance(&zero, &zero)], [0.0; 3]);
    // Near θ = π nothing cancels: 4(1 − t)/m with 1 − t = 1e-9/π.
    let near = variance(&x, &arr1(&[-1.0, 1e-9]));
    assert!((near * 5.0 / 4e-9 * std::f64::consts::PI - 1.0).abs() < 1e-9, "{near}");
    assert_eq!(map(&Orthogonal, &RootDim).log_variance(&x, &y).unwrap(), None);
    // The angular kernel is that of any radii, but nothing is known of frequencies whose law is not stated.
    assert!(sign.kernel().is_some());
    let Some(Recipe::Plain(recipe)) = sign.recipe() else { panic!("{sign:?}") };
    let Omega::Frequencies(omega) = recipe.omega else { panic!("{sign:?}") };
    let own = Frequencies::from_rows(omega.rows().into_owned()).unwrap();
    assert!(Sign.build::<f64>(own, 1.0).unwrap().kernel().is_none());
    // Four of five are pairs: three independent terms of weights 2, 2 and 1.
    let paired = map(&Antithetic(Independent), &RootDim).log_variance(&x, &y).unwrap().unwrap().exp();
    assert!((paired - 0.75 * 9.0 / 25.0).abs() < 1e-15);

    // Between 0 and another point pairs cancel, and the row that is left alone has all the variance.
    let antithetic = map(&Antithetic(Independent), &RootDim);
    assert!((antithetic.log_variance(&zero, &y).unwrap().unwrap().exp() - 1.0 / 25.0).abs() < 1e-15);
    let pairs = Sign.build::<f64>(frequencies(2, 4, &Antithetic(Independent), 1), 1.0).unwrap();
    assert_eq!(pairs.estimate(&zero, &y).unwrap(), 0.0);
    assert_eq!(pairs.log_variance(&zero, &y).unwrap(), Some(f64::NEG_INFINITY));
    // The step of 0 is ½, and a pair's steps add up to 1.
    let steps =
        Nonlinear::new(Activation::Step).build::<f64>(frequencies(2, 4, &Antithetic(Independent), 1), 1.0);
    let steps = steps.unwrap();
    assert!((steps.estimate(&zero, &y).unwrap() - 0.25).abs() < 1e-15);
    assert_eq!(steps.log_variance(&zero, &y).unwrap(), Some(f64::NEG_INFINITY));

    let step =
        Nonlinear::new(Activation::Step).build::<f64>(frequencies(2, 5, &Independent, 1), 1.0).unwrap();
    let variance = |x: &Array1<f64>, y: &Array1<f64>| step.log_variance(x, y).unwrap().unwrap().exp();
    assert!((variance(&x, &zero) - 0.0625 / 5.0).abs() < 1e-15);
    assert_eq!(variance(&zero, &zero), 0.0);
    assert!((step.estimate(&zero, &zero).unwrap() - 0.25).abs() < 1e-15);
    for f in Activation::ALL {
        let map = Nonlinear::new(f).build::<f64>(frequencies(2, 5, &Independent, 1), 1.0).unwrap();
        if let (Some(log), false) =
            (map.log_variance(&zero, &x).unwrap(), matches!(f, Activation::Sign | Activation::Step))
        {
            let at_zero = value(f, 0.0);
            assert!(if at_zero == 0.0 { log == f64::NEG_INFINITY } else { log.is_finite() }, "{f:?}: {log}");
        }
    }
}

/// With ε the variance at points that are 0, where a step is ½.
#[test]
fn variances_with_an_offset_at_zero() {
    let (x, zero) = (arr1(&[0.6, 0.8]), arr1(&[0.0, 0.0]));
    let omega = frequencies(2, 1, &Independent, 1);
    let offset = 0.3f64;
    for (f, at_zero, spread) in [
        (Activation::Identity, 0.0, 1.0),
        (Activation::Square, 0.0, 2.0),
        (Activation::Abs, 0.0, 1.0 - 2.0 / std::f64::consts::PI),
        (Activation::Step, 0.5, 0.25),
        (Activation::Relu, 0.0, 0.5 - 0.5 / std::f64::consts::PI),
    ] {
        let map = nonlinear::<f64>(&omega, f, offset);
        let expected = (at_zero + offset).powi(2) * spread;
        for (a, b) in [(&x, &zero), (&zero, &x)] {
            let found = map.log_variance(a, b).unwrap().unwrap().exp();
            assert!((found - expected).abs() < 1e-15, "{f:?}: {found} not {expected}");
        }
        let found = map.log_variance(&zero, &zero).unwrap().unwrap().exp();
        assert!(found < 1e-16, "{f:?}: {found}");
    }
}

#[test]
fn kernels_and_closed_forms_are_known_where_they_are() {
    let (x, y) = (point::<f64>(4, 1, 0.6), point::<f64>(4, 5, 0.9));
    let omega = frequencies(4, 7, &Independent, 1);
    for f in Activation::ALL {
        let map = Nonlinear::new(f).build::<f64>(omega.clone(), 1.0).unwrap();
        assert_eq!(map.kernel().is_none(), WITHOUT_KERNEL.contains(&f));
        let sphere = Independent.with_radii(RootDim).draw(4, 7, rng(1).next_u64()).unwrap();
        assert!(Nonlinear::new(f).build::<f64>(sphere, 1.0).unwrap().kernel().is_none());
        let orthogonal = Nonlinear::new(f).build::<f64>(frequencies(4, 7, &Orthogonal, 1), 1.0).unwrap();
        assert_eq!(orthogonal.kernel().is_none(), map.kernel().is_none());
        let any_angle = matches!(f, Activation::Exp | Activation::Identity | Activation::Square);
        assert_eq!(orthogonal.log_variance(&x, &y).unwrap().is_some(), any_angle);
        let moments = matches!(
            f,
            Activation::Identity | Activation::Square | Activation::Abs | Activation::Step | Activation::Relu
        );
        assert_eq!(
            nonlinear::<f64>(&omega, f, 0.1).log_variance(&x, &y).unwrap().is_some(),
            moments,
            "{f:?}"
        );
    }
    let theta = angle(x.iter().copied().zip(y.iter().copied()));
    let angular = Sign.build::<f64>(omega, 1.0).unwrap().kernel().unwrap().value(&x, &y).unwrap();
    assert!((angular - (1.0 - 2.0 * theta / std::f64::consts::PI)).abs() < 1e-15);
}

#[test]
fn offsets_make_features_non_negative() {
    let omega = frequencies(3, 400, &Independent, 1);
    let x = points::<f32>(50, 3, 3.0);
    let bounds = [
        (Activation::Relu, 0.0, true),
        (Activation::Relu, -1e-9, false),
        (Activation::Sigmoid, 0.0, true),
        (Activation::Tanh, 1.0, true),
        (Activation::Cos, 1.0 + f64::EPSILON, true),
        (Activation::Erf, 0.999, false),
        (Activation::Gelu, 0.17, true),
        (Activation::Gelu, 0.169, false),
        (Activation::Identity, 1e9, false),
    ];
    for (f, offset, non_negative) in bounds {
        let map = nonlinear::<f32>(&omega, f, offset);
        assert_eq!(map.facts().non_negative, non_negative, "{f:?} + {offset}");
        let phi = map.features(Side::X, &x).unwrap();
        assert!(!non_negative || phi.mantissas().iter().all(|v| *v >= 0.0), "{f:?} + {offset}");
    }
}

#[test]
fn identities_tell_maps_apart() {
    let omega = frequencies(3, 8, &Independent, 1);
    let mut all = vec![
        Sign.build::<f64>(omega.clone(), 1.0).unwrap().identity(),
        Sign.build::<f64>(frequencies(3, 8, &Independent, 2), 1.0).unwrap().identity(),
        EluPlusOne.build::<f64>(3, 1.0).unwrap().identity(),
        EluPlusOne.build::<f64>(3, 2.0).unwrap().identity(),
    ];
    for f in Activation::ALL {
        let identity = |offset, lengthscale: f64| {
            let mechanism = Nonlinear::new(f).with_offset(offset).unwrap();
            mechanism.build::<f64>(omega.clone(), lengthscale).unwrap().identity()
        };
        all.extend([identity(0.0, 1.0), identity(1e-3, 1.0), identity(0.0, 2.0)]);
        assert_eq!(identity(-0.0, 1.0), identity(0.0, 1.0));
    }
    assert_eq!(all.iter().collect::<std::collections::HashSet<_>>().len(), all.len());
    let x = points::<f64>(2, 3, 1.0);
    let phi = |offset| nonlinear::<f64>(&omega, Activation::Relu, offset).features(Side::X, &x).unwrap();
    assert!(matches!(phi(0.0).gram(&phi(0.1)), Err(Error::Pairing { .. })));
    assert!(phi(0.1).gram(&phi(0.1)).is_ok());
}

#[test]
fn a_lengthscale_divides_the_points() {
    let omega = frequencies(3, 8, &Independent, 3);
    let (x, scales) = (points::<f64>(10, 3, 2.0), vec![0.5, 2.0, 3.0]);
    let divided = &x / &arr1(&scales);
    for f in Activation::ALL {
        for offset in [0.0, 0.3] {
            let other = nonlinear::<f64>(&omega, f, offset);
            let mechanism = Nonlinear::new(f).with_offset(offset).unwrap();
            let one = mechanism.build::<f64>(omega.clone(), scales.clone()).unwrap();
            let (a, b) = (one.gram(&x, &x).unwrap(), other.gram(&divided, &divided).unwrap());
            let size = b.iter().fold(0.0f64, |a, v| a.max(v.abs()));
            assert!((a - b).iter().all(|v| v.abs() < 1e-13 * size));
            if let (Some(a), Some(b)) = (one.kernel(), other.kernel()) {
                let (a, b) = (a.gram(&x, &x).unwrap(), b.gram(&divided, &divided).unwrap());
                assert!((&a - &b).iter().zip(&b).all(|(v, b)| v.abs() < 1e-13 * b.abs().max(1.0)));
            }
        }
    }
}

#[test]
fn wrong_parameters_are_refused() {
    let omega = || frequencies(3, 8, &Independent, 1);
    let relu = Nonlinear::new(Activation::Relu);
    for wrong in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let error = relu.with_offset(wrong).unwrap_err().to_string();
        assert!(error.contains("offset") && error.contains("finite"), "{error}");
        assert!(Activation::Relu.kernel().unwrap().with_offset(wrong).is_err());
    }
    assert!(matches!(relu.build::<f32>(omega(), 0.0), Err(Error::Parameter { .. })));
    assert!(matches!(relu.build::<f32>(omega(), vec![1.0]), Err(Error::Shape { .. })));
    assert!(matches!(relu.build::<f32>(omega(), 1e-80), Err(Error::NotFinite { .. })));
    assert!(matches!(EluPlusOne.build::<f32>(0, 1.0), Err(Error::Parameter { .. })));
    assert!(matches!(EluPlusOne.build::<f32>(2, -1.0), Err(Error::Parameter { .. })));
    assert!(matches!(EluPlusOne.build::<f32>(2, vec![1.0; 3]), Err(Error::Shape { .. })));
    assert_eq!(Activation::ALL.map(ActivationKernel::new).iter().flatten().count(), 11);
}

fn elu_is_the_definition<T: Real>() {
    let elu = |u: f64| if u > 0.0 { 1.0 + u } else { u.exp() };
    for scale in [1.0, 0.3] {
        let map = EluPlusOne.build(4, scale).unwrap();
        for norm in [0.0, 1e-8, 1.0, 20.0, 1e3] {
            let x = points::<T>(40, 4, norm);
            let phi = map.features(Side::X, &x).unwrap().to_array();
            for (phi, x) in phi.rows().into_iter().zip(x.rows()) {
                for (v, u) in phi.iter().zip(x.iter().map(|x| x.widen() / scale)) {
                    let (v, exact) = (v.widen(), elu(u));
                    let tolerance = T::epsilon().widen() * (8.0 + 2.0 * u.abs()) * exact;
                    // Beside larger features small ones are flushed to 0.
                    let floor = T::min_positive_value().widen() * (1.0 + norm / scale);
                    assert!((v - exact).abs() <= tolerance.max(floor), "{u}: {v} not {exact}");
                }
            }
        }
    }
    let map = EluPlusOne.build(2, 1.0).unwrap();
    let huge = arr1(&[1e30, -1e30].map(T::narrow));
    let log = map.log_estimate(&huge, &huge).unwrap().ln_abs;
    assert!((log - 2.0 * huge[0].widen().ln()).abs() < 1e-4, "{log}");
    // All features below the range of T, and products of opposites.
    let (low, high) = (arr1(&[-1e3, -2e3].map(T::narrow)), arr1(&[-2e3, 1e3].map(T::narrow)));
    let log = |x: &Array1<T>, y: &Array1<T>| map.log_estimate(x, y).unwrap().ln_abs;
    assert!((log(&low, &low) + 2e3).abs() < 1e-3, "{}", log(&low, &low));
    assert!((log(&low, &high) + 2e3 - 1001f64.ln()).abs() < 1e-3, "{}", log(&low, &high));
    assert_eq!(map.features_of(Side::X, &low).unwrap().log_scales()[[0, 0]], -1e3);
    assert!(map.facts().symmetric && map.facts().non_negative && map.kernel().is_none());
    assert_eq!(map.log_variance(&low, &high).unwrap(), Some(f64::NEG_INFINITY));
}

#[test]
fn elu_plus_one_is_the_definition() {
    elu_is_the_definition::<f32>();
    elu_is_the_definition::<f64>();
}

/// A recipe holds all that a map is made of: the map comes back to the bit, and what is wrong is refused.
#[test]
fn recipes_make_the_same_map() {
    let survives = |map: &Map<f32>| {
        let recipe = map.recipe().unwrap();
        let read = recipe.build::<f32>().unwrap();
        let x = points::<f32>(10, map.dim(), 1.0);
        assert_eq!(read.features(Side::X, &x).unwrap(), map.features(Side::X, &x).unwrap());
        assert_eq!((read.identity(), read.recipe()), (map.identity(), Some(recipe)));
    };
    let omega = frequencies(3, 8, &Orthogonal, 4);
    survives(&Sign.build(omega.clone(), 1.0).unwrap());
    survives(&EluPlusOne.build(3, vec![1.0, 2.0, 3.0]).unwrap());
    for f in Activation::ALL {
        survives(&Nonlinear::new(f).build(omega.clone(), 1.0).unwrap());
        survives(&Nonlinear::new(f).with_offset(0.1).unwrap().build(omega.clone(), 2.0).unwrap());
    }
    let plain = |map: &Map<f32>| match map.recipe() {
        Some(Recipe::Plain(recipe)) => recipe,
        other => panic!("{other:?}"),
    };
    // The same frequencies with another map are another map; what does not fit them is refused.
    let tanh = plain(&nonlinear(&omega, Activation::Tanh, 0.1));
    assert_eq!(tanh.mechanism, Nonlinear::new(Activation::Tanh).with_offset(0.1).unwrap().into());
    let sign = changed(&tanh, |plain| plain.mechanism = Sign.into());
    assert_ne!(sign.build::<f32>().unwrap().identity(), tanh.build::<f32>().unwrap().identity());
    assert!(matches!(
        changed(&tanh, |plain| plain.kernel = AnyKernel::implied(-1.0)).build::<f32>(),
        Err(Error::Parameter { .. })
    ));
    assert!(changed(&tanh, |plain| plain.mechanism = EluPlusOne.into()).build::<f32>().is_err());
    assert!(changed(&tanh, |plain| plain.omega = 3.into()).build::<f32>().is_err());
    assert!(EluPlusOne.recipe(0, 1.0).build::<f32>().is_err());
    // To be drawn: one map for each seed.
    let recipe = Sign.recipe(Draw::new(3, 8, Orthogonal), 1.0);
    assert!(recipe.build::<f32>().is_err());
    assert_eq!(recipe.draw::<f32>(4).unwrap().identity(), recipe.draw::<f32>(4).unwrap().identity());
    assert_ne!(recipe.draw::<f32>(4).unwrap().identity(), recipe.draw::<f32>(5).unwrap().identity());
}

/// Where f is 0 on a whole row, what is left is ε, however small beside the numbers that f has made 0: the estimate is
/// the mean of ε², whose logarithm is 2 ln ε.
fn offsets_survive<T: Real>() {
    let rows = Array2::from_shape_fn((9, 3), |(j, k)| 0.2 + 0.1 * ((3 * j + k) % 7) as f64);
    let omega = Frequencies::from_rows(rows).unwrap();
    let zero = Array1::<T>::zeros(3);
    let negative = |norm: f64| arr1(&[-1.0, -0.4, -2.0]).mapv(|v| T::narrow(norm * v));
    // f is 0 at these points: where u = 0 or where u < 0.
    let at_zero = [
        Activation::Identity,
        Activation::Square,
        Activation::Sin,
        Activation::Erf,
        Activation::Relu,
        Activation::ReluSquared,
        Activation::Abs,
        Activation::Gelu,
        Activation::Tanh,
    ];
    let below_zero = [Activation::Step, Activation::Relu, Activation::ReluSquared];
    let cases = at_zero
        .into_iter()
        .map(|f| (f, zero.clone()))
        .chain(below_zero.into_iter().flat_map(|f| [1e-30, 1.0, 1e30].map(|norm| (f, negative(norm)))));
    for (f, x) in cases {
        for offset in [1e-50, -1e-50, 1e-3, 1e-300, 5e-324, 1e300] {
            let map = nonlinear::<T>(&omega, f, offset);
            let exact = 2.0 * f64::abs(offset).ln();
            let log = map.log_estimate(&x, &x).unwrap();
            let tolerance = 8.0 * T::epsilon().widen() + 8.0 * f64::EPSILON * exact.abs();
            assert_eq!(log.sign, 1.0, "{f:?} + {offset} at {x}");
            assert!((log.ln_abs - exact).abs() <= tolerance, "{f:?} + {offset} at {x}: {log:?} not {exact}");
            let phi = map.features_of(Side::X, &x).unwrap();
            assert!(phi.mantissas().iter().all(|v| v.abs() <= T::one() && v.widen() * offset > 0.0));
            // Against another point: ε(f(v) + ε).
            let other = nonlinear::<T>(&omega, f, offset).log_estimate(&x, &zero).unwrap();
            let at = value(f, 0.0) + offset;
            let exact = offset.abs().ln() + at.abs().ln();
            assert!(
                (other.ln_abs - exact).abs() <= 2.0 * tolerance,
                "{f:?} + {offset} at {x} and 0: {other:?}"
            );
        }
    }
    // 2 ln 1e-50, far below f32.
    let log = nonlinear::<T>(&omega, Activation::ReluSquared, 1e-50).log_estimate(&zero, &zero).unwrap();
    assert!((log.ln_abs + 230.26).abs() < 5e-3, "{log:?}");
    // In a batch, beside rows where f is not 0.
    let map = nonlinear::<T>(&omega, Activation::Relu, 1e-10);
    let x = ndarray::stack![ndarray::Axis(0), negative(1e30), -negative(1e30), zero, negative(1.0)];
    let gram = map.gram(&x, &x).unwrap();
    for (i, j) in [(0, 0), (0, 2), (2, 3), (3, 3)] {
        assert!((gram[[i, j]].widen() / 1e-20 - 1.0).abs() < 1e-5, "{}", gram[[i, j]]);
    }
    // ε f(v) = 1e-10 · 1e30 or so.
    assert!((1e18..1e22).contains(&gram[[0, 1]].widen()) && gram[[0, 1]] == gram[[1, 0]]);
}

#[test]
fn an_offset_is_never_lost_where_f_is_zero() {
    offsets_survive::<f32>();
    offsets_survive::<f64>();
}
