//! Any shape, any norm, any rubbish: results are finite, or an error, or what the documentation says.

use crate::common::{MAPS, Name, frequencies, gaussian, point, softmax};
use ndarray::{Array2, ArrayView2, s};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use random_features::apply::Smoother;
use random_features::compose::{Bases, Coefficient, Hybrid};
use random_features::extend::{Facts, FeatureMap, Form, Tile};
use random_features::frequency::{Frequencies, Independent, Orthogonal};
use random_features::kernel::Gaussian;
use random_features::theory::gerf::GerfSign;
use random_features::{Error, Gerf, Hyperbolic, Map, Positive, Real, Side, Trigonometric};

/// Scales and log-estimates are finite for points of this norm, and values are at most 1.
fn finite<T: Real>(name: Name, d: usize, m: usize, norms: (f64, f64), seed: u64) {
    for target in [softmax(), gaussian()] {
        let map = name.make::<T>(frequencies(d, m, &Orthogonal, seed), target);
        let (x, y) = (point::<T>(d, seed as usize % 7, norms.0), point::<T>(d, 3, norms.1));
        for side in [Side::X, Side::Y] {
            let features = map.features_of(side, &x).unwrap();
            assert!(features.log_scales().iter().all(|s| s.is_finite()), "{name:?} {norms:?}: {features:?}");
            assert!(
                features.mantissas().iter().all(|v| v.abs() <= T::one()),
                "{name:?} {norms:?}: {features:?}"
            );
        }
        let log = map.log_estimate(&x, &y).unwrap();
        assert!(log.ln_abs.is_finite() && log.sign.abs() == 1.0, "{name:?} {norms:?}: {log:?}");
        assert!(!map.estimate(&x, &y).unwrap().is_nan());
        let one = |v: &ndarray::Array1<T>| v.clone().insert_axis(ndarray::Axis(0));
        let gram = map.gram(&one(&x), &one(&y)).unwrap();
        assert!(!gram[[0, 0]].is_nan());
    }
}

proptest! {
    // The same cases in every run.
    #![proptest_config(ProptestConfig { cases: 300, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn finite_at_any_shape_and_norm(
        d in 1usize..40,
        m in 1usize..70,
        a in -30f64..30.0,
        b in -30f64..30.0,
        seed in 0u64..1000,
    ) {
        let norms = (10f64.powf(a), 10f64.powf(b));
        for name in MAPS {
            finite::<f32>(name, d, m, norms, seed);
            finite::<f64>(name, d, m, (norms.0.powi(5), norms.1.powi(5)), seed);
        }
    }

    /// Log-estimates against the naive loop in f64, to eps · (|ω·x| + ½‖x‖²) and the like for y.
    #[test]
    fn log_estimates_are_the_naive_loop(
        d in 1usize..20,
        m in 1usize..40,
        norms in (0.0f64..1e3, 0.0f64..1e3),
        seed in 0u64..1000,
    ) {
        let omega = frequencies(d, m, &Independent, seed);
        let (x, y) = (point::<f64>(d, 1, norms.0), point::<f64>(d, 2, norms.1));
        let z = &x + &y;
        let squares = x.dot(&x) + y.dot(&y);
        let exponents: Vec<f64> = omega.rows().rows().into_iter().map(|w| w.dot(&z)).collect();
        let top = exponents.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = exponents.iter().map(|p| (p - top).exp()).sum();
        let expected = top + (sum / m as f64).ln() - 0.5 * squares;
        let reach = omega.rows().rows().into_iter().map(|w| w.dot(&w).sqrt()).fold(0.0, f64::max);
        let size = reach * (norms.0 + norms.1) + 0.5 * squares;
        let f64_map = Positive.softmax::<f64>(omega.clone()).unwrap();
        let log = f64_map.log_estimate(&x, &y).unwrap().ln_abs;
        prop_assert!((log - expected).abs() <= 4.0 * f64::EPSILON * (size + 4.0), "{} {}", log, expected);
        let f32_map = Positive.softmax::<f32>(omega).unwrap();
        let (x, y) = (x.mapv(|v| v as f32), y.mapv(|v| v as f32));
        let log = f32_map.log_estimate(&x, &y).unwrap().ln_abs;
        prop_assert!((log - expected).abs() <= 4.0 * f64::from(f32::EPSILON) * (size + 4.0), "{} {}", log, expected);
    }
}

