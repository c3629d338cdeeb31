//! Gradients with respect to lengthscales, frequencies and coefficients of maps, against differences.

use crate::common::frequencies;
use crate::threads::on_threads;
use ndarray::{Array1, Array2, arr2};
use num_complex::Complex64;
use random_features::compose::{Bases, Hybrid};
use random_features::frequency::{Antithetic, Counts, Frequencies, Hadamard, Independent, Orthogonal};
use random_features::kernel::{Activation, Gaussian, Softmax};
use random_features::map::{Importance, ParameterGradients};
use random_features::theory::gerf::GerfSign;
use random_features::{
    DenseExponential, Error, Gerf, Hyperbolic, Map, Nonlinear, Poisson, Positive, Side, Trigonometric, rng,
};

/// Points of usual and of large norms, one near an axis, and 0.
fn points() -> Array2<f64> {
    arr2(&[[0.4, -0.7, 0.2], [0.0, 1.1, 0.0], [0.0, 0.0, 0.0], [2.5, -3.0, 1.5], [-0.3, -0.2, 0.9]])
}

fn cotangents(columns: usize) -> Array2<f64> {
    Array2::from_shape_fn((5, columns), |(i, f)| ((7 * i + 3 * f) % 11) as f64 / 5.0 - 1.0)
}

/// Σ c φ e^{−s} with the scales s of another map of the same shape.
fn loss(map: &Map<f64>, scales: &Array2<f64>, side: Side) -> f64 {
    let features = map.features(side, &points()).unwrap();
    let factors = (&features.log_scales() - scales).mapv(f64::exp);
    (&features.mantissas() * &factors * cotangents(map.feature_dim())).sum()
}

/// The slope of a function of one number at 0.
fn slope(f: impl Fn(f64) -> f64) -> f64 {
    let h = 2e-4;
    (8.0 * (f(h) - f(-h)) - (f(2.0 * h) - f(-2.0 * h))) / (12.0 * h)
}

fn gradients(map: &Map<f64>, side: Side) -> ParameterGradients {
    map.pull_back_parameters(side, &points(), &cotangents(map.feature_dim())).unwrap()
}

/// Compares all gradients of a map, made of frequencies, lengthscales and coefficients, with differences.
#[track_caller]
fn agree(
    name: &str,
    omega: Array2<f64>,
    coefficients: &[f64],
    make: impl Fn(Array2<f64>, Vec<f64>, &[f64]) -> Map<f64>,
) {
    let lengthscales = vec![0.8, 1.3, 1.1];
    let map = make(omega.clone(), lengthscales.clone(), coefficients);
    for side in [Side::X, Side::Y] {
        let scales = map.features(side, &points()).unwrap().log_scales().to_owned();
        let all = gradients(&map, side);
        let check = |what: &str, own: f64, size: f64, expected: f64| {
            let tolerance = 1e-7 * size.max(1.0);
            assert!((own - expected).abs() <= tolerance, "{name}, {side:?}, {what}: {own} is {expected}");
        };
        let largest = |x: &mut dyn Iterator<Item = f64>| x.fold(0.0, |a: f64, v| a.max(v.abs()));
        let size = largest(&mut all.lengthscales.iter().copied());
        for k in 0..3 {
            let expected = slope(|h| {
                let mut moved = lengthscales.clone();
                moved[k] += h;
                loss(&make(omega.clone(), moved, coefficients), &scales, side)
            });
            check(&format!("lengthscale {k}"), all.lengthscales[k], size, expected);
        }
        let size = largest(&mut all.frequencies.iter().copied());
        assert_eq!(all.frequencies.dim(), omega.dim());
        for at in ndarray::indices(omega.dim()) {
            let expected = slope(|h| {
                let mut moved = omega.clone();
                moved[at] += h;
                loss(&make(moved, lengthscales.clone(), coefficients), &scales, side)
            });
            check(&format!("frequency {at:?}"), all.frequencies[at], size, expected);
        }
        let size = largest(&mut all.coefficients.iter().copied());
        assert_eq!(all.coefficients.len(), coefficients.len(), "{name}");
        for k in 0..coefficients.len() {
            let expected = slope(|h| {
                let mut moved = coefficients.to_vec();
                moved[k] += h;
                loss(&make(omega.clone(), lengthscales.clone(), &moved), &scales, side)
            });
            check(&format!("coefficient {k}"), all.coefficients[k], size, expected);
        }
    }
}

fn rows(m: usize, seed: u64) -> Array2<f64> {
    Orthogonal.draw(3, m, seed).unwrap().rows().into_owned()
}

fn omega(rows: Array2<f64>) -> Frequencies {
    Frequencies::from_rows(rows).unwrap()
}

