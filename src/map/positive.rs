//! Positive random features.

use super::Covariance;
use super::definition::{Definition, NormalForm, Setting};
use super::{AnyKernel, Omega};
use crate::digest::identified;
use crate::engine::Lift;
use crate::error::Result;
use crate::theory::{self, Pair, Radius};

/// Positive random features, the map of FAVOR+.
///
/// ```
/// use random_features::Positive;
/// use random_features::frequency::Orthogonal;
/// use random_features::ndarray::arr1;
/// let omega = Orthogonal.draw(2, 512, 1)?;
/// let map = Positive.softmax(omega)?;
/// let (x, y) = (arr1(&[0.3, -0.2]), arr1(&[0.1, 0.4]));
/// let estimate: f64 = map.estimate(&x, &y)?;
/// let deviation =
///     (0.5 * map.log_variance(&x, &-&x)?.unwrap_or(f64::NEG_INFINITY)).exp();
/// assert!((estimate - x.dot(&y).exp()).abs() < 0.1);
/// assert_eq!(deviation, 0.0);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// φⱼ(x) = m^{−1/2} exp(ωⱼ·x − ½‖x‖²), m features, for the softmax kernel; for the Gaussian kernel exp(ωⱼ·x − ‖x‖²).
/// Estimates are unbiased with any coupling if each ω ~ N(0, I). All features and estimates are positive.
///
/// # Variance
/// exp(2x·y)(e^{‖x+y‖²} − 1)/m for independent ω: small where kernel values are small, as attention needs. Closed
/// forms: [`theory::positive`].
///
/// # Exact where
/// x = −y, for any draw.
///
/// # Cost
/// O(md) per point, with one exponential for each feature.
///
/// # References
/// Choromanski et al., *Rethinking Attention with Performers*, Lemma 1.
#[doc(alias = "FAVOR+")]
#[doc(alias = "PRF")]
#[doc(alias = "positive random features")]
#[doc(alias = "softmax kernel")]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Positive;

identified! { Positive {} }

impl Definition for Positive {
    fn name(&self) -> &'static str {
        "positive"
    }

    fn check(&self, setting: Setting<'_>) -> Result<()> {
        setting.check_radii(self.name(), |radius| matches!(radius, Radius::Chi | Radius::RootDim))
    }

    fn lift(&self) -> Option<Lift> {
        Some(Lift::Exp)
    }

    fn form(&self, setting: Setting<'_>) -> Result<NormalForm> {
        let form = NormalForm::new(-0.5 + setting.kernel.row());
        Ok(NormalForm { non_negative: true, ..form })
    }

    fn log_variance(&self, setting: Setting<'_>, _: &[f64], _: &[f64], pair: &Pair) -> Option<f64> {
        let (law, kernel) = (setting.law()?, setting.kernel);
        if kernel.radius() == Some(Radius::RootDim) {
            return theory::regularised_positive(pair, &law);
        }
        let relative = theory::positive(&Pair { dot: 0.0, ..*pair }, &law)?;
        Some(relative + kernel.ln_squared_scale(pair))
    }

    fn covariance(&self, setting: Setting<'_>) -> Option<Covariance> {
        setting.covariance_of_sums(false)
    }

    fn softmax_kernel(&self, omega: &Omega) -> AnyKernel {
        super::definition::softmax_or_regularised(omega)
    }
}
