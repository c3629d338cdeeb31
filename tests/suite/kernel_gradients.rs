//! Gradients of kernels against differences of their values, in ranges where differences say nothing against their leading terms, and
//! what has no gradients.

use crate::own_kernel::TwoShells;
use ndarray::{Array1, arr1, arr2};
use rand::RngExt;
use random_features::extend::{Generator, Marginal, ShiftInvariant, Spectrum};
use random_features::frequency::Independent;
use random_features::kernel::{
    Angular, Gaussian, Kernel, Laplace, Lengthscale, Matern, PoweredExponential, RationalQuadratic,
    RegularisedSoftmax, Smoothness, Softmax, SpectralMixture,
};
use random_features::map::AnyKernel;
use random_features::{Error, Map, SignedLog, Trigonometric, rng};

fn each() -> Vec<f64> {
    vec![1.3, 0.8, 2.0]
}

fn matern(nu: f64, scale: impl Into<Lengthscale>) -> AnyKernel {
    Matern::new(Smoothness::of(nu).unwrap(), scale).unwrap().into()
}

fn powered(alpha: f64, scale: impl Into<Lengthscale>) -> AnyKernel {
    PoweredExponential::new(alpha, scale).unwrap().into()
}

fn quadratic(alpha: f64, scale: impl Into<Lengthscale>) -> AnyKernel {
    RationalQuadratic::new(alpha, scale).unwrap().into()
}

fn by_coordinates(alpha: f64) -> AnyKernel {
    SpectralMixture::powered_exponential(alpha, each()).unwrap().into()
}

fn mixture() -> SpectralMixture {
    let wave = SpectralMixture::cosine(vec![0.7, -1.5, 0.4]).unwrap();
    let periodic = SpectralMixture::periodic(vec![3.0, 5.0, 2.0], 0.9).unwrap();
    let first = SpectralMixture::product(&[&wave, &Gaussian::new(each()).unwrap()]).unwrap();
    let matern = Matern::new(Smoothness::of(0.8).unwrap(), 2.0).unwrap();
    let second = SpectralMixture::product(&[&periodic, &matern, &Laplace::new(4.0).unwrap()]).unwrap();
    let sum = SpectralMixture::sum(&[(0.4, &first), (0.6, &second)]).unwrap();
    sum.with_lengthscale(vec![0.5, 1.0, 2.0]).unwrap()
}

/// How near to a place without derivatives the values at x are, of a difference δ: differences there take steps that are smaller.
#[derive(Clone, Copy)]
enum Smooth {
    /// Nowhere.
    Everywhere,
    /// At y.
    OffY,
    /// At coordinates of y.
    OffCoordinates,
    /// At multiples of y, and at 0.
    OffRays,
}

fn kernels() -> Vec<(AnyKernel, Smooth)> {
    let padded = RegularisedSoftmax::in_dimension(8).with_lengthscale(each()).unwrap();
    let mut all = vec![
        (Gaussian::new(0.7).unwrap().into(), Smooth::Everywhere),
        (Gaussian::new(each()).unwrap().into(), Smooth::Everywhere),
        (Softmax::new(each()).unwrap().into(), Smooth::Everywhere),
        (RegularisedSoftmax::new(1.5).unwrap().into(), Smooth::Everywhere),
        (padded.into(), Smooth::Everywhere),
        (quadratic(0.5, each()), Smooth::Everywhere),
        (quadratic(40.0, 0.5), Smooth::Everywhere),
        (powered(2.0, each()), Smooth::Everywhere),
        (Laplace::new(each()).unwrap().into(), Smooth::OffCoordinates),
        (Angular.into(), Smooth::OffRays),
        (mixture().into(), Smooth::OffCoordinates),
        (by_coordinates(0.6), Smooth::OffCoordinates),
        (by_coordinates(1.4), Smooth::OffCoordinates),
        (AnyKernel::own(Triangle::default()), Smooth::OffCoordinates),
    ];
    for nu in [0.3, 0.5, 0.8, 1.0, 1.5, 1.7, 2.5, 7.5] {
        all.push((matern(nu, each()), if nu > 2.0 { Smooth::Everywhere } else { Smooth::OffY }));
    }
    all.extend([0.5, 1.0, 1.3].map(|alpha| (powered(alpha, each()), Smooth::OffY)));
    all
}

