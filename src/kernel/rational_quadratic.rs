//! The rational quadratic kernel.

use crate::generator::Generator;

use super::angular::ln_square;
use super::shift_invariant::ln_variance;
use super::spectrum::chi;
use super::{Lengthscale, Radii, Radius, ShiftInvariant, Spectrum, gamma_radii};
use crate::SignedLog;
use crate::digest::identified;
use crate::error::{Error, Result};

/// The rational quadratic kernel (1 + ‖x−y‖²/(2αℓ²))^{−α}.
///
/// ```
/// use random_features::frequency::Orthogonal;
/// use random_features::kernel::{Kernel, RationalQuadratic};
/// use random_features::ndarray::arr1;
/// use random_features::{Map, Trigonometric};
/// let kernel = RationalQuadratic::new(2.0, 1.0)?;
/// let (x, y) = (arr1(&[1.0, 1.0]), arr1(&[0.0, 0.0]));
/// assert_eq!(kernel.value(&x, &y)?, 1.5f64.powi(-2));
/// let omega = kernel.draw(&Orthogonal, 2, 1000, 7)?;
/// let map: Map<f64> = Trigonometric.build(omega, kernel)?;
/// assert!((map.estimate(&x, &y)? - 1.5f64.powi(-2)).abs() < 0.1);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// k(δ) = (1 + ‖δ‖²/(2α))^{−α} = E exp(−τ‖δ‖²/2) with a gamma-distributed τ of shape α and mean 1. It is a mixture of
/// Gaussian kernels of different lengthscales and tends to the Gaussian kernel as α → ∞. α is from 10⁻³ to 10¹².
///
/// # Spectrum
/// ω = √τ z with z ~ N(0, I), in polar form with radii χ_d √τ.
///
/// # References
/// Rasmussen and Williams, *Gaussian Processes for Machine Learning*, equation 4.19.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "StoredRationalQuadratic")
)]
pub struct RationalQuadratic {
    #[cfg_attr(feature = "serde", serde(with = "crate::exact"))]
    alpha: f64,
    lengthscale: Lengthscale,
}

impl RationalQuadratic {
    /// The kernel with this α and lengthscale ℓ.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if α or an ℓ is outside its domain.
    pub fn new(alpha: f64, lengthscale: impl Into<Lengthscale>) -> Result<Self> {
        if !(1e-3..=1e12).contains(&alpha) {
            return Err(Error::Parameter { name: "α", value: alpha, domain: "from 1e-3 to 1e12" });
        }
        Ok(RationalQuadratic { alpha, lengthscale: lengthscale.into().checked()? })
    }

    /// The parameter α.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    /// The lengthscale.
    pub fn lengthscale(&self) -> &Lengthscale {
        &self.lengthscale
    }
}

identified! { RationalQuadratic { alpha, lengthscale } }

impl ShiftInvariant for RationalQuadratic {
    fn name(&self) -> String {
        format!("rational quadratic, α = {}", self.alpha)
    }

    fn lengthscale(&self) -> &Lengthscale {
        &self.lengthscale
    }

    fn spectrum(&self) -> Spectrum<'_> {
        Spectrum::Polar(self)
    }

    fn of_square(&self, square: f64) -> SignedLog {
        let t = square / (2.0 * self.alpha);
        SignedLog::positive(if t < 1e60 { -self.alpha * t.ln_1p() } else { ln_far(self.alpha, square.ln()) })
    }

    fn log_slope(&self, distance: f64) -> Option<f64> {
        Some(-1.0 / (distance.recip() + distance / (2.0 * self.alpha)))
    }

    fn ln_variance(&self, delta: &[f64]) -> f64 {
        let t = delta.iter().map(|v| v * v).sum::<f64>() / (2.0 * self.alpha);
        if t >= 1e60 {
            // The bound is above ln ‖δ‖² of all finite points.
            let ln = ln_far(self.alpha, ln_square(delta.iter().copied()).min(1e6));
            return ln_variance(ln, -3.0 * ln - self.alpha * 4f64.ln());
        }
        // (1+t)⁴/(1+4t) − 1 without the terms of order 0 and 1, which cancel.
        let gap = (t * t * (6.0 + t * (4.0 + t)) / (1.0 + 4.0 * t)).ln_1p();
        ln_variance(-self.alpha * t.ln_1p(), self.alpha * gap)
    }
}

/// ln k(δ) from ln ‖δ‖², where 1 is nothing beside ‖δ‖²/(2α).
pub(super) fn ln_far(alpha: f64, ln_square: f64) -> f64 {
    -alpha * (ln_square - (2.0 * alpha).ln())
}

impl Radii for RationalQuadratic {
    /// The radii of the kernel with ℓ = 1.
    fn draw(&self, d: usize, count: usize, rng: &mut Generator) -> Result<Vec<f64>> {
        let degrees = 2.0 * self.alpha;
        let normal = chi(d as f64, count, rng)?;
        let scales = chi(degrees, count, rng)?;
        Ok(normal.iter().zip(scales).map(|(radius, scale)| radius * (scale / degrees.sqrt())).collect())
    }

    fn law(&self) -> Radius {
        Radius::RationalQuadratic { alpha: self.alpha }
    }

    /// From a table of the law, which is computed once for α and d.
    fn quantile(&self, d: usize, p: f64) -> Option<f64> {
        (d > 0 && p > 0.0 && p < 1.0).then(|| gamma_radii::table(self.alpha, d).quantile(p).exp())
    }
}

/// The stored form, validated on reading.
#[cfg(feature = "serde")]
#[derive(serde::Deserialize)]
struct StoredRationalQuadratic {
    #[serde(with = "crate::exact")]
    alpha: f64,
    lengthscale: Lengthscale,
}

#[cfg(feature = "serde")]
impl TryFrom<StoredRationalQuadratic> for RationalQuadratic {
    type Error = Error;

    fn try_from(stored: StoredRationalQuadratic) -> Result<Self> {
        RationalQuadratic::new(stored.alpha, stored.lengthscale)
    }
}
