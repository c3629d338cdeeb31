//! [`EluPlusOne`]: the map of the linear transformer.

use std::sync::Arc;

use ndarray::{ArrayView1, ArrayView2, ArrayViewMut2};

use super::definition::{Definition, Setting};
use super::{AnyKernel, Facts, FeatureMap, Form, Lift, Omega, Side, Tile};
use crate::Real;
use crate::digest::identified;
use crate::error::{Error, Result, check_positive};
use crate::kernel::{Kernel, Lengthscale};
use crate::numeric::{self, Isa};
use crate::theory::Pair;

/// The map elu(u) + 1 of the linear transformer: positive features without projection or randomness.
///
/// ```
/// use random_features::EluPlusOne;
/// use random_features::ndarray::arr1;
/// let map = EluPlusOne.build(2, 1.0)?;
/// let estimate = map.estimate(&arr1(&[1.0, -3.0]), &arr1(&[0.5, 0.0]))?;
/// assert!((estimate - (3.0f64 + (-3.0f64).exp())).abs() < 1e-12);
/// # Ok::<(), random_features::Error>(())
/// ```
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
/// # References
/// Katharopoulos et al., *Transformers are RNNs: Fast Autoregressive Transformers with Linear Attention*,
/// equation 7.
#[doc(alias = "linear transformer")]
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
                let implied = matches!(setting.kernel, AnyKernel::Implied(_));
                if implied { Ok(()) } else { Err(setting.refused(self.name())) }
            }
            _ => Err(Error::NoFrequencies { map: self.name() }),
        }
    }

    fn takes_matrix(&self) -> bool {
        false
    }

    fn lift(&self) -> Option<Lift> {
        None
    }

    fn features<T: Real>(&self, setting: Setting<'_>) -> Result<Arc<dyn FeatureMap<T>>> {
        let (dim, lengthscale) = (setting.omega.dim(), setting.kernel.lengthscale().clone());
        Ok(Arc::new(OfCoordinates { dim, lengthscale }))
    }

    fn kernel<T: Real>(&self, _: Setting<'_>) -> Option<Box<dyn Kernel<T>>> {
        None
    }

    fn log_variance(&self, _: Setting<'_>, _: &[f64], _: &[f64], _: &Pair) -> Option<f64> {
        Some(f64::NEG_INFINITY)
    }
}

/// elu(u) + 1 of the coordinates u = xₖ/ℓₖ of points in ℝᵈ.
#[derive(Debug)]
struct OfCoordinates {
    dim: usize,
    lengthscale: Lengthscale,
}

impl<T: Real> FeatureMap<T> for OfCoordinates {
    fn facts(&self) -> Facts {
        Facts::new(self.dim, vec![self.dim]).symmetric().non_negative().logarithms()
    }

    fn fill(&self, _: Side, x: ArrayView2<'_, T>, form: Form, tile: &mut Tile<'_, T>) {
        for (i, x) in x.rows().into_iter().enumerate() {
            let row = tile.row(i);
            row.signs.fill(T::one());
            row.log_scales[0] = match form {
                Form::Values => self.values(x, row.values),
                Form::Logarithms => self.logarithms(x, row.values),
            };
            if !self.squared_norm(x).is_finite() {
                tile.poison(i);
            }
        }
    }

    fn pull_back(
        &self,
        _: Side,
        x: ArrayView2<'_, T>,
        cotangents: ArrayView2<'_, T>,
        mut out: ArrayViewMut2<'_, T>,
    ) -> bool {
        for (i, (x, mut out)) in x.rows().into_iter().zip(out.rows_mut()).enumerate() {
            let (shift, divisor) = self.factors(x);
            let scale = if self.squared_norm(x).is_finite() { shift + divisor.ln() } else { f64::NAN };
            for (k, u) in self.lengthscale.divide(x).enumerate() {
                let slope = (u.min(0.0) - scale).exp() / self.lengthscale.at(k);
                out[k] = T::narrow(cotangents[[i, k]].widen() * slope);
            }
        }
        true
    }
}

impl OfCoordinates {
    fn squared_norm<T: Real>(&self, x: ArrayView1<'_, T>) -> f64 {
        self.lengthscale.divide(x).map(|u| u * u).sum()
    }

    /// The exponent of the common factor of the exponentials if all coordinates are negative, else 0; and the largest feature if
    /// some coordinate is not negative, else 1.
    fn factors<T: Real>(&self, x: ArrayView1<'_, T>) -> (f64, f64) {
        let largest = self.lengthscale.divide(x).fold(f64::NEG_INFINITY, f64::max);
        (T::saturated(largest.min(0.0)).widen(), 1.0 + largest.max(0.0))
    }

    /// Writes features divided by the largest; returns its logarithm.
    fn values<T: Real>(&self, x: ArrayView1<'_, T>, values: &mut [T]) -> f64 {
        let scaled = || self.lengthscale.divide(x);
        let (shift, divisor) = self.factors(x);
        values.iter_mut().zip(scaled()).for_each(|(v, u)| *v = T::saturated(u.min(0.0)));
        numeric::exp_minus(Isa::best(), values, T::narrow(shift));
        for (v, u) in values.iter_mut().zip(scaled()) {
            *v = T::narrow((v.widen() + u.max(0.0)) / divisor);
        }
        shift + divisor.ln()
    }

    fn logarithms<T: Real>(&self, x: ArrayView1<'_, T>, values: &mut [T]) -> f64 {
        let exponent = |u: f64| if u > 0.0 { u.ln_1p() } else { u };
        let scaled = self.lengthscale.divide(x);
        values.iter_mut().zip(scaled).for_each(|(v, u)| *v = T::saturated(exponent(u)));
        0.0
    }
}