#[test]
fn the_ends_of_the_range_are_finite() {
    for name in MAPS {
        for d in [1, 9] {
            // Single precision up to its largest number, where projections saturate.
            finite::<f32>(name, d, 5, (3e38, 3e38), 1);
            finite::<f32>(name, d, 5, (1e37, 1e-44), 2);
            finite::<f64>(name, d, 5, (5e153, 1e-300), 3);
            finite::<f64>(name, d, 5, (0.0, 0.0), 4);
        }
    }
}

/// A row with NaN or an infinity has NaN features; its neighbours do not notice.
#[test]
fn rubbish_stays_in_its_row() {
    for name in MAPS {
        let map = name.make::<f32>(frequencies(3, 10, &Orthogonal, 1), gaussian());
        let clean = crate::common::points::<f32>(5, 3, 1.0);
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut x = clean.clone();
            x[[2, 1]] = bad;
            let (good, mixed) = (map.features(Side::X, &clean).unwrap(), map.features(Side::X, &x).unwrap());
            assert!(
                mixed.mantissas().row(2).iter().all(|v| v.is_nan()) && mixed.log_scales()[[2, 0]].is_nan()
            );
            for i in [0, 1, 3, 4] {
                assert_eq!(mixed.mantissas().row(i), good.mantissas().row(i));
                assert_eq!(mixed.log_scales().row(i), good.log_scales().row(i));
            }
            let gram = map.gram(&x, &clean).unwrap();
            assert!(gram.row(2).iter().all(|v| v.is_nan()));
            assert_eq!(gram.slice(s![..2, ..]), map.gram(&clean, &clean).unwrap().slice(s![..2, ..]));
            assert!(map.estimate(&x.row(2), &x.row(0)).unwrap().is_nan());
            assert!(map.log_estimate(&x.row(0), &x.row(2)).unwrap().ln_abs.is_nan());
        }
        // A squared norm beyond f64 counts as infinite.
        let map = name.make::<f64>(frequencies(1, 4, &Independent, 1), gaussian());
        assert!(map.features_of(Side::X, &ndarray::arr1(&[1e160])).unwrap().log_scales()[[0, 0]].is_nan());
    }
}

#[test]
fn overflowing_parameters_are_refused() {
    let omega = || frequencies(2, 3, &Independent, 1);
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(Positive.gaussian::<f32>(omega(), bad), Err(Error::Parameter { .. })), "{bad}");
    }
    assert!(matches!(Positive.gaussian::<f32>(omega(), vec![1.0; 3]), Err(Error::Shape { .. })));
    assert!(matches!(Positive.gaussian::<f32>(omega(), 1e-60), Err(Error::NotFinite { .. })));
    assert!(Positive.gaussian::<f64>(omega(), 1e-60).is_ok());
    let huge = Frequencies::from_rows(Array2::from_elem((2, 2), 1e300)).unwrap();
    assert!(Positive.build::<f32>(huge.clone(), Gaussian::default()).is_err());
    assert!(matches!(Positive.softmax::<f32>(huge.clone()), Err(Error::NotFinite { .. })));
    // Nothing overflows in double precision.
    let map = Positive.softmax::<f64>(huge).unwrap();
    let log = map.log_estimate(&ndarray::arr1(&[1.0, 2.0]), &ndarray::arr1(&[0.5, -3.0])).unwrap();
    assert!(log.ln_abs.is_finite());
}

