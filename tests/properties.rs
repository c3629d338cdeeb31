//! Any shape, any norm, any rubbish: results are finite, or an error, or what the documentation says.

mod common;

use common::{MAPS, Name, frequencies, gaussian, point, softmax};
use ndarray::{Array2, s};
use proptest::prelude::*;
use random_features::frequency::{Frequencies, Independent, Orthogonal};
use random_features::kernel::Gaussian;
use random_features::{Error, Positive, Real, Side};

/// Scales and log-estimates are finite for points of this norm, and values are at most 1.
fn finite<T: Real>(name: Name, d: usize, m: usize, norms: (f64, f64), seed: u64) {
    for target in [softmax(), gaussian()] {
        let map = name.make::<T>(frequencies(d, m, &Orthogonal, seed), target);
        let (x, y) = (point::<T>(d, seed as usize % 7, norms.0), point::<T>(d, 3, norms.1));
        for side in [Side::X, Side::Y] {
            let features = map.features_of(side, &x).unwrap();
            assert!(features.log_scales().iter().all(|s| s.is_finite()), "{name:?} {norms:?}: {features:?}");
            assert!(
                features.values().iter().all(|v| v.abs() <= T::one()),
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
    #![proptest_config(ProptestConfig::with_cases(300))]

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
        let clean = common::points::<f32>(5, 3, 1.0);
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut x = clean.clone();
            x[[2, 1]] = bad;
            let (good, mixed) = (map.features(Side::X, &clean).unwrap(), map.features(Side::X, &x).unwrap());
            assert!(mixed.values().row(2).iter().all(|v| v.is_nan()) && mixed.log_scales()[[2, 0]].is_nan());
            for i in [0, 1, 3, 4] {
                assert_eq!(mixed.values().row(i), good.values().row(i));
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
    assert!(Positive.map::<f32>(huge.clone(), Gaussian::default()).is_err());
    assert!(matches!(Positive.softmax::<f32>(huge.clone()), Err(Error::NotFinite { .. })));
    // Nothing overflows in double precision.
    let map = Positive.softmax::<f64>(huge).unwrap();
    let log = map.log_estimate(&ndarray::arr1(&[1.0, 2.0]), &ndarray::arr1(&[0.5, -3.0])).unwrap();
    assert!(log.ln_abs.is_finite());
}
