//! [`ShiftInvariant`]: kernels that are functions of x − y, each with its spectral law.

use std::sync::{Arc, Mutex, PoisonError};

use super::agreement::Reference;
use super::angular::ln_square;
use super::{Exponential, Kernel, Lengthscale, Radius, Spectrum, gradient, rational_quadratic};
use crate::digest::{Digest, Identify, Identity};
use crate::error::{Result, check_size};
use crate::{Real, SignedLog};

/// A shift-invariant kernel K(x, y) = k((x − y)/ℓ) with k(0) = 1, and its spectral law, from which frequencies are
/// drawn.
///
/// An implementation gives a [`Kernel`] and [`Trigonometric`](crate::Trigonometric) features with their variance.
///
/// # Variance
/// ½(1 + k(2δ) − 2k(δ)²)/m for trigonometric features on m independent frequencies, since cos² a = ½ + ½ cos 2a.
///
/// # Implementing a kernel
/// An implementation holds a [`Lengthscale`] and returns it, but computes everything for ℓ = 1: the crate divides
/// points by ℓ before it calls `of_square`, and frequencies when it makes a map. This example is exp(−‖δ‖²/4), the
/// Gaussian kernel of lengthscale √2, with radii χ_d/√2:
///
/// ```
/// use random_features::extend::Generator;
/// use random_features::extend::{Radii, Radius, ShiftInvariant, Spectrum};
/// use random_features::frequency::Orthogonal;
/// use random_features::kernel::{Kernel, Lengthscale};
/// use random_features::map::AnyKernel;
/// use random_features::ndarray::arr1;
/// use random_features::{Map, Result, SignedLog, Trigonometric};
///
/// #[derive(Debug, Default)]
/// struct Wide(Lengthscale);
///
/// impl Radii for Wide {
///     fn draw(
///         &self,
///         d: usize,
///         count: usize,
///         rng: &mut Generator,
///     ) -> Result<Vec<f64>> {
///         Ok(Radius::Chi
///             .draw(d, count, rng)?
///             .iter()
///             .map(|radius| radius / 2f64.sqrt())
///             .collect())
///     }
/// }
///
/// impl ShiftInvariant for Wide {
///     fn name(&self) -> String {
///         "wide".into()
///     }
///
///     fn lengthscale(&self) -> &Lengthscale {
///         &self.0
///     }
///
///     fn spectrum(&self) -> Spectrum<'_> {
///         Spectrum::Polar(self)
///     }
///
///     fn of_square(&self, square: f64) -> SignedLog {
///         SignedLog::positive(-0.25 * square)
///     }
///
///     fn log_slope(&self, distance: f64) -> Option<f64> {
///         Some(-0.5 * distance)
///     }
/// }
///
/// let kernel = AnyKernel::own(Wide::default());
/// let omega = kernel.draw(&Orthogonal, 2, 1000, 7)?;
/// let map: Map<f64> = Trigonometric.build(omega, kernel)?;
/// let (x, y) = (arr1(&[0.5, 1.0]), arr1(&[-0.5, 0.0]));
/// let exact = Wide::default().value(&x, &y)?;
/// assert!((map.estimate(&x, &y)? - exact).abs() < 0.05);
/// let gradient = Wide::default().gradient(&x, &y)?;
/// assert!((gradient[0] + 0.5 * exact).abs() < 1e-15);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// A product over coordinates states one factor and the law of one coordinate of ω. This example is Π 1/cosh δₖ, whose law has the
/// density 1/(2 cosh(πω/2)):
///
/// ```
/// use random_features::extend::{Marginal, ShiftInvariant, Spectrum};
/// use random_features::kernel::{Kernel, Lengthscale};
/// use random_features::map::AnyKernel;
/// use random_features::ndarray::arr1;
/// use random_features::{Map, Result, SignedLog};
/// use std::f64::consts::{FRAC_PI_2, LN_2};
///
/// #[derive(Debug, Default)]
/// struct Sech(Lengthscale);
///
/// impl Marginal for Sech {
///     fn lower_quantile(&self, u: f64) -> f64 {
///         (FRAC_PI_2 * u).tan().ln() / FRAC_PI_2
///     }
/// }
///
/// impl ShiftInvariant for Sech {
///     fn name(&self) -> String {
///         "sech".into()
///     }
///
///     fn lengthscale(&self) -> &Lengthscale {
///         &self.0
///     }
///
///     fn spectrum(&self) -> Spectrum<'_> {
///         Spectrum::Product(self)
///     }
///
///     fn of_square(&self, square: f64) -> SignedLog {
///         let size = square.sqrt();
///         SignedLog::positive(LN_2 - size - (-2.0 * size).exp().ln_1p())
///     }
/// }
///
/// let kernel = AnyKernel::own(Sech::default());
/// let map: Map<f64> = Map::for_kernel(kernel, 2, 1000, 7)?;
/// let (x, y) = (arr1(&[0.5, 1.0]), arr1(&[-0.5, 0.0]));
/// assert!((map.estimate(&x, &y)? - 1.0 / 1f64.cosh().powi(2)).abs() < 0.05);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Lengthscales, and a search for them
/// `Wide(2.0.into())` has one lengthscale, and `Wide(vec![0.5, 2.0].into())` one for each coordinate: δₗ = (xₗ −
/// yₗ)/ℓₗ. Frequencies that are drawn once serve every lengthscale, since their law is for ℓ = 1. Draw them from one
/// value of the type: the random numbers follow from its `Debug` text, which shows ℓ here. The crate cannot replace the
/// lengthscale of your type, so [`RidgeSearch`](crate::apply::RidgeSearch) takes a function that makes the map:
/// `RidgeSearch::new(omega, |omega, ell| Trigonometric.build(omega, AnyKernel::own(Wide(ell))))`. Its option
/// `with_lengthscale_per_dimension(5)` searches a lengthscale for each coordinate. `RidgeSearch::of_recipe` and
/// [`AnyKernel::with_lengthscale`](crate::map::AnyKernel::with_lengthscale) refuse a kernel of your own.
///
/// # References
/// Rahimi and Recht, *Random Features for Large-Scale Kernel Machines*.
pub trait ShiftInvariant: std::fmt::Debug + Send + Sync {
    /// The name with all parameters except the lengthscale. Kernels of your own are equal if their names and
    /// lengthscales are.
    fn name(&self) -> String;

