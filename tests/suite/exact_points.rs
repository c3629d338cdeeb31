//! Where a map is exact for any draw, its log-estimate is the log-kernel to rounding, at any norm.

use crate::common::{Name, couplings, frequencies, gaussian, point, softmax};
use random_features::{Real, Side};

fn exact_at<T: Real>(name: Name, sign: f64) {
    for norm in [0.0, 1e-8, 1e-3, 1.0, 20.0, 300.0, 1e3] {
        for (d, m) in [(1, 1), (5, 9), (64, 32)] {
            for coupling in couplings() {
                for target in [softmax(), gaussian()] {
                    let map = name.make::<T>(frequencies(d, m, coupling.as_ref(), 3), target);
                    let x = point::<T>(d, 2, norm);
                    let y = x.mapv(|v| T::narrow(sign) * v);
                    let log = map.log_estimate(&x, &y).unwrap();
                    let exact = map.kernel().unwrap().log_value(&x, &y).unwrap();
                    let squared = x.iter().map(|v| v.widen().powi(2)).sum::<f64>();
                    // Positive maps: only f64 scales remain. Trigonometric: cos² + sin² in T.
                    let rounding = if sign < 0.0 { 4.0 * f64::EPSILON } else { 8.0 * T::epsilon().widen() };
                    // ‖x‖², ‖y‖² and the kernel's own ‖x ± y‖²/2 are sums of 64 terms in 16 lanes: nine roundings each.
                    let tolerance = rounding + 4.0 * 4.5 * f64::EPSILON * squared;
                    assert_eq!(log.sign, 1.0);
                    assert!(
                        (log.ln_abs - exact.ln_abs).abs() <= tolerance,
                        "{name:?}, norm {norm}, d {d}: {} instead of {}",
                        log.ln_abs,
                        exact.ln_abs
                    );
                }
            }
        }
    }
}

#[test]
fn positive_and_hyperbolic_where_x_is_minus_y() {
    for name in [Name::Positive, Name::Hyperbolic] {
        exact_at::<f32>(name, -1.0);
        exact_at::<f64>(name, -1.0);
    }
}

#[test]
fn trigonometric_where_x_is_y() {
    exact_at::<f32>(Name::Trigonometric, 1.0);
    exact_at::<f64>(Name::Trigonometric, 1.0);
}

/// Where queries oppose keys, products of scaled features underflow to 0; a map's Gram matrix does not lose
/// them.
#[test]
fn gram_resolves_what_scaled_features_cannot() {
    let map = Name::Positive.make::<f32>(frequencies(8, 64, couplings()[0].as_ref(), 1), softmax());
    let (x, near) = (point::<f32>(8, 1, 25.0), point::<f32>(8, 4, 0.3));
    let opposed = &x * -1.0 + &near;
    let (rows, columns) =
        (x.view().insert_axis(ndarray::Axis(0)), opposed.view().insert_axis(ndarray::Axis(0)));
    let scaled =
        map.features(Side::X, &rows).unwrap().gram(&map.features(Side::Y, &columns).unwrap()).unwrap();
    assert_eq!(scaled[[0, 0]], 0.0);
    // exp(−‖x‖² + x·near) is far below f32; the Gaussian kernel exp(−½‖x−y‖²) even more so. With norm 7 it is
    // in range.
    let log = map.log_estimate(&x, &opposed).unwrap();
    let exact = map.kernel().unwrap().log_value(&x, &opposed).unwrap();
    assert!((log.ln_abs - exact.ln_abs).abs() < 1.5, "{} and {}", log.ln_abs, exact.ln_abs);

    // Unscaled features in range, scaled products out of it: f32 with a spread of more than 88 nats.
    let omega = ndarray::arr2(&[[50.0], [-50.0]]);
    let omega = random_features::frequency::Frequencies::from_rows(omega).unwrap();
    let map = Name::Positive.make::<f32>(omega, softmax());
    let (x, y) = (ndarray::arr2(&[[1.0f32]]), ndarray::arr2(&[[-1.0f32]]));
    let scaled = map.features(Side::X, &x).unwrap().gram(&map.features(Side::Y, &y).unwrap()).unwrap();
    assert_eq!(scaled[[0, 0]], 0.0);
    let gram = map.gram(&x, &y).unwrap();
    assert!((gram[[0, 0]] - (-1f32).exp()).abs() < 1e-6, "{gram}");
}
