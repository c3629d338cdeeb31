//! Kernels E\[f(ω·x) f(ω·y)\] that have a closed form.

mod gradient;

use std::f64::consts::{FRAC_2_PI, LN_2, PI};

use super::angular::{Angle, ln_norm, ln_square, quadratic};
use super::{Activation, Kernel, Lengthscale};
use crate::digest::{Identity, identified};
use crate::error::{Error, Result};
use crate::numeric::special::ln_add_exp;
use crate::{Real, SignedLog};

/// The kernel E\[(f(ω·x) + ε)(f(ω·y) + ε)\], ω ~ N(0, I), of a function f for which it has a closed form.
///
/// ```
/// use random_features::kernel::{Activation, Kernel};
/// use random_features::ndarray::arr1;
/// let x = arr1(&[2.0f64, 0.0]);
/// if let Some(kernel) = Activation::Relu.kernel() {
///     assert!((kernel.value(&x, &x)? - 2.0).abs() < 1e-15);
/// }
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// K_f(x, y) + ε (E f(ω·x) + E f(ω·y)) + ε² at points divided by the lengthscale ℓ; ε = 0 and ℓ = 1 by default. θ is the
/// angle between x and y, S = ‖x‖² + ‖y‖² and r = ‖x‖‖y‖:
///
/// | f | K_f | E f(ω·x) |
/// |---|---|---|
/// | u | x·y | 0 |
/// | u² | r² + 2(x·y)² | ‖x‖² |
/// | exp | exp(‖x+y‖²/2) | exp(‖x‖²/2) |
/// | cos | e^{−S/2} cosh x·y | exp(−‖x‖²/2) |
/// | sin | e^{−S/2} sinh x·y | 0 |
/// | sgn | 1 − 2θ/π | 0 |
/// | step | ½ − θ/(2π) | ½ |
/// | erf | (2/π) asin(2x·y/√((1+2‖x‖²)(1+2‖y‖²))) | 0 |
/// | ReLU | (r/2π)(sin θ + (π−θ) cos θ) | ‖x‖/√(2π) |
/// | ReLU² | (r²/2π)(3 sin θ cos θ + (π−θ)(1 + 2cos²θ)) | ‖x‖²/2 |
/// | \|u\| | (2r/π)(sin θ + (π/2−θ) cos θ) | ‖x‖√(2/π) |
///
/// Values near zeros of K_f have small relative errors. The point 0 counts as orthogonal to every point.
///
/// Gradients are 0 at kinks: for sgn and step where x and y are parallel or a point is 0, for ReLU and |u| at x = 0. Nearly
/// parallel points leave gradients of sgn and step a relative error of some 2⁻⁵²/θ, nearly opposite ones those of ReLU and ReLU² one
/// of 2⁻⁵²/(π − θ). A point that is not finite makes gradients NaN.
///
/// # References
/// Choromanski et al., *Rethinking Attention with Performers*, equations 3 and 5; Cho and Saul, *Kernel
/// Methods for Deep Learning*; Williams, *Computing with Infinite Networks*.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "StoredActivationKernel")
)]
pub struct ActivationKernel {
    activation: Activation,
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    offset: f64,
    lengthscale: Lengthscale,
}

impl ActivationKernel {
    /// The kernel of `activation` with ε = 0 and ℓ = 1; `None` without a closed form (GELU, sigmoid and tanh).
    pub fn new(activation: Activation) -> Option<Self> {
        let open = matches!(activation, Activation::Gelu | Activation::Sigmoid | Activation::Tanh);
        let lengthscale = Lengthscale::default();
        (!open).then_some(ActivationKernel { activation, offset: 0.0, lengthscale })
    }

    /// Sets the offset ε: the kernel becomes the one of f + ε.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if ε is not finite.
    pub fn with_offset(self, offset: f64) -> Result<Self> {
        Ok(ActivationKernel { offset: checked_offset(offset)?, ..self })
    }

    /// Sets the lengthscale ℓ.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if an ℓ is outside its domain.
    pub fn with_lengthscale(self, lengthscale: impl Into<Lengthscale>) -> Result<Self> {
        Ok(ActivationKernel { lengthscale: lengthscale.into().checked()?, ..self })
    }

    /// The function f.
    pub fn activation(&self) -> Activation {
        self.activation
    }

    /// The offset ε.
    pub fn offset(&self) -> f64 {
        self.offset
    }

    /// The lengthscale.
    pub fn lengthscale(&self) -> &Lengthscale {
        &self.lengthscale
    }

    /// Pairs of coordinates of x/ℓ and y/ℓ.
    fn scaled<T: Real>(&self, x: &[T], y: &[T]) -> impl Iterator<Item = (f64, f64)> + Clone {
        let scaled = |(k, (x, y)): (usize, (&T, &T))| {
            let scale = self.lengthscale.at(k);
            (x.widen() / scale, y.widen() / scale)
        };
        x.iter().zip(y).enumerate().map(scaled)
    }
}

