//! Hyperbolic (antithetic positive) random features.

use super::Covariance;
use super::definition::{Definition, NormalForm, Setting};
use super::{AnyKernel, Omega};
use crate::digest::identified;
use crate::engine::Lift;
use crate::error::Result;
use crate::theory::{self, Pair, Radius};

/// Hyperbolic random features: positive features with ω and −ω.
///
/// ```
/// use random_features::Hyperbolic;
/// use random_features::frequency::Independent;
/// use random_features::ndarray::arr1;
/// let omega = Independent.draw(2, 512, 1)?;
/// let map = Hyperbolic.gaussian(omega, 1.5)?;
/// let (x, y) = (arr1(&[0.3f32, -0.2]), arr1(&[0.1, 0.4]));
/// let exact = (-(0.04f32 + 0.36) / (2.0 * 2.25)).exp();
/// assert!((map.estimate(&x, &y)? - exact).abs() < 0.05);
/// # Ok::<(), random_features::Error>(())
/// ```
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
/// O(md) per point, with two exponentials for each projection.
///
/// # References
/// Choromanski et al., *Rethinking Attention with Performers*, Lemma 1; *Hybrid Random Features*, equation 3.
#[doc(alias = "FAVOR+ hyperbolic")]
#[doc(alias = "hyperbolic cosine features")]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Hyperbolic;

identified! { Hyperbolic {} }

impl Definition for Hyperbolic {
    fn name(&self) -> &'static str {
        "hyperbolic"
    }

    fn check(&self, setting: Setting<'_>) -> Result<()> {
        setting.check_radii(self.name(), |radius| matches!(radius, Radius::Chi | Radius::RootDim))
    }

    fn lift(&self) -> Option<Lift> {
        Some(Lift::ExpPair)
    }

    fn form(&self, setting: Setting<'_>) -> Result<NormalForm> {
        let form = NormalForm::new(-0.5 + setting.kernel.row());
        Ok(NormalForm { constant: -0.5 * std::f64::consts::LN_2, non_negative: true, ..form })
    }

    fn log_variance(&self, setting: Setting<'_>, _: &[f64], _: &[f64], pair: &Pair) -> Option<f64> {
        let (law, kernel) = (setting.law()?, setting.kernel);
        if kernel.radius() == Some(Radius::RootDim) {
            return theory::regularised_hyperbolic(pair, &law);
        }
        let relative = theory::hyperbolic(&Pair { dot: 0.0, ..*pair }, &law)?;
        Some(relative + kernel.ln_squared_scale(pair))
    }

    fn covariance(&self, setting: Setting<'_>) -> Option<Covariance> {
        setting.covariance_of_sums(true)
    }

    fn softmax_kernel(&self, omega: &Omega) -> AnyKernel {
        super::definition::softmax_or_regularised(omega)
    }
}
