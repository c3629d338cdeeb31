//! Poisson random features.

use ndarray::ArrayView1;

use super::{CountMechanism, Counting, Target};
use crate::Real;
use crate::error::{Error, Result};
use crate::frequency::{CountLaw, Counts, Rates};
use crate::kernel::{Gaussian, Lengthscale, Softmax};
use crate::theory::counts::ln_poisson_variance_per_dimension;

/// Poisson random features.
///
/// # Definition
/// φⱼ(x) = m^{−1/2} e^{Σ λₗ/2} Πₗ (xₗ/√λₗ)^{ωⱼₗ}, m features, for the softmax kernel, with 0⁰ = 1; for the
/// Gaussian kernel times e^{−½‖x‖²}. Unbiased if the ωⱼₗ are independent Poisson counts of rates λₗ > 0, one
/// for all coordinates or one for each. Features and estimates may be negative; with
/// [`Shifted`](super::Shifted) they are not.
///
/// # Variance
/// e^{2x·y} (exp(Σ (λₗ − xₗyₗ)²/λₗ) − 1)/m: least on average for λₗ the root mean square of xₗyₗ over the
/// pairs at hand ([`PairStatistics::poisson_per_dimension`](crate::plan::PairStatistics::poisson_per_dimension), and
/// [`PairStatistics::poisson`](crate::plan::PairStatistics::poisson) for one λ). It explodes where |xₗyₗ| is much
/// larger than λₗ. Closed form: [`theory::counts`](crate::theory::counts).
///
/// # Exact where
/// xₗyₗ = λₗ for every l, for any draw; with tiny λ, where x or y is 0.
///
/// # Cost
/// O(md) a point; one logarithm for each coordinate and one exponential for each feature.
///
/// # Example
/// ```
/// use ndarray::{arr1, arr2};
/// use random_features::frequency::draw_poisson;
/// use random_features::plan::{PairStatistics, Statistics};
/// use random_features::{FeatureMap, Poisson};
/// let (queries, keys) = (arr2(&[[0.3, -0.2], [0.5, 0.1]]), arr2(&[[0.1, 0.4], [0.3, -0.4]]));
/// let (x, y) = (Statistics::of(&queries)?, Statistics::of(&keys)?);
/// let rates = PairStatistics::new(&x, &y)?.poisson_per_dimension();
/// let omega = draw_poisson(2, 512, rates, &mut random_features::rng(1))?;
/// let map = Poisson::softmax(omega)?;
/// let (x, y) = (arr1(&[0.3, -0.2]), arr1(&[0.1, 0.4]));
/// let estimate: f64 = map.estimate(&x, &y)?;
/// assert!((estimate - x.dot(&y).exp()).abs() < 0.1);
/// # Ok::<(), random_features::Error>(())
/// ```
///
/// # References
/// Likhosherstov et al., *Chefs' Random Tables*, Theorem 3.4. A rate for each coordinate: new.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Poisson {
    rates: Rates,
}

impl Poisson {
    /// The map for a target kernel: [`Softmax`] or [`Gaussian`] with any lengthscale. λ is that of the
    /// counts' law.
    ///
    /// # Errors
    /// [`Law`](Error::Law) if the counts' law is not Poisson, and as [`Counting::new`].
    pub fn new<T: Real>(omega: Counts, target: impl Into<Target>) -> Result<Counting<T, Self>> {
        match omega.law() {
            CountLaw::Poisson(rates) => Counting::new(Poisson { rates: rates.clone() }, omega, target),
            law => Err(Error::Law { expected: Self::NAME, found: law.name() }),
        }
    }

    /// The map for the softmax kernel exp(x·y).
    ///
    /// # Errors
    /// As [`new`](Poisson::new).
    pub fn softmax<T: Real>(omega: Counts) -> Result<Counting<T, Self>> {
        Self::new(omega, Softmax::default())
    }

    /// The map for the Gaussian kernel with lengthscale ℓ.
    ///
    /// # Errors
    /// As [`new`](Poisson::new) and [`Gaussian::new`].
    pub fn gaussian<T: Real>(
        omega: Counts,
        lengthscale: impl Into<Lengthscale>,
    ) -> Result<Counting<T, Self>> {
        Self::new(omega, Gaussian::new(lengthscale)?)
    }

    /// The map with these λ, whatever the law of the counts. If it is not Poisson with the same λ, neither
    /// the kernel nor the variance is known.
    ///
    /// # Errors
    /// [`Parameter`](Error::Parameter) if a rate is not positive or beyond 1e15, [`Shape`](Error::Shape) if
    /// there are rates or lengthscales for another dimension.
    pub fn with_rates<T: Real>(
        omega: Counts,
        rates: impl Into<Rates>,
        target: impl Into<Target>,
    ) -> Result<Counting<T, Self>> {
        Counting::new(Poisson { rates: rates.into() }, omega, target)
    }

    /// λ.
    pub fn rates(&self) -> &Rates {
        &self.rates
    }
}

impl CountMechanism for Poisson {
    const NAME: &'static str = "Poisson";

    fn check(&self, d: usize) -> Result<()> {
        self.rates.check(d)
    }

    fn divisors(&self, d: usize) -> Vec<f64> {
        self.rates.each(d).map(f64::sqrt).collect()
    }

    fn bias(&self, _: ArrayView1<'_, u64>) -> f64 {
        0.0
    }

    fn constant(&self, d: usize) -> f64 {
        0.5 * self.rates.each(d).sum::<f64>()
    }

    fn fits(&self, law: &CountLaw, d: usize) -> bool {
        matches!(law, CountLaw::Poisson(rates) if rates.each(d).eq(self.rates.each(d)))
    }

    fn log_variance(&self, x: &[f64], y: &[f64], m: usize) -> f64 {
        let rates: Vec<f64> = self.rates.each(x.len()).collect();
        ln_poisson_variance_per_dimension(x, y, &rates, m)
    }
}
