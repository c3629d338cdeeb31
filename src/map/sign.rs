//! [`Sign`]: sign features for the angular kernel.

use super::definition::{Definition, NormalForm, Setting};
use crate::Real;
use crate::digest::identified;
use crate::engine::Lift;
use crate::error::Result;
use crate::kernel::{Activation, Angular, Kernel, Lengthscale};
use crate::theory::{self, Pair};

/// Sign features, for the angular kernel 1 − 2θ/π.
///
/// ```
/// use random_features::Sign;
/// use random_features::frequency::Independent;
/// use random_features::ndarray::arr1;
/// let map = Sign.build(Independent.draw(2, 1024, 1)?, 1.0)?;
/// let (x, y) = (arr1(&[1.0, 0.0]), arr1(&[20.0, 20.0]));
/// let estimate: f64 = map.estimate(&x, &y)?;
/// assert!((estimate - 0.5).abs() < 0.1);
/// assert_eq!(map.estimate(&x, &(-&x))?, -1.0);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// φⱼ(x) = m^{−1/2} sgn(ωⱼ·x), with sgn 0 = 1: m features that depend only on the direction of x. Values are ±1; the
/// log scale is −½ ln m. Estimates are unbiased with any radii and any coupling if each ω has a uniform direction. The
/// features of the point 0 are all positive, while the [kernel](Angular) counts 0 as orthogonal to all points: estimates
/// between 0 and another point are unbiased, but not between 0 and 0.
///
/// # Variance
/// (1 − K²)/m = 4t(1−t)/m with t = θ/π, for independent ω of any radii. An antithetic pair counts as one frequency,
/// since ω and −ω give the same estimate. Closed form: [`theory::nonlinear`]; none is known for orthogonal ω. Between 0
/// and another point the two terms of an antithetic pair cancel, because sgn 0 = 1: estimates from pairs are exactly 0,
/// the kernel's value.
///
/// # Exact where
/// x = cy with c ≠ 0, for any draw.
///
/// # Cost
/// O(md) per point, with a comparison for each feature.
///
/// # References
/// Choromanski et al., *Hybrid Random Features*, equations 19 and 42.
#[doc(alias = "SimHash")]
#[doc(alias = "locality-sensitive hashing")]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Sign;

identified! { Sign {} }

impl Definition for Sign {
    fn name(&self) -> &'static str {
        "sign"
    }

    fn check(&self, setting: Setting<'_>) -> Result<()> {
        setting.check_implied(self.name())
    }

    fn is_of_signs(&self) -> bool {
        true
    }

    fn lift(&self) -> Option<Lift> {
        Some(Lift::Function { activation: Activation::Sign, offset: 0.0 })
    }

    fn form(&self, _: Setting<'_>) -> Result<NormalForm> {
        Ok(NormalForm::new(0.0))
    }

    fn kernel<T: Real>(&self, setting: Setting<'_>) -> Option<Box<dyn Kernel<T>>> {
        // The kernel depends only on directions: it needs one lengthscale for all coordinates, and frequencies whose
        // directions are stated to be uniform.
        let isotropic = matches!(setting.kernel.lengthscale(), Lengthscale::Isotropic(_));
        (isotropic && setting.radius().is_polar()).then(|| Box::new(Angular) as _)
    }

    fn log_variance(&self, setting: Setting<'_>, u: &[f64], v: &[f64], _: &Pair) -> Option<f64> {
        theory::nonlinear(Activation::Sign, u, v, &setting.law()?)
    }
}
