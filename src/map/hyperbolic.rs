//! Hyperbolic (antithetic positive) random features.

use num_complex::Complex64;

use super::{Exponential, Mechanism, Properties, Side, Target};
use crate::Real;
use crate::error::Result;
use crate::frequency::Frequencies;
use crate::kernel::{Gaussian, Lengthscale};
use crate::projection::Lift;
use crate::theory::{self, Law, Pair, Radius};

/// Hyperbolic random features: positive ones on ω and −ω.
///
/// # Definition
/// φ(x) = (2m)^{−1/2} exp(−½‖x‖²) (exp(ωⱼ·x), exp(−ωⱼ·x))ⱼ, 2m features, for the softmax kernel; for the
/// Gaussian kernel with exp(−‖x‖²). The estimate is exp(−½(‖x‖²+‖y‖²)) times the mean of cosh(ωⱼ·(x+y)).
///
/// # Variance
/// exp(−‖x‖²−‖y‖²)(e^{‖x+y‖²} − 1)²/(2m) for independent ω: below that of 2m positive features. Closed forms:
/// [`theory::hyperbolic`].
///
/// # Exact where
/// x = −y, for any draw.
///
/// # Cost
/// O(md) a point; two exponentials for each projection.
///
/// # Example
/// ```
/// use ndarray::arr1;
/// use random_features::frequency::{Independent, draw};
/// use random_features::{FeatureMap, Hyperbolic};
/// let omega = draw(2, 512, &Independent, &mut random_features::rng(1))?;
/// let map = Hyperbolic::gaussian(omega, 1.5)?;
/// let (x, y) = (arr1(&[0.3f32, -0.2]), arr1(&[0.1, 0.4]));
/// let exact = (-(0.04f32 + 0.36) / (2.0 * 2.25)).exp();
/// assert!((map.estimate(&x, &y)? - exact).abs() < 0.05);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # References
/// Choromanski et al., *Rethinking Attention with Performers*, Lemma 1; *Hybrid Random Features*, equation 3.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Hyperbolic;

impl Hyperbolic {
    /// The map for a target kernel: [`Softmax`](crate::kernel::Softmax), [`Gaussian`] or, on frequencies with radii √d,
    /// [`RegularisedSoftmax`](crate::kernel::RegularisedSoftmax), with any lengthscale.
    ///
    /// # Errors
    /// As [`Exponential::new`].
    pub fn new<T: Real>(omega: Frequencies, target: impl Into<Target>) -> Result<Exponential<T, Self>> {
        Exponential::new(Hyperbolic, omega, target)
    }

    /// The map for the softmax kernel exp(x·y), or for its regularised form if the frequencies have radii √d
    /// ([`RootDim`](crate::frequency::RootDim)).
    pub fn softmax<T: Real>(omega: Frequencies) -> Exponential<T, Self> {
        Exponential::softmax(Hyperbolic, omega)
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

impl Mechanism for Hyperbolic {
    const NAME: &'static str = "hyperbolic";

    fn lift(&self, _: Side) -> Lift {
        Lift::ExpPair
    }

    fn row(&self) -> f64 {
        -0.5
    }

    fn constant(&self, _: usize) -> Complex64 {
        Complex64::from(-0.5 * std::f64::consts::LN_2)
    }

    fn serves(&self, radius: Radius) -> bool {
        matches!(radius, Radius::Chi | Radius::RootDim)
    }

    fn properties(&self) -> Properties {
        Properties { symmetric: true, non_negative: true }
    }

    fn log_variance(&self, target: &Target, pair: &Pair, law: &Law) -> Option<f64> {
        if target.radius() == Radius::RootDim {
            return theory::regularised_hyperbolic(pair, law);
        }
        let relative = theory::hyperbolic(&Pair { dot: 0.0, ..*pair }, law)?;
        Some(relative + target.ln_squared_scale(pair))
    }
}