/// Π max(1 − |δₖ|, 0), a factor of which may be 0.
#[derive(Debug, Default)]
struct Triangle(Lengthscale);

impl Marginal for Triangle {
    fn lower_quantile(&self, _: f64) -> f64 {
        unreachable!("nothing is drawn")
    }
}

impl ShiftInvariant for Triangle {
    fn name(&self) -> String {
        "triangle".into()
    }

    fn lengthscale(&self) -> &Lengthscale {
        &self.0
    }

    fn spectrum(&self) -> Spectrum<'_> {
        Spectrum::Product(self)
    }

    fn of_square(&self, square: f64) -> SignedLog {
        SignedLog::from(if square > 1.0 { 0.0 } else { 1.0 - square.sqrt() })
    }

    fn log_slope(&self, distance: f64) -> Option<f64> {
        Some(if distance < 1.0 { -1.0 / (1.0 - distance) } else { 0.0 })
    }
}

fn norm(v: &Array1<f64>) -> f64 {
    v.dot(v).sqrt()
}

/// A vector in ℝ³ of this norm.
fn directed(size: f64, rng: &mut Generator) -> Array1<f64> {
    let v = Array1::from_shape_fn(3, |_| rng.random::<f64>() - 0.5);
    let scale = size / norm(&v);
    v * scale
}

/// A power of ten between 1e-8 and 1e3.
fn size(rng: &mut Generator) -> f64 {
    10f64.powf(11.0 * rng.random::<f64>() - 8.0)
}

/// The central difference of a kernel along a coordinate of x, and a bound of its error.
fn difference(
    kernel: &dyn Kernel<f64>,
    smooth: Smooth,
    x: &Array1<f64>,
    y: &Array1<f64>,
    k: usize,
) -> (f64, f64) {
    let delta = x - y;
    let step = match smooth {
        Smooth::Everywhere => 1e-4,
        Smooth::OffY => 1e-3 * norm(&delta).min(1.0),
        Smooth::OffCoordinates => 1e-3 * delta[k].abs().min(1.0),
        Smooth::OffRays => 1e-4 * norm(&delta).min(norm(x)),
    };
    let at = |step: f64| {
        let [above, below] = [step, -step].map(|step| {
            let mut x = x.clone();
            x[k] += step;
            (kernel.value(&x, y).unwrap(), x[k])
        });
        let size = above.0.abs().max(below.0.abs());
        // Values are exponentials of logarithms, or sums of terms up to 1 of waves.
        let noise = match smooth {
            Smooth::Everywhere | Smooth::OffY => size * (1.0 + size.ln().abs()),
            Smooth::OffCoordinates | Smooth::OffRays => 1.0 + 10.0 * norm(&delta),
        };
        ((above.0 - below.0) / (above.1 - below.1), 8.0 * f64::EPSILON * noise / step)
    };
    let ((found, noise), (wider, _)) = (at(step), at(2.0 * step));
    (found, 2.0 * noise + (found - wider).abs())
}

