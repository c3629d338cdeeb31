//! Where a map is exact for any draw, its log-estimate is the log-kernel to rounding, at any norm.

use crate::common::{Name, couplings, frequencies, gaussian, point, softmax};
use ndarray::{Array1, Axis};
use random_features::compose::{Bases, Hybrid, Mixture};
use random_features::data::Clustering;
use random_features::frequency::Independent;
use random_features::kernel::{Kernel, Softmax};
use random_features::{Map, Real, Side, Trigonometric};

fn exact_at<T: Real>(name: Name, sign: f64) {
    for (d, m) in [(1, 1), (5, 9), (64, 32)] {
        for coupling in couplings() {
            for target in [softmax(), gaussian()] {
                let map = name.make::<T>(frequencies(d, m, coupling.as_ref(), 3), target);
                for norm in [0.0, 1e-8, 1e-3, 1.0, 20.0, 300.0, 1e3] {
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
    let scaled = map.features(Side::X, rows).unwrap().gram(&map.features(Side::Y, columns).unwrap()).unwrap();
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
    // In every row and column of a matrix that is made in several runs.
    let x = ndarray::Array2::from_shape_fn((301, 1), |(i, _)| 1.0 + i as f32 * 1e-5);
    let y = ndarray::Array2::from_shape_fn((270, 1), |(j, _)| -1.0 - j as f32 * 2e-5);
    let gram = map.gram(&x, &y).unwrap();
    for ((i, j), v) in gram.indexed_iter() {
        let (x, y) = (f64::from(x[[i, 0]]), f64::from(y[[j, 0]]));
        let expected = (50.0 * (x + y)).cosh() * (-0.5 * (x * x + y * y)).exp();
        assert!((f64::from(*v) - expected).abs() < 1e-5, "{i}, {j}: {v} {expected}");
    }
}

/// In `estimate`, `log_estimate`, `gram` and in features, relative to the exact kernel.
fn hybrid_is_exact<T: Real>(map: &Map<T>, x: &Array1<T>, y: &Array1<T>, tolerance: f64, in_features: bool) {
    let exact = Softmax::default().log_value(x, y).unwrap().ln_abs;
    let log = map.log_estimate(x, y).unwrap();
    assert!(log.sign == 1.0 && (log.ln_abs - exact).abs() <= tolerance, "{log:?} instead of {exact}");
    // Within the range of T, and so that e^exact is one number of several in the matrix.
    let range = T::max_value().widen().ln() - 1.0;
    if exact.abs() > range {
        return;
    }
    let expected = exact.exp();
    let close = |found: T| (found.widen() / expected - 1.0).abs() <= 2.0 * tolerance + T::epsilon().widen();
    assert!(close(map.estimate(x, y).unwrap()));
    let rows = |point: &Array1<T>| ndarray::stack![Axis(0), point.mapv(|v| v / T::narrow(3.0)), *point];
    let (left, right) = (rows(x), rows(y));
    let gram = map.gram(&left, &right).unwrap();
    assert!(close(gram[[1, 1]]), "gram: {} instead of {expected}", gram[[1, 1]]);
    if in_features {
        let (left, right) = (map.features(Side::X, &left).unwrap(), map.features(Side::Y, &right).unwrap());
        let gram = left.gram(&right).unwrap();
        assert!(close(gram[[1, 1]]), "features: {} instead of {expected}", gram[[1, 1]]);
    }
}

#[test]
fn angular_hybrids_at_both_ends() {
    fn check<T: Real>() {
        for (d, n) in [(2, 5), (16, 16)] {
            for coupling in couplings() {
                let omega = |seed| frequencies(d, 12, coupling.as_ref(), seed);
                let tau = frequencies(d, n, coupling.as_ref(), 3);
                let own = Bases::independent(omega(1), omega(2));
                for bases in [own, Bases::shared(omega(1))] {
                    let map = Hybrid::<Map<T>>::angular(bases, tau.clone()).unwrap();
                    for norm in [0.5, 3.5, 4.0, 4.5, 8.0, 20.0] {
                        let x = point::<T>(d, 2, norm);
                        // cos² + sin² in T at x = y, f64 scales alone at x = −y; both, of ‖x‖² and its rounding.
                        let tolerance = 8.0 * T::epsilon().widen() + 30.0 * f64::EPSILON * norm * norm;
                        for y in [x.clone(), x.mapv(|v| -v)] {
                            hybrid_is_exact(&map, &x, &y, tolerance, true);
                            let variance = map.log_variance(&x, &y).unwrap();
                            assert!(variance.is_none_or(|v| v == f64::NEG_INFINITY), "{variance:?}");
                        }
                    }
                }
            }
        }
    }
    check::<f32>();
    check::<f64>();
}

/// λ̂ is 1 to rounding there, and the rest of the weight 0: so the closed form says too.
#[test]
fn mixtures_of_clusters_at_their_centres() {
    fn check<T: Real>() {
        for norm in [0.5, 4.0, 8.0, 20.0] {
            for (d, n) in [(2, 4), (16, 64)] {
                let x = point::<T>(d, 2, norm);
                let y = x.mapv(|v| -v);
                let centre = |x: &Array1<T>| {
                    let wide = x.mapv(|v| v.widen());
                    Clustering::new(wide.insert_axis(Axis(0))).unwrap()
                };
                let mut seed = 10;
                let mut omega = |m| {
                    seed += 1;
                    frequencies(d, m, &Independent, seed)
                };
                let rest = Trigonometric.softmax::<T>(omega(32)).unwrap();
                let mut others = (20..).map(|seed| frequencies(d, n, &Independent, seed));
                let (queries, keys) = (centre(&x), centre(&y));
                let mixture = Mixture::new(&queries, &keys, 1.0);
                let map = Hybrid::clustered(mixture, || Ok(omega(32)), || Ok(others.next().unwrap()), rest)
                    .unwrap();
                // The base's exponents cancel to the rounding of ω·x.
                let tolerance = 8.0 * T::epsilon().widen() * (1.0 + norm * 6.0);
                hybrid_is_exact(&map, &x, &y, tolerance, false);
                let variance = map.log_variance(&x, &y).unwrap().unwrap();
                assert!(variance < 2.0 * (tolerance.ln() - norm * norm), "{variance}");
            }
        }
    }
    check::<f32>();
    check::<f64>();
}
