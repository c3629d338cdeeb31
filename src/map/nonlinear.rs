//! [`Nonlinear`]: features f(ω·x) + ε for a choice of functions f.

use super::definition::{Definition, NormalForm, Setting};
use crate::Real;
use crate::digest::identified;
use crate::engine::Lift;
use crate::error::Result;
use crate::kernel::{Activation, Kernel, checked_offset};
use crate::theory::{self, Pair, Radius};

/// Features f(ω·x) + ε of a function f: generalised attention, arc-cosine kernels, random neural layers.
///
/// ```
/// use random_features::Nonlinear;
/// use random_features::frequency::Orthogonal;
/// use random_features::kernel::Activation;
/// use random_features::ndarray::arr1;
/// let omega = Orthogonal.draw(2, 1024, 1)?;
/// let map = Nonlinear::new(Activation::Relu).build(omega.clone(), 1.0)?;
/// let x = arr1(&[1.0, 1.0]);
/// let estimate: f64 = map.estimate(&x, &x)?;
/// assert!((estimate - 1.0).abs() < 0.2);
/// let shifted = Nonlinear::new(Activation::Relu)
///     .with_offset(1e-3)?
///     .build(omega, 1.0)?;
/// assert!(shifted.estimate(&x, &(-&x))? > 0.0);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// φⱼ(x) = m^{−1/2} (f(ωⱼ·x/ℓ) + ε), m features; [`Activation`] lists the functions. They estimate E\[(f(ω·x) +
/// ε)(f(ω·y) + ε)\] with any coupling. [`kernel`](crate::Map::kernel) is this
/// [kernel](crate::kernel::ActivationKernel) if it has a closed form and ω ~ N(0, I); it is `None` for GELU, the sigmoid and
/// tanh, and for radii of another law. An ε > 0 keeps sums of features away from 0 where f is 0, and may make features
/// [non-negative](crate::map::Facts::non_negative).
///
/// Rows are divided by a power of two such that the largest value is between ½ and 1, so that no norm overflows; much
/// smaller values may underflow to 0. exp without ε has logarithms, and therefore
/// [log-estimates](crate::Map::log_estimate) at any norm.
///
/// # Variance
/// (E\[f²(ω·x) f²(ω·y)\] − K²)/m for independent ω and ε = 0. [`theory::nonlinear`] has closed forms for u, u², exp, cos, sin,
/// sgn, step, ReLU, ReLU² and |u|, also with antithetic pairs, and for exp, u and u² under any known law. For ε ≠ 0 and
/// independent ω, [`theory::nonlinear_with_offset`] has them for u, u², |u|, step and ReLU.
///
/// # Exact where
/// Nowhere in general; for sgn where x = cy with c ≠ 0, for any draw.
///
/// # Cost
/// O(md) per point, plus f for each feature. With AVX2 erf, which is not vectorised, takes some 15 ns, GELU 8,
/// tanh 3 and the others about 1.
///
/// # References
/// Choromanski et al., *Rethinking Attention with Performers*, equations 3 and 5; Cho and Saul, *Kernel
/// Methods for Deep Learning*.
#[doc(alias = "generalized attention")]
#[doc(alias = "generalised attention")]
#[doc(alias = "arc-cosine kernel")]
#[doc(alias = "random neural layer")]
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "StoredNonlinear", into = "StoredNonlinear")
)]
pub struct Nonlinear {
    activation: Activation,
    offset: f64,
}

impl Nonlinear {
    /// The map of features f(ω·x), with ε = 0.
    pub fn new(activation: Activation) -> Self {
        Nonlinear { activation, offset: 0.0 }
    }

    /// Sets the offset ε: features are those of f(ω·x) + ε.
    ///
    /// # Errors
    /// [`Parameter`](crate::Error::Parameter) if ε is not finite.
    pub fn with_offset(self, offset: f64) -> Result<Self> {
        Ok(Nonlinear { offset: checked_offset(offset)?, ..self })
    }

    /// The function f.
    pub fn activation(&self) -> Activation {
        self.activation
    }

    /// The offset ε.
    pub fn offset(&self) -> f64 {
        self.offset
    }
}

identified! { Nonlinear { activation, offset } }

impl Definition for Nonlinear {
    fn name(&self) -> &'static str {
        "nonlinear"
    }

    fn check(&self, setting: Setting<'_>) -> Result<()> {
        setting.check_implied(self.name())
    }

    fn is_of_signs(&self) -> bool {
        self.activation == Activation::Sign && self.offset == 0.0
    }

    fn lift(&self) -> Option<Lift> {
        Some(Lift::Function { activation: self.activation, offset: self.offset })
    }

    fn form(&self, _: Setting<'_>) -> Result<NormalForm> {
        let Nonlinear { activation, offset } = *self;
        let form = NormalForm::new(0.0);
        Ok(NormalForm { non_negative: activation.lower_bound() + offset >= 0.0, ..form })
    }

    fn kernel<T: Real>(&self, setting: Setting<'_>) -> Option<Box<dyn Kernel<T>>> {
        let kernel = self.activation.kernel().filter(|_| setting.radius() == Radius::Chi)?;
        let kernel = kernel.with_offset(self.offset).ok()?;
        Some(Box::new(kernel.with_lengthscale(setting.kernel.lengthscale().clone()).ok()?))
    }

    fn log_variance(&self, setting: Setting<'_>, u: &[f64], v: &[f64], _: &Pair) -> Option<f64> {
        theory::nonlinear_with_offset(self.activation, self.offset, u, v, &setting.law()?)
    }
}

/// The stored form, validated again on reading.
#[cfg(feature = "serde")]
#[derive(serde::Serialize, serde::Deserialize)]
struct StoredNonlinear {
    activation: Activation,
    #[serde(with = "crate::exact")]
    offset: f64,
}

#[cfg(feature = "serde")]
impl TryFrom<StoredNonlinear> for Nonlinear {
    type Error = crate::Error;

    fn try_from(parts: StoredNonlinear) -> Result<Self> {
        Nonlinear::new(parts.activation).with_offset(parts.offset)
    }
}

#[cfg(feature = "serde")]
impl From<Nonlinear> for StoredNonlinear {
    fn from(map: Nonlinear) -> Self {
        StoredNonlinear { activation: map.activation, offset: map.offset }
    }
}