/// 300 pairs of each kernel. Half of the differences and more are exact to a thousandth of the gradient.
#[test]
fn gradients_are_slopes() {
    for (kernel, smooth) in kernels() {
        let exact = kernel.kernel::<f64>().unwrap();
        let (mut compared, mut sharp, mut rng) = (0, 0, rng(5));
        for pair in 0..300 {
            // Every third pair is at distances at which no kernel is small.
            let gap = if pair % 3 == 0 { 0.1 + rng.random::<f64>() } else { size(&mut rng) };
            let y = directed(if pair % 3 == 0 { 1.0 } else { size(&mut rng) }, &mut rng);
            let x = &y + &directed(gap, &mut rng);
            let (value, gradient) = (exact.value(&x, &y).unwrap(), exact.gradient(&x, &y).unwrap());
            assert!(gradient.iter().all(|v| !v.is_nan()), "{kernel} at {x} {y}: {gradient}");
            if value == 0.0 {
                assert!(gradient.iter().all(|v| v.abs() < 1e-280), "{kernel} at {x} {y}: {gradient}");
            }
            if !(1e-280..1e280).contains(&value.abs()) {
                continue;
            }
            for (k, found) in gradient.iter().enumerate() {
                let (expected, error) = difference(exact.as_ref(), smooth, &x, &y, k);
                let most = 1e-7 * norm(&gradient) + error;
                assert!(
                    (found - expected).abs() <= most,
                    "{kernel} at {x} {y}, {k}: {found} {expected} {most}"
                );
                compared += 1;
                sharp += usize::from(error < 1e-3 * norm(&gradient));
            }
        }
        assert!(compared >= 300 && 2 * sharp > compared, "{kernel}: {sharp} of {compared}");
    }
}

/// The size of a gradient by the distance.
type Leading = Box<dyn Fn(f64) -> f64>;

/// Near y the gradient has the size of its leading term, also where squares of differences are below the range.
#[test]
fn near_points_have_the_leading_term() {
    let linear = |factor: f64| Box::new(move |r: f64| factor * r) as Leading;
    let power = |alpha: f64| Box::new(move |r: f64| alpha * r.powf(alpha - 1.0)) as Leading;
    let shared = SpectralMixture::product(&[&Gaussian::default(), &Gaussian::default()]).unwrap();
    let cases: Vec<(AnyKernel, Leading)> = vec![
        (Gaussian::default().into(), linear(1.0)),
        (quadratic(0.3, 1.0), linear(1.0)),
        (matern(0.5, 1.0), power(1.0)),
        (matern(1.5, 1.0), linear(3.0)),
        (matern(2.5, 1.0), linear(5.0 / 3.0)),
        (matern(4.0, 1.0), linear(4.0 / 3.0)),
        (powered(0.2, 1.0), power(0.2)),
        (powered(1.0, 1.0), power(1.0)),
        (powered(1.7, 1.0), power(1.7)),
        (powered(2.0, 1.0), linear(2.0)),
        (shared.into(), linear(2.0)),
    ];
    let (direction, y) = (arr1(&[0.6, 0.0, -0.8]), Array1::zeros(3));
    for (kernel, expected) in cases {
        let exact = kernel.kernel::<f64>().unwrap();
        for r in [1e-9, 1e-100, 1e-150, 1e-170, 1e-300] {
            // exp(−r^α) is not yet 1 for small α.
            let x = &direction * r;
            let (factor, found) = (exact.value(&x, &y).unwrap(), exact.gradient(&x, &y).unwrap());
            for (found, direction) in found.iter().zip(&direction) {
                let expected = -expected(r) * factor * direction;
                let off = (found - expected).abs();
                assert!(off <= 1e-8 * expected.abs(), "{kernel} at {r}: {found} {expected}");
            }
        }
    }
    let laplace = Laplace::new(vec![0.5, 1.0, 2.0]).unwrap();
    let powered = SpectralMixture::powered_exponential(1.0, vec![0.5, 1.0, 2.0]).unwrap();
    for (r, kernel) in [1e-9, 1e-170, 1e-300].into_iter().flat_map(|r| {
        let kernels: [&dyn Kernel<f64>; 2] = [&laplace, &powered];
        kernels.map(|kernel| (r, kernel))
    }) {
        let found = kernel.gradient(&arr1(&[r, 0.0, -r]), &y).unwrap();
        assert!((&found - &arr1(&[-2.0, 0.0, 0.5])).iter().all(|v| v.abs() < 1e-8), "{found}");
    }
}

