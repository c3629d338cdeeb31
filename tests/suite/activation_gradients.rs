//! Gradients of the kernels of functions against differences of their values, at points of any size, and near kinks.

use std::f64::consts::{FRAC_2_PI, PI};

use ndarray::{Array1, arr1};
use rand::RngExt;
use random_features::extend::Generator;
use random_features::kernel::{Activation, ActivationKernel, Kernel};
use random_features::rng;

const FUNCTIONS: [Activation; 11] = [
    Activation::Identity,
    Activation::Square,
    Activation::Exp,
    Activation::Cos,
    Activation::Sin,
    Activation::Sign,
    Activation::Step,
    Activation::Erf,
    Activation::Relu,
    Activation::ReluSquared,
    Activation::Abs,
];

fn kernel(f: Activation) -> ActivationKernel {
    f.kernel().unwrap()
}

fn norm(v: &Array1<f64>) -> f64 {
    v.dot(v).sqrt()
}

fn vector(size: f64, rng: &mut Generator) -> Array1<f64> {
    let v = Array1::from_shape_fn(3, |_| rng.random::<f64>() - 0.5);
    let scale = size / norm(&v);
    v * scale
}

/// The slope of a kernel along a coordinate of x by two central differences, whose errors of second order cancel.
fn slope(kernel: &ActivationKernel, x: &Array1<f64>, y: &Array1<f64>, k: usize, step: f64) -> f64 {
    let at = |step: f64| {
        let [above, below] = [step, -step].map(|step| {
            let mut x = x.clone();
            x[k] += step;
            kernel.value(&x, y).unwrap()
        });
        (above - below) / (2.0 * step)
    };
    (4.0 * at(step) - at(2.0 * step)) / 3.0
}

/// 80 pairs of each kernel, with offsets and lengthscales.
#[test]
fn gradients_are_slopes() {
    let mut rng = rng(3);
    for f in FUNCTIONS {
        for (offset, scales) in [(0.0, vec![1.0; 3]), (0.7, vec![1.3, 0.8, 2.0]), (-0.4, vec![0.9; 3])] {
            let kernel = kernel(f).with_offset(offset).unwrap().with_lengthscale(scales).unwrap();
            for pair in 0..80 {
                let y = vector(0.2 + 1.5 * rng.random::<f64>(), &mut rng);
                let mut x = vector(0.2 + 1.5 * rng.random::<f64>(), &mut rng);
                // Every fourth pair is nearly on a line.
                if pair % 4 == 0 {
                    x = &y * if pair % 8 == 0 { -0.9 } else { 1.1 } + 0.2 * x;
                }
                let found = kernel.gradient(&x, &y).unwrap();
                let expected = Array1::from_shape_fn(3, |k| slope(&kernel, &x, &y, k, 3e-4));
                let off = norm(&(&found - &expected));
                assert!(off < 1e-7 * (1.0 + norm(&expected)), "{f} {offset} at {x} {y}: {found} {expected}");
            }
        }
    }
}

/// Kernels of functions with f(cu) = cᵏ f(u): gradients at cx and by are cᵏ⁻¹bᵏ times as large.
#[test]
fn gradients_of_points_of_any_size() {
    let (x, y) = (arr1(&[0.3, -1.2, 0.4]), arr1(&[0.9, 0.1, -0.7]));
    for (f, k) in [
        (Activation::Identity, 1.0),
        (Activation::Square, 2.0),
        (Activation::Sign, 0.0),
        (Activation::Step, 0.0),
        (Activation::Relu, 1.0),
        (Activation::ReluSquared, 2.0),
        (Activation::Abs, 1.0),
    ] {
        let near = kernel(f).gradient(&x, &y).unwrap();
        for (c, b) in [
            (1e-30, 1.0),
            (1e30, 1.0),
            (1.0, 1e30),
            (1e-30, 1e-30),
            (1e-150, 1e140),
            (1e140, 1e-70),
            (1e-160, 1e155),
        ] {
            let far = kernel(f).gradient(&(&x * c), &(&y * b)).unwrap();
            for (far, near) in far.iter().zip(&near) {
                let expected = near * f64::powf(c, k - 1.0) * f64::powf(b, k);
                assert!((far - expected).abs() <= 1e-12 * expected.abs(), "{f} {c} {b}: {far} {expected}");
            }
        }
    }
}

