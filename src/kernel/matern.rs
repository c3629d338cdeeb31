//! Matérn kernels.

use super::{Kernel, Lengthscale};
use crate::error::Result;
use crate::{Real, SignedLog};

/// The smoothness ν of a [`Matern`] kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Smoothness {
    /// ν = ½: e^{−δ}, the Laplace-type kernel.
    Half,
    /// ν = 3/2: (1 + √3 δ) e^{−√3 δ}.
    ThreeHalves,
    /// ν = 5/2: (1 + √5 δ + 5δ²/3) e^{−√5 δ}.
    FiveHalves,
}

impl Smoothness {
    /// ν.
    pub fn nu(self) -> f64 {
        match self {
            Smoothness::Half => 0.5,
            Smoothness::ThreeHalves => 1.5,
            Smoothness::FiveHalves => 2.5,
        }
    }
}

/// The isotropic Matérn kernel of smoothness ½, 3/2 or 5/2.
///
/// # Definition
/// A function of δ = ‖(x−y)/ℓ‖ given at [`Smoothness`]; 1 at δ = 0.
///
/// ```
/// use ndarray::arr1;
/// use random_features::kernel::{Kernel, Matern, Smoothness};
/// let kernel = Matern::new(Smoothness::Half, 2.0)?;
/// assert_eq!(kernel.value(&arr1(&[0.0, 0.0]), &arr1(&[6.0, 8.0]))?, (-5.0f64).exp());
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # References
/// Rasmussen and Williams, *Gaussian Processes for Machine Learning*, section 4.2.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Matern {
    smoothness: Smoothness,
    lengthscale: Lengthscale,
}

impl Matern {
    /// The kernel of this smoothness with lengthscale ℓ.
    ///
    /// # Errors
    /// [`Parameter`](crate::Error::Parameter) if an ℓ is outside its domain.
    pub fn new(smoothness: Smoothness, lengthscale: impl Into<Lengthscale>) -> Result<Self> {
        Ok(Matern { smoothness, lengthscale: lengthscale.into().checked()? })
    }

    /// The smoothness ν.
    pub fn smoothness(&self) -> Smoothness {
        self.smoothness
    }

    /// The lengthscale.
    pub fn lengthscale(&self) -> &Lengthscale {
        &self.lengthscale
    }
}

impl<T: Real> Kernel<T> for Matern {
    fn check_dim(&self, d: usize) -> Result<()> {
        self.lengthscale.check_dim(d)
    }

    fn log_of_slices(&self, x: &[T], y: &[T]) -> SignedLog {
        let distance = self.lengthscale.sum(x, y, |x, y| (x - y) * (x - y)).sqrt();
        if distance.is_infinite() {
            return SignedLog::from(0.0);
        }
        SignedLog::positive(match self.smoothness {
            Smoothness::Half => -distance,
            Smoothness::ThreeHalves => {
                let scaled = 3f64.sqrt() * distance;
                scaled.ln_1p() - scaled
            }
            Smoothness::FiveHalves => {
                let scaled = 5f64.sqrt() * distance;
                (scaled + scaled * scaled / 3.0).ln_1p() - scaled
            }
        })
    }
}