/// (1 + r²/(2α))^{−α} with a small α at large r, where k is not small.
#[test]
fn far_points_have_small_gradients() {
    let (alpha, y) = (1e-3, Array1::zeros(1));
    let kernel = RationalQuadratic::new(alpha, 1.0).unwrap();
    for r in [1e3, 1e70, 1e150, 1e160] {
        let found = kernel.gradient(&arr1(&[r]), &y).unwrap()[0];
        let expected = -2.0 * alpha * kernel.value(&arr1(&[r]), &y).unwrap() / r;
        assert!((found / expected - 1.0).abs() < 1e-6, "{r}: {found} {expected}");
    }
    for (kernel, _) in kernels() {
        let exact = kernel.kernel::<f64>().unwrap();
        if !kernel.is_shift_invariant() || kernel.to_string().contains("quadratic") {
            continue;
        }
        for far in [1e120, 1e150, 1e200, 1e308, f64::INFINITY] {
            if kernel.to_string().contains("mixture") && far.is_infinite() {
                continue;
            }
            let found = exact.gradient(&arr1(&[far, 0.0, -far]), &Array1::zeros(3)).unwrap();
            assert!(found.iter().all(|v| *v == 0.0), "{kernel} at {far}: {found}");
        }
    }
}

#[test]
fn softmax_keeps_what_its_value_cannot() {
    let gradient = |scale: f64, x: f64, y: f64| {
        Softmax::new(scale).unwrap().gradient(&arr1(&[x, 1.0]), &arr1(&[y, 0.0])).unwrap()
    };
    // The value underflows, and its product with y does not.
    assert!((gradient(1.0, -760.0 / 1e30, 1e30)[0].ln() - (1e30f64.ln() - 760.0)).abs() < 1e-9);
    assert_eq!(gradient(1e-100, -1.0, 1e200).to_vec(), [0.0, 0.0]);
    // Here even the logarithm of the value overflows.
    assert_eq!(gradient(1e-100, 1.0, 1e200).to_vec(), [f64::INFINITY, 0.0]);
    assert_eq!(gradient(1e-100, 0.0, 1e200).to_vec(), [f64::INFINITY, 0.0]);
    assert_eq!(gradient(1.0, 2.0, 0.0).to_vec(), [0.0, 0.0]);
    // Narrow points overflow where `f32` does.
    let narrow = Softmax::default().gradient(&arr1(&[10f32]), &arr1(&[9.0])).unwrap();
    assert_eq!(narrow[0], f32::INFINITY);
}

#[test]
fn equal_points_and_nan() {
    for (kernel, _) in kernels() {
        let exact = kernel.kernel::<f64>().unwrap();
        let x = arr1(&[0.7, -0.2, 1.1]);
        if kernel.is_shift_invariant() || kernel == Angular.into() {
            assert_eq!(exact.gradient(&x, &x).unwrap().to_vec(), [0.0; 3], "{kernel}");
        }
        for (a, b) in [([f64::NAN, 0.0, 1.0], [0.1; 3]), ([0.5, 0.0, 2.0], [0.5, f64::NAN, 1.0])] {
            let found = exact.gradient(&arr1(&a), &arr1(&b)).unwrap();
            assert!(found.iter().all(|v| v.is_nan()), "{kernel}: {found}");
        }
    }
    // Angles at the point 0 and at multiples are at kinks.
    let x = arr1(&[0.3, -0.1]);
    for y in [Array1::zeros(2), &x * 3.0, &x * -7.0] {
        for (a, b) in [(&x, &y), (&y, &x)] {
            assert_eq!(Angular.gradient(a, b).unwrap().to_vec(), [0.0; 2], "{y}");
        }
    }
    // A product beside a factor that is 0.
    let found = Triangle::default().gradient(&arr1(&[0.5, -1.5, 0.0]), &Array1::zeros(3)).unwrap();
    assert_eq!(found.to_vec(), [0.0; 3]);
}

/// Gradients of narrow points are those of wide ones, rounded once.
#[test]
fn narrow_gradients_are_wide_ones() {
    let (x, y) = (arr1(&[0.5f32, -0.25, 1.1]), arr1(&[0.1f32, 0.3, 0.9]));
    for (kernel, _) in kernels() {
        let narrow = kernel.kernel::<f32>().unwrap().gradient(&x, &y).unwrap();
        let wide = kernel.kernel::<f64>().unwrap().gradient(&x.mapv(f64::from), &y.mapv(f64::from)).unwrap();
        assert_eq!(narrow, wide.mapv(|v| v as f32), "{kernel}");
    }
}