impl Activation {
    /// The kernel E\[f(ω·x) f(ω·y)\], ω ~ N(0, I), if it has a closed form.
    pub fn kernel(self) -> Option<ActivationKernel> {
        ActivationKernel::new(self)
    }

    /// E f(ω·x), ω ~ N(0, I), from ln ‖x‖; NaN without a closed form.
    pub(crate) fn mean(self, ln_norm: f64) -> SignedLog {
        mean(self, ln_norm)
    }
}

/// Rejects an ε that is not finite; −0 becomes 0.
pub(crate) fn checked_offset(offset: f64) -> Result<f64> {
    let wrong = Error::Parameter { name: "the offset ε", value: offset, domain: "finite" };
    if offset.is_finite() { Ok(offset + 0.0) } else { Err(wrong) }
}

/// The stored form, validated on reading.
#[cfg(feature = "serde")]
#[derive(serde::Deserialize)]
struct StoredActivationKernel {
    activation: Activation,
    #[serde(with = "crate::exact")]
    offset: f64,
    lengthscale: Lengthscale,
}

#[cfg(feature = "serde")]
impl TryFrom<StoredActivationKernel> for ActivationKernel {
    type Error = String;

    fn try_from(stored: StoredActivationKernel) -> Result<Self, String> {
        let kernel = ActivationKernel::new(stored.activation)
            .ok_or_else(|| format!("the kernel of {:?} has no closed form", stored.activation))?;
        let kernel = kernel.with_offset(stored.offset).map_err(|e| e.to_string())?;
        kernel.with_lengthscale(stored.lengthscale).map_err(|e| e.to_string())
    }
}

identified! { ActivationKernel { activation, offset, lengthscale } }

impl<T: Real> Kernel<T> for ActivationKernel {
    fn check_dim(&self, d: usize) -> Result<()> {
        self.lengthscale.check_dim(d)
    }

    fn log_of_slices(&self, x: &[T], y: &[T]) -> SignedLog {
        let pairs = self.scaled(x, y);
        let product = product_mean(self.activation, pairs.clone());
        if self.offset == 0.0 {
            return product;
        }
        let offset = SignedLog::from(self.offset);
        let times_offset =
            |mean: SignedLog| SignedLog { sign: mean.sign * offset.sign, ..mean.scaled(offset.ln_abs) };
        let of_x = mean(self.activation, ln_norm(pairs.clone().map(|(x, _)| x)));
        let of_y = mean(self.activation, ln_norm(pairs.map(|(_, y)| y)));
        let terms = [product, times_offset(of_x), times_offset(of_y), times_offset(offset)];
        SignedLog::sum(terms.into_iter())
    }

    fn gradient_of_slices(&self, x: &[T], y: &[T], out: &mut [f64]) -> Option<f64> {
        let ln_scale = self.gradient(self.scaled(x, y), out);
        out.iter_mut().enumerate().for_each(|(k, v)| *v /= self.lengthscale.at(k));
        Some(ln_scale)
    }

    fn identity(&self) -> Option<Identity> {
        Some(Identity::of(&("activation", self)))
    }
}

/// E f(ω·x) f(ω·y) from pairs of coordinates (xₗ, yₗ); NaN without a closed form.
fn product_mean(f: Activation, pairs: impl Iterator<Item = (f64, f64)> + Clone) -> SignedLog {
    let angle = Angle::between(pairs.clone());
    let sum = |term: fn(f64, f64) -> f64| pairs.clone().map(|(x, y)| term(x, y)).sum::<f64>();
    let nearer = || sum(|x, y| (x - y) * (x - y)).min(sum(|x, y| (x + y) * (x + y)));
    match f {
        Activation::Sign => SignedLog::from(FRAC_2_PI * angle.complement()),
        Activation::Step => SignedLog::from(angle.supplement() / (2.0 * PI)),
        Activation::Identity => Dot::of(pairs.clone()).log(),
        Activation::Square => {
            SignedLog::positive(2.0 * angle.ln_norms + (2.0 * angle.cos * angle.cos).ln_1p())
        }
        Activation::Exp => SignedLog::positive(0.5 * sum(|x, y| (x + y) * (x + y))),
        // ½(e^{−‖x−y‖²/2} ± e^{−‖x+y‖²/2}) with the larger exponential factored out.
        Activation::Cos => {
            let dot = Dot::of(pairs.clone()).value().abs();
            SignedLog::positive((-2.0 * dot).exp().ln_1p() - LN_2 - 0.5 * nearer())
        }
        Activation::Sin => {
            let dot = Dot::of(pairs.clone());
            let size = -(-2.0 * dot.value().abs()).exp_m1();
            // Below the normal numbers the size is 2|x·y|.
            let wave = if size.is_normal() {
                SignedLog::from(size * dot.number.signum())
            } else {
                dot.log().scaled(LN_2)
            };
            wave.scaled(-LN_2 - 0.5 * nearer())
        }
        Activation::Erf => erf(angle, pairs.clone()),
        Activation::Relu => SignedLog::from(relu(angle) / (2.0 * PI)).scaled(angle.ln_norms),
        Activation::ReluSquared => {
            SignedLog::from(relu_squared(angle) / (2.0 * PI)).scaled(2.0 * angle.ln_norms)
        }
        Activation::Abs => {
            let value = angle.sin() + angle.complement() * angle.cos;
            SignedLog::from(FRAC_2_PI * value).scaled(angle.ln_norms)
        }
        Activation::Gelu | Activation::Sigmoid | Activation::Tanh => SignedLog::from(f64::NAN),
    }
}

