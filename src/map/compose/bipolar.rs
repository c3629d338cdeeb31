//! Bipolar hybrids: hyperbolic features for opposite points, trigonometric features for similar ones.

use super::{Coefficient, Hybrid, Part};
use crate::error::Result;
use crate::kernel::Softmax;
use crate::map::{AnyKernel, Omega, PlainRecipe};
use crate::{Hyperbolic, Trigonometric};

/// The frequencies of the two bases of a bipolar hybrid: [`shared`](Bases::shared) or
/// [`independent`](Bases::independent).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Bases {
    /// Each base has its own frequencies: hyperbolic, then trigonometric.
    Independent(Omega, Omega),
    /// Both bases use these frequencies, projected once and lifted twice. For points of equal norms the variance is that of
    /// independent bases.
    Shared(Omega),
}

impl Bases {
    /// Frequencies that both bases share: they are projected once and lifted twice.
    pub fn shared(omega: impl Into<Omega>) -> Self {
        Bases::Shared(omega.into())
    }

    /// Separate frequencies for the hyperbolic and the trigonometric base.
    pub fn independent(hyperbolic: impl Into<Omega>, trigonometric: impl Into<Omega>) -> Self {
        Bases::Independent(hyperbolic.into(), trigonometric.into())
    }
}

impl<M: Part> Hybrid<M> {
    /// The angular hybrid for the softmax kernel: λ = θ/π, estimated from the signs of τ.
    ///
    /// The relative error is 0 at θ = 0 and at θ = π (for equal norms) and small in between. τ must be independent of
    /// the frequencies of the bases. The variance has a closed form if τ are independent frequencies and, for shared bases,
    /// their frequencies are independent too. Source: Hybrid Random Features, section 3.1.
    ///
    /// # Errors
    /// The errors of [`bipolar`](Hybrid::bipolar).
    pub fn angular(bases: Bases, tau: impl Into<Omega>) -> Result<M> {
        Self::bipolar(bases, Coefficient::angular(tau)?, Softmax::default())
    }

    /// The Gaussian hybrid for the softmax kernel: λ = (1 − e^{−σ²‖x−y‖²/2})/ρ, estimated from trigonometric features
    /// on τ, for points of norm r.
    ///
    /// # Errors
    /// The errors of [`Coefficient::gaussian`] and [`bipolar`](Hybrid::bipolar).
    pub fn gaussian(bases: Bases, tau: impl Into<Omega>, (sigma, r): (f64, f64)) -> Result<M> {
        Self::bipolar(bases, Coefficient::gaussian(tau, (sigma, r))?, Softmax::default())
    }

    /// The hybrid λ̂ P + (1 − λ̂) Q of hyperbolic features P and trigonometric ones Q, for a kernel (softmax or Gaussian)
    /// and any coefficient.
    ///
    /// # Errors
    /// The errors of [`PlainRecipe::build`](crate::map::PlainRecipe::build) and [`sum`](Hybrid::sum).
    pub fn bipolar(bases: Bases, coefficient: Coefficient<M>, kernel: impl Into<AnyKernel>) -> Result<M> {
        let kernel = kernel.into();
        let (first, second) = match bases {
            Bases::Independent(first, second) => (first, second),
            Bases::Shared(omega) => (omega.clone(), omega),
        };
        let hyperbolic = M::of_plain(PlainRecipe::new(Hyperbolic, first, kernel.clone()))?;
        Self::sum(
            vec![(coefficient, hyperbolic)],
            M::of_plain(PlainRecipe::new(Trigonometric, second, kernel))?,
        )
    }
}
