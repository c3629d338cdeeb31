//! The Gaussian kernel.

use super::{Kernel, Lengthscale};
use crate::error::Result;
use crate::{Real, SignedLog};

/// The Gaussian (radial basis function) kernel exp(−‖x−y‖²/(2ℓ²)).
///
/// # Definition
/// K(x, y) = exp(−½ Σₖ (xₖ − yₖ)²/ℓₖ²). With γ of scikit-learn, γ = 1/(2ℓ²). It is the softmax kernel between
/// two factors, exp(−½‖x‖²) exp(x·y) exp(−½‖y‖²), which is why every map here serves both.
///
/// ```
/// use ndarray::arr1;
/// use random_features::kernel::{Gaussian, Kernel};
/// let kernel = Gaussian::new(2.0)?;
/// assert_eq!(kernel.value(&arr1(&[1.0, 1.0]), &arr1(&[1.0, 3.0]))?, (-0.5f64).exp());
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # References
/// Rahimi and Recht, *Random Features for Large-Scale Kernel Machines*.
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

impl<T: Real> Kernel<T> for Gaussian {
    fn check_dim(&self, d: usize) -> Result<()> {
        self.lengthscale.check_dim(d)
    }

    fn log_of_slices(&self, x: &[T], y: &[T]) -> SignedLog {
        // Differences before squares: no cancellation between large norms.
        SignedLog::positive(-0.5 * self.lengthscale.sum(x, y, |x, y| (x - y) * (x - y)))
    }
}
