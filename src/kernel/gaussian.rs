//! The Gaussian kernel.

use crate::generator::Generator;

use super::shift_invariant::ln_variance;
use super::spectrum::chi;
use super::{Lengthscale, Radii, Radius, ShiftInvariant, Spectrum};
use crate::SignedLog;
use crate::digest::identified;
use crate::error::Result;
use crate::numeric::special::chi_quantile;

/// The Gaussian (radial basis function) kernel exp(−‖x−y‖²/(2ℓ²)).
///
/// ```
/// use random_features::kernel::{Gaussian, Kernel};
/// use random_features::ndarray::arr1;
/// let kernel = Gaussian::new(2.0)?;
/// assert_eq!(
///     kernel.value(&arr1(&[1.0, 1.0]), &arr1(&[1.0, 3.0]))?,
///     (-0.5f64).exp()
/// );
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// K(x, y) = exp(−½ Σₖ (xₖ − yₖ)²/ℓₖ²). The γ of scikit-learn is 1/(2ℓ²). K is the softmax kernel times a factor of
/// each point, exp(−½‖x‖²) exp(x·y) exp(−½‖y‖²), so maps for one kernel serve both.
///
/// # Spectrum
/// ω ~ N(0, I), with the radii [`Radius::Chi`](crate::extend::Radius::Chi).
///
/// # References
/// Rahimi and Recht, *Random Features for Large-Scale Kernel Machines*.
#[doc(alias = "RBF")]
#[doc(alias = "squared exponential")]
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Gaussian {
    lengthscale: Lengthscale,
}

impl Gaussian {
    /// The kernel with lengthscale ℓ.
    ///
    /// # Errors
    /// [`Parameter`](crate::Error::Parameter) if an ℓ is outside its domain.
    pub fn new(lengthscale: impl Into<Lengthscale>) -> Result<Self> {
        Ok(Gaussian { lengthscale: lengthscale.into().checked()? })
    }

    /// The lengthscale.
    pub fn lengthscale(&self) -> &Lengthscale {
        &self.lengthscale
    }
}

identified! { Gaussian { lengthscale } }

impl ShiftInvariant for Gaussian {
    fn name(&self) -> String {
        "Gaussian".into()
    }

    fn lengthscale(&self) -> &Lengthscale {
        &self.lengthscale
    }

    fn spectrum(&self) -> Spectrum<'_> {
        Spectrum::Polar(&Chi)
    }

    fn of_square(&self, square: f64) -> SignedLog {
        SignedLog::positive(-0.5 * square)
    }

    fn log_slope(&self, distance: f64) -> Option<f64> {
        Some(-distance)
    }

    /// ½(1 − e^{−‖δ‖²})².
    fn ln_variance(&self, delta: &[f64]) -> f64 {
        ln_variance(-0.5 * delta.iter().map(|v| v * v).sum::<f64>(), 0.0)
    }
}

/// Radii that are χ with d degrees of freedom: ω ~ N(0, I), for the Gaussian and the softmax kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Chi;

impl Radii for Chi {
    fn draw(&self, d: usize, count: usize, rng: &mut Generator) -> Result<Vec<f64>> {
        chi(d as f64, count, rng)
    }

    fn law(&self) -> Radius {
        Radius::Chi
    }

    fn quantile(&self, d: usize, p: f64) -> Option<f64> {
        Some(chi_quantile(d as f64, p))
    }
}