#[test]
fn maps_without_coefficients() {
    let softmax = |l: Vec<f64>| Softmax::new(l).unwrap();
    let gaussian = |l: Vec<f64>| Gaussian::new(l).unwrap();
    agree("positive", rows(5, 1), &[], |w, l, _| Positive.build(omega(w), softmax(l)).unwrap());
    agree("positive, Gaussian", rows(5, 1), &[], |w, l, _| Positive.build(omega(w), gaussian(l)).unwrap());
    agree("hyperbolic", rows(4, 2), &[], |w, l, _| Hyperbolic.build(omega(w), softmax(l)).unwrap());
    agree("trigonometric", rows(5, 3), &[], |w, l, _| Trigonometric.build(omega(w), gaussian(l)).unwrap());
    agree("waves", rows(5, 3), &[], |w, l, _| Trigonometric.build(omega(w), softmax(l)).unwrap());
    for activation in Activation::ALL {
        let map = |w, l: Vec<f64>, _: &[f64]| Nonlinear::new(activation).build(omega(w), l).unwrap();
        agree(&format!("{activation:?}"), rows(4, 4), &[], map);
    }
}

#[test]
fn maps_with_coefficients() {
    let softmax = |l: Vec<f64>| Softmax::new(l).unwrap();
    for a in [-0.3, 0.1] {
        agree("OPRF", rows(5, 1), &[a], |w, l, a| {
            Gerf::new(a[0], GerfSign::Plus).unwrap().build(omega(w), softmax(l)).unwrap()
        });
    }
    for sign in [GerfSign::Plus, GerfSign::Minus] {
        agree(&format!("GERF, {sign:?}"), rows(4, 2), &[-0.2, 0.15], |w, l, a| {
            Gerf::new(Complex64::new(a[0], a[1]), sign).unwrap().build(omega(w), softmax(l)).unwrap()
        });
    }
    agree("dense", rows(5, 3), &[-0.4, 0.05, -0.1], |w, l, a| {
        DenseExponential::new(a.to_vec()).unwrap().build(omega(w), softmax(l)).unwrap()
    });
}

/// The frequencies of one draw, and of a second after ω moves along its sphere: turned in a plane, ω changes by the angle times a
/// tangent.
#[test]
fn on_spheres_norms_stay() {
    let (start, map) = (rows(6, 5), |w: Array2<f64>| Positive.softmax::<f64>(omega(w)).unwrap());
    let (all, scales) =
        (gradients(&map(start.clone()), Side::X), map(start.clone()).features(Side::X, &points()).unwrap());
    let tangents = all.on_spheres(&start).unwrap();
    for j in 0..6 {
        assert!(
            tangents.row(j).dot(&start.row(j)).abs() < 1e-9 * tangents.row(j).dot(&tangents.row(j)).sqrt()
        );
        let turned = |h: f64| {
            let mut moved = start.clone();
            let (a, b) = (start[[j, 0]], start[[j, 1]]);
            (moved[[j, 0]], moved[[j, 1]]) = (a * h.cos() - b * h.sin(), a * h.sin() + b * h.cos());
            loss(&map(moved), &scales.log_scales().to_owned(), Side::X)
        };
        let own = tangents[[j, 1]] * start[[j, 0]] - tangents[[j, 0]] * start[[j, 1]];
        assert!((own - slope(turned)).abs() <= 1e-7 * own.abs().max(1.0), "{j}: {own}");
    }
    assert!(matches!(all.on_spheres(&rows(5, 1)), Err(Error::Shape { .. })));
}

/// Sums over many points are those of parts, in any layout and on any number of threads.
#[test]
fn many_points_are_sums() {
    let map = DenseExponential::new(vec![-0.2, 0.1, 0.0]).unwrap();
    let map: Map<f64> = map.softmax(frequencies(3, 8, &Independent, 3)).unwrap();
    let x = Array2::from_shape_fn((1500, 3), |(i, k)| ((i * 5 + k * 3) % 17) as f64 / 9.0 - 1.0);
    let c = Array2::from_shape_fn((1500, 8), |(i, f)| ((i + 2 * f) % 5) as f64 - 2.0);
    let whole = on_threads(1, || map.pull_back_parameters(Side::Y, &x, &c).unwrap());
    assert_eq!(whole, on_threads(3, || map.pull_back_parameters(Side::Y, &x, &c).unwrap()));
    let (mut columns, mut sum) = (Array2::zeros((3, 1500)), Array1::<f64>::zeros(3));
    let mut of_frequencies = Array2::<f64>::zeros((8, 3));
    columns.assign(&x.t());
    assert_eq!(whole, map.pull_back_parameters(Side::Y, &columns.t(), &c).unwrap());
    for i in 0..1500 {
        let one = |x: &Array2<f64>| x.slice(ndarray::s![i..i + 1, ..]).to_owned();
        let own = map.pull_back_parameters(Side::Y, &one(&x), &one(&c)).unwrap();
        sum += &own.lengthscales;
        of_frequencies += &own.frequencies;
    }
    let size = of_frequencies.iter().fold(0.0, |a: f64, v| a.max(v.abs()));
    assert!((&whole.frequencies - &of_frequencies).iter().all(|e| e.abs() < 1e-9 * size));
    assert!((&whole.lengthscales - &sum).iter().all(|e| e.abs() < 1e-9 * sum.dot(&sum).sqrt()));
    let none = map.pull_back_parameters(Side::Y, &Array2::zeros((0, 3)), &Array2::zeros((0, 8))).unwrap();
    assert!(none.frequencies.iter().chain(&none.lengthscales).chain(&none.coefficients).all(|v| *v == 0.0));
    // In `f32` within its precision.
    let single: Map<f32> = DenseExponential::new(vec![-0.2, 0.1, 0.0])
        .and_then(|map| map.softmax(frequencies(3, 8, &Independent, 3)))
        .unwrap();
    let [x, c] = [x, c].map(|x| x.mapv(|v| v as f32));
    let narrow = single.pull_back_parameters(Side::Y, &x, &c).unwrap();
    let size = whole.frequencies.iter().fold(0.0, |a: f64, v| a.max(v.abs()));
    assert!((&narrow.frequencies - &whole.frequencies).iter().all(|e| e.abs() < 1e-5 * size));
}