    /// The lengthscale ℓ, one number or one for each coordinate, by which the crate divides points.
    fn lengthscale(&self) -> &Lengthscale;

    /// d, if the kernel is for points in ℝᵈ alone; `None`, the default, if it is for every dimension.
    fn dim(&self) -> Option<usize> {
        None
    }

    /// The law of the frequencies ω for ℓ = 1, whatever [`lengthscale`](ShiftInvariant::lengthscale) returns.
    fn spectrum(&self) -> Spectrum<'_>;

    /// The kernel as a function of a square, for δ = (x − y)/ℓ. For a [polar](Spectrum::Polar) spectrum it is k(δ), and
    /// the square is ‖δ‖². For a [product](Spectrum::Product) it is the factor of one coordinate, and the square is
    /// δₗ². A square that overflows is ∞. For a [mixture](Spectrum::Mixture) this method is not called: the mixture itself gives the
    /// values of the kernel.
    fn of_square(&self, square: f64) -> SignedLog;

    /// The slope k′/k of ln |k| at a finite distance above 0. The distance is ‖δ‖ for a polar spectrum, and |δₗ| for
    /// the factor of one coordinate of a product. For a mixture it is not called.
    ///
    /// [Gradients](Kernel::gradient) of the kernel follow from it; they are taken to be 0 where k is exactly 0. The default is `None` at
    /// every distance: the kernel then has no gradients.
    fn log_slope(&self, _distance: f64) -> Option<f64> {
        None
    }

    /// ln of the variance of cos(ω·δ), ½(1 + k(2δ) − 2k(δ)²), for δ = (x − y)/ℓ.
    ///
    /// The relative error of the default is about eps/(1 − k(δ)). A kernel that can compute k(2δ)/k(δ)⁴ without
    /// cancellation should override it.
    fn ln_variance(&self, delta: &[f64]) -> f64 {
        let times = |factor: f64| at(self, delta.len(), |l| factor * delta[l]);
        let (once, twice) = (times(1.0), times(2.0));
        if twice.sign > 0.0 && once.sign != 0.0 {
            return ln_variance(once.ln_abs, twice.ln_abs - 4.0 * once.ln_abs);
        }
        let square = (2.0 * once.ln_abs).exp();
        (0.5 * ((1.0 - square) * (1.0 - square) + twice.value() - square * square)).max(0.0).ln()
    }
}

/// ln ½(1 + k(2δ) − 2k(δ)²) from ln |k(δ)| and `gap` = ln k(2δ) − 4 ln |k(δ)|: in the form ½((1 − k(δ)²)² + k(2δ) −
/// k(δ)⁴), in which only the gap can cancel.
pub(super) fn ln_variance(ln: f64, gap: f64) -> f64 {
    let (below, rest) = ((2.0 * ln).exp_m1(), (4.0 * ln).exp() * gap.exp_m1());
    // Where k(δ)⁴ underflows, k(2δ) is e^{gap + 4 ln k}.
    let rest = if rest.is_finite() { rest } else { (gap + 4.0 * ln).exp() };
    (0.5 * (below * below + rest).max(0.0)).ln()
}