/// Rows of which arrays without scales keep nothing are counted, and no others.
#[test]
fn lost_rows_are_counted() {
    let omega = || frequencies(4, 32, &Orthogonal, 7);
    // ‖x‖² is 400 around the origin: e^(−400 + ω·x) is below f32 for every feature, and e^(+200) above it.
    let around = |centre: f32, radius: f64| {
        let mut x = Array2::from_shape_fn((9, 4), |(i, k)| point::<f32>(4, i, radius)[k]);
        x.column_mut(0).mapv_inplace(|v| v + centre);
        x
    };
    let positive = Positive.gaussian::<f32>(omega(), 1.0).unwrap();
    let lost = |map: &Map<f32>, x: &Array2<f32>| {
        let phi = map.features(Side::X, x).unwrap();
        let array = phi.to_array();
        assert_eq!(array, phi.clone().into_array());
        let nothing = |row: &ndarray::ArrayView1<f32>| {
            row.iter().all(|v| *v == 0.0) || row.iter().any(|v| v.is_infinite())
        };
        assert_eq!(array.rows().into_iter().filter(nothing).count(), phi.lost_rows());
        phi.lost_rows()
    };
    assert_eq!(lost(&positive, &around(60.0, 20.0)), 9);
    assert_eq!(lost(&positive, &around(0.0, 20.0)), 9);
    assert_eq!(lost(&positive, &around(0.0, 3.0)), 0);
    // A denormal number has lost its digits; e^(−90) is one.
    let flat = Frequencies::from_rows(Array2::zeros((2, 1))).unwrap();
    let map = Positive.gaussian::<f32>(flat, 1.0).unwrap();
    let x = ndarray::arr2(&[[86f32.sqrt()], [90f32.sqrt()], [110f32.sqrt()], [0.0]]);
    let phi = map.features(Side::X, &x).unwrap();
    assert!(phi.lost_rows() == 2 && phi.to_array()[[2, 0]] == 0.0 && phi.to_array()[[0, 0]].is_normal());
    // Some rows of a batch.
    let mut some = around(0.0, 1.0);
    some.row_mut(3).fill(30.0);
    some.row_mut(8).fill(-30.0);
    assert_eq!(lost(&positive, &some), 2);
    assert_eq!(positive.features(Side::X, &some.mapv(|_| f32::NAN)).unwrap().lost_rows(), 0);
    // Nothing is lost in double precision, nor by estimates.
    let wide = Positive.gaussian::<f64>(omega(), 1.0).unwrap();
    let far = around(0.0, 20.0).mapv(f64::from);
    assert_eq!(wide.features(Side::X, &far).unwrap().lost_rows(), 0);
    assert!(positive.gram(&around(60.0, 1.0), &around(60.0, 1.0)).unwrap().iter().all(|v| v.is_finite()));
    let trigonometric = Trigonometric.softmax::<f32>(omega()).unwrap();
    assert_eq!(lost(&trigonometric, &around(0.0, 20.0)), 9);
    assert_eq!(lost(&trigonometric, &around(0.0, 2.0)), 0);
}

/// Keys of zeros, as padding makes them: their features are those of the point 0, exactly.
#[test]
fn zero_keys_are_points() {
    let zero = Array2::<f32>::zeros((3, 4));
    for name in MAPS {
        let map = name.make::<f32>(frequencies(4, 20, &Orthogonal, 2), softmax());
        let phi = map.features(Side::Y, &zero).unwrap();
        assert_eq!(phi.lost_rows(), 0);
        let norm = phi.to_array().row(0).iter().map(|v| v * v).sum::<f32>();
        assert!((norm - 1.0).abs() < 1e-6, "{name:?}: {norm}");
        for x in [point::<f32>(4, 1, 1.0), point::<f32>(4, 1, 1e3), zero.row(0).to_owned()] {
            let gram = map.gram(&x.clone().insert_axis(ndarray::Axis(0)), &zero).unwrap();
            let estimate = map.estimate(&x, &zero.row(0)).unwrap();
            // Cosines cancel, beside the factor e^(½‖x‖²).
            let size =
                (0.5 * f64::from(x.dot(&x))).exp() as f32 * f32::from(u8::from(name == Name::Trigonometric));
            assert!(!estimate.is_nan());
            for v in gram {
                let close = (v - estimate).abs() <= 1e-5 * size.max(estimate.abs()) || v == estimate;
                assert!(close || estimate.abs() > 1e38 || size.is_infinite(), "{name:?}: {v} and {estimate}");
            }
        }
    }
}

/// The features (1), (x₁, −x₁): blocks that are absent where x₂ says so, whose values are never written.
#[derive(Debug)]
struct Absent {
    logarithms: bool,
}

impl<T: Real> FeatureMap<T> for Absent {
    fn facts(&self) -> Facts {
        let facts = Facts::new(2, vec![1, 2]).symmetric();
        if self.logarithms { facts.logarithms() } else { facts }
    }

