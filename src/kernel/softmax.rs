//! The softmax kernel.

use super::angular::max_abs;
use super::{Exponential, Kernel, Lengthscale};
use crate::digest::{Identity, identified};
use crate::error::Result;
use crate::{Real, SignedLog};

/// The softmax kernel exp(x·y).
///
/// ```
/// use random_features::kernel::{Kernel, Softmax};
/// use random_features::ndarray::arr1;
/// let kernel = Softmax::default();
/// assert_eq!(kernel.value(&arr1(&[1.0, 2.0]), &arr1(&[2.0, -1.0]))?, 1.0);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # Definition
/// K(x, y) = exp(Σₖ xₖ yₖ / ℓₖ²). It is the kernel of attention: exp(q·k/√d) is this kernel with ℓ = d^{1/4}.
///
/// # References
/// Choromanski et al., *Rethinking Attention with Performers*, equation 6.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Softmax {
    lengthscale: Lengthscale,
}

impl Softmax {
    /// The kernel with lengthscale ℓ.
    ///
    /// # Errors
    /// [`Parameter`](crate::Error::Parameter) if an ℓ is outside its domain.
    pub fn new(lengthscale: impl Into<Lengthscale>) -> Result<Self> {
        Ok(Softmax { lengthscale: lengthscale.into().checked()? })
    }

    /// The lengthscale.
    pub fn lengthscale(&self) -> &Lengthscale {
        &self.lengthscale
    }
}

identified! { Softmax { lengthscale } }

impl<T: Real> Kernel<T> for Softmax {
    fn check_dim(&self, d: usize) -> Result<()> {
        self.lengthscale.check_dim(d)
    }

    fn log_of_slices(&self, x: &[T], y: &[T]) -> SignedLog {
        SignedLog::positive(self.lengthscale.sum(x, y, |x, y| x * y))
    }

    /// Writes y/ℓ² over its largest entry if that overflows.
    fn gradient_of_slices(&self, x: &[T], y: &[T], out: &mut [f64]) -> Option<f64> {
        let ln_value = self.lengthscale.sum(x, y, |x, y| x * y);
        for (l, (out, y)) in out.iter_mut().zip(y).enumerate() {
            *out = y.widen() / self.lengthscale.at(l) / self.lengthscale.at(l);
        }
        if max_abs(out.iter().copied()) < f64::INFINITY || y.iter().any(|y| !y.is_finite()) {
            return Some(ln_value);
        }
        let ln = |(l, y): (usize, &T)| y.widen().abs().ln() - 2.0 * self.lengthscale.at(l).ln();
        let largest = y.iter().enumerate().map(ln).fold(f64::NEG_INFINITY, f64::max);
        for (l, (out, y)) in out.iter_mut().zip(y).enumerate() {
            *out = (ln((l, y)) - largest).exp().copysign(y.widen());
        }
        Some(ln_value + largest)
    }

    fn exponential(&self) -> Option<Exponential> {
        Some(Exponential { lengthscale: self.lengthscale.clone(), row: 0.0 })
    }

    fn identity(&self) -> Option<Identity> {
        Some(Identity::of(&("softmax", self)))
    }
}