/// k at the difference whose coordinate l is `delta(l)`, l < d.
pub(super) fn at<K: ShiftInvariant + ?Sized>(
    kernel: &K,
    d: usize,
    delta: impl Fn(usize) -> f64,
) -> SignedLog {
    let squares = (0..d).map(&delta).map(|v| v * v);
    match kernel.spectrum() {
        Spectrum::Polar(radii) => match (squares.sum::<f64>(), radii.law()) {
            // No other named kernel is above 0 this far away.
            (f64::INFINITY, Radius::RationalQuadratic { alpha }) => {
                SignedLog::positive(rational_quadratic::ln_far(alpha, ln_square((0..d).map(&delta))))
            }
            (square, _) => kernel.of_square(square),
        },
        Spectrum::Product(_) => {
            squares.fold(SignedLog::from(1.0), |product, square| product.times(kernel.of_square(square)))
        }
        Spectrum::Mixture(mixture) => mixture.at(d, &delta),
    }
}

impl<T: Real, K: ShiftInvariant + ?Sized> Kernel<T> for K {
    fn check_dim(&self, d: usize) -> Result<()> {
        if let Some(dim) = self.dim() {
            check_size("the dimension of the points", dim, d)?;
        }
        self.lengthscale().check_dim(d)
    }

    fn exponential(&self) -> Option<Exponential> {
        // No other shift-invariant kernel has this spectral law.
        let gaussian = self.spectrum().law() == Radius::Chi;
        gaussian.then(|| Exponential { lengthscale: self.lengthscale().clone(), row: -0.5 })
    }

    fn identity(&self) -> Option<Identity> {
        Some(Identity::of(&(self.name().as_str(), self.lengthscale())))
    }

    fn log_of_slices(&self, x: &[T], y: &[T]) -> SignedLog {
        if let Spectrum::Polar(_) = self.spectrum() {
            // Differences before squares, so that large norms do not cancel.
            let square = self.lengthscale().sum(x, y, |x, y| (x - y) * (x - y));
            if square.is_finite() {
                return self.of_square(square);
            }
        }
        at(self, x.len(), |l| (x[l].widen() - y[l].widen()) / self.lengthscale().at(l))
    }

    fn gradient_of_slices(&self, x: &[T], y: &[T], out: &mut [f64]) -> Option<f64> {
        let scale = |l| self.lengthscale().at(l);
        let pairs = out.iter_mut().zip(x.iter().zip(y)).enumerate();
        pairs.for_each(|(l, (out, (x, y)))| *out = (x.widen() - y.widen()) / scale(l));
        let ln_scale = gradient::at(self, self.log_of_slices(x, y), out)?;
        out.iter_mut().enumerate().for_each(|(l, out)| *out /= scale(l));
        Some(ln_scale)
    }
}

/// A dimension, and a sample of a kernel's law in it.
type Sampled = Option<(usize, Arc<Reference>)>;

/// A kernel of your own, in an [`AnyKernel`](crate::map::AnyKernel). Two such kernels are equal if their names and
/// lengthscales are.
#[derive(Clone, Debug)]
pub struct OwnKernel {
    kernel: Arc<dyn ShiftInvariant>,
    /// The sample with which frequencies are compared; clones share it.
    reference: Arc<Mutex<Sampled>>,
}

/// A kernel does not change, so a panic leaves it as it was.
impl std::panic::UnwindSafe for OwnKernel {}
impl std::panic::RefUnwindSafe for OwnKernel {}

impl OwnKernel {
    /// A kernel of any shift-invariant type.
    pub fn new(kernel: impl ShiftInvariant + 'static) -> Self {
        OwnKernel { kernel: Arc::new(kernel), reference: Arc::default() }
    }

    /// The sample of the law in this dimension with which frequencies are compared.
    ///
    /// # Errors
    /// The errors of [`Reference::of`].
    pub(crate) fn reference(&self, dim: usize) -> Result<Arc<Reference>> {
        let known = || self.reference.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known().as_ref().filter(|(of, _)| *of == dim).map(|(_, reference)| reference.clone());
        if let Some(reference) = found {
            return Ok(reference);
        }
        let reference = Arc::new(Reference::of(self.kernel.as_ref(), dim)?);
        *known() = Some((dim, reference.clone()));
        Ok(reference)
    }
}

/// The identity is that of name and lengthscale.
impl Identify for OwnKernel {
    fn identify(&self, digest: &mut Digest) {
        (self.name().as_str(), self.lengthscale()).identify(digest);
    }
}

impl PartialEq for OwnKernel {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.kernel, &other.kernel) || Digest::of(self) == Digest::of(other)
    }
}

impl ShiftInvariant for OwnKernel {
    fn name(&self) -> String {
        self.kernel.name()
    }

    fn lengthscale(&self) -> &Lengthscale {
        self.kernel.lengthscale()
    }

    fn dim(&self) -> Option<usize> {
        self.kernel.dim()
    }

    fn spectrum(&self) -> Spectrum<'_> {
        self.kernel.spectrum()
    }

    fn of_square(&self, square: f64) -> SignedLog {
        self.kernel.of_square(square)
    }

    fn log_slope(&self, distance: f64) -> Option<f64> {
        self.kernel.log_slope(distance)
    }

    fn ln_variance(&self, delta: &[f64]) -> f64 {
        self.kernel.ln_variance(delta)
    }
}
