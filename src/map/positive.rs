//! Positive random features.

use super::{Exponential, Mechanism, Properties, Side, Target};
use crate::Real;
use crate::error::Result;
use crate::frequency::Frequencies;
use crate::kernel::{Gaussian, Lengthscale};
use crate::projection::Lift;
use crate::theory::{self, Law, Pair, Radius};

/// Positive random features, the map of FAVOR+.
///
/// # Definition
/// φⱼ(x) = m^{−1/2} exp(ωⱼ·x − ½‖x‖²), m features, for the softmax kernel; for the Gaussian kernel exp(ωⱼ·x −
/// ‖x‖²). Unbiased if each ω ~ N(0, I), whatever the coupling. Every feature and every estimate is positive.
///
/// # Variance
/// exp(2x·y)(e^{‖x+y‖²} − 1)/m for independent ω: small where kernel values are small, which is where
/// attention needs it. Closed forms: [`theory::positive`].
///
/// # Exact where
/// x = −y, for any draw.
///
/// # Cost
/// O(md) a point; one exponential for each feature.
///
/// # Example
/// ```
/// use ndarray::arr1;
/// use random_features::frequency::{Orthogonal, draw};
/// use random_features::{FeatureMap, Positive};
/// let omega = draw(2, 512, &Orthogonal, &mut random_features::rng(1))?;
/// let map = Positive::softmax(omega);
/// let (x, y) = (arr1(&[0.3, -0.2]), arr1(&[0.1, 0.4]));
/// let estimate: f64 = map.estimate(&x, &y)?;
/// let deviation = (0.5 * map.log_variance(&x, &-&x)?.unwrap_or(f64::NEG_INFINITY)).exp();
/// assert!((estimate - x.dot(&y).exp()).abs() < 0.1);
/// assert_eq!(deviation, 0.0);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # References
/// Choromanski et al., *Rethinking Attention with Performers*, Lemma 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Positive;

impl Positive {
    /// The map for a target kernel: [`Softmax`](crate::kernel::Softmax), [`Gaussian`] or, on frequencies with radii √d,
    /// [`RegularisedSoftmax`](crate::kernel::RegularisedSoftmax), with any lengthscale.
    ///
    /// # Errors
    /// As [`Exponential::new`].
    pub fn new<T: Real>(omega: Frequencies, target: impl Into<Target>) -> Result<Exponential<T, Self>> {
        Exponential::new(Positive, omega, target)
    }

    /// The map for the softmax kernel exp(x·y), or for its regularised form if the frequencies have radii √d
    /// ([`RootDim`](crate::frequency::RootDim)).
    pub fn softmax<T: Real>(omega: Frequencies) -> Exponential<T, Self> {
        Exponential::softmax(Positive, omega)
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

impl Mechanism for Positive {
    const NAME: &'static str = "positive";

    fn lift(&self, _: Side) -> Lift {
        Lift::Exp
    }

    fn row(&self) -> f64 {
        -0.5
    }

    fn serves(&self, radius: Radius) -> bool {
        matches!(radius, Radius::Chi | Radius::RootDim)
    }

    fn properties(&self) -> Properties {
        Properties { symmetric: true, non_negative: true }
    }

    fn log_variance(&self, target: &Target, pair: &Pair, law: &Law) -> Option<f64> {
        if target.radius() == Radius::RootDim {
            return theory::regularised_positive(pair, law);
        }
        let relative = theory::positive(&Pair { dot: 0.0, ..*pair }, law)?;
        Some(relative + target.ln_squared_scale(pair))
    }
}
