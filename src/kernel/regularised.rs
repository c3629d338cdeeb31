//! The regularised softmax kernel.

use crate::generator::Generator;

use super::{Kernel, Lengthscale, Radii, Radius};
use crate::digest::{Identity, identified};
use crate::error::{Error, Result, check_size};
use crate::memory::check_memory;
use crate::numeric::special::ln_0f1;
use crate::{Real, SignedLog};

/// The regularised softmax kernel, which positive features with ‖ω‖ = √d estimate.
///
/// ```
/// use random_features::kernel::{Kernel, RegularisedSoftmax, Softmax};
/// use random_features::ndarray::arr1;
/// let (x, y) = (arr1(&[1.0, 0.5]), arr1(&[0.5, -1.0]));
/// let regularised: f64 = RegularisedSoftmax::default().value(&x, &y)?;
/// assert!(
///     0.0 < regularised && regularised < Softmax::default().value(&x, &y)?
/// );
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// K(x, y) = e^{−(‖x‖²+‖y‖²)/2} E exp(√d u·(x+y)) with u uniform on the sphere = e^{−(‖x‖²+‖y‖²)/2} ₀F₁(; d/2;
/// d‖x+y‖²/4). It lies between 0 and the softmax kernel, which it equals at x = −y; their ratio is 1 − O(1/d). Points
/// are divided by ℓ first. Up to d ≈ 10⁴ the logarithm is accurate for any norm, and up to d = 10⁶ to 1e-9. For larger
/// d use the softmax kernel, from which it differs by O(1/d).
///
/// # References
/// Choromanski et al., *Rethinking Attention with Performers*, Theorem 1 and equations 29–30.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RegularisedSoftmax {
    lengthscale: Lengthscale,
    /// N if it was set; `None` for the dimension of the points.
    dim: Option<usize>,
}

impl RegularisedSoftmax {
    /// The kernel of dimension N = `dim`: points of fewer dimensions count as padded with zeros.
    ///
    /// It is the kernel of maps whose coupling pads points to dimension N, with ‖ω‖ = √N.
    pub fn in_dimension(dim: usize) -> Self {
        RegularisedSoftmax { dim: Some(dim), ..Self::default() }
    }

    /// N if it was set; `None` for the dimension of the points.
    pub fn dim(&self) -> Option<usize> {
        self.dim
    }

    /// Rejects frequencies in ℝᵈ, padded to `padded` dimensions, that are of another dimension than the kernel.
    pub(crate) fn check_padded(&self, d: usize, padded: usize) -> Result<()> {
        let what = "the dimension of the frequencies of the regularised softmax kernel, with padding,";
        check_size(what, self.padded_dim(d), padded)
    }

    /// The padded dimension of frequencies in ℝᵈ that the kernel is for.
    pub(crate) fn padded_dim(&self, d: usize) -> usize {
        self.dim.unwrap_or(d)
    }

    /// Sets the lengthscale ℓ.
    ///
    /// # Errors
    /// [`Parameter`](crate::Error::Parameter) if an ℓ is outside its domain.
    pub fn with_lengthscale(self, lengthscale: impl Into<Lengthscale>) -> Result<Self> {
        Ok(RegularisedSoftmax { lengthscale: lengthscale.into().checked()?, ..self })
    }

    /// The kernel with lengthscale ℓ.
    ///
    /// # Errors
    /// [`Parameter`](crate::Error::Parameter) if an ℓ is outside its domain.
    pub fn new(lengthscale: impl Into<Lengthscale>) -> Result<Self> {
        Self::default().with_lengthscale(lengthscale)
    }

    /// The lengthscale.
    pub fn lengthscale(&self) -> &Lengthscale {
        &self.lengthscale
    }
}

identified! { RegularisedSoftmax { lengthscale, dim } }

impl<T: Real> Kernel<T> for RegularisedSoftmax {
    fn check_dim(&self, d: usize) -> Result<()> {
        match self.dim {
            Some(dim) if d > dim => {
                let (name, value) = ("the dimension of the points", d as f64);
                Err(Error::Parameter { name, value, domain: "at most that of the kernel" })
            }
            _ => self.lengthscale.check_dim(d),
        }
    }

    fn log_of_slices(&self, x: &[T], y: &[T]) -> SignedLog {
        let d = self.dim.unwrap_or(x.len()) as f64;
        let norms = self.lengthscale.sum(x, y, |x, y| x * x + y * y);
        let t = 0.25 * d * self.lengthscale.sum(x, y, |x, y| (x + y) * (x + y));
        // ₀F₁ is at most e^(2√t), which is nothing beside the other factor where t overflows.
        let rise = if t == f64::INFINITY { 0.0 } else { ln_0f1(0.5 * d, t) };
        SignedLog::positive(rise - 0.5 * norms)
    }

    /// K(x, y) (ρ(x + y) − x)/ℓ with ρ = ₀F₁(; d/2 + 1; t)/₀F₁(; d/2; t) and t = d‖x+y‖²/4, at points divided by ℓ.
    fn gradient_of_slices(&self, x: &[T], y: &[T], out: &mut [f64]) -> Option<f64> {
        let d = self.dim.unwrap_or(x.len()) as f64;
        let t = 0.25 * d * self.lengthscale.sum(x, y, |x, y| (x + y) * (x + y));
        // Far away, where K is 0, this is a difference of large or infinite numbers.
        let ln_rho = (ln_0f1(0.5 * d + 1.0, t) - ln_0f1(0.5 * d, t)).min(0.0);
        let (rho, rest) = (ln_rho.exp(), -ln_rho.exp_m1());
        for (l, (out, (x, y))) in out.iter_mut().zip(x.iter().zip(y)).enumerate() {
            let scale = self.lengthscale.at(l);
            *out = (rho * (y.widen() / scale) - rest * (x.widen() / scale)) / scale;
        }
        Some(self.log_of_slices(x, y).ln_abs)
    }

    fn identity(&self) -> Option<Identity> {
        Some(Identity::of(&("regularised softmax", self)))
    }
}

/// Constant radii √d, for the regularised softmax kernel.
///
/// With a coupling that pads points to dimension N, radii are √N, and the kernel is the regularised one of dimension N.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RootDim;

impl Radii for RootDim {
    fn draw(&self, d: usize, count: usize, _: &mut Generator) -> Result<Vec<f64>> {
        check_memory("radii", count, size_of::<f64>())?;
        Ok(vec![(d as f64).sqrt(); count])
    }

    fn law(&self) -> Radius {
        Radius::RootDim
    }

    fn quantile(&self, d: usize, _: f64) -> Option<f64> {
        Some((d as f64).sqrt())
    }
}
