//! Trigonometric (random Fourier) features.

use super::Covariance;
use super::definition::{Definition, NormalForm, Setting};
use super::{AnyKernel, Map, Omega};
use crate::Real;
use crate::digest::identified;
use crate::engine::Lift;
use crate::error::Result;
use crate::kernel::{Lengthscale, Matern};
use crate::theory::{self, Pair, Radius};

/// Trigonometric random features, known as random Fourier features.
///
/// ```
/// use random_features::Trigonometric;
/// use random_features::frequency::Orthogonal;
/// use random_features::ndarray::arr2;
/// let omega = Orthogonal.draw(2, 512, 1)?;
/// let map = Trigonometric.gaussian(omega, 1.0)?;
/// let points = arr2(&[[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]]);
/// let gram = map.gram(&points, &points)?;
/// assert!((gram[[0, 0]] - 1.0f64).abs() < 1e-12);
/// assert!((gram[[0, 1]] - (-0.5f64).exp()).abs() < 0.1);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// φ(x) = m^{−1/2} (cos ωⱼ·x, sin ωⱼ·x)ⱼ, 2m features, for the Gaussian kernel; for the softmax kernel times
/// exp(+½‖x‖²). The estimate is the mean of cos(ωⱼ·(x−y)) and may be negative.
///
/// # Variance
/// (1 − e^{−‖x−y‖²})²/(2m) for the Gaussian kernel and independent ω: never above 1/(2m), but large relative to small
/// kernel values. Closed forms: [`theory::trigonometric`].
///
/// # Exact where
/// x = y, for any draw.
///
/// # Cost
/// O(md) per point, with a cosine and a sine for each projection.
///
/// # References
/// Rahimi and Recht, *Random Features for Large-Scale Kernel Machines*; *Hybrid Random Features*, equation 2.
#[doc(alias = "RFF")]
#[doc(alias = "random Fourier features")]
#[doc(alias = "RBFSampler")]
#[doc(alias = "RFFKernel")]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Trigonometric;

impl Trigonometric {
    /// The map for a Matérn kernel with lengthscale ℓ and the smoothness that the frequencies were drawn for
    /// (by the [`draw`](crate::kernel::Matern::draw) of the kernel).
    ///
    /// # Errors
    /// [`Kernel`](crate::Error::Kernel) if the frequencies were drawn for another kernel or their law is not known
    /// (then state the kernel: [`build`](Trigonometric::build)); the errors of [`Matern::new`] and [`build`](Trigonometric::build).
    pub fn matern<T: Real>(
        self,
        omega: impl Into<Omega>,
        lengthscale: impl Into<Lengthscale>,
    ) -> Result<Map<T>> {
        let (omega, kernel) = (omega.into(), AnyKernel::Implied(lengthscale.into()));
        let setting = Setting { omega: &omega, kernel: &kernel };
        omega.check_real(self.name())?;
        let Radius::Matern(smoothness) = setting.radius() else {
            let kernel = "a Matérn kernel: they were not drawn with a Matérn smoothness".into();
            return Err(setting.does_not_estimate(self.name(), kernel));
        };
        let kernel = Matern::new(smoothness, kernel.lengthscale().clone())?;
        self.build(omega, kernel)
    }
}

identified! { Trigonometric {} }

impl Definition for Trigonometric {
    fn name(&self) -> &'static str {
        "trigonometric"
    }

    fn check(&self, setting: Setting<'_>) -> Result<()> {
        match setting.kernel {
            // Any frequencies estimate the kernel that has their law as its spectral law.
            AnyKernel::Implied(_) => setting.omega.check_real(self.name()),
            _ => setting.check_radii(self.name(), |radius| radius != Radius::RootDim),
        }
    }

    fn lift(&self) -> Option<Lift> {
        Some(Lift::Polar)
    }

    fn form(&self, setting: Setting<'_>) -> Result<NormalForm> {
        Ok(NormalForm::new(0.5 + setting.kernel.row()))
    }

    fn log_variance(&self, setting: Setting<'_>, u: &[f64], v: &[f64], pair: &Pair) -> Option<f64> {
        let (law, kernel) = (setting.law()?, setting.kernel);
        if let Some(kernel) = kernel.shift_invariant().filter(|_| kernel.radius() != Some(Radius::Chi)) {
            let delta: Vec<f64> = u.iter().zip(v).map(|(u, v)| u - v).collect();
            return theory::shift_invariant(kernel, &delta, &law);
        }
        let relative = theory::trigonometric(&Pair { norms: 0.0, ..*pair }, &law)?;
        Some(relative + kernel.ln_norm_scale(pair))
    }

    fn ln_range(&self, setting: Setting<'_>, pair: &Pair) -> Option<f64> {
        // Terms are a cosine times a factor of each point.
        Some(std::f64::consts::LN_2 + 0.5 * setting.kernel.ln_norm_scale(pair))
    }

    fn covariance(&self, setting: Setting<'_>) -> Option<Covariance> {
        let gaussian = setting.fits() && setting.radius() == Radius::Chi;
        gaussian.then(|| Covariance::of_differences(Covariance::hyperbolic))
    }
}
