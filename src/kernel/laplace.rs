//! The Laplace kernel of the ℓ1 norm.

use std::f64::consts::PI;

use super::{Lengthscale, Marginal, Radius, ShiftInvariant, Spectrum};
use crate::SignedLog;
use crate::digest::identified;
use crate::error::Result;

/// The Laplace kernel exp(−‖x−y‖₁/ℓ).
///
/// ```
/// use random_features::frequency::Independent;
/// use random_features::kernel::{Kernel, Laplace};
/// use random_features::ndarray::arr1;
/// use random_features::{Map, Trigonometric};
/// let kernel = Laplace::new(2.0)?;
/// let (x, y) = (arr1(&[1.0, 1.0]), arr1(&[0.0, 0.0]));
/// assert_eq!(kernel.value(&x, &y)?, (-1f64).exp());
/// let omega = kernel.draw(&Independent, 2, 1000, 7)?;
/// let map: Map<f64> = Trigonometric.build(omega, kernel)?;
/// assert!((map.estimate(&x, &y)? - (-1f64).exp()).abs() < 0.1);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// k(δ) = exp(−Σₖ |δₖ|), a product over the coordinates. In one dimension it is the Matérn kernel of smoothness ½; in
/// higher dimensions it is not isotropic. The γ of scikit-learn's `laplacian_kernel` is 1/ℓ.
///
/// # Spectrum
/// The coordinates of ω are independent and have the Cauchy distribution. [`Product`](crate::frequency::Product) draws
/// independent rows, [`Sobol::with_marginal`](crate::frequency::Sobol::with_marginal) evenly spread ones. Couplings of
/// directions do not apply, since directions are not uniform.
///
/// # References
/// Rahimi and Recht, *Random Features for Large-Scale Kernel Machines*, Figure 1.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Laplace {
    lengthscale: Lengthscale,
}

impl Laplace {
    /// The kernel with lengthscale ℓ.
    ///
    /// # Errors
    /// [`Parameter`](crate::Error::Parameter) if an ℓ is outside its domain.
    pub fn new(lengthscale: impl Into<Lengthscale>) -> Result<Self> {
        Ok(Laplace { lengthscale: lengthscale.into().checked()? })
    }

    /// The lengthscale.
    pub fn lengthscale(&self) -> &Lengthscale {
        &self.lengthscale
    }
}

identified! { Laplace { lengthscale } }

impl ShiftInvariant for Laplace {
    fn name(&self) -> String {
        "Laplace".into()
    }

    fn lengthscale(&self) -> &Lengthscale {
        &self.lengthscale
    }

    fn spectrum(&self) -> Spectrum<'_> {
        Spectrum::Product(&Cauchy)
    }

    fn of_square(&self, square: f64) -> SignedLog {
        SignedLog::positive(-square.sqrt())
    }

    fn log_slope(&self, _: f64) -> Option<f64> {
        Some(-1.0)
    }

    /// ½(1 − e^{−2‖δ‖₁}).
    fn ln_variance(&self, delta: &[f64]) -> f64 {
        (-0.5 * (-2.0 * delta.iter().map(|v| v.abs()).sum::<f64>()).exp_m1()).ln()
    }
}

/// The Cauchy distribution, with density 1/(π(1 + w²)): the law of each coordinate of the frequencies of [`Laplace`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Cauchy;

impl Marginal for Cauchy {
    fn lower_quantile(&self, u: f64) -> f64 {
        // Near ½, where a cotangent would lose digits, the complement is used.
        if u < 0.25 { -(PI * u).tan().recip() } else { -(PI * (0.5 - u)).tan() }
    }

    fn law(&self) -> Radius {
        Radius::Cauchy
    }
}