/// The kernel that a map estimates gives gradients as it does itself.
#[test]
fn kernels_of_maps_have_gradients() {
    let kernel = Gaussian::new(0.8).unwrap();
    let omega = kernel.draw(&Independent, 2, 8, 1).unwrap();
    let map: Map<f64> = Trigonometric.build(omega, kernel.clone()).unwrap();
    let (x, y) = (arr1(&[0.5, -0.2]), arr1(&[0.1, 0.4]));
    assert_eq!(map.kernel().unwrap().gradient(&x, &y), kernel.gradient(&x, &y));
}

#[test]
fn what_has_no_gradients_says_so() {
    let (x, y) = (arr1(&[0.5, -0.2, 1.0]), arr1(&[0.1, 0.4, 1.0]));
    let kernel: &dyn Kernel<f64> = &TwoShells::default();
    for (x, y) in [(&x, &y), (&x, &x), (&(&x * f64::NAN), &y)] {
        let error = kernel.gradient(x, y).unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }), "{kernel:?}: {error}");
    }
    let shape = |found: Result<Array1<f64>, Error>| assert!(matches!(found, Err(Error::Shape { .. })));
    shape(Gaussian::default().gradient(&x, &arr1(&[1.0])));
    shape(Gaussian::new(vec![1.0, 2.0]).unwrap().gradient(&x, &y));
    let rows = arr2(&[[0.5, -0.2], [0.1, 0.4]]);
    assert_eq!(Gaussian::default().gradient(&rows.column(0), &rows.column(1)).unwrap().len(), 2);
}

/// Numbers at the ends of their range: powers that overflow, steep Matérn kernels, NaN beside a point that is 0, and ℓ far apart.
#[test]
fn ends_of_the_range() {
    let zero = Array1::<f64>::zeros(1);
    for (alpha, scale, x) in [(2.0, 0.8, 1e308), (2.0, 1e-10, 1e300), (1.5, 1.0, f64::INFINITY)] {
        let kernel = SpectralMixture::powered_exponential(alpha, scale).unwrap();
        assert_eq!(kernel.gradient(&arr1(&[x]), &zero).unwrap()[0], 0.0, "{alpha} {x}");
    }
    for nu in [0.05, 0.3, 0.4] {
        let kernel = matern(nu, 1.0).kernel::<f64>().unwrap();
        let found = |x: f64| kernel.gradient(&arr1(&[x]), &zero).unwrap()[0];
        // The slope is a power of δ.
        let power = (found(1e-290) / found(1e-280)).ln() / (1e-10f64).ln();
        assert!((power / (2.0 * nu - 1.0) - 1.0).abs() < 1e-2, "{nu}: {power}");
    }
    let [nothing, bad] = [arr1(&[0.0, 0.0]), arr1(&[f64::NAN, 1.0])];
    for (x, y) in [(&nothing, &bad), (&bad, &nothing)] {
        assert!(Angular.gradient(x, y).unwrap().iter().any(|v| v.is_nan()));
        assert!(Kernel::<f64>::value(&Angular, x, y).unwrap().is_nan());
    }
    let kernel = Softmax::new(vec![1e-10, 1e-150]).unwrap();
    let gradient = kernel.gradient(&arr1(&[0.0, 0.0]), &arr1(&[1e300, 1e-300])).unwrap();
    assert!(gradient[0] == f64::INFINITY && (gradient[1] - 1.0).abs() < 1e-9, "{gradient}");
}

/// Equal lengthscales are one, and the text is read back.
#[test]
fn texts_of_products_over_coordinates_are_read_back() {
    for scales in [vec![2.0, 2.0], vec![1.5], vec![1.0, 3.0]] {
        let kernel: AnyKernel = SpectralMixture::powered_exponential(1.5, scales).unwrap().into();
        assert_eq!(kernel.to_string().parse::<AnyKernel>().unwrap(), kernel);
    }
}