#[test]
fn other_maps_are_refused() {
    let refused = |map: Map<f64>| {
        let c = Array2::zeros((5, map.feature_dim()));
        matches!(map.pull_back_parameters(Side::X, &points(), &c), Err(Error::Unsupported { .. }))
    };
    let counts = Counts::poisson(3, 8, 1.5, rng(4).next_u64()).unwrap();
    assert!(refused(Poisson::default().softmax(counts).unwrap()));
    assert!(refused(Importance::new(vec![0.0; 6]).unwrap().softmax(omega(rows(6, 1))).unwrap()));
    let bases = Bases::shared(frequencies(3, 6, &Orthogonal, 1));
    assert!(refused(Hybrid::angular(bases, frequencies(3, 4, &Independent, 6)).unwrap()));
    let positive: Map<f64> = Positive.softmax(frequencies(3, 6, &Antithetic(Independent), 1)).unwrap();
    assert!(!refused(positive.clone()));
    let wrong = positive.pull_back_parameters(Side::X, &points(), &Array2::zeros((4, 6)));
    assert!(matches!(wrong, Err(Error::Shape { .. })));
}

/// Points that are not finite make gradients NaN, also of functions that are flat there.
#[test]
fn points_that_are_not_finite_show() {
    for activation in Activation::ALL {
        let map: Map<f64> = Nonlinear::new(activation).build(omega(rows(4, 4)), 1.0).unwrap();
        for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let (mut x, c) = (points(), cotangents(4));
            x[[4, 1]] = odd;
            let of_points = map.pull_back(Side::X, &x, &c).unwrap();
            assert!(of_points.row(4).iter().all(|v| v.is_nan()), "{activation:?}, {odd}: {of_points}");
            assert!(of_points.rows().into_iter().take(4).all(|row| row.iter().all(|v| v.is_finite())));
            let all = map.pull_back_parameters(Side::X, &x, &c).unwrap();
            let numbers = all.lengthscales.iter().chain(&all.frequencies);
            assert!(numbers.into_iter().all(|v| v.is_nan()), "{activation:?}, {odd}: {all:?}");
        }
    }
}

/// Frequencies with more coordinates than the points: norms and the dimension in the features are those with all of them.
#[test]
fn padded_frequencies_count_with_all_coordinates() {
    let omega = Hadamard::default().draw(3, 16, 4).unwrap();
    assert!(omega.padded_dim() > 3);
    let make = |a: &[f64]| -> Map<f64> {
        let gerf = match a {
            [a] => Gerf::new(*a, GerfSign::Plus),
            _ => Gerf::new(Complex64::new(a[0], a[1]), GerfSign::Minus),
        };
        gerf.unwrap().softmax(omega.clone()).unwrap()
    };
    for a in [vec![-0.1], vec![-0.1, 0.02]] {
        let map = make(&a);
        let scales = map.features(Side::Y, &points()).unwrap().log_scales().to_owned();
        let own = gradients(&map, Side::Y).coefficients;
        let size = own.iter().fold(1.0, |a: f64, v| a.max(v.abs()));
        for k in 0..a.len() {
            let expected = slope(|h| {
                let mut moved = a.clone();
                moved[k] += h;
                loss(&make(&moved), &scales, Side::Y)
            });
            assert!((own[k] - expected).abs() <= 1e-7 * size, "{a:?}, {k}: {} is {expected}", own[k]);
        }
    }
}

/// A frequency of 0 has no sphere, and keeps its gradient.
#[test]
fn spheres_of_no_radius_take_nothing() {
    let all = gradients(&Positive.softmax(omega(rows(4, 1))).unwrap(), Side::X);
    assert_eq!(all.on_spheres(&Array2::zeros((4, 3))).unwrap(), all.frequencies);
}