    fn fill(&self, _: Side, x: ArrayView2<'_, T>, form: Form, tile: &mut Tile<'_, T>) {
        for (i, x) in x.rows().into_iter().enumerate() {
            let row = tile.row(i);
            let (v, which) = (x[0].widen(), x[1].widen());
            // Absent blocks hold rubbish.
            row.values.fill(T::nan());
            row.signs.fill(T::nan());
            row.log_scales.fill(f64::NEG_INFINITY);
            if which >= 1.0 {
                row.log_scales[0] = 0.5;
                row.values[0] = if form == Form::Values { T::one() } else { T::zero() };
                if form == Form::Logarithms {
                    row.signs[0] = T::one();
                }
            }
            if which >= 2.0 {
                row.log_scales[1] = -1.0;
                for (k, sign) in [(1, 1.0), (2, -1.0)] {
                    let value = if form == Form::Values { sign * v } else { v.abs().ln() };
                    row.values[k] = T::narrow(value);
                    if form == Form::Logarithms {
                        row.signs[k] = T::narrow(sign * v.signum());
                    }
                }
            }
        }
    }
}

fn absent_rows_weigh_nothing<T: Real>(logarithms: bool) {
    let map = Map::<T>::of_feature_map(Absent { logarithms }).unwrap();
    // More than a run of sums, the first run absent as a whole.
    let n = 700;
    let which = |i: usize| if i < 300 { 0 } else { i % 3 };
    let x = Array2::from_shape_fn((n, 2), |(i, k)| {
        T::narrow(if k == 0 { 0.1 + 0.8 * (i % 17) as f64 / 17.0 } else { which(i) as f64 })
    });
    let phi = map.features(Side::X, &x).unwrap();
    assert_eq!(phi.lost_rows(), 0, "an absent row is 0, and nothing of it is lost");
    let array = phi.to_array();
    assert!(array.iter().all(|v| v.is_finite()));
    let gram = map.gram(&x, &x).unwrap();
    assert_eq!(phi.gram(&phi).unwrap().dim(), (n, n));
    for ((i, j), v) in gram.indexed_iter().step_by(41) {
        let mut expected = 0.0;
        if which(i).min(which(j)) >= 1 {
            expected += 1f64.exp();
        }
        if which(i).min(which(j)) == 2 {
            expected += 2.0 * (-2f64).exp() * x[[i, 0]].widen() * x[[j, 0]].widen();
        }
        assert!((v.widen() - expected).abs() <= 8.0 * T::epsilon().widen() * expected, "{i}, {j}: {v}");
        let log = map.log_estimate(&x.row(i), &x.row(j)).unwrap();
        assert_eq!(log.ln_abs == f64::NEG_INFINITY, expected == 0.0);
        assert!((log.value() - expected).abs() <= 8.0 * T::epsilon().widen() * expected, "{i}, {j}: {log:?}");
        let dot = array.row(i).iter().zip(array.row(j)).map(|(a, b)| a.widen() * b.widen()).sum::<f64>();
        assert!((dot - expected).abs() <= 16.0 * T::epsilon().widen() * expected.max(1e-3));
    }
    // Training points that are absent change nothing.
    let targets = Array2::from_shape_fn((n, 1), |(i, _)| T::narrow(1.0 + (i % 5) as f64));
    let present: Vec<usize> = (0..n).filter(|i| which(*i) > 0).collect();
    let rows = |of: &Array2<T>| of.select(ndarray::Axis(0), &present);
    let mut all = Smoother::new(map.clone(), 1).unwrap();
    all.update(&x, &targets).unwrap();
    let mut few = Smoother::new(map.clone(), 1).unwrap();
    few.update(&rows(&x), &rows(&targets)).unwrap();
    let (a, b) = (all.predict(&x).unwrap(), few.predict(&x).unwrap());
    let mean = targets.iter().map(|v| v.widen()).sum::<f64>() / n as f64;
    for i in 0..n {
        let (a, b) = (a[[i, 0]].widen(), b[[i, 0]].widen());
        if which(i) == 0 {
            assert!((a - mean).abs() <= 4.0 * T::epsilon().widen() * mean, "{a} is not the mean {mean}");
        } else {
            assert!((a - b).abs() <= 1e3 * T::epsilon().widen() * b.abs(), "{a} and {b}");
        }
    }
    // Nothing but absent points.
    let mut nothing = Smoother::new(map, 1).unwrap();
    nothing.update(x.slice(s![..300, ..]), targets.slice(s![..300, ..])).unwrap();
    let mean = targets.slice(s![..300, ..]).iter().map(|v| v.widen()).sum::<f64>() / 300.0;
    assert!(nothing.predict(&x).unwrap().iter().all(|v| (v.widen() - mean).abs() < 1e-5));
}

