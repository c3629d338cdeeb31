//! Bipolar hybrids: hyperbolic features where points oppose each other, trigonometric ones where they agree.

use std::sync::Arc;

use super::composite::Covariance;
use super::{Coefficient, Hybrid};
use crate::error::Result;
use crate::frequency::Frequencies;
use crate::map::{Exponential, Target};
use crate::projection::Projection;
use crate::{FeatureMap, Hyperbolic, Real, Trigonometric};

/// The frequencies of the two bases of a bipolar hybrid.
#[derive(Clone, Debug, PartialEq)]
pub enum Bases {
    /// Each base has its own: hyperbolic, then trigonometric.
    Independent(Frequencies, Frequencies),
    /// They share them: projected once and lifted twice. For points of equal norms the variance is the same.
    Shared(Frequencies),
}

impl<T: Real> Hybrid<T> {
    /// The angular hybrid for the softmax kernel: λ = θ/π, estimated from the signs of τ.
    ///
    /// The relative error vanishes at θ = 0 and at θ = π (for equal norms), and is small between. τ must not be the
    /// bases' frequencies. Source: Hybrid Random Features, section 3.1.
    ///
    /// # Errors
    /// As [`bipolar`](Hybrid::bipolar).
    pub fn angular(bases: Bases, tau: Frequencies) -> Result<Self> {
        Self::bipolar(bases, Coefficient::angular(tau), crate::kernel::Softmax::default())
    }

    /// The Gaussian hybrid for the softmax kernel: λ = (1 − e^{−σ²‖x−y‖²/2})/ρ, estimated from trigonometric features on
    /// τ; made for points of norm r.
    ///
    /// # Errors
    /// As [`Coefficient::gaussian`] and [`bipolar`](Hybrid::bipolar).
    pub fn gaussian(bases: Bases, tau: Frequencies, sigma: f64, r: f64) -> Result<Self> {
        Self::bipolar(bases, Coefficient::gaussian(tau, sigma, r)?, crate::kernel::Softmax::default())
    }

    /// λ̂ times hyperbolic features plus 1 − λ̂ times trigonometric ones, for a target kernel (softmax or Gaussian) and
    /// any coefficient.
    ///
    /// # Errors
    /// As [`Exponential::new`] and [`Hybrid::new`].
    pub fn bipolar(bases: Bases, coefficient: Coefficient<T>, target: impl Into<Target>) -> Result<Self> {
        let target = target.into();
        let lengthscale = || target.lengthscale().clone();
        let (shared, hyperbolic, trigonometric) = match bases {
            Bases::Independent(first, second) => {
                let first = Arc::new(Projection::new(first, lengthscale())?);
                (None, first, Arc::new(Projection::new(second, lengthscale())?))
            }
            Bases::Shared(omega) => {
                let unit = (0..omega.dim()).all(|k| target.lengthscale().at(k) == 1.0);
                let known = unit && omega.law().is_independent();
                let covariance = if known { Covariance::Bipolar(target.row()) } else { Covariance::Unknown };
                let projection = Arc::new(Projection::new(omega, lengthscale())?);
                (Some(covariance), projection.clone(), projection)
            }
        };
        let hyperbolic: Box<dyn FeatureMap<T>> =
            Box::new(Exponential::with_projection(Hyperbolic, hyperbolic, target.clone())?);
        let trigonometric = Exponential::with_projection(Trigonometric, trigonometric, target)?;
        let hybrid = Hybrid::new(vec![(coefficient, hyperbolic)], Box::new(trigonometric))?;
        Ok(match shared {
            Some(covariance) => hybrid.with_covariance(covariance),
            None => hybrid,
        })
    }
}
