//! Bipolar hybrids: hyperbolic features for opposite points, trigonometric features for similar ones.

use super::{Coefficient, GaussianWeight, Hybrid, Operand};
use crate::error::Result;
use crate::frequency::{AnyCoupling, Draw, Independent};
use crate::kernel::Softmax;
use crate::map::{Omega, PlainRecipe, Proposal, Prospect, Recipe, Target};
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

impl<M: Operand> Hybrid<M> {
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
    pub fn gaussian(bases: Bases, tau: impl Into<Omega>, weight: GaussianWeight) -> Result<M> {
        Self::bipolar(bases, Coefficient::gaussian(tau, weight)?, Softmax::default())
    }

    /// The hybrid λ̂ P + (1 − λ̂) Q of hyperbolic features P and trigonometric ones Q, for a target kernel (softmax or Gaussian)
    /// and any coefficient.
    ///
    /// # Errors
    /// The errors of [`PlainRecipe::map`](crate::map::PlainRecipe::map) and [`sum`](Hybrid::sum).
    pub fn bipolar(bases: Bases, coefficient: Coefficient<M>, target: impl Into<Target>) -> Result<M> {
        let target = target.into();
        let (first, second) = match bases {
            Bases::Independent(first, second) => (first, second),
            Bases::Shared(omega) => (omega.clone(), omega),
        };
        let hyperbolic = M::of_plain(PlainRecipe::new(Hyperbolic, first, target.clone()))?;
        Self::sum(
            vec![(coefficient, hyperbolic)],
            M::of_plain(PlainRecipe::new(Trigonometric, second, target))?,
        )
    }
}

/// Numbers of frequencies of a coefficient that are proposed.
const COEFFICIENTS: [usize; 3] = [1, 4, 16];

/// Hybrids with angular and Gaussian coefficients. Each part has a draw of its own.
pub(super) fn proposals(prospect: Prospect<'_>) -> Result<Vec<Proposal>> {
    let (d, target) = (prospect.dim(), prospect.target);
    let of = |map: &str, n: usize, coefficient: Coefficient<Recipe>| {
        let target = target.clone();
        Proposal::coupled(format!("{map}, n = {n}"), move |m, coupling: AnyCoupling| {
            let draw = |stream| Draw::new(d, m, coupling).with_stream(stream);
            Hybrid::bipolar(Bases::independent(draw(0), draw(1)), coefficient.clone(), target.clone())
        })
    };
    let tau = |n| Draw::new(d, n, Independent).with_stream(2);
    let angular = |n| Ok(of("angular hybrid", n, Coefficient::angular(tau(n))?));
    let mut all = COEFFICIENTS.into_iter().map(angular).collect::<Result<Vec<_>>>()?;
    // Coefficients see points that are not divided by the lengthscale.
    let [x, y] = prospect.statistics.map(|side| side.mean_squared_norm());
    let norm = (0.5 * (x? + y?)).sqrt();
    if let Some(scale) = target.lengthscale().isotropic().filter(|_| norm > 0.0) {
        let weight = GaussianWeight { sigma: (norm * scale).recip(), r: norm * scale };
        let gaussian = |n| Ok(of("Gaussian hybrid", n, Coefficient::gaussian(tau(n), weight)?));
        all.extend(COEFFICIENTS[1..].iter().map(|n| gaussian(*n)).collect::<Result<Vec<_>>>()?);
    }
    Ok(all)
}