/// Nearly opposite points have a small φ = π − θ, and gradients keep their leading terms, up to a rounding error of the direction.
#[test]
fn opposite_points_have_the_leading_term() {
    for phi in [1e-2, 1e-5, 1e-8, 1e-12] {
        let (x, y) = (arr1(&[2.0, 0.0]), 3.0 * arr1(&[-f64::cos(phi), f64::sin(phi)]));
        let off = |f: Activation, expected: [f64; 2]| {
            let found = kernel(f).gradient(&x, &y).unwrap();
            // The direction of a gradient has a rounding error over φ.
            let rounding = 4e-16 / phi * expected[0].hypot(expected[1]);
            for (found, expected) in found.iter().zip(expected) {
                let room = (phi * phi).max(1e-9) * expected.abs() + rounding;
                assert!((found - expected).abs() < room, "{f} {phi}: {found} {expected}");
            }
        };
        off(Activation::Relu, [3.0 * phi.powi(3) / 3.0 / (2.0 * PI), 3.0 * phi * phi / (2.0 * PI)]);
        // ‖x‖‖y‖² (2g x̂ − g′ n̂): relu² has g = u⁵/(120·2π) with u = 2φ, −g′ = (2/π) φ·φ³/3.
        let along = (2.0 * phi).powi(5) / (120.0 * PI);
        off(Activation::ReluSquared, [18.0 * along, 18.0 * FRAC_2_PI * phi.powi(4) / 3.0]);
        let step = kernel(Activation::Step).gradient(&x, &y).unwrap();
        assert!(norm(&(&step - &arr1(&[0.0, 0.25 / PI]))) < 4e-17 / phi, "{phi}: {step}");
    }
}

/// An error function saturates: far along a line a gradient is the small rest of the parallel part.
#[test]
fn error_functions_saturate() {
    for size in [1.0f64, 1e3, 1e8, 1e100, 1e160] {
        let found = kernel(Activation::Erf).gradient(&arr1(&[size, 0.0]), &arr1(&[2.0, 0.0])).unwrap();
        // (4/π) y/((1 + 2x²) √(1 + 2x² + 2y²)).
        let ln_square = (2.0f64).ln() + 2.0 * size.ln();
        let (a, b) = (ln_square.exp(), (0.5 * ln_square).exp());
        let expected = if size < 1e7 {
            2.0 * FRAC_2_PI * 2.0 / ((1.0 + a) * (1.0 + a + 8.0).sqrt())
        } else {
            2.0 * FRAC_2_PI * 2.0 / a / b
        };
        assert!((found[0] - expected).abs() <= 1e-12 * expected, "{size}: {found} {expected}");
        assert_eq!(found[1], 0.0);
        // Across the line it is (4/π) y/√(… + 4x²y²).
        let found = kernel(Activation::Erf).gradient(&arr1(&[size, 0.0]), &arr1(&[0.0, 2.0])).unwrap();
        let expected = 2.0 * FRAC_2_PI / ((9.0f64 / size / size + 2.0 + 16.0).sqrt() * size / 2.0);
        assert!((found[1] / expected - 1.0).abs() < 1e-12, "{size}: {found} {expected}");
    }
}

