//! Trigonometric (random Fourier) features.

use super::{Exponential, Mechanism, Properties, Side, Target};
use crate::Real;
use crate::error::{Error, Result};
use crate::frequency::Frequencies;
use crate::kernel::{Gaussian, Lengthscale, Matern};
use crate::projection::Lift;
use crate::theory::{self, Law, Pair, Radius};

/// Trigonometric random features, known as random Fourier features.
///
/// # Definition
/// φ(x) = m^{−1/2} (cos ωⱼ·x, sin ωⱼ·x)ⱼ, 2m features, for the Gaussian kernel; for the softmax kernel times
/// exp(+½‖x‖²). The estimate is the mean of cos(ωⱼ·(x−y)): it may be negative.
///
/// # Variance
/// (1 − e^{−‖x−y‖²})²/(2m) for the Gaussian kernel and independent ω: never above 1/(2m), but large beside
/// kernel values that are small. Closed forms: [`theory::trigonometric`].
///
/// # Exact where
/// x = y, for any draw.
///
/// # Cost
/// O(md) a point; a cosine and a sine for each projection.
///
/// # Example
/// ```
/// use ndarray::arr2;
/// use random_features::frequency::{Orthogonal, draw};
/// use random_features::{FeatureMap, Trigonometric};
/// let omega = draw(2, 512, &Orthogonal, &mut random_features::rng(1))?;
/// let map = Trigonometric::gaussian(omega, 1.0)?;
/// let points = arr2(&[[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]]);
/// let gram = map.gram(&points, &points)?;
/// assert!((gram[[0, 0]] - 1.0f64).abs() < 1e-12);
/// assert!((gram[[0, 1]] - (-0.5f64).exp()).abs() < 0.1);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # References
/// Rahimi and Recht, *Random Features for Large-Scale Kernel Machines*; *Hybrid Random Features*, equation 2.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Trigonometric;

impl Trigonometric {
    /// The map for a target kernel: [`Softmax`](crate::kernel::Softmax), [`Gaussian`] or, on frequencies that were drawn
    /// for it, [`Matern`], with any lengthscale.
    ///
    /// # Errors
    /// As [`Exponential::new`].
    pub fn new<T: Real>(omega: Frequencies, target: impl Into<Target>) -> Result<Exponential<T, Self>> {
        Exponential::new(Trigonometric, omega, target)
    }

    /// The map for a Matérn kernel with lengthscale ℓ, of the smoothness that the frequencies were drawn for
    /// ([`draw_with`](crate::frequency::draw_with) and a [`Smoothness`](crate::kernel::Smoothness)).
    ///
    /// # Errors
    /// [`Target`](crate::Error::Target) if the frequencies were drawn for another kernel or their law is not known
    /// (then state the kernel: [`new`](Trigonometric::new)); as [`Matern::new`] and [`Exponential::new`].
    pub fn matern<T: Real>(
        omega: Frequencies,
        lengthscale: impl Into<Lengthscale>,
    ) -> Result<Exponential<T, Self>> {
        match omega.law().radius() {
            Radius::Matern(smoothness) => Self::new(omega, Matern::new(smoothness, lengthscale)?),
            radius => {
                Err(Error::Target { map: Self::NAME, law: format!("{radius:?}"), target: "Matern".into() })
            }
        }
    }

    /// The map for the softmax kernel exp(x·y).
    pub fn softmax<T: Real>(omega: Frequencies) -> Exponential<T, Self> {
        Exponential::softmax(Trigonometric, omega)
    }

    /// The map for the Gaussian kernel with lengthscale ℓ.
    ///
    /// # Errors
    /// As [`Gaussian::new`] and [`Exponential::new`].
    pub fn gaussian<T: Real>(
        omega: Frequencies,
        lengthscale: impl Into<Lengthscale>,
    ) -> Result<Exponential<T, Self>> {
        Self::new(omega, Gaussian::new(lengthscale)?)
    }
}

impl Mechanism for Trigonometric {
    const NAME: &'static str = "trigonometric";

    fn lift(&self, _: Side) -> Lift {
        Lift::Polar
    }

    fn row(&self) -> f64 {
        0.5
    }

    fn serves(&self, radius: Radius) -> bool {
        matches!(radius, Radius::Chi | Radius::Matern(_))
    }

    fn properties(&self) -> Properties {
        Properties { symmetric: true, non_negative: false }
    }

    fn log_variance(&self, target: &Target, pair: &Pair, law: &Law) -> Option<f64> {
        if let Radius::Matern(smoothness) = target.radius() {
            return theory::matern_trigonometric(smoothness, pair.difference, law);
        }
        let relative = theory::trigonometric(&Pair { norms: 0.0, ..*pair }, law)?;
        Some(relative + target.ln_norm_scale(pair))
    }
}
