//! [`EluPlusOne`]: the map of the linear transformer.

use super::Omega;
use super::definition::{Definition, NormalForm, Setting};
use crate::Real;
use crate::digest::identified;
use crate::engine::{Input, Lift};
use crate::error::{Error, Result, check_positive};
use crate::kernel::Kernel;
use crate::theory::Pair;

/// The map elu(u) + 1 of the linear transformer: positive features without projection or randomness.
///
/// # Definition
/// φₖ(x) = elu(xₖ/ℓₖ) + 1 = e^{min(u, 0)} + max(u, 0) with u = xₖ/ℓₖ: d features, 1 + u above 0 and eᵘ below. It
/// approximates no kernel other than φ(x)·φ(y) itself, so [`kernel`](crate::Map::kernel) is `None`.
///
/// Rows are divided by their largest feature, so much smaller features may underflow to 0. Logarithms ln φ are
/// available at any norm.
///
/// # Variance
/// 0 (the logarithm is −∞), since nothing is random.
///
/// # Exact where
/// Everywhere, by definition.
///
/// # Cost
/// O(d) per point, with one exponential for each coordinate.
///
/// # Example
/// ```
/// use ndarray::arr1;
/// use random_features::EluPlusOne;
/// let map = EluPlusOne.map(2, 1.0)?;
/// let estimate = map.estimate(&arr1(&[1.0, -3.0]), &arr1(&[0.5, 0.0]))?;
/// assert!((estimate - (3.0f64 + (-3.0f64).exp())).abs() < 1e-12);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # References
/// Katharopoulos et al., *Transformers are RNNs: Fast Autoregressive Transformers with Linear Attention*,
/// equation 7.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct EluPlusOne;

identified! { EluPlusOne {} }

impl Definition for EluPlusOne {
    fn name(&self) -> &'static str {
        "elu+1"
    }

    fn check(&self, setting: Setting<'_>) -> Result<()> {
        match setting.omega {
            Omega::None(d) => {
                check_positive("the dimension d", *d)?;
                setting.check_implied(self.name())
            }
            _ => Err(Error::NoFrequencies { map: self.name() }),
        }
    }

    fn width(&self) -> usize {
        1
    }

    fn form(&self, _: Setting<'_>) -> Result<NormalForm> {
        let form = NormalForm::new(Lift::Exp, 0.0);
        Ok(NormalForm { input: Input::Coordinates, non_negative: true, ..form })
    }

    fn kernel<T: Real>(&self, _: Setting<'_>) -> Option<Box<dyn Kernel<T>>> {
        None
    }

    fn log_variance(&self, _: Setting<'_>, _: &[f64], _: &[f64], _: &Pair) -> Option<f64> {
        Some(f64::NEG_INFINITY)
    }
}