#[test]
fn absent_blocks_are_zeros() {
    for logarithms in [false, true] {
        absent_rows_weigh_nothing::<f32>(logarithms);
        absent_rows_weigh_nothing::<f64>(logarithms);
    }
}

/// ‖x‖² is in the range of f64, the sum of two of them is not.
#[test]
fn sums_of_scales_may_overflow() {
    let far = 1.44e308f64.sqrt();
    let x = ndarray::arr2(&[[far], [-far], [1.0], [0.0], [0.7 * far]]);
    let omega = || frequencies(1, 6, &Independent, 1);
    let gerf = Gerf::new(-0.1, GerfSign::Plus).unwrap();
    // Sums of several blocks are relative to their largest scale, of which there is none.
    let bases = || {
        let half = Coefficient::constant(0.5).unwrap();
        (vec![(half, Positive.gaussian(omega(), 1.0).unwrap())], Hyperbolic.gaussian(omega(), 1.0).unwrap())
    };
    let tau = Coefficient::angular(frequencies(1, 3, &Independent, 2)).unwrap();
    let maps = [
        Hybrid::sum(bases().0, bases().1).unwrap(),
        Hybrid::bipolar(Bases::shared(omega()), tau, Gaussian::default()).unwrap(),
        Positive.gaussian::<f64>(omega(), 1.0).unwrap(),
        Hyperbolic.gaussian(omega(), 1.0).unwrap(),
        gerf.gaussian(omega(), 1.0).unwrap(),
        Positive.softmax(omega()).unwrap(),
        Trigonometric.softmax(omega()).unwrap(),
        Trigonometric.gaussian(omega(), 1.0).unwrap(),
    ];
    for map in maps {
        let gram = map.gram(&x, &x).unwrap();
        let phi = map.features(Side::X, &x).unwrap();
        let psi = map.features(Side::Y, &x).unwrap();
        for of in [gram, phi.gram(&psi).unwrap()] {
            for ((i, j), v) in of.indexed_iter() {
                let log = map.log_estimate(&x.row(i), &x.row(j)).unwrap();
                assert!(!v.is_nan() && !log.ln_abs.is_nan(), "{map:?}: {v}, {log:?} at {i}, {j}");
                let estimate = log.value();
                assert!(*v == estimate || (v - estimate).abs() <= 1e-13, "{map:?}: {v} and {estimate}");
            }
        }
    }
}

/// e^(A‖ω‖²) with A = 0 is 1, but 0 · ∞ is no number.
#[test]
fn frequencies_without_a_squared_norm_are_refused_by_gerf() {
    let omega = || Frequencies::from_rows(ndarray::arr2(&[[1e155, 0.0], [1.0, 2.0]])).unwrap();
    for sign in [GerfSign::Plus, GerfSign::Minus] {
        for a in [0.0, -0.1] {
            let gerf = Gerf::new(a, sign).unwrap();
            let error = gerf.gaussian::<f64>(omega(), 1.0).unwrap_err();
            assert!(matches!(error, Error::NotFinite { row: 0, .. }), "{error}");
            assert!(gerf.softmax::<f64>(omega()).is_err());
            // As long as the square is finite, so is everything.
            let rows = ndarray::arr2(&[[1e153, 0.0], [1.0, 2.0]]);
            let map = gerf.gaussian::<f64>(Frequencies::from_rows(rows).unwrap(), 1.0).unwrap();
            let phi = map.features_of(Side::X, &ndarray::arr1(&[0.3, -0.2])).unwrap();
            assert!(phi.log_scales()[[0, 0]].is_finite() && phi.mantissas().iter().all(|v| v.abs() <= 1.0));
        }
    }
}