/// Near points of a small product one part is far below the others, which cancel.
#[test]
fn waves_of_a_small_product_keep_their_digits() {
    let (x, y) = (arr1(&[3.0, 0.0]), arr1(&[0.05, 1e-6]));
    // K = e^{−S/2} cosh x·y has the gradient −K x + e^{−S/2} sinh(x·y) y.
    let (size, dot) = ((-0.5 * (9.0 + 0.0025 + 1e-12f64)).exp(), 0.15f64);
    for (f, [own, other]) in
        [(Activation::Cos, [dot.cosh(), dot.sinh()]), (Activation::Sin, [dot.sinh(), dot.cosh()])]
    {
        let found = kernel(f).gradient(&x, &y).unwrap();
        let expected = size * (&y * other - &x * own);
        for (found, expected) in found.iter().zip(&expected) {
            assert!((found / expected - 1.0).abs() < 1e-13, "{f}: {found} {expected}");
        }
    }
}

/// The error function at x = 0 beside a point whose squared norm overflows, and points that are not finite.
#[test]
fn ends_of_the_range() {
    for y in [1e155, 1e200, 1e300] {
        let found = kernel(Activation::Erf).gradient(&arr1(&[0.0, 0.0]), &arr1(&[0.0, -y])).unwrap();
        let expected = -2.0 * FRAC_2_PI / 2f64.sqrt();
        assert!(found[0] == 0.0 && (found[1] / expected - 1.0).abs() < 1e-12, "{y}: {found}");
    }
    for f in FUNCTIONS {
        let far = arr1(&[f64::INFINITY, 1.0]);
        for (x, y) in [(&far, &arr1(&[1.0, 2.0])), (&arr1(&[1.0, 2.0]), &far)] {
            assert!(kernel(f).gradient(x, y).unwrap().iter().all(|v| v.is_nan()), "{f}");
        }
    }
}

/// Points that are 0, and NaN.
#[test]
fn nothing_and_nan() {
    let (zero, y) = (Array1::<f64>::zeros(2), arr1(&[0.6, -0.8]));
    for f in FUNCTIONS {
        for offset in [0.0, 0.5] {
            let kernel = kernel(f).with_offset(offset).unwrap();
            let [from_zero, to_zero, both] =
                [(&zero, &y), (&y, &zero), (&zero, &zero)].map(|(x, y)| kernel.gradient(x, y).unwrap());
            let slope = match f {
                Activation::Identity => 1.0,
                Activation::Sin => (-0.5f64).exp(),
                Activation::Exp => 0.5f64.exp(),
                Activation::Erf => 2.0 * FRAC_2_PI / 3f64.sqrt(),
                _ => 0.0,
            };
            let expected = &y * slope;
            assert!(norm(&(&from_zero - &expected)) < 1e-14, "{f} {offset}: {from_zero}");
            assert!(to_zero.iter().chain(&both).all(|v| v.is_finite()), "{f}: {to_zero} {both}");
            assert_eq!(norm(&both), 0.0, "{f}: {both}");
            for (x, y) in [(arr1(&[f64::NAN, 1.0]), &y), (y.clone(), &arr1(&[f64::NAN, 1.0]))] {
                assert!(kernel.gradient(&x, y).unwrap().iter().all(|v| v.is_nan()), "{f}");
            }
        }
    }
}

/// Waves far from 0, and nearly equal points, keep their digits.
#[test]
fn waves_keep_their_digits() {
    let (x, delta) = (arr1(&[20.0, -13.0]), arr1(&[1e-6, 2e-6]));
    for (f, sign) in
        [(Activation::Cos, 1.0), (Activation::Sin, 1.0), (Activation::Cos, -1.0), (Activation::Sin, -1.0)]
    {
        // K = ±½ e^{−‖δ‖²/2} where the other exponential is nothing.
        let y = (&x + &delta) * sign;
        let found = kernel(f).gradient(&x, &y).unwrap();
        let is_odd = f == Activation::Sin && sign < 0.0;
        let expected = &(&y * sign - &x) * if is_odd { -0.5 } else { 0.5 };
        assert!(norm(&(&found - &expected)) < 1e-11 * norm(&expected), "{f} {sign}: {found} {expected}");
    }
}