/// x·y as `number` · 2^`exponent`, which may be out of range. The exponent is 0 for a normal number.
struct Dot {
    number: f64,
    exponent: i32,
}

impl Dot {
    fn of(pairs: impl Iterator<Item = (f64, f64)> + Clone) -> Self {
        let plain: f64 = pairs.clone().map(|(x, y)| x * y).sum();
        let (number, exponent) = if plain.is_normal() { (plain, 0) } else { quadratic(pairs, |x, y| x * y) };
        Dot { number, exponent }
    }

    fn value(&self) -> f64 {
        libm::ldexp(self.number, self.exponent)
    }

    fn log(&self) -> SignedLog {
        SignedLog::from(self.number).scaled(f64::from(self.exponent) * LN_2)
    }
}

/// (2/π) asin(2x·y/√((1+2‖x‖²)(1+2‖y‖²))). The arcsine is an arctangent, since (1+2‖x‖²)(1+2‖y‖²) − 4(x·y)² is
/// 1 + 2S + 4r² sin²θ.
fn erf(angle: Angle, pairs: impl Iterator<Item = (f64, f64)> + Clone) -> SignedLog {
    let dot = Dot::of(pairs.clone());
    let norms: f64 = pairs.clone().map(|(x, y)| x * x + y * y).sum();
    if dot.exponent == 0 && norms < 1e300 {
        let cross = 2.0 * angle.ln_norms.exp() * angle.sin();
        return SignedLog::from(
            FRAC_2_PI * (2.0 * dot.number).atan2((1.0 + 2.0 * norms).sqrt().hypot(cross)),
        );
    }
    let ln_sum = ln_add_exp(0.0, LN_2 + ln_square(pairs.flat_map(|(x, y)| [x, y])));
    let ln_cross = 2.0 * (LN_2 + angle.ln_norms + angle.sin().ln());
    let tangent = dot.log().scaled(LN_2 - 0.5 * ln_add_exp(ln_sum, ln_cross));
    // The arctangent of a small number is that number.
    if tangent.ln_abs < -30.0 {
        tangent.scaled(FRAC_2_PI.ln())
    } else {
        SignedLog::from(FRAC_2_PI * tangent.value().atan())
    }
}

/// E f(ω·x) from ln ‖x‖; NaN without a closed form.
fn mean(f: Activation, ln_norm: f64) -> SignedLog {
    let half_square = || 0.5 * (2.0 * ln_norm).exp();
    match f {
        Activation::Identity | Activation::Sin | Activation::Sign | Activation::Erf => SignedLog::from(0.0),
        Activation::Step => SignedLog::from(0.5),
        Activation::Square => SignedLog::positive(2.0 * ln_norm),
        Activation::ReluSquared => SignedLog::positive(2.0 * ln_norm - LN_2),
        Activation::Exp => SignedLog::positive(half_square()),
        Activation::Cos => SignedLog::positive(-half_square()),
        Activation::Relu => SignedLog::positive(ln_norm - 0.5 * (2.0 * PI).ln()),
        Activation::Abs => SignedLog::positive(ln_norm + 0.5 * FRAC_2_PI.ln()),
        Activation::Gelu | Activation::Sigmoid | Activation::Tanh => SignedLog::from(f64::NAN),
    }
}

/// sin θ + (π−θ) cos θ: with φ = π − θ, sin φ − φ cos φ, which is φ³/3 − … near φ = 0.
fn relu(angle: Angle) -> f64 {
    let phi = angle.supplement();
    if phi < 0.5 { odd_series(phi, |j| -2.0 * j) } else { angle.sin() + phi * angle.cos }
}

/// 3 sin θ cos θ + (π−θ)(1 + 2cos²θ): with u = 2(π − θ), u + (u cos u − 3 sin u)/2, which is u⁵/120 − … near
/// u = 0.
fn relu_squared(angle: Angle) -> f64 {
    let phi = angle.supplement();
    if phi < 0.5 {
        odd_series(2.0 * phi, |j| j - 1.0)
    } else {
        3.0 * angle.sin() * angle.cos + phi * (1.0 + 2.0 * angle.cos * angle.cos)
    }
}

/// Σⱼ (−1)ʲ factor(j) u^{2j+1}/(2j+1)! from j = 1 on, for |u| ≤ 1.
fn odd_series(u: f64, factor: impl Fn(f64) -> f64) -> f64 {
    let terms = (1..12).map(f64::from).scan(u, |power, j| {
        *power *= -u * u / (2.0 * j * (2.0 * j + 1.0));
        Some(*power * factor(j))
    });
    terms.sum()
}
