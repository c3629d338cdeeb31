//! The powered exponential kernel.

use std::f64::consts::{LN_2, PI, SQRT_2};

use rand_distr::{Distribution, Exp1};

use crate::generator::Generator;

use super::shift_invariant::ln_variance;
use super::spectrum::chi;
use super::{Chi, Lengthscale, Radii, Radius, ShiftInvariant, Smoothness, Spectrum};
use crate::SignedLog;
use crate::digest::identified;
use crate::error::{Error, Result};

/// The powered exponential kernel exp(−(‖x−y‖/ℓ)^α), for rough functions of any roughness.
///
/// ```
/// use random_features::kernel::{Kernel, PoweredExponential};
/// use random_features::ndarray::arr1;
/// use random_features::Map;
/// let kernel = PoweredExponential::new(1.5, 1.0)?;
/// let (x, y) = (arr1(&[0.8, 0.6]), arr1(&[0.0, 0.0]));
/// assert_eq!(kernel.value(&x, &y)?, (-1.0f64).exp());
/// let map: Map<f64> = Map::for_kernel(kernel, 2, 1000, 7)?;
/// assert!((map.estimate(&x, &y)? - (-1.0f64).exp()).abs() < 0.1);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// k(δ) = exp(−‖δ‖^α) with α from 0.2 to 2. It is the Matérn kernel of smoothness ½ for α = 1, and the Gaussian kernel of
/// lengthscale ℓ/√2 for α = 2. Functions of a Gaussian process with this kernel have derivatives only for α = 2; below 1 they are
/// rougher than with the Laplace kernel. For functions with some derivatives take [`Matern`](super::Matern) kernels with ν above 1.
///
/// [`SpectralMixture::powered_exponential`](super::SpectralMixture::powered_exponential) is the product exp(−Σₗ |δₗ|^α) over
/// coordinates.
///
/// # Spectrum
/// ω = √(2τ) z with z ~ N(0, I) and a positive stable τ of index α/2, in polar form with radii χ_d √(2τ). Their tails are heavy:
/// P(‖ω‖ > r) falls as r^−α. With small α and ℓ a frequency may overflow in `f32`: then the map is refused.
///
/// # References
/// Kanter, *Stable Densities under Change of Scale and Total Variation Inequalities* (1975), for the draws of τ.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "StoredPoweredExponential")
)]
pub struct PoweredExponential {
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    alpha: f64,
    lengthscale: Lengthscale,
}

impl PoweredExponential {
    /// The kernel with this α and lengthscale ℓ.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if α or an ℓ is outside its domain.
    pub fn new(alpha: f64, lengthscale: impl Into<Lengthscale>) -> Result<Self> {
        if !(0.2..=2.0).contains(&alpha) {
            return Err(Error::Parameter { name: "α", value: alpha, domain: "from 0.2 to 2" });
        }
        Ok(PoweredExponential { alpha, lengthscale: lengthscale.into().checked()? })
    }

    /// The exponent α.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    /// The lengthscale.
    pub fn lengthscale(&self) -> &Lengthscale {
        &self.lengthscale
    }

    /// A random √(2τ).
    pub(super) fn draw_scale(alpha: f64, rng: &mut Generator) -> f64 {
        // Neither 0 nor 1; an exponential number below the bound has probability 1e-20.
        let u = (rng.uniform() + f64::EPSILON / 4.0).min(1.0 - f64::EPSILON / 2.0);
        let e: f64 = Exp1.sample(rng);
        (0.5 * (LN_2 + ln_stable(0.5 * alpha, u, e.max(1e-20)))).exp()
    }
}

identified! { PoweredExponential { alpha, lengthscale } }

impl ShiftInvariant for PoweredExponential {
    fn name(&self) -> String {
        format!("powered exponential, α = {}", self.alpha)
    }

    fn lengthscale(&self) -> &Lengthscale {
        &self.lengthscale
    }

    fn spectrum(&self) -> Spectrum<'_> {
        Spectrum::Polar(self)
    }

    fn of_square(&self, square: f64) -> SignedLog {
        SignedLog::positive(-square.powf(0.5 * self.alpha))
    }

    fn log_slope(&self, distance: f64) -> Option<f64> {
        Some(-self.alpha * distance.powf(self.alpha - 1.0))
    }

    /// ln k(2δ) − 4 ln k(δ) is (4 − 2^α)‖δ‖^α.
    fn ln_variance(&self, delta: &[f64]) -> f64 {
        let square: f64 = delta.iter().map(|v| v * v).sum();
        // Beyond the bound both k(δ) and k(2δ) are 0.
        let power = square.powf(0.5 * self.alpha).min(1e300);
        let gap = -4.0 * ((self.alpha - 2.0) * LN_2).exp_m1();
        ln_variance(-power, gap * power)
    }
}

impl Radii for PoweredExponential {
    /// The radii of the kernel with ℓ = 1.
    fn draw(&self, d: usize, count: usize, rng: &mut Generator) -> Result<Vec<f64>> {
        let normal = chi(d as f64, count, rng)?;
        Ok(normal.into_iter().map(|radius| radius * Self::draw_scale(self.alpha, rng)).collect())
    }

    fn law(&self) -> Radius {
        Radius::PoweredExponential { alpha: self.alpha }
    }

    /// Known for α = 1, a Matérn kernel, and α = 2, a Gaussian one. Between them the law of τ has no closed form to invert.
    fn quantile(&self, d: usize, p: f64) -> Option<f64> {
        match self.alpha {
            1.0 => Smoothness::Half.quantile(d, p),
            2.0 => Chi.quantile(d, p).map(|radius| SQRT_2 * radius),
            _ => None,
        }
    }
}

/// ln of a positive stable number of index β from 0.1 to 1, whose Laplace transform is exp(−t^β): from `u`, uniform on (0, 1), and
/// `e`, exponential with mean 1. It is 0 for β = 1.
pub fn ln_stable(beta: f64, u: f64, e: f64) -> f64 {
    let ln_sin = |share: f64| (PI * share).sin().ln();
    let rest = 1.0 - beta;
    if rest == 0.0 {
        return 0.0;
    }
    // sin πu, where u is nearly 1, by its complement.
    ln_sin(beta * u) - ln_sin(u.min(1.0 - u)) / beta + rest / beta * (ln_sin(rest * u) - e.ln())
}

/// The stored form, validated on reading.
#[cfg(feature = "serde")]
#[derive(serde::Deserialize)]
struct StoredPoweredExponential {
    #[serde(with = "crate::exact")]
    alpha: f64,
    lengthscale: Lengthscale,
}

#[cfg(feature = "serde")]
impl TryFrom<StoredPoweredExponential> for PoweredExponential {
    type Error = Error;

    fn try_from(stored: StoredPoweredExponential) -> Result<Self> {
        PoweredExponential::new(stored.alpha, stored.lengthscale)
    }
}
